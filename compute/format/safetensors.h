/* Weights as a safetensors file: u64 size of a JSON header, the header {name: {dtype, shape,
 * data_offsets}}, the data. Writing only. */
#ifndef DP_COMPUTE_FORMAT_SAFETENSORS_H
#define DP_COMPUTE_FORMAT_SAFETENSORS_H

#include "base/bytes.h"
#include "base/digest.h"
#include "compute/model/model.h"

/* Appends a whole file with the tensors of theta (in the model's arena) as F32, without the arena's
 * padding, under the names of dp_model_parts. A tied head is not written. DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_safetensors_write(const dp_model *model, const float *theta, dp_buf *out);
/* The same of a model with adapters, as a file of Hugging Face's peft: under the names of
 * dp_adapter_parts behind "base_model.model.". The header's metadata has the object root of the
 * base as "dpnode.base". */
DP_MUST dp_status dp_safetensors_write_adapters(const dp_model *model, const float *params,
                                                const dp_hash *base, dp_buf *out);

#endif
