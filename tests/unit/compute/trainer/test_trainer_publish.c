/* Publications that are encoded while the trainer continues. */
#include "tests/unit/compute/tiny_node.h"

#include "compute/backend/backend_cpu.h"

enum { ONE = 65536, STEPS = 3 };

static const uint32_t all_of_it = 0x80000000U;

/* The CPU's table with a changed result of take. */
static dp_status outcome;

static dp_status take_with_outcome(dp_engine *e, dp_view *blob, const float **values)
{
    DP_TRY(dp_backend_cpu()->encode_take(e, blob, values));
    return outcome;
}

static node open_failing(dp_exchange_kind exchange)
{
    static dp_backend backend;
    dp_manifest m = node_settings(DP_CODEC_SPARSE, 950);
    m.exchange = exchange;
    m.trust = DP_TRUST_MEMBERS;
    m.inner_steps_max = exchange == DP_EXCHANGE_GRADIENTS ? 1 : m.inner_steps_max;
    backend = *dp_backend_cpu();
    backend.encode_take = take_with_outcome;
    return node_open_with(&m, (dp_trainer_setup){.member = {1}, .backend = &backend});
}

static void apply_own(const node *x, uint64_t round, const dp_view *blob)
{
    const dp_trainer_record record = {.round = round,
                                      .tokens = 100 * round,
                                      .alpha = ONE,
                                      .clip = ONE,
                                      .lambda = ONE,
                                      .settle = DP_SETTLE_INCLUDED,
                                      .q = &all_of_it,
                                      .blobs = blob,
                                      .n_items = 1};
    CHECK_OK(dp_trainer_apply(x->trainer, &record));
}

static void a_publication_is_of_the_moment_it_began(void **state)
{
    (void)state;
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    dp_codec codec;
    uint64_t elements;
    dp_view blob;
    dp_view a;
    bool ready = false;
    dp_trainer_aim(x.trainer, 1, 0);
    node_train(&x, STEPS);
    float *const theta = node_copy(dp_trainer_theta(x.trainer), x.n);
    float *const begun = node_copy(dp_trainer_params(x.trainer), x.n);
    CHECK_OK(dp_trainer_publish_start(x.trainer, false, 0));
    CHECK_STATUS(dp_trainer_publish_start(x.trainer, false, 0), DP_BUSY);
    CHECK(dp_trainer_progress_of(x.trainer).steps == 0);
    dp_trainer_aim(x.trainer, 2, 0);
    node_train(&x, STEPS - 1);
    float *const later = node_copy(dp_trainer_params(x.trainer), x.n);
    CHECK(memcmp(begun, later, x.n * sizeof *begun) != 0);
    CHECK_OK(dp_trainer_publish_ready(x.trainer, &ready));
    CHECK(ready);
    CHECK_OK(dp_trainer_publish_take(x.trainer, &blob, &a));
    CHECK(dp_trainer_progress_of(x.trainer).steps == STEPS - 1);
    float *const published = test_malloc(x.n * sizeof *published);
    CHECK(a.size == x.n * sizeof *published);
    memcpy(published, a.data, a.size);
    for (size_t i = 0; i < x.n; i++) {
        CHECK(published[i] == theta[i] - begun[i]);
    }
    CHECK_OK(dp_codec_peek(blob, &codec, &elements));
    CHECK_OK(dp_codec_encode(&codec, published, x.n, &x.blob));
    CHECK(dp_view_equal(blob, dp_buf_view(&x.blob)));
    const dp_view kept = dp_buf_view(&x.blob);
    apply_own(&x, 1, &kept);
    /* The work done meanwhile stays. */
    const float *const now = dp_trainer_params(x.trainer);
    const float *const moved = dp_trainer_theta(x.trainer);
    for (size_t i = 0; i < x.n; i++) {
        CHECK(now[i] == (later[i] - begun[i]) + moved[i]);
    }
    test_free(published);
    test_free(later);
    test_free(begun);
    test_free(theta);
    node_close(&x);
}

