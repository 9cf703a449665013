/* The operations as plain loops: the definition of right, slow on purpose. Sums run in double where a sum is the point. */
#include <math.h>
#include <string.h>

#include "compute/cpu/tables.h"

/* Panels of one column: packed[n][k]. */
static void plain_pack(const float *b, size_t ld, bool transposed, size_t k, size_t n,
                       float *packed)
{
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < k; i++) {
            packed[j * k + i] = transposed ? b[j * ld + i] : b[i * ld + j];
        }
    }
}

static void plain_gemm(const dp_gemm *g)
{
    const size_t packed_depth = g->packed_depth == 0 ? g->k : g->packed_depth;
    for (size_t row = 0; row < g->m; row++) {
        for (size_t j = 0; j < g->n; j++) {
            double sum = g->bias == NULL ? 0.0 : (double)g->bias[j];
            sum += g->add == NULL ? 0.0 : (double)g->add[row * g->ld_add + j];
            for (size_t i = 0; i < g->k; i++) {
                sum += (double)g->a[row * g->a_row + i * g->a_depth] *
                       (double)g->packed[j * packed_depth + i];
            }
            g->c[row * g->ldc + j] = (float)sum;
        }
    }
}

static void plain_gemm_tn(const dp_gemm_tn *g)
{
    for (size_t row = 0; row < g->m; row++) {
        for (size_t j = 0; j < g->n; j++) {
            double sum = 0.0;
            for (size_t i = 0; i < g->k; i++) {
                sum += (double)g->a[i * g->lda + row] * (double)g->b[i * g->ldb + j];
            }
            g->c[row * g->ldc + j] += (float)sum;
        }
    }
}

static void plain_norm_again(const dp_norm_rows *norm, const float *bias, float *y)
{
    for (size_t row = 0; row < norm->rows; row++) {
        for (size_t i = 0; i < norm->width; i++) {
            const size_t at = row * norm->width + i;
            y[at] = (norm->x[at] - norm->mean[row]) * norm->rstd[row] * norm->gain[i] + bias[i];
        }
    }
}

static void plain_norm_forward(const dp_norm_rows *norm, const float *bias, float *y)
{
    const double width = (double)norm->width;
    for (size_t row = 0; row < norm->rows; row++) {
        const float *x = norm->x + row * norm->width;
        double mean = 0.0;
        double variance = 0.0;
        for (size_t i = 0; i < norm->width; i++) {
            mean += (double)x[i] / width;
        }
        for (size_t i = 0; i < norm->width; i++) {
            variance += ((double)x[i] - mean) * ((double)x[i] - mean) / width;
        }
        norm->mean[row] = (float)mean;
        norm->rstd[row] = (float)(1.0 / sqrt(variance + 1e-5));
    }
    plain_norm_again(norm, bias, y);
}

static void plain_norm_backward(const dp_norm_rows *norm, const float *dy, const float *residual,
                                float *dx)
{
    const size_t n = norm->width;
    for (size_t row = 0; row < norm->rows; row++) {
        const double mean = (double)norm->mean[row];
        const double rstd = (double)norm->rstd[row];
        double sum = 0.0;
        double dot = 0.0;
        for (size_t i = 0; i < n; i++) {
            const double d = (double)dy[row * n + i] * (double)norm->gain[i];
            sum += d / (double)n;
            dot += d * ((double)norm->x[row * n + i] - mean) * rstd / (double)n;
        }
        for (size_t i = 0; i < n; i++) {
            const double d = (double)dy[row * n + i] * (double)norm->gain[i];
            const double unit = ((double)norm->x[row * n + i] - mean) * rstd;
            dx[row * n + i] =
                (float)((double)residual[row * n + i] + (d - sum - unit * dot) * rstd);
        }
    }
}

static void plain_norm_grads(const dp_norm_rows *norm, const float *dy, size_t first, size_t last,
                             float *d_gain, float *d_bias)
{
    for (size_t i = first; i < last; i++) {
        double gain = 0.0;
        double bias = 0.0;
        for (size_t row = 0; row < norm->rows; row++) {
            const size_t at = row * norm->width + i;
            const double unit =
                ((double)norm->x[at] - (double)norm->mean[row]) * (double)norm->rstd[row];
            gain += (double)dy[at] * unit;
            bias += (double)dy[at];
        }
        d_gain[i] += (float)gain;
        d_bias[i] += (float)bias;
    }
}

static double dot_of(const float *a, const float *b, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)a[i] * (double)b[i];
    }
    return sum;
}

static void plain_attention_forward(const dp_attention *a)
{
    const double scale = 1.0 / sqrt((double)a->head);
    float *p = a->scratch;
    for (size_t row = 0; row < a->length; row++) {
        const float *q = a->q + row * a->ld_qkv;
        double largest = -INFINITY;
        double sum = 0.0;
        for (size_t key = 0; key <= row; key++) {
            p[key] = (float)(scale * dot_of(q, a->k + key * a->ld_qkv, a->head));
            largest = fmax(largest, (double)p[key]);
        }
        for (size_t key = 0; key <= row; key++) {
            sum += exp((double)p[key] - largest);
        }
        a->lse[row] = (float)(largest + log(sum));
        for (size_t i = 0; i < a->head; i++) {
            double out = 0.0;
            for (size_t key = 0; key <= row; key++) {
                out += exp((double)p[key] - largest) * (double)a->v[key * a->ld_qkv + i];
            }
            a->out[row * a->ld_out + i] = (float)(out / sum);
        }
    }
}

