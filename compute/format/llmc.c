#include "compute/format/llmc.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/cpu/half.h"

enum {
    MAGIC = 20240326,
    PAD_TO = 128,            /* rows of wte, as llm.c pads for its kernels */
    PADDING_MAX = 1 << 16,   /* rows; another padding would be no padding */
    FIELDS = 8,              /* of the header */
    ELEMENTS_AT_ONCE = 4096, /* that are packed before they are appended */
};

/* The tensors in the order of the file; those of layers come for all layers before the next. */
static const struct {
    dp_slot slot;
    bool turned;
} order[] = {
    {DP_SLOT_EMBED, false},    {DP_SLOT_POSITIONS, false}, {DP_LAYER_NORM1_W, false},
    {DP_LAYER_NORM1_B, false}, {DP_LAYER_QKV_W, true},     {DP_LAYER_QKV_B, false},
    {DP_LAYER_OUT_W, true},    {DP_LAYER_OUT_B, false},    {DP_LAYER_NORM2_W, false},
    {DP_LAYER_NORM2_B, false}, {DP_LAYER_UP_W, true},      {DP_LAYER_UP_B, false},
    {DP_LAYER_DOWN_W, true},   {DP_LAYER_DOWN_B, false},   {DP_SLOT_NORM_W, false},
    {DP_SLOT_NORM_B, false},
};

enum { ORDER_COUNT = sizeof order / sizeof order[0] };

typedef struct header {
    dp_llmc_type type;
    uint32_t padded;
    dp_model_config config;
} header;

bool dp_llmc_type_of(const char *name, dp_llmc_type *type)
{
    const bool fp32 = strcmp(name, "f32") == 0;
    if (!fp32 && strcmp(name, "bf16") != 0) {
        return false;
    }
    *type = fp32 ? DP_LLMC_FP32 : DP_LLMC_BF16;
    return true;
}

static size_t bytes_each(dp_llmc_type type)
{
    return type == DP_LLMC_FP32 ? sizeof(float) : sizeof(uint16_t);
}

bool dp_llmc_is(dp_view bytes)
{
    dp_reader reader = dp_reader_of(bytes);
    return dp_read_u32(&reader) == MAGIC && !reader.failed;
}

static dp_status check_version(uint32_t version, uint32_t padded, dp_why *why)
{
    if (version != DP_LLMC_FP32 && version != DP_LLMC_BF16) {
        return dp_why_set(why, DP_VERSION,
                          "the checkpoint of llm.c has version %u; this program reads 3 (fp32) and "
                          "5 (bf16), which llm.c writes since May 2024",
                          version);
    }
    return padded != 0 ? DP_OK
                       : dp_why_set(why, DP_VERSION,
                                    "the checkpoint of llm.c has no padded vocabulary; write it "
                                    "anew with an llm.c from May 2024 or later");
}

static dp_status read_header(dp_view bytes, header *out, dp_why *why)
{
    dp_reader reader = dp_reader_of(bytes);
    uint32_t fields[FIELDS];
    for (size_t i = 0; i < FIELDS; i++) {
        fields[i] = dp_read_u32(&reader);
    }
    if (bytes.size < DP_LLMC_HEADER_BYTES || fields[0] != MAGIC) {
        return dp_why_set(why, DP_BADMSG, "this is no checkpoint of llm.c");
    }
    DP_TRY(check_version(fields[1], fields[7], why));
    const dp_model_config config = {.arch = DP_ARCH_GPT2,
                                    .context = fields[2],
                                    .vocab = fields[3],
                                    .layers = fields[4],
                                    .heads = fields[5],
                                    .width = fields[6]};
    DP_TRY(dp_model_config_check(&config, why));
    if (fields[7] < config.vocab || fields[7] - config.vocab > PADDING_MAX) {
        return dp_why_set(
            why, DP_BADMSG,
            "the checkpoint of llm.c pads a vocabulary of %u to %u rows, which cannot "
            "be",
            config.vocab, fields[7]);
    }
    const dp_llmc_type type = fields[1] == DP_LLMC_FP32 ? DP_LLMC_FP32 : DP_LLMC_BF16;
    /* Below 2^36 + 2^30 elements: nothing wraps. */
    const uint64_t elements =
        dp_model_config_parameters(&config) + (uint64_t)(fields[7] - config.vocab) * config.width;
    const uint64_t size = DP_LLMC_HEADER_BYTES + elements * bytes_each(type);
    if (bytes.size != size) {
        return dp_why_set(why, DP_BADMSG,
                          "the checkpoint of llm.c has %zu bytes where its header makes %llu",
                          bytes.size, (unsigned long long)size);
    }
    *out = (header){.type = type, .padded = fields[7], .config = dp_model_config_resolve(&config)};
    return DP_OK;
}

