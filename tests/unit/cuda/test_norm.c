/* Norms of the residual stream: near the CPU's reference over odd sizes, and the same bits however threads run. */
#include "compute/cuda/norm.h"
#include "tests/unit/cuda/near.h"

enum { SIZES = 10 };
static const struct {
    size_t rows;
    size_t width;
} sizes[SIZES] = {{1, 1},    {3, 7},   {2, 8},   {17, 33},  {5, 64},
                  {19, 100}, {2, 264}, {35, 40}, {2, 4104}, {1, 8200}};

typedef struct norm_case {
    size_t rows;
    size_t width;
    size_t offset; /* elements by which x is moved from its alignment */
    bool rms;
    bool add;
    dp_precision stream;
    dp_precision type;
} norm_case;

/* Sums of width terms of size one in fp32, by a tree over few levels of 32. */
static double slack_of(size_t width)
{
    return 4e-7 * (4.0 + sqrt((double)width));
}

static void check_norm(const norm_case *c)
{
    const size_t n = c->rows * c->width;
    const cudaStream_t stream = card_open();
    float *const x = near_fill(n, 1, 2.0F, c->stream);
    float *const add = near_fill(n, 2, 1.0F, c->type);
    float *const dy = near_fill(n, 3, 1.0F, c->type);
    float *const residual = near_fill(n, 4, 1.0F, c->stream);
    float *const gain = near_fill(c->width, 5, 1.5F, DP_FP32);
    float *const bias = near_fill(c->width, 6, 1.0F, DP_FP32);
    float *const summed = near_room(n);
    float *const y = near_room(n);
    float *const dx = near_room(n);
    float *const mean = near_room(c->rows);
    float *const rstd = near_room(c->rows);
    float *const d_gain = near_fill(c->width, 7, 1.0F, DP_FP32);
    float *const d_bias = near_fill(c->width, 8, 1.0F, DP_FP32);

    void *const card_x = near_put_at(x, n, c->stream, c->offset);
    void *const card_sum = near_poison(n, c->stream);
    void *const card_add = near_put(add, n, c->type);
    void *const card_y = near_poison(n, c->type);
    void *const card_dy = near_put(dy, n, c->type);
    void *const card_dx = near_put(residual, n, c->stream);
    float *const card_gain = near_put(gain, c->width, DP_FP32);
    float *const card_bias = near_put(bias, c->width, DP_FP32);
    float *const card_mean = near_poison(c->rows, DP_FP32);
    float *const card_rstd = near_poison(c->rows, DP_FP32);
    float *const card_d_gain = near_put(d_gain, c->width, DP_FP32);
    float *const card_d_bias = near_put(d_bias, c->width, DP_FP32);
    float *const scratch = near_poison(dp_cuda_norm_scratch(c->rows, c->width), DP_FP32);

    dp_cuda_norm norm = {.rows = c->rows,
                         .width = c->width,
                         .rms = c->rms,
                         .eps = 1e-5F,
                         .stream = c->stream,
                         .type = c->type,
                         .x = card_x,
                         .gain = card_gain,
                         .bias = c->rms ? NULL : card_bias,
                         .mean = c->rms ? NULL : card_mean,
                         .rstd = card_rstd};
    CHECK_OK(dp_cuda_norm_forward(&norm, c->add ? card_add : NULL, card_sum, card_y, stream));
    for (size_t i = 0; i < n; i++) {
        summed[i] = c->add ? dp_round_to(c->stream, x[i] + add[i]) : x[i];
    }
    norm.x = c->add ? card_sum : card_x;
    CHECK_OK(dp_cuda_norm_backward(&norm, card_dy, card_dx, card_dx, card_d_gain,
                                   c->rms ? NULL : card_d_bias, scratch, stream));

    const dp_ops *const ops = dp_ops_reference();
    const dp_norm_rows rows = {c->rows, c->width, summed, gain, mean, rstd};
    const dp_rms_rows rms = {c->rows, 1, c->width, 1e-5F, summed, c->width, gain, rstd};
    if (c->rms) {
        ops->rms_forward(&rms, y, c->width);
        ops->rms_backward(&rms, dy, residual, dx, c->width);
        ops->rms_grads(&rms, dy, c->width, 0, c->width, d_gain);
    } else {
        ops->norm_forward(&rows, bias, y);
        ops->norm_backward(&rows, dy, residual, dx);
        ops->norm_grads(&rows, dy, 0, c->width, d_gain, d_bias);
    }
    /* One row of one number has no spread: its unit is 1/sqrt(eps) times nothing. */
    const double largest = c->width == 1 ? 320.0 : 1.0;
    double steep = 1.0;
    for (size_t i = 0; i < c->rows; i++) {
        steep = fmax(steep, (double)rstd[i]);
    }
    if (c->add) {
        near_check("sum", card_sum, summed, n, c->stream, 0.0);
    }
    near_check("y", card_y, y, n, c->type, 8.0 * slack_of(c->width));
    near_check("rstd", card_rstd, rstd, c->rows, DP_FP32, 2e-6 * steep);
    near_check("dx", card_dx, dx, n, c->stream, 8.0 * slack_of(c->width) * steep * largest);
    near_check("d_gain", card_d_gain, d_gain, c->width, DP_FP32,
               8.0 * slack_of(c->rows) + 4e-6 * (double)c->rows);
    if (!c->rms) {
        near_check("mean", card_mean, mean, c->rows, DP_FP32, 1e-6);
        near_check("d_bias", card_d_bias, d_bias, c->width, DP_FP32, 4.0 * slack_of(c->rows));
    }

    float *const host[] = {x, add, dy,   residual, gain,   bias,  summed,
                           y, dx,  mean, rstd,     d_gain, d_bias};
    void *const card[] = {card_sum,  card_add,  card_y,    card_dy,     card_dx,     card_gain,
                          card_bias, card_mean, card_rstd, card_d_gain, card_d_bias, scratch};
    for (size_t i = 0; i < sizeof host / sizeof host[0]; i++) {
        free(host[i]);
    }
    for (size_t i = 0; i < sizeof card / sizeof card[0]; i++) {
        card_free(card[i]);
    }
    near_free_at(card_x, c->stream, c->offset);
}

