#include "tests/lib/check.h"

#include "base/rng.h"
#include "compute/codec/codec.h"
#include "compute/outer/slices.h"
#include "tests/lib/allocfail.h"

enum { N = 9001, ITEMS = 70 };

/* Updates of many contributors, by every codec in turn, and their shares. */
typedef struct many {
    dp_buf blobs[ITEMS];
    dp_view views[ITEMS];
    uint32_t q[ITEMS];
} many;

static many *open_many(void)
{
    static float a[N];
    many *const m = test_calloc(1, sizeof *m);
    dp_rng rng;
    dp_rng_init(&rng, 5);
    size_t count = 0;
    const dp_codec_row *const rows = dp_codec_rows(&count);
    for (size_t i = 0; i < ITEMS; i++) {
        const dp_codec codec = dp_codec_default(rows[i % count].kind);
        for (size_t k = 0; k < N; k++) {
            a[k] = ((float)dp_rng_below(&rng, 2000001) - 1e6F) * 1e-8F;
        }
        dp_buf_init(&m->blobs[i], dp_codec_bytes_max(&codec, N));
        CHECK_OK(dp_codec_encode(&codec, a, N, &m->blobs[i]));
        m->views[i] = dp_buf_view(&m->blobs[i]);
        m->q[i] = (uint32_t)dp_rng_below(&rng, (1U << 31) / ITEMS);
    }
    return m;
}

static void close_many(many *m)
{
    for (size_t i = 0; i < ITEMS; i++) {
        dp_buf_close(&m->blobs[i]);
    }
    test_free(m);
}

/* The sum of consensus.h of all of them, every operation by itself. */
static void add_plainly(const many *m, float *g)
{
    static float d[N];
    memset(g, 0, N * sizeof *g);
    for (size_t j = 0; j < ITEMS; j++) {
        const volatile float f = (float)m->q[j] * 0x1p-31F;
        CHECK_OK(dp_codec_decode(m->views[j], d, N));
        for (size_t i = 0; i < N; i++) {
            const volatile float product = f * d[i];
            g[i] = g[i] + product;
        }
    }
}

static dp_buf empty(void)
{
    const dp_codec floats = {.kind = DP_CODEC_FP32};
    dp_buf sum;
    dp_buf_init(&sum, dp_codec_bytes_max(&floats, N));
    return sum;
}

static void however_they_are_cut_slices_make_the_sum_of_all_bit_for_bit(void **state)
{
    static const size_t sizes[] = {1, 7, 31, DP_SLICE_ITEMS_MAX};
    static float expected[N];
    static float got[N];
    many *const m = open_many();
    (void)state;
    add_plainly(m, expected);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        dp_buf sum = empty();
        for (size_t at = 0; at < ITEMS; at += sizes[k]) {
            const size_t n = ITEMS - at < sizes[k] ? ITEMS - at : sizes[k];
            CHECK_OK(dp_slice_add(&sum, N, m->views + at, m->q + at, n, false));
            CHECK_OK(dp_codec_check(dp_buf_view(&sum), N));
        }
        CHECK_OK(dp_codec_decode(dp_buf_view(&sum), got, N));
        CHECK(memcmp(got, expected, sizeof got) == 0);
        dp_buf_close(&sum);
    }
    close_many(m);
}

static void the_order_of_updates_is_part_of_the_sum(void **state)
{
    many *const m = open_many();
    dp_buf one = empty();
    dp_buf other = empty();
    (void)state;
    CHECK_OK(dp_slice_add(&one, N, m->views, m->q, 32, false));
    CHECK_OK(dp_slice_add(&one, N, m->views + 32, m->q + 32, 32, false));
    CHECK_OK(dp_slice_add(&other, N, m->views + 32, m->q + 32, 32, false));
    CHECK_OK(dp_slice_add(&other, N, m->views, m->q, 32, false));
    CHECK(!dp_view_equal(dp_buf_view(&one), dp_buf_view(&other)));
    dp_buf_close(&one);
    dp_buf_close(&other);
    close_many(m);
}

