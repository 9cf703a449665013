/* The error of codecs, without and with error feedback, in float64. */
#include "tests/lib/check.h"

#include <math.h>

#include "base/rng.h"
#include "compute/codec/codec.h"
#include "compute/codec/feedback.h"

enum { N = 3 * DP_CODEC_RUN + 500, BLOB_MAX = 1 << 20, ROUNDS = 30 };

/* The share of |a| that a codec may leave over, for any vector (worst) and for bell-shaped ones
 * (bell). For sparse the worst share is that of the elements that are not sent, sqrt(1 - 1 / keep);
 * a bell-shaped vector keeps more of itself, and the two magnitudes cost little. */
static const struct {
    dp_codec codec;
    double worst;
    double bell;
} codecs[] = {
    {{.kind = DP_CODEC_FP32}, 0, 0},
    {{.kind = DP_CODEC_BF16}, 0.004, 0.0018},
    {{.kind = DP_CODEC_INT8, .block = 256}, 0.063, 0.008},
    {{.kind = DP_CODEC_INT4, .block = 64}, 0.58, 0.115},
    {{.kind = DP_CODEC_SPARSE, .keep = 16, .bits = 2}, 0.9683, 0.84},
    {{.kind = DP_CODEC_SPARSE, .keep = 64, .bits = 2}, 0.9922, 0.95},
    {{.kind = DP_CODEC_SPARSE, .keep = 64, .bits = 1}, 0.9922, 0.95},
};
enum { N_CODECS = sizeof codecs / sizeof codecs[0] };

static void bell(float *a, size_t n, uint64_t seed)
{
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        int64_t sum = 0;
        for (int j = 0; j < 12; j++) {
            sum += (int64_t)dp_rng_below(&rng, 1024);
        }
        a[i] = (float)(sum - 6138) * 1e-6F;
    }
}

static double norm_of(const float *a, const float *d, size_t n)
{
    long double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const long double rest = (long double)a[i] - (d == NULL ? 0 : (long double)d[i]);
        sum += rest * rest;
    }
    return (double)sqrtl(sum);
}

/* d, and |a - d| / |a|. */
static double code(const dp_codec *codec, const float *a, float *d)
{
    dp_buf blob;
    dp_buf_init(&blob, BLOB_MAX);
    CHECK_OK(dp_codec_encode(codec, a, N, &blob));
    CHECK_OK(dp_codec_decode(dp_buf_view(&blob), d, N));
    const double norms[2] = {norm_of(a, NULL, N), norm_of(a, d, N)};
    double told[2];
    CHECK_OK(dp_codec_error(dp_buf_view(&blob), a, N, &told[0], &told[1]));
    CHECK(fabs(told[0] - norms[0]) <= 1e-12 * norms[0]);
    CHECK(fabs(told[1] - norms[1]) <= 1e-12 * norms[0]);
    dp_buf_close(&blob);
    return norms[1] / norms[0];
}

static void errors_stay_below_what_the_codec_promises(void **state)
{
    (void)state;
    static float a[N];
    static float d[N];
    for (size_t c = 0; c < N_CODECS; c++) {
        for (uint64_t seed = 1; seed <= 3; seed++) {
            bell(a, N, seed);
            CHECK(code(&codecs[c].codec, a, d) <= codecs[c].bell);
        }
        /* Nearly all in few elements. */
        for (size_t i = 0; i < N; i += 64) {
            a[i] *= 1000;
        }
        CHECK(code(&codecs[c].codec, a, d) <= codecs[c].worst);
    }
}

static void the_residual_is_orthogonal_to_the_sent_vector(void **state)
{
    (void)state;
    /* Least squares: centroids are the best for their codes, but for the rounding to a half. */
    static const dp_codec best[] = {{.kind = DP_CODEC_SPARSE, .keep = 32, .bits = 1},
                                    {.kind = DP_CODEC_SPARSE, .keep = 128, .bits = 2}};
    static float a[N];
    static float d[N];
    bell(a, N, 7);
    for (size_t c = 0; c < sizeof best / sizeof best[0]; c++) {
        code(&best[c], a, d);
        double along = 0;
        for (size_t i = 0; i < N; i++) {
            along += ((double)a[i] - (double)d[i]) * (double)d[i];
        }
        const double sent = norm_of(d, NULL, N);
        CHECK(fabs(along) <= 0x1p-11 * sent * sent);
    }
}

/* The sum of all work less the sum of all sent vectors is e, and e stays within q / (1 - q) of one
 * round's work (Karimireddy et al. 2019, lemma 3), where q is the largest relative error of the
 * codec. beta is 1. */
static void check_feedback(size_t c)
{
    static float e[N];
    static float a[N];
    static float d[N];
    static float to[N];
    static const float from[N];
    static double owed[N];
    memset(e, 0, sizeof e);
    memset(owed, 0, sizeof owed);
    double work = 0;
    double largest = 0; /* q so far */
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        bell(to, N, 100 * c + round);
        work = fmax(work, norm_of(to, NULL, N));
        CHECK_OK(dp_feedback_publish(a, e, from, to, N));
        const double share = code(&codecs[c].codec, a, d);
        CHECK(share <= codecs[c].worst);
        largest = fmax(largest, share);
        dp_feedback_included(e, a, d, 65536, 1, N);
        double apart = 0;
        for (size_t i = 0; i < N; i++) {
            owed[i] += (double)from[i] - (double)to[i] - (double)d[i];
            const double off = fabs(owed[i] - (double)e[i]);
            apart = off > apart ? off : apart; /* Not fmax(): gcc 12 for arm64 breaks down. */
        }
        CHECK(apart <= 1e-6 * work);
        CHECK(norm_of(e, NULL, N) <= largest / (1 - largest) * work * 1.001 + 1e-9);
    }
}

static void error_feedback_keeps_the_debt_bounded(void **state)
{
    (void)state;
    for (size_t c = 0; c < N_CODECS; c++) {
        check_feedback(c);
    }
}

static void the_error_of_a_blob_that_lies_is_a_status(void **state)
{
    (void)state;
    static float a[N];
    bell(a, N, 2);
    const dp_codec codec = dp_codec_default(DP_CODEC_SPARSE);
    dp_buf blob;
    dp_buf_init(&blob, BLOB_MAX);
    CHECK_OK(dp_codec_encode(&codec, a, N, &blob));
    double norm = 7;
    double error = 8;
    const dp_view cut = dp_view_of(blob.data, blob.size - 1);
    CHECK_STATUS(dp_codec_error(cut, a, N, &norm, &error), DP_BADMSG);
    CHECK_STATUS(dp_codec_error(dp_buf_view(&blob), a, N - 1, &norm, &error), DP_BADMSG);
    CHECK(norm == 7 && error == 8);
    dp_buf_close(&blob);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_stay_below_what_the_codec_promises),
        cmocka_unit_test(the_residual_is_orthogonal_to_the_sent_vector),
        cmocka_unit_test(error_feedback_keeps_the_debt_bounded),
        cmocka_unit_test(the_error_of_a_blob_that_lies_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
