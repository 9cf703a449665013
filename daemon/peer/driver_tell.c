/* Commands to the trainer. Objects go to it as sealed memfds that are filled on the saver thread;
 * commands keep their order because all of them pass through the same class of jobs. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "daemon/peer/driver_inside.h"
#include "store/object.h"

typedef struct tell_job {
    dp_saver_job job;
    dp_driver *driver;
    uint32_t life;
    dp_trainer_msg msg;
    dp_driver_wait wait; /* command 0: no answer comes */
    dp_status status;
    bool told; /* that it waits */
    uint32_t n_fds;
    int fds[DP_TRAINER_FDS_MAX];
    uint32_t n_roots;
    dp_hash roots[DP_TRAINER_FDS_MAX];
} tell_job;

/* Chunk by chunk: a shard may be as large as memory, and lies in the memfd already. */
static dp_status fill_memfd(dp_store *store, const dp_hash *root, const dp_object_info *info,
                            int fd)
{
    const size_t most = dp_object_chunk_bytes(info->size);
    uint8_t *const chunk = dp_alloc(1, most);
    dp_status status = chunk == NULL ? DP_NOMEM : DP_OK;
    for (uint32_t i = 0; i < info->n_chunks && status == DP_OK; i++) {
        size_t size = 0;
        status = dp_object_read_chunk(store, root, i, chunk, most, &size);
        if (status == DP_OK) {
            status = dp_memfd_add(fd, dp_view_of(chunk, size));
        }
    }
    dp_free(chunk);
    return status == DP_OK ? dp_memfd_seal(fd) : status;
}

static dp_status object_memfd(dp_store *store, const dp_hash *root, int *fd)
{
    dp_object_info info;
    int made = -1;
    DP_TRY(dp_object_stat(store, root, &info));
    if (!info.complete) {
        return DP_AGAIN;
    }
    DP_TRY(dp_memfd_start("dpnode-object", &made));
    const dp_status status = fill_memfd(store, root, &info, made);
    if (status != DP_OK) {
        close(made);
        return status;
    }
    *fd = made;
    return DP_OK;
}

/* Of its roots. The manifest of OPEN came from memory. */
static uint32_t n_read(const tell_job *self)
{
    return self->n_fds - (self->msg.kind == DP_TRAINER_OPEN ? 1 : 0);
}

/* Between two shards votes and records have their turn; nothing else is told before the trainer is
 * open. */
static void run_tell(dp_saver_job *job, dp_store *store)
{
    tell_job *self = (tell_job *)job;
    while (self->status == DP_OK && n_read(self) < self->n_roots) {
        self->status = object_memfd(store, &self->roots[n_read(self)], &self->fds[self->n_fds]);
        self->n_fds += self->status == DP_OK;
        job->again = self->status == DP_OK && self->msg.kind == DP_TRAINER_OPEN &&
                     n_read(self) < self->n_roots;
        if (job->again) {
            return;
        }
    }
}

static void close_job_fds(const tell_job *self)
{
    for (uint32_t i = 0; i < self->n_fds; i++) {
        close(self->fds[i]);
    }
}

static void check_failed(dp_driver *driver, const tell_job *self)
{
    const uint32_t at = self->msg.id % DP_DRIVER_CHECKS_MAX;
    dp_event event = {.type = DP_EV_CHECKED};
    event.u.checked.root = self->roots[0];
    event.u.checked.first = driver->checks[at].range.first;
    event.u.checked.end = driver->checks[at].range.end;
    dp_driver_feed(driver, &event);
}

/* This machine has no descriptor or no memory to hand the objects over with: nothing is wrong with
 * them. */
static bool lacks(const tell_job *self)
{
    return self->status == DP_NOMEM || self->status == DP_NOSPACE;
}

static void note_lack(const dp_driver *driver, const tell_job *self)
{
    dp_diary_add(driver->daemon->diary, DP_LOG_WARN, "trainer.lack", self->wait.round, NULL,
                 "%s waits: this daemon lacks memory or descriptors (%s)",
                 dp_trainer_kind_name(self->msg.kind), dp_status_text(self->status));
}

/* It is tried again with the next tick, and those behind it with it: commands keep their order. */
static void hold(dp_driver *driver, tell_job *self)
{
    if (lacks(self) && !self->told && dp_list_empty(&driver->held)) {
        self->told = true;
        note_lack(driver, self);
    }
    dp_list_push_back(&driver->held, &self->job.link);
    driver->n_held++;
    if (driver->n_held > DP_DRIVER_HELD_MAX) {
        dp_trainer_replace(driver->trainer, "cannot be given its commands");
    }
}

/* What the trainer should be given cannot be read, or not any more: whoever needs it wants it
 * again. A part of the data is fetched anew while the trainer is started again. */
