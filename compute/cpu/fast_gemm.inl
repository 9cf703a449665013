/* Matrix products: b packed into panels of DP_PANEL columns, DP_GROUP rows of a at a time, sums in registers for
 * DP_OPS_DEPTH terms (the scheme of Goto, van de Geijn 2008, with a left where it is). */

#define DP_PANEL_VECS (DP_PANEL / DP_LANES)

/* packed [panel][k][DP_PANEL], columns beyond n are 0. */
static void fast_pack(const float *b, size_t ld, bool transposed, size_t k, size_t n, float *packed)
{
    for (size_t first = 0; first < n; first += DP_PANEL) {
        const size_t columns = n - first < DP_PANEL ? n - first : DP_PANEL;
        if (columns < DP_PANEL) {
            memset(packed, 0, k * DP_PANEL * sizeof *packed);
        }
        if (transposed) {
            for (size_t j = 0; j < columns; j++) {
                const float *row = b + (first + j) * ld;
                for (size_t i = 0; i < k; i++) {
                    packed[i * DP_PANEL + j] = row[i];
                }
            }
        } else {
            for (size_t i = 0; i < k; i++) {
                memcpy(packed + i * DP_PANEL, b + i * ld + first, columns * sizeof *packed);
            }
        }
        packed += k * DP_PANEL;
    }
}

/* sum [DP_GROUP][DP_PANEL_VECS] = a * panel over k terms. */
DP_INLINE void multiply_group(size_t k, const float *a, size_t a_row, size_t a_depth,
                              const float *panel, dp_vec sum[DP_GROUP][DP_PANEL_VECS])
{
#pragma GCC unroll 16
    for (size_t r = 0; r < DP_GROUP; r++) {
#pragma GCC unroll 4
        for (size_t j = 0; j < DP_PANEL_VECS; j++) {
            sum[r][j] = (dp_vec){0};
        }
    }
    for (size_t i = 0; i < k; i++) {
        dp_vec b[DP_PANEL_VECS];
#pragma GCC unroll 4
        for (size_t j = 0; j < DP_PANEL_VECS; j++) {
            b[j] = dp_load(panel + i * DP_PANEL + j * DP_LANES);
        }
#pragma GCC unroll 16
        for (size_t r = 0; r < DP_GROUP; r++) {
            const dp_vec x = dp_set(a[r * a_row + i * a_depth]);
#pragma GCC unroll 4
            for (size_t j = 0; j < DP_PANEL_VECS; j++) {
                sum[r][j] = dp_fma(x, b[j], sum[r][j]);
            }
        }
    }
}

/* Where a group of rows and a panel of columns go. */
struct target {
    float *c;
    size_t ldc;
    const float *add; /* or NULL */
    size_t ld_add;
    const float *bias; /* or NULL */
    size_t rows;
    size_t columns;
};

DP_INLINE void store_whole(const struct target *t, dp_vec sum[DP_GROUP][DP_PANEL_VECS])
{
#pragma GCC unroll 16
    for (size_t r = 0; r < DP_GROUP; r++) {
#pragma GCC unroll 4
        for (size_t j = 0; j < DP_PANEL_VECS; j++) {
            dp_vec v = sum[r][j];
            if (t->bias != NULL) {
                v += dp_load(t->bias + j * DP_LANES);
            }
            if (t->add != NULL) {
                v += dp_load(t->add + r * t->ld_add + j * DP_LANES);
            }
            dp_store(t->c + r * t->ldc + j * DP_LANES, v);
        }
    }
}

static __attribute__((noinline)) void store_part(const struct target *t, const float *sum)
{
    for (size_t r = 0; r < t->rows; r++) {
        for (size_t j = 0; j < t->columns; j++) {
            float v = sum[r * DP_PANEL + j];
            if (t->bias != NULL) {
                v += t->bias[j];
            }
            if (t->add != NULL) {
                v += t->add[r * t->ld_add + j];
            }
            t->c[r * t->ldc + j] = v;
        }
    }
}

