#include "gossip/member/idle.h"

#include "base/assert.h"
#include "base/mutation.h"

void dp_idle_set(dp_idle *idle, bool is_idle, dp_time now)
{
    dp_assert(now.us >= idle->changed.us);
    if (idle->idle != is_idle) {
        idle->idle = is_idle;
        idle->changed = now;
    }
}

bool dp_idle_is_quiet(const dp_idle *idle, dp_time now)
{
    if (dp_broken(233)) { /* A node speaks rarely before the others can know why. */
        return idle->idle;
    }
    return idle->idle && dp_time_between(idle->changed, now) >= DP_IDLE_AFTER_US;
}

bool dp_idle_is_patient(const dp_idle *idle, dp_time now)
{
    if (dp_broken(232)) { /* The silence of an idle run is an absence. */
        return false;
    }
    return idle->idle ||
           (idle->changed.us != 0 && dp_time_between(idle->changed, now) < DP_IDLE_GRACE_US);
}
