#include "daemon/host/usage.h"

static double share_of(uint64_t computed_us, uint64_t trained_us)
{
    return computed_us < trained_us ? (double)computed_us / (double)trained_us : 1;
}

void dp_usage_told(dp_usage *usage, uint64_t computed_us, uint64_t trained_us)
{
    if (trained_us < usage->trained_us || computed_us < usage->computed_us) {
        *usage = (dp_usage){0};
    }
    const uint64_t interval = trained_us - usage->trained_us;
    if (interval == 0) {
        return;
    }
    if (trained_us <= DP_USAGE_WINDOW_US) {
        usage->share = share_of(computed_us, trained_us);
    } else {
        const double now = share_of(computed_us - usage->computed_us, interval);
        const double weight = (double)interval / ((double)interval + DP_USAGE_WINDOW_US);
        usage->share += weight * (now - usage->share);
    }
    usage->computed_us = computed_us;
    usage->trained_us = trained_us;
}
