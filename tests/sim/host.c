#include "tests/sim/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/msg.h"
#include "tests/sim/evil.h"
#include "tests/sim/forks.h"
#include "tests/sim/oracle.h"
#include "tests/sim/real.h"
#include "tests/sim/scene.h"
#include "tests/sim/sim.h"

static const uint64_t wall_start_ms = 1700000000000ULL;

dp_status dp_host_open(dp_host *host, struct dp_sim *sim, uint32_t index)
{
    memset(host, 0, sizeof *host);
    host->sim = sim;
    host->index = index;
    host->name = index;
    host->peer = dp_sim_peer(index);
    dp_rng_init(&host->rng, dp_mix64(sim->options.seed) + index * 2);
    dp_rng_init(&host->disk_rng, dp_mix64(sim->options.seed) + index * 2 + 1);
    host->disk.vote_key = 1;
    host->disk_slow = 1;
    host->toy_slow = 1;
    host->tick_at = UINT64_MAX;
    host->clock_offset = 1000 + dp_rng_below(&host->rng, 1000000000);
    host->step_us = 5000 + (uint32_t)dp_rng_below(&host->rng, 30000);
    host->port = 1;
    host->met = calloc(sim->plan.nodes, sizeof *host->met);
    host->commands = calloc(DP_HOST_COMMANDS_MAX, sizeof *host->commands);
    return host->met == NULL || host->commands == NULL ? DP_NOMEM : DP_OK;
}

void dp_host_close(dp_host *host)
{
    if (host->node != NULL) {
        dp_node_close(host->node);
    }
    dp_real_close(host);
    dp_disk_close(&host->disk);
    free(host->met);
    free(host->commands);
    memset(host, 0, sizeof *host);
}

static dp_time host_time(const dp_host *host)
{
    const uint64_t t = host->sim->now_us;
    const int64_t drift = (int64_t)t * host->clock_ppm / 1000000;

    return (dp_time){.us = host->clock_offset + t + (uint64_t)drift};
}

/* The first simulated instant at which the host's clock shows at least this. */
static uint64_t sim_time(const dp_host *host, dp_time at)
{
    if (at.us == UINT64_MAX) {
        return UINT64_MAX;
    }
    const uint64_t left = dp_time_between(host_time(host), at);
    return host->sim->now_us + left * 1000000 / (uint64_t)(1000000 + host->clock_ppm) +
           (left == 0 ? 0 : 2);
}

static void set_timer(dp_host *host)
{
    const uint64_t at = sim_time(host, dp_node_wake(host->node));

    if (at == host->tick_at || at == UINT64_MAX) {
        return;
    }
    if (at > host->tick_at && host->tick_at > host->sim->now_us) {
        return; /* an early tick does no harm, and the next one is set after it */
    }
    host->tick_at = at;
    dp_sim_push(host->sim,
                &(dp_occasion){.at_us = at > host->sim->now_us ? at : host->sim->now_us + 1,
                               .kind = DP_ON_TICK,
                               .node = host->index,
                               .boot = host->boot,
                               .value = ++host->tick_generation});
}

/* ---- actions ---- */

static void do_send(dp_host *host, const dp_action *action)
{
    dp_sim *sim = host->sim;

    if (dp_evil_sends(host, action)) {
        return;
    }
    dp_packet *packet =
        dp_packet_of(action->u.send.bytes.data, (uint32_t)action->u.send.bytes.size);

    dp_assert(packet != NULL);
    dp_sim_mark(sim, dp_sim_hash(host->index, action->u.send.bytes), action->u.send.to);
    dp_oracle_sent(host, action->u.send.bytes);
    for (uint32_t to = 0; to < sim->plan.nodes; to++) {
        if (action->u.send.to == DP_TO_PEER) {
            to = dp_evil_body(sim, host->index, dp_sim_index(sim, &action->u.send.peer));
        }
        if (to < sim->plan.nodes && to != host->index &&
            sim->net.ends[(size_t)host->index * sim->plan.nodes + to].connection != 0) {
            dp_measure_sent(sim, host->index, packet);
            DP_IGNORE(dp_net_send(&sim->net, &sim->queue, sim->now_us, host->index, to,
                                  dp_packet_share(packet),
                                  DP_NET_CONTROL)); /* a full queue is found by the loop */
        }
        if (action->u.send.to == DP_TO_PEER) {
            break;
        }
    }
    dp_packet_drop(packet);
    dp_newer_says(host, action);
    const uint8_t type = dp_msg_type_of(action->u.send.bytes);
    host->crash_now = host->crash_now || dp_scene_kills(host, type);
    if (sim->plan.crash_after_send != 0 && !sim->healed &&
        ((type >= DP_MSG_READY && type <= DP_MSG_DECIDE) || type == DP_MSG_PART ||
         (type >= DP_MSG_MIX_OFFER && type <= DP_MSG_MIX_STATUS)) &&
        dp_rng_below(&sim->crash_rng, 65536) < sim->plan.crash_after_send) {
        host->crash_now = true;
    }
}

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

