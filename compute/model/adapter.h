/* Adapters as tensors of a model (Hu et al. 2021, LoRA): shapes, names and the columns that they
 * add to. The engine's arithmetic is in gpt_adapters.c.
 *
 * A linear layer y = x W becomes y = x W + (alpha / rank) (x A) B for the columns of W that are
 * adapted: q, k, v, gates and ups are parts of one W, and each has its own A and B, as in Hugging
 * Face's peft; the A of all parts stand side by side in one tensor, and so do the B. W never
 * changes (base_weights.h). A begins as normal deviates with the variance of peft's uniform ones,
 * B as zeros, so that the first model is the base. */
#ifndef DP_COMPUTE_MODEL_ADAPTER_H
#define DP_COMPUTE_MODEL_ADAPTER_H

#include "compute/model/model.h"

/* A part of W that is adapted: its A is at column index * rank of a. */
typedef struct dp_adapter_part {
    size_t first;   /* column of W */
    size_t columns; /* of W and of b */
    size_t at;      /* column of b */
} dp_adapter_part;

typedef struct dp_adapter {
    const dp_tensor *a; /* [inputs of W][parts * rank] */
    const dp_tensor *b; /* [rank][columns of all parts] */
    size_t n_parts;
    dp_adapter_part parts[DP_MODEL_PARTS_MAX];
} dp_adapter;

/* dp_model_open for a checked config that has adapters. */
DP_MUST dp_status dp_model_open_adapters(dp_model *model, const dp_model_config *config,
                                         dp_why *why);
/* The model whose table has the shapes of all weights: base, or the model itself. */
static inline const dp_model *dp_model_whole(const dp_model *model)
{
    return model->base != NULL ? model->base : model;
}

/* The adapters of a weight of a layer. False: it has none. */
bool dp_model_adapter(const dp_model *model, size_t layer, dp_slot slot, dp_adapter *out);
/* As dp_model_parts, of a tensor of an adapter, under peft's names without "base_model.model." in
 * front: "model.layers.0.self_attn.q_proj.lora_A.weight". */
size_t dp_adapter_parts(const dp_model *model, const dp_tensor *tensor,
                        dp_tensor_part parts[DP_MODEL_PARTS_MAX]);
/* theta += (alpha / rank) A B, summed in double and rounded once: the model without adapters that
 * computes the same up to rounding. params: the arena of model; theta: that of its base. */
void dp_adapter_merge(const dp_model *model, const float *params, float *theta);
/* alpha / rank. */
float dp_adapter_scale(const dp_model *model);

#endif
