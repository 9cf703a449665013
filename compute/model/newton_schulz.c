#include "compute/model/newton_schulz.h"

#include "base/assert.h"

enum {
    ALIGN = 16,    /* floats: 64 bytes */
    LONGER = 128,  /* of the longer side per task: whole panels, and in a cache while Q passes */
    LONG_SIDE = 2, /* lesser sides in the longer one, from which steps in the square are cheaper */
    STEPS = 5,
    STEPS_FIRST = 3 /* in the square, before X is made */
};

static const float ns_a = 3.4445F;
static const float ns_b = -4.7750F;
static const float ns_c = 2.0315F;

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static const dp_ops *ops_of(size_t side)
{
    const dp_ops *const bf16 = dp_ops_best_in(DP_BF16);
    return side >= DP_NS_BF16_SIDE && bf16->terms > 1 ? bf16 : dp_ops_best();
}

/* ---- Room. */

void dp_ns_widen(dp_ns_room *room, size_t rows, size_t columns)
{
    const size_t side = least(rows, columns);
    const size_t longer = most(rows, columns);
    const dp_ops *const ops = ops_of(side);
    const size_t parts = room->together ? (longer + LONGER - 1) / LONGER : 1;
    const size_t strips = room->together ? (side + ops->panel - 1) / ops->panel : 1;
    room->matrix = most(room->matrix, rows * columns);
    room->square = most(room->square, side * side);
    room->part = most(room->part, most(parts * LONGER, strips * ops->panel) * side);
    room->packed = most(room->packed, dp_packed_floats(ops, longer, side));
    room->packed = most(room->packed, dp_packed_floats(ops, side, longer));
    room->packed_square = most(room->packed_square, dp_packed_floats(ops, side, side));
}

/* With memory NULL ns is not written. */
static size_t carve(dp_newton_schulz *ns, const dp_ns_room *room, float *memory)
{
    const struct {
        float **buffer;
        size_t floats;
    } all[] = {{&ns->x, room->matrix},
               {&ns->a, room->square},
               {&ns->part, room->part},
               {&ns->by_longer, room->packed},
               {&ns->by_side, room->packed},
               {&ns->packed_a, room->packed_square},
               {&ns->packed_p, room->packed_square},
               {&ns->packed_q, room->packed_square},
               {&ns->spare, room->packed_square}};
    size_t at = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (memory != NULL) {
            *all[i].buffer = memory + at;
        }
        at += round_up(all[i].floats, ALIGN);
    }
    return at;
}

size_t dp_ns_floats(const dp_ns_room *room)
{
    dp_newton_schulz none;
    return carve(&none, room, NULL);
}

void dp_ns_carve(dp_newton_schulz *ns, const dp_ns_room *room, float *memory)
{
    carve(ns, room, memory);
}

/* ---- The matrix whose turn it is, and packing. */

struct turn {
    dp_newton_schulz *ns;
    const dp_ops *ops;
    size_t side;
    size_t longer;
    bool tall;
    dp_pool *pool;
};

/* Floats of a column of a packed matrix with k terms. */
static size_t depth_of(const dp_ops *ops, size_t k)
{
    return (k + ops->terms - 1) / ops->terms;
}

static size_t tasks_of(size_t n, size_t each)
{
    return (n + each - 1) / each;
}

/* A part of a matrix: x [terms][columns], or [columns][terms] if transposed; at most a panel of
 * columns. */
struct block {
    const float *x;
    size_t ld;
    bool transposed;
    size_t terms;
    size_t columns;
};

/* As terms from k_first on, of columns from n_first on, of a packed matrix with k terms. Both begin
 * at whole panels. */
static void pack_block(const dp_ops *ops, const struct block *b, size_t k, size_t k_first,
                       size_t n_first, float *packed)
{
    ops->pack(b->x, b->ld, b->transposed, b->terms, b->columns,
              packed + n_first * depth_of(ops, k) + k_first / ops->terms * ops->panel);
}

/* Rows [first, first + rows) of a symmetric matrix [n][n], from the diagonal on, into packed: their
 * panel, and their terms of the panels behind it. */
