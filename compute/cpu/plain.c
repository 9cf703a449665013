/* The operations as plain loops: the definition of right, slow on purpose. Sums run in double where
 * a sum is the point. Here: the loss, sums, AdamW, and the table. */
#include "compute/cpu/plain.h"

#include <math.h>
#include <string.h>

#include "compute/cpu/tables.h"

static double capped(float x, float cap)
{
    return cap == 0.0F ? (double)x : (double)cap * tanh((double)x / (double)cap);
}

static void plain_classifier(const dp_classifier *c)
{
    for (size_t row = 0; row < c->rows; row++) {
        float *x = c->logits + row * c->vocab;
        const uint32_t target = c->targets[row];
        if (target == DP_TOKEN_NO_LOSS) {
            memset(x, 0, c->vocab * sizeof *x);
            c->losses[row] = 0.0F;
            continue;
        }
        double largest = -INFINITY;
        double sum = 0.0;
        for (size_t i = 0; i < c->vocab; i++) {
            const double z = capped(x[i], c->softcap);
            largest = z > largest ? z : largest; /* Not fmax(): gcc 12 for arm64 breaks down. */
        }
        for (size_t i = 0; i < c->vocab; i++) {
            sum += exp(capped(x[i], c->softcap) - largest);
        }
        c->losses[row] = (float)(largest - capped(x[target], c->softcap) + log(sum));
        for (size_t i = 0; i < c->vocab; i++) {
            const double z = capped(x[i], c->softcap);
            const double t = c->softcap == 0.0F ? 0.0 : z / (double)c->softcap;
            const double p = exp(z - largest) / sum - (i == target ? 1.0 : 0.0);
            x[i] = (float)((double)c->scale * p * (1.0 - t * t));
        }
    }
}

static void plain_softcap(float *x, size_t n, float cap)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)capped(x[i], cap);
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

#define PLAIN_TABLE(table_name, table_precision, suffix)                                           \
    {                                                                                              \
        .name = (table_name), .precision = (table_precision), .terms = 1, .panel = 1,              \
        .tile_rows = DP_OPS_TILE, .tile_scratch = 0, .pack = dp_plain_pack##suffix,                \
        .gemm = dp_plain_gemm##suffix, .gemm_tn = dp_plain_gemm_tn##suffix,                        \
        .norm_forward = dp_plain_norm_forward, .norm_again = dp_plain_norm_again,                  \
        .norm_backward = dp_plain_norm_backward, .norm_grads = dp_plain_norm_grads,                \
        .rms_forward = dp_plain_rms_forward, .rms_again = dp_plain_rms_again,                      \
        .rms_backward = dp_plain_rms_backward, .rms_grads = dp_plain_rms_grads,                    \
        .rope = dp_plain_rope, .attention_forward = dp_plain_attention_forward,                    \
        .attention_backward = dp_plain_attention_backward,                                         \
        .activations =                                                                             \
            {                                                                                      \
                [DP_GELU] = {1, dp_plain_gelu_forward, dp_plain_gelu_backward},                    \
                [DP_RELU2] = {1, dp_plain_relu2_forward, dp_plain_relu2_backward},                 \
                [DP_SWIGLU] = {2, dp_plain_swiglu_forward, dp_plain_swiglu_backward},              \
                [DP_GELU_ERF] = {1, dp_plain_gelu_erf_forward, dp_plain_gelu_erf_backward},        \
                [DP_GEGLU] = {2, dp_plain_geglu_forward, dp_plain_geglu_backward},                 \
            },                                                                                     \
        .classifier = plain_classifier, .softcap = plain_softcap,                                  \
        .add_columns = plain_add_columns, .add = plain_add, .adamw = plain_adamw,                  \
        .sum_of_squares = plain_sum_of_squares,                                                    \
    }

const dp_ops dp_ops_plain = PLAIN_TABLE("reference", DP_FP32, );
const dp_ops dp_ops_plain_bf16 = PLAIN_TABLE("reference-bf16", DP_BF16, _bf16);
const dp_ops dp_ops_plain_fp16 = PLAIN_TABLE("reference-fp16", DP_FP16, _fp16);
