/* The rules of bench_defence: they decide which updates of a round are left out, and may replace
 * the weighted sum. */
#ifndef DP_BENCH_DEFENCE_JUDGE_H
#define DP_BENCH_DEFENCE_JUDGE_H

#include "bench/defence_round.h"
#include "bench/defence_shipped.h"

/* The state that a voter keeps between rounds. */
typedef struct defence_voter {
    double ref; /* EWMA of the lower median of the alignments of a round; 0: not known */
} defence_voter;

typedef struct defence_judge {
    defence_rule rule;
    defence_limits limits;
    double training_tokens; /* of a node in a round */
    defence_eye eye;
    defence_source held;
    const dp_data *claimed[QUALITY_WORKERS];
    uint64_t claimed_seed[QUALITY_WORKERS];
    defence_voter voters[DEFENCE_VOTERS];
    defence_likeness past[DEFENCE_HISTORY][QUALITY_WORKERS]; /* by round */
    uint64_t past_round[DEFENCE_HISTORY];
    uint64_t tests; /* of gain, by all voters */
    defence_shipped shipped;
} defence_judge;

/* The values that a voter measured of a worker's update in this round. */
typedef struct defence_seen {
    double align;
    bool suspect; /* by the alignment */
    bool tested;
    defence_gain held;
    defence_gain claimed;
} defence_seen;

typedef struct defence_verdicts {
    bool rejected[QUALITY_WORKERS];
    double median[DEFENCE_VOTERS]; /* lower median of the alignments */
    defence_likeness likeness[QUALITY_WORKERS];
} defence_verdicts;

/* Judges all counted updates. Does not change the state for later calls, so that an attacker can
 * ask too. */
DP_MUST dp_status defence_judge_ask(defence_judge *judge, const defence_round *round,
                                    defence_verdicts *out);
/* Ends the round with these verdicts. */
DP_MUST dp_status defence_judge_settle(defence_judge *judge, const defence_round *round,
                                       const defence_verdicts *verdicts);

/* NULL if the voter has no reference yet. */
const float *defence_reference_of(const defence_worker *voter, defence_reference reference);
/* Gains on held-out windows and on claimed ones, n_windows of each, of so many steps. */
DP_MUST dp_status defence_judge_gains(defence_judge *judge, const defence_round *round,
                                      uint32_t worker, uint32_t voter, double steps,
                                      uint32_t n_windows, double *held, double *claimed);
/* Of DEFENCE_TRIM and DEFENCE_SIGNS: g from n_blobs updates of n elements with shares in Q31. */
DP_MUST dp_status defence_combine(defence_rule rule, size_t n, const dp_view *blobs,
                                  const uint32_t *q, uint32_t n_blobs, float *g);

#endif
