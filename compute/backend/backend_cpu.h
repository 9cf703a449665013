/* The CPU as a backend (backend.h): the engine of gpt.h and optim.h with vectors in plain memory.
 * It is the reference for all others. */
#ifndef DP_COMPUTE_BACKEND_BACKEND_CPU_H
#define DP_COMPUTE_BACKEND_BACKEND_CPU_H

#include "compute/backend/backend.h"
#include "compute/cpu/ops.h"

const dp_backend *dp_backend_cpu(void);
/* create() with another table of operations; NULL: the fastest one of the precision. */
DP_MUST dp_status dp_backend_cpu_create(dp_engine **out, const dp_engine_setup *setup,
                                        const dp_ops *ops, dp_why *why);

#endif
