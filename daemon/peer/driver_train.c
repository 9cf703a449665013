/* The trainer process during the life of the driver: its start, its watchdog, its end, and its
 * open commands. trainer_commands.c makes commands, driver_answer.c takes answers. */
#include <string.h>

#include "base/assert.h"
#include "daemon/peer/driver_inside.h"
#include "daemon/peer/suspension.h"

enum {
    RENEW_MS = 120 * 1000, /* A trainer that publishes nothing starts anew after so long. */
    /* A look so long after the one before shows that this machine, or its container, stood still,
     * or has no time for anything. */
    LATE_MS = 4 * DP_DRIVER_TICK_MS
};

void dp_driver_expect(dp_driver *driver, const dp_driver_wait *wait)
{
    if (driver->n_waits == DP_DRIVER_WAITS_MAX) {
        dp_trainer_process_kill(driver->trainer, "leaves too many commands unanswered");
        return;
    }
    driver->waits[driver->n_waits++] = *wait;
}

/* The oldest command of a kind that fits this answer. */
bool dp_driver_answered(dp_driver *driver, dp_trainer_kind command, dp_driver_wait *wait)
{
    for (uint32_t i = 0; i < driver->n_waits; i++) {
        if (driver->waits[i].command == command) {
            *wait = driver->waits[i];
            driver->n_waits--;
            memmove(driver->waits + i, driver->waits + i + 1, (driver->n_waits - i) * sizeof *wait);
            /* Its time begins only now. */
            driver->waits[0].since_ms = uv_now(driver->daemon->loop);
            return true;
        }
    }
    return false;
}

/* Gives the failure of a command to the part of the node that waits for its answer. */
void dp_driver_command_failed(dp_driver *driver, const dp_driver_wait *wait, const char *what)
{
    dp_event_log_add(driver->daemon->event_log, DP_LOG_WARN, "trainer.failed", wait->round, NULL,
                     "%s: %s", dp_trainer_kind_name(wait->command), what);
    if (wait->answer != NULL) {
        wait->answer(wait->context, NULL, what);
        return;
    }
    dp_event event = {0};
    if (wait->command == DP_TRAINER_INIT || wait->command == DP_TRAINER_LOAD) {
        event.type = DP_EV_TRAINER_AT;
        event.u.at.round = wait->round;
        event.u.at.status = DP_CORRUPT;
        dp_driver_feed(driver, &event);
    } else if (wait->command == DP_TRAINER_APPLY) {
        event.type = DP_EV_APPLIED;
        event.u.applied.round = wait->round;
        event.u.applied.status = DP_CORRUPT;
        dp_driver_feed(driver, &event);
    } else if (wait->command == DP_TRAINER_ADD) {
        dp_driver_slices_failed(driver, wait->round);
    } else if (wait->command == DP_TRAINER_REDUCE) {
        dp_driver_reduce_failed(driver, wait->round, wait->part, DP_CORRUPT);
    } else if (wait->command == DP_TRAINER_JUDGE) {
        dp_driver_judged(driver, &wait->root, NULL);
    } else if (wait->command == DP_TRAINER_MIX) {
        event.type = DP_EV_MIXED;
        memcpy(event.u.mixed.exchange, wait->exchange, sizeof wait->exchange);
        event.u.mixed.status = DP_CORRUPT;
        dp_driver_feed(driver, &event);
    } else { /* PUBLISH, FREEZE, OPEN: only a new process helps. */
        dp_trainer_process_kill(driver->trainer, "could not do a command");
    }
}

/* Deaths of several trainers at once, usually because of memory, would stop rounds until the end of
 * the longest wait. */
static void start_early(dp_driver *driver)
{
    if (driver->trainer == NULL || driver->node == NULL ||
        dp_trainer_process_next_ms(driver->trainer) <= DP_TRAINER_SOON_MS) {
        return;
    }
    dp_node_view view;
    dp_node_look(driver->node, &view);
    if (2 * view.idle > view.alive && dp_trainer_process_start_early(driver->trainer)) {
        dp_event_log_add(
            driver->daemon->event_log, DP_LOG_INFO, "trainer.early", 0, NULL,
            "%u of %u nodes have no trainer: this node starts its own early, once in %d minutes",
            view.idle, view.alive, DP_RESTART_EARLY_MS / 60000);
    }
}

void dp_driver_renew_trainer(dp_driver *driver)
{
    if (driver->renew_ms != 0 && driver->trainer != NULL) {
        driver->renew_ms = 0;
        dp_trainer_process_replace(driver->trainer, "takes its owner's limits");
    }
}

