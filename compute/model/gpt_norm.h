/* The norms of the engine, and the operations on q and k. Private to gpt_*.c. */
#ifndef DP_COMPUTE_MODEL_GPT_NORM_H
#define DP_COMPUTE_MODEL_GPT_NORM_H

#include "compute/model/gpt_inside.h"

/* ---- gpt_norm.c: the norms of the residual stream, LayerNorm or RMSNorm. */

/* The place of a norm: in the running layer, or after all layers. */
typedef enum dp_gpt_place {
    DP_GPT_NORM1,
    DP_GPT_NORM2,
    DP_GPT_NORM_OUT, /* behind attention */
    DP_GPT_NORM_DOWN,
    DP_GPT_NORM_LAST
} dp_gpt_place;

typedef struct dp_gpt_norm {
    const float *x; /* [N][C] */
    const float *gain;
    const float *bias; /* NULL for RMSNorm, as all biases */
    float *d_gain;
    float *d_bias;
    float *mean;
    float *rstd;
} dp_gpt_norm;

extern const struct dp_gpt_norm_kind dp_gpt_layer_norm;
extern const struct dp_gpt_norm_kind dp_gpt_rms_norm;

/* y, dy, residual, dx: [N][C]; those of range are touched. residual: NULL for 0, of norms behind a
 * part alone. */
void dp_gpt_norm_forward(const dp_gpt *gpt, dp_gpt_place place, dp_gpt_range range, float *y);
void dp_gpt_norm_again(const dp_gpt *gpt, dp_gpt_place place, dp_gpt_range range, float *y);
void dp_gpt_norm_backward(const dp_gpt *gpt, dp_gpt_place place, dp_gpt_range range,
                          const float *dy, const float *residual, float *dx);
/* Gradients of gain and bias over all tokens for a tile of columns; no columns beyond the width are
 * touched. */
void dp_gpt_norm_grads(const dp_gpt *gpt, dp_gpt_place place, size_t tile, const float *dy);

/* The inputs of attention and of the feed-forward part: normed, or the residual stream itself. */
const float *dp_gpt_input1(const dp_gpt *gpt);
const float *dp_gpt_input2(const dp_gpt *gpt);

/* ---- gpt_qk.c: the operations on q and k between their product and attention: norms of the heads
 * where the model has them, then rotary positions where the layer has them. All on a range of the
 * running layer. */

void dp_gpt_qk_forward(const dp_gpt *gpt, dp_gpt_range range);
/* qk once more from qkv, the same bits; nothing where there are no norms. */
void dp_gpt_qk_again(const dp_gpt *gpt, dp_gpt_range range);
/* d_qkv from behind to before. Where there are norms, qk then holds the gradient behind them. */
void dp_gpt_qk_backward(const dp_gpt *gpt, dp_gpt_range range);
/* Gradients of the norms' gains over all tokens, after dp_gpt_qk_backward of all. */
void dp_gpt_qk_grads(const dp_gpt *gpt, size_t tile);

#endif
