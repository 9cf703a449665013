/* The optimizers' kernels beside the CPU's: AdamW and weights in bf16 bit by bit, rules that depend
 * on norms within their rounding. */
#include <math.h>

#include "compute/cpu/half.h"
#include "compute/cpu/ops.h"
#include "compute/cpu/stochastic_rounding.h"
#include "compute/cuda/optim.h"
#include "tests/cuda/card.h"
#include "tests/unit/compute/optim_rig.h"

enum { PIECES_MAX = 32, STEPS = 2 };

/* A rig on the card. */
typedef struct bench {
    rig cpu;
    size_t bytes;
    size_t n_pieces;
    dp_cuda_piece host_pieces[PIECES_MAX];
    dp_cuda_piece *pieces;
    dp_cuda_pieces_of *tensors;
    float *x;
    float *m;
    float *v;
    float *grads;
    double *sums;
    float *rates;
    cudaStream_t stream;
} bench;

static void open_bench(bench *b)
{
    rig_open(&b->cpu);
    b->stream = card_open();
    b->bytes = b->cpu.model.n_elements * sizeof(float);
    b->n_pieces = dp_cuda_optim_table(&b->cpu.model, NULL, NULL);
    CHECK(b->n_pieces == RIG_TENSORS + 1 && b->n_pieces <= PIECES_MAX);
    dp_cuda_pieces_of tensors[RIG_TENSORS];
    CHECK(dp_cuda_optim_table(&b->cpu.model, b->host_pieces, tensors) == b->n_pieces);
    float *const zeros = test_calloc(b->cpu.model.n_elements, sizeof(float));
    b->pieces = card_put(b->host_pieces, b->n_pieces * sizeof *b->host_pieces);
    b->tensors = card_put(tensors, sizeof tensors);
    b->x = card_put(b->cpu.params, b->bytes);
    b->m = card_put(zeros, b->bytes);
    b->v = card_put(zeros, b->bytes);
    b->grads = card_put(b->cpu.grads, b->bytes);
    b->sums = card_put(NULL, 2 * b->n_pieces * sizeof(double));
    b->rates = card_put(NULL, RIG_TENSORS * sizeof(float));
    test_free(zeros);
}

static void close_bench(bench *b)
{
    void *const all[] = {b->pieces, b->tensors, b->x, b->m, b->v, b->grads, b->sums, b->rates};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        card_free(all[i]);
    }
    rig_close(&b->cpu);
}

/* Relative to the size of steps; 0: bits. */
static void same(const float *got, const float *wanted, size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++) {
        const bool near = tolerance > 0 ? fabs((double)got[i] - (double)wanted[i]) <= tolerance
                                        : dp_float_bits(got[i]) == dp_float_bits(wanted[i]);
        if (!near) {
            print_error("element %zu: %a, wanted %a\n", i, (double)got[i], (double)wanted[i]);
            fail();
        }
    }
}

static void pieces_cover_the_arena_once(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    uint64_t at = 0;
    for (size_t i = 0; i < b.n_pieces; i++) {
        const dp_cuda_piece *const piece = &b.host_pieces[i];
        CHECK(piece->from == at && piece->to > at && piece->to - at <= DP_NORM_BLOCK);
        CHECK(piece->from % 4 == 0 && piece->to % 4 == 0);
        at = piece->to;
    }
    CHECK(at == b.cpu.model.n_elements);
    close_bench(&b);
}

