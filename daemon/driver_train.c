/* The trainer's commands and answers. Bulk data goes between store and trainer as sealed memfds that are read and written on
 * the saver thread. Commands keep their order because all of them pass through the same class of jobs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/driver_inside.h"
#include "store/object.h"

/* ---- what is under way ---- */

static void expect(dp_driver *driver, const dp_driver_wait *wait)
{
    if (driver->n_waits == DP_DRIVER_WAITS_MAX) {
        dp_trainer_kill(driver->trainer);
        return;
    }
    driver->waits[driver->n_waits++] = *wait;
}

/* The oldest command of a kind that this answer may belong to. */
static bool answered(dp_driver *driver, dp_trainer_kind command, dp_driver_wait *wait)
{
    for (uint32_t i = 0; i < driver->n_waits; i++) {
        if (driver->waits[i].command == command) {
            *wait = driver->waits[i];
            driver->n_waits--;
            memmove(driver->waits + i, driver->waits + i + 1, (driver->n_waits - i) * sizeof *wait);
            driver->waits[0].since_ms = uv_now(driver->daemon->loop); /* Its turn comes only now. */
            return true;
        }
    }
    return false;
}

/* What the node waits for when a command cannot be done. */
static void report_failure(dp_driver *driver, const dp_driver_wait *wait, const char *what)
{
    dp_diary_add(driver->daemon->diary, DP_LOG_WARN, "trainer.failed", wait->round, NULL, "%s: %s",
                 dp_trainer_kind_name(wait->command), what);
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
    } else if (wait->command == DP_TRAINER_MIX) {
        event.type = DP_EV_MIXED;
        memcpy(event.u.mixed.exchange, wait->exchange, sizeof wait->exchange);
        event.u.mixed.status = DP_CORRUPT;
        dp_driver_feed(driver, &event);
    } else { /* PUBLISH, FREEZE, OPEN: a fresh process is the way out. */
        dp_trainer_kill(driver->trainer);
    }
}

void dp_driver_watch_trainer(dp_driver *driver)
{
    const uint64_t now = uv_now(driver->daemon->loop);
    /* A question of a person, like a full evaluation, may take its time; what waits behind it is not to blame. */
    if (driver->n_waits > 0 && driver->waits[0].answer == NULL &&
        now - driver->waits[0].since_ms > DP_DRIVER_ANSWER_MS) {
        dp_trainer_kill(driver->trainer);
    }
}

/* ---- commands ---- */

typedef struct tell_job {
    dp_saver_job job;
    dp_driver *driver;
    uint32_t life;
    dp_trainer_msg msg;
    dp_driver_wait wait; /* command 0: no answer comes */
    dp_status status;
    uint32_t n_fds;
    int fds[DP_TRAINER_FDS_MAX];
    uint32_t n_roots;
    dp_hash roots[DP_TRAINER_FDS_MAX];
} tell_job;

static dp_status object_memfd(dp_store *store, const dp_hash *root, int *fd)
{
    dp_object_info info;
    DP_TRY(dp_object_stat(store, root, &info));
    uint8_t *bytes = dp_alloc(1, info.size > 0 ? info.size : 1);
    if (bytes == NULL) {
        return DP_NOMEM;
    }
    dp_status status = dp_object_read(store, root, bytes, info.size);
    if (status == DP_OK) {
        status = dp_memfd_make("dpnode-object", dp_view_of(bytes, info.size), fd);
    }
    dp_free(bytes);
    return status;
}

static void run_tell(dp_saver_job *job, dp_store *store)
{
    tell_job *self = (tell_job *)job;
    for (uint32_t i = 0; i < self->n_roots && self->status == DP_OK; i++) {
        self->status = object_memfd(store, &self->roots[i], &self->fds[self->n_fds]);
        self->n_fds += self->status == DP_OK;
    }
}

static void close_job_fds(const tell_job *self)
{
    for (uint32_t i = 0; i < self->n_fds; i++) {
        close(self->fds[i]);
    }
}

static void check_failed(dp_driver *driver, const dp_hash *root)
{
    dp_event event = {.type = DP_EV_CHECKED};
    event.u.checked.root = *root;
    dp_driver_feed(driver, &event);
}

