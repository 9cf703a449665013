/* The self-test of a backend: small models of both families beside the CPU, operation by operation.
 * Exact results of backend.h must agree bit by bit, near ones within bounds. Runs in seconds; knows
 * nothing of files and processes (plugin.h). */
#ifndef DP_COMPUTE_BACKEND_BACKEND_CHECK_H
#define DP_COMPUTE_BACKEND_BACKEND_CHECK_H

#include "compute/backend/backend.h"

/* Progress: called after each part of the test, one model in one precision or one optimizer. */
typedef struct dp_backend_told {
    void (*passed)(void *context);
    void *context;
} dp_backend_told;

/* Tests one device of a backend whose table has been checked. A precision that the device lacks
 * (create gives DP_UNSUPPORTED) is skipped if another one exists. DP_UNSUPPORTED: a result differs
 * from the CPU's, and why says which; else the status of a call that failed. told may be NULL. */
DP_MUST dp_status dp_backend_check(const dp_backend *backend, uint32_t device,
                                   const dp_backend_told *told, dp_why *why);

#endif
