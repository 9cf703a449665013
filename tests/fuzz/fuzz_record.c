/* Any bytes are one record, one certificate or none; a record has one form; judging it against a
 * chain ends. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/ledger/valid.h"
#include "gossip/record/listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool verify(void *context, const uint8_t public_key[DP_PUBLIC_KEY_BYTES], const char *domain,
                   dp_view bytes, const uint8_t signature[DP_SIGNATURE_BYTES])
{
    (void)context;
    (void)public_key;
    (void)domain;
    (void)bytes;
    return (signature[0] & 1) == 0; /* Half of all signatures hold. */
}

static dp_status admit(void *context, dp_view credential, const dp_run_id *run, const uint8_t *root,
                       const dp_peer *peer, uint64_t now_ms, dp_admitted *out)
{
    (void)context;
    (void)run;
    (void)root;
    (void)peer;
    (void)now_ms;
    *out = (dp_admitted){.caps = DP_CAP_ALL,
                         .uses = (uint16_t)(credential.size & 3),
                         .invite = {{(uint8_t)(credential.size & 1)}}};
    return credential.size > 0 ? DP_OK : DP_DENIED;
}

/* A chain of which the record at hand is the next. */
static void judge(const dp_record *record)
{
    const dp_crypto crypto = {.verify = verify};
    const dp_admission admission = {.check = admit};
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX];
    dp_manifest manifest;
    dp_ledger ledger;
    const char *cause = NULL;

    dp_manifest_default(&manifest);
    if (record->n_listed > 0) {
        memcpy(manifest.founder, record->listed[0].peer.bytes, sizeof manifest.founder);
    }
    if (dp_ledger_open(&ledger, &manifest, &record->run, 1) != DP_OK) {
        return;
    }
    ledger.fork = record->fork;
    ledger.head = record->prev;
    ledger.base = record->base;
    ledger.slot = record->slot - 1;
    ledger.round = record->round - 1;
    ledger.time_ms = record->time_ms;
    ledger.stale = record->aged != 0;
    ledger.listed_max = record->in_lists ? DP_LISTED_MAX : DP_LISTED_DEFAULT;
    ledger.has_before = ledger.stale;
    const dp_valid valid = {
        .ledger = &ledger, .crypto = &crypto, .admission = &admission, .admitted = admitted};
    if (record->slot > 0 && record->slot < UINT64_MAX && record->round < UINT64_MAX &&
        (record->kind != DP_RECORD_ROUND || record->round > 0) &&
        dp_valid_record(&valid, record, &cause) == DP_OK) {
        const dp_hash hash = {{1}};
        dp_ledger_apply(&ledger, record, &hash, admitted);
        (void)dp_ledger_digest(&ledger);
    }
    dp_ledger_close(&ledger);
}

/* Its parts alone, in a run that has as many: no bytes get past the weights, which would have to be
 * right. */
static void judge_parts(dp_record *record)
{
    const dp_crypto crypto = {.verify = verify};
    const dp_admission admission = {.check = admit};
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX];
    dp_manifest manifest;
    dp_ledger ledger;
    const char *cause = NULL;

    if (!record->parted || record->n_parts == 0) {
        return;
    }
    dp_manifest_default(&manifest);
    memcpy(manifest.founder, record->parts[0].owner.bytes, sizeof manifest.founder);
    if (dp_ledger_open(&ledger, &manifest, &record->run, 1) != DP_OK) {
        return;
    }
    ledger.parted = true;
    ledger.summed = true;
    ledger.layout.cuts.n = record->n_parts;
    const dp_valid valid = {
        .ledger = &ledger, .crypto = &crypto, .admission = &admission, .admitted = admitted};
    for (uint32_t p = 0; p < record->n_parts; p++) {
        record->parts[p].from &= dp_part_all(record->n_listed);
    }
    dp_valid_fill_parts(record);
    for (uint32_t p = 0; dp_valid_parts(&valid, record, &cause) == DP_OK && p < record->n_parts;
         p++) {
        const dp_part_word word = dp_part_word_of(record, p);
        dp_assert(!record->parts[p].has || word.n_sums == record->parts[p].n_sums);
    }
    dp_ledger_close(&ledger);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static dp_record record;
    static uint8_t again[DP_RECORD_WHOLE_MAX];
    dp_hash hashes[DP_LISTS_MAX];
    uint32_t n = 0;
    const dp_view bytes = dp_view_of(data, size);
    dp_cert_of_record cert;
    dp_view out;

    if (dp_record_decode(&record, bytes) == DP_OK) {
        const dp_status status = dp_record_encode(&record, again, sizeof again, &out);
        dp_assert(status == DP_OK && dp_view_equal(out, bytes));
        judge(&record);
        dp_assert(dp_record_lists(dp_record_voted(bytes), hashes, &n) == DP_OK);
        dp_assert(n == (record.in_lists ? dp_listing_count(record.n_listed) : 0));
        judge_parts(&record);
    }
    DP_IGNORE(dp_record_lists(bytes, hashes, &n));
    if (dp_cert_of_record_decode(&cert, bytes) == DP_OK) {
        const dp_status status = dp_cert_of_record_encode(&cert, again, sizeof again, &out);
        dp_assert(status == DP_OK && dp_view_equal(out, bytes));
    }
    return 0;
}
