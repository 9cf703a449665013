/* Numbers of training samples. A sample is a window of the run's data (compute/data/data.h). The
 * line of the run numbers them through all passes: sample s is place s mod n of pass s div n. Each
 * member also has a line of its own, in another order. gossip/ledger/lease.h decides who trains on
 * which samples. */
#ifndef DP_BASE_RUN_REACH_H
#define DP_BASE_RUN_REACH_H

#include <stdint.h>

enum { DP_LEASE_RANGES_MAX = 8 /* of one member */ };

/* first .. first + count - 1. */
typedef struct dp_sample_range {
    uint64_t first;
    uint64_t count;
} dp_sample_range;

/* Samples that a member has trained on. Neither number ever falls. */
typedef struct dp_reach {
    uint64_t leased; /* of its lease */
    uint64_t own;    /* of its own line */
} dp_reach;

#endif
