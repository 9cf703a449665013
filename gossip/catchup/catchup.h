/* Following the chain of others: records that this node lacks, and a state to begin with where
 * fetching it is cheaper than replaying. */
#ifndef DP_GOSSIP_CATCHUP_CATCHUP_H
#define DP_GOSSIP_CATCHUP_CATCHUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "gossip/core/limits.h"
#include "gossip/record/wire.h"
#include "gossip/transfer/peer_backoff.h"

#define DP_STATE_PATIENCE_US (5 * DP_SECOND) /* without progress another state is tried */

typedef struct dp_catchup {
    uint8_t *records; /* a RECORDS message being worked off */
    size_t size;
    dp_wire_records parsed;
    uint32_t next;
    uint64_t hint_slot; /* somebody speaks of this slot */
    dp_peer hint_peer;
    dp_time asked_at; /* zero: nothing asked */
    dp_peer asked;
    dp_peer sender; /* of the message at hand */
    bool gained;    /* it had a record that follows */
    dp_backoff doubt;
    dp_hash part;       /* a state of which an earlier life has fetched chunks; zero: none */
    bool frees_trainer; /* until dp_catchup_frees_trainer is asked */
    bool wants_state;   /* a state object is being fetched */
    dp_hash state_root;
    uint64_t state_round;
    uint64_t state_bytes;
    dp_time state_moved; /* when a piece of it last came */
    dp_time chosen_at;
    uint32_t hasty; /* states in a row that gave way to newer ones before anything of them came */
    dp_time gave_up_at; /* when a state that did not come was last let go; zero: never */
    dp_time stuck_at;   /* a blob for the next APPLY has been missing since; zero: not */
    dp_time dials_at;
} dp_catchup;

/* Reserves the memory of this room in a run whose records list at most so many contributions.
 * DP_NOMEM; close frees it. */
DP_MUST dp_status dp_catchup_open(dp_node *node, uint32_t listed_max);
void dp_catchup_close(dp_node *node);
/* The ledger stands at its first slot. */
void dp_catchup_begin(dp_node *node);
/* A blob for the next APPLY is missing, since now if it was not before; or none is. */
void dp_catchup_stuck(dp_node *node);
void dp_catchup_free(dp_node *node);
/* Chunks of this state are on this disk, from an earlier start. */
void dp_catchup_has_part(dp_node *node, const dp_hash *root);

dp_status dp_catchup_records(dp_node *node, dp_view message, const dp_peer *from);
void dp_catchup_hint(dp_node *node, const dp_peer *peer, uint64_t slot);
void dp_catchup_next(dp_node *node);
void dp_catchup_tick(dp_node *node);
dp_time dp_catchup_wake(const dp_node *node);
/* The trainer needs a state that is not here. */
void dp_catchup_state(dp_node *node);
/* Lets go of a state that does not come, and fetches the updates after one that does. */
void dp_catchup_state_tick(dp_node *node);
/* Nobody linked gives a certified state, and every update of every round is here. */
bool dp_catchup_needs_no_state(const dp_node *node);
/* Could this node compute the newest state by its own disk alone, if it started again now? */
bool dp_catchup_can_restart(const dp_node *node);
/* From the state of this round it is fewer bytes to fetch a newer certified state, with the updates
 * after it, than the updates alone, and enough rounds are missing. */
bool dp_catchup_prefers_state(const dp_node *node, uint64_t round);
/* A piece of this object has come. */
void dp_catchup_chunk(dp_node *node, const dp_hash *root);
/* An object is whole here. */
void dp_catchup_object(dp_node *node, const dp_hash *root);
/* Has a state come, since this was last asked, that a trainer stuck on missing updates starts anew
 * from? */
bool dp_catchup_frees_trainer(dp_node *node);

/* Somebody is known to have records that this node lacks. */
bool dp_catchup_behind(const dp_node *node);

#endif
