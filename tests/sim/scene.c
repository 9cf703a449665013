#include "tests/sim/scene.h"

#include "gossip/core/msg.h"
#include "tests/sim/epochs.h"
#include "tests/sim/oracle.h"
#include "tests/sim/sim.h"

enum {
    WARM_US = 15000000,        /* scene stall: all trainers work until then */
    REVOKE_EVERY_US = 5000000, /* scene revoke */
    CONFIRM_US = 2000000 /* more than commit, bids and fetching take in a world without faults */
};

/* An owner of a ballot dies when its first PROPOSE has left. The bid timers of the others count
 * from the close condition (SAFETY A9), so less than half of a round is lost. */
static void plan_kill(dp_plan *plan, dp_rng *rng)
{
    plan->nodes = 5 + (uint32_t)dp_rng_below(rng, 3);
    plan->voters_max = 5;
    plan->round_ms = 10000;
    plan->inner_steps_max = 100000;
    plan->kill_share = 32768;
    plan->away_us_max = 12000000;
    plan->faults_end_us = 100000000;
    plan->rounds_after = 3;
    plan->gap_us_max = 10000000 + CONFIRM_US;
}

/* All but one or two trainers stall, but their nodes run: K is never reached, and the hard deadline
 * closes the rounds (SAFETY D1): 1.5 L + 2 s, L at most three rounds. */
static void plan_stall(dp_plan *plan, dp_rng *rng)
{
    plan->nodes = 5 + (uint32_t)dp_rng_below(rng, 4);
    plan->round_ms = 1000;
    plan->workers = 1 + (uint32_t)dp_rng_below(rng, 2);
    plan->gap_us_max = 4500000 + 2000000 + CONFIRM_US;
}

/* More nodes try to join than the invite has uses. */
static void plan_strict(dp_plan *plan, dp_rng *rng)
{
    plan->nodes = 6 + (uint32_t)dp_rng_below(rng, 7);
    plan->invite_uses = 2 + (uint32_t)dp_rng_below(rng, 3);
    plan->round_ms = 500;
    plan->faults_end_us = 20000000;
    plan->rounds_after = 5;
}

/* A node joins every two seconds (SAFETY A7). */
static void plan_joins(dp_plan *plan, dp_rng *rng)
{
    plan->nodes = 12 + (uint32_t)dp_rng_below(rng, 9);
    plan->round_ms = 1000;
    plan->join_every_us = 2000000;
    plan->faults_end_us = 4000000 + plan->nodes * plan->join_every_us;
    plan->rounds_after = 5;
    plan->gap_us_max = 2000000 + CONFIRM_US;
}

/* A node joins every three seconds and leaves forever after six: in all more than may be members,
 * but never so many at a time. */
static void plan_spots(dp_plan *plan, dp_rng *rng)
{
    plan->nodes = 18 + (uint32_t)dp_rng_below(rng, 9);
    plan->round_ms = 500;
    plan->join_every_us = 3000000;
    plan->life_us = 6000000;
    plan->members_max = 10;
    plan->absent_s = 5;
    plan->voters_max = 3; /* The first three, which stay. */
    plan->faults_end_us = 4000000 + plan->nodes * plan->join_every_us;
    plan->rounds_after = 5;
}

/* Those that join at the end stay too. */
static void end_lives(dp_sim *sim)
{
    for (uint32_t i = 3; i + 3 < sim->plan.nodes && sim->plan.life_us != 0; i++) {
        dp_host *host = &sim->hosts[i];
        if (dp_host_up(host) && sim->now_us >= host->up_since + sim->plan.life_us) {
            dp_host_crash(host, true);
            host->left = true;
        }
    }
}

void dp_scene_plan(dp_plan *plan, dp_profile profile, dp_rng *rng)
{
    if (profile == DP_PROFILE_KILL || profile == DP_PROFILE_STALL || profile == DP_PROFILE_STRICT ||
        profile == DP_PROFILE_JOINS || profile == DP_PROFILE_SPOTS) {
        plan->on = 0;
        plan->crash_after_send = 0;
    }
    if (profile == DP_PROFILE_KILL) {
        plan_kill(plan, rng);
    } else if (profile == DP_PROFILE_STALL) {
        plan_stall(plan, rng);
    } else if (profile == DP_PROFILE_STRICT) {
        plan_strict(plan, rng);
    } else if (profile == DP_PROFILE_JOINS) {
        plan_joins(plan, rng);
    } else if (profile == DP_PROFILE_SPOTS) {
        plan_spots(plan, rng);
    } else if (profile == DP_PROFILE_REVOKE) {
        plan->revocations = plan->nodes / 3;
        plan->on &= ~(1U << DP_FAULT_NAT | 1U << DP_FAULT_WRITE | 1U << DP_FAULT_DAMAGE |
                      1U << DP_FAULT_JUMP | 1U << DP_FAULT_REBIND | 1U << DP_FAULT_FLAP);
    }
}

