/* Matrix products: b packed into panels of DP_PANEL columns, DP_GROUP rows of a at a time, sums in
 * registers for DP_OPS_DEPTH terms (the scheme of Goto, van de Geijn 2008, with a left where it
 * is). */

/* Rows that packing treats together: a few lines of each stay in the first cache while all panels
 * take their part, and those of the next ones are asked for: rows of a tile are short and far
 * apart, so the processor does not see them coming. */
#define DP_PACK_ROWS 8

/* Floats ahead of a transposition at which rows are asked for. */
#define DP_PACK_AHEAD (4 * DP_LINE_FLOATS)

DP_INLINE dp_vec spread(const float *a)
{
    return dp_vec_set(*a);
}

DP_INLINE dp_vec multiply_add(dp_vec a, dp_vec b, dp_vec sum)
{
    return dp_fma(a, b, sum);
}

#include "compute/cpu/fast_panel.inl"

/* One panel of b [columns][k]: squares first, then the rest below and beside them. */
static void pack_transposed(const float *b, size_t ld, size_t k, size_t columns, float *packed)
{
    const size_t whole_k = k / DP_LANES * DP_LANES;
    const size_t whole_columns = columns / DP_LANES * DP_LANES;
    for (size_t i = 0; i < whole_k; i += DP_LANES) {
        for (size_t j = 0; j < whole_columns; j += DP_LANES) {
            for (size_t row = 0; row < DP_LANES; row++) {
                DP_FETCH(b + (j + row) * ld + i + DP_PACK_AHEAD);
            }
            dp_transpose(b + j * ld + i, ld, packed + i * DP_PANEL + j, DP_PANEL);
        }
    }
    for (size_t j = 0; j < columns; j++) {
        for (size_t i = j < whole_columns ? whole_k : 0; i < k; i++) {
            packed[i * DP_PANEL + j] = b[j * ld + i];
        }
    }
}

/* One row's part of a panel. */
DP_INLINE void pack_row(const float *from, size_t columns, float *to)
{
    if (columns == DP_PANEL) {
        memcpy(to, from, DP_PANEL * sizeof *to); /* of constant size: a few vectors */
        return;
    }
    for (size_t j = 0; j < DP_PANEL; j++) {
        to[j] = j < columns ? from[j] : 0.0F;
    }
}

/* packed [panel][k][DP_PANEL], columns beyond n are 0. */
static void fast_pack(const float *b, size_t ld, bool transposed, size_t k, size_t n, float *packed)
{
    if (transposed) {
        for (size_t first = 0; first < n; first += DP_PANEL) {
            const size_t columns = least_of(n - first, DP_PANEL);
            if (columns < DP_PANEL) {
                memset(packed + first * k, 0, k * DP_PANEL * sizeof *packed);
            }
            pack_transposed(b + first * ld, ld, k, columns, packed + first * k);
        }
        return;
    }
    for (size_t row = 0; row < k; row += DP_PACK_ROWS) {
        const size_t end = least_of(k, row + DP_PACK_ROWS);
        for (size_t first = 0; first < n; first += DP_PANEL) {
            for (size_t i = row; i < end; i++) {
                DP_FETCH(b + (i + DP_PACK_ROWS) * ld + first);
                pack_row(b + i * ld + first, least_of(n - first, DP_PANEL),
                         packed + first * k + i * DP_PANEL);
            }
        }
    }
}

/* a [k][m] as packed [group][k][DP_GROUP], rows beyond m are 0. */
static void pack_groups(const float *a, size_t ld, size_t k, size_t m, float *packed)
{
    for (size_t row = 0; row < k; row += DP_PACK_ROWS) {
        const size_t end = least_of(k, row + DP_PACK_ROWS);
        for (size_t first = 0; first < m; first += DP_GROUP) {
            const size_t rows = least_of(m - first, DP_GROUP);
            for (size_t i = row; i < end; i++) {
                float *to = packed + first * k + i * DP_GROUP;
                const float *from = a + i * ld + first;
                DP_FETCH(from + DP_PACK_ROWS * ld);
                if (rows == DP_GROUP) {
                    memcpy(to, from, DP_GROUP * sizeof *to); /* of constant size */
                } else {
                    for (size_t r = 0; r < DP_GROUP; r++) {
                        to[r] = r < rows ? from[r] : 0.0F;
                    }
                }
            }
        }
    }
}

