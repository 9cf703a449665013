#include "daemon/peer/suspension.h"
#include "daemon/owner/rest.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/host/daemon.h"
#include "daemon/owner/machine_watch.h"
#include "daemon/owner/rest.h"
#include "daemon/owner/training_hours.h"
#include "daemon/peer/bandwidth_limiter.h"
#include "daemon/peer/driver.h"
#include "daemon/peer/supervisor.h"

enum {
    TICK_MS = 1000,
    CARD_TICK_MS = 200, /* while yield-card is on */
    CLOCK_SET_MS = 2000 /* more than a clock that is slewed moves in a tick, even a late one */
};

/* Reasons not to train. */
enum {
    OWNER = 1,
    QUOTA = 2,
    HEAT = 4,
    SCHEDULE = 8,
    BATTERY = 16,
    USE = 32,
    LIMITS = 64,
    CARD = 128
};

static const char pause_key[] = "pause";

struct dp_suspension {
    dp_daemon *daemon;
    dp_suspension_clocks clocks;
    uv_timer_t timer;
    dp_pause pause;
    uint64_t counted;   /* rounds that had counted this node when the waiting pause was ordered */
    int64_t ahead_ms;   /* of the wall clock before the steady one */
    unsigned causes;    /* as last told to the node */
    dp_hours hours;     /* of the setting schedule */
    bool outside;       /* of these, and the round has counted the work */
    uint64_t closed_ms; /* steady, when they ended; 0: not yet, or outside */
    uint64_t closed_counted; /* rounds that had counted this node then */
    dp_machine_watch *watch; /* NULL: no setting needs it, or there is no thread */
    bool sees;               /* use is of the last look */
    bool hangs;              /* the look under way does not end */
    dp_machine_use use;
    dp_machine_busy busy;
    bool blind[3]; /* told that it cannot see: power, use, cards */
    bool sees_cards;
    dp_card_use cards;
    dp_card_yielding yielding;
    bool has_script; /* connected to the trainer's process, which must not end under it */
};

static int64_t ahead_ms(const dp_suspension *suspension)
{
    return (int64_t)suspension->clocks.wall_ms() - (int64_t)suspension->clocks.steady_ms();
}

static dp_status keep(const dp_suspension *suspension, dp_store_thread_kept *done, void *context)
{
    uint8_t bytes[DP_PAUSE_BYTES_MAX];
    const dp_pause *const pause = &suspension->pause;
    return dp_store_thread_put(suspension->daemon->store_thread, pause_key,
                               pause->holds ? dp_pause_write(pause, bytes) : dp_view_of(bytes, 0),
                               done, context);
}

/* ---- the owner's pause ---- */

/* A pause of a length lasts as long as before, by the steady clock. */
static void look_at_clock(dp_suspension *suspension)
{
    const int64_t ahead = ahead_ms(suspension);
    const int64_t moved = ahead - suspension->ahead_ms;
    if (moved > -CLOCK_SET_MS && moved < CLOCK_SET_MS) {
        return;
    }
    suspension->ahead_ms = ahead;
    if (dp_pause_clock_moved(&suspension->pause, moved)) {
        dp_event_log_add(suspension->daemon->event_log, DP_LOG_INFO, "pause.clock", 0, NULL,
                         "the clock was set by %lld s; the pause lasts as long as before",
                         (long long)moved / 1000);
        /* Not written: the start of a next daemon bounds the rest of the pause. */
        DP_IGNORE(keep(suspension, NULL, NULL));
    }
}

static void begin_waiting(dp_suspension *suspension)
{
    const char *const drained =
        dp_supervisor_drained(suspension->daemon, suspension->counted, 0, UINT64_MAX);
    if (suspension->pause.holds && suspension->pause.waits && drained != NULL) {
        char text[DP_PAUSE_TEXT_MAX];
        dp_pause_begin(&suspension->pause, suspension->clocks.wall_ms());
        dp_pause_text(&suspension->pause, text, sizeof text);
        dp_event_log_add(suspension->daemon->event_log, DP_LOG_INFO, "pause.begun", 0, NULL,
                         "paused by its owner%s (%s); to train again: dpnode resume", text,
                         drained);
        /* Not written: a next daemon begins with the pause, too. */
        DP_IGNORE(keep(suspension, NULL, NULL));
    }
}

static void end_over(dp_suspension *suspension)
{
    if (dp_pause_is_over(&suspension->pause, suspension->clocks.wall_ms())) {
        suspension->pause = (dp_pause){.holds = false};
        dp_event_log_add(suspension->daemon->event_log, DP_LOG_INFO, "pause.over", 0, NULL,
                         "the time of the owner's pause is over");
        /* Not written: a next daemon finds it over, too. */
        DP_IGNORE(keep(suspension, NULL, NULL));
    }
}

