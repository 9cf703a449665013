/* Timers of the code under test end at once, in their usual order: for tests of files with long
 * waits that do not matter. */
#ifndef DP_TESTS_UNIT_DAEMON_HURRY_H
#define DP_TESTS_UNIT_DAEMON_HURRY_H

#include <dlfcn.h>
#include <uv.h>

#include "tests/lib/check.h"

/* Timers of so many milliseconds or more wait for one; UINT64_MAX: none of them does. */
static uint64_t hurry_from_ms = UINT64_MAX;
static uint64_t hurry_last_ms; /* what the last of these asked for */

int uv_timer_start(uv_timer_t *timer, uv_timer_cb call, uint64_t timeout_ms, uint64_t repeat_ms)
{
    static int (*start)(uv_timer_t *, uv_timer_cb, uint64_t, uint64_t);
    if (start == NULL) {
        void *const found = dlsym(RTLD_NEXT, "uv_timer_start");
        CHECK(found != NULL);
        memcpy(&start, &found, sizeof start);
    }
    if (timeout_ms >= hurry_from_ms && timeout_ms < 60000) { /* Not the deadline of a test. */
        /* The loop itself starts one that repeats again by this function, at any time. */
        const bool again = repeat_ms > 0 && timer->timer_cb == call;
        hurry_last_ms = again ? hurry_last_ms : timeout_ms;
        timeout_ms = 1;
        repeat_ms = repeat_ms > 0 ? 1 : 0;
    }
    return start(timer, call, timeout_ms, repeat_ms);
}

#endif
