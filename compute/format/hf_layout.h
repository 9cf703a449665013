/* A model's weights as one vector in Hugging Face's names and turns, for scripts that train a run
 * of a built-in model: the tensors of dp_model_parts in ascending order of their names, row-major,
 * as a PyTorch module has them, without gaps. Knows no files (safetensors.h) and no socket. */
#ifndef DP_COMPUTE_FORMAT_HF_LAYOUT_H
#define DP_COMPUTE_FORMAT_HF_LAYOUT_H

#include <stdint.h>

#include "base/bytes.h"
#include "compute/model/model.h"

typedef struct dp_hf_layout dp_hf_layout;

/* model is read by this call alone. DP_NOMEM; DP_TOOBIG with a sentence: more tensors than a table
 * has. */
DP_MUST dp_status dp_hf_layout_open(dp_hf_layout **out, const dp_model *model, dp_why *why);
void dp_hf_layout_close(dp_hf_layout *layout); /* Accepts NULL. */

/* The bytes of the table (tensor_table.h), all tensors F32; lent until close. */
dp_view dp_hf_layout_table(const dp_hf_layout *layout);
/* Of the vector: the parameters of the model. */
uint64_t dp_hf_layout_elements(const dp_hf_layout *layout);

/* named: elements floats in this order; arena: the model's n_elements floats (model.h). They do not
 * overlap. */

/* named = arena. */
void dp_hf_layout_name(const dp_hf_layout *layout, const float *arena, float *named);
/* arena = named; the elements between tensors become 0. */
void dp_hf_layout_place(const dp_hf_layout *layout, const float *named, float *arena);
/* named = arena - named. */
void dp_hf_layout_moves(const dp_hf_layout *layout, const float *arena, float *named);

#endif
