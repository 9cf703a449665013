/* Durable rows of the protocol core, pins of objects, checkpoints and the address book, on the
 * store thread. Rows are opaque here. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/peer/driver_inside.h"
#include "gossip/vote/commit_row.h"
#include "store/chain.h"
#include "store/peers.h"
#include "store/pieces.h"
#include "store/rows.h"
#include "store/vote.h"

enum { ID_BYTES = 16, COLLECT_EVERY = 32 };

/* ---- rows ---- */

typedef struct row_job {
    dp_store_thread_job job;
    dp_driver *driver;
    dp_run_id run;
    uint32_t op;
    dp_store_kind kind;
    uint64_t slot;
    uint64_t round;
    uint8_t exchange[ID_BYTES];
    dp_hash keep[DP_ROW_KEEPS];
    dp_view row;
    dp_view cert;
    dp_status status;
    uint8_t bytes[];
} row_job;

static dp_status run_named(const row_job *self, dp_store *store, const char *name)
{
    dp_store_row row = {.bytes = self->row};
    if (row.bytes.size == 0) {
        return dp_store_row_delete(store, &self->run, name);
    }
    snprintf(row.name, sizeof row.name, "%s", name);
    memcpy(row.keep, self->keep, sizeof row.keep);
    return dp_store_row_put(store, &self->run, &row);
}

static dp_status run_exchange(const row_job *self, dp_store *store)
{
    char hex[2 * ID_BYTES + 1];
    char name[DP_ROW_NAME_MAX];
    dp_hex(dp_view_of(self->exchange, ID_BYTES), hex);
    snprintf(name, sizeof name, DP_DRIVER_EXCHANGE "%s", hex);
    return run_named(self, store, name);
}

/* The store also guards the vote: it never goes back. */
static dp_status run_vote(const row_job *self, dp_store *store)
{
    dp_commit_row row;
    DP_TRY(dp_commit_row_read(self->row, &row));
    dp_vote_row vote = {
        .slot = row.slot, .promised = row.promised, .accepted = row.accepted, .record = row.record};
    memcpy(vote.place, row.fork.bytes, DP_HASH_BYTES);
    memcpy(vote.place + DP_HASH_BYTES, row.prev.bytes, DP_HASH_BYTES);
    return dp_vote_save(store, &self->run, &vote);
}

static void run_row(dp_store_thread_job *job, dp_store *store)
{
    row_job *self = (row_job *)job;
    const dp_chain_record entry = {.slot = self->slot,
                                   .hash = dp_record_hash(self->row),
                                   .record = self->row,
                                   .cert = self->cert};
    uint64_t dropped = 0; /* The node gives the number. */
    switch (self->kind) {
    case DP_STORE_VOTE:
        self->status = run_vote(self, store);
        break;
    case DP_STORE_DECIDED:
        self->status = dp_chain_append(store, &self->run, &entry);
        break;
    case DP_STORE_FORK:
        self->status = dp_chain_fork(store, &self->run, &entry, self->round, &dropped);
        break;
    case DP_STORE_PENDING:
        self->status = run_named(self, store, DP_DRIVER_PENDING);
        break;
    case DP_STORE_EXCHANGE:
        self->status = run_exchange(self, store);
        break;
    case DP_STORE_PROOF:
        self->status = run_named(self, store, DP_DRIVER_PROOF);
        break;
    }
}

/* Logs the density of the run's updates, and the error of this node's. */
static void add_density(const dp_driver *driver, dp_event_log_round *round)
{
    round->keep = dp_node_keep(driver->node, round->round);
    for (uint32_t i = 0; i < round->n_peers; i++) {
        if (dp_peer_equal(&round->peers[i].peer, &driver->self) &&
            driver->update_round + round->peers[i].age == round->round) {
            round->update_norm = driver->update_norm;
            round->update_error = driver->update_error;
        }
    }
}

static void note_density(const dp_driver *driver, const dp_event_log_round *round)
{
    const dp_event_log_round *before =
        dp_event_log_round_find(driver->daemon->event_log, round->round - 1);

    if (before == NULL || before->keep == 0 || round->keep == 0 || before->keep == round->keep) {
        return;
    }
    dp_event_log_add(driver->daemon->event_log, DP_LOG_INFO, "round.density", round->round, NULL,
                     "updates now keep one element of %u, before of %u: lines were %s", round->keep,
                     before->keep, round->keep > before->keep ? "slow" : "free");
}

