/* Faults between hosts. */
#include "tests/sim/faults.h"

/* Blocks every pair across two or more groups; if alone is a bridge, its pairs stay open. */
static void split(dp_sim *sim, uint32_t groups, uint32_t bridge, uint64_t until_us, bool hold)
{
    const uint32_t n = sim->plan.nodes;
    const uint64_t salt = dp_rng_next(&sim->fault_rngs[sim->striking]);

    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = 0; b < n; b++) {
            if (a != b && a != bridge && b != bridge &&
                dp_mix64(salt + a) % groups != dp_mix64(salt + b) % groups) {
                dp_net_block(&sim->net, a, b, until_us, hold);
            }
        }
    }
}

static void cut_off(dp_sim *sim, uint32_t alone, uint64_t until_us, bool hold)
{
    for (uint32_t b = 0; b < sim->plan.nodes; b++) {
        if (b != alone) {
            dp_net_block(&sim->net, alone, b, until_us, hold);
            dp_net_block(&sim->net, b, alone, until_us, hold);
        }
    }
}

/* Splits the hosts into groups, cuts one host off, or leaves one bridge between two halves. */
void dp_fault_partition(dp_sim *sim)
{
    const uint32_t form = (uint32_t)dp_fault_below(sim, 4);
    const uint32_t groups = form == 0 ? 2 + (uint32_t)dp_fault_below(sim, 3) : 2;
    const uint32_t alone = (uint32_t)dp_fault_below(sim, sim->plan.nodes);
    const bool hold = dp_fault_below(sim, 2) == 0;
    const uint64_t until = sim->now_us + 300000 +
                           dp_fault_below(sim, dp_fault_below(sim, 3) == 0 ? 15000000 : 4000000);

    dp_fault_count(sim);
    if (form == 1) {
        cut_off(sim, alone, until, hold);
    } else {
        split(sim, groups, form == 2 ? alone : UINT32_MAX, until, hold);
    }
}

void dp_fault_bridge(dp_sim *sim)
{
    const uint32_t bridge = (uint32_t)dp_fault_below(sim, sim->plan.nodes);

    dp_fault_count(sim);
    split(sim, 2, bridge, sim->now_us + 4000000 + dp_fault_below(sim, 20000000), false);
}

void dp_fault_one_way(dp_sim *sim)
{
    const uint64_t until = sim->now_us + 300000 + dp_fault_below(sim, 6000000);
    const uint32_t count = 1 + (uint32_t)dp_fault_below(sim, sim->plan.nodes);

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t from = (uint32_t)dp_fault_below(sim, sim->plan.nodes);
        const uint32_t to = (uint32_t)dp_fault_below(sim, sim->plan.nodes);
        if (from != to) {
            dp_net_block(&sim->net, from, to, until, dp_fault_below(sim, 2) == 0);
            dp_fault_count(sim);
        }
    }
}

static void cut(dp_sim *sim, uint32_t a, uint32_t b)
{
    if (dp_net_cut(&sim->net, &sim->queue, sim->now_us + 1, a, b, DP_LINK_RESET) != DP_OK) {
        dp_sim_fail(sim, "S12", a, "the queue of the world is full");
    }
}

void dp_fault_flap(dp_sim *sim, const dp_occasion *occasion)
{
    dp_occasion next = *occasion;

    if (next.value == 0) {
        const dp_host *host = dp_fault_any_up(sim);
        if (host == NULL) {
            return;
        }
        next.node = host->index;
        /* Breaks all of its links, or one. */
        next.other = (uint32_t)dp_fault_below(sim, (uint64_t)sim->plan.nodes * 2);
        next.value = sim->now_us + 2000000 + dp_fault_below(sim, 8000000);
    }
    for (uint32_t b = 0; b < sim->plan.nodes; b++) {
        if (b != next.node && (next.other == b || next.other >= sim->plan.nodes)) {
            cut(sim, next.node, b);
        }
    }
    dp_fault_count(sim);
    next.at_us = sim->now_us + 300000 + dp_fault_below(sim, 1200000);
    if (next.at_us < next.value && next.at_us < sim->plan.faults_end_us) {
        dp_sim_push(sim, &next);
    }
}

/* The machine gets another address. Its own side sees its connections break; the others notice
 * later. The founder keeps its address, which all tokens contain: if all addresses changed, no host
 * would find another. */
void dp_fault_rebind(dp_sim *sim)
{
    dp_host *host = dp_fault_any_up(sim);

    if (host == NULL || host->index == 0) {
        return;
    }
    dp_fault_count(sim);
    host->port++;
    if (dp_fault_below(sim, 2) == 0) {
        cut_off(sim, host->index, sim->now_us + 200000 + dp_fault_below(sim, 2000000), false);
    }
    for (uint32_t b = 0; b < sim->plan.nodes; b++) {
        dp_net_end *end = &sim->net.ends[(size_t)host->index * sim->plan.nodes + b];
        if (end->connection != 0) {
            dp_sim_push(sim, &(dp_occasion){.at_us = sim->now_us + 1,
                                            .kind = DP_ON_LINK_DOWN,
                                            .node = host->index,
                                            .other = b,
                                            .value = end->connection,
                                            .detail = DP_LINK_RESET});
        }
    }
    if (dp_fault_below(sim, 2) == 0) {
        dp_host_crash(host, false);
        dp_fault_restart(sim, host, 50000 + dp_fault_below(sim, 2000000));
    }
}

void dp_fault_release(dp_sim *sim)
{
    const uint64_t soon = sim->now_us + DP_SECOND;

    for (uint32_t a = 0; a < sim->plan.nodes; a++) {
        for (uint32_t b = 0; b < sim->plan.nodes; b++) {
            dp_net_path *path = dp_net_path_of(&sim->net, a, b);
            if (a != b &&
                (path->last_at[DP_NET_CONTROL] > soon || path->last_at[DP_NET_BULK] > soon)) {
                cut(sim, a, b);
                path->last_at[DP_NET_CONTROL] = 0;
                path->last_at[DP_NET_BULK] = 0;
            }
        }
    }
}

void dp_fault_drain(dp_sim *sim, uint32_t index)
{
    const uint64_t soon = sim->now_us + DP_SECOND;

    if (sim->net.free_at[(size_t)index * 2] <= soon &&
        sim->net.free_at[(size_t)index * 2 + 1] <= soon) {
        return;
    }
    for (uint32_t b = 0; b < sim->plan.nodes; b++) {
        dp_net_path *path = dp_net_path_of(&sim->net, index, b);
        if (b != index) {
            cut(sim, index, b);
        }
        path->last_at[DP_NET_CONTROL] = 0;
        path->last_at[DP_NET_BULK] = 0;
    }
    sim->net.free_at[(size_t)index * 2] = 0;
    sim->net.free_at[(size_t)index * 2 + 1] = 0;
}
