/* The command line of dpsim --explore: a word that is not understood is refused with a sentence
 * that names it and the allowed values. */
#ifndef DP_SIM_EXPLORE_ARGUMENTS_H
#define DP_SIM_EXPLORE_ARGUMENTS_H

#include <stdio.h>

#include "tests/sim/explore_voter.h"

typedef struct dp_explore_arguments {
    dp_explore_bounds bounds;
    uint32_t bids_all; /* of all together */
    uint32_t crashes;
    uint64_t states; /* at most */
    bool only_s1;
    bool votes_each;
    bool help;
} dp_explore_arguments;

/* argv[1] is --explore. Overwrites the defaults in args, which stays untouched on failure.
 * DP_BADARG. */
DP_MUST dp_status dp_explore_arguments_read(dp_explore_arguments *args, int argc, char **argv,
                                            dp_why *why);
void dp_explore_arguments_usage(FILE *out);

#endif
