/* The byte strings that READY, STATE, VOTER_OK, removals and votes sign; drawn in record.h. */
#include <string.h>

#include "base/assert.h"
#include "gossip/record/record.h"

enum { SIGNED_MAX = 320 };

static void add(dp_writer *writer, const dp_hash *hash)
{
    dp_write_bytes(writer, hash->bytes, sizeof hash->bytes);
}

static dp_view done(const dp_writer *writer)
{
    dp_assert(!writer->full);
    return dp_view_of(writer->data, writer->size);
}

/* ---- READY ---- */

static const char ready_domain[] = "dpnode/ready/2";
static const char parted_domain[] = "dpnode/ready/3";

static dp_view ready_bytes(const dp_ready *ready, const dp_run_id *run, const dp_hash *fork,
                           uint8_t out[SIGNED_MAX])
{
    dp_writer writer = dp_writer_of(out, SIGNED_MAX);

    add(&writer, run);
    add(&writer, fork);
    dp_write_u64(&writer, ready->round);
    add(&writer, &ready->base);
    add(&writer, &ready->root);
    dp_write_u64(&writer, ready->bytes);
    dp_write_u64(&writer, ready->tokens);
    dp_write_u32(&writer, ready->steps);
    dp_write_u64(&writer, ready->carried);
    dp_write_u64(&writer, ready->reach.leased);
    dp_write_u64(&writer, ready->reach.own);
    dp_write_u32(&writer, ready->loss_micro);
    add(&writer, &ready->state_root);
    if (ready->parted) {
        dp_write_u128(&writer, ready->energy);
        dp_write_u32(&writer, ready->rate);
    }
    return done(&writer);
}

bool dp_ready_sign(dp_ready *ready, const dp_crypto *crypto, const dp_run_id *run,
                   const dp_hash *fork)
{
    uint8_t room[SIGNED_MAX];

    return crypto->sign(crypto->context, DP_KEY_IDENTITY,
                        ready->parted ? parted_domain : ready_domain,
                        ready_bytes(ready, run, fork, room), ready->signature);
}

bool dp_ready_verify(const dp_ready *ready, const dp_crypto *crypto, const dp_run_id *run,
                     const dp_hash *fork)
{
    uint8_t room[SIGNED_MAX];

    return crypto->verify(crypto->context, ready->peer.bytes,
                          ready->parted ? parted_domain : ready_domain,
                          ready_bytes(ready, run, fork, room), ready->signature);
}

dp_ready dp_ready_of_listed(const dp_record *record, const dp_listed *listed)
{
    dp_ready ready = {.peer = listed->peer,
                      .round = record->round,
                      .base = record->base,
                      .root = listed->root,
                      .bytes = listed->bytes,
                      .tokens = listed->tokens,
                      .carried = listed->carried,
                      .reach = listed->reach,
                      .steps = listed->steps,
                      .loss_micro = listed->loss_micro,
                      .state_root = record->state_root,
                      .parted = record->parted,
                      .energy = record->parted ? listed->energy : 0,
                      .rate = listed->rate};

    memcpy(ready.signature, listed->signature, sizeof ready.signature);
    return ready;
}

dp_site_sum dp_part_sum_renamed(const dp_site_sum *sum, uint32_t from, bool to_listed)
{
    dp_site_sum renamed = *sum;
    uint32_t source = 0;

    renamed.from = 0;
    for (uint32_t i = 0; i < DP_PART_SOURCES_MAX; i++) {
        if ((from >> i & 1U) == 0) {
            continue;
        }
        const uint32_t old = to_listed ? source : i;
        const uint32_t new = to_listed ? i : source;
        renamed.from |= (sum->from >> old & 1U) << new;
        renamed.collector = sum->collector == old ? new : renamed.collector;
        source++;
    }
    return renamed;
}

