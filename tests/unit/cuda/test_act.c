/* Activations: near the CPU's reference at every kind, type, odd width and address. */
#include "compute/cuda/act.h"
#include "tests/unit/cuda/near.h"

enum { ROWS = 3 };
static const size_t widths[] = {1, 7, 8, 31, 64, 100};
enum { WIDTHS = sizeof widths / sizeof widths[0] };

/* Sums over rows of the stored dx. */
static void check_bias(const void *card_bias, const float *before, const void *card_d, size_t rows,
                       size_t width, dp_precision type)
{
    float *const d = near_get(card_d, rows * width, type);
    float *const wanted = near_room(width);
    double most = 1.0;
    for (size_t j = 0; j < width; j++) {
        double sum = (double)before[j];
        for (size_t row = 0; row < rows; row++) {
            sum += (double)d[row * width + j];
            most = fmax(most, fabs((double)d[row * width + j]));
        }
        wanted[j] = (float)sum;
    }
    near_check("d_bias", card_bias, wanted, width, DP_FP32, 1e-6 * most * (double)(rows + 1));
    free(d);
    free(wanted);
}

static void check_activation(dp_activation_kind kind, dp_precision type, size_t width, float size,
                             size_t offset)
{
    const dp_activation *const cpu = &dp_ops_reference()->activations[kind];
    const cudaStream_t stream = card_open();
    const size_t n = ROWS * width;
    const size_t wide = cpu->inputs * n;
    float *const x = near_fill(wide, 1, size, type);
    float *const dy = near_fill(n, 2, 1.0F, type);
    float *const y = near_room(n);
    float *const d = near_room(wide);
    void *const card_x = near_put_at(x, wide, type, offset);
    void *const card_y = near_poison(n, type);
    void *const again = near_poison(n, type);
    /* Like the output of a product: dy is in the first columns of the later dx. */
    void *const card_d = card_put(NULL, wide * near_bytes(type));
    for (size_t row = 0; row < ROWS; row++) {
        memcpy(d + row * cpu->inputs * width, dy + row * width, width * sizeof *d);
    }
    void *const card_in = near_put(d, wide, type);
    const size_t across = cpu->inputs * width;
    float *const bias = near_fill(across, 3, 1.0F, DP_FP32);
    float *const card_bias = near_put(bias, across, DP_FP32);
    float *const scratch = near_poison(dp_cuda_columns_scratch(ROWS, across), DP_FP32);
    const dp_cuda_activation act = {kind, type, ROWS, width, card_x};
    CHECK_OK(dp_cuda_activation_forward(&act, card_y, stream));
    CHECK_OK(dp_cuda_activation_backward(&act, card_in, across, card_d, NULL, NULL, NULL, stream));
    CHECK_OK(dp_cuda_activation_backward(&act, card_in, across, card_in, again, card_bias, scratch,
                                         stream));
    cpu->forward(x, ROWS, width, y);
    cpu->backward(x, ROWS, width, y, d);
    /* The sigmoid's exponent is off by a few 2^-24 of itself, at most 100 where it still counts;
     * values are of size squared. */
    const double slack = 1e-6 * (1.0 + (double)(size * size));
    near_check("y", card_y, y, n, type, slack);
    near_check("y again", again, y, n, type, slack);
    near_check("dx", card_d, d, wide, type, 4.0 * slack);
    near_check("dx in place", card_in, d, wide, type, 4.0 * slack);
    check_bias(card_bias, bias, card_in, ROWS, across, type);
    near_free_at(card_x, type, offset);
    card_free(card_bias);
    card_free(scratch);
    free(bias);
    card_free(card_y);
    card_free(again);
    card_free(card_d);
    card_free(card_in);
    free(x);
    free(dy);
    free(y);
    free(d);
}

static void activations_are_near_the_reference(void **state)
{
    (void)state;
    for (int kind = 0; kind < DP_ACTIVATION_KINDS; kind++) {
        for (size_t t = 0; t < NEAR_TYPES; t++) {
            for (size_t w = 0; w < WIDTHS; w++) {
                check_activation((dp_activation_kind)kind, near_types[t], widths[w], 4.0F, 0);
            }
            check_activation((dp_activation_kind)kind, near_types[t], 64, 30.0F, 0);
            check_activation((dp_activation_kind)kind, near_types[t], 64, 4.0F, 1);
        }
    }
}

