/* The trainer in a run whose outer step has momentum. */
#include "tests/unit/compute/tiny_run.h"

#include "compute/codec.h"
#include "compute/state.h"
#include "compute/trainer.h"

enum { ONE = 65536 };

typedef struct node {
    tiny_run run;
    dp_trainer *trainer;
    dp_buf blob;
    size_t n;
} node;

static node open_node(uint8_t member, uint32_t mu_milli)
{
    node x = {0};
    tiny_run_open(&x.run, DP_CODEC_INT8, 950);
    dp_manifest m;
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(x.run.manifest, x.run.manifest_size)));
    m.outer_mu_milli = mu_milli;
    CHECK_OK(dp_manifest_encode(&m, x.run.manifest, &x.run.manifest_size));
    const dp_trainer_setup setup = {.manifest = dp_view_of(x.run.manifest, x.run.manifest_size),
                                    .tokenizer = dp_buf_view(&x.run.tokenizer),
                                    .shards = (dp_view[]){dp_buf_view(&x.run.data)},
                                    .n_shards = 1,
                                    .member = {member},
                                    .threads = 1};
    CHECK_OK(dp_trainer_open(&x.trainer, &setup, NULL));
    CHECK_OK(dp_trainer_init(x.trainer));
    x.n = dp_trainer_elements(x.trainer);
    dp_buf_init(&x.blob, dp_codec_bytes_most(x.n));
    return x;
}

static void close_node(node *x)
{
    dp_buf_close(&x->blob);
    dp_trainer_close(x->trainer);
    tiny_run_close(&x->run);
}

static void publish(node *x)
{
    const uint32_t goal = dp_trainer_progress_of(x->trainer).steps + 2;
    while (dp_trainer_progress_of(x->trainer).steps < goal) {
        CHECK_OK(dp_trainer_work(x->trainer));
    }
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

static dp_hash root_of(const node *x, dp_view *bytes)
{
    dp_hash root;
    CHECK_OK(dp_trainer_state(x->trainer, bytes, &root));
    return root;
}

static void a_state_carries_the_momentum_of_the_outer_step(void **state)
{
    (void)state;
    node a = open_node(1, 900);
    node b = open_node(2, 900);
    publish(&a);
    apply(&a, 1, DP_SETTLE_INCLUDED, &a);
    dp_view bytes;
    const dp_hash root = root_of(&a, &bytes);
    CHECK_OK(dp_trainer_load(b.trainer, 1, bytes));
    dp_view same;
    const dp_hash loaded = root_of(&b, &same);
    CHECK(dp_hash_equal(&root, &loaded));
    /* The next step of both depends on m: who did not take it over goes elsewhere. */
    publish(&a);
    apply(&a, 2, DP_SETTLE_INCLUDED, &a);
    apply(&b, 2, DP_SETTLE_NONE, &a);
    const float *const theta = dp_trainer_theta(a.trainer);
    CHECK(memcmp(theta, dp_trainer_theta(b.trainer), a.n * sizeof *theta) == 0);
    CHECK(dp_trainer_outer(a.trainer).reach == dp_trainer_outer(b.trainer).reach);
    CHECK(dp_trainer_outer(a.trainer).reach != 1);
    const dp_hash after[2] = {root_of(&a, &bytes), root_of(&b, &same)};
    CHECK(dp_hash_equal(&after[0], &after[1]));
    close_node(&b);
    close_node(&a);
}

static void a_state_without_the_runs_momentum_is_refused(void **state)
{
    (void)state;
    node with = open_node(1, 900);
    node without = open_node(1, 0);
    dp_view states[2];
    (void)root_of(&with, &states[0]);
    (void)root_of(&without, &states[1]);
    CHECK(states[0].size == dp_state_bytes(with.n, true));
    CHECK(states[1].size == dp_state_bytes(with.n, false));
    CHECK_STATUS(dp_trainer_load(with.trainer, 0, states[1]), DP_BADMSG);
    CHECK_STATUS(dp_trainer_load(without.trainer, 0, states[0]), DP_BADMSG);
    close_node(&without);
    close_node(&with);
}

static void a_state_that_is_refused_leaves_theta_and_momentum(void **state)
{
    (void)state;
    node x = open_node(1, 900);
    publish(&x);
    apply(&x, 1, DP_SETTLE_INCLUDED, &x);
    dp_view bytes;
    const dp_hash root = root_of(&x, &bytes);
    uint8_t *const broken = test_malloc(bytes.size);
    static const uint8_t infinite[4] = {0, 0, 0x80, 0x7f};
    for (size_t at = 0; at < 2; at++) { /* in theta, in m */
        memcpy(broken, bytes.data, bytes.size);
        memcpy(broken + DP_STATE_HEADER_BYTES + 4 * at * x.n, infinite, sizeof infinite);
        CHECK_STATUS(dp_trainer_load(x.trainer, 1, dp_view_of(broken, bytes.size)), DP_DIVERGED);
        const dp_hash left = root_of(&x, &bytes);
        CHECK(dp_hash_equal(&left, &root));
    }
    test_free(broken);
    close_node(&x);
}

static void a_fresh_start_forgets_the_momentum(void **state)
{
    (void)state;
    node x = open_node(1, 900);
    dp_view bytes;
    const dp_hash first = root_of(&x, &bytes);
    publish(&x);
    apply(&x, 1, DP_SETTLE_INCLUDED, &x);
    CHECK_OK(dp_trainer_init(x.trainer));
    const dp_hash again = root_of(&x, &bytes);
    CHECK(dp_hash_equal(&first, &again));
    close_node(&x);
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
