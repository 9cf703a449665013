#include "compute/model/base_weights.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/digest.h"
#include "compute/cpu/precision.h"
#include "compute/model/state.h"

enum { VERSION = 1, INT8_MOST = 127, LEVELS = 16 };

static const uint8_t magic[4] = {'D', 'P', 'B', '1'};

static const float levels[LEVELS] = {-1.0F,
                                     -0.6961928009986877F,
                                     -0.5250730514526367F,
                                     -0.39491748809814453F,
                                     -0.28444138169288635F,
                                     -0.18477343022823334F,
                                     -0.09105003625154495F,
                                     0.0F,
                                     0.07958029955625534F,
                                     0.16093020141124725F,
                                     0.24611230194568634F,
                                     0.33791524171829224F,
                                     0.44070982933044434F,
                                     0.5626170039176941F,
                                     0.7229568362236023F,
                                     1.0F};

/* ---- layout ---- */

/* Rows of a matrix as the file has them. */
typedef struct grid {
    size_t rows;
    size_t columns;
    dp_base_kind kind;
} grid;

static bool is_layer(const dp_tensor *tensor)
{
    return tensor->slot < DP_LAYER_SLOTS;
}

static grid grid_of(const dp_tensor *tensor, dp_base_kind kind)
{
    const dp_base_kind table = kind == DP_BASE_FP32 ? DP_BASE_FP32 : DP_BASE_BF16;
    return is_layer(tensor) ? (grid){tensor->shape[1], tensor->shape[0], kind}
                            : (grid){tensor->shape[0], tensor->shape[1], table};
}

static size_t blocks_of(const grid *g)
{
    return (g->columns + DP_BASE_BLOCK - 1) / DP_BASE_BLOCK;
}

/* Of the numbers or codes, without scales. */
static uint64_t row_bytes(const grid *g)
{
    switch (g->kind) {
    case DP_BASE_BF16:
        return sizeof(uint16_t) * (uint64_t)g->columns;
    case DP_BASE_FP32:
        return sizeof(float) * (uint64_t)g->columns;
    case DP_BASE_INT8:
        return g->columns;
    case DP_BASE_NF4:
        return (g->columns + 1) / 2;
    case DP_BASE_KINDS:
        break;
    }
    return 0;
}

static bool has_scales(const grid *g)
{
    return g->kind == DP_BASE_INT8 || g->kind == DP_BASE_NF4;
}

static uint64_t tensor_bytes(const dp_tensor *tensor, dp_base_kind kind)
{
    if (tensor->n_dims == 1) {
        return sizeof(float) * (uint64_t)tensor->elements;
    }
    const grid g = grid_of(tensor, kind);
    const uint64_t scales = has_scales(&g) ? sizeof(float) * (uint64_t)blocks_of(&g) : 0;
    return g.rows * (row_bytes(&g) + scales);
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + DP_BASE_ALIGN - 1) / DP_BASE_ALIGN * DP_BASE_ALIGN;
}

uint64_t dp_base_weights_bytes(const dp_model *model, dp_base_kind kind)
{
    uint64_t bytes = DP_BASE_HEADER_BYTES;
    for (size_t t = 0; t < model->n_tensors; t++) {
        bytes += aligned(tensor_bytes(&model->tensors[t], kind));
    }
    return bytes;
}

static dp_hash table_of(const dp_model *model)
{
    dp_digest digest;
    dp_digest_init(&digest, "dpnode/base-table/1");
    for (size_t t = 0; t < model->n_tensors; t++) {
        const dp_tensor *const tensor = &model->tensors[t];
        dp_digest_add(&digest, dp_view_of(tensor->name, strlen(tensor->name) + 1));
        dp_digest_add_u64(&digest, tensor->shape[0]);
        dp_digest_add_u64(&digest, tensor->shape[1]);
    }
    return dp_digest_end(&digest);
}

static void write_header(const dp_model *model, dp_base_kind kind,
                         uint8_t out[DP_BASE_HEADER_BYTES])
{
    const dp_hash table = table_of(model);
    dp_writer w = dp_writer_of(out, DP_BASE_HEADER_BYTES);
    dp_write_bytes(&w, magic, sizeof magic);
    dp_write_u16(&w, VERSION);
    dp_write_u16(&w, (uint16_t)kind);
    dp_write_u64(&w, model->n_parameters);
    dp_write_u64(&w, dp_base_weights_bytes(model, kind));
    dp_write_u64(&w, 0);
    dp_write_bytes(&w, table.bytes, sizeof table.bytes);
    dp_assert(!w.full && w.size == DP_BASE_HEADER_BYTES);
}

/* ---- numbers ---- */

