/* States that are whole on this disk: own checkpoints, and those fetched from peers. */
#ifndef DP_GOSSIP_CATCHUP_SAVED_H
#define DP_GOSSIP_CATCHUP_SAVED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/digest.h"
#include "gossip/core/limits.h"

enum { DP_SAVED_MAX = 4 /* remembered */ };

typedef struct dp_saved {
    bool has;
    bool bad;
    bool fetched; /* held by DP_USE_STATE; else the driver's own checkpoints hold it */
    uint64_t round;
    dp_hash root;
    uint64_t bytes;
    dp_time since; /* zero: of an earlier life */
} dp_saved;

typedef struct dp_saved_all {
    dp_saved at[DP_SAVED_MAX];
} dp_saved_all;

/* The state of round is whole on this disk, and remembered in place of the oldest; fetched as in
 * dp_saved. */
void dp_saved_add(dp_node *node, uint64_t round, const dp_hash *root, uint64_t bytes, bool fetched);
/* An own checkpoint of round is durable: fetched states before it are let go, but not the one that
 * the trainer is loading (NULL: none). */
void dp_saved_drop_before(dp_node *node, uint64_t round, const dp_hash *loading);
/* The state cannot be read here any more: it is neither loaded nor told of. */
void dp_saved_lost(dp_node *node, const dp_hash *root);
/* The trainer could not start from it, or came from it to a state that others do not have: it is
 * not loaded again. */
void dp_saved_mark_bad(dp_node *node, const dp_hash *root);
/* Is it the state after this round? False also when that is not known. */
bool dp_saved_is_certified(const dp_node *node, uint64_t round, const dp_hash *tensor_root,
                           bool *known);
/* Is there a checkpoint of its own of this round, which it would find again? */
bool dp_saved_is_own(const dp_node *node, uint64_t round);
/* Round of the newest checkpoint of its own that it would find again; 0: none. */
uint64_t dp_saved_own(const dp_node *node);
uint64_t dp_saved_newest(const dp_node *node);
/* The newest checkpoint whose certificate stands in the chain, in the record after its round (or in
 * a FORK): the certificate of the newest state is only in the memory of the voters that signed it,
 * and may be lost with them. Without one, the newest. NULL: none. */
const dp_saved *dp_saved_proven(const dp_node *node);
/* The checkpoint that others are told of: the newest, since it is here longest, and its proof
 * mostly comes before they ask for it; the one above when no record has come for a while. NULL:
 * none. */
const dp_saved *dp_saved_told(const dp_node *node);

#endif
