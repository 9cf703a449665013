#include "compute/format/gguf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/cpu/half.h"
#include "compute/format/gguf_arch.h"
#include "compute/format/gguf_words.h"

enum { VERSION = 3, BLOCK_BYTES = 2 + DP_GGUF_BLOCK };

static const struct type_row {
    const char *name;
    dp_gguf_type type;
    uint32_t file_type; /* llama.cpp's number for a file that is mostly this */
} type_rows[] = {{"f32", DP_GGUF_F32, 0},
                 {"f16", DP_GGUF_F16, 1},
                 {"bf16", DP_GGUF_BF16, 32},
                 {"q8_0", DP_GGUF_Q8_0, 7}};

bool dp_gguf_type_of(const char *text, dp_gguf_type *type)
{
    for (size_t i = 0; i < sizeof type_rows / sizeof type_rows[0]; i++) {
        if (strcmp(type_rows[i].name, text) == 0) {
            *type = type_rows[i].type;
            return true;
        }
    }
    return false;
}

/* Names of tensors in the file; a tensor may become several. */
static const char *const names[DP_SLOTS][DP_MODEL_PARTS_MAX] = {
    [DP_LAYER_NORM1_W] = {"attn_norm.weight"},
    [DP_LAYER_NORM1_B] = {"attn_norm.bias"},
    [DP_LAYER_QKV_W] = {"attn_q.weight", "attn_k.weight", "attn_v.weight"},
    [DP_LAYER_QKV_B] = {"attn_q.bias", "attn_k.bias", "attn_v.bias"},
    [DP_LAYER_Q_NORM] = {"attn_q_norm.weight"},
    [DP_LAYER_K_NORM] = {"attn_k_norm.weight"},
    [DP_LAYER_OUT_W] = {"attn_output.weight"},
    [DP_LAYER_OUT_B] = {"attn_output.bias"},
    [DP_LAYER_OUT_NORM] = {"post_attention_norm.weight"},
    [DP_LAYER_NORM2_W] = {"ffn_norm.weight"},
    [DP_LAYER_NORM2_B] = {"ffn_norm.bias"},
    [DP_LAYER_UP_W] = {"ffn_gate.weight", "ffn_up.weight"},
    [DP_LAYER_UP_B] = {"ffn_up.bias"},
    [DP_LAYER_DOWN_W] = {"ffn_down.weight"},
    [DP_LAYER_DOWN_B] = {"ffn_down.bias"},
    [DP_LAYER_DOWN_NORM] = {"post_ffw_norm.weight"},
    [DP_SLOT_EMBED] = {"token_embd.weight"},
    [DP_SLOT_POSITIONS] = {"position_embd.weight"},
    [DP_SLOT_NORM_W] = {"output_norm.weight"},
    [DP_SLOT_NORM_B] = {"output_norm.bias"},
    [DP_SLOT_HEAD] = {"output.weight"},
};

/* The same where they are whole. */
static const struct {
    dp_slot slot;
    const char *name;
} whole_names[] = {{DP_LAYER_QKV_W, "attn_qkv.weight"},
                   {DP_LAYER_QKV_B, "attn_qkv.bias"},
                   {DP_LAYER_UP_W, "ffn_up.weight"}};

/* One tensor of the file. */
typedef struct file_tensor {
    char name[DP_TENSOR_NAME_MAX];
    uint32_t n_dims;
    const float *values;     /* of the tensor in the arena */
    const dp_tensor *tensor; /* NULL: of none */
    dp_tensor_part part;
    size_t stride;  /* from row to row in the arena, where turned */
    size_t rows;    /* 1 for a vector */
    size_t columns; /* of a row */
    bool turned;    /* the arena has [columns][rows] */
    size_t half;    /* of a head whose rows are interleaved; 0: they are not */
    dp_gguf_type type;
} file_tensor;

