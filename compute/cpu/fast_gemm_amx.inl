/* Matrix products of inputs rounded to bf16 by the tile registers of AMX (Intel 2020): one
 * instruction, tdpbf16ps, adds to DP_TILE rows and columns of fp32 sums the products of DP_TILE
 * pairs of terms. Packed panels are those of fast_pairs.inl; a is rounded, and turned where its
 * rows stand beside each other, into blocks of a tile's size before it is multiplied.
 *
 * A sum begins with what it is added to and takes DP_TILE pairs after the other, so its order
 * depends on the depth alone: tiles with fewer rows or columns go through memory of their own and
 * are computed alike. */

#include "compute/cpu/fast_pairs.inl"

#define DP_TILE 16                          /* rows, columns, and pairs of terms */
#define DP_TILE_PAIRS (DP_TILE * DP_TILE)   /* words of a tile */
#define DP_TILE_BYTES (DP_TILE * 4)         /* of a row */
#define DP_PAIRS DP_OPS_DEPTH               /* of terms, of a's block */
#define DP_BLOCK_TILES (DP_PAIRS / DP_TILE) /* of a row of a's block */
#define DP_GRADIENT_ROWS 384                /* of a weight, that are packed at a time */
#define DP_GRADIENT_SCRATCH ((size_t)(DP_GRADIENT_ROWS + DP_OPS_TILE) * DP_PAIRS)
#define DP_PANEL_BYTES (DP_PANEL * 4) /* of a row of a panel's tiles */

_Static_assert(DP_GROUP == DP_TILE && DP_PANEL == 2 * DP_TILE, "a panel is two tiles wide");
_Static_assert(DP_PAIRS % DP_TILE == 0, "blocks are whole tiles deep");

/* Registers: four tiles of sums, two of rows, two of columns. They are numbers that the compiler
 * puts into the instructions. */
#define DP_SUM_00 0
#define DP_SUM_01 1
#define DP_SUM_10 2
#define DP_SUM_11 3
#define DP_ROWS_0 4
#define DP_ROWS_1 5
#define DP_COLUMNS_0 6
#define DP_COLUMNS_1 7

/* Until tiles_end the thread may use tiles; they cost a little at every change of threads. */
static void tiles_begin(void)
{
    static const struct {
        uint8_t palette;
        uint8_t start_row;
        uint8_t unused[14];
        uint16_t row_bytes[DP_TILE];
        uint8_t rows[DP_TILE];
    } shapes = {.palette = 1,
                .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&shapes);
}

static void tiles_end(void)
{
    _tile_release();
}

/* A tile of sums: where it begins, and where it goes. */
struct corner {
    const float *from; /* NULL: zeros */
    size_t from_bytes; /* of a row; 0: every row is the first */
    float *to;
    size_t to_bytes;
    size_t rows; /* that exist */
    size_t columns;
    float *c; /* if to is room: where they go then */
    float room[DP_TILE_PAIRS] __attribute__((aligned(64)));
};

/* room = add + bias of the rows and columns that exist, else 0. */
static void begin_in_room(const struct target *t, size_t row, size_t column, struct corner *corner)
{
    memset(corner->room, 0, sizeof corner->room);
    for (size_t r = 0; r < corner->rows && (t->add != NULL || t->bias != NULL); r++) {
        dp_vec v = {0};
        if (t->bias != NULL) {
            v += load_columns(t->bias + column, corner->columns);
        }
        if (t->add != NULL) {
            v += load_columns(t->add + (row + r) * t->ld_add + column, corner->columns);
        }
        dp_vec_store(corner->room + r * DP_TILE, v);
    }
    corner->from = corner->room;
    corner->from_bytes = DP_TILE_BYTES;
}

/* The tile at (row, column) of a target that has so many rows, row below them. */
DP_INLINE void open_corner(const struct target *t, size_t rows, size_t row, size_t column,
                           struct corner *corner)
{
    corner->rows = least_of(rows - row, DP_TILE);
    corner->columns = least_of(t->columns - column, DP_TILE);
    corner->c = t->c + row * t->ldc + column;
    const bool whole = corner->rows == DP_TILE && corner->columns == DP_TILE;
    corner->to = whole && !t->past ? corner->c : corner->room;
    corner->to_bytes = whole && !t->past ? t->ldc * 4 : DP_TILE_BYTES;
    if (!whole || (t->add != NULL && t->bias != NULL)) {
        begin_in_room(t, row, column, corner);
    } else if (t->add != NULL) {
        corner->from = t->add + row * t->ld_add + column;
        corner->from_bytes = t->ld_add * 4;
    } else {
        corner->from = t->bias == NULL ? NULL : t->bias + column;
        corner->from_bytes = 0;
    }
}

