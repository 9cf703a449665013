#include "compute/model/gpt_norm.h"

/* The two kinds, behind the same calls. */
struct dp_gpt_norm_kind {
    void (*forward)(const dp_gpt *gpt, const dp_gpt_norm *norm, dp_gpt_range range, float *y);
    void (*again)(const dp_gpt *gpt, const dp_gpt_norm *norm, dp_gpt_range range, float *y);
    void (*backward)(const dp_gpt *gpt, const dp_gpt_norm *norm, dp_gpt_range range,
                     const float *dy, const float *residual, float *dx);
    void (*grads)(const dp_gpt *gpt, const dp_gpt_norm *norm, size_t first, size_t last,
                  const float *dy);
};

static dp_norm_rows layer_rows(const dp_gpt *gpt, const dp_gpt_norm *norm, dp_gpt_range range)
{
    const size_t c = gpt->sizes.width;
    return (dp_norm_rows){.rows = range.count,
                          .width = c,
                          .x = norm->x + range.first * c,
                          .gain = norm->gain,
                          .mean = norm->mean + range.first,
                          .rstd = norm->rstd + range.first};
}

static void layer_forward(const dp_gpt *gpt, const dp_gpt_norm *norm, dp_gpt_range range, float *y)
{
    const dp_norm_rows rows = layer_rows(gpt, norm, range);
    gpt->ops->norm_forward(&rows, norm->bias, y);
}

static void layer_again(const dp_gpt *gpt, const dp_gpt_norm *norm, dp_gpt_range range, float *y)
{
    const dp_norm_rows rows = layer_rows(gpt, norm, range);
    gpt->ops->norm_again(&rows, norm->bias, y);
}

static void layer_backward(const dp_gpt *gpt, const dp_gpt_norm *norm, dp_gpt_range range,
                           const float *dy, const float *residual, float *dx)
{
    const dp_norm_rows rows = layer_rows(gpt, norm, range);
    gpt->ops->norm_backward(&rows, dy, residual, dx);
}

static void layer_grads(const dp_gpt *gpt, const dp_gpt_norm *norm, size_t first, size_t last,
                        const float *dy)
{
    const dp_norm_rows rows = layer_rows(gpt, norm, (dp_gpt_range){0, gpt->tokens});
    gpt->ops->norm_grads(&rows, dy, first, last, norm->d_gain, norm->d_bias);
}

const struct dp_gpt_norm_kind dp_gpt_layer_norm = {layer_forward, layer_again, layer_backward,
                                                   layer_grads};

static dp_rms_rows rms_rows(const dp_gpt *gpt, const dp_gpt_norm *norm, dp_gpt_range range)
{
    const size_t c = gpt->sizes.width;
    return (dp_rms_rows){.rows = range.count,
                         .groups = 1,
                         .width = c,
                         .eps = (float)gpt->model->config.norm_eps_nano * 1e-9F,
                         .x = norm->x + range.first * c,
                         .ld = c,
                         .gain = norm->gain,
                         .rstd = norm->rstd + range.first};
}

static void rms_forward(const dp_gpt *gpt, const dp_gpt_norm *norm, dp_gpt_range range, float *y)
{
    const dp_rms_rows rows = rms_rows(gpt, norm, range);
    gpt->ops->rms_forward(&rows, y, gpt->sizes.width);
}

static void rms_again(const dp_gpt *gpt, const dp_gpt_norm *norm, dp_gpt_range range, float *y)
{
    const dp_rms_rows rows = rms_rows(gpt, norm, range);
    gpt->ops->rms_again(&rows, y, gpt->sizes.width);
}

static void rms_backward(const dp_gpt *gpt, const dp_gpt_norm *norm, dp_gpt_range range,
                         const float *dy, const float *residual, float *dx)
{
    const dp_rms_rows rows = rms_rows(gpt, norm, range);
    gpt->ops->rms_backward(&rows, dy, residual, dx, gpt->sizes.width);
}

static void rms_grads(const dp_gpt *gpt, const dp_gpt_norm *norm, size_t first, size_t last,
                      const float *dy)
{
    const dp_rms_rows rows = rms_rows(gpt, norm, (dp_gpt_range){0, gpt->tokens});
    gpt->ops->rms_grads(&rows, dy, gpt->sizes.width, first, last, norm->d_gain);
}