static dp_trainer_limits limits_of(const dp_driver *driver)
{
    const dp_config *const config = driver->daemon->config;
    return (dp_trainer_limits){.threads = config->threads,
                               .nice = config->nice,
                               .celsius_max = config->celsius_max,
                               .watts_max = config->watts_max,
                               .vram_share = config->vram_share};
}

void dp_driver_limit_trainer(dp_driver *driver)
{
    const dp_trainer_limits was = driver->limits;
    const dp_trainer_limits is = limits_of(driver);
    if (driver->trainer == NULL) {
        return;
    }
    driver->limits = is;
    dp_trainer_process_limit(driver->trainer, &is);
    if (is.celsius_max != was.celsius_max || is.watts_max != was.watts_max) {
        const dp_trainer_msg msg = {.kind = DP_TRAINER_LIMITS,
                                    .celsius = (uint32_t)is.celsius_max,
                                    .watts = (uint32_t)is.watts_max};
        /* Without a process, or if it is lost, the next one begins with them. */
        DP_IGNORE(dp_trainer_process_tell(driver->trainer, &msg, NULL, 0));
    }
    if (is.threads != was.threads || is.nice != was.nice || is.vram_share != was.vram_share) {
        driver->renew_ms = uv_now(driver->daemon->loop);
        dp_assert(driver->renew_ms != 0);
    }
    if (!driver->training) { /* There is no work to lose. */
        dp_driver_renew_trainer(driver);
    }
}

void dp_driver_yield(dp_driver *driver, bool yields)
{
    driver->yields = yields;
    if (driver->trainer != NULL && yields) {
        dp_trainer_process_hold(driver->trainer, "gives its GPU to other programs");
    } else if (driver->trainer != NULL) {
        dp_trainer_process_let_go(driver->trainer);
    }
}

void dp_driver_watch_trainer(dp_driver *driver)
{
    const uint64_t now = uv_now(driver->daemon->loop);
    if (driver->renew_ms != 0 && (!driver->training || now - driver->renew_ms > RENEW_MS)) {
        dp_driver_renew_trainer(driver);
    }
    dp_trainer_process_look(driver->trainer);
    start_early(driver);
    if (driver->n_waits > 0 && driver->watched_ms != 0 && now - driver->watched_ms > LATE_MS) {
        driver->waits[0].since_ms = now;
    }
    driver->watched_ms = now;
    if (driver->n_waits > 0 &&
        now - driver->waits[0].since_ms > driver->daemon->config->answer_time * 1000) {
        dp_trainer_process_kill(driver->trainer, "did not answer");
    }
}

static void on_started(void *context)
{
    dp_driver_open_model(context);
}

static void drop_waits(dp_driver *driver, const char *why)
{
    while (driver->n_waits > 0) {
        const dp_driver_wait wait = driver->waits[--driver->n_waits];
        if (wait.answer != NULL) {
            wait.answer(wait.context, NULL, why);
        }
    }
}

/* A card that passes its self-test and then fails would end one life after another. Another trainer
 * program may not know backends, and its device text is not interpreted. */
static bool leaves_device(const dp_driver *driver)
{
    static const char own[] = "dpnode-worker";
    const char *const path = driver->daemon->config->worker;
    const char *const slash = strrchr(path, '/');
    /* Without a device name the trainer died before it could report one: this counts as a death on
     * a device, unless only the CPU was possible. */
    return strcmp(slash != NULL ? slash + 1 : path, own) == 0 &&
           !dp_trainer_process_takes_cpu(driver->trainer) &&
           strncmp(driver->device, "cpu:", 4) != 0 &&
           dp_trainer_process_deaths(driver->trainer) >= DP_TRAINER_DEVICE_LIVES;
}

/* The text after the cause of a death: the next action of the daemon. */
static void tell_after_death(dp_driver *driver, char *text, size_t size)
{
    const uint64_t next_s = (dp_trainer_process_next_ms(driver->trainer) + 999) / 1000;
    const uint32_t in_a_row = dp_trainer_process_in_a_row(driver->trainer);
    if (driver->yields) {
        snprintf(text, size, "; it restarts when they have left the GPU");
    } else if (leaves_device(driver)) {
        const bool named = driver->device[0] != '\0';
        dp_trainer_process_take_cpu(driver->trainer);
        driver->device[0] = '\0';
        snprintf(text, size,
                 ", again %s; falling back to the CPU; to retry the device: dpnode down; dpnode up",
                 named ? "on this device" : "before it named its device");
    } else if (in_a_row > 1) {
        snprintf(text, size,
                 ", %u times in a row; it restarts in %llu s; until then this node stores and "
                 "serves data",
                 in_a_row, (unsigned long long)next_s);
    } else {
        snprintf(text, size, "; it restarts");
    }
}