static void adamw_has_the_bits_of_the_plain_loops(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    const size_t n = b.cpu.model.n_elements;
    float *const m = test_calloc(n, sizeof(float));
    float *const v = test_calloc(n, sizeof(float));
    float *const got = test_malloc(b.bytes);
    for (int step = 1; step <= STEPS; step++) {
        const dp_cuda_adamw_terms t = {.lr = 1e-2F / (float)step,
                                       .beta1 = 0.9F,
                                       .beta2 = 0.95F,
                                       .eps = 1e-6F,
                                       .lr_decay = 1e-3F,
                                       .v_scale = 20.0F / (float)step,
                                       .grad_scale = 0.3F};
        dp_cuda_adamw_terms *const there = card_put(&t, sizeof t);
        CHECK_OK(dp_cuda_adamw(b.x, b.m, b.v, b.grads, b.pieces, b.n_pieces, there, b.stream));
        for (size_t i = 0; i < b.n_pieces; i++) {
            const dp_cuda_piece *const p = &b.host_pieces[i];
            const dp_adamw_terms terms = {.lr = t.lr,
                                          .beta1 = t.beta1,
                                          .beta2 = t.beta2,
                                          .eps = t.eps,
                                          .lr_decay = p->decays != 0 ? t.lr_decay : 0,
                                          .v_scale = t.v_scale,
                                          .grad_scale = t.grad_scale};
            dp_ops_reference()->adamw(&terms, b.cpu.params + p->from, m + p->from, v + p->from,
                                      b.cpu.grads + p->from, p->to - p->from);
        }
        card_get(b.x, got, b.bytes); /* All has been read. */
        card_free(there);
    }
    card_get(b.x, got, b.bytes);
    same(got, b.cpu.params, n, 0);
    card_get(b.m, got, b.bytes);
    same(got, m, n, 0);
    card_get(b.v, got, b.bytes);
    same(got, v, n, 0);
    test_free(got);
    test_free(v);
    test_free(m);
    close_bench(&b);
}

/* One step of LAMB or LARS, terms on the card. */
static void layer_step(const bench *b, dp_optim_kind kind, const dp_cuda_layer_terms *t)
{
    if (kind == DP_OPTIM_LAMB) {
        CHECK_OK(dp_cuda_lamb_look(b->x, b->m, b->v, b->grads, b->pieces, b->n_pieces, t, b->sums,
                                   b->stream));
        CHECK_OK(dp_cuda_lamb_rates(b->sums, b->tensors, RIG_TENSORS, b->rates, b->stream));
        CHECK_OK(
            dp_cuda_lamb_move(b->x, b->m, b->v, b->pieces, b->n_pieces, t, b->rates, b->stream));
        return;
    }
    CHECK_OK(dp_cuda_lars_look(b->x, b->grads, b->pieces, b->n_pieces, b->sums, b->stream));
    CHECK_OK(dp_cuda_lars_rates(b->sums, b->tensors, RIG_TENSORS, t, b->rates, b->stream));
    CHECK_OK(
        dp_cuda_lars_move(b->x, b->m, b->grads, b->pieces, b->n_pieces, t, b->rates, b->stream));
}

static void near_the_cpu(dp_optim_kind kind, float eps)
{
    dp_optim_options options = rig_options;
    options.eps = eps;
    bench b;
    open_bench(&b);
    dp_optim optim;
    CHECK_OK(dp_optim_init(&optim, &(dp_optim_setup){.model = &b.cpu.model, .kind = kind}));
    float *const got = test_malloc(b.bytes);
    for (int step = 1; step <= STEPS; step++) {
        double norm;
        CHECK_OK(dp_optim_step(&optim, b.cpu.params, b.cpu.grads, &options, NULL, &norm));
        const double beta1 = (double)rig_options.beta1;
        const double beta2 = (double)rig_options.beta2;
        const dp_cuda_layer_terms t = {.lr = rig_options.lr,
                                       .beta1 = kind == DP_OPTIM_LAMB ? rig_options.beta1
                                                                      : rig_options.momentum,
                                       .beta2 = rig_options.beta2,
                                       .eps = options.eps,
                                       .decay = rig_options.decay,
                                       .m_scale = (float)(1.0 / (1.0 - pow(beta1, step))),
                                       .v_scale = (float)(1.0 / (1.0 - pow(beta2, step))),
                                       .grad_scale = (float)(norm > 1.0 ? 1.0 / norm : 1.0)};
        dp_cuda_layer_terms *const there = card_put(&t, sizeof t);
        layer_step(&b, kind, there);
        card_get(b.x, got, b.bytes); /* All has been read. */
        card_free(there);
    }
    card_get(b.x, got, b.bytes);
    /* Weights below 1: some units of 2^-24 from norms that differ in their last bit. */
    same(got, b.cpu.params, b.cpu.model.n_elements, 4 * 0x1p-24);
    test_free(got);
    dp_optim_close(&optim);
    close_bench(&b);
}

