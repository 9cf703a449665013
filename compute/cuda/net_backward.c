#include "compute/cuda/net_layer.h"

/* d_in [n][ld] = d_out * weight'. */
static dp_status linear_back(dp_cuda_net *net, size_t layer, dp_slot slot, const void *d_out,
                             void *d_in, size_t ld)
{
    const dp_tensor *const tensor = dp_model_tensor(net->model, layer, slot);
    const size_t from = tensor->shape[0];
    const size_t to = tensor->shape[1];
    const dp_cuda_product product = {.m = net->n,
                                     .n = from,
                                     .k = to,
                                     .a = d_out,
                                     .lda = to,
                                     .b = dp_cuda_net_weight(net, layer, slot),
                                     .ldb = to,
                                     .b_transposed = true,
                                     .c = d_in,
                                     .ldc = ld,
                                     .in = net->type,
                                     .out = net->type};
    return dp_cuda_gemm_run(net->gemm, &product, net->stream);
}

/* Gradient of a linear layer's weight: in [n][from], d_out [n][to]. That of its bias is summed
 * where d_out is made. */
static dp_status weight_grads(dp_cuda_net *net, size_t layer, dp_slot slot, const void *in,
                              const void *d_out)
{
    const dp_tensor *const tensor = dp_model_tensor(net->model, layer, slot);
    const size_t from = tensor->shape[0];
    const size_t to = tensor->shape[1];
    float *const weight = dp_cuda_net_grad(net, layer, slot);
    const dp_cuda_product product = {.m = from,
                                     .n = to,
                                     .k = net->n,
                                     .a = in,
                                     .lda = from,
                                     .a_transposed = true,
                                     .b = d_out,
                                     .ldb = to,
                                     .c = weight,
                                     .ldc = to,
                                     .add = weight,
                                     .in = net->type,
                                     .out = DP_FP32};
    return dp_cuda_gemm_run(net->gemm, &product, net->stream);
}

/* Of the product of q, k and v, whose d_out three kernels make: by reading it once more. */
static dp_status qkv_bias_grads(dp_cuda_net *net, size_t layer)
{
    float *const bias = dp_cuda_net_grad(net, layer, DP_LAYER_QKV_B);
    const size_t width = net->sizes.qkv;
    return bias == NULL ? DP_OK
                        : DP_CUDA_RUN(net->device,
                                      dp_cuda_add_columns(net->d_qkv, net->type, net->n, width,
                                                          width, bias, net->scratch, net->stream));
}

/* dx = residual + the gradient before the norm of x, from d_small. d_bias: of the product that was
 * added before it; NULL: it has none. */
static dp_status norm_back(dp_cuda_net *net, size_t layer, dp_slot gain, const void *residual,
                           void *dx, float *d_bias)
{
    const dp_cuda_norm norm = dp_cuda_net_norm_of(net, layer, gain);
    return DP_CUDA_RUN(net->device,
                       dp_cuda_norm_backward(&norm, net->d_small, residual, dx,
                                             dp_cuda_net_grad(net, layer, gain),
                                             dp_cuda_net_grad(net, layer, (dp_slot)(gain + 1)),
                                             d_bias, net->scratch, net->stream));
}

/* From dx behind the layer to d_middle behind attention. */
static dp_status to_middle(dp_cuda_net *net, size_t layer)
{
    const dp_cuda_layer *const at = &net->layers[layer];
    const bool again = dp_cuda_net_drops_norms(net);
    const dp_cuda_activation act = dp_cuda_net_activation(net, layer);
    DP_TRY(linear_back(net, layer, DP_LAYER_DOWN_W, net->dx, net->d_hidden, net->sizes.up));
    DP_TRY(DP_CUDA_RUN(
        net->device, dp_cuda_activation_backward(
                         &act, net->d_hidden, net->sizes.up, net->d_hidden, again ? at->act : NULL,
                         dp_cuda_net_grad(net, layer, DP_LAYER_UP_B), net->scratch, net->stream)));
    DP_TRY(weight_grads(net, layer, DP_LAYER_DOWN_W, at->act, net->dx));
    if (again) {
        DP_TRY(dp_cuda_net_norm2(net, layer));
    }
    DP_TRY(linear_back(net, layer, DP_LAYER_UP_W, net->d_hidden, net->d_small, net->sizes.width));
    DP_TRY(weight_grads(net, layer, DP_LAYER_UP_W, at->norm2, net->d_hidden));
    return norm_back(net, layer, DP_LAYER_NORM2_W, net->dx, net->d_middle,
                     dp_cuda_net_grad(net, layer, DP_LAYER_OUT_B));
}

static dp_status attention_back(dp_cuda_net *net, size_t layer)
{
    const dp_cuda_attention a = dp_cuda_net_attention(net, layer);
    DP_TRY(linear_back(net, layer, DP_LAYER_OUT_W, net->d_middle, net->d_small, net->sizes.query));
    DP_TRY(weight_grads(net, layer, DP_LAYER_OUT_W, net->layers[layer].att, net->d_middle));
    const dp_cuda_attention_grads grads = dp_cuda_net_attention_grads(net);
    DP_TRY(DP_CUDA_RUN(net->device, dp_cuda_attention_backward(&a, &grads, net->stream)));
    if (dp_cuda_net_angles(net, layer) == NULL) {
        return DP_OK;
    }
    const dp_cuda_rope rope = dp_cuda_net_rope(net, layer);
    return DP_CUDA_RUN(net->device,
                       dp_cuda_rope_backward(&rope, net->d_qkv, net->sizes.qkv,
                                             dp_cuda_net_grad(net, layer, DP_LAYER_Q_NORM),
                                             dp_cuda_net_grad(net, layer, DP_LAYER_K_NORM),
                                             net->scratch, net->stream));
}

/* From d_middle to dx before the layer. */
static dp_status to_input(dp_cuda_net *net, size_t layer)
{
    const dp_cuda_layer *const at = &net->layers[layer];
    DP_TRY(attention_back(net, layer));
    if (dp_cuda_net_drops_norms(net)) {
        DP_TRY(dp_cuda_net_norm1(net, layer));
    }
    DP_TRY(linear_back(net, layer, DP_LAYER_QKV_W, net->d_qkv, net->d_small, net->sizes.width));
    DP_TRY(weight_grads(net, layer, DP_LAYER_QKV_W, at->norm1, net->d_qkv));
    DP_TRY(qkv_bias_grads(net, layer));
    /* The result is the value that the layer before has added to. */
    return norm_back(net, layer, DP_LAYER_NORM1_W, net->d_middle, net->dx,
                     layer == 0 ? NULL : dp_cuda_net_grad(net, layer - 1, DP_LAYER_DOWN_B));
}

dp_status dp_cuda_net_backward(dp_cuda_net *net)
{
    for (size_t layer = net->model->config.layers; layer-- > 0;) {
        DP_TRY(dp_cuda_net_again(net, layer));
        DP_TRY(to_middle(net, layer));
        DP_TRY(to_input(net, layer));
    }
    const dp_cuda_embed tokens = dp_cuda_net_embed(net);
    return DP_CUDA_RUN(net->device,
                       dp_cuda_embed_backward(
                           &tokens, net->dx, dp_cuda_net_grad(net, 0, DP_SLOT_EMBED),
                           dp_cuda_net_grad(net, 0, DP_SLOT_POSITIONS), net->scratch, net->stream));
}
