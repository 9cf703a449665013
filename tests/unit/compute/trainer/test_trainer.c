#include "tests/unit/compute/tiny_node.h"

#include <math.h>

#include "compute/codec/codec.h"
#include "compute/format/safetensors.h"
#include "compute/model/state.h"
#include "compute/trainer/trainer.h"
#include "tests/lib/allocfail.h"

enum { ONE = 65536, BUF_MAX = 1 << 24 };

static const uint32_t all_of_it = 0x80000000U;

static uint8_t *copy_bytes(dp_view bytes)
{
    uint8_t *const c = test_malloc(bytes.size);
    memcpy(c, bytes.data, bytes.size);
    return c;
}

/* A publication that outlives the call that lent it. */
typedef struct publication {
    uint8_t *blob_bytes;
    uint8_t *a_bytes;
    dp_view blob;
    dp_view a;
} publication;

static publication publish(const node *x, bool dense)
{
    publication p;
    CHECK_OK(dp_trainer_publish(x->trainer, dense, &p.blob, &p.a));
    p.blob_bytes = copy_bytes(p.blob);
    p.a_bytes = copy_bytes(p.a);
    p.blob.data = p.blob_bytes;
    p.a.data = p.a_bytes;
    return p;
}

static void drop(publication *p)
{
    test_free(p->blob_bytes);
    test_free(p->a_bytes);
}

static dp_trainer_record record_of(uint64_t round, dp_settle settle, const dp_view *blobs, size_t n)
{
    return (dp_trainer_record){.round = round,
                               .tokens = 100 * round,
                               .alpha = ONE,
                               .clip = ONE,
                               .lambda = ONE,
                               .settle = settle,
                               .q = &all_of_it,
                               .blobs = blobs,
                               .n_items = n};
}

static bool close_to(double a, double b)
{
    return fabs(a - b) <= 1e-6 * (1 + fabs(a));
}

static void thirty_steps_lower_the_loss(void **state)
{
    (void)state;
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node_train(&x, 1);
    const double first = dp_trainer_progress_of(x.trainer).loss;
    node_train(&x, 29);
    const dp_trainer_progress done = dp_trainer_progress_of(x.trainer);
    CHECK(done.steps == 30 && done.skipped == 0 && done.tokens == 30 * TINY_ROWS * TINY_CONTEXT);
    /* The mean over all thirty lies well below the first. */
    CHECK(isfinite(first) && done.loss < 0.9 * first);
    node_close(&x);
}

static void training_is_the_same_twice_and_differs_between_members(void **state)
{
    (void)state;
    node a = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node b = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node c = node_open(2, DP_CODEC_SPARSE, 950, 0);
    node_train(&a, 2);
    node_train(&b, 2);
    node_train(&c, 2);
    double same = 0;
    double other = 0;
    for (size_t i = 0; i < a.n; i++) {
        same += fabs((double)(dp_trainer_params(a.trainer)[i] - dp_trainer_params(b.trainer)[i]));
        other += fabs((double)(dp_trainer_params(a.trainer)[i] - dp_trainer_params(c.trainer)[i]));
    }
    CHECK(same <
          1e-2 * other); /* Micro-batches follow the clock, so their sums may round otherwise. */
    node_close(&a);
    node_close(&b);
    node_close(&c);
}

