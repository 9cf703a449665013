/* A small run for tests of the chain: keys that sign with a hash, credentials that are one word, a
 * manifest, a ledger. */
#ifndef DP_TESTS_CHAIN_KIT_H
#define DP_TESTS_CHAIN_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gossip/ledger/ledger.h"

enum { KIT_ROOT = 0x77 };

/* Node i's identity key is 32 bytes of 0x10 + i, its vote key 32 bytes of 0x80 + i. */
static inline dp_peer kit_peer(uint32_t index)
{
    dp_peer peer;

    memset(peer.bytes, (int)(0x10 + index), sizeof peer.bytes);
    return peer;
}

static inline void kit_vote_key(uint32_t index, uint8_t key[DP_PUBLIC_KEY_BYTES])
{
    memset(key, (int)(0x80 + index), DP_PUBLIC_KEY_BYTES);
}

static inline dp_hash kit_tag(const uint8_t *key, const char *domain, dp_view bytes)
{
    dp_digest digest;

    dp_digest_init(&digest, domain);
    dp_digest_add(&digest, dp_view_of(key, DP_PUBLIC_KEY_BYTES));
    dp_digest_add(&digest, bytes);
    return dp_digest_end(&digest);
}

/* context: the node's index. */
static inline bool kit_sign(void *context, int key, const char *domain, dp_view bytes,
                            uint8_t signature[DP_SIGNATURE_BYTES])
{
    uint8_t vote[DP_PUBLIC_KEY_BYTES];
    const uint32_t index = *(const uint32_t *)context;
    const dp_peer peer = kit_peer(index);

    kit_vote_key(index, vote);
    if (key == DP_KEY_ROOT) { /* Everybody has it here; tests use it where it is due. */
        memset(vote, KIT_ROOT, sizeof vote);
    }
    const dp_hash tag = kit_tag(key == DP_KEY_IDENTITY ? peer.bytes : vote, domain, bytes);
    memcpy(signature, tag.bytes, 32);
    memcpy(signature + 32, tag.bytes, 32);
    return true;
}

static inline bool kit_verify(void *context, const uint8_t public_key[DP_PUBLIC_KEY_BYTES],
                              const char *domain, dp_view bytes,
                              const uint8_t signature[DP_SIGNATURE_BYTES])
{
    const dp_hash tag = kit_tag(public_key, domain, bytes);

    (void)context;
    return memcmp(tag.bytes, signature, 32) == 0 && memcmp(tag.bytes, signature + 32, 32) == 0;
}

static uint32_t kit_indexes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static inline dp_crypto kit_crypto(uint32_t index)
{
    return (dp_crypto){.context = &kit_indexes[index], .sign = kit_sign, .verify = kit_verify};
}

/* A credential: the peer's 32 bytes, u32 caps, u16 uses, 16 bytes of invite. */
enum { KIT_CREDENTIAL = 32 + 4 + 2 + DP_INVITE_ID_BYTES };

static inline dp_view kit_credential(uint32_t index, uint32_t caps, uint16_t uses, uint8_t invite,
                                     uint8_t out[KIT_CREDENTIAL])
{
    dp_writer writer = dp_writer_of(out, KIT_CREDENTIAL);
    uint8_t id[DP_INVITE_ID_BYTES];
    const dp_peer peer = kit_peer(index);

    memset(id, invite, sizeof id);
    dp_write_bytes(&writer, peer.bytes, 32);
    dp_write_u32(&writer, caps);
    dp_write_u16(&writer, uses);
    dp_write_bytes(&writer, id, sizeof id);
    return dp_view_of(out, KIT_CREDENTIAL);
}

static inline dp_status kit_admit(void *context, dp_view credential, const dp_run_id *run,
                                  const uint8_t *root, const dp_peer *peer, uint64_t now_ms,
                                  dp_admitted *out)
{
    dp_reader reader = dp_reader_of(credential);
    dp_peer named;
    dp_admitted read = {0};

    (void)context;
    (void)run;
    (void)root;
    (void)now_ms;
    dp_read_bytes(&reader, named.bytes, 32);
    read.caps = dp_read_u32(&reader);
    read.uses = dp_read_u16(&reader);
    dp_read_bytes(&reader, read.invite.bytes, sizeof read.invite.bytes);
    DP_TRY(dp_reader_finish(&reader));
    if (!dp_peer_equal(&named, peer)) {
        return DP_DENIED;
    }
    *out = read;
    return DP_OK;
}

