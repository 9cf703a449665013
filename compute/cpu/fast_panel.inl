/* Rows of a times one packed panel of b: the innermost loops of all matrix products. The file that
 * includes this one defines a term: spread() puts an element of a into all lanes, multiply_add()
 * adds its products with a vector of the panel. */

/* Rows of a for the terms of a panel: element (row, depth) of a group at a[row * a_row + depth *
 * a_depth], one of them 1, the next group a_group further on. */
struct rows {
    size_t m;
    const float *a;
    size_t a_row;
    size_t a_depth;
    size_t a_group;
};

/* A panel, and the next one, which is prefetched while this one is multiplied. */
struct panel {
    size_t k;
    const float *b;    /* [k][DP_PANEL] */
    const float *next; /* as long */
    size_t asked;      /* floats of next */
};

/* Where the group whose turn it is asks from: DP_AHEAD(k) floats, of the panel itself when all of
 * the next one is asked for. */
DP_INLINE const float *ahead_of(struct panel *p)
{
    const float *const from = p->asked < p->k * DP_PANEL ? p->next + p->asked : p->b;
    p->asked += DP_AHEAD(p->k);
    return from;
}

/* sum [rows] += a term of a * panel. */
DP_INLINE void multiply_term(size_t rows, const float *a, size_t a_row, const float *panel,
                             dp_vec sum[DP_GROUP][DP_PANEL_VECS])
{
    dp_vec b[DP_PANEL_VECS];
#pragma GCC unroll 4
    for (size_t j = 0; j < DP_PANEL_VECS; j++) {
        b[j] = dp_vec_load(panel + j * DP_LANES);
    }
#pragma GCC unroll 16
    for (size_t r = 0; r < rows; r++) {
        const dp_vec x = spread(a + r * a_row);
#pragma GCC unroll 4
        for (size_t j = 0; j < DP_PANEL_VECS; j++) {
            sum[r][j] = multiply_add(x, b[j], sum[r][j]);
        }
    }
}

/* A row of where sums go. */
DP_INLINE void fetch_sums(const float *c)
{
    for (size_t j = 0; j < DP_PANEL; j += DP_LINE_FLOATS) {
        __builtin_prefetch(c + j, 1, 3);
    }
}

/* a moves by a constant where depths stand beside each other. */
#define DP_NEXT_TERM(near, a, a_depth)                                                             \
    do {                                                                                           \
        if (near) {                                                                                \
            (a)++;                                                                                 \
        } else {                                                                                   \
            DP_STEP(a, a_depth);                                                                   \
        }                                                                                          \
    } while (0)

/* sum [rows][DP_PANEL_VECS] = a * panel; rows and near, whether depths of a stand beside each
 * other, are constants. Meanwhile one line of the next panel is asked for every few terms, and at
 * first also a row of c [rows], where the sums go, which may be far away. */
DP_INLINE void multiply(size_t rows, bool near, const struct panel *p, const float *a,
                        size_t a_step, const float *next, const float *c, size_t ldc,
                        dp_vec sum[DP_GROUP][DP_PANEL_VECS])
{
    const size_t a_row = near ? a_step : 1;
    const size_t a_depth = near ? 1 : a_step;
    const float *panel = p->b;
    const float *const end = panel + p->k * DP_PANEL;
    const float *const turns_end = panel + p->k / DP_AHEAD_TERMS * DP_AHEAD_TERMS * DP_PANEL;
#pragma GCC unroll 16
    for (size_t r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (size_t j = 0; j < DP_PANEL_VECS; j++) {
            sum[r][j] = (dp_vec){0};
        }
    }
    for (size_t r = p->k / DP_AHEAD_TERMS; r < rows; r++) { /* Too few terms for all rows. */
        fetch_sums(c + r * ldc);
    }
    for (size_t r = 0; r < rows && panel < turns_end; r++) {
        DP_FETCH(next);
        fetch_sums(c);
#pragma GCC unroll 4
        for (size_t term = 0; term < DP_AHEAD_TERMS; term++) {
            multiply_term(rows, a, a_row, panel + term * DP_PANEL, sum);
            DP_NEXT_TERM(near, a, a_depth);
        }
        c += ldc;
        next += DP_LINE_FLOATS;
        panel += (size_t)DP_AHEAD_TERMS * DP_PANEL;
    }
    while (panel < turns_end) {
        DP_FETCH(next);
#pragma GCC unroll 4
        for (size_t term = 0; term < DP_AHEAD_TERMS; term++) {
            multiply_term(rows, a, a_row, panel + term * DP_PANEL, sum);
            DP_NEXT_TERM(near, a, a_depth);
        }
        next += DP_LINE_FLOATS;
        panel += (size_t)DP_AHEAD_TERMS * DP_PANEL;
    }
    for (; panel < end; panel += DP_PANEL) {
        multiply_term(rows, a, a_row, panel, sum);
        DP_NEXT_TERM(near, a, a_depth);
    }
}

