#include "gossip/ledger/audit.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

struct dp_audit {
    dp_audit_config config;
    dp_manifest manifest;
    dp_ledger ledger;
    dp_audit_count *members; /* by index in the roster */
    uint64_t *own;           /* the same: how far it had come on its own line */
    dp_peer *peers;          /* the member of this row: a row may be given to another member */
    dp_sample_range *spans;  /* counted, rising, apart from each other */
    uint32_t n_spans;
    bool full;
    uint64_t records;
    uint64_t rounds;
    dp_audit_count count;
    uint64_t n_findings;
    dp_audit_finding findings[DP_AUDIT_FINDINGS_MAX];
    uint32_t n_causes;
    dp_audit_cause causes[DP_AUDIT_CAUSES_MAX];
    uint64_t stopped;
    uint64_t loosely;
    /* The two hashes that the next record may name as prev: the stored one and the computed one of
     * the newest record. They differ where that record is damaged. */
    bool linked; /* false: the one before is missing, and nothing is known of it */
    dp_hash last_stored;
    dp_hash last_made;
    dp_record record;
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX];
};

dp_status dp_audit_open(dp_audit **audit, const dp_audit_config *config)
{
    dp_audit *made = dp_reserve(1, sizeof *made);

    if (made == NULL) {
        return DP_NOMEM;
    }
    made->config = *config;
    made->manifest = *config->manifest;
    made->config.manifest = &made->manifest;
    dp_status status = dp_ledger_open(&made->ledger, &made->manifest, &config->run, 1);
    if (status == DP_OK) {
        made->members = dp_reserve(made->ledger.rows_max, sizeof *made->members);
        made->own = dp_reserve(made->ledger.rows_max, sizeof *made->own);
        made->peers = dp_reserve(made->ledger.rows_max, sizeof *made->peers);
        made->spans = dp_alloc(DP_AUDIT_SPANS_MAX, sizeof *made->spans);
        status =
            made->members != NULL && made->own != NULL && made->peers != NULL && made->spans != NULL
                ? DP_OK
                : DP_NOMEM;
    }
    if (status != DP_OK) {
        dp_audit_close(made);
        return status;
    }
    made->linked = true;
    made->last_stored = made->ledger.head;
    made->last_made = made->ledger.head;
    *audit = made;
    return DP_OK;
}

void dp_audit_close(dp_audit *audit)
{
    if (audit == NULL) {
        return;
    }
    dp_free(audit->spans);
    dp_free(audit->peers);
    dp_free(audit->own);
    dp_free(audit->members);
    if (audit->ledger.capacity > 0) {
        dp_ledger_close(&audit->ledger);
    }
    dp_free(audit);
}

static void find(dp_audit *audit, uint64_t slot, const char *text)
{
    uint32_t i = 0;

    if (audit->n_findings < DP_AUDIT_FINDINGS_MAX) {
        audit->findings[audit->n_findings] = (dp_audit_finding){.slot = slot, .text = text};
    }
    audit->n_findings++;
    while (i < audit->n_causes && strcmp(audit->causes[i].text, text) != 0) {
        i++;
    }
    if (i == audit->n_causes) {
        if (i == DP_AUDIT_CAUSES_MAX) {
            return;
        }
        audit->causes[audit->n_causes++] = (dp_audit_cause){.text = text, .first = slot};
    }
    audit->causes[i].count++;
    audit->causes[i].last = slot;
}

/* ---- samples ---- */

