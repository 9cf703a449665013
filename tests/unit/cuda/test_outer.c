/* Rounds on a card: every bit as the CPU's, for every codec. */
#include <math.h>

#include "base/trainer/trainer_msg.h"
#include "compute/codec/feedback.h"
#include "compute/cuda/outer.h"
#include "compute/outer/consensus.h"
#include "tests/unit/cuda/blob_kit.h"

_Static_assert((int)DP_CUDA_ITEMS_MAX == (int)DP_TRAINER_ITEMS_MAX, "kernels know the most");

static const size_t sizes[] = {1, 63, 4095, 4096, 4097, KIT_MOST};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void blobs_decode_to_the_same_bits(void **state)
{
    (void)state;
    static float a[KIT_MOST];
    static float wanted[KIT_MOST];
    static float got[KIT_MOST];
    const cudaStream_t stream = card_open();
    for (size_t c = 0; c < KIT_CODECS; c++) {
        const dp_codec codec = kit_codec(c);
        for (size_t s = 0; s < SIZES; s++) {
            const size_t n = sizes[s];
            kit_blob blob;
            kit_fill(a, n, (c + s) % KIT_SHAPES, 100 * c + s);
            kit_open(&blob, &codec, a, n);
            CHECK_OK(dp_codec_decode(dp_buf_view(&blob.bytes), wanted, n));
            float *const d = card_put(NULL, n * sizeof(float));
            CHECK_OK(dp_cuda_decode(d, n, &blob.there, stream));
            card_get(d, got, n * sizeof(float));
            kit_same(got, wanted, n, dp_codec_name(codec.kind));
            card_free(d);
            kit_close(&blob);
        }
    }
}

static void feedback_settles_to_the_same_bits(void **state)
{
    (void)state;
    static float a[KIT_MOST];
    static float d[KIT_MOST];
    static float e[KIT_MOST];
    const cudaStream_t stream = card_open();
    for (size_t c = 0; c < KIT_CODECS; c++) {
        const dp_codec codec = kit_codec(c);
        const size_t n = c % 2 == 0 ? KIT_MOST : 4097;
        const uint32_t clip = c % 3 == 0 ? 65536 : 40000;
        kit_blob blob;
        kit_fill(a, n, c % 2 == 0 ? 0 : 5, c); /* Signs of zeros count. */
        kit_open(&blob, &codec, a, n);
        CHECK_OK(dp_codec_decode(dp_buf_view(&blob.bytes), d, n));
        dp_feedback_included(e, a, d, clip, 0.95F, n);
        float *const there = card_put(a, n * sizeof(float));
        CHECK_OK(dp_cuda_settle(there, there, n, &blob.there, clip, 0.95F, stream));
        card_get(there, a, n * sizeof(float));
        kit_same(a, e, n, dp_codec_name(codec.kind));
        card_free(there);
        kit_close(&blob);
    }
}

enum { ITEMS = 5 };

typedef struct round {
    size_t n;
    kit_blob blobs[ITEMS];
    dp_view views[ITEMS];
    uint32_t q[ITEMS];
    dp_cuda_items items;
    float theta[KIT_MOST];
    float m[KIT_MOST];
    float *theta_there;
    float *m_there;
    uint32_t *bad;
} round_kit;

/* Contributors, each with another codec: of all in steps of three, or of those alone that keep all
 * elements. */
static void open_round_of(round_kit *r, size_t n, size_t first_codec, size_t of, size_t step)
{
    static float a[KIT_MOST];
    *r = (round_kit){.n = n};
    for (size_t i = 0; i < ITEMS; i++) {
        const dp_codec codec = kit_codec((first_codec + step * i) % of);
        kit_fill(a, n, i % 4, first_codec + i);
        kit_open(&r->blobs[i], &codec, a, n);
        r->views[i] = dp_buf_view(&r->blobs[i].bytes);
        r->q[i] = (uint32_t)(UINT32_C(0x80000000) / ITEMS + 12345 * i);
        r->items.blobs[i] = r->blobs[i].there;
        r->items.f[i] = (float)r->q[i] * 0x1p-31F;
    }
    r->items.count = ITEMS;
    kit_fill(r->theta, n, 0, 77);
    kit_fill(r->m, n, 2, 78);
    r->theta_there = card_put(r->theta, n * sizeof(float));
    r->m_there = card_put(r->m, n * sizeof(float));
    const uint32_t none = 0;
    r->bad = card_put(&none, sizeof none);
}

static void open_round(round_kit *r, size_t n, size_t first_codec)
{
    open_round_of(r, n, first_codec, KIT_CODECS, 3);
}

enum { DENSE = 6 /* of the kit's codecs, the first */ };

static void close_round(round_kit *r)
{
    for (size_t i = 0; i < ITEMS; i++) {
        kit_close(&r->blobs[i]);
    }
    card_free(r->bad);
    card_free(r->m_there);
    card_free(r->theta_there);
}

static uint32_t is_bad(const round_kit *r)
{
    uint32_t bad;
    card_get(r->bad, &bad, sizeof bad);
    return bad;
}

