/* Members that are at work in the round under way, as far as this node sees them. */
#include "base/assert.h"
#include "gossip/catchup/fork.h"
#include "gossip/context/context.h"
#include "gossip/round/deadline.h"
#include "gossip/round/round.h"

/* As dp_round_may_contribute, for a count: its credential is believed. */
static bool may_train(const dp_node *node, const dp_member *member)
{
    return (member->in_roster || dp_broken(187)) &&
           (member->credential_bytes > 0 ? (member->caps & DP_CAP_TRAIN) != 0
                                         : dp_round_may_contribute(node, &member->peer));
}

static bool works_here(const dp_node *node)
{
    return node->standing.state == DP_TRAINER_SET && !node->paused && !node->leaving &&
           !node->config.observer && dp_node_can_train(node);
}

static bool is_idle(const dp_node *node, const dp_member *member)
{
    return member->has_summary &&
           (!member->summary.has_trainer || member->summary.mode == DP_MODE_PAUSED ||
            member->summary.mode == DP_MODE_LEFT || dp_fork_elsewhere(node, member->summary.fork));
}

/* Alive, with a trainer at work for this chain, wherever it stands; or ready already. Of a member
 * without a link no more may be known than that it is alive. */
bool dp_round_works(const dp_node *node, uint32_t index)
{
    const dp_member *member = dp_members_at(node->members, index);

    dp_assert(index < dp_members_count(node->members));
    if (index == 0) {
        return works_here(node);
    }
    return member->state == DP_MEMBER_ALIVE &&
           (dp_round_claim_of(node, &member->peer) != NULL ||
            ((member->has_summary ? !is_idle(node, member) : !member->linked) &&
             may_train(node, member)));
}

bool dp_round_anybody_works(const dp_node *node)
{
    const uint32_t n = dp_round_watched_count(node);
    uint32_t i = 0;

    dp_assert(n > 0);
    while (i < n && !dp_round_works(node, dp_round_watched_at(node, i))) {
        i++;
    }
    return i < n;
}

/* By its own word, which may be a second old, or by the chain. */
static bool is_near(const dp_node *node, const dp_member *member)
{
    const uint32_t entry = dp_ledger_find(&node->ledger, &member->peer);
    const uint64_t counted = entry != DP_NOBODY ? node->ledger.roster[entry].included : 0;
    const uint64_t newest = counted > member->summary.round ? counted : member->summary.round;

    return newest + 2 >= node->ledger.round;
}

bool dp_round_is_active(const dp_node *node, uint32_t index)
{
    const dp_member *member = dp_members_at(node->members, index);

    dp_assert(index < dp_members_count(node->members));
    if (index == 0) {
        return works_here(node);
    }
    return member->state == DP_MEMBER_ALIVE &&
           (dp_round_claim_of(node, &member->peer) != NULL ||
            (member->has_summary && (!dp_broken(122) || member->linked) && !is_idle(node, member) &&
             is_near(node, member) && may_train(node, member)));
}

/* Its link may be on its way, after a start or a partition, or an exchange may have to end first.
 * Its work of the time without a majority belongs into the same record as that of the others: what
 * they learnt together in pairs would count twice if records that follow each other listed it. The
 * round that was open all that time may list the updates of before; the next lists that work. */
bool dp_round_expects(const dp_node *node, uint32_t index)
{
    const dp_member *member = dp_members_at(node->members, index);
    const uint32_t entry = dp_ledger_find(&node->ledger, &member->peer);
    const dp_time since = node->beat.seen_since;
    const uint64_t long_us = dp_deadline_long_grace(&node->round->deadline);

    dp_assert(index < dp_members_count(node->members));
    if (index == 0 || since.us == 0 || entry == DP_NOBODY || dp_broken(240) ||
        node->manifest.exchange == DP_EXCHANGE_GRADIENTS || /* They are exchanged in no pairs. */
        dp_time_reached(node->round->began_before, dp_time_after(since, long_us))) {
        return false;
    }
    const dp_roster_entry *known = &node->ledger.roster[entry];
    return known->gone == 0 && known->included != 0 && known->included == node->ledger.round &&
           (member->state == DP_MEMBER_ALIVE && member->has_summary
                ? dp_round_works(node, index)
                : member->state != DP_MEMBER_LEFT);
}

/* The members whose work this node knows: all, this node first. In a run too large for links to
 * all, these are the linked members only, and they are enough: more than a record lists. */
uint32_t dp_round_watched_count(const dp_node *node)
{
    return dp_members_large(node->members) ? 1 + dp_members_linked(node->members)->count
                                           : dp_members_count(node->members);
}

uint32_t dp_round_watched_at(const dp_node *node, uint32_t i)
{
    dp_assert(i < dp_round_watched_count(node));
    return !dp_members_large(node->members) || i == 0 ? i
                                                      : dp_members_linked(node->members)->at[i - 1];
}

/* Members that are expected to contribute: alive, with a trainer, near the newest state. */
uint32_t dp_round_active(const dp_node *node)
{
    uint32_t active = 0;

    for (uint32_t i = 0; i < dp_round_watched_count(node); i++) {
        active += dp_round_is_active(node, dp_round_watched_at(node, i)) ? 1 : 0;
    }
    return active;
}

uint32_t dp_round_others_ready(const dp_node *node)
{
    uint32_t ready = 0;

    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        const dp_claim *claim = &node->round->claims[i];
        ready += !claim->evidence && !claim->bad && dp_round_claim_age(node, claim) == 0 &&
                         !dp_peer_equal(&claim->ready.peer, &node->self)
                     ? 1
                     : 0;
    }
    return ready;
}

uint64_t dp_round_slowest_step(const dp_node *node)
{
    uint64_t slowest = node->standing.step_us;

    for (uint32_t i = 1; i < dp_round_watched_count(node); i++) {
        const dp_member *member = dp_members_at(node->members, dp_round_watched_at(node, i));
        if (member->state == DP_MEMBER_ALIVE && member->has_summary && member->in_roster &&
            member->summary.step_us > slowest) {
            slowest = member->summary.step_us;
        }
    }
    return slowest;
}