static void object_is_lost(tell_job *self)
{
    dp_driver *driver = self->driver;
    const uint32_t index = n_read(self);
    if (self->msg.kind == DP_TRAINER_OPEN) {
        char name[48] = "the tokenizer";
        if (index > 0) {
            snprintf(name, sizeof name, "shard %u of %u", index, self->n_roots - 1);
        }
        dp_diary_add(driver->daemon->diary, DP_LOG_ERROR, "data.damaged", 0, NULL,
                     "%s of the run's data is damaged on this disk (%s); it is fetched from peers, "
                     "and nothing is trained here until it is whole",
                     name, dp_status_text(self->status));
        dp_event event = {.type = DP_EV_OBJECT_LOST};
        event.u.object.root = self->roots[index];
        dp_driver_feed(driver, &event);
    } else {
        dp_driver_lost(driver, &self->roots[index], self->status);
    }
}

static bool is_spoiled(dp_status status)
{
    return status == DP_BADHASH || status == DP_AGAIN || status == DP_NOTFOUND;
}

static void done_tell(dp_saver_job *job)
{
    tell_job *self = (tell_job *)job;
    dp_driver *driver = self->driver;
    if (driver->closing || self->life != driver->trainer_life) {
        close_job_fds(self);
    } else if (lacks(self) || !dp_list_empty(&driver->held)) {
        close_job_fds(self);
        hold(driver, self);
        dp_driver_job_done(driver);
        return;
    } else if (self->status != DP_OK) {
        close_job_fds(self);
        if (is_spoiled(self->status)) {
            object_is_lost(self);
        }
        if (self->msg.kind == DP_TRAINER_CHECK) {
            check_failed(driver, self);
        } else if (self->msg.kind == DP_TRAINER_JUDGE) {
            dp_driver_command_failed(driver, &self->wait, dp_status_text(self->status));
        } else if (self->wait.answer == NULL && self->status == DP_IO) {
            /* Told as failed, a checkpoint would count as broken for good. A fresh process is given
             * all of it anew. */
            dp_trainer_replace(driver->trainer, "cannot be given its commands");
        } else {
            dp_driver_command_failed(driver, &self->wait, dp_status_text(self->status));
        }
    } else {
        if (self->wait.command != 0) {
            self->wait.since_ms = uv_now(driver->daemon->loop);
            dp_driver_expect(driver, &self->wait);
        }
        /* A dead trainer is reported by its hook, and all that waits with it. */
        DP_IGNORE(dp_trainer_tell(driver->trainer, &self->msg, self->fds, self->n_fds));
    }
    dp_free(self);
    dp_driver_job_done(driver);
}

static void free_job(tell_job *self)
{
    close_job_fds(self);
    dp_free(self);
}

static void prepare(tell_job *job)
{
    const dp_facts *facts = &job->driver->facts;

    job->status = DP_OK;
    job->n_fds = 0;
    if (job->msg.kind == DP_TRAINER_OPEN) {
        job->status = dp_memfd_make(
            "dpnode-manifest", dp_view_of(facts->manifest, facts->manifest_bytes), &job->fds[0]);
        job->n_fds = job->status == DP_OK;
    }
}

void dp_driver_tell_again(dp_driver *driver)
{
    while (!dp_list_empty(&driver->held)) {
        tell_job *job = DP_LIST_ITEM(driver->held.next, tell_job, job.link);
        dp_list_remove(&job->job.link);
        driver->n_held--;
        prepare(job);
        if (!dp_driver_post(driver, &job->job, DP_SAVER_URGENT)) {
            free_job(job);
            dp_trainer_replace(driver->trainer, "cannot be given its commands");
        }
    }
}

static void free_all(dp_list *jobs, uint32_t *n)
{
    while (!dp_list_empty(jobs)) {
        tell_job *job = DP_LIST_ITEM(jobs->next, tell_job, job.link);
        dp_list_remove(&job->job.link);
        free_job(job);
    }
    *n = 0;
}

