/* Stores vectors of the trainer as durable objects before the protocol core hears of them: a
 * publication, a frozen displacement, or the sum of a part. On a full disk, or at the quota of the
 * store, they wait here for room while the trainer continues. Sums do not wait: another node sums
 * that part. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "daemon/peer/driver_inside.h"
#include "store/pieces.h"

/* A publication, its vector and its parts; a frozen displacement and its vector; or a sum. */
typedef struct dp_driver_taken {
    dp_store_thread_job job;
    dp_driver *driver;
    uint32_t life; /* life of the trainer that made them */
    dp_trainer_msg msg;
    dp_run_id run;
    uint32_t n;
    int fds[DP_TRAINER_FDS_MAX];
    dp_pieces vectors[DP_TRAINER_FDS_MAX];
    uint32_t at; /* index of the one being stored */
    dp_hash roots[DP_TRAINER_FDS_MAX];
    uint64_t sizes[DP_TRAINER_FDS_MAX];
    dp_hash before[DP_TRAINER_FDS_MAX]; /* staged by the vectors before these */
    dp_status status;
    char full[DP_DISK_TEXT_MAX]; /* with DP_NOSPACE */
    bool told;                   /* that it waits was logged */
} taken;

static dp_pin pin_of(const taken *self)
{
    dp_pin pin = {.run = self->run, .kind = DP_PIN_BLOB};

    /* A sum gets no other pin: the core learns of it at once and keeps or drops it. */
    if (self->msg.kind != DP_TRAINER_REDUCED) {
        pin.kind = self->msg.kind == DP_TRAINER_PUBLISHED ? DP_PIN_PENDING : DP_PIN_EXCHANGE;
        pin.round = DP_STAGED_ROUND;
    }
    return pin;
}

static void close_vector(dp_pieces *vector)
{
    dp_pieces_close(vector);
    dp_memfd_unmap(vector->bytes);
    *vector = (dp_pieces){0};
}

static dp_status next(taken *self)
{
    close_vector(&self->vectors[self->at]);
    self->at++;
    return self->at < self->n ? DP_AGAIN : DP_OK;
}

/* Maps the trainer's vector and stores a piece of it. DP_AGAIN: there is more. */
static dp_status take_piece(taken *self, dp_store *store)
{
    dp_pieces *vector = &self->vectors[self->at];
    if (vector->bytes.data == NULL) {
        DP_TRY(dp_memfd_map(self->fds[self->at], DP_OBJECT_BYTES_MAX, &vector->bytes));
        vector->pin = pin_of(self);
    }
    DP_TRY(dp_pieces_put(vector, store));
    self->roots[self->at] = vector->root;
    self->sizes[self->at] = vector->bytes.size;
    return next(self);
}

static bool is_new(const taken *self, const dp_hash *root)
{
    for (uint32_t i = 0; i < self->n; i++) {
        if (dp_hash_equal(&self->roots[i], root)) {
            return true;
        }
    }
    return false;
}

/* Either a row names the objects staged before by now, or no row ever will. */
static void let_go_before(const taken *self, dp_store *store)
{
    const dp_pin pin = pin_of(self);

    for (uint32_t i = 0; i < DP_TRAINER_FDS_MAX; i++) {
        if (!dp_hash_is_zero(&self->before[i]) && !is_new(self, &self->before[i])) {
            DP_IGNORE(dp_object_unpin(store, &self->before[i],
                                      &pin)); /* If this fails, the next start drops it. */
        }
    }
}

static void run_take(dp_store_thread_job *job, dp_store *store)
{
    taken *self = (taken *)job;
    self->status = take_piece(self, store);
    if (self->status == DP_AGAIN) {
        job->again = true;
        return;
    }
    if (self->status == DP_NOSPACE) {
        dp_store_full_text(store, self->full);
    }
    if (self->status != DP_OK) { /* Another try begins with this vector, and has its hashes. */
        dp_pieces_drop(&self->vectors[self->at], store);
    }
    if (self->status == DP_OK) {
        let_go_before(self, store);
    }
}

