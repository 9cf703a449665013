/* The config part of a record that a voter proposes: removals, void exchanges, the voters from the
 * next slot on; and the rule by which such a part gets a record of its own. */
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/requests/requests.h"
#include "gossip/requests/revoke_request.h"
#include "gossip/requests/rotate.h"
#include "gossip/round/admit.h"
#include "gossip/round/config_part.h"
#include "gossip/round/deadline.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"

void dp_config_add_voter(dp_config_part *config, const dp_voter_entry *entry)
{
    uint32_t at = config->n_voters++;

    dp_assert(config->n_voters <= DP_VOTERS_MAX);
    while (at > 0 && dp_peer_compare(&entry->voter.peer, &config->voters[at - 1].voter.peer) < 0) {
        config->voters[at] = config->voters[at - 1];
        at--;
    }
    config->voters[at] = *entry;
}

static bool is_alive(const dp_node *node, const dp_peer *peer)
{
    const uint32_t index = dp_node_member_index(node, peer);

    return index == 0 || (index != DP_MEMBER_NONE &&
                          dp_members_at(node->members, index)->state == DP_MEMBER_ALIVE);
}

/* Has it been up for vote.uptime? Measured from the first sign of its present life that this node
 * saw, less an eighth, since that comes later than its start. A node that has not been up for so
 * long itself goes by the chain: rounds since the admission. */
static bool is_up_long(const dp_node *node, const dp_peer *peer, const dp_roster_entry *entry)
{
    const uint64_t uptime_us = (uint64_t)node->manifest.voter_uptime_s * DP_SECOND;
    const uint64_t own_us = dp_time_between(node->started_at, node->now);
    const uint32_t index = dp_node_member_index(node, peer);

    if (index == 0 || uptime_us == 0 || dp_broken(126)) {
        return true;
    }
    if (index == DP_MEMBER_NONE) {
        return false;
    }
    const dp_member *member = dp_members_at(node->members, index);
    const uint64_t seen_us =
        member->incarnation != 0 ? dp_time_between(member->life_since, node->now) : 0;
    if (own_us >= uptime_us) {
        return seen_us >= uptime_us - uptime_us / 8;
    }
    const uint64_t rounds = node->ledger.round - entry->admitted_round;
    return seen_us >= own_us - own_us / 8 &&
           rounds >= uptime_us / ((uint64_t)node->manifest.round_ms * DP_MS);
}

/* The next offer that may become a voter, from *at on. */
static const dp_voter_ok_msg *next_offer(const dp_node *node, const dp_record *draft, uint32_t *at)
{
    dp_assert(*at <= node->round->n_offers);
    dp_assert(node->round->n_offers <= DP_OFFERS_MAX);
    while (*at < node->round->n_offers) {
        const dp_voter_ok_msg *offer = &node->round->offers[(*at)++];
        const dp_roster_entry *entry = dp_ledger_member(&node->ledger, &offer->peer);
        bool taken = dp_config_removes(&draft->config, &offer->peer);
        for (uint32_t i = 0; i < draft->config.n_voters; i++) {
            const dp_voter *voter = &draft->config.voters[i].voter;
            taken = taken || dp_peer_equal(&voter->peer, &offer->peer) ||
                    memcmp(voter->key, offer->key, DP_PUBLIC_KEY_BYTES) == 0;
        }
        if (!taken && entry != NULL && (entry->caps & DP_CAP_VOTE) != 0 &&
            is_alive(node, &offer->peer) && is_up_long(node, &offer->peer, entry)) {
            return offer;
        }
    }
    return NULL;
}

/* A voter that stays: not leaving, not dead for long, its key not lost. */
static bool stays(const dp_node *node, const dp_record *draft, uint32_t index)
{
    const dp_voter *voter = &node->ledger.voters[index];

    dp_assert(index < node->ledger.n_voters);
    for (uint32_t i = 0; i < node->round->n_offers; i++) {
        const dp_voter_ok_msg *offer = &node->round->offers[i];
        if (dp_peer_equal(&offer->peer, &voter->peer) &&
            memcmp(offer->key, voter->key, DP_PUBLIC_KEY_BYTES) != 0) {
            return false; /* It has a new key, so the old one is gone. */
        }
    }
    return !dp_config_removes(&draft->config, &voter->peer) &&
           dp_time_between(node->round->voter_seen[index], node->now) < DP_VOTER_DEAD_US;
}