static void check_included(dp_codec_kind kind)
{
    node x = node_open(1, kind, 1000, 0);
    dp_trainer_aim(x.trainer, 1, 0);
    node_train(&x, 3);
    float *const before = node_copy(dp_trainer_params(x.trainer), x.n);
    publication p = publish(&x, false);
    CHECK_STATUS(dp_trainer_publish(x.trainer, false, &p.blob, &p.a), DP_BUSY);
    p.blob.data = p.blob_bytes;
    dp_codec codec;
    uint64_t elements;
    CHECK_OK(dp_codec_peek(p.blob, &codec, &elements));
    CHECK(codec.kind == kind);
    double norm = 0;
    double left_over = -1;
    CHECK_OK(dp_trainer_codec_error(x.trainer, &norm, &left_over));
    CHECK(norm > 0 && left_over < norm && (left_over == 0) == (kind == DP_CODEC_FP32));
    const dp_trainer_record record = record_of(1, DP_SETTLE_INCLUDED, &p.blob, 1);
    float *const old = node_copy(dp_trainer_theta(x.trainer), x.n);
    CHECK_OK(dp_trainer_apply(x.trainer, &record));
    CHECK_STATUS(dp_trainer_codec_error(x.trainer, &norm, &left_over), DP_BADARG);
    const float *const theta = dp_trainer_theta(x.trainer);
    const float *const e = dp_trainer_feedback(x.trainer);
    float *const d = test_malloc(x.n * sizeof *d);
    CHECK_OK(dp_codec_decode(p.blob, d, x.n));
    const float gain = (float)dp_codec_gain(codec.kind, codec.keep) * 0x1p-16F;
    CHECK((gain > 1) == dp_codec_row_of(codec.kind)->thins);
    for (size_t i = 0; i < x.n; i++) {
        CHECK(theta[i] == old[i] - gain * d[i]);
        /* No training since: x stands on theta, and with beta 1 sent and kept are all that was
         * done. */
        CHECK(dp_trainer_params(x.trainer)[i] == theta[i]);
        CHECK(close_to((double)d[i] + (double)e[i], (double)old[i] - (double)before[i]));
    }
    test_free(before);
    test_free(old);
    test_free(d);
    drop(&p);
    node_close(&x);
}

static void an_included_publication_leaves_what_the_codec_dropped(void **state)
{
    (void)state;
    size_t count = 0;
    const dp_codec_row *const codecs = dp_codec_rows(&count);
    for (size_t i = 0; i < count; i++) {
        check_included(codecs[i].kind);
    }
}

static void left_out_work_goes_into_the_next_publication_whole(void **state)
{
    (void)state;
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node_train(&x, 2);
    publication first = publish(&x, false);
    const dp_trainer_record record = record_of(1, DP_SETTLE_LEFT_OUT, NULL, 0);
    CHECK_OK(dp_trainer_apply(x.trainer, &record));
    CHECK(dp_view_equal(first.a, dp_view_of(dp_trainer_feedback(x.trainer), 4 * x.n)));
    CHECK(memcmp(dp_trainer_params(x.trainer), dp_trainer_theta(x.trainer), 4 * x.n) == 0);
    CHECK(dp_trainer_progress_of(x.trainer).carried == 2 * TINY_ROWS * TINY_CONTEXT);
    publication second = publish(&x, false);
    CHECK(dp_view_equal(first.a, second.a));
    drop(&first);
    drop(&second);
    node_close(&x);
}

static uint32_t keep_of(const publication *p)
{
    dp_codec codec;
    uint64_t elements;
    CHECK_OK(dp_codec_peek(p->blob, &codec, &elements));
    return codec.keep;
}

static void after_one_loss_a_publication_is_twice_as_dense_and_after_two_as_ever(void **state)
{
    (void)state;
    static const dp_settle outcomes[] = {DP_SETTLE_LEFT_OUT, DP_SETTLE_LEFT_OUT, DP_SETTLE_INCLUDED,
                                         DP_SETTLE_LEFT_OUT, DP_SETTLE_INCLUDED};
    static const uint32_t halves[] = {1, 2, 1, 1, 2}; /* Of each publication, before its outcome. */
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    const uint32_t keep = dp_trainer_manifest(x.trainer)->codec_keep;
    for (uint32_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++) {
        node_train(&x, 1);
        publication p = publish(&x, false);
        CHECK(keep_of(&p) == keep / halves[i]);
        const dp_trainer_record record = record_of(i + 1, outcomes[i], &p.blob, 1);
        CHECK_OK(dp_trainer_apply(x.trainer, &record));
        drop(&p);
    }
    node_close(&x);
}

static void training_while_a_publication_is_pending_survives_the_record(void **state)
{
    (void)state;
    for (unsigned settle = DP_SETTLE_NONE; settle <= DP_SETTLE_LEFT_OUT; settle++) {
        node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
        node_train(&x, 2);
        publication p = publish(&x, false);
        float *const at_publication = node_copy(dp_trainer_params(x.trainer), x.n);
        node_train(&x, 2);
        float *const open = node_copy(dp_trainer_params(x.trainer), x.n);
        float *const old = node_copy(dp_trainer_theta(x.trainer), x.n);
        const dp_trainer_record record = record_of(1, (dp_settle)settle, &p.blob, 1);
        CHECK_OK(dp_trainer_apply(x.trainer, &record));
        const float *const theta = dp_trainer_theta(x.trainer);
        for (size_t i = 0; i < x.n; i++) {
            const double base = settle == DP_SETTLE_NONE
                                    ? (double)at_publication[i] + (double)theta[i] - (double)old[i]
                                    : (double)theta[i];
            CHECK(close_to(dp_trainer_params(x.trainer)[i],
                           base + (double)open[i] - (double)at_publication[i]));
        }
        CHECK(dp_trainer_progress_of(x.trainer).steps == 2);
        dp_view blob;
        dp_view a;
        CHECK_STATUS(dp_trainer_publish(x.trainer, false, &blob, &a),
                     settle == DP_SETTLE_NONE ? DP_BUSY : DP_OK);
        test_free(at_publication);
        test_free(open);
        test_free(old);
        drop(&p);
        node_close(&x);
    }
}

