/* The arguments of a layer's kernels, from the buffers of the net. Private to net_*.c. */
#ifndef DP_COMPUTE_CUDA_NET_LAYER_H
#define DP_COMPUTE_CUDA_NET_LAYER_H

#include "compute/cuda/act.h"
#include "compute/cuda/attention.h"
#include "compute/cuda/embed.h"
#include "compute/cuda/net.h"
#include "compute/cuda/norm.h"
#include "compute/cuda/rope.h"

static inline dp_cuda_embed dp_cuda_net_embed(const dp_cuda_net *net)
{
    return (dp_cuda_embed){.tokens = net->tokens,
                           .rows = net->rows,
                           .length = net->length,
                           .vocab = net->model->config.vocab,
                           .width = net->sizes.width,
                           .stream = net->type};
}

/* The norm before attention (DP_LAYER_NORM1_W) or behind it (DP_LAYER_NORM2_W). */
static inline dp_cuda_norm dp_cuda_net_norm_of(const dp_cuda_net *net, size_t layer, dp_slot gain)
{
    const dp_cuda_layer *const at = &net->layers[layer];
    const bool first = gain == DP_LAYER_NORM1_W;
    return (dp_cuda_norm){.rows = net->n,
                          .width = net->sizes.width,
                          .rms = net->rms,
                          .eps = net->eps,
                          .stream = net->type,
                          .type = net->type,
                          .x = first ? at->x : at->middle,
                          .gain = dp_cuda_net_param(net, layer, gain),
                          .bias = dp_cuda_net_param(net, layer, (dp_slot)(gain + 1)),
                          .mean = first ? at->mean1 : at->mean2,
                          .rstd = first ? at->rstd1 : at->rstd2};
}

static inline dp_cuda_rope dp_cuda_net_rope(const dp_cuda_net *net, size_t layer)
{
    const dp_cuda_layer *const at = &net->layers[layer];
    return (dp_cuda_rope){.rows = net->n,
                          .length = net->length,
                          .heads = net->sizes.heads,
                          .kv_heads = net->sizes.kv_heads,
                          .head = net->head,
                          .type = net->type,
                          .angles = dp_cuda_net_angles(net, layer),
                          .q_gain = dp_cuda_net_param(net, layer, DP_LAYER_Q_NORM),
                          .k_gain = dp_cuda_net_param(net, layer, DP_LAYER_K_NORM),
                          .eps = net->eps,
                          .q_rstd = at->q_rstd,
                          .k_rstd = at->k_rstd,
                          .x = at->qkv,
                          .ld = net->sizes.qkv};
}

static inline dp_cuda_attention dp_cuda_net_attention(const dp_cuda_net *net, size_t layer)
{
    const dp_cuda_layer *const at = &net->layers[layer];
    void *const qk = at->qk != NULL ? at->qk : at->qkv;
    return (dp_cuda_attention){.type = net->type,
                               .rows = net->rows,
                               .length = net->length,
                               .heads = net->sizes.heads,
                               .kv_heads = net->sizes.kv_heads,
                               .head = net->head,
                               .q = qk,
                               .k = dp_cuda_net_at(net, qk, net->sizes.query),
                               .ld_qk = at->qk != NULL ? net->sizes.qk : net->sizes.qkv,
                               .v = dp_cuda_net_at(net, at->qkv, net->sizes.qk),
                               .ld_v = net->sizes.qkv,
                               .out = at->att,
                               .ld_out = net->sizes.query,
                               .lse = at->lse,
                               .path = net->attention};
}

/* From d_small to d_qkv. */
static inline dp_cuda_attention_grads dp_cuda_net_attention_grads(const dp_cuda_net *net)
{
    return (dp_cuda_attention_grads){.d_out = net->d_small,
                                     .dq = net->d_qkv,
                                     .dk = dp_cuda_net_at(net, net->d_qkv, net->sizes.query),
                                     .dv = dp_cuda_net_at(net, net->d_qkv, net->sizes.qk),
                                     .ld_d = net->sizes.qkv,
                                     .scratch = net->scratch};
}

static inline dp_cuda_activation dp_cuda_net_activation(const dp_cuda_net *net, size_t layer)
{
    return (dp_cuda_activation){.kind = net->activation,
                                .type = net->type,
                                .rows = net->n,
                                .width = net->sizes.hidden,
                                .x = net->layers[layer].hidden};
}

#endif