void dp_driver_tell_nothing(dp_driver *driver)
{
    dp_driver_slices_drop(driver);
    free_all(&driver->behind, &driver->n_behind);
    free_all(&driver->held, &driver->n_held);
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

static void post(dp_driver *driver, tell_job *job)
{
    prepare(job);
    if (!dp_driver_post(driver, &job->job, DP_SAVER_URGENT)) {
        free_job(job); /* Without it the trainer would be out of step for good. */
        dp_trainer_replace(driver->trainer, "cannot be given its commands");
    }
}

/* A CHECK is answered out of order anyway, and others' updates should not wait for this record. */
static bool waits_for_slices(const dp_driver *driver, const tell_job *job)
{
    return driver->slices != NULL && job->msg.kind != DP_TRAINER_ADD &&
           job->msg.kind != DP_TRAINER_CHECK;
}

static void tell(dp_driver *driver, tell_job *job)
{
    if (!waits_for_slices(driver, job)) {
        post(driver, job);
    } else if (driver->n_behind < DP_DRIVER_HELD_MAX) {
        dp_list_push_back(&driver->behind, &job->job.link);
        driver->n_behind++;
    } else {
        free_job(job);
        dp_trainer_replace(driver->trainer, "cannot be given its commands");
    }
}

static tell_job *first_behind(dp_driver *driver)
{
    tell_job *const job = DP_LIST_ITEM(driver->behind.next, tell_job, job.link);
    dp_list_remove(&job->job.link);
    driver->n_behind--;
    return job;
}

void dp_driver_tell_behind(dp_driver *driver)
{
    while (!dp_list_empty(&driver->behind)) {
        post(driver, first_behind(driver)); /* Where that kills the trainer, none is left. */
    }
}

void dp_driver_drop_apply(dp_driver *driver)
{
    if (!dp_list_empty(&driver->behind)) {
        free_job(first_behind(driver));
    }
}

void dp_driver_open_model(dp_driver *driver)
{
    tell_job *job = tell_job_new(driver, DP_TRAINER_OPEN);
    if (job == NULL) {
        return;
    }
    memcpy(job->msg.member, driver->self.bytes, sizeof job->msg.member);
    randombytes_buf(&job->msg.seed, sizeof job->msg.seed);
    job->wait.command = DP_TRAINER_OPEN;
    job->roots[0] = driver->manifest.tokenizer;
    job->n_roots = 1;
    for (uint32_t i = 0; i < driver->manifest.n_shards; i++) {
        job->roots[job->n_roots++] = driver->manifest.shards[i].root;
    }
    tell(driver, job);
}

static void give_items(tell_job *job, const dp_apply_item *items, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        job->msg.q[i] = items[i].q;
        job->msg.shares[i] = (dp_part_range){.first = items[i].first, .end = items[i].end};
        job->roots[i] = items[i].root;
    }
    job->msg.n_items = n;
    job->n_roots = n;
}

void dp_driver_tell_slice(dp_driver *driver, uint64_t round, uint32_t at,
                          const dp_apply_item *items, uint32_t n)
{
    tell_job *job = tell_job_new(driver, DP_TRAINER_ADD);
    if (job == NULL) { /* No memory: without it the sum would be another. */
        dp_trainer_replace(driver->trainer, "cannot be given its commands");
        return;
    }
    job->msg.round = round;
    job->msg.at = at;
    give_items(job, items, n);
    job->wait = (dp_driver_wait){.command = DP_TRAINER_ADD, .round = round, .part = at + n};
    tell(driver, job);
}

static void start_reduce(dp_driver *driver, const dp_action *action)
{
    tell_job *job = tell_job_new(driver, DP_TRAINER_REDUCE);
    if (job == NULL) {
        return;
    }
    job->msg.round = action->u.reduce.round;
    job->msg.part = action->u.reduce.part;
    job->msg.range = (dp_part_range){.first = action->u.reduce.first, .end = action->u.reduce.end};
    give_items(job, action->u.reduce.items, action->u.reduce.n_items);
    dp_diary_add(driver->daemon->diary, DP_LOG_DEBUG, "part.adding", job->msg.round, NULL,
                 "part %u: adding up what %u have contributed", job->msg.part, job->msg.n_items);
    job->wait = (dp_driver_wait){.command = DP_TRAINER_REDUCE,
                                 .round = action->u.reduce.round,
                                 .part = action->u.reduce.part};
    tell(driver, job);
}

static void start_apply(dp_driver *driver, const dp_action *action)
{
    const dp_apply_item *const items = action->u.apply.items;
    const uint32_t n = action->u.apply.n_items;
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
    job->msg.contributors = action->u.apply.contributors;
    job->msg.cuts = action->u.apply.cuts;
    job->msg.taken = action->u.apply.taken;
    job->wait = (dp_driver_wait){.command = DP_TRAINER_APPLY, .round = action->u.apply.round};
    /* Results of parts cover the vector only together, and are no more than parts. */
    if (job->msg.cuts.n > 0 || !dp_driver_slices_needed(driver, items, n)) {
        give_items(job, items, n);
    } else if (dp_driver_slices_begin(driver, job->msg.round, items, n)) {
        job->msg.at = n;
    } else {
        free_job(job);
        dp_trainer_replace(driver->trainer, "cannot be given its commands");
        return;
    }
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
    job->msg.steps = action->u.restore.steps;
    job->msg.tokens = action->u.restore.tokens;
    job->msg.cuts = action->u.restore.cuts;
    job->msg.taken = action->u.restore.taken;
    job->roots[0] = action->u.restore.a_root;
    job->roots[1] = action->u.restore.blob_root;
    job->n_roots = dp_hash_is_zero(&action->u.restore.blob_root) ? 1 : 2;
    tell(driver, job);
}

