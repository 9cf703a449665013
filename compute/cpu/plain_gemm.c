/* Matrix products as plain loops, summed in double, of inputs rounded to each precision. */
#include "compute/cpu/plain.h"

/* Panels of one column: packed[n][k]. */
void dp_plain_pack(const float *b, size_t ld, bool transposed, size_t k, size_t n, float *packed)
{
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < k; i++) {
            packed[j * k + i] = transposed ? b[j * ld + i] : b[i * ld + j];
        }
    }
}

static void round_all(dp_precision precision, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = dp_round_to(precision, x[i]);
    }
}

static void gemm(dp_precision precision, const dp_gemm *g)
{
    const size_t packed_depth = g->packed_depth == 0 ? g->k : g->packed_depth;
    for (size_t row = 0; row < g->m; row++) {
        for (size_t j = 0; j < g->n; j++) {
            double sum = g->bias == NULL ? 0.0 : (double)g->bias[j];
            sum += g->add == NULL ? 0.0 : (double)g->add[row * g->ld_add + j];
            for (size_t i = 0; i < g->k; i++) {
                const float a = dp_round_to(precision, g->a[row * g->a_row + i * g->a_depth]);
                sum += (double)a * (double)g->packed[j * packed_depth + i];
            }
            g->c[row * g->ldc + j] = (float)sum;
        }
    }
}

static void gemm_tn(dp_precision precision, const dp_gemm_tn *g)
{
    for (size_t row = 0; row < g->m; row++) {
        for (size_t j = 0; j < g->n; j++) {
            double sum = 0.0;
            for (size_t i = 0; i < g->k; i++) {
                sum += (double)dp_round_to(precision, g->a[i * g->lda + row]) *
                       (double)dp_round_to(precision, g->b[i * g->ldb + j]);
            }
            float *const c = &g->c[row * g->ldc + j];
            *c = (g->fresh ? 0.0F : *c) + (float)sum;
        }
    }
}

void dp_plain_gemm(const dp_gemm *g)
{
    gemm(DP_FP32, g);
}

void dp_plain_gemm_tn(const dp_gemm_tn *g)
{
    gemm_tn(DP_FP32, g);
}

void dp_plain_pack_bf16(const float *b, size_t ld, bool transposed, size_t k, size_t n,
                        float *packed)
{
    dp_plain_pack(b, ld, transposed, k, n, packed);
    round_all(DP_BF16, packed, k * n);
}

void dp_plain_gemm_bf16(const dp_gemm *g)
{
    gemm(DP_BF16, g);
}

void dp_plain_gemm_tn_bf16(const dp_gemm_tn *g)
{
    gemm_tn(DP_BF16, g);
}

void dp_plain_pack_fp16(const float *b, size_t ld, bool transposed, size_t k, size_t n,
                        float *packed)
{
    dp_plain_pack(b, ld, transposed, k, n, packed);
    round_all(DP_FP16, packed, k * n);
}

void dp_plain_gemm_fp16(const dp_gemm *g)
{
    gemm(DP_FP16, g);
}

void dp_plain_gemm_tn_fp16(const dp_gemm_tn *g)
{
    gemm_tn(DP_FP16, g);
}
