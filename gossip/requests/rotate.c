#include "gossip/requests/rotate.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/ledger/inviting.h"
#include "gossip/requests/admin_key.h"
#include "gossip/requests/requests.h"

/* A member gets secrets; a node that waits for admission, or is about to be put out, does not. */
static bool is_trusted(const dp_node *node, const dp_peer *peer)
{
    return (dp_ledger_member(&node->ledger, peer) != NULL || dp_broken(213)) &&
           !dp_node_revoked(node, peer);
}

static void send_members(dp_node *node, dp_view bytes)
{
    const dp_rowset *linked = dp_members_linked(node->members);

    for (uint32_t k = 0; k < linked->count; k++) {
        const dp_peer *peer = &dp_members_at(node->members, linked->at[k])->peer;
        if (is_trusted(node, peer)) {
            dp_node_send(node, peer, bytes);
        }
    }
}

static void send_word(dp_node *node)
{
    uint8_t room[DP_MSG_HEAD_BYTES + DP_ROTATION_BYTES + DP_JOIN_SECRET_BYTES];
    dp_writer writer = dp_writer_of(room, sizeof room);

    dp_rotation_msg_write(&writer, &node->requests->rotate->word, &node->requests->rotate->secret);
    send_members(node, dp_view_of(room, writer.size));
}

/* The present epoch is of the chain, and its secret is not here. One of a later epoch is of a chain
 * that was given up, and goes on. */
static bool lacks(const dp_node *node)
{
    const dp_secrets *held = &node->requests->rotate->held;
    const dp_epoch *epoch = &node->ledger.epoch;

    return epoch->epoch > 0 && (held->n == 0 || held->items[0].epoch <= epoch->epoch) &&
           dp_secrets_of(held, &node->run, epoch) == NULL;
}

/* It is the secret that the chain names. */
static void keep(dp_node *node, const dp_secret *secret)
{
    dp_rotate *rotate = node->requests->rotate;

    dp_assert(secret->epoch > 0);
    rotate->asked_at = (dp_time){0}; /* The next one is asked for at once, and not yet missed. */
    if (dp_out_room(&node->out, 1) && dp_secrets_add(&rotate->held, secret)) {
        dp_out_add(&node->out, DP_DO_SECRETS)->u.secrets = rotate->held;
    }
}

static dp_status wait_for_record(dp_node *node, const dp_rotation *word, const dp_secret *secret)
{
    dp_rotate *rotate = node->requests->rotate;

    dp_assert(word != NULL && secret != NULL);
    rotate->waits = true;
    rotate->word = *word;
    rotate->secret = *secret;
    dp_node_changed(node);
    send_word(node);
    return DP_OK;
}

dp_status dp_rotate_begin(dp_node *node, const uint8_t *secret, dp_why *why)
{
    const dp_rotate *rotate = node->requests->rotate;
    const dp_epoch *epoch = &node->ledger.epoch;
    const uint32_t held = rotate->held.n > 0 ? rotate->held.items[0].epoch : 0;
    const uint32_t next = (held > epoch->epoch ? held : epoch->epoch) + 1;
    dp_secret made = {.epoch = (uint16_t)next};
    dp_rotation word = {.next = {.epoch = (uint16_t)next}};
    const int key = dp_admin_key(node, &word.by);

    if (!dp_inviting_may_revoke(&node->ledger, &word.by)) {
        return dp_why_set(why, DP_DENIED,
                          "this node has neither the root key nor the right to administer");
    }
    if (rotate->waits) {
        return dp_why_set(why, DP_AGAIN, "a new join secret already waits for the next record");
    }
    if (next > UINT16_MAX || !dp_rotation_follows(&word, epoch)) {
        return dp_why_set(why, DP_TOOBIG, "the join secret has reached its last epoch");
    }
    memcpy(made.bytes, secret, sizeof made.bytes);
    word.next.commitment = dp_secret_commitment(&node->run, &made);
    if (!dp_rotation_sign(&word, &node->config.crypto, key, &node->run)) {
        return dp_why_set(why, DP_DENIED, "this node does not have the key to sign with");
    }
    return wait_for_record(node, &word, &made);
}

/* ---- messages ---- */

