#include "compute/safetensors.h"

#include <inttypes.h>
#include <stdio.h>

#include "compute/state.h"

enum { ENTRY_BYTES_MAX = 256, HEADER_ALIGN = 8 };

static dp_status append_entry(const dp_tensor *tensor, uint64_t offset, dp_buf *header)
{
    char shape[64];
    const int shaped = tensor->n_dims == 1 ? snprintf(shape, sizeof shape, "%zu", tensor->shape[0])
                                           : snprintf(shape, sizeof shape, "%zu,%zu",
                                                      tensor->shape[0], tensor->shape[1]);
    char text[ENTRY_BYTES_MAX];
    const int size = snprintf(text, sizeof text,
                              ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%" PRIu64
                              ",%" PRIu64 "]}",
                              tensor->name, shape, offset, offset + 4 * (uint64_t)tensor->elements);
    if (shaped < 0 || size < 0 || (size_t)size >= sizeof text) {
        return DP_TOOBIG;
    }
    return dp_buf_append(header, dp_view_of(text, (size_t)size));
}

static dp_status write_header(const dp_model *model, dp_buf *header)
{
    DP_TRY(dp_buf_append(header, dp_view_text("{\"__metadata__\":{\"format\":\"pt\"}")));
    uint64_t offset = 0;
    for (size_t i = 0; i < model->n_tensors; i++) {
        DP_TRY(append_entry(&model->tensors[i], offset, header));
        offset += 4 * (uint64_t)model->tensors[i].elements;
    }
    DP_TRY(dp_buf_append(header, dp_view_text("}")));
    while (header->size % HEADER_ALIGN != 0) {
        DP_TRY(dp_buf_append(header, dp_view_text(" ")));
    }
    return DP_OK;
}

static dp_status write_all(const dp_model *model, const float *theta, dp_view header, dp_buf *out)
{
    uint8_t size[8];
    dp_writer writer = dp_writer_of(size, sizeof size);
    dp_write_u64(&writer, header.size);
    DP_TRY(dp_buf_append(out, dp_view_of(size, sizeof size)));
    DP_TRY(dp_buf_append(out, header));
    for (size_t i = 0; i < model->n_tensors; i++) {
        DP_TRY(dp_floats_write(theta + model->tensors[i].offset, model->tensors[i].elements, out));
    }
    return DP_OK;
}

dp_status dp_safetensors_write(const dp_model *model, const float *theta, dp_buf *out)
{
    dp_buf header;
    dp_buf_init(&header, (size_t)DP_MODEL_TENSORS_MAX * ENTRY_BYTES_MAX + ENTRY_BYTES_MAX);
    const size_t before = out->size;
    dp_status status = write_header(model, &header);
    if (status == DP_OK) {
        status = write_all(model, theta, dp_buf_view(&header), out);
    }
    if (status != DP_OK) {
        out->size = before;
    }
    dp_buf_close(&header);
    return status;
}
