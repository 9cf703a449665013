/* Digest of a ledger, and the state root that is made with it: all members agree on both. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutation.h"
#include "base/run/samples.h"
#include "gossip/ledger/inviting.h"
#include "gossip/ledger/ledger.h"
#include "gossip/ledger/weights.h"

static void digest_hash(dp_digest *digest, const dp_hash *hash)
{
    dp_digest_add(digest, dp_view_of(hash->bytes, sizeof hash->bytes));
}

static void digest_ranges(dp_digest *digest, const dp_sample_range *ranges, uint32_t n)
{
    dp_digest_add_u64(digest, n);
    for (uint32_t i = 0; i < n; i++) {
        dp_digest_add_u64(digest, ranges[i].first);
        dp_digest_add_u64(digest, ranges[i].count);
    }
}

dp_hash dp_ledger_digest(const dp_ledger *ledger)
{
    dp_digest digest;
    /* A member's in one piece: in pieces of eight bytes its ranges cost a fifth more. */
    uint8_t row[32 + 4 + DP_INVITE_ID_BYTES + 12 * 8 + 4 + 8 + DP_LEASE_RANGES_MAX * 16];

    dp_digest_init(&digest, "dpnode/ledger/2");
    digest_hash(&digest, &ledger->run);
    digest_hash(&digest, &ledger->fork);
    dp_digest_add_u64(&digest, ledger->slot);
    digest_hash(&digest, &ledger->head);
    dp_digest_add_u64(&digest, ledger->round);
    digest_hash(&digest, &ledger->base);
    if (ledger->has_before) {
        digest_hash(&digest, &ledger->base_before);
        digest_hash(&digest, &ledger->state_before);
    }
    dp_digest_add_u64(&digest, ledger->tokens);
    dp_digest_add_u64(&digest, (uint64_t)ledger->clip_median);
    dp_digest_add_u64(&digest, (uint64_t)(ledger->clip_median >> 64));
    if (dp_density_moves(&ledger->density)) {
        dp_digest_add_u64(&digest, ledger->density.keep);
        dp_digest_add_u64(&digest, ledger->density.before);
        dp_digest_add_u64(&digest, ledger->density.n_slow);
        dp_digest_add_u64(&digest, ledger->density.n_free);
    }
    if (ledger->pace.bounded) {
        dp_digest_add_u64(&digest, ledger->pace.speed);
        dp_digest_add_u64(&digest, ledger->time_ms);
    }
    dp_digest_add_u64(&digest, ledger->n_voters);
    for (uint32_t i = 0; i < ledger->n_voters; i++) {
        dp_digest_add(&digest, dp_view_of(ledger->voters[i].peer.bytes, 32));
        dp_digest_add(&digest, dp_view_of(ledger->voters[i].key, 32));
    }
    dp_digest_add_u64(&digest, ledger->pool.cursor);
    dp_digest_add_u64(&digest, ledger->pool.lost);
    digest_ranges(&digest, ledger->pool.ranges, ledger->pool.n);
    dp_digest_add_u64(&digest, ledger->n_roster);
    for (uint32_t i = 0; i < ledger->n_roster; i++) {
        const dp_roster_entry *entry = &ledger->roster[i];
        dp_writer writer = dp_writer_of(row, sizeof row);
        dp_write_bytes(&writer, entry->peer.bytes, 32);
        dp_write_u32(&writer, entry->caps);
        dp_write_bytes(&writer, entry->invite.bytes, sizeof entry->invite.bytes);
        dp_write_u64(&writer, entry->admitted_slot);
        dp_write_u64(&writer, entry->admitted_round);
        dp_write_u64(&writer, entry->included);
        dp_write_u64(&writer, entry->touched);
        dp_write_u64(&writer, entry->w);
        if (ledger->pace.bounded) {
            dp_write_u64(&writer, entry->counted_ms);
            dp_write_u64(&writer, entry->owed);
            dp_write_u64(&writer, entry->owed_round);
        }
        dp_write_u64(&writer, entry->fenced);
        dp_write_u32(&writer, entry->gone);
        dp_write_u64(&writer, entry->lease.reach.leased);
        dp_write_u64(&writer, entry->lease.reach.own);
        dp_write_u64(&writer, entry->lease.granted);
        dp_write_u64(&writer, entry->lease.n);
        for (uint32_t r = 0; r < entry->lease.n; r++) {
            dp_write_u64(&writer, entry->lease.ranges[r].first);
            dp_write_u64(&writer, entry->lease.ranges[r].count);
        }
        dp_assert(!writer.full);
        dp_digest_add(&digest, dp_view_of(row, writer.size));
    }
    dp_inviting_digest(ledger, &digest);
    if (ledger->epoch.epoch > 0) { /* So that a chain without rotations has the digest it had. */
        dp_digest_add_u64(&digest, ledger->epoch.epoch);
        digest_hash(&digest, &ledger->epoch.commitment);
    }
    return dp_digest_end(&digest);
}

dp_hash dp_state_root(uint64_t round, const dp_hash *tensor_root, const dp_hash *ledger_digest)
{
    dp_digest digest;

    dp_digest_init(&digest, "dpnode/state/1");
    dp_digest_add_u64(&digest, round);
    digest_hash(&digest, tensor_root);
    digest_hash(&digest, ledger_digest);
    return dp_digest_end(&digest);
}
