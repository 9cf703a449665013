/* A persistent pool of threads that runs numbered tasks; not a scheduler: the shape of tasks is
 * fixed, so that results do not depend on the number of threads. Idle threads block; working ones
 * have the niceness of the thread that runs the job. */
#ifndef DP_COMPUTE_MACHINE_POOL_H
#define DP_COMPUTE_MACHINE_POOL_H

#include <stddef.h>

#include "base/status.h"

enum { DP_POOL_THREADS_MAX = 256 };

typedef struct dp_pool dp_pool;

/* One task. index < n_tasks; worker < dp_pool_threads(pool) names scratch memory that no other
 * running task uses. */
typedef void (*dp_pool_task)(void *ctx, size_t index, size_t worker);

/* n_threads includes the calling thread; 0: dp_pool_threads_default(). Has fewer where the system
 * gives no more (pids.max, RLIMIT_NPROC). DP_BADARG: above the limit; DP_NOMEM. */
DP_MUST dp_status dp_pool_open(dp_pool **out, size_t n_threads);
void dp_pool_close(dp_pool *pool); /* Accepts NULL. */
size_t dp_pool_threads(const dp_pool *pool);
/* Runs task(ctx, 0..n_tasks-1, worker), each once, in any order, and returns when all are done. The
 * caller works too. Worker w of W begins with tasks w*n/W to (w+1)*n/W, so that jobs over the same
 * rows find them in the cache of the same core. Call from one thread at a time and never from a
 * task. pool may be NULL: the caller then runs all, in order. */
void dp_pool_run(dp_pool *pool, size_t n_tasks, dp_pool_task task, void *ctx);
/* dp_cpus_usable(), at most DP_POOL_THREADS_MAX. */
size_t dp_pool_threads_default(void);

#endif
