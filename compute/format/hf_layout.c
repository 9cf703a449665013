#include "compute/format/hf_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/model/tensor_table.h"

enum { BLOCK = 32 /* rows and columns that are turned at a time, which stay in the first cache */ };

/* A tensor of Hugging Face and its columns of a tensor in the arena. */
typedef struct piece {
    dp_tensor_part part;
    uint32_t n_dims;
    size_t rows;   /* in the arena */
    size_t stride; /* of these */
    size_t offset; /* of its first element in the arena; with map of the tensor's */
    uint32_t *map; /* the column in the tensor of each column; NULL: one after the other */
    size_t at;     /* in the vector */
} piece;

struct dp_hf_layout {
    dp_buf table;
    uint64_t elements;
    size_t n_arena;
    size_t n_pieces;
    piece *pieces; /* in the order of names */
};

typedef enum direction { NAME, PLACE, MOVES } direction;

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const piece *)a)->part.name, ((const piece *)b)->part.name);
}

/* The columns of a part that does not have them one after the other. */
static dp_status map_columns(piece *p, const dp_model *model, const dp_tensor *tensor)
{
    size_t j = 0;
    while (j < p->part.columns &&
           dp_model_part_column(model, tensor, &p->part, j) == p->part.first + j) {
        j++;
    }
    if (j == p->part.columns) {
        return DP_OK;
    }
    p->map = dp_alloc(p->part.columns, sizeof *p->map);
    if (p->map == NULL) {
        return DP_NOMEM;
    }
    for (j = 0; j < p->part.columns; j++) {
        p->map[j] = (uint32_t)dp_model_part_column(model, tensor, &p->part, j);
    }
    p->offset = tensor->offset;
    return DP_OK;
}

static dp_status add_pieces(dp_hf_layout *l, const dp_model *model, const dp_tensor *tensor)
{
    dp_tensor_part parts[DP_MODEL_PARTS_MAX];
    const size_t n = dp_model_parts(model, tensor, parts);
    const bool vector = tensor->n_dims == 1;
    for (size_t i = 0; i < n; i++) {
        dp_assert(!vector || !parts[i].transposed);
        l->pieces[l->n_pieces++] = (piece){.part = parts[i],
                                           .n_dims = tensor->n_dims,
                                           .rows = vector ? 1 : tensor->shape[0],
                                           .stride = vector ? tensor->elements : tensor->shape[1],
                                           .offset = tensor->offset + parts[i].first};
        DP_TRY(map_columns(&l->pieces[l->n_pieces - 1], model, tensor));
    }
    return DP_OK;
}

static dp_tensor_row row_of(const piece *p)
{
    dp_tensor_row row = {
        .name = dp_view_text(p->part.name), .type = DP_NUMBER_F32, .n_dims = p->n_dims};
    if (p->n_dims == 1) {
        row.shape[0] = (uint32_t)p->part.columns;
        return row;
    }
    row.shape[p->part.transposed ? 0 : 1] = (uint32_t)p->part.columns;
    row.shape[p->part.transposed ? 1 : 0] = (uint32_t)p->rows;
    return row;
}

static dp_status write_table(dp_hf_layout *l, dp_why *why)
{
    dp_tensor_row *const rows = dp_alloc(l->n_pieces, sizeof *rows);
    if (rows == NULL) {
        return DP_NOMEM;
    }
    for (size_t i = 0; i < l->n_pieces; i++) {
        rows[i] = row_of(&l->pieces[i]);
        l->pieces[i].at = (size_t)l->elements;
        l->elements += (uint64_t)l->pieces[i].rows * l->pieces[i].part.columns;
    }
    const dp_status status = dp_tensor_table_write(rows, l->n_pieces, &l->table, why);
    dp_free(rows);
    return status;
}

static dp_status fill(dp_hf_layout *l, const dp_model *model, dp_why *why)
{
    dp_buf_init(&l->table, DP_TENSOR_TABLE_BYTES_MAX);
    l->n_arena = model->n_elements;
    l->pieces = dp_alloc(DP_MODEL_PARTS_MAX * model->n_tensors, sizeof *l->pieces);
    if (l->pieces == NULL) {
        return DP_NOMEM;
    }
    for (size_t i = 0; i < model->n_tensors; i++) {
        DP_TRY(add_pieces(l, model, &model->tensors[i]));
    }
    qsort(l->pieces, l->n_pieces, sizeof *l->pieces, compare_names);
    DP_TRY(write_table(l, why));
    dp_assert(l->elements == model->n_parameters);
    return DP_OK;
}

