#include "gossip/requests/revoke_request.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/ledger/inviting.h"
#include "gossip/requests/admin_key.h"
#include "gossip/requests/requests.h"

bool dp_revoke_requested(const dp_node *node, const dp_invite_id *id)
{
    const dp_revoke_requests *wishes = node->requests->invites;

    for (uint32_t i = 0; i < wishes->n; i++) {
        if (dp_invite_id_compare(&wishes->words[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

const char *dp_revoke_request_struck(const dp_node *node, const dp_config_part *config,
                                     const dp_admitted *admitted)
{
    if (dp_revoke_requested(node, &admitted->invite) ||
        dp_revoke_requested(node, &admitted->invite_above)) {
        return "an invite was revoked";
    }
    return dp_inviting_struck(&node->ledger, config, admitted);
}

bool dp_invite_bars(const dp_node *node, const dp_peer *peer, dp_view credential)
{
    const dp_admission *admission = &node->config.admission;
    const dp_ledger *ledger = &node->ledger;
    dp_admitted grants;

    return ledger->n_revoked > 0 && !dp_broken(207) && dp_ledger_member(ledger, peer) == NULL &&
           !dp_ledger_barred(ledger, peer) && credential.size > 0 &&
           admission->check(admission->context, credential, &node->run, ledger->root_key, peer, 0,
                            &grants) == DP_OK &&
           (dp_inviting_revoked(ledger, &grants.invite) ||
            dp_inviting_revoked(ledger, &grants.invite_above));
}

/* Nobody waits here any more with a credential that admits nobody, nor watches. */
static void cut_guests(dp_node *node)
{
    const dp_rowset *linked = dp_members_linked(node->members);

    for (uint32_t k = 0; k < linked->count; k++) {
        const dp_member *member = dp_members_at(node->members, linked->at[k]);
        if (dp_invite_bars(node, &member->peer,
                           dp_view_of(member->credential, member->credential_bytes))) {
            dp_members_guest_gone(node->members, linked->at[k], node->now, &node->out);
        }
    }
}

static void send_word(dp_node *node, const dp_invite_revoke *word)
{
    uint8_t room[DP_MSG_HEAD_BYTES + DP_INVITE_REVOKE_BYTES];
    dp_writer writer = dp_writer_of(room, sizeof room);

    dp_invite_revoke_msg_write(&writer, word);
    dp_node_send_all(node, dp_view_of(writer.data, writer.size));
}

dp_status dp_revoke_request(dp_node *node, const dp_invite_revoke *word)
{
    dp_revoke_requests *wishes = node->requests->invites;
    const uint64_t time_ms = dp_node_record_ms(node);

    if (!dp_inviting_wants(&node->ledger, word, time_ms)) {
        return DP_OK;
    }
    for (uint32_t i = 0; i < wishes->n; i++) {
        if (dp_invite_id_compare(&wishes->words[i].id, &word->id) == 0 &&
            wishes->words[i].until_ms >= word->until_ms) {
            return DP_OK;
        }
    }
    if (!dp_inviting_may_revoke(&node->ledger, &word->by)) {
        return DP_DENIED;
    }
    if (!dp_invite_revoke_verify(word, &node->config.crypto, &node->run)) {
        return DP_BADSIG;
    }
    if (dp_inviting_room(&node->ledger, time_ms) == 0) {
        return DP_TOOBIG;
    }
    uint32_t at = 0;
    while (at < wishes->n && dp_invite_id_compare(&wishes->words[at].id, &word->id) < 0) {
        at++;
    }
    if (at < wishes->n && dp_invite_id_compare(&wishes->words[at].id, &word->id) == 0) {
        wishes->words[at] = *word; /* It lasts longer. */
    } else if (wishes->n == DP_CONFIG_REVOKE_MAX) {
        return DP_AGAIN; /* It is told again. */
    } else {
        memmove(&wishes->words[at + 1], &wishes->words[at],
                (wishes->n - at) * sizeof wishes->words[0]);
        wishes->words[at] = *word;
        wishes->n++;
    }
    dp_node_changed(node);
    send_word(node, word);
    return DP_OK;
}

dp_status dp_revoke_request_message(dp_node *node, dp_view bytes)
{
    dp_invite_revoke word;

    DP_TRY(dp_invite_revoke_msg_read(bytes, &word));
    return dp_revoke_request(node, &word);
}

void dp_revoke_request_draft(const dp_node *node, dp_record *draft)
{
    const dp_revoke_requests *wishes = node->requests->invites;
    dp_config_part *config = &draft->config;
    const uint32_t room = dp_inviting_room(&node->ledger, draft->time_ms);

    dp_assert(draft->config.n_admits <= DP_CONFIG_ADMIT_MAX);
    for (uint32_t i = 0; i < wishes->n && config->n_revoked < room; i++) { /* By id. */
        const dp_invite_revoke *word = &wishes->words[i];
        if (dp_inviting_wants(&node->ledger, word, draft->time_ms) &&
            dp_inviting_may_revoke(&node->ledger, &word->by)) {
            config->revoked[config->n_revoked++] = *word;
        }
    }
    bool revokes = config->n_revoked > 0 || dp_inviting_due(&node->ledger);
    for (uint32_t i = 0; i < config->n_removes && !node->ledger.judges_invites; i++) {
        revokes = revokes || config->removes[i].reason == DP_REMOVE_REVOKED ||
                  config->removes[i].reason == DP_REMOVE_HARMFUL;
    }
    config->has_revoked = revokes;
}

/* ---- members that came by an invite ---- */

bool dp_invite_brought(const dp_roster_entry *entry, const dp_invite_id *id)
{
    return dp_invite_id_compare(&entry->invite, id) == 0 ||
           dp_invite_id_compare(&entry->invite_above, id) == 0;
}

/* As many as are taken now. False: nobody is left that this node may put out. */
static bool sweep(dp_node *node, const dp_invite_id *id)
{
    bool left = false;

    for (uint32_t i = 0; i < node->ledger.n_roster; i++) {
        const dp_roster_entry *entry = &node->ledger.roster[i];
        if (entry->gone != 0 || !dp_invite_brought(entry, id) ||
            dp_peer_equal(&entry->peer, &node->self)) {
            continue;
        }
        const dp_status status =
            dp_node_revoked(node, &entry->peer) ? DP_OK : dp_admin_remove(node, &entry->peer);
        left = left || status == DP_OK || status == DP_AGAIN;
        if (status == DP_AGAIN) {
            break;
        }
    }
    return left;
}

dp_status dp_invite_sweep(dp_node *node, const dp_invite_id *id)
{
    dp_revoke_requests *wishes = node->requests->invites;

    for (uint32_t i = 0; i < wishes->n_sweeps; i++) {
        if (dp_invite_id_compare(&wishes->sweeps[i], id) == 0) {
            return DP_OK;
        }
    }
    if (wishes->n_sweeps == DP_SWEEPS_MAX) {
        return DP_AGAIN;
    }
    if (sweep(node, id)) {
        wishes->sweeps[wishes->n_sweeps++] = *id;
    }
    return DP_OK;
}

static void sweep_on(dp_node *node)
{
    dp_revoke_requests *wishes = node->requests->invites;
    uint32_t kept = 0;

    dp_assert(node->started);
    for (uint32_t i = 0; i < wishes->n_sweeps; i++) {
        if (sweep(node, &wishes->sweeps[i])) {
            wishes->sweeps[kept++] = wishes->sweeps[i];
        }
    }
    wishes->n_sweeps = kept;
}

/* ---- as time goes on ---- */

void dp_revoke_request_forget_done(dp_node *node)
{
    dp_revoke_requests *wishes = node->requests->invites;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < wishes->n; i++) {
        if (dp_inviting_wants(&node->ledger, &wishes->words[i], node->ledger.time_ms) &&
            dp_inviting_may_revoke(&node->ledger, &wishes->words[i].by)) {
            wishes->words[kept++] = wishes->words[i];
        }
    }
    wishes->n = kept;
}

void dp_revoke_request_applied(dp_node *node, const dp_record *record)
{
    dp_assert(record->slot == node->ledger.slot);
    if (record->has_config && record->config.n_revoked > 0) {
        cut_guests(node);
    }
    sweep_on(node);
}

void dp_revoke_request_repeat(dp_node *node)
{
    const dp_revoke_requests *wishes = node->requests->invites;

    sweep_on(node);
    for (uint32_t i = 0; i < wishes->n; i++) {
        send_word(node, &wishes->words[i]);
    }
}
