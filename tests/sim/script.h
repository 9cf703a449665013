/* Regression scripts (.dps): one run of the simulator as a text file, so that a run that failed
 * once remains a test. Holds options, not decisions: a script replays them with today's code.
 *
 *     dpsim 1                     the version of this format; must be the first line
 *     # anything                  a comment
 *     seed 21
 *     profile rivals              the default is swarm
 *     faults crash,flap           as for --faults; the default is all
 *     every yes                   every fault class of the mask is on; the default is no
 *     nodes 5                     the default is as drawn
 *     until 81.250000             seconds; the default is the usual end
 *     lucky yes                   no bad luck of gossip/core/buggify.h; the default is no
 *     keep-vote-key yes           the default is no, as of rotate, enrolled, parts, sums and span
 *     sites 2                     as the options of the same names: contributors, evil and store
 *       too
 *     loss-milli 5                --loss in thousandths, and churn-milli; round-ms is --round in ms
 *     invariant L1                what broke when the script was made; it is not judged by it */
#ifndef DP_SIM_SCRIPT_H
#define DP_SIM_SCRIPT_H

#include <stdio.h>

#include "tests/sim/sim.h"

enum { DP_SCRIPT_VERSION = 1, DP_SCRIPT_LINE_MAX = 400, DP_SCRIPT_LINES_MAX = 1000 };

typedef struct dp_script {
    dp_sim_options options;
    char invariant[8];
} dp_script;

/* name is used in the sentence. DP_BADMSG with "NAME:LINE: what", DP_VERSION, DP_IO. */
DP_MUST dp_status dp_script_read(dp_script *script, FILE *in, const char *name, dp_why *why);
/* DP_IO. */
DP_MUST dp_status dp_script_write(const dp_script *script, FILE *out);

#endif
