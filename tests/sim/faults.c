/* Faults: their kinds, times and end. Draws from a separate stream; a class that is off draws
 * nothing. */
#include <stdlib.h>

#include "gossip/context/context.h"
#include "gossip/node/node.h"
#include "tests/sim/faults.h"
#include "tests/sim/oracle.h"
#include "tests/sim/scene.h"

static uint64_t below(dp_sim *sim, uint64_t limit)
{
    return dp_fault_below(sim, limit);
}

static void strike_later(dp_sim *sim, dp_fault fault)
{
    const uint64_t mean = sim->plan.fault_us[fault];
    const uint64_t at = sim->now_us + mean / 4 + below(sim, mean * 3 / 2);

    if (at < sim->plan.faults_end_us) {
        dp_sim_push(sim,
                    &(dp_occasion){.at_us = at, .kind = DP_ON_FAULT, .detail = (uint16_t)fault});
    }
}

static void draw_host(dp_sim *sim, dp_host *host)
{
    uint64_t at = host->index == 0 ? 1 : 1 + dp_rng_below(&sim->crash_rng, 2000000);

    sim->striking = DP_FAULT_LATE;
    if (dp_fault_on(sim, DP_FAULT_LATE) && host->index > 2 && below(sim, 2) == 0) {
        at = 1 + below(sim, sim->plan.faults_end_us);
        dp_fault_count(sim);
    }
    sim->striking = DP_FAULT_SLOW;
    if (dp_fault_on(sim, DP_FAULT_SLOW) && below(sim, 4) == 0) {
        host->toy_slow = 2U << below(sim, 5);
        dp_fault_count(sim);
    }
    sim->striking = DP_FAULT_CLOCK;
    if (dp_fault_on(sim, DP_FAULT_CLOCK)) {
        host->clock_ppm = (int32_t)below(sim, 1001) - 500;
        host->wall_offset_ms = (int64_t)below(sim, 60000) - 30000;
        dp_fault_count(sim);
    }
    sim->striking = DP_FAULT_NAT;
    /* The token contains the founder's address: if the founder were hidden too, no two nodes would
     * meet. */
    if (dp_fault_on(sim, DP_FAULT_NAT) && host->index > 0 && below(sim, 2) == 0) {
        host->nat = true;
        dp_fault_count(sim);
    }
    sim->striking = DP_FAULT_NEWER;
    if (dp_fault_on(sim, DP_FAULT_NEWER) && below(sim, 2) == 0) {
        host->newer = true;
        dp_fault_count(sim);
    }
    if (host->index < sim->plan.at_start) { /* The others come later, by churn. */
        at += dp_scene_boot_us(sim, host->index);
        dp_sim_push(sim, &(dp_occasion){.at_us = at, .kind = DP_ON_BOOT, .node = host->index});
    }
}

void dp_faults_start(dp_sim *sim)
{
    static const dp_fault striking[] = {
        DP_FAULT_PARTITION, DP_FAULT_ONEWAY, DP_FAULT_CRASH, DP_FAULT_AMNESIA, DP_FAULT_PAUSE,
        DP_FAULT_TRAINER,   DP_FAULT_DISK,   DP_FAULT_LEAVE, DP_FAULT_JUMP,    DP_FAULT_FLAP,
        DP_FAULT_BRIDGE,    DP_FAULT_DAMAGE, DP_FAULT_WRITE, DP_FAULT_REBIND,  DP_FAULT_ROT,
        DP_FAULT_HANG,      DP_FAULT_NARROW, DP_FAULT_OWNER};

    for (uint32_t i = 0; i < DP_FAULT_COUNT; i++) {
        dp_rng_init(&sim->fault_rngs[i], dp_mix64(sim->options.seed + i * 0x9e37ULL) ^ 0x6661756c);
    }
    sim->net.weather = sim->plan.weather;
    /* Round trips of 160 ms do not fit in a quarter of a short round. */
    if (sim->plan.sites > 0) {
        dp_net_lay_sites(&sim->net, sim->plan.sites, dp_fault_on(sim, DP_FAULT_SLOW));
    } else {
        dp_net_lay_out(&sim->net, dp_fault_on(sim, DP_FAULT_DELAY) && sim->plan.round_ms >= 1000,
                       dp_fault_on(sim, DP_FAULT_SLOW));
    }
    if (sim->shelf.chunks_max > 1) {
        sim->striking = DP_FAULT_CHUNKS;
        dp_fault_count(sim);
    }
    if (dp_fault_on(sim, DP_FAULT_SHARDS)) {
        sim->striking = DP_FAULT_SHARDS;
        dp_fault_count(sim);
    }
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        draw_host(sim, &sim->hosts[i]);
    }
    for (uint32_t i = 0; i < sizeof striking / sizeof striking[0]; i++) {
        if (dp_fault_on(sim, striking[i])) {
            sim->striking = striking[i];
            strike_later(sim, striking[i]);
        }
    }
}

