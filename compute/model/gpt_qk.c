#include "compute/model/gpt_norm.h"

#include <string.h>

/* q or k of the running layer: where its columns start, its heads, and its norm. */
typedef struct side {
    size_t column; /* in qkv */
    size_t heads;
    size_t groups; /* that are normed by themselves: heads, or all of them as one */
    size_t width;  /* of a group */
    dp_slot gain;
    float *rstd;
} side;

enum { SIDES = 2 };

static void sides_of(const dp_gpt *gpt, side sides[SIDES])
{
    const dp_gpt_layer *const layer = &gpt->layers[gpt->layer];
    const size_t heads = gpt->sizes.heads;
    const size_t kv_heads = gpt->sizes.kv_heads;
    const bool whole = dp_model_has(gpt->model, DP_HAS_WHOLE_NORMS);
    sides[0] = (side){.heads = heads, .gain = DP_LAYER_Q_NORM, .rstd = layer->q_rstd};
    sides[1] = (side){.column = gpt->sizes.query,
                      .heads = kv_heads,
                      .gain = DP_LAYER_K_NORM,
                      .rstd = layer->k_rstd};
    for (size_t i = 0; i < SIDES; i++) {
        sides[i].groups = whole ? 1 : sides[i].heads;
        sides[i].width = whole ? sides[i].heads * gpt->head : gpt->head;
    }
}

/* The norm reads qkv. */
static dp_rms_rows norm_of(const dp_gpt *gpt, const side *s, dp_gpt_range range)
{
    const size_t ld = gpt->sizes.qkv;
    return (dp_rms_rows){.rows = range.count,
                         .groups = s->groups,
                         .width = s->width,
                         .eps = (float)gpt->model->config.norm_eps_nano * 1e-9F,
                         .x = gpt->layers[gpt->layer].qkv + range.first * ld + s->column,
                         .ld = ld,
                         .gain = dp_gpt_weight(gpt, gpt->layer, s->gain),
                         .rstd = s->rstd + range.first * s->groups};
}

/* Turns the columns of one side of x [N][qkv], if the layer turns them. */
static void rotate(const dp_gpt *gpt, const side *s, dp_gpt_range range, float *x, bool back)
{
    const size_t ld = gpt->sizes.qkv;
    const float *const angles = gpt->angles[dp_gpt_traits(gpt).rope];
    if (angles == NULL) {
        return;
    }
    gpt->ops->rope(
        &(dp_rope_rows){.rows = range.count,
                        .groups = s->heads,
                        .width = gpt->head,
                        .x = x + range.first * ld + s->column,
                        .ld = ld,
                        .angles = angles,
                        .first = gpt->past + range.first,
                        .length = gpt->past + gpt->batch.length,
                        .positions = gpt->positions == NULL ? NULL : gpt->positions + range.first},
        back);
}

void dp_gpt_qk_forward(const dp_gpt *gpt, dp_gpt_range range)
{
    const dp_gpt_layer *const layer = &gpt->layers[gpt->layer];
    side sides[SIDES];
    sides_of(gpt, sides);
    for (size_t i = 0; i < SIDES; i++) {
        if (layer->qk != NULL) {
            const dp_rms_rows norm = norm_of(gpt, &sides[i], range);
            const size_t at = range.first * gpt->sizes.qkv + sides[i].column;
            gpt->ops->rms_forward(&norm, layer->qk + at, gpt->sizes.qkv);
        }
        rotate(gpt, &sides[i], range, layer->qk != NULL ? layer->qk : layer->qkv, false);
    }
}

void dp_gpt_qk_again(const dp_gpt *gpt, dp_gpt_range range)
{
    const dp_gpt_layer *const layer = &gpt->layers[gpt->layer];
    if (layer->qk == NULL) {
        return;
    }
    side sides[SIDES];
    sides_of(gpt, sides);
    for (size_t i = 0; i < SIDES; i++) {
        const dp_rms_rows norm = norm_of(gpt, &sides[i], range);
        const size_t at = range.first * gpt->sizes.qkv + sides[i].column;
        gpt->ops->rms_again(&norm, layer->qk + at, gpt->sizes.qkv);
        rotate(gpt, &sides[i], range, layer->qk, false);
    }
}

void dp_gpt_qk_backward(const dp_gpt *gpt, dp_gpt_range range)
{
    const dp_gpt_layer *const layer = &gpt->layers[gpt->layer];
    const size_t ld = gpt->sizes.qkv;
    side sides[SIDES];
    sides_of(gpt, sides);
    for (size_t i = 0; i < SIDES; i++) {
        rotate(gpt, &sides[i], range, gpt->d_qkv, true);
    }
    if (layer->qk == NULL) {
        return;
    }
    memcpy(layer->qk + range.first * ld, gpt->d_qkv + range.first * ld,
           range.count * ld * sizeof(float));
    for (size_t i = 0; i < SIDES; i++) {
        const dp_rms_rows norm = norm_of(gpt, &sides[i], range);
        const size_t at = range.first * ld + sides[i].column;
        gpt->ops->rms_backward(&norm, layer->qk + at, NULL, gpt->d_qkv + at, ld);
    }
}

void dp_gpt_qk_grads(const dp_gpt *gpt, size_t tile)
{
    const dp_gpt_layer *const layer = &gpt->layers[gpt->layer];
    const size_t first = tile * DP_OPS_TILE;
    side sides[SIDES];
    sides_of(gpt, sides);
    for (size_t i = 0; i < SIDES && layer->qk != NULL; i++) {
        const size_t n = sides[i].width;
        if (first < n) {
            const dp_rms_rows norm = norm_of(gpt, &sides[i], (dp_gpt_range){0, gpt->tokens});
            gpt->ops->rms_grads(&norm, layer->qk + sides[i].column, gpt->sizes.qkv, first,
                                n - first < DP_OPS_TILE ? n : first + DP_OPS_TILE,
                                dp_gpt_grad(gpt, gpt->layer, sides[i].gain));
        }
    }
}