static dp_trainer_earlier earlier_of(dp_settle settle, uint32_t lambda, dp_view a, dp_view blob)
{
    return (dp_trainer_earlier){.kind = DP_RESTORE_PENDING,
                                .settle = settle,
                                .clip = ONE,
                                .lambda = lambda,
                                .a = a,
                                .blob = blob};
}

static void a_restored_node_has_the_feedback_that_it_would_have_had(void **state)
{
    (void)state;
    static const dp_settle settles[] = {DP_SETTLE_INCLUDED, DP_SETTLE_LEFT_OUT, DP_SETTLE_NONE};
    for (size_t s = 0; s < 3; s++) {
        node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
        node_train(&x, 3);
        publication p = publish(&x, false);
        const bool late = settles[s] == DP_SETTLE_NONE;
        dp_trainer_record record = record_of(1, late ? DP_SETTLE_INCLUDED : settles[s], &p.blob, 1);
        record.clip = 40000;
        node y = node_open(1, DP_CODEC_SPARSE, 950, 0);
        if (late) { /* Restored as pending, then settled by the record itself. */
            const dp_trainer_earlier earlier = earlier_of(DP_SETTLE_NONE, ONE, p.a, p.blob);
            CHECK_OK(dp_trainer_restore(y.trainer, &earlier));
            CHECK_STATUS(dp_trainer_restore(y.trainer, &earlier), DP_BUSY);
            CHECK_OK(dp_trainer_apply(y.trainer, &record));
            CHECK_OK(dp_trainer_apply(x.trainer, &record));
        } else {
            CHECK_OK(dp_trainer_apply(x.trainer, &record));
            dp_view bytes;
            dp_hash root;
            CHECK_OK(dp_trainer_state_bytes(x.trainer, &bytes, &root));
            CHECK_OK(dp_trainer_load(y.trainer, 1, bytes));
            dp_trainer_earlier earlier = earlier_of(settles[s], ONE, p.a, p.blob);
            earlier.clip = record.clip;
            CHECK_OK(dp_trainer_restore(y.trainer, &earlier));
        }
        CHECK(memcmp(dp_trainer_theta(x.trainer), dp_trainer_theta(y.trainer), 4 * x.n) == 0);
        CHECK(memcmp(dp_trainer_feedback(x.trainer), dp_trainer_feedback(y.trainer), 4 * x.n) == 0);
        CHECK(memcmp(dp_trainer_params(x.trainer), dp_trainer_params(y.trainer), 4 * x.n) == 0);
        drop(&p);
        node_close(&x);
        node_close(&y);
    }
}

static void a_settlement_that_is_brought_back_twice_is_one(void **state)
{
    (void)state;
    static const dp_settle settles[] = {DP_SETTLE_INCLUDED, DP_SETTLE_LEFT_OUT};
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node_train(&x, 2);
    publication p = publish(&x, false);
    for (size_t s = 0; s < 2; s++) {
        CHECK_OK(dp_trainer_init(x.trainer));
        const dp_trainer_earlier earlier = earlier_of(settles[s], ONE, p.a, p.blob);
        CHECK_OK(dp_trainer_restore(x.trainer, &earlier));
        float *const once = node_copy(dp_trainer_feedback(x.trainer), x.n);
        CHECK_OK(dp_trainer_restore(x.trainer, &earlier));
        CHECK(memcmp(once, dp_trainer_feedback(x.trainer), x.n * sizeof *once) == 0);
        test_free(once);
    }
    drop(&p);
    node_close(&x);
}

