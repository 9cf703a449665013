/* Checks one state of the exhaustive search: the rules for all messages ever sent and for the
 * records that each voter holds for decided. */
#ifndef DP_SIM_EXPLORE_JUDGE_H
#define DP_SIM_EXPLORE_JUDGE_H

#include "tests/sim/explore_voter.h"

enum { DP_EXPLORE_WORDS = DP_EXPLORE_MESSAGES_MAX / 64 };

typedef struct dp_explore_judge {
    const dp_explore_voters *voters;
    bool only_s1;
    char failure[160]; /* the first broken rule; empty: none */
} dp_explore_judge;

/* A rule that this voter breaks; NULL: none. */
void dp_explore_judge_claim(dp_explore_judge *judge, const char *claim);
/* message was sent just now; sent: bits of all messages that matter, including it. S1, V2, V3. */
void dp_explore_judge_message(dp_explore_judge *judge, const uint64_t sent[DP_EXPLORE_WORDS],
                              const dp_explore_message *message);
/* states: of n hosts. S1 in each slot up to slots. */
void dp_explore_judge_decided(dp_explore_judge *judge, const uint32_t *states, uint32_t n,
                              uint32_t slots);

#endif
