/* A persistent pool of threads that runs numbered tasks; not a scheduler: tasks have a fixed shape,
 * so that results never depend on how many threads there are. Idle threads block; working ones are
 * as nice as the thread that runs the job. */
#ifndef DP_COMPUTE_MACHINE_POOL_H
#define DP_COMPUTE_MACHINE_POOL_H

#include <stddef.h>

#include "base/status.h"

enum { DP_POOL_THREADS_MAX = 256 };

typedef struct dp_pool dp_pool;

/* One task. index < n_tasks; worker < dp_pool_threads(pool) names scratch memory that no other
 * running task uses. */
typedef void (*dp_pool_task)(void *ctx, size_t index, size_t worker);

/* n_threads counts the calling thread; 0 asks dp_pool_threads_default(). DP_BADARG above the limit,
 * DP_NOMEM, and DP_AGAIN when the system gives no more threads. */
DP_MUST dp_status dp_pool_open(dp_pool **out, size_t n_threads);
void dp_pool_close(dp_pool *pool); /* Accepts NULL. */
size_t dp_pool_threads(const dp_pool *pool);
/* Runs task(ctx, 0..n_tasks-1, worker), each once, in any order, and returns when all are done. The
 * caller works too. Worker w of W begins with tasks w*n/W to (w+1)*n/W, so jobs over the same rows
 * find them in the cache of the core that had them last. Not from inside a task, and from one
 * thread at a time. pool may be NULL: then the caller does all, in order. */
void dp_pool_run(dp_pool *pool, size_t n_tasks, dp_pool_task task, void *ctx);
/* dp_cpus_usable(), at most DP_POOL_THREADS_MAX. */
size_t dp_pool_threads_default(void);

#endif
