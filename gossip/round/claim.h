/* Contributions to the round under way that a node follows: the room for them, and the checks of
 * the sizes that they announce. */
#ifndef DP_GOSSIP_ROUND_CLAIM_H
#define DP_GOSSIP_ROUND_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "gossip/core/limits.h"
#include "gossip/round/round_msg.h"

/* claim_room.c: may a claim of this peer be followed, once another has given way if it must?
 * make_room has it do so. */
bool dp_claim_has_room(const dp_node *node, const dp_peer *peer);
bool dp_claim_make_room(dp_node *node, const dp_peer *peer);
void dp_claim_open_round(dp_node *node);

/* claim_size.c: could an update of this run be as long as this READY says? */
bool dp_claim_fits(const dp_node *node, const dp_ready *ready);
/* A holder has proved the length of this object: a member that named it with another size has lied,
 * and an object that no message names rightly is not fetched. Before dp_picker_info. */
void dp_claim_sized(dp_node *node, const dp_hash *root, uint64_t size);
/* A message said this size, size is right: false, and the bad of its object is set, if they
 * differ. */
bool dp_claim_hold_against(bool *bad, uint64_t said, uint64_t size);
/* Counts and names the author of such a message of this round. */
void dp_claim_note_lie(dp_node *node, uint64_t round, const dp_peer *liar);

#endif