/* ---- the hours ---- */

static void look_at_hours(dp_suspension *suspension)
{
    dp_daemon *const daemon = suspension->daemon;
    const uint64_t steady = suspension->clocks.steady_ms();
    /* The setting has been read once already. */
    DP_IGNORE(dp_hours_read(&suspension->hours, daemon->config->schedule, NULL) != DP_OK);
    if (dp_hours_open(&suspension->hours, suspension->clocks.wall_ms())) {
        suspension->outside = false;
        suspension->closed_ms = 0;
        return;
    }
    if (suspension->outside) {
        return;
    }
    if (suspension->closed_ms == 0) {
        suspension->closed_ms = steady;
        suspension->closed_counted = dp_supervisor_counted(daemon);
    }
    suspension->outside =
        dp_supervisor_drained(daemon, suspension->closed_counted, steady - suspension->closed_ms,
                              daemon->config->drain_time * 1000) != NULL;
}

/* ---- the machine ---- */

/* A sensor that cannot be read is told once. */
static void tell_blind(dp_suspension *suspension, int which, const char *setting, bool blind)
{
    static const char *const unseen[] = {"no power supply can be read",
                                         "neither load nor input can be read",
                                         "NVIDIA's library of sensors is not there or fails"};
    if (blind && !suspension->blind[which]) {
        dp_event_log_add(suspension->daemon->event_log, DP_LOG_WARN, "machine.blind", 0, NULL,
                         "%s %s does nothing now, and this node trains: %s", "E0134", setting,
                         suspension->hangs ? "a driver does not answer" : unseen[which]);
    }
    suspension->blind[which] = blind;
}

static void watch_machine(dp_suspension *suspension)
{
    const dp_config *const config = suspension->daemon->config;
    const bool wanted = config->not_on_battery || config->idle_only || config->yield_card;
    if (!wanted) {
        dp_machine_watch_close(suspension->watch);
        suspension->watch = NULL;
    } else if (suspension->watch == NULL &&
               dp_machine_watch_open(&suspension->watch, config->machine_root, (uint32_t)getpid(),
                                     DP_MACHINE_WATCH_MS) != DP_OK) {
        suspension->watch = NULL; /* The next tick tries again. */
    }
}

/* A trainer on the CPU leaves the cards alone already; a script may be on any card. */
static void look_at_cards(dp_suspension *suspension, const dp_driver_view *view)
{
    const dp_config *const config = suspension->daemon->config;
    const bool elsewhere = view->script_pid == 0 && strncmp(view->device, "cpu:", 4) == 0;
    dp_machine_watch_cards(suspension->watch, config->yield_card);
    suspension->sees_cards =
        config->yield_card &&
        dp_machine_watch_see_cards(suspension->watch, DP_MACHINE_WATCH_LATE_MS, &suspension->cards);
    if (!config->yield_card) {
        suspension->yielding = (dp_card_yielding){.holds = false};
    } else if (dp_card_yielding_pass(&suspension->yielding,
                                     suspension->sees_cards && !elsewhere ? &suspension->cards
                                                                          : NULL,
                                     suspension->clocks.steady_ms())) {
        dp_event_log_add(suspension->daemon->event_log, DP_LOG_INFO, "card.yield", 0, NULL, "%s",
                         suspension->yielding.holds
                             ? "another program uses the GPU: it is free for it"
                             : "nobody else has used the GPU for a minute");
    }
    tell_blind(suspension, 2, "yield-card",
               config->yield_card && !elsewhere &&
                   (suspension->hangs || (suspension->sees_cards && !suspension->cards.told)));
    uv_timer_set_repeat(&suspension->timer, config->yield_card ? CARD_TICK_MS : TICK_MS);
}