dp_status dp_hf_layout_open(dp_hf_layout **out, const dp_model *model, dp_why *why)
{
    dp_hf_layout *const l = dp_alloc(1, sizeof *l);
    if (l == NULL) {
        return DP_NOMEM;
    }
    const dp_status status = fill(l, model, why);
    if (status != DP_OK) {
        dp_hf_layout_close(l);
        return status;
    }
    *out = l;
    return DP_OK;
}

void dp_hf_layout_close(dp_hf_layout *l)
{
    if (l == NULL) {
        return;
    }
    dp_buf_close(&l->table);
    for (size_t i = 0; i < l->n_pieces; i++) {
        dp_free(l->pieces[i].map);
    }
    dp_free(l->pieces);
    dp_free(l);
}

dp_view dp_hf_layout_table(const dp_hf_layout *l)
{
    return dp_buf_view(&l->table);
}

uint64_t dp_hf_layout_elements(const dp_hf_layout *l)
{
    return l->elements;
}

static void move_row(float *named, float *arena, size_t n, direction way)
{
    if (way == NAME) {
        memcpy(named, arena, n * sizeof *named);
    } else if (way == PLACE) {
        memcpy(arena, named, n * sizeof *named);
    } else {
        for (size_t i = 0; i < n; i++) {
            named[i] = arena[i] - named[i];
        }
    }
}

/* A block that is turned on its way: rows and columns of from, strides in elements. moves: to =
 * from - to. Through a small tile, since rows at a stride of a power of two share few places of a
 * cache. */
static void turn(const float *from, size_t from_stride, float *to, size_t to_stride,
                 const size_t size[2], bool moves)
{
    float tile[BLOCK][BLOCK];
    for (size_t r = 0; r < size[0]; r++) {
        memcpy(tile[r], from + r * from_stride, size[1] * sizeof *from);
    }
    for (size_t c = 0; c < size[1]; c++) {
        float *const row = to + c * to_stride;
        for (size_t r = 0; r < size[0]; r++) {
            row[r] = moves ? tile[r][c] - row[r] : tile[r][c];
        }
    }
}

static size_t at_most_block(size_t left)
{
    return left < BLOCK ? left : BLOCK;
}

/* Rows and columns of the arena, from those on. */
static void move_block(const piece *p, float *named, float *arena, const size_t from[2],
                       direction way)
{
    const size_t size[2] = {at_most_block(p->rows - from[0]),
                            at_most_block(p->part.columns - from[1])};
    float *const there = named + from[1] * p->rows + from[0];
    float *const here = arena + from[0] * p->stride + from[1];
    if (way == PLACE) {
        turn(there, p->rows, here, p->stride, (const size_t[2]){size[1], size[0]}, false);
    } else {
        turn(here, p->stride, there, p->rows, size, way == MOVES);
    }
}

/* One by one: columns in another order, or values that files have less something. */
static void move_each(const piece *p, float *named, float *arena, direction way)
{
    const size_t n = p->part.columns;
    for (size_t i = 0; i < p->rows * n; i++) {
        const size_t r = i / n;
        const size_t column = p->map != NULL ? p->map[i % n] : i % n;
        float *const there = named + (p->part.transposed ? i % n * p->rows + r : i);
        float *const here = arena + r * p->stride + column;
        const float value = *here - p->part.above;
        if (way == PLACE) {
            *here = *there + p->part.above;
        } else {
            *there = way == MOVES ? value - *there : value;
        }
    }
}

static void move_piece(const piece *p, float *named, float *arena, direction way)
{
    if (p->map != NULL || p->part.above != 0.0F) {
        move_each(p, named, arena, way);
        return;
    }
    if (!p->part.transposed) {
        for (size_t r = 0; r < p->rows; r++) {
            move_row(named + r * p->part.columns, arena + r * p->stride, p->part.columns, way);
        }
        return;
    }
    for (size_t r = 0; r < p->rows; r += BLOCK) {
        for (size_t c = 0; c < p->part.columns; c += BLOCK) {
            move_block(p, named, arena, (const size_t[2]){r, c}, way);
        }
    }
}

static void move_all(const dp_hf_layout *l, float *named, float *arena, direction way)
{
    for (size_t i = 0; i < l->n_pieces; i++) {
        const piece *const p = &l->pieces[i];
        move_piece(p, named + p->at, arena + p->offset, way);
    }
}

void dp_hf_layout_name(const dp_hf_layout *l, const float *arena, float *named)
{
    move_all(l, named, (float *)(uintptr_t)arena, NAME);
}

void dp_hf_layout_place(const dp_hf_layout *l, const float *named, float *arena)
{
    memset(arena, 0, l->n_arena * sizeof *arena);
    move_all(l, (float *)(uintptr_t)named, arena, PLACE);
}

void dp_hf_layout_moves(const dp_hf_layout *l, const float *arena, float *named)
{
    move_all(l, named, (float *)(uintptr_t)arena, MOVES);
}