/* Loops around it keep more than there are registers for. Compiled for any processor, gcc puts that
 * into vectors, from where it comes back behind all multiplications that wait: a fortieth of a
 * product. */
#if defined(DP_TUNE) && !defined(__clang__)
#define DP_OUTER_LOOP __attribute__((noinline, target(DP_TUNE)))
#else
#define DP_OUTER_LOOP __attribute__((noinline))
#endif

/* n groups, the first of them at t. */
DP_INLINE void groups_by(size_t rows, bool near, size_t n, const struct rows *r, struct panel *p,
                         const struct target *t)
{
    for (size_t group = 0; group < n; group++) {
        dp_vec sum[DP_GROUP][DP_PANEL_VECS];
        const struct target here = target_from(t, group * rows, t->skip, t->rows);
        multiply(rows, near, p, r->a + group * r->a_group, near ? r->a_row : r->a_depth,
                 ahead_of(p), t->past ? p->b : here.c, t->past ? 0 : t->ldc, sum);
        if (t->rows == rows && t->columns == DP_PANEL && !t->past) {
            store_whole(&here, rows, sum);
        } else {
            store_other(&here, rows, sum);
        }
    }
}

DP_OUTER_LOOP static void groups_times_panel(size_t n, const struct rows *r, struct panel *p,
                                             const struct target *t)
{
    if (r->a_depth == 1) {
        groups_by(DP_GROUP, true, n, r, p, t);
    } else {
        groups_by(DP_GROUP, false, n, r, p, t);
    }
}

/* The last rows, at most DP_TAIL of them: all DP_TAIL are read. */
DP_OUTER_LOOP static void tail_times_panel(const struct rows *r, struct panel *p,
                                           const struct target *t)
{
    if (r->a_depth == 1) {
        groups_by(DP_TAIL, true, 1, r, p, t);
    } else {
        groups_by(DP_TAIL, false, 1, r, p, t);
    }
}

/* Rows from `row` on as rows of their own. */
DP_INLINE struct rows rows_from(const struct rows *r, size_t row)
{
    struct rows rest = *r;
    rest.m -= row;
    rest.a += row * r->a_row;
    return rest;
}

/* Any number of rows from DP_GROUP on, in order: those left over beyond whole groups begin early
 * and skip finished rows. One or a few more than a group are two tails instead, which have more
 * sums than a tail alone would fill. */
static void rows_times_panel(const struct rows *r, struct panel *p, const struct target *first)
{
    const size_t over = r->m % DP_GROUP;
    size_t done = r->m - over;
    if (over > 0 && over <= 2 * DP_TAIL - DP_GROUP) {
        done -= DP_GROUP;
    }
    const struct target groups = target_from(first, 0, 0, DP_GROUP);
    groups_times_panel(done / DP_GROUP, r, p, &groups);
    while (done < r->m) {
        const size_t left = r->m - done;
        const size_t size = left <= DP_TAIL || left > DP_GROUP ? DP_TAIL : DP_GROUP;
        const size_t some = least_of(left, size);
        const size_t row = done + some - size;
        const struct rows rest = rows_from(r, row);
        const struct target t = target_from(first, row, size - some, some);
        if (size == DP_TAIL) {
            tail_times_panel(&rest, p, &t);
        } else {
            groups_times_panel(1, &rest, p, &t);
        }
        done += some;
    }
}

/* Fewer rows than a group, at the beginning of a group: all of its rows are read. */
static void few_times_panel(const struct rows *r, struct panel *p, const struct target *first)
{
    const struct target t = target_from(first, 0, 0, r->m);
    if (r->m <= DP_TAIL) {
        tail_times_panel(r, p, &t);
    } else {
        groups_times_panel(1, r, p, &t);
    }
}

/* Columns [first, first + columns) of a tile of a gradient. Its terms from depth on are packed, k
 * of them: a as [group][k][DP_GROUP], b as [panel][k][DP_PANEL]. */
static void tile_columns(const dp_gemm_tn *g, size_t depth, size_t k, size_t first, size_t columns,
                         const float *packed_a, const float *packed_b)
{
    const size_t whole = g->m / DP_GROUP * DP_GROUP;
    const struct rows groups = {whole, packed_a, 1, DP_GROUP, DP_GROUP * k};
    const struct rows last = {g->m - whole, packed_a + whole * k, 1, DP_GROUP, DP_GROUP * k};
    for (size_t column = 0; column < columns; column += DP_PANEL) {
        const float *const b = packed_b + column * k;
        struct panel panel = {k, b, b, 0};
        const struct target t = tile_target(g, depth, 0, first + column);
        const struct target whole_groups = target_from(&t, 0, 0, DP_GROUP);
        groups_times_panel(whole / DP_GROUP, &groups, &panel, &whole_groups);
        if (last.m > 0) {
            const struct target rest = target_from(&t, whole, 0, last.m);
            few_times_panel(&last, &panel, &rest);
        }
    }
}
