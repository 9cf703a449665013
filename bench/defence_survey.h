/* The measurements that voters would make: distributions of the statistics of honest updates and of
 * each attack, during a run in which all are honest, and the results of thresholds on them. */
#ifndef DP_BENCH_DEFENCE_SURVEY_H
#define DP_BENCH_DEFENCE_SURVEY_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/defence_judge.h"

enum {
    SURVEY_SAMPLES_MAX = 4096, /* the first so many of each distribution */
    SURVEY_PHASES = 2,         /* the first third of the rounds, and the last */
    SURVEY_STEPS = 2,          /* lengths of the step of a loss test: whole and a quarter */
    SURVEY_SIZES = 4,          /* of a loss test */
    SURVEY_SHARES = 6          /* of ref, at which an update may be rejected */
};

/* A distribution for each of these. */
typedef enum survey_value {
    SURVEY_COSINE,                                     /* with each reference */
    SURVEY_RATIO = SURVEY_COSINE + DEFENCE_REFERENCES, /* of it to the lower median of the round */
    SURVEY_NEAR = SURVEY_RATIO +
                  DEFENCE_REFERENCES, /* bits to the nearest other update, also of earlier rounds */
    SURVEY_HELD, /* gain of each length of step on held-out windows, in nats per token, */
    SURVEY_CLAIMED = SURVEY_HELD + SURVEY_STEPS, /* on claimed ones, */
    SURVEY_DEVIATION =
        SURVEY_CLAIMED + SURVEY_STEPS, /* and the deviation of their mean over one token of each */
    SURVEY_VALUES = SURVEY_DEVIATION + SURVEY_STEPS
} survey_value;

typedef struct survey_samples {
    double values[SURVEY_SAMPLES_MAX];
    uint32_t n;
} survey_samples;

/* Of one attack in one phase. */
typedef struct survey_counts {
    double tested;
    /* tests whose gain is below 0 by the errors of the limits */
    double negative[SURVEY_STEPS][SURVEY_SIZES];
    double judged;
    double rejected[DEFENCE_REFERENCES][SURVEY_SHARES]; /* by a majority of the voters */
} survey_counts;

typedef struct defence_survey {
    uint64_t rounds; /* of the run */
    survey_samples samples[DEFENCE_ATTACKS][SURVEY_PHASES][SURVEY_VALUES];
    survey_counts counts[DEFENCE_ATTACKS][SURVEY_PHASES];
    double ref[DEFENCE_REFERENCES][DEFENCE_VOTERS];
    double median[DEFENCE_REFERENCES][DEFENCE_VOTERS]; /* of this round */
    defence_likeness likeness[QUALITY_WORKERS];        /* the same */
} defence_survey;

DP_MUST dp_status defence_survey_round(defence_survey *survey, defence_judge *judge,
                                       defence_round *round);
void defence_survey_print(defence_survey *survey, const char *name, bool json);

#endif
