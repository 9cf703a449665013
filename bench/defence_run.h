/* One run of bench_defence: the rounds of quality_run.h with hostile workers and a rule against
 * them. */
#ifndef DP_BENCH_DEFENCE_RUN_H
#define DP_BENCH_DEFENCE_RUN_H

#include "bench/defence_judge.h"
#include "bench/defence_plan.h"
#include "bench/quality_run.h"

typedef struct defence_case {
    quality_plan plan; /* hooks are set by the run */
    uint32_t hostile;
    defence_attack attack;
    defence_rule rule;
    defence_limits limits;
} defence_case;

typedef struct defence_result {
    quality_result quality;
    /* updates of honest workers that were in time, and of them those that the rule left out */
    double honest_seen;
    double honest_rejected;
    double hostile_seen;
    double hostile_rejected;
    double hostile_out; /* removed from the run, */
    double honest_out;
    double last_out; /* the last of them in this round */
    double size;     /* mean size of DEFENCE_DRIFT and DEFENCE_NUDGE */
    double rule_s;   /* CPU time of the rule, of all voters, without the calls by attackers */
    double tests;    /* of gain */
} defence_result;

struct defence_survey;

/* survey, if not NULL, gets every round; all workers are honest in them. */
void defence_run(const quality_scale *scale, const defence_case *c, const quality_text *text,
                 uint64_t seed, struct defence_survey *survey, defence_result *result);

#endif
