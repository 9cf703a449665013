/* The methods pause and resume. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/control/control.h"
#include "daemon/control/reply.h"
#include "daemon/peer/bandwidth_limiter.h"
#include "daemon/peer/suspension.h"

void dp_pack_pause(dp_group *map, const dp_daemon *daemon)
{
    const dp_pause order = dp_suspension_owner(daemon->suspension);
    char text[DP_PAUSE_TEXT_MAX];
    if (!order.holds) {
        return;
    }
    dp_pause_text(&order, text, sizeof text);
    dp_group pause = dp_map_begin(dp_pair(map, "paused"));
    if (order.since_ms != 0) {
        dp_pair_u64(&pause, "since_ms", order.since_ms);
    }
    if (order.until_ms != 0) {
        dp_pair_u64(&pause, "until_ms", order.until_ms);
    }
    if (order.waits) {
        dp_pair_bool(&pause, "waits", true);
    }
    if (order.user[0] != '\0') {
        dp_pair_text(&pause, "by", order.user);
    }
    dp_pair_text(&pause, "text", text);
    dp_group_end(&pause);
}

static void reply_state(const dp_daemon *daemon, const dp_call *call)
{
    dp_packer packer;
    if (dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_text(&map, "state", dp_call_state(daemon));
        dp_pack_pause(&map, daemon);
        dp_group_end(&map);
        dp_call_end(call, &packer);
    }
}

/* A client that waits until its order is durable. */
typedef struct ordering {
    const dp_daemon *daemon;
    dp_call call;
} ordering;

static void tell_lost(const dp_call *call, dp_status status)
{
    dp_call_fail(call, 74, "E0127", "dpnode doctor   # checks the disk",
                 "the setting holds until the daemon stops: it could not be stored",
                 dp_status_text(status));
}

static void on_ordered(void *context, dp_status status)
{
    ordering *self = context;
    if (status == DP_OK) {
        reply_state(self->daemon, &self->call);
    } else {
        tell_lost(&self->call, status);
    }
    dp_free(self);
}

static void order(const dp_daemon *daemon, const dp_call *call, const dp_pause *pause)
{
    ordering *self = dp_alloc(1, sizeof *self);
    dp_status status = DP_NOMEM;
    if (self != NULL) {
        *self = (ordering){.daemon = daemon, .call = *call};
        status = dp_suspension_pause(daemon->suspension, pause, on_ordered, self);
    }
    if (status != DP_OK) {
        dp_free(self);
        tell_lost(call, status);
    }
}

/* Sets the end that the request names, none without one. False after an error reply. */
static bool read_end(const dp_call *call, const dp_pack_value *parameters, uint64_t now_ms,
                     dp_pause *pause)
{
    static const char fix[] = "dpnode pause --for 2h   # or without an end: dpnode pause";
    static const char what[] = "the end of the pause is not valid";
    const dp_pack_value *const length = dp_pack_key(parameters, "for_s");
    const dp_pack_value *const until = dp_pack_key(parameters, "until_ms");
    uint64_t seconds = 0;
    pause->until_ms = 0;
    pause->for_ms = 0;
    if (length != NULL && until != NULL) {
        dp_call_fail(call, 64, "E0132", fix, what, "both a length and an end are given");
        return false;
    }
    if (length != NULL &&
        (!dp_pack_get_u64(length, &seconds) || seconds == 0 || seconds > DP_PAUSE_MS_MAX / 1000)) {
        dp_call_fail(call, 64, "E0132", fix, what, "a pause lasts from 1 s to 366 days");
        return false;
    }
    if (until != NULL && (!dp_pack_get_u64(until, &pause->until_ms) || pause->until_ms <= now_ms ||
                          pause->until_ms > now_ms + DP_PAUSE_MS_MAX)) {
        dp_call_fail(call, 64, "E0132", fix, what,
                     "it lies in the past, or more than 366 days ahead");
        return false;
    }
    pause->for_ms = seconds * 1000;
    return true;
}

void dp_method_pause(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    const uint64_t now_ms = dp_unix_ms();
    char text[DP_PAUSE_TEXT_MAX];
    bool after_round = false;
    if (dp_call_driver(daemon, call) == NULL) {
        return;
    }
    if (daemon->suspension == NULL) {
        dp_call_fail(call, 75, "E0402", "try again", "the daemon is stopping", "");
        return;
    }
    DP_IGNORE(!dp_pack_get_bool(dp_pack_key(parameters, "after_round"), &after_round));
    dp_pause pause = dp_suspension_owner(daemon->suspension);
    const bool paused = pause.holds && !pause.waits;
    if (!read_end(call, parameters, now_ms, &pause)) {
        return;
    }
    /* The first order sets the start; who sets an end answers for it. */
    if (!paused || pause.since_ms == 0 || pause.for_ms != 0 || pause.until_ms != 0) {
        pause.since_ms = now_ms;
        dp_call_user(call, pause.user, sizeof pause.user);
    }
    pause.holds = true;
    pause.waits = after_round && !paused;
    if (pause.for_ms != 0 && !pause.waits) {
        pause.until_ms = now_ms + pause.for_ms;
    }
    dp_pause_text(&pause, text, sizeof text);
    dp_event_log_add(daemon->event_log, DP_LOG_INFO, "pause.set", 0, NULL,
                     "paused by its owner%s; to train again: dpnode resume", text);
    order(daemon, call, &pause);
}

/* The causes that remain; false: none does. */
static bool say_rest(const dp_daemon *daemon, char *text, size_t size)
{
    char one[DP_SUSPENSION_TEXT_MAX];
    const char *word = "";
    size_t used = 0;
    for (unsigned i = 0; used < size && dp_suspension_cause(daemon->suspension, i, &word, one);
         i++) {
        const int more = snprintf(text + used, size - used, "%s%s", i > 0 ? ", and " : "", one);
        used += more > 0 ? (size_t)more : 0;
    }
    return used > 0;
}

/* Ends the owner's pause although something else suspends the node: nobody waits for the row. */
static void end_pause(const dp_daemon *daemon)
{
    DP_IGNORE(dp_suspension_pause(daemon->suspension, &(dp_pause){.holds = false},
                                  /* If this is not written, the node stays paused, which is
                                   * safe. */
                                  NULL, NULL));
}

void dp_method_resume(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    char why[512];
    (void)parameters;
    if (dp_call_driver(daemon, call) == NULL) {
        return;
    }
    if (daemon->suspension == NULL) {
        dp_call_fail(call, 75, "E0402", "try again", "the daemon is stopping", "");
        return;
    }
    if (daemon->live != NULL && daemon->live->damaged) {
        /* The owner goes on without the limits that are lost. Not written: asked again. */
        DP_IGNORE(dp_config_live_keep(daemon->live, daemon->store_thread, NULL, NULL));
        dp_suspension_act(daemon->suspension);
    }
    if (dp_bandwidth_limiter_why(daemon->bandwidth_limiter, why, sizeof why)) {
        end_pause(daemon);
        dp_call_fail(call, 75, "E0126", "dpnode limits   # shows and sets the quota",
                     "the bandwidth quota of this month is used up; training resumes with the next "
                     "month or a larger quota",
                     why);
        return;
    }
    if (say_rest(daemon, why, sizeof why)) {
        end_pause(daemon);
        dp_call_fail(call, 75, "E0135", "dpnode limits   # shows and sets what suspends training",
                     "the owner's pause has ended, and this node does not train yet", why);
        return;
    }
    order(daemon, call, &(dp_pause){.holds = false});
}
