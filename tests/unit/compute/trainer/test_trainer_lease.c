/* A trainer draws each sample of its lease once, and reports its reach. */
#include "tests/unit/compute/tiny_node.h"

#include <math.h>
#include <string.h>

#include "compute/trainer/trainer.h"
#include "compute/trainer/trainer_keep.h"

static const uint32_t all_of_it = 0x80000000U;

/* Sum of the differences of two vectors. */
static double apart(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += fabs((double)(a[i] - b[i]));
    }
    return sum;
}

/* Like the daemon, gives the trainer these samples from here on. */
static void lease(const node *x, dp_reach from, dp_sample_range range)
{
    CHECK_OK(dp_trainer_lease(x->trainer, &from, &range, range.count > 0 ? 1 : 0));
}

static bool reached(const node *x, uint64_t leased, uint64_t own)
{
    const dp_reach reach = dp_trainer_reach(x->trainer);
    return reach.leased == leased && reach.own == own;
}

/* Where x stands after one step on these samples. */
static float *stepped(uint8_t member, dp_reach from, dp_sample_range range)
{
    node x = node_open(member, DP_CODEC_SPARSE, 950, member);
    lease(&x, from, range);
    node_train(&x, 1);
    float *const at = node_copy(dp_trainer_params(x.trainer), x.n);
    node_close(&x);
    return at;
}

static void samples_are_those_of_the_lease_whoever_draws_them(void **state)
{
    (void)state;
    const dp_sample_range range = {.first = 40, .count = 100};
    float *const a = stepped(1, (dp_reach){0}, range);
    float *const b = stepped(2, (dp_reach){.leased = 7, .own = 9}, range);
    float *const next = stepped(1, (dp_reach){0}, (dp_sample_range){.first = 50, .count = 100});
    float *const own = stepped(1, (dp_reach){0}, (dp_sample_range){0});
    float *const other = stepped(2, (dp_reach){0}, (dp_sample_range){0});
    node x = node_open(1, DP_CODEC_SPARSE, 950, 1);
    const double moved = apart(a, dp_trainer_theta(x.trainer), x.n);
    CHECK(apart(a, b, x.n) < 1e-3 * moved); /* But for how its sums were cut. */
    CHECK(apart(a, next, x.n) > 0.1 * moved);
    CHECK(apart(a, own, x.n) > 0.1 * moved && apart(own, other, x.n) > 0.1 * moved);
    node_close(&x);
    test_free(a);
    test_free(b);
    test_free(next);
    test_free(own);
    test_free(other);
}

static void a_trainer_goes_through_its_lease_and_then_along_its_own_line(void **state)
{
    (void)state;
    node x = node_open(1, DP_CODEC_SPARSE, 950, 1);
    const uint64_t batch = dp_trainer_manifest(x.trainer)->batch_rows;
    const dp_sample_range ranges[] = {{.first = 5, .count = 2 * batch - 1},
                                      {.first = 90, .count = 2}};
    const dp_reach from = {.leased = 30, .own = 4};
    CHECK_OK(dp_trainer_lease(x.trainer, &from, ranges, 2));
    CHECK(reached(&x, 30, 4));
    node_train(&x, 1);
    CHECK(reached(&x, 30 + batch, 4));
    node_train(&x, 1);
    CHECK(reached(&x, 30 + 2 * batch, 4));
    node_train(&x, 1); /* One sample is left of it. */
    CHECK(reached(&x, 30 + 2 * batch + 1, 4 + batch - 1));
    /* A repeated command: the trainer is already further. */
    CHECK_OK(dp_trainer_lease(x.trainer, &from, ranges, 2));
    node_train(&x, 1);
    CHECK(reached(&x, 30 + 2 * batch + 1, 4 + 2 * batch - 1));
    lease(&x, (dp_reach){.leased = 500, .own = 600}, (dp_sample_range){.first = 7, .count = 99});
    CHECK(reached(&x, 500, 600));
    node_train(&x, 1);
    CHECK(reached(&x, 500 + batch, 600));
    CHECK_OK(dp_trainer_init(x.trainer)); /* Its work is lost, and may be done again. */
    CHECK(reached(&x, 0, 0));
    node_close(&x);
}

static void the_step_under_way_is_dropped_when_its_samples_are_taken_back(void **state)
{
    (void)state;
    node x = node_open(1, DP_CODEC_SPARSE, 950, 1);
    const uint64_t batch = dp_trainer_manifest(x.trainer)->batch_rows;
    lease(&x, (dp_reach){0}, (dp_sample_range){.first = 5, .count = 100});
    CHECK_OK(dp_trainer_work(x.trainer)); /* One row of several. */
    CHECK(reached(&x, 0, 0) && !dp_trainer_between_steps(x.trainer));
    lease(&x, (dp_reach){.leased = 100}, (dp_sample_range){.first = 300, .count = 100});
    CHECK(reached(&x, 100, 0) && dp_trainer_between_steps(x.trainer));
    node_train(&x, 1);
    CHECK(reached(&x, 100 + batch, 0));
    node_close(&x);
}

static void work_that_is_worth_nothing_claims_nothing(void **state)
{
    (void)state;
    node x = node_open(1, DP_CODEC_SPARSE, 950, 1);
    lease(&x, (dp_reach){0}, (dp_sample_range){.first = 5, .count = 100});
    node_train(&x, 2);
    dp_view lent;
    dp_view a;
    CHECK_OK(dp_trainer_publish(x.trainer, false, &lent, &a));
    uint8_t *const bytes = test_malloc(lent.size);
    memcpy(bytes, lent.data, lent.size);
    const dp_view blob = dp_view_of(bytes, lent.size);
    node_train(&x, 1);
    const dp_trainer_record record = {.round = 1,
                                      .alpha = 65536,
                                      .settle = DP_SETTLE_LEFT_OUT,
                                      .q = &all_of_it,
                                      .blobs = &blob,
                                      .n_items = 1};
    CHECK_OK(dp_trainer_apply(x.trainer, &record));
    const dp_trainer_progress done = dp_trainer_progress_of(x.trainer);
    CHECK(done.steps == 0 && done.tokens == 0 && done.carried == 0);
    const dp_reach before = dp_trainer_reach(x.trainer);
    node_train(&x, 1); /* Until it gets a lease. */
    CHECK(dp_trainer_reach(x.trainer).leased == before.leased);
    CHECK(dp_trainer_reach(x.trainer).own > before.own);
    CHECK_OK(dp_trainer_init(x.trainer));
    uint8_t *const zeros = test_calloc(x.n, 4);
    const dp_trainer_earlier frozen = {
        .kind = DP_RESTORE_FROZEN, .steps = 3, .tokens = 99, .a = dp_view_of(zeros, 4 * x.n)};
    CHECK_OK(dp_trainer_restore(x.trainer, &frozen));
    CHECK(dp_trainer_progress_of(x.trainer).steps == 0);
    CHECK(dp_trainer_progress_of(x.trainer).tokens == 0);
    test_free(zeros);
    test_free(bytes);
    node_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_those_of_the_lease_whoever_draws_them),
        cmocka_unit_test(a_trainer_goes_through_its_lease_and_then_along_its_own_line),
        cmocka_unit_test(the_step_under_way_is_dropped_when_its_samples_are_taken_back),
        cmocka_unit_test(work_that_is_worth_nothing_claims_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