static void look_at_machine(dp_suspension *suspension)
{
    const dp_config *const config = suspension->daemon->config;
    dp_driver_view view = {.script_pid = 0, .device = ""};
    watch_machine(suspension);
    if (suspension->daemon->driver != NULL) {
        dp_driver_look(suspension->daemon->driver, &view);
    }
    dp_machine_watch_script(suspension->watch, view.script_pid);
    suspension->sees = dp_machine_watch_see(suspension->watch, DP_MACHINE_WATCH_LATE_MS,
                                            &suspension->use, &suspension->hangs);
    if (suspension->sees) {
        dp_machine_busy_pass(&suspension->busy, &suspension->use,
                             suspension->clocks.steady_ms() / 1000);
    } else {
        suspension->busy = (dp_machine_busy){.input = false};
    }
    tell_blind(suspension, 0, "not-on-battery",
               config->not_on_battery &&
                   (suspension->hangs ||
                    (suspension->sees && suspension->use.power == DP_MACHINE_POWER_UNKNOWN)));
    tell_blind(suspension, 1, "idle-only",
               config->idle_only &&
                   (suspension->hangs || (suspension->sees && !suspension->use.has_input &&
                                          !suspension->use.has_before)));
    suspension->has_script = view.script_pid != 0;
    look_at_cards(suspension, &view);
}

static unsigned causes_of_machine(const dp_suspension *suspension)
{
    const dp_config *const config = suspension->daemon->config;
    const bool battery = suspension->sees && suspension->use.power == DP_MACHINE_POWER_BATTERY;
    const bool used = suspension->busy.input || suspension->busy.load;
    return (config->not_on_battery && battery ? BATTERY : 0U) |
           (config->idle_only && used ? USE : 0U) | (suspension->yielding.holds ? CARD : 0U);
}

/* ---- all causes ---- */

static bool is_too_hot(const dp_suspension *suspension)
{
    dp_driver_view view = {.rests = false};
    if (suspension->daemon->driver != NULL) {
        dp_driver_look(suspension->daemon->driver, &view);
    }
    return view.rests;
}

/* The owner's limits are not known: to train might be against them. */
static bool are_lost(const dp_suspension *suspension)
{
    return suspension->daemon->live != NULL && suspension->daemon->live->damaged;
}

static unsigned causes_of(const dp_suspension *suspension)
{
    char text[128];
    const bool used_up =
        dp_bandwidth_limiter_why(suspension->daemon->bandwidth_limiter, text, sizeof text);
    return (suspension->pause.holds && !suspension->pause.waits ? OWNER : 0U) |
           (used_up ? QUOTA : 0U) | (is_too_hot(suspension) ? HEAT : 0U) |
           (suspension->outside ? SCHEDULE : 0U) | (are_lost(suspension) ? LIMITS : 0U) |
           causes_of_machine(suspension);
}

/* The owner's order reaches a node in any state; other causes let a newcomer fetch the run
 * first. */
static bool must_tell(const dp_suspension *suspension, unsigned was)
{
    dp_driver_view view;
    dp_driver_look(suspension->daemon->driver, &view);
    return ((suspension->causes & OWNER) != 0 && (was & OWNER) == 0) ||
           (view.running && (view.node.mode == DP_MODE_SYNC || view.node.mode == DP_MODE_GOSSIP));
}

void dp_suspension_act(dp_suspension *suspension)
{
    if (suspension == NULL) {
        return;
    }
    const unsigned was = suspension->causes;
    look_at_clock(suspension);
    begin_waiting(suspension);
    end_over(suspension);
    look_at_hours(suspension);
    look_at_machine(suspension);
    suspension->causes = causes_of(suspension);
    dp_driver *const driver = suspension->daemon->driver;
    if (driver == NULL) {
        return;
    }
    if (suspension->causes != 0 && must_tell(suspension, was)) {
        dp_driver_command(driver, DP_COMMAND_PAUSE);
    } else if (suspension->causes == 0 && was != 0) {
        dp_driver_command(driver, DP_COMMAND_RESUME);
    }
    /* It may call this one again. */
    dp_driver_yield(driver, (suspension->causes & CARD) != 0 && !suspension->has_script);
}

dp_status dp_suspension_pause(dp_suspension *suspension, const dp_pause *pause,
                              dp_store_thread_kept *done, void *context)
{
    if (suspension == NULL) {
        return DP_CLOSED;
    }
    suspension->pause = *pause;
    suspension->counted = dp_supervisor_counted(suspension->daemon);
    dp_suspension_act(suspension);
    return keep(suspension, done, context);
}

static void heat_text(const dp_suspension *suspension, char text[DP_SUSPENSION_TEXT_MAX])
{
    const unsigned long long most = suspension->daemon->config->celsius_max;
    dp_driver_view view = {.rests_celsius = 0};
    if (suspension->daemon->driver != NULL) {
        dp_driver_look(suspension->daemon->driver, &view);
    }
    if (view.rests_celsius != 0) {
        snprintf(text, DP_SUSPENSION_TEXT_MAX,
                 "it was at %u degrees Celsius, far above its limit of %llu, and must cool first",
                 view.rests_celsius, most);
    } else {
        snprintf(text, DP_SUSPENSION_TEXT_MAX, "it is far above its limit of %llu degrees Celsius",
                 most);
    }
}

