/* A model as a table of named tensors in one flat arena: shapes, offsets and first weights, not the
 * arithmetic (gpt.h).
 *
 * Which tensors a model has follows from the parts of its family (base/run/model_family.h): one row
 * per kind of tensor says which part brings it, under which name, and its shape.
 *
 * Linear weights stand as [in][out] in all families, as GPT-2 has them, so the engine knows one
 * orientation; and the outputs of one product stand in one tensor: q, k and v, and gate and up,
 * side by side in columns. Hugging Face's other families have [out][in], and most of them these
 * apart: dp_model_parts names the columns of each, and writing a file turns them, once.
 *
 * Arena: tensors follow each other in table order, each starts at a multiple of DP_ARENA_ALIGN
 * elements, and the elements between them are always 0. Parameters, gradients, moments, anchors and
 * error feedback share this layout, so codecs and optimizers may treat them as one range of
 * dp_model.n_elements floats.
 *
 * A model with adapters (adapter.h) has only theirs in its table and arena; the shapes of its other
 * weights are those of base. */
#ifndef DP_COMPUTE_MODEL_MODEL_H
#define DP_COMPUTE_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/run/model_config.h"
#include "base/run/model_family.h"
#include "base/status.h"
#include "compute/cpu/ops.h"

enum {
    DP_ARENA_ALIGN = 64, /* elements, 256 bytes: tensors share no cache line and no vector */
    DP_TENSOR_NAME_MAX = 64,
    DP_MODEL_PARTS_MAX = 3
};

/* The kinds of tensors: those of a layer, in their order in the arena, then those at the ends. */
typedef enum dp_slot {
    DP_LAYER_NORM1_W,
    DP_LAYER_NORM1_B,
    /* [C][q k k]: columns of q, k and v; q: heads * head width, k and v: kv heads * head width */
    DP_LAYER_QKV_W,
    DP_LAYER_QKV_B,
    DP_LAYER_Q_NORM, /* [head width]; of all heads together [q] */
    DP_LAYER_K_NORM,
    DP_LAYER_OUT_W, /* [q][C] */
    DP_LAYER_OUT_B,
    DP_LAYER_OUT_NORM, /* of what attention adds */
    DP_LAYER_NORM2_W,
    DP_LAYER_NORM2_B,
    DP_LAYER_UP_W, /* [C][hidden]; SwiGLU: [C][2 hidden], gates then ups */
    DP_LAYER_UP_B,
    DP_LAYER_DOWN_W, /* [hidden][C] */
    DP_LAYER_DOWN_B,
    DP_LAYER_DOWN_NORM, /* of what the feed-forward part adds */
    DP_LAYER_SLOTS,
    DP_SLOT_EMBED = DP_LAYER_SLOTS, /* [V][C], first in the arena */
    DP_SLOT_POSITIONS,              /* [T][C] */
    DP_SLOT_NORM_W,                 /* after the layers */
    DP_SLOT_NORM_B,
    DP_SLOT_HEAD, /* [V][C] */
    DP_SLOTS
} dp_slot;

typedef enum dp_tensor_init {
    DP_TENSOR_ZEROS,
    DP_TENSOR_ONES,
    DP_TENSOR_NORMAL,   /* standard deviation 0.02 */
    DP_TENSOR_RESIDUAL, /* 0.02 / sqrt(2 layers): projections that end in the residual stream */
    DP_TENSOR_ADAPTER   /* 1 / sqrt(3 rows): the first matrix of an adapter */
} dp_tensor_init;

typedef struct dp_tensor {
    char name[DP_TENSOR_NAME_MAX]; /* "transformer.h.0.attn.c_attn.weight" */
    uint32_t n_dims;               /* 1 or 2 */
    size_t shape[2];               /* row-major; shape[1] is 1 when n_dims is 1 */
    size_t offset;                 /* elements from the start of the arena */
    size_t elements;
    bool decay;   /* weight decay applies: all matrices, also the embeddings */
    dp_slot slot; /* of an adapter's tensor: that of its weight */
    dp_tensor_init init;
} dp_tensor;

