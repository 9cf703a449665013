/* What a node's trainer measured of an update that somebody else published
 * (docs/decisions/006-judging-updates.md). Numbers alone; what they mean for a round is
 * gossip/round/judge.h's question. */
#ifndef DP_BASE_RUN_JUDGED_H
#define DP_BASE_RUN_JUDGED_H

#include <stdbool.h>
#include <stdint.h>

enum { DP_LIKENESS_BYTES = 32, DP_ALIGN_ONE = 65536 };
/* Of a gain and its error: a thousand nats per token, which is more than any that can be told from
 * it. */
#define DP_GAIN_MICRO_MAX INT64_C(1000000000)

/* Loss per token without the update less the loss with it, in micronats, and the standard error of
 * that; tokens 0: not measured. */
typedef struct dp_gain {
    int64_t micro; /* within +-DP_GAIN_MICRO_MAX, as the error is */
    uint64_t error_micro;
    uint32_t tokens;
} dp_gain;

typedef struct dp_judged {
    bool failed;     /* nothing was measured: the update, the state or the trainer was gone */
    bool compared;   /* there is an own update to compare with */
    int32_t align;   /* Q16: the cosine of both */
    dp_gain held;    /* on data that nobody trains on */
    dp_gain claimed; /* on what the author says it trained on */
    /* signs of 256 projections of it: those of copies differ in few */
    uint8_t likeness[DP_LIKENESS_BYTES];
} dp_judged;

#endif