const struct dp_gpt_norm_kind dp_gpt_rms_norm = {rms_forward, rms_again, rms_backward, rms_grads};

static dp_gpt_norm norm_at(const dp_gpt *gpt, dp_gpt_place place)
{
    const dp_gpt_layer *const layer = &gpt->layers[gpt->layer];
    const size_t l = place == DP_GPT_NORM_LAST ? 0 : gpt->layer;
    dp_gpt_norm norm = {0};
    dp_slot gain = DP_SLOT_NORM_W;
    const bool parallel = dp_model_has(gpt->model, DP_HAS_PARALLEL_PARTS);
    switch (place) {
    case DP_GPT_NORM1:
        gain = DP_LAYER_NORM1_W;
        norm = (dp_gpt_norm){.x = layer->x, .mean = layer->mean1, .rstd = layer->rstd1};
        break;
    case DP_GPT_NORM2:
        gain = DP_LAYER_NORM2_W;
        norm = (dp_gpt_norm){
            .x = parallel ? layer->x : layer->middle, .mean = layer->mean2, .rstd = layer->rstd2};
        break;
    case DP_GPT_NORM_OUT:
        gain = DP_LAYER_OUT_NORM;
        norm = (dp_gpt_norm){.x = layer->out, .rstd = layer->rstd_out};
        break;
    case DP_GPT_NORM_DOWN:
        gain = DP_LAYER_DOWN_NORM;
        norm = (dp_gpt_norm){.x = layer->down, .rstd = layer->rstd_down};
        break;
    case DP_GPT_NORM_LAST:
        norm = (dp_gpt_norm){.x = gpt->last, .mean = gpt->meanf, .rstd = gpt->rstdf};
        break;
    }
    norm.gain = dp_gpt_weight(gpt, l, gain);
    norm.d_gain = dp_gpt_grad(gpt, l, gain);
    if (gpt->norms == &dp_gpt_layer_norm) {
        norm.bias = dp_gpt_weight(gpt, l, (dp_slot)(gain + 1));
        norm.d_bias = dp_gpt_grad(gpt, l, (dp_slot)(gain + 1));
    }
    return norm;
}

void dp_gpt_norm_forward(const dp_gpt *gpt, dp_gpt_place place, dp_gpt_range range, float *y)
{
    const dp_gpt_norm norm = norm_at(gpt, place);
    gpt->norms->forward(gpt, &norm, range, y + range.first * gpt->sizes.width);
}

void dp_gpt_norm_again(const dp_gpt *gpt, dp_gpt_place place, dp_gpt_range range, float *y)
{
    const dp_gpt_norm norm = norm_at(gpt, place);
    gpt->norms->again(gpt, &norm, range, y + range.first * gpt->sizes.width);
}

void dp_gpt_norm_backward(const dp_gpt *gpt, dp_gpt_place place, dp_gpt_range range,
                          const float *dy, const float *residual, float *dx)
{
    const dp_gpt_norm norm = norm_at(gpt, place);
    const size_t at = range.first * gpt->sizes.width;
    gpt->norms->backward(gpt, &norm, range, dy + at, residual == NULL ? NULL : residual + at,
                         dx + at);
}

void dp_gpt_norm_grads(const dp_gpt *gpt, dp_gpt_place place, size_t tile, const float *dy)
{
    const size_t c = gpt->sizes.width;
    const size_t first = tile * DP_OPS_TILE;
    if (first < c) {
        const dp_gpt_norm norm = norm_at(gpt, place);
        const size_t last = c - first < DP_OPS_TILE ? c : first + DP_OPS_TILE;
        gpt->norms->grads(gpt, &norm, first, last, dy);
    }
}

const float *dp_gpt_input1(const dp_gpt *gpt)
{
    const dp_gpt_layer *const layer = &gpt->layers[gpt->layer];
    return dp_model_has(gpt->model, DP_HAS_NORMS_BEFORE) ? layer->norm1 : layer->x;
}

const float *dp_gpt_input2(const dp_gpt *gpt)
{
    const dp_gpt_layer *const layer = &gpt->layers[gpt->layer];
    return dp_model_has(gpt->model, DP_HAS_NORMS_BEFORE) ? layer->norm2 : layer->middle;
}
