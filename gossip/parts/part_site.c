/* Results of owners far away come to a site once: one of the members near to each other fetches
 * such a result from its owner, and the others fetch it from that member. The round trips measured
 * here, and looked at once a round, decide which members are near; a turn among them decides which
 * member fetches. If two members see this differently, it costs bytes and a wait that ends: nothing
 * else depends on it. */
#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/parts/part_wait.h"
#include "gossip/round/round_msg.h"

/* The delay that a member of this run may have and be near. Busy processors add milliseconds to
 * each of many measurements, and to all members alike; so where some member is several times as
 * far, the bound follows the distance to it. */
static uint64_t near_us(const dp_node *node)
{
    const dp_rowset *linked = dp_members_linked(node->members);
    uint64_t farthest = 0;

    for (uint32_t k = 0; k < linked->count; k++) {
        const uint64_t least = dp_rtt_least(&dp_members_at(node->members, linked->at[k])->rtt);
        farthest = least != UINT64_MAX && least > farthest ? least : farthest;
    }
    const uint64_t bound = farthest / DP_SITE_TIMES_FARTHER;
    return bound < DP_SITE_RTT_US        ? DP_SITE_RTT_US
           : bound < DP_SITE_RTT_US_BUSY ? bound
                                         : DP_SITE_RTT_US_BUSY;
}

void dp_part_site_look(dp_node *node)
{
    const dp_rowset *linked = dp_members_linked(node->members);
    const uint64_t most_us = near_us(node);
    dp_part_site now = {0};

    for (uint32_t k = 0; !node->config.one_level && k < linked->count; k++) {
        const uint32_t index = linked->at[k];
        /* A member that has been near stays so until it is twice as far. */
        const uint64_t times = dp_part_site_near(node->parts, index) ? 2 : 1;
        if (index != 0 &&
            dp_rtt_least(&dp_members_at(node->members, index)->rtt) <= times * most_us) {
            now.near[index / 64] |= 1ULL << (index % 64);
            now.n++;
        }
    }
    node->parts->site = now;
}

bool dp_part_site_near(const dp_part_round *parts, uint32_t member)
{
    dp_assert(member < DP_MEMBERS_MAX);
    return (parts->site.near[member / 64] >> (member % 64) & 1U) != 0;
}

bool dp_part_site_takes_part(const dp_node *node, uint32_t index)
{
    const dp_member *member = dp_members_at(node->members, index);

    dp_assert(index < dp_members_count(node->members));
    if (index == 0) {
        return node->standing.state == DP_TRAINER_SET && !node->config.observer && !node->leaving;
    }
    return member->linked && member->state == DP_MEMBER_ALIVE && member->has_summary &&
           member->summary.has_trainer && member->summary.mode == DP_MODE_SYNC;
}

/* Is the owner by the chain of this part elsewhere? */
static bool is_far(const dp_node *node, const dp_peer *owner)
{
    const uint32_t index = dp_node_member_index(node, owner);

    return index != 0 && (index == DP_MEMBER_NONE || !dp_part_site_near(node->parts, index));
}

/* Its turn among the parts that are added up elsewhere. */
static uint32_t turn_of(const dp_node *node, uint32_t part)
{
    uint32_t turn = 0;

    dp_assert(part < node->ledger.layout.cuts.n);
    for (uint32_t p = 0; p < part; p++) {
        turn += is_far(node, &node->ledger.layout.owners[p]) ? 1 : 0;
    }
    return turn;
}

/* Index of the member that fetches this part for the site: by turns the near owners of a part, in
 * order of peer, since all nodes of the site know the same owners. DP_MEMBER_NONE: there are
 * none. */
static uint32_t fetcher_of(const dp_node *node, uint32_t part)
{
    const dp_part_layout *layout = &node->ledger.layout;
    uint32_t at[DP_PARTS_MAX];
    uint32_t n = 0;

    dp_assert(part < node->ledger.layout.cuts.n);
    for (uint32_t p = 0; p < layout->cuts.n; p++) {
        const uint32_t index = dp_node_member_index(node, &layout->owners[p]);
        if (!is_far(node, &layout->owners[p]) && dp_part_site_takes_part(node, index)) {
            at[n++] = index;
        }
    }
    return n == 0 ? DP_MEMBER_NONE : at[turn_of(node, part) % n];
}

bool dp_part_site_waits(const dp_node *node, const dp_result *result, dp_time *until)
{
    if (node->parts->site.n == 0 || result->evidence || !is_far(node, &result->word.owner)) {
        return false; /* An object that a record names is wanted at once. */
    }
    const uint32_t fetcher = fetcher_of(node, result->word.part);
    if (fetcher == 0 || fetcher == DP_MEMBER_NONE) {
        return false;
    }
    const dp_part_wait wait = dp_part_round_wait(node, result->word.part);
    *until = dp_time_after(result->since, DP_SITE_WAITS * dp_part_wait_line(&wait));
    return !dp_time_reached(node->now, *until) || dp_broken(71);
}

bool dp_part_site_serves(const dp_node *node, uint32_t part)
{
    return node->parts->site.n > 0 && is_far(node, &node->ledger.layout.owners[part]) &&
           fetcher_of(node, part) == 0;
}

/* Before it is known to decode: the others look at that themselves, and a voter accepts nothing
 * that it has not looked at. */
void dp_part_site_tell(dp_node *node, const dp_result *result)
{
    const uint64_t round = node->ledger.round + 1;

    if (!is_far(node, &result->word.owner) || fetcher_of(node, result->word.part) != 0) {
        return; /* The others ask its owner, or somebody else. */
    }
    dp_have_msg have = {.voter = node->self, .round = round, .n = 1};
    have.roots[0] = result->word.root;
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);
    if (!dp_have_sign(&have, &node->config.crypto, &node->run)) {
        return;
    }
    dp_have_msg_write(&writer, &have);
    dp_assert(!writer.full);
    const dp_rowset *linked = dp_members_linked(node->members);
    for (uint32_t k = 0; k < linked->count; k++) {
        const uint32_t index = linked->at[k];
        if (dp_part_site_near(node->parts, index) && dp_part_site_takes_part(node, index)) {
            dp_node_send(node, &dp_members_at(node->members, index)->peer,
                         dp_view_of(writer.data, writer.size));
        }
    }
}