dp_part_word dp_part_word_of(const dp_record *record, uint32_t part)
{
    const dp_part_row *row = &record->parts[part];
    dp_part_word word = {.owner = row->owner,
                         .round = record->round,
                         .base = record->base,
                         .part = part,
                         .root = row->root,
                         .bytes = row->bytes};

    dp_assert(part < record->n_parts);
    for (uint32_t i = 0; i < record->n_listed; i++) {
        if ((row->from >> i & 1U) != 0) {
            word.sources[word.n++] =
                (dp_part_source){.peer = record->listed[i].peer, .root = record->listed[i].root};
        }
    }
    for (uint32_t i = 0; i < row->n_sums && i < DP_SITE_SUMS_MAX; i++) {
        word.sums[word.n_sums++] =
            dp_part_sum_renamed(&record->sums[row->first_sum + i], row->from, false);
    }
    memcpy(word.signature, row->signature, sizeof word.signature);
    return word;
}

/* ---- STATE ---- */

static const char state_domain[] = "dpnode/state-vote/1";

static dp_view state_bytes(const dp_run_id *run, const dp_hash *fork, uint64_t round,
                           const dp_hash *root, uint8_t out[SIGNED_MAX])
{
    dp_writer writer = dp_writer_of(out, SIGNED_MAX);

    add(&writer, run);
    add(&writer, fork);
    dp_write_u64(&writer, round);
    add(&writer, root);
    return done(&writer);
}

bool dp_state_sign(const dp_crypto *crypto, const dp_run_id *run, const dp_hash *fork,
                   uint64_t round, const dp_hash *root, uint8_t signature[DP_SIGNATURE_BYTES])
{
    uint8_t room[SIGNED_MAX];

    return crypto->sign(crypto->context, DP_KEY_VOTE, state_domain,
                        state_bytes(run, fork, round, root, room), signature);
}

bool dp_state_verify(const dp_crypto *crypto, const uint8_t vote_key[DP_PUBLIC_KEY_BYTES],
                     const dp_run_id *run, const dp_hash *fork, uint64_t round, const dp_hash *root,
                     const uint8_t signature[DP_SIGNATURE_BYTES])
{
    uint8_t room[SIGNED_MAX];

    return crypto->verify(crypto->context, vote_key, state_domain,
                          state_bytes(run, fork, round, root, room), signature);
}

/* ---- VOTER_OK ---- */

static const char voter_domain[] = "dpnode/voter/1";

static dp_view voter_ok_bytes(const dp_run_id *run, const dp_hash *prev,
                              const uint8_t vote_key[DP_PUBLIC_KEY_BYTES], uint8_t out[SIGNED_MAX])
{
    dp_writer writer = dp_writer_of(out, SIGNED_MAX);

    add(&writer, run);
    add(&writer, prev);
    dp_write_bytes(&writer, vote_key, DP_PUBLIC_KEY_BYTES);
    return done(&writer);
}

bool dp_voter_ok_sign(const dp_crypto *crypto, const dp_run_id *run, const dp_hash *prev,
                      const uint8_t vote_key[DP_PUBLIC_KEY_BYTES],
                      uint8_t signature[DP_SIGNATURE_BYTES])
{
    uint8_t room[SIGNED_MAX];

    return crypto->sign(crypto->context, DP_KEY_IDENTITY, voter_domain,
                        voter_ok_bytes(run, prev, vote_key, room), signature);
}

bool dp_voter_ok_verify(const dp_crypto *crypto, const dp_peer *peer, const dp_run_id *run,
                        const dp_hash *prev, const uint8_t vote_key[DP_PUBLIC_KEY_BYTES],
                        const uint8_t signature[DP_SIGNATURE_BYTES])
{
    uint8_t room[SIGNED_MAX];

    return crypto->verify(crypto->context, peer->bytes, voter_domain,
                          voter_ok_bytes(run, prev, vote_key, room), signature);
}

/* ---- removal ---- */

static const char remove_domain[] = "dpnode/remove/1";

static dp_view remove_bytes(const dp_remove *remove, const dp_run_id *run, uint8_t out[SIGNED_MAX])
{
    dp_writer writer = dp_writer_of(out, SIGNED_MAX);

    add(&writer, run);
    dp_write_bytes(&writer, remove->peer.bytes, sizeof remove->peer.bytes);
    dp_write_u8(&writer, (uint8_t)remove->reason);
    dp_write_u64(&writer, remove->incarnation);
    if (remove->reason == DP_REMOVE_REVOKED) {
        dp_write_bytes(&writer, remove->by.bytes, sizeof remove->by.bytes);
    }
    return done(&writer);
}