static void work_that_is_restored_late_has_less_weight(void **state)
{
    (void)state;
    static const dp_settle settles[] = {DP_SETTLE_INCLUDED, DP_SETTLE_LEFT_OUT};
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node_train(&x, 2);
    publication p = publish(&x, false);
    for (size_t s = 0; s < 2; s++) {
        node whole = node_open(1, DP_CODEC_SPARSE, 950, 0);
        node half = node_open(1, DP_CODEC_SPARSE, 950, 0);
        node none = node_open(1, DP_CODEC_SPARSE, 950, 0);
        const dp_trainer_earlier kept = earlier_of(settles[s], ONE, p.a, p.blob);
        const dp_trainer_earlier aged = earlier_of(settles[s], ONE / 2, p.a, p.blob);
        const dp_trainer_earlier gone = earlier_of(settles[s], 0, p.a, p.blob);
        CHECK_OK(dp_trainer_restore(whole.trainer, &kept));
        CHECK_OK(dp_trainer_restore(half.trainer, &aged));
        CHECK_OK(dp_trainer_restore(none.trainer, &gone));
        size_t n_full = 0;
        for (size_t i = 0; i < x.n; i++) {
            const float e = dp_trainer_feedback(whole.trainer)[i];
            n_full += e != 0;
            CHECK(dp_trainer_feedback(half.trainer)[i] == e / 2);
            CHECK(dp_trainer_feedback(none.trainer)[i] == 0);
        }
        CHECK(n_full > x.n / 2);
        node_close(&whole);
        node_close(&half);
        node_close(&none);
    }
    drop(&p);
    node_close(&x);
}

static dp_view frozen_of(const node *x)
{
    dp_view blob;
    dp_view f;
    CHECK_OK(dp_trainer_freeze(x->trainer, &blob, &f));
    return blob;
}

static void frozen_work_that_is_restored_late_is_worth_less_and_so_is_its_exchange(void **state)
{
    (void)state;
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node y = node_open(1, DP_CODEC_SPARSE, 950, 0);
    dp_view blob;
    dp_view f;
    node_train(&x, 2);
    CHECK_OK(dp_trainer_freeze(x.trainer, &blob, &f));
    const dp_trainer_earlier earlier = {.kind = DP_RESTORE_FROZEN, .lambda = ONE / 4, .a = f};
    CHECK_OK(dp_trainer_restore(y.trainer, &earlier));
    size_t n_full = 0;
    for (size_t i = 0; i < x.n; i++) {
        const float left = dp_trainer_frozen(x.trainer)[i] / 4;
        n_full += left != 0;
        CHECK(dp_trainer_frozen(y.trainer)[i] == left);
        CHECK(dp_trainer_params(y.trainer)[i] == dp_trainer_theta(y.trainer)[i] - left);
    }
    CHECK(n_full > x.n / 2);
    uint8_t *const own = copy_bytes(blob);
    node other = node_open(2, DP_CODEC_SPARSE, 950, 0);
    node_train(&other, 2);
    const dp_view blobs[2] = {dp_view_of(own, blob.size), frozen_of(&other)};
    const uint64_t weights[2] = {1, 3};
    double moved[2];
    CHECK_OK(dp_trainer_mix(x.trainer, weights, blobs, ONE, &moved[0]));
    CHECK_OK(dp_trainer_mix(y.trainer, weights, blobs, ONE / 4, &moved[1]));
    for (size_t i = 0; i < x.n; i++) {
        CHECK(close_to(dp_trainer_frozen(y.trainer)[i], dp_trainer_frozen(x.trainer)[i] / 4));
    }
    CHECK(moved[0] != 0 && close_to(moved[1], moved[0] / 4));
    test_free(own);
    node_close(&other);
    node_close(&x);
    node_close(&y);
}

/* Displacement that is frozen or open: theta - x while nothing is pending. */
static double displacement(const node *x, size_t i)
{
    return (double)dp_trainer_theta(x->trainer)[i] - (double)dp_trainer_params(x->trainer)[i];
}

