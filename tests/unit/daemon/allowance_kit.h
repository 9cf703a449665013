/* The owner's limits and pause, played: all of daemon/peer/allowance.h that the control socket
 * asks. Beside call_kit.h. */
#ifndef DP_TESTS_UNIT_DAEMON_ALLOWANCE_KIT_H
#define DP_TESTS_UNIT_DAEMON_ALLOWANCE_KIT_H

#include "daemon/peer/allowance.h"
#include "tests/unit/daemon/call_kit.h"

static struct {
    dp_allowance_view view;
    const char *cap;  /* of a month that is used up; NULL: none is */
    dp_status pauses; /* of the order itself ... */
    dp_status kept;   /* ... and of its row */
    uint32_t n_pauses;
    dp_pause pause; /* the last */
} allowance_kit;

bool dp_allowance_look(const dp_allowance *allowance, dp_allowance_view *view)
{
    if (allowance != NULL) {
        *view = allowance_kit.view;
    }
    return allowance != NULL;
}

bool dp_allowance_why(const dp_allowance *allowance, char *text, size_t size)
{
    (void)allowance;
    if (allowance_kit.cap != NULL) {
        snprintf(text, size, "%s", allowance_kit.cap);
    }
    return allowance_kit.cap != NULL;
}

dp_status dp_allowance_pause(dp_allowance *allowance, const dp_pause *pause,
                             dp_allowance_kept *done, void *context)
{
    if (allowance == NULL) {
        return DP_CLOSED;
    }
    allowance_kit.n_pauses++;
    allowance_kit.pause = *pause;
    if (allowance_kit.pauses == DP_OK && done != NULL) {
        done(context, allowance_kit.kept);
    }
    return allowance_kit.pauses;
}

/* After call_open. */
static inline void allowance_open(void)
{
    memset(&allowance_kit, 0, sizeof allowance_kit);
    desk.daemon.allowance = (dp_allowance *)(void *)&allowance_kit;
}

#endif
