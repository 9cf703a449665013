/* Sends commands to the trainer. Objects are passed as sealed memfds that the store thread fills;
 * commands keep their order because all of them are jobs of one class, and none is read before
 * those posted earlier. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "daemon/peer/driver_inside.h"
#include "daemon/peer/trainer_commands_inside.h"

/* Of its roots. The manifest of OPEN came from memory. */
static uint32_t n_read(const command_job *self)
{
    return self->n_fds - (self->msg.kind == DP_TRAINER_OPEN ? 1 : 0);
}

static dp_status add_chunk(void *context, dp_view chunk)
{
    return dp_memfd_add(*(const int *)context, chunk);
}

/* Reads a piece of the next object. A shard may be as large as memory, and the memfd already holds
 * it. */
static dp_status read_piece(command_job *self, dp_store *store)
{
    int *const fd = &self->fds[self->n_fds];
    if (!self->reads) {
        DP_TRY(dp_memfd_start("dpnode-object", fd));
        self->reading = (dp_pieces_reading){
            .root = self->roots[n_read(self)], .take = add_chunk, .context = fd};
        self->reads = true;
    }
    dp_status status = dp_pieces_read(&self->reading, store);
    if (status == DP_OK && self->reading.more) {
        return DP_OK;
    }
    self->reads = false;
    status = status == DP_OK ? dp_memfd_seal(*fd) : status;
    if (status != DP_OK) {
        close(*fd);
        return status;
    }
    self->n_fds++;
    return DP_OK;
}

/* Shards and states may take longer to read than the supervisor waits for a sign of life. Updates
 * are smaller, and the node may drop them as soon as their command is posted. */
static bool lets_others_in(const command_job *self)
{
    return self->msg.kind == DP_TRAINER_OPEN || self->msg.kind == DP_TRAINER_LOAD;
}

/* Between two pieces of a shard or state, votes and records are written. */
static void run_tell(dp_store_thread_job *job, dp_store *store)
{
    command_job *self = (command_job *)job;
    if (self->number != self->driver->n_commands_read) {
        job->again = true; /* An earlier one is being read. */
        return;
    }
    while (self->status == DP_OK && n_read(self) < self->n_roots && !job->again) {
        self->status = read_piece(self, store);
        job->again = self->status == DP_OK && lets_others_in(self) && n_read(self) < self->n_roots;
    }
    self->driver->n_commands_read += !job->again;
}

static void close_job_fds(const command_job *self)
{
    for (uint32_t i = 0; i < self->n_fds; i++) {
        close(self->fds[i]);
    }
}

static void check_failed(dp_driver *driver, const command_job *self)
{
    const uint32_t at = self->msg.id % DP_DRIVER_CHECKS_MAX;
    dp_event event = {.type = DP_EV_CHECKED};
    event.u.checked.root = self->roots[0];
    event.u.checked.first = driver->checks[at].range.first;
    event.u.checked.end = driver->checks[at].range.end;
    dp_driver_feed(driver, &event);
}

/* This machine has no descriptor or no memory for passing the objects; the objects are intact. */
static bool lacks(const command_job *self)
{
    return self->status == DP_NOMEM || self->status == DP_NOSPACE;
}

static void note_lack(const dp_driver *driver, const command_job *self)
{
    dp_event_log_add(driver->daemon->event_log, DP_LOG_WARN, "trainer.lack", self->wait.round, NULL,
                     "%s waits: this daemon lacks memory or file descriptors (%s)",
                     dp_trainer_kind_name(self->msg.kind), dp_status_text(self->status));
}

/* Its files are closed: the next tick tries it again, and the commands after it, in order. */
static void hold(dp_driver *driver, command_job *self)
{
    self->n_fds = 0;
    if (lacks(self) && !self->told && dp_list_empty(&driver->held)) {
        self->told = true;
        note_lack(driver, self);
    }
    dp_list_push_back(&driver->held, &self->job.link);
    driver->n_held++;
    if (driver->n_held > DP_DRIVER_HELD_MAX) {
        dp_trainer_process_replace(driver->trainer, "does not take its commands");
    }
}

/* Handles an object for the trainer that cannot be read: the part of the node that needs it
 * requests it again. A part of the data is fetched again while the trainer restarts. */
