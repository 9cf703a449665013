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

/* A turn after scaling (Grattafiori et al. 2024, as Hugging Face computes it). */
static double stretched64(const dp_model_config *m, double turn)
{
    const double factor = (double)m->rope_factor_milli / 1000.0;
    const double wave = 2.0 * M_PI / turn;
    const double low = (double)m->rope_context * 1000.0 / (double)m->rope_low_milli;
    const double high = (double)m->rope_context * 1000.0 / (double)m->rope_high_milli;
    if (m->rope_scaling == DP_ROPE_PLAIN || (m->rope_scaling == DP_ROPE_LLAMA3 && wave < high)) {
        return turn;
    }
    if (m->rope_scaling == DP_ROPE_LINEAR || wave > low) {
        return turn / factor;
    }
    const double smooth = ((double)m->rope_context / wave - (double)m->rope_low_milli / 1000.0) /
                          ((double)(m->rope_high_milli - m->rope_low_milli) / 1000.0);
    return (1.0 - smooth) * turn / factor + smooth * turn;
}

/* Rotation of one head of q or k at position t. */
static void turn64(const dp_model *model, size_t layer, size_t t, double *x)
{
    const dp_model_config *const m = &model->config;
    const size_t n = m->head_width;
    const bool window = m->window != 0 && !(m->full_every != 0 && (layer + 1) % m->full_every == 0);
    const bool local = window && m->rope_local_theta != 0;
    const double theta = (double)(local ? m->rope_local_theta : m->rope_theta);
    if (m->rope_theta == 0 || (m->rope_off_every != 0 && (layer + 1) % m->rope_off_every == 0)) {
        return;
    }
    for (size_t i = 0; i < n / 2; i++) {
        const size_t turned = m->rope_width != 0 ? m->rope_width : n;
        const double turn = pow(theta, -2.0 * (double)i / (double)turned);
        const double angle =
            i < turned / 2 ? (double)t * (local ? turn : stretched64(m, turn)) : 0.0;
        const double a = x[i];
        const double b = x[i + n / 2];
        x[i] = a * cos(angle) - b * sin(angle);
        x[i + n / 2] = b * cos(angle) + a * sin(angle);
    }
}

/* Norms of q and k, head by head or as a whole. */
static void norm_qk64(const dp_model *model, const double *q_gain, const double *k_gain, double *x)
{
    const dp_model_config *const m = &model->config;
    const bool whole = (dp_model_features(m) & DP_HAS_WHOLE_NORMS) != 0;
    const size_t q = m->heads * (size_t)m->head_width;
    const size_t qk = q + m->kv_heads * (size_t)m->head_width;
    if (q_gain == NULL) {
        return;
    }
    if (whole) {
        norm64(model, x, q_gain, NULL, q, x);
        norm64(model, x + q, k_gain, NULL, qk - q, x + q);
        return;
    }
    for (size_t at = 0; at < qk; at += m->head_width) {
        norm64(model, x + at, at < q ? q_gain : k_gain, NULL, m->head_width, x + at);
    }
}

/* The score of a product of q and k, scaled and capped. */
static double score64(const dp_model_config *m, double dot)
{
    const double scale =
        1.0 / sqrt((double)(m->query_scalar != 0 ? m->query_scalar : m->head_width));
    const double cap = (double)m->scores_softcap_milli / 1000.0;
    return cap == 0.0 ? dot * scale : cap * tanh(dot * scale / cap);
}

/* qkv [t + 1][heads of q, k, v], turned; out [heads of q]. */
static void attention64(const dp_model *model, size_t layer, const double *qkv, size_t t,
                        double *out)
{
    const dp_model_config *const m = &model->config;
    const bool full = m->window == 0 || (m->full_every != 0 && (layer + 1) % m->full_every == 0);
    const size_t from = full || t < m->window ? 0 : t + 1 - m->window;
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
        for (size_t s = from; s <= t; s++) {
            double score = 0.0;
            for (size_t i = 0; i < head; i++) {
                score += q[i] * k[s * ld + i];
            }
            p[s] = exp(score64(m, score)); /* Small models: no overflow. */
            sum += p[s];
        }
        for (size_t i = 0; i < head; i++) {
            out[h * head + i] = 0.0;
            for (size_t s = from; s <= t; s++) {
                out[h * head + i] += p[s] / sum * v[s * ld + i];
            }
        }
    }
    free(p);
}

static double gelu64(double x)
{
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
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
            h[i] = gelu64(h[i]);
            break;
        case DP_ACTIVATION_GELU_ERF:
            h[i] = 0.5 * h[i] * (1.0 + erf(h[i] / sqrt(2.0)));
            break;
        case DP_ACTIVATION_GEGLU:
            h[i] = gelu64(h[i]) * h[n + i];
            break;
        }
    }
}

/* The input of a part: normed, where there is a norm before it. */
static void input64(const dp_model *model, const double *x, const double *gain, const double *bias,
                    double *y)
{
    const size_t c = model->config.width;
    memcpy(y, x, c * sizeof *y);
    if (gain != NULL) {
        norm64(model, x, gain, bias, c, y);
    }
}

/* x += z, normed first where there is a norm behind the part. */
static void add64(const dp_model *model, double *z, const double *gain, double *x)
{
    const size_t c = model->config.width;
    if (gain != NULL) {
        norm64(model, z, gain, NULL, c, z);
    }
    for (size_t i = 0; i < c; i++) {
        x[i] += z[i];
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
    double *before = calloc(c, sizeof *before);
    const bool parallel = (dp_model_features(m) & DP_HAS_PARALLEL_PARTS) != 0;
    for (size_t t = 0; t < length; t++) {
        input64(model, x + t * c, w[DP_LAYER_NORM1_W], w[DP_LAYER_NORM1_B], y);
        linear64(y, w[DP_LAYER_QKV_W], w[DP_LAYER_QKV_B], c, ld, qkv + t * ld);
        norm_qk64(model, w[DP_LAYER_Q_NORM], w[DP_LAYER_K_NORM], qkv + t * ld);
        for (size_t head = 0; head < m->heads + (size_t)m->kv_heads; head++) {
            turn64(model, layer, t, qkv + t * ld + head * m->head_width);
        }
    }
    for (size_t t = 0; t < length; t++) {
        memcpy(before, x + t * c, c * sizeof *before);
        attention64(model, layer, qkv, t, y);
        linear64(y, w[DP_LAYER_OUT_W], w[DP_LAYER_OUT_B], m->heads * (size_t)m->head_width, c, z);
        add64(model, z, w[DP_LAYER_OUT_NORM], x + t * c);
        input64(model, parallel ? before : x + t * c, w[DP_LAYER_NORM2_W], w[DP_LAYER_NORM2_B], y);
        linear64(y, w[DP_LAYER_UP_W], w[DP_LAYER_UP_B], c, up, h);
        activate64(model, h);
        linear64(h, w[DP_LAYER_DOWN_W], w[DP_LAYER_DOWN_B], m->hidden, c, z);
        add64(model, z, w[DP_LAYER_DOWN_NORM], x + t * c);
    }
    free(qkv);
    free(y);
    free(z);
    free(h);
    free(before);
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
    const bool scaled = (dp_model_features(&model->config) & DP_HAS_SCALED_EMBEDDING) != 0;
    const double scale = scaled ? sqrt((double)c) : 1.0;
    for (size_t i = 0; i < length * c; i++) {
        stream[i] = scale * weight64(model, params, 0, DP_SLOT_EMBED)[x[i / c] * c + i % c] +
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
