/* Jobs on the crypto pool's threads and back. THREADS_TEST */
#include "daemon/net/crypto_pool.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/unit/daemon/turn.h"

enum { N_JOBS = 500 };

struct sum_job {
    dp_crypto_pool_job job;
    struct sums *sums;
    uint64_t from;
    uint64_t sum;
    bool elsewhere;
};

struct sums {
    uv_loop_t loop;
    dp_crypto_pool *crypto_pool;
    pthread_t loop_thread;
    unsigned done;
    uint64_t total;
    bool closes; /* in the first done function */
    struct sum_job jobs[N_JOBS];
};

static void run_sum(dp_crypto_pool_job *job)
{
    struct sum_job *self = DP_LIST_ITEM(job, struct sum_job, job);
    for (uint64_t i = 0; i < 1000; i++) {
        self->sum += self->from + i;
    }
    self->elsewhere = !pthread_equal(pthread_self(), self->sums->loop_thread);
}

static void done_sum(dp_crypto_pool_job *job)
{
    struct sum_job *self = DP_LIST_ITEM(job, struct sum_job, job);
    struct sums *sums = self->sums;
    CHECK(pthread_equal(pthread_self(), sums->loop_thread));
    CHECK(self->elsewhere);
    sums->done++;
    sums->total += self->sum;
    if (sums->closes) {
        sums->closes = false;
        dp_crypto_pool_close(sums->crypto_pool);
    }
}

static void post_all(struct sums *sums)
{
    for (unsigned i = 0; i < N_JOBS; i++) {
        struct sum_job *job = &sums->jobs[i];
        *job = (struct sum_job){.job = {.run = run_sum, .done = done_sum}, .sums = sums, .from = i};
        CHECK(dp_crypto_pool_post(sums->crypto_pool, &job->job));
    }
}

static void sums_open(struct sums *sums)
{
    memset(sums, 0, sizeof *sums);
    sums->loop_thread = pthread_self();
    turn_open(&sums->loop);
    CHECK_OK(dp_crypto_pool_open(&sums->crypto_pool, &sums->loop, 3));
}

static bool all_done(void *context)
{
    return ((struct sums *)context)->done == N_JOBS;
}

static uint64_t expected(void)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < N_JOBS; i++) {
        total += 1000 * i + 999 * 500;
    }
    return total;
}

static void jobs_run_elsewhere_and_come_back_once(void **state)
{
    static struct sums sums;
    (void)state;
    sums_open(&sums);
    for (unsigned round = 1; round <= 3; round++) {
        sums.done = 0;
        post_all(&sums);
        turn_until(&sums.loop, all_done, &sums);
        assert_int_equal(sums.total, round * expected());
    }
    dp_crypto_pool_close(sums.crypto_pool);
    turn_close(&sums.loop);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

static void closing_finishes_what_was_posted(void **state)
{
    static struct sums sums;
    (void)state;
    sums_open(&sums);
    post_all(&sums);
    dp_crypto_pool_close(sums.crypto_pool);
    assert_int_equal(sums.done, N_JOBS);
    assert_int_equal(sums.total, expected());
    turn_close(&sums.loop);
}

static void a_done_function_may_close_the_crew(void **state)
{
    static struct sums sums;
    (void)state;
    sums_open(&sums);
    sums.closes = true;
    post_all(&sums);
    turn_until(&sums.loop, all_done, &sums);
    assert_int_equal(sums.total, expected());
    turn_close(&sums.loop);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

static void an_idle_crew_has_no_threads_and_closes_at_once(void **state)
{
    static struct sums sums;
    (void)state;
    sums_open(&sums);
    dp_crypto_pool_close(sums.crypto_pool);
    dp_crypto_pool_close(NULL);
    turn_close(&sums.loop);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

static void a_crew_of_none_leaves_the_work_to_who_posts(void **state)
{
    static struct sums sums;
    (void)state;
    memset(&sums, 0, sizeof sums);
    turn_open(&sums.loop);
    CHECK_OK(dp_crypto_pool_open(&sums.crypto_pool, &sums.loop, 0));
    sums.jobs[0].job = (dp_crypto_pool_job){.run = run_sum, .done = done_sum};
    CHECK(!dp_crypto_pool_post(sums.crypto_pool, &sums.jobs[0].job));
    dp_crypto_pool_close(sums.crypto_pool);
    turn_close(&sums.loop);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

static void small_machines_get_no_crew_and_large_ones_a_bounded_one(void **state)
{
    (void)state;
    assert_int_equal(dp_crypto_pool_fit(0), 0);
    assert_int_equal(dp_crypto_pool_fit(2), 0);
    assert_int_equal(dp_crypto_pool_fit(3), 3);
    assert_int_equal(dp_crypto_pool_fit(64), DP_CRYPTO_POOL_THREADS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_run_elsewhere_and_come_back_once),
        cmocka_unit_test(closing_finishes_what_was_posted),
        cmocka_unit_test(a_done_function_may_close_the_crew),
        cmocka_unit_test(a_crew_of_none_leaves_the_work_to_who_posts),
        cmocka_unit_test(small_machines_get_no_crew_and_large_ones_a_bounded_one),
        cmocka_unit_test(an_idle_crew_has_no_threads_and_closes_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
