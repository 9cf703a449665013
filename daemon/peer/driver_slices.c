/* An APPLY of more updates than memory should hold at once: slices, in order, as ADD, then the
 * APPLY of their sum. A slice has at most DP_TRAINER_ITEMS_MAX updates and the bytes of the setting
 * apply-memory, or one update. The next slice is read from the store when one has been added, so
 * that memory holds DP_DRIVER_SLICES_AHEAD of them for any number of updates. All other commands
 * except CHECK wait until the APPLY is done, so they keep their order. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/peer/driver_inside.h"

struct dp_driver_slices {
    uint64_t round;
    uint32_t n;     /* updates */
    uint32_t told;  /* of these, sent to the trainer */
    uint32_t added; /* by the trainer */
    dp_apply_item items[];
};

/* The number of these n updates in one slice. */
static uint32_t slice_of(const dp_driver *driver, const dp_apply_item *items, uint32_t n)
{
    const uint64_t most = driver->daemon->config->apply_memory;
    uint64_t bytes = 0;
    uint32_t count = 0;

    while (count < n && count < DP_TRAINER_ITEMS_MAX &&
           (count == 0 || (bytes <= most && items[count].bytes <= most - bytes))) {
        bytes += items[count++].bytes;
    }
    return count;
}

bool dp_driver_slices_needed(const dp_driver *driver, const dp_apply_item *items, uint32_t n)
{
    return slice_of(driver, items, n) < n;
}

static void tell_next(dp_driver *driver)
{
    struct dp_driver_slices *const slices = driver->slices;
    const uint32_t at = slices->told;

    if (at < slices->n) {
        const uint32_t n = slice_of(driver, slices->items + at, slices->n - at);
        slices->told += n;
        dp_driver_command_slice(driver, slices->round, at, slices->items + at, n);
    }
}

bool dp_driver_slices_begin(dp_driver *driver, uint64_t round, const dp_apply_item *items,
                            uint32_t n)
{
    dp_assert(n > 0 && n <= DP_LISTED_MAX);
    if (driver->slices != NULL) { /* The node asks for one APPLY at a time. */
        return false;
    }
    struct dp_driver_slices *const slices = dp_alloc(1, sizeof *slices + n * sizeof *items);
    if (slices == NULL) {
        return false;
    }
    slices->round = round;
    slices->n = n;
    memcpy(slices->items, items, n * sizeof *items);
    driver->slices = slices;
    dp_event_log_add(
        driver->daemon->event_log, DP_LOG_DEBUG, "apply.slices", round, NULL,
        "%u updates are summed in slices: they are more than 32, or need more than --apply-memory",
        n);
    for (int i = 0; i < DP_DRIVER_SLICES_AHEAD && driver->slices == slices; i++) {
        tell_next(driver);
    }
    /* Otherwise the trainer was killed, and all waiting commands were dropped. */
    return driver->slices == slices;
}

void dp_driver_slices_drop(dp_driver *driver)
{
    dp_free(driver->slices);
    driver->slices = NULL;
}

void dp_driver_slices_added(dp_driver *driver, const dp_trainer_msg *msg)
{
    struct dp_driver_slices *const slices = driver->slices;

    if (slices == NULL || slices->round != msg->round) {
        return; /* Another slice has failed since. */
    }
    slices->added = msg->at;
    if (slices->added < slices->n) {
        tell_next(driver);
        return;
    }
    dp_driver_slices_drop(driver);
    dp_driver_commands_release(driver);
}

void dp_driver_slices_failed(dp_driver *driver, uint64_t round)
{
    dp_event event = {.type = DP_EV_APPLIED};

    if (driver->slices == NULL || driver->slices->round != round) {
        return;
    }
    dp_driver_slices_drop(driver);
    dp_driver_drop_apply(driver);
    dp_driver_commands_release(driver);
    event.u.applied.round = round;
    event.u.applied.status = DP_CORRUPT;
    dp_driver_feed(driver, &event);
}
