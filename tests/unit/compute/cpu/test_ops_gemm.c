#include "tests/unit/compute/ops_check.h"

/* transposed: b is [n][k]; deep: a is [k][m] (a_depth != 1). */
static void check_gemm(const dp_ops *ops, size_t m, size_t n, size_t k, bool transposed, bool deep)
{
    float *a = fill(m * k, 1, 1.0F);
    float *b = fill(n * k, 2, 1.0F);
    float *add = fill(m * n, 3, 1.0F);
    float *bias = fill(n, 4, 1.0F);
    float *c = poison(m * n);
    float *packed = room(dp_packed_floats(ops, k, n));
    ops->pack(b, transposed ? k : n, transposed, k, n, packed);
    ops->gemm(&(dp_gemm){.m = m,
                         .n = n,
                         .k = k,
                         .a = a,
                         .a_row = deep ? 1 : k,
                         .a_depth = deep ? m : 1,
                         .packed = packed,
                         .c = c,
                         .ldc = n,
                         .add = add,
                         .ld_add = n,
                         .bias = bias});
    for (size_t row = 0; row < m; row++) {
        for (size_t j = 0; j < n; j++) {
            double sum = (double)bias[j] + (double)add[row * n + j];
            for (size_t i = 0; i < k; i++) {
                const float x = a[deep ? i * m + row : row * k + i];
                const float y = b[transposed ? j * k + i : i * n + j];
                sum +=
                    (double)dp_round_to(ops->precision, x) * (double)dp_round_to(ops->precision, y);
            }
            check(ops, "gemm", (double)c[row * n + j], sum, 1e-6 * sqrt((double)k) + 2e-6);
        }
    }
    free(a);
    free(b);
    free(add);
    free(bias);
    free(c);
    free(packed);
}

static void check_products(const dp_ops *ops)
{
    for (size_t i = 0; i < N_SIZES; i++) {
        for (size_t j = 0; j < N_SIZES; j++) {
            check_gemm(ops, sizes[i], sizes[j], sizes[(i + j) % N_SIZES], j % 2 == 0, i % 2 == 0);
        }
    }
    check_gemm(ops, 9, 33, DP_OPS_DEPTH + 1, false, false);
    check_gemm(ops, 9, 33, 2 * DP_OPS_DEPTH, true, true);
    check_gemm(ops, 131, 5, 2 * DP_OPS_DEPTH + 3, true, false);
    check_gemm(ops, 131, 5, 4 * DP_OPS_DEPTH + 3, false, true);
    check_gemm(ops, 150, 300, DP_OPS_DEPTH + 9, false, false); /* two blocks of rows */
    for (size_t m = 12; m < 24; m++) { /* every number of rows beyond whole groups */
        check_gemm(ops, m, 35, 50, false, m % 2 == 0);
        check_gemm(ops, m + 12, 35, 50, false, m % 2 == 1);
    }
}

/* Rows of a product of m rows, cut at an index, by two calls; and a product that begins with
 * another column. */
static void check_cuts(const dp_ops *ops)
{
    enum { M = 40, N = 300, DEPTH = DP_OPS_DEPTH + 5 };
    float *a = fill((size_t)M * DEPTH, 8, 1.0F);
    float *b = fill((size_t)N * DEPTH, 9, 1.0F);
    float *whole = poison((size_t)M * N);
    float *parts = poison((size_t)M * N);
    float *packed = room(dp_packed_floats(ops, DEPTH, N));
    dp_gemm g = {
        .m = M, .n = N, .k = DEPTH, .a = a, .a_row = DEPTH, .a_depth = 1, .c = whole, .ldc = N};
    ops->pack(b, N, false, DEPTH, N, packed);
    g.packed = packed;
    ops->gemm(&g);
    for (size_t cut = 1; cut < M; cut += 5) {
        dp_gemm first = g;
        dp_gemm second = g;
        first.m = cut;
        first.c = parts;
        second.m = M - cut;
        second.a = a + cut * DEPTH;
        second.c = parts + cut * N;
        ops->gemm(&first);
        ops->gemm(&second);
        assert_memory_equal(whole, parts, (size_t)M * N * sizeof *whole);
    }
    static const size_t begins[] = {1, 31, 64, 150, N - 1};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        dp_gemm other = g;
        other.begin = begins[i];
        other.c = parts;
        memset(parts, 0xff, (size_t)M * N * sizeof *parts);
        ops->gemm(&other);
        assert_memory_equal(whole, parts, (size_t)M * N * sizeof *whole);
    }
    free(a);
    free(b);
    free(whole);
    free(parts);
    free(packed);
}

