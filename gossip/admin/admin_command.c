/* Admin commands: instructions by the owner of the root key or by an admin. The node signs a
 * command with the key that the command requires and spreads it like any other message. Every node
 * judges it again; the checks here only give the caller an early reason for a refusal. */
#include <string.h>

#include "base/assert.h"
#include "gossip/admin/admin_command.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/proof.h"
#include "gossip/context/context.h"
#include "gossip/ledger/inviting.h"
#include "gossip/requests/admin_key.h"
#include "gossip/requests/requests.h"
#include "gossip/requests/revoke_request.h"
#include "gossip/requests/rotate.h"
#include "gossip/round/config_part.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"

/* ---- revocation ---- */

/* The voters that are not revoked are no majority of the voters. */
static bool nobody_decides(const dp_node *node)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < node->ledger.n_voters; i++) {
        left += dp_node_revoked(node, &node->ledger.voters[i].peer) ? 0 : 1;
    }
    return left < dp_ledger_majority(&node->ledger);
}

/* A revocation must always be possible, also that of the only voter; going on then takes the root
 * key. */
static dp_status tell_whether_somebody_decides(const dp_node *node, const dp_admin_command *order)
{
    return nobody_decides(node)
               ? dp_why_set(
                     order->why, DP_OK,
                     "the remaining voters are no majority: no round is decided until the node "
                     "that created the run names new voters: dpnode run fork")
               : DP_OK;
}

static dp_status revoke(dp_node *node, const dp_admin_command *order)
{
    const dp_roster_entry *entry = dp_ledger_member(&node->ledger, &order->peer);
    dp_remove remove = {.peer = order->peer, .reason = DP_REMOVE_REVOKED};
    const int key = dp_admin_key(node, &remove.by);

    if (dp_peer_equal(&order->peer, &node->self)) {
        return dp_why_set(order->why, DP_BADARG,
                          "a node cannot revoke itself; to leave the run: dpnode leave");
    }
    if (entry == NULL) {
        return dp_why_set(
            order->why, DP_NOTFOUND,
            "it is not a member of the run; a new node becomes a member with the next record");
    }
    if (!dp_ledger_may_revoke(&node->ledger, &remove.by, &order->peer)) {
        return dp_why_set(order->why, DP_DENIED,
                          (entry->caps & DP_CAP_ADMIN) != 0
                              ? "it is an admin, and only the root key removes an admin"
                              : "this node has neither the root key nor the right to administer");
    }
    if (!dp_remove_sign(&remove, &node->config.crypto, key, &node->run)) {
        return dp_why_set(order->why, DP_DENIED, "this node does not have the key to sign with");
    }
    const dp_status status = dp_request_removal(node, &remove);
    if (status != DP_OK) {
        return dp_why_set(order->why, status, "%u removals already wait for the next record",
                          node->requests->n_removes);
    }
    return tell_whether_somebody_decides(node, order);
}

/* ---- an invite ---- */

static dp_status refuse_invite(const dp_admin_command *order, dp_status status)
{
    switch ((int)status) {
    case DP_AGAIN:
        return dp_why_set(order->why, status,
                          "%d revocations already wait for the next record, the largest number; "
                          "repeat the command when they are decided",
                          DP_CONFIG_REVOKE_MAX);
    case DP_TOOBIG:
        return dp_why_set(order->why, status,
                          "the chain already has %d revoked invites, the largest number",
                          DP_REVOKED_INVITES_MAX);
    case DP_DENIED:
        return dp_why_set(order->why, status,
                          "this node has neither the root key nor the right to administer");
    default:
        return dp_why_set(order->why, status, "the revocation is not valid: %s",
                          dp_status_text(status));
    }
}

static dp_status revoke_invite(dp_node *node, const dp_admin_command *order)
{
    static const dp_invite_id none;
    dp_invite_revoke word = {.id = order->invite,
                             .until_ms = dp_invite_revoke_until(order->until_ms)};
    const int key = dp_admin_key(node, &word.by);

    if (dp_invite_id_compare(&order->invite, &none) == 0) {
        return dp_why_set(order->why, DP_BADARG, "no invite has this id");
    }
    if (!dp_inviting_may_revoke(&node->ledger, &word.by)) {
        return refuse_invite(order, DP_DENIED);
    }
    if (word.until_ms <= dp_node_record_ms(node)) {
        DP_IGNORE(dp_why_set(order->why, DP_OK, "the invite had expired already"));
    } else if (!dp_inviting_wants(&node->ledger, &word, dp_node_record_ms(node))) {
        DP_IGNORE(dp_why_set(order->why, DP_OK, "the invite was revoked already"));
    } else if (!dp_invite_revoke_sign(&word, &node->config.crypto, key, &node->run)) {
        return dp_why_set(order->why, DP_DENIED, "this node does not have the key to sign with");
    } else {
        const dp_status status = dp_revoke_request(node, &word);
        if (status != DP_OK) {
            return refuse_invite(order, status);
        }
    }
    if (order->members) {
        const dp_status status = dp_invite_sweep(node, &order->invite);
        if (status != DP_OK) {
            return refuse_invite(order, status);
        }
        return tell_whether_somebody_decides(node, order);
    }
    return DP_OK;
}

