/* What goes wrong, and when it stops. Draws from its own stream; a class that is off draws nothing. */
#include <stdlib.h>

#include "tests/sim/oracle.h"
#include "tests/sim/sim.h"

static bool on(const dp_sim *sim, dp_fault fault)
{
    return (sim->plan.on & (1U << fault)) != 0;
}

static uint64_t below(dp_sim *sim, uint64_t limit)
{
    return dp_rng_below(&sim->fault_rng, limit);
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

void dp_faults_start(dp_sim *sim)
{
    static const dp_fault striking[] = {DP_FAULT_PARTITION, DP_FAULT_ONEWAY, DP_FAULT_CRASH,
                                        DP_FAULT_AMNESIA,   DP_FAULT_PAUSE,  DP_FAULT_TRAINER,
                                        DP_FAULT_DISK,      DP_FAULT_LEAVE};

    sim->net.weather = sim->plan.weather;
    /* Round trips of 160 ms do not fit in a quarter of a short round. */
    dp_net_lay_out(&sim->net, on(sim, DP_FAULT_DELAY) && sim->plan.round_ms >= 1000,
                   on(sim, DP_FAULT_SLOW));
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        dp_host *host = &sim->hosts[i];
        uint64_t at = i == 0 ? 1 : 1 + below(sim, 2000000);
        if (on(sim, DP_FAULT_LATE) && i > 2 && below(sim, 2) == 0) {
            at = 1 + below(sim, sim->plan.faults_end_us);
        }
        if (on(sim, DP_FAULT_SLOW) && below(sim, 4) == 0) {
            host->toy_slow = 2U << below(sim, 5);
        }
        if (on(sim, DP_FAULT_CLOCK)) {
            host->clock_ppm = (int32_t)below(sim, 1001) - 500;
            host->wall_offset_ms = (int64_t)below(sim, 60000) - 30000;
        }
        if (i >= sim->plan.at_start) {
            continue;
        }
        dp_sim_push(sim, &(dp_occasion){.at_us = at, .kind = DP_ON_BOOT, .node = i});
    }
    for (uint32_t i = 0; i < sizeof striking / sizeof striking[0]; i++) {
        if (on(sim, striking[i])) {
            strike_later(sim, striking[i]);
        }
    }
}

static dp_host *any_up(dp_sim *sim)
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

/* Split into groups, cut one off, or leave one bridge between two halves. */
static void partition(dp_sim *sim)
{
    const uint32_t n = sim->plan.nodes;
    const uint32_t form = (uint32_t)below(sim, 4);
    const uint32_t groups = form == 0 ? 2 + (uint32_t)below(sim, 3) : 2;
    const uint32_t alone = (uint32_t)below(sim, n);
    const bool hold = below(sim, 2) == 0;
    const uint64_t until =
        sim->now_us + 300000 + below(sim, below(sim, 3) == 0 ? 15000000 : 4000000);
    const uint64_t salt = dp_rng_next(&sim->fault_rng);

    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = 0; b < n; b++) {
            bool cut = dp_mix64(salt + a) % groups != dp_mix64(salt + b) % groups;
            if (form == 1) {
                cut = a == alone || b == alone;
            } else if (form == 2) {
                cut = cut && a != alone && b != alone;
            }
            if (cut && a != b) {
                dp_net_block(&sim->net, a, b, until, hold);
            }
        }
    }
}

static void one_way(dp_sim *sim)
{
    const uint64_t until = sim->now_us + 300000 + below(sim, 6000000);
    const uint32_t count = 1 + (uint32_t)below(sim, sim->plan.nodes);

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t from = (uint32_t)below(sim, sim->plan.nodes);
        const uint32_t to = (uint32_t)below(sim, sim->plan.nodes);
        if (from != to) {
            dp_net_block(&sim->net, from, to, until, below(sim, 2) == 0);
        }
    }
}

static void restart_later(dp_sim *sim, dp_host *host, uint64_t wait_us)
{
    host->restart_at = sim->now_us + wait_us;
    dp_sim_push(sim,
                &(dp_occasion){.at_us = host->restart_at, .kind = DP_ON_BOOT, .node = host->index});
}