static void the_step_moves_theta_to_the_same_bits(void **state)
{
    (void)state;
    static round_kit r;
    static float got[KIT_MOST];
    const cudaStream_t stream = card_open();
    for (size_t turn = 0; turn < 2 * SIZES + DENSE; turn++) {
        if (turn < SIZES) {
            open_round(&r, sizes[turn], turn);
        } else if (turn < 2 * SIZES) {
            open_round_of(&r, sizes[turn - SIZES], turn, DENSE, 1);
            CHECK(r.items.blobs[0].keep + r.items.blobs[ITEMS - 1].keep == 0);
        } else { /* All the same. */
            open_round_of(&r, KIT_MOST, turn - 2 * SIZES, DENSE, 0);
            CHECK(r.items.blobs[0].kind == r.items.blobs[ITEMS - 1].kind);
        }
        card_order(turn);
        const dp_outer outer = {.alpha = 60000};
        CHECK_OK(
            dp_cuda_outer_plain(r.theta_there, r.n, &r.items, 60000 * 0x1p-16F, r.bad, stream));
        CHECK_OK(dp_consensus_apply(r.theta, NULL, r.n,
                                    &(dp_consensus_items){.blobs = r.views, .q = r.q, .n = ITEMS},
                                    &outer, NULL));
        card_get(r.theta_there, got, r.n * sizeof(float));
        kit_same(got, r.theta, r.n, "theta");
        CHECK(is_bad(&r) == 0);
        close_round(&r);
    }
    card_order(0);
}

static void momentum_and_its_reach_have_the_same_bits(void **state)
{
    (void)state;
    static round_kit r;
    static float got[KIT_MOST];
    const cudaStream_t stream = card_open();
    size_t n_long = 0;
    for (size_t turn = 0; turn < 2 * SIZES + DENSE; turn++) {
        if (turn < SIZES) {
            open_round(&r, sizes[turn], turn + 6);
        } else if (turn < 2 * SIZES) {
            open_round_of(&r, sizes[turn - SIZES], turn, DENSE, 1);
        } else { /* All the same. */
            open_round_of(&r, KIT_MOST, turn - 2 * SIZES, DENSE, 0);
        }
        const dp_outer outer = {.alpha = 45875, .mu = 58982, .long_once = true};
        const float mu = 58982 * 0x1p-16F;
        dp_outer_seen seen;
        double sums[KIT_RUNS][DP_CUDA_OUTER_SUMS];
        if (turn % 2 == 1) { /* Longer than the update. */
            for (size_t i = 0; i < r.n; i++) {
                r.m[i] *= 0x1p9F;
            }
            card_free(r.m_there);
            r.m_there = card_put(r.m, r.n * sizeof(float));
        }
        double *const sums_there = card_put(NULL, sizeof sums);
        CHECK_OK(dp_cuda_outer_measure(r.m_there, r.n, &r.items, mu, sums_there, stream));
        CHECK_OK(dp_consensus_apply(r.theta, r.m, r.n,
                                    &(dp_consensus_items){.blobs = r.views, .q = r.q, .n = ITEMS},
                                    &outer, &seen));
        card_get(sums_there, sums, sizeof sums);
        dp_outer_sums all = {0};
        for (size_t run = 0; run < dp_cuda_runs(r.n); run++) {
            all.along += sums[run][0];
            all.square += sums[run][1];
            all.kept += sums[run][2];
        }
        const dp_outer_seen told = dp_outer_step(&outer, &all);
        CHECK(seen.reach == told.reach && seen.in_m == told.in_m && seen.once == told.once);
        n_long += seen.in_m < 1 ? 1 : 0;
        const dp_cuda_nesterov step = {
            .mu = mu, .eta = seen.eta, .in_m = seen.in_m, .once = seen.once};
        CHECK_OK(
            dp_cuda_outer_nesterov(r.theta_there, r.m_there, r.n, &r.items, &step, r.bad, stream));
        card_get(r.theta_there, got, r.n * sizeof(float));
        kit_same(got, r.theta, r.n, "theta");
        card_get(r.m_there, got, r.n * sizeof(float));
        kit_same(got, r.m, r.n, "m");
        CHECK(is_bad(&r) == 0);
        card_free(sums_there);
        close_round(&r);
    }
    CHECK(n_long == SIZES + DENSE / 2);
}

