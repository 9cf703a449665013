
/* Decoding: a cache of keys and values, and products of few rows. */
#include "compute/model/gpt_decode_inside.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

/* Weights of a task: 64 KiB take a few microseconds, about as long as a thread to wake up. */
enum { TASK_FLOATS = 1 << 14 };

/* ---- the cache ---- */

static size_t row_floats(const dp_model_config *config)
{
    return (size_t)2 * config->kv_heads * config->head_width;
}

static size_t cache_floats(const dp_model_config *config)
{
    return (size_t)config->layers * config->context * row_floats(config);
}

size_t dp_gpt_cache_bytes(const dp_model *model)
{
    return sizeof(dp_gpt_cache) + cache_floats(&model->config) * sizeof(float);
}

dp_status dp_gpt_cache_open(dp_gpt_cache **out, const dp_gpt *gpt)
{
    dp_gpt_cache *const cache = dp_alloc(1, sizeof *cache);
    if (cache == NULL) {
        return DP_NOMEM;
    }
    *cache = (dp_gpt_cache){
        .gpt = gpt, .kept = dp_alloc(cache_floats(&gpt->model->config), sizeof *cache->kept)};
    if (cache->kept == NULL) {
        dp_free(cache);
        return DP_NOMEM;
    }
    *out = cache;
    return DP_OK;
}

void dp_gpt_cache_close(dp_gpt_cache *cache)
{
    if (cache != NULL) {
        dp_free(cache->kept);
        dp_free(cache);
    }
}

size_t dp_gpt_cache_length(const dp_gpt_cache *cache)
{
    return cache->length;
}

void dp_gpt_cache_clear(dp_gpt_cache *cache)
{
    cache->length = 0;
}

void dp_gpt_keep(const dp_gpt *gpt, dp_gpt_range range)
{
    if (gpt->cache == NULL) {
        return;
    }
    const dp_gpt_layer *const layer = &gpt->layers[gpt->layer];
    const float *const qk = layer->qk != NULL ? layer->qk : layer->qkv;
    const size_t width = gpt->sizes.kv_heads * gpt->head;
    for (size_t i = range.first; i < range.first + range.count; i++) {
        const size_t k = i * gpt->sizes.qkv + gpt->sizes.query;
        float *const kept = dp_gpt_kept(gpt, gpt->past + i);
        memcpy(kept, qk + k, width * sizeof *kept);
        memcpy(kept + width, layer->qkv + k + width, width * sizeof *kept);
    }
}

/* ---- products of few rows ---- */

bool dp_gpt_is_thin(const dp_gpt *gpt)
{
    const size_t threads = dp_pool_threads(gpt->pool);
    return gpt->cache != NULL && !dp_gpt_adapts(gpt) && threads > 1 &&
           dp_gpt_slices(gpt->tokens, gpt->slice) < threads;
}

size_t dp_gpt_thin_columns(const dp_gpt *gpt, size_t n)
{
    const size_t panels = (n + gpt->ops->panel - 1) / gpt->ops->panel;
    const size_t threads = dp_pool_threads(gpt->pool);
    return (panels + threads - 1) / threads * gpt->ops->panel;
}

struct thin_job {
    const dp_gpt *gpt;
    dp_slot slot;
    const float *in;
    float *out;
    const float *residual;
    size_t n;
    size_t columns; /* of a task */
};

static void thin_task(void *ctx, size_t index, size_t worker)
{
    const struct thin_job *const job = ctx;
    (void)worker;
    const size_t first = index * job->columns;
    const size_t left = job->n - first;
    dp_gpt_linear(job->gpt, job->slot, job->in, job->out, job->residual,
                  (dp_gpt_range){0, job->gpt->tokens},
                  (dp_gpt_range){first, left < job->columns ? left : job->columns});
}

static void thin_linear(const dp_gpt *gpt, dp_slot slot, const float *in, float *out,
                        const float *residual)
{
    const dp_tensor *const tensor = dp_model_tensor(gpt->model, gpt->layer, slot);
    struct thin_job job = {.gpt = gpt,
                           .slot = slot,
                           .in = in,
                           .out = out,
                           .residual = residual,
                           .n = tensor->shape[1],
                           .columns = tensor->shape[1]};
    if (tensor->elements > TASK_FLOATS) {
        job.columns = dp_gpt_thin_columns(gpt, job.n);
    }
    dp_pool_run(gpt->pool, (job.n + job.columns - 1) / job.columns, thin_task, &job);
}

/* As add_part in gpt_forward.c. */
static void thin_add_part(const dp_gpt *gpt, dp_slot slot, const float *in, float *out,
                          dp_gpt_place place, const float *residual, float *y)
{
    if (out == NULL) {
        thin_linear(gpt, slot, in, y, residual);
        return;
    }
    thin_linear(gpt, slot, in, out, NULL);
    dp_gpt_norm_forward(gpt, place, (dp_gpt_range){0, gpt->tokens}, y);
    gpt->ops->add(residual, y, gpt->tokens * gpt->sizes.width);
}

void dp_gpt_thin_layer(dp_gpt *gpt)
{
    const dp_gpt_range all = {0, gpt->tokens};
    const dp_gpt_layer *const layer = &gpt->layers[gpt->layer];
    if (gpt->layer == 0) {
        dp_gpt_embed(gpt, all, 0);
    }
    dp_gpt_norm_before(gpt, DP_GPT_NORM1, all, layer->norm1);
    thin_linear(gpt, DP_LAYER_QKV_W, dp_gpt_input1(gpt), layer->qkv, NULL);
    dp_gpt_qk_forward(gpt, all);
    dp_gpt_keep(gpt, all);
    dp_pool_run(gpt->pool, dp_gpt_attention_tasks(gpt), dp_gpt_attention_task, gpt);
    thin_add_part(gpt, DP_LAYER_OUT_W, layer->att, layer->out, DP_GPT_NORM_OUT, layer->x,
                  layer->middle);
    dp_gpt_norm_before(gpt, DP_GPT_NORM2, all, layer->norm2);
    thin_linear(gpt, DP_LAYER_UP_W, dp_gpt_input2(gpt), layer->hidden, NULL);
    gpt->activation->forward(layer->hidden, gpt->tokens, gpt->sizes.hidden, layer->act);
    thin_add_part(gpt, DP_LAYER_DOWN_W, layer->act, layer->down, DP_GPT_NORM_DOWN, layer->middle,
                  dp_gpt_next(gpt));
}

/* ---- decoding ---- */

dp_status dp_gpt_decode(dp_gpt *gpt, dp_gpt_cache *cache, const uint32_t *tokens, size_t n,
                        float *logits)
{
    dp_assert(cache->gpt == gpt);
    if (n > gpt->model->config.context - cache->length) {
        return DP_BADARG;
    }
    gpt->cache = cache;
    gpt->past = cache->length;
    const dp_status status = dp_gpt_logits(gpt, tokens, n, logits);
    gpt->cache = NULL;
    gpt->past = 0;
    if (status == DP_OK || status == DP_DIVERGED) {
        cache->length += n;
    }
    return status;
}
