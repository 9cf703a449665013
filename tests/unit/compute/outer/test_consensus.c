#include "tests/lib/check.h"

#include <math.h>

#include "base/rng.h"
#include "compute/codec/codec.h"
#include "compute/codec/feedback.h"
#include "compute/outer/consensus.h"

static const dp_outer plain = {.alpha = 65536};

enum { N = 9001, BLOB_MAX = 1 << 20, ITEMS = DP_CODEC_COUNT };

static void fill(float *a, size_t n, uint64_t seed)
{
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        a[i] = ((float)dp_rng_below(&rng, 2000001) - 1e6F) * 1e-8F;
    }
}

static dp_buf encoded(dp_codec_kind kind, const float *a, size_t n)
{
    const dp_codec codec = dp_codec_default(kind);
    dp_buf blob;
    dp_buf_init(&blob, BLOB_MAX);
    CHECK_OK(dp_codec_encode(&codec, a, n, &blob));
    return blob;
}

/* Updates of as many contributors as there are codecs, each by another one. */
typedef struct round_fixture {
    dp_buf blobs[ITEMS];
    dp_view views[ITEMS];
    float theta[N];
    float decoded[ITEMS][N];
} round_fixture;

static round_fixture *open_round(void)
{
    round_fixture *const r = test_calloc(1, sizeof *r);
    size_t count = 0;
    const dp_codec_row *const rows = dp_codec_rows(&count);
    CHECK(count == ITEMS);
    for (size_t i = 0; i < ITEMS; i++) {
        float a[N];
        fill(a, N, 10 + i);
        r->blobs[i] = encoded(rows[i].kind, a, N);
        r->views[i] = dp_buf_view(&r->blobs[i]);
        CHECK_OK(dp_codec_decode(r->views[i], r->decoded[i], N));
    }
    fill(r->theta, N, 99);
    return r;
}

static void close_round(round_fixture *r)
{
    for (size_t i = 0; i < ITEMS; i++) {
        dp_buf_close(&r->blobs[i]);
    }
    test_free(r);
}

static void the_outer_step_equals_the_plain_loop_bit_for_bit(void **state)
{
    (void)state;
    round_fixture *const r = open_round();
    static const uint32_t q[ITEMS] = {400000001, 300000003, 500000005, 47483639, 123456789};
    const uint32_t alpha = 65536 * 9 / 10;
    float expected[N];
    for (size_t i = 0; i < N; i++) {
        volatile float acc = 0;
        for (size_t j = 0; j < ITEMS; j++) {
            const volatile float f = (float)q[j] * 0x1p-31F;
            const volatile float product = f * r->decoded[j][i];
            acc = acc + product;
        }
        const volatile float step = (float)alpha * 0x1p-16F * acc;
        expected[i] = r->theta[i] - step;
    }
    CHECK_OK(dp_consensus_apply(r->theta, NULL, N,
                                &(dp_consensus_items){.blobs = r->views, .q = q, .n = ITEMS},
                                &(dp_outer){.alpha = alpha}, NULL));
    CHECK(memcmp(r->theta, expected, sizeof expected) == 0);
    close_round(r);
}

/* The outer step as consensus.h defines it, every operation by itself. */
static dp_outer_seen plain_nesterov(const round_fixture *r, const uint32_t *q,
                                    const dp_outer *outer, float *theta, float *m)
{
    static float g[N];
    const volatile float mu = (float)outer->mu * 0x1p-16F;
    const double alpha = (double)outer->alpha * 0x1p-16;
    dp_outer_seen seen = {.in_m = 1};
    double sums[3] = {0};
    for (size_t start = 0; start < N; start += DP_CODEC_RUN) {
        double run[3] = {0};
        for (size_t i = start; i < N && i < start + DP_CODEC_RUN; i++) {
            volatile float acc = 0;
            for (size_t j = 0; j < ITEMS; j++) {
                const volatile float f = (float)q[j] * 0x1p-31F;
                const volatile float product = f * r->decoded[j][i];
                acc = acc + product;
            }
            g[i] = acc;
            const volatile float kept = mu * m[i];
            const volatile float next = kept + g[i];
            run[0] += (double)next * (double)g[i];
            run[1] += (double)g[i] * (double)g[i];
            run[2] += (double)m[i] * (double)m[i];
        }
        for (size_t i = 0; i < 3; i++) {
            sums[i] += run[i];
        }
    }
    if (outer->long_once && sums[2] > 0 && sums[1] > sums[2]) {
        seen.in_m = (float)sqrt(sums[2] / sums[1]);
        seen.once = (1 - seen.in_m) * (float)fmin(1, alpha / (1 - (double)mu));
    }
    const double s = (double)seen.in_m;
    const double u = s * s * sums[1];
    const double along = s < 1 ? s * (sums[0] - sums[1]) + u : sums[0];
    seen.reach = 1 + (double)mu * (along / u);
    seen.eta = (float)(alpha * seen.reach > 1.5 ? 1.5 / seen.reach : alpha);
    for (size_t i = 0; i < N; i++) {
        const volatile float in_m = seen.in_m * g[i];
        const volatile float kept = mu * m[i];
        m[i] = kept + in_m;
        const volatile float ahead = mu * m[i];
        const volatile float sum = in_m + ahead;
        const volatile float moved = seen.eta * sum;
        const volatile float once = seen.once * g[i];
        const volatile float step = moved + once;
        theta[i] = theta[i] - step;
    }
    return seen;
}

