/* A limit that the owner sets on one direction of this machine's line: a token bucket, and the
 * queue of waiting connections, served in turn. Arithmetic and a list: the time is an argument, and
 * the caller calls the waiting connections.
 *
 *   room     the bytes that may pass now: it grows at the rate, up to a burst of 50 ms of it or 64
 *            KiB; passing bytes are subtracted afterwards, so it may become negative
 *   bulk     asks first. If room is below a slice (10 ms of the rate or 16 KiB), or others wait, it
 *            waits, and then gets a slice
 *   control  never asks, but is always subtracted: it is not delayed, and bulk gets the rest. Its
 *            debt is at most the bytes of one second, so that a burst of it does not delay bulk for
 *            longer
 *
 * So in any T seconds at most rate T + burst + a slice for each connection passes, and the bytes of
 * control beyond the rate. */
#ifndef DP_DAEMON_NET_THROTTLE_H
#define DP_DAEMON_NET_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

enum {
    DP_THROTTLE_BURST_BYTES = 64 * 1024, /* at least: four slices */
    DP_THROTTLE_BURST_SHARE = 20,        /* of a second */
    DP_THROTTLE_SLICE_BYTES =
        16 * 1024, /* at least: a record of a small message, and 11 segments */
    DP_THROTTLE_SLICE_SHARE = 100
};
#define DP_THROTTLE_RATE_MAX (UINT64_C(100000) * 1000000 / 8) /* bytes per second */

/* The place of one connection that may wait. Zeroed at the start; call dp_throttle_leave before it
 * is freed. */
typedef struct dp_throttle_place {
    dp_list item; /* in waiting while waits */
    bool waits;
    uint64_t granted; /* the slice that it was granted */
} dp_throttle_place;

typedef struct dp_throttle {
    uint64_t rate; /* bytes per second; 0: no limit */
    int64_t room;
    uint64_t at_us;    /* when room was that */
    uint64_t fraction; /* and millionths of a byte */
    dp_list waiting;
    uint64_t since_us; /* some connection waits */
    uint64_t held_us;  /* sum of such times, without the present one */
} dp_throttle;

void dp_throttle_init(dp_throttle *throttle);
/* Sets another limit, at most DP_THROTTLE_RATE_MAX; 0: none, and the caller has to call the waiting
 * connections. If there was no limit, room starts with a full burst; otherwise it does not change,
 * so that frequent changes do not let more pass. */
void dp_throttle_set(dp_throttle *throttle, uint64_t rate, uint64_t now_us);
/* Bytes that may pass for this connection now; UINT64_MAX without a limit. 0: it waits in line. */
uint64_t dp_throttle_ask(dp_throttle *throttle, dp_throttle_place *place, uint64_t now_us);
/* They have passed. */
void dp_throttle_pay(dp_throttle *throttle, dp_throttle_place *place, uint64_t bytes,
                     uint64_t now_us);
void dp_throttle_pay_control(dp_throttle *throttle, uint64_t bytes, uint64_t now_us);
/* Takes the first connection from the line if there is a slice for it, or no limit any more; its
 * next question is answered with that slice. NULL: none, or not yet. */
dp_throttle_place *dp_throttle_call(dp_throttle *throttle, uint64_t now_us);
/* Time until a connection can be called; UINT64_MAX: none waits. */
uint64_t dp_throttle_wait_us(dp_throttle *throttle, uint64_t now_us);
/* It no longer waits. */
void dp_throttle_leave(dp_throttle *throttle, dp_throttle_place *place, uint64_t now_us);
/* Total time during which some connection waited. */
uint64_t dp_throttle_held_us(const dp_throttle *throttle, uint64_t now_us);
uint64_t dp_throttle_slice(const dp_throttle *throttle);

#endif
