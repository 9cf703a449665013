#include "gossip/vote/witness.h"

#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/core/msg.h"

/* The votes kept of one voter in one slot: the lowest and highest of its accepts and promises,
 * since a promise contradicts an accept that lies anywhere below it; one proposal; and one vote of
 * a chain that is not ours. */
enum { ACCEPTED_LOW, ACCEPTED_HIGH, PROMISE_LOW, PROMISE_HIGH, PROPOSED };
_Static_assert((int)PROPOSED + 1 == (int)DP_WITNESS_VOTES, "a place for each");

static bool is_choice(const dp_vote *vote)
{
    return vote->type == DP_MSG_ACCEPTED || vote->type == DP_MSG_PROPOSE;
}

static bool accept_was_hidden(const dp_vote *accept, const dp_vote *promise)
{
    return accept->type == DP_MSG_ACCEPTED && promise->type == DP_MSG_PROMISE &&
           promise->ballot > accept->ballot &&
           (promise->accepted < accept->ballot + 1 ||
            (promise->accepted == accept->ballot + 1 &&
             !dp_hash_equal(&promise->hash, &accept->hash)));
}

bool dp_votes_contradict(const dp_vote *a, const dp_vote *b)
{
    if (a->slot != b->slot || !dp_hash_equal(&a->fork, &b->fork)) {
        return false;
    }
    if (!dp_hash_equal(&a->prev, &b->prev)) {
        return true;
    }
    if (is_choice(a) && is_choice(b)) {
        return a->ballot == b->ballot && !dp_hash_equal(&a->hash, &b->hash);
    }
    if (a->type == DP_MSG_PROMISE && b->type == DP_MSG_PROMISE) {
        /* One that names an accept of its own ballot is of a disk that fails; nobody uses it. */
        return a->ballot == b->ballot && a->accepted <= a->ballot && b->accepted <= b->ballot &&
               (a->accepted != b->accepted || !dp_hash_equal(&a->hash, &b->hash));
    }
    return accept_was_hidden(a, b) || accept_was_hidden(b, a);
}

/* ---- slots ---- */

static dp_witness_slot *place(dp_witness *witness, uint64_t slot)
{
    return &witness->slots[slot % DP_WITNESS_SLOTS];
}

void dp_witness_begin(dp_witness *witness, const dp_ledger *ledger)
{
    dp_witness_slot *entry = place(witness, ledger->slot + 1);

    if (entry->slot == ledger->slot + 1 && dp_hash_equal(&entry->prev, &ledger->head) &&
        dp_hash_equal(&entry->fork, &ledger->fork)) {
        return;
    }
    memset(entry, 0, sizeof *entry);
    entry->slot = ledger->slot + 1;
    entry->fork = ledger->fork;
    entry->prev = ledger->head;
    entry->n_voters = ledger->n_voters;
    memcpy(entry->voters, ledger->voters, sizeof entry->voters);
}

void dp_witness_decided(dp_witness *witness, uint64_t slot, const dp_hash *hash)
{
    dp_witness_slot *entry = place(witness, slot);

    if (entry->slot == slot) {
        entry->hash = *hash;
    }
}

const dp_witness_slot *dp_witness_find(const dp_witness *witness, uint64_t slot)
{
    const dp_witness_slot *entry = &witness->slots[slot % DP_WITNESS_SLOTS];

    return slot != 0 && entry->slot == slot ? entry : NULL;
}

/* ---- votes ---- */

static void keep(dp_witness_slot *entry, uint32_t class, const dp_vote *vote, bool lower)
{
    const uint8_t bit = (uint8_t)(1U << class);
    dp_vote *place_of = &entry->votes[vote->voter][class];

    dp_assert(class < DP_WITNESS_VOTES);
    if ((entry->kept[vote->voter] & bit) == 0 ||
        (lower ? vote->ballot < place_of->ballot : vote->ballot > place_of->ballot)) {
        *place_of = *vote;
        entry->kept[vote->voter] |= bit;
    }
}

const dp_vote *dp_witness_take(dp_witness *witness, const dp_vote *vote)
{
    dp_witness_slot *entry = place(witness, vote->slot);

    if (entry->slot != vote->slot || vote->voter >= entry->n_voters) {
        return NULL;
    }
    if (dp_broken(60)) {
        return NULL; /* Earlier votes, and those of other chains, are forgotten. */
    }
    for (uint32_t i = 0; i < DP_WITNESS_VOTES; i++) {
        const dp_vote *kept = &entry->votes[vote->voter][i];
        if ((entry->kept[vote->voter] & (1U << i)) != 0 && dp_votes_contradict(kept, vote)) {
            return kept;
        }
    }
    if (vote->type == DP_MSG_ACCEPTED) {
        keep(entry, ACCEPTED_LOW, vote, true);
        keep(entry, ACCEPTED_HIGH, vote, false);
    } else if (vote->type == DP_MSG_PROMISE) {
        keep(entry, PROMISE_LOW, vote, true);
        keep(entry, PROMISE_HIGH, vote, false);
    } else {
        /* PREPARE and PROPOSE: their chain, and the last proposal. */
        keep(entry, PROPOSED, vote, false);
    }
    return NULL;
}
