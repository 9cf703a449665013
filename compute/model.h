/* A model as a table of named tensors in one flat arena: shapes, offsets and first weights, not the arithmetic (gpt.h).
 *
 * Family: GPT-2 (Radford et al. 2019) with learned positions, LayerNorm before each block, biases, tanh GELU and a head
 * tied to the token embedding. Names and shapes are those of Hugging Face's GPT2LMHeadModel, where linear weights stand
 * as [in][out].
 *
 * Arena: tensors follow each other in table order, each starts at a multiple of DP_ARENA_ALIGN elements, and the elements
 * between them are always 0. Parameters, gradients, moments, anchors and error feedback share this layout, so codecs and
 * optimizers may treat them as one range of dp_model.n_elements floats. */
#ifndef DP_COMPUTE_MODEL_H
#define DP_COMPUTE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
    DP_ARENA_ALIGN =
        64, /* elements: 256 bytes, so that tensors share no cache line and no vector */
    DP_TENSOR_NAME_MAX = 64,
    DP_MODEL_LAYERS_MAX = 256,
    DP_MODEL_WIDTH_MAX = 16384,
    DP_MODEL_HEADS_MAX = 256,
    DP_MODEL_HEAD_WIDTH_MAX = 256,
    DP_MODEL_CONTEXT_MAX = 65536,
    DP_MODEL_VOCAB_MAX = 262144,
    DP_MODEL_TENSORS_MAX = 4 + 12 * DP_MODEL_LAYERS_MAX
};
#define DP_MODEL_ELEMENTS_MAX ((size_t)1 << 36)

typedef struct dp_model_config {
    uint32_t layers;
    uint32_t width; /* C */
    uint32_t heads;
    uint32_t context; /* T: longest sequence */
    uint32_t vocab;   /* V */
} dp_model_config;

typedef enum dp_tensor_init {
    DP_TENSOR_ZEROS,
    DP_TENSOR_ONES,
    DP_TENSOR_NORMAL,  /* standard deviation 0.02 */
    DP_TENSOR_RESIDUAL /* 0.02 / sqrt(2 layers): projections that end in the residual stream */
} dp_tensor_init;

typedef struct dp_tensor {
    char name[DP_TENSOR_NAME_MAX]; /* "transformer.h.0.attn.c_attn.weight" */
    uint32_t n_dims;               /* 1 or 2 */
    size_t shape[2];               /* row-major; shape[1] is 1 when n_dims is 1 */
    size_t offset;                 /* elements from the start of the arena */
    size_t elements;
    bool decay; /* weight decay applies: all matrices, also the embeddings */
    dp_tensor_init init;
} dp_tensor;

typedef struct dp_model {
    dp_model_config config;
    dp_tensor *tensors; /* owned */
    size_t n_tensors;
    size_t n_elements;   /* of the arena, with padding: a multiple of DP_ARENA_ALIGN */
    size_t n_parameters; /* without padding */
} dp_model;

/* DP_BADARG and a sentence when no such model can exist or it passes a limit above. */
DP_MUST dp_status dp_model_config_check(const dp_model_config *config, dp_why *why);
/* Builds the tensor table. Checks config first; DP_NOMEM. Pair: dp_model_close. */
DP_MUST dp_status dp_model_open(dp_model *model, const dp_model_config *config, dp_why *why);
void dp_model_close(dp_model *model);
/* NULL when no tensor has this name. */
const dp_tensor *dp_model_find(const dp_model *model, const char *name);

/* First weights from a seed, padding included (0). params: model->n_elements floats.
 * Every machine and compiler gives the same bits: element i of the arena is 0.02 (or less, see dp_tensor_init) times the
 * sum of twelve uniform 10-bit integers drawn from a hash of (seed, i) (Irwin 1927, Hall 1927), exact but for one rounded
 * product. The sum stands for a normal deviate and never passes six standard deviations. */
void dp_model_init(const dp_model *model, uint64_t seed, float *params);

/* Floating point operations of one forward and backward pass per token with sequences of length tokens, counting
 * multiply and add, causal attention once: 6 per matrix weight and 6 * layers * length * width. */
double dp_model_flops(const dp_model *model, size_t length);

/* Where the tensors stand in the table: four at the ends, DP_LAYER_TENSORS per layer. */
typedef enum dp_model_slot { DP_SLOT_WTE, DP_SLOT_WPE, DP_SLOT_LAYERS } dp_model_slot;
typedef enum dp_layer_slot {
    DP_LAYER_LN1_W,
    DP_LAYER_LN1_B,
    DP_LAYER_QKV_W, /* [C][3C]: columns q, k, v, each heads * head width */
    DP_LAYER_QKV_B,
    DP_LAYER_OUT_W, /* [C][C] */
    DP_LAYER_OUT_B,
    DP_LAYER_LN2_W,
    DP_LAYER_LN2_B,
    DP_LAYER_FC_W, /* [C][4C] */
    DP_LAYER_FC_B,
    DP_LAYER_PROJ_W, /* [4C][C] */
    DP_LAYER_PROJ_B,
    DP_LAYER_TENSORS
} dp_layer_slot;

/* Offsets in the arena. */
size_t dp_model_layer_offset(const dp_model *model, size_t layer, dp_layer_slot slot);
size_t dp_model_final_norm_offset(const dp_model *model, bool bias);

#endif