dp_host *dp_fault_any_up(dp_sim *sim)
{
    const uint32_t first = (uint32_t)below(sim, sim->plan.nodes);

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        dp_host *host = &sim->hosts[(first + i) % sim->plan.nodes];
        if (dp_host_up(host)) {
            return host;
        }
    }
    return NULL;
}

void dp_fault_restart(dp_sim *sim, dp_host *host, uint64_t wait_us)
{
    host->restart_at = sim->now_us + wait_us;
    dp_sim_push(sim,
                &(dp_occasion){.at_us = host->restart_at, .kind = DP_ON_BOOT, .node = host->index});
}

static void crash(dp_sim *sim)
{
    uint32_t count = below(sim, 4) == 0 ? 1 + (uint32_t)below(sim, sim->plan.nodes) : 1;

    while (count-- > 0) {
        dp_host *host = dp_fault_any_up(sim);
        if (host == NULL) {
            return;
        }
        dp_host_crash(host, below(sim, 4) != 0);
        dp_fault_count(sim);
        dp_fault_restart(sim, host, 50000 + below(sim, below(sim, 3) == 0 ? 12000000 : 3000000));
    }
}

/* Do the other voters, a majority, have all decided records? Otherwise the protocol cannot lose
 * this disk. */
static bool others_have_all(dp_sim *sim, const dp_host *victim)
{
    uint32_t have = 0;
    dp_node_view view;

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        const dp_host *host = &sim->hosts[i];
        if (host == victim || !dp_host_up(host)) {
            continue;
        }
        dp_node_look(host->node, &view);
        if (view.is_voter && host->disk.n_records == dp_oracle_slots(sim) &&
            view.applied == dp_oracle_rounds(sim)) {
            have++;
        }
    }
    return have * 2 > dp_oracle_voters(sim);
}

/* One disk per run is lost or restored from a backup, and only if a majority of voters keeps
 * theirs. */
static void amnesia(dp_sim *sim)
{
    dp_host *host = dp_fault_any_up(sim);

    /* Not behind NAT: an update published before, which only one voter holds, does not reach
     * another voter that no host can dial. */
    if (host == NULL || dp_fault_on(sim, DP_FAULT_NAT) || sim->amnesias > 0 || sim->leavers > 0 ||
        dp_oracle_voters(sim) < 3 || host->disk.n_records == 0 || !others_have_all(sim, host)) {
        return;
    }
    sim->amnesias++;
    dp_fault_count(sim);
    dp_host_crash(host, true);
    if (below(sim, 2) == 0) {
        dp_disk_wipe(&host->disk, sim->options.keep_vote_key);
    } else {
        const uint32_t lost = (uint32_t)below(sim, 4);
        const uint32_t kept = host->disk.n_records > lost ? host->disk.n_records - lost : 0;
        dp_disk_lose_votes(&host->disk, sim->options.keep_vote_key, kept);
    }
    dp_oracle_forgot(host);
    dp_fault_restart(sim, host, 50000 + below(sim, 2000000));
}

static void pause_one(dp_sim *sim)
{
    dp_host *host = dp_fault_any_up(sim);

    if (host != NULL && host->paused_until <= sim->now_us) {
        dp_fault_count(sim);
        host->paused_until =
            sim->now_us + 200000 + below(sim, below(sim, 3) == 0 ? 12000000 : 3000000);
    }
}

static void leave(dp_sim *sim)
{
    dp_host *host = dp_fault_any_up(sim);
    dp_node_view view;

    if (host == NULL || host->index == 0 || (sim->leavers + 1) * 3 > sim->plan.nodes) {
        return;
    }
    dp_node_look(host->node, &view);
    /* A single voter hands its vote over before it leaves, which takes longer than this process
     * lives. */
    if ((view.is_voter || dp_oracle_votes(sim, dp_oracle_slots(sim) + 1, host->index)) &&
        (sim->leavers > 0 || sim->amnesias > 0 || dp_oracle_voters(sim) < 3)) {
        return;
    }
    sim->leavers++;
    dp_fault_count(sim);
    host->leaving = true;
    dp_sim_push(sim,
                &(dp_occasion){.at_us = sim->now_us, .kind = DP_ON_LEAVE, .node = host->index});
}

