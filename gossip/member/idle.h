/* When a run is idle, its nodes speak rarely. A run is idle to a node while no member is known to
 * train, nothing is being decided and every living member is linked; gossip/node decides that, this
 * module only keeps the times, and heartbeat.c and the member table ask it.
 *
 * Nodes do not find out at the same instant. So a node speaks rarely only after DP_IDLE_AFTER_US of
 * an idle run, and at its full rate as soon as the run is not idle; and it takes rare words of
 * others for a sign of life from the first moment of an idle run on until DP_IDLE_GRACE_US after
 * its end. No message says that a node speaks rarely: a liar gains nothing, and a voter that dies
 * in silence while nobody trains is noticed within three rare heartbeats. */
#ifndef DP_GOSSIP_MEMBER_IDLE_H
#define DP_GOSSIP_MEMBER_IDLE_H

#include "base/clock.h"

#define DP_IDLE_AFTER_US (10 * DP_SECOND)
#define DP_IDLE_BEAT_US (16 * DP_SECOND)     /* between heartbeats */
#define DP_IDLE_PROBE_US (32 * DP_SECOND)    /* between probes of one silent member */
#define DP_IDLE_SUMMARY_US (120 * DP_SECOND) /* age at which a summary is asked for again */
#define DP_IDLE_SYNC_US (240 * DP_SECOND)    /* between comparisons of member lists */
#define DP_IDLE_REPEAT_US (128 * DP_SECOND)  /* between repetitions of what may have been lost */
#define DP_IDLE_GRACE_US (4 * DP_SECOND)

typedef struct dp_idle {
    bool idle;
    dp_time changed; /* zero: never */
} dp_idle;

void dp_idle_set(dp_idle *idle, bool is_idle, dp_time now);
/* This node speaks rarely. */
bool dp_idle_is_quiet(const dp_idle *idle, dp_time now);
/* Others may be speaking rarely. */
bool dp_idle_is_patient(const dp_idle *idle, dp_time now);

#endif