static void a_product_cut_into_rows_or_begun_elsewhere_has_the_same_bits(void **state)
{
    (void)state;
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        for (size_t o = 0; dp_ops_at_in(precision, o) != NULL; o++) {
            check_cuts(dp_ops_at_in(precision, o));
        }
    }
}

/* The rows of a panel that was packed from a transposed: the same bits as the rows themselves. */
static void check_packed_left(const dp_ops *ops, size_t m, size_t n, size_t k)
{
    float *a = fill(m * k, 10, 1.0F);
    float *b = fill(n * k, 11, 1.0F);
    float *wanted = poison(m * n);
    float *c = poison(m * n);
    float *left = room(dp_packed_floats(ops, k, m));
    float *packed = room(dp_packed_floats(ops, k, n));
    ops->pack(a, k, true, k, m, left);
    ops->pack(b, n, false, k, n, packed);
    ops->gemm(&(dp_gemm){.m = m,
                         .n = n,
                         .k = k,
                         .a = a,
                         .a_row = k,
                         .a_depth = 1,
                         .packed = packed,
                         .c = wanted,
                         .ldc = n});
    for (size_t row = 0; row < m; row += ops->panel) {
        ops->gemm(&(dp_gemm){.m = m - row < ops->panel ? m - row : ops->panel,
                             .n = n,
                             .k = k,
                             .a = left + row * ((k + ops->terms - 1) / ops->terms),
                             .a_row = 1,
                             .a_depth = ops->panel,
                             .a_packed = true,
                             .packed = packed,
                             .c = c + row * n,
                             .ldc = n});
    }
    assert_memory_equal(c, wanted, m * n * sizeof *c);
    free(a);
    free(b);
    free(wanted);
    free(c);
    free(left);
    free(packed);
}

static void a_packed_left_side_gives_the_bits_of_its_rows(void **state)
{
    (void)state;
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        for (size_t o = 0; dp_ops_at_in(precision, o) != NULL; o++) {
            for (size_t i = 0; i < N_SIZES; i++) {
                check_packed_left(dp_ops_at_in(precision, o), sizes[i], 37, sizes[N_SIZES - 1 - i]);
            }
            check_packed_left(dp_ops_at_in(precision, o), 70, 1100, 2 * DP_OPS_DEPTH + 7);
        }
    }
}

static void products_are_right_for_odd_shapes(void **state)
{
    (void)state;
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        for (size_t o = 0; dp_ops_at_in(precision, o) != NULL; o++) {
            check_products(dp_ops_at_in(precision, o));
        }
    }
}

/* A tile of a weight's gradient that is to be added to c [m][n]. */
static dp_gemm_tn tile_of(const dp_ops *ops, size_t m, size_t n, size_t k, float *c)
{
    return (dp_gemm_tn){.m = m,
                        .n = n,
                        .k = k,
                        .a = fill(m * k, 5, 1.0F),
                        .lda = m,
                        .b = fill(n * k, 6, 1.0F),
                        .ldb = n,
                        .c = c,
                        .ldc = n,
                        .scratch = room(ops->tile_scratch + 1)};
}

static void free_tile(const dp_gemm_tn *tile)
{
    free((void *)(uintptr_t)tile->a);
    free((void *)(uintptr_t)tile->b);
    free(tile->scratch);
}