bool dp_remove_sign(dp_remove *remove, const dp_crypto *crypto, int key, const dp_run_id *run)
{
    uint8_t room[SIGNED_MAX];

    return crypto->sign(crypto->context, key, remove_domain, remove_bytes(remove, run, room),
                        remove->signature);
}

bool dp_remove_verify(const dp_remove *remove, const dp_crypto *crypto, const dp_run_id *run)
{
    uint8_t room[SIGNED_MAX];
    const uint8_t *key = remove->reason == DP_REMOVE_LEFT ? remove->peer.bytes : remove->by.bytes;

    return crypto->verify(crypto->context, key, remove_domain, remove_bytes(remove, run, room),
                          remove->signature);
}

/* ---- lives ---- */

static const char life_domain[] = "dpnode/life/2";

static dp_view life_bytes(const dp_fence_ask *ask, const dp_run_id *run, uint8_t out[SIGNED_MAX])
{
    dp_writer writer = dp_writer_of(out, SIGNED_MAX);

    add(&writer, run);
    dp_write_bytes(&writer, ask->fence.peer.bytes, sizeof ask->fence.peer.bytes);
    dp_write_u64(&writer, ask->fence.incarnation);
    dp_write_bytes(&writer, ask->asker.bytes, sizeof ask->asker.bytes);
    dp_write_bytes(&writer, ask->exchange, sizeof ask->exchange);
    return done(&writer);
}

bool dp_life_sign(dp_fence_ask *ask, const dp_crypto *crypto, const dp_run_id *run)
{
    uint8_t room[SIGNED_MAX];

    return crypto->sign(crypto->context, DP_KEY_IDENTITY, life_domain, life_bytes(ask, run, room),
                        ask->signature);
}

bool dp_life_verify(const dp_fence_ask *ask, const dp_crypto *crypto, const dp_run_id *run)
{
    uint8_t room[SIGNED_MAX];

    return crypto->verify(crypto->context, ask->fence.peer.bytes, life_domain,
                          life_bytes(ask, run, room), ask->signature);
}

static void write_seals(dp_writer *writer, const dp_remove *remove)
{
    dp_write_u8(writer, (uint8_t)remove->n_seals);
    for (uint32_t i = 0; i < remove->n_seals; i++) {
        dp_write_u8(writer, remove->seals[i].voter);
        dp_write_u64(writer, remove->seals[i].round);
        dp_write_bytes(writer, remove->seals[i].signature, DP_SIGNATURE_BYTES);
    }
}

static bool read_seals(dp_reader *reader, dp_remove *remove)
{
    const uint8_t n = dp_read_u8(reader);

    if (n == 0 || n > DP_VOTERS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        dp_harm_seal *seal = &remove->seals[i];
        seal->voter = dp_read_u8(reader);
        seal->round = dp_read_u64(reader);
        dp_read_bytes(reader, seal->signature, DP_SIGNATURE_BYTES);
        if (i > 0 && seal->voter <= seal[-1].voter) {
            return false;
        }
    }
    remove->n_seals = n;
    return !reader->failed;
}

void dp_remove_write(dp_writer *writer, const dp_remove *remove)
{
    dp_write_bytes(writer, remove->peer.bytes, sizeof remove->peer.bytes);
    dp_write_u8(writer, (uint8_t)remove->reason);
    if (remove->reason == DP_REMOVE_ABSENT) {
        return;
    }
    if (remove->reason == DP_REMOVE_HARMFUL) {
        write_seals(writer, remove);
        return;
    }
    dp_write_u64(writer, remove->incarnation);
    if (remove->reason == DP_REMOVE_REVOKED) {
        dp_write_bytes(writer, remove->by.bytes, sizeof remove->by.bytes);
    }
    dp_write_bytes(writer, remove->signature, DP_SIGNATURE_BYTES);
}

