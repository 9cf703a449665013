/* Looking at a node from outside. */
#include <string.h>

#include "gossip/catchup/chain.h"
#include "gossip/catchup/proof.h"
#include "gossip/context/context.h"
#include "gossip/identity/invite.h"
#include "gossip/ledger/inviting.h"
#include "gossip/node/node.h"
#include "gossip/parts/part_round.h"
#include "gossip/requests/leave.h"
#include "gossip/requests/renew.h"
#include "gossip/requests/revoke_request.h"
#include "gossip/round/round.h"
#include "gossip/training/training.h"

/* Index 0 is this node, which has no summary of its own. */
static uint32_t count_idle(const dp_node *node)
{
    uint32_t idle = node->standing.state == DP_TRAINER_SET ? 0 : 1;

    for (uint32_t i = 1; i < dp_members_count(node->members); i++) {
        const dp_member *member = dp_members_at(node->members, i);
        idle += member->linked && member->state == DP_MEMBER_ALIVE && !member->summary.has_trainer;
    }
    return idle;
}

void dp_node_look(const dp_node *node, dp_node_view *view)
{
    const dp_train *train = node->train;

    memset(view, 0, sizeof *view);
    view->mode = node->mode;
    view->slot = node->ledger.slot;
    view->head = node->ledger.head;
    view->round = node->ledger.round;
    view->applied = node->standing.applied;
    if (node->standing.has_theta) {
        view->state_root = node->standing.state_root;
    }
    view->tokens = node->ledger.tokens;
    view->members = node->ledger.n_members;
    view->alive = dp_members_alive(node->members);
    view->idle = count_idle(node);
    view->voters = node->ledger.n_voters;
    view->is_voter =
        node->commit->self != DP_NOBODY && !node->commit->key_lost && node->mode != DP_MODE_LEFT;
    if (node->commit->n > 0) {
        view->ballot_owner = dp_commit_owner_next(node->commit);
    }
    view->quorum = dp_heartbeat_quorum(&node->beat);
    view->training = train->training;
    view->culprit = node->proof->culprit;
    view->listed_last = node->chain->listed_last;
    view->exchanges = train->mixed;
    view->rejected = node->rejected;
    if (node->parts != NULL) {
        view->near = node->parts->site.n;
        view->results_near = node->parts->results_near;
        view->sums_made = node->parts->sums_made;
        view->sums_taken = node->parts->sums_taken;
    }
    view->diverged = node->train->diverged;
    view->bytes_waiting = dp_picker_bytes_waiting(node->picker);
    view->bytes_wanted = dp_picker_bytes_wanted(node->picker);
    view->sources = dp_picker_sources(node->picker);
    view->chunks = dp_picker_came(node->picker);
    view->chunks_hedged = dp_picker_hedged(node->picker);
    view->leaving = dp_leave_state(node);
    view->held_known = node->round->held_known;
    view->held_us = node->round->held_us;
}

bool dp_node_admitted(const dp_node *node, const dp_peer *peer, uint8_t x_public[32])
{
    const dp_roster_entry *entry = dp_ledger_member(&node->ledger, peer);

    if (entry == NULL) {
        return node->mode == DP_MODE_JOINING;
    }
    memcpy(x_public, entry->x_public, sizeof entry->x_public);
    return true;
}

/* There is no place: when will there be one? */
static dp_status tell_full(const dp_node *node, dp_why *why)
{
    const dp_ledger *ledger = &node->ledger;
    const uint64_t next_ms = dp_ledger_next_absent(ledger);
    char when[32];

    if (dp_ledger_rows_left(ledger) == 0) {
        return dp_why_set(why, DP_TOOBIG,
                          "the run already has %d former members, the largest number",
                          DP_FORMER_MAX);
    }
    if (next_ms == UINT64_MAX) {
        return dp_why_set(
            why, DP_TOOBIG,
            "the run is full (%u members, members.max), and no member is absent: a place "
            "is free when a member leaves or is revoked",
            ledger->capacity);
    }
    dp_duration_text((next_ms > ledger->time_ms ? next_ms - ledger->time_ms : 0) + 999, when);
    return dp_why_set(why, DP_TOOBIG,
                      "the run is full (%u members, members.max): the place of an absent member is "
                      "free in %s, or sooner when a member is revoked",
                      ledger->capacity, when);
}

