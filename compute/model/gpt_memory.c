/* The buffers of the engine, cut out of one block. */
#include "compute/model/gpt_norm.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
    ALIGN_FLOATS = DP_GPT_ALIGN_FLOATS,
    HEAD_FLOATS = 4 * 1024 * 1024, /* logits that live at once, unless one slice needs more */
    HEAD_TOKENS_MIN = 2 * DP_GPT_SLICE_MAX /* with any vocabulary: products need rows */
};

/* Hands out pieces of one block; with base NULL it only counts. */
struct carver {
    float *base;
    size_t used;
};

static size_t aligned(size_t floats)
{
    return (floats + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

static float *carve(struct carver *carver, size_t floats)
{
    float *piece = carver->base == NULL ? NULL : carver->base + carver->used;
    carver->used += aligned(floats);
    return piece;
}

#define BUFFER(name, size_, shared_)                                                               \
    {                                                                                              \
        .at = offsetof(dp_gpt_layer, name), .size = offsetof(dp_gpt_sizes, size_),                 \
        .shared = (shared_)                                                                        \
    }

/* The buffers of a layer, and the first step of the ladder at which all layers share one. */
static const struct buffer_row {
    size_t at;   /* of the pointer in dp_gpt_layer */
    size_t size; /* of the floats per token in dp_gpt_sizes */
    dp_recompute shared;
} buffer_rows[] = {
    BUFFER(x, width, DP_RECOMPUTE_STEPS),      BUFFER(norm1, width, DP_RECOMPUTE_NORMS),
    BUFFER(qkv, qkv, DP_RECOMPUTE_LAYER),      BUFFER(qk, qkv, DP_RECOMPUTE_NORMS),
    BUFFER(q_rstd, heads, DP_RECOMPUTE_LAYER), BUFFER(k_rstd, kv_heads, DP_RECOMPUTE_LAYER),
    BUFFER(lse, heads, DP_RECOMPUTE_LAYER),    BUFFER(att, query, DP_RECOMPUTE_ATTENTION),
    BUFFER(middle, width, DP_RECOMPUTE_LAYER), BUFFER(norm2, width, DP_RECOMPUTE_NORMS),
    BUFFER(hidden, up, DP_RECOMPUTE_LAYER),    BUFFER(act, hidden, DP_RECOMPUTE_NORMS),
    BUFFER(mean1, one, DP_RECOMPUTE_LAYER),    BUFFER(rstd1, one, DP_RECOMPUTE_LAYER),
    BUFFER(mean2, one, DP_RECOMPUTE_LAYER),    BUFFER(rstd2, one, DP_RECOMPUTE_LAYER),
    BUFFER(out, width, DP_RECOMPUTE_LAYER),    BUFFER(down, width, DP_RECOMPUTE_LAYER),
    BUFFER(rstd_out, one, DP_RECOMPUTE_LAYER), BUFFER(rstd_down, one, DP_RECOMPUTE_LAYER),
};

static bool is_of_qk_norm(size_t at)
{
    return at == offsetof(dp_gpt_layer, qk) || at == offsetof(dp_gpt_layer, q_rstd) ||
           at == offsetof(dp_gpt_layer, k_rstd);
}

static bool is_of_norms_after(size_t at)
{
    return at == offsetof(dp_gpt_layer, out) || at == offsetof(dp_gpt_layer, down) ||
           at == offsetof(dp_gpt_layer, rstd_out) || at == offsetof(dp_gpt_layer, rstd_down);
}

static void carve_packs(const dp_gpt *gpt, struct carver *carver, dp_gpt_layer *layer)
{
    for (int slot = 0; slot < DP_LAYER_SLOTS; slot++) {
        const dp_tensor *const tensor = dp_model_tensor(gpt->model, 0, (dp_slot)slot);
        if (tensor != NULL && tensor->n_dims == 2) {
            layer->packed[slot] =
                carve(carver, dp_packed_floats(gpt->ops, tensor->shape[0], tensor->shape[1]));
            layer->packed_t[slot] =
                carve(carver, dp_packed_floats(gpt->ops, tensor->shape[1], tensor->shape[0]));
        }
    }
}

static void carve_head_packs(const dp_gpt *gpt, struct carver *carver, float *packs[DP_GPT_WAYS])
{
    const size_t c = gpt->sizes.width;
    const size_t v = gpt->model->config.vocab;
    packs[DP_GPT_ONWARD] = carve(carver, dp_packed_floats(gpt->ops, c, v));
    packs[DP_GPT_BACK] = carve(carver, dp_packed_floats(gpt->ops, v, c));
}

size_t dp_gpt_packed_floats(const dp_gpt *gpt)
{
    struct carver layer = {0};
    struct carver head = {0};
    dp_gpt_layer ignored_layer;
    float *ignored_head[DP_GPT_WAYS];
    carve_packs(gpt, &layer, &ignored_layer);
    carve_head_packs(gpt, &head, ignored_head);
    if (gpt->packs == DP_GPT_PACKS_KEPT) {
        return gpt->model->config.layers * layer.used + head.used;
    }
    return layer.used > head.used ? layer.used : head.used;
}

/* The packs of all layers and the head in one piece: one behind the other, or all at its
 * beginning. */
static void carve_all_packs(dp_gpt *gpt, struct carver *carver)
{
    float *const piece = carve(carver, dp_gpt_packed_floats(gpt));
    struct carver at = {.base = piece};
    for (size_t layer = 0; gpt->layers != NULL && layer < gpt->model->config.layers; layer++) {
        at.used = gpt->packs == DP_GPT_PACKS_KEPT ? at.used : 0;
        carve_packs(gpt, &at, &gpt->layers[layer]);
    }
    float *head[DP_GPT_WAYS];
    at.used = gpt->packs == DP_GPT_PACKS_KEPT ? at.used : 0;
    carve_head_packs(gpt, &at, head);
    gpt->packed_head = head[DP_GPT_ONWARD];
    gpt->packed_head_t = head[DP_GPT_BACK];
}

/* first: the layer that has the shared buffers; NULL when layer is it. */
static void carve_layer(const dp_gpt *gpt, struct carver *carver, dp_gpt_layer *layer,
                        const dp_gpt_layer *first)
{
    const size_t n = gpt->rows_max * gpt->model->config.context;
    *layer = (dp_gpt_layer){0};
    for (size_t i = 0; i < sizeof buffer_rows / sizeof buffer_rows[0]; i++) {
        const struct buffer_row *const row = &buffer_rows[i];
        if (is_of_qk_norm(row->at) && !dp_model_has(gpt->model, DP_HAS_QK_NORMS)) {
            continue;
        }
        if (is_of_norms_after(row->at) && !dp_model_has(gpt->model, DP_HAS_NORMS_AFTER)) {
            continue;
        }
        size_t size;
        memcpy(&size, (const char *)&gpt->sizes + row->size, sizeof size);
        if (first != NULL && gpt->recompute >= row->shared) {
            memcpy((char *)layer + row->at, (const char *)first + row->at, sizeof(float *));
        } else {
            float *const piece = carve(carver, n * size);
            memcpy((char *)layer + row->at, &piece, sizeof piece);
        }
    }
}

static void carve_layers(dp_gpt *gpt, struct carver *carver)
{
    dp_gpt_layer first = {0};
    for (size_t layer = 0; layer < gpt->model->config.layers; layer++) {
        dp_gpt_layer made;
        carve_layer(gpt, carver, &made, layer == 0 ? NULL : &first);
        first = layer == 0 ? made : first;
        if (gpt->layers != NULL) {
            gpt->layers[layer] = made;
        }
    }
    const size_t n = gpt->rows_max * gpt->model->config.context;
    gpt->normed =
        gpt->recompute >= DP_RECOMPUTE_NORMS ? first.norm1 : carve(carver, n * gpt->sizes.width);
}

static void carve_adapters(dp_gpt *gpt, struct carver *carver)
{
    const size_t n = gpt->rows_max * gpt->model->config.context;
    const size_t rank = gpt->trained->config.adapt_rank;
    for (int slot = 0; slot < DP_LAYER_SLOTS; slot++) {
        dp_adapter adapter;
        if (!dp_model_adapter(gpt->trained, 0, (dp_slot)slot, &adapter)) {
            continue;
        }
        dp_gpt_adapter *const room = &gpt->adapters[slot];
        const size_t inputs = adapter.a->shape[0];
        const size_t all = adapter.a->shape[1];
        room->us = carve(carver, n * all);
        room->ds = carve(carver, n * all);
        room->a = carve(carver, dp_packed_floats(gpt->ops, inputs, all));
        room->a_t = carve(carver, dp_packed_floats(gpt->ops, all, inputs));
        for (size_t i = 0; i < adapter.n_parts; i++) {
            const size_t columns = adapter.parts[i].columns;
            room->b[i] = carve(carver, dp_packed_floats(gpt->ops, rank, columns));
            room->b_t[i] = carve(carver, dp_packed_floats(gpt->ops, columns, rank));
        }
    }
}

size_t dp_gpt_carve(dp_gpt *gpt, float *base)
{
    struct carver at = {.base = base};
    struct carver *const carver = &at;
    const dp_model_config *config = &gpt->model->config;
    const dp_gpt_sizes *s = &gpt->sizes;
    const size_t n = gpt->rows_max * config->context;
    gpt->params = carve(carver, gpt->trained->n_elements);
    gpt->weights = gpt->params;
    gpt->grads = gpt->grads_elsewhere ? NULL : carve(carver, gpt->trained->n_elements);
    carve_layers(gpt, carver);
    carve_adapters(gpt, carver);
    if (config->rope_theta != 0) {
        gpt->angles[DP_ROPE_USUAL] = carve(carver, (size_t)config->context * gpt->head);
    }
    if (config->rope_local_theta != 0) {
        gpt->angles[DP_ROPE_LOCAL] = carve(carver, (size_t)config->context * gpt->head);
    }
    gpt->last = carve(carver, n * s->width);
    gpt->meanf = carve(carver, n);
    gpt->rstdf = carve(carver, n);
    carve_all_packs(gpt, carver);
    gpt->logits = carve(carver, gpt->head_tokens * config->vocab);
    gpt->losses = carve(carver, n);
    gpt->positions_room = (uint32_t *)carve(carver, n); /* As large as floats. */
    gpt->dx = carve(carver, n * s->width);
    gpt->dx_next = carve(carver, n * s->width);
    gpt->d_middle = carve(carver, n * s->width);
    gpt->d_att = carve(carver, n * s->query);
    if (dp_model_has(gpt->model, DP_HAS_NORMS_AFTER)) {
        gpt->d_out = carve(carver, n * s->width);
        gpt->d_down = carve(carver, n * s->width);
    }
    gpt->d_norm1 = carve(carver, n * s->width);
    gpt->d_norm2 = carve(carver, n * s->width);
    gpt->d_qkv = carve(carver, n * s->qkv);
    gpt->d_hidden = carve(carver, n * s->up);
    gpt->scratch = carve(carver, dp_pool_threads(gpt->pool) * gpt->scratch_size);
    return carver->used;
}

dp_gpt dp_gpt_setup(const dp_model *model, const dp_gpt_options *options)
{
    static const dp_activation_kind kinds[] = {[DP_ACTIVATION_GELU] = DP_GELU,
                                               [DP_ACTIVATION_RELU2] = DP_RELU2,
                                               [DP_ACTIVATION_SWIGLU] = DP_SWIGLU,
                                               [DP_ACTIVATION_GEGLU] = DP_GEGLU,
                                               [DP_ACTIVATION_GELU_ERF] = DP_GELU_ERF};
    const dp_model_config *const config = &model->config;
    dp_gpt gpt = {
        .model = dp_model_whole(model),
        .trained = model,
        .base = options->base,
        .ops = options->ops != NULL ? options->ops : dp_ops_best_in(options->precision),
        .pool = options->pool,
        .recompute = options->recompute,
        .packs = options->packs,
        .grads_elsewhere = options->grads_elsewhere,
        .stale = {true, true},
        .norms = dp_model_has(model, DP_HAS_LAYER_NORM) ? &dp_gpt_layer_norm : &dp_gpt_rms_norm,
        .rows_max = options->rows_max,
        .head = config->head_width,
        .softcap = (float)config->softcap_milli * 1e-3F,
        .embed_scale =
            dp_model_has(model, DP_HAS_SCALED_EMBEDDING) ? sqrtf((float)config->width) : 1.0F,
        .scores_scale =
            config->query_scalar == 0 ? 0.0F : (float)(1.0 / sqrt((double)config->query_scalar)),
        .scores_cap = (float)config->scores_softcap_milli * 1e-3F};
    gpt.activation = &gpt.ops->activations[kinds[config->activation]];
    gpt.sizes = (dp_gpt_sizes){
        .width = config->width,
        .qkv = (config->heads + 2 * (size_t)config->kv_heads) * gpt.head,
        .query = config->heads * gpt.head,
        .up = gpt.activation->inputs * config->hidden,
        .hidden = config->hidden,
        .heads = config->heads,
        .kv_heads = config->kv_heads,
        .one = 1,
    };
    const size_t n = gpt.rows_max * config->context;
    gpt.head_tokens = HEAD_FLOATS / config->vocab;
    gpt.head_tokens = gpt.head_tokens < HEAD_TOKENS_MIN ? HEAD_TOKENS_MIN : gpt.head_tokens;
    gpt.head_tokens = gpt.head_tokens > n ? n : gpt.head_tokens;
    const size_t attention = dp_attention_scratch(config->context, gpt.head);
    const size_t tile = gpt.ops->tile_scratch;
    gpt.scratch_size = aligned(attention > tile ? attention : tile);
    return gpt;
}

dp_gpt_memory dp_gpt_memory_of(const dp_model *model, const dp_gpt_options *options, size_t threads)
{
    dp_gpt_options alone = *options;
    alone.pool = NULL;
    alone.grads_elsewhere = false;
    dp_gpt gpt = dp_gpt_setup(model, &alone);
    const uint64_t total = dp_gpt_carve(&gpt, NULL);
    const uint64_t packed = dp_gpt_packed_floats(&gpt);
    const uint64_t arena = aligned(model->n_elements);
    return (dp_gpt_memory){
        .params = sizeof(float) * arena,
        .grads = sizeof(float) * arena,
        .packed = sizeof(float) * packed,
        .scratch = sizeof(float) * threads * gpt.scratch_size,
        .activations = sizeof(float) * (total - 2 * arena - packed - gpt.scratch_size),
    };
}
