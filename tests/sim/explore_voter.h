/* One voter of the exhaustive search: numbered states of its machine and disk, and the effect of
 * events on them. The C code runs once for each (state, event); later the result is looked up. */
#ifndef DP_SIM_EXPLORE_VOTER_H
#define DP_SIM_EXPLORE_VOTER_H

#include "tests/sim/explore_chain.h"

enum {
    DP_EXPLORE_HOSTS = DP_EXPLORE_VOTERS + 1, /* including the one that replaces another */
    DP_EXPLORE_MESSAGES_MAX = 4096,           /* different ones, over all states */
    DP_EXPLORE_SENDS_MAX = 12,                /* in one step */
};

/* An event is the number of a message, or one of these. */
typedef enum dp_explore_event {
    DP_EXPLORE_STORED = DP_EXPLORE_MESSAGES_MAX, /* the write of the vote row has ended */
    DP_EXPLORE_RECORD_STORED,                    /* that of a record */
    DP_EXPLORE_FAILED,                           /* the write of the vote row fails, */
    DP_EXPLORE_FAILED_KEPT,                      /* but the row is on the disk nevertheless */
    DP_EXPLORE_CRASH,                            /* the writes under way are lost, */
    DP_EXPLORE_CRASH_KEPT,                       /* the row was written, */
    DP_EXPLORE_CRASH_RECORD,                     /* the record was, */
    DP_EXPLORE_CRASH_BOTH,                       /* both were */
    DP_EXPLORE_PROPOSE,                          /* in ballot 0 */
    DP_EXPLORE_BID,
    DP_EXPLORE_TAKE, /* and the number of a record that another voter has on its disk, and gives */
    DP_EXPLORE_EVENTS = DP_EXPLORE_TAKE + DP_EXPLORE_RECORDS_MAX
} dp_explore_event;

typedef struct dp_explore_message {
    uint8_t from; /* hosts */
    uint8_t to;
    uint8_t type;
    uint8_t after; /* the record before its slot */
    uint32_t ballot;
    uint64_t hash; /* of the record, shortened */
    uint64_t mark; /* of all of it */
} dp_explore_message;

/* Effect of an event on a state. */
typedef struct dp_explore_effect {
    uint32_t state; /* the same number: no effect */
    uint16_t n_sends;
    uint16_t sends[DP_EXPLORE_SENDS_MAX];
    const char *claim; /* a rule that was broken on the way, or NULL */
} dp_explore_effect;

typedef struct dp_explore_voters dp_explore_voters;

typedef struct dp_explore_bounds {
    uint32_t slots; /* 1 to DP_EXPLORE_SLOTS_MAX */
    uint32_t bids;  /* of one voter, in all slots */
    /* the owner of ballot 0 of the first slot replaces the owner of ballot 1 by the last host */
    bool hand_over;
} dp_explore_bounds;

/* sim: open, with at least DP_EXPLORE_HOSTS hosts. */
dp_explore_voters *dp_explore_voters_open(dp_sim *sim, const dp_explore_bounds *bounds);
void dp_explore_voters_close(dp_explore_voters *voters);
/* The state of a host that has just been started for the first time. */
uint32_t dp_explore_start(dp_explore_voters *voters, uint32_t host);
/* Valid until the next call. */
const dp_explore_effect *dp_explore_step(dp_explore_voters *voters, uint32_t state, uint32_t event);
const dp_explore_message *dp_explore_message_of(const dp_explore_voters *voters, uint32_t number);
uint32_t dp_explore_messages(const dp_explore_voters *voters);
/* Is this event, other than a message, possible? A write is under way, a bid is left, or the record
 * is the next one. */
bool dp_explore_may(const dp_explore_voters *voters, uint32_t state, uint32_t event);
/* The last record that it has applied: messages for the slot after another record do not reach its
 * voting machine. */
uint32_t dp_explore_head(const dp_explore_voters *voters, uint32_t state);
/* The last record on its disk. */
uint32_t dp_explore_durable(const dp_explore_voters *voters, uint32_t state);
/* Has it heard the votes that decide the slot after its head? */
bool dp_explore_has_decided(const dp_explore_voters *voters, uint32_t state);
/* The decided record of the n-th slot after the start, as far as this voter knows; 0: none. */
uint32_t dp_explore_decided(const dp_explore_voters *voters, uint32_t state, uint32_t slot);
/* The record after head on the way to last; 0: there is none. */
uint32_t dp_explore_next(const dp_explore_voters *voters, uint32_t head, uint32_t last);
/* Does host vote in the slot after this record? */
bool dp_explore_votes(const dp_explore_voters *voters, uint32_t after, uint32_t host);
/* Number of its bids. */
uint32_t dp_explore_bids(const dp_explore_voters *voters, uint32_t state);
uint64_t dp_explore_mark(const dp_explore_voters *voters, uint32_t state);
uint32_t dp_explore_states(const dp_explore_voters *voters);
const dp_explore_chain *dp_explore_chain_of(const dp_explore_voters *voters);

#endif
