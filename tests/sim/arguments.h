/* The command line of dpsim: a word that is not understood is refused with a sentence that names it
 * and the allowed values. */
#ifndef DP_SIM_ARGUMENTS_H
#define DP_SIM_ARGUMENTS_H

#include <stdio.h>

#include "base/status.h"
#include "tests/sim/sim.h"

typedef struct dp_arguments {
    dp_sim_options options;
    uint64_t first; /* seeds first..last */
    uint64_t last;
    uint32_t jobs;
    uint32_t failures_max; /* stop after so many */
    bool json;
    bool quiet;
    bool shrink;
    bool help;
    const char *faults; /* as given; NULL: not given */
    const char *script; /* to replay; NULL: none */
    const char *output; /* file for a shrunk failure; NULL: shrunk-SEED.dps */
    const char *program;
} dp_arguments;

/* Overwrites the defaults in args; args stays untouched on failure. Text of argv is borrowed for as
 * long as args lives. DP_BADARG. */
DP_MUST dp_status dp_arguments_read(dp_arguments *args, int argc, char **argv, dp_why *why);
void dp_arguments_usage(FILE *out);

/* As given after --store. */
const char *dp_store_name(dp_sim_store store);

/* Reads all of text as a number without a sign, in base (0: as in C). False also above most. */
bool dp_read_number(const char *text, int base, uint64_t most, uint64_t *out);
/* Reads all of text as a number from 0 to most; infinity and NaN are refused. */
bool dp_read_decimal(const char *text, double most, double *out);

#endif
