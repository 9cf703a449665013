/* Turns the trainer's answers into events for the protocol core. Vectors in an answer become
 * durable objects first, in driver_publication.c. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/peer/driver_inside.h"
#include "daemon/peer/suspension.h"

enum { SKIP_LOG_MS = 1000 };

static bool take_state(dp_driver *driver, const dp_trainer_msg *msg, int fd)
{
    dp_view bytes;
    const dp_status status = dp_memfd_map(fd, DP_OBJECT_BYTES_MAX, &bytes);
    close(fd);
    if (status != DP_OK) {
        return false;
    }
    dp_memfd_unmap(driver->snapshot);
    driver->snapshot = bytes;
    driver->snapshot_round = msg->round;
    driver->snapshot_root = msg->root;
    return true;
}

static void applied(dp_driver *driver, const dp_trainer_msg *msg)
{
    dp_event event = {.type = DP_EV_APPLIED};
    event.u.applied.round = msg->round;
    event.u.applied.tensor_root = msg->root;
    event.u.applied.tensor_bytes = driver->snapshot.size;
    driver->outer_reach = msg->outer_reach;
    dp_driver_feed(driver, &event);
}

/* Dropped steps, at most once a second. Totals that fall begin a new publication. */
static void note_skipped(dp_driver *driver, const dp_trainer_msg *msg, uint64_t now)
{
    if (msg->skipped < driver->step_skipped || msg->spikes < driver->step_spikes ||
        msg->empty < driver->step_empty) {
        driver->step_skipped = 0;
        driver->step_spikes = 0;
        driver->step_empty = 0;
    }
    const uint32_t skipped = msg->skipped - driver->step_skipped;
    const uint32_t spikes = msg->spikes - driver->step_spikes;
    const uint32_t empty = msg->empty - driver->step_empty;
    if (skipped == 0 || (driver->skip_ms != 0 && now - driver->skip_ms < SKIP_LOG_MS)) {
        return;
    }
    driver->step_skipped = msg->skipped;
    driver->step_spikes = msg->spikes;
    driver->step_empty = msg->empty;
    driver->skip_ms = now;
    const uint64_t others = (uint64_t)spikes + empty;
    if (empty > 0) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_WARN, "train.empty", 0, NULL,
                         "nothing to learn from in %u batches: prompts longer than model.context",
                         empty);
    }
    if (skipped > empty) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_WARN, "train.skipped", 0, NULL,
                         "skipped %u training steps: %u loss spikes, %u not finite",
                         skipped - empty, spikes,
                         others < skipped ? (uint32_t)(skipped - others) : 0);
    }
}

static void progress(dp_driver *driver, const dp_trainer_msg *msg)
{
    const uint64_t now = uv_now(driver->daemon->loop);
    /* A user's query, like a full evaluation, may take long, but not in silence. */
    if (driver->n_waits > 0 && driver->waits[0].answer != NULL) {
        driver->waits[0].since_ms = now;
    }
    note_skipped(driver, msg, now);
    /* In a run of any model STEP also tells of work that waits without a script. */
    const bool works = !dp_manifest_external(&driver->manifest) || driver->script_pid != 0;
    const bool goes_on = works && driver->step_ms != 0 && msg->steps > driver->step_count &&
                         msg->tokens > driver->step_tokens;
    const uint64_t elapsed = now - driver->step_ms;
    uint64_t step_us = 0;
    if (goes_on && elapsed > 0) {
        step_us = elapsed * 1000 / (msg->steps - driver->step_count);
        driver->tokens_per_s =
            (double)(msg->tokens - driver->step_tokens) * 1000.0 / (double)elapsed;
    }
    driver->step_ms = now;
    driver->step_count = msg->steps;
    driver->step_tokens = msg->tokens;
    driver->unsent_tokens = msg->again ? 0 : msg->tokens;
    driver->loss = msg->steps > 0 ? msg->loss : driver->loss;
    dp_usage_told(&driver->usage, msg->computed_us, msg->trained_us);
    driver->spent = msg->spent;
    if (msg->celsius != 0 || msg->watts != 0) {
        driver->celsius = msg->celsius;
        driver->watts = msg->watts;
        driver->felt_ms = now;
    }
    dp_event event = {.type = DP_EV_TRAINED};
    event.u.trained.round = msg->round;
    event.u.trained.steps = msg->steps;
    event.u.trained.tokens = msg->tokens;
    event.u.trained.step_us = step_us;
    dp_driver_feed(driver, &event);
}

