/* The end of the model: final norm, logits, loss. Logits live for head_tokens at a time. */
#include "compute/cuda/head.h"
#include "compute/cuda/net.h"
#include "compute/cuda/norm.h"

/* The norm behind the layers, of count tokens from first on. */
static dp_cuda_norm last_norm(const dp_cuda_net *net, size_t first, size_t count)
{
    return (dp_cuda_norm){.rows = count,
                          .width = net->sizes.width,
                          .rms = net->rms,
                          .eps = net->eps,
                          .stream = net->type,
                          .type = net->type,
                          .x = dp_cuda_net_at(net, net->last, first * net->sizes.width),
                          .gain = dp_cuda_net_param(net, 0, DP_SLOT_NORM_W),
                          .bias = dp_cuda_net_param(net, 0, DP_SLOT_NORM_B),
                          .mean = net->meanf + first,
                          .rstd = net->rstdf + first};
}

static const void *head_weight(const dp_cuda_net *net)
{
    return (const uint8_t *)net->weights + dp_model_head(net->model)->offset * net->element;
}

/* logits [count][V] of rows of normed. */
static dp_status multiply(dp_cuda_net *net, const void *normed, size_t count, void *logits,
                          dp_precision out)
{
    const size_t c = net->sizes.width;
    const dp_cuda_product product = {.m = count,
                                     .n = net->head_rows,
                                     .k = c,
                                     .a = normed,
                                     .lda = c,
                                     .b = head_weight(net),
                                     .ldb = c,
                                     .b_transposed = true,
                                     .c = logits,
                                     .ldc = net->logits_ld,
                                     .in = net->type,
                                     .out = out};
    return dp_cuda_gemm_run(net->gemm, &product, net->stream);
}

/* From the logits' gradient, 0 behind the vocabulary, to that of the normed rows and of the
 * weight. */
static dp_status multiply_back(dp_cuda_net *net, size_t first, size_t count)
{
    const size_t c = net->sizes.width;
    const size_t v = net->head_rows;
    const dp_cuda_product rows = {.m = count,
                                  .n = c,
                                  .k = v,
                                  .a = net->logits,
                                  .lda = net->logits_ld,
                                  .b = head_weight(net),
                                  .ldb = c,
                                  .c = dp_cuda_net_at(net, net->d_small, first * c),
                                  .ldc = c,
                                  .in = net->type,
                                  .out = net->type};
    float *const grad = net->grads + dp_model_head(net->model)->offset;
    const dp_cuda_product weight = {.m = v,
                                    .n = c,
                                    .k = count,
                                    .a = net->logits,
                                    .lda = net->logits_ld,
                                    .a_transposed = true,
                                    .b = dp_cuda_net_at(net, net->normed, first * c),
                                    .ldb = c,
                                    .c = grad,
                                    .ldc = c,
                                    .add = grad,
                                    .in = net->type,
                                    .out = DP_FP32};
    DP_TRY(dp_cuda_gemm_run(net->gemm, &rows, net->stream));
    return dp_cuda_gemm_run(net->gemm, &weight, net->stream);
}

static dp_status chunk(dp_cuda_net *net, size_t first, size_t count, bool backward)
{
    const dp_cuda_classifier classifier = {.type = net->type,
                                           .logits = net->logits,
                                           .targets = net->targets + first,
                                           .rows = count,
                                           .vocab = net->model->config.vocab,
                                           .ld = net->logits_ld,
                                           .softcap = net->softcap,
                                           .scale = backward ? 1.0F : 0.0F,
                                           .scale_by = net->scale,
                                           .losses = net->losses + first};
    DP_TRY(multiply(net, dp_cuda_net_at(net, net->normed, first * net->sizes.width), count,
                    net->logits, net->type));
    DP_TRY(DP_CUDA_RUN(net->device, dp_cuda_classify(&classifier, net->stream)));
    return backward ? multiply_back(net, first, count) : DP_OK;
}

dp_status dp_cuda_net_head(dp_cuda_net *net, bool backward)
{
    const dp_cuda_norm norm = last_norm(net, 0, net->n);
    DP_TRY(DP_CUDA_RUN(net->device,
                       dp_cuda_norm_forward(&norm, NULL, NULL, net->normed, net->stream)));
    for (size_t first = 0; first < net->n; first += net->head_tokens) {
        const size_t left = net->n - first;
        DP_TRY(chunk(net, first, left < net->head_tokens ? left : net->head_tokens, backward));
    }
    if (!backward) {
        return DP_OK;
    }
    return DP_CUDA_RUN(
        net->device,
        dp_cuda_norm_backward(&norm, net->d_small, NULL, net->dx,
                              dp_cuda_net_grad(net, 0, DP_SLOT_NORM_W),
                              dp_cuda_net_grad(net, 0, DP_SLOT_NORM_B),
                              dp_cuda_net_grad(net, net->model->config.layers - 1, DP_LAYER_DOWN_B),
                              net->scratch, net->stream));
}

dp_status dp_cuda_net_logits(dp_cuda_net *net, float **out)
{
    const dp_cuda_norm norm = last_norm(net, net->n - 1, 1);
    float *const logits = net->logits;
    float *const capped = logits + net->logits_ld;
    DP_TRY(dp_cuda_net_forward(net));
    DP_TRY(DP_CUDA_RUN(net->device,
                       dp_cuda_norm_forward(&norm, NULL, NULL, net->normed, net->stream)));
    DP_TRY(multiply(net, net->normed, 1, logits, DP_FP32));
    DP_TRY(DP_CUDA_RUN(net->device, dp_cuda_logits_out(logits, DP_FP32, net->model->config.vocab,
                                                       net->softcap, capped, net->stream)));
    *out = capped;
    return DP_OK;
}
