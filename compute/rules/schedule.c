#include "compute/rules/schedule.h"

#include <math.h>
#include <stdbool.h>

dp_schedule dp_schedule_of(const dp_manifest *manifest)
{
    const double peak = (double)manifest->lr_nano * 1e-9;
    return (dp_schedule){
        .kind = manifest->schedule,
        .peak = peak,
        .floor = peak * (double)manifest->lr_floor_per_mille / 1000.0,
        .warmup_tokens = manifest->warmup_tokens,
        .step_tokens = (uint64_t)manifest->batch_rows * manifest->context,
        .total_tokens = manifest->total_tokens,
        .decay_tokens = manifest->total_tokens / 5,
    };
}

dp_status dp_schedule_check(const dp_schedule *schedule, dp_why *why)
{
    if (!(schedule->peak >= 0.0) || !isfinite(schedule->peak)) {
        return dp_why_set(why, DP_BADARG, "the peak learning rate is %g; it must be a number >= 0",
                          schedule->peak);
    }
    if (!(schedule->floor >= 0.0) || schedule->floor > schedule->peak) {
        return dp_why_set(why, DP_BADARG,
                          "the final learning rate is %g; it must lie between 0 and the peak %g",
                          schedule->floor, schedule->peak);
    }
    if (schedule->warmup_tokens > schedule->total_tokens) {
        return dp_why_set(
            why, DP_BADARG,
            "the warm-up takes %llu tokens and the run only %llu; shorten the warm-up",
            (unsigned long long)schedule->warmup_tokens,
            (unsigned long long)schedule->total_tokens);
    }
    if (schedule->kind == DP_SCHEDULE_WSD &&
        schedule->decay_tokens > schedule->total_tokens - schedule->warmup_tokens) {
        return dp_why_set(why, DP_BADARG,
                          "warm-up and decay take more than the %llu tokens of the run",
                          (unsigned long long)schedule->total_tokens);
    }
    return DP_OK;
}

/* How far now lies between start and end: 0 to 1. */
static double progress(uint64_t now, uint64_t start, uint64_t end)
{
    if (now <= start) {
        return 0.0;
    }
    return now >= end ? 1.0 : (double)(now - start) / (double)(end - start);
}

/* (1 + cos(pi x)) / 2 for x in 0 to 1, from Taylor's series around the nearest multiple of pi/2: to
 * 1e-16, and the same bits everywhere, which the C library's cosine does not promise. */
static double half_wave(double x)
{
    const double pi = 3.14159265358979323846;
    const bool falls = x > 0.5;
    const double near = falls ? 1 - x : x; /* cos(pi (1 - x)) = -cos(pi x) */
    const bool as_sine = near > 0.25;      /* cos(a) = sin(pi/2 - a) */
    const double a = pi * (as_sine ? 0.5 - near : near);
    double sum = 0;
    for (int k = 16; k >= 0; k -= 2) {
        const int power = k + (as_sine ? 1 : 0);
        sum = 1 - sum * (a * a) / (double)((power + 1) * (power + 2));
    }
    const double cosine = as_sine ? a * sum : sum;
    return 0.5 * (falls ? 1 - cosine : 1 + cosine);
}

static uint64_t warm_tokens(const dp_schedule *schedule, uint32_t contributors)
{
    const uint64_t most = schedule->total_tokens / DP_SCHEDULE_WARM_PART;
    const uint64_t of_all = schedule->step_tokens * (contributors > 1 ? contributors : 1);
    if (schedule->warmup_tokens > 0) {
        return schedule->warmup_tokens;
    }
    return of_all < most / DP_SCHEDULE_WARM_STEPS ? of_all * DP_SCHEDULE_WARM_STEPS : most;
}

double dp_schedule_lr(const dp_schedule *schedule, uint64_t committed_tokens, uint32_t contributors)
{
    const double fall = schedule->peak - schedule->floor;
    const uint64_t warm = warm_tokens(schedule, contributors);
    if (committed_tokens < warm) {
        return schedule->peak * ((double)committed_tokens + 1.0) / (double)warm;
    }
    const double done = progress(committed_tokens, warm, schedule->total_tokens);
    switch (schedule->kind) {
    case DP_SCHEDULE_CONSTANT:
        return schedule->peak;
    case DP_SCHEDULE_LINEAR:
        return schedule->peak - fall * done;
    case DP_SCHEDULE_COSINE:
        return schedule->floor + fall * half_wave(done);
    case DP_SCHEDULE_WSD:
        return schedule->peak - fall * progress(committed_tokens,
                                                schedule->total_tokens - schedule->decay_tokens,
                                                schedule->total_tokens);
    }
    return schedule->peak; /* Unreachable for a checked schedule. */
}

double dp_schedule_batch_factor(const dp_manifest *manifest, uint32_t contributors)
{
    if (manifest->batch_reference == 0) {
        return 1.0;
    }
    const bool summed = manifest->inner_steps_max == 1 && contributors > 1;
    const double own = (double)manifest->batch_rows * (double)manifest->context;
    const double batch = summed ? own * (double)contributors : own;
    const double ratio = batch / (double)manifest->batch_reference;
    switch (manifest->batch_rule) {
    case DP_BATCH_NONE:
        return 1.0;
    case DP_BATCH_LINEAR:
        return ratio;
    case DP_BATCH_SQRT:
        return sqrt(ratio);
    }
    return 1.0; /* Unreachable for a checked manifest. */
}
