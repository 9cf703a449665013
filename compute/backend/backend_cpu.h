/* The CPU as a backend (backend.h): the engine of gpt.h and optim.h, vectors in plain memory. The
 * first implementation of the table and the one that others are compared with. */
#ifndef DP_COMPUTE_BACKEND_BACKEND_CPU_H
#define DP_COMPUTE_BACKEND_BACKEND_CPU_H

#include "compute/backend/backend.h"
#include "compute/cpu/ops.h"

const dp_backend *dp_backend_cpu(void);
/* create() of it with another table of operations: NULL is the fastest of the precision. */
DP_MUST dp_status dp_backend_cpu_create(dp_engine **out, const dp_engine_setup *setup,
                                        const dp_ops *ops, dp_why *why);

#endif
