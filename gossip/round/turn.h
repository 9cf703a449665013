/* Whose turn it is to contribute when a run has more members than a record lists. A matter of
 * sparing traffic and of whom the owner of a ballot lists and waits for, never of validity: who
 * publishes out of turn may be listed, and everybody judges for itself. Pure. */
#ifndef DP_GOSSIP_ROUND_TURN_H
#define DP_GOSSIP_ROUND_TURN_H

#include "gossip/ledger/ledger.h"

/* Does a stand before b: not counted for longer, or as long and with a smaller key? A member that
 * never was counted stands first. */
bool dp_turn_goes_before(const dp_ledger *ledger, const dp_peer *a, const dp_peer *b);
/* Would a contribution of peer be listed, if it were held beside those of the n peers in held? Not
 * if it is one of them, if those that stand before it fill a record. */
bool dp_turn_has_place(const dp_ledger *ledger, const dp_peer *peer, const dp_peer *const *held,
                       uint32_t n);
/* Members that stand before peer: not counted for longer, or as long and with a smaller key; alive,
 * as far as the caller knows, and counted lately. 0 for who is no member or was not counted lately:
 * it is always its turn. */
uint32_t dp_turn_before(const dp_ledger *ledger, const dp_peer *peer,
                        bool (*alive)(const void *context, const dp_peer *peer),
                        const void *context);
/* So many publish at first, half as many again as a record lists, since some will be late; where a
 * share closes rounds, as many as a record lists are that share of: ceil(32 / 0.9) = 36. */
uint32_t dp_turn_members(const dp_ledger *ledger);
/* How many may stand before who publishes, so long after the round was opened: dp_turn_members for
 * a round's length, then as many more with each eighth of it, so that those in front who have
 * nothing to publish stop nobody for long. */
uint32_t dp_turn_allowed(const dp_ledger *ledger, uint64_t elapsed_us, uint64_t round_us);

#endif
