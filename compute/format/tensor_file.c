#include "compute/format/tensor_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/cpu/half.h"
#include "compute/model/state.h"

enum {
    /* {"dtype":"BF16","shape":[,,,,,,,],"data_offsets":[,]} with all its numbers, without the
     * name */
    ENTRY_BYTES_MAX = 64 + 11 * DP_TENSOR_TABLE_DIMS_MAX + 2 * 20,
    HEADER_ALIGN = 8,
    PIECE = 4096 /* elements that are converted at a time */
};

/* ---- in ---- */

static int by_name(const void *left, const void *right)
{
    const char *const *const a = left;
    const char *const *const b = right;
    return strcmp(*a, *b);
}

static size_t count_names(const dp_safetensors *file)
{
    size_t n = 0;
    for (const char *name = dp_safetensors_next(file, NULL); name != NULL;
         name = dp_safetensors_next(file, name)) {
        n++;
    }
    return n;
}

static dp_status row_of(const dp_safetensors *file, const char *name, dp_tensor_row *row,
                        dp_why *why)
{
    static const dp_number_type types[] = {[DP_SAFETENSORS_F32] = DP_NUMBER_F32,
                                           [DP_SAFETENSORS_F16] = DP_NUMBER_F16,
                                           [DP_SAFETENSORS_BF16] = DP_NUMBER_BF16};
    dp_safetensors_tensor tensor;
    DP_TRY(dp_safetensors_find(file, name, &tensor));
    if (tensor.type == DP_SAFETENSORS_OTHER) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "tensor %.100s has numbers that are not trained; F32, F16 and BF16 are: "
                          "save it as one of them, or leave it out of the file",
                          name);
    }
    *row = (dp_tensor_row){
        .name = dp_view_text(name), .type = types[tensor.type], .n_dims = tensor.n_dims};
    for (uint32_t i = 0; i < tensor.n_dims; i++) {
        if (tensor.shape[i] > UINT32_MAX) {
            return dp_why_set(why, DP_TOOBIG,
                              "dimension %u of tensor %.100s is %" PRIu64 "; the most is %" PRIu32,
                              i, name, tensor.shape[i], UINT32_MAX);
        }
        row->shape[i] = (uint32_t)tensor.shape[i];
    }
    return DP_OK;
}

/* names and rows: room for n. */
static dp_status fill_rows(const dp_safetensors *file, const char **names, dp_tensor_row *rows,
                           size_t n, dp_why *why)
{
    size_t i = 0;
    for (const char *name = dp_safetensors_next(file, NULL); name != NULL;
         name = dp_safetensors_next(file, name)) {
        dp_assert(i < n);
        names[i++] = name;
    }
    qsort(names, n, sizeof *names, by_name);
    for (i = 0; i < n; i++) {
        DP_TRY(row_of(file, names[i], &rows[i], why));
    }
    return DP_OK;
}

dp_status dp_tensor_file_table(const dp_safetensors *file, dp_buf *out, dp_why *why)
{
    const size_t n = count_names(file);
    if (n == 0) {
        return dp_why_set(why, DP_BADMSG, "the safetensors file has no tensors");
    }
    const char **const names = dp_alloc(n, sizeof *names);
    dp_tensor_row *const rows = dp_alloc(n, sizeof *rows);
    dp_status status = names == NULL || rows == NULL
                           ? dp_why_set(why, DP_NOMEM, "no memory for a table of %zu tensors", n)
                           : fill_rows(file, names, rows, n, why);
    if (status == DP_OK) {
        status = dp_tensor_table_write(rows, n, out, why);
    }
    dp_free(rows);
    dp_free(names);
    return status;
}

dp_status dp_tensor_file_read(const dp_safetensors *file, const dp_tensor_table *table,
                              float *vector, dp_why *why)
{
    dp_tensor_walk walk = {0};
    dp_tensor_row row;
    while (dp_tensor_table_next(table, &walk, &row)) {
        char name[DP_TENSOR_TABLE_NAME_MAX + 1] = "";
        dp_safetensors_tensor tensor;
        memcpy(name, row.name.data, row.name.size);
        dp_status status = dp_safetensors_find(file, name, &tensor);
        if (status == DP_OK && tensor.elements != row.elements) {
            status = DP_NOTFOUND;
        }
        if (status == DP_OK) {
            status = dp_safetensors_floats(&tensor, 0, (size_t)row.elements, vector + row.offset);
        }
        if (status != DP_OK) {
            return dp_why_set(why, status, "tensor %.100s %s", name,
                              status == DP_DIVERGED ? "has numbers that are not finite"
                                                    : "of the table is not in the file");
        }
    }
    return DP_OK;
}

/* ---- out ---- */

static uint64_t number_bytes(dp_number_type type)
{
    return type == DP_NUMBER_F32 ? 4 : 2;
}

/* Called for each tensor in the order of the file: by size of number, then by name. */
typedef dp_status (*on_row)(const dp_tensor_row *row, void *context);

