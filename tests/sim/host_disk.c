/* A host's disk: executes the writes of the node, reports their ends, and passes the contents back
 * at a start. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/sim/host.h"
#include "tests/sim/oracle.h"
#include "tests/sim/real.h"
#include "tests/sim/sim.h"

/* ---- writing ---- */

static uint64_t disk_time(dp_host *host)
{
    return (50 + dp_rng_below(&host->disk_rng, host->sim->plan.disk_us_max)) * host->disk_slow;
}

void dp_host_hasten_disk(dp_host *host)
{
    dp_disk_hasten(&host->disk, host->sim->now_us, host->disk_slow);
    host->disk_slow = 1;
    for (const dp_disk_write *write = host->disk.first; write != NULL; write = write->next) {
        dp_sim_push(host->sim, &(dp_occasion){.at_us = write->done_us,
                                              .kind = DP_ON_DISK,
                                              .node = host->index,
                                              .boot = host->boot});
    }
}

void dp_host_write(dp_host *host, const dp_disk_write *write)
{
    const uint64_t done = dp_disk_begin(&host->disk, write, host->sim->now_us, disk_time(host));

    dp_sim_push(
        host->sim,
        &(dp_occasion){.at_us = done, .kind = DP_ON_DISK, .node = host->index, .boot = host->boot});
}

static uint8_t *copy_of(dp_view a, dp_view b)
{
    uint8_t *copy = malloc(a.size + b.size + 1);

    dp_assert(copy != NULL);
    if (a.size != 0) {
        memcpy(copy, a.data, a.size);
    }
    if (b.size != 0) {
        memcpy(copy + a.size, b.data, b.size);
    }
    return copy;
}

void dp_host_store(dp_host *host, const dp_action *action)
{
    dp_disk_write write = {.kind = DP_WRITE_ROW,
                           .then = DP_THEN_STORED,
                           .op = action->u.store.op,
                           .row_kind = action->u.store.kind};
    const dp_view bytes = action->u.store.bytes;
    const dp_view none = {0};

    dp_oracle_store(host, action);
    write.row.slot = action->u.store.slot;
    memcpy(write.row.exchange, action->u.store.exchange, sizeof write.row.exchange);
    for (uint32_t i = 0; i < 3; i++) {
        write.row.keep[i] = DP_SHELF_NONE;
        if (!dp_hash_is_zero(&action->u.store.keep[i])) {
            write.row.keep[i] = dp_shelf_find(&host->sim->shelf, &action->u.store.keep[i]);
            if (!dp_disk_holds(&host->disk, write.row.keep[i]) &&
                !dp_rot_is_lost(host, write.row.keep[i])) {
                dp_sim_fail(host->sim, "D1", host->index,
                            "a row was stored before an object that it needs was durable");
            }
        }
    }
    if (action->u.store.kind == DP_STORE_DECIDED || action->u.store.kind == DP_STORE_FORK) {
        write.round = action->u.store.round;
        write.record = (dp_disk_record){.data = copy_of(bytes, action->u.store.cert),
                                        .record_size = (uint32_t)bytes.size,
                                        .cert_size = (uint32_t)action->u.store.cert.size};
    } else {
        write.row.data = copy_of(bytes, none);
        write.row.size = (uint32_t)bytes.size;
    }
    dp_host_write(host, &write);
}

static void begin_object(dp_host *host, const dp_action *action)
{
    const uint32_t object = dp_shelf_find(&host->sim->shelf, &action->u.object.root);

    if (object == DP_SHELF_NONE) {
        return;
    }
    dp_disk_use(&host->disk, object, (uint32_t)action->u.object.use, true);
    const uint32_t n_chunks = dp_object_chunks(action->u.object.size);
    if (n_chunks > 1 && !dp_disk_holds(&host->disk, object)) {
        dp_parts_begin(&host->disk.parts, object, n_chunks, action->u.object.leaves);
    }
}