/* Each codec's part of the last two of three runs, beside one of the whole. */
static void a_part_moves_its_own_range_to_the_same_bits(void **state)
{
    (void)state;
    enum { ALL = 2 * DP_CODEC_RUN + 99, FIRST = DP_CODEC_RUN };
    static round_kit r;
    static float a[ALL];
    static float got[ALL];
    _Static_assert((int)ALL <= (int)KIT_MOST, "it has room");
    const dp_part_place places[2] = {{.n = ALL}, {.first = FIRST, .n = ALL - FIRST}};
    const dp_outer outer = {.alpha = 60000};
    const cudaStream_t stream = card_open();
    for (size_t c = 0; c < KIT_CODECS; c++) {
        const dp_codec codec = kit_codec(c);
        uint64_t runs[KIT_RUNS + 1];
        dp_buf bytes;
        open_round(&r, ALL, c);
        kit_fill(a, ALL, 0, c);
        dp_buf_init(&bytes, dp_codec_bytes_max(&codec, ALL));
        CHECK_OK(dp_codec_header_at(&codec, FIRST, ALL - FIRST, &bytes));
        CHECK_OK(dp_codec_append(&codec, a + FIRST, FIRST, ALL - FIRST, &bytes));
        CHECK_OK(dp_cuda_find_runs(dp_buf_view(&bytes), places[1], runs));
        void *const there = card_put(bytes.data, bytes.size);
        void *const runs_there = card_put(runs, sizeof runs);
        r.items.blobs[1] = dp_cuda_blob_of(&codec);
        r.items.blobs[1].bytes = there;
        r.items.blobs[1].runs = dp_cuda_runs_differ(&codec) ? runs_there : NULL;
        r.items.blobs[1].first = 1;
        r.items.blobs[1].end = 3;
        r.items.count = 2;
        r.views[1] = dp_buf_view(&bytes);
        CHECK_OK(
            dp_cuda_outer_plain(r.theta_there, r.n, &r.items, 60000 * 0x1p-16F, r.bad, stream));
        const dp_consensus_items items = {.blobs = r.views, .q = r.q, .places = places, .n = 2};
        CHECK_OK(dp_consensus_apply(r.theta, NULL, r.n, &items, &outer, NULL));
        card_get(r.theta_there, got, sizeof got);
        kit_same(got, r.theta, r.n, "theta");
        card_free(runs_there);
        card_free(there);
        dp_buf_close(&bytes);
        close_round(&r);
    }
}

static void a_theta_that_is_not_finite_is_said(void **state)
{
    (void)state;
    static round_kit r;
    static const dp_cuda_nesterov half = {.mu = 0.5F, .eta = 1, .in_m = 1};
    const cudaStream_t stream = card_open();
    for (size_t turn = 0; turn < 2; turn++) {
        open_round(&r, KIT_MOST, 2);
        card_free(r.theta_there);
        r.theta[KIT_MOST - 1] = INFINITY;
        r.theta_there = card_put(r.theta, r.n * sizeof(float));
        CHECK_OK(turn == 0 ? dp_cuda_outer_plain(r.theta_there, r.n, &r.items, 1, r.bad, stream)
                           : dp_cuda_outer_nesterov(r.theta_there, r.m_there, r.n, &r.items, &half,
                                                    r.bad, stream));
        CHECK(is_bad(&r) == 1);
        close_round(&r);
    }
    r.items.count = DP_CUDA_ITEMS_MAX + 1;
    CHECK_STATUS(dp_cuda_outer_plain(NULL, 1, &r.items, 1, NULL, stream), DP_BADARG);
}

static void pairs_exchange_the_same_bits(void **state)
{
    (void)state;
    static round_kit r;
    static float own[KIT_MOST];
    static float other[KIT_MOST];
    static float got[KIT_MOST];
    const cudaStream_t stream = card_open();
    for (size_t turn = 0; turn < 6; turn++) {
        open_round(&r, sizes[turn], turn);
        double sums[KIT_RUNS];
        double *const sums_there = card_put(NULL, sizeof sums);
        const double share = 0.3 + 0.01 * (double)turn;
        CHECK_OK(dp_cuda_mix(r.theta_there, r.m_there, r.n, &r.blobs[0].there, &r.blobs[1].there,
                             share, sums_there, stream));
        CHECK_OK(dp_codec_decode(r.views[0], own, r.n));
        CHECK_OK(dp_codec_decode(r.views[1], other, r.n));
        double moved = 0;
        for (size_t i = 0; i < r.n; i++) {
            const float change = (float)(share * ((double)other[i] - (double)own[i]));
            r.theta[i] += change;
            r.m[i] -= change;
            moved += (double)change;
        }
        card_get(r.theta_there, got, r.n * sizeof(float));
        kit_same(got, r.theta, r.n, "F");
        card_get(r.m_there, got, r.n * sizeof(float));
        kit_same(got, r.m, r.n, "x");
        card_get(sums_there, sums, sizeof sums);
        for (size_t run = 0; run < dp_cuda_runs(r.n); run++) {
            moved -= sums[run];
        }
        CHECK(fabs(moved) <= 1e-9);
        card_free(sums_there);
        close_round(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blobs_decode_to_the_same_bits),
        cmocka_unit_test(feedback_settles_to_the_same_bits),
        cmocka_unit_test(the_step_moves_theta_to_the_same_bits),
        cmocka_unit_test(momentum_and_its_reach_have_the_same_bits),
        cmocka_unit_test(a_part_moves_its_own_range_to_the_same_bits),
        cmocka_unit_test(a_theta_that_is_not_finite_is_said),
        cmocka_unit_test(pairs_exchange_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
