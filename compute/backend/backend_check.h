/* The self-test of a backend: small models of both families beside the CPU, operation by operation.
 * What is exact in backend.h must agree bit by bit, what is near within bounds. Runs in seconds;
 * knows nothing of files and processes (plugin.h). */
#ifndef DP_COMPUTE_BACKEND_BACKEND_CHECK_H
#define DP_COMPUTE_BACKEND_BACKEND_CHECK_H

#include "compute/backend/backend.h"

/* Told after each part of the test, one model in one precision or one optimizer, so that who waits
 * sees it go on. */
typedef struct dp_backend_told {
    void (*passed)(void *context);
    void *context;
} dp_backend_told;

/* One device of a backend whose table has been looked at. A precision that the device does not have
 * (create gives DP_UNSUPPORTED) is not tried, if another is. DP_UNSUPPORTED: it computes something
 * else than the CPU, and why says what; or the status of a call that failed. told may be NULL. */
DP_MUST dp_status dp_backend_check(const dp_backend *backend, uint32_t device,
                                   const dp_backend_told *told, dp_why *why);

#endif
