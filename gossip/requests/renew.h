/* Certificates are renewed before they end: a node asks a member that may invite in the last third
 * of its time, and again while it has no answer. Nobody renews itself, save with the root key, and
 * nobody is renewed that is no member. A renewal holds as long as the one that gave it is a member
 * that may invite: with a revocation those that it gave end too, and their owners ask others. */
#ifndef DP_GOSSIP_REQUESTS_RENEW_H
#define DP_GOSSIP_REQUESTS_RENEW_H

#include "gossip/identity/renewal.h"
#include "gossip/ledger/ledger.h"

struct dp_node;

#define DP_RENEW_PAUSE_US (10 * DP_SECOND) /* between two questions */

/* Does it hold by this chain, at this time? */
bool dp_renew_holds(const dp_renewal *renewal, const dp_ledger *ledger, const dp_crypto *crypto,
                    uint64_t now_ms);
/* Has the certificate of this peer, which has ended, been renewed? By the chain as known here; a
 * newcomer believes any member. */
bool dp_renew_counts(const struct dp_node *node, const dp_renewal *renewal, const dp_peer *peer,
                     uint64_t now_ms);
/* When the membership of this node ends: by its certificate, or its renewal. */
uint64_t dp_renew_end(const struct dp_node *node);
void dp_renew_tick(struct dp_node *node);
/* RENEW_GET and RENEWAL, on the link of this peer. DP_BADMSG, DP_DENIED. */
DP_MUST dp_status dp_renew_message(struct dp_node *node, const dp_peer *from, dp_view bytes);

#endif
