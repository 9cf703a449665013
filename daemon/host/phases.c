#include "daemon/host/phases.h"

#include "base/assert.h"

const char *dp_phase_key(dp_phase phase)
{
    static const char *const keys[DP_PHASES] = {
        [DP_PHASE_OPENED] = "opened_at_ms", [DP_PHASE_PUBLISHED] = "published_ms",
        [DP_PHASE_READY] = "ready_ms",      [DP_PHASE_HELD] = "held_ms",
        [DP_PHASE_DECIDED] = "decided_ms",  [DP_PHASE_APPLIED] = "applied_ms"};
    dp_assert(phase < DP_PHASES);
    return keys[phase];
}

void dp_phases_set(dp_phases *phases, dp_phase phase, uint64_t at_us)
{
    dp_assert(phase < DP_PHASES);
    if (phases->at_us[phase] == 0) {
        phases->at_us[phase] = at_us;
    }
}

bool dp_phases_ms(const dp_phases *phases, dp_phase phase, uint64_t *ms)
{
    const uint64_t opened = phases->at_us[DP_PHASE_OPENED];
    const uint64_t at = phases->at_us[phase];
    if (opened == 0 || at == 0) {
        return false;
    }
    *ms = at > opened ? (at - opened) / 1000 : 0;
    return true;
}

bool dp_phases_times(const dp_phases *phases, dp_phase_times *times)
{
    uint64_t published = 0;
    uint64_t held = 0;
    uint64_t end = 0;
    if (!dp_phases_ms(phases, DP_PHASE_PUBLISHED, &published) ||
        !dp_phases_ms(phases, DP_PHASE_HELD, &held) ||
        !dp_phases_ms(phases, DP_PHASE_DECIDED, &end) || published > end) {
        return false;
    }
    held = held > published ? held : published;
    /* It stays the decision's if nothing is applied. */
    (void)dp_phases_ms(phases, DP_PHASE_APPLIED, &end);
    *times = (dp_phase_times){.compute_ms = published,
                              .transfer_ms = held - published,
                              .wait_ms = end > held ? end - held : 0};
    return true;
}