static void crash(dp_sim *sim)
{
    uint32_t count = below(sim, 4) == 0 ? 1 + (uint32_t)below(sim, sim->plan.nodes) : 1;

    while (count-- > 0) {
        dp_host *host = any_up(sim);
        if (host == NULL) {
            return;
        }
        dp_host_crash(host, below(sim, 4) != 0);
        restart_later(sim, host, 50000 + below(sim, below(sim, 3) == 0 ? 12000000 : 3000000));
    }
}

/* Do the other voters, a majority, have all that was decided? Else this disk is more than the protocol can lose. */
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

/* One disk per run is lost or comes back from a backup, and only where a majority of voters keeps theirs. */
static void amnesia(dp_sim *sim)
{
    dp_host *host = any_up(sim);

    if (host == NULL || sim->amnesias > 0 || sim->leavers > 0 || dp_oracle_voters(sim) < 3 ||
        host->disk.n_records == 0 || !others_have_all(sim, host)) {
        return;
    }
    sim->amnesias++;
    dp_host_crash(host, true);
    if (below(sim, 2) == 0) {
        dp_disk_wipe(&host->disk, sim->options.keep_vote_key);
    } else {
        const uint32_t lost = (uint32_t)below(sim, 4);
        const uint32_t kept = host->disk.n_records > lost ? host->disk.n_records - lost : 0;
        dp_disk_lose_votes(&host->disk, sim->options.keep_vote_key, kept);
    }
    dp_oracle_forgot(host);
    restart_later(sim, host, 50000 + below(sim, 2000000));
}

static void pause_one(dp_sim *sim)
{
    dp_host *host = any_up(sim);

    if (host != NULL && host->paused_until <= sim->now_us) {
        host->paused_until =
            sim->now_us + 200000 + below(sim, below(sim, 3) == 0 ? 12000000 : 3000000);
    }
}

static void leave(dp_sim *sim)
{
    dp_host *host = any_up(sim);
    dp_node_view view;

    if (host == NULL || host->index == 0 || (sim->leavers + 1) * 3 > sim->plan.nodes) {
        return;
    }
    dp_node_look(host->node, &view);
    if (view.is_voter && (sim->leavers > 0 || sim->amnesias > 0)) {
        return;
    }
    sim->leavers++;
    host->leaving = true;
    dp_host_command(host, DP_COMMAND_LEAVE);
    dp_sim_push(sim, &(dp_occasion){
                         .at_us = sim->now_us + 2000000, .kind = DP_ON_LEAVE, .node = host->index});
}

static void trouble_disk(dp_sim *sim)
{
    dp_host *host = &sim->hosts[below(sim, sim->plan.nodes)];

    host->disk_slow = host->disk_slow == 1 ? 2U << below(sim, 5) : 1;
}

void dp_faults_strike(dp_sim *sim, dp_fault fault)
{
    dp_host *host = NULL;

    if (sim->healed) {
        return;
    }
    switch (fault) {
    case DP_FAULT_PARTITION:
        partition(sim);
        break;
    case DP_FAULT_ONEWAY:
        one_way(sim);
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
        host = any_up(sim);
        if (host != NULL && host->toy_state == DP_TOY_UP) {
            dp_host_trainer_dies(host, true);
        }
        break;
    case DP_FAULT_DISK:
        trouble_disk(sim);
        break;
    case DP_FAULT_LEAVE:
        leave(sim);
        break;
    case DP_FAULT_LOSS:
    case DP_FAULT_DELAY:
    case DP_FAULT_COPY:
    case DP_FAULT_REORDER:
    case DP_FAULT_SLOW:
    case DP_FAULT_LATE:
    case DP_FAULT_CLOCK:
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
        dp_host *host = &sim->hosts[i];
        host->disk_slow = 1;
        host->toy_slow = 1;
        if (sim->net.bytes_per_ms[i] < 1000) {
            sim->net.bytes_per_ms[i] = 1000;
        }
        if (!dp_host_up(host) && !host->left) {
            restart_later(sim, host, 1 + below(sim, 1000000));
        }
    }
}