static void lamb_and_lars_step_as_the_cpu(void **state)
{
    (void)state;
    near_the_cpu(DP_OPTIM_LAMB, rig_options.eps);
    near_the_cpu(DP_OPTIM_LAMB, 1e-2F); /* As large as gradients that are clipped to a norm of 1. */
    near_the_cpu(DP_OPTIM_LARS, rig_options.eps);
}

static void norms_are_near_and_repeat(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 255, 257, 65536, 65537, 70000};
    bench b;
    open_bench(&b);
    double *const partial = card_put(NULL, 2 * sizeof(double));
    double *const norm = card_put(NULL, sizeof *norm);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        double found[2];
        for (uint64_t order = 0; order < 2; order++) {
            card_order(order);
            CHECK_OK(dp_cuda_squares(b.grads, sizes[s], partial, b.stream));
            CHECK_OK(dp_cuda_norm_of(partial, dp_norm_blocks(sizes[s]), norm, b.stream));
            card_get(norm, &found[order], sizeof *norm);
        }
        double square = 0;
        for (size_t i = 0; i < sizes[s]; i++) {
            square += (double)b.cpu.grads[i] * (double)b.cpu.grads[i];
        }
        const double wanted = sqrt(square);
        CHECK(found[0] == found[1]);
        CHECK(fabs(found[0] - wanted) <= 1e-13 * wanted);
    }
    card_order(0);
    card_free(norm);
    card_free(partial);
    close_bench(&b);
}

static void muon_moves_a_matrix_inside_a_tensor(void **state)
{
    (void)state;
    enum { ROWS = 5, COLUMNS = 7, STRIDE = 17, FIRST = 3, SIDE = 5 };
    static float tensor[ROWS * STRIDE];
    static float grads[ROWS * STRIDE];
    static float o[ROWS * COLUMNS];
    static float gram[SIDE * SIDE];
    static float poly[SIDE * SIDE];
    for (size_t i = 0; i < ROWS * STRIDE; i++) {
        tensor[i] = (float)i * 0.25F - 3;
        grads[i] = 1.0F / (float)(i + 1);
    }
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        gram[i] = (float)i * 0.1F;
        poly[i] = (float)i * 0.3F - 1;
    }
    const cudaStream_t stream = card_open();
    const double norm = 3;
    float *const t = card_put(tensor, sizeof tensor);
    float *const g = card_put(grads, sizeof grads);
    float *const out = card_put(NULL, sizeof o);
    double *const norm_there = card_put(&norm, sizeof norm);
    float *const gram_there = card_put(gram, sizeof gram);
    float *const poly_there = card_put(poly, sizeof poly);
    static const dp_cuda_muon_terms terms = {
        .lr = 1, .decay = 0.01F, .momentum = 0.95F, .grad_scale = 0.5F};
    dp_cuda_muon_terms *const terms_there = card_put(&terms, sizeof terms);
    CHECK_OK(dp_cuda_muon_momentum(t + FIRST, g + FIRST, STRIDE, ROWS, COLUMNS, terms_there, out,
                                   stream));
    CHECK_OK(dp_cuda_muon_scale(out, ROWS * COLUMNS, norm_there, stream));
    CHECK_OK(dp_cuda_muon_poly(poly_there, gram_there, SIDE, stream));
    float tensor_got[ROWS * STRIDE];
    float poly_got[SIDE * SIDE];
    card_get(t, tensor_got, sizeof tensor_got);
    card_get(out, o, sizeof o);
    card_get(poly_there, poly_got, sizeof poly_got);
    for (size_t row = 0; row < ROWS; row++) {
        for (size_t i = 0; i < STRIDE; i++) {
            const size_t at = row * STRIDE + i;
            const bool in = i >= FIRST && i < FIRST + COLUMNS;
            const float half = grads[at] * 0.5F;
            const float next = 0.95F * tensor[at] + half;
            CHECK(tensor_got[at] == (in ? next : tensor[at]));
            if (in) {
                const float wanted = (half + 0.95F * next) * (float)(1.0 / (norm + 1e-7));
                CHECK(o[row * COLUMNS + i - FIRST] == wanted);
            }
        }
    }
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        const float value = -4.7750F * gram[i] + 2.0315F * poly[i];
        CHECK(poly_got[i] == (i % (SIDE + 1) == 0 ? value + 3.4445F : value));
    }
    CHECK_OK(dp_cuda_muon_move(t + FIRST, STRIDE, out, ROWS, COLUMNS, 1, 1.0, terms_there, stream));
    float moved[ROWS * STRIDE];
    card_get(t, moved, sizeof moved);
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        const size_t at = i / COLUMNS * STRIDE + FIRST + i % COLUMNS;
        const float x = tensor_got[at];
        CHECK(moved[at] == x - (0.01F * x + 0.2F * o[i]));
    }
    void *const all[] = {t, g, out, norm_there, gram_there, poly_there, terms_there};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        card_free(all[i]);
    }
}

