/* The stores of matrix products, shared by all products of an instruction set: how the sums of
 * DP_GROUP rows times DP_PANEL columns go to memory. */

#define DP_PANEL_VECS (DP_PANEL / DP_LANES)

/* Rows that are left over beyond whole groups: fewer sums, but still as many as hide the latency of
 * a sum. */
#define DP_TAIL (DP_GROUP >= 6 ? DP_GROUP / 3 * 2 : DP_GROUP)

/* Columns of c to which all terms are added before the next ones' turn: a slice of a hundred rows
 * of them stays in a cache, where those of a whole vocabulary would go to memory and back for every
 * DP_OPS_DEPTH terms. */
#define DP_BLOCK_COLUMNS 1024

/* Prefetch: every few terms of a group one line of the next data is requested. The processor's own
 * prefetch starts anew with each panel, and a panel outside the caches then doubles the time of its
 * first group. */
#define DP_AHEAD_TERMS 4
#define DP_LINE_FLOATS 16
#define DP_AHEAD(k) ((k) / DP_AHEAD_TERMS * DP_LINE_FLOATS)
#define DP_FETCH(p) __builtin_prefetch((p), 0, 2)

/* Rows of a that are multiplied with all panels, or rounded, at a time: a slice of the engine, in
 * whole groups. */
#define DP_BLOCK_ROWS (144 / DP_GROUP * DP_GROUP)

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Where a group of rows and a panel of columns go; c, add and bias belong to the group's first row
 * and column. */
struct target {
    float *c;
    size_t ldc;
    const float *add; /* or NULL */
    size_t ld_add;
    const float *bias; /* or NULL */
    size_t skip;       /* rows of the group that are not stored: another group has them */
    size_t rows;       /* stored after skip */
    size_t columns;    /* stored */
    bool past;         /* whole groups go past the caches; nothing is added */
};

/* The panel of b with the terms from depth on. */
static const float *panel_of(const dp_gemm *g, size_t depth, size_t column)
{
    const size_t packed_depth = g->packed_depth == 0 ? g->k : g->packed_depth;
    const size_t floats = (packed_depth + DP_TERMS - 1) / DP_TERMS; /* of a column */
    return g->packed + column * floats + depth / DP_TERMS * DP_PANEL;
}

/* Columns of b that are multiplied in a run, those [first, end), panel after panel from some panel
 * on and around the end. */
struct block {
    size_t first;
    size_t end;
    size_t panels;
    size_t start; /* panel */
};

/* The blocks follow each other around the end too, so g->begin is in the first of them. */
DP_INLINE struct block block_of(const dp_gemm *g, size_t turn)
{
    const size_t blocks = (g->n + DP_BLOCK_COLUMNS - 1) / DP_BLOCK_COLUMNS;
    const size_t first = (g->begin / DP_BLOCK_COLUMNS + turn) % blocks * DP_BLOCK_COLUMNS;
    const size_t end = least_of(g->n, first + DP_BLOCK_COLUMNS);
    const size_t panels = (end - first + DP_PANEL - 1) / DP_PANEL;
    return (struct block){first, end, panels, g->begin / DP_PANEL % panels};
}

/* First column of the panel whose turn it is in the block. */
DP_INLINE size_t column_of(const struct block *block, size_t turn)
{
    const size_t panel = block->start + turn;
    return block->first + (panel < block->panels ? panel : panel - block->panels) * DP_PANEL;
}

/* The panel after it. */
DP_INLINE const float *next_panel(const dp_gemm *g, const struct block *block, size_t depth,
                                  size_t turn)
{
    const size_t deeper = depth + (size_t)DP_TERMS * DP_OPS_DEPTH;
    if (turn + 1 < block->panels) {
        return panel_of(g, depth, column_of(block, turn + 1));
    }
    if (deeper < g->k) {
        return panel_of(g, deeper, column_of(block, 0));
    }
    return panel_of(g, 0, block->end < g->n ? block->end : 0);
}

/* The target at (row, column) of a product, for terms from depth on; the caller sets skip and
 * rows. */
