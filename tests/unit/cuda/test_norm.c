/* Norms of the residual stream: near the CPU's reference over odd sizes, and the same bits however
 * threads run. */
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
    bool sums; /* of dx's columns too */
    dp_precision stream;
    dp_precision type;
} norm_case;

/* Sums of width terms of size one in fp32, by a tree over few levels of 32. */
static double slack_of(size_t width)
{
    return 4e-7 * (4.0 + sqrt((double)width));
}

/* The tensors that a norm and its gradients read and write: on the host, as the reference has them,
 * and on the card. */
typedef struct norm_host {
    float *x;
    float *add;
    float *dy;
    float *residual;
    float *gain;
    float *bias;
    float *summed;
    float *y;
    float *dx;
    float *mean;
    float *rstd;
    float *d_gain;
    float *d_bias;
} norm_host;

typedef struct norm_card {
    void *x;
    void *sum;
    void *add;
    void *y;
    void *dy;
    void *dx;
    float *gain;
    float *bias;
    float *mean;
    float *rstd;
    float *d_gain;
    float *d_bias;
    float *d_sum;
    float *scratch;
} norm_card;

static norm_host host_of(const norm_case *c)
{
    const size_t n = c->rows * c->width;
    const norm_host h = {.x = near_fill(n, 1, 2.0F, c->stream),
                         .add = near_fill(n, 2, 1.0F, c->type),
                         .dy = near_fill(n, 3, 1.0F, c->type),
                         .residual = near_fill(n, 4, 1.0F, c->stream),
                         .gain = near_fill(c->width, 5, 1.5F, DP_FP32),
                         .bias = near_fill(c->width, 6, 1.0F, DP_FP32),
                         .summed = near_room(n),
                         .y = near_room(n),
                         .dx = near_room(n),
                         .mean = near_room(c->rows),
                         .rstd = near_room(c->rows),
                         .d_gain = near_fill(c->width, 7, 1.0F, DP_FP32),
                         .d_bias = near_fill(c->width, 8, 1.0F, DP_FP32)};
    for (size_t i = 0; i < n; i++) {
        h.summed[i] = c->add ? dp_round_to(c->stream, h.x[i] + h.add[i]) : h.x[i];
    }
    return h;
}

static void host_free(const norm_host *h)
{
    float *const all[] = {h->x, h->add, h->dy,   h->residual, h->gain,   h->bias,  h->summed,
                          h->y, h->dx,  h->mean, h->rstd,     h->d_gain, h->d_bias};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]);
    }
}

/* dx begins as the residual's gradient, and the sums of gain and bias where an earlier micro-batch
 * left them. */
static norm_card card_of(const norm_case *c, const norm_host *h)
{
    const size_t n = c->rows * c->width;

    return (norm_card){.x = near_put_at(h->x, n, c->stream, c->offset),
                       .sum = near_poison(n, c->stream),
                       .add = near_put(h->add, n, c->type),
                       .y = near_poison(n, c->type),
                       .dy = near_put(h->dy, n, c->type),
                       .dx = near_put(h->residual, n, c->stream),
                       .gain = near_put(h->gain, c->width, DP_FP32),
                       .bias = near_put(h->bias, c->width, DP_FP32),
                       .mean = near_poison(c->rows, DP_FP32),
                       .rstd = near_poison(c->rows, DP_FP32),
                       .d_gain = near_put(h->d_gain, c->width, DP_FP32),
                       .d_bias = near_put(h->d_bias, c->width, DP_FP32),
                       .d_sum = near_put(h->d_bias, c->width, DP_FP32),
                       .scratch = near_poison(dp_cuda_norm_scratch(c->rows, c->width), DP_FP32)};
}

static void card_free_all(const norm_case *c, const norm_card *d)
{
    void *const all[] = {d->sum,  d->add,  d->y,      d->dy,     d->dx,    d->gain,   d->bias,
                         d->mean, d->rstd, d->d_gain, d->d_bias, d->d_sum, d->scratch};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        card_free(all[i]);
    }
    near_free_at(d->x, c->stream, c->offset);
}

static void norm_on_card(const norm_case *c, const norm_card *d)
{
    const cudaStream_t stream = card_open();
    dp_cuda_norm norm = {.rows = c->rows,
                         .width = c->width,
                         .rms = c->rms,
                         .eps = 1e-5F,
                         .stream = c->stream,
                         .type = c->type,
                         .x = d->x,
                         .gain = d->gain,
                         .bias = c->rms ? NULL : d->bias,
                         .mean = c->rms ? NULL : d->mean,
                         .rstd = d->rstd};
    CHECK_OK(dp_cuda_norm_forward(&norm, c->add ? d->add : NULL, d->sum, d->y, stream));
    norm.x = c->add ? d->sum : d->x;
    CHECK_OK(dp_cuda_norm_backward(&norm, d->dy, d->dx, d->dx, d->d_gain, c->rms ? NULL : d->d_bias,
                                   c->sums ? d->d_sum : NULL, d->scratch, stream));
}

