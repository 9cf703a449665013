/* Parts of a gradient that the trainer of a host tells before its publication (--early): a
 * rehearsal of it, some time before. One in eight is of a step that is dropped then, so that the
 * publication has other parts. */
#include "tests/sim/host.h"
#include "tests/sim/sim.h"

static void write_part(dp_host *host, const dp_toy_parcel *made, uint32_t part)
{
    const uint32_t object = dp_shelf_add(&host->sim->shelf, dp_toy_part(made, part));

    dp_disk_use(&host->disk, object, DP_USE_BLOB, true); /* As the driver pins it. */
    dp_host_write(host, &(dp_disk_write){.kind = DP_WRITE_OBJECT,
                                         .then = DP_THEN_EARLY,
                                         .object = object,
                                         .index = part,
                                         .round = host->train_round,
                                         .life = host->life});
}

bool dp_host_early(dp_host *host)
{
    static dp_toy_parcel made;
    dp_toy rehearsed = host->toy;

    if (!host->sim->plan.early || host->train_cuts.n == 0 || rehearsed.pending ||
        host->early_round == host->train_round || rehearsed.open_work.steps == 0) {
        return false;
    }
    const uint64_t dropped = dp_rng_below(&host->rng, 8) == 0 ? 1U << 31 : 0;
    host->early_round = host->train_round;
    dp_toy_publish(&rehearsed, false, &host->train_cuts,
                   (uint64_t)host->index << 32 | ((host->nonce + 1) ^ dropped), &made);
    for (uint32_t p = made.cuts.n; p-- > 0;) {
        write_part(host, &made, p);
    }
    return true;
}

void dp_host_early_stored(dp_host *host, const dp_disk_write *write)
{
    const dp_shelf_item *item = &host->sim->shelf.items[write->object];
    dp_event event = {.type = DP_EV_EARLY};

    event.u.early.round = write->round;
    event.u.early.part = write->index;
    event.u.early.first = host->train_cuts.first[write->index];
    event.u.early.end = dp_part_end(&host->train_cuts, write->index);
    event.u.early.root = item->root;
    event.u.early.bytes = item->size;
    host->sim->totals.early++;
    dp_host_event(host, &event);
}