static uint32_t loss_micro(double loss)
{
    return loss > 0 && loss < 4000 ? (uint32_t)(loss * 1e6) : 0;
}

static void close_fds(const int *fds, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        close(fds[i]);
    }
}

static void free_taken(taken *self)
{
    if (self->at < self->n) {
        close_vector(&self->vectors[self->at]);
    }
    close_fds(self->fds, self->n);
    dp_free(self);
}

/* In staged and in waiting. */
static uint32_t place_of(const dp_trainer_msg *msg)
{
    return msg->kind == DP_TRAINER_PUBLISHED ? 0 : 1;
}

/* The disk or the store is full, or memory is short: the tick tries again. False: another one
 * already waits, which a correct trainer never causes. */
static bool wait_for_room(taken *self)
{
    dp_driver *driver = self->driver;
    taken **slot = &driver->waiting[place_of(&self->msg)];
    if ((self->status != DP_NOSPACE && self->status != DP_NOMEM) || *slot != NULL) {
        return false;
    }
    const bool full = self->status == DP_NOSPACE;
    const char *const text = full ? self->full : "memory is short";
    snprintf(driver->no_room, sizeof driver->no_room, "%s", text);
    if (!self->told) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_ERROR,
                         full ? "store.full" : "store.lack", self->msg.round, NULL,
                         "%s. An update waits for room, and counts in no round until then", text);
    }
    self->told = true;
    *slot = self;
    return true;
}

static void tell_taken(dp_driver *driver, const taken *self);

void dp_driver_reduce_failed(dp_driver *driver, uint64_t round, uint32_t part, dp_status status)
{
    dp_event event = {.type = DP_EV_REDUCED};
    event.u.reduced.round = round;
    event.u.reduced.part = part;
    event.u.reduced.status = status;
    dp_driver_feed(driver, &event);
}

static void done_take(dp_store_thread_job *job)
{
    taken *self = (taken *)job;
    dp_driver *driver = self->driver;
    const bool sum = self->msg.kind == DP_TRAINER_REDUCED;
    if (self->status == DP_OK) {
        if (!sum) {
            driver->no_room[0] = '\0';
            memcpy(driver->staged[place_of(&self->msg)], self->roots, sizeof self->roots);
        }
        /* The core would take the work of a trainer that has ended for that of the next one; a sum
         * is the same from both. */
        if (sum || self->life == driver->trainer_life) {
            tell_taken(driver, self);
        }
        free_taken(self);
    } else if (driver->closing || self->life != driver->trainer_life) {
        free_taken(self); /* The trainer that made them has ended, so they are useless. */
    } else if (sum) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_WARN, "store.failed", self->msg.round,
                         NULL, "the sum of part %u could not be stored: %s", self->msg.part,
                         dp_status_text(self->status));
        dp_driver_reduce_failed(driver, self->msg.round, self->msg.part, self->status);
        free_taken(self);
    } else if (!wait_for_room(self)) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_ERROR, "store.failed", self->msg.round,
                         NULL, "an update could not be stored: %s", dp_status_text(self->status));
        free_taken(self);
        /* Its vectors have already changed; only a restart makes both sides agree. */
        dp_trainer_process_replace(driver->trainer, "returned a result that could not be stored");
    }
    dp_driver_job_done(driver);
}

/* kB/s; 0: unknown. */
static uint32_t uplink(const dp_driver *driver)
{
    dp_transport_stats stats;

    dp_transport_look(driver->transport, &stats);
    const uint64_t rate = stats.uplink > 0 && stats.uplink < 1000 ? 1 : stats.uplink / 1000;
    return rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX;
}

