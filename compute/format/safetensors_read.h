/* A safetensors file, read: its header checked against its size, its tensors lent. The bytes are a
 * stranger's: whatever they are, the result is a table of ranges that lie inside the file and apart
 * from each other, or a sentence. Layout of the file in safetensors.h; which tensor goes where in a
 * model is hf_import.h's.
 *
 * As the reference reader does, ranges must cover all that follows the header, without holes
 * (safetensors' own README, section Format, 2023). */
#ifndef DP_COMPUTE_FORMAT_SAFETENSORS_READ_H
#define DP_COMPUTE_FORMAT_SAFETENSORS_READ_H

#include <stdint.h>

#include "base/bytes.h"

enum {
    DP_SAFETENSORS_HEADER_MAX =
        4 << 20, /* bytes: parsing takes some forty times as much; 256 layers need 0.4 MiB */
    DP_SAFETENSORS_TENSORS_MAX = 1 << 16,
    DP_SAFETENSORS_DIMS_MAX = 8
};

typedef struct dp_safetensors dp_safetensors;

typedef enum dp_safetensors_type {
    DP_SAFETENSORS_OTHER, /* known by its size, not read: integers, F64, F8 */
    DP_SAFETENSORS_F32,
    DP_SAFETENSORS_F16,
    DP_SAFETENSORS_BF16
} dp_safetensors_type;

typedef struct dp_safetensors_tensor {
    dp_safetensors_type type;
    uint32_t n_dims;
    uint64_t shape[DP_SAFETENSORS_DIMS_MAX]; /* row-major */
    uint64_t elements;
    dp_view bytes; /* elements of the type, little-endian, at any alignment; lent by the file */
} dp_safetensors_tensor;

/* file: the whole of it, borrowed until close. DP_BADMSG, DP_TOOBIG with a sentence, DP_NOMEM; then
 * *out is untouched. */
DP_MUST dp_status dp_safetensors_open(dp_safetensors **out, dp_view file, dp_why *why);
void dp_safetensors_close(dp_safetensors *file); /* Accepts NULL. */
/* DP_NOTFOUND: no tensor has this name. */
DP_MUST dp_status dp_safetensors_find(const dp_safetensors *file, const char *name,
                                      dp_safetensors_tensor *tensor);
/* The name after this one, NULL: the first; NULL when there is none. Lent until close. */
const char *dp_safetensors_next(const dp_safetensors *file, const char *name);

/* Elements first .. first + n as fp32. DP_BADARG: outside of the tensor; DP_UNSUPPORTED: a type
 * that is not read; DP_DIVERGED: one is not finite. Then out holds what came before it. */
DP_MUST dp_status dp_safetensors_floats(const dp_safetensors_tensor *tensor, uint64_t first,
                                        size_t n, float *out);

#endif
