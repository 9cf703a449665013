#include "compute/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

struct worker {
    dp_pool *pool;
    pthread_t thread;
    size_t index; /* 1 .. n_threads - 1; the caller is 0 */
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
    dp_pool_task task;
    void *ctx;
    size_t n_tasks;
    atomic_size_t next;
};

static void work(dp_pool *pool, size_t worker)
{
    for (;;) {
        const size_t index = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (index >= pool->n_tasks) {
            return;
        }
        pool->task(pool->ctx, index, worker);
    }
}

static void *thread_main(void *arg)
{
    const struct worker *self = arg;
    dp_pool *pool = self->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (pool->job == seen && !pool->closing) {
            pthread_cond_wait(&pool->wake, &pool->mutex);
        }
        if (pool->closing) {
            break;
        }
        seen = pool->job;
        pthread_mutex_unlock(&pool->mutex);
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
    pool->n_threads = n_threads;
    pool->workers = dp_alloc(n_threads, sizeof *pool->workers);
    if (pool->workers == NULL) {
        dp_free(pool);
        return DP_NOMEM;
    }
    dp_assert(pthread_mutex_init(&pool->mutex, NULL) == 0);
    dp_assert(pthread_cond_init(&pool->wake, NULL) == 0);
    dp_assert(pthread_cond_init(&pool->done, NULL) == 0);
    atomic_init(&pool->next, 0);
    for (size_t i = 1; i < n_threads; i++) {
        struct worker *worker = &pool->workers[i];
        *worker = (struct worker){.pool = pool, .index = i};
        if (pthread_create(&worker->thread, NULL, thread_main, worker) != 0) {
            dp_pool_close(pool);
            return DP_AGAIN;
        }
        pool->n_started++;
    }
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
    pthread_mutex_lock(&pool->mutex);
    dp_assert(pool->n_inside == 0);
    pool->task = task;
    pool->ctx = ctx;
    pool->n_tasks = n_tasks;
    pool->n_inside = pool->n_threads - 1;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
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

size_t dp_pool_quota_of(const char *cpu_max)
{
    char *end = NULL;
    const long long quota = strtoll(cpu_max, &end, 10);
    if (end == cpu_max || quota <= 0) {
        return 0; /* "max", empty or not a number */
    }
    const char *rest = end;
    const long long period = strtoll(rest, &end, 10);
    if (end == rest || period <= 0 || quota > INT64_MAX - period) {
        return 0;
    }
    return (size_t)((quota + period - 1) / period);
}

static size_t quota_in_file(const char *path)
{
    char line[64] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    const size_t quota = fgets(line, sizeof line, file) == NULL ? 0 : dp_pool_quota_of(line);
    DP_IGNORE(fclose(file) != 0); /* only read */
    return quota;
}

/* The least quota of this process's cgroup (v2) and those above it; 0 for none. */
static size_t cgroup_quota(void)
{
    char line[512] = "";
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL) {
        return 0;
    }
    bool found = false;
    for (int i = 0; i < 64 && !found && fgets(line, sizeof line, file) != NULL; i++) {
        found = strncmp(line, "0::/", 4) == 0;
    }
    DP_IGNORE(fclose(file) != 0); /* only read */
    if (!found) {
        return 0;
    }
    line[strcspn(line, "\n")] = '\0';
    char *group = line + 3;
    size_t least = 0;
    for (size_t depth = 0; depth < sizeof line; depth++) {
        char path[640];
        DP_IGNORE(snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group) < 0);
        const size_t quota = quota_in_file(path);
        if (quota > 0 && (least == 0 || quota < least)) {
            least = quota;
        }
        char *slash = strrchr(group, '/');
        if (slash == NULL) {
            break;
        }
        *slash = '\0';
    }
    return least;
}

size_t dp_pool_threads_default(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    size_t threads = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
        threads = (size_t)CPU_COUNT(&set);
    }
    const size_t quota = cgroup_quota();
    if (quota > 0 && quota < threads) {
        threads = quota;
    }
    return threads < DP_POOL_THREADS_MAX ? threads : DP_POOL_THREADS_MAX;
}