/* "until Mon 22:00", or "" where nothing changes. */
static void until_text(uint64_t at_ms, char text[40])
{
    struct tm parts;
    const time_t at = (time_t)(at_ms / 1000);
    text[0] = '\0';
    if (at_ms != 0 && localtime_r(&at, &parts) != NULL) {
        DP_IGNORE(strftime(text, 40, " until %a %H:%M", &parts) == 0); /* It fits. */
    }
}

static void hours_text(const dp_suspension *suspension, char text[DP_SUSPENSION_TEXT_MAX])
{
    char until[40];
    until_text(dp_hours_next(&suspension->hours, suspension->clocks.wall_ms()), until);
    snprintf(text, DP_SUSPENSION_TEXT_MAX, "it is outside of the schedule (%s)%s",
             suspension->daemon->config->schedule, until);
}

static void use_text(const dp_suspension *suspension, char text[DP_SUSPENSION_TEXT_MAX])
{
    if (suspension->busy.input) {
        snprintf(text, DP_SUSPENSION_TEXT_MAX,
                 "somebody uses the machine: the last input is %llu s ago",
                 (unsigned long long)suspension->use.input_s);
    } else {
        snprintf(text, DP_SUSPENSION_TEXT_MAX,
                 "somebody uses the machine: other programs take %u %% of the processors, or took "
                 "them a minute ago",
                 suspension->use.others_milli / 10);
    }
}

static void card_text(const dp_suspension *suspension, char text[DP_SUSPENSION_TEXT_MAX])
{
    if (suspension->sees_cards && suspension->cards.used != 0) {
        snprintf(text, DP_SUSPENSION_TEXT_MAX, "another program uses its GPU: %s (process %u)",
                 suspension->cards.name[0] != '\0' ? suspension->cards.name : "not named",
                 suspension->cards.pid);
    } else {
        snprintf(text, DP_SUSPENSION_TEXT_MAX, "another program used its GPU within a minute");
    }
}

static void cause_text(const dp_suspension *suspension, unsigned cause,
                       char text[DP_SUSPENSION_TEXT_MAX])
{
    text[0] = '\0';
    switch (cause) {
    case LIMITS:
        snprintf(text, DP_SUSPENSION_TEXT_MAX,
                 "the stored limits cannot be read; set them again (dpnode limits), or go on "
                 "without them (dpnode resume)");
        break;
    case SCHEDULE:
        hours_text(suspension, text);
        break;
    case BATTERY:
        snprintf(text, DP_SUSPENSION_TEXT_MAX, "%s", dp_rest_text(DP_REST_BATTERY));
        break;
    case USE:
        use_text(suspension, text);
        break;
    case CARD:
        card_text(suspension, text);
        break;
    case HEAT:
        heat_text(suspension, text);
        break;
    default:
        DP_IGNORE(!dp_bandwidth_limiter_why(suspension->daemon->bandwidth_limiter, text,
                                            DP_SUSPENSION_TEXT_MAX)); /* It may be over now. */
    }
}

bool dp_suspension_cause(const dp_suspension *suspension, unsigned index, const char **word,
                         char text[DP_SUSPENSION_TEXT_MAX])
{
    static const struct {
        unsigned cause;
        dp_rest reason;
    } rows[] = {{LIMITS, DP_REST_LIMITS}, {SCHEDULE, DP_REST_SCHEDULE}, {BATTERY, DP_REST_BATTERY},
                {USE, DP_REST_USE},       {CARD, DP_REST_CARD},         {QUOTA, DP_REST_QUOTA},
                {HEAT, DP_REST_HEAT}};
    for (size_t i = 0; suspension != NULL && i < sizeof rows / sizeof rows[0]; i++) {
        if ((suspension->causes & rows[i].cause) != 0 && index-- == 0) {
            *word = dp_rest_word(rows[i].reason);
            cause_text(suspension, rows[i].cause, text);
            return true;
        }
    }
    return false;
}