typedef struct dp_model dp_model;
struct dp_model {
    dp_model_config config; /* resolved (dp_model_config_resolve) */
    dp_tensor *tensors;     /* owned */
    size_t n_tensors;
    size_t n_elements;         /* of the arena, with padding: a multiple of DP_ARENA_ALIGN */
    size_t n_parameters;       /* without padding */
    int32_t at[DP_SLOTS];      /* index of the tensor, in layer 0 for those of layers; -1: none */
    int32_t tensors_per_layer; /* distance of the indices of two layers */
    dp_model *base;            /* owned: the model without its adapters; NULL: it has none */
};

/* Builds the tensor table. Checks config first (dp_model_config_check): DP_BADARG and a sentence;
 * DP_NOMEM. Pair: dp_model_close. */
DP_MUST dp_status dp_model_open(dp_model *model, const dp_model_config *config, dp_why *why);
/* The same for a checked config without adapters. */
DP_MUST dp_status dp_model_open_whole(dp_model *model, const dp_model_config *config, dp_why *why);
/* A model of which only the size of its vector is known (DP_ARCH_EXTERNAL, tensor_table.h):
 * elements and the zeros after them. It has no tensors, and only close takes it. */
void dp_model_open_vector(dp_model *model, uint64_t elements);
void dp_model_close(dp_model *model);
/* True if the model has the part. */
static inline bool dp_model_has(const dp_model *model, dp_feature part)
{
    return (dp_model_features(&model->config) & (uint32_t)part) != 0;
}
/* NULL: no tensor has this name. */
const dp_tensor *dp_model_find(const dp_model *model, const char *name);
/* The tensor of a layer, or with layer 0 one outside the layers; NULL: the model has none of its
 * kind. Not for a model with adapters, as the next. */
const dp_tensor *dp_model_tensor(const dp_model *model, size_t layer, dp_slot slot);
/* The weight of the head; with a tied head it is the embedding. */
const dp_tensor *dp_model_head(const dp_model *model);

/* The turns of the layers of a kind that turns. */
dp_rope_turns dp_model_turns(const dp_model *model, dp_rope_kind kind);

/* A tensor as Hugging Face has it. */
typedef struct dp_tensor_part {
    char name[DP_TENSOR_NAME_MAX]; /* "model.layers.0.self_attn.k_proj.weight" */
    size_t first;                  /* column of the tensor */
    size_t columns;                /* for a vector: its elements */
    bool transposed;               /* the file has [columns][rows of the tensor] */
    float above;                   /* the arena has the file's values and so much */
    bool by_head;                  /* of q, k and v: the file has those of each head together */
} dp_tensor_part;

/* Returns the number of parts. Of a model with adapters: dp_adapter_parts. */
size_t dp_model_parts(const dp_model *model, const dp_tensor *tensor,
                      dp_tensor_part parts[DP_MODEL_PARTS_MAX]);

/* The column of the tensor that has column `index` of the part (row, if transposed; of a vector:
 * its element). */
size_t dp_model_part_column(const dp_model *model, const dp_tensor *tensor,
                            const dp_tensor_part *part, size_t index);

/* First weights from a seed, padding included (0). params: model->n_elements floats.
 * Every machine and compiler gives the same bits: element i of the arena is 0.02 (or less, see
 * dp_tensor_init) times the sum of twelve uniform 10-bit integers drawn from a hash of (seed, i)
 * (Irwin 1927, Hall 1927), exact but for one rounded product. The sum stands for a normal deviate
 * and never passes six standard deviations. */
void dp_model_init(const dp_model *model, uint64_t seed, float *params);

/* Floating point operations of one forward and backward pass per token with sequences of length
 * tokens, counting multiply and add, causal attention once: 6 per matrix weight and 6 * layers *
 * length * heads * head width. With adapters: two thirds of the base's, and 6 per parameter. */
double dp_model_flops(const dp_model *model, size_t length);

#endif