static void at_round(dp_driver *driver, const dp_trainer_msg *msg)
{
    dp_event event = {.type = DP_EV_TRAINER_AT};
    event.u.at.round = msg->round;
    event.u.at.root = msg->root;
    dp_driver_feed(driver, &event);
}

static void opened(dp_driver *driver, const dp_trainer_msg *msg)
{
    driver->trainer_open = true;
    /* The trainer's vectors have padding, too. */
    driver->elements =
        driver->has_manifest ? dp_manifest_parameters(&driver->manifest) : msg->elements;
    snprintf(driver->device, sizeof driver->device, "%.*s", (int)sizeof driver->device - 1,
             msg->text);
    dp_event_log_add(driver->daemon->event_log, DP_LOG_INFO, "trainer.up", 0, NULL,
                     "the trainer holds %llu parameters%s%s", (unsigned long long)driver->elements,
                     driver->device[0] != '\0' ? " on " : "", driver->device);
    dp_driver_feed(driver, &(dp_event){.type = DP_EV_TRAINER_UP});
}

static void checked(dp_driver *driver, const dp_trainer_msg *msg)
{
    dp_event event = {.type = DP_EV_CHECKED};
    const uint32_t at = msg->id % DP_DRIVER_CHECKS_MAX;
    event.u.checked.root = driver->checks[at].root;
    event.u.checked.first = driver->checks[at].range.first;
    event.u.checked.end = driver->checks[at].range.end;
    event.u.checked.ok = msg->ok;
    event.u.checked.foreign = msg->foreign;
    event.u.checked.energy = msg->energy;
    dp_driver_feed(driver, &event);
}

void dp_driver_judged(dp_driver *driver, const dp_hash *root, const dp_judged *found)
{
    dp_event event = {.type = DP_EV_JUDGED};
    event.u.judged.root = *root;
    event.u.judged.found = found != NULL ? *found : (dp_judged){.failed = true};
    driver->n_judges--;
    dp_driver_feed(driver, &event);
}

static void mixed(dp_driver *driver, const dp_trainer_msg *msg)
{
    driver->moved = msg->moved; /* The note of the finished exchange follows. */
    dp_event_log_add(driver->daemon->event_log, DP_LOG_INFO, "gossip.moved", 0, NULL,
                     "weight x displacement moved to this node: %.9g", msg->moved);
    dp_event event = {.type = DP_EV_MIXED};
    memcpy(event.u.mixed.exchange, msg->exchange, sizeof event.u.mixed.exchange);
    dp_driver_feed(driver, &event);
}

static void script(dp_driver *driver, const dp_trainer_msg *msg)
{
    const bool present = msg->pid != 0;
    dp_event event = {.type = DP_EV_SCRIPT};
    if (!driver->has_manifest || driver->manifest.exchange != DP_EXCHANGE_UPDATES) {
        return; /* Nobody has asked for one. */
    }
    const bool external = dp_manifest_external(&driver->manifest);
    driver->script_pid = msg->pid;
    driver->step_ms = 0;
    if (present) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_INFO, "script.up", 0, NULL,
                         "process %u trains with this node", msg->pid);
    } else {
        driver->tokens_per_s = 0;
        dp_event_log_add(driver->daemon->event_log, DP_LOG_INFO, "script.down", 0, NULL,
                         external ? "the script is gone; this node waits for the next one"
                                  : "the script is gone; this node's own trainer goes on");
    }
    if (external) { /* Else the node trains in either case. */
        event.u.script.present = present;
        dp_driver_feed(driver, &event);
    }
}