static void pack_strip(const dp_ops *ops, const struct block *strip, size_t n, size_t first,
                       float *packed)
{
    const size_t rows = strip->terms;
    for (size_t j = first; j < n; j += ops->panel) {
        const size_t columns = least(ops->panel, n - j);
        const struct block right = {strip->x + (j - first), strip->ld, false, rows, columns};
        pack_block(ops, &right, n, first, j, packed);
    }
    if (first + rows < n) {
        const struct block below = {strip->x + rows, strip->ld, true, n - first - rows, rows};
        pack_block(ops, &below, n, first + rows, first, packed);
    }
}

/* ---- Symmetric products. */

struct half {
    const struct turn *turn;
    const float *a; /* packed [k][side]: its transpose is the left side */
    const float *b; /* packed [k][side] */
    size_t k;
    float *c;     /* [side][side], what is computed of it; NULL: only packed */
    float *to;    /* packed */
    bool p_of_it; /* a p of ns->a, whose square the product is */
};

/* Rows of a panel. */
static void half_task(void *ctx, size_t index, size_t worker)
{
    const struct half *h = ctx;
    const struct turn *const t = h->turn;
    (void)worker;
    const size_t n = t->side;
    const size_t first = index * t->ops->panel;
    const size_t rows = least(t->ops->panel, n - first);
    const size_t panel = first * depth_of(t->ops, h->k);
    float *const part = t->ns->part + (t->pool == NULL ? 0 : first * n);
    float *const c = h->c == NULL ? part : h->c + first * n + first;
    const size_t ld = h->c == NULL ? n - first : n;
    t->ops->gemm(&(dp_gemm){.m = rows,
                            .n = n - first,
                            .k = h->k,
                            .a = h->a + panel,
                            .a_row = 1,
                            .a_depth = t->ops->panel,
                            .a_packed = true,
                            .packed = h->b + panel,
                            .c = c,
                            .ldc = ld});
    for (size_t r = 0; r < rows && h->p_of_it; r++) {
        const float *const a = t->ns->a + (first + r) * n + first;
        float *const row = c + r * ld;
        /* Left of the diagonal too: A has whole panels there. */
        for (size_t i = 0; i < n - first; i++) {
            row[i] = ns_b * a[i] + ns_c * row[i];
        }
        row[r] += ns_a;
    }
    pack_strip(t->ops, &(struct block){.x = c, .ld = ld, .terms = rows}, n, first, h->to);
}

static void run_half(const struct turn *t, struct half half)
{
    half.turn = t;
    dp_pool_run(t->pool, tasks_of(t->side, t->ops->panel), half_task, &half);
}

/* A = XX', or X'X. */
static void gram(const struct turn *t)
{
    dp_newton_schulz *const ns = t->ns;
    run_half(
        t, (struct half){
               .a = ns->by_side, .b = ns->by_side, .k = t->longer, .c = ns->a, .to = ns->packed_a});
}

/* p(A). */
static void polynomial(const struct turn *t, float *packed_p)
{
    const float *const a = t->ns->packed_a;
    run_half(t, (struct half){.a = a, .b = a, .k = t->side, .to = packed_p, .p_of_it = true});
}

/* to = a b for packed squares that commute; c or NULL: the same. */
static void multiply(const struct turn *t, const float *a, const float *b, float *c, float *to)
{
    run_half(t, (struct half){.a = a, .b = b, .k = t->side, .c = c, .to = to});
}

/* ---- Products with X. */

/* Elements [first, last) of the longer side: X from ns->x into both packed forms. */
static void take_task(void *ctx, size_t index, size_t worker)
{
    const struct turn *t = ctx;
    (void)worker;
    const size_t first = index * LONGER;
    const size_t last = least(first + LONGER, t->longer);
    const size_t ld = t->tall ? t->side : t->longer;
    for (size_t s = 0; s < t->side; s += t->ops->panel) {
        const struct block b = {.x = t->ns->x + (t->tall ? first * ld + s : s * ld + first),
                                .ld = ld,
                                .transposed = !t->tall,
                                .terms = last - first,
                                .columns = least(t->ops->panel, t->side - s)};
        pack_block(t->ops, &b, t->longer, first, s, t->ns->by_side);
    }
    t->ops->pack(t->ns->x + (t->tall ? first * ld : first), ld, t->tall, t->side, last - first,
                 t->ns->by_longer + first * depth_of(t->ops, t->side));
}

