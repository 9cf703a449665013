/* The self-test of a backend: small models of both families beside the CPU, operation by operation. What is exact in backend.h
 * must agree bit by bit, what is near within bounds. Runs in seconds; knows nothing of files and processes (plugin.h). */
#ifndef DP_COMPUTE_BACKEND_CHECK_H
#define DP_COMPUTE_BACKEND_CHECK_H

#include "compute/backend.h"

/* One device of a backend whose table has been looked at. DP_UNSUPPORTED: it computes something else than the CPU, and
 * why says what; or the status of a call that failed. */
DP_MUST dp_status dp_backend_check(const dp_backend *backend, uint32_t device, dp_why *why);

#endif
