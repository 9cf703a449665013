/* The worker between micro-batches: how long it rests, so that the machine stays below its owner's
 * limits (governor.h). */
#include <stdio.h>

#include "compute/backend/backend_cpu.h"
#include "compute/machine/stopwatch.h"
#include "compute/worker/worker_inside.h"

/* Sensors move no faster, and asking a card takes some milliseconds. */
enum { LOOK_US = 2000 * 1000, FEEL_US = 10 * 1000 * 1000 };

static void tell(const dp_worker *w, int32_t celsius, uint32_t watts)
{
    const dp_governor *const g = &w->governor;
    char heat[48] = "";
    char power[48] = "";
    dp_why line = {{0}};
    if (celsius != INT32_MIN) {
        snprintf(heat, sizeof heat, ", %d C", (int)celsius);
    }
    if (watts != 0) {
        snprintf(power, sizeof power, ", %u W", watts);
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

/* Reports, once, a limit without a sensor. */
static void tell_blind(dp_worker *w, int32_t celsius, uint32_t watts)
{
    const bool no_heat = w->governor.celsius_max != 0 && celsius == INT32_MIN;
    const bool no_power = w->governor.watts_max != 0 && watts == 0;
    if ((no_heat || no_power) && !w->told_blind && w->options.tell != NULL) {
        w->options.tell(no_heat ? "--celsius-max does nothing here: no sensor tells the heat of "
                                  "what computes; leave it out, or compute elsewhere"
                                : "--watts-max does nothing here: no sensor tells the power of "
                                  "what computes; leave it out, or compute elsewhere");
    }
    w->told_blind = w->told_blind || no_heat || no_power;
}

/* Tells the daemon when the machine must cool first, and when it has: so that peers need not
 * wait. */
static void tell_resting(dp_worker *w, int32_t celsius)
{
    const bool rests = w->governor.share == 0;
    if (rests != w->told_resting) {
        const dp_trainer_msg told = {.kind = DP_TRAINER_RESTING,
                                     .ok = rests,
                                     .celsius = celsius > 0 ? (uint32_t)celsius : 0};
        w->told_resting = rests;
        DP_IGNORE(dp_worker_answer(w, &told, NULL, 0)); /* If the daemon is gone, all ends. */
    }
}

static void open_sensors(dp_worker *w)
{
    const uint32_t device = w->backend == dp_backend_cpu() ? 0 : w->options.device;
    if (w->sensors == NULL &&
        dp_sensor_look_open(&w->sensors, w->options.team, w->backend, device) != DP_OK) {
        w->sensors = NULL; /* The next look tries again. */
    }
}

/* Without an answer the limits have no effect: a driver that hangs must not stop training. */
static dp_sensor_reading read_sensors(dp_worker *w)
{
    dp_sensor_reading reading = {.celsius = INT32_MIN};
    bool answered = false;
    open_sensors(w);
    if (w->sensors != NULL) { /* One that hangs is waited for only once. */
        answered = dp_sensor_look_at(w->sensors, w->told_mute ? 0 : DP_SENSOR_LOOK_MS, &reading);
    }
    if (answered == w->told_mute && w->options.tell != NULL) {
        w->options.tell(answered ? "the sensors of heat and power answer again"
                                 : "E0134 the sensors of heat and power do not answer: "
                                   "--celsius-max and --watts-max do nothing until they do");
    }
    w->told_mute = !answered;
    w->felt = reading;
    return reading;
}

static void look(dp_worker *w)
{
    const bool rested = w->governor.share < DP_GOVERNOR_WHOLE;
    const dp_sensor_reading now = read_sensors(w);
    if (!w->told_mute) {
        tell_blind(w, now.celsius, now.watts);
    }
    dp_governor_told(&w->governor, now.celsius, now.watts);
    tell_resting(w, now.celsius);
    if ((w->governor.share < DP_GOVERNOR_WHOLE) != rested) {
        tell(w, now.celsius, now.watts);
    }
}

dp_sensor_reading dp_worker_feel(dp_worker *w)
{
    const uint64_t now = dp_now_us();
    dp_sensor_reading reading;
    if (!dp_governor_is_set(&w->governor) && now >= w->feel_us) {
        open_sensors(w);
        if (w->sensors != NULL && dp_sensor_look_at(w->sensors, 0, &reading)) {
            w->felt = reading;
            w->feel_us = now + (w->options.look_us != 0 ? w->options.look_us : FEEL_US);
        }
    }
    return w->felt;
}

uint64_t dp_worker_feels_until(dp_worker *w)
{
    const uint64_t now = dp_now_us();
    dp_sensor_reading reading;
    if (now < w->feel_us) {
        return w->feel_us;
    }
    open_sensors(w);
    const bool answered = w->sensors != NULL && dp_sensor_look_at(w->sensors, 0, &reading);
    if (answered) {
        w->felt = reading;
        atomic_store(&w->script_celsius, reading.celsius > 0 ? (uint32_t)reading.celsius : 0);
        atomic_store(&w->script_watts, reading.watts);
    }
    w->feel_us = now + (w->options.look_us != 0 ? w->options.look_us
                        : answered              ? FEEL_US
                                                : LOOK_US);
    return w->feel_us;
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
        const uint64_t rest = dp_governor_rest_us(&w->governor, w->worked_us);
        w->rest_until_us = dp_governor_rest_end(w->rest_until_us, w->rested_us, rest, now);
    }
    if (w->governor.share == 0) {
        w->rest_until_us = UINT64_MAX;
    }
    return w->rest_until_us < w->look_us ? w->rest_until_us : w->look_us;
}

void dp_worker_limit(dp_worker *w, uint32_t celsius_max, uint32_t watts_max)
{
    dp_governor_limit(&w->governor, celsius_max, watts_max);
    w->told_blind = false;
    w->look_us = 0;
    if (!dp_governor_is_set(&w->governor)) {
        w->rest_until_us = 0;
        tell_resting(w, INT32_MIN);
    }
}

bool dp_worker_cools(const dp_worker *w)
{
    return dp_governor_is_set(&w->governor) && w->governor.share == 0;
}

bool dp_worker_rests(const dp_worker *w)
{
    return !w->publishing && w->rest_until_us > dp_now_us();
}

void dp_worker_worked(dp_worker *w, uint64_t worked_us)
{
    const uint64_t rest = dp_governor_rest_us(&w->governor, worked_us);
    w->worked_us = worked_us;
    w->rested_us = dp_now_us();
    w->rest_until_us = rest == UINT64_MAX ? rest : w->rested_us + rest;
}
