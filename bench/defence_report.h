/* Tables of bench_defence: the final loss of each attack under each rule, against a run of only the
 * honest workers. */
#ifndef DP_BENCH_DEFENCE_REPORT_H
#define DP_BENCH_DEFENCE_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/defence_run.h"

typedef struct defence_row {
    char name[96];
    char group[32];
    char kind[32]; /* the attack, or the data of a run without one */
    defence_case c;
    const defence_result *results; /* one per seed */
    uint32_t n;
} defence_row;

/* The rows of one group; nothing if it has none. */
void defence_report(const defence_row *rows, size_t n_rows, const char *group, bool json);

#endif
