/* Invites that are to be revoked with the next record: signed statements about them, kept in memory
 * until the chain has them, and repeated by every node that has them. They bind a node at once: it
 * proposes no node that came by such an invite; once the chain has them, its guests are cut. Beside
 * them the removals that a command with --members has begun here: members to be put out that came
 * by an invite, some with each record. */
#ifndef DP_GOSSIP_REQUESTS_REVOKE_REQUEST_H
#define DP_GOSSIP_REQUESTS_REVOKE_REQUEST_H

#include "gossip/ledger/inviting.h"

struct dp_node;

enum { DP_SWEEPS_MAX = 8 };

typedef struct dp_revoke_requests {
    uint32_t n;
    dp_invite_revoke words[DP_CONFIG_REVOKE_MAX];
    uint32_t n_sweeps;
    dp_invite_id sweeps[DP_SWEEPS_MAX];
} dp_revoke_requests;

/* A word from anywhere. DP_OK, also when nothing is left to do; DP_DENIED, DP_BADSIG; DP_AGAIN: too
 * many at once; DP_TOOBIG: the chain has no room for one more. */
DP_MUST dp_status dp_revoke_request(struct dp_node *node, const dp_invite_revoke *word);
DP_MUST dp_status dp_revoke_request_message(struct dp_node *node, dp_view bytes);
/* As dp_inviting_struck, also by the requests that this node knows beside the chain. */
const char *dp_revoke_request_struck(const struct dp_node *node, const dp_config_part *config,
                                     const dp_admitted *admitted);
/* Is this peer no member, and did it come by an invite that the chain has revoked? Then it gets no
 * link here. No other reason bars a peer: a node that is behind must not cut off members of which
 * it has not heard yet. */
bool dp_invite_bars(const struct dp_node *node, const dp_peer *peer, dp_view credential);
/* Is a word about this invite known here that the chain has not yet? */
bool dp_revoke_requested(const struct dp_node *node, const dp_invite_id *id);
/* Into a draft whose time and removals stand, before its admissions. */
void dp_revoke_request_draft(const struct dp_node *node, dp_record *draft);
/* Puts out members that came by this invite, directly or by an invite of one that did, now and with
 * the next records. DP_AGAIN: too many such orders. */
DP_MUST dp_status dp_invite_sweep(struct dp_node *node, const dp_invite_id *id);
/* Did this one come so? Members and those gone. */
bool dp_invite_brought(const dp_roster_entry *entry, const dp_invite_id *id);
/* A record has become the head. */
void dp_revoke_request_applied(struct dp_node *node, const dp_record *record);
void dp_revoke_request_forget_done(struct dp_node *node);
void dp_revoke_request_repeat(struct dp_node *node);

#endif