bool dp_suspension_note(const dp_suspension *suspension, const char *setting,
                        char text[DP_SUSPENSION_TEXT_MAX])
{
    static const char *const powers[] = {"the power supply cannot be read", "on mains",
                                         "on battery"};
    if (suspension == NULL) {
        return false;
    }
    const dp_config *const config = suspension->daemon->config;
    if (strcmp(setting, "schedule") == 0 && suspension->hours.n > 0) {
        const uint64_t now = suspension->clocks.wall_ms();
        char until[40];
        until_text(dp_hours_next(&suspension->hours, now), until);
        snprintf(text, DP_SUSPENSION_TEXT_MAX, "%s%s",
                 dp_hours_open(&suspension->hours, now) ? "open" : "closed", until);
        return true;
    }
    if (strcmp(setting, "yield-card") == 0 && config->yield_card) {
        if (suspension->yielding.holds) {
            card_text(suspension, text);
        } else {
            snprintf(text, DP_SUSPENSION_TEXT_MAX, "%s",
                     !suspension->sees_cards      ? "not known yet"
                     : !suspension->cards.told    ? "the GPUs cannot be read"
                     : suspension->cards.own == 0 ? "this node uses no GPU"
                                                  : "no other program uses its GPU");
        }
        return true;
    }
    const bool battery = strcmp(setting, "not-on-battery") == 0 && config->not_on_battery;
    if (!battery && !(strcmp(setting, "idle-only") == 0 && config->idle_only)) {
        return false;
    }
    if (!suspension->sees) {
        snprintf(text, DP_SUSPENSION_TEXT_MAX, "%s",
                 suspension->hangs ? "a driver does not answer" : "not known yet");
    } else if (battery) {
        snprintf(text, DP_SUSPENSION_TEXT_MAX, "%s", powers[suspension->use.power]);
    } else if (suspension->busy.input || suspension->busy.load) {
        use_text(suspension, text);
    } else {
        snprintf(text, DP_SUSPENSION_TEXT_MAX, "%s",
                 suspension->use.has_input || suspension->use.has_before
                     ? "nobody uses the machine"
                     : "neither load nor input can be read");
    }
    return true;
}

dp_pause dp_suspension_owner(const dp_suspension *suspension)
{
    return suspension != NULL ? suspension->pause : (dp_pause){.holds = false};
}

/* ---- opening ---- */

/* The node may train only if the store has neither row nor copy. */
static void read_pause(dp_suspension *suspension)
{
    dp_buf buf;
    dp_buf_init(&buf, DP_STORE_THREAD_ROW_MAX);
    dp_status status = dp_store_get_either(suspension->daemon->store, pause_key, &buf);
    if (status != DP_NOTFOUND) {
        suspension->pause = (dp_pause){.holds = true};
        status = status == DP_OK ? dp_pause_read(&suspension->pause, dp_buf_view(&buf)) : status;
        if (status != DP_OK) {
            dp_log(DP_LOG_WARN, "pause.damaged",
                   "msg=\"the stored pause cannot be read: %s; this node stays paused; to train "
                   "again: dpnode resume\"",
                   dp_status_text(status));
        }
    }
    dp_buf_close(&buf);
    /* If it changes, each start changes it again, until an order is written. */
    DP_IGNORE(!dp_pause_restart(&suspension->pause, suspension->clocks.wall_ms()));
}

static void on_timer(uv_timer_t *timer)
{
    tzset(); /* The zone of the machine may have been set. NOLINT(concurrency-mt-unsafe) */
    dp_suspension_act(timer->data);
}

dp_status dp_suspension_open(dp_suspension **out, dp_daemon *daemon,
                             const dp_suspension_clocks *clocks)
{
    static const dp_suspension_clocks of_system = {dp_unix_ms, dp_boot_ms};
    dp_suspension *suspension = dp_alloc(1, sizeof *suspension);
    if (suspension == NULL) {
        return DP_NOMEM;
    }
    suspension->daemon = daemon;
    suspension->clocks = clocks != NULL ? *clocks : of_system;
    suspension->ahead_ms = ahead_ms(suspension);
    read_pause(suspension);
    DP_IGNORE(dp_hours_read(&suspension->hours, daemon->config->schedule, NULL) != DP_OK);
    suspension->outside = !dp_hours_open(&suspension->hours, suspension->clocks.wall_ms());
    suspension->causes = causes_of(suspension);
    DP_IGNORE(uv_timer_init(daemon->loop, &suspension->timer) != 0); /* It does not fail. */
    suspension->timer.data = suspension;
    uv_timer_start(&suspension->timer, on_timer, TICK_MS, TICK_MS);
    *out = suspension;
    return DP_OK;
}

static void on_closed(uv_handle_t *handle)
{
    dp_free(handle->data);
}

void dp_suspension_close(dp_suspension *suspension)
{
    if (suspension != NULL) {
        dp_machine_watch_close(suspension->watch);
        suspension->watch = NULL;
        uv_close((uv_handle_t *)&suspension->timer, on_closed);
    }
}
