/* The share of time that the trainer computed, from its running totals; 1 means that it never
 * waited. Reads no clock. */
#ifndef DP_DAEMON_HOST_USAGE_H
#define DP_DAEMON_HOST_USAGE_H

#include <stdint.h>

enum { DP_USAGE_WINDOW_US = 60 * 1000 * 1000 };

/* A zeroed one has no data. */
typedef struct dp_usage {
    uint64_t computed_us;
    uint64_t trained_us;
    double share; /* 0..1; 0 while unknown */
} dp_usage;

/* Totals since the trainer's start; smaller ones are of another trainer, and restart the
 * measurement. The share is the mean while there is less than DP_USAGE_WINDOW_US of training;
 * afterwards an interval of dt counts dt / (dt + window). */
void dp_usage_told(dp_usage *usage, uint64_t computed_us, uint64_t trained_us);

#endif
