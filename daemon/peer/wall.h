/* The difference between this machine's clock and those of members, which each reports in its
 * handshake, and the correction for it. Pure: reads no clock.
 *
 * The clocks of members are kept relative to a clock that never jumps, so that a jump of this
 * machine's own is visible at once. Clocks within DP_WALL_AGREE_MS agree. If those of more than
 * half of the roster agree (this node counts in the roster, and for its own clock), this node uses
 * their time, if the difference is between a minute and an hour: a minority of wrong or lying
 * clocks has no effect, and a larger difference is only reported. */
#ifndef DP_DAEMON_PEER_WALL_H
#define DP_DAEMON_PEER_WALL_H

#include <stdbool.h>
#include <stdint.h>

#include "gossip/core/id.h"

enum {
    DP_WALL_MET_MAX = 256, /* one that is not in the roster is replaced, else the oldest */
    DP_WALL_AGREE_MS = 30 * 1000,
    DP_WALL_LEAST_MS = 60 * 1000,  /* a smaller difference is harmless and is not corrected */
    DP_WALL_MOST_MS = 3600 * 1000, /* a larger one is not corrected for */
    DP_WALL_TEXT_MAX = 48
};

typedef struct dp_wall_met {
    dp_peer peer;
    int64_t base_ms; /* its clock when the steady one was 0 */
} dp_wall_met;

typedef struct dp_wall {
    uint32_t n;
    uint32_t next; /* next to be replaced when it is full */
    dp_wall_met met[DP_WALL_MET_MAX];
} dp_wall;

/* The members whose clocks count. */
typedef struct dp_wall_roster {
    void *context;
    bool (*has)(void *context, const dp_peer *peer);
    /* this node included; 0: unknown: all met peers are compared, but none decides */
    uint32_t members;
} dp_wall_roster;

typedef struct dp_wall_view {
    /* lead of the others over this clock: of those that agree, or the median */
    int64_t ahead_ms;
    uint32_t met;   /* members whose clock is known */
    uint32_t agree; /* of these, the largest number that agree with each other */
    uint32_t members;
    bool agreed;           /* more than half of the members */
    int64_t correction_ms; /* to be added to this clock; 0: none */
} dp_wall_view;

/* peer has proved its identity, and its clock showed peer_ms. steady_ms: a clock that never jumps,
 * also not during sleep. If the table is full and holds members alone, another peer gets no place.
 * Asks the roster once for each at most, and only then. */
void dp_wall_meet(dp_wall *wall, const dp_peer *peer, uint64_t peer_ms, uint64_t steady_ms,
                  const dp_wall_roster *roster);
/* At most O(met * log met), and one call of the roster for each. */
void dp_wall_look(const dp_wall *wall, uint64_t wall_ms, uint64_t steady_ms,
                  const dp_wall_roster *roster, dp_wall_view *view);

/* "45 s", "3 min 20 s", "2 h 5 min", "400 days"; of the absolute value. */
void dp_wall_text(int64_t ms, char text[DP_WALL_TEXT_MAX]);

#endif
