/* What the owner of the root key, or an admin, tells the node to do: signed here with the key that it takes, then spread like
 * anything else. Judged by everybody again; this file only says early, in a sentence, why not. */
#include <string.h>

#include "base/assert.h"
#include "gossip/node_internal.h"

/* The root key is here, and it is this run's. */
static bool has_root(const dp_node *node)
{
    static const char domain[] = "dpnode/probe/1";
    const dp_crypto *crypto = &node->config.crypto;
    const dp_view bytes = dp_view_of(node->run.bytes, sizeof node->run.bytes);
    uint8_t signature[DP_SIGNATURE_BYTES];

    return crypto->sign(crypto->context, DP_KEY_ROOT, domain, bytes, signature) &&
           crypto->verify(crypto->context, node->ledger.root_key, domain, bytes, signature);
}

/* ---- revocation ---- */

static dp_status revoke(dp_node *node, const dp_order *order)
{
    const dp_roster_entry *entry = dp_ledger_member(&node->ledger, &order->peer);
    const int key = has_root(node) ? DP_KEY_ROOT : DP_KEY_IDENTITY;
    dp_remove remove = {.peer = order->peer, .reason = DP_REMOVE_REVOKED, .by = node->self};

    if (key == DP_KEY_ROOT) {
        memcpy(remove.by.bytes, node->ledger.root_key, sizeof remove.by.bytes);
    }
    if (dp_peer_equal(&order->peer, &node->self)) {
        return dp_why_set(order->why, DP_BADARG, "this node can leave, and not revoke itself");
    }
    if (entry == NULL) {
        return dp_why_set(
            order->why, DP_NOTFOUND,
            "it is no member of the run: a newcomer becomes one with its first round, "
            "and who was removed is none any more");
    }
    if (!dp_ledger_may_revoke(&node->ledger, &remove.by, &order->peer)) {
        return dp_why_set(order->why, DP_DENIED,
                          (entry->caps & DP_CAP_ADMIN) != 0
                              ? "it may administer the run itself, so only the root key puts it out"
                              : "this node has neither the root key nor the right to administer");
    }
    if (!dp_remove_sign(&remove, &node->config.crypto, key, &node->run)) {
        return dp_why_set(order->why, DP_DENIED, "the key to sign with is not here");
    }
    const dp_status status = dp_wish_remove(node, &remove);
    return status == DP_OK
               ? DP_OK
               : dp_why_set(order->why, status, "%u removals wait for the next record already",
                            node->round->n_removes);
}

dp_status dp_order_obey(dp_node *node, const dp_order *order)
{
    switch (order->kind) {
    case DP_ORDER_REVOKE:
        return revoke(node, order);
    }
    return dp_why_set(order->why, DP_UNSUPPORTED, "an order of kind %d", (int)order->kind);
}