static void a_publication_has_the_density_of_its_round(void **state)
{
    (void)state;
    dp_manifest m = node_settings(DP_CODEC_SPARSE, 950);
    m.codec_keep = 32;
    m.codec_keep_most = 128;
    node x = node_open_with(&m, (dp_trainer_setup){.member = {1}});
    dp_codec codec;
    uint64_t elements;
    dp_view blob;
    dp_view a;
    dp_trainer_aim(x.trainer, 1, 0);
    node_train(&x, STEPS);
    CHECK_STATUS(dp_trainer_publish_start(x.trainer, false, 16), DP_BADARG);
    CHECK_STATUS(dp_trainer_publish_start(x.trainer, false, 100), DP_BADARG);
    CHECK(dp_trainer_progress_of(x.trainer).steps == STEPS);
    CHECK_OK(dp_trainer_publish_start(x.trainer, false, 128));
    CHECK_OK(dp_trainer_publish_take(x.trainer, &blob, &a));
    CHECK_OK(dp_codec_peek(blob, &codec, &elements));
    CHECK(codec.kind == DP_CODEC_SPARSE && codec.keep == 128 && elements == x.n);
    node_close(&x);
}

/* A publication that ends so, with one step after it. */
static void publish_and_fail(const node *x, dp_status how)
{
    dp_view blob;
    dp_view a;
    outcome = how;
    node_train(x, STEPS);
    CHECK_OK(dp_trainer_publish_start(x->trainer, false, 0));
    node_train(x, 1);
    CHECK_STATUS(dp_trainer_publish_take(x->trainer, &blob, &a), how);
}

static void a_blob_that_comes_spoiled_leaves_its_work_open(void **state)
{
    (void)state;
    node x = open_failing(DP_EXCHANGE_UPDATES);
    dp_view blob;
    dp_view a;
    publish_and_fail(&x, DP_BADMSG);
    CHECK(dp_trainer_progress_of(x.trainer).steps == STEPS + 1);
    CHECK_STATUS(dp_trainer_publish_take(x.trainer, &blob, &a), DP_BADARG);
    outcome = DP_OK;
    CHECK_OK(dp_trainer_publish(x.trainer, false, &blob, &a));
    node_close(&x);
}

static void an_update_that_is_found_not_to_be_finite_drops_all_since(void **state)
{
    (void)state;
    node x = open_failing(DP_EXCHANGE_UPDATES);
    dp_view blob;
    dp_view a;
    publish_and_fail(&x, DP_DIVERGED);
    CHECK(dp_trainer_progress_of(x.trainer).steps == 0);
    float *const x_now = node_copy(dp_trainer_params(x.trainer), x.n);
    CHECK(memcmp(x_now, dp_trainer_theta(x.trainer), x.n * sizeof *x_now) == 0);
    outcome = DP_OK;
    node_train(&x, 1);
    CHECK_OK(dp_trainer_publish(x.trainer, false, &blob, &a));
    test_free(x_now);
    node_close(&x);
}

static void a_gradient_waits_until_its_publication_is_there(void **state)
{
    (void)state;
    node x = open_failing(DP_EXCHANGE_GRADIENTS);
    dp_view blob;
    dp_view a;
    outcome = DP_BADMSG;
    node_train(&x, 1);
    CHECK(dp_trainer_waits(x.trainer));
    CHECK_OK(dp_trainer_publish_start(x.trainer, false, 0));
    CHECK(dp_trainer_waits(x.trainer));
    CHECK_STATUS(dp_trainer_publish_take(x.trainer, &blob, &a), DP_BADMSG);
    CHECK(dp_trainer_waits(x.trainer)); /* It is still the one to publish. */
    CHECK(dp_trainer_progress_of(x.trainer).steps == 1);
    outcome = DP_OK;
    CHECK_OK(dp_trainer_publish(x.trainer, false, &blob, &a));
    CHECK(dp_trainer_waits(x.trainer));
    node_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_publication_is_of_the_moment_it_began),
        cmocka_unit_test(a_publication_has_the_density_of_its_round),
        cmocka_unit_test(a_blob_that_comes_spoiled_leaves_its_work_open),
        cmocka_unit_test(an_update_that_is_found_not_to_be_finite_drops_all_since),
        cmocka_unit_test(a_gradient_waits_until_its_publication_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
