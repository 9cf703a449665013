/* Every reason for which a node does not train, with its word and its sentence. */
#ifndef DP_DAEMON_OWNER_REST_H
#define DP_DAEMON_OWNER_REST_H

typedef enum dp_rest {
    DP_REST_IDLE = 0, /* in no run */
    DP_REST_STARTING,
    DP_REST_JOINING,
    DP_REST_DATA,
    DP_REST_HALTED,
    DP_REST_LEFT,
    DP_REST_PAUSE, /* of its owner; the next seven are of suspension.h */
    DP_REST_LIMITS,
    DP_REST_SCHEDULE,
    DP_REST_BATTERY,
    DP_REST_USE,
    DP_REST_CARD,
    DP_REST_QUOTA,
    DP_REST_HEAT,
    DP_REST_OBSERVER,
    DP_REST_CRASHES,
    DP_REST_TRAINER,
    DP_REST_SCRIPT,
    DP_REST_QUORUM,
    DP_REST_MODEL,
    DP_REST_COUNT
} dp_rest;

/* "heat": stable, for scripts. */
const char *dp_rest_word(dp_rest reason);
/* A sentence without full stop, where nothing more is known. */
const char *dp_rest_text(dp_rest reason);

#endif
