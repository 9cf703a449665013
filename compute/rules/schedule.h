/* The learning rate as a pure function of the tokens that the run has committed, to the last bit
 * the same on every node and after every restart: in a run that exchanges gradients it moves the
 * replicated weights. */
#ifndef DP_COMPUTE_RULES_SCHEDULE_H
#define DP_COMPUTE_RULES_SCHEDULE_H

#include <stdint.h>

#include "base/run/manifest.h"
#include "base/status.h"

enum {
    /* Steps of each contributor in the warm-up of a run whose manifest does not say how long it is,
     * ... */
    DP_SCHEDULE_WARM_STEPS = 200,
    DP_SCHEDULE_WARM_PART = 4 /* ... and at most one of so many tokens of the run. */
};

typedef struct dp_schedule {
    dp_schedule_kind kind;
    double peak;
    double floor; /* rate at total_tokens and after it; not used by DP_SCHEDULE_CONSTANT */
    uint64_t warmup_tokens; /* 0: DP_SCHEDULE_WARM_STEPS steps of each contributor */
    uint64_t step_tokens;   /* of one step of one contributor; 0 with warmup_tokens 0: no warm-up */
    uint64_t total_tokens;
    uint64_t decay_tokens; /* DP_SCHEDULE_WSD: length of the last, falling part (Hu et al. 2024) */
} dp_schedule;

/* The schedule of a run. WSD falls over the last fifth of total_tokens. */
dp_schedule dp_schedule_of(const dp_manifest *manifest);
/* DP_BADARG and a sentence: rates not finite or negative, floor above peak, warm-up or decay longer
 * than the run. */
DP_MUST dp_status dp_schedule_check(const dp_schedule *schedule, dp_why *why);
/* contributors: as for dp_schedule_batch_factor. A warm-up that the manifest does not give is
 * longer with more of them: they commit more tokens while each takes as many steps.
 *
 * Linear from peak / warm-up tokens (never 0) to peak over the warm-up; then
 * constant: peak; linear, cosine: from peak at the end of the warm-up to floor at total_tokens
 * (Loshchilov, Hutter 2017); wsd: peak, then linear to floor over decay_tokens. After total_tokens:
 * floor (constant: peak). */
double dp_schedule_lr(const dp_schedule *schedule, uint64_t committed_tokens,
                      uint32_t contributors);

/* Factor of train.batch_rule on the rate: none: 1; linear: B/B0 (Goyal et al. 2017); sqrt:
 * sqrt(B/B0) (Krizhevsky 2014; for Adam, Malladi et al. 2022). B0 is train.batch_reference in
 * tokens; if that is 0, or with none: 1.
 *
 * B is the batch of one update, in tokens: b = train.batch * model.context of one optimizer step,
 * times the contributors when round.steps_max is 1, because a round then averages the gradients of
 * one step of each (synchronous data parallelism). With more local steps each node keeps its own
 * batch: B = b for any number of contributors. contributors: blobs in the newest ROUND record, on
 * which all nodes agree; 0 (none yet) counts as 1. */
double dp_schedule_batch_factor(const dp_manifest *manifest, uint32_t contributors);

#endif