DP_INLINE void close_corner(const struct target *t, const struct corner *corner)
{
    if (corner->to != corner->room) {
        return;
    }
    for (size_t r = 0; r < corner->rows; r++) {
        float *const to = corner->c + r * t->ldc;
        const dp_vec v = dp_vec_load(corner->room + r * DP_TILE);
        if (corner->columns < DP_TILE) {
            dp_vec_store_some(to, v, corner->columns);
        } else if (t->past) {
            dp_vec_store_past(to, v);
        } else {
            dp_vec_store(to, v);
        }
    }
}

#define DP_BEGIN_SUM(sum, used, corner)                                                            \
    do {                                                                                           \
        if ((used) && (corner).from == NULL) {                                                     \
            _tile_zero(sum);                                                                       \
        } else if (used) {                                                                         \
            _tile_loadd(sum, (corner).from, (corner).from_bytes);                                  \
        }                                                                                          \
    } while (0)

#define DP_END_SUM(sum, used, corner)                                                              \
    do {                                                                                           \
        if (used) {                                                                                \
            _tile_stored(sum, (corner).to, (corner).to_bytes);                                     \
        }                                                                                          \
    } while (0)

/* Rows of a, rounded: [row tile][depth tile][DP_TILE rows][DP_TILE pairs], zeros beyond its rows
 * and terms; the next row tile is `stride` words further on. */
struct row_tiles {
    const uint32_t *a;
    size_t stride;
    size_t rows;
};

/* A panel, its last pairs apart if they do not fill a tile, and what is fetched meanwhile. */
struct tile_panel {
    const float *b; /* [whole][DP_TILE pairs][DP_PANEL] */
    size_t whole;
    const float *rest; /* one more, filled up with zeros; or NULL */
    const char *next;  /* some lines are asked for with each tile of terms */
    size_t next_lines;
};

/* Sums of one or two tiles of rows times one or two of columns, constants. Rows are read past the
 * first cache, so that the panel, which all rows are multiplied with, stays there: an eighth of a
 * product. */
DP_INLINE void add_terms(bool two_rows, bool two_columns, const uint32_t *a, size_t stride,
                         const float *b)
{
    _tile_loadd(DP_COLUMNS_0, b, DP_PANEL_BYTES);
    _tile_stream_loadd(DP_ROWS_0, a, DP_TILE_BYTES);
    _tile_dpbf16ps(DP_SUM_00, DP_ROWS_0, DP_COLUMNS_0);
    if (two_columns) {
        _tile_loadd(DP_COLUMNS_1, b + DP_TILE, DP_PANEL_BYTES);
        _tile_dpbf16ps(DP_SUM_01, DP_ROWS_0, DP_COLUMNS_1);
    }
    if (two_rows) {
        _tile_stream_loadd(DP_ROWS_1, a + stride, DP_TILE_BYTES);
        _tile_dpbf16ps(DP_SUM_10, DP_ROWS_1, DP_COLUMNS_0);
        if (two_columns) {
            _tile_dpbf16ps(DP_SUM_11, DP_ROWS_1, DP_COLUMNS_1);
        }
    }
}

/* gcc does not know that _tile_loadd reads memory: whatever it reads must be written before. */
#define DP_WRITTEN() __asm__ volatile("" ::: "memory")

DP_INLINE void corners_times_panel(bool two_rows, bool two_columns, const struct row_tiles *r,
                                   struct tile_panel *p, const struct target *t, size_t row)
{
    const bool used[4] = {true, two_columns, two_rows, two_rows && two_columns};
    struct corner corners[4];
    const uint32_t *a = r->a + row / DP_TILE * r->stride;
    for (size_t i = 0; i < 4; i++) {
        if (used[i]) {
            open_corner(t, r->rows, row + i / 2 * DP_TILE, i % 2 * DP_TILE, &corners[i]);
        }
    }
    DP_WRITTEN();
    DP_BEGIN_SUM(DP_SUM_00, used[0], corners[0]);
    DP_BEGIN_SUM(DP_SUM_01, used[1], corners[1]);
    DP_BEGIN_SUM(DP_SUM_10, used[2], corners[2]);
    DP_BEGIN_SUM(DP_SUM_11, used[3], corners[3]);
    for (size_t i = 0; i < p->whole; i++) {
        for (size_t line = 0; line < p->next_lines; line++) {
            DP_FETCH(p->next);
            p->next += DP_TILE_BYTES;
        }
        add_terms(two_rows, two_columns, a, r->stride, p->b + i * DP_TILE * DP_PANEL);
        a += DP_TILE_PAIRS;
    }
    if (p->rest != NULL) {
        add_terms(two_rows, two_columns, a, r->stride, p->rest);
    }
    DP_END_SUM(DP_SUM_00, used[0], corners[0]);
    DP_END_SUM(DP_SUM_01, used[1], corners[1]);
    DP_END_SUM(DP_SUM_10, used[2], corners[2]);
    DP_END_SUM(DP_SUM_11, used[3], corners[3]);
    for (size_t i = 0; i < 4; i++) {
        if (used[i]) {
            close_corner(t, &corners[i]);
        }
    }
}

