#include "daemon/trainer/restart.h"

static uint32_t left_after(uint32_t deaths, uint64_t lived_ms)
{
    const uint64_t forgiven = lived_ms / DP_RESTART_FORGIVE_MS;
    return forgiven < deaths ? deaths - (uint32_t)forgiven : 0;
}

uint64_t dp_restart_wait(dp_restart *restart, dp_death cause, uint64_t lived_ms, uint32_t random)
{
    for (uint32_t i = 0; i < DP_DEATHS; i++) {
        restart->in_a_row[i] = left_after(restart->in_a_row[i], lived_ms);
    }
    static const uint64_t first_ms[DP_DEATHS] = {[DP_DEATH_OUTSIDE] = DP_RESTART_MIN_MS,
                                                 [DP_DEATH_OWN] = DP_RESTART_MIN_MS,
                                                 [DP_DEATH_MEMORY] = DP_RESTART_LACK_MS,
                                                 [DP_DEATH_MISSING] = DP_RESTART_LACK_MS,
                                                 [DP_DEATH_SIZE] = DP_RESTART_SIZE_MS};
    const uint64_t most =
        cause == DP_DEATH_SIZE ? (uint64_t)DP_RESTART_SIZE_MS : (uint64_t)DP_RESTART_MAX_MS;
    uint64_t wait = first_ms[cause];
    for (uint32_t i = 0; i < restart->in_a_row[cause] && wait < most; i++) {
        wait *= 2;
    }
    if (restart->in_a_row[cause] < UINT32_MAX) {
        restart->in_a_row[cause]++;
    }
    wait = wait < most ? wait : most;
    return wait / 2 + random % (wait / 2 + 1);
}

uint32_t dp_restart_deaths(const dp_restart *restart, uint64_t lived_ms)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < DP_DEATHS; i++) {
        const uint32_t left = left_after(restart->in_a_row[i], lived_ms);
        most = left > most ? left : most;
    }
    return most;
}

bool dp_restart_early(dp_restart *restart, uint64_t now_ms)
{
    if (restart->was_early && now_ms - restart->early_ms < DP_RESTART_EARLY_MS) {
        return false;
    }
    restart->was_early = true;
    restart->early_ms = now_ms;
    return true;
}
