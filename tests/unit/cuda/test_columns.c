/* Sums over rows: near the CPU's, added to what is there, the same bits in every order of
 * threads. */
#include "compute/cuda/columns.h"
#include "tests/unit/cuda/near.h"

static void check_columns(dp_precision type, size_t rows, size_t width, size_t ld, size_t offset)
{
    const cudaStream_t stream = card_open();
    float *const x = near_fill(rows * ld, 1, 1.0F, type);
    float *const sum = near_fill(width, 2, 1.0F, DP_FP32);
    void *const card_x = near_put_at(x, rows * ld, type, offset);
    float *first = NULL;
    for (uint64_t order = 0; order < NEAR_ORDERS; order++) {
        card_order(order);
        float *const card_sum = near_put(sum, width, DP_FP32);
        float *const scratch = near_poison(dp_cuda_columns_scratch(rows, width), DP_FP32);
        CHECK_OK(dp_cuda_add_columns(card_x, type, rows, width, ld, card_sum, scratch, stream));
        if (order == 0) {
            first = near_get(card_sum, width, DP_FP32);
            float *const right = near_fill(width, 2, 1.0F, DP_FP32);
            dp_ops_reference()->add_columns(x, ld, rows, 0, width, right);
            /* At most strip_rows/8 + 8 + strips/32 + 5 roundings of sums below sqrt(rows), six
             * deviations off. */
            near_check("sum", card_sum, right, width, DP_FP32,
                       6.0 * sqrt((double)rows + 1.0) * 0x1p-24 * 48.0);
            free(right);
        }
        near_same(card_sum, first, width, DP_FP32);
        card_free(card_sum);
        card_free(scratch);
    }
    card_order(0);
    near_free_at(card_x, type, offset);
    free(first);
    free(x);
    free(sum);
}

static void columns_are_summed_over_odd_shapes(void **state)
{
    (void)state;
    for (size_t t = 0; t < NEAR_TYPES; t++) {
        check_columns(near_types[t], 1, 1, 1, 0);
        check_columns(near_types[t], 37, 33, 33, 0);
        check_columns(near_types[t], 100, 264, 272, 0);
        check_columns(near_types[t], 9, 24, 31, 1);
    }
}

static void many_rows_have_many_strips(void **state)
{
    (void)state;
    assert_int_equal(dp_cuda_strips(0), 1);
    assert_int_equal(dp_cuda_strips(16), 1);
    assert_int_equal(dp_cuda_strips(17), 2);
    assert_int_equal(dp_cuda_strips(1 << 20), DP_CUDA_STRIPS_MAX);
    for (size_t rows = 1; rows < 100000; rows = rows * 3 / 2 + 1) {
        const size_t strips = dp_cuda_strips(rows);
        assert_true(strips <= DP_CUDA_STRIPS_MAX && strips * dp_cuda_strip_rows(rows) >= rows &&
                    (strips - 1) * dp_cuda_strip_rows(rows) < rows);
    }
    check_columns(DP_FP32, 1700, 3, 3, 0);
}

static void nothing_is_summed_over_no_rows(void **state)
{
    (void)state;
    CHECK_OK(dp_cuda_add_columns(NULL, DP_FP32, 0, 5, 5, NULL, NULL, card_open()));
    CHECK_OK(dp_cuda_add_columns(NULL, DP_FP32, 5, 0, 5, NULL, NULL, card_open()));
    CHECK_STATUS(dp_cuda_add_columns(NULL, DP_PRECISIONS, 5, 5, 5, NULL, NULL, card_open()),
                 DP_BADARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_summed_over_odd_shapes),
        cmocka_unit_test(many_rows_have_many_strips),
        cmocka_unit_test(nothing_is_summed_over_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