static void momentum_is_nesterovs_bit_for_bit(void **state)
{
    (void)state;
    round_fixture *const r = open_round();
    static const uint32_t q[ITEMS] = {700000001, 500000003, 900000005, 47483639};
    const dp_outer outer = {.alpha = 65536 * 7 / 10, .mu = 65536 * 9 / 10, .long_once = true};
    static float theta[N];
    static float m[N];
    static float expected_m[N];
    memcpy(theta, r->theta, sizeof theta);
    memset(m, 0, sizeof m);
    memset(expected_m, 0, sizeof expected_m);
    dp_outer_seen seen[4];
    for (int round = 0; round < 4; round++) {
        const dp_outer_seen plainly = plain_nesterov(r, q, &outer, r->theta, expected_m);
        CHECK_OK(dp_consensus_apply(theta, m, N,
                                    &(dp_consensus_items){.blobs = r->views, .q = q, .n = ITEMS},
                                    &outer, &seen[round]));
        CHECK(seen[round].eta == plainly.eta && seen[round].in_m == 1 && seen[round].once == 0);
        CHECK(memcmp(theta, r->theta, sizeof theta) == 0);
        CHECK(memcmp(m, expected_m, sizeof m) == 0);
    }
    /* Repeating one update makes the reach 1 + mu + mu^2 + ...: the step is shortened to the
     * bound. */
    CHECK(fabs(seen[0].reach - 1.9) < 1e-4 && fabs(seen[1].reach - 2.71) < 1e-4);
    CHECK(seen[0].eta == (float)outer.alpha * 0x1p-16F && seen[3].eta < seen[1].eta);
    CHECK(fabs((double)seen[3].eta * seen[3].reach - DP_OUTER_REACH_MAX) < 1e-6);
    close_round(r);
}

static double length_of(const float *x)
{
    double square = 0;
    for (size_t i = 0; i < N; i++) {
        square += (double)x[i] * (double)x[i];
    }
    return sqrt(square);
}

