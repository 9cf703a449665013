/* Points at which the simulator makes a node unlucky in ways that the rules allow, to reach states
 * that good luck hides: timers that end early or late, short lists, hints that are lost, fallbacks
 * without need. A mask in the node turns each one on; the daemon never sets it, so that both run
 * the same object code. Chance comes from the node's own stream. */
#ifndef DP_GOSSIP_CORE_BUGGIFY_H
#define DP_GOSSIP_CORE_BUGGIFY_H

#include "base/rng.h"

typedef enum dp_bug {
    DP_BUG_NO_GRACE = 0,   /* a round closes as soon as enough are held */
    DP_BUG_EARLY_DEADLINE, /* a quarter of the hard deadline */
    DP_BUG_EARLY_BID,      /* a quarter of the wait before a bid */
    DP_BUG_LATE_BID,       /* four times the wait */
    DP_BUG_ONE_CHECK,      /* one blob at a time is decoded */
    DP_BUG_LOST_HAVE,      /* every other HAVE is not sent; it is told again */
    DP_BUG_LOST_STATE,     /* every other STATE is not sent */
    DP_BUG_LOST_FORWARD,   /* every other READY of others is not passed on */
    DP_BUG_SHORT_LIST,     /* a record lists half of the possible contributions */
    DP_BUG_SLOW_VOTE,      /* every other look at a record says: later */
    DP_BUG_FEW_RECORDS,    /* one record per request */
    DP_BUG_ONE_RELAY,      /* a message takes one way round, not two */
    DP_BUG_EARLY_PUBLISH,  /* after the first step */
    DP_BUG_FALLBACK,       /* gossip for every eighth second, though a quorum is heard */
    DP_BUG_NO_STATE_WAIT,  /* another state is tried at once */
    DP_BUG_EAGER_REPEAT,   /* announcements are repeated eight times as often */
    DP_BUG_COUNT,
    DP_BUG_ANY_LINES = DP_BUG_COUNT, /* a proposer says anything of the lines; not drawn, as it
                                        needs a run with a span of densities (density.h) */
    DP_BUG_THIN_UPLINK               /* as if the uplink were thin (relay.h); drawn for itself */
} dp_bug;

#define DP_BUGGIFY(node, bug) (((node)->buggify >> (bug)&1U) != 0)
#define DP_BUGGIFY_HALF(node, bug) (DP_BUGGIFY(node, bug) && dp_rng_below(&(node)->rng, 2) == 0)

#endif
