#include "gossip/requests/admin_key.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/requests/requests.h"

/* The root key is here, and it is this run's. */
bool dp_admin_has_root(const dp_node *node)
{
    static const char domain[] = "dpnode/probe/1";
    const dp_crypto *crypto = &node->config.crypto;
    const dp_view bytes = dp_view_of(node->run.bytes, sizeof node->run.bytes);
    uint8_t signature[DP_SIGNATURE_BYTES];

    return crypto->sign(crypto->context, DP_KEY_ROOT, domain, bytes, signature) &&
           crypto->verify(crypto->context, node->ledger.root_key, domain, bytes, signature);
}

int dp_admin_key(const dp_node *node, dp_peer *by)
{
    dp_assert(by != NULL);
    *by = node->self;
    if (!dp_admin_has_root(node)) {
        return DP_KEY_IDENTITY;
    }
    memcpy(by->bytes, node->ledger.root_key, sizeof by->bytes);
    return DP_KEY_ROOT;
}

dp_status dp_admin_remove(dp_node *node, const dp_peer *peer)
{
    dp_remove remove = {.peer = *peer, .reason = DP_REMOVE_REVOKED};
    const int key = dp_admin_key(node, &remove.by);

    if (!dp_ledger_may_revoke(&node->ledger, &remove.by, peer) ||
        !dp_remove_sign(&remove, &node->config.crypto, key, &node->run)) {
        return DP_DENIED;
    }
    return dp_request_removal(node, &remove);
}