/* As after a time of pairwise averaging: the work of a hundred rounds in one update. */
static void
a_long_update_moves_the_model_once_and_momentum_by_the_length_of_usual_ones(void **state)
{
    (void)state;
    round_fixture *const r = open_round();
    static const uint32_t usual[ITEMS] = {7000000, 5000000, 9000000, 400000};
    static const uint32_t all[ITEMS] = {700000000, 500000000, 900000000, 40000000};
    const dp_consensus_items items = {.blobs = r->views, .q = usual, .n = ITEMS};
    const dp_consensus_items longer = {.blobs = r->views, .q = all, .n = ITEMS};
    const dp_outer outer = {.alpha = 65536 / 2, .mu = 65536 * 8 / 10, .long_once = true};
    static float theta[N];
    static float m[N];
    static float expected_m[N];
    static float moved[N];
    static float g[N];
    memcpy(theta, r->theta, sizeof theta);
    memset(m, 0, sizeof m);
    memset(expected_m, 0, sizeof expected_m);
    dp_outer_seen seen;
    CHECK_OK(dp_consensus_mean(g, N, &longer));
    for (int round = 0; round < 12; round++) {
        const bool is_long = round == 8;
        const dp_outer_seen plainly =
            plain_nesterov(r, is_long ? all : usual, &outer, r->theta, expected_m);
        memcpy(moved, theta, sizeof moved);
        const double momentum = length_of(m);
        CHECK_OK(dp_consensus_apply(theta, m, N, is_long ? &longer : &items, &outer, &seen));
        CHECK(memcmp(theta, r->theta, sizeof theta) == 0);
        CHECK(memcmp(m, expected_m, sizeof m) == 0);
        CHECK(seen.reach == plainly.reach && seen.eta == plainly.eta);
        CHECK(seen.in_m == plainly.in_m && seen.once == plainly.once);
        CHECK((seen.in_m < 1) == is_long);
        for (size_t i = 0; i < N; i++) {
            moved[i] -= theta[i];
        }
        if (is_long) {
            CHECK(fabs(length_of(moved) / length_of(g) - 1) < 0.05);
            CHECK(fabs((double)seen.in_m * length_of(g) / momentum - 1) < 1e-4);
            CHECK(length_of(m) < 0.1 * length_of(g));
        } else if (round > 8) { /* Without the bound it would be half of g. */
            CHECK(length_of(moved) < 0.1 * length_of(g));
        }
    }
    /* A run of an earlier version goes on as it began: momentum takes all of it. */
    const dp_outer earlier = {.alpha = outer.alpha, .mu = outer.mu};
    CHECK_OK(dp_consensus_apply(theta, m, N, &longer, &earlier, &seen));
    CHECK(seen.in_m == 1 && seen.once == 0 && length_of(m) > length_of(g));
    close_round(r);
}

/* Items of two parts with a gap, compared with an update that has the same numbers and zeros in the
 * gap. */
static void results_of_parts_move_what_one_update_with_their_numbers_does(void **state)
{
    (void)state;
    enum { LAST = 2 * DP_CODEC_RUN };
    static const uint32_t q[2] = {0x80000000U, 0x60000000U};
    static const uint32_t one = 0x80000000U;
    static const dp_part_place places[2] = {{.n = DP_CODEC_RUN},
                                            {.first = LAST, .n = N - (size_t)LAST}};
    const dp_codec codec = dp_codec_default(DP_CODEC_INT8);
    float a[N];
    float whole[N] = {0};
    dp_buf blobs[2];
    dp_view views[2];
    fill(a, N, 5);
    for (size_t i = 0; i < 2; i++) {
        const dp_consensus_items alone = {
            .blobs = &views[i], .q = &q[i], .places = &places[i], .n = 1};
        float g[N];
        dp_buf_init(&blobs[i], BLOB_MAX);
        CHECK_OK(dp_codec_header_at(&codec, places[i].first, places[i].n, &blobs[i]));
        CHECK_OK(
            dp_codec_append(&codec, a + places[i].first, places[i].first, places[i].n, &blobs[i]));
        views[i] = dp_buf_view(&blobs[i]);
        CHECK_OK(dp_consensus_mean(g, N, &alone));
        memcpy(whole + places[i].first, g + places[i].first, places[i].n * sizeof *g);
    }
    dp_buf joined = encoded(DP_CODEC_FP32, whole, N);
    const dp_view view = dp_buf_view(&joined);
    for (uint32_t mu = 0; mu <= 60000; mu += 60000) {
        const dp_outer outer = {.alpha = 50000, .mu = mu, .long_once = true};
        static float theta[2][N];
        static float m[2][N];
        dp_outer_seen seen[2];
        for (size_t i = 0; i < 2; i++) {
            fill(theta[i], N, 6);
            fill(m[i], N, 7);
        }
        CHECK_OK(dp_consensus_apply(
            theta[0], m[0], N,
            &(dp_consensus_items){.blobs = views, .q = q, .places = places, .n = 2}, &outer,
            &seen[0]));
        CHECK_OK(dp_consensus_apply(theta[1], m[1], N,
                                    &(dp_consensus_items){.blobs = &view, .q = &one, .n = 1},
                                    &outer, &seen[1]));
        CHECK(memcmp(theta[0], theta[1], sizeof theta[0]) == 0);
        CHECK(memcmp(m[0], m[1], sizeof m[0]) == 0);
        CHECK(seen[0].reach == seen[1].reach && seen[0].eta == seen[1].eta);
    }
    /* A blob for another place is reported. */
    CHECK_STATUS(dp_consensus_apply(whole, NULL, N,
                                    &(dp_consensus_items){.blobs = views, .q = q, .n = 2}, &plain,
                                    NULL),
                 DP_BADMSG);
    dp_buf_close(&joined);
    dp_buf_close(&blobs[1]);
    dp_buf_close(&blobs[0]);
}

