/* The file of a base (base_weights.h) in a folder: written from weights, with its object's root. */
#ifndef DP_COMPUTE_FORMAT_BASE_FILE_H
#define DP_COMPUTE_FORMAT_BASE_FILE_H

#include "base/digest.h"
#include "compute/model/base_weights.h"

/* Checks that the base can be made, before the weights are read. DP_TOOBIG: it is more than an
 * object holds, with a sentence that says which number format would fit; or the weights that it is
 * made of, 4 bytes each, are more than usable bytes of memory (0: unknown). */
DP_MUST dp_status dp_base_file_check(const dp_model *model, dp_base_kind kind, uint64_t usable,
                                     dp_why *why);
/* Writes folder/name from theta, in the arena of a checked model without adapters. *root: its
 * object root, *bytes: its size. DP_IO, DP_NOSPACE, DP_NOMEM, with a sentence. */
DP_MUST dp_status dp_base_file_write(const char *folder, const char *name, const dp_model *model,
                                     dp_base_kind kind, const float *theta, dp_hash *root,
                                     uint64_t *bytes, dp_why *why);

#endif