static void done_tell(dp_saver_job *job)
{
    tell_job *self = (tell_job *)job;
    dp_driver *driver = self->driver;
    if (driver->closing || self->life != driver->trainer_life) {
        close_job_fds(self);
    } else if (self->status != DP_OK) {
        close_job_fds(self);
        if (self->msg.kind == DP_TRAINER_CHECK) {
            check_failed(driver, &self->roots[0]);
        } else {
            report_failure(driver, &self->wait, dp_status_text(self->status));
        }
    } else {
        if (self->wait.command != 0) {
            self->wait.since_ms = uv_now(driver->daemon->loop);
            expect(driver, &self->wait);
        }
        /* A dead trainer is reported by its hook, and all that waits with it. */
        DP_IGNORE(dp_trainer_tell(driver->trainer, &self->msg, self->fds, self->n_fds));
    }
    dp_free(self);
    dp_driver_job_done(driver);
}

static tell_job *tell_job_new(dp_driver *driver, dp_trainer_kind kind)
{
    tell_job *job = driver->trainer == NULL ? NULL : dp_alloc(1, sizeof *job);
    if (job != NULL) {
        job->job.run = run_tell;
        job->job.done = done_tell;
        job->driver = driver;
        job->life = driver->trainer_life;
        job->msg.kind = kind;
    }
    return job;
}

static void tell(dp_driver *driver, tell_job *job)
{
    if (!dp_driver_post(driver, &job->job, DP_SAVER_URGENT)) {
        close_job_fds(job);
        dp_free(job);
    }
}

static void on_started(void *context)
{
    dp_driver *driver = context;
    tell_job *job = tell_job_new(driver, DP_TRAINER_OPEN);
    if (job == NULL) {
        return;
    }
    memcpy(job->msg.member, driver->self.bytes, sizeof job->msg.member);
    job->wait.command = DP_TRAINER_OPEN;
    const dp_view manifest = dp_view_of(driver->facts.manifest, driver->facts.manifest_bytes);
    job->status = dp_memfd_make("dpnode-manifest", manifest, &job->fds[0]);
    job->n_fds = job->status == DP_OK;
    job->roots[0] = driver->manifest.tokenizer;
    job->roots[1] = driver->manifest.data;
    job->n_roots = 2;
    tell(driver, job);
}

static void start_apply(dp_driver *driver, const dp_action *action)
{
    tell_job *job = tell_job_new(driver, DP_TRAINER_APPLY);
    if (job == NULL) {
        return;
    }
    job->msg.round = action->u.apply.round;
    job->msg.tokens = action->u.apply.tokens;
    job->msg.alpha = action->u.apply.alpha;
    job->msg.settle = (dp_settle)action->u.apply.settle;
    job->msg.clip = action->u.apply.clip;
    job->msg.lambda = action->u.apply.lambda;
    job->msg.n_items = action->u.apply.n_items;
    for (uint32_t i = 0; i < action->u.apply.n_items; i++) {
        job->msg.q[i] = action->u.apply.items[i].q;
        job->roots[i] = action->u.apply.items[i].root;
    }
    job->n_roots = action->u.apply.n_items;
    job->wait = (dp_driver_wait){.command = DP_TRAINER_APPLY, .round = action->u.apply.round};
    tell(driver, job);
}

static void start_restore(dp_driver *driver, const dp_action *action)
{
    tell_job *job = tell_job_new(driver, DP_TRAINER_RESTORE);
    if (job == NULL) {
        return;
    }
    job->msg.restore = action->u.restore.frozen ? DP_RESTORE_FROZEN : DP_RESTORE_PENDING;
    job->msg.round = action->u.restore.round;
    job->msg.settle = (dp_settle)action->u.restore.settle;
    job->msg.clip = action->u.restore.clip;
    job->msg.lambda = action->u.restore.lambda;
    job->roots[0] = action->u.restore.a_root;
    job->roots[1] = action->u.restore.blob_root;
    job->n_roots = dp_hash_is_zero(&action->u.restore.blob_root) ? 1 : 2;
    tell(driver, job);
}