static void do_store(dp_host *host, const dp_action *action)
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
            if (!dp_disk_holds(&host->disk, write.row.keep[i])) {
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

static void do_object_begin(dp_host *host, const dp_action *action)
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

static void do_object(dp_host *host, const dp_hash *root, dp_object_use use, bool on)
{
    const uint32_t object = dp_shelf_find(&host->sim->shelf, root);

    if (object != DP_SHELF_NONE) {
        dp_disk_use(&host->disk, object, (uint32_t)use, on);
        if (on &&
            host->sim->plan.parts) { /* What the trainer made for others has found its keeper. */
            dp_disk_use(&host->disk, object, DP_DISK_FRESH, false);
        }
    }
}

static void do_save(dp_host *host, const dp_action *action)
{
    dp_sim *sim = host->sim;
    const uint32_t object = dp_shelf_find(&sim->shelf, &action->u.save.tensor_root);

    if (!action->u.save.must && host->saved_us != 0 &&
        sim->now_us < host->saved_us + sim->plan.save_us) {
        return;
    }
    dp_assert(object != DP_SHELF_NONE);
    host->saved_us = sim->now_us;
    dp_host_write(host, &(dp_disk_write){.kind = DP_WRITE_CHECKPOINT,
                                         .then = DP_THEN_SAVED,
                                         .object = object,
                                         .round = action->u.save.round});
}

static void do_note(dp_host *host, const dp_action *action)
{
    const dp_note *note = &action->u.note;

    dp_oracle_note(host, note);
    dp_evil_notes(host, note);
    dp_measure_note(host, note);
    if (host->sim->options.trace == (int32_t)host->index) {
        printf("%10.6f node %u note %s round %llu peer %u a %llu b %llu %s\n",
               (double)host->sim->now_us / 1e6, host->index, dp_note_name(note->code),
               (unsigned long long)note->round, dp_sim_index(host->sim, &note->peer),
               (unsigned long long)note->a, (unsigned long long)note->b, note->cause);
    }
}

static void perform(dp_host *host, const dp_action *action)
{
    dp_sim *sim = host->sim;

    dp_sim_mark(sim, host->index, action->type);
    switch (action->type) {
    case DP_DO_SEND:
        do_send(host, action);
        break;
    case DP_DO_DIAL:
        dp_host_dial(host, action);
        break;
    case DP_DO_HANGUP:
        dp_host_hangup(host, action);
        break;
    case DP_DO_STORE:
        do_store(host, action);
        break;
    case DP_DO_OBJECT_BEGIN:
        do_object_begin(host, action);
        break;
    case DP_DO_OBJECT_KEEP:
        do_object(host, &action->u.keep.root, action->u.keep.use, true);
        break;
    case DP_DO_OBJECT_DROP:
        do_object(host, &action->u.keep.root, action->u.keep.use, false);
        break;
    case DP_DO_GET_INFO:
    case DP_DO_GET_CHUNK:
        dp_host_get(host, action);
        break;
    case DP_DO_SERVE_INFO:
    case DP_DO_SERVE_CHUNK:
    case DP_DO_SERVE_RECORDS:
        dp_host_serve(host, action);
        break;
    case DP_DO_SERVE_MANIFEST:
        break; /* everybody is born with it here */
    case DP_DO_TRAINER_OPEN:
    case DP_DO_TRAINER_INIT:
    case DP_DO_TRAINER_LOAD:
    case DP_DO_TRAINER_RESTORE:
    case DP_DO_TRAIN:
    case DP_DO_TRAIN_STOP:
    case DP_DO_PUBLISH:
    case DP_DO_CHECK:
    case DP_DO_REDUCE:
    case DP_DO_APPLY:
    case DP_DO_FREEZE:
    case DP_DO_MIX:
        dp_host_order(host, action);
        break;
    case DP_DO_SAVE:
        do_save(host, action);
        break;
    case DP_DO_NOTE:
        do_note(host, action);
        break;
    case DP_DO_REOPEN:
        host->reopen = true;
        break;
    case DP_DO_HALT:
        if (dp_evil_halts(host, &action->u.note) || (sim->forks != NULL && dp_forks_halted(host))) {
            break;
        }
        dp_sim_fail(sim, "S1", host->index, "the node halted: %s",
                    action->u.note.cause == NULL ? "" : action->u.note.cause);
        break;
    }
}

void dp_host_event(dp_host *host, dp_event *event)
{
    dp_sim *sim = host->sim;

    if (host->node == NULL || sim->failure.invariant[0] != '\0') {
        return;
    }
    event->now = host_time(host);
    event->wall_ms =
        wall_start_ms + (uint64_t)((int64_t)(sim->now_us / 1000) + host->wall_offset_ms);
    sim->totals.steps++;
    sim->actions->count = 0;
    dp_node_step(host->node, event, sim->actions);
    const uint32_t boot = host->boot;
    for (uint32_t i = 0; i < sim->actions->count && !host->crash_now; i++) {
        perform(host, &sim->actions->items[i]);
    }
    if (host->crash_now) {
        sim->totals.faults[DP_FAULT_CRASH]++;
        dp_host_crash(host, dp_rng_below(&sim->crash_rng, 4) != 0);
        host->restart_at =
            sim->now_us + 20000 + dp_rng_below(&sim->crash_rng, sim->plan.away_us_max);
        dp_sim_push(sim, &(dp_occasion){
                             .at_us = host->restart_at, .kind = DP_ON_BOOT, .node = host->index});
        return;
    }
    if (host->reopen) { /* As a crash: what is durable is all that is left. */
        host->reopen = false;
        dp_host_crash(host, true);
        host->restart_at = sim->now_us + 1000;
        dp_sim_push(sim, &(dp_occasion){
                             .at_us = host->restart_at, .kind = DP_ON_BOOT, .node = host->index});
        return;
    }
    dp_assert(boot == host->boot);
    set_timer(host);
}

/* ---- life ---- */

/* The state that an earlier life was fetching; as the daemon does, the first that is found. */
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

static void restore_rows(dp_host *host)
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
            continue; /* Something of it rotted. */
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

void dp_host_boot(dp_host *host)
{
    dp_sim *sim = host->sim;
    uint8_t credential[DP_SIM_CREDENTIAL_BYTES];

    if (host->node != NULL || host->left || host->broken) {
        return;
    }
    dp_sim_credential(sim, host->index, credential);
    host->boot++;
    host->disk.incarnation++;
    dp_node_config config = {
        .manifest = &sim->manifest,
        .run = sim->run,
        .self = host->peer,
        .incarnation = host->disk.incarnation,
        .credential = dp_view_of(credential, sizeof credential),
        .has_vote_key = true,
        .n_addrs = 1,
        .members_max = sim->plan.nodes < 30 ? 32 : sim->plan.nodes + 2,
        .seed = dp_rng_next(&host->rng),
        .crypto = dp_sim_crypto(host),
        .admission = dp_sim_admission(),
    };
    dp_sim_vote_key(host, config.vote_public_key);
    host->told_port = host->port;
    config.addrs[0] = dp_host_addr(host->index, host->port);
    const dp_status opened = dp_node_open(&host->node, &config);
    if (opened != DP_OK) {
        dp_sim_fail(sim, "D2", host->index, "the node does not open: %s", dp_status_name(opened));
        return;
    }
    dp_node_buggify(host->node, sim->healed ? 0 : sim->plan.buggify);
    host->started_once = true;
    host->up_since = sim->now_us;
    host->restart_at = 0;
    host->tick_at = UINT64_MAX;
    host->crash_now = false;
    host->reopen = false;
    restore_rows(host);
    dp_oracle_booted(host);
    dp_host_event(host, &(dp_event){.type = DP_EV_START});
}

void dp_host_crash(dp_host *host, bool reset)
{
    dp_sim *sim = host->sim;

    if (host->node == NULL) {
        return;
    }
    sim->totals.crashes++;
    sim->totals.node_us += sim->now_us - host->up_since;
    dp_node_close(host->node);
    host->node = NULL;
    host->boot++;
    host->crash_now = false;
    host->paused_until = 0;
    dp_disk_crash(&host->disk, &host->disk_rng);
    dp_host_trainer_dies(host, false);
    for (uint32_t b = 0; b < sim->plan.nodes; b++) {
        dp_net_end *end = &sim->net.ends[(size_t)host->index * sim->plan.nodes + b];
        if (reset) {
            DP_IGNORE(dp_net_reset(&sim->net, &sim->queue, sim->now_us, host->index, b,
                                   end->connection, DP_LINK_RESET));
        }
        end->connection = 0;
    }
}

/* What the driver makes of a write that failed: the node hears of rows and chunks, a trainer whose update is lost is
 * started again, and after an error that is not mere lack of space the daemon ends. */
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

static void on_disk(dp_host *host)
{
    if (host->disk.first != NULL && host->disk.first->done_us > host->sim->now_us) {
        return; /* The occasion of one that was done sooner than planned. */
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

void dp_host_command(dp_host *host, dp_command command)
{
    dp_event event = {.type = DP_EV_COMMAND};

    event.u.command = command;
    dp_host_event(host, &event);
}

static void on_lost(dp_host *host, const dp_occasion *occasion)
{
    dp_event event = {.type = DP_EV_OBJECT_LOST};

    event.u.object.root = host->sim->shelf.items[occasion->value].root;
    dp_host_event(host, &event);
}

static void on_held(dp_host *host, const dp_occasion *occasion)
{
    const dp_disk_write write = {.object = occasion->detail | (uint32_t)(occasion->value & 0xffff)
                                                                  << 16,
                                 .index = (uint32_t)(occasion->value >> 32),
                                 .peer = occasion->other};

    dp_host_chunk_stored(host, &write);
}

/* A tick must move the next one on. */
static void check_spin(dp_host *host)
{
    const bool again =
        dp_host_up(host) && sim_time(host, dp_node_wake(host->node)) <= host->sim->now_us;

    host->spins = again ? host->spins + 1 : 0;
    if (host->spins > DP_HOST_SPINS_MAX) {
        dp_sim_fail(host->sim, "T1", host->index, "wants a tick at once, %u ticks in a row",
                    host->spins);
    }
}

void dp_host_occasion(dp_host *host, dp_occasion *occasion)
{
    switch ((dp_occasion_kind)occasion->kind) {
    case DP_ON_TICK:
        if (occasion->value == host->tick_generation) {
            host->tick_at = UINT64_MAX;
            dp_host_event(host, &(dp_event){.type = DP_EV_TICK});
            check_spin(host);
        }
        break;
    case DP_ON_PACKET:
        dp_host_packet(host, occasion);
        break;
    case DP_ON_LINK_DOWN:
        dp_host_unlinked(host, occasion);
        break;
    case DP_ON_DIALED:
        dp_host_dialed(host, occasion->other, occasion->detail != 0);
        break;
    case DP_ON_DISK:
        on_disk(host);
        break;
    case DP_ON_TRAINER:
        if (occasion->value == host->life) {
            dp_host_ordered(host);
        }
        break;
    case DP_ON_STEPS:
        if (occasion->value == host->life) {
            dp_host_steps(host);
        }
        break;
    case DP_ON_SPAWN:
        if (occasion->value == host->life) {
            dp_host_trainer_spawn(host);
        }
        break;
    case DP_ON_HELD:
        on_held(host, occasion);
        break;
    case DP_ON_LOST:
        on_lost(host, occasion);
        break;
    case DP_ON_BOOT:
    case DP_ON_FAULT:
    case DP_ON_LEAVE:
    case DP_ON_RESUME:
    case DP_ON_CHURN:
    case DP_ON_EVIL:
    case DP_ON_LOOK:
        break;
    }
}