static void weights_in_bf16_have_the_bits_of_the_cpu(void **state)
{
    (void)state;
    enum { N = 2055 };
    static float x[N];
    static float master[N];
    static float got[N];
    static float wanted[N];
    const cudaStream_t stream = card_open();
    dp_rng rng;
    dp_rng_init(&rng, 5);
    for (size_t i = 0; i < N; i++) {
        master[i] = dp_float_of_bits((uint32_t)dp_rng_next(&rng) & 0xbfffffffU);
        x[i] = i % 3 == 0 ? 0.5F : dp_bfloat_value(dp_bfloat_of(master[i]));
    }
    float *const there = card_put(x, sizeof x);
    float *const masters = card_put(master, sizeof master);
    CHECK_OK(dp_cuda_masters(masters, there, N, stream));
    card_get(masters, got, sizeof got);
    for (size_t i = 0; i < N; i++) {
        wanted[i] = dp_bfloat_value(dp_bfloat_of(master[i])) == x[i] ? master[i] : x[i];
    }
    same(got, wanted, N, 0);
    CHECK_OK(dp_cuda_nearest(there, masters, N, stream));
    card_get(there, got, sizeof got);
    for (size_t i = 0; i < N; i++) {
        wanted[i] = dp_bfloat_value(dp_bfloat_of(wanted[i]));
    }
    same(got, wanted, N, 0);
    card_free(masters);
    card_free(there);

    static const float special[] = {INFINITY, -INFINITY, 0, -0.0F, 0x1.fffffep127F, 0x1p-149F};
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        master[100 * i + 7] = special[i];
    }
    for (size_t n = N - 9; n <= N; n++) {
        const dp_stochastic_key key = {.seed = 0x123456789abcdefU + n,
                                       .step = (UINT64_C(1) << 40) + n};
        const uint64_t first = (UINT64_C(1) << 36) + 8 * n;
        memcpy(wanted, master, sizeof wanted);
        dp_stochastic_bf16(wanted, n, first, &key);
        float *const rounded = card_put(master, n * sizeof(float));
        uint64_t *const step = card_put(&key.step, sizeof key.step);
        CHECK_OK(dp_cuda_chance(rounded, n, first, key.seed, step, stream));
        card_get(rounded, got, n * sizeof(float));
        same(got, wanted, n, 0);
        card_free(step);
        card_free(rounded);
    }
    CHECK_STATUS(dp_cuda_chance(NULL, 8, 4, 1, NULL, stream), DP_BADARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_cover_the_arena_once),
        cmocka_unit_test(adamw_has_the_bits_of_the_plain_loops),
        cmocka_unit_test(lamb_and_lars_step_as_the_cpu),
        cmocka_unit_test(norms_are_near_and_repeat),
        cmocka_unit_test(muon_moves_a_matrix_inside_a_tensor),
        cmocka_unit_test(weights_in_bf16_have_the_bits_of_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