static void start_check(dp_driver *driver, const dp_hash *root)
{
    tell_job *job = tell_job_new(driver, DP_TRAINER_CHECK);
    if (job == NULL) {
        return;
    }
    job->msg.id = driver->next_check++;
    driver->checks[job->msg.id % DP_DRIVER_CHECKS_MAX] = *root;
    job->roots[0] = *root;
    job->n_roots = 1;
    tell(driver, job);
}

static void start_mix(dp_driver *driver, const dp_action *action, dp_trainer_kind kind)
{
    tell_job *job = tell_job_new(driver, kind);
    if (job == NULL) {
        return;
    }
    memcpy(job->msg.exchange, action->u.mix.exchange, sizeof job->msg.exchange);
    memcpy(job->wait.exchange, action->u.mix.exchange, sizeof job->wait.exchange);
    job->wait.command = kind;
    if (kind == DP_TRAINER_MIX) {
        job->msg.weight_own = action->u.mix.weight_own;
        job->msg.weight_other = action->u.mix.weight_other;
        job->roots[0] = action->u.mix.own_root;
        job->roots[1] = action->u.mix.other_root;
        job->n_roots = 2;
    }
    tell(driver, job);
}

static void start_plain(dp_driver *driver, const dp_trainer_msg *msg, dp_trainer_kind wait, const dp_hash *root)
{
    tell_job *job = tell_job_new(driver, msg->kind);
    if (job == NULL) {
        return;
    }
    job->msg = *msg;
    job->wait = (dp_driver_wait){.command = wait, .round = msg->round};
    if (root != NULL) {
        job->roots[0] = *root;
        job->n_roots = 1;
    }
    tell(driver, job);
}

void dp_driver_command_trainer(dp_driver *driver, const dp_action *action)
{
    dp_trainer_msg msg = {0};
    if (action->type == DP_DO_TRAINER_INIT) {
        msg.kind = DP_TRAINER_INIT;
        start_plain(driver, &msg, DP_TRAINER_INIT, NULL);
    } else if (action->type == DP_DO_TRAINER_LOAD) {
        msg.kind = DP_TRAINER_LOAD;
        msg.round = action->u.load.round;
        start_plain(driver, &msg, DP_TRAINER_LOAD, &action->u.load.root);
    } else if (action->type == DP_DO_TRAINER_RESTORE) {
        start_restore(driver, action);
    } else if (action->type == DP_DO_TRAIN || action->type == DP_DO_TRAIN_STOP) {
        msg.kind = DP_TRAINER_TRAIN;
        msg.round = action->type == DP_DO_TRAIN ? action->u.train.round : 0;
        msg.tokens = action->type == DP_DO_TRAIN ? action->u.train.tokens : 0;
        start_plain(driver, &msg, (dp_trainer_kind)0, NULL);
    } else if (action->type == DP_DO_PUBLISH) {
        msg.kind = DP_TRAINER_PUBLISH;
        msg.round = action->u.publish.round;
        msg.dense = action->u.publish.dense;
        start_plain(driver, &msg, DP_TRAINER_PUBLISH, NULL);
    } else if (action->type == DP_DO_CHECK) {
        start_check(driver, &action->u.object.root);
    } else if (action->type == DP_DO_APPLY) {
        start_apply(driver, action);
    } else {
        start_mix(driver, action, action->type == DP_DO_FREEZE ? DP_TRAINER_FREEZE : DP_TRAINER_MIX);
    }
}

/* ---- answers ---- */

/* Two vectors out of the trainer become durable objects: a publication, or a frozen displacement. */
typedef struct keep_job {
    dp_saver_job job;
    dp_driver *driver;
    dp_trainer_msg msg;
    dp_run_id run;
    int fds[2];
    dp_hash roots[2];
    uint64_t sizes[2];
    dp_hash before[2]; /* staged by the vectors before these */
    dp_status status;
} keep_job;

static dp_pin_kind stage_kind(const dp_trainer_msg *msg)
{
    return msg->kind == DP_TRAINER_PUBLISHED ? DP_PIN_PENDING : DP_PIN_EXCHANGE;
}

