/* The join secret is rotated: a word waits here for the next record, with the secret that it names,
 * and both go to linked members at once. When the chain has a word, a node that has its secret
 * keeps it and uses it from then on; one that has not asks linked members, and continues with its
 * older secrets. A secret goes over the link to a member by the chain, and to nobody else: never
 * through a relay, nor to a newcomer. */
#ifndef DP_GOSSIP_REQUESTS_ROTATE_H
#define DP_GOSSIP_REQUESTS_ROTATE_H

#include "base/clock.h"
#include "gossip/ledger/ledger.h"

struct dp_node;

#define DP_SECRET_PAUSE_US (2 * DP_SECOND) /* between two questions */

typedef struct dp_rotate {
    dp_secrets held;
    bool waits; /* for the next record: word and secret */
    dp_rotation word;
    dp_secret secret;
    dp_time asked_at;
    uint16_t told; /* the epoch of which this node has said that its secret is not here */
} dp_rotate;

/* A new secret, 16 random bytes, for the next epoch; why tells the error. DP_DENIED, DP_AGAIN: one
 * waits already; DP_TOOBIG: no epoch is left. */
DP_MUST dp_status dp_rotate_begin(struct dp_node *node, const uint8_t *secret, dp_why *why);
/* ROTATE, SECRET_GET and SECRET, on the link of this peer. DP_BADMSG, DP_BADSIG, DP_BADHASH,
 * DP_DENIED. */
DP_MUST dp_status dp_rotate_message(struct dp_node *node, const dp_peer *from, dp_view bytes);
void dp_rotate_draft(const struct dp_node *node, dp_record *draft);
/* A record has become the head. */
void dp_rotate_applied(struct dp_node *node);
/* Tells again, or asks. */
void dp_rotate_repeat(struct dp_node *node);

#endif