static void start_check(dp_driver *driver, const dp_action *action)
{
    const dp_part_range range = {.first = action->u.check.first, .end = action->u.check.end};
    tell_job *job = tell_job_new(driver, DP_TRAINER_CHECK);
    if (job == NULL) {
        return;
    }
    job->msg.id = driver->next_check++;
    driver->checks[job->msg.id % DP_DRIVER_CHECKS_MAX].root = action->u.check.root;
    driver->checks[job->msg.id % DP_DRIVER_CHECKS_MAX].range = range;
    if (range.first != 0 || range.end != DP_PART_WHOLE) {
        job->msg.range = range;
    }
    job->msg.keep = action->u.check.keep;
    job->roots[0] = action->u.check.root;
    job->n_roots = 1;
    tell(driver, job);
}

static void start_judge(dp_driver *driver, const dp_action *action)
{
    driver->n_judges++;
    tell_job *const job = driver->trainer_open && driver->n_judges <= DP_DRIVER_JUDGES_MAX
                              ? tell_job_new(driver, DP_TRAINER_JUDGE)
                              : NULL;
    if (job == NULL) {
        dp_driver_judged(driver, &action->u.judge.root, NULL);
        return;
    }
    job->msg.id = driver->next_judge++;
    job->msg.keep = action->u.judge.keep;
    job->msg.scale = action->u.judge.scale;
    job->msg.tokens = action->u.judge.tokens;
    job->msg.seed = action->u.judge.seed;
    memcpy(job->msg.member, action->u.judge.peer.bytes, sizeof job->msg.member);
    job->msg.reach.own = action->u.judge.own;
    job->msg.own_count = action->u.judge.own_count;
    job->msg.n_ranges = action->u.judge.n_ranges;
    memcpy(job->msg.ranges, action->u.judge.ranges, sizeof job->msg.ranges);
    job->roots[0] = action->u.judge.root;
    job->n_roots = 1;
    job->wait = (dp_driver_wait){
        .command = DP_TRAINER_JUDGE, .id = job->msg.id, .root = action->u.judge.root};
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
        job->msg.lambda = action->u.mix.lambda;
        job->roots[0] = action->u.mix.own_root;
        job->roots[1] = action->u.mix.other_root;
        job->n_roots = 2;
    }
    tell(driver, job);
}

static void start_plain(dp_driver *driver, const dp_trainer_msg *msg, dp_trainer_kind wait,
                        const dp_hash *root)
{
    tell_job *job = tell_job_new(driver, msg->kind);
    if (job == NULL) {
        return;
    }
    job->msg = *msg;
    job->wait = (dp_driver_wait){.command = wait, .round = msg->round, .cuts = msg->cuts};
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
        driver->training = action->type == DP_DO_TRAIN;
        driver->step_ms = driver->training ? driver->step_ms : 0; /* A pause is no slow step. */
        msg.kind = DP_TRAINER_TRAIN;
        msg.round = action->type == DP_DO_TRAIN ? action->u.train.round : 0;
        if (action->type == DP_DO_TRAIN) {
            msg.tokens = action->u.train.tokens;
            msg.cuts = action->u.train.cuts;
            msg.reach = action->u.train.reach;
            msg.n_ranges = action->u.train.n_ranges;
            memcpy(msg.ranges, action->u.train.ranges, sizeof msg.ranges);
        }
        start_plain(driver, &msg, (dp_trainer_kind)0, NULL);
    } else if (action->type == DP_DO_PUBLISH) {
        msg.kind = DP_TRAINER_PUBLISH;
        msg.round = action->u.publish.round;
        msg.dense = action->u.publish.dense;
        msg.keep = action->u.publish.keep;
        msg.cuts = action->u.publish.cuts;
        start_plain(driver, &msg, DP_TRAINER_PUBLISH, NULL);
    } else if (action->type == DP_DO_CHECK) {
        start_check(driver, action);
    } else if (action->type == DP_DO_JUDGE) {
        start_judge(driver, action);
    } else if (action->type == DP_DO_APPLY) {
        start_apply(driver, action);
    } else if (action->type == DP_DO_REDUCE) {
        start_reduce(driver, action);
    } else {
        start_mix(driver, action,
                  action->type == DP_DO_FREEZE ? DP_TRAINER_FREEZE : DP_TRAINER_MIX);
    }
}
