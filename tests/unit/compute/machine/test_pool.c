/* THREADS_TEST */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "compute/machine/pool.h"

enum {
    TASKS = 1000,
    OTHER_USER = 54321, /* who has no process */
    NO_OTHER_USER = 255
};

struct count {
    atomic_uint runs[TASKS];
    atomic_uint inside[DP_POOL_THREADS_MAX];
    size_t threads;
    atomic_uint wrong;
};

static void count_task(void *ctx, size_t index, size_t worker)
{
    struct count *count = ctx;
    if (index >= TASKS || worker >= count->threads ||
        atomic_fetch_add(&count->inside[worker], 1) != 0) {
        atomic_fetch_add(&count->wrong, 1);
        return;
    }
    atomic_fetch_add(&count->runs[index], 1);
    atomic_fetch_sub(&count->inside[worker], 1);
}

static void every_task_runs_once_and_no_two_share_a_worker(void **state)
{
    (void)state;
    for (size_t threads = 1; threads <= 7; threads += 2) {
        dp_pool *pool = NULL;
        struct count count = {.threads = threads};
        assert_int_equal(dp_pool_open(&pool, threads), DP_OK);
        assert_int_equal(dp_pool_threads(pool), threads);
        dp_pool_run(pool, TASKS, count_task, &count);
        for (size_t i = 0; i < TASKS; i++) {
            assert_int_equal(count.runs[i], 1);
        }
        assert_int_equal(count.wrong, 0);
        dp_pool_close(pool);
    }
}

static void many_short_jobs_follow_each_other(void **state)
{
    (void)state;
    dp_pool *pool = NULL;
    struct count count = {.threads = 4};
    assert_int_equal(dp_pool_open(&pool, 4), DP_OK);
    for (size_t job = 0; job < 2000; job++) {
        dp_pool_run(pool, job % 6, count_task, &count);
    }
    for (size_t i = 0; i < 5; i++) {
        size_t jobs = 0;
        for (size_t job = 0; job < 2000; job++) {
            jobs += job % 6 > i;
        }
        assert_int_equal(count.runs[i], jobs);
    }
    assert_int_equal(count.wrong, 0);
    dp_pool_close(pool);
}

struct shares {
    atomic_size_t entered;
    atomic_size_t done;
    atomic_size_t owner[2];
};

/* Both threads are inside at once, so each runs one task. */
static void share_task(void *ctx, size_t index, size_t worker)
{
    struct shares *shares = ctx;
    atomic_fetch_add(&shares->entered, 1);
    while (atomic_load(&shares->entered) < 2) {
        sched_yield();
    }
    atomic_store(&shares->owner[index], worker);
}

static void a_thread_begins_with_the_same_tasks_in_every_job(void **state)
{
    (void)state;
    dp_pool *pool = NULL;
    assert_int_equal(dp_pool_open(&pool, 2), DP_OK);
    for (size_t job = 0; job < 20; job++) {
        struct shares shares = {.owner = {9, 9}};
        dp_pool_run(pool, 2, share_task, &shares);
        assert_int_equal(shares.owner[0], 0);
        assert_int_equal(shares.owner[1], 1);
    }
    dp_pool_close(pool);
}

/* The first task ends after all others, so the thread that runs it leaves them to the other
 * thread. */
static void first_is_long_task(void *ctx, size_t index, size_t worker)
{
    struct shares *shares = ctx;
    (void)worker;
    while (index == 0 && atomic_load(&shares->done) < TASKS - 1) {
        sched_yield();
    }
    atomic_fetch_add(&shares->done, 1);
}

static void another_thread_takes_the_tasks_of_a_busy_one(void **state)
{
    (void)state;
    dp_pool *pool = NULL;
    struct shares shares = {.done = 0};
    assert_int_equal(dp_pool_open(&pool, 2), DP_OK);
    dp_pool_run(pool, TASKS, first_is_long_task, &shares);
    assert_int_equal(shares.done, TASKS);
    dp_pool_close(pool);
}

static void no_pool_is_one_thread(void **state)
{
    (void)state;
    struct count count = {.threads = 1};
    dp_pool_run(NULL, 3, count_task, &count);
    assert_int_equal(count.runs[2], 1);
    assert_int_equal(dp_pool_threads(NULL), 1);
    dp_pool_close(NULL);
}

static void two_pools_do_not_disturb_each_other(void **state)
{
    (void)state;
    dp_pool *one = NULL;
    dp_pool *two = NULL;
    struct count count = {.threads = 3};
    assert_int_equal(dp_pool_open(&one, 3), DP_OK);
    assert_int_equal(dp_pool_open(&two, 2), DP_OK);
    dp_pool_close(two);
    dp_pool_run(one, TASKS, count_task, &count);
    assert_int_equal(count.runs[TASKS - 1], 1);
    dp_pool_close(one);
}

