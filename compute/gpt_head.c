/* The end of the model: final LayerNorm, logits over the tied embedding, loss. Logits live for head_tokens at a time. */
#include "compute/gpt_inside.h"

#include <string.h>

static dp_norm_rows final_norm(const dp_gpt *gpt, dp_gpt_range range)
{
    const float *gain = gpt->params + dp_model_final_norm_offset(gpt->model, false);
    return dp_gpt_norm_rows(gpt, gpt->last, gain, gpt->meanf, gpt->rstdf, range);
}

/* logits [range.count][V]; norm1 holds the normed rows afterwards. */
static void logits_of(const dp_gpt *gpt, dp_gpt_range range, float *logits)
{
    const size_t c = gpt->model->config.width;
    const dp_norm_rows norm = final_norm(gpt, range);
    gpt->ops->norm_forward(&norm, gpt->params + dp_model_final_norm_offset(gpt->model, true),
                           gpt->norm1 + range.first * c);
    gpt->ops->gemm(&(dp_gemm){.m = range.count,
                              .n = gpt->model->config.vocab,
                              .k = c,
                              .a = gpt->norm1 + range.first * c,
                              .a_row = c,
                              .a_depth = 1,
                              .packed = gpt->packed_head,
                              .c = logits,
                              .ldc = gpt->model->config.vocab});
}

static void head_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const size_t c = gpt->model->config.width;
    const size_t v = gpt->model->config.vocab;
    const size_t inside = index * gpt->slice;
    const size_t left = gpt->head_count - inside;
    const size_t count = left < gpt->slice ? left : gpt->slice;
    const size_t first = gpt->head_first + inside;
    float *logits = gpt->logits + inside * v;
    logits_of(gpt, (dp_gpt_range){first, count}, logits);
    gpt->ops->classifier(&(dp_classifier){.logits = logits,
                                          .targets = gpt->batch.y + first,
                                          .rows = count,
                                          .vocab = v,
                                          .scale = gpt->scale,
                                          .losses = gpt->losses + first});
    if (!gpt->backward) {
        return;
    }
    gpt->ops->gemm(&(dp_gemm){.m = count,
                              .n = c,
                              .k = v,
                              .a = logits,
                              .a_row = v,
                              .a_depth = 1,
                              .packed = gpt->packed_head_t,
                              .c = gpt->d_norm1 + first * c,
                              .ldc = c});
    const dp_norm_rows norm = final_norm(gpt, (dp_gpt_range){first, count});
    float *dx = gpt->dx + first * c;
    memset(dx, 0, count * c * sizeof *dx);
    gpt->ops->norm_backward(&norm, gpt->d_norm1 + first * c, dx, dx);
}

static size_t tiles_of(size_t n)
{
    return (n + DP_OPS_TILE - 1) / DP_OPS_TILE;
}

/* One tile of the embedding's gradient as head weight. */
static void head_grad_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    const size_t c = gpt->model->config.width;
    const size_t v = gpt->model->config.vocab;
    const size_t row = index / tiles_of(c) * DP_OPS_TILE;
    const size_t column = index % tiles_of(c) * DP_OPS_TILE;
    gpt->ops->gemm_tn(&(dp_gemm_tn){
        .m = v - row < DP_OPS_TILE ? v - row : DP_OPS_TILE,
        .n = c - column < DP_OPS_TILE ? c - column : DP_OPS_TILE,
        .k = gpt->head_count,
        .a = gpt->logits + row,
        .lda = v,
        .b = gpt->norm1 + gpt->head_first * c + column,
        .ldb = c,
        .c = gpt->grads + row * c + column,
        .ldc = c,
        .scratch = dp_gpt_scratch(gpt, worker),
    });
}

static void final_norm_grad_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const size_t c = gpt->model->config.width;
    const size_t first = index * DP_OPS_TILE;
    const dp_norm_rows norm = final_norm(gpt, (dp_gpt_range){0, gpt->tokens});
    gpt->ops->norm_grads(&norm, gpt->d_norm1, first,
                         first + DP_OPS_TILE < c ? first + DP_OPS_TILE : c,
                         gpt->grads + dp_model_final_norm_offset(gpt->model, false),
                         gpt->grads + dp_model_final_norm_offset(gpt->model, true));
}

void dp_gpt_head(dp_gpt *gpt)
{
    const size_t c = gpt->model->config.width;
    const size_t v = gpt->model->config.vocab;
    for (size_t first = 0; first < gpt->tokens; first += gpt->head_tokens) {
        gpt->head_first = first;
        gpt->head_count =
            gpt->tokens - first < gpt->head_tokens ? gpt->tokens - first : gpt->head_tokens;
        dp_pool_run(gpt->pool, dp_gpt_slices(gpt->head_count, gpt->slice), head_task, gpt);
        if (gpt->backward) {
            dp_pool_run(gpt->pool, tiles_of(v) * tiles_of(c), head_grad_task, gpt);
        }
    }
    if (gpt->backward) {
        dp_pool_run(gpt->pool, tiles_of(c), final_norm_grad_task, gpt);
    }
}

void dp_gpt_head_last(dp_gpt *gpt, float *logits)
{
    logits_of(gpt, (dp_gpt_range){gpt->tokens - 1, 1}, logits);
}