static dp_status each_row(const dp_tensor_table *table, on_row call, void *context)
{
    for (uint64_t bytes = 4; bytes >= 2; bytes -= 2) {
        dp_tensor_walk walk = {0};
        dp_tensor_row row;
        while (dp_tensor_table_next(table, &walk, &row)) {
            if (number_bytes(row.type) == bytes) {
                DP_TRY(call(&row, context));
            }
        }
    }
    return DP_OK;
}

typedef struct header_end {
    dp_buf *out;
    uint64_t offset; /* of the data */
} header_end;

static dp_status append_entry(const dp_tensor_row *row, void *context)
{
    header_end *const end = context;
    char text[ENTRY_BYTES_MAX];
    size_t size = (size_t)snprintf(text, sizeof text, "\":{\"dtype\":\"%s\",\"shape\":[",
                                   dp_number_type_name(row->type));
    for (uint32_t i = 0; i < row->n_dims; i++) {
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%" PRIu32, i == 0 ? "" : ",",
                                 row->shape[i]);
    }
    const uint64_t begin = end->offset;
    end->offset += row->elements * number_bytes(row->type);
    size += (size_t)snprintf(text + size, sizeof text - size,
                             "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, end->offset);
    dp_assert(size < sizeof text);
    DP_TRY(dp_buf_append(end->out, dp_view_text(",\"")));
    DP_TRY(dp_buf_append(end->out, row->name));
    return dp_buf_append(end->out, dp_view_of(text, size));
}

static dp_status write_header(const dp_tensor_table *table, dp_buf *header)
{
    header_end end = {.out = header};
    DP_TRY(dp_buf_append(header, dp_view_text("{\"__metadata__\":{\"format\":\"pt\"}")));
    DP_TRY(each_row(table, append_entry, &end));
    DP_TRY(dp_buf_append(header, dp_view_text("}")));
    while (header->size % HEADER_ALIGN != 0) {
        DP_TRY(dp_buf_append(header, dp_view_text(" ")));
    }
    return DP_OK;
}

/* The nearest half, ties to even, or the largest; infinities do not occur. */
static uint16_t half_of(float value)
{
    const uint16_t magnitude = dp_half_of((double)fabsf(value), false);
    return signbit(value) ? (uint16_t)(magnitude | 0x8000U) : magnitude;
}

/* 65520 is the middle between the largest half and the next power, which would be infinite;
 * dp_bfloat_of needs a result that is finite. */
static bool fits(float value, dp_number_type type)
{
    return type == DP_NUMBER_F16 ? fabsf(value) < 65520.0F
                                 : isfinite(dp_bfloat_value(dp_bfloat_of(value)));
}

typedef struct values_end {
    const float *vector;
    dp_buf *out;
    dp_why *why;
} values_end;

static dp_status append_pieces(const dp_tensor_row *row, const values_end *end)
{
    uint8_t piece[2 * PIECE];
    for (uint64_t at = 0; at < row->elements; at += PIECE) {
        const uint64_t left = row->elements - at;
        const size_t n = left < PIECE ? (size_t)left : PIECE;
        const float *const from = end->vector + row->offset + at;
        dp_writer writer = dp_writer_of(piece, sizeof piece);
        for (size_t i = 0; i < n; i++) {
            if (!fits(from[i], row->type)) {
                return dp_why_set(end->why, DP_DIVERGED,
                                  "tensor %.*s has the value %g, which is beyond the range of %s",
                                  row->name.size < 100 ? (int)row->name.size : 100,
                                  (const char *)row->name.data, (double)from[i],
                                  dp_number_type_name(row->type));
            }
            dp_write_u16(&writer,
                         row->type == DP_NUMBER_F16 ? half_of(from[i]) : dp_bfloat_of(from[i]));
        }
        DP_TRY(dp_buf_append(end->out, dp_view_of(piece, writer.size)));
    }
    return DP_OK;
}

static dp_status append_values(const dp_tensor_row *row, void *context)
{
    const values_end *const end = context;
    return row->type == DP_NUMBER_F32
               ? dp_floats_write(end->vector + row->offset, (size_t)row->elements, end->out)
               : append_pieces(row, end);
}

static dp_status write_file(const dp_tensor_table *table, const float *vector, dp_view header,
                            dp_buf *out, dp_why *why)
{
    uint8_t size[8];
    dp_writer writer = dp_writer_of(size, sizeof size);
    values_end end = {.vector = vector, .out = out, .why = why};
    dp_write_u64(&writer, header.size);
    DP_TRY(dp_buf_append(out, dp_view_of(size, sizeof size)));
    DP_TRY(dp_buf_append(out, header));
    return each_row(table, append_values, &end);
}

dp_status dp_tensor_file_write(const dp_tensor_table *table, const float *vector, dp_buf *out,
                               dp_why *why)
{
    dp_buf header;
    const size_t before = out->size;
    dp_buf_init(&header, ((size_t)table->n_tensors + 1) *
                             (ENTRY_BYTES_MAX + (size_t)DP_TENSOR_TABLE_NAME_MAX));
    dp_status status = write_header(table, &header);
    if (status == DP_OK) {
        status = write_file(table, vector, dp_buf_view(&header), out, why);
    }
    if (status != DP_OK) {
        out->size = before;
    }
    dp_buf_close(&header);
    return status;
}