static void a_round_without_contributions_keeps_the_momentum(void **state)
{
    (void)state;
    float theta = 2;
    float m = 3;
    const dp_outer outer = {.alpha = 65536, .mu = 65535};
    dp_outer_seen seen;
    CHECK_OK(dp_consensus_apply(
        &theta, &m, 1, &(dp_consensus_items){.blobs = NULL, .q = NULL, .n = 0}, &outer, &seen));
    CHECK(theta == 2 && m == 3 && seen.reach == 1);
}

static void a_momentum_that_leaves_the_floats_is_told(void **state)
{
    (void)state;
    const float one = 1;
    float theta = 0;
    float m = INFINITY;
    dp_buf blob = encoded(DP_CODEC_FP32, &one, 1);
    const dp_view view = dp_buf_view(&blob);
    static const uint32_t q = 0x80000000U;
    const dp_outer outer = {.alpha = 65536, .mu = 32768};
    CHECK_STATUS(dp_consensus_apply(&theta, &m, 1,
                                    &(dp_consensus_items){.blobs = &view, .q = &q, .n = 1}, &outer,
                                    NULL),
                 DP_DIVERGED);
    dp_buf_close(&blob);
}

static void the_order_of_contributors_matters_and_is_kept(void **state)
{
    (void)state;
    /* 1 + 2^-24 - 1 depends on the order in floats. */
    static const float values[3] = {1.0F, 0x1p-24F, -1.0F};
    static const size_t orders[2][3] = {{0, 1, 2}, {0, 2, 1}};
    static const uint32_t q[3] = {0x80000000U, 0x80000000U, 0x80000000U};
    float results[2];
    for (size_t o = 0; o < 2; o++) {
        dp_buf blobs[3];
        dp_view views[3];
        for (size_t i = 0; i < 3; i++) {
            blobs[i] = encoded(DP_CODEC_FP32, &values[orders[o][i]], 1);
            views[i] = dp_buf_view(&blobs[i]);
        }
        results[o] = 0;
        CHECK_OK(dp_consensus_apply(&results[o], NULL, 1,
                                    &(dp_consensus_items){.blobs = views, .q = q, .n = 3}, &plain,
                                    NULL));
        for (size_t i = 0; i < 3; i++) {
            dp_buf_close(&blobs[i]);
        }
    }
    CHECK(results[0] == 0 && results[1] == -0x1p-24F);
}

static void blobs_of_other_sizes_leave_theta_alone(void **state)
{
    (void)state;
    round_fixture *const r = open_round();
    static const uint32_t q[ITEMS] = {1};
    float before[N];
    memcpy(before, r->theta, sizeof before);
    CHECK_STATUS(dp_consensus_apply(r->theta, NULL, N - 1,
                                    &(dp_consensus_items){.blobs = r->views, .q = q, .n = ITEMS},
                                    &plain, NULL),
                 DP_BADMSG);
    CHECK_STATUS(dp_consensus_apply(r->theta, NULL, N,
                                    &(dp_consensus_items){
                                        .blobs = r->views, .q = q, .n = DP_CONSENSUS_ITEMS_MAX + 1},
                                    &plain, NULL),
                 DP_BADARG);
    CHECK_OK(dp_consensus_apply(
        r->theta, NULL, N, &(dp_consensus_items){.blobs = NULL, .q = NULL, .n = 0}, &plain, NULL));
    CHECK(memcmp(before, r->theta, sizeof before) == 0);
    r->views[2].size--; /* Not checked before: reported nevertheless. */
    CHECK_STATUS(dp_consensus_apply(r->theta, NULL, N,
                                    &(dp_consensus_items){.blobs = r->views, .q = q, .n = ITEMS},
                                    &plain, NULL),
                 DP_BADMSG);
    close_round(r);
}

