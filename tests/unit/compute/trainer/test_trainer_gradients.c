/* The trainer in a run that exchanges gradients. */
#include "tests/unit/compute/tiny_node.h"

#include <math.h>

#include "compute/codec/codec.h"
#include "compute/model/state.h"
#include "compute/outer/consensus.h"

enum { ONE = 65536, NODES = 3, STEPS = 10, LR_NANO = 1000000 };

static node open_node(uint8_t member, uint32_t rows, dp_exchange_kind exchange, bool alone)
{
    dp_manifest m = node_settings(DP_CODEC_FP32, 950);
    m.exchange = exchange;
    m.trust = DP_TRUST_MEMBERS;
    m.inner_steps_max = 1;
    m.batch_rows = rows;
    m.schedule = DP_SCHEDULE_CONSTANT;
    m.warmup_tokens = 1;
    m.lr_nano = LR_NANO;
    return node_open_with(&m, (dp_trainer_setup){.member = {member}, .alone = alone, .rows = 4});
}

static node open_gradients(uint8_t member, uint32_t rows)
{
    return open_node(member, rows, DP_EXCHANGE_GRADIENTS, false);
}

/* One batch of the run's line from this sample on, the step-th that this node has drawn. */
static void train(const node *x, uint32_t step, uint64_t first)
{
    const dp_reach from = {.leased = (uint64_t)step * x->manifest.batch_rows};
    const dp_sample_range range = {.first = first, .count = x->manifest.batch_rows};
    CHECK_OK(dp_trainer_lease(x->trainer, &from, &range, 1));
    const uint64_t until = dp_trainer_last_of(x->trainer).step + 1;
    while (dp_trainer_last_of(x->trainer).step < until) {
        CHECK_OK(dp_trainer_work(x->trainer));
    }
}

static void publish(node *x)
{
    dp_view blob;
    dp_view a;
    CHECK_OK(dp_trainer_publish(x->trainer, false, &blob, &a));
    dp_buf_clear(&x->blob);
    CHECK_OK(dp_buf_append(&x->blob, blob));
}

typedef struct means {
    dp_view blobs[NODES];
    uint32_t q[NODES];
    size_t n;
} means;

static means mean_of(const node *nodes, size_t n)
{
    means mean = {.n = n};
    for (size_t i = 0; i < n; i++) {
        mean.blobs[i] = dp_buf_view(&nodes[i].blob);
        mean.q[i] = (uint32_t)(0x80000000U / n);
    }
    return mean;
}

static void apply(const node *x, uint64_t round, dp_settle settle, const means *mean)
{
    const dp_trainer_record record = {.round = round,
                                      .tokens = (uint64_t)12 * TINY_CONTEXT * round,
                                      .alpha = ONE,
                                      .clip = ONE,
                                      .lambda = ONE,
                                      .settle = settle,
                                      .q = mean->q,
                                      .blobs = mean->blobs,
                                      .n_items = mean->n};
    CHECK_OK(dp_trainer_apply(x->trainer, &record));
}

/* |a - b| / |a - c|; c NULL: / |a|. */
static double apart(const float *a, const float *b, const float *c, size_t n)
{
    double difference = 0;
    double whole = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)a[i] - (double)b[i];
        const double w = (double)a[i] - (c != NULL ? (double)c[i] : 0);
        difference += d * d;
        whole += w * w;
    }
    return sqrt(difference / whole);
}

/* How far the mean of nodes' gradients is from that of one, by its share of it. */
static double gradients_apart(const node *nodes, const node *one)
{
    float *const got = test_malloc(one->n * sizeof *got);
    float *const wanted = test_malloc(one->n * sizeof *wanted);
    const means mean = mean_of(nodes, NODES);
    const means single = mean_of(one, 1);
    CHECK_OK(dp_consensus_mean(
        got, one->n, &(dp_consensus_items){.blobs = mean.blobs, .q = mean.q, .n = mean.n}));
    CHECK_OK(dp_consensus_mean(
        wanted, one->n, &(dp_consensus_items){.blobs = single.blobs, .q = single.q, .n = 1}));
    const double share = apart(wanted, got, NULL, one->n);
    test_free(wanted);
    test_free(got);
    return share;
}

/* Several nodes that step by their mean, and one with their batches as one: how far their models
 * are apart at last, by the way that the one has come; *gradient: the same of the first
 * gradients. */
