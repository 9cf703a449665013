/* The report of bench_quality about its results: table, JSON lines, plot, and the claims that must
 * hold between the configurations. */
#ifndef DP_BENCH_QUALITY_REPORT_H
#define DP_BENCH_QUALITY_REPORT_H

#include <stddef.h>

#include "bench/quality_run.h"

enum { QUALITY_SEEDS_MAX = 8 };

/* A configuration and its results, one per seed. */
typedef struct quality_row {
    const quality_plan *plan;
    const quality_result *results;
    uint32_t n;
} quality_row;

/* Means over the seeds. */
double quality_loss(const quality_row *row);
/* Least and most of the seeds. */
void quality_loss_range(const quality_row *row, double *least, double *most);

/* JSON: "sent" is per inner steps: per round, unless rounds are single steps. */
void quality_print(const quality_row *rows, size_t n_rows, uint32_t inner, bool json);
/* Prints one line per claim that can be checked with these rows; returns the number of claims that
 * do not hold. The allowed differences of loss are meant for means of seeds in long runs; slack:
 * the factor by which they are widened. */
unsigned quality_check(const quality_row *rows, size_t n_rows, double slack, bool json);
/* Curves of loss against bytes, by gnuplot. DP_IO: gnuplot is not installed, or it failed. */
DP_MUST dp_status quality_plot(const quality_row *rows, size_t n_rows, const char *png,
                               dp_why *why);

#endif