static void plain_attention_backward_row(const dp_attention *a, size_t row)
{
    const double scale = 1.0 / sqrt((double)a->head);
    const float *q = a->q + row * a->ld_qkv;
    const float *d_out = a->d_out + row * a->ld_out;
    const double delta = dot_of(a->out + row * a->ld_out, d_out, a->head);
    for (size_t key = 0; key <= row; key++) {
        const size_t at = key * a->ld_qkv;
        const double p = exp(scale * dot_of(q, a->k + at, a->head) - (double)a->lse[row]);
        const double ds = p * (dot_of(d_out, a->v + at, a->head) - delta) * scale;
        for (size_t i = 0; i < a->head; i++) {
            a->dv[at + i] += (float)(p * (double)d_out[i]);
            a->dk[at + i] += (float)(ds * (double)q[i]);
            a->dq[row * a->ld_qkv + i] += (float)(ds * (double)a->k[at + i]);
        }
    }
}

static void plain_attention_backward(const dp_attention *a)
{
    for (size_t row = 0; row < a->length; row++) {
        memset(a->dq + row * a->ld_qkv, 0, a->head * sizeof *a->dq);
        memset(a->dk + row * a->ld_qkv, 0, a->head * sizeof *a->dk);
        memset(a->dv + row * a->ld_qkv, 0, a->head * sizeof *a->dv);
    }
    for (size_t row = 0; row < a->length; row++) {
        plain_attention_backward_row(a, row);
    }
}

#define GELU_ROOT 0.79788456080286535588 /* sqrt(2/pi) */

static void plain_gelu_forward(const float *x, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double v = (double)x[i];
        y[i] = (float)(0.5 * v * (1.0 + tanh(GELU_ROOT * (v + 0.044715 * v * v * v))));
    }
}

static void plain_gelu_backward(const float *x, float *y, float *dy, size_t n)
{
    plain_gelu_forward(x, y, n);
    for (size_t i = 0; i < n; i++) {
        const double v = (double)x[i];
        const double t = tanh(GELU_ROOT * (v + 0.044715 * v * v * v));
        const double slope =
            0.5 * (1.0 + t) + 0.5 * v * (1.0 - t * t) * GELU_ROOT * (1.0 + 3.0 * 0.044715 * v * v);
        dy[i] = (float)((double)dy[i] * slope);
    }
}

static void plain_classifier(float *logits, const uint16_t *targets, size_t rows, size_t vocab,
                             float scale, float *losses)
{
    for (size_t row = 0; row < rows; row++) {
        float *x = logits + row * vocab;
        double largest = -INFINITY;
        double sum = 0.0;
        for (size_t i = 0; i < vocab; i++) {
            largest = fmax(largest, (double)x[i]);
        }
        for (size_t i = 0; i < vocab; i++) {
            sum += exp((double)x[i] - largest);
        }
        losses[row] = (float)(largest - (double)x[targets[row]] + log(sum));
        for (size_t i = 0; i < vocab; i++) {
            const double p = exp((double)x[i] - largest) / sum;
            x[i] = (float)((double)scale * (p - (i == targets[row] ? 1.0 : 0.0)));
        }
    }
}

static void plain_add_columns(const float *x, size_t ld, size_t rows, size_t first, size_t last,
                              float *sum)
{
    for (size_t i = first; i < last; i++) {
        double total = 0.0;
        for (size_t row = 0; row < rows; row++) {
            total += (double)x[row * ld + i];
        }
        sum[i] += (float)total;
    }
}

static void plain_add(const float *x, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += x[i];
    }
}

static void plain_adamw(const dp_adamw_terms *t, float *params, float *m, float *v,
                        const float *grads, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float g = grads[i] * t->grad_scale;
        m[i] += (1.0F - t->beta1) * (g - m[i]);
        v[i] += (1.0F - t->beta2) * (g * g - v[i]);
        const float root = sqrtf(v[i] * t->v_scale) + t->eps;
        params[i] -= t->lr_decay * params[i] + t->lr * m[i] / root;
    }
}

static double plain_sum_of_squares(const float *x, size_t n)
{
    double total = 0.0;
    for (size_t i = 0; i < n; i++) {
        total += (double)x[i] * (double)x[i];
    }
    return total;
}

const dp_ops dp_ops_plain = {
    .name = "reference",
    .panel = 1,
    .pack = plain_pack,
    .gemm = plain_gemm,
    .gemm_tn = plain_gemm_tn,
    .norm_forward = plain_norm_forward,
    .norm_again = plain_norm_again,
    .norm_backward = plain_norm_backward,
    .norm_grads = plain_norm_grads,
    .attention_forward = plain_attention_forward,
    .attention_backward = plain_attention_backward,
    .gelu_forward = plain_gelu_forward,
    .gelu_backward = plain_gelu_backward,
    .classifier = plain_classifier,
    .add_columns = plain_add_columns,
    .add = plain_add,
    .adamw = plain_adamw,
    .sum_of_squares = plain_sum_of_squares,
};