dp_status dp_llmc_config(dp_view bytes, dp_model_config *config, dp_why *why)
{
    header read;
    DP_TRY(read_header(bytes, &read, why));
    *config = read.config;
    return DP_OK;
}

/* ---- reading ---- */

/* count values from *at on, which moves behind them; false: one is not finite. */
static bool take(const uint8_t **at, dp_llmc_type type, float *out, size_t count)
{
    const size_t each = bytes_each(type);
    bool finite = true;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *const p = *at + i * each;
        const uint32_t low = (uint32_t)p[0] | (uint32_t)p[1] << 8;
        out[i] = type == DP_LLMC_FP32
                     ? dp_float_of_bits(low | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24)
                     : dp_bfloat_value((uint16_t)low);
        finite = finite && isfinite(out[i]);
    }
    *at += count * each;
    return finite;
}

/* row: room for one row of the file. */
static bool take_turned(const uint8_t **at, dp_llmc_type type, const dp_tensor *tensor, float *to,
                        float *row)
{
    const size_t rows = tensor->shape[0];
    const size_t columns = tensor->shape[1];
    bool finite = true;
    for (size_t j = 0; j < columns; j++) {
        finite = take(at, type, row, rows) && finite;
        for (size_t i = 0; i < rows; i++) {
            to[i * columns + j] = row[i];
        }
    }
    return finite;
}

static size_t layers_of(const dp_model *model, dp_slot slot)
{
    return slot < DP_LAYER_SLOTS ? model->config.layers : 1;
}

static dp_status read_tensors(dp_view bytes, const header *head, const dp_model *model,
                              float *theta, float *row, dp_why *why)
{
    const uint8_t *at = bytes.data + DP_LLMC_HEADER_BYTES;
    memset(theta, 0, model->n_elements * sizeof *theta);
    for (size_t k = 0; k < ORDER_COUNT; k++) {
        for (size_t layer = 0; layer < layers_of(model, order[k].slot); layer++) {
            const dp_tensor *const tensor = dp_model_tensor(model, layer, order[k].slot);
            float *const to = theta + tensor->offset;
            const bool finite = order[k].turned ? take_turned(&at, head->type, tensor, to, row)
                                                : take(&at, head->type, to, tensor->elements);
            if (!finite) {
                return dp_why_set(why, DP_DIVERGED, "a weight of tensor %s is not finite",
                                  tensor->name);
            }
        }
        if (order[k].slot == DP_SLOT_EMBED) {
            at += (size_t)(head->padded - model->config.vocab) * model->config.width *
                  bytes_each(head->type);
        }
    }
    return DP_OK;
}

/* The longest row of the file of a matrix that is turned. */
static size_t row_most(const dp_model *model)
{
    return model->config.hidden > model->config.width ? model->config.hidden : model->config.width;
}

dp_status dp_llmc_read(dp_view bytes, const dp_model *model, float *theta, dp_why *why)
{
    header head;
    DP_TRY(read_header(bytes, &head, why));
    if (memcmp(&head.config, &model->config, sizeof head.config) != 0) {
        return dp_why_set(why, DP_BADARG, "the checkpoint of llm.c is of another model");
    }
    float *const row = dp_alloc(row_most(model), sizeof *row);
    const dp_status status = row == NULL ? dp_why_set(why, DP_NOMEM, "no memory for a row")
                                         : read_tensors(bytes, &head, model, theta, row, why);
    dp_free(row);
    return status;
}

/* ---- writing ---- */