static void tell_taken(dp_driver *driver, const taken *self)
{
    dp_event event = {0};
    if (self->msg.kind == DP_TRAINER_REDUCED) {
        event.type = DP_EV_REDUCED;
        event.u.reduced.round = self->msg.round;
        event.u.reduced.part = self->msg.part;
        event.u.reduced.root = self->roots[0];
        event.u.reduced.bytes = self->sizes[0];
        driver->part_error = self->msg.norm > 0 ? self->msg.error / self->msg.norm : 0;
        dp_event_log_add(driver->daemon->event_log, DP_LOG_DEBUG, "part.told", self->msg.round,
                         NULL, "part %u: its sum is stored", self->msg.part);
        dp_driver_feed(driver, &event);
    } else if (self->msg.kind == DP_TRAINER_PUBLISHED) {
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
        event.u.published.reach = self->msg.reach;
        event.u.published.loss_micro = loss_micro(self->msg.loss);
        event.u.published.rate = uplink(driver);
        event.u.published.parts.n = self->n - 2;
        for (uint32_t i = 2; i < self->n; i++) {
            event.u.published.parts.refs[i - 2] =
                (dp_part_ref){.root = self->roots[i], .bytes = self->sizes[i]};
        }
        driver->update_round = self->msg.round;
        driver->update_norm = self->msg.norm;
        driver->update_error = self->msg.error;
        dp_driver_feed(driver, &event);
        dp_driver_renew_trainer(driver);
    } else {
        event.type = DP_EV_FROZEN;
        memcpy(event.u.frozen.exchange, self->msg.exchange, sizeof event.u.frozen.exchange);
        event.u.frozen.root = self->roots[0];
        event.u.frozen.bytes = self->sizes[0];
        event.u.frozen.f_root = self->roots[1];
        event.u.frozen.f_bytes = self->sizes[1];
        event.u.frozen.steps = self->msg.steps;
        event.u.frozen.tokens = self->msg.tokens;
        event.u.frozen.reach = self->msg.reach;
        event.u.frozen.energy = self->msg.energy;
        dp_driver_feed(driver, &event);
    }
}

static bool post(taken *self)
{
    self->status = DP_OK;
    return dp_driver_post(self->driver, &self->job, DP_STORE_THREAD_URGENT);
}

/* The core would never learn of it. */
static void no_room(dp_driver *driver, const dp_trainer_msg *msg, const char *cause)
{
    if (msg->kind == DP_TRAINER_REDUCED) {
        dp_driver_reduce_failed(driver, msg->round, msg->part, DP_NOMEM);
    } else {
        dp_trainer_process_replace(driver->trainer, cause);
    }
}

void dp_driver_publication_store(dp_driver *driver, const dp_trainer_msg *msg, const int *fds,
                                 uint32_t n_fds)
{
    taken *self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        close_fds(fds, n_fds);
        no_room(driver, msg, "returned a result that does not fit in memory");
        return;
    }
    self->job.run = run_take;
    self->job.done = done_take;
    self->driver = driver;
    self->life = driver->trainer_life;
    self->msg = *msg;
    self->run = driver->facts.run;
    if (msg->kind != DP_TRAINER_REDUCED) {
        memcpy(self->before, driver->staged[place_of(msg)], sizeof self->before);
    }
    self->n = n_fds;
    memcpy(self->fds, fds, n_fds * sizeof *fds);
    if (!post(self)) {
        free_taken(self);
        no_room(driver, msg, "returned a result that does not fit on the disk");
    }
}

void dp_driver_publication_retry(dp_driver *driver)
{
    for (size_t i = 0; i < sizeof driver->waiting / sizeof driver->waiting[0]; i++) {
        taken *self = driver->waiting[i];
        driver->waiting[i] = NULL;
        if (self != NULL && !post(self)) {
            driver->waiting[i] = self;
        }
    }
}

void dp_driver_publication_drop(dp_driver *driver)
{
    driver->no_room[0] = '\0';
    for (size_t i = 0; i < sizeof driver->waiting / sizeof driver->waiting[0]; i++) {
        if (driver->waiting[i] != NULL) {
            free_taken(driver->waiting[i]);
        }
        driver->waiting[i] = NULL;
    }
}