static dp_status keep_memfd(keep_job *self, dp_store *store, uint32_t i)
{
    dp_view bytes;
    const dp_pin pin = {.run = self->run, .kind = stage_kind(&self->msg), .round = DP_STAGED_ROUND};
    DP_TRY(dp_memfd_map(self->fds[i], DP_OBJECT_BYTES_MAX, &bytes));
    self->sizes[i] = bytes.size;
    const dp_status status = dp_object_put(store, bytes, &pin, &self->roots[i]);
    dp_memfd_unmap(bytes);
    return status;
}

static void run_keep(dp_saver_job *job, dp_store *store)
{
    keep_job *self = (keep_job *)job;
    for (uint32_t i = 0; i < 2 && self->status == DP_OK; i++) {
        self->status = keep_memfd(self, store, i);
    }
    close(self->fds[0]);
    close(self->fds[1]);
    /* By now a row names what was staged before, or nothing ever will. */
    const dp_pin pin = {.run = self->run, .kind = stage_kind(&self->msg), .round = DP_STAGED_ROUND};
    for (uint32_t i = 0; i < 2 && self->status == DP_OK; i++) {
        const bool again = dp_hash_equal(&self->before[i], &self->roots[0]) || dp_hash_equal(&self->before[i], &self->roots[1]);
        if (!again && !dp_hash_is_zero(&self->before[i])) {
            DP_IGNORE(dp_object_unpin(store, &self->before[i], &pin)); /* Then it goes at the next start. */
        }
    }
}

static uint32_t loss_micro(double loss)
{
    return loss > 0 && loss < 4000 ? (uint32_t)(loss * 1e6) : 0;
}

static void done_keep(dp_saver_job *job)
{
    keep_job *self = (keep_job *)job;
    dp_driver *driver = self->driver;
    dp_event event = {0};
    if (self->status != DP_OK) {
        dp_diary_add(driver->daemon->diary, DP_LOG_ERROR, "store.failed", self->msg.round, NULL,
                     "an update could not be stored: %s", dp_status_text(self->status));
        if (!driver->closing) {
            dp_trainer_kill(driver->trainer); /* Its vectors have moved on; only a restart brings them in step. */
        }
    } else if (self->msg.kind == DP_TRAINER_PUBLISHED) {
        memcpy(driver->staged[0], self->roots, sizeof self->roots);
        event.type = DP_EV_PUBLISHED;
        event.u.published.round = self->msg.round;
        event.u.published.root = self->roots[0];
        event.u.published.bytes = self->sizes[0];
        event.u.published.a_root = self->roots[1];
        event.u.published.a_bytes = self->sizes[1];
        event.u.published.energy = self->msg.energy;
        event.u.published.steps = self->msg.steps;
        event.u.published.tokens = self->msg.tokens;
        event.u.published.carried = self->msg.carried;
        event.u.published.loss_micro = loss_micro(self->msg.loss);
        dp_driver_feed(driver, &event);
    } else {
        memcpy(driver->staged[1], self->roots, sizeof self->roots);
        event.type = DP_EV_FROZEN;
        memcpy(event.u.frozen.exchange, self->msg.exchange, sizeof event.u.frozen.exchange);
        event.u.frozen.root = self->roots[0];
        event.u.frozen.bytes = self->sizes[0];
        event.u.frozen.f_root = self->roots[1];
        event.u.frozen.f_bytes = self->sizes[1];
        event.u.frozen.steps = self->msg.steps;
        event.u.frozen.tokens = self->msg.tokens;
        dp_driver_feed(driver, &event);
    }
    dp_free(self);
    dp_driver_job_done(driver);
}

static void keep(dp_driver *driver, const dp_trainer_msg *msg, const int *fds)
{
    keep_job *job = dp_alloc(1, sizeof *job);
    if (job == NULL) {
        close(fds[0]);
        close(fds[1]);
        dp_trainer_kill(driver->trainer);
        return;
    }
    job->job.run = run_keep;
    job->job.done = done_keep;
    job->driver = driver;
    job->msg = *msg;
    job->run = driver->facts.run;
    memcpy(job->before, driver->staged[msg->kind == DP_TRAINER_PUBLISHED ? 0 : 1], sizeof job->before);
    job->fds[0] = fds[0];
    job->fds[1] = fds[1];
    if (!dp_driver_post(driver, &job->job, DP_SAVER_URGENT)) {
        close(fds[0]);
        close(fds[1]);
        dp_free(job);
        dp_trainer_kill(driver->trainer); /* Nobody would ever hear of this publication. */
    }
}

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
    dp_driver_feed(driver, &event);
}

