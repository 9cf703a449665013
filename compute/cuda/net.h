/* The transformer of gpt.h on a card: which kernels and products a micro-batch takes, in which
 * order and into which buffers. Puts all of it on one stream and waits for nothing, so that a step
 * can be captured as a graph. Owns no memory (engine.h carves it) and knows no optimizer.
 *
 * Where it differs from the CPU: activations, the residual stream and their gradients have the type
 * of the run's precision, products sum in fp32 and round once, gradients of parameters are fp32 and
 * added to by the products themselves. The ladder of recomputing is that of dp_recompute, bits do
 * not depend on it. */
#ifndef DP_COMPUTE_CUDA_NET_H
#define DP_COMPUTE_CUDA_NET_H

#include "compute/cpu/ops.h"
#include "compute/cuda/attention.h"
#include "compute/cuda/gemm.h"
#include "compute/cuda/memory.h"
#include "compute/model/gpt.h"
#include "compute/model/model.h"

/* Elements that one token has in a buffer of its kind, as in gpt_inside.h. */
typedef struct dp_cuda_sizes {
    size_t width; /* C */
    size_t qkv;   /* q, k and v side by side */
    size_t query; /* heads * head */
    size_t qk;    /* q and k */
    size_t up;    /* into the activation */
    size_t hidden;
    size_t heads;
    size_t kv_heads;
    size_t one;
} dp_cuda_sizes;

/* The buffers that forward keeps of a layer. N: tokens of the largest batch. From a step of the
 * ladder on, all layers share one buffer (net_memory.c has the table). void: typed. */
typedef struct dp_cuda_layer {
    void *x; /* [N][C] residual stream before the layer */
    void *norm1;
    void *qkv; /* [N][qkv]; q and k turned in place, unless they have norms */
    void *qk;  /* [N][qk] behind their norms, turned; NULL without norms */
    float *q_rstd;
    float *k_rstd;
    float *lse; /* [N][heads] floats, in the order of attention.h */
    void *att;  /* [N][query] */
    void *middle;
    void *norm2;
    void *hidden; /* [N][up] before the activation */
    void *act;    /* [N][hidden] */
    float *mean1;
    float *rstd1;
    float *mean2;
    float *rstd2;
} dp_cuda_layer;

typedef struct dp_cuda_net {
    const dp_model *model;
    dp_cuda_device *device;
    dp_cuda_gemm *gemm;
    dp_cuda_attention_path attention; /* of this card */
    cudaStream_t stream;
    dp_precision type;
    size_t element; /* bytes of one of that type */
    dp_recompute recompute;
    dp_activation_kind activation;
    bool rms;
    float eps;
    float softcap;
    size_t head; /* width of a head */
    dp_cuda_sizes sizes;
    size_t rows_max;
    size_t head_tokens; /* tokens whose logits live at once */
    size_t logits_ld;   /* elements from row to row: the vocabulary, padded */
    size_t head_rows;   /* rows of the head that products take: logits_ld, or the vocabulary */

    dp_cuda_layer *layers;        /* host memory of the owner, one each; NULL while counting */
    uint32_t *tokens;             /* [N] */
    uint32_t *targets;            /* [N] */
    float *scale;                 /* one: that of the running step */
    float *losses;                /* [N] */
    float *angles[DP_ROPE_KINDS]; /* [T][head] of dp_rope_angles; NULL: no layer needs them */
    void *last;                   /* [N][C] behind the last layer */
    void *normed;                 /* its norm */
    float *meanf;
    float *rstdf;
    void *logits;   /* [head_tokens][logits_ld], and at least two rows of floats */
    void *dx;       /* [N][C] gradient of the residual stream */
    void *d_middle; /* [N][C] */
    void *d_small;  /* [N][max(C, query)]: behind a norm, or behind attention */
    void *d_qkv;    /* [N][qkv] */
    void *d_hidden; /* [N][up] */
    void *scratch;  /* of whichever kernel runs */

    /* Of the running call, by its caller. */
    const float *params; /* fp32: gains, biases of norms, embeddings */
    const void *weights; /* the same, typed: products and their biases */
    float *grads;
    size_t rows;
    size_t length;
    size_t n; /* rows * length */
} dp_cuda_net;

/* Everything up to layers; device, gemm and stream are the caller's. */
dp_cuda_net dp_cuda_net_setup(const dp_model *model, dp_precision type, dp_recompute recompute,
                              size_t rows_max);
/* Takes every buffer of the net from the arena. */
void dp_cuda_net_carve(dp_cuda_net *net, dp_cuda_arena *arena);

/* All on net->stream, tokens and targets being there already. Errors of all: device->problem. */

/* losses of the batch; with backward also grads += *scale * d(sum of losses)/d(params). */
DP_MUST dp_status dp_cuda_net_run(dp_cuda_net *net, bool backward);
/* The logits of the last token of the only row, as floats: *out is device memory of vocab
 * floats. */
DP_MUST dp_status dp_cuda_net_logits(dp_cuda_net *net, float **out);

/* ---- Between net_*.c. */

/* From tokens to last. */
DP_MUST dp_status dp_cuda_net_forward(dp_cuda_net *net);
/* Computes again the values of a layer that backward needs and the ladder has not kept. */
DP_MUST dp_status dp_cuda_net_again(dp_cuda_net *net, size_t layer);
/* True if norms and activations are dropped one by one. */
static inline bool dp_cuda_net_drops_norms(const dp_cuda_net *net)
{
    return net->recompute == DP_RECOMPUTE_NORMS || net->recompute == DP_RECOMPUTE_ATTENTION;
}
/* The norm of a layer once more. */
DP_MUST dp_status dp_cuda_net_norm1(dp_cuda_net *net, size_t layer);
DP_MUST dp_status dp_cuda_net_norm2(dp_cuda_net *net, size_t layer);
/* q and k from their product to attention; nothing where the layer does not turn them. */
DP_MUST dp_status dp_cuda_net_qk(dp_cuda_net *net, size_t layer);
/* Losses; with backward also dx and the head's gradients. */
DP_MUST dp_status dp_cuda_net_head(dp_cuda_net *net, bool backward);
/* From dx to all gradients. */
DP_MUST dp_status dp_cuda_net_backward(dp_cuda_net *net);

/* NULL: the layer does not turn q and k. */
static inline const float *dp_cuda_net_angles(const dp_cuda_net *net, size_t layer)
{
    return net->angles[dp_model_layer_traits(&net->model->config, layer).rope];
}

/* NULL when this model has no such tensor. */
static inline const float *dp_cuda_net_param(const dp_cuda_net *net, size_t layer, dp_slot slot)
{
    const dp_tensor *const tensor = dp_model_tensor(net->model, layer, slot);
    return tensor == NULL ? NULL : net->params + tensor->offset;
}

static inline float *dp_cuda_net_grad(const dp_cuda_net *net, size_t layer, dp_slot slot)
{
    const dp_tensor *const tensor = dp_model_tensor(net->model, layer, slot);
    return tensor == NULL ? NULL : net->grads + tensor->offset;
}

static inline const void *dp_cuda_net_weight(const dp_cuda_net *net, size_t layer, dp_slot slot)
{
    const dp_tensor *const tensor = dp_model_tensor(net->model, layer, slot);
    return tensor == NULL ? NULL : (const uint8_t *)net->weights + tensor->offset * net->element;
}

/* Row first of a typed buffer. */
static inline void *dp_cuda_net_at(const dp_cuda_net *net, void *buffer, size_t elements)
{
    return (uint8_t *)buffer + elements * net->element;
}

#endif
