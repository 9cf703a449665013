/* The orthogonal factor against its definition in float64, for the shapes that take another way:
 * wide, tall, long enough for steps in the square, and large enough for bf16. */
#include "compute/model/newton_schulz.h"

#include "tests/lib/check.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

enum { THREADS = 3 };

static const struct shape {
    size_t rows;
    size_t columns;
} shapes[] = {{1, 1},    {1, 7},     {7, 1},     {31, 20},   {40, 40},   {33, 101},  {101, 33},
              {64, 127}, {128, 128}, {150, 131}, {131, 150}, {129, 290}, {290, 129}, {128, 513}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static bool in_bf16(const struct shape *s)
{
    const size_t side = s->rows < s->columns ? s->rows : s->columns;
    return side >= DP_NS_BF16_SIDE && dp_ops_best_in(DP_BF16)->terms > 1;
}

/* c [m][n] = a [m][k] b, where b is [k][n], or [n][k] if transposed. */
static void product(const double *a, const double *b, bool transposed, size_t m, size_t n, size_t k,
                    double *c)
{
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum = 0.0;
            for (size_t d = 0; d < k; d++) {
                sum += a[i * k + d] * (transposed ? b[j * k + d] : b[d * n + j]);
            }
            c[i * n + j] = sum;
        }
    }
}

/* The paper's loop, always from the left. */
static void right_factor(double *x, size_t rows, size_t columns)
{
    double *const gram = test_calloc(2 * rows * rows + rows * columns, sizeof *gram);
    double *const square = gram + rows * rows;
    double *const more = square + rows * rows;
    for (int step = 0; step < 5; step++) {
        product(x, x, true, rows, rows, columns, gram);
        product(gram, gram, false, rows, rows, rows, square);
        for (size_t i = 0; i < rows * rows; i++) {
            square[i] = -4.7750 * gram[i] + 2.0315 * square[i];
        }
        product(square, x, false, rows, columns, rows, more);
        for (size_t i = 0; i < rows * columns; i++) {
            x[i] = 3.4445 * x[i] + more[i];
        }
    }
    test_free(gram);
}

/* Uniform elements; or those of a gradient: a few large singular values, the others a
 * hundred times less. */
enum spectrum { FLAT, STEEP, LOW_RANK, SPECTRA };

static double element(enum spectrum spectrum, const struct shape *s, size_t i, double uniform)
{
    const double row = (double)(i / s->columns);
    const double column = (double)(i % s->columns);
    switch (spectrum) {
    case FLAT:
        return uniform;
    case STEEP:
        return uniform *
               pow(10.0, -4.0 * row / (double)s->rows - 2.0 * column / (double)s->columns);
    case LOW_RANK:
        return cos(0.7 * row) * sin(0.3 * column) + 0.2 * sin(0.11 * row * 1.3) * cos(column) +
               0.03 * uniform;
    case SPECTRA:
        break;
    }
    return NAN;
}

static float *draw(const struct shape *s, enum spectrum spectrum)
{
    const size_t n = s->rows * s->columns;
    float *const x = test_calloc(n, sizeof *x);
    double squares = 0.0;
    dp_rng rng;
    dp_rng_init(&rng, n);
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)element(spectrum, s, i, (double)dp_rng_below(&rng, 2001) / 1000.0 - 1.0001);
        squares += (double)x[i] * (double)x[i];
    }
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)((double)x[i] / sqrt(squares));
    }
    return x;
}

/* Of x; the caller frees. */
static float *factor_of(const struct shape *s, const float *x, bool together, dp_pool *pool)
{
    const size_t n = s->rows * s->columns;
    dp_ns_room room = {.together = together};
    dp_newton_schulz ns;
    dp_ns_widen(&room, s->rows, s->columns);
    const size_t floats = dp_ns_floats(&room);
    float *const memory = aligned_alloc(64, floats * sizeof *memory);
    float *const out = test_calloc(n, sizeof *out);
    CHECK(memory != NULL && floats % 16 == 0);
    for (size_t i = 0; i < floats; i++) {
        memory[i] = NAN;
    }
    dp_ns_carve(&ns, &room, memory);
    memcpy(ns.x, x, n * sizeof *x);
    dp_newton_schulz_run(&ns, s->rows, s->columns, pool);
    memcpy(out, ns.x, n * sizeof *x);
    free(memory);
    return out;
}

/* |got - right| / |right| in the Frobenius norm. */
static double off(const struct shape *s, enum spectrum spectrum)
{
    const size_t n = s->rows * s->columns;
    float *const x = draw(s, spectrum);
    float *const got = factor_of(s, x, false, NULL);
    double *const right = test_calloc(n, sizeof *right);
    double difference = 0.0;
    double whole = 0.0;
    for (size_t i = 0; i < n; i++) {
        right[i] = (double)x[i];
    }
    right_factor(right, s->rows, s->columns);
    for (size_t i = 0; i < n; i++) {
        difference += pow((double)got[i] - right[i], 2);
        whole += right[i] * right[i];
    }
    test_free(right);
    test_free(got);
    test_free(x);
    return sqrt(difference / whole);
}

/* Five steps enlarge roundings of 2^-24 or 2^-9, most where singular values are small. Where steps
 * in the square go on without making X again, the bounds for what is steep do not hold. */
static void the_factor_is_that_of_the_definition(void **state)
{
    (void)state;
    static const double bounds[SPECTRA][2] = {
        [FLAT] = {1e-5, 0.025}, [STEEP] = {1e-5, 0.05}, [LOW_RANK] = {1e-5, 0.1}};
    for (size_t i = 0; i < SPECTRA * SHAPES; i++) {
        const struct shape *const s = &shapes[i % SHAPES];
        const enum spectrum spectrum = (enum spectrum)(i / SHAPES);
        const double far = off(s, spectrum);
        if (!(far <= bounds[spectrum][in_bf16(s) ? 1 : 0])) {
            fail_msg("spectrum %d, %zu x %zu: %g off", (int)spectrum, s->rows, s->columns, far);
        }
    }
}

static void threads_change_no_bits(void **state)
{
    (void)state;
    dp_pool *pool = NULL;
    CHECK_OK(dp_pool_open(&pool, THREADS));
    for (size_t i = 0; i < SHAPES; i++) {
        const size_t bytes = shapes[i].rows * shapes[i].columns * sizeof(float);
        float *const x = draw(&shapes[i], FLAT);
        float *const alone = factor_of(&shapes[i], x, false, NULL);
        float *const one = factor_of(&shapes[i], x, true, NULL);
        float *const many = factor_of(&shapes[i], x, true, pool);
        assert_memory_equal(alone, one, bytes);
        assert_memory_equal(alone, many, bytes);
        test_free(many);
        test_free(one);
        test_free(alone);
        test_free(x);
    }
    dp_pool_close(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_factor_is_that_of_the_definition),
        cmocka_unit_test(threads_change_no_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