static float largest(const float *x, size_t n)
{
    float most = 0.0F;
    for (size_t i = 0; i < n; i++) {
        const float size = fabsf(x[i]);
        most = size > most ? size : most;
    }
    return most;
}

static void encode_int8(const float *x, size_t n, uint8_t *codes, float *scales)
{
    for (size_t first = 0; first < n; first += DP_BASE_BLOCK) {
        const size_t count = n - first < DP_BASE_BLOCK ? n - first : DP_BASE_BLOCK;
        const float scale = largest(x + first, count) / (float)INT8_MOST;
        scales[first / DP_BASE_BLOCK] = scale;
        for (size_t i = first; i < first + count; i++) {
            const float near = scale > 0.0F ? rintf(x[i] / scale) : 0.0F;
            const float kept = near > (float)INT8_MOST    ? (float)INT8_MOST
                               : near < -(float)INT8_MOST ? -(float)INT8_MOST
                                                          : near;
            codes[i] = (uint8_t)(int8_t)kept;
        }
    }
}

static uint8_t level_near(float x)
{
    uint8_t code = 0;
    while (code + 1 < LEVELS && x > (levels[code] + levels[code + 1]) * 0.5F) {
        code++;
    }
    return code;
}

static void encode_nf4(const float *x, size_t n, uint8_t *codes, float *scales)
{
    memset(codes, 0, (n + 1) / 2);
    for (size_t first = 0; first < n; first += DP_BASE_BLOCK) {
        const size_t count = n - first < DP_BASE_BLOCK ? n - first : DP_BASE_BLOCK;
        const float scale = largest(x + first, count);
        scales[first / DP_BASE_BLOCK] = scale;
        for (size_t i = first; i < first + count; i++) {
            const uint8_t code = level_near(scale > 0.0F ? x[i] / scale : 0.0F);
            codes[i / 2] |= (uint8_t)(i % 2 == 0 ? code << 4 : code);
        }
    }
}

static uint16_t bf16_of(float x)
{
    return (uint16_t)(dp_float_bits(dp_round_bf16(x)) >> 16);
}

static uint16_t u16_at(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static float f32_at(const uint8_t *at)
{
    return dp_float_of_bits((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                            (uint32_t)at[3] << 24);
}

static void decode_bf16(const uint8_t *row, size_t first, size_t count, float *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = dp_float_of_bits((uint32_t)u16_at(row + 2 * (first + i)) << 16);
    }
}

static void decode_fp32(const uint8_t *row, size_t first, size_t count, float *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = f32_at(row + 4 * (first + i));
    }
}

/* Elements of one block. */
static void decode_codes(dp_base_kind kind, const uint8_t *row, float scale, size_t first,
                         size_t count, float *out)
{
    if (kind == DP_BASE_INT8) {
        for (size_t i = 0; i < count; i++) {
            out[i] = (float)(int8_t)row[first + i] * scale;
        }
        return;
    }
    size_t i = 0;
    if (first % 2 != 0 && count > 0) {
        out[i++] = levels[row[first / 2] & 15U] * scale;
    }
    for (; i + 1 < count; i += 2) {
        const uint8_t both = row[(first + i) / 2];
        out[i] = levels[both >> 4] * scale;
        out[i + 1] = levels[both & 15U] * scale;
    }
    if (i < count) {
        out[i] = levels[row[(first + i) / 2] >> 4] * scale;
    }
}

static void decode_blocks(const grid *g, const uint8_t *row, const uint8_t *scales, size_t first,
                          size_t count, float *out)
{
    size_t done = 0;
    while (done < count) {
        const size_t at = first + done;
        const size_t rest = DP_BASE_BLOCK - at % DP_BASE_BLOCK;
        const size_t some = count - done < rest ? count - done : rest;
        const float scale = f32_at(scales + sizeof(float) * (at / DP_BASE_BLOCK));
        decode_codes(g->kind, row, scale, at, some, out + done);
        done += some;
    }
}

/* ---- writing ---- */

typedef struct pen {
    const dp_model *model;
    const float *theta;
    dp_base_put put;
    void *context;
    uint64_t written;
    float *row;     /* of the widest */
    uint8_t *codes; /* the same */
    float *scales;  /* of all rows of the tensor at hand */
} pen;

static dp_status put(pen *p, const void *bytes, size_t size)
{
    p->written += size;
    return p->put(p->context, dp_view_of(bytes, size));
}

static dp_status put_floats(pen *p, const float *x, size_t n)
{
    dp_buf bytes;
    dp_buf_init(&bytes, n * sizeof(float));
    dp_status status = dp_floats_write(x, n, &bytes);
    if (status == DP_OK) {
        status = put(p, bytes.data, bytes.size);
    }
    dp_buf_close(&bytes);
    return status;
}

