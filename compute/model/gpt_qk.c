#include "compute/model/gpt_inside.h"

#include <string.h>

/* q or k of the running layer: where its columns start, its heads, and its norm. */
typedef struct side {
    size_t column; /* in qkv */
    size_t groups;
    dp_slot gain;
    float *rstd;
} side;

enum { SIDES = 2 };

static void sides_of(const dp_gpt *gpt, side sides[SIDES])
{
    const dp_gpt_layer *const layer = &gpt->layers[gpt->layer];
    sides[0] = (side){0, gpt->sizes.heads, DP_LAYER_Q_NORM, layer->q_rstd};
    sides[1] = (side){gpt->sizes.query, gpt->sizes.kv_heads, DP_LAYER_K_NORM, layer->k_rstd};
}

/* The norm reads qkv. */
static dp_rms_rows norm_of(const dp_gpt *gpt, const side *s, dp_gpt_range range)
{
    const size_t ld = gpt->sizes.qkv;
    return (dp_rms_rows){.rows = range.count,
                         .groups = s->groups,
                         .width = gpt->head,
                         .eps = (float)gpt->model->config.norm_eps_nano * 1e-9F,
                         .x = gpt->layers[gpt->layer].qkv + range.first * ld + s->column,
                         .ld = ld,
                         .gain = dp_gpt_weight(gpt, gpt->layer, s->gain),
                         .rstd = s->rstd + range.first * s->groups};
}

/* Turns the columns of one side of x [N][qkv]. */
static void rotate(const dp_gpt *gpt, const side *s, dp_gpt_range range, float *x, bool back)
{
    const size_t ld = gpt->sizes.qkv;
    gpt->ops->rope(&(dp_rope_rows){.rows = range.count,
                                   .groups = s->groups,
                                   .width = gpt->head,
                                   .x = x + range.first * ld + s->column,
                                   .ld = ld,
                                   .angles = gpt->angles,
                                   .first = range.first,
                                   .length = gpt->batch.length},
                   back);
}

void dp_gpt_qk_forward(const dp_gpt *gpt, dp_gpt_range range)
{
    if (gpt->angles == NULL) {
        return;
    }
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
    if (gpt->angles == NULL) {
        return;
    }
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
    if (layer->qk == NULL || first >= gpt->head) {
        return;
    }
    const size_t last = gpt->head - first < DP_OPS_TILE ? gpt->head : first + DP_OPS_TILE;
    side sides[SIDES];
    sides_of(gpt, sides);
    for (size_t i = 0; i < SIDES; i++) {
        const dp_rms_rows norm = norm_of(gpt, &sides[i], (dp_gpt_range){0, gpt->tokens});
        gpt->ops->rms_grads(&norm, layer->qk + sides[i].column, gpt->sizes.qkv, first, last,
                            dp_gpt_grad(gpt, gpt->layer, sides[i].gain));
    }
}