static void a_slice_that_cannot_be_added_leaves_no_sum(void **state)
{
    many *const m = open_many();
    dp_buf sum = empty();
    (void)state;
    CHECK_OK(dp_slice_add(&sum, N, m->views, m->q, 3, false));
    CHECK_STATUS(dp_slice_add(&sum, N, m->views, m->q, 0, false), DP_BADARG);
    assert_int_equal(sum.size, 0);
    CHECK_STATUS(dp_slice_add(&sum, N, m->views, m->q, DP_SLICE_ITEMS_MAX + 1, false), DP_BADARG);
    CHECK_OK(dp_slice_add(&sum, N, m->views, m->q, 3, false));
    const dp_view cut = dp_view_of(m->views[1].data, m->views[1].size - 1);
    CHECK_STATUS(dp_slice_add(&sum, N, &cut, m->q, 1, false), DP_BADMSG);
    assert_int_equal(sum.size, 0);
    CHECK_OK(dp_slice_add(&sum, N, m->views, m->q, 3, false));
    CHECK_STATUS(dp_slice_add(&sum, N - 1, m->views, m->q, 3, false),
                 DP_BADMSG); /* Of another model. */
    dp_buf_close(&sum);
    close_many(m);
}

static dp_status add_two(void *context)
{
    const many *const m = context;
    dp_buf sum = empty();
    dp_status status = dp_slice_add(&sum, N, m->views, m->q, 1, false);
    if (status == DP_OK) {
        status = dp_slice_add(&sum, N, m->views + 1, m->q + 1, 1, false);
    }
    CHECK((status == DP_OK) == (sum.size > 0));
    dp_buf_close(&sum);
    return status;
}

static void without_memory_there_is_no_sum(void **state)
{
    many *const m = open_many();
    (void)state;
    CHECK(fail_each_allocation(add_two, m) > 2);
    close_many(m);
}

/* 2^32 is the most that an element of one may be: energy 2^112 on a grid of 2^-48. */
static void the_largest_updates_of_a_record_are_added_up(void **state)
{
    static const uint32_t q[3] = {UINT32_C(1) << 30, UINT32_C(1) << 29, UINT32_C(1) << 29};
    const dp_codec floats = {.kind = DP_CODEC_FP32};
    const float large = 0x1p32F;
    dp_buf sum = empty();
    dp_buf blob = empty();
    float g = 0;
    (void)state;
    CHECK_OK(dp_codec_encode(&floats, &large, 1, &blob));
    const dp_view views[3] = {dp_buf_view(&blob), dp_buf_view(&blob), dp_buf_view(&blob)};
    CHECK_OK(dp_slice_add(&sum, 1, views, q, 2, false));
    CHECK_OK(dp_slice_add(&sum, 1, views + 2, q + 2, 1, false));
    CHECK_OK(dp_codec_decode(dp_buf_view(&sum), &g, 1));
    assert_true(g == large);
    dp_buf_close(&blob);
    dp_buf_close(&sum);
}

static void a_sum_that_is_too_large_for_an_update_is_told(void **state)
{
    static const uint32_t q[2] = {UINT32_MAX, UINT32_MAX};
    const dp_codec floats = {.kind = DP_CODEC_FP32};
    const float large = 1e18F; /* Nearly the most that an update may have. */
    dp_buf sum = empty();
    dp_buf blob = empty();
    (void)state;
    CHECK_OK(dp_codec_encode(&floats, &large, 1, &blob));
    const dp_view views[2] = {dp_buf_view(&blob), dp_buf_view(&blob)};
    CHECK_STATUS(dp_slice_add(&sum, 1, views, q, 2, false), DP_DIVERGED);
    assert_int_equal(sum.size, 0);
    dp_buf_close(&blob);
    dp_buf_close(&sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(however_they_are_cut_slices_make_the_sum_of_all_bit_for_bit),
        cmocka_unit_test(the_order_of_updates_is_part_of_the_sum),
        cmocka_unit_test(a_slice_that_cannot_be_added_leaves_no_sum),
        cmocka_unit_test(without_memory_there_is_no_sum),
        cmocka_unit_test(the_largest_updates_of_a_record_are_added_up),
        cmocka_unit_test(a_sum_that_is_too_large_for_an_update_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
