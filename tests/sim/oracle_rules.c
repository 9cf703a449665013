/* The judge of certificates, of accusations, and of silent voters: rules that need the oracle's own
 * list of voters and keys, and its own parser. */
#include <string.h>

#include "gossip/core/msg.h"
#include "gossip/member/members.h"
#include "gossip/member/statement.h"
#include "gossip/record/lists.h"
#include "gossip/record/wire.h"
#include "gossip/vote/commit_msg.h"
#include "tests/sim/oracle_internal.h"

enum {
    ROW_SLOT_AT = 33, /* in a vote row (commit.h) */
    ROW_PROMISED_AT = 73,
    /* a voter that may accept does so at its next event; the longest repeat interval is 500 ms */
    SILENT_US_MAX = 750000,
    ROUNDS_TO_SETTLE = 4,
    SKEW_MS_MAX = 120000 /* SAFETY A5: bound on how far a record's time may be ahead */
};

static unsigned long long wide(uint64_t value)
{
    return (unsigned long long)value;
}

/* ---- certificates ---- */

bool dp_oracle_certificate(dp_host *host, const dp_vote *decided, const dp_seal *seals, uint32_t n)
{
    dp_sim *sim = host->sim;
    const dp_slot_book *book = dp_oracle_slot(sim, decided->slot);
    const dp_crypto crypto = dp_sim_crypto(host);
    uint32_t counted = 0;

    for (uint32_t i = 0; i < n; i++) {
        dp_vote vote = *decided;
        vote.type = DP_MSG_ACCEPTED;
        vote.voter = seals[i].voter;
        memcpy(vote.signature, seals[i].signature, sizeof vote.signature);
        if (vote.voter < book->n_voters &&
            dp_vote_verify(&vote, &crypto, &sim->run, book->keys[vote.voter])) {
            counted |= 1U << vote.voter;
        }
    }
    if ((uint32_t)__builtin_popcount(counted) * 2 <= book->n_voters) {
        dp_sim_fail(sim, "S1", host->index,
                    "slot %llu: the certificate has %u of %u voters, each counted once",
                    wide(decided->slot), (uint32_t)__builtin_popcount(counted), book->n_voters);
        return false;
    }
    return true;
}

bool dp_oracle_certified(dp_host *host, const dp_record *record, const dp_hash *hash, dp_view cert)
{
    dp_reader r = dp_reader_of(cert);
    dp_seal seals[DP_VOTERS_MAX];
    const dp_vote decided = {.fork = record->fork,
                             .slot = record->slot,
                             .prev = record->prev,
                             .ballot = dp_read_u32(&r),
                             .hash = *hash};
    const uint32_t n = dp_read_u8(&r);

    for (uint32_t i = 0; i < n && i < DP_VOTERS_MAX; i++) {
        seals[i].voter = dp_read_u8(&r);
        dp_read_bytes(&r, seals[i].signature, sizeof seals[i].signature);
    }
    if (n > DP_VOTERS_MAX || dp_reader_finish(&r) != DP_OK) {
        dp_sim_fail(host->sim, "S1", host->index, "slot %llu: the certificate does not decode",
                    wide(record->slot));
        return false;
    }
    return dp_oracle_certificate(host, &decided, seals, n);
}

void dp_oracle_state(dp_sim *sim, const dp_record *record)
{
    const dp_slot_book *book = dp_oracle_slot(sim, record->slot);
    const dp_crypto crypto = dp_sim_crypto(&sim->hosts[0]);
    uint32_t counted = 0;

    for (uint32_t i = 0; i < record->n_state; i++) {
        const dp_seal *seal = &record->state[i];
        if (seal->voter < book->n_voters &&
            dp_state_verify(&crypto, book->keys[seal->voter], &sim->run, &record->fork,
                            record->round - 1, &record->state_root, seal->signature)) {
            counted |= 1U << seal->voter;
        }
    }
    if ((uint32_t)__builtin_popcount(counted) * 2 <= book->n_voters) {
        dp_sim_fail(sim, "G2", 0, "round %llu starts from a state that %u of %u voters signed",
                    wide(record->round), (uint32_t)__builtin_popcount(counted), book->n_voters);
    }
}

/* ---- accusations ---- */

static void accusation(dp_sim *sim, dp_reader *reader)
{
    dp_statement statement;
    dp_view bytes;

    if (dp_statement_read(reader, &statement, &bytes) != DP_OK) {
        reader->failed = true;
        return;
    }
    dp_read_view(reader, dp_read_u16(reader));
    const uint32_t subject = dp_sim_index(sim, &statement.subject);
    const uint32_t author = dp_sim_index(sim, &statement.author);
    if ((statement.kind == DP_STATEMENT_SUSPECT || statement.kind == DP_STATEMENT_DEAD) &&
        subject < sim->plan.nodes && author < sim->plan.nodes) {
        uint64_t *accused = &sim->oracle->accused[(size_t)subject * sim->plan.nodes + author];
        *accused = statement.incarnation > *accused ? statement.incarnation : *accused;
    }
}

