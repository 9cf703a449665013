/* What this node may take of its line, while the daemon runs: the values of the owner (allow.h),
 * kept in the store's row "limits", and what months have left (month.h), in its row "traffic", and
 * the owner's pause (pause.h), in its row "pause". Each second the bytes of the transport are
 * counted, and the limits of its buckets follow from both. Counts are written once a minute where
 * there is a cap, every ten minutes else, more often in the first, and at the end: kill -9 loses so
 * much, or half of a short life.
 *
 * When a month is used up the node stays a member and votes, as messages always may; it does not
 * train, since nobody could fetch what it makes, and bulk waits. With the next month, or a larger
 * cap, it goes on. Loop thread only. */
#ifndef DP_DAEMON_PEER_ALLOWANCE_H
#define DP_DAEMON_PEER_ALLOWANCE_H

#include "daemon/host/month.h"
#include "daemon/host/pause.h"
#include "daemon/host/store_thread.h"
#include "daemon/net/allow.h"
#include "daemon/net/transport.h"

typedef struct dp_daemon dp_daemon;
typedef struct dp_allowance dp_allowance;

/* The clock that people set, in unix milliseconds. */
typedef uint64_t dp_allowance_clock(void);
/* Reads the rows of daemon->store, before the store thread has it; one that cannot be read is told
 * in the log and counts as absent. */
DP_MUST dp_status dp_allowance_open(dp_allowance **allowance, dp_daemon *daemon,
                                    dp_allowance_clock *wall_ms);
/* Counts once more and writes that. Accepts NULL, before the store thread is closed. */
void dp_allowance_close(dp_allowance *allowance);

/* For the transport; none for NULL. */
dp_limits dp_allowance_limits(const dp_allowance *allowance);
/* Holds at once; to keep it is dp_allowance_keep. */
void dp_allowance_change(dp_allowance *allowance, dp_allow which, uint64_t value);
/* Write what is kept; done is called once, on the loop. DP_AGAIN: the store thread takes no more,
 * and it is not called. */
typedef void dp_allowance_kept(void *context, dp_status status);
DP_MUST dp_status dp_allowance_keep(dp_allowance *allowance, dp_allowance_kept *done,
                                    void *context);
/* The owner's own pause, which the end of a month's must not end; one that does not hold is its
 * resume. Holds at once, and outlives the daemon when done is called with DP_OK, as above; done may
 * be NULL. DP_CLOSED for NULL. */
DP_MUST dp_status dp_allowance_pause(dp_allowance *allowance, const dp_pause *pause,
                                     dp_allowance_kept *done, void *context);

typedef struct dp_allowance_view {
    dp_allow_set set;
    uint64_t begin_ms; /* of the month of now, unix */
    uint64_t end_ms;
    uint64_t used[DP_MONTH_WAYS];
    uint64_t rate[DP_MONTH_WAYS]; /* bytes per second of the month now; UINT64_MAX: no cap */
    dp_limits holds;              /* bytes per second now, by line and month; 0: none */
    dp_allow by[DP_MONTH_WAYS];   /* who makes it, where there is one */
    bool used_up;                 /* one of the caps */
    dp_pause pause;               /* by the owner as well */
} dp_allowance_view;
/* False for NULL. */
bool dp_allowance_look(const dp_allowance *allowance, dp_allowance_view *view);
/* "this month's upload of 200 GB is used up until 2026-12-01": false if none is. */
bool dp_allowance_why(const dp_allowance *allowance, char *text, size_t size);

/* What a transport has counted since it was opened; a smaller number is of another one. Called each
 * second, and by tests. */
void dp_allowance_count(dp_allowance *allowance, uint64_t sent, uint64_t received);

#endif
