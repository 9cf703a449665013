#include "compute/machine/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/machine/cpus.h"

enum { CACHE_LINE = 64 };

struct worker {
    dp_pool *pool;
    pthread_t thread;
    size_t index; /* 1 .. n_threads - 1; the caller is 0 */
};

/* Consecutive tasks of a job, those of one thread until it has no more. */
struct share {
    _Alignas(CACHE_LINE) atomic_size_t next;
    size_t end;
};

struct dp_pool {
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* a new job or closing */
    pthread_cond_t done; /* the last worker has left the job */
    struct worker *workers;
    size_t n_threads;
    size_t n_started;
    /* Guarded by mutex; the job's fields do not change while a worker is in it. */
    uint64_t job;
    size_t n_inside;
    bool closing;
    int nice; /* of the thread that runs the job */
    dp_pool_task task;
    void *ctx;
    struct share *shares; /* [n_threads] */
};

/* First its own share, then the rest of the others'. Jobs over the same rows follow each other, and
 * so most rows stay in the cache of the core that wrote them. */
static void work(dp_pool *pool, size_t worker)
{
    for (size_t i = 0; i < pool->n_threads; i++) {
        struct share *const share = &pool->shares[(worker + i) % pool->n_threads];
        for (;;) {
            const size_t index = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed);
            if (index >= share->end) {
                break;
            }
            pool->task(pool->ctx, index, worker);
        }
    }
}

static void share_out(dp_pool *pool, size_t n_tasks)
{
    const size_t n = pool->n_threads;
    for (size_t i = 0; i < n; i++) {
        atomic_store_explicit(&pool->shares[i].next, n_tasks * i / n, memory_order_relaxed);
        pool->shares[i].end = n_tasks * (i + 1) / n;
    }
}

/* Niceness is a property of a thread: renice of a process reaches its first thread only. Becoming
 * less nice may be forbidden; then this thread stays as it is. */
static void follow_nice(int wanted, int *own)
{
    if (wanted != *own) {
        DP_IGNORE(setpriority(PRIO_PROCESS, 0, wanted) != 0);
        *own = wanted;
    }
}

static void *thread_main(void *arg)
{
    const struct worker *self = arg;
    dp_pool *pool = self->pool;
    uint64_t seen = 0;
    int nice = getpriority(PRIO_PROCESS, 0);
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (pool->job == seen && !pool->closing) {
            pthread_cond_wait(&pool->wake, &pool->mutex);
        }
        if (pool->closing) {
            break;
        }
        seen = pool->job;
        const int wanted = pool->nice;
        pthread_mutex_unlock(&pool->mutex);
        follow_nice(wanted, &nice);
        work(pool, self->index);
        pthread_mutex_lock(&pool->mutex);
        if (--pool->n_inside == 0) {
            pthread_cond_signal(&pool->done);
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

dp_status dp_pool_open(dp_pool **out, size_t n_threads)
{
    if (n_threads == 0) {
        n_threads = dp_pool_threads_default();
    }
    if (n_threads > DP_POOL_THREADS_MAX) {
        return DP_BADARG;
    }
    dp_pool *pool = dp_alloc(1, sizeof *pool);
    if (pool == NULL) {
        return DP_NOMEM;
    }
    pool->workers = dp_alloc(n_threads, sizeof *pool->workers);
    pool->shares = dp_alloc(n_threads, sizeof *pool->shares);
    if (pool->workers == NULL || pool->shares == NULL) {
        dp_free(pool->shares);
        dp_free(pool->workers);
        dp_free(pool);
        return DP_NOMEM;
    }
    dp_assert(pthread_mutex_init(&pool->mutex, NULL) == 0);
    dp_assert(pthread_cond_init(&pool->wake, NULL) == 0);
    dp_assert(pthread_cond_init(&pool->done, NULL) == 0);
    for (size_t i = 1; i < n_threads; i++) {
        struct worker *worker = &pool->workers[i];
        *worker = (struct worker){.pool = pool, .index = i};
        if (pthread_create(&worker->thread, NULL, thread_main, worker) != 0) {
            break;
        }
        pool->n_started++;
    }
    pool->n_threads = pool->n_started + 1; /* No thread reads it before the first job. */
    *out = pool;
    return DP_OK;
}

void dp_pool_close(dp_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    pool->closing = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (size_t i = 1; i <= pool->n_started; i++) {
        pthread_join(pool->workers[i].thread, NULL);
    }
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    dp_free(pool->shares);
    dp_free(pool->workers);
    dp_free(pool);
}

size_t dp_pool_threads(const dp_pool *pool)
{
    return pool == NULL ? 1 : pool->n_threads;
}

void dp_pool_run(dp_pool *pool, size_t n_tasks, dp_pool_task task, void *ctx)
{
    if (pool == NULL || pool->n_threads == 1 || n_tasks <= 1) {
        for (size_t i = 0; i < n_tasks; i++) {
            task(ctx, i, 0);
        }
        return;
    }
    const int nice = getpriority(PRIO_PROCESS, 0);
    pthread_mutex_lock(&pool->mutex);
    dp_assert(pool->n_inside == 0);
    pool->nice = nice;
    pool->task = task;
    pool->ctx = ctx;
    share_out(pool, n_tasks);
    pool->n_inside = pool->n_threads - 1;
    pool->job++;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    work(pool, 0);
    pthread_mutex_lock(&pool->mutex);
    while (pool->n_inside > 0) {
        pthread_cond_wait(&pool->done, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
}

size_t dp_pool_threads_default(void)
{
    const size_t cpus = dp_cpus_usable();
    return cpus < DP_POOL_THREADS_MAX ? cpus : DP_POOL_THREADS_MAX;
}
