/* The tensors of a model that dpnode does not know (model.arch external): names, number types and
 * shapes as canonical bytes, an object of the run. Values are in the state (state.h).
 *
 *   offset size
 *        0    4  "DPX1"
 *        4    2  version 1
 *        6    2  0
 *        8    4  tensors n, at least 1
 *       12    4  0
 *       16    8  elements of all tensors
 *       24    -  n rows
 *
 * A row: u8 number type | u8 dimensions d | u8 bytes of the name | the name | d times u32 extent.
 * d is 0 for a single number; no extent is 0. Rows stand in ascending order of their names' bytes,
 * each name once, so a set of tensors has one form. A name is 1 to DP_TENSOR_TABLE_NAME_MAX
 * printable ASCII characters without " and \, and not __metadata__, which is no tensor in a
 * safetensors file.
 *
 * The vector of such a model, in states and updates: the tensors in the order of the rows,
 * row-major, as fp32, without gaps, then zeros up to a multiple of DP_ARENA_ALIGN elements. */
#ifndef DP_COMPUTE_MODEL_TENSOR_TABLE_H
#define DP_COMPUTE_MODEL_TENSOR_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    DP_TENSOR_TABLE_TENSORS_MAX = 1 << 16, /* as in a safetensors file (safetensors_read.h) */
    DP_TENSOR_TABLE_DIMS_MAX = 8,
    DP_TENSOR_TABLE_NAME_MAX = 255,
    /* The header of a safetensors file has as many at most, and takes more for the same tensors. */
    DP_TENSOR_TABLE_BYTES_MAX = 4 << 20
};

/* Numbers of a tensor in files; vectors hold fp32. */
typedef enum dp_number_type {
    DP_NUMBER_F32 = 1,
    DP_NUMBER_F16 = 2,
    DP_NUMBER_BF16 = 3,
    DP_NUMBER_LAST = DP_NUMBER_BF16
} dp_number_type;

/* "F32", "F16", "BF16", as in safetensors files; "?" for any other number. */
const char *dp_number_type_name(dp_number_type type);

typedef struct dp_tensor_row {
    dp_view name; /* borrowed */
    dp_number_type type;
    uint32_t n_dims;
    uint32_t shape[DP_TENSOR_TABLE_DIMS_MAX]; /* row-major */
    uint64_t offset;                          /* elements from the start of the vector */
    uint64_t elements;
} dp_tensor_row;

typedef struct dp_tensor_table {
    uint32_t n_tensors;
    uint64_t elements; /* of all tensors, without the zeros at the end of the vector */
    dp_view rows;      /* borrowed from the bytes */
} dp_tensor_table;

/* Accepts any bytes, which are borrowed; checks every row. DP_BADMSG, DP_VERSION, DP_TOOBIG (bytes,
 * tensors, or more than DP_MODEL_ELEMENTS_MAX elements), with a sentence; then *table is
 * untouched. */
DP_MUST dp_status dp_tensor_table_open(dp_tensor_table *table, dp_view bytes, dp_why *why);

/* A walk over the rows; begins as {0}. */
typedef struct dp_tensor_walk {
    uint32_t done;
    size_t at;       /* byte of the rows */
    uint64_t offset; /* element of the vector */
} dp_tensor_walk;

/* The next row; false: there is none. */
bool dp_tensor_table_next(const dp_tensor_table *table, dp_tensor_walk *walk, dp_tensor_row *row);

/* Appends the bytes of n rows, whose offset and elements are ignored. The statuses of
 * dp_tensor_table_open, with a sentence that names the tensor, and DP_NOMEM; then out is as it
 * was. */
DP_MUST dp_status dp_tensor_table_write(const dp_tensor_row *rows, size_t n, dp_buf *out,
                                        dp_why *why);

#endif
