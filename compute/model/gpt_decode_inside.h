/* The cache of decoding, and the parts of a layer by themselves. Private to gpt_*.c. */
#ifndef DP_COMPUTE_MODEL_GPT_DECODE_INSIDE_H
#define DP_COMPUTE_MODEL_GPT_DECODE_INSIDE_H

#include "compute/model/gpt_inside.h"
#include "compute/model/gpt_norm.h"

/* ---- gpt_decode.c */

/* The keys and values of one sequence: [layers][context][2][kv heads][head]. */
struct dp_gpt_cache {
    const dp_gpt *gpt;
    size_t length; /* tokens */
    float *kept;
};

/* k of the running layer at a position; v stands kv heads * head floats behind it. */
static inline float *dp_gpt_kept(const dp_gpt *gpt, size_t position)
{
    const size_t row = 2 * gpt->sizes.kv_heads * gpt->head;
    return gpt->cache->kept + (gpt->layer * gpt->model->config.context + position) * row;
}

/* Copies k and v of a range of the running layer into the cache, if there is one. */
void dp_gpt_keep(const dp_gpt *gpt, dp_gpt_range range);
/* Columns of a task, of n columns of a product of few rows: whole panels. */
size_t dp_gpt_thin_columns(const dp_gpt *gpt, size_t n);
/* True if the batch has too few tokens for a slice per thread: columns of products are divided
 * among the threads then, and not its tokens. */
bool dp_gpt_is_thin(const dp_gpt *gpt);
/* One layer, after its weights are packed, for such a batch. The same bits as of slices. */
void dp_gpt_thin_layer(dp_gpt *gpt);

/* ---- gpt_forward.c */

/* x of layer 0: the token's row of the embedding, scaled (+ that of its position). */
void dp_gpt_embed(const dp_gpt *gpt, dp_gpt_range range, size_t worker);
/* out[range][columns] = in * weight + bias (+ residual): one linear layer, of the running layer, or
 * some columns of it, which begin at whole panels; columns.count 0: all, and only then adapters are
 * added. */
void dp_gpt_linear(const dp_gpt *gpt, dp_slot slot, const float *in, float *out,
                   const float *residual, dp_gpt_range range, dp_gpt_range columns);
/* The task of one (row, kv head) of dp_gpt_attention_tasks. ctx: the dp_gpt. */
void dp_gpt_attention_task(void *ctx, size_t index, size_t worker);
/* The norm before a part, where the model has one. */
void dp_gpt_norm_before(const dp_gpt *gpt, dp_gpt_place place, dp_gpt_range range, float *y);
/* gpt_head.c: logits of the last token of the first row. */
void dp_gpt_head_last(dp_gpt *gpt, float *logits);
/* The residual stream behind the running layer. */
float *dp_gpt_next(const dp_gpt *gpt);

#endif
