#include "compute/cuda/net_layer.h"

/* out = in * weight + bias (+ add) over the batch: one linear layer. */
static dp_status linear(dp_cuda_net *net, size_t layer, dp_slot slot, const void *in, void *out,
                        const void *add)
{
    const dp_tensor *const tensor = dp_model_tensor(net->model, layer, slot);
    const size_t from = tensor->shape[0];
    const size_t to = tensor->shape[1];
    const dp_cuda_product product = {
        .m = net->n,
        .n = to,
        .k = from,
        .a = in,
        .lda = from,
        .b = dp_cuda_net_weight(net, layer, slot),
        .ldb = to,
        .c = out,
        .ldc = to,
        .add = add,
        .bias = dp_cuda_net_weight(net, layer, (dp_slot)(slot + 1)),
        .in = net->type,
        .out = net->type,
    };
    return dp_cuda_gemm_run(net->gemm, &product, net->stream);
}

dp_status dp_cuda_net_norm1(dp_cuda_net *net, size_t layer)
{
    const dp_cuda_norm norm = dp_cuda_net_norm_of(net, layer, DP_LAYER_NORM1_W);
    return DP_CUDA_RUN(net->device, dp_cuda_norm_forward(&norm, NULL, NULL,
                                                         net->layers[layer].norm1, net->stream));
}

dp_status dp_cuda_net_norm2(dp_cuda_net *net, size_t layer)
{
    const dp_cuda_norm norm = dp_cuda_net_norm_of(net, layer, DP_LAYER_NORM2_W);
    return DP_CUDA_RUN(net->device, dp_cuda_norm_forward(&norm, NULL, NULL,
                                                         net->layers[layer].norm2, net->stream));
}

dp_status dp_cuda_net_qk(dp_cuda_net *net, size_t layer)
{
    const dp_cuda_layer *const at = &net->layers[layer];
    if (dp_cuda_net_angles(net, layer) == NULL) {
        return DP_OK;
    }
    const dp_cuda_rope rope = dp_cuda_net_rope(net, layer);
    return DP_CUDA_RUN(net->device,
                       dp_cuda_rope_forward(&rope, at->qk != NULL ? at->qk : at->qkv,
                                            at->qk != NULL ? net->sizes.qk : net->sizes.qkv,
                                            net->stream));
}

static dp_status before_attention(dp_cuda_net *net, size_t layer)
{
    const dp_cuda_layer *const at = &net->layers[layer];
    DP_TRY(dp_cuda_net_norm1(net, layer));
    DP_TRY(linear(net, layer, DP_LAYER_QKV_W, at->norm1, at->qkv, NULL));
    return dp_cuda_net_qk(net, layer);
}

static dp_status attention(dp_cuda_net *net, size_t layer)
{
    const dp_cuda_attention a = dp_cuda_net_attention(net, layer);
    return DP_CUDA_RUN(net->device, dp_cuda_attention_forward(&a, net->stream));
}

/* Up to the activation, whose output is the last that backward asks for. */
static dp_status to_activation(dp_cuda_net *net, size_t layer)
{
    const dp_cuda_layer *const at = &net->layers[layer];
    DP_TRY(linear(net, layer, DP_LAYER_OUT_W, at->att, at->middle, at->x));
    DP_TRY(dp_cuda_net_norm2(net, layer));
    DP_TRY(linear(net, layer, DP_LAYER_UP_W, at->norm2, at->hidden, NULL));
    const dp_cuda_activation act = dp_cuda_net_activation(net, layer);
    return DP_CUDA_RUN(net->device, dp_cuda_activation_forward(&act, at->act, net->stream));
}

static dp_status embed(dp_cuda_net *net)
{
    const dp_cuda_embed tokens = dp_cuda_net_embed(net);
    return DP_CUDA_RUN(net->device,
                       dp_cuda_embed_forward(&tokens, dp_cuda_net_param(net, 0, DP_SLOT_EMBED),
                                             dp_cuda_net_param(net, 0, DP_SLOT_POSITIONS),
                                             net->layers[0].x, net->stream));
}

dp_status dp_cuda_net_forward(dp_cuda_net *net)
{
    const size_t layers = net->model->config.layers;
    DP_TRY(embed(net));
    for (size_t layer = 0; layer < layers; layer++) {
        const dp_cuda_layer *const at = &net->layers[layer];
        DP_TRY(before_attention(net, layer));
        DP_TRY(attention(net, layer));
        DP_TRY(to_activation(net, layer));
        DP_TRY(linear(net, layer, DP_LAYER_DOWN_W, at->act,
                      layer + 1 < layers ? at[1].x : net->last, at->middle));
    }
    return DP_OK;
}

dp_status dp_cuda_net_again(dp_cuda_net *net, size_t layer)
{
    switch (net->recompute) {
    case DP_RECOMPUTE_ATTENTION:
        if (net->layers[layer].qk != NULL) {
            DP_TRY(dp_cuda_net_qk(net, layer));
        }
        return attention(net, layer);
    case DP_RECOMPUTE_LAYER:
        DP_TRY(before_attention(net, layer));
        DP_TRY(attention(net, layer));
        return to_activation(net, layer);
    case DP_RECOMPUTE_NORMS:
        return net->layers[layer].qk != NULL ? dp_cuda_net_qk(net, layer) : DP_OK;
    case DP_RECOMPUTE_NOTHING:
    case DP_RECOMPUTE_STEPS:
        break;
    }
    return DP_OK;
}

dp_status dp_cuda_net_run(dp_cuda_net *net, bool backward)
{
    DP_TRY(dp_cuda_net_forward(net));
    DP_TRY(dp_cuda_net_head(net, backward));
    return backward ? dp_cuda_net_backward(net) : DP_OK;
}