static void norm_by_reference(const norm_case *c, const norm_host *h)
{
    const dp_ops *const ops = dp_ops_reference();
    const dp_norm_rows rows = {c->rows, c->width, h->summed, h->gain, h->mean, h->rstd};
    const dp_rms_rows rms = {c->rows, 1, c->width, 1e-5F, h->summed, c->width, h->gain, h->rstd};
    if (c->rms) {
        ops->rms_forward(&rms, h->y, c->width);
        ops->rms_backward(&rms, h->dy, h->residual, h->dx, c->width);
        ops->rms_grads(&rms, h->dy, c->width, 0, c->width, h->d_gain);
    } else {
        ops->norm_forward(&rows, h->bias, h->y);
        ops->norm_backward(&rows, h->dy, h->residual, h->dx);
        ops->norm_grads(&rows, h->dy, 0, c->width, h->d_gain, h->d_bias);
    }
}

static void compare(const norm_case *c, const norm_host *h, const norm_card *d)
{
    const size_t n = c->rows * c->width;
    /* One row of one number has no spread: its unit is 1/sqrt(eps) times nothing. */
    const double largest = c->width == 1 ? 320.0 : 1.0;
    double steep = 1.0;
    for (size_t i = 0; i < c->rows; i++) {
        steep = fmax(steep, (double)h->rstd[i]);
    }
    if (c->add) {
        near_check("sum", d->sum, h->summed, n, c->stream, 0.0);
    }
    near_check("y", d->y, h->y, n, c->type, 8.0 * slack_of(c->width));
    near_check("rstd", d->rstd, h->rstd, c->rows, DP_FP32, 2e-6 * steep);
    near_check("dx", d->dx, h->dx, n, c->stream, 8.0 * slack_of(c->width) * steep * largest);
    near_check("d_gain", d->d_gain, h->d_gain, c->width, DP_FP32,
               8.0 * slack_of(c->rows) + 4e-6 * (double)c->rows);
    if (!c->rms) {
        near_check("mean", d->mean, h->mean, c->rows, DP_FP32, 1e-6);
        near_check("d_bias", d->d_bias, h->d_bias, c->width, DP_FP32, 4.0 * slack_of(c->rows));
    }
}

/* Sums over rows of the stored dx, added to the previous values; unchanged if not requested. */
static void check_sum(const norm_case *c, const float *before, const norm_card *d)
{
    float *const dx = near_get(d->dx, c->rows * c->width, c->stream);
    float *const wanted = near_room(c->width);
    double most = 1.0;
    for (size_t j = 0; j < c->width; j++) {
        double sum = (double)before[j];
        for (size_t row = 0; row < c->rows && c->sums; row++) {
            sum += (double)dx[row * c->width + j];
            most = fmax(most, fabs((double)dx[row * c->width + j]));
        }
        wanted[j] = (float)sum;
    }
    near_check("d_sum", d->d_sum, wanted, c->width, DP_FP32, 1e-6 * most * (double)(c->rows + 1));
    free(dx);
    free(wanted);
}

static void check_norm(const norm_case *c)
{
    const norm_host h = host_of(c);
    const norm_card d = card_of(c, &h);
    norm_on_card(c, &d);
    check_sum(c, h.d_bias, &d);
    norm_by_reference(c, &h);
    compare(c, &h, &d);
    host_free(&h);
    card_free_all(c, &d);
}

static void norms_are_near_the_reference_for_odd_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        for (int kind = 0; kind < 4; kind++) {
            const norm_case c = {sizes[i].rows,   sizes[i].width, 0,       (kind & 1) != 0,
                                 (kind & 2) != 0, kind != 1,      DP_FP32, DP_FP32};
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
                                 kind != 2,
                                 pairs[i][0],
                                 pairs[i][1]};
            check_norm(&c);
        }
    }
}

static void norms_take_rows_at_any_address(void **state)
{
    (void)state;
    const norm_case c = {5, 64, 3, false, false, true, DP_BF16, DP_BF16};
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
        CHECK_OK(dp_cuda_norm_backward(&norm, card, NULL, y, d_gain, NULL, NULL, scratch, stream));
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
    CHECK_OK(dp_cuda_norm_backward(&norm, NULL, NULL, NULL, NULL, NULL, NULL, NULL, stream));
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
