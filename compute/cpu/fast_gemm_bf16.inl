/* Matrix products of inputs rounded to bf16, with the instruction that multiplies and adds pairs
 * (vdpbf16ps). Sums are fp32. The scheme of fast_gemm.inl, but a is rounded, DP_BLOCK_ROWS rows and
 * DP_PAIRS pairs at a time, before it is multiplied. */

#define DP_PAIRS DP_OPS_DEPTH /* of terms, between stores of sums */

/* A pair, which is only moved. */
DP_INLINE dp_vec spread(const float *a)
{
    int pair;
    memcpy(&pair, a, sizeof pair);
    return (dp_vec)_mm512_set1_epi32(pair);
}

DP_INLINE dp_vec multiply_add(dp_vec a, dp_vec b, dp_vec sum)
{
    return (dp_vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}

#include "compute/cpu/fast_pairs.inl"
#include "compute/cpu/fast_panel.inl"

/* Rows [row, row + rows) and terms from depth on of a, rounded: [row][DP_PAIRS], or
 * [pair][DP_BLOCK_ROWS] where a's rows stand beside each other. A group has all of its rows, those
 * beyond are 0. */
DP_INLINE void round_block(const dp_gemm *g, size_t row, size_t rows, size_t depth, uint32_t *to)
{
    const float *a = g->a + row * g->a_row + depth * g->a_depth;
    const size_t k = least_of(g->k - depth, 2 * DP_PAIRS);
    if (g->a_depth != 1) {
        const size_t whole = rows < DP_GROUP ? DP_GROUP : rows;
        for (size_t i = 0; i < k; i += 2) {
            const float *first = a + i * g->a_depth;
            pair_rows(first, i + 1 < k ? first + g->a_depth : NULL, rows, whole,
                      to + i / 2 * DP_BLOCK_ROWS);
        }
        return;
    }
    for (size_t r = 0; r < rows; r++) {
        fetch_run(a + (r + DP_ROWS_AHEAD) * g->a_row, k);
        for (size_t i = 0; i < k; i += 2 * DP_LANES) {
            _mm512_storeu_si512(to + r * DP_PAIRS + i / 2, round_run(a + r * g->a_row + i, k - i));
        }
    }
    for (size_t r = rows; r < DP_GROUP; r++) {
        memset(to + r * DP_PAIRS, 0, (k + 1) / 2 * sizeof *to);
    }
}

/* Columns of a block. */
static void fast_gemm_block(const dp_gemm *g, size_t row, size_t depth, const struct block *block)
{
    uint32_t a[DP_BLOCK_ROWS * DP_PAIRS];
    const size_t m = least_of(g->m - row, DP_BLOCK_ROWS);
    const size_t pairs = (least_of(g->k - depth, 2 * DP_PAIRS) + 1) / 2;
    const size_t a_row = g->a_depth == 1 ? DP_PAIRS : 1;
    struct rows rows = {.m = m,
                        .a = (const float *)(const void *)a,
                        .a_row = a_row,
                        .a_depth = g->a_depth == 1 ? 1 : DP_BLOCK_ROWS,
                        .a_group = DP_GROUP * a_row};
    if (g->a_packed) { /* [pair][DP_PANEL] */
        rows.a = g->a + depth / 2 * DP_PANEL;
        rows.a_depth = DP_PANEL;
    } else {
        round_block(g, row, m, depth, a);
    }
    for (size_t turn = 0; turn < block->panels; turn++) {
        const size_t column = column_of(block, turn);
        struct panel panel = {pairs, panel_of(g, depth, column), next_panel(g, block, depth, turn),
                              0};
        const struct target t = target_of(g, depth, row, column);
        if (m < DP_GROUP) {
            few_times_panel(&rows, &panel, &t);
        } else {
            rows_times_panel(&rows, &panel, &t);
        }
    }
}

static void fast_gemm(const dp_gemm *g)
{
    for (size_t row = 0; row < g->m; row += DP_BLOCK_ROWS) {
        for (size_t turn = 0; turn * DP_BLOCK_COLUMNS < g->n; turn++) {
            const struct block block = block_of(g, turn);
            for (size_t depth = 0; depth < g->k; depth += 2 * DP_PAIRS) {
                fast_gemm_block(g, row, depth, &block);
            }
        }
    }
}

static void fast_gemm_tn(const dp_gemm_tn *g)
{
    uint32_t *packed_a = (uint32_t *)(void *)g->scratch; /* [group][pair][DP_GROUP] */
    float *packed_b = g->scratch + DP_OPS_TILE_ROOM * DP_PAIRS;
    for (size_t depth = 0; depth < g->k; depth += 2 * DP_PAIRS) {
        const size_t terms = least_of(g->k - depth, 2 * DP_PAIRS);
        pack_pairs(g->a + depth * g->lda, g->lda, terms, g->m, DP_GROUP, packed_a);
        for (size_t first = 0; first < g->n; first += DP_OPS_TILE) {
            const size_t columns = least_of(g->n - first, DP_OPS_TILE);
            fast_pack(g->b + depth * g->ldb + first, g->ldb, false, terms, columns, packed_b);
            tile_columns(g, depth, (terms + 1) / 2, first, columns, g->scratch, packed_b);
        }
    }
    dp_vec_fence_past();
}
