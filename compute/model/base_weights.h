/* The weights of a base, which adapters are trained on, as one file or object that every node maps
 * and nobody changes: layout, numbers and access by row; no arithmetic of the model.
 *
 * Little-endian:
 *   offset size
 *        0    4  "DPB1"
 *        4    2  version 1
 *        6    2  dp_base_kind
 *        8    8  parameters of the model
 *       16    8  bytes of the whole
 *       24    8  0
 *       32   32  H("dpnode/base-table/1", of each tensor: name, a zero byte, u64 rows, u64 columns
 *                of the arena)
 *       64    .  the tensors of the model's table in its order, each from a multiple of 64 on, with
 *                zeros between
 *
 * A tensor:
 *   vector            f32 each
 *   table [V][C]      rows as in the arena: bf16, or f32 with DP_BASE_FP32
 *   weight of a layer rows are outputs (columns of the arena's tensor): o rows of i inputs, as
 *                     Hugging Face's linear layers have them
 *     bf16, fp32      o rows of i numbers
 *     int8            o rows of i codes, then o rows of ceil(i / 64) f32 scales; a weight is
 *                     code * scale of its block of 64 inputs, scale = max |w| / 127, code the
 *                     nearest integer to w / scale, ties to even
 *     nf4             o rows of ceil(i / 2) bytes, the first of two codes in the high half; then
 *                     the scales as above, max |w|; a weight is level[code] * scale, with the
 *                     sixteen levels of NF4 (Dettmers et al. 2023, appendix E) and the code of the
 *                     level nearest to w / scale, the lower of two equally near
 *
 * bf16 is rounded to the nearest, ties to even. All of it is single float operations without
 * contraction, so every machine makes the same bytes of the same weights. */
#ifndef DP_COMPUTE_MODEL_BASE_WEIGHTS_H
#define DP_COMPUTE_MODEL_BASE_WEIGHTS_H

#include "base/bytes.h"
#include "base/run/adapt.h"
#include "compute/model/model.h"

enum { DP_BASE_HEADER_BYTES = 64, DP_BASE_ALIGN = 64, DP_BASE_BLOCK = 64 };

/* An opened file. */
typedef struct dp_base_weights {
    const dp_model *model; /* borrowed: the base's own table */
    dp_base_kind kind;
    dp_view bytes;  /* borrowed */
    uint64_t *at;   /* byte of each tensor, owned */
    float *vectors; /* values of all vectors, one behind the other, owned */
    size_t *vector_at;
} dp_base_weights;

/* Bytes of the file of a model. */
uint64_t dp_base_weights_bytes(const dp_model *model, dp_base_kind kind);

/* Receives the bytes of a file in order. */
typedef dp_status (*dp_base_put)(void *context, dp_view bytes);
/* Writes the file of theta, in the arena of a model without adapters. The statuses of put;
 * DP_NOMEM. */
DP_MUST dp_status dp_base_weights_write(const dp_model *model, dp_base_kind kind,
                                        const float *theta, dp_base_put put, void *context);

/* Opens a file for a model without adapters; both are borrowed until close. Accepts any bytes:
 * DP_BADMSG, DP_VERSION with a sentence; DP_NOMEM. Values are not looked at: a loss that is
 * not finite shows them. */
DP_MUST dp_status dp_base_weights_open(dp_base_weights *base, const dp_model *model,
                                       dp_base_kind kind, dp_view bytes, dp_why *why);
void dp_base_weights_close(dp_base_weights *base); /* Accepts a zeroed one. */

/* The values of a vector, lent until close. */
const float *dp_base_weights_vector(const dp_base_weights *base, const dp_tensor *tensor);
/* Elements first .. first + count - 1 of a row of a table or a weight, as the file has rows. Any
 * thread. */
void dp_base_weights_row(const dp_base_weights *base, const dp_tensor *tensor, size_t row,
                         size_t first, size_t count, float *out);
/* All weights into the arena of the model, padding 0. theta: model->n_elements floats. */
DP_MUST dp_status dp_base_weights_read(const dp_base_weights *base, float *theta);

#endif
