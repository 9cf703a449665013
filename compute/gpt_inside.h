/* What gpt.c, gpt_forward.c and gpt_backward.c share: the engine's buffers and how a step is cut into tasks. */
#ifndef DP_COMPUTE_GPT_INSIDE_H
#define DP_COMPUTE_GPT_INSIDE_H

#include "compute/gpt.h"
#include "compute/ops.h"

/* N: tokens of the largest batch, rows_max * context. C: width. All fp32. */

/* Kept from forward to backward, per layer. */
typedef struct dp_gpt_layer {
    float *x;      /* [N][C] residual stream before the layer */
    float *middle; /* [N][C] after attention */
    float *qkv;    /* [N][3C] */
    float *att;    /* [N][C] heads side by side */
    float *hidden; /* [N][4C] before GELU */
    float *lse;    /* [rows][heads][length] */
    float *mean1;  /* [N] */
    float *rstd1;
    float *mean2;
    float *rstd2;
    float *packed[DP_LAYER_TENSORS];   /* the four matrices as b of a product */
    float *packed_t[DP_LAYER_TENSORS]; /* transposed */
} dp_gpt_layer;

struct dp_gpt {
    const dp_model *model;
    const dp_ops *ops;
    dp_pool *pool;
    size_t rows_max;
    size_t head;         /* width of a head */
    size_t scratch_size; /* floats per worker */
    size_t head_tokens;  /* tokens whose logits live at once */
    void *memory;        /* of everything below */

    float *params;
    float *grads;
    dp_gpt_layer *layers;
    float *last;  /* [N][C] residual stream after the last layer */
    float *meanf; /* [N] */
    float *rstdf;
    float *packed_head;   /* wte transposed: logits */
    float *packed_head_t; /* wte: back */
    float *norm1;         /* [N][C] output of a LayerNorm */
    float *norm2;
    float *gelu;     /* [N][4C] */
    float *logits;   /* [head_tokens][V] */
    float *losses;   /* [N] */
    float *dx;       /* [N][C] gradient of the residual stream behind the layer ... */
    float *dx_next;  /* ... and before it */
    float *d_middle; /* [N][C] */
    float *d_att;    /* [N][C] */
    float *d_norm1;  /* [N][C] */
    float *d_norm2;
    float *d_qkv;    /* [N][3C] */
    float *d_hidden; /* [N][4C] */
    float *scratch;  /* [threads][scratch_size] */

    /* The batch of the running call. */
    dp_gpt_batch batch;
    size_t tokens;     /* rows * length */
    size_t slice;      /* tokens of one task */
    size_t layer;      /* that the running tasks treat */
    size_t head_first; /* first token of the running part of the head */
    size_t head_count;
    float scale;
    bool backward;
};

/* Some tokens of the batch. */
typedef struct dp_gpt_range {
    size_t first;
    size_t count;
} dp_gpt_range;

/* The tokens of a task over slices. */
static inline dp_gpt_range dp_gpt_slice(const dp_gpt *gpt, size_t task)
{
    const size_t first = task * gpt->slice;
    const size_t left = gpt->tokens - first;
    return (dp_gpt_range){first, left < gpt->slice ? left : gpt->slice};
}

static inline size_t dp_gpt_slices(size_t tokens, size_t slice)
{
    return (tokens + slice - 1) / slice;
}

static inline float *dp_gpt_scratch(const dp_gpt *gpt, size_t worker)
{
    return gpt->scratch + worker * gpt->scratch_size;
}

static inline const float *dp_gpt_weight(const dp_gpt *gpt, size_t layer, dp_layer_slot slot)
{
    return gpt->params + dp_model_layer_offset(gpt->model, layer, slot);
}

static inline float *dp_gpt_grad(const dp_gpt *gpt, size_t layer, dp_layer_slot slot)
{
    return gpt->grads + dp_model_layer_offset(gpt->model, layer, slot);
}

/* dp_gpt_open with a table of operations of the caller's choice, for tests and benches. */
DP_MUST dp_status dp_gpt_open_with(dp_gpt **out, const dp_model *model, size_t rows_max,
                                   dp_pool *pool, const dp_ops *ops);

/* The attention problem of one (row, head) of the running layer. */
dp_attention dp_gpt_attention(const dp_gpt *gpt, size_t task, size_t worker);
/* A LayerNorm on a range: x [N][C], mean and rstd [N] belong to the whole batch. */
dp_norm_rows dp_gpt_norm_rows(const dp_gpt *gpt, const float *x, const float *gain, float *mean,
                              float *rstd, dp_gpt_range range);

/* Packs the weights, then runs all layers up to gpt->last. */
void dp_gpt_forward(dp_gpt *gpt);
/* Head of all tokens: losses; with gpt->backward also dx for the last layer and the head's gradients. */
void dp_gpt_head(dp_gpt *gpt);
/* Logits of the last token of the first row. */
void dp_gpt_head_last(dp_gpt *gpt, float *logits);
/* From dx behind the last layer to all gradients. */
void dp_gpt_backward(dp_gpt *gpt);

#endif