/* Rows of a beside each other in memory (a_depth 1) are worth a copy of the loop of their own. */
static void group_times_panel(size_t k, const float *a, size_t a_row, size_t a_depth,
                              const float *panel, const struct target *t)
{
    dp_vec sum[DP_GROUP][DP_PANEL_VECS];
    float some[DP_GROUP * DP_OPS_DEPTH];
    if (t->rows < DP_GROUP) {
        memset(some, 0, sizeof some);
        for (size_t r = 0; r < t->rows; r++) {
            for (size_t i = 0; i < k; i++) {
                some[r * DP_OPS_DEPTH + i] = a[r * a_row + i * a_depth];
            }
        }
        a = some;
        a_row = DP_OPS_DEPTH;
        a_depth = 1;
    }
    if (a_depth == 1) {
        multiply_group(k, a, a_row, 1, panel, sum);
    } else {
        multiply_group(k, a, 1, a_depth, panel, sum);
    }
    if (t->rows == DP_GROUP && t->columns == DP_PANEL) {
        store_whole(t, sum);
        return;
    }
    float flat[DP_GROUP * DP_PANEL];
    for (size_t r = 0; r < DP_GROUP; r++) {
        for (size_t j = 0; j < DP_PANEL_VECS; j++) {
            dp_store(flat + r * DP_PANEL + j * DP_LANES, sum[r][j]);
        }
    }
    store_part(t, flat);
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Either a_depth or a_row must be 1. */
static void fast_gemm(const dp_gemm *g)
{
    const size_t packed_depth = g->packed_depth == 0 ? g->k : g->packed_depth;
    for (size_t depth = 0; depth < g->k; depth += DP_OPS_DEPTH) {
        const size_t k = least_of(g->k - depth, DP_OPS_DEPTH);
        for (size_t column = 0; column < g->n; column += DP_PANEL) {
            const float *panel = g->packed + column * packed_depth + depth * DP_PANEL;
            for (size_t row = 0; row < g->m; row += DP_GROUP) {
                struct target t = {
                    .c = g->c + row * g->ldc + column,
                    .ldc = g->ldc,
                    .rows = least_of(g->m - row, DP_GROUP),
                    .columns = least_of(g->n - column, DP_PANEL),
                };
                if (depth > 0) {
                    t.add = t.c;
                    t.ld_add = t.ldc;
                } else {
                    t.add = g->add == NULL ? NULL : g->add + row * g->ld_add + column;
                    t.ld_add = g->ld_add;
                    t.bias = g->bias == NULL ? NULL : g->bias + column;
                }
                group_times_panel(k, g->a + row * g->a_row + depth * g->a_depth, g->a_row,
                                  g->a_depth, panel, &t);
            }
        }
    }
}

static void fast_gemm_tn(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
                         size_t ldb, float *c, size_t ldc, float *scratch)
{
    float *packed_a = scratch; /* [group][depth][DP_GROUP] */
    float *packed_b = scratch + DP_OPS_TILE_ROOM * DP_OPS_DEPTH;
    for (size_t depth = 0; depth < k; depth += DP_OPS_DEPTH) {
        const size_t terms = least_of(k - depth, DP_OPS_DEPTH);
        fast_pack(b + depth * ldb, ldb, false, terms, n, packed_b);
        for (size_t row = 0; row < m; row += DP_GROUP) {
            const size_t rows = least_of(m - row, DP_GROUP);
            float *to = packed_a + row * terms;
            const float *from = a + depth * lda + row;
            for (size_t i = 0; i < terms; i++) {
                if (rows == DP_GROUP) {
                    memcpy(to + i * DP_GROUP, from + i * lda, DP_GROUP * sizeof *to);
                } else {
                    memcpy(to + i * DP_GROUP, from + i * lda, rows * sizeof *to);
                }
            }
        }
        for (size_t column = 0; column < n; column += DP_PANEL) {
            for (size_t row = 0; row < m; row += DP_GROUP) {
                const struct target t = {
                    .c = c + row * ldc + column,
                    .ldc = ldc,
                    .add = c + row * ldc + column,
                    .ld_add = ldc,
                    .rows = least_of(m - row, DP_GROUP),
                    .columns = least_of(n - column, DP_PANEL),
                };
                group_times_panel(terms, packed_a + row * terms, 1, DP_GROUP,
                                  packed_b + column * terms, &t);
            }
        }
    }
}
