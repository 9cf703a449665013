/* How far this machine's clock is from those of the members that were met, as each says in its
 * handshake, and by how much to correct for it. Pure: reads no clock.
 *
 * The times of members' clocks are kept relative to a clock that never jumps, so that a jump of
 * this machine's own shows at once. The clocks of members agree that lie within DP_WALL_AGREE_MS.
 * Where those of more than half of the roster agree (this node counts in the roster, and for its
 * own clock), this node goes by them, if the difference is a matter of minutes: a minority of wrong
 * or lying clocks moves nothing, and a larger difference is only told. */
#ifndef DP_DAEMON_PEER_WALL_H
#define DP_DAEMON_PEER_WALL_H

#include <stdbool.h>
#include <stdint.h>

#include "gossip/core/id.h"

enum {
    DP_WALL_MET_MAX = 256, /* the one met longest ago gives way */
    DP_WALL_AGREE_MS = 30 * 1000,
    DP_WALL_LEAST_MS = 60 * 1000,  /* a smaller difference matters to nothing and is let be */
    DP_WALL_MOST_MS = 3600 * 1000, /* a larger one is not corrected for */
    DP_WALL_TEXT_MAX = 48
};

typedef struct dp_wall_met {
    dp_peer peer;
    int64_t base_ms; /* its clock when the steady one stood at 0 */
} dp_wall_met;

typedef struct dp_wall {
    uint32_t n;
    uint32_t next; /* to be replaced once it is full */
    dp_wall_met met[DP_WALL_MET_MAX];
} dp_wall;

/* The members whose clocks count. */
typedef struct dp_wall_roster {
    void *context;
    bool (*has)(void *context, const dp_peer *peer);
    /* this node included; 0: not known yet, all met peers are compared and none decides */
    uint32_t members;
} dp_wall_roster;

typedef struct dp_wall_view {
    /* how far the others are ahead of this clock: those that agree, or the median */
    int64_t ahead_ms;
    uint32_t met;   /* members whose clock is known */
    uint32_t agree; /* of these, the most that agree with each other */
    uint32_t members;
    bool agreed;           /* more than half of the members */
    int64_t correction_ms; /* to be added to this clock; 0: none */
} dp_wall_view;

/* peer has proved its identity, and its clock said peer_ms. steady_ms: a clock that never jumps, in
 * sleep neither. */
void dp_wall_meet(dp_wall *wall, const dp_peer *peer, uint64_t peer_ms, uint64_t steady_ms);
/* At most O(met * log met), and a question to the roster for each. */
void dp_wall_look(const dp_wall *wall, uint64_t wall_ms, uint64_t steady_ms,
                  const dp_wall_roster *roster, dp_wall_view *view);

/* "45 s", "3 min 20 s", "2 h 5 min", "400 days"; of the absolute value. */
void dp_wall_text(int64_t ms, char text[DP_WALL_TEXT_MAX]);

#endif
