/* A whole GPT-2 in float64, one token after the other, with no cleverness: what the engine is measured against. Forward
 * only; central differences of it check the gradients. Test code. */
#ifndef DP_TESTS_MODEL64_H
#define DP_TESTS_MODEL64_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/gpt.h"

static void norm64(const double *x, const double *gain, const double *bias, size_t n, double *y)
{
    double mean = 0.0;
    double variance = 0.0;
    for (size_t i = 0; i < n; i++) {
        mean += x[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        variance += (x[i] - mean) * (x[i] - mean) / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        y[i] = (x[i] - mean) / sqrt(variance + 1e-5) * gain[i] + bias[i];
    }
}

/* y [to] = x [from] * weight [from][to] + bias. */
static void linear64(const double *x, const double *weight, const double *bias, size_t from,
                     size_t to, double *y)
{
    for (size_t j = 0; j < to; j++) {
        y[j] = bias[j];
        for (size_t i = 0; i < from; i++) {
            y[j] += x[i] * weight[i * to + j];
        }
    }
}

static void attention64(const double *qkv, size_t t, size_t c, size_t heads, double *out)
{
    const size_t head = c / heads;
    double *p = calloc(t + 1, sizeof *p);
    for (size_t h = 0; h < heads; h++) {
        const double *q = qkv + t * 3 * c + h * head;
        double sum = 0.0;
        for (size_t s = 0; s <= t; s++) {
            const double *k = qkv + s * 3 * c + c + h * head;
            double score = 0.0;
            for (size_t i = 0; i < head; i++) {
                score += q[i] * k[i];
            }
            p[s] = exp(score / sqrt((double)head)); /* Small models: no overflow. */
            sum += p[s];
        }
        for (size_t i = 0; i < head; i++) {
            out[h * head + i] = 0.0;
            for (size_t s = 0; s <= t; s++) {
                out[h * head + i] += p[s] / sum * qkv[s * 3 * c + 2 * c + h * head + i];
            }
        }
    }
    free(p);
}

static void layer64(const dp_model *model, const double *params, size_t layer, double *x,
                    size_t length)
{
    const size_t c = model->config.width;
    const double *w[DP_LAYER_TENSORS];
    for (int slot = 0; slot < DP_LAYER_TENSORS; slot++) {
        w[slot] = params + dp_model_layer_offset(model, layer, (dp_layer_slot)slot);
    }
    double *qkv = calloc(length * 3 * c, sizeof *qkv);
    double *y = calloc(c, sizeof *y);
    double *z = calloc(c, sizeof *z);
    double *h = calloc(4 * c, sizeof *h);
    for (size_t t = 0; t < length; t++) {
        norm64(x + t * c, w[DP_LAYER_LN1_W], w[DP_LAYER_LN1_B], c, y);
        linear64(y, w[DP_LAYER_QKV_W], w[DP_LAYER_QKV_B], c, 3 * c, qkv + t * 3 * c);
    }
    for (size_t t = 0; t < length; t++) {
        attention64(qkv, t, c, model->config.heads, y);
        linear64(y, w[DP_LAYER_OUT_W], w[DP_LAYER_OUT_B], c, c, z);
        for (size_t i = 0; i < c; i++) {
            x[t * c + i] += z[i];
        }
        norm64(x + t * c, w[DP_LAYER_LN2_W], w[DP_LAYER_LN2_B], c, y);
        linear64(y, w[DP_LAYER_FC_W], w[DP_LAYER_FC_B], c, 4 * c, h);
        for (size_t i = 0; i < 4 * c; i++) {
            h[i] = 0.5 * h[i] *
                   (1.0 + tanh(sqrt(2.0 / M_PI) * (h[i] + 0.044715 * h[i] * h[i] * h[i])));
        }
        linear64(h, w[DP_LAYER_PROJ_W], w[DP_LAYER_PROJ_B], 4 * c, c, z);
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
static double row_loss64(const dp_model *model, const double *params, const uint32_t *x,
                         const uint32_t *y, size_t length, double *logits)
{
    const size_t c = model->config.width;
    const size_t v = model->config.vocab;
    double *stream = calloc(length * c, sizeof *stream);
    double *normed = calloc(c, sizeof *normed);
    double *scores = calloc(v, sizeof *scores);
    double loss = 0.0;
    for (size_t t = 0; t < length; t++) {
        for (size_t i = 0; i < c; i++) {
            stream[t * c + i] =
                params[x[t] * c + i] + params[model->tensors[DP_SLOT_WPE].offset + t * c + i];
        }
    }
    for (size_t layer = 0; layer < model->config.layers; layer++) {
        layer64(model, params, layer, stream, length);
    }
    for (size_t t = 0; t < length; t++) {
        norm64(stream + t * c, params + dp_model_final_norm_offset(model, false),
               params + dp_model_final_norm_offset(model, true), c, normed);
        double sum = 0.0;
        for (size_t j = 0; j < v; j++) {
            scores[j] = 0.0;
            for (size_t i = 0; i < c; i++) {
                scores[j] += normed[i] * params[j * c + i];
            }
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