/* The round of a record that is durable now, for people; false: it is not of a round. */
static bool read_round(dp_driver *driver, const row_job *self, dp_event_log_round *round)
{
    static dp_record record; /* Loop thread only; large for a stack. */
    if (self->status != DP_OK || self->kind != DP_STORE_DECIDED || driver->closing ||
        dp_record_decode(&record, self->row) != DP_OK || record.kind != DP_RECORD_ROUND) {
        return false;
    }
    dp_event_log_round_of_record(&record, &driver->self, round);
    round->time_ms = dp_unix_ms();
    round->live = true;
    add_density(driver, round);
    note_density(driver, round);
    return true;
}

static void done_row(dp_store_thread_job *job)
{
    row_job *self = (row_job *)job;
    dp_driver *driver = self->driver;
    dp_event_log_round round;
    const bool decided = read_round(driver, self, &round);
    if (self->status != DP_OK) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_ERROR, "store.failed", 0, NULL,
                         "a row of kind %d could not be written: %s", (int)self->kind,
                         dp_status_text(self->status));
    }
    if (self->status == DP_OK && self->kind == DP_STORE_PENDING && self->row.size > 0) {
        dp_event_log_phase(driver->daemon->event_log, driver->published_round, DP_PHASE_READY);
    }
    dp_event event = {.type = DP_EV_STORED};
    event.u.stored.op = self->op;
    event.u.stored.status = self->status;
    dp_driver_feed(driver, &event);
    if (decided) { /* The node has told by now how its phases went. */
        dp_event_log_round_add(driver->daemon->event_log, &round);
    }
    if ((self->status == DP_IO || self->status == DP_CORRUPT) &&
        !driver->daemon->ending) { /* SAFETY R5: never continue to write after a failed sync. */
        dp_daemon_end(driver->daemon, 75, "the store failed; to check it: dpnode down; dpnode up");
    }
    dp_free(self);
    dp_driver_job_done(driver);
}

/* The node waits for an answer to every row; without one it would never write this kind again. */
static void refuse_row(dp_driver *driver, uint32_t op)
{
    dp_event event = {.type = DP_EV_STORED};
    event.u.stored.op = op;
    event.u.stored.status = DP_NOMEM;
    dp_driver_feed(driver, &event);
}

void dp_driver_store(dp_driver *driver, const dp_action *action)
{
    const dp_view row = action->u.store.bytes;
    const dp_view cert = action->u.store.cert;
    row_job *job = dp_alloc(1, sizeof *job + row.size + cert.size);
    if (job == NULL) {
        refuse_row(driver, action->u.store.op);
        return;
    }
    job->job.run = run_row;
    job->job.done = done_row;
    job->driver = driver;
    job->run = driver->facts.run;
    job->op = action->u.store.op;
    job->kind = action->u.store.kind;
    job->slot = action->u.store.slot;
    job->round = action->u.store.round;
    memcpy(job->exchange, action->u.store.exchange, ID_BYTES);
    memcpy(job->keep, action->u.store.keep, sizeof job->keep);
    if (row.size > 0) {
        memcpy(job->bytes, row.data, row.size);
    }
    if (cert.size > 0) {
        memcpy(job->bytes + row.size, cert.data, cert.size);
    }
    job->row = dp_view_of(job->bytes, row.size);
    job->cert = dp_view_of(job->bytes + row.size, cert.size);
    if (!dp_driver_post(driver, &job->job, DP_STORE_THREAD_URGENT)) {
        dp_free(job);
        refuse_row(driver, action->u.store.op);
    }
}

/* ---- pins ---- */

typedef struct pin_job {
    dp_store_thread_job job;
    dp_driver *driver;
    dp_hash root;
    dp_pin pin;
    bool drop;
    bool collect;
} pin_job;

static void run_pin(dp_store_thread_job *job, dp_store *store)
{
    const pin_job *self = (const pin_job *)job;
    if (self->drop) {
        /* If this fails, the object only stays longer. */
        DP_IGNORE(dp_object_unpin(store, &self->root, &self->pin));
    } else {
        DP_IGNORE(dp_object_pin(store, &self->root,
                                &self->pin)); /* NOTFOUND: already dropped; peers have it. */
    }
    if (self->collect) {
        DP_IGNORE(dp_object_collect(store, NULL));
    }
}

static void done_pin(dp_store_thread_job *job)
{
    pin_job *self = (pin_job *)job;
    dp_driver *driver = self->driver;
    dp_free(self);
    dp_driver_job_done(driver);
}

