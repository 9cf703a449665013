/* The proof that a voter signed two records of one slot, or that a slot has two FORKs: kept, told
 * to all, and why a node halts. */
#ifndef DP_GOSSIP_CATCHUP_PROOF_H
#define DP_GOSSIP_CATCHUP_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "gossip/catchup/fork.h"
#include "gossip/core/limits.h"
#include "gossip/core/msg.h"
#include "gossip/record/record.h"
#include "gossip/vote/commit_msg.h"

enum {
    DP_PROOF_ROW_HEAD = 1 + 32,
    DP_PROOF_ROW_MAX = 1 + 2 + 2 * DP_FORK_BYTES_MAX,
};
#define DP_PROOF_PATIENCE_US (2 * DP_SECOND) /* after a PROOF whose signatures do not hold */

_Static_assert((int)DP_PROOF_ROW_MAX >=
                   (int)(DP_PROOF_ROW_HEAD + DP_MSG_HEAD_BYTES + 2 * (1 + DP_VOTE_BYTES)),
               "both forms fit");
/* Of a double vote, or of two FORKs of one slot; empty while row_size is 0. */
typedef struct dp_proof {
    dp_peer culprit; /* zero for FORKs */
    size_t row_size;
    uint8_t row[DP_PROOF_ROW_MAX];
    uint32_t op; /* of the DP_STORE_PROOF under way, 0: none */
    bool failed;
    dp_time stored_at;
    dp_time record_asked_at; /* equivocation.c */
    /* by member that sent one signed by no voter: its next one is looked at then; 0: of all
     * relayed */
    dp_time again[DP_MEMBERS_MAX];
} dp_proof;

/* Two votes of one voter that contradict each other, signatures checked. */
void dp_proof_found(void *context, const dp_vote *a, const dp_vote *b);
/* from: the member whose link it came on; 0: it was relayed. DP_DENIED without a look: the last one
 * from there held nothing. */
dp_status dp_proof_message(dp_node *node, uint32_t from, dp_view message);
dp_status dp_proof_restore(dp_node *node, dp_view row);
void dp_proof_start(dp_node *node);
bool dp_proof_stored(dp_node *node, uint32_t op, dp_status status);
void dp_proof_tick(dp_node *node);
void dp_proof_tell(dp_node *node, const dp_peer *to);
void dp_proof_repeat(dp_node *node);

/* Two FORKs of one slot. */
void dp_proof_forks(dp_node *node, const dp_fork_record *own, const dp_fork_record *other);

/* The row holds a STOP now; a halt by two FORKs is over. */
void dp_proof_stop(dp_node *node, const dp_stop *stop);
/* Halted, and by a double vote. */
bool dp_proof_of_votes(const dp_node *node);
/* The row with this index now belongs to another member: forgets all data under the index. */
void dp_proof_forget_member(dp_node *node, uint32_t index);

#endif