static void sums_of_a_bias_have_the_same_bits_in_every_order_of_threads(void **state)
{
    (void)state;
    enum { MANY = 70, WIDTH = 264 };
    const size_t n = (size_t)MANY * WIDTH;
    float *const x = near_fill(n, 1, 2.0F, DP_BF16);
    float *const dy = near_fill(n, 2, 1.0F, DP_BF16);
    float *const zero = near_room(WIDTH);
    void *const card_x = near_put(x, n, DP_BF16);
    float *first = NULL;
    for (uint64_t order = 0; order < NEAR_ORDERS; order++) {
        card_order(order);
        void *const card_d = near_put(dy, n, DP_BF16);
        float *const d_bias = near_put(zero, WIDTH, DP_FP32);
        float *const scratch = near_poison(dp_cuda_columns_scratch(MANY, WIDTH), DP_FP32);
        const dp_cuda_activation act = {DP_GELU, DP_BF16, MANY, WIDTH, card_x};
        CHECK_OK(dp_cuda_activation_backward(&act, card_d, WIDTH, card_d, NULL, d_bias, scratch,
                                             card_open()));
        check_bias(d_bias, zero, card_d, MANY, WIDTH, DP_BF16);
        if (first == NULL) {
            first = near_get(d_bias, WIDTH, DP_FP32);
        }
        near_same(d_bias, first, WIDTH, DP_FP32);
        card_free(card_d);
        card_free(d_bias);
        card_free(scratch);
    }
    card_order(0);
    card_free(card_x);
    free(first);
    free(zero);
    free(dy);
    free(x);
}

static void far_inputs_have_the_limits_and_a_nan_stays(void **state)
{
    (void)state;
    const cudaStream_t stream = card_open();
    const float x[4] = {1e20F, -1e20F, -INFINITY, NAN};
    const float dy[4] = {1.0F, 1.0F, 1.0F, 1.0F};
    float *const card_x = near_put(x, 4, DP_FP32);
    float *const card_d = near_put(dy, 4, DP_FP32);
    const dp_cuda_activation act = {DP_GELU, DP_FP32, 1, 3, card_x};
    CHECK_OK(dp_cuda_activation_backward(&act, card_d, 3, card_d, NULL, NULL, NULL, stream));
    float *const dx = near_get(card_d, 4, DP_FP32);
    assert_true(dx[0] == 1.0F && dx[1] == 0.0F);
    free(dx);
    for (int kind = 0; kind < DP_SWIGLU; kind++) {
        const dp_cuda_activation last = {(dp_activation_kind)kind, DP_FP32, 1, 1, card_x + 3};
        float *const card_y = near_put(dy, 1, DP_FP32);
        CHECK_OK(dp_cuda_activation_forward(&last, card_y, stream));
        float *const y = near_get(card_y, 1, DP_FP32);
        assert_true(isnan(y[0]));
        free(y);
        card_free(card_y);
    }
    card_free(card_x);
    card_free(card_d);
}

static void activations_refuse_what_is_none(void **state)
{
    (void)state;
    float x = 0.0F;
    dp_cuda_activation act = {DP_ACTIVATION_KINDS, DP_FP32, 1, 1, &x};
    CHECK_STATUS(dp_cuda_activation_forward(&act, &x, card_open()), DP_BADARG);
    CHECK_STATUS(dp_cuda_activation_backward(&act, &x, 1, &x, NULL, NULL, NULL, card_open()),
                 DP_BADARG);
    act.kind = DP_GELU;
    act.type = DP_PRECISIONS;
    CHECK_STATUS(dp_cuda_activation_forward(&act, &x, card_open()), DP_BADARG);
    act.rows = 0;
    CHECK_OK(dp_cuda_activation_forward(&act, NULL, card_open()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_are_near_the_reference),
        cmocka_unit_test(sums_of_a_bias_have_the_same_bits_in_every_order_of_threads),
        cmocka_unit_test(far_inputs_have_the_limits_and_a_nan_stays),
        cmocka_unit_test(activations_refuse_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