dp_status dp_node_refused(const dp_node *node, dp_why *why)
{
    const dp_ledger *ledger = &node->ledger;
    const dp_peer *self = &node->config.self;
    dp_admitted own;

    if (dp_ledger_barred(ledger, self)) {
        return dp_why_set(why, DP_EXISTS, "it was removed from the run");
    }
    if (dp_ledger_member(ledger, self) != NULL) {
        return DP_OK;
    }
    if (node->config.admission.check(node->config.admission.context, node->config.credential,
                                     &node->run, ledger->root_key, self, 0, &own) != DP_OK) {
        return dp_why_set(why, DP_DENIED, "its credential is not valid");
    }
    if (own.uses > 0 && dp_ledger_uses(ledger, &own.invite, self) >= own.uses) {
        return dp_why_set(why, DP_DENIED, "its invite is used up");
    }
    const char *struck = dp_revoke_request_struck(node, NULL, &own);
    if (struck != NULL) {
        return dp_why_set(why, DP_DENIED,
                          strcmp(struck, "an invite was revoked") == 0
                              ? "its invite was revoked"
                              : "the node that made its invite is no longer a member");
    }
    const bool full =
        !dp_ledger_has_place(ledger, 1, 0) && dp_ledger_next_absent(ledger) >= ledger->time_ms;
    return full || dp_ledger_rows_left(ledger) == 0 ? tell_full(node, why) : DP_OK;
}

bool dp_node_member(const dp_node *node, uint32_t index, dp_member_view *view)
{
    if (index >= dp_members_count(node->members)) {
        return false;
    }
    const dp_member *member = dp_members_at(node->members, index);
    const dp_roster_entry *entry = dp_ledger_member(&node->ledger, &member->peer);
    memset(view, 0, sizeof *view);
    view->peer = member->peer;
    view->state = member->state;
    view->linked = member->linked;
    view->in_roster = entry != NULL;
    view->voter = dp_ledger_voter(&node->ledger, &member->peer) != DP_NOBODY;
    view->caps = entry != NULL ? entry->caps : member->caps;
    view->incarnation = member->incarnation;
    view->rtt_us = member->rtt.srtt_us;
    view->round = index == 0 ? node->standing.applied : member->summary.round;
    view->included = entry != NULL ? entry->included : 0;
    view->step_us = index == 0 ? (uint32_t)node->standing.step_us : member->summary.step_us;
    view->n_addrs = member->n_addrs;
    memcpy(view->addrs, member->addrs, sizeof view->addrs);
    return true;
}

bool dp_node_roster(const dp_node *node, uint32_t index, dp_roster_view *view)
{
    if (index >= node->ledger.n_roster) {
        return false;
    }
    const dp_roster_entry *entry = &node->ledger.roster[index];
    *view = (dp_roster_view){.peer = entry->peer,
                             .invite = entry->invite,
                             .invite_above = entry->invite_above,
                             .gone = entry->gone};
    return true;
}

dp_invite_state dp_node_invite(const dp_node *node, const dp_invite_id *id)
{
    return dp_inviting_revoked(&node->ledger, id) ? DP_INVITE_REVOKED
           : dp_revoke_requested(node, id)        ? DP_INVITE_REVOKING
                                                  : DP_INVITE_STANDS;
}

bool dp_node_revoked_invite(const dp_node *node, uint32_t index, dp_invite_id *id)
{
    if (index >= node->ledger.n_revoked) {
        return false;
    }
    *id = node->ledger.revoked[index].id;
    return true;
}

const char *dp_node_peer_name(const dp_node *node, const dp_peer *peer)
{
    const uint32_t index = dp_node_member_index(node, peer);

    return index == DP_MEMBER_NONE ? "" : dp_members_at(node->members, index)->name;
}

void dp_node_buggify(dp_node *node, uint32_t mask)
{
    node->buggify = mask;
}

dp_status dp_node_check(const dp_node *node, dp_why *why)
{
    DP_TRY(dp_commit_check(node->commit, why));
    DP_TRY(dp_members_check(node->members, why));
    DP_TRY(dp_heartbeat_check(&node->beat, why));
    DP_TRY(dp_picker_check(node->picker, why));
    DP_TRY(dp_mix_check(node->mix, why));
    if (node->started && node->commit->slot != node->ledger.slot + 1) {
        return dp_why_set(
            why, DP_CORRUPT,
            "the stored vote is for slot %llu, and the stored chain ends at slot %llu",
            (unsigned long long)node->commit->slot, (unsigned long long)node->ledger.slot);
    }
    if (node->standing.has_theta && node->standing.applied > node->ledger.round) {
        return dp_why_set(
            why, DP_CORRUPT, "the model is at round %llu, and the stored chain ends at round %llu",
            (unsigned long long)node->standing.applied, (unsigned long long)node->ledger.round);
    }
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        const uint64_t round = node->round->claims[i].ready.round;
        if (round != node->ledger.round + 1 &&
            !(node->ledger.has_before && round == node->ledger.round)) {
            return dp_why_set(why, DP_CORRUPT, "a stored contribution is of another round");
        }
    }
    return DP_OK;
}

bool dp_node_renewed(const dp_node *node, const dp_renewal *renewal, const dp_peer *peer,
                     uint64_t now_ms)
{
    return dp_renew_counts(node, renewal, peer, now_ms);
}
