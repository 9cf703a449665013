/* Decides whether a peer that asks for this node's own update gets it here, or has to wait for
 * another node that has it: behind an uplink that is thinner than the others', this node gives the
 * update to one voter first. A memory of fixed size and a rule; no messages of its own.
 *
 * A refused peer hears "not here", as from any node that lacks an object (picker.h); it asks the
 * others, and asks here again after 250 ms, 500 ms, 1 s, .. The voter tells all voters HAVE when it
 * has the update, and they ask it; a node that does not vote finds it when it asks around. The
 * uplink then carries one copy instead of one for each peer that asks. No peer is refused for
 * longer than DP_RELAY_COPIES times the time of one copy, and DP_RELAY_MORE_US, or half of the
 * round's time, the shorter of the two: so much a voter that is slow or silent costs, and not twice
 * in a row, since another is first the next time. */
#ifndef DP_GOSSIP_TRANSFER_RELAY_H
#define DP_GOSSIP_TRANSFER_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/digest.h"
#include "gossip/core/id.h"
#include "gossip/member/links.h"

enum {
    DP_RELAY_COPIES = 3,
    /* Thin: a copy to each that may ask takes more than so many times as long as others' updates
     * took to come here (their median). Among equal lines the two are the same, since others send
     * as many copies; there a relay would only move the load. A line that is as thin downwards is
     * not thin by this: a download takes as long as an upload, at the same time. */
    DP_RELAY_THINNER = 2
};
#define DP_RELAY_MORE_US (500 * DP_MS)
/* Copies to all that take less than this are sent: to be refused and to ask again takes as long. */
#define DP_RELAY_WORTH_US DP_SECOND

/* Zeroed at the start. */
typedef struct dp_relay {
    dp_span waits;  /* from READY to blob, of others' updates */
    dp_hash root;   /* the update that was asked for last, */
    bool kept;      /* ... which one gets first; */
    bool has_first; /* ... this one; */
    bool has_last;  /* ... and the one before went to that one */
    dp_peer first;
    dp_peer last;
    dp_time until;
} dp_relay;

/* Size and leaves of the own update were asked for. */
typedef struct dp_relay_ask {
    dp_time now;
    dp_hash root;
    uint64_t bytes;
    uint32_t uplink;   /* kB/s; 0: unknown, which is never thin */
    uint32_t askers;   /* linked members */
    uint32_t voters;   /* of them */
    bool first_linked; /* is relay->first? */
    bool is_voter;     /* is the peer that asks? */
    dp_peer peer;      /* the peer that asks */
    uint64_t round_us; /* the longest that a round may take */
    bool always;       /* for the simulator: as if the line were thin */
} dp_relay_ask;

/* Another's update is here, so long after its READY. */
void dp_relay_came(dp_relay *relay, uint64_t wait_us);
/* True: "not here". Whether an update is kept for one is found when it is asked for first. */
bool dp_relay_refuses(dp_relay *relay, const dp_relay_ask *ask);

#endif