static double nodes_and_one(dp_exchange_kind exchange, double *gradient)
{
    node nodes[NODES];
    node one = open_node(9, NODES * TINY_ROWS, exchange, false);
    for (uint32_t i = 0; i < NODES; i++) {
        nodes[i] = open_node((uint8_t)i, TINY_ROWS, exchange, false);
    }
    float *const first = test_malloc(one.n * sizeof *first);
    memcpy(first, dp_trainer_theta(one.trainer), one.n * sizeof *first);
    for (uint32_t step = 0; step < STEPS; step++) {
        const uint64_t at = (uint64_t)step * one.manifest.batch_rows;
        train(&one, step, at);
        publish(&one);
        for (uint32_t i = 0; i < NODES; i++) {
            train(&nodes[i], step, at + (uint64_t)i * TINY_ROWS);
            publish(&nodes[i]);
        }
        *gradient = step == 0 ? gradients_apart(nodes, &one) : *gradient;
        const means single = mean_of(&one, 1);
        const means mean = mean_of(nodes, NODES);
        apply(&one, step + 1, DP_SETTLE_INCLUDED, &single);
        for (uint32_t i = 0; i < NODES; i++) {
            apply(&nodes[i], step + 1, DP_SETTLE_INCLUDED, &mean);
        }
    }
    const float *const theta = dp_trainer_theta(nodes[0].trainer);
    for (uint32_t i = 1; i < NODES; i++) {
        CHECK(memcmp(theta, dp_trainer_theta(nodes[i].trainer), one.n * sizeof *theta) == 0);
    }
    const double share = apart(dp_trainer_theta(one.trainer), theta, first, one.n);
    test_free(first);
    node_close(&one);
    for (uint32_t i = 0; i < NODES; i++) {
        node_close(&nodes[i]);
    }
    return share;
}

static void nodes_equal_one_with_their_batches_together_to_rounding(void **state)
{
    (void)state;
    double gradient;
    double other;
    const double share = nodes_and_one(DP_EXCHANGE_GRADIENTS, &gradient);
    const double averaged = nodes_and_one(DP_EXCHANGE_UPDATES, &other);
    print_message("gradients apart %.2e, models %.2e; by averaging local steps %.2e\n", gradient,
                  share, averaged);
    CHECK(gradient > 0 && gradient < 1e-6); /* sums of fp32 in another order */
    CHECK(share < 1e-4);
    CHECK(averaged > 1e-2); /* One local step each is something else. */
}

static void one_node_takes_the_steps_of_training_alone_to_rounding(void **state)
{
    (void)state;
    node one = open_gradients(1, TINY_ROWS);
    node alone = open_node(1, TINY_ROWS, DP_EXCHANGE_GRADIENTS, true);
    float *const first = test_malloc(one.n * sizeof *first);
    memcpy(first, dp_trainer_theta(one.trainer), one.n * sizeof *first);
    for (uint32_t step = 0; step < STEPS; step++) {
        train(&one, step, (uint64_t)step * TINY_ROWS);
        publish(&one);
        const means mean = mean_of(&one, 1);
        apply(&one, step + 1, DP_SETTLE_INCLUDED, &mean);
        tiny_run_work(alone.trainer, step + 1);
    }
    const float *const theta = dp_trainer_theta(one.trainer);
    const double share = apart(dp_trainer_params(alone.trainer), theta, first, one.n);
    print_message("models apart %.2e\n", share);
    CHECK(share < 1e-4);
    test_free(first);
    node_close(&alone);
    node_close(&one);
}

static void a_trainer_waits_with_one_gradient_for_the_record(void **state)
{
    (void)state;
    node x = open_gradients(1, TINY_ROWS);
    CHECK(!dp_trainer_waits(x.trainer));
    train(&x, 0, 0);
    CHECK(dp_trainer_waits(x.trainer));
    const dp_reach reach = dp_trainer_reach(x.trainer);
    CHECK_OK(dp_trainer_work(x.trainer)); /* Nothing to do. */
    CHECK(dp_trainer_reach(x.trainer).leased == reach.leased && reach.leased == TINY_ROWS);
    CHECK(dp_trainer_progress_of(x.trainer).steps == 1);
    const float *const params = dp_trainer_params(x.trainer);
    CHECK(memcmp(params, dp_trainer_theta(x.trainer), x.n * sizeof *params) == 0);
    publish(&x);
    CHECK(dp_trainer_waits(x.trainer));
    const means mean = mean_of(&x, 1);
    apply(&x, 1, DP_SETTLE_INCLUDED, &mean);
    CHECK(!dp_trainer_waits(x.trainer));
    CHECK(memcmp(dp_trainer_params(x.trainer), dp_trainer_theta(x.trainer), x.n * sizeof(float)) ==
          0);
    /* Lossless, not clipped, counted: nothing is left over. */
    const float *const e = dp_trainer_feedback(x.trainer);
    for (size_t i = 0; i < x.n; i++) {
        CHECK(e[i] == 0);
    }
    node_close(&x);
}