typedef struct writer {
    const dp_model *model;
    const float *theta;
    dp_gguf_type matrices;
    dp_gguf_pairs pairs;
    uint64_t n_tensors;
    uint64_t offset;
    float factors[DP_MODEL_HEAD_WIDTH_MAX / 2]; /* of rotary angles */
    float *row;
    uint8_t *bytes; /* of a row */
} writer;

static size_t row_bytes(dp_gguf_type type, size_t columns)
{
    switch (type) {
    case DP_GGUF_F32:
        return 4 * columns;
    case DP_GGUF_F16:
    case DP_GGUF_BF16:
        return 2 * columns;
    case DP_GGUF_Q8_0:
        return columns / DP_GGUF_BLOCK * BLOCK_BYTES;
    }
    return 0;
}

static dp_gguf_type type_for(const writer *w, const dp_tensor *tensor, size_t columns)
{
    if (tensor->n_dims == 1 || tensor->slot == DP_SLOT_POSITIONS) {
        return DP_GGUF_F32;
    }
    return w->matrices == DP_GGUF_Q8_0 && columns % DP_GGUF_BLOCK != 0 ? DP_GGUF_F16 : w->matrices;
}

/* Part k of n of a tensor. */
static const char *name_of(const dp_tensor *tensor, size_t k, size_t n)
{
    for (size_t i = 0; n == 1 && i < sizeof whole_names / sizeof whole_names[0]; i++) {
        if (whole_names[i].slot == tensor->slot) {
            return whole_names[i].name;
        }
    }
    return names[tensor->slot][k];
}

static file_tensor item_of(const writer *w, const dp_tensor *tensor, const dp_tensor_part *part,
                           const char *name)
{
    const dp_model *const model = w->model;
    const bool linear = tensor->n_dims == 2 && tensor->slot < DP_LAYER_SLOTS;
    file_tensor made = {.n_dims = tensor->n_dims,
                        .values = w->theta + tensor->offset,
                        .tensor = tensor,
                        .part = *part,
                        .stride = tensor->shape[1],
                        .turned = linear};
    made.part.by_head = false; /* The file has q, k and v apart, or one after the other. */
    made.rows = tensor->n_dims == 1 ? 1 : linear ? part->columns : tensor->shape[0];
    made.columns = tensor->n_dims == 1 ? part->columns
                   : linear            ? tensor->shape[0]
                                       : tensor->shape[1];
    made.type = type_for(w, tensor, made.columns);
    const size_t v = (model->config.heads + (size_t)model->config.kv_heads) *
                     model->config.head_width; /* the first column of v */
    if (tensor->slot == DP_LAYER_QKV_W && part->first < v &&
        dp_gguf_arch_of(&model->config)->pairs) {
        made.half = model->config.head_width / 2;
    }
    if (tensor->slot < DP_LAYER_SLOTS) {
        const size_t layer = ((size_t)(tensor - model->tensors) - (size_t)model->at[tensor->slot]) /
                             (size_t)model->tensors_per_layer;
        snprintf(made.name, sizeof made.name, "blk.%zu.%s", layer, name);
    } else {
        snprintf(made.name, sizeof made.name, "%s", name);
    }
    return made;
}

static void each_item(writer *w, void (*call)(writer *w, const file_tensor *item))
{
    for (size_t t = 0; t < w->model->n_tensors; t++) {
        dp_tensor_part parts[DP_MODEL_PARTS_MAX];
        const size_t n = dp_model_parts(w->model, &w->model->tensors[t], parts);
        for (size_t k = 0; k < n; k++) {
            const file_tensor made =
                item_of(w, &w->model->tensors[t], &parts[k], name_of(&w->model->tensors[t], k, n));
            call(w, &made);
        }
    }
    if (w->model->config.rope_scaling == DP_ROPE_LLAMA3) {
        call(w, &(file_tensor){.name = "rope_freqs.weight",
                               .n_dims = 1,
                               .values = w->factors,
                               .rows = 1,
                               .columns = w->model->config.head_width / 2,
                               .type = DP_GGUF_F32});
    }
}

