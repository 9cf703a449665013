/* Turns: the order in which members contribute when a run has more members than a record lists.
 * Turns spare traffic and guide the owner of a ballot in what it lists and awaits; they never
 * decide validity: a member that publishes out of turn may be listed, and every node judges the
 * turn for itself. Pure. */
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
 * as far as the caller knows, and counted lately. 0 for a peer that is no member or was not counted
 * lately: it is always its turn. */
uint32_t dp_turn_before(const dp_ledger *ledger, const dp_peer *peer,
                        bool (*alive)(const void *context, const dp_peer *peer),
                        const void *context);
/* So many publish at first, half as many again as a record lists, since some will be late. */
uint32_t dp_turn_members(const dp_ledger *ledger);
/* How many members may stand before one that publishes, this long after the round was opened:
 * dp_turn_members for a round's length, then as many more with each eighth of it, so that members
 * in front with nothing to publish do not stop the others for long. */
uint32_t dp_turn_allowed(const dp_ledger *ledger, uint64_t elapsed_us, uint64_t round_us);

#endif