/* Put back voters that are dead for long and have no successor: all but an even number of them, so
 * that the count shrinks by two at a time, and to 3 at the least. */
static void put_back(const dp_node *node, const dp_record *draft, dp_config_part *config)
{
    const uint32_t n = node->ledger.n_voters;
    const uint32_t missing = n > config->n_voters ? n - config->n_voters : 0;
    uint32_t target = n - missing / 2 * 2;

    dp_assert(config->n_voters <= DP_VOTERS_MAX);
    if (target < 3) {
        target = n < 3 ? n : 3;
    }
    for (uint32_t i = 0; i < n && config->n_voters < target; i++) {
        const dp_voter *voter = &node->ledger.voters[i];
        bool there = stays(node, draft, i) || dp_config_removes(config, &voter->peer);
        for (uint32_t k = 0; k < config->n_voters && !there; k++) {
            there = dp_peer_equal(&config->voters[k].voter.peer, &voter->peer);
        }
        if (!there) {
            const dp_voter_entry entry = {.voter = *voter, .kept = true};
            dp_config_add_voter(config, &entry);
        }
    }
}

/* How many may vote: the live present voters that stay must be able to decide without a new voter,
 * which may be gone by then. A sole voter has to trust one of two. A node whose own time had a gap
 * adds no voter before it has seen the state of the others. */
static uint32_t most_voters(const dp_node *node, const dp_record *draft)
{
    const uint32_t n = node->ledger.n_voters;
    uint32_t sure = 0;

    for (uint32_t i = 0; i < n; i++) {
        sure += stays(node, draft, i) && is_alive(node, &node->ledger.voters[i].peer) ? 1 : 0;
    }
    const uint32_t safe = dp_members_unsure(node->members, node->now) ? n
                          : n == 1                                    ? 3
                          : 2 * sure > n                              ? 2 * sure - 1
                                                                      : n;
    return safe < node->ledger.voters_max ? safe : node->ledger.voters_max;
}

/* Odd counts only: 1 to 3 to 5 to 7 as candidates come, replacing before shrinking, and below 3
 * only when voters left for good. */
static void plan_voters(const dp_node *node, dp_record *draft)
{
    const uint32_t n = node->ledger.n_voters;
    const uint32_t most = most_voters(node, draft);
    dp_config_part *config = &draft->config;
    uint32_t at = 0;
    uint32_t lost = 0;

    dp_assert(node->ledger.n_voters <= DP_VOTERS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        if (stays(node, draft, i)) {
            const dp_voter_entry entry = {.voter = node->ledger.voters[i], .kept = true};
            dp_config_add_voter(config, &entry);
        } else {
            lost++;
        }
    }
    for (const dp_voter_ok_msg *offer = next_offer(node, draft, &at);
         offer != NULL && config->n_voters < most; offer = next_offer(node, draft, &at)) {
        dp_voter_entry entry = {.voter = {.peer = offer->peer}};
        memcpy(entry.voter.key, offer->key, sizeof entry.voter.key);
        memcpy(entry.signature, offer->signature, sizeof entry.signature);
        dp_config_add_voter(config, &entry);
    }
    if (config->n_voters > n && (config->n_voters - n) % 2 != 0 &&
        !dp_broken(18)) { /* Grow by two. */
        for (uint32_t i = config->n_voters; i-- > 0;) {
            if (!config->voters[i].kept) {
                memmove(&config->voters[i], &config->voters[i + 1],
                        (config->n_voters - i - 1) * sizeof config->voters[0]);
                config->n_voters--;
                break;
            }
        }
    }
    if (lost > 0) {
        put_back(node, draft, config);
    }
    if (config->n_voters % 2 == 0 && config->n_voters > 0 && !dp_broken(18)) {
        uint32_t out = config->n_voters;
        while (out-- > 0 && dp_peer_equal(&config->voters[out].voter.peer, &node->self)) {
        }
        memmove(&config->voters[out], &config->voters[out + 1],
                (config->n_voters - out - 1) * sizeof config->voters[0]);
        config->n_voters--;
    }
    bool same = config->n_voters == n;
    for (uint32_t i = 0; i < config->n_voters && same; i++) {
        same = config->voters[i].kept;
    }
    if (config->n_voters == 0 || same) {
        config->n_voters = 0; /* No change. */
    } else {
        draft->has_config = true;
    }
}