/* By how much the scaling divides each turn. */
static void fill_factors(writer *w)
{
    dp_rope_turns plain = dp_model_turns(w->model, DP_ROPE_USUAL);
    const dp_rope_turns scaled = plain;
    plain.scaling = DP_ROPE_PLAIN;
    for (size_t i = 0; i < plain.width / 2; i++) {
        w->factors[i] = (float)(dp_rope_turn(&plain, i) / dp_rope_turn(&scaled, i));
    }
}

static void count_item(writer *w, const file_tensor *item)
{
    (void)item;
    w->n_tensors++;
}

static uint64_t padded(uint64_t size)
{
    return (size + DP_GGUF_ALIGN - 1) / DP_GGUF_ALIGN * DP_GGUF_ALIGN;
}

static void write_info(writer *w, const file_tensor *item)
{
    dp_gguf_pairs *const p = &w->pairs;
    dp_gguf_string(p, dp_view_text(item->name));
    dp_gguf_u32(p, item->n_dims);
    dp_gguf_u64(p, item->columns);
    if (item->n_dims == 2) {
        dp_gguf_u64(p, item->rows);
    }
    dp_gguf_u32(p, item->type);
    dp_gguf_u64(p, w->offset);
    w->offset += padded((uint64_t)item->rows * row_bytes(item->type, item->columns));
}

/* The column of the arena that has row `index` of the file, or element `index` of a vector. */
static size_t column_of(const writer *w, const file_tensor *item, size_t index)
{
    if (item->half > 0) {
        const size_t head = 2 * item->half;
        index = index / head * head + index % 2 * item->half + index % head / 2;
    }
    return dp_model_part_column(w->model, item->tensor, &item->part, index);
}

static void take_row(const writer *w, const file_tensor *item, size_t index)
{
    const float *const from = item->values;
    if (item->turned) {
        const size_t column = column_of(w, item, index);
        for (size_t i = 0; i < item->columns; i++) {
            w->row[i] = from[i * item->stride + column];
        }
        return;
    }
    for (size_t i = 0; i < item->columns; i++) {
        const bool vector = item->n_dims == 1 && item->tensor != NULL;
        w->row[i] = from[vector ? column_of(w, item, i) : index * item->columns + i];
    }
}

static uint16_t half_of(float value)
{
    const uint16_t sign = signbit(value) ? 0x8000U : 0;
    return sign | dp_half_of(fabs((double)value), false);
}

static void put_u16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static void write_block(const float *x, uint8_t *out)
{
    float most = 0;
    for (size_t i = 0; i < DP_GGUF_BLOCK; i++) {
        most = fmaxf(most, fabsf(x[i]));
    }
    const float scale = most / 127.0F;
    put_u16(out, half_of(scale));
    for (size_t i = 0; i < DP_GGUF_BLOCK; i++) {
        const float value = scale > 0 ? roundf(x[i] / scale) : 0;
        out[2 + i] = (uint8_t)(int8_t)fminf(fmaxf(value, -127.0F), 127.0F);
    }
}