static void norms_are_near_the_reference_for_odd_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        for (int kind = 0; kind < 4; kind++) {
            const norm_case c = {sizes[i].rows,   sizes[i].width, 0,      (kind & 1) != 0,
                                 (kind & 2) != 0, DP_FP32,        DP_FP32};
            check_norm(&c);
        }
    }
}

static void norms_take_every_pair_of_types(void **state)
{
    (void)state;
    static const dp_precision pairs[][2] = {
        {DP_FP32, DP_BF16}, {DP_FP32, DP_FP16}, {DP_BF16, DP_BF16}, {DP_FP16, DP_FP16}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        for (int kind = 0; kind < 4; kind++) {
            const norm_case c = {21,
                                 72 - (size_t)(kind & 1),
                                 0,
                                 (kind & 1) != 0,
                                 (kind & 2) != 0,
                                 pairs[i][0],
                                 pairs[i][1]};
            check_norm(&c);
        }
    }
}

static void norms_take_rows_at_any_address(void **state)
{
    (void)state;
    const norm_case c = {5, 64, 3, false, false, DP_BF16, DP_BF16};
    check_norm(&c);
}

static void norms_give_the_same_bits_in_every_order_of_threads(void **state)
{
    (void)state;
    enum { ROWS = 40, WIDTH = 520 };
    const cudaStream_t stream = card_open();
    float *const x = near_fill((size_t)ROWS * WIDTH, 1, 2.0F, DP_FP32);
    float *const zero = near_room(WIDTH);
    float *first = NULL;
    for (uint64_t order = 0; order < NEAR_ORDERS; order++) {
        card_order(order);
        float *const card = near_put(x, (size_t)ROWS * WIDTH, DP_FP32);
        float *const d_gain = near_put(zero, WIDTH, DP_FP32);
        float *const rstd = near_poison(ROWS, DP_FP32);
        float *const y = near_poison((size_t)ROWS * WIDTH, DP_FP32);
        float *const scratch = near_poison(dp_cuda_norm_scratch(ROWS, WIDTH), DP_FP32);
        const dp_cuda_norm norm = {.rows = ROWS,
                                   .width = WIDTH,
                                   .rms = true,
                                   .eps = 1e-6F,
                                   .x = card,
                                   .gain = card,
                                   .rstd = rstd};
        CHECK_OK(dp_cuda_norm_forward(&norm, NULL, NULL, y, stream));
        CHECK_OK(dp_cuda_norm_backward(&norm, card, NULL, y, d_gain, NULL, scratch, stream));
        if (first == NULL) {
            first = near_get(d_gain, WIDTH, DP_FP32);
        }
        near_same(d_gain, first, WIDTH, DP_FP32);
        float *const all[] = {card, d_gain, rstd, y, scratch};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            card_free(all[i]);
        }
    }
    card_order(0);
    free(first);
    free(x);
    free(zero);
}

static void norms_refuse_what_they_cannot_do(void **state)
{
    (void)state;
    const cudaStream_t stream = card_open();
    float gain = 1.0F;
    dp_cuda_norm norm = {.rows = 1, .width = 0, .rms = true, .gain = &gain, .rstd = &gain};
    CHECK_STATUS(dp_cuda_norm_forward(&norm, NULL, NULL, &gain, stream), DP_BADARG);
    norm.width = DP_MODEL_WIDTH_MAX + 1;
    CHECK_STATUS(dp_cuda_norm_forward(&norm, NULL, NULL, &gain, stream), DP_BADARG);
    norm.width = 1;
    norm.stream = DP_BF16;
    CHECK_STATUS(dp_cuda_norm_forward(&norm, NULL, NULL, &gain, stream), DP_BADARG);
    norm.stream = DP_FP32;
    norm.rows = 0;
    CHECK_OK(dp_cuda_norm_forward(&norm, NULL, NULL, &gain, stream));
    CHECK_OK(dp_cuda_norm_backward(&norm, NULL, NULL, NULL, NULL, NULL, NULL, stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_are_near_the_reference_for_odd_shapes),
        cmocka_unit_test(norms_take_every_pair_of_types),
        cmocka_unit_test(norms_take_rows_at_any_address),
        cmocka_unit_test(norms_give_the_same_bits_in_every_order_of_threads),
        cmocka_unit_test(norms_refuse_what_they_cannot_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