static void rows_times_panel(const struct row_tiles *r, struct tile_panel *p,
                             const struct target *t)
{
    const bool two_columns = t->columns > DP_TILE;
    size_t row = 0;
    for (; row + DP_TILE < r->rows; row += 2 * DP_TILE) {
        if (two_columns) {
            corners_times_panel(true, true, r, p, t, row);
        } else {
            corners_times_panel(true, false, r, p, t, row);
        }
    }
    if (row < r->rows) {
        if (two_columns) {
            corners_times_panel(false, true, r, p, t, row);
        } else {
            corners_times_panel(false, false, r, p, t, row);
        }
    }
}

/* The panel b with so many pairs; room: of a tile's pairs of it. */
static struct tile_panel tile_panel_of(const float *b, size_t pairs, float *room)
{
    struct tile_panel p = {.b = b, .whole = pairs / DP_TILE};
    const size_t left = pairs % DP_TILE * DP_PANEL;
    if (left > 0) {
        memcpy(room, b + p.whole * DP_TILE * DP_PANEL, left * sizeof *room);
        memset(room + left, 0, ((size_t)DP_TILE * DP_PANEL - left) * sizeof *room);
        p.rest = room;
    }
    return p;
}

/* Sixteen pairs [pair] at `ld` words, of sixteen rows beside each other, become rows. */
DP_INLINE void turn_tile(const uint32_t *from, size_t ld, uint32_t *to)
{
    dp_transpose((const float *)(const void *)from, ld, (float *)(void *)to, DP_TILE);
}

/* Up to sixteen rows, and terms, of an a whose rows stand beside each other. */
static void round_deep_tile(const float *a, size_t ld, size_t rows, size_t terms, uint32_t *to)
{
    uint32_t pairs[DP_TILE_PAIRS];
    for (size_t i = 0; i < DP_TILE; i++) {
        const float *const first = a + 2 * i * ld;
        const bool exists = 2 * i < terms;
        const dp_vec even = exists ? load_columns(first, rows) : (dp_vec){0};
        const dp_vec odd = 2 * i + 1 < terms ? load_columns(first + ld, rows) : (dp_vec){0};
        _mm512_storeu_si512(pairs + i * DP_TILE, round_pairs(even, odd));
    }
    turn_tile(pairs, DP_TILE, to);
}

/* The same of rows that are a packed panel's columns; so many pairs exist. */
static void turn_packed_tile(const uint32_t *a, size_t pairs, uint32_t *to)
{
    uint32_t some[DP_TILE_PAIRS];
    if (pairs >= DP_TILE) {
        turn_tile(a, DP_PANEL, to);
        return;
    }
    memset(some, 0, sizeof some);
    for (size_t i = 0; i < pairs; i++) {
        memcpy(some + i * DP_TILE, a + i * DP_PANEL, DP_TILE_BYTES);
    }
    turn_tile(some, DP_TILE, to);
}

/* Rows of an a whose depths stand beside each other, for one row of tiles. */
static void round_near_rows(const float *a, size_t ld, size_t rows, size_t terms, uint32_t *to)
{
    const size_t whole = (terms + 2 * DP_TILE - 1) / (2 * DP_TILE);
    for (size_t r = 0; r < DP_TILE; r++) {
        if (r < rows) {
            fetch_run(a + (r + DP_ROWS_AHEAD) * ld, terms);
        }
        for (size_t i = 0; i < whole; i++) {
            const size_t term = i * 2 * DP_TILE;
            _mm512_storeu_si512(to + i * DP_TILE_PAIRS + r * DP_TILE,
                                r < rows ? round_run(a + r * ld + term, terms - term)
                                         : _mm512_setzero_si512());
        }
    }
}

/* Rows [row, row + rows) and terms from depth on of an a that is packed, or whose rows stand beside
 * each other: one depth after the other, as they lie in memory. */
static void round_deep_rows(const dp_gemm *g, size_t row, size_t rows, size_t depth, size_t terms,
                            uint32_t *to)
{
    for (size_t i = 0; i * 2 * DP_TILE < terms; i++) {
        const size_t term = i * 2 * DP_TILE;
        uint32_t *tile = to + i * DP_TILE_PAIRS;
        for (size_t r = 0; r < rows; r += DP_TILE, tile += DP_BLOCK_TILES * DP_TILE_PAIRS) {
            const float *const a = g->a + row + r;
            if (g->a_packed) {
                turn_packed_tile((const uint32_t *)(const void *)a + (depth + term) / 2 * DP_PANEL,
                                 (terms - term + 1) / 2, tile);
            } else {
                round_deep_tile(a + (depth + term) * g->a_depth, g->a_depth,
                                least_of(rows - r, DP_TILE), terms - term, tile);
            }
        }
    }
}