/* The command that an answer ends; 0: none. */
static dp_trainer_kind command_of(dp_trainer_kind answer)
{
    switch ((int)answer) {
    case DP_TRAINER_OPENED:
        return DP_TRAINER_OPEN;
    case DP_TRAINER_PUBLISHED:
        return DP_TRAINER_PUBLISH;
    case DP_TRAINER_APPLIED:
        return DP_TRAINER_APPLY;
    case DP_TRAINER_ADDED:
        return DP_TRAINER_ADD;
    case DP_TRAINER_REDUCED:
        return DP_TRAINER_REDUCE;
    case DP_TRAINER_FROZEN:
        return DP_TRAINER_FREEZE;
    case DP_TRAINER_MIXED:
        return DP_TRAINER_MIX;
    case DP_TRAINER_JUDGED:
        return DP_TRAINER_JUDGE;
    case DP_TRAINER_EVALUATED:
        return DP_TRAINER_EVAL;
    case DP_TRAINER_SAMPLED:
        return DP_TRAINER_SAMPLE;
    default:
        return (dp_trainer_kind)0;
    }
}

static uint32_t fds_of(const dp_trainer_msg *answer)
{
    switch ((int)answer->kind) {
    case DP_TRAINER_PUBLISHED:
        return 2 + answer->cuts.n;
    case DP_TRAINER_FROZEN:
        return 2;
    case DP_TRAINER_APPLIED:
    case DP_TRAINER_REDUCED:
        return 1;
    default:
        return 0;
    }
}

static bool belongs(dp_driver *driver, const dp_trainer_msg *msg, dp_driver_wait *wait)
{
    if (msg->kind == DP_TRAINER_READY_AT) {
        return dp_driver_answered(driver, DP_TRAINER_INIT, wait) ||
               dp_driver_answered(driver, DP_TRAINER_LOAD, wait);
    }
    const dp_trainer_kind command = command_of(msg->kind);
    return command == 0 || dp_driver_answered(driver, command, wait);
}

/* The command of a FAILED, if that command has an answer. Answers come in order: if the trainer
 * does not name it, it is the oldest. */
static bool failed_command(dp_driver *driver, const dp_trainer_msg *msg, dp_driver_wait *wait)
{
    const dp_trainer_kind of =
        msg->of == 0 && driver->n_waits > 0 ? driver->waits[0].command : msg->of;

    return of != 0 && dp_driver_answered(driver, of, wait);
}

/* Most trainers begin their text with the command, which the log has anyway. */
static const char *without_name(dp_trainer_kind command, const char *text)
{
    const char *const name = dp_trainer_kind_name(command);
    const size_t size = strlen(name);

    return strncmp(text, name, size) == 0 && strncmp(text + size, ": ", 2) == 0 ? text + size + 2
                                                                                : text;
}

static void failed(dp_driver *driver, const dp_trainer_msg *msg)
{
    const bool question = msg->of == DP_TRAINER_EVAL || msg->of == DP_TRAINER_SAMPLE;
    dp_driver_wait wait = {0};

    if (msg->lacks && msg->of == DP_TRAINER_OPEN) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_ERROR, "trainer.memory", 0, NULL,
                         "E0311 the model does not fit; dpnoded --observer stores and serves data "
                         "without training; %.200s",
                         without_name(DP_TRAINER_OPEN, msg->text));
        dp_trainer_process_postpone(driver->trainer, "could not hold the model in memory");
    } else if (msg->lacks && !question) {
        /* Otherwise the node would take a checkpoint or an update for broken. */
        dp_event_log_add(driver->daemon->event_log, DP_LOG_WARN, "trainer.lack", 0, NULL, "%.200s",
                         msg->text);
        dp_trainer_process_kill(driver->trainer, "lacks memory or file descriptors");
    } else if (failed_command(driver, msg, &wait)) {
        dp_driver_command_failed(driver, &wait, without_name(wait.command, msg->text));
    } else {
        /* RESTORE or TRAIN: without them it would stop, or continue from another state. */
        dp_event_log_add(driver->daemon->event_log, DP_LOG_WARN, "trainer.failed", 0, NULL,
                         "%.200s", msg->text);
        dp_trainer_process_kill(driver->trainer, "could not do a command");
    }
}

