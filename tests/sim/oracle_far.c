/* The judge of waits for members without a link: a voter that closes a round must count a working
 * member that it reaches through others. */
#include "gossip/context/context.h"
#include "gossip/member/members_internal.h"
#include "gossip/round/round.h"
#include "tests/sim/evil.h"
#include "tests/sim/oracle_internal.h"

/* A summary is sent once a second through two random members, and at least half of the members
 * forward it: within this time one has arrived, except for one pair in a million. */
static const uint64_t known_us = 10 * DP_SECOND;

static bool works(const dp_node *node)
{
    return node->standing.state == DP_TRAINER_SET && node->mode == DP_MODE_SYNC && !node->leaving &&
           !node->config.observer;
}

static const dp_row *row_of(const dp_host *host, const dp_host *other)
{
    const dp_members *members = host->node->members;
    const uint32_t index = dp_members_find(members, &other->peer);

    return index == DP_MEMBER_NONE ? NULL : &members->rows[index];
}

static bool linked_long(const dp_host *host, const dp_host *other)
{
    const dp_row *row = row_of(host, other);

    return row != NULL && row->member.linked && row->member.state == DP_MEMBER_ALIVE &&
           dp_time_between(row->linked_at, host->node->now) >= known_us;
}

/* At least half of the members linked to other have long been linked to host too, and forward
 * correctly. */
static bool is_between(dp_sim *sim, const dp_host *host, const dp_host *other)
{
    uint32_t linked = 0;
    uint32_t both = 0;

    for (uint32_t c = 0; c < sim->plan.nodes; c++) {
        const dp_host *third = &sim->hosts[c];
        const dp_row *row = row_of(other, third);
        if (row == NULL || !row->member.linked || third == other) {
            continue;
        }
        linked++;
        both += dp_host_up(third) && !dp_evil_is(sim, c) && linked_long(other, third) &&
                        linked_long(third, other) && linked_long(third, host) &&
                        linked_long(host, third)
                    ? 1
                    : 0;
    }
    return both > 0 && 2 * both >= linked;
}

/* Each holds the other for alive, without a link, and other is working. */
static bool is_far(dp_sim *sim, const dp_host *host, const dp_host *other)
{
    const dp_row *there = row_of(host, other);
    const dp_row *back = row_of(other, host);

    return there != NULL && back != NULL && !there->member.linked && !back->member.linked &&
           there->member.state == DP_MEMBER_ALIVE && back->member.state == DP_MEMBER_ALIVE &&
           dp_time_between(there->member.changed, host->node->now) >= known_us &&
           dp_time_between(back->member.changed, other->node->now) >= known_us &&
           works(other->node) && is_between(sim, host, other);
}

/* In rounds much shorter than a second the last summary may be of an earlier round, like one of a
 * linked member. */
static bool is_known(const dp_host *host, const dp_host *other)
{
    const uint32_t index = dp_members_find(host->node->members, &other->peer);
    const dp_member *member = dp_members_at(host->node->members, index);

    return member->has_summary && dp_time_between(member->summary_at, host->node->now) < known_us &&
           (member->summary.round + 2 < host->node->ledger.round ||
            member->summary.mode != DP_MODE_SYNC || !member->summary.has_trainer ||
            dp_round_is_active(host->node, index));
}

void dp_oracle_far(dp_host *host)
{
    dp_sim *sim = host->sim;
    dp_oracle *o = sim->oracle;

    if (sim->plan.nodes > DP_FULL_MESH_MAX || dp_evil_is(sim, host->index)) {
        return;
    }
    for (uint32_t b = 0; b < sim->plan.nodes; b++) {
        const dp_host *other = &sim->hosts[b];
        uint64_t *since = &o->far_since[(size_t)host->index * sim->plan.nodes + b];
        if (b == host->index || dp_evil_is(sim, b) || !dp_host_up(other) ||
            !is_far(sim, host, other)) {
            *since = 0;
            continue;
        }
        *since = *since == 0 ? sim->now_us : *since;
        if (sim->now_us - *since >= known_us && !is_known(host, other)) {
            dp_sim_fail(sim, "L7", host->index,
                        "closes round %llu without counting node %u, which works and is linked to "
                        "those that it is linked to itself",
                        (unsigned long long)host->node->ledger.round + 1, b);
        }
    }
}
