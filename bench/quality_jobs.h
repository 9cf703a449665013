/* Runs the jobs of benches that train, each in its own process, several at a time. */
#ifndef DP_BENCH_QUALITY_JOBS_H
#define DP_BENCH_QUALITY_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* work(context, i) for all i below n, at_once at a time. It must write its results to memory of
 * quality_jobs_memory. False if a process could not be started or died. */
bool quality_jobs(size_t n, uint32_t at_once, void (*work)(void *context, size_t i), void *context);
/* Zeroed, shared with the processes; until the end of the program. NULL: there is none. */
void *quality_jobs_memory(size_t bytes);

#endif
