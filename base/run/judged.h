/* Measurements of a peer's update by the trainer (docs/decisions/006-judging-updates.md). Their
 * meaning for a round is in gossip/round/judge.h. */
#ifndef DP_BASE_RUN_JUDGED_H
#define DP_BASE_RUN_JUDGED_H

#include <stdbool.h>
#include <stdint.h>

enum { DP_LIKENESS_BYTES = 32, DP_ALIGN_ONE = 65536 };
/* Limit of a gain and its error: a thousand nats per token, more than any measurement can
 * resolve. */
#define DP_GAIN_MICRO_MAX INT64_C(1000000000)

/* Loss per token without the update minus the loss with it, in micronats, and the standard error of
 * that difference. tokens 0: not measured. */
typedef struct dp_gain {
    int64_t micro; /* within +-DP_GAIN_MICRO_MAX, and so is error_micro */
    uint64_t error_micro;
    uint32_t tokens;
} dp_gain;

typedef struct dp_judged {
    bool failed;     /* nothing was measured: update, state or trainer was missing */
    bool compared;   /* align is valid: there is an own update */
    int32_t align;   /* Q16: the cosine with the own update */
    dp_gain held;    /* on held-out data */
    dp_gain claimed; /* on the samples that the author claims */
    /* signs of 256 random projections; those of copies differ in few bits */
    uint8_t likeness[DP_LIKENESS_BYTES];
} dp_judged;

#endif
