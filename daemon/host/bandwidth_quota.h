/* The bandwidth quota: bytes sent and received in each month, and the rate at which the rest of a
 * cap may be used. Arithmetic: clocks are arguments, rows are bytes; bandwidth_limiter.h stores and
 * applies them.
 *
 * A month begins at 00:00 UTC of its day, 1 to 28, so that every month has that day and the time
 * zone of the machine does not matter; a provider that counts by local time begins some hours
 * earlier or later.
 *
 *   left the cap less what was used time until the month is over, one hour at least r left / time
 *   saved grows at r, and passing bytes are taken from it; a day of r at most rate r + saved / 3600
 *   s
 *
 * A node that uses its full rate gets r; after a quiet day it may use many times as much for hours.
 * The sum never exceeds the cap: near it the rate falls to 0. Only protocol messages, which are
 * exempt, may exceed it.
 *
 * The clock may be wrong and may be corrected in both directions. Each month has its own count,
 * which is found again when the clock returns to it: a step of the clock neither resets a month
 * that is used up nor blocks one that is not. If the clock never leaves a month, as on a machine
 * that loses the time when it is off, the count restarts when the daemon has run for 32 days. */
#ifndef DP_DAEMON_HOST_BANDWIDTH_QUOTA_H
#define DP_DAEMON_HOST_BANDWIDTH_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    DP_BANDWIDTH_QUOTA_WAYS = 2, /* up, down */
    DP_BANDWIDTH_QUOTA_MONTHS_MAX =
        8, /* counted months; the one that was left longest ago is replaced */
    DP_BANDWIDTH_QUOTA_DAY_MAX = 28,
    DP_BANDWIDTH_QUOTA_BYTES_MAX =
        4 + DP_BANDWIDTH_QUOTA_MONTHS_MAX * (4 + 8 + 8 * DP_BANDWIDTH_QUOTA_WAYS) +
        8 * DP_BANDWIDTH_QUOTA_WAYS
};
#define DP_BANDWIDTH_QUOTA_CAP_MAX (UINT64_C(1) << 60) /* bytes */

typedef enum dp_bandwidth_quota_way {
    DP_BANDWIDTH_QUOTA_UP = 0,
    DP_BANDWIDTH_QUOTA_DOWN
} dp_bandwidth_quota_way;

typedef struct dp_bandwidth_quota_count {
    uint32_t number; /* 12 * year + month - 1 of its first day */
    uint64_t lived_ms;
    uint64_t used[DP_BANDWIDTH_QUOTA_WAYS];
} dp_bandwidth_quota_count;

typedef struct dp_bandwidth_quota {
    uint32_t day;
    uint32_t n; /* counts[0] is that of now */
    dp_bandwidth_quota_count counts[DP_BANDWIDTH_QUOTA_MONTHS_MAX];
    uint64_t saved[DP_BANDWIDTH_QUOTA_WAYS]; /* bytes; UINT64_MAX: a whole day of them */
    uint64_t now_ms; /* when dp_bandwidth_quota_pass was called last, both clocks */
    uint64_t wall_ms;
} dp_bandwidth_quota;

/* The month of an instant. begin_ms and end_ms: unix milliseconds, either may be NULL. */
uint32_t dp_bandwidth_quota_number(uint64_t wall_ms, uint32_t day, uint64_t *begin_ms,
                                   uint64_t *end_ms);

/* Starts with no counts. now_ms: of a monotonic clock. */
void dp_bandwidth_quota_init(dp_bandwidth_quota *month, uint32_t day, uint64_t wall_ms,
                             uint64_t now_ms);
/* Time has passed. caps: bytes per month, at most DP_BANDWIDTH_QUOTA_CAP_MAX; 0: none. With another
 * day the used bytes count in the month that now results. */
void dp_bandwidth_quota_pass(dp_bandwidth_quota *month,
                             const uint64_t caps[DP_BANDWIDTH_QUOTA_WAYS], uint32_t day,
                             uint64_t wall_ms, uint64_t now_ms);
void dp_bandwidth_quota_use(dp_bandwidth_quota *month, dp_bandwidth_quota_way way, uint64_t bytes);
/* Allowed bytes per second now; UINT64_MAX without a cap, 0 if it is used up. */
uint64_t dp_bandwidth_quota_rate(const dp_bandwidth_quota *month, dp_bandwidth_quota_way way,
                                 uint64_t cap);
/* Time until the present count ends, by the clock or by the running time of the daemon. */
uint64_t dp_bandwidth_quota_left_ms(const dp_bandwidth_quota *month);

/* u8 version 1 | u8 day | u16 n | n times {u32 number | u64 lived_ms | u64 used, each way} | u64
 * saved, each way; little-endian. */
dp_view dp_bandwidth_quota_write(const dp_bandwidth_quota *month,
                                 uint8_t out[DP_BANDWIDTH_QUOTA_BYTES_MAX]);
/* DP_CORRUPT, DP_VERSION: the month stays as it was. Clocks are those of the init before. */
DP_MUST dp_status dp_bandwidth_quota_read(dp_bandwidth_quota *month, dp_view bytes);

#endif