static void use_object(dp_host *host, const dp_hash *root, dp_object_use use, bool on)
{
    const uint32_t object = dp_shelf_find(&host->sim->shelf, root);

    if (object != DP_SHELF_NONE) {
        dp_disk_use(&host->disk, object, (uint32_t)use, on);
        if (on && host->sim->plan.parts) { /* A sum made for others is in use from the start. */
            dp_disk_use(&host->disk, object, DP_DISK_FRESH, false);
        }
    }
}

void dp_host_object(dp_host *host, const dp_action *action)
{
    if (action->type == DP_DO_OBJECT_BEGIN) {
        begin_object(host, action);
    } else {
        use_object(host, &action->u.keep.root, action->u.keep.use,
                   action->type == DP_DO_OBJECT_KEEP);
    }
}

void dp_host_save(dp_host *host, const dp_action *action)
{
    dp_sim *sim = host->sim;
    const uint32_t object = dp_shelf_find(&sim->shelf, &action->u.save.tensor_root);

    dp_assert(object != DP_SHELF_NONE);
    if (object != host->mapped) { /* It was loaded: the object gets its name, or there is none. */
        if (!dp_disk_holds(&host->disk, object)) {
            return;
        }
    } else if (!action->u.save.must && host->saved_us != 0 &&
               sim->now_us < host->saved_us + sim->plan.save_us) {
        return;
    } else {
        host->saved_us = sim->now_us;
    }
    dp_host_write(host, &(dp_disk_write){.kind = DP_WRITE_CHECKPOINT,
                                         .then = DP_THEN_SAVED,
                                         .object = object,
                                         .round = action->u.save.round});
}

/* ---- writes that have ended ---- */

/* Acts on a failed write as the driver does: it tells the node about rows and chunks, restarts a
 * trainer whose update is lost, and ends the daemon after any error other than lack of space. */
static void on_failed_write(dp_host *host, dp_status status)
{
    dp_disk_write *write = dp_disk_fail(&host->disk);
    dp_event event = {.type = DP_EV_STORED};

    if (write->then == DP_THEN_STORED) {
        dp_oracle_store_failed(host, write);
        event.u.stored.op = write->op;
        event.u.stored.status = status;
        dp_host_event(host, &event);
    } else if (write->then == DP_THEN_CHUNK) {
        event.type = DP_EV_CHUNK;
        event.u.chunk.root = host->sim->shelf.items[write->object].root;
        event.u.chunk.index = write->index;
        event.u.chunk.peer = host->sim->hosts[write->peer].peer;
        event.u.chunk.status = status;
        dp_host_event(host, &event);
    } else if ((write->then == DP_THEN_PUBLISHED || write->then == DP_THEN_FROZEN) &&
               write->life == host->life) {
        dp_host_trainer_dies(host, true);
    } else if (write->then == DP_THEN_REDUCED) {
        dp_host_reduced(host, write, status);
    }
    dp_disk_write_free(write);
    if (status == DP_IO) {
        dp_faults_io_error(host);
    }
}

void dp_host_written(dp_host *host)
{
    if (host->disk.first != NULL && host->disk.first->done_us > host->sim->now_us) {
        return; /* The occasion of a write that was done earlier than planned. */
    }
    if (host->disk.first != NULL && dp_real_strikes(host)) {
        return;
    }
    if (host->disk.first != NULL && host->disk.first->then != DP_THEN_NOTHING) {
        if (host->io_error) {
            on_failed_write(host, DP_IO);
            return;
        }
        if (host->full_until > host->sim->now_us && dp_faults_bend(host, DP_FAULT_WRITE)) {
            on_failed_write(host, DP_NOSPACE);
            return;
        }
    }
    dp_disk_write *write = dp_disk_end(&host->disk);

    if (write == NULL) {
        return;
    }
    dp_event event = {.type = DP_EV_STORED};
    switch (write->then) {
    case DP_THEN_NOTHING:
        break;
    case DP_THEN_STORED:
        dp_oracle_stored(host, write);
        if (write->row_kind == DP_STORE_DECIDED) {
            dp_measure_stored(host, write->row.slot);
        }
        event.u.stored.op = write->op;
        dp_host_event(host, &event);
        break;
    case DP_THEN_CHUNK:
        dp_host_chunk_stored(host, write);
        break;
    case DP_THEN_PUBLISHED:
    case DP_THEN_FROZEN:
        dp_host_parcel_stored(host, write);
        break;
    case DP_THEN_REDUCED:
        dp_host_reduced(host, write, DP_OK);
        break;
    case DP_THEN_SAVED:
        event.type = DP_EV_SAVED;
        event.u.saved.round = write->round;
        event.u.saved.tensor_root = host->sim->shelf.items[write->object].root;
        event.u.saved.tensor_bytes = host->sim->shelf.items[write->object].size;
        dp_host_event(host, &event);
        break;
    }
    dp_disk_write_free(write);
}

