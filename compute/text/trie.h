/* A tree of byte strings, for finding all of them that a text begins with. */
#ifndef DP_COMPUTE_TEXT_TRIE_H
#define DP_COMPUTE_TEXT_TRIE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_TRIE_NODES_MAX = 1 << 23 }; /* 250,000 tokens of SentencePiece have about a million */
#define DP_TRIE_NONE UINT32_MAX

typedef struct dp_trie_node {
    uint32_t first; /* of its children, which stand side by side in order of their bytes */
    uint32_t value; /* of the string that ends here, or DP_TRIE_NONE */
    uint16_t n_children;
    uint8_t byte;
} dp_trie_node;

/* Node 0 is the root. A zeroed one is empty and open. */
typedef struct dp_trie {
    dp_trie_node *nodes;
    uint32_t count;
    uint32_t capacity;
} dp_trie;

typedef struct dp_trie_entry {
    dp_view text; /* not empty */
    uint32_t value;
} dp_trie_entry;

void dp_trie_close(dp_trie *trie);
/* Fills an empty trie with different texts; sorts entries. DP_TOOBIG (DP_TRIE_NODES_MAX),
 * DP_NOMEM. */
DP_MUST dp_status dp_trie_fill(dp_trie *trie, dp_trie_entry *entries, uint32_t count);
/* Goes from *node to its child for byte; false: there is none. */
bool dp_trie_step(const dp_trie *trie, uint32_t *node, uint8_t byte);

#endif
