/* Votes and records that do not follow from the own chain: looked at for a voter that signed both
 * sides. */
#ifndef DP_GOSSIP_CATCHUP_EQUIVOCATION_H
#define DP_GOSSIP_CATCHUP_EQUIVOCATION_H

#include <stdbool.h>
#include <stdint.h>

#include "gossip/core/limits.h"
#include "gossip/record/record.h"
#include "gossip/vote/commit_msg.h"

/* A vote of the slot under way, signature checked. */
void dp_equivocation_saw(void *context, const dp_vote *vote);
/* A vote of a slot that is decided here, or after another record than ours; nothing has been
 * checked. */
void dp_equivocation_vote(dp_node *node, const dp_vote *vote, const dp_peer *from);
/* Record and certificate, from anywhere, of a slot that is decided here. */
void dp_equivocation_record(dp_node *node, uint64_t slot, dp_view record, dp_view cert);
/* The signatures under a record, each looked at by itself. */
void dp_equivocation_seals(dp_node *node, const dp_cert_of_record *cert, const dp_record *record,
                           const dp_hash *hash);
/* This peer has another record in this slot: ask for it, once a second at most. */
void dp_equivocation_fetch(dp_node *node, const dp_peer *from, uint64_t slot);

#endif