/* ---- a start ---- */

/* The state that an earlier life was fetching; like the daemon, it takes the first one found. */
static void restore_part(dp_host *host)
{
    const dp_parts *parts = &host->disk.parts;

    for (uint32_t i = 0; i < parts->count; i++) {
        const uint32_t object = parts->items[i].object;
        if (dp_disk_uses(&host->disk, object, DP_USE_STATE)) {
            dp_node_restore_part(host->node, &host->sim->shelf.items[object].root);
            return;
        }
    }
}

void dp_host_restore(dp_host *host)
{
    dp_disk *disk = &host->disk;
    dp_sim *sim = host->sim;
    dp_status status = DP_OK;

    for (uint32_t s = 0; s < disk->n_records && status == DP_OK; s++) {
        const dp_disk_record *r = &disk->records[s];
        status =
            dp_node_restore_record(host->node, (uint64_t)s + 1, dp_view_of(r->data, r->record_size),
                                   dp_view_of(r->data + r->record_size, r->cert_size));
    }
    if (status == DP_OK && disk->vote.size != 0) {
        status = dp_node_restore_vote(host->node, dp_view_of(disk->vote.data, disk->vote.size));
    }
    if (status == DP_OK && disk->pending.size != 0) {
        status =
            dp_node_restore_pending(host->node, dp_view_of(disk->pending.data, disk->pending.size));
    }
    for (uint32_t i = 0; i < disk->n_exchanges && status == DP_OK; i++) {
        const dp_disk_row *row = &disk->exchanges[i];
        status =
            dp_node_restore_exchange(host->node, row->exchange, dp_view_of(row->data, row->size));
    }
    for (uint32_t i = 0; i < disk->n_checkpoints && status == DP_OK; i++) {
        const dp_shelf_item *item = &sim->shelf.items[disk->checkpoints[i].object];
        if (!dp_disk_holds(disk, disk->checkpoints[i].object)) {
            continue; /* A part of it rotted. */
        }
        status = dp_node_restore_checkpoint(host->node, disk->checkpoints[i].round, &item->root,
                                            item->size);
    }
    for (uint32_t i = 0; i < disk->uses_capacity && i < sim->shelf.count && status == DP_OK; i++) {
        if (dp_disk_holds(disk, i)) {
            status = dp_node_restore_object(host->node, &sim->shelf.items[i].root,
                                            sim->shelf.items[i].size);
        }
    }
    restore_part(host);
    if (status == DP_OK && disk->proof.size != 0) {
        status = dp_node_restore_proof(host->node, dp_view_of(disk->proof.data, disk->proof.size));
    }
    for (uint32_t i = 0; i < sim->plan.nodes && status == DP_OK; i++) {
        if (host->met[i] != 0 && i != host->index && sim->hosts[i].name != host->name) {
            const dp_addr addr = dp_host_addr(i, host->met[i]);
            status = dp_node_restore_peer(host->node, &sim->hosts[i].peer, &addr, 1);
        }
    }
    if (status != DP_OK) {
        dp_sim_fail(sim, "D2", host->index, "a durable row does not restore: %s",
                    dp_status_name(status));
    }
}