static void an_exchange_conserves_weighted_frozen_work(void **state)
{
    (void)state;
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node y = node_open(2, DP_CODEC_SPARSE, 950, 0);
    node_train(&x, 3);
    node_train(&y, 2);
    dp_view blob;
    dp_view f;
    CHECK_OK(dp_trainer_freeze(x.trainer, &blob, &f));
    uint8_t *const blob_x = copy_bytes(blob);
    const dp_view view_x = dp_view_of(blob_x, blob.size);
    CHECK_OK(dp_trainer_freeze(y.trainer, &blob, &f));
    const dp_view view_y = blob;
    float *const f_x = node_copy(dp_trainer_frozen(x.trainer), x.n);
    float *const f_y = node_copy(dp_trainer_frozen(y.trainer), y.n);
    node_train(&x, 1); /* open work during the exchange stays where it is */
    float *const open = test_malloc(x.n * sizeof *open);
    for (size_t i = 0; i < x.n; i++) {
        CHECK(displacement(&y, i) == (double)f_y[i] ||
              close_to(displacement(&y, i), (double)f_y[i]));
        open[i] = (float)(displacement(&x, i) - (double)f_x[i]);
    }
    const uint64_t weights_x[2] = {700, 300};
    const uint64_t weights_y[2] = {300, 700};
    const dp_view blobs_x[2] = {view_x, view_y};
    const dp_view blobs_y[2] = {view_y, view_x};
    double moved_x;
    double moved_y;
    CHECK_OK(dp_trainer_mix(x.trainer, weights_x, blobs_x, ONE, &moved_x));
    CHECK_OK(dp_trainer_mix(y.trainer, weights_y, blobs_y, ONE, &moved_y));
    double change = 0;
    for (size_t i = 0; i < x.n; i++) {
        const double g_x = (double)dp_trainer_frozen(x.trainer)[i];
        const double g_y = (double)dp_trainer_frozen(y.trainer)[i];
        CHECK(fabs(700 * (g_x - (double)f_x[i]) + 300 * (g_y - (double)f_y[i])) < 1e-5);
        CHECK(close_to(displacement(&x, i), g_x + (double)open[i]));
        CHECK(close_to(displacement(&y, i), g_y));
        change += fabs(g_x - (double)f_x[i]);
    }
    CHECK(change > 0 && fabs(moved_x + moved_y) < 1e-4);
    const uint64_t nothing[2] = {0, 0};
    CHECK_OK(dp_trainer_mix(x.trainer, nothing, blobs_x, ONE, &moved_x));
    CHECK(moved_x == 0);
    test_free(blob_x);
    test_free(f_x);
    test_free(f_y);
    test_free(open);
    node_close(&x);
    node_close(&y);
}

static void frozen_work_joins_the_next_publication_and_comes_back_after_a_restart(void **state)
{
    (void)state;
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node_train(&x, 2);
    dp_view blob;
    dp_view f;
    CHECK_OK(dp_trainer_freeze(x.trainer, &blob, &f));
    node y = node_open(1, DP_CODEC_SPARSE, 950, 0);
    const dp_trainer_progress done = dp_trainer_progress_of(x.trainer);
    const dp_trainer_earlier earlier = {.kind = DP_RESTORE_FROZEN,
                                        .lambda = ONE,
                                        .steps = done.steps,
                                        .tokens = done.tokens,
                                        .a = f};
    CHECK_OK(dp_trainer_restore(y.trainer, &earlier));
    CHECK(dp_trainer_progress_of(y.trainer).steps == 2 && done.tokens > 0);
    CHECK(dp_trainer_progress_of(y.trainer).tokens == done.tokens);
    CHECK(dp_trainer_progress_of(y.trainer).loss == 0);
    node z = node_open(1, DP_CODEC_SPARSE, 950, 0);
    CHECK_OK(dp_trainer_restore(z.trainer, &earlier));
    node_train(&z, 1);
    CHECK(dp_trainer_progress_of(z.trainer).steps == 3);
    CHECK(dp_trainer_progress_of(z.trainer).loss > done.loss / 2); /* of the one that was seen */
    node_close(&z);
    CHECK(memcmp(dp_trainer_frozen(x.trainer), dp_trainer_frozen(y.trainer), 4 * x.n) == 0);
    publication from_x = publish(&x, true);
    publication from_y = publish(&y, true);
    dp_codec codec;
    uint64_t elements;
    CHECK_OK(dp_codec_peek(from_x.blob, &codec, &elements));
    CHECK(codec.kind == DP_CODEC_INT8 && elements == x.n);
    float *const a = test_malloc(2 * 4 * x.n);
    CHECK_OK(dp_floats_read(from_x.a, a, x.n));
    CHECK_OK(dp_floats_read(from_y.a, a + x.n, x.n));
    for (size_t i = 0; i < x.n; i++) {
        CHECK(close_to(a[i], a[x.n + i]));
        CHECK(dp_trainer_frozen(x.trainer)[i] == 0);
    }
    test_free(a);
    drop(&from_x);
    drop(&from_y);
    node_close(&x);
    node_close(&y);
}