static void trouble_disk(dp_sim *sim)
{
    dp_host *host = &sim->hosts[below(sim, sim->plan.nodes)];

    if (host->disk_slow == 1) {
        host->disk_slow = 2U << below(sim, 5);
    } else {
        dp_host_hasten_disk(host); /* The queued writes go at the usual speed from now on. */
    }
    dp_fault_count(sim);
}

static void kill_trainer(dp_sim *sim)
{
    dp_host *host = dp_fault_any_up(sim);

    if (host != NULL && host->toy_state == DP_TOY_UP) {
        dp_fault_count(sim);
        dp_host_trainer_dies(host, true);
    }
}

/* The trainer hangs for up to ten seconds, or reports one command as failed, as without memory. */
static void hang_trainer(dp_sim *sim)
{
    dp_host *host = dp_fault_any_up(sim);
    const uint64_t us = 100000 + below(sim, 10 * DP_SECOND);

    if (host == NULL || host->toy_state != DP_TOY_UP) {
        return;
    }
    dp_fault_count(sim);
    if (below(sim, 2) == 0) {
        host->hangs_until_us = sim->now_us + us;
    } else {
        host->errs = true;
    }
}

static void order(dp_sim *sim, uint32_t node, bool pause, uint64_t at_us)
{
    dp_sim_push(
        sim,
        &(dp_occasion){.at_us = at_us, .kind = DP_ON_ORDER, .node = node, .detail = pause ? 1 : 0});
}

/* Pauses one node for up to ten seconds, or all for long enough that the run is idle (idle.h). */
static void pause_by_owners(dp_sim *sim)
{
    const bool all = below(sim, 2) == 0;
    const uint32_t first = (uint32_t)below(sim, sim->plan.nodes);
    const uint64_t us =
        all ? 15 * DP_SECOND + below(sim, 20 * DP_SECOND) : 100000 + below(sim, 10 * DP_SECOND);

    dp_fault_count(sim);
    for (uint32_t k = 0; k < (all ? sim->plan.nodes : 1); k++) {
        const uint32_t node = (first + k) % sim->plan.nodes;
        order(sim, node, true, sim->now_us + below(sim, DP_SECOND));
        order(sim, node, false, sim->now_us + us + below(sim, 3 * DP_SECOND));
    }
}

/* For up to two seconds half of the steps have little room for actions. */
static void narrow(dp_sim *sim)
{
    dp_host *host = dp_fault_any_up(sim);

    if (host != NULL) {
        host->narrow_until = sim->now_us + below(sim, 2000000);
    }
}

void dp_faults_narrow(dp_host *host)
{
    dp_sim *sim = host->sim;
    dp_out *out = &host->node->out;

    out->sends_max = DP_OUT_SENDS_MAX;
    out->bytes_max = DP_OUT_BYTES;
    if (host->narrow_until <= sim->now_us || sim->healed) {
        return;
    }
    sim->striking = DP_FAULT_NARROW;
    if (below(sim, 2) == 0) {
        dp_fault_count(sim);
        out->sends_max = (uint32_t)below(sim, 4);
        out->bytes_max = below(sim, 2) == 0 ? DP_OUT_BYTES : (size_t)below(sim, 2048);
    }
}

/* Moves a clock by hours, months or ten years, forwards or back; sometimes corrects it. */
static void jump(dp_sim *sim)
{
    static const int64_t hour_ms = 3600 * 1000;
    dp_host *host = &sim->hosts[below(sim, sim->plan.nodes)];
    const int64_t hours[] = {1 + (int64_t)below(sim, 24), 24 * (1 + (int64_t)below(sim, 90)),
                             24 * 365 * 10};
    const int64_t by = hours[below(sim, 3)] * hour_ms;

    if (below(sim, 4) == 0) {
        host->wall_offset_ms = 0;
    } else {
        host->wall_offset_ms += below(sim, 2) == 0 ? by : -by;
    }
    dp_fault_count(sim);
}

/* For a while every other chunk that this host serves is wrong. */
static void rot(dp_sim *sim)
{
    dp_host *host = dp_fault_any_up(sim);

    if (host != NULL) {
        host->rot_until = sim->now_us + 500000 + below(sim, 4000000);
    }
}

/* The disk is full for a moment, or one write fails and the process ends. */
static void trouble_writes(dp_sim *sim)
{
    dp_host *host = dp_fault_any_up(sim);

    if (host == NULL) {
        return;
    }
    if (below(sim, 2) == 0) {
        host->full_until = sim->now_us + 100000 + below(sim, 3000000);
    } else {
        host->io_error = true;
    }
}