static void a_theta_that_leaves_the_floats_is_told(void **state)
{
    (void)state;
    const float huge = -0x1p60F;
    float theta = 3e38F;
    dp_buf blob = encoded(DP_CODEC_FP32, &huge, 1);
    const dp_view view = dp_buf_view(&blob);
    const uint32_t q = UINT32_MAX;
    dp_status status = DP_OK;
    /* 2^62 is far below one unit of 3e38: nothing moves until alpha and q are at their largest. */
    status =
        dp_consensus_apply(&theta, NULL, 1, &(dp_consensus_items){.blobs = &view, .q = &q, .n = 1},
                           &(dp_outer){.alpha = UINT32_MAX}, NULL);
    CHECK(status == DP_OK && isfinite(theta));
    theta = INFINITY;
    CHECK_STATUS(dp_consensus_apply(&theta, NULL, 1,
                                    &(dp_consensus_items){.blobs = &view, .q = &q, .n = 1}, &plain,
                                    NULL),
                 DP_DIVERGED);
    dp_buf_close(&blob);
}

static void feedback_with_beta_one_loses_nothing(void **state)
{
    (void)state;
    /* The decoded part plus the part that was kept is the work that was done, whichever elements
     * the codec drops. Integers as floats: exact. */
    enum { ROUNDS = 6 };
    static float e[N];
    static float from[N];
    static float to[N];
    static float a[N];
    static float d[N];
    static double done[N];
    static double sent[N];
    memset(e, 0, sizeof e);
    memset(done, 0, sizeof done);
    memset(sent, 0, sizeof sent);
    dp_rng rng;
    dp_rng_init(&rng, 1);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < N; i++) {
            from[i] = (float)dp_rng_below(&rng, 100);
            to[i] = (float)dp_rng_below(&rng, 100);
            done[i] += (double)from[i] - (double)to[i];
        }
        CHECK_OK(dp_feedback_publish(a, e, from, to, N));
        if (round == 2) {
            memcpy(e, a, sizeof e); /* left out */
            continue;
        }
        dp_buf blob = encoded(DP_CODEC_SPARSE, a, N);
        CHECK_OK(dp_codec_decode(dp_buf_view(&blob), d, N));
        dp_feedback_included(e, a, d, 65536, 1, N);
        for (size_t i = 0; i < N; i++) {
            sent[i] += (double)d[i];
        }
        dp_buf_close(&blob);
    }
    for (size_t i = 0; i < N; i++) {
        /* Centroids have 11 bits and values stay below 1024, so all sums are multiples of 2^-9 and
         * exact. */
        CHECK(done[i] == sent[i] + (double)e[i]);
    }
}

static void a_clipped_publication_keeps_what_was_clipped(void **state)
{
    (void)state;
    const float a[3] = {4, -2, 1};
    const float d[3] = {4, 0, 0};
    float e[3];
    dp_feedback_included(e, a, d, 16384, 0.5F, 3);
    CHECK(e[0] == 1.5F && e[1] == -1 && e[2] == 0.5F);
    dp_feedback_scale(e, 32768, 3);
    CHECK(e[0] == 0.75F);
    dp_feedback_scale(e, 65536, 3);
    CHECK(e[0] == 0.75F && e[1] == -0.5F);
    dp_feedback_scale(e, 0, 3);
    CHECK(e[0] == 0 && e[1] == 0 && e[2] == 0 && !signbit(e[1]));
}

static void work_that_is_not_finite_is_not_published(void **state)
{
    (void)state;
    const float e[2] = {0, 0};
    const float from[2] = {1, (float)NAN};
    const float to[2] = {0, 0};
    float a[2];
    CHECK_STATUS(dp_feedback_publish(a, e, from, to, 2), DP_DIVERGED);
    CHECK_OK(dp_feedback_publish(a, e, from, to, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_outer_step_equals_the_plain_loop_bit_for_bit),
        cmocka_unit_test(momentum_is_nesterovs_bit_for_bit),
        cmocka_unit_test(
            a_long_update_moves_the_model_once_and_momentum_by_the_length_of_usual_ones),
        cmocka_unit_test(results_of_parts_move_what_one_update_with_their_numbers_does),
        cmocka_unit_test(a_round_without_contributions_keeps_the_momentum),
        cmocka_unit_test(a_momentum_that_leaves_the_floats_is_told),
        cmocka_unit_test(the_order_of_contributors_matters_and_is_kept),
        cmocka_unit_test(blobs_of_other_sizes_leave_theta_alone),
        cmocka_unit_test(a_theta_that_leaves_the_floats_is_told),
        cmocka_unit_test(feedback_with_beta_one_loses_nothing),
        cmocka_unit_test(a_clipped_publication_keeps_what_was_clipped),
        cmocka_unit_test(work_that_is_not_finite_is_not_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