static dp_status put_row(pen *p, const grid *g, size_t row)
{
    switch (g->kind) {
    case DP_BASE_FP32:
        return put_floats(p, p->row, g->columns);
    case DP_BASE_BF16:
        for (size_t i = 0; i < g->columns; i++) {
            const uint16_t bits = bf16_of(p->row[i]);
            p->codes[2 * i] = (uint8_t)bits;
            p->codes[2 * i + 1] = (uint8_t)(bits >> 8);
        }
        break;
    case DP_BASE_INT8:
        encode_int8(p->row, g->columns, p->codes, p->scales + row * blocks_of(g));
        break;
    case DP_BASE_NF4:
        encode_nf4(p->row, g->columns, p->codes, p->scales + row * blocks_of(g));
        break;
    case DP_BASE_KINDS:
        return DP_BADARG;
    }
    return put(p, p->codes, (size_t)row_bytes(g));
}

static dp_status put_matrix(pen *p, const dp_tensor *tensor, dp_base_kind kind)
{
    const grid g = grid_of(tensor, kind);
    const float *const from = p->theta + tensor->offset;
    for (size_t row = 0; row < g.rows; row++) {
        if (is_layer(tensor)) {
            for (size_t i = 0; i < g.columns; i++) {
                p->row[i] = from[i * g.rows + row];
            }
        } else {
            memcpy(p->row, from + row * g.columns, g.columns * sizeof *p->row);
        }
        DP_TRY(put_row(p, &g, row));
    }
    return has_scales(&g) ? put_floats(p, p->scales, g.rows * blocks_of(&g)) : DP_OK;
}

static dp_status put_all(pen *p, dp_base_kind kind)
{
    static const uint8_t zeros[DP_BASE_ALIGN];
    uint8_t header[DP_BASE_HEADER_BYTES];
    write_header(p->model, kind, header);
    DP_TRY(put(p, header, sizeof header));
    for (size_t t = 0; t < p->model->n_tensors; t++) {
        const dp_tensor *const tensor = &p->model->tensors[t];
        DP_TRY(tensor->n_dims == 1 ? put_floats(p, p->theta + tensor->offset, tensor->elements)
                                   : put_matrix(p, tensor, kind));
        DP_TRY(put(p, zeros, (size_t)(aligned(p->written) - p->written)));
    }
    dp_assert(p->written == dp_base_weights_bytes(p->model, kind));
    return DP_OK;
}

dp_status dp_base_weights_write(const dp_model *model, dp_base_kind kind, const float *theta,
                                dp_base_put sink, void *context)
{
    size_t columns = 1;
    size_t scales = 1;
    dp_assert(model->base == NULL);
    for (size_t t = 0; t < model->n_tensors; t++) {
        if (model->tensors[t].n_dims == 2) {
            const grid g = grid_of(&model->tensors[t], kind);
            const size_t some = has_scales(&g) ? g.rows * blocks_of(&g) : 0;
            columns = g.columns > columns ? g.columns : columns;
            scales = some > scales ? some : scales;
        }
    }
    pen p = {.model = model, .theta = theta, .put = sink, .context = context};
    p.row = dp_alloc(columns, sizeof *p.row);
    p.codes = dp_alloc(columns, sizeof(float));
    p.scales = dp_alloc(scales, sizeof *p.scales);
    const dp_status status =
        p.row == NULL || p.codes == NULL || p.scales == NULL ? DP_NOMEM : put_all(&p, kind);
    dp_free(p.scales);
    dp_free(p.codes);
    dp_free(p.row);
    return status;
}

/* ---- reading ---- */

static dp_status check_header(const dp_model *model, dp_base_kind kind, dp_view bytes, dp_why *why)
{
    uint8_t wanted[DP_BASE_HEADER_BYTES];
    if (bytes.size < sizeof wanted || memcmp(bytes.data, magic, sizeof magic) != 0) {
        return dp_why_set(why, DP_BADMSG, "the base is no file of a base");
    }
    if (u16_at(bytes.data + 4) != VERSION) {
        return dp_why_set(why, DP_VERSION, "the base is of version %u, this program reads %d",
                          (unsigned)u16_at(bytes.data + 4), (int)VERSION);
    }
    write_header(model, kind, wanted);
    if (memcmp(bytes.data, wanted, sizeof wanted) != 0 ||
        bytes.size != dp_base_weights_bytes(model, kind)) {
        return dp_why_set(why, DP_BADMSG,
                          "the base is of another model, or in another number format, than the "
                          "manifest's");
    }
    return DP_OK;
}

