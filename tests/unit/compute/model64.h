/* Whole models of every family in float64, one token after the other, without optimizations: the
 * reference for the engine. Forward only; central differences of it check the gradients. Test
 * code. */
#ifndef DP_TESTS_MODEL64_H
#define DP_TESTS_MODEL64_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/model/gpt.h"

/* Nearly all of a test's time would go into checking the loops that it compares with. */
#if defined(__clang__)
#define UNCHECKED __attribute__((no_sanitize("address", "undefined", "thread")))
#else
#define UNCHECKED __attribute__((no_sanitize("address,undefined,thread"), optimize("O2")))
#endif

/* NULL when the model has no such tensor. */
static const double *weight64(const dp_model *model, const double *params, size_t layer,
                              dp_slot slot)
{
    const dp_tensor *const tensor = dp_model_tensor(model, layer, slot);
    return tensor == NULL ? NULL : params + tensor->offset;
}

/* LayerNorm with a bias, RMSNorm without. y may be x. */
UNCHECKED static void norm64(const dp_model *model, const double *x, const double *gain,
                             const double *bias, size_t n, double *y)
{
    double mean = 0.0;
    double variance = 0.0;
    for (size_t i = 0; i < n && bias != NULL; i++) {
        mean += x[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        variance += (x[i] - mean) * (x[i] - mean) / (double)n;
    }
    const double root = sqrt(variance + (double)model->config.norm_eps_nano * 1e-9);
    for (size_t i = 0; i < n; i++) {
        y[i] = (x[i] - mean) / root * gain[i] + (bias == NULL ? 0.0 : bias[i]);
    }
}

/* y [to] = x [from] * weight [from][to] + bias. */
UNCHECKED static void linear64(const double *x, const double *weight, const double *bias,
                               size_t from, size_t to, double *y)
{
    for (size_t j = 0; j < to; j++) {
        y[j] = bias == NULL ? 0.0 : bias[j];
        for (size_t i = 0; i < from; i++) {
            y[j] += x[i] * weight[i * to + j];
        }
    }
}

/* Norm and rotation of one head of q or k at position t. */
static void turn64(const dp_model *model, const double *gain, size_t t, double *x)
{
    const size_t n = model->config.head_width;
    if (gain != NULL) {
        norm64(model, x, gain, NULL, n, x);
    }
    if (model->config.rope_theta == 0) {
        return;
    }
    for (size_t i = 0; i < n / 2; i++) {
        const double angle =
            (double)t * pow((double)model->config.rope_theta, -2.0 * (double)i / (double)n);
        const double a = x[i];
        const double b = x[i + n / 2];
        x[i] = a * cos(angle) - b * sin(angle);
        x[i + n / 2] = b * cos(angle) + a * sin(angle);
    }
}

/* qkv [t + 1][heads of q, k, v], turned; out [heads of q]. */
static void attention64(const dp_model *model, const double *qkv, size_t t, double *out)
{
    const size_t head = model->config.head_width;
    const size_t heads = model->config.heads;
    const size_t kv_heads = model->config.kv_heads;
    const size_t ld = (heads + 2 * kv_heads) * head;
    double *p = calloc(t + 1, sizeof *p);
    for (size_t h = 0; h < heads; h++) {
        const double *q = qkv + t * ld + h * head;
        const double *k = qkv + (heads + h / (heads / kv_heads)) * head;
        const double *v = k + kv_heads * head;
        double sum = 0.0;
        for (size_t s = 0; s <= t; s++) {
            double score = 0.0;
            for (size_t i = 0; i < head; i++) {
                score += q[i] * k[s * ld + i];
            }
            p[s] = exp(score / sqrt((double)head)); /* Small models: no overflow. */
            sum += p[s];
        }
        for (size_t i = 0; i < head; i++) {
            out[h * head + i] = 0.0;
            for (size_t s = 0; s <= t; s++) {
                out[h * head + i] += p[s] / sum * v[s * ld + i];
            }
        }
    }
    free(p);
}

/* h [inputs of the activation] becomes [hidden]. */
static void activate64(const dp_model *model, double *h)
{
    const size_t n = model->config.hidden;
    for (size_t i = 0; i < n; i++) {
        switch (model->config.activation) {
        case DP_ACTIVATION_RELU2:
            h[i] = h[i] > 0.0 ? h[i] * h[i] : 0.0;
            break;
        case DP_ACTIVATION_SWIGLU:
            h[i] = h[i] / (1.0 + exp(-h[i])) * h[n + i];
            break;
        case DP_ACTIVATION_OWN:
        case DP_ACTIVATION_GELU:
            h[i] = 0.5 * h[i] *
                   (1.0 + tanh(sqrt(2.0 / M_PI) * (h[i] + 0.044715 * h[i] * h[i] * h[i])));
            break;
        }
    }
}

static void layer64(const dp_model *model, const double *params, size_t layer, double *x,
                    size_t length)
{
    const dp_model_config *m = &model->config;
    const size_t c = m->width;
    const size_t ld = (m->heads + 2 * (size_t)m->kv_heads) * m->head_width;
    const size_t up = dp_model_tensor(model, 0, DP_LAYER_UP_W)->shape[1];
    const double *w[DP_LAYER_SLOTS];
    for (int slot = 0; slot < DP_LAYER_SLOTS; slot++) {
        w[slot] = weight64(model, params, layer, (dp_slot)slot);
    }
    double *qkv = calloc(length * ld, sizeof *qkv);
    double *y = calloc(c + ld, sizeof *y);
    double *z = calloc(c, sizeof *z);
    double *h = calloc(up, sizeof *h);
    for (size_t t = 0; t < length; t++) {
        norm64(model, x + t * c, w[DP_LAYER_NORM1_W], w[DP_LAYER_NORM1_B], c, y);
        linear64(y, w[DP_LAYER_QKV_W], w[DP_LAYER_QKV_B], c, ld, qkv + t * ld);
        for (size_t head = 0; head < m->heads + (size_t)m->kv_heads; head++) {
            const double *gain = head < m->heads ? w[DP_LAYER_Q_NORM] : w[DP_LAYER_K_NORM];
            turn64(model, gain, t, qkv + t * ld + head * m->head_width);
        }
    }
    for (size_t t = 0; t < length; t++) {
        attention64(model, qkv, t, y);
        linear64(y, w[DP_LAYER_OUT_W], w[DP_LAYER_OUT_B], m->heads * (size_t)m->head_width, c, z);
        for (size_t i = 0; i < c; i++) {
            x[t * c + i] += z[i];
        }
        norm64(model, x + t * c, w[DP_LAYER_NORM2_W], w[DP_LAYER_NORM2_B], c, y);
        linear64(y, w[DP_LAYER_UP_W], w[DP_LAYER_UP_B], c, up, h);
        activate64(model, h);
        linear64(h, w[DP_LAYER_DOWN_W], w[DP_LAYER_DOWN_B], m->hidden, c, z);
        for (size_t i = 0; i < c; i++) {
            x[t * c + i] += z[i];
        }
    }
    free(qkv);
    free(y);
    free(z);
    free(h);
}

/* Sum of the losses of one row; logits of its last token go to logits [vocab] unless NULL. */
UNCHECKED static double row_loss64(const dp_model *model, const double *params, const uint32_t *x,
                                   const uint32_t *y, size_t length, double *logits)
{
    const size_t c = model->config.width;
    const size_t v = model->config.vocab;
    const double cap = (double)model->config.softcap_milli * 1e-3;
    const double *positions = weight64(model, params, 0, DP_SLOT_POSITIONS);
    const double *head = params + dp_model_head(model)->offset;
    double *stream = calloc(length * c, sizeof *stream);
    double *normed = calloc(c, sizeof *normed);
    double *scores = calloc(v, sizeof *scores);
    double loss = 0.0;
    for (size_t i = 0; i < length * c; i++) {
        stream[i] = weight64(model, params, 0, DP_SLOT_EMBED)[x[i / c] * c + i % c] +
                    (positions == NULL ? 0.0 : positions[i]);
    }
    for (size_t layer = 0; layer < model->config.layers; layer++) {
        layer64(model, params, layer, stream, length);
    }
    for (size_t t = 0; t < length; t++) {
        norm64(model, stream + t * c, weight64(model, params, 0, DP_SLOT_NORM_W),
               weight64(model, params, 0, DP_SLOT_NORM_B), c, normed);
        double sum = 0.0;
        for (size_t j = 0; j < v; j++) {
            scores[j] = 0.0;
            for (size_t i = 0; i < c; i++) {
                scores[j] += normed[i] * head[j * c + i];
            }
            scores[j] = cap > 0.0 ? cap * tanh(scores[j] / cap) : scores[j];
            sum += exp(scores[j]);
        }
        loss += y == NULL ? 0.0 : log(sum) - scores[y[t]];
    }
    if (logits != NULL) {
        memcpy(logits, scores, v * sizeof *scores);
    }
    free(stream);
    free(normed);
    free(scores);
    return loss;
}

static double loss64(const dp_model *model, const double *params, const dp_gpt_batch *batch)
{
    double loss = 0.0;
    for (size_t row = 0; row < batch->rows; row++) {
        loss += row_loss64(model, params, batch->x + row * batch->length,
                           batch->y + row * batch->length, batch->length, NULL);
    }
    return loss;
}

#endif