static void object_is_lost(command_job *self)
{
    dp_driver *driver = self->driver;
    const uint32_t index = n_read(self);
    if (self->msg.kind == DP_TRAINER_OPEN) {
        char name[48];
        snprintf(name, sizeof name, "the %s",
                 dp_manifest_external(&driver->manifest) ? "table of tensors" : "tokenizer");
        const bool base = dp_manifest_adapts(&driver->manifest) && index + 1 == self->n_roots;
        if (base) {
            snprintf(name, sizeof name, "the base below the adapters");
        } else if (index > 0) {
            snprintf(name, sizeof name, "shard %u of %u", index, driver->manifest.n_shards);
        }
        dp_event_log_add(
            driver->daemon->event_log, DP_LOG_ERROR, "data.damaged", 0, NULL,
            "%s of the run's data is damaged on this disk (%s); it is fetched from peers; "
            "this node does not train until then",
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

/* False: there is no memory for it; its files are closed in either case. */
static bool tell(dp_driver *driver, command_job *self)
{
    if (self->wait.command != 0) {
        self->wait.since_ms = uv_now(driver->daemon->loop);
        dp_driver_expect(driver, &self->wait);
    }
    self->status = dp_trainer_process_tell(driver->trainer, &self->msg, self->fds, self->n_fds);
    if (self->status != DP_NOMEM) {
        return true; /* The hook of a dead trainer also reports all waiting commands. */
    }
    driver->n_waits -= self->wait.command != 0;
    return false;
}

static void done_tell(dp_store_thread_job *job)
{
    command_job *self = (command_job *)job;
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
        } else if (self->msg.kind != DP_TRAINER_JUDGE && self->wait.answer == NULL &&
                   self->status == DP_IO) {
            /* A failure would mark a checkpoint as broken forever. A new process gets all of it
             * again. */
            dp_trainer_process_replace(driver->trainer, "does not take its commands");
        } else {
            dp_driver_command_failed(driver, &self->wait, dp_status_text(self->status));
        }
    } else if (!tell(driver, self)) {
        hold(driver, self);
        dp_driver_job_done(driver);
        return;
    }
    dp_free(self);
    dp_driver_job_done(driver);
}

void dp_trainer_command_free(command_job *self)
{
    close_job_fds(self);
    dp_free(self);
}

static void prepare(command_job *job)
{
    const dp_run_identity *facts = &job->driver->facts;

    job->status = DP_OK;
    job->n_fds = 0;
    if (job->msg.kind == DP_TRAINER_OPEN) {
        job->status = dp_memfd_make(
            "dpnode-manifest", dp_view_of(facts->manifest, facts->manifest_bytes), &job->fds[0]);
        job->n_fds = job->status == DP_OK;
    }
}

/* False: the store thread takes no more jobs. */
static bool post_job(dp_driver *driver, command_job *job)
{
    prepare(job);
    job->number = driver->n_commands;
    if (!dp_driver_post(driver, &job->job, DP_STORE_THREAD_URGENT)) {
        return false;
    }
    driver->n_commands++;
    return true;
}

void dp_driver_commands_retry(dp_driver *driver)
{
    while (!dp_list_empty(&driver->held)) {
        command_job *job = DP_LIST_ITEM(driver->held.next, command_job, job.link);
        dp_list_remove(&job->job.link);
        driver->n_held--;
        if (!post_job(driver, job)) {
            dp_trainer_command_free(job);
            dp_trainer_process_replace(driver->trainer, "does not take its commands");
        }
    }
}

static void free_all(dp_list *jobs, uint32_t *n)
{
    while (!dp_list_empty(jobs)) {
        command_job *job = DP_LIST_ITEM(jobs->next, command_job, job.link);
        dp_list_remove(&job->job.link);
        dp_trainer_command_free(job);
    }
    *n = 0;
}

void dp_driver_commands_drop(dp_driver *driver)
{
    dp_driver_slices_drop(driver);
    free_all(&driver->behind, &driver->n_behind);
    free_all(&driver->held, &driver->n_held);
}

command_job *dp_trainer_command_new(dp_driver *driver, dp_trainer_kind kind)
{
    command_job *job = driver->trainer == NULL ? NULL : dp_alloc(1, sizeof *job);
    if (job != NULL) {
        job->job.run = run_tell;
        job->job.done = done_tell;
        job->driver = driver;
        job->life = driver->trainer_life;
        job->msg.kind = kind;
    }
    return job;
}

static void post(dp_driver *driver, command_job *job)
{
    if (!post_job(driver, job)) {
        /* Without it the trainer would never agree with the node again. */
        dp_trainer_command_free(job);
        dp_trainer_process_replace(driver->trainer, "does not take its commands");
    }
}

/* CHECKs are answered out of order anyway, and others' updates should not wait for this record. */
static bool waits_for_slices(const dp_driver *driver, const command_job *job)
{
    return driver->slices != NULL && job->msg.kind != DP_TRAINER_ADD &&
           job->msg.kind != DP_TRAINER_CHECK;
}

void dp_trainer_command_post(dp_driver *driver, command_job *job)
{
    if (!waits_for_slices(driver, job)) {
        post(driver, job);
    } else if (driver->n_behind < DP_DRIVER_HELD_MAX) {
        dp_list_push_back(&driver->behind, &job->job.link);
        driver->n_behind++;
    } else {
        dp_trainer_command_free(job);
        dp_trainer_process_replace(driver->trainer, "does not take its commands");
    }
}

static command_job *first_behind(dp_driver *driver)
{
    command_job *const job = DP_LIST_ITEM(driver->behind.next, command_job, job.link);
    dp_list_remove(&job->job.link);
    driver->n_behind--;
    return job;
}

void dp_driver_commands_release(dp_driver *driver)
{
    while (!dp_list_empty(&driver->behind)) {
        post(driver, first_behind(driver)); /* If this kills the trainer, no command is left. */
    }
}

void dp_driver_drop_apply(dp_driver *driver)
{
    if (!dp_list_empty(&driver->behind)) {
        dp_trainer_command_free(first_behind(driver));
    }
}