/* A voter cannot be removed before another node votes in its place, unless no member is left. */
static void keep_voters(const dp_node *node, dp_record *draft)
{
    dp_config_part *config = &draft->config;
    uint32_t kept = 0;

    if (config->n_voters > 0 || node->ledger.n_members + config->n_admits <= config->n_removes) {
        return;
    }
    for (uint32_t i = 0; i < config->n_removes; i++) {
        if (dp_ledger_voter(&node->ledger, &config->removes[i].peer) == DP_NOBODY) {
            config->removes[kept++] = config->removes[i];
        }
    }
    config->n_removes = kept;
    /* Drop admissions that used the places of the removals above. */
    while (config->n_admits > 0 &&
           !dp_ledger_has_place(&node->ledger, config->n_admits, config->n_removes)) {
        config->n_admits--;
    }
    draft->has_config = config->n_admits + config->n_removes + config->n_fences > 0;
}

static void list_removals(const dp_node *node, dp_record *draft)
{
    dp_config_part *config = &draft->config;

    dp_assert(draft->config.n_removes == 0);
    for (uint32_t i = 0; i < node->requests->n_removes; i++) {
        const dp_remove *remove = &node->requests->removes[i];
        if (dp_ledger_member(&node->ledger, &remove->peer) != NULL &&
            !dp_config_removes(config, &remove->peer) && config->n_removes < DP_CONFIG_REMOVE_MAX) {
            dp_config_add_removal(config, remove);
            draft->has_config = true;
        }
    }
}

/* In order of peer, each once: several may be in doubt with it, of its lives the latest counts. */
static void add_fence(dp_config_part *config, const dp_fence *fence)
{
    uint32_t at = 0;

    dp_assert(config->n_fences <= DP_CONFIG_FENCE_MAX);
    while (at < config->n_fences && dp_peer_compare(&config->fences[at].peer, &fence->peer) < 0) {
        at++;
    }
    if (at < config->n_fences && dp_peer_equal(&config->fences[at].peer, &fence->peer)) {
        if (config->fences[at].incarnation < fence->incarnation) {
            config->fences[at].incarnation = fence->incarnation;
        }
        return;
    }
    if (config->n_fences == DP_CONFIG_FENCE_MAX) {
        return; /* The next record has room. */
    }
    memmove(&config->fences[at + 1], &config->fences[at],
            (config->n_fences - at) * sizeof config->fences[0]);
    config->fences[at] = *fence;
    config->n_fences++;
}

static void list_fences(const dp_node *node, dp_record *draft)
{
    for (uint32_t i = 0; i < node->requests->n_fences; i++) {
        const dp_fence_request *wish = &node->requests->fences[i];
        const uint32_t index = dp_ledger_find(&node->ledger, &wish->fence.peer);
        if (index != DP_NOBODY && node->ledger.roster[index].fenced < wish->fence.incarnation &&
            dp_request_lasts(node, wish) && !is_alive(node, &wish->fence.peer)) {
            add_fence(&draft->config, &wish->fence);
            draft->has_config = true;
        }
    }
}

void dp_config_draft(const dp_node *node, dp_record *draft, dp_admitted *admitted)
{
    list_removals(node, draft);
    dp_judging_list(node, draft);
    dp_revoke_request_draft(node, draft);
    dp_rotate_draft(node, draft);
    dp_admit_draft(node, draft, admitted);
    list_fences(node, draft);
    plan_voters(node, draft);
    keep_voters(node, draft);
    draft->has_config =
        draft->has_config || draft->config.has_revoked || draft->config.has_rotation;
}

/* No round is near: nothing could be listed for as long as a round may last. */
bool dp_config_may_stand_alone(const dp_node *node)
{
    const dp_round *round = node->round;

    return dp_time_between(round->slot_opened, node->now) >= dp_deadline_hard(&round->deadline) &&
           dp_round_held(node, NULL) == 0;
}

bool dp_config_due(dp_node *node)
{
    dp_record *draft = &node->draft;
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX];

    if (!dp_config_may_stand_alone(node) && !dp_admit_may_stand_alone(node)) {
        return false;
    }
    memset(draft, 0, offsetof(dp_record, listed));
    draft->time_ms = dp_node_record_ms(node);
    dp_config_draft(node, draft, admitted);
    return draft->has_config;
}