uint64_t dp_scene_boot_us(const dp_sim *sim, uint32_t index)
{
    return index < 3 ? 0 : sim->plan.join_every_us * (index - 2);
}

bool dp_scene_kills(dp_host *host, uint8_t type)
{
    dp_sim *sim = host->sim;

    if (sim->plan.kill_share == 0 || sim->healed || type != DP_MSG_PROPOSE ||
        dp_rng_below(&sim->crash_rng, 65536) >= sim->plan.kill_share) {
        return false;
    }
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        if (!dp_host_up(&sim->hosts[i])) {
            return false; /* one at a time */
        }
    }
    return true;
}

/* The root key removes a member, through a node that may not be linked to all. */
static void revoke_one(dp_sim *sim)
{
    dp_host *by = &sim->hosts[dp_rng_below(&sim->crash_rng, sim->plan.nodes)];
    dp_host *victim = &sim->hosts[1 + dp_rng_below(&sim->crash_rng, sim->plan.nodes - 1)];
    dp_status status = DP_OK;
    dp_why why = {0};
    dp_event event = {.type = DP_EV_ADMIN_COMMAND};

    /* One at a time: if a majority of voters is to be removed, no majority agrees to it (SAFETY I1:
     * their keys count until then). */
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        if (sim->hosts[i].leaving && dp_oracle_is_member(sim, i)) {
            return;
        }
    }
    /* A single voter cannot be removed either, since no other voter could agree: for this the root
     * key begins the chain anew, as in profile merge. */
    if (dp_oracle_voters(sim) < 3 &&
        dp_oracle_votes(sim, dp_oracle_slots(sim) + 1, victim->index)) {
        return;
    }
    if (by == victim || victim->leaving || by->leaving || !dp_host_up(by) ||
        by->paused_until > sim->now_us || sim->amnesias > 0) {
        return;
    }
    event.u.order = (dp_admin_command){
        .kind = DP_ADMIN_REVOKE, .peer = victim->peer, .status = &status, .why = &why};
    victim->leaving = true; /* before anything is sent */
    dp_host_event(by, &event);
    if (status == DP_OK) {
        sim->plan.revocations--;
        sim->leavers++;
    } else {
        victim->leaving = false;
    }
}

/* Also revokes an invite that no node has: the check is that all agree on it, and that the chain
 * has no revocation without a command. */
static void revoke_invite(dp_sim *sim)
{
    dp_host *by = &sim->hosts[dp_rng_below(&sim->crash_rng, sim->plan.nodes)];
    const uint32_t number = (uint32_t)dp_rng_below(&sim->crash_rng, DP_SIM_INVITES);
    dp_status status = DP_OK;
    dp_why why = {0};
    dp_event event = {.type = DP_EV_ADMIN_COMMAND};

    if (by->leaving || !dp_host_up(by) || by->paused_until > sim->now_us || sim->amnesias > 0) {
        return;
    }
    event.u.order = (dp_admin_command){.kind = DP_ADMIN_REVOKE_INVITE,
                                       .invite = dp_sim_invite(number),
                                       .until_ms = UINT64_MAX,
                                       .status = &status,
                                       .why = &why};
    sim->invites_ordered |= 1U << number; /* before anything is sent */
    dp_host_event(by, &event);
}

void dp_scene_look(dp_sim *sim)
{
    const bool idle = sim->now_us >= WARM_US && !sim->healed;

    for (uint32_t i = sim->plan.workers; sim->plan.workers != 0 && i < sim->plan.nodes; i++) {
        sim->hosts[i].idle = idle;
    }
    end_lives(sim);
    dp_epochs_look(sim);
    if (sim->plan.revocations != 0 && !sim->healed &&
        dp_rng_below(&sim->crash_rng, REVOKE_EVERY_US / 250000) == 0) {
        revoke_one(sim);
        revoke_invite(sim);
    }
}
