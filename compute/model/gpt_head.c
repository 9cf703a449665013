/* The end of the model: final norm, logits, loss. Logits live for head_tokens at a time. */
#include "compute/model/gpt_decode_inside.h"

#include <string.h>

/* logits [range.count][V], before any soft cap; normed holds the normed rows afterwards. */
static void logits_of(const dp_gpt *gpt, dp_gpt_range range, float *logits)
{
    const size_t c = gpt->sizes.width;
    dp_gpt_norm_forward(gpt, DP_GPT_NORM_LAST, range, gpt->normed);
    gpt->ops->gemm(
        &(dp_gemm){.m = range.count,
                   .n = gpt->model->config.vocab,
                   .k = c,
                   .a = gpt->normed + range.first * c,
                   .a_row = c,
                   .a_depth = 1,
                   .packed = gpt->packed_head,
                   .c = logits,
                   .ldc = gpt->model->config.vocab,
                   .begin = dp_gpt_begin(range.first, gpt->tokens, gpt->model->config.vocab)});
}

static void head_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    const size_t c = gpt->sizes.width;
    const size_t v = gpt->model->config.vocab;
    const size_t inside = index * gpt->head_slice;
    const size_t left = gpt->head_count - inside;
    const size_t count = left < gpt->head_slice ? left : gpt->head_slice;
    const size_t first = gpt->head_first + inside;
    float *logits = gpt->logits + inside * v;
    logits_of(gpt, (dp_gpt_range){first, count}, logits);
    gpt->ops->classifier(&(dp_classifier){.logits = logits,
                                          .targets = gpt->batch.y + first,
                                          .rows = count,
                                          .vocab = v,
                                          .softcap = gpt->softcap,
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
                              .ldc = c,
                              .begin = dp_gpt_begin(first, gpt->tokens, c)});
    memset(gpt->dx + first * c, 0, count * c * sizeof *gpt->dx);
    dp_gpt_norm_backward(gpt, DP_GPT_NORM_LAST, (dp_gpt_range){first, count}, gpt->d_norm1, gpt->dx,
                         gpt->dx);
}

/* Columns of a task of the head's gradient. */
static size_t run_of(const dp_gpt *gpt)
{
    return dp_gpt_run(gpt, dp_gpt_row_tiles(gpt, gpt->model->config.vocab) *
                               dp_gpt_tiles(gpt->sizes.width));
}

static size_t runs_of(const dp_gpt *gpt)
{
    return (gpt->sizes.width + run_of(gpt) - 1) / run_of(gpt);
}

/* Some rows and columns of the gradient of the head's weight. */
static void head_grad_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    const size_t c = gpt->sizes.width;
    const size_t v = gpt->model->config.vocab;
    const size_t run = run_of(gpt);
    const size_t row = index / runs_of(gpt) * gpt->ops->tile_rows;
    const size_t column = index % runs_of(gpt) * run;
    gpt->ops->gemm_tn(&(dp_gemm_tn){
        .m = v - row < gpt->ops->tile_rows ? v - row : gpt->ops->tile_rows,
        .n = c - column < run ? c - column : run,
        .k = gpt->head_count,
        .a = gpt->logits + row,
        .lda = v,
        .b = gpt->normed + gpt->head_first * c + column,
        .ldb = c,
        .c = gpt->grads + dp_model_head(gpt->model)->offset + row * c + column,
        .ldc = c,
        .fresh = gpt->first_terms && gpt->head_first == 0,
        .cold = dp_gpt_cold(gpt),
        .scratch = dp_gpt_scratch(gpt, worker),
    });
}

static void final_norm_grad_task(void *ctx, size_t index, size_t worker)
{
    const dp_gpt *gpt = ctx;
    (void)worker;
    dp_gpt_norm_grads(gpt, DP_GPT_NORM_LAST, index, gpt->d_norm1);
}

void dp_gpt_head(dp_gpt *gpt)
{
    const size_t c = gpt->sizes.width;
    const size_t v = gpt->model->config.vocab;
    dp_gpt_pack_head(gpt);
    for (size_t first = 0; first < gpt->tokens; first += gpt->head_tokens) {
        gpt->head_first = first;
        gpt->head_count =
            gpt->tokens - first < gpt->head_tokens ? gpt->tokens - first : gpt->head_tokens;
        gpt->head_slice = dp_gpt_slice_of(gpt->head_count, dp_pool_threads(gpt->pool));
        dp_pool_run(gpt->pool, dp_gpt_slices(gpt->head_count, gpt->head_slice), head_task, gpt);
        if (gpt->backward && !dp_gpt_adapts(gpt)) {
            dp_pool_run(gpt->pool, dp_gpt_row_tiles(gpt, v) * runs_of(gpt), head_grad_task, gpt);
        }
    }
    if (gpt->backward && !dp_gpt_adapts(gpt)) {
        dp_pool_run(gpt->pool, dp_gpt_tiles(c), final_norm_grad_task, gpt);
    }
}

/* Some columns of the logits of the last token. */
struct last_job {
    const dp_gpt *gpt;
    float *logits;
    size_t columns; /* of a task */
};

static void last_task(void *ctx, size_t index, size_t worker)
{
    const struct last_job *const job = ctx;
    const dp_gpt *const gpt = job->gpt;
    (void)worker;
    const size_t c = gpt->sizes.width;
    const size_t v = gpt->model->config.vocab;
    const size_t first = index * job->columns;
    gpt->ops->gemm(&(dp_gemm){.m = 1,
                              .n = v - first < job->columns ? v - first : job->columns,
                              .k = c,
                              .a = gpt->normed + (gpt->tokens - 1) * c,
                              .a_row = c,
                              .a_depth = 1,
                              .packed = gpt->packed_head + dp_packed_floats(gpt->ops, c, first),
                              .c = job->logits + first,
                              .ldc = v});
}

void dp_gpt_head_last(dp_gpt *gpt, float *logits)
{
    const size_t v = gpt->model->config.vocab;
    struct last_job job = {gpt, logits, dp_gpt_thin_columns(gpt, v)};
    dp_gpt_pack_head(gpt);
    dp_gpt_norm_forward(gpt, DP_GPT_NORM_LAST, (dp_gpt_range){gpt->tokens - 1, 1}, gpt->normed);
    dp_pool_run(gpt->pool, (v + job.columns - 1) / job.columns, last_task, &job);
    if (gpt->softcap > 0.0F) {
        gpt->ops->softcap(logits, gpt->model->config.vocab, gpt->softcap);
    }
}