/* ---- fork ---- */

static void add_own_vote(dp_node *node, dp_record *draft)
{
    const dp_roster_entry *entry = dp_ledger_member(&node->ledger, &node->self);
    dp_voter_entry own = {.voter = {.peer = node->self}};

    dp_assert(draft->config.n_voters < DP_VOTERS_MAX);
    memcpy(own.voter.key, node->config.vote_public_key, sizeof own.voter.key);
    if (node->config.has_vote_key && !node->commit->key_lost && entry != NULL &&
        entry->admitted_slot < draft->slot && (entry->caps & DP_CAP_VOTE) != 0 &&
        !dp_peer_equal(&node->proof->culprit, &node->self) &&
        dp_voter_ok_sign(&node->config.crypto, &node->run, &draft->prev, own.voter.key,
                         own.signature)) {
        dp_config_add_voter(&draft->config, &own);
    }
}

/* Voters of the fork: this node, then each live member that has offered its vote key for this head;
 * an odd number of them. An offer is for the newest head, so after an earlier one this node votes
 * alone, until the next records take in others. */
static uint32_t choose_voters(dp_node *node, dp_record *draft)
{
    dp_config_part *config = &draft->config;

    dp_assert(draft->kind == DP_RECORD_FORK);
    add_own_vote(node, draft);
    for (uint32_t i = 0; i < node->round->n_offers; i++) {
        const dp_voter_ok_msg *offer = &node->round->offers[i];
        const uint32_t index = dp_node_member_index(node, &offer->peer);
        const dp_roster_entry *other = dp_ledger_member(&node->ledger, &offer->peer);
        if (!dp_hash_equal(&offer->head, &draft->prev) ||
            config->n_voters == node->ledger.voters_max || index == DP_MEMBER_NONE || index == 0 ||
            dp_members_at(node->members, index)->state != DP_MEMBER_ALIVE || other == NULL ||
            (other->caps & DP_CAP_VOTE) == 0 || dp_node_revoked(node, &offer->peer) ||
            dp_peer_equal(&node->proof->culprit, &offer->peer)) {
            continue;
        }
        dp_voter_entry next = {.voter = {.peer = offer->peer}};
        memcpy(next.voter.key, offer->key, sizeof next.voter.key);
        memcpy(next.signature, offer->signature, sizeof next.signature);
        dp_config_add_voter(config, &next);
    }
    if (config->n_voters % 2 == 0 && config->n_voters > 0) { /* Not this node, if it is there. */
        uint32_t out = config->n_voters - 1;
        out -= dp_peer_equal(&config->voters[out].voter.peer, &node->self) ? 1 : 0;
        memmove(&config->voters[out], &config->voters[out + 1],
                (config->n_voters - out - 1) * sizeof config->voters[0]);
        config->n_voters--;
    }
    return config->n_voters;
}

/* Put out by the root key, once; among the removals in order of key. DP_TOOBIG: there is no room
 * for one more. */
static dp_status put_out(dp_node *node, dp_record *draft, const dp_peer *peer)
{
    dp_config_part *config = &draft->config;
    dp_remove remove = {.peer = *peer, .reason = DP_REMOVE_REVOKED};
    uint32_t at = config->n_removes;

    dp_assert(draft->config.n_removes <= DP_CONFIG_REMOVE_MAX);
    memcpy(remove.by.bytes, node->ledger.root_key, sizeof remove.by.bytes);
    for (uint32_t i = 0; i < config->n_removes; i++) {
        if (dp_peer_equal(&config->removes[i].peer, peer)) {
            return DP_OK;
        }
    }
    if (at == DP_CONFIG_REMOVE_MAX) {
        return DP_TOOBIG;
    }
    if (!dp_remove_sign(&remove, &node->config.crypto, DP_KEY_ROOT, &node->run)) {
        return DP_DENIED;
    }
    for (; at > 0 && dp_peer_compare(peer, &config->removes[at - 1].peer) < 0; at--) {
        config->removes[at] = config->removes[at - 1];
    }
    config->removes[at] = remove;
    config->n_removes++;
    return DP_OK;
}

/* Adds to the FORK the removals that it would undo: members that were put out after the slot to
 * which the FORK goes back would otherwise be members again. */
