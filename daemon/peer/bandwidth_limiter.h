/* The bandwidth limiter of a running daemon. It reads the owner's limits in daemon->config
 * (config_live.h) and keeps the counts of months (bandwidth_quota.h) in the store's row "traffic".
 * Each second it counts the bytes of the transport and sets the limits of its token buckets. Counts
 * are stored every minute with a cap, every ten minutes without, more often in the first minutes,
 * and at the end; kill -9 loses the counts since then.
 *
 * When the quota of a month is used up, the node stays a member and votes, because messages are
 * exempt. It does not train, because no peer could fetch its updates, and bulk data waits. It
 * resumes with the next month or a larger cap. Loop thread only. */
#ifndef DP_DAEMON_PEER_BANDWIDTH_LIMITER_H
#define DP_DAEMON_PEER_BANDWIDTH_LIMITER_H

#include "daemon/host/bandwidth_quota.h"
#include "daemon/host/store_thread.h"
#include "daemon/net/transport.h"

typedef struct dp_daemon dp_daemon;
typedef struct dp_bandwidth_limiter dp_bandwidth_limiter;

/* The wall clock, in unix milliseconds. */
typedef uint64_t dp_bandwidth_limiter_clock(void);
/* Reads the row of daemon->store, before the store thread has it; the log reports a row that cannot
 * be read, and the row counts as absent. */
DP_MUST dp_status dp_bandwidth_limiter_open(dp_bandwidth_limiter **bandwidth_limiter,
                                            dp_daemon *daemon, dp_bandwidth_limiter_clock *wall_ms);
/* Counts once more and writes the counts. Call before the store thread is closed. Accepts NULL. */
void dp_bandwidth_limiter_close(dp_bandwidth_limiter *bandwidth_limiter);

/* The limits for the transport; none for NULL. */
dp_limits dp_bandwidth_limiter_limits(const dp_bandwidth_limiter *bandwidth_limiter);
/* Looks at the limits again, after a change of daemon->config. Accepts NULL. */
void dp_bandwidth_limiter_act(dp_bandwidth_limiter *bandwidth_limiter);

typedef struct dp_bandwidth_limiter_view {
    uint64_t begin_ms; /* of the present month, unix */
    uint64_t end_ms;
    uint64_t used[DP_BANDWIDTH_QUOTA_WAYS];
    uint64_t
        /* present rate of the month in bytes per second; UINT64_MAX: no cap */
        rate[DP_BANDWIDTH_QUOTA_WAYS];
    dp_limits holds;                        /* bytes per second now, by line and month; 0: none */
    bool by_month[DP_BANDWIDTH_QUOTA_WAYS]; /* the month makes it, and not the line */
    bool used_up;                           /* one of the caps */
} dp_bandwidth_limiter_view;
/* False for NULL. */
bool dp_bandwidth_limiter_look(const dp_bandwidth_limiter *bandwidth_limiter,
                               dp_bandwidth_limiter_view *view);
/* "this month's upload of 200 GB is used up until 2026-12-01": false if none is. */
bool dp_bandwidth_limiter_why(const dp_bandwidth_limiter *bandwidth_limiter, char *text,
                              size_t size);

/* Takes the bytes that a transport has counted since it was opened; a smaller number than before
 * comes from a new transport. Called each second, and by tests. */
void dp_bandwidth_limiter_count(dp_bandwidth_limiter *bandwidth_limiter, uint64_t sent,
                                uint64_t received);

#endif