void dp_driver_keep(dp_driver *driver, const dp_action *action)
{
    static const dp_pin_kind kinds[] = {
        [DP_USE_BLOB] = DP_PIN_BLOB,         [DP_USE_STATE] = DP_PIN_STATE,
        [DP_USE_DATA] = DP_PIN_DATA,         [DP_USE_PENDING] = DP_PIN_PENDING,
        [DP_USE_EXCHANGE] = DP_PIN_EXCHANGE,
    };
    pin_job *job = dp_alloc(1, sizeof *job);
    if (job == NULL) {
        return;
    }
    job->job.run = run_pin;
    job->job.done = done_pin;
    job->driver = driver;
    job->root = action->u.keep.root;
    job->pin = (dp_pin){.run = driver->facts.run, .kind = kinds[action->u.keep.use]};
    job->drop = action->type == DP_DO_OBJECT_DROP;
    job->collect = job->drop && ++driver->n_drops % COLLECT_EVERY == 0;
    if (!dp_driver_post(driver, &job->job, DP_STORE_THREAD_URGENT)) {
        dp_free(job);
    }
}

/* ---- checkpoints ---- */

typedef struct save_job {
    dp_store_thread_job job;
    dp_driver *driver;
    dp_run_id run;
    dp_ckpt ckpt;
    dp_view state; /* taken over from the driver's snapshot; none: ckpt.object names an object */
    uint64_t bytes;
    uint64_t saved_ms; /* of the driver, before */
    dp_pieces pieces;
    dp_status status;
} save_job;

/* False: a piece of it was written, and the next is to follow. */
static bool put_state(save_job *self, dp_store *store)
{
    self->status = dp_pieces_put(&self->pieces, store);
    if (self->status == DP_AGAIN) {
        return false;
    }
    if (self->status == DP_OK) {
        self->ckpt.object = self->pieces.root;
        self->status = dp_ckpt_adopt(store, &self->run, &self->ckpt, &self->pieces.pin);
    } else {
        dp_pieces_drop(&self->pieces, store);
    }
    dp_pieces_close(&self->pieces);
    return true;
}

/* A state that was fetched is an object already: it only has to be named. */
static dp_status name_state(save_job *self, dp_store *store)
{
    const dp_pin none = {.run = self->run, .kind = DP_PIN_STATE, .round = self->ckpt.round};
    dp_object_info info;

    DP_TRY(dp_object_stat(store, &self->ckpt.object, &info));
    self->bytes = info.size;
    return dp_ckpt_adopt(store, &self->run, &self->ckpt, &none);
}

static void run_save(dp_store_thread_job *job, dp_store *store)
{
    save_job *self = (save_job *)job;
    if (self->state.size == 0) {
        self->status = name_state(self, store);
    } else if (!put_state(self, store)) {
        job->again = true;
        return;
    }
    if (self->status == DP_OK) { /* States that are no checkpoint any more, and nobody fetches. */
        DP_IGNORE(dp_ckpt_end_leases(store, &self->run, uv_hrtime() / 1000000000U + 1));
        DP_IGNORE(dp_object_collect(store, NULL));
    }
}

/* It is on the disk now, or was before, whole. */
static void saved(const save_job *self)
{
    dp_driver *driver = self->driver;
    dp_event event = {.type = DP_EV_SAVED};
    driver->checkpoint_round = self->ckpt.round;
    driver->has_checkpoint = true;
    dp_event_log_add(driver->daemon->event_log, DP_LOG_DEBUG, "ckpt.saved", self->ckpt.round, NULL,
                     "checkpoint of round %llu, %llu bytes", (unsigned long long)self->ckpt.round,
                     (unsigned long long)self->bytes);
    event.u.saved.round = self->ckpt.round;
    event.u.saved.tensor_root = self->ckpt.object;
    event.u.saved.tensor_bytes = self->bytes;
    dp_driver_feed(driver, &event);
}

/* The node asks for the checkpoint again: unless the trainer has passed a newer state, this one can
 * still be had. */
static void give_back(save_job *self)
{
    dp_driver *driver = self->driver;
    driver->saved_ms = self->saved_ms;
    if (driver->snapshot.size == 0 && driver->snapshot_round == self->ckpt.round) {
        driver->snapshot = self->state;
        self->state = (dp_view){0};
    }
}

static void done_save(dp_store_thread_job *job)
{
    save_job *self = (save_job *)job;
    dp_driver *driver = self->driver;
    if (self->status == DP_OK || self->status == DP_EXISTS) {
        saved(self);
    } else if (self->state.size > 0) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_ERROR, "ckpt.failed", self->ckpt.round,
                         NULL, "no checkpoint of round %llu: %s; training continues",
                         (unsigned long long)self->ckpt.round, dp_status_text(self->status));
        give_back(self);
    }
    dp_memfd_unmap(self->state);
    dp_free(self);
    dp_driver_job_done(driver);
}