bool dp_faults_bend(dp_host *host, dp_fault fault)
{
    dp_sim *sim = host->sim;

    sim->striking = fault;
    if (below(sim, 2) != 0) {
        return false;
    }
    dp_fault_count(sim);
    return true;
}

void dp_faults_io_error(dp_host *host)
{
    dp_sim *sim = host->sim;

    sim->striking = DP_FAULT_WRITE;
    host->io_error = false;
    dp_fault_count(sim);
    if (dp_host_up(host)) {
        dp_host_crash(host, true);
        dp_fault_restart(sim, host, 50000 + below(sim, 3000000));
    }
}

void dp_faults_strike(dp_sim *sim, const dp_occasion *occasion)
{
    const dp_fault fault = (dp_fault)occasion->detail;

    if (sim->healed) {
        return;
    }
    sim->striking = fault;
    switch (fault) {
    case DP_FAULT_PARTITION:
        dp_fault_partition(sim);
        break;
    case DP_FAULT_ONEWAY:
        dp_fault_one_way(sim);
        break;
    case DP_FAULT_BRIDGE:
        dp_fault_bridge(sim);
        break;
    case DP_FAULT_FLAP:
        dp_fault_flap(sim, occasion);
        if (occasion->value != 0) {
            return; /* another break of a link that already flaps */
        }
        break;
    case DP_FAULT_REBIND:
        dp_fault_rebind(sim);
        break;
    case DP_FAULT_CRASH:
        crash(sim);
        break;
    case DP_FAULT_AMNESIA:
        amnesia(sim);
        break;
    case DP_FAULT_PAUSE:
        pause_one(sim);
        break;
    case DP_FAULT_TRAINER:
        kill_trainer(sim);
        break;
    case DP_FAULT_HANG:
        hang_trainer(sim);
        break;
    case DP_FAULT_NARROW:
        narrow(sim);
        break;
    case DP_FAULT_OWNER:
        pause_by_owners(sim);
        break;
    case DP_FAULT_DISK:
        trouble_disk(sim);
        break;
    case DP_FAULT_LEAVE:
        leave(sim);
        break;
    case DP_FAULT_JUMP:
        jump(sim);
        break;
    case DP_FAULT_DAMAGE:
        rot(sim);
        break;
    case DP_FAULT_WRITE:
        trouble_writes(sim);
        break;
    case DP_FAULT_ROT:
        dp_rot_strike(sim);
        break;
    case DP_FAULT_SHARDS:
    case DP_FAULT_LOSS:
    case DP_FAULT_DELAY:
    case DP_FAULT_COPY:
    case DP_FAULT_REORDER:
    case DP_FAULT_SLOW:
    case DP_FAULT_LATE:
    case DP_FAULT_CLOCK:
    case DP_FAULT_NAT:
    case DP_FAULT_CHUNKS:
    case DP_FAULT_NEWER:
    case DP_FAULT_COUNT:
        break; /* these hold all the time */
    }
    strike_later(sim, fault);
}

void dp_faults_heal(dp_sim *sim)
{
    sim->healed = true;
    sim->healed_us = sim->now_us;
    dp_net_heal(&sim->net, sim->now_us);
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        order(sim, i, false, sim->now_us);
    }
    dp_fault_release(sim);
    dp_rot_heal(sim);
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        dp_host *host = &sim->hosts[i];
        if (dp_host_up(host)) {
            dp_node_buggify(host->node, 0);
        }
        if (host->disk_slow > 1) {
            dp_host_hasten_disk(host);
        }
        host->was_slow = host->toy_slow > 1;
        host->toy_slow = 1;
        host->rot_until = 0;
        host->full_until = 0;
        host->io_error = false;
        host->errs = false;
        if (dp_fault_on(sim, DP_FAULT_JUMP)) {
            host->wall_offset_ms = 0;
        }
        if (sim->net.bytes_per_ms[i] < 1000) {
            sim->net.bytes_per_ms[i] = 1000;
            dp_fault_drain(sim, i);
        }
    }
    dp_core_break(sim);
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        dp_host *host = &sim->hosts[i];
        if (dp_host_up(host) && !host->broken && host->port != host->told_port) {
            dp_host_crash(host, true); /* A node announces its new address only after a restart. */
        }
        if (!dp_host_up(host) && !host->left && !host->broken) {
            dp_fault_restart(sim, host, 1 + dp_rng_below(&sim->crash_rng, 1000000));
        }
    }
}