static void lambda_scales_every_work_buffer(void **state)
{
    (void)state;
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node_train(&x, 2);
    publication p = publish(&x, false);
    node_train(&x, 1);
    dp_view blob;
    dp_view f;
    CHECK_OK(dp_trainer_freeze(x.trainer, &blob, &f));
    float *const frozen = node_copy(dp_trainer_frozen(x.trainer), x.n);
    dp_trainer_record record = record_of(5, DP_SETTLE_LEFT_OUT, NULL, 0);
    record.lambda = ONE / 2;
    CHECK_OK(dp_trainer_apply(x.trainer, &record));
    float *const a = test_malloc(4 * x.n);
    CHECK_OK(dp_floats_read(p.a, a, x.n));
    for (size_t i = 0; i < x.n; i++) {
        CHECK(dp_trainer_feedback(x.trainer)[i] == 0.5F * a[i]);
        CHECK(dp_trainer_frozen(x.trainer)[i] == 0.5F * frozen[i]);
        CHECK(close_to(displacement(&x, i), 0.5 * (double)frozen[i]));
    }
    test_free(frozen);
    test_free(a);
    drop(&p);
    node_close(&x);
}

static void a_record_that_cannot_be_applied_changes_nothing(void **state)
{
    (void)state;
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node_train(&x, 1);
    publication p = publish(&x, false);
    node_train(&x, 1);
    float *const theta = node_copy(dp_trainer_theta(x.trainer), x.n);
    float *const params = node_copy(dp_trainer_params(x.trainer), x.n);
    const dp_view cut = dp_view_of(p.blob.data, p.blob.size - 1);
    const dp_trainer_record bad = record_of(1, DP_SETTLE_INCLUDED, &cut, 1);
    CHECK_STATUS(dp_trainer_apply(x.trainer, &bad), DP_BADMSG);
    CHECK(memcmp(theta, dp_trainer_theta(x.trainer), 4 * x.n) == 0);
    CHECK(memcmp(params, dp_trainer_params(x.trainer), 4 * x.n) == 0);
    CHECK(dp_trainer_round(x.trainer) == 0);
    const dp_trainer_record good = record_of(1, DP_SETTLE_INCLUDED, &p.blob, 1);
    CHECK_OK(dp_trainer_apply(x.trainer, &good));
    CHECK_STATUS(dp_trainer_apply(x.trainer, &good), DP_BADARG); /* nothing is pending any more */
    CHECK_STATUS(dp_trainer_load(x.trainer, 1, p.a), DP_BADMSG);
    CHECK(dp_trainer_round(x.trainer) == 1);
    test_free(theta);
    test_free(params);
    drop(&p);
    node_close(&x);
}

static void looking_at_theta_leaves_training_alone(void **state)
{
    (void)state;
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    node_train(&x, 2);
    float *const params = node_copy(dp_trainer_params(x.trainer), x.n);
    float *const theta = node_copy(dp_trainer_theta(x.trainer), x.n);
    dp_trainer_score all;
    dp_trainer_score some;
    CHECK_OK(dp_trainer_eval(x.trainer, NULL, 0, &all));
    CHECK_OK(dp_trainer_eval(x.trainer, NULL, 1, &some));
    CHECK(some.tokens == TINY_CONTEXT && all.tokens > some.tokens && all.bits_per_byte > 0);
    dp_buf text;
    dp_buf_init(&text, BUF_MAX);
    const dp_sampler sampler = {.temperature = 1.0F, .seed = 1};
    CHECK_OK(dp_trainer_sample(x.trainer, &sampler, "", 50, &text));
    CHECK(text.size > 0 && memchr(text.data, 0, text.size) == NULL);
    dp_buf_close(&text);
    CHECK(memcmp(params, dp_trainer_params(x.trainer), 4 * x.n) == 0);
    CHECK(memcmp(theta, dp_trainer_theta(x.trainer), 4 * x.n) == 0);
    test_free(params);
    test_free(theta);
    node_close(&x);
}