static void check_weight_tile(const dp_ops *ops, size_t m, size_t n, size_t k)
{
    float *c = fill(m * n, 7, 1.0F);
    float *before = fill(m * n, 7, 1.0F);
    const dp_gemm_tn tile = tile_of(ops, m, n, k, c);
    ops->gemm_tn(&tile);
    for (size_t row = 0; row < m; row++) {
        for (size_t j = 0; j < n; j++) {
            double sum = (double)before[row * n + j];
            for (size_t i = 0; i < k; i++) {
                sum += (double)dp_round_to(ops->precision, tile.a[i * m + row]) *
                       (double)dp_round_to(ops->precision, tile.b[i * n + j]);
            }
            check(ops, "gemm_tn", (double)c[row * n + j], sum, 1e-6 * sqrt((double)k) + 2e-6);
        }
    }
    free(c);
    free(before);
    free_tile(&tile);
}

static void weight_gradient_tiles_add_up(void **state)
{
    (void)state;
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        for (size_t o = 0; dp_ops_at_in(precision, o) != NULL; o++) {
            const dp_ops *ops = dp_ops_at_in(precision, o);
            check_weight_tile(ops, 1, 1, 1);
            check_weight_tile(ops, 17, 33, 300);
            check_weight_tile(ops, ops->tile_rows, DP_OPS_TILE, 31);
            check_weight_tile(ops, ops->tile_rows - 1, 5, 2 * DP_OPS_DEPTH);
            check_weight_tile(ops, 3, 50, 2 * DP_OPS_DEPTH + 7);
            check_weight_tile(ops, 14, 2 * DP_OPS_TILE + 5, DP_OPS_DEPTH + 9);
        }
    }
}

/* No previous content remains, not even a NaN: zeros would give the same result. If c has whole
 * vectors, cold ones are written past the caches; `past` floats further on this is not possible. */
static void check_fresh_tile(const dp_ops *ops, size_t m, size_t n, size_t k, bool cold,
                             size_t past)
{
    float *zeros = room(m * n);
    float *fresh = room(m * n + past);
    dp_gemm_tn tile = tile_of(ops, m, n, k, zeros);
    for (size_t i = 0; i < k; i++) {
        memset((void *)(uintptr_t)(tile.a + i * m), 0, sizeof *tile.a); /* gives 0 and -0 */
    }
    memset(zeros, 0, m * n * sizeof *zeros);
    ops->gemm_tn(&tile);
    tile.c = fresh + past;
    tile.fresh = true;
    tile.cold = cold;
    ops->gemm_tn(&tile);
    assert_memory_equal(zeros, fresh + past, m * n * sizeof *zeros);
    free(zeros);
    free(fresh);
    free_tile(&tile);
}

static void a_fresh_tile_is_one_added_to_zeros(void **state)
{
    (void)state;
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        for (size_t o = 0; dp_ops_at_in(precision, o) != NULL; o++) {
            const dp_ops *ops = dp_ops_at_in(precision, o);
            for (size_t cold = 0; cold < 2; cold++) {
                check_fresh_tile(ops, 17, 33, 300, cold, 0);
                check_fresh_tile(ops, ops->tile_rows, DP_OPS_TILE, 31, cold, 0);
                check_fresh_tile(ops, 29, DP_OPS_TILE + 48, DP_OPS_DEPTH, cold, 0);
                check_fresh_tile(ops, 29, DP_OPS_TILE + 48, DP_OPS_DEPTH, cold, 3);
                check_fresh_tile(ops, 3, 50, 2 * DP_OPS_DEPTH + 7, cold, 0);
                check_fresh_tile(ops, 5, DP_OPS_TILE + 16, 2 * DP_OPS_DEPTH + 3, cold, 0);
            }
        }
    }
}