static dp_status put(dp_buf *out, dp_llmc_type type, const float *values, size_t count)
{
    uint8_t room[ELEMENTS_AT_ONCE * sizeof(float)];
    while (count > 0) {
        const size_t n = count < ELEMENTS_AT_ONCE ? count : ELEMENTS_AT_ONCE;
        dp_writer writer = dp_writer_of(room, sizeof room);
        for (size_t i = 0; i < n; i++) {
            if (type == DP_LLMC_FP32) {
                dp_write_u32(&writer, dp_float_bits(values[i]));
            } else {
                dp_write_u16(&writer, dp_bfloat_of(values[i]));
            }
        }
        DP_TRY(dp_buf_append(out, dp_view_of(room, writer.size)));
        values += n;
        count -= n;
    }
    return DP_OK;
}

static dp_status put_turned(dp_buf *out, dp_llmc_type type, const dp_tensor *tensor,
                            const float *from, float *row)
{
    const size_t rows = tensor->shape[0];
    const size_t columns = tensor->shape[1];
    for (size_t j = 0; j < columns; j++) {
        for (size_t i = 0; i < rows; i++) {
            row[i] = from[i * columns + j];
        }
        DP_TRY(put(out, type, row, rows));
    }
    return DP_OK;
}

static dp_status put_padding(dp_buf *out, size_t bytes)
{
    uint8_t *room;
    DP_TRY(dp_buf_reserve(out, bytes, &room));
    memset(room, 0, bytes);
    dp_buf_commit(out, bytes);
    return DP_OK;
}

static uint32_t padded_of(const dp_model *model)
{
    return (model->config.vocab + PAD_TO - 1) / PAD_TO * PAD_TO;
}

static dp_status write_header(const dp_model *model, dp_llmc_type type, dp_buf *out)
{
    const dp_model_config *const m = &model->config;
    const uint32_t fields[FIELDS] = {MAGIC,     type,     m->context, m->vocab,
                                     m->layers, m->heads, m->width,   padded_of(model)};
    uint8_t bytes[DP_LLMC_HEADER_BYTES] = {0};
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    for (size_t i = 0; i < FIELDS; i++) {
        dp_write_u32(&writer, fields[i]);
    }
    return dp_buf_append(out, dp_view_of(bytes, sizeof bytes));
}

static dp_status write_tensors(const dp_model *model, const float *theta, dp_llmc_type type,
                               dp_buf *out, float *row)
{
    for (size_t k = 0; k < ORDER_COUNT; k++) {
        for (size_t layer = 0; layer < layers_of(model, order[k].slot); layer++) {
            const dp_tensor *const tensor = dp_model_tensor(model, layer, order[k].slot);
            const float *const from = theta + tensor->offset;
            DP_TRY(order[k].turned ? put_turned(out, type, tensor, from, row)
                                   : put(out, type, from, tensor->elements));
        }
        if (order[k].slot == DP_SLOT_EMBED) {
            DP_TRY(put_padding(out, (size_t)(padded_of(model) - model->config.vocab) *
                                        model->config.width * bytes_each(type)));
        }
    }
    return DP_OK;
}

/* True for the models of llm.c: GPT-2 as published. */
static dp_status check_model(const dp_model *model, dp_why *why)
{
    const dp_model_config *const m = &model->config;
    const dp_model_config plain = {.arch = DP_ARCH_GPT2,
                                   .context = m->context,
                                   .vocab = m->vocab,
                                   .layers = m->layers,
                                   .heads = m->heads,
                                   .width = m->width};
    const dp_model_config own = dp_model_config_resolve(&plain);
    return memcmp(&own, m, sizeof own) == 0
               ? DP_OK
               : dp_why_set(why, DP_UNSUPPORTED,
                            "llm.c computes GPT-2 with GELU, a tied head and no soft cap, hidden "
                            "four times the width; this model is another one");
}

dp_status dp_llmc_write(const dp_model *model, const float *theta, dp_llmc_type type, dp_buf *out,
                        dp_why *why)
{
    DP_TRY(check_model(model, why));
    float *const row = dp_alloc(row_most(model), sizeof *row);
    dp_status status = row == NULL ? DP_NOMEM : write_header(model, type, out);
    if (status == DP_OK) {
        status = write_tensors(model, theta, type, out, row);
    }
    dp_free(row);
    return status;
}