static bool is_as_asked(const dp_trainer_msg *msg, const dp_driver_wait *wait)
{
    if (msg->kind == DP_TRAINER_REDUCED) {
        return msg->round == wait->round && msg->part == wait->part;
    }
    if (msg->kind == DP_TRAINER_ADDED) {
        return msg->round == wait->round && msg->at == wait->part;
    }
    if (msg->kind == DP_TRAINER_JUDGED) {
        return msg->id == wait->id;
    }
    return msg->kind != DP_TRAINER_PUBLISHED ||
           (msg->cuts.n == wait->cuts.n && memcmp(msg->cuts.first, wait->cuts.first,
                                                  msg->cuts.n * sizeof msg->cuts.first[0]) == 0);
}

static void close_all(const int *fds, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        close(fds[i]);
    }
}

void dp_driver_on_answer(void *context, const dp_trainer_msg *msg, const int *fds, uint32_t n_fds)
{
    dp_driver *driver = context;
    dp_driver_wait wait = {0};
    if (n_fds != fds_of(msg) || !belongs(driver, msg, &wait)) {
        close_all(fds, n_fds);
        dp_event_log_add(driver->daemon->event_log, DP_LOG_WARN, "trainer.odd", 0, NULL,
                         "an unexpected %s from the trainer", dp_trainer_kind_name(msg->kind));
        return;
    }
    switch ((int)msg->kind) {
    case DP_TRAINER_OPENED:
        opened(driver, msg);
        break;
    case DP_TRAINER_READY_AT:
        at_round(driver, msg);
        break;
    case DP_TRAINER_STEP:
        progress(driver, msg);
        break;
    case DP_TRAINER_PUBLISHED:
    case DP_TRAINER_FROZEN:
    case DP_TRAINER_REDUCED:
        if (msg->kind == DP_TRAINER_PUBLISHED) {
            driver->unsent_tokens = 0;
        }
        if (is_as_asked(msg, &wait)) {
            dp_driver_publication_store(driver, msg, fds, n_fds);
        } else {
            close_all(fds, n_fds);
            dp_trainer_process_kill(driver->trainer, "returned other parts than requested");
        }
        break;
    case DP_TRAINER_CHECKED:
        checked(driver, msg);
        break;
    case DP_TRAINER_JUDGED:
        if (is_as_asked(msg, &wait)) {
            dp_driver_judged(driver, &wait.root, msg->judged.failed ? NULL : &msg->judged);
        } else {
            dp_trainer_process_kill(driver->trainer, "evaluated another update than requested");
        }
        break;
    case DP_TRAINER_ADDED:
        if (is_as_asked(msg, &wait)) {
            dp_driver_slices_added(driver, msg);
        } else {
            dp_trainer_process_kill(driver->trainer, "summed other updates than requested");
        }
        break;
    case DP_TRAINER_APPLIED:
        if (take_state(driver, msg, fds[0])) {
            applied(driver, msg);
        } else {
            dp_trainer_process_kill(driver->trainer, "returned a state that cannot be mapped");
        }
        break;
    case DP_TRAINER_MIXED:
        mixed(driver, msg);
        break;
    case DP_TRAINER_EVALUATED:
    case DP_TRAINER_SAMPLED:
        if (wait.answer != NULL) {
            wait.answer(wait.context, msg, NULL);
        }
        break;
    case DP_TRAINER_FAILED:
        failed(driver, msg);
        break;
    case DP_TRAINER_SCRIPT:
        script(driver, msg);
        break;
    case DP_TRAINER_RESTING:
        driver->rests = msg->ok;
        driver->rests_celsius = msg->celsius;
        if (msg->celsius != 0) {
            driver->celsius = msg->celsius;
            driver->felt_ms = uv_now(driver->daemon->loop);
        }
        dp_suspension_act(driver->daemon->suspension);
        break;
    default:
        break;
    }
}
