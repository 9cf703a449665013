/* FORKs of the chain: the record by which the root key begins the chain anew after slot s0, with
 * other voters (SAFETY section 9). This is how a node meets them: takes one at its head, drops the
 * records of its chain after s0, or finds that two of them contradict each other, until a STOP by
 * the root key names the one that goes on. record.h describes the bytes of a FORK, valid.h whether
 * it is valid.
 *
 *   FORK  head | a FORK record
 *   STOP  head | 32 fork that ends | 32 fork that goes on | 64 signature by the root key over run
 *         | these two, domain "dpnode/stop/1" */
#ifndef DP_GOSSIP_CATCHUP_FORK_H
#define DP_GOSSIP_CATCHUP_FORK_H

#include "base/clock.h"
#include "gossip/ledger/ledger.h"

enum {
    DP_FORKS_KEPT = 4,  /* of the own chain, sent to peers that may not know them */
    DP_HEADS_MAX = 1024 /* slots back to which a FORK can reach into a chain that went on */
};
#define DP_FORK_REPEAT_US (2 * DP_SECOND)
#define DP_FORK_SAVE_US (60 * DP_SECOND)

typedef struct dp_fork_record {
    bool has;
    dp_hash id;
    dp_hash parent; /* the fork it leaves; zero: the run as it began */
    uint64_t slot;  /* its own: s0 + 1 */
    dp_hash prev;
    size_t size;
    uint8_t bytes[DP_FORK_BYTES_MAX];
} dp_fork_record;

typedef struct dp_stop {
    bool has;
    dp_hash loser;
    dp_hash survivor;
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_stop;

typedef struct dp_head {
    uint64_t slot;
    uint64_t round; /* rounds decided up to it */
    dp_hash hash;
} dp_head;

typedef struct dp_forks {
    uint32_t n; /* own, oldest first */
    dp_fork_record own[DP_FORKS_KEPT];
    /* of a chain that is not ours and that we do not join: only a MERGE could */
    dp_fork_record other;
    dp_fork_record next; /* to be written */
    dp_stop stop;        /* the last one met */
    bool saving;         /* next waits for a checkpoint of the newest state */
    dp_time asked_at;
    uint64_t wanted; /* while halted: records up to here may be taken, towards a FORK */
    uint32_t op;     /* of the DP_STORE_FORK under way, 0: none */
    bool failed;
    dp_time stored_at;
    dp_time repeat_at;
    dp_head heads[DP_HEADS_MAX]; /* by slot, rising around */
} dp_forks;

/* First eight bytes of an id, as a summary tells it. */
uint64_t dp_fork_tag(const dp_hash *fork);

/* ---- at a node ---- */

dp_status dp_fork_stop(dp_node *node, const dp_stop *stop);
dp_status dp_fork_stop_message(dp_node *node, dp_view message);
/* The record of this slot of the own chain; NULL: later than the chain, or too long ago. */
const dp_head *dp_fork_head(const dp_node *node, uint64_t slot);
/* This record has become the head. */
void dp_fork_applied(dp_node *node, const dp_record *record, const dp_hash *hash, dp_view bytes);
/* A FORK record from any source; from: the peer that sent it, NULL for this node's own. */
dp_status dp_fork_take(dp_node *node, dp_view bytes, const dp_peer *from);
void dp_fork_save_first(dp_node *node);
dp_status dp_fork_message(dp_node *node, dp_view message, const dp_peer *from);
dp_status dp_fork_restore_other(dp_node *node, dp_view bytes);
/* A chain that is known not to be ours, or not to go on. */
bool dp_fork_elsewhere(const dp_node *node, uint64_t tag);
bool dp_fork_stored(dp_node *node, uint32_t op, dp_status status);
void dp_fork_tick(dp_node *node);
void dp_fork_tell(dp_node *node, const dp_peer *to);
void dp_fork_repeat(dp_node *node);

#endif
