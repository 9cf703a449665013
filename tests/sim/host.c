#include "tests/sim/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
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
    host->encode_us = 1000;
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
        return; /* an early tick is harmless, and sets the next one */
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
            dp_measure_sent(sim, host->index, to, packet);
            DP_IGNORE(dp_net_send(&sim->net, &sim->queue, sim->now_us, host->index, to,
                                  dp_packet_share(packet),
                                  DP_NET_CONTROL)); /* the loop notices a full queue */
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
         type == DP_MSG_SUBTOTAL || type == DP_MSG_COLLECT ||
         (type >= DP_MSG_MIX_OFFER && type <= DP_MSG_MIX_STATUS)) &&
        dp_rng_below(&sim->crash_rng, 65536) < sim->plan.crash_after_send) {
        host->crash_now = true;
    }
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
        dp_host_store(host, action);
        break;
    case DP_DO_OBJECT_BEGIN:
    case DP_DO_OBJECT_KEEP:
    case DP_DO_OBJECT_DROP:
        dp_host_object(host, action);
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
        break; /* here every host has it from the start */
    case DP_DO_TRAINER_OPEN:
    case DP_DO_TRAINER_INIT:
    case DP_DO_TRAINER_LOAD:
    case DP_DO_TRAINER_RESTORE:
    case DP_DO_TRAIN:
    case DP_DO_TRAIN_STOP:
    case DP_DO_PUBLISH:
    case DP_DO_CHECK:
    case DP_DO_REDUCE:
    case DP_DO_JUDGE:
    case DP_DO_APPLY:
    case DP_DO_FREEZE:
    case DP_DO_MIX:
        dp_host_order(host, action);
        break;
    case DP_DO_SAVE:
        dp_host_save(host, action);
        break;
    case DP_DO_NOTE:
        do_note(host, action);
        break;
    case DP_DO_SECRETS: /* Worlds have no handshakes. */
        host->secrets = action->u.secrets;
        break;
    case DP_DO_RENEWED: /* Credentials of a world have no end. */
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
    if (host->narrow_until != 0) {
        dp_faults_narrow(host);
    }
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
    if (host->reopen) { /* Like a crash: only durable data remain. */
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
        .secrets = host->secrets,
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
    host->mapped = DP_SHELF_NONE;
    dp_rot_boot(host);
    dp_host_restore(host);
    dp_oracle_booted(host);
    dp_host_event(host, &(dp_event){.type = DP_EV_START});
    if (host->owner_pauses && dp_host_up(host)) {
        dp_host_command(host, DP_COMMAND_PAUSE);
    }
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

void dp_host_command(dp_host *host, dp_command command)
{
    dp_event event = {.type = DP_EV_COMMAND};

    event.u.command = command;
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
        dp_host_written(host);
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
        dp_rot_say(host, (uint32_t)occasion->value);
        break;
    case DP_ON_BOOT:
    case DP_ON_FAULT:
    case DP_ON_LEAVE:
    case DP_ON_ORDER:
    case DP_ON_CHURN:
    case DP_ON_EVIL:
    case DP_ON_LOOK:
        break;
    }
}
