/* A mock of the owner's limits: all functions of daemon/peer/bandwidth_limiter.h that the
 * control socket calls. Used with call_kit.h. */
#ifndef DP_TESTS_UNIT_DAEMON_BANDWIDTH_LIMITER_KIT_H
#define DP_TESTS_UNIT_DAEMON_BANDWIDTH_LIMITER_KIT_H

#include "daemon/peer/bandwidth_limiter.h"
#include "tests/unit/daemon/call_kit.h"

static struct {
    dp_bandwidth_limiter_view view;
    uint32_t n_acts;
    const char *cap; /* of a month that is used up; NULL: none is */
} bandwidth_limiter_kit;

bool dp_bandwidth_limiter_look(const dp_bandwidth_limiter *bandwidth_limiter,
                               dp_bandwidth_limiter_view *view)
{
    if (bandwidth_limiter != NULL) {
        *view = bandwidth_limiter_kit.view;
    }
    return bandwidth_limiter != NULL;
}

bool dp_bandwidth_limiter_why(const dp_bandwidth_limiter *bandwidth_limiter, char *text,
                              size_t size)
{
    (void)bandwidth_limiter;
    if (bandwidth_limiter_kit.cap != NULL) {
        snprintf(text, size, "%s", bandwidth_limiter_kit.cap);
    }
    return bandwidth_limiter_kit.cap != NULL;
}

void dp_bandwidth_limiter_act(dp_bandwidth_limiter *bandwidth_limiter)
{
    (void)bandwidth_limiter;
    bandwidth_limiter_kit.n_acts++;
}

/* After call_open. */
static inline void allowance_open(void)
{
    memset(&bandwidth_limiter_kit, 0, sizeof bandwidth_limiter_kit);
    desk.daemon.bandwidth_limiter = (dp_bandwidth_limiter *)(void *)&bandwidth_limiter_kit;
}

#endif