static void encode_row(const float *x, size_t n, dp_gguf_type type, uint8_t *out)
{
    if (type == DP_GGUF_Q8_0) {
        for (size_t i = 0; i < n; i += DP_GGUF_BLOCK) {
            write_block(x + i, out + i / DP_GGUF_BLOCK * BLOCK_BYTES);
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (type == DP_GGUF_F32) {
            const uint32_t bits = dp_float_bits(x[i]);
            put_u16(out + 4 * i, (uint16_t)bits);
            put_u16(out + 4 * i + 2, (uint16_t)(bits >> 16));
        } else {
            put_u16(out + 2 * i, type == DP_GGUF_F16 ? half_of(x[i]) : dp_bfloat_of(x[i]));
        }
    }
}

static void align(dp_gguf_pairs *pairs, size_t start)
{
    static const uint8_t zeros[DP_GGUF_ALIGN] = {0};
    const size_t size = pairs->out->size - start;
    dp_gguf_raw(pairs, zeros, (size_t)padded(size) - size);
}

static void write_data(writer *w, const file_tensor *item)
{
    const size_t size = row_bytes(item->type, item->columns);
    const size_t start = w->pairs.out->size;
    for (size_t row = 0; row < item->rows && w->pairs.status == DP_OK; row++) {
        take_row(w, item, row);
        encode_row(w->row, item->columns, item->type, w->bytes);
        dp_gguf_raw(&w->pairs, w->bytes, size);
    }
    align(&w->pairs, start);
}

static void write_pairs(writer *w, const dp_gguf_language *language)
{
    dp_gguf_pairs *const p = &w->pairs;
    dp_gguf_arch_pairs(p, &w->model->config);
    for (size_t i = 0; i < sizeof type_rows / sizeof type_rows[0]; i++) {
        if (type_rows[i].type == w->matrices) {
            dp_gguf_pair_u32(p, "general.file_type", type_rows[i].file_type);
        }
    }
    dp_gguf_pair_u32(p, "general.quantization_version", 2);
    dp_gguf_words(p, language->bpe, w->model->config.vocab);
    if (language->chat_template.size > 0) {
        dp_gguf_key(p, "tokenizer.chat_template", DP_GGUF_TEXT);
        dp_gguf_string(p, language->chat_template);
    }
}

static dp_status check(const dp_model_config *m, const dp_bpe *bpe, dp_why *why)
{
    DP_TRY(dp_gguf_arch_check(m, why));
    DP_TRY(dp_gguf_words_check(bpe, why));
    if (dp_bpe_count(bpe) > m->vocab) {
        return dp_why_set(why, DP_BADARG,
                          "the tokenizer has %zu tokens, the model a vocabulary of %u",
                          dp_bpe_count(bpe), m->vocab);
    }
    return DP_OK;
}

static dp_status write_head(writer *w, const dp_gguf_language *language, dp_buf *pairs_room)
{
    w->pairs.out = pairs_room;
    write_pairs(w, language);
    each_item(w, count_item);
    each_item(w, write_info);
    return w->pairs.status;
}

static dp_status write_file(writer *w, const dp_gguf_language *language, dp_buf *head, dp_buf *out)
{
    DP_TRY(write_head(w, language, head));
    const size_t start = out->size;
    dp_gguf_pairs *const p = &w->pairs;
    p->out = out;
    dp_gguf_raw(p, "GGUF", 4);
    dp_gguf_u32(p, VERSION);
    dp_gguf_u64(p, w->n_tensors);
    dp_gguf_u64(p, p->count);
    dp_gguf_raw(p, head->data, head->size);
    align(p, start);
    const size_t data = out->size;
    each_item(w, write_data);
    dp_assert(p->status != DP_OK || out->size - data == w->offset);
    return p->status;
}

dp_status dp_gguf_write(const dp_model *model, const float *theta, const dp_gguf_language *language,
                        dp_gguf_type matrices, dp_buf *out, dp_why *why)
{
    DP_TRY(check(&model->config, language->bpe, why));
    size_t columns = 0;
    for (size_t t = 0; t < model->n_tensors; t++) {
        const dp_tensor *const tensor = &model->tensors[t];
        for (size_t k = 0; k < 2; k++) {
            columns = tensor->shape[k] > columns ? tensor->shape[k] : columns;
        }
    }
    dp_buf head;
    dp_buf_init(&head, (size_t)1 << 28);
    writer w = {.model = model, .theta = theta, .matrices = matrices};
    if (model->config.rope_scaling == DP_ROPE_LLAMA3) {
        fill_factors(&w);
    }
    w.row = dp_alloc(columns, sizeof *w.row);
    w.bytes = dp_alloc(columns, sizeof *w.row);
    const size_t before = out->size;
    const dp_status status =
        w.row == NULL || w.bytes == NULL ? DP_NOMEM : write_file(&w, language, &head, out);
    if (status != DP_OK) {
        out->size = before;
        dp_why_set(why, status, "the GGUF file could not be made: %s", dp_status_text(status));
    }
    dp_free(w.bytes);
    dp_free(w.row);
    dp_buf_close(&head);
    return status;
}