void dp_oracle_accusations(dp_host *host, dp_view message)
{
    if (host->sim->forks != NULL) {
        return;
    }
    dp_reader r = dp_reader_of(message);
    uint32_t count = 1;

    dp_read_view(&r, DP_MSG_HEAD_BYTES);
    if (dp_msg_type_of(message) == DP_MSG_SYNC) {
        const bool compare = dp_read_u8(&r) == DP_SYNC_COMPARE;
        count = dp_read_u16(&r);
        dp_read_view(&r, compare ? 16 : 0); /* nonce and sum */
    }
    while (count-- > 0 && !r.failed) {
        accusation(host->sim, &r);
    }
    if (dp_reader_finish(&r) != DP_OK) {
        dp_sim_fail(host->sim, "W1", host->index, "sent a statement that does not decode");
    }
}

/* SAFETY D3: among four or more, a death takes two accusers. An accuser that is still counted after
 * the death was counted before it. */
void dp_oracle_death(dp_host *host, const dp_note *note)
{
    if (host->sim->forks != NULL) {
        return;
    }
    dp_sim *sim = host->sim;
    const uint32_t subject = dp_sim_index(sim, &note->peer);
    uint32_t accusers = 1; /* itself */
    dp_node_view view;
    dp_member_view member;
    uint32_t row = 1;

    dp_node_look(host->node, &view);
    if (subject >= sim->plan.nodes || view.alive < 4 ||
        (strcmp(note->cause, "silent") != 0 && strcmp(note->cause, "connection broken") != 0)) {
        return;
    }
    while (dp_node_member(host->node, row, &member) && !dp_peer_equal(&member.peer, &note->peer)) {
        row++;
    }
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        accusers +=
            i != host->index && sim->oracle->accused[(size_t)subject * sim->plan.nodes + i] >=
                                    member.incarnation
                ? 1
                : 0;
    }
    if (accusers < 2) {
        dp_sim_fail(sim, "D3", host->index, "holds %u for dead on its own word; %u are alive",
                    subject, view.alive);
    }
}

/* ---- voters that keep silent ---- */

/* The fields of a vote row that the checks here need. All zero if there is none. */
static dp_row_book read_row(dp_view bytes)
{
    dp_reader r = dp_reader_of(bytes);
    dp_row_book row;

    dp_read_view(&r, ROW_SLOT_AT);
    row.slot = dp_read_u64(&r);
    dp_read_view(&r, ROW_PROMISED_AT - ROW_SLOT_AT - 8);
    row.promised = dp_read_u32(&r);
    row.accepted = dp_read_u32(&r);
    return r.failed ? (dp_row_book){0} : row;
}

/* The voter has accepted as the PROPOSE asks, or has made a higher promise. */
static bool has_voted(const dp_row_book *row, const dp_due_book *due)
{
    return row->slot == due->slot &&
           (row->promised > due->ballot + 1 || row->accepted >= due->ballot + 1);
}

void dp_oracle_voting(dp_host *host, uint32_t op, dp_view bytes)
{
    dp_due_book *due = &host->sim->oracle->due[host->index];

    due->op = op;
    due->since_us = host->sim->now_us;
    if (op != 0) {
        due->asked = read_row(bytes); /* Even if its write fails: a promise in memory binds too. */
    }
}

void dp_oracle_checked(dp_host *host, const dp_hash *root)
{
    if (host->sim->forks != NULL) {
        return;
    }
    dp_due_book *due = &host->sim->oracle->due[host->index];

    due->checked[due->n_checked++ % DP_ORACLE_CHECKED] = *root;
}

void dp_oracle_delivered(dp_host *host, dp_view message)
{
    if (host->sim->forks != NULL) {
        return;
    }
    static dp_vote_msg msg;
    dp_sim *sim = host->sim;
    dp_due_book *due = &sim->oracle->due[host->index];

    if (dp_msg_type_of(message) == DP_MSG_RELAY) {
        dp_wire_relay relay;
        if (dp_wire_read_relay(message, &relay) != DP_OK ||
            !dp_peer_equal(&relay.target, &host->peer)) {
            return;
        }
        message = relay.message;
    }
    dp_view list;
    if (dp_list_msg_read(message, &list) == DP_OK) {
        due->lists[due->n_lists++ % DP_ORACLE_LISTS] = dp_listing_hash(list);
    }
    if (!dp_host_up(host) || dp_msg_type_of(message) != DP_MSG_PROPOSE ||
        dp_vote_msg_read(message, &msg) != DP_OK || msg.vote.slot != host->disk.n_records + 1 ||
        (due->slot == msg.vote.slot && due->ballot >= msg.vote.ballot)) {
        return;
    }
    due->slot = msg.vote.slot;
    due->ballot = msg.vote.ballot;
    due->hash = msg.vote.hash;
    due->since_us = sim->now_us;
}

