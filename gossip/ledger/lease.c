#include "gossip/ledger/lease.h"

#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"

bool dp_lease_covers(const dp_lease *lease, const dp_reach *now, uint64_t tokens, uint32_t context)
{
    static const dp_lease none;
    const dp_lease *of = lease != NULL ? lease : &none;

    if (now->leased < of->reach.leased || now->leased > of->granted || now->own < of->reach.own ||
        now->own > DP_LEASE_SAMPLES_MAX) {
        return false;
    }
    const uint64_t samples = now->leased - of->reach.leased + (now->own - of->reach.own);
    return samples > 0 && (unsigned __int128)samples * context >= tokens;
}

static void drop_first(dp_sample_range *ranges, uint32_t *n)
{
    dp_assert(*n > 0);
    (*n)--;
    memmove(ranges, ranges + 1, *n * sizeof ranges[0]);
}

/* Count samples off the front of ranges. */
static void skip(dp_sample_range *ranges, uint32_t *n, uint64_t count)
{
    while (count > 0) {
        dp_assert(*n > 0);
        const uint64_t take = ranges[0].count < count ? ranges[0].count : count;
        ranges[0].first += take;
        ranges[0].count -= take;
        count -= take;
        if (ranges[0].count == 0) {
            drop_first(ranges, n);
        }
    }
}

void dp_lease_move(dp_lease *lease, const dp_reach *now)
{
    dp_assert(now->leased >= lease->reach.leased && now->leased <= lease->granted);
    skip(lease->ranges, &lease->n, now->leased - lease->reach.leased);
    lease->reach = *now;
}

/* False: no room for it. */
static bool add(dp_sample_range *ranges, uint32_t *n, uint32_t most, dp_sample_range range)
{
    dp_assert(*n <= most);
    if (range.count == 0) {
        return true;
    }
    if (*n > 0 && ranges[*n - 1].first + ranges[*n - 1].count == range.first) {
        ranges[*n - 1].count += range.count;
        return true;
    }
    if (*n == most) {
        return false;
    }
    ranges[(*n)++] = range;
    return true;
}

void dp_lease_grant(dp_lease *lease, dp_lease_pool *pool, uint64_t count)
{
    while (count > 0) {
        const bool again = pool->n > 0;
        dp_sample_range range =
            again ? pool->ranges[0] : (dp_sample_range){.first = pool->cursor, .count = count};
        range.count = range.count < count ? range.count : count;
        if (!again && range.count > DP_LEASE_SAMPLES_MAX - pool->cursor) {
            range.count = DP_LEASE_SAMPLES_MAX - pool->cursor;
        }
        if (range.count == 0 || !add(lease->ranges, &lease->n, DP_LEASE_RANGES_MAX, range)) {
            return;
        }
        lease->granted += range.count;
        count -= range.count;
        if (again) {
            skip(pool->ranges, &pool->n, range.count);
        } else if (!dp_broken(61)) {
            pool->cursor += range.count;
        }
    }
}

void dp_lease_return(dp_lease *lease, dp_lease_pool *pool)
{
    for (uint32_t i = 0; i < lease->n && !dp_broken(110); i++) {
        if (!add(pool->ranges, &pool->n, DP_LEASE_POOL_MAX, lease->ranges[i])) {
            pool->lost += lease->ranges[i].count;
        }
    }
    lease->n = 0;
    lease->reach.leased = lease->granted;
}

uint64_t dp_lease_need(const dp_lease *lease, uint64_t used, uint64_t share)
{
    const uint64_t left = lease->granted - lease->reach.leased;
    const uint64_t least = 2 * used;
    uint64_t whole = used * DP_LEASE_ROUNDS;

    if (share > 0 && whole > share) {
        whole = share > least ? share : least;
    }
    return left < whole / 2 ? whole - left : 0;
}

uint32_t dp_lease_after(const dp_lease *lease, uint64_t leased,
                        dp_sample_range out[DP_LEASE_RANGES_MAX])
{
    uint32_t n = lease->n;

    dp_assert(leased >= lease->reach.leased && leased <= lease->granted);
    memcpy(out, lease->ranges, n * sizeof out[0]);
    skip(out, &n, leased - lease->reach.leased);
    return n;
}