/* May a checkpoint of size bytes be written now within the budget per day? */
static bool within_budget(const dp_driver *driver, uint64_t size)
{
    const uint64_t per_day = driver->daemon->config->write_per_day;
    if (per_day == 0 || driver->saved_ms == 0) {
        return true;
    }
    const unsigned __int128 wait_ms = (unsigned __int128)size * 86400000U / per_day;
    return uv_now(driver->daemon->loop) - driver->saved_ms >= wait_ms;
}

void dp_driver_save(dp_driver *driver, const dp_action *action)
{
    const bool here = driver->snapshot.size > 0 && driver->snapshot_round == action->u.save.round &&
                      dp_hash_equal(&driver->snapshot_root, &action->u.save.tensor_root);
    dp_event_log_round *row =
        dp_event_log_round_find(driver->daemon->event_log, action->u.save.round);
    if (row != NULL && dp_hash_is_zero(&row->state_root)) {
        row->state_root = action->u.save.state_root;
    }
    if (here && !(action->u.save.must || within_budget(driver, driver->snapshot.size))) {
        return;
    }
    save_job *job = dp_alloc(1, sizeof *job);
    if (job == NULL) {
        return;
    }
    job->job.run = run_save;
    job->job.done = done_save;
    job->driver = driver;
    job->run = driver->facts.run;
    job->ckpt = (dp_ckpt){.round = action->u.save.round,
                          .slot = action->u.save.slot,
                          .state_root = action->u.save.state_root,
                          .object = action->u.save.tensor_root,
                          .created_ms = dp_unix_ms()};
    job->state = here ? driver->snapshot : (dp_view){0};
    job->bytes = job->state.size;
    job->saved_ms = driver->saved_ms;
    job->pieces =
        (dp_pieces){.bytes = job->state,
                    .pin = {.run = job->run, .kind = DP_PIN_STATE, .round = action->u.save.round}};
    if (!dp_driver_post(driver, &job->job, DP_STORE_THREAD_BULK)) {
        dp_free(job);
        return;
    }
    if (here) {
        driver->snapshot = (dp_view){0};
        driver->saved_ms = uv_now(driver->daemon->loop);
    }
}

/* ---- peers ---- */

typedef struct peers_job {
    dp_store_thread_job job;
    dp_driver *driver;
    uint32_t count;
    dp_peer_row rows[];
} peers_job;

static void run_peers(dp_store_thread_job *job, dp_store *store)
{
    const peers_job *self = (const peers_job *)job;
    for (uint32_t i = 0; i < self->count; i++) {
        DP_IGNORE(dp_peer_save(
            store, &self->rows[i])); /* An address book: lost addresses are learned again. */
    }
}

static void done_peers(dp_store_thread_job *job)
{
    peers_job *self = (peers_job *)job;
    dp_driver *driver = self->driver;
    dp_free(self);
    dp_driver_job_done(driver);
}

static void peer_row(const dp_member_view *member, dp_peer_row *row)
{
    size_t at = 0;
    *row = (dp_peer_row){.last_ok_ms = dp_unix_ms()};
    memcpy(row->id.bytes, member->peer.bytes, sizeof row->id.bytes);
    for (uint32_t i = 0; i < member->n_addrs; i++) {
        char text[DP_ADDR_TEXT_MAX];
        dp_addr_text(&member->addrs[i], text);
        const int size = snprintf(row->addresses + at, sizeof row->addresses - at, "%s%s",
                                  i > 0 ? " " : "", text);
        at += size > 0 ? (size_t)size : 0;
    }
}

void dp_driver_remember_peers(dp_driver *driver)
{
    enum { PEERS_MAX = 64 };
    peers_job *job = dp_alloc(1, sizeof *job + PEERS_MAX * sizeof(dp_peer_row));
    dp_member_view member;
    if (job == NULL) {
        return;
    }
    for (uint32_t i = 1; job->count < PEERS_MAX && dp_node_member(driver->node, i, &member); i++) {
        if (member.linked && member.n_addrs > 0) {
            peer_row(&member, &job->rows[job->count++]);
        }
    }
    job->job.run = run_peers;
    job->job.done = done_peers;
    job->driver = driver;
    if (job->count == 0 || !dp_driver_post(driver, &job->job, DP_STORE_THREAD_BULK)) {
        dp_free(job);
    }
}
