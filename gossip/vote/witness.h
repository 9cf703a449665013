/* The recent votes of each voter, slot by slot, in this chain and in any other, so that a voter
 * that signs contradicting votes convicts itself (SAFETY A12). It keeps and compares votes; proof.c
 * acts on a contradiction.
 *
 * An honest voter never signs two votes a and b of one slot and fork of which any of these is true,
 * whatever crashes, since each is durable before it is sent:
 *   another record before the slot       it follows one chain
 *   ACCEPTED and ACCEPTED, or PROPOSE and PROPOSE, or one of each, in one ballot, of different
 *     records
 *   PROMISE and PROMISE in one ballot that name different accepted records
 *   ACCEPTED in ballot x, PROMISE in y > x that names nothing, an accept below x, or in x another
 *     record
 * So two certificates for one slot always hold a voter that some pair of these names, once all
 * votes behind them are seen: two majorities share a voter, and it did not tell in the higher
 * ballot the record that it accepted in the lower one. */
#ifndef DP_GOSSIP_VOTE_WITNESS_H
#define DP_GOSSIP_VOTE_WITNESS_H

#include "gossip/ledger/ledger.h"

enum {
    DP_WITNESS_SLOTS = 8, /* remembered, the one under way included */
    DP_WITNESS_VOTES = 5  /* of one voter in one slot: see the source */
};

typedef struct dp_witness_slot {
    uint64_t slot; /* 0: empty */
    dp_hash fork;
    dp_hash prev;
    dp_hash hash; /* of the record decided here; zero: none yet */
    uint32_t n_voters;
    dp_voter voters[DP_VOTERS_MAX];
    uint8_t kept[DP_VOTERS_MAX]; /* bit per class of vote */
    dp_vote votes[DP_VOTERS_MAX][DP_WITNESS_VOTES];
} dp_witness_slot;

typedef struct dp_witness {
    dp_witness_slot slots[DP_WITNESS_SLOTS];
} dp_witness;

/* Would no honest voter sign both? The same voter's, signatures checked by the caller. */
bool dp_votes_contradict(const dp_vote *a, const dp_vote *b);

/* The slot after the ledger's head begins. */
void dp_witness_begin(dp_witness *witness, const dp_ledger *ledger);
/* The record of this slot is decided here. */
void dp_witness_decided(dp_witness *witness, uint64_t slot, const dp_hash *hash);
/* NULL: too old, or not begun. */
const dp_witness_slot *dp_witness_find(const dp_witness *witness, uint64_t slot);
/* A vote whose signature holds under the key of its voter in its slot. Kept; if it contradicts an
 * earlier one of the same voter, that is lent. */
const dp_vote *dp_witness_take(dp_witness *witness, const dp_vote *vote);

#endif