static dp_status take_word(dp_node *node, const dp_rotation *word, const dp_secret *secret)
{
    const dp_hash commitment = dp_secret_commitment(&node->run, secret);
    const char *cause = "";

    if (!dp_hash_equal(&commitment, &word->next.commitment)) {
        return DP_BADHASH;
    }
    if (lacks(node) && word->next.epoch == node->ledger.epoch.epoch &&
        dp_hash_equal(&commitment, &node->ledger.epoch.commitment)) {
        keep(node, secret); /* The chain has the word already. */
        return DP_OK;
    }
    if (node->requests->rotate->waits || !dp_rotation_follows(word, &node->ledger.epoch)) {
        /* The first one goes into the chain; the others are told again by nobody then. */
        return DP_OK;
    }
    DP_TRY(dp_inviting_rotation_valid(&node->ledger, &node->config.crypto, word, &cause));
    return wait_for_record(node, word, secret);
}

static dp_status take_secret(dp_node *node, const dp_secret *secret)
{
    const dp_secrets one = {.n = 1, .items = {*secret}};

    if (lacks(node)) {
        if (dp_secrets_of(&one, &node->run, &node->ledger.epoch) == NULL) {
            return DP_BADHASH;
        }
        keep(node, secret);
    }
    return DP_OK;
}

static dp_status answer(dp_node *node, const dp_peer *from)
{
    uint8_t room[DP_MSG_HEAD_BYTES + 2 + DP_JOIN_SECRET_BYTES];
    dp_writer writer = dp_writer_of(room, sizeof room);
    const dp_secret *secret =
        dp_secrets_of(&node->requests->rotate->held, &node->run, &node->ledger.epoch);

    if (!is_trusted(node, from)) {
        return DP_DENIED;
    }
    if (node->ledger.epoch.epoch > 0 && secret != NULL) {
        dp_secret_msg_write(&writer, secret);
        dp_node_send(node, from, dp_view_of(room, writer.size));
    }
    return DP_OK;
}

dp_status dp_rotate_message(dp_node *node, const dp_peer *from, dp_view bytes)
{
    dp_rotation word;
    dp_secret secret;

    switch (dp_msg_type_of(bytes)) {
    case DP_MSG_ROTATE:
        DP_TRY(dp_rotation_msg_read(bytes, &word, &secret));
        return take_word(node, &word, &secret);
    case DP_MSG_SECRET:
        DP_TRY(dp_secret_msg_read(bytes, &secret));
        return take_secret(node, &secret);
    default:
        return bytes.size == DP_MSG_HEAD_BYTES ? answer(node, from) : DP_BADMSG;
    }
}

/* ---- as time goes on ---- */

void dp_rotate_draft(const dp_node *node, dp_record *draft)
{
    const dp_rotate *rotate = node->requests->rotate;

    draft->config.has_rotation = rotate->waits &&
                                 dp_rotation_follows(&rotate->word, &node->ledger.epoch) &&
                                 dp_inviting_may_revoke(&node->ledger, &rotate->word.by);
    draft->config.rotation = rotate->word;
}

void dp_rotate_applied(dp_node *node)
{
    dp_rotate *rotate = node->requests->rotate;
    const dp_secrets one = {.n = 1, .items = {rotate->secret}};

    dp_assert(node->started);
    if (!rotate->waits) {
        return;
    }
    if (lacks(node) && dp_secrets_of(&one, &node->run, &node->ledger.epoch) != NULL) {
        keep(node, &rotate->secret);
    }
    rotate->waits = dp_rotation_follows(&rotate->word, &node->ledger.epoch) &&
                    dp_inviting_may_revoke(&node->ledger, &rotate->word.by);
}

void dp_rotate_repeat(dp_node *node)
{
    static const uint8_t question[DP_MSG_HEAD_BYTES] = {DP_MSG_SECRET_GET, DP_MSG_VERSION};
    dp_rotate *rotate = node->requests->rotate;

    if (rotate->waits) {
        send_word(node);
    }
    if (!lacks(node) || dp_ledger_member(&node->ledger, &node->self) == NULL ||
        (rotate->asked_at.us != 0 &&
         dp_time_between(rotate->asked_at, node->now) < DP_SECRET_PAUSE_US)) {
        return;
    }
    if (rotate->asked_at.us != 0 && rotate->told != node->ledger.epoch.epoch) {
        rotate->told = node->ledger.epoch.epoch;
        dp_node_note(node, DP_NOTE_NO_SECRET, node->ledger.round, NULL, rotate->told, 0, "");
    }
    rotate->asked_at = node->now;
    send_members(node, dp_view_of(question, sizeof question));
}
