/* Profiles scale and detect: nodes that come, go and stand still at a steady rate, in a network
 * without other faults. */
#include "tests/sim/sim.h"

enum { START_US = 20000 }; /* between the starts of the first nodes */

static uint64_t below(dp_sim *sim, uint64_t limit)
{
    return dp_rng_below(&sim->churn_rng, limit);
}

static void later(dp_sim *sim)
{
    const uint64_t mean = sim->plan.churn_us;

    dp_sim_push(sim, &(dp_occasion){.at_us = sim->now_us + mean / 2 + below(sim, mean + 1),
                                    .kind = DP_ON_CHURN});
}

static void boot_at(dp_sim *sim, dp_host *host, uint64_t at_us)
{
    host->restart_at = at_us;
    dp_sim_push(sim, &(dp_occasion){.at_us = at_us, .kind = DP_ON_BOOT, .node = host->index});
}

void dp_churn_start(dp_sim *sim)
{
    dp_rng_init(&sim->churn_rng, dp_mix64(sim->options.seed) ^ 0x636875726e);
    dp_sim_push(sim, &(dp_occasion){.at_us = DP_SECOND, .kind = DP_ON_LOOK});
    for (uint32_t i = 0; i < sim->plan.nodes && sim->options.profile == DP_PROFILE_SCALE; i++) {
        sim->hosts[i].step_us *= 32; /* steps of 0.2 to 1.1 s, as of models that need such runs */
    }
    /* A thousand nodes do not start at once. */
    for (uint32_t i = sim->plan.at_start; i < sim->plan.members; i++) {
        boot_at(sim, &sim->hosts[i], 1 + (uint64_t)i * START_US + below(sim, 20 * START_US));
    }
    if (sim->plan.churn_us != 0) {
        /* Begins after the first nodes have found each other. */
        const uint64_t at = 15 * DP_SECOND + (uint64_t)sim->plan.members * START_US;
        dp_sim_push(sim, &(dp_occasion){.at_us = at, .kind = DP_ON_CHURN});
    }
}

/* A random node that runs and does not stand still, other than the founder; NULL if a few tries
 * find none. */
static dp_host *victim(dp_sim *sim)
{
    for (uint32_t tries = 0; tries < 20; tries++) {
        dp_host *host = &sim->hosts[below(sim, sim->plan.nodes)];
        if (host->index != 0 && dp_host_up(host) && !host->leaving &&
            host->paused_until <= sim->now_us && sim->now_us >= host->up_since + 10 * DP_SECOND) {
            return host;
        }
    }
    return NULL;
}

static void kill_one(dp_sim *sim, dp_host *host, uint64_t away_us)
{
    dp_measure_struck(host, false);
    dp_host_crash(host, true);
    boot_at(sim, host, sim->now_us + away_us);
    dp_measure_back(host, host->restart_at, false);
}

static void join_one(dp_sim *sim)
{
    if (sim->plan.members + sim->joiners < sim->plan.nodes) {
        boot_at(sim, &sim->hosts[sim->plan.members + sim->joiners], sim->now_us + 1);
        sim->joiners++;
    }
}

static void leave_one(dp_sim *sim, dp_host *host)
{
    host->leaving = true;
    dp_sim_push(sim,
                &(dp_occasion){.at_us = sim->now_us, .kind = DP_ON_LEAVE, .node = host->index});
}

void dp_churn_strike(dp_sim *sim)
{
    dp_host *host = victim(sim);
    const uint64_t kind = below(sim, sim->options.profile == DP_PROFILE_DETECT ? 2 : 3);

    later(sim);
    if (sim->options.profile == DP_PROFILE_DETECT) {
        if (host != NULL && kind == 0) {
            kill_one(sim, host, 8 * DP_SECOND);
        } else if (host != NULL) {
            host->paused_until = sim->now_us + 8 * DP_SECOND;
            dp_measure_struck(host, true);
            dp_measure_back(host, host->paused_until, true);
        }
    } else if (kind == 0) {
        join_one(sim);
    } else if (host != NULL && kind == 1) {
        kill_one(sim, host, 2 * DP_SECOND + below(sim, 30 * DP_SECOND));
    } else if (host != NULL) {
        leave_one(sim, host);
    }
}
