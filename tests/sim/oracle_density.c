/* The number of elements sent in a round (gossip/ledger/density.h), computed again from all records
 * since the first. */
#include <stdlib.h>

#include "tests/sim/oracle_internal.h"

/* The density of this round, from all records before it and from no state of a node; 0 in a run
 * without a span. */
static uint32_t density_of(const dp_sim *sim, uint64_t round)
{
    static const uint32_t in_a_row[] = {[DP_LINES_SLOW] = 3, [DP_LINES_FREE] = 8};
    const uint8_t *lines = sim->oracle->lines;
    uint32_t keep = sim->manifest.codec_keep;
    uint64_t run = 0;

    if (!sim->plan.span) {
        return 0;
    }
    for (uint64_t r = 1; r < round; r++) {
        run = r > 1 && lines[r] == lines[r - 1] ? run + 1 : 1;
        if (lines[r] == DP_LINES_FIT || run % in_a_row[lines[r]] != 0) {
            continue;
        }
        keep = lines[r] == DP_LINES_SLOW ? keep * 2 : keep / 2;
        keep = keep > sim->manifest.codec_keep_most ? sim->manifest.codec_keep_most : keep;
        keep = keep < sim->manifest.codec_keep ? sim->manifest.codec_keep : keep;
    }
    return keep;
}

void dp_oracle_density(dp_host *host, uint64_t round, uint32_t keep)
{
    dp_sim *sim = host->sim;

    if (sim->forks != NULL || round > sim->oracle->n_rounds) {
        return;
    }
    const uint32_t right = density_of(sim, round);
    if (keep != right) {
        dp_sim_fail(sim, "S18", host->index,
                    "publishes one element of %u for round %llu, and by the chain it is one of %u",
                    keep, (unsigned long long)round, right);
    }
}

void dp_oracle_lines(dp_sim *sim, const dp_record *record)
{
    dp_oracle *o = sim->oracle;

    if (!sim->plan.span) {
        if (record->lines != DP_LINES_FIT) {
            dp_sim_fail(sim, "S18", 0, "round %llu tells of lines in a run without a span",
                        (unsigned long long)record->round);
        }
        return;
    }
    o->lines = dp_oracle_room(o->lines, record->round, &o->lines_capacity, sizeof *o->lines);
    o->lines[record->round] = (uint8_t)record->lines;
    for (uint32_t i = 0; i < record->n_listed; i++) {
        const uint32_t object = dp_shelf_find(&sim->shelf, &record->listed[i].root);
        const uint32_t keep = density_of(sim, record->round - dp_listed_age(record, i));
        const dp_view blob =
            object != DP_SHELF_NONE ? dp_shelf_bytes(&sim->shelf, object) : dp_view_of(NULL, 0);
        const uint32_t count = blob.size >= 10 ? dp_toy_holds(blob) : 0;
        if (count != DP_TOY_ELEMENTS && count != dp_toy_kept(DP_TOY_ELEMENTS, keep)) {
            dp_sim_fail(sim, "S18", dp_sim_index(sim, &record->listed[i].peer),
                        "round %llu lists an update of %u elements, and one of %u is its density",
                        (unsigned long long)record->round, count, keep);
            return;
        }
    }
    sim->totals.thinner += density_of(sim, record->round + 1) > density_of(sim, record->round);
    sim->totals.thicker += density_of(sim, record->round + 1) < density_of(sim, record->round);
}
