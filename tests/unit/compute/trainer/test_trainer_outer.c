/* The trainer in a run whose outer step has momentum. */
#include "tests/unit/compute/tiny_node.h"

#include "compute/codec/codec.h"
#include "compute/model/state.h"
#include "compute/trainer/trainer.h"

enum { ONE = 65536 };

static node open_node(uint8_t member, uint32_t mu_milli)
{
    dp_manifest m = node_settings(DP_CODEC_INT8, 950);
    m.outer_mu_milli = mu_milli;
    return node_open_with(&m, (dp_trainer_setup){.member = {member}});
}

static void publish(node *x)
{
    node_train(x, 2);
    dp_view blob;
    dp_view a;
    CHECK_OK(dp_trainer_publish(x->trainer, false, &blob, &a));
    dp_buf_clear(&x->blob);
    CHECK_OK(dp_buf_append(&x->blob, blob));
}

static void apply(const node *x, uint64_t round, dp_settle settle, const node *author)
{
    static const uint32_t all_of_it = 0x80000000U;
    const dp_view blob = dp_buf_view(&author->blob);
    const dp_trainer_record record = {.round = round,
                                      .tokens = 100 * round,
                                      .alpha = ONE * 7 / 10,
                                      .clip = ONE,
                                      .lambda = ONE,
                                      .settle = settle,
                                      .q = &all_of_it,
                                      .blobs = &blob,
                                      .n_items = 1};
    CHECK_OK(dp_trainer_apply(x->trainer, &record));
}

static void a_state_carries_the_momentum_of_the_outer_step(void **state)
{
    (void)state;
    node a = open_node(1, 900);
    node b = open_node(2, 900);
    publish(&a);
    apply(&a, 1, DP_SETTLE_INCLUDED, &a);
    dp_view bytes;
    const dp_hash root = node_root(&a, &bytes);
    CHECK_OK(dp_trainer_load(b.trainer, 1, bytes));
    dp_view same;
    const dp_hash loaded = node_root(&b, &same);
    CHECK(dp_hash_equal(&root, &loaded));
    /* The next step of both depends on m: a trainer that did not take it over would differ. */
    publish(&a);
    apply(&a, 2, DP_SETTLE_INCLUDED, &a);
    apply(&b, 2, DP_SETTLE_NONE, &a);
    const float *const theta = dp_trainer_theta(a.trainer);
    CHECK(memcmp(theta, dp_trainer_theta(b.trainer), a.n * sizeof *theta) == 0);
    CHECK(dp_trainer_outer(a.trainer).reach == dp_trainer_outer(b.trainer).reach);
    CHECK(dp_trainer_outer(a.trainer).reach != 1);
    const dp_hash after[2] = {node_root(&a, &bytes), node_root(&b, &same)};
    CHECK(dp_hash_equal(&after[0], &after[1]));
    node_close(&b);
    node_close(&a);
}

static void a_state_without_the_runs_momentum_is_refused(void **state)
{
    (void)state;
    node with = open_node(1, 900);
    node without = open_node(1, 0);
    dp_view states[2];
    (void)node_root(&with, &states[0]);
    (void)node_root(&without, &states[1]);
    CHECK(states[0].size == dp_state_bytes(with.n, true));
    CHECK(states[1].size == dp_state_bytes(with.n, false));
    CHECK_STATUS(dp_trainer_load(with.trainer, 0, states[1]), DP_BADMSG);
    CHECK_STATUS(dp_trainer_load(without.trainer, 0, states[0]), DP_BADMSG);
    node_close(&without);
    node_close(&with);
}

static void a_state_that_is_refused_leaves_theta_and_momentum(void **state)
{
    (void)state;
    node x = open_node(1, 900);
    publish(&x);
    apply(&x, 1, DP_SETTLE_INCLUDED, &x);
    dp_view bytes;
    const dp_hash root = node_root(&x, &bytes);
    uint8_t *const broken = test_malloc(bytes.size);
    static const uint8_t infinite[4] = {0, 0, 0x80, 0x7f};
    for (size_t at = 0; at < 2; at++) { /* in theta, in m */
        memcpy(broken, bytes.data, bytes.size);
        memcpy(broken + DP_STATE_HEADER_BYTES + 4 * at * x.n, infinite, sizeof infinite);
        CHECK_STATUS(dp_trainer_load(x.trainer, 1, dp_view_of(broken, bytes.size)), DP_DIVERGED);
        const dp_hash left = node_root(&x, &bytes);
        CHECK(dp_hash_equal(&left, &root));
    }
    test_free(broken);
    node_close(&x);
}

static void a_fresh_start_forgets_the_momentum(void **state)
{
    (void)state;
    node x = open_node(1, 900);
    dp_view bytes;
    const dp_hash first = node_root(&x, &bytes);
    publish(&x);
    apply(&x, 1, DP_SETTLE_INCLUDED, &x);
    CHECK_OK(dp_trainer_init(x.trainer));
    const dp_hash again = node_root(&x, &bytes);
    CHECK(dp_hash_equal(&first, &again));
    node_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_carries_the_momentum_of_the_outer_step),
        cmocka_unit_test(a_state_without_the_runs_momentum_is_refused),
        cmocka_unit_test(a_state_that_is_refused_leaves_theta_and_momentum),
        cmocka_unit_test(a_fresh_start_forgets_the_momentum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
