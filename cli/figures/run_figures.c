#include "cli/figures/run_figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"

void dp_run_figures_close(dp_run_figures *figures)
{
    if (figures->is_open) {
        dp_event_file_close(&figures->events);
        figures->is_open = false;
    }
}

static void warn(const dp_run_figures *figures, const dp_why *why)
{
    if (why->text[0] != '\0') {
        figures->warn(figures->context, why->text);
    }
}

/* NULL: no run, or its chain is not read. */
static const json_t *run_of(const json_t *status)
{
    const json_t *const run = json_object_get(status, "run");
    return json_is_integer(json_object_get(run, "slot")) ? run : NULL;
}

/* False also after the chain has gone back (FORK): a reader of the new file drops the undone
 * rounds. */
static bool is_same(const dp_run_figures *figures, const json_t *run)
{
    return figures->is_open && dp_json_int(run, "slot", -1) >= figures->slot &&
           strncmp(figures->run, dp_json_text(run, "id", ""), DP_RUN_FIGURES_ID_MAX) == 0;
}

bool dp_run_figures_lacks(const dp_run_figures *figures, const json_t *status)
{
    const json_t *const run = run_of(status);
    if (run == NULL) {
        return false;
    }
    return !is_same(figures, run) || dp_json_int(run, "slot", -1) > figures->slot ||
           dp_json_int(json_object_get(run, "held_out"), "round", -1) > figures->measured;
}

static bool open_file(dp_run_figures *figures, const json_t *run, const json_t *rounds,
                      uint64_t time_ms)
{
    dp_why why = {{0}};
    const long long first = dp_json_int(json_array_get(rounds, 0), "round", 0);
    dp_run_figures_close(figures);
    snprintf(figures->run, sizeof figures->run, "%s", dp_json_text(run, "id", ""));
    figures->slot = -1;
    figures->measured = -1;
    figures->is_open = dp_event_file_open(&figures->events, figures->folder, time_ms,
                                          (uint64_t)(first > 0 ? first : 0), &why) == DP_OK;
    if (!figures->is_open && !figures->failed) {
        figures->failed = true;
        warn(figures, &why);
    }
    return figures->is_open;
}

static void write_scalars(dp_run_figures *figures, uint64_t time_ms, long long step,
                          const dp_event_scalar *scalars, size_t n)
{
    dp_why why = {{0}};
    if (step >= 0 && dp_event_file_scalars(&figures->events, time_ms, (uint64_t)step, scalars, n,
                                           &why) != DP_OK) {
        warn(figures, &why);
    }
}

static void write_round(dp_run_figures *figures, const json_t *round)
{
    const double nan = (double)NAN;
    const dp_event_scalar scalars[] = {
        {"run/loss", dp_json_real(round, "loss", nan)},
        {"run/round_seconds", dp_json_real(round, "duration_ms", nan) / 1000},
        {"run/contributors", dp_json_real(round, "listed", nan)},
        {"run/active", dp_json_real(round, "active", nan)},
        {"run/tokens", dp_json_real(round, "tokens", nan)},
        {"run/bytes", dp_json_real(round, "bytes", nan)}};
    write_scalars(figures, (uint64_t)dp_json_int(round, "time_ms", 0),
                  dp_json_int(round, "round", -1), scalars, sizeof scalars / sizeof scalars[0]);
}

static void write_measured(dp_run_figures *figures, const json_t *run)
{
    const json_t *const held_out = json_object_get(run, "held_out");
    const long long round = dp_json_int(held_out, "round", -1);
    if (round <= figures->measured) {
        return;
    }
    const dp_event_scalar scalars[] = {
        {"val/loss", dp_json_real(held_out, "loss", (double)NAN)},
        {"val/bits_per_byte", dp_json_real(held_out, "bits_per_byte", (double)NAN)}};
    write_scalars(figures, (uint64_t)dp_json_int(held_out, "time_ms", 0), round, scalars, 2);
    figures->measured = round;
}

void dp_run_figures_take(dp_run_figures *figures, const json_t *status, const json_t *rounds,
                         uint64_t time_ms)
{
    const json_t *const run = run_of(status);
    size_t index = 0;
    const json_t *round = NULL;
    if (run == NULL || (!is_same(figures, run) && !open_file(figures, run, rounds, time_ms))) {
        return;
    }
    bool news = false;
    json_array_foreach(rounds, index, round)
    {
        const long long slot = dp_json_int(round, "slot", -1);
        /* A round that is newer than the status is written with the next one. */
        if (slot > figures->slot && slot <= dp_json_int(run, "slot", -1)) {
            write_round(figures, round);
            figures->slot = slot;
            news = true;
        }
    }
    if (news) {
        const dp_event_scalar scalars[] = {
            {"node/tokens_per_second", dp_json_real(run, "tokens_per_s", (double)NAN)},
            {"run/members_alive", dp_json_real(run, "alive", (double)NAN)}};
        write_scalars(figures, time_ms, dp_json_int(run, "round", -1), scalars, 2);
    }
    write_measured(figures, run);
}

void dp_run_figures_text(dp_run_figures *figures, const json_t *text, uint64_t time_ms)
{
    dp_why why = {{0}};
    const long long round = dp_json_int(text, "round", -1);
    if (figures->is_open && round >= 0 &&
        dp_event_file_text(&figures->events, time_ms, (uint64_t)round, "sample",
                           dp_json_text(text, "text", ""), &why) != DP_OK) {
        warn(figures, &why);
    }
}