static void progress(dp_driver *driver, const dp_trainer_msg *msg)
{
    const uint64_t now = uv_now(driver->daemon->loop);
    const bool goes_on = driver->step_ms != 0 && msg->steps > driver->step_count && msg->tokens > driver->step_tokens;
    const uint64_t elapsed = now - driver->step_ms;
    uint64_t step_us = 0;
    if (goes_on && elapsed > 0) {
        step_us = elapsed * 1000 / (msg->steps - driver->step_count);
        driver->tokens_per_s = (double)(msg->tokens - driver->step_tokens) * 1000.0 / (double)elapsed;
    }
    driver->step_ms = now;
    driver->step_count = msg->steps;
    driver->step_tokens = msg->tokens;
    driver->loss = msg->loss;
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
    driver->elements = msg->elements;
    dp_diary_add(driver->daemon->diary, DP_LOG_INFO, "trainer.up", 0, NULL, "the trainer holds %llu parameters",
                 (unsigned long long)msg->elements);
    dp_driver_feed(driver, &(dp_event){.type = DP_EV_TRAINER_UP});
}

static void checked(dp_driver *driver, const dp_trainer_msg *msg)
{
    dp_event event = {.type = DP_EV_CHECKED};
    event.u.checked.root = driver->checks[msg->id % DP_DRIVER_CHECKS_MAX];
    event.u.checked.ok = msg->ok;
    event.u.checked.energy = msg->energy;
    dp_driver_feed(driver, &event);
}

static void mixed(dp_driver *driver, const dp_trainer_msg *msg)
{
    driver->moved = msg->moved; /* The note of the finished exchange follows. */
    dp_diary_add(driver->daemon->diary, DP_LOG_INFO, "gossip.moved", 0, NULL, "weight x displacement moved here: %.9g",
                 msg->moved);
    dp_event event = {.type = DP_EV_MIXED};
    memcpy(event.u.mixed.exchange, msg->exchange, sizeof event.u.mixed.exchange);
    dp_driver_feed(driver, &event);
}

/* Which command an answer closes; 0: none. */
static dp_trainer_kind command_of(dp_trainer_kind answer)
{
    switch ((int)answer) {
    case DP_TRAINER_OPENED:
        return DP_TRAINER_OPEN;
    case DP_TRAINER_PUBLISHED:
        return DP_TRAINER_PUBLISH;
    case DP_TRAINER_APPLIED:
        return DP_TRAINER_APPLY;
    case DP_TRAINER_FROZEN:
        return DP_TRAINER_FREEZE;
    case DP_TRAINER_MIXED:
        return DP_TRAINER_MIX;
    case DP_TRAINER_EVALUATED:
        return DP_TRAINER_EVAL;
    case DP_TRAINER_SAMPLED:
        return DP_TRAINER_SAMPLE;
    default:
        return (dp_trainer_kind)0;
    }
}

static uint32_t fds_of(dp_trainer_kind answer)
{
    switch ((int)answer) {
    case DP_TRAINER_PUBLISHED:
    case DP_TRAINER_FROZEN:
        return 2;
    case DP_TRAINER_APPLIED:
        return 1;
    default:
        return 0;
    }
}

static bool belongs(dp_driver *driver, const dp_trainer_msg *msg, dp_driver_wait *wait)
{
    if (msg->kind == DP_TRAINER_READY_AT) {
        return answered(driver, DP_TRAINER_INIT, wait) || answered(driver, DP_TRAINER_LOAD, wait);
    }
    const dp_trainer_kind command = command_of(msg->kind);
    return command == 0 || answered(driver, command, wait);
}

