/* A member has told of a later slot than this node knows. */
#include "gossip/catchup/catchup.h"
#include "gossip/context/context.h"

void dp_catchup_hint(dp_node *node, const dp_peer *peer, uint64_t slot)
{
    if (slot > node->ledger.slot && slot > node->catchup->hint_slot) {
        node->catchup->hint_slot = slot;
        node->catchup->hint_peer = *peer;
        dp_node_changed(node);
    }
}