/* In a run of any model: a script may not come again, and then nobody takes these steps. */
static void note_lost_steps(dp_driver *driver)
{
    if (driver->unsent_tokens > 0 && dp_manifest_external(&driver->manifest)) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_WARN, "script.lost", 0, NULL,
                         "steps of a script on %llu tokens were in no update when the trainer "
                         "ended: they are lost, and their samples are drawn again",
                         (unsigned long long)driver->unsent_tokens);
    }
    driver->unsent_tokens = 0;
}

static void on_down(void *context, const char *cause)
{
    dp_driver *driver = context;
    driver->trainer_open = false;
    driver->training = false;
    driver->trainer_life++;
    driver->n_judges = 0;
    dp_driver_publication_drop(driver);
    dp_driver_commands_drop(driver);
    driver->step_ms = 0;
    driver->step_skipped = 0;
    driver->step_spikes = 0;
    driver->step_empty = 0;
    driver->tokens_per_s = 0;
    driver->script_pid = 0;
    driver->rests = false;
    driver->celsius = 0;
    driver->watts = 0;
    driver->usage = (dp_usage){0};
    driver->spent = (dp_trainer_spent){0};
    drop_waits(driver, "the trainer crashed");
    char after[192];
    tell_after_death(driver, after, sizeof after);
    dp_event_log_add(driver->daemon->event_log, DP_LOG_WARN, "trainer.down", 0, NULL,
                     "the trainer %s%s", cause, after);
    note_lost_steps(driver);
    dp_driver_feed(driver, &(dp_event){.type = DP_EV_TRAINER_DOWN});
    dp_suspension_act(driver->daemon->suspension);
}

void dp_driver_trainer_open(dp_driver *driver)
{
    if (driver->trainer != NULL) {
        return;
    }
    dp_why why = {""};
    if (driver->has_manifest && driver->manifest.exchange == DP_EXCHANGE_UPDATES) {
        snprintf(driver->script_path, sizeof driver->script_path, "%s/script.sock",
                 driver->daemon->config->dir);
    }
    driver->limits = limits_of(driver);
    const dp_trainer_process_config config = {
        .loop = driver->daemon->loop,
        .program = driver->daemon->config->worker,
        .backend = driver->daemon->config->backend,
        .threads = driver->limits.threads,
        .processes = driver->daemon->config->processes,
        .nice = driver->limits.nice,
        .celsius_max = driver->limits.celsius_max,
        .watts_max = driver->limits.watts_max,
        .vram_share = driver->limits.vram_share,
        .script = driver->script_path,
        .hooks = {driver, on_started, on_down, dp_driver_on_answer},
    };
    driver->trainer_wanted = true;
    dp_status status = dp_trainer_process_open(&driver->trainer, &config);
    if (status == DP_OK && driver->yields) {
        dp_trainer_process_hold(driver->trainer, "");
    }
    if (status == DP_OK) {
        status = dp_trainer_process_start(driver->trainer, &why);
    }
    if (status != DP_OK) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_ERROR, "trainer.missing", 0, NULL, "%s",
                         why.text);
    }
}

void dp_driver_trainer_close(dp_driver *driver)
{
    note_lost_steps(driver);
    drop_waits(driver, "the daemon is stopping");
    dp_driver_publication_drop(driver);
    dp_driver_commands_drop(driver);
    dp_trainer_process_close(driver->trainer);
    driver->trainer = NULL;
}

/* The number of commands without judgements, of which many arrive at once. */
static uint32_t n_others(const dp_driver *driver)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < driver->n_waits; i++) {
        n += driver->waits[i].command != DP_TRAINER_JUDGE;
    }
    return n;
}

dp_status dp_driver_ask(dp_driver *driver, const dp_trainer_msg *question, dp_driver_answer *answer,
                        void *context)
{
    if (!driver->trainer_open) {
        answer(context, NULL, "the trainer has not loaded it");
        return DP_CLOSED;
    }
    if (n_others(driver) >=
        DP_DRIVER_QUESTIONS_MAX) { /* Users' queries must not displace the node's own commands. */
        answer(context, NULL, "too many questions are waiting");
        return DP_AGAIN;
    }
    const dp_driver_wait wait = {.command = question->kind,
                                 .since_ms = uv_now(driver->daemon->loop),
                                 .answer = answer,
                                 .context = context};
    dp_driver_expect(driver, &wait);
    const dp_status status = dp_trainer_process_tell(driver->trainer, question, NULL, 0);
    if (status == DP_NOMEM) { /* CLOSED: the hook of its death has already answered. */
        driver->n_waits--;
        answer(context, NULL, dp_status_text(status));
    }
    return status;
}