static void failed(dp_driver *driver, const dp_trainer_msg *msg)
{
    if (driver->n_waits > 0) { /* Answers come in order, so it is the oldest that failed. */
        const dp_driver_wait wait = driver->waits[0];
        driver->n_waits--;
        memmove(driver->waits, driver->waits + 1, driver->n_waits * sizeof wait);
        report_failure(driver, &wait, msg->text);
    } else {
        dp_diary_add(driver->daemon->diary, DP_LOG_WARN, "trainer.failed", 0, NULL, "%.200s", msg->text);
    }
}

static void on_answer(void *context, const dp_trainer_msg *msg, const int *fds, uint32_t n_fds)
{
    dp_driver *driver = context;
    dp_driver_wait wait = {0};
    if (n_fds != fds_of(msg->kind) || !belongs(driver, msg, &wait)) {
        for (uint32_t i = 0; i < n_fds; i++) {
            close(fds[i]);
        }
        dp_diary_add(driver->daemon->diary, DP_LOG_WARN, "trainer.odd", 0, NULL, "an unexpected %s from the trainer",
                     dp_trainer_kind_name(msg->kind));
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
        keep(driver, msg, fds);
        break;
    case DP_TRAINER_CHECKED:
        checked(driver, msg);
        break;
    case DP_TRAINER_APPLIED:
        if (take_state(driver, msg, fds[0])) {
            applied(driver, msg);
        } else {
            dp_trainer_kill(driver->trainer); /* What it made cannot be had; a fresh process is the way out. */
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
    default:
        break;
    }
}

/* ---- life and death ---- */

static void drop_waits(dp_driver *driver, const char *why)
{
    while (driver->n_waits > 0) {
        const dp_driver_wait wait = driver->waits[--driver->n_waits];
        if (wait.answer != NULL) {
            wait.answer(wait.context, NULL, why);
        }
    }
}

static void on_down(void *context, const char *cause)
{
    dp_driver *driver = context;
    driver->trainer_open = false;
    driver->trainer_life++;
    driver->step_ms = 0;
    driver->tokens_per_s = 0;
    drop_waits(driver, "the trainer died");
    dp_diary_add(driver->daemon->diary, DP_LOG_WARN, "trainer.down", 0, NULL, "the trainer %s; it is started again", cause);
    dp_driver_feed(driver, &(dp_event){.type = DP_EV_TRAINER_DOWN});
}

void dp_driver_trainer_open(dp_driver *driver)
{
    if (driver->trainer != NULL) {
        return;
    }
    dp_why why = {""};
    const dp_trainer_config config = {
        .loop = driver->daemon->loop,
        .program = driver->daemon->config->worker,
        .threads = driver->daemon->config->threads,
        .nice = driver->daemon->config->nice,
        .hooks = {driver, on_started, on_down, on_answer},
    };
    driver->trainer_wanted = true;
    dp_status status = dp_trainer_open(&driver->trainer, &config);
    if (status == DP_OK) {
        status = dp_trainer_start(driver->trainer, &why);
    }
    if (status != DP_OK) {
        dp_diary_add(driver->daemon->diary, DP_LOG_ERROR, "trainer.missing", 0, NULL, "%s", why.text);
    }
}

void dp_driver_trainer_close(dp_driver *driver)
{
    drop_waits(driver, "the daemon is ending");
    dp_trainer_close(driver->trainer);
    driver->trainer = NULL;
}

dp_status dp_driver_ask(dp_driver *driver, const dp_trainer_msg *question, dp_driver_answer *answer, void *context)
{
    if (!driver->trainer_open) {
        answer(context, NULL, "the trainer has not loaded the model");
        return DP_CLOSED;
    }
    if (driver->n_waits >= DP_DRIVER_QUESTIONS_MAX) { /* People must not crowd out the node's own commands. */
        answer(context, NULL, "too many questions are waiting");
        return DP_AGAIN;
    }
    const dp_driver_wait wait = {.command = question->kind,
                                 .since_ms = uv_now(driver->daemon->loop),
                                 .answer = answer,
                                 .context = context};
    expect(driver, &wait);
    const dp_status status = dp_trainer_tell(driver->trainer, question, NULL, 0);
    if (status == DP_NOMEM) { /* CLOSED: the hook of its death has answered. */
        driver->n_waits--;
        answer(context, NULL, dp_status_text(status));
    }
    return status;
}
