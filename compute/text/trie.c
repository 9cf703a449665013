#include "compute/text/trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void dp_trie_close(dp_trie *trie)
{
    dp_free(trie->nodes);
    *trie = (dp_trie){0};
}

static int by_text(const void *left, const void *right)
{
    const dp_view a = ((const dp_trie_entry *)left)->text;
    const dp_view b = ((const dp_trie_entry *)right)->text;
    const int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

/* Entries first..last-1 pass through a node at depth; while filling, value and first of a node hold
 * them. */
static dp_status add_node(dp_trie *trie, uint8_t byte, uint32_t first, uint32_t last)
{
    if (trie->count == DP_TRIE_NODES_MAX) {
        return DP_TOOBIG;
    }
    if (trie->count == trie->capacity) {
        const uint32_t capacity = trie->capacity == 0 ? 1024 : 2 * trie->capacity;
        dp_trie_node *const larger = dp_realloc(trie->nodes, capacity * sizeof *larger);
        if (larger == NULL) {
            return DP_NOMEM;
        }
        trie->nodes = larger;
        trie->capacity = capacity;
    }
    trie->nodes[trie->count] = (dp_trie_node){.first = first, .value = last, .byte = byte};
    trie->count++;
    return DP_OK;
}

static dp_status add_children(dp_trie *trie, uint32_t node, const dp_trie_entry *entries,
                              size_t depth)
{
    uint32_t at = trie->nodes[node].first;
    const uint32_t last = trie->nodes[node].value;
    const uint32_t first_child = trie->count;
    uint32_t value = DP_TRIE_NONE;
    if (entries[at].text.size == depth) {
        value = entries[at].value; /* The shortest comes first, and once. */
        at++;
    }
    while (at < last) {
        const uint8_t byte = entries[at].text.data[depth];
        uint32_t end = at + 1;
        while (end < last && entries[end].text.data[depth] == byte) {
            end++;
        }
        DP_TRY(add_node(trie, byte, at, end));
        at = end;
    }
    dp_trie_node *const n = &trie->nodes[node];
    n->first = first_child;
    n->n_children = (uint16_t)(trie->count - first_child);
    n->value = value;
    return DP_OK;
}

/* Breadth first, so that children stand side by side. */
dp_status dp_trie_fill(dp_trie *trie, dp_trie_entry *entries, uint32_t count)
{
    if (count == 0) {
        return DP_OK;
    }
    qsort(entries, count, sizeof *entries, by_text);
    DP_TRY(add_node(trie, 0, 0, count));
    uint32_t end_of_depth = 1;
    size_t depth = 0;
    for (uint32_t node = 0; node < trie->count; node++) {
        if (node == end_of_depth) {
            end_of_depth = trie->count;
            depth++;
        }
        DP_TRY(add_children(trie, node, entries, depth));
    }
    return DP_OK;
}

bool dp_trie_step(const dp_trie *trie, uint32_t *node, uint8_t byte)
{
    if (trie->count == 0) {
        return false;
    }
    const dp_trie_node *const n = &trie->nodes[*node];
    uint32_t first = n->first;
    uint32_t last = first + n->n_children;
    while (first < last) {
        const uint32_t middle = first + (last - first) / 2;
        if (trie->nodes[middle].byte < byte) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    if (first == n->first + n->n_children || trie->nodes[first].byte != byte) {
        return false;
    }
    *node = first;
    return true;
}