static dp_status put_out_again(dp_node *node, dp_record *draft)
{
    const dp_ledger *ledger = &node->ledger;

    dp_assert(draft->kind == DP_RECORD_FORK);
    for (uint32_t i = 0; i < ledger->n_roster; i++) {
        const dp_roster_entry *entry = &ledger->roster[i];
        const bool thrown = entry->gone == DP_REMOVE_REVOKED || entry->gone == DP_REMOVE_HARMFUL;
        if (thrown && entry->gone_slot >= draft->slot && entry->admitted_slot < draft->slot) {
            DP_TRY(put_out(node, draft, &entry->peer));
        }
    }
    return DP_OK;
}

/* And invites that were revoked after it would admit again. */
static dp_status revoke_again(dp_node *node, dp_record *draft)
{
    const dp_ledger *ledger = &node->ledger;
    dp_config_part *config = &draft->config;

    config->has_revoked = ledger->judges_invites || config->n_removes > 0;
    for (uint32_t i = 0; i < ledger->n_revoked; i++) {
        const dp_revoked_invite *revoked = &ledger->revoked[i];
        dp_invite_revoke word = {.id = revoked->id, .until_ms = revoked->until_ms};
        uint32_t at = config->n_revoked;
        if (revoked->slot < draft->slot) {
            continue;
        }
        if (at == DP_CONFIG_REVOKE_MAX) {
            return DP_TOOBIG;
        }
        memcpy(word.by.bytes, ledger->root_key, sizeof word.by.bytes);
        if (!dp_invite_revoke_sign(&word, &node->config.crypto, DP_KEY_ROOT, &node->run)) {
            return DP_DENIED;
        }
        for (; at > 0 && dp_invite_id_compare(&word.id, &config->revoked[at - 1].id) < 0; at--) {
            config->revoked[at] = config->revoked[at - 1];
        }
        config->revoked[at] = word;
        config->n_revoked++;
    }
    return DP_OK;
}

/* May the chain begin anew after its head? */
static dp_status may_fork(const dp_node *node, const dp_admin_command *order)
{
    if (!node->halted && node->mode != DP_MODE_GOSSIP) {
        return dp_why_set(order->why, DP_EXISTS,
                          "no restart is needed: this node reaches a majority of the voters, or "
                          "does not know yet whether it does");
    }
    if (!node->standing.has_theta || node->standing.applied != node->ledger.round) {
        return dp_why_set(
            order->why, DP_AGAIN,
            "this node does not have the state of round %llu, from which the run would continue",
            (unsigned long long)node->ledger.round);
    }
    return DP_OK;
}

/* The slot that a fork back follows: that of the round, or of a FORK from it, which has begun the
 * present chain. */
static uint64_t slot_of(const dp_node *node, const dp_admin_command *order)
{
    const dp_forks *forks = node->forks;
    const uint64_t last = forks->n > 0 ? forks->own[forks->n - 1].slot : 0;
    const dp_head *head = dp_fork_head(node, last);

    return head != NULL && last > order->slot && head->round == order->round ? last : order->slot;
}

/* And after the slot that the order names? The state is a checkpoint here; members that lack it
 * fetch it from this node. */
static dp_status may_go_back(const dp_node *node, const dp_admin_command *order)
{
    const dp_forks *forks = node->forks;
    const dp_head *head = dp_fork_head(node, order->slot);
    dp_hash certified;

    if (order->round >= node->ledger.round) {
        return dp_why_set(order->why, DP_EXISTS,
                          "round %llu is the newest round: no round can be undone",
                          (unsigned long long)node->ledger.round);
    }
    if (head == NULL || head->round != order->round) {
        return dp_why_set(order->why, DP_NOTFOUND,
                          "round %llu is too old: the chain can restart at most %d records back",
                          (unsigned long long)order->round, DP_HEADS_MAX);
    }
    if (forks->n > 0 && forks->own[forks->n - 1].slot > order->slot) {
        return dp_why_set(order->why, DP_DENIED,
                          "the chain was restarted after round %llu; a restart cannot be undone",
                          (unsigned long long)order->round);
    }
    if (dp_chain_certified(node, order->round, &certified) &&
        !dp_hash_equal(&certified, &order->state_root)) {
        return dp_why_set(order->why, DP_CORRUPT,
                          "the checkpoint of round %llu is not the state that the voters signed",
                          (unsigned long long)order->round);
    }
    return DP_OK;
}

/* The record without voters; as of the head that it follows. */
static void draft_fork(const dp_node *node, const dp_admin_command *order, dp_record *draft)
{
    const dp_ledger *ledger = &node->ledger;
    const uint64_t slot = order->back ? order->slot : ledger->slot;

    dp_assert(draft == &node->draft);
    memset(draft, 0, sizeof *draft);
    draft->kind = DP_RECORD_FORK;
    draft->run = node->run;
    draft->fork = ledger->fork;
    draft->slot = slot + 1;
    draft->prev = order->back ? dp_fork_head(node, slot)->hash : ledger->head;
    draft->time_ms = node->wall_ms > ledger->time_ms ? node->wall_ms : ledger->time_ms;
    draft->round = order->back ? order->round : ledger->round;
    draft->state_root = order->back ? order->state_root : node->standing.state_root;
    draft->has_config = true;
}

