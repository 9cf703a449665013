#include "compute/codec/alignment.h"

#include "base/alloc.h"
#include "tests/unit/compute/update_kit.h"

static float a[UPDATE_N];
static float b[UPDATE_N];
static float d[UPDATE_N];

/* Two vectors with something in common. */
static void make_vectors(void)
{
    memset(a, 0, sizeof a);
    update_add(a, UPDATE_N, 1, 1);
    memcpy(b, a, sizeof b);
    update_add(b, UPDATE_N, 2, 2);
}

static double cosine_of(const float *x, const float *y)
{
    long double along = 0;
    long double xx = 0;
    long double yy = 0;
    for (size_t i = 0; i < UPDATE_N; i++) {
        along += (long double)x[i] * (long double)y[i];
        xx += (long double)x[i] * (long double)x[i];
        yy += (long double)y[i] * (long double)y[i];
    }
    return (double)(along / sqrtl(xx) / sqrtl(yy));
}

static double aligned(const dp_alignment *own, const dp_codec *codec, const float *x)
{
    double cosine = 7;
    dp_buf blob = update_blob(codec, x, UPDATE_N);
    CHECK_OK(dp_alignment_cosine(own, dp_buf_view(&blob), &cosine));
    CHECK_OK(dp_codec_decode(dp_buf_view(&blob), d, UPDATE_N));
    dp_buf_close(&blob);
    return cosine;
}

static void the_cosine_is_that_of_the_decoded_update_by_every_codec(void **state)
{
    (void)state;
    dp_alignment own = {0};
    make_vectors();
    CHECK_OK(dp_alignment_set(&own, a, UPDATE_N));
    for (size_t i = 0; i < UPDATE_CODECS; i++) {
        const double cosine = aligned(&own, &update_codecs[i], b);
        /* bfloat16 keeps 8 bits, and its errors have no direction. */
        CHECK(fabs(cosine - cosine_of(a, d)) < 2e-4);
        CHECK(cosine > 0.05 && cosine < 0.5);
    }
    dp_alignment_close(&own);
}

static void the_own_update_is_one_and_its_opposite_minus_one(void **state)
{
    (void)state;
    const dp_codec exact = {.kind = DP_CODEC_FP32};
    dp_alignment own = {0};
    make_vectors();
    CHECK_OK(dp_alignment_set(&own, a, UPDATE_N));
    CHECK(aligned(&own, &exact, a) > 0.99999);
    update_scale(a, UPDATE_N, -3);
    CHECK(aligned(&own, &exact, a) < -0.99999);
    dp_alignment_close(&own);
}

static void nothing_is_aligned_with_nothing(void **state)
{
    (void)state;
    const dp_codec exact = {.kind = DP_CODEC_FP32};
    static const float zero[UPDATE_N];
    dp_alignment own = {0};
    make_vectors();
    CHECK_OK(dp_alignment_set(&own, a, UPDATE_N));
    CHECK(aligned(&own, &exact, zero) == 0);
    CHECK_OK(dp_alignment_set(&own, zero, UPDATE_N));
    CHECK(own.has && aligned(&own, &exact, a) == 0);
    dp_alignment_close(&own);
}

static void the_newest_reference_counts_and_none_is_left_of_a_bad_one(void **state)
{
    (void)state;
    const dp_codec exact = {.kind = DP_CODEC_FP32};
    dp_alignment own = {0};
    make_vectors();
    dp_alloc_fail_after(1);
    CHECK_STATUS(dp_alignment_set(&own, a, UPDATE_N), DP_NOMEM);
    dp_alloc_fail_after(0);
    CHECK(!own.has);
    CHECK_OK(dp_alignment_set(&own, a, UPDATE_N));
    CHECK_OK(dp_alignment_set(&own, b, UPDATE_N));
    CHECK(aligned(&own, &exact, b) > 0.99999);
    const float kept = a[5];
    a[5] = NAN;
    CHECK_STATUS(dp_alignment_set(&own, a, UPDATE_N), DP_DIVERGED);
    CHECK(!own.has);
    a[5] = kept;
    CHECK_OK(dp_alignment_set(&own, a, UPDATE_N));
    CHECK(own.has);
    dp_alignment_forget(&own);
    CHECK(!own.has);
    dp_alignment_close(&own);
    dp_alignment_close(&own);
}

static void a_damaged_blob_gives_a_status(void **state)
{
    (void)state;
    dp_alignment own = {0};
    double cosine = 7;
    make_vectors();
    CHECK_OK(dp_alignment_set(&own, a, UPDATE_N));
    dp_buf blob = update_blob(&update_codecs[4], b, UPDATE_N);
    const dp_view bytes = dp_buf_view(&blob);
    CHECK_STATUS(dp_alignment_cosine(&own, dp_view_of(bytes.data, bytes.size - 1), &cosine),
                 DP_BADMSG);
    CHECK_STATUS(dp_alignment_cosine(&own, dp_view_of(bytes.data, 10), &cosine), DP_BADMSG);
    CHECK(cosine == 7);
    dp_buf_close(&blob);
    dp_alignment_close(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cosine_is_that_of_the_decoded_update_by_every_codec),
        cmocka_unit_test(the_own_update_is_one_and_its_opposite_minus_one),
        cmocka_unit_test(nothing_is_aligned_with_nothing),
        cmocka_unit_test(the_newest_reference_counts_and_none_is_left_of_a_bad_one),
        cmocka_unit_test(a_damaged_blob_gives_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