/* Rows [row, row + rows) and terms from depth on of a, as struct row_tiles has them. */
static void round_block(const dp_gemm *g, size_t row, size_t rows, size_t depth, uint32_t *to)
{
    const size_t terms = least_of(g->k - depth, 2 * DP_PAIRS);
    if (g->a_packed || g->a_depth != 1) {
        round_deep_rows(g, row, rows, depth, terms, to);
        return;
    }
    for (size_t r = 0; r < rows; r += DP_TILE, to += DP_BLOCK_TILES * DP_TILE_PAIRS) {
        round_near_rows(g->a + (row + r) * g->a_row + depth, g->a_row, least_of(rows - r, DP_TILE),
                        terms, to);
    }
}

/* All columns, terms of a's block. */
static void block_times_panels(const dp_gemm *g, size_t row, size_t depth,
                               const struct row_tiles *rows)
{
    const size_t panels = (g->n + DP_PANEL - 1) / DP_PANEL;
    const struct block all = {0, g->n, panels, g->begin / DP_PANEL};
    const size_t pairs = (least_of(g->k - depth, 2 * DP_PAIRS) + 1) / 2;
    const size_t turns = (rows->rows + 2 * DP_TILE - 1) / (2 * DP_TILE);
    for (size_t turn = 0; turn < panels; turn++) {
        float room[DP_TILE * DP_PANEL] __attribute__((aligned(64)));
        const size_t column = column_of(&all, turn);
        const struct target t = target_of(g, depth, row, column);
        struct tile_panel p = tile_panel_of(panel_of(g, depth, column), pairs, room);
        p.next = (const char *)next_panel(g, &all, depth, turn);
        p.next_lines = (2 * DP_TILE + turns - 1) / turns;
        rows_times_panel(rows, &p, &t);
    }
}

static void fast_gemm(const dp_gemm *g)
{
    uint32_t a[DP_BLOCK_ROWS * DP_PAIRS] __attribute__((aligned(64)));
    tiles_begin();
    for (size_t row = 0; row < g->m; row += DP_BLOCK_ROWS) {
        const struct row_tiles rows = {.a = a,
                                       .stride = DP_BLOCK_TILES * DP_TILE_PAIRS,
                                       .rows = least_of(g->m - row, DP_BLOCK_ROWS)};
        for (size_t depth = 0; depth < g->k; depth += 2 * DP_PAIRS) {
            round_block(g, row, rows.rows, depth, a);
            block_times_panels(g, row, depth, &rows);
        }
    }
    tiles_end();
}

/* One block of terms after the other is rounded: a's rows for all columns, b's columns some at a
 * time, so that they stay in a cache. A block has as many rows as the cache has room for, since b
 * is read again for each. */
static void fast_gemm_tn(const dp_gemm_tn *g)
{
    uint32_t *const packed_a = (uint32_t *)(void *)g->scratch;
    float *const packed_b = g->scratch + DP_GRADIENT_ROWS * DP_PAIRS;
    const struct row_tiles rows = {
        .a = packed_a, .stride = DP_BLOCK_TILES * DP_TILE_PAIRS, .rows = g->m};
    tiles_begin();
    for (size_t depth = 0; depth < g->k; depth += 2 * DP_PAIRS) {
        const size_t terms = least_of(g->k - depth, 2 * DP_PAIRS);
        const size_t pairs = (terms + 1) / 2;
        round_block(&(dp_gemm){.k = g->k, .a = g->a, .a_row = 1, .a_depth = g->lda}, 0, g->m, depth,
                    packed_a);
        for (size_t first = 0; first < g->n; first += DP_OPS_TILE) {
            const size_t columns = least_of(g->n - first, DP_OPS_TILE);
            fast_pack(g->b + depth * g->ldb + first, g->ldb, false, terms, columns, packed_b);
            for (size_t column = 0; column < columns; column += DP_PANEL) {
                float room[DP_TILE * DP_PANEL] __attribute__((aligned(64)));
                struct target t = tile_target(g, depth, 0, first + column);
                struct tile_panel p = tile_panel_of(packed_b + column * pairs, pairs, room);
                t.bias = NULL; /* A sum that begins with zeros needs none added. */
                rows_times_panel(&rows, &p, &t);
            }
        }
    }
    tiles_end();
    dp_vec_fence_past();
}
