/* One voter as the exhaustive search sees it: numbered states of its machine and disk, and what an event makes of them. The C
 * code runs once for each (state, event); then it is looked up. */
#ifndef DP_SIM_EXPLORE_VOTER_H
#define DP_SIM_EXPLORE_VOTER_H

#include "tests/sim/sim.h"

enum {
    DP_EXPLORE_VOTERS = 3,
    DP_EXPLORE_MESSAGES_MAX = 4096, /* different ones, over all states */
    DP_EXPLORE_SENDS_MAX = 12,      /* in one step */
};

/* An event is the number of a message, or one of these. */
typedef enum dp_explore_event {
    DP_EXPLORE_STORED = DP_EXPLORE_MESSAGES_MAX, /* the write under way has ended */
    DP_EXPLORE_CRASH,                            /* ... is lost */
    DP_EXPLORE_CRASH_KEPT,                       /* ... was done */
    DP_EXPLORE_PROPOSE,                          /* in ballot 0 */
    DP_EXPLORE_BID,
    DP_EXPLORE_EVENTS
} dp_explore_event;

typedef struct dp_explore_message {
    uint8_t from;
    uint8_t to;
    uint8_t type;
    uint32_t ballot;
    uint64_t hash; /* of the record, shortened */
    uint64_t mark; /* of all of it */
} dp_explore_message;

/* What an event makes of a state. */
typedef struct dp_explore_effect {
    uint32_t state; /* the same number: nothing happened */
    uint16_t n_sends;
    uint16_t sends[DP_EXPLORE_SENDS_MAX];
    const char *claim; /* that failed on the way, or NULL */
} dp_explore_effect;

typedef struct dp_explore_voters dp_explore_voters;

/* sim: open, with at least so many hosts. bids: of one voter. */
dp_explore_voters *dp_explore_voters_open(dp_sim *sim, uint32_t bids);
void dp_explore_voters_close(dp_explore_voters *voters);
/* The state of a voter that has just been started for the first time. */
uint32_t dp_explore_start(dp_explore_voters *voters, uint32_t voter);
/* Lives until the next call. */
const dp_explore_effect *dp_explore_step(dp_explore_voters *voters, uint32_t state, uint32_t event);
const dp_explore_message *dp_explore_message_of(const dp_explore_voters *voters, uint32_t number);
uint32_t dp_explore_messages(const dp_explore_voters *voters);
/* May this event come? A write is under way, a bid is left. */
bool dp_explore_may(const dp_explore_voters *voters, uint32_t state, uint32_t event);
/* 0: the voter knows no decision; else the record, shortened. */
uint64_t dp_explore_decided(const dp_explore_voters *voters, uint32_t state);
/* How often it has bid. */
uint32_t dp_explore_bids(const dp_explore_voters *voters, uint32_t state);
uint64_t dp_explore_mark(const dp_explore_voters *voters, uint32_t state);
uint32_t dp_explore_states(const dp_explore_voters *voters);

#endif