static dp_status read_vectors(dp_base_weights *base)
{
    const dp_model *const model = base->model;
    uint64_t at = DP_BASE_HEADER_BYTES;
    size_t n = 0;
    for (size_t t = 0; t < model->n_tensors; t++) {
        n += model->tensors[t].n_dims == 1 ? model->tensors[t].elements : 0;
    }
    base->at = dp_alloc(model->n_tensors, sizeof *base->at);
    base->vector_at = dp_alloc(model->n_tensors, sizeof *base->vector_at);
    base->vectors = dp_alloc(n, sizeof *base->vectors);
    if (base->at == NULL || base->vector_at == NULL || base->vectors == NULL) {
        return DP_NOMEM;
    }
    n = 0;
    for (size_t t = 0; t < model->n_tensors; t++) {
        const dp_tensor *const tensor = &model->tensors[t];
        base->at[t] = at;
        if (tensor->n_dims == 1) {
            base->vector_at[t] = n;
            decode_fp32(base->bytes.data + at, 0, tensor->elements, base->vectors + n);
            n += tensor->elements;
        }
        at += aligned(tensor_bytes(tensor, base->kind));
    }
    return DP_OK;
}

dp_status dp_base_weights_open(dp_base_weights *base, const dp_model *model, dp_base_kind kind,
                               dp_view bytes, dp_why *why)
{
    dp_base_weights made = {.model = model, .kind = kind, .bytes = bytes};
    dp_assert(model->base == NULL);
    DP_TRY(check_header(model, kind, bytes, why));
    const dp_status status = read_vectors(&made);
    if (status != DP_OK) {
        dp_base_weights_close(&made);
        return status;
    }
    *base = made;
    return DP_OK;
}

void dp_base_weights_close(dp_base_weights *base)
{
    dp_free(base->vectors);
    dp_free(base->vector_at);
    dp_free(base->at);
    *base = (dp_base_weights){0};
}

const float *dp_base_weights_vector(const dp_base_weights *base, const dp_tensor *tensor)
{
    dp_assert(tensor->n_dims == 1);
    return base->vectors + base->vector_at[tensor - base->model->tensors];
}

void dp_base_weights_row(const dp_base_weights *base, const dp_tensor *tensor, size_t row,
                         size_t first, size_t count, float *out)
{
    const grid g = grid_of(tensor, base->kind);
    const uint8_t *const data = base->bytes.data + base->at[tensor - base->model->tensors];
    const uint8_t *const from = data + row * row_bytes(&g);
    dp_assert(tensor->n_dims == 2 && row < g.rows && first + count <= g.columns);
    switch (g.kind) {
    case DP_BASE_BF16:
        decode_bf16(from, first, count, out);
        break;
    case DP_BASE_FP32:
        decode_fp32(from, first, count, out);
        break;
    case DP_BASE_INT8:
    case DP_BASE_NF4:
        decode_blocks(&g, from, data + g.rows * row_bytes(&g) + row * blocks_of(&g) * sizeof(float),
                      first, count, out);
        break;
    case DP_BASE_KINDS:
        break;
    }
}

static void read_matrix(const dp_base_weights *base, const dp_tensor *tensor, float *row, float *to)
{
    const grid g = grid_of(tensor, base->kind);
    for (size_t i = 0; i < g.rows; i++) {
        if (!is_layer(tensor)) {
            dp_base_weights_row(base, tensor, i, 0, g.columns, to + i * g.columns);
            continue;
        }
        dp_base_weights_row(base, tensor, i, 0, g.columns, row);
        for (size_t j = 0; j < g.columns; j++) {
            to[j * g.rows + i] = row[j];
        }
    }
}

dp_status dp_base_weights_read(const dp_base_weights *base, float *theta)
{
    const dp_model *const model = base->model;
    size_t widest = 1;
    for (size_t t = 0; t < model->n_tensors; t++) {
        widest = model->tensors[t].shape[0] > widest ? model->tensors[t].shape[0] : widest;
    }
    float *const row = dp_alloc(widest, sizeof *row);
    if (row == NULL) {
        return DP_NOMEM;
    }
    memset(theta, 0, model->n_elements * sizeof *theta);
    for (size_t t = 0; t < model->n_tensors; t++) {
        const dp_tensor *const tensor = &model->tensors[t];
        if (tensor->n_dims == 1) {
            memcpy(theta + tensor->offset, dp_base_weights_vector(base, tensor),
                   tensor->elements * sizeof *theta);
        } else {
            read_matrix(base, tensor, row, theta + tensor->offset);
        }
    }
    dp_free(row);
    return DP_OK;
}