static dp_status fork_chain(dp_node *node, const dp_admin_command *given)
{
    const dp_admin_command at = {.back = given->back,
                                 .round = given->round,
                                 .slot = given->back ? slot_of(node, given) : 0,
                                 .state_root = given->state_root,
                                 .why = given->why};
    const dp_admin_command *order = &at;
    dp_record *draft = &node->draft;
    uint8_t room[DP_FORK_BYTES_MAX];
    dp_view bytes;

    if (!dp_admin_has_root(node)) {
        return dp_why_set(
            order->why, DP_DENIED,
            "this node does not have the root key; the node that created the run has it");
    }
    DP_TRY(order->back ? may_go_back(node, order) : may_fork(node, order));
    draft_fork(node, order, draft);
    const uint64_t round = draft->round;
    dp_status removed = put_out_again(node, draft);
    if (removed == DP_OK && node->halted &&
        !dp_peer_is_zero(&node->proof->culprit)) { /* The voter that voted twice is put out. */
        removed = put_out(node, draft, &node->proof->culprit);
    }
    removed = removed == DP_OK ? revoke_again(node, draft) : removed;
    if (removed != DP_OK) {
        return dp_why_set(order->why, removed,
                          removed == DP_TOOBIG
                              ? "more than %d members or invites have been revoked since round %llu"
                              : "the root key could not sign",
                          DP_CONFIG_REMOVE_MAX, (unsigned long long)round);
    }
    const uint32_t n_voters = choose_voters(node, draft);
    if (n_voters == 0) {
        return dp_why_set(order->why, DP_AGAIN, "neither this node nor a connected one may vote");
    }
    const dp_status encoded = dp_record_encode(draft, room, sizeof room, &bytes);
    dp_assert(encoded == DP_OK); /* The room is for the largest one. */
    if (!dp_fork_sign(&node->config.crypto, room, bytes.size)) {
        return dp_why_set(order->why, DP_DENIED, "the root key could not sign");
    }
    if (!order->back) {
        dp_fork_save_first(node);
    }
    const dp_status status = dp_fork_take(node, bytes, NULL);
    return dp_why_set(
        order->why, status,
        status != DP_OK
            ? "the restarted chain with %u voters after round %llu is not valid at this node"
        : n_voters == 1 ? "%u voter continues after round %llu"
                        : "%u voters continue after round %llu",
        n_voters, (unsigned long long)round);
}

/* ---- merge ---- */

static dp_status merge(dp_node *node, const dp_admin_command *order)
{
    const dp_forks *forks = node->forks;
    dp_stop stop = {.has = true, .loser = forks->other.id, .survivor = node->ledger.fork};

    if (!dp_admin_has_root(node)) {
        return dp_why_set(
            order->why, DP_DENIED,
            "this node does not have the root key; the node that created the run has it");
    }
    if (!forks->other.has || forks->n == 0 || dp_proof_of_votes(node)) {
        return dp_why_set(order->why, DP_EXISTS,
                          "this node knows only one chain: there is nothing to merge");
    }
    if (forks->own[forks->n - 1].slot > forks->other.slot) {
        return dp_why_set(
            order->why, DP_DENIED,
            "the other chain was restarted earlier, and its nodes lack records of this "
            "one; to continue the other chain: dpnode run merge on one of its nodes");
    }
    if (!dp_stop_sign(&node->config.crypto, &node->run, &stop.loser, &stop.survivor,
                      stop.signature)) {
        return dp_why_set(order->why, DP_DENIED, "the root key could not sign");
    }
    DP_IGNORE(dp_why_set(
        order->why, DP_OK, "the chain restarted in slot %llu continues; the one of slot %llu ends",
        (unsigned long long)forks->own[forks->n - 1].slot, (unsigned long long)forks->other.slot));
    return dp_fork_stop(node, &stop);
}

dp_status dp_admin_command_obey(dp_node *node, const dp_admin_command *order)
{
    dp_assert(order->why != NULL);
    switch (order->kind) {
    case DP_ADMIN_REVOKE:
        return revoke(node, order);
    case DP_ADMIN_REVOKE_INVITE:
        return revoke_invite(node, order);
    case DP_ADMIN_ROTATE:
        return dp_rotate_begin(node, order->secret, order->why);
    case DP_ADMIN_FORK:
        return fork_chain(node, order);
    case DP_ADMIN_MERGE:
        return merge(node, order);
    }
    return dp_why_set(order->why, DP_UNSUPPORTED, "unknown admin command %d", (int)order->kind);
}