static bool is_checked(const dp_due_book *due, const dp_hash *root)
{
    for (uint32_t i = 0; i < due->n_checked && i < DP_ORACLE_CHECKED; i++) {
        if (dp_hash_equal(&due->checked[i], root)) {
            return true;
        }
    }
    return false;
}

/* A voter may make some of the lists itself. Then the oracle does not know when it had all of them,
 * and does not check it. */
static bool was_given(const dp_due_book *due, const dp_record *record)
{
    for (uint32_t i = 0; record->in_lists && i < dp_listing_count(record->n_listed); i++) {
        bool given = false;
        for (uint32_t k = 0; k < due->n_lists && k < DP_ORACLE_LISTS; k++) {
            given = given || dp_hash_equal(&due->lists[k], &record->lists[i]);
        }
        if (!given) {
            return false;
        }
    }
    return true;
}

static const dp_ballot_book *ballot_of(dp_sim *sim, const dp_due_book *due)
{
    const dp_slot_book *slot = dp_oracle_slot(sim, due->slot);

    for (uint32_t i = 0; i < slot->n_ballots; i++) {
        if (slot->ballots[i].ballot == due->ballot &&
            dp_hash_equal(&slot->ballots[i].hash, &due->hash)) {
            return &slot->ballots[i];
        }
    }
    return NULL;
}

/* True if this voter has no reason not to accept, other than its own judgement. */
static bool may_accept(dp_host *host, const dp_due_book *due)
{
    static dp_record record;
    dp_sim *sim = host->sim;
    const dp_slot_book *slot = dp_oracle_slot(sim, due->slot);
    const dp_ballot_book *book = ballot_of(sim, due);
    uint8_t key[DP_PUBLIC_KEY_BYTES];
    uint32_t self = 0;

    dp_sim_vote_key(host, key);
    while (self < slot->n_voters && !dp_peer_equal(&slot->voters[self], &host->peer)) {
        self++;
    }
    if (self == slot->n_voters || memcmp(slot->keys[self], key, sizeof key) != 0 || due->op != 0 ||
        book == NULL || (book->accepted & ~(1U << self)) == 0 || host->paused_until > sim->now_us ||
        host->full_until > sim->now_us || host->toy_state != DP_TOY_UP ||
        dp_record_decode(&record, dp_view_of(book->record, book->record_size)) != DP_OK ||
        !was_given(due, &record) ||
        (int64_t)record.time_ms >
            1700000000000LL + (int64_t)(sim->now_us / 1000) + host->wall_offset_ms + SKEW_MS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < (record.parted ? record.n_parts : record.n_listed); i++) {
        const dp_hash *root = record.parted ? &record.parts[i].root : &record.listed[i].root;
        if ((!record.parted || record.parts[i].has) &&
            (!is_checked(due, root) ||
             !dp_disk_holds(&host->disk, dp_shelf_find(&sim->shelf, root)))) {
            return false;
        }
    }
    return true;
}

/* Scenes: bound on the time to the next round. */
static void check_gap(dp_sim *sim)
{
    const dp_oracle *o = sim->oracle;

    if (sim->plan.gap_us_max != 0 && o->n_rounds > ROUNDS_TO_SETTLE &&
        sim->now_us - o->round_us > sim->plan.gap_us_max) {
        dp_sim_fail(sim, "L1", 0, "no round for %.1f s after round %llu; %u voters",
                    (double)(sim->now_us - o->round_us) / 1e6, wide(o->n_rounds - 1),
                    dp_oracle_voters(sim));
    }
}

/* SAFETY A5: what one honest voter accepted, every honest voter with the same chain accepts. */
void dp_oracle_copied(dp_host *host)
{
    dp_lives *lives = host->sim->oracle->lives;

    if (lives != NULL) {
        dp_lives_check(lives, host);
    }
}

void dp_oracle_look(dp_sim *sim)
{
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        dp_oracle_copied(&sim->hosts[i]);
    }
    if (sim->forks != NULL) {
        return;
    }
    check_gap(sim);
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        dp_host *host = &sim->hosts[i];
        dp_due_book *due = &sim->oracle->due[i];
        if (due->slot == 0) {
            continue;
        }
        const dp_row_book row = read_row(dp_view_of(host->disk.vote.data, host->disk.vote.size));
        if (!dp_host_up(host) || host->disk.n_records >= due->slot || due->decided >= due->slot ||
            has_voted(&due->asked, due) || has_voted(&row, due)) {
            due->slot = 0;
        } else if (!may_accept(host, due)) {
            due->since_us = sim->now_us;
        } else if (sim->now_us - due->since_us > SILENT_US_MAX) {
            dp_sim_fail(sim, "A5", i,
                        "does not accept what another voter accepted in ballot %u of slot %llu",
                        due->ballot, wide(due->slot));
        }
    }
}
