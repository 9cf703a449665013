/* A limit that the owner sets on one direction of this machine's line: a token bucket, and the
 * queue of waiting connections, served in turn. Arithmetic and a list: the time is an argument, and
 * the caller calls the waiting connections.
 *
 *   room     what may pass now, in bytes: it grows at the rate, up to a burst of 50 ms of it or 64
 *            KiB, and whatever passes pays for it afterwards, so that it may fall below nothing
 *   bulk     asks first. Below a slice of room (10 ms of the rate or 16 KiB), or behind others, it
 *            waits, and is then given a slice
 *   control  never asks and always pays: it is not delayed, and bulk has what it leaves. Its
 *            debt is at most the bytes of one second, so that a storm of it does not hold up bulk
 *            for longer than that
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
    uint64_t granted; /* bytes that it was called for */
} dp_throttle_place;

typedef struct dp_throttle {
    uint64_t rate; /* bytes per second; 0: no limit */
    int64_t room;
    uint64_t at_us;    /* when room was that */
    uint64_t fraction; /* millionths of a byte beside it */
    dp_list waiting;
    uint64_t since_us; /* somebody waits */
    uint64_t held_us;  /* sum of such times, the one under way left out */
} dp_throttle;

void dp_throttle_init(dp_throttle *throttle);
/* Another limit, at most DP_THROTTLE_RATE_MAX; 0: none, and the caller has to call the waiting
 * connections. A full burst is there at once where there was no limit; otherwise the room stays as
 * it was, so that a limit that often changes is none that leaks. */
void dp_throttle_set(dp_throttle *throttle, uint64_t rate, uint64_t now_us);
/* How many bytes may pass for this one now; UINT64_MAX without a limit. 0: it waits in line. */
uint64_t dp_throttle_ask(dp_throttle *throttle, dp_throttle_place *place, uint64_t now_us);
/* They have passed. */
void dp_throttle_pay(dp_throttle *throttle, dp_throttle_place *place, uint64_t bytes,
                     uint64_t now_us);
void dp_throttle_pay_control(dp_throttle *throttle, uint64_t bytes, uint64_t now_us);
/* The first in line if there is a slice for it, or no limit any more: it waits no longer, and its
 * next question is answered with that. NULL: nobody, or not yet. */
dp_throttle_place *dp_throttle_call(dp_throttle *throttle, uint64_t now_us);
/* Time until somebody can be called; UINT64_MAX: nobody waits. */
uint64_t dp_throttle_wait_us(dp_throttle *throttle, uint64_t now_us);
/* It does not want any more. */
void dp_throttle_leave(dp_throttle *throttle, dp_throttle_place *place, uint64_t now_us);
/* How long somebody was waiting, in all. */
uint64_t dp_throttle_held_us(const dp_throttle *throttle, uint64_t now_us);
uint64_t dp_throttle_slice(const dp_throttle *throttle);

#endif