static inline dp_admission kit_admission(void)
{
    return (dp_admission){.check = kit_admit};
}

/* Node 0 is the founder. */
static inline dp_manifest kit_manifest(void)
{
    dp_manifest manifest;
    const dp_peer founder = kit_peer(0);

    dp_manifest_default(&manifest);
    memcpy(manifest.founder, founder.bytes, sizeof manifest.founder);
    kit_vote_key(0, manifest.founder_vote_key);
    memset(manifest.root_key, KIT_ROOT, sizeof manifest.root_key);
    manifest.created_ms = 1000;
    manifest.voters_max = 7;
    manifest.members_max = 64;
    manifest.codec_keep = 64; /* Always; what moves is tested apart. */
    manifest.codec_keep_most = 0;
    return manifest;
}

static inline dp_run_id kit_run(void)
{
    return dp_hash_of("test/run", dp_view_text("kit"));
}

static inline void kit_ledger(dp_ledger *ledger)
{
    const dp_manifest manifest = kit_manifest();
    const dp_run_id run = kit_run();

    assert_int_equal(dp_ledger_open(ledger, &manifest, &run, 1), DP_OK);
}

/* Put nodes 0..n-1 in the roster and make them voters by hand. */
static inline void kit_voters(dp_ledger *ledger, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        ledger->voters[i].peer = kit_peer(i);
        kit_vote_key(i, ledger->voters[i].key);
        if (i > 0) {
            const dp_peer peer = kit_peer(i);
            dp_hash key;
            memcpy(key.bytes, peer.bytes, 32);
            assert_int_equal(dp_map_put(&ledger->map, &key, ledger->n_roster), DP_OK);
            ledger->roster[ledger->n_roster++] =
                (dp_roster_entry){.peer = peer, .caps = DP_CAP_ALL};
            ledger->n_members++;
        }
    }
    ledger->n_voters = n;
}

/* An empty ROUND record on this ledger, with the state certificate of all voters. */
static inline void kit_round(const dp_ledger *ledger, dp_record *record)
{
    memset(record, 0, sizeof *record);
    record->kind = DP_RECORD_ROUND;
    record->run = ledger->run;
    record->fork = ledger->fork;
    record->slot = ledger->slot + 1;
    record->prev = ledger->head;
    record->time_ms = ledger->time_ms + 1;
    record->round = ledger->round + 1;
    record->base = ledger->base;
    record->state_root = dp_hash_of("test/state", dp_view_of(&ledger->round, sizeof ledger->round));
    for (uint32_t i = 0; i < ledger->n_voters; i++) {
        const dp_crypto crypto = kit_crypto((uint32_t)(ledger->voters[i].peer.bytes[0] - 0x10));
        record->state[i].voter = (uint8_t)i;
        assert_true(dp_state_sign(&crypto, &ledger->run, &ledger->fork, ledger->round,
                                  &record->state_root, record->state[i].signature));
    }
    record->n_state = ledger->n_voters;
}

/* A contribution of node index; peers must be added in rising order. */
static inline dp_listed *kit_list(const dp_ledger *ledger, dp_record *record, uint32_t index,
                                  uint64_t tokens, uint32_t steps, unsigned __int128 energy)
{
    dp_listed *listed = &record->listed[record->n_listed++];
    const dp_crypto crypto = kit_crypto(index);

    *listed = (dp_listed){
        .peer = kit_peer(index), .bytes = 100, .tokens = tokens, .steps = steps, .energy = energy};
    listed->reach.own = record->round << 32; /* More in every round, and enough for any tokens. */
    listed->root = dp_hash_of("test/blob", dp_view_of(listed->peer.bytes, 32));
    dp_ready ready = dp_ready_of_listed(record, listed);
    assert_true(dp_ready_sign(&ready, &crypto, &ledger->run, &ledger->fork));
    memcpy(listed->signature, ready.signature, sizeof listed->signature);
    return listed;
}

#endif