static void check_short_product(const dp_ops *ops)
{
    enum { N = 70, DEPTH = 9, SHORT = 5 };
    float *b = fill((size_t)N * DEPTH, 17, 1.0F);
    float *a = fill(SHORT, 18, 1.0F);
    float *packed = room(dp_packed_floats(ops, DEPTH, N));
    float c[N];
    ops->pack(b, N, false, DEPTH, N, packed);
    ops->gemm(&(dp_gemm){.m = 1,
                         .n = N,
                         .k = SHORT,
                         .a = a,
                         .a_row = SHORT,
                         .a_depth = 1,
                         .packed = packed,
                         .packed_depth = DEPTH,
                         .c = c,
                         .ldc = N});
    for (size_t j = 0; j < N; j++) {
        double sum = 0.0;
        for (size_t i = 0; i < SHORT; i++) {
            sum += (double)dp_round_to(ops->precision, a[i]) *
                   (double)dp_round_to(ops->precision, b[i * N + j]);
        }
        check(ops, "short product", (double)c[j], sum, 1e-6);
    }
    free(a);
    free(b);
    free(packed);
}

static void packing_a_longer_b_serves_a_shorter_product(void **state)
{
    (void)state;
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        for (size_t o = 0; dp_ops_at_in(precision, o) != NULL; o++) {
            check_short_product(dp_ops_at_in(precision, o));
        }
    }
}

/* c [M][N] of ones, but for one element of a or b. */
static void product_with(const dp_ops *ops, float value, size_t bad, bool in_b, float *c)
{
    enum { M = 5, N = 18, K = 7 };
    float a[M * K];
    float b[K * N];
    float *packed = room(dp_packed_floats(ops, K, N));
    for (size_t i = 0; i < sizeof a / sizeof a[0]; i++) {
        a[i] = !in_b && i == bad ? value : 1.0F;
    }
    for (size_t i = 0; i < sizeof b / sizeof b[0]; i++) {
        b[i] = in_b && i == bad ? value : 1.0F;
    }
    ops->pack(b, N, false, K, N, packed);
    ops->gemm(&(dp_gemm){.m = M,
                         .n = N,
                         .k = K,
                         .a = a,
                         .a_row = K,
                         .a_depth = 1,
                         .packed = packed,
                         .c = c,
                         .ldc = N});
    free(packed);
}

static void check_nan(const dp_ops *ops)
{
    enum { M = 5, N = 18, K = 7 };
    float c[M * N];
    for (size_t bad = 0; bad < (size_t)M * K; bad++) {
        product_with(ops, NAN, bad, false, c);
        for (size_t i = 0; i < (size_t)M * N; i++) {
            assert_true(isnan(c[i]) == (i / N == bad / K));
        }
    }
    for (size_t bad = 0; bad < (size_t)K * N; bad++) {
        product_with(ops, NAN, bad, true, c);
        for (size_t i = 0; i < (size_t)M * N; i++) {
            assert_true(isnan(c[i]) == (i % N == bad % N));
        }
    }
}

static void a_nan_shows_in_its_row_or_column_of_a_product(void **state)
{
    (void)state;
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        for (size_t o = 0; dp_ops_at_in(precision, o) != NULL; o++) {
            check_nan(dp_ops_at_in(precision, o));
        }
    }
}

static void values_beyond_a_half_are_infinite_in_a_product(void **state)
{
    (void)state;
    enum { N = 18 };
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        for (size_t o = 0; dp_ops_at_in(precision, o) != NULL; o++) {
            float c[5 * N];
            product_with(dp_ops_at_in(precision, o), 65520.0F, 3, false, c);
            assert_true(isinf(c[0]) == (precision == DP_FP16));
            product_with(dp_ops_at_in(precision, o), 65519.0F, 3, true, c);
            assert_true(isfinite(c[3]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right_for_odd_shapes),
        cmocka_unit_test(a_packed_left_side_gives_the_bits_of_its_rows),
        cmocka_unit_test(a_product_cut_into_rows_or_begun_elsewhere_has_the_same_bits),
        cmocka_unit_test(weight_gradient_tiles_add_up),
        cmocka_unit_test(a_fresh_tile_is_one_added_to_zeros),
        cmocka_unit_test(packing_a_longer_b_serves_a_shorter_product),
        cmocka_unit_test(a_nan_shows_in_its_row_or_column_of_a_product),
        cmocka_unit_test(values_beyond_a_half_are_infinite_in_a_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
