/* Which samples a trainer draws: its lease, then its own line (base/run/reach.h); alone, all of
 * them in passes. */
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "compute/trainer/trainer_inside.h"

uint64_t dp_trainer_line_seed(const dp_trainer *t, const uint8_t member[32])
{
    dp_reader reader = dp_reader_of(dp_view_of(member, sizeof t->member));
    uint64_t seed = dp_mix64(~t->manifest.model_seed);
    for (size_t i = 0; i < sizeof t->member / sizeof seed; i++) {
        seed = dp_mix64(seed ^ dp_read_u64(&reader));
    }
    return seed;
}

dp_loader_place dp_trainer_next_place(const dp_trainer *t, uint32_t rows)
{
    if (t->alone) {
        const uint64_t sample = t->batch_count * t->manifest.batch_rows + t->rows_done;
        return (dp_loader_place){.sample = sample, .rows = rows};
    }
    if (t->n_ranges == 0) {
        return (dp_loader_place){.sample = t->drawn.own, .rows = rows, .own = true};
    }
    const dp_sample_range *const range = &t->ranges[0];
    return (dp_loader_place){.sample = range->first,
                             .rows = range->count < rows ? (uint32_t)range->count : rows,
                             .left = range->count};
}

void dp_trainer_pass_over(dp_trainer *t, const dp_loader_place *place)
{
    if (t->alone) {
        return; /* Steps say where it stands. */
    }
    if (place->own) {
        t->drawn.own += place->rows;
        return;
    }
    t->drawn.leased += place->rows;
    t->ranges[0].first += place->rows;
    t->ranges[0].count -= place->rows;
    if (t->ranges[0].count == 0) {
        t->n_ranges--;
        memmove(t->ranges, t->ranges + 1, t->n_ranges * sizeof t->ranges[0]);
    }
}

/* The step under way, if there is one, is of samples that are this trainer's no more. */
static dp_status jump(dp_trainer *t, const dp_reach *from)
{
    if (dp_manifest_external(&t->manifest) || t->script.active) {
        dp_trainer_script_jump(t, from);
        return DP_OK;
    }
    t->script.leaseless = false;
    if (t->rows_done > 0 && from->leased > t->drawn.leased) {
        DP_TRY(dp_trainer_drop_step(t));
    }
    t->drawn.leased = from->leased > t->drawn.leased ? from->leased : t->drawn.leased;
    t->drawn.own = from->own > t->drawn.own ? from->own : t->drawn.own;
    if (t->rows_done == 0) {
        t->reach = t->drawn;
    }
    return DP_OK;
}

dp_status dp_trainer_lease(dp_trainer *t, const dp_reach *from, const dp_sample_range *ranges,
                           uint32_t n)
{
    dp_assert(n <= DP_LEASE_RANGES_MAX);
    DP_TRY(jump(t, from));
    t->script.lease_from = *from;
    t->script.n_lease = n;
    t->n_ranges = 0;
    uint64_t behind = t->drawn.leased - from->leased;
    for (uint32_t i = 0; i < n; i++) {
        t->script.lease[i] = ranges[i];
        const uint64_t skip = behind < ranges[i].count ? behind : ranges[i].count;
        behind -= skip;
        if (skip < ranges[i].count) {
            t->ranges[t->n_ranges] =
                (dp_sample_range){.first = ranges[i].first + skip, .count = ranges[i].count - skip};
            t->n_ranges++;
        }
    }
    return DP_OK;
}

void dp_trainer_drop_lease(dp_trainer *t)
{
    t->n_ranges = 0;
    t->script.n_lease = 0;
    t->script.leaseless = true;
    t->script.lease_from = (dp_reach){0};
}

dp_reach dp_trainer_reach(const dp_trainer *t)
{
    return t->reach;
}
