/* The tensors of any safetensors file as a table (tensor_table.h) and a vector, and back: for
 * models that dpnode does not know. */
#ifndef DP_COMPUTE_FORMAT_TENSOR_FILE_H
#define DP_COMPUTE_FORMAT_TENSOR_FILE_H

#include "base/bytes.h"
#include "compute/format/safetensors_read.h"
#include "compute/model/tensor_table.h"

/* Appends the table of a file's tensors. DP_UNSUPPORTED: numbers other than F32, F16 and BF16;
 * DP_BADMSG, DP_TOOBIG (dp_tensor_table_write), DP_NOMEM; with a sentence that names the tensor. */
DP_MUST dp_status dp_tensor_file_table(const dp_safetensors *file, dp_buf *out, dp_why *why);
/* Reads the tensors of a table, which is of this file, into a vector of table->elements floats.
 * DP_DIVERGED: a number is not finite; DP_NOTFOUND: the table is of another file; with a
 * sentence. */
DP_MUST dp_status dp_tensor_file_read(const dp_safetensors *file, const dp_tensor_table *table,
                                      float *vector, dp_why *why);
/* Appends a whole file with these tensors, each in its number type, rounded to the nearest. Values
 * stand in the order of safetensors' own writer, first those of 4 bytes, so that each is aligned.
 * DP_DIVERGED with a sentence: a number is beyond the range of its type. DP_TOOBIG, DP_NOMEM: out
 * is as it was. */
DP_MUST dp_status dp_tensor_file_write(const dp_tensor_table *table, const float *vector,
                                       dp_buf *out, dp_why *why);

#endif
