/* Measures the loss of the run's model on held-out text every so often, by a question to the
 * trainer, for `status`, `top` and the page. Training stands still meanwhile: at most a fiftieth
 * of the time, since a measurement is followed by fifty times its own duration without one.
 * Each node measures for itself; nothing is sent to peers. Loop thread only. */
#ifndef DP_DAEMON_MODEL_HELD_OUT_H
#define DP_DAEMON_MODEL_HELD_OUT_H

#include "daemon/host/daemon.h"

enum {
    DP_HELD_OUT_LOOK_MS = 2000,
    DP_HELD_OUT_FIRST_MS = 20000, /* after a run was begun: it has better things to do at first */
    DP_HELD_OUT_LEAST_MS = 10000, /* between two measurements */
    DP_HELD_OUT_AGAIN_MS = 60000, /* after one that failed */
    DP_HELD_OUT_TOKENS = 4096,    /* rounded up to whole windows */
    DP_HELD_OUT_SHARE = 50        /* of the time one part is for measurements */
};

/* Looks each look_ms milliseconds whether it is time. DP_NOMEM. */
DP_MUST dp_status dp_held_out_open(dp_held_out **held_out, dp_daemon *daemon, uint64_t look_ms);
/* Call it after the driver is closed, which has answered all questions. Accepts NULL; memory is
 * freed after one more turn of the loop. */
void dp_held_out_close(dp_held_out *held_out);
/* One look at a time of the monotonic clock, in milliseconds. */
void dp_held_out_look(dp_held_out *held_out, uint64_t now_ms);

#endif