static dp_status open_and_close(void *context)
{
    const tiny_run *const run = context;
    const dp_trainer_setup setup = {.manifest = dp_view_of(run->manifest, run->manifest_size),
                                    .tokenizer = dp_buf_view(&run->tokenizer),
                                    .shards = (dp_view[]){dp_buf_view(&run->data)},
                                    .n_shards = 1,
                                    .threads = 1};
    dp_trainer *trainer;
    DP_TRY(dp_trainer_open(&trainer, &setup, NULL));
    CHECK_OK(dp_trainer_init(trainer));
    dp_view blob;
    dp_view a;
    const dp_status status = dp_trainer_publish(trainer, true, &blob, &a);
    dp_trainer_close(trainer);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_open(&run, DP_CODEC_SPARSE, 950);
    CHECK(fail_each_allocation(open_and_close, &run) > 10);
    tiny_run_close(&run);
}

static void a_gradient_that_is_not_finite_costs_one_step(void **state)
{
    (void)state;
    node x = node_open(1, DP_CODEC_SPARSE, 950, 0);
    dp_view bytes;
    dp_hash root;
    CHECK_OK(dp_trainer_state_bytes(x.trainer, &bytes, &root));
    uint8_t *const broken = copy_bytes(bytes);
    const float huge = 1e38F;
    for (size_t i = 0; i < x.n; i++) {
        memcpy(broken + DP_STATE_HEADER_BYTES + 4 * i, &huge, sizeof huge);
    }
    CHECK_OK(dp_trainer_load(x.trainer, 0, dp_view_of(broken, bytes.size)));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(dp_trainer_work(x.trainer));
    }
    const dp_trainer_progress done = dp_trainer_progress_of(x.trainer);
    CHECK(done.skipped > 0 && done.steps == 0 && done.tokens == 0 && done.loss == 0);
    test_free(broken);
    node_close(&x);
}

static void a_safetensors_file_lays_tensors_end_to_end(void **state)
{
    (void)state;
    const dp_model_config config = {
        .layers = 1, .width = 8, .heads = 2, .context = 8, .vocab = 257};
    dp_model model;
    CHECK_OK(dp_model_open(&model, &config, NULL));
    float *const theta = test_calloc(model.n_elements, sizeof *theta);
    const dp_tensor *const last = &model.tensors[model.n_tensors - 1];
    theta[last->offset + last->elements - 1] = 1;
    dp_buf out;
    dp_buf_init(&out, BUF_MAX);
    CHECK_OK(dp_safetensors_write(&model, theta, &out));
    dp_reader reader = dp_reader_of(dp_buf_view(&out));
    const uint64_t header = dp_read_u64(&reader);
    CHECK(header % 8 == 0 && out.size == 8 + header + 4 * model.n_parameters);
    CHECK(out.data[8] == '{' && out.data[out.size - 1] == 0x3f);
    static const char entry[] = "\"transformer.wpe.weight\":{\"dtype\":\"F32\",\"shape\":[8,8],"
                                "\"data_offsets\":[8224,8480]}";
    CHECK(memmem(out.data, out.size, entry, sizeof entry - 1) != NULL);
    dp_buf_close(&out);
    test_free(theta);
    dp_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thirty_steps_lower_the_loss),
        cmocka_unit_test(training_is_the_same_twice_and_differs_between_members),
        cmocka_unit_test(an_included_publication_leaves_what_the_codec_dropped),
        cmocka_unit_test(left_out_work_goes_into_the_next_publication_whole),
        cmocka_unit_test(after_one_loss_a_publication_is_twice_as_dense_and_after_two_as_ever),
        cmocka_unit_test(training_while_a_publication_is_pending_survives_the_record),
        cmocka_unit_test(a_restored_node_has_the_feedback_that_it_would_have_had),
        cmocka_unit_test(a_settlement_that_is_brought_back_twice_is_one),
        cmocka_unit_test(work_that_is_restored_late_has_less_weight),
        cmocka_unit_test(frozen_work_that_is_restored_late_is_worth_less_and_so_is_its_exchange),
        cmocka_unit_test(an_exchange_conserves_weighted_frozen_work),
        cmocka_unit_test(frozen_work_joins_the_next_publication_and_comes_back_after_a_restart),
        cmocka_unit_test(lambda_scales_every_work_buffer),
        cmocka_unit_test(a_record_that_cannot_be_applied_changes_nothing),
        cmocka_unit_test(looking_at_theta_leaves_training_alone),
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(a_gradient_that_is_not_finite_costs_one_step),
        cmocka_unit_test(a_safetensors_file_lays_tensors_end_to_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
