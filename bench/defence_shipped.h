/* The rule of the product, by its own code: the trainers of the voters measure
 * (compute/trainer/trainer.h), gossip/round/judge.h finds, accuses and sets the budget. This file
 * replaces gossip/round/judge_round.c: it asks each voter about each update and counts the
 * voters. */
#ifndef DP_BENCH_DEFENCE_SHIPPED_H
#define DP_BENCH_DEFENCE_SHIPPED_H

#include "bench/defence_round.h"
#include "compute/trainer/trainer.h"
#include "gossip/round/judge.h"

typedef struct defence_shipped {
    dp_trainer *trainers[QUALITY_WORKERS];
    const dp_buf *blobs[QUALITY_WORKERS];
    dp_judge judges[DEFENCE_VOTERS];
    dp_judge_member members[DEFENCE_VOTERS][QUALITY_WORKERS];
    uint64_t training_tokens; /* of a node in a round */
    /* the round in which a majority of voters removed it from the run; 0: it was not */
    uint64_t out[QUALITY_WORKERS];
} defence_shipped;

void defence_shipped_open(defence_shipped *shipped);
/* Judges all counted updates of this round; keeps false: does not change the state for later
 * rounds. tests: tests of gain are added to it. */
DP_MUST dp_status defence_shipped_ask(defence_shipped *shipped, const defence_round *round,
                                      bool keeps, bool rejected[QUALITY_WORKERS], uint64_t *tests);

#endif