/* The first span that does not end before sample. */
static uint32_t span_at(const dp_audit *audit, uint64_t sample)
{
    uint32_t low = 0;
    uint32_t high = audit->n_spans;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (audit->spans[middle].first + audit->spans[middle].count < sample) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Joins range with the spans that it meets; how many of its samples were in them. */
static uint64_t add_span(dp_audit *audit, dp_sample_range range)
{
    const uint32_t at = span_at(audit, range.first);
    uint64_t end = range.first + range.count;
    uint64_t twice = 0;
    uint32_t n = 0;

    while (at + n < audit->n_spans && audit->spans[at + n].first <= range.first + range.count) {
        const dp_sample_range *span = &audit->spans[at + n];
        const uint64_t span_end = span->first + span->count;
        const uint64_t from = span->first > range.first ? span->first : range.first;
        const uint64_t to =
            span_end < range.first + range.count ? span_end : range.first + range.count;
        twice += to > from ? to - from : 0;
        n++;
    }
    if (n == 0 && audit->n_spans == DP_AUDIT_SPANS_MAX) {
        audit->full = true;
        return 0;
    }
    if (n > 0) {
        const dp_sample_range *last = &audit->spans[at + n - 1];
        end = last->first + last->count > end ? last->first + last->count : end;
        range.first = audit->spans[at].first < range.first ? audit->spans[at].first : range.first;
    }
    memmove(&audit->spans[at + 1], &audit->spans[at + n],
            (audit->n_spans - at - n) * sizeof audit->spans[0]);
    audit->n_spans = audit->n_spans + 1 - n;
    audit->spans[at] = (dp_sample_range){.first = range.first, .count = end - range.first};
    return twice;
}

/* Adds the samples of the run's line that a contribution used, by the lease that its author had
 * before. */
static uint64_t add_leased(dp_audit *audit, const dp_lease *lease, uint64_t leased)
{
    uint64_t left = leased - lease->reach.leased;
    uint64_t twice = 0;

    for (uint32_t i = 0; i < lease->n && left > 0; i++) {
        dp_sample_range range = lease->ranges[i];
        range.count = range.count < left ? range.count : left;
        twice += add_span(audit, range);
        left -= range.count;
    }
    return twice;
}

static void add_to(dp_audit_count *sum, const dp_audit_count *more)
{
    sum->counted += more->counted;
    sum->samples += more->samples;
    sum->leased += more->leased;
    sum->own += more->own;
    sum->twice += more->twice;
}

/* The record is valid, and not applied yet. */
static void count_round(dp_audit *audit, dp_audit_count counts[DP_LISTED_MAX])
{
    static const dp_lease none;

    for (uint32_t i = 0; i < audit->record.n_listed; i++) {
        const dp_listed *listed = &audit->record.listed[i];
        const dp_lease *found = dp_ledger_lease(&audit->ledger, &listed->peer);
        const dp_lease *lease = found != NULL ? found : &none;
        const uint64_t tokens = listed->tokens + listed->carried;
        const uint32_t context = audit->ledger.context;
        counts[i] = (dp_audit_count){.counted = 1,
                                     .samples = tokens / context + (tokens % context != 0 ? 1 : 0),
                                     .leased = listed->reach.leased - lease->reach.leased,
                                     .own = listed->reach.own - lease->reach.own};
        counts[i].twice = add_leased(audit, lease, listed->reach.leased);
    }
}

/* Clears the counts of a roster row that now belongs to another member; the former member's counts
 * remain in the sums only. */
static void begin_member(dp_audit *audit, uint32_t index)
{
    const dp_peer *peer = &audit->ledger.roster[index].peer;

    dp_assert(index < DP_MEMBERS_MAX);
    if (!dp_peer_equal(&audit->peers[index], peer)) {
        audit->peers[index] = *peer;
        audit->members[index] = (dp_audit_count){0};
        audit->own[index] = 0;
    }
}

/* ... and now it is applied. */
static void book_round(dp_audit *audit, const dp_audit_count counts[DP_LISTED_MAX])
{
    for (uint32_t i = 0; i < audit->record.n_listed; i++) {
        const dp_listed *listed = &audit->record.listed[i];
        const uint32_t index = dp_ledger_find(&audit->ledger, &listed->peer);
        dp_assert(index != DP_NOBODY);
        begin_member(audit, index);
        dp_audit_count count = counts[i];
        /* The book's own memory of how far it was, beside the ledger's. */
        const uint64_t before = listed->reach.own - count.own;
        count.twice += before < audit->own[index] ? audit->own[index] - before : 0;
        audit->own[index] = listed->reach.own;
        if (count.twice > 0) {
            find(audit, audit->record.slot, "samples are counted twice");
        }
        add_to(&audit->members[index], &count);
        add_to(&audit->count, &count);
    }
    if (audit->full) {
        find(audit, audit->record.slot, "too many ranges of samples to compare");
        audit->full = false;
    }
}

/* ---- records ---- */

static bool certified(const dp_audit *audit, const dp_cert_of_record *seals, const dp_hash *hash)
{
    const dp_ledger *ledger = &audit->ledger;

    return dp_cert_verify(seals, &audit->config.crypto, &ledger->run, &ledger->fork,
                          audit->record.slot, &audit->record.prev, hash, ledger->voters,
                          ledger->n_voters);
}

/* *name is the hash under which the record was stored, and becomes the hash of its bytes where that
 * one is certified: a damaged hash or record is a finding of its own. */
static const char *judge_cert(const dp_audit *audit, const dp_hash *made, dp_view cert,
                              dp_hash *name)
{
    dp_cert_of_record seals;

    if (dp_cert_of_record_decode(&seals, cert) != DP_OK) {
        return "the certificate does not decode";
    }
    if (audit->record.kind == DP_RECORD_FORK) { /* The root key in it is its certificate. */
        return seals.n == 0 && seals.ballot == 0 ? NULL : "the certificate of a fork is not empty";
    }
    if (audit->stopped != 0) { /* The voters are not known any more. */
        return NULL;
    }
    if (certified(audit, &seals, name)) {
        return NULL;
    }
    *name = *made;
    return certified(audit, &seals, made) ? NULL
                                          : "the certificate is not by a majority of the voters";
}

/* May it be applied? */
static const char *judge_numbers(dp_audit *audit, dp_view bytes)
{
    const dp_valid valid = {.ledger = &audit->ledger,
                            .bytes = bytes,
                            .crypto = &audit->config.crypto,
                            .admission = &audit->config.admission,
                            .admitted = audit->admitted};
    const char *cause = "";

    return dp_valid_record(&valid, &audit->record, &cause) == DP_OK ? NULL : cause;
}

static void stop(dp_audit *audit, uint64_t slot)
{
    audit->stopped = audit->stopped == 0 ? slot : audit->stopped;
}

/* Checks of a record that need no ledger. False: the record cannot follow the one before. */
static bool judge_form(dp_audit *audit, uint64_t slot, const dp_hash *stored, const dp_hash *made,
                       dp_view bytes)
{
    if (!dp_hash_equal(made, stored)) {
        find(audit, slot, "the record does not match its hash");
    }
    if (dp_record_decode(&audit->record, bytes) != DP_OK) {
        find(audit, slot, "the record does not decode");
        return false;
    }
    if (audit->record.slot != slot) {
        find(audit, slot, "the record is of another slot");
        return false;
    }
    if (audit->linked && !dp_hash_equal(&audit->record.prev, &audit->last_stored) &&
        !dp_hash_equal(&audit->record.prev, &audit->last_made)) {
        find(audit, slot, "the record does not follow the one before");
        return false;
    }
    return true;
}

/* All of it holds with the chain before it. */
static void apply(dp_audit *audit, const dp_hash *hash)
{
    dp_audit_count counts[DP_LISTED_MAX];
    const bool is_round = audit->record.kind == DP_RECORD_ROUND;

    if (is_round) {
        count_round(audit, counts);
    }
    dp_ledger_apply(&audit->ledger, &audit->record, hash, audit->admitted);
    if (is_round) {
        audit->rounds++;
        book_round(audit, counts);
    }
}

void dp_audit_record(dp_audit *audit, uint64_t slot, const dp_hash *stored, dp_view record,
                     dp_view cert)
{
    const uint64_t before = audit->n_findings;
    const dp_hash made = dp_record_hash(record);
    dp_hash name = *stored;

    if (judge_form(audit, slot, stored, &made, record)) {
        const char *wrong = judge_cert(audit, &made, cert, &name);
        if (wrong != NULL) {
            find(audit, slot, wrong);
        }
        if (audit->stopped == 0) {
            audit->ledger.head = audit->record.prev; /* One of the two that it may be. */
            wrong = judge_numbers(audit, record);
            if (wrong == NULL) {
                apply(audit, &name);
            } else {
                find(audit, slot, wrong);
                stop(audit, slot);
            }
        }
    } else {
        stop(audit, slot);
    }
    audit->linked = true;
    audit->last_stored = *stored;
    audit->last_made = made;
    if (audit->n_findings == before) {
        audit->records += audit->stopped == 0 ? 1 : 0;
        audit->loosely += audit->stopped == 0 ? 0 : 1;
    }
}

void dp_audit_gap(dp_audit *audit, uint64_t slot, const char *text)
{
    find(audit, slot, text);
    stop(audit, slot);
    audit->linked = false;
}

void dp_audit_look(const dp_audit *audit, dp_audit_view *view)
{
    *view = (dp_audit_view){.records = audit->records,
                            .rounds = audit->rounds,
                            .stopped = audit->stopped,
                            .loosely = audit->loosely,
                            .count = audit->count,
                            .granted = audit->ledger.pool.cursor,
                            .lost = audit->ledger.pool.lost,
                            .members = audit->ledger.n_roster,
                            .n_findings = audit->n_findings,
                            .n_causes = audit->n_causes};
    for (uint32_t i = 0; i < audit->ledger.pool.n; i++) {
        view->returned += audit->ledger.pool.ranges[i].count;
    }
    memcpy(view->findings, audit->findings, sizeof view->findings);
    memcpy(view->causes, audit->causes, sizeof view->causes);
}

void dp_audit_member(const dp_audit *audit, uint32_t index, dp_audit_member_view *view)
{
    dp_assert(index < audit->ledger.n_roster);
    const dp_roster_entry *entry = &audit->ledger.roster[index];

    *view = (dp_audit_member_view){.peer = entry->peer,
                                   .gone = entry->gone != 0,
                                   .count = dp_peer_equal(&audit->peers[index], &entry->peer)
                                                ? audit->members[index]
                                                : (dp_audit_count){0},
                                   .left = entry->lease.granted - entry->lease.reach.leased};
}
