/* The worker between micro-batches: how long it rests, so that the machine stays below its owner's limits (governor.h). */
#include <stdio.h>

#include "compute/backend_cpu.h"
#include "compute/stopwatch.h"
#include "compute/worker_inside.h"

enum {
    LOOK_US = 2000 * 1000
}; /* Sensors move no faster, and asking a card takes some milliseconds. */

static void tell(const dp_worker *w, const dp_device *device)
{
    const dp_governor *const g = &w->governor;
    char heat[48] = "";
    char power[48] = "";
    dp_why line = {{0}};
    if (device->celsius != INT32_MIN) {
        snprintf(heat, sizeof heat, ", %d C", (int)device->celsius);
    }
    if (device->watts != 0) {
        snprintf(power, sizeof power, ", %u W", device->watts);
    }
    DP_IGNORE(dp_why_set(
        &line, DP_OK,
        g->share < DP_GOVERNOR_WHOLE
            ? "training rests now and then, by --celsius-max or --watts-max%s%s"
            : "training does not rest any more: within --celsius-max and --watts-max%s%s",
        heat, power)); /* A sentence. */
    if (w->options.tell != NULL) {
        w->options.tell(line.text);
    }
}

/* A limit on what no sensor tells does nothing, which somebody should know. */
static void tell_blind(dp_worker *w, const dp_device *device)
{
    const bool no_heat = w->governor.celsius_max != 0 && device->celsius == INT32_MIN;
    const bool no_power = w->governor.watts_max != 0 && device->watts == 0;
    if ((no_heat || no_power) && !w->told_blind && w->options.tell != NULL) {
        w->options.tell(no_heat ? "--celsius-max does nothing here: no sensor tells the heat of "
                                  "what computes; leave it out, or compute elsewhere"
                                : "--watts-max does nothing here: no sensor tells the power of "
                                  "what computes; leave it out, or compute elsewhere");
    }
    w->told_blind = w->told_blind || no_heat || no_power;
}

static void look(dp_worker *w)
{
    const dp_backend *const b = w->options.backend != NULL ? w->options.backend : dp_backend_cpu();
    const bool rested = w->governor.share < DP_GOVERNOR_WHOLE;
    dp_device device = {.celsius = INT32_MIN};
    dp_why why = {{0}};
    if (b->device(w->options.device, &device, &why) != DP_OK) {
        device = (dp_device){.celsius = INT32_MIN};
    }
    tell_blind(w, &device);
    dp_governor_told(&w->governor, device.celsius, device.watts);
    if ((w->governor.share < DP_GOVERNOR_WHOLE) != rested) {
        tell(w, &device);
    }
}

uint64_t dp_worker_rests_until(dp_worker *w)
{
    const uint64_t now = dp_now_us();
    if (!dp_governor_is_set(&w->governor)) {
        return 0;
    }
    if (now >= w->look_us) {
        look(w);
        w->look_us = now + (w->options.look_us != 0 ? w->options.look_us : LOOK_US);
        if (w->governor.share > 0 && w->rest_until_us == UINT64_MAX) {
            w->rest_until_us = now; /* It has cooled. */
        }
    }
    if (w->governor.share == 0) {
        w->rest_until_us = UINT64_MAX;
    }
    return w->rest_until_us < w->look_us ? w->rest_until_us : w->look_us;
}

bool dp_worker_rests(const dp_worker *w)
{
    return !w->publishing && w->rest_until_us > dp_now_us();
}

void dp_worker_worked(dp_worker *w, uint64_t worked_us)
{
    const uint64_t rest = dp_governor_rest_us(&w->governor, worked_us);
    w->rest_until_us = rest == UINT64_MAX ? rest : dp_now_us() + rest;
}