static void a_gradient_that_is_late_counts_in_the_next_publication(void **state)
{
    (void)state;
    node x = open_gradients(1, TINY_ROWS);
    node y = open_gradients(2, TINY_ROWS);
    float *const wanted = test_malloc(x.n * sizeof *wanted);
    float *const second = test_malloc(x.n * sizeof *second);
    float *const got = test_malloc(x.n * sizeof *got);
    train(&x, 0, 0);
    train(&y, 0, TINY_ROWS);
    publish(&x);
    publish(&y);
    CHECK_OK(dp_codec_decode(dp_buf_view(&x.blob), wanted, x.n));
    const means mean = mean_of(&y, 1);
    apply(&x, 1, DP_SETTLE_LEFT_OUT, &mean);
    apply(&y, 1, DP_SETTLE_INCLUDED, &mean);
    /* Both have the same weights, and now the same batch: y tells what its gradient is. */
    const uint64_t at = (uint64_t)2 * TINY_ROWS;
    train(&x, 1, at);
    train(&y, 1, at);
    publish(&y);
    CHECK_OK(dp_codec_decode(dp_buf_view(&y.blob), second, x.n));
    const means again = mean_of(&y, 1);
    apply(&x, 2, DP_SETTLE_NONE, &again); /* It overtakes the gradient, which stays. */
    CHECK(dp_trainer_waits(x.trainer) && dp_trainer_progress_of(x.trainer).carried > 0);
    publish(&x);
    CHECK_OK(dp_codec_decode(dp_buf_view(&x.blob), got, x.n));
    for (size_t i = 0; i < x.n; i++) {
        wanted[i] += second[i];
    }
    CHECK(apart(wanted, got, NULL, x.n) < 1e-5);
    CHECK(apart(wanted, second, NULL, x.n) > 0.1);
    test_free(got);
    test_free(second);
    test_free(wanted);
    node_close(&y);
    node_close(&x);
}

static void work_that_is_worth_nothing_is_no_gradient(void **state)
{
    (void)state;
    node x = open_gradients(1, TINY_ROWS);
    train(&x, 0, 0);
    const dp_trainer_record gone = {.round = 1, .alpha = ONE, .settle = DP_SETTLE_NONE};
    CHECK_OK(dp_trainer_apply(x.trainer, &gone));
    CHECK(!dp_trainer_waits(x.trainer) && dp_trainer_progress_of(x.trainer).steps == 0);
    node_close(&x);
}

static void a_state_carries_both_moments_and_who_loads_it_steps_alike(void **state)
{
    (void)state;
    node x = open_gradients(1, TINY_ROWS);
    node y = open_gradients(2, TINY_ROWS);
    node plain = open_node(3, TINY_ROWS, DP_EXCHANGE_UPDATES, false);
    for (uint32_t step = 0; step < 2; step++) {
        train(&x, step, (uint64_t)step * TINY_ROWS);
        publish(&x);
        const means mean = mean_of(&x, 1);
        apply(&x, step + 1, DP_SETTLE_INCLUDED, &mean);
    }
    dp_view bytes;
    dp_view same;
    const dp_hash root = node_root(&x, &bytes);
    CHECK(bytes.size == dp_state_bytes(x.n, 2));
    CHECK_STATUS(dp_trainer_load(plain.trainer, 2, bytes), DP_BADMSG);
    CHECK_OK(dp_trainer_load(y.trainer, 2, bytes));
    const dp_hash loaded = node_root(&y, &same);
    CHECK(dp_hash_equal(&root, &loaded));
    train(&x, 2, (uint64_t)2 * TINY_ROWS);
    publish(&x);
    const means mean = mean_of(&x, 1);
    apply(&x, 3, DP_SETTLE_INCLUDED, &mean);
    apply(&y, 3, DP_SETTLE_NONE, &mean);
    const dp_hash after[2] = {node_root(&x, &bytes), node_root(&y, &same)};
    CHECK(dp_hash_equal(&after[0], &after[1]) && !dp_hash_equal(&after[0], &root));
    /* v that is not finite is refused, and theta and m stay. */
    uint8_t *const broken = test_malloc(bytes.size);
    static const uint8_t infinite[4] = {0, 0, 0x80, 0x7f};
    memcpy(broken, bytes.data, bytes.size);
    memcpy(broken + DP_STATE_HEADER_BYTES + 8 * x.n, infinite, sizeof infinite);
    CHECK_STATUS(dp_trainer_load(y.trainer, 3, dp_view_of(broken, bytes.size)), DP_DIVERGED);
    const dp_hash left = node_root(&y, &same);
    CHECK(dp_hash_equal(&left, &after[1]));
    test_free(broken);
    (void)node_root(&plain, &same);
    CHECK_STATUS(dp_trainer_load(x.trainer, 0, same), DP_BADMSG);
    node_close(&plain);
    node_close(&y);
    node_close(&x);
}

static void gradients_are_not_frozen(void **state)
{
    (void)state;
    node x = open_gradients(1, TINY_ROWS);
    dp_view blob;
    dp_view f;
    CHECK_STATUS(dp_trainer_freeze(x.trainer, &blob, &f), DP_BADARG);
    node_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_equal_one_with_their_batches_together_to_rounding),
        cmocka_unit_test(one_node_takes_the_steps_of_training_alone_to_rounding),
        cmocka_unit_test(a_trainer_waits_with_one_gradient_for_the_record),
        cmocka_unit_test(a_gradient_that_is_late_counts_in_the_next_publication),
        cmocka_unit_test(work_that_is_worth_nothing_is_no_gradient),
        cmocka_unit_test(a_state_carries_both_moments_and_who_loads_it_steps_alike),
        cmocka_unit_test(gradients_are_not_frozen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
