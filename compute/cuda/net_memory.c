/* The buffers of the net, cut out of one arena. */
#include <string.h>

#include "compute/cuda/attention.h"
#include "compute/cuda/columns.h"
#include "compute/cuda/embed.h"
#include "compute/cuda/net.h"
#include "compute/cuda/norm.h"
#include "compute/cuda/rope.h"

enum {
    LOGITS_BYTES = 256 * 1024 * 1024, /* that live at once, unless it is too few tokens */
    HEAD_TOKENS_MIN = 1024,           /* products need rows */
    LOGITS_ALIGN = 64                 /* elements */
};

#define BUFFER(name, size_, typed_, shared_)                                                       \
    {                                                                                              \
        .at = offsetof(dp_cuda_layer, name), .size = offsetof(dp_cuda_sizes, size_),               \
        .typed = (typed_), .shared = (shared_)                                                     \
    }

/* The buffers of a layer, and the first step of the ladder at which all layers share one. */
static const struct buffer_row {
    size_t at;   /* of the pointer in dp_cuda_layer */
    size_t size; /* of the elements per token in dp_cuda_sizes */
    bool typed;  /* else fp32 */
    dp_recompute shared;
} buffer_rows[] = {
    BUFFER(x, width, true, DP_RECOMPUTE_STEPS),
    BUFFER(norm1, width, true, DP_RECOMPUTE_NORMS),
    BUFFER(qkv, qkv, true, DP_RECOMPUTE_LAYER),
    BUFFER(qk, qk, true, DP_RECOMPUTE_NORMS),
    BUFFER(q_rstd, heads, false, DP_RECOMPUTE_LAYER),
    BUFFER(k_rstd, kv_heads, false, DP_RECOMPUTE_LAYER),
    BUFFER(lse, heads, false, DP_RECOMPUTE_LAYER),
    BUFFER(att, query, true, DP_RECOMPUTE_ATTENTION),
    BUFFER(middle, width, true, DP_RECOMPUTE_LAYER),
    BUFFER(norm2, width, true, DP_RECOMPUTE_NORMS),
    BUFFER(hidden, up, true, DP_RECOMPUTE_LAYER),
    BUFFER(act, hidden, true, DP_RECOMPUTE_NORMS),
    BUFFER(mean1, one, false, DP_RECOMPUTE_LAYER),
    BUFFER(rstd1, one, false, DP_RECOMPUTE_LAYER),
    BUFFER(mean2, one, false, DP_RECOMPUTE_LAYER),
    BUFFER(rstd2, one, false, DP_RECOMPUTE_LAYER),
};

