/* Reads a safetensors file: checks its header against its size and lends its tensors. The bytes are
 * untrusted: any bytes give a table of ranges inside the file that do not overlap, or a sentence.
 * The layout is in safetensors.h; hf_import.h maps tensors to a model.
 *
 * As in the reference reader, ranges must cover all that follows the header, without holes
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

/* Opens a whole file, borrowed until close. DP_BADMSG, DP_TOOBIG with a sentence, DP_NOMEM; *out is
 * untouched. */
DP_MUST dp_status dp_safetensors_open(dp_safetensors **out, dp_view file, dp_why *why);
void dp_safetensors_close(dp_safetensors *file); /* Accepts NULL. */
/* DP_NOTFOUND: no tensor has this name. */
DP_MUST dp_status dp_safetensors_find(const dp_safetensors *file, const char *name,
                                      dp_safetensors_tensor *tensor);
/* The name after this one, or with NULL the first; NULL: no more. Lent until close. */
const char *dp_safetensors_next(const dp_safetensors *file, const char *name);

/* Reads elements first .. first + n - 1 as fp32. DP_BADARG: outside the tensor; DP_UNSUPPORTED: a
 * type that is not read; DP_DIVERGED: one is not finite; out then holds those before it. */
DP_MUST dp_status dp_safetensors_floats(const dp_safetensors_tensor *tensor, uint64_t first,
                                        size_t n, float *out);

#endif