DP_INLINE struct target target_of(const dp_gemm *g, size_t depth, size_t row, size_t column)
{
    struct target t = {
        .c = g->c + row * g->ldc + column,
        .ldc = g->ldc,
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
    return t;
}

/* The same of a tile of a gradient. Nothing but the sum is a sum with zeros, which makes a 0 of
 * -0. */
DP_INLINE struct target tile_target(const dp_gemm_tn *g, size_t depth, size_t row, size_t column)
{
    static const float zeros[DP_PANEL];
    const bool fresh = g->fresh && depth == 0;
    const bool last = g->k <= (size_t)DP_TERMS * DP_OPS_DEPTH;
    float *const c = g->c + row * g->ldc + column;
    const bool aligned = (uintptr_t)c % sizeof(dp_vec) == 0 && g->ldc % DP_LANES == 0;
    return (struct target){
        .c = c,
        .ldc = g->ldc,
        .add = fresh ? NULL : c,
        .ld_add = g->ldc,
        .bias = fresh ? zeros : NULL,
        .past = g->cold && fresh && last && aligned,
        .columns = least_of(g->n - column, DP_PANEL),
    };
}

/* The first rows, a constant, of sum, to all columns of t. */
DP_INLINE void store_sums(const struct target *t, size_t rows, bool with_bias, bool with_add,
                          dp_vec sum[DP_GROUP][DP_PANEL_VECS])
{
    float *c = t->c;
    const float *add = t->add;
#pragma GCC unroll 16
    for (size_t r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (size_t j = 0; j < DP_PANEL_VECS; j++) {
            dp_vec v = sum[r][j];
            if (with_bias) {
                v += dp_vec_load(t->bias + j * DP_LANES);
            }
            if (with_add) {
                v += dp_vec_load(add + j * DP_LANES);
            }
            dp_vec_store(c + j * DP_LANES, v);
        }
        DP_STEP(c, t->ldc);
        if (with_add) {
            DP_STEP(add, t->ld_add);
        }
    }
}

/* One straight run for each case: between two groups the multipliers wait for every instruction
 * that is not theirs. */
DP_INLINE void store_whole(const struct target *t, size_t rows, dp_vec sum[DP_GROUP][DP_PANEL_VECS])
{
    if (t->bias == NULL && t->add == NULL) {
        store_sums(t, rows, false, false, sum);
    } else if (t->bias == NULL) {
        store_sums(t, rows, false, true, sum);
    } else if (t->add == NULL) {
        store_sums(t, rows, true, false, sum);
    } else {
        store_sums(t, rows, true, true, sum);
    }
}

/* sum [][DP_PANEL] in memory. The same additions in the same order as store_whole. */
static void store_part(const struct target *t, const float *sum)
{
    for (size_t r = t->skip; r < t->skip + t->rows; r++) {
        for (size_t j = 0; j < t->columns; j += DP_LANES) {
            const size_t columns = least_of(t->columns - j, DP_LANES);
            const bool whole = columns == DP_LANES;
            dp_vec v = dp_vec_load(sum + r * DP_PANEL + j);
            if (t->bias != NULL) {
                v +=
                    whole ? dp_vec_load(t->bias + j) : dp_vec_load_some(t->bias + j, columns, 0.0F);
            }
            if (t->add != NULL) {
                const float *add = t->add + r * t->ld_add + j;
                v += whole ? dp_vec_load(add) : dp_vec_load_some(add, columns, 0.0F);
            }
            if (whole) {
                dp_vec_store(t->c + r * t->ldc + j, v);
            } else {
                dp_vec_store_some(t->c + r * t->ldc + j, v, columns);
            }
        }
    }
}

DP_INLINE void store_past(const struct target *t, size_t rows, dp_vec sum[DP_GROUP][DP_PANEL_VECS])
{
#pragma GCC unroll 16
    for (size_t r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (size_t j = 0; j < DP_PANEL_VECS; j++) {
            dp_vec_store_past(t->c + r * t->ldc + j * DP_LANES, sum[r][j] + (dp_vec){0});
        }
    }
}

/* Stores for targets past the caches, with fewer rows or columns, or with rows to skip. */
DP_INLINE void store_other(const struct target *t, size_t rows, dp_vec sum[DP_GROUP][DP_PANEL_VECS])
{
    if (t->rows == rows && t->columns == DP_PANEL) {
        store_past(t, rows, sum);
        return;
    }
    float flat[DP_GROUP * DP_PANEL];
#pragma GCC unroll 16
    for (size_t r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (size_t j = 0; j < DP_PANEL_VECS; j++) {
            dp_vec_store(flat + r * DP_PANEL + j * DP_LANES, sum[r][j]);
        }
    }
    store_part(t, flat);
}

/* The same target, `row` rows on; it has `rows` of them, the first `skip` done. */
DP_INLINE struct target target_from(const struct target *t, size_t row, size_t skip, size_t rows)
{
    struct target rest = *t;
    rest.c += row * t->ldc;
    rest.add = t->add == NULL ? NULL : t->add + row * t->ld_add;
    rest.skip = skip;
    rest.rows = rows;
    return rest;
}
