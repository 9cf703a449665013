/* Reads a GGUF file of version 3, for tests of compute/format/gguf.h, which has the layout: pairs
 * and tensors are lent, every range is checked. */
#ifndef DP_TESTS_LIB_GGUF_READ_H
#define DP_TESTS_LIB_GGUF_READ_H

#include "base/bytes.h"
#include "compute/format/gguf.h"

enum { DP_GGUF_TENSORS_MAX = 1 << 16, DP_GGUF_PAIRS_MAX = 1 << 12, DP_GGUF_DIMS_MAX = 4 };

typedef struct dp_gguf_tensor {
    dp_view name;
    dp_gguf_type type;
    uint32_t n_dims;
    uint64_t dims[DP_GGUF_DIMS_MAX]; /* the fastest first; 1 beyond n_dims */
    uint64_t elements;
    dp_view bytes;
} dp_gguf_tensor;

typedef struct dp_gguf dp_gguf;

/* Opens file, borrowed until close. DP_BADMSG, DP_VERSION, DP_TOOBIG, DP_UNSUPPORTED (a type of
 * tensor that gguf.h does not write) with a sentence, DP_NOMEM; *out is untouched. */
DP_MUST dp_status dp_gguf_open(dp_gguf **out, dp_view file, dp_why *why);
void dp_gguf_close(dp_gguf *file); /* Accepts NULL. */

size_t dp_gguf_count(const dp_gguf *file);
const dp_gguf_tensor *dp_gguf_at(const dp_gguf *file, size_t index);
/* NULL: none has this name. */
const dp_gguf_tensor *dp_gguf_find(const dp_gguf *file, const char *name);
/* The bytes of a pair's value: of a text without its size, of an array from its type on.
 * DP_NOTFOUND. */
DP_MUST dp_status dp_gguf_value(const dp_gguf *file, const char *key, uint32_t *type,
                                dp_view *value);
/* All elements as fp32; out holds as many floats. */
void dp_gguf_floats(const dp_gguf_tensor *tensor, float *out);

#endif
