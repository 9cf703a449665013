/* Places in the roster: which nodes may take one, which give theirs back, which rows are
 * remembered. By the chain alone, so that all replicas agree. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/ledger/ledger.h"

static dp_hash key_of(const dp_peer *peer)
{
    dp_hash key;

    memcpy(key.bytes, peer->bytes, sizeof key.bytes);
    return key;
}

bool dp_ledger_barred(const dp_ledger *ledger, const dp_peer *peer)
{
    const uint32_t index = dp_ledger_find(ledger, peer);

    return index != DP_NOBODY && ledger->roster[index].gone != 0 &&
           ledger->roster[index].gone != DP_REMOVE_ABSENT;
}

bool dp_ledger_is_forgotten(const dp_ledger *ledger, const dp_roster_entry *entry)
{
    const uint64_t since =
        entry->touched > entry->admitted_round ? entry->touched : entry->admitted_round;

    return ledger->round - since > DP_GAP_MAX;
}

/* A voter never is, nor the founder: nobody admits it anew. */
static bool may_be_absent(const dp_ledger *ledger, const dp_roster_entry *entry)
{
    return ledger->absent_ms > 0 && entry->gone == 0 && entry->admitted_slot > 0 &&
           (dp_broken(129) || dp_ledger_voter(ledger, &entry->peer) == DP_NOBODY);
}

bool dp_ledger_is_absent(const dp_ledger *ledger, const dp_roster_entry *entry, uint64_t time_ms)
{
    return may_be_absent(ledger, entry) && dp_ledger_is_forgotten(ledger, entry) &&
           time_ms > entry->counted_ms && time_ms - entry->counted_ms > ledger->absent_ms;
}

uint64_t dp_ledger_next_absent(const dp_ledger *ledger)
{
    uint64_t next = UINT64_MAX;

    for (uint32_t i = 0; i < ledger->n_roster; i++) {
        const dp_roster_entry *entry = &ledger->roster[i];
        if (may_be_absent(ledger, entry) && dp_ledger_is_forgotten(ledger, entry) &&
            entry->counted_ms + ledger->absent_ms < next) {
            next = entry->counted_ms + ledger->absent_ms;
        }
    }
    return next;
}

bool dp_ledger_has_place(const dp_ledger *ledger, uint32_t n_admits, uint32_t n_removes)
{
    dp_assert(ledger->n_members <= ledger->n_roster);
    return ledger->n_members + n_admits <= ledger->capacity + n_removes;
}

/* ---- rows ---- */

/* Its row may be another's: nothing can come of its identity any more that the chain must know of.
 * A revoked member, and the use of an invite that has no more of them, are remembered as long as a
 * credential may be made with it. */
static bool is_done_with(const dp_ledger *ledger, const dp_roster_entry *entry)
{
    if (entry->gone == 0 || entry->admitted_slot == 0) {
        return false;
    }
    const bool thrown = entry->gone == DP_REMOVE_REVOKED || entry->gone == DP_REMOVE_HARMFUL;

    return ((!thrown || dp_broken(133)) && !entry->strict) ||
           (entry->until_ms != 0 && ledger->time_ms > entry->until_ms);
}

uint32_t dp_ledger_rows_left(const dp_ledger *ledger)
{
    uint32_t left = ledger->rows_max - ledger->n_roster;

    dp_assert(ledger->n_roster <= ledger->rows_max);
    for (uint32_t i = 0; i < ledger->n_roster && left < DP_CONFIG_ADMIT_MAX; i++) {
        left += is_done_with(ledger, &ledger->roster[i]) ? 1 : 0;
    }
    return left;
}

/* One without a fence first, then the one that went first. */
static uint32_t find_done(const dp_ledger *ledger)
{
    uint32_t best = DP_NOBODY;

    for (uint32_t i = 0; i < ledger->n_roster; i++) {
        const dp_roster_entry *entry = &ledger->roster[i];
        const dp_roster_entry *other = best != DP_NOBODY ? &ledger->roster[best] : NULL;
        if (is_done_with(ledger, entry) &&
            (other == NULL || (entry->fenced == 0 && other->fenced != 0) ||
             ((entry->fenced == 0) == (other->fenced == 0) &&
              entry->gone_slot < other->gone_slot))) {
            best = i;
        }
    }
    return best;
}

dp_roster_entry *dp_ledger_admit(dp_ledger *ledger, const dp_peer *peer)
{
    uint32_t index = dp_ledger_find(ledger, peer);
    const dp_hash key = key_of(peer);

    ledger->n_members++;
    if (index != DP_NOBODY) { /* It was away: fences and its place on its own line stay. */
        dp_assert(ledger->roster[index].gone == DP_REMOVE_ABSENT);
        ledger->roster[index].gone = 0;
        ledger->roster[index].gone_slot = 0;
        if (dp_broken(132)) {
            ledger->roster[index].fenced = 0;
        }
        return &ledger->roster[index];
    }
    if (ledger->n_roster < ledger->rows_max) {
        index = ledger->n_roster++;
    } else {
        index = find_done(ledger);
        dp_assert(index != DP_NOBODY);
        const dp_hash old = key_of(&ledger->roster[index].peer);
        const bool removed = dp_map_remove(&ledger->map, &old);
        dp_assert(removed);
    }
    const dp_status status = dp_map_put(&ledger->map, &key, index);
    dp_assert(status == DP_OK);
    ledger->roster[index] = (dp_roster_entry){.peer = *peer};
    return &ledger->roster[index];
}