static void too_many_threads_and_no_memory_are_refused(void **state)
{
    (void)state;
    dp_pool *pool = NULL;
    assert_int_equal(dp_pool_open(&pool, DP_POOL_THREADS_MAX + 1), DP_BADARG);
    for (size_t n = 1; n <= 3; n++) {
        dp_alloc_fail_after(n);
        const dp_status status = dp_pool_open(&pool, 2);
        dp_alloc_fail_after(0);
        assert_int_equal(status, DP_NOMEM);
    }
    assert_null(pool);
}

/* A pool of four for a user who may have three threads, or if that cannot be, no other; in a
 * process of its own. The number of its threads, 0: a task did not run once. */
static int threads_within_a_limit(void)
{
    const bool is_root = geteuid() == 0;
    const rlim_t most = is_root ? 3 : 0;
    const struct rlimit limit = {most, most};
    struct count count = {.threads = 4};
    dp_pool *pool = NULL;
    if (is_root && setuid(OTHER_USER) != 0) {
        return NO_OTHER_USER; /* A namespace may have one user alone. */
    }
    if (setrlimit(RLIMIT_NPROC, &limit) != 0 || dp_pool_open(&pool, 4) != DP_OK) {
        return 0;
    }
    const int threads = (int)dp_pool_threads(pool);
    dp_pool_run(pool, TASKS, count_task, &count);
    dp_pool_close(pool);
    for (size_t i = 0; i < TASKS; i++) {
        if (count.runs[i] != 1) {
            return 0;
        }
    }
    return threads;
}

static void where_the_system_gives_fewer_threads_the_pool_has_fewer(void **state)
{
    (void)state;
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        _exit(threads_within_a_limit());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_OTHER_USER) {
        skip();
    }
    /* A sanitizer may have a thread, too. */
    assert_in_range(WEXITSTATUS(status), 1, geteuid() == 0 ? 3 : 1);
}

static void the_default_is_at_least_one_thread(void **state)
{
    (void)state;
    dp_pool *pool = NULL;
    assert_in_range(dp_pool_threads_default(), 1, DP_POOL_THREADS_MAX);
    assert_int_equal(dp_pool_open(&pool, 0), DP_OK);
    assert_int_equal(dp_pool_threads(pool), dp_pool_threads_default());
    dp_pool_close(pool);
}

struct nice_threads {
    atomic_int nice[2];
    atomic_size_t entered;
};

/* Both threads are inside at once, so each runs one task. */
static void nice_task(void *ctx, size_t index, size_t worker)
{
    struct nice_threads *threads = ctx;
    (void)index;
    atomic_fetch_add(&threads->entered, 1);
    while (atomic_load(&threads->entered) < 2) {
        sched_yield();
    }
    atomic_store(&threads->nice[worker], getpriority(PRIO_PROCESS, 0));
}

static void *run_nicely(void *ctx)
{
    struct nice_threads *threads = ctx;
    dp_pool *pool = NULL;
    assert_int_equal(dp_pool_open(&pool, 2), DP_OK);
    dp_pool_run(pool, 2, nice_task, threads);
    assert_int_equal(setpriority(PRIO_PROCESS, 0, 19), 0); /* this thread only */
    atomic_store(&threads->entered, 0);
    dp_pool_run(pool, 2, nice_task, threads);
    dp_pool_close(pool);
    return NULL;
}

static void threads_are_as_nice_as_their_caller_has_become(void **state)
{
    (void)state;
    struct nice_threads threads = {.entered = 0};
    pthread_t thread; /* in a separate process, since a process cannot lower its nice value again */
    assert_int_equal(pthread_create(&thread, NULL, run_nicely, &threads), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(threads.nice[0], 19);
    assert_int_equal(threads.nice[1], 19);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once_and_no_two_share_a_worker),
        cmocka_unit_test(many_short_jobs_follow_each_other),
        cmocka_unit_test(a_thread_begins_with_the_same_tasks_in_every_job),
        cmocka_unit_test(another_thread_takes_the_tasks_of_a_busy_one),
        cmocka_unit_test(no_pool_is_one_thread),
        cmocka_unit_test(two_pools_do_not_disturb_each_other),
        cmocka_unit_test(too_many_threads_and_no_memory_are_refused),
        cmocka_unit_test(where_the_system_gives_fewer_threads_the_pool_has_fewer),
        cmocka_unit_test(the_default_is_at_least_one_thread),
        cmocka_unit_test(threads_are_as_nice_as_their_caller_has_become),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