static bool is_of_qk_norm(size_t at)
{
    return at == offsetof(dp_cuda_layer, qk) || at == offsetof(dp_cuda_layer, q_rstd) ||
           at == offsetof(dp_cuda_layer, k_rstd);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t tokens_max(const dp_cuda_net *net)
{
    return net->rows_max * net->model->config.context;
}

/* first: the layer that has the shared buffers; NULL when layer is it. */
static void carve_layer(const dp_cuda_net *net, dp_cuda_arena *arena, dp_cuda_layer *layer,
                        const dp_cuda_layer *first)
{
    const size_t n = tokens_max(net);
    *layer = (dp_cuda_layer){0};
    for (size_t i = 0; i < sizeof buffer_rows / sizeof buffer_rows[0]; i++) {
        const struct buffer_row *const row = &buffer_rows[i];
        if (is_of_qk_norm(row->at) && !dp_model_has(net->model, DP_HAS_QK_NORMS)) {
            continue;
        }
        void *piece;
        if (first != NULL && net->recompute >= row->shared) {
            memcpy(&piece, (const char *)first + row->at, sizeof piece);
        } else {
            size_t size;
            memcpy(&size, (const char *)&net->sizes + row->size, sizeof size);
            piece = dp_cuda_carve(arena, n * size * (row->typed ? net->element : sizeof(float)));
        }
        memcpy((char *)layer + row->at, &piece, sizeof piece);
    }
}

static void carve_layers(dp_cuda_net *net, dp_cuda_arena *arena)
{
    dp_cuda_layer first = {0};
    for (size_t layer = 0; layer < net->model->config.layers; layer++) {
        dp_cuda_layer made;
        carve_layer(net, arena, &made, layer == 0 ? NULL : &first);
        first = layer == 0 ? made : first;
        if (net->layers != NULL) {
            net->layers[layer] = made;
        }
    }
    net->normed = net->recompute >= DP_RECOMPUTE_NORMS
                      ? first.norm1
                      : dp_cuda_carve(arena, tokens_max(net) * net->sizes.width * net->element);
}

/* Bytes for whichever kernel needs most. */
static size_t scratch_bytes(const dp_cuda_net *net)
{
    const size_t n = tokens_max(net);
    const dp_cuda_sizes *const s = &net->sizes;
    const size_t widest = larger(larger(s->up, s->qkv), s->width);
    size_t floats = larger(dp_cuda_norm_scratch(n, s->width), dp_cuda_columns_scratch(n, widest));
    floats = larger(floats, dp_cuda_rope_scratch(net->head));
    floats = larger(floats,
                    dp_cuda_attention_scratch(net->rows_max, s->heads, net->model->config.context));
    return larger(floats * sizeof(float), dp_cuda_embed_scratch(n, s->width));
}

void dp_cuda_net_carve(dp_cuda_net *net, dp_cuda_arena *arena)
{
    const size_t n = tokens_max(net);
    const dp_cuda_sizes *const s = &net->sizes;
    const dp_model_config *const config = &net->model->config;
    net->tokens = dp_cuda_carve(arena, n * sizeof *net->tokens);
    net->targets = dp_cuda_carve(arena, n * sizeof *net->targets);
    net->scale = dp_cuda_carve(arena, sizeof *net->scale);
    net->losses = dp_cuda_carve(arena, n * sizeof *net->losses);
    if (config->rope_theta != 0) {
        net->angles[DP_ROPE_USUAL] =
            dp_cuda_carve(arena, (size_t)config->context * net->head * sizeof(float));
    }
    if (config->rope_local_theta != 0) {
        net->angles[DP_ROPE_LOCAL] =
            dp_cuda_carve(arena, (size_t)config->context * net->head * sizeof(float));
    }
    carve_layers(net, arena);
    net->last = dp_cuda_carve(arena, n * s->width * net->element);
    net->meanf = dp_cuda_carve(arena, n * sizeof(float));
    net->rstdf = dp_cuda_carve(arena, n * sizeof(float));
    net->logits = dp_cuda_carve(arena, larger(net->head_tokens * net->logits_ld * net->element,
                                              2 * net->logits_ld * sizeof(float)));
    net->dx = dp_cuda_carve(arena, n * s->width * net->element);
    net->d_middle = dp_cuda_carve(arena, n * s->width * net->element);
    net->d_small = dp_cuda_carve(arena, n * larger(s->width, s->query) * net->element);
    net->d_qkv = dp_cuda_carve(arena, n * s->qkv * net->element);
    net->d_hidden = dp_cuda_carve(arena, n * s->up * net->element);
    net->scratch = dp_cuda_carve(arena, scratch_bytes(net));
}

/* Products of an odd vocabulary (50257) are slow, so they take the rows behind the head, too, which
 * are those of other tensors: their logits are ignored, and their gradients are sums of zeros. Not
 * where the arena ends before. */
static size_t head_rows(const dp_model *model, size_t padded)
{
    const size_t end = dp_model_head(model)->offset + padded * model->config.width;
    return end <= model->n_elements ? padded : model->config.vocab;
}

dp_cuda_net dp_cuda_net_setup(const dp_model *model, dp_precision type, dp_recompute recompute,
                              size_t rows_max)
{
    static const dp_activation_kind kinds[] = {[DP_ACTIVATION_GELU] = DP_GELU,
                                               [DP_ACTIVATION_RELU2] = DP_RELU2,
                                               [DP_ACTIVATION_SWIGLU] = DP_SWIGLU,
                                               [DP_ACTIVATION_GEGLU] = DP_GEGLU,
                                               [DP_ACTIVATION_GELU_ERF] = DP_GELU_ERF};
    const dp_model_config *const config = &model->config;
    dp_cuda_net net = {.model = model,
                       .type = type,
                       .element = type == DP_FP32 ? sizeof(float) : sizeof(uint16_t),
                       .recompute = recompute,
                       .activation = kinds[config->activation],
                       .rms = !dp_model_has(model, DP_HAS_LAYER_NORM),
                       .softcap = (float)config->softcap_milli * 1e-3F,
                       .head = config->head_width,
                       .rows_max = rows_max};
    net.eps = net.rms ? (float)config->norm_eps_nano * 1e-9F : 1e-5F;
    net.sizes = (dp_cuda_sizes){
        .width = config->width,
        .qkv = (config->heads + 2 * (size_t)config->kv_heads) * net.head,
        .query = config->heads * net.head,
        .qk = (config->heads + (size_t)config->kv_heads) * net.head,
        .up = (dp_activation_gated(config->activation) ? 2U : 1U) * (size_t)config->hidden,
        .hidden = config->hidden,
        .heads = config->heads,
        .kv_heads = config->kv_heads,
        .one = 1,
    };
    const size_t n = tokens_max(&net);
    net.logits_ld = (config->vocab + (size_t)LOGITS_ALIGN - 1) / LOGITS_ALIGN * LOGITS_ALIGN;
    net.head_rows = head_rows(model, net.logits_ld);
    net.head_tokens = LOGITS_BYTES / (net.logits_ld * net.element);
    net.head_tokens = larger(net.head_tokens, HEAD_TOKENS_MIN);
    net.head_tokens = net.head_tokens > n ? n : net.head_tokens;
    return net;
}
