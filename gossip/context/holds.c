/* Objects that are here. */
#include "base/assert.h"
#include "gossip/context/context.h"

bool dp_node_holds(const dp_node *node, const dp_hash *root)
{
    uint32_t index = 0;

    return dp_map_get(&node->held_map, root, &index);
}

uint64_t dp_node_size(const dp_node *node, const dp_hash *root)
{
    uint32_t index = 0;

    return dp_map_get(&node->held_map, root, &index) ? node->held[index].size : 0;
}

void dp_node_hold(dp_node *node, const dp_hash *root, uint64_t size)
{
    uint32_t index = 0;

    dp_assert(node->held_free <= node->held_max);
    if (dp_map_get(&node->held_map, root, &index)) {
        node->held[index].size = size;
        return;
    }
    index = node->held_free;
    while (index < node->held_max && node->held[index].used) {
        index++;
    }
    node->held_free = index;
    if (index == node->held_max) {
        return; /* Forgotten: it is fetched again if it is ever needed. */
    }
    node->held[index] = (dp_stored_object){.root = *root, .size = size, .used = true};
    const dp_status status = dp_map_put(&node->held_map, root, index);
    dp_assert(status == DP_OK);
}

void dp_node_unhold(dp_node *node, const dp_hash *root)
{
    uint32_t index = 0;

    dp_assert(node->held_free <= node->held_max);
    if (dp_map_get(&node->held_map, root, &index)) {
        node->held[index].used = false;
        node->held_free = index < node->held_free ? index : node->held_free;
        node->unheld++;
        dp_map_remove(&node->held_map, root);
    }
}
