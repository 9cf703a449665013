#include "compute/format/safetensors.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/model/adapter.h"
#include "compute/model/state.h"

enum { ENTRY_BYTES_MAX = 256, HEADER_ALIGN = 8 };

/* Called for each part of each tensor of the model, in the order of the file. */
typedef dp_status (*on_part)(const dp_tensor *tensor, const dp_tensor_part *part, void *context);

static dp_status each_part(const dp_model *model, on_part call, void *context)
{
    for (size_t i = 0; i < model->n_tensors; i++) {
        dp_tensor_part parts[DP_MODEL_PARTS_MAX];
        const size_t n = model->base != NULL ? dp_adapter_parts(model, &model->tensors[i], parts)
                                             : dp_model_parts(model, &model->tensors[i], parts);
        for (size_t k = 0; k < n; k++) {
            DP_TRY(call(&model->tensors[i], &parts[k], context));
        }
    }
    return DP_OK;
}

typedef struct header_end {
    dp_buf *out;
    const char *front; /* of every name */
    uint64_t offset;
} header_end;

static dp_status append_entry(const dp_tensor *tensor, const dp_tensor_part *part, void *context)
{
    header_end *const end = context;
    const size_t rows = tensor->n_dims == 1 ? 1 : tensor->shape[0];
    const uint64_t bytes = 4 * (uint64_t)rows * part->columns;
    char shape[64];
    const int shaped = tensor->n_dims == 1 ? snprintf(shape, sizeof shape, "%zu", part->columns)
                                           : snprintf(shape, sizeof shape, "%zu,%zu",
                                                      part->transposed ? part->columns : rows,
                                                      part->transposed ? rows : part->columns);
    char text[ENTRY_BYTES_MAX];
    const int size = snprintf(
        text, sizeof text,
        ",\"%s%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
        end->front, part->name, shape, end->offset, end->offset + bytes);
    if (shaped < 0 || size < 0 || (size_t)size >= sizeof text) {
        return DP_TOOBIG;
    }
    end->offset += bytes;
    return dp_buf_append(end->out, dp_view_of(text, (size_t)size));
}

/* base: NULL unless the model has adapters. */
static dp_status write_header(const dp_model *model, const dp_hash *base, dp_buf *header)
{
    char metadata[ENTRY_BYTES_MAX] = "{\"__metadata__\":{\"format\":\"pt\"}";
    if (base != NULL) {
        char hex[2 * DP_HASH_BYTES + 1];
        dp_hex(dp_view_of(base->bytes, sizeof base->bytes), hex);
        snprintf(metadata, sizeof metadata,
                 "{\"__metadata__\":{\"format\":\"pt\",\"dpnode.base\":\"%s\"}", hex);
    }
    DP_TRY(dp_buf_append(header, dp_view_text(metadata)));
    header_end end = {.out = header, .front = base != NULL ? "base_model.model." : ""};
    DP_TRY(each_part(model, append_entry, &end));
    DP_TRY(dp_buf_append(header, dp_view_text("}")));
    while (header->size % HEADER_ALIGN != 0) {
        DP_TRY(dp_buf_append(header, dp_view_text(" ")));
    }
    return DP_OK;
}

typedef struct values_end {
    const dp_model *model;
    const float *theta;
    dp_buf *out;
} values_end;

static dp_status append_vector(const values_end *end, const dp_tensor *tensor,
                               const dp_tensor_part *part, float *room)
{
    const float *const from = end->theta + tensor->offset;
    for (size_t j = 0; j < part->columns; j++) {
        room[j] = from[dp_model_part_column(end->model, tensor, part, j)] - part->above;
    }
    return dp_floats_write(room, part->columns, end->out);
}

static dp_status append_turned(const values_end *end, const dp_tensor *tensor,
                               const dp_tensor_part *part, float *room)
{
    const size_t rows = tensor->shape[0];
    for (size_t j = 0; j < part->columns; j++) {
        const float *const from =
            end->theta + tensor->offset + dp_model_part_column(end->model, tensor, part, j);
        for (size_t i = 0; i < rows; i++) {
            room[i] = from[i * tensor->shape[1]];
        }
        DP_TRY(dp_floats_write(room, rows, end->out));
    }
    return DP_OK;
}

/* The part's values, row by row of the file. */
static dp_status append_values(const dp_tensor *tensor, const dp_tensor_part *part, void *context)
{
    const values_end *const end = context;
    const bool vector = tensor->n_dims == 1;
    if (!vector && !part->transposed) {
        return dp_floats_write(end->theta + tensor->offset, tensor->elements, end->out);
    }
    float *const room = dp_alloc(vector ? part->columns : tensor->shape[0], sizeof *room);
    if (room == NULL) {
        return DP_NOMEM;
    }
    const dp_status status =
        vector ? append_vector(end, tensor, part, room) : append_turned(end, tensor, part, room);
    dp_free(room);
    return status;
}

static dp_status write_all(const dp_model *model, const float *theta, dp_view header, dp_buf *out)
{
    uint8_t size[8];
    dp_writer writer = dp_writer_of(size, sizeof size);
    dp_write_u64(&writer, header.size);
    DP_TRY(dp_buf_append(out, dp_view_of(size, sizeof size)));
    DP_TRY(dp_buf_append(out, header));
    values_end end = {.model = model, .theta = theta, .out = out};
    return each_part(model, append_values, &end);
}

static dp_status write_file(const dp_model *model, const float *theta, const dp_hash *base,
                            dp_buf *out)
{
    dp_buf header;
    dp_buf_init(&header, (DP_MODEL_PARTS_MAX * model->n_tensors + 1) * ENTRY_BYTES_MAX);
    const size_t before = out->size;
    dp_status status = write_header(model, base, &header);
    if (status == DP_OK) {
        status = write_all(model, theta, dp_buf_view(&header), out);
    }
    if (status != DP_OK) {
        out->size = before;
    }
    dp_buf_close(&header);
    return status;
}

dp_status dp_safetensors_write(const dp_model *model, const float *theta, dp_buf *out)
{
    dp_assert(model->base == NULL);
    return write_file(model, theta, NULL, out);
}

dp_status dp_safetensors_write_adapters(const dp_model *model, const float *params,
                                        const dp_hash *base, dp_buf *out)
{
    dp_assert(model->base != NULL);
    return write_file(model, params, base, out);
}