/* Elements [first, last) of the longer side: X becomes QX, wide, in its packed forms. */
static void turn_task(void *ctx, size_t index, size_t worker)
{
    const struct turn *t = ctx;
    (void)worker;
    const size_t first = index * LONGER;
    const size_t n = least(LONGER, t->longer - first);
    const size_t depth = depth_of(t->ops, t->side);
    float *const by_longer = t->ns->by_longer + first * depth;
    float *const part = t->ns->part + (t->pool == NULL ? 0 : first * t->side);
    for (size_t s = 0; s < t->side; s += t->ops->panel) {
        const size_t rows = least(t->ops->panel, t->side - s);
        float *const c = part + s * n;
        t->ops->gemm(&(dp_gemm){.m = rows,
                                .n = n,
                                .k = t->side,
                                .a = t->ns->packed_q + s * depth,
                                .a_row = 1,
                                .a_depth = t->ops->panel,
                                .a_packed = true,
                                .packed = by_longer,
                                .c = c,
                                .ldc = n});
        const struct block b = {c, n, true, n, rows};
        pack_block(t->ops, &b, t->longer, first, s, t->ns->by_side);
    }
    t->ops->pack(part, n, false, t->side, n, by_longer);
}

/* The last: to ns->x, as it lies there. */
static void give_task(void *ctx, size_t index, size_t worker)
{
    const struct turn *t = ctx;
    (void)worker;
    const size_t first = index * LONGER;
    const size_t last = least(first + LONGER, t->longer);
    const size_t depth = depth_of(t->ops, t->side);
    dp_gemm gemm = {.k = t->side, .a_row = 1, .a_depth = t->ops->panel, .a_packed = true};
    gemm.ldc = t->tall ? t->side : t->longer;
    for (size_t i = t->tall ? first : 0; i < (t->tall ? last : t->side); i += t->ops->panel) {
        gemm.m = least(t->ops->panel, (t->tall ? last : t->side) - i);
        gemm.n = t->tall ? t->side : last - first;
        gemm.a = (t->tall ? t->ns->by_longer : t->ns->packed_q) + i * depth;
        gemm.packed = t->tall ? t->ns->packed_q : t->ns->by_longer + first * depth;
        gemm.c = t->ns->x + i * gemm.ldc + (t->tall ? 0 : first);
        t->ops->gemm(&gemm);
    }
}

static void run_longer(struct turn *t, dp_pool_task task)
{
    dp_pool_run(t->pool, tasks_of(t->longer, LONGER), task, t);
}

/* ---- Steps. */

static void swap(float **a, float **b)
{
    float *const old = *a;
    *a = *b;
    *b = old;
}

/* Q of so many steps from X. */
static void steps_in_square(const struct turn *t, int steps)
{
    dp_newton_schulz *const ns = t->ns;
    gram(t);
    polynomial(t, ns->packed_q);
    for (int i = 1; i < steps; i++) {
        const float *const p = i == 1 ? ns->packed_q : ns->packed_p;
        multiply(t, ns->packed_a, p, NULL, ns->spare);
        multiply(t, ns->spare, p, ns->a, ns->packed_a);
        polynomial(t, ns->packed_p);
        multiply(t, ns->packed_q, ns->packed_p, NULL, ns->spare);
        swap(&ns->packed_q, &ns->spare);
    }
}

void dp_newton_schulz_run(dp_newton_schulz *ns, size_t rows, size_t columns, dp_pool *pool)
{
    struct turn t = {.ns = ns,
                     .ops = ops_of(least(rows, columns)),
                     .side = least(rows, columns),
                     .longer = most(rows, columns),
                     .tall = rows > columns,
                     .pool = pool};
    const bool is_long = t.longer >= LONG_SIDE * t.side;
    dp_assert(LONGER % t.ops->panel == 0 && t.ops->panel % t.ops->terms == 0);
    run_longer(&t, take_task);
    for (int done = 0; done < STEPS;) {
        const int steps = !is_long ? 1 : done == 0 ? STEPS_FIRST : STEPS - STEPS_FIRST;
        steps_in_square(&t, steps);
        done += steps;
        run_longer(&t, done < STEPS ? turn_task : give_task);
    }
}