/* A product with fewer rows than a group: they are copied, since a group reads all of its rows. */
static void few_rows_times_panel(const struct rows *r, struct panel *p, const struct target *t)
{
    float some[DP_GROUP * DP_OPS_DEPTH];
    for (size_t row = 0; row < DP_GROUP; row++) {
        for (size_t i = 0; i < p->k; i++) {
            some[row * DP_OPS_DEPTH + i] =
                row < r->m ? r->a[row * r->a_row + i * r->a_depth] : 0.0F;
        }
    }
    few_times_panel(&(struct rows){.m = r->m, .a = some, .a_row = DP_OPS_DEPTH, .a_depth = 1}, p,
                    t);
}

/* Columns of a block, terms from depth on, rows of a in blocks, where they are: bringing them
 * together first costs more than rows that fall on each other in the first cache. */
static void block_times_panels(const dp_gemm *g, size_t depth, const struct block *block)
{
    const size_t k = least_of(g->k - depth, DP_OPS_DEPTH);
    for (size_t row = 0; row < g->m; row += DP_BLOCK_ROWS) {
        const struct rows rows = {.m = least_of(g->m - row, DP_BLOCK_ROWS),
                                  .a = g->a + row * g->a_row + depth * g->a_depth,
                                  .a_row = g->a_row,
                                  .a_depth = g->a_depth,
                                  .a_group = DP_GROUP * g->a_row};
        for (size_t turn = 0; turn < block->panels; turn++) {
            const size_t column = column_of(block, turn);
            struct panel panel = {k, panel_of(g, depth, column), next_panel(g, block, depth, turn),
                                  0};
            const struct target t = target_of(g, depth, row, column);
            if (rows.m < DP_GROUP) {
                few_rows_times_panel(&rows, &panel, &t);
            } else {
                rows_times_panel(&rows, &panel, &t);
            }
        }
    }
}

/* Either a_depth or a_row must be 1. */
static void fast_gemm(const dp_gemm *g)
{
    for (size_t turn = 0; turn * DP_BLOCK_COLUMNS < g->n; turn++) {
        const struct block block = block_of(g, turn);
        for (size_t depth = 0; depth < g->k; depth += DP_OPS_DEPTH) {
            block_times_panels(g, depth, &block);
        }
    }
}

/* round, unless NULL, is called for each packed operand. */
DP_INLINE void gemm_tn_with(const dp_gemm_tn *g, void (*round)(float *packed, size_t n))
{
    float *packed_a = g->scratch; /* [group][depth][DP_GROUP] */
    float *packed_b = g->scratch + DP_OPS_TILE_ROOM * DP_OPS_DEPTH;
    for (size_t depth = 0; depth < g->k; depth += DP_OPS_DEPTH) {
        const size_t terms = least_of(g->k - depth, DP_OPS_DEPTH);
        pack_groups(g->a + depth * g->lda, g->lda, terms, g->m, packed_a);
        if (round != NULL) {
            round(packed_a, (g->m + DP_GROUP - 1) / DP_GROUP * DP_GROUP * terms);
        }
        for (size_t first = 0; first < g->n; first += DP_OPS_TILE) {
            const size_t columns = least_of(g->n - first, DP_OPS_TILE);
            fast_pack(g->b + depth * g->ldb + first, g->ldb, false, terms, columns, packed_b);
            if (round != NULL) {
                round(packed_b, (columns + DP_PANEL - 1) / DP_PANEL * DP_PANEL * terms);
            }
            tile_columns(g, depth, terms, first, columns, packed_a, packed_b);
        }
    }
    dp_vec_fence_past();
}

static void fast_gemm_tn(const dp_gemm_tn *g)
{
    gemm_tn_with(g, NULL);
}