bool dp_remove_read(dp_reader *reader, dp_remove *remove)
{
    dp_read_bytes(reader, remove->peer.bytes, sizeof remove->peer.bytes);
    const uint8_t reason = dp_read_u8(reader);
    if (reason == DP_REMOVE_ABSENT) {
        *remove = (dp_remove){.peer = remove->peer, .reason = DP_REMOVE_ABSENT};
        return !reader->failed;
    }
    if (reason == DP_REMOVE_HARMFUL) {
        *remove = (dp_remove){.peer = remove->peer, .reason = DP_REMOVE_HARMFUL};
        return read_seals(reader, remove);
    }
    remove->n_seals = 0;
    remove->incarnation = dp_read_u64(reader);
    remove->by = (dp_peer){{0}};
    if (reason == DP_REMOVE_REVOKED) {
        dp_read_bytes(reader, remove->by.bytes, sizeof remove->by.bytes);
    }
    dp_read_bytes(reader, remove->signature, DP_SIGNATURE_BYTES);
    remove->reason = (dp_remove_reason)reason;
    return !reader->failed && (reason == DP_REMOVE_LEFT || reason == DP_REMOVE_REVOKED);
}

/* ---- votes ---- */

static const char vote_domain[] = "dpnode/vote/1";

static dp_view vote_bytes(const dp_vote *vote, const dp_run_id *run, uint8_t out[SIGNED_MAX])
{
    dp_writer writer = dp_writer_of(out, SIGNED_MAX);

    dp_write_u8(&writer, vote->type);
    add(&writer, run);
    add(&writer, &vote->fork);
    dp_write_u64(&writer, vote->slot);
    add(&writer, &vote->prev);
    dp_write_u32(&writer, vote->ballot);
    dp_write_u32(&writer, vote->accepted);
    add(&writer, &vote->hash);
    return done(&writer);
}

bool dp_vote_sign(dp_vote *vote, const dp_crypto *crypto, const dp_run_id *run)
{
    uint8_t room[SIGNED_MAX];

    return crypto->sign(crypto->context, DP_KEY_VOTE, vote_domain, vote_bytes(vote, run, room),
                        vote->signature);
}

bool dp_vote_verify(const dp_vote *vote, const dp_crypto *crypto, const dp_run_id *run,
                    const uint8_t vote_key[DP_PUBLIC_KEY_BYTES])
{
    uint8_t room[SIGNED_MAX];

    return crypto->verify(crypto->context, vote_key, vote_domain, vote_bytes(vote, run, room),
                          vote->signature);
}

/* ---- FORK ---- */

static const char fork_domain[] = "dpnode/fork/1";

bool dp_fork_sign(const dp_crypto *crypto, uint8_t *bytes, size_t size)
{
    dp_assert(size > DP_SIGNATURE_BYTES);
    return crypto->sign(crypto->context, DP_KEY_ROOT, fork_domain,
                        dp_view_of(bytes, size - DP_SIGNATURE_BYTES),
                        bytes + size - DP_SIGNATURE_BYTES);
}

bool dp_fork_verify(const dp_crypto *crypto, dp_view bytes, const uint8_t root[DP_PUBLIC_KEY_BYTES])
{
    return bytes.size > DP_SIGNATURE_BYTES &&
           crypto->verify(crypto->context, root, fork_domain,
                          dp_view_of(bytes.data, bytes.size - DP_SIGNATURE_BYTES),
                          bytes.data + bytes.size - DP_SIGNATURE_BYTES);
}

static const char stop_domain[] = "dpnode/stop/1";

static dp_view stop_bytes(const dp_run_id *run, const dp_hash *loser, const dp_hash *survivor,
                          uint8_t out[SIGNED_MAX])
{
    dp_writer writer = dp_writer_of(out, SIGNED_MAX);

    add(&writer, run);
    add(&writer, loser);
    add(&writer, survivor);
    return done(&writer);
}

bool dp_stop_sign(const dp_crypto *crypto, const dp_run_id *run, const dp_hash *loser,
                  const dp_hash *survivor, uint8_t signature[DP_SIGNATURE_BYTES])
{
    uint8_t room[SIGNED_MAX];

    return crypto->sign(crypto->context, DP_KEY_ROOT, stop_domain,
                        stop_bytes(run, loser, survivor, room), signature);
}

bool dp_stop_verify(const dp_crypto *crypto, const dp_run_id *run,
                    const uint8_t root[DP_PUBLIC_KEY_BYTES], const dp_hash *loser,
                    const dp_hash *survivor, const uint8_t signature[DP_SIGNATURE_BYTES])
{
    uint8_t room[SIGNED_MAX];

    return crypto->verify(crypto->context, root, stop_domain,
                          stop_bytes(run, loser, survivor, room), signature);
}
