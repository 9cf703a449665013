/* Matrix products as plain loops, summed in double. */
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

void dp_plain_gemm(const dp_gemm *g)
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

void dp_plain_gemm_tn(const dp_gemm_tn *g)
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
