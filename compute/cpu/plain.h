/* The plain loops of plain_*.c, which plain.c puts into a table. ops.h describes each. */
#ifndef DP_COMPUTE_CPU_PLAIN_H
#define DP_COMPUTE_CPU_PLAIN_H

#include "compute/cpu/ops.h"

void dp_plain_pack(const float *b, size_t ld, bool transposed, size_t k, size_t n, float *packed);
void dp_plain_gemm(const dp_gemm *g);
void dp_plain_gemm_tn(const dp_gemm_tn *g);
void dp_plain_pack_bf16(const float *b, size_t ld, bool transposed, size_t k, size_t n,
                        float *packed);
void dp_plain_gemm_bf16(const dp_gemm *g);
void dp_plain_gemm_tn_bf16(const dp_gemm_tn *g);
void dp_plain_pack_fp16(const float *b, size_t ld, bool transposed, size_t k, size_t n,
                        float *packed);
void dp_plain_gemm_fp16(const dp_gemm *g);
void dp_plain_gemm_tn_fp16(const dp_gemm_tn *g);

void dp_plain_norm_forward(const dp_norm_rows *norm, const float *bias, float *y);
void dp_plain_norm_again(const dp_norm_rows *norm, const float *bias, float *y);
void dp_plain_norm_backward(const dp_norm_rows *norm, const float *dy, const float *residual,
                            float *dx);
void dp_plain_norm_grads(const dp_norm_rows *norm, const float *dy, size_t first, size_t last,
                         float *d_gain, float *d_bias);
void dp_plain_rms_forward(const dp_rms_rows *norm, float *y, size_t ld_y);
void dp_plain_rms_again(const dp_rms_rows *norm, float *y, size_t ld_y);
void dp_plain_rms_backward(const dp_rms_rows *norm, const float *dy, const float *residual,
                           float *dx, size_t ld_d);
void dp_plain_rms_grads(const dp_rms_rows *norm, const float *dy, size_t ld_dy, size_t first,
                        size_t last, float *d_gain);

void dp_plain_rope(const dp_rope_rows *rope, bool back);
void dp_plain_attention_forward(const dp_attention *a);
void dp_plain_attention_backward(const dp_attention *a);

void dp_plain_gelu_forward(const float *x, size_t rows, size_t width, float *y);
void dp_plain_gelu_backward(const float *x, size_t rows, size_t width, float *y, float *d);
void dp_plain_gelu_erf_forward(const float *x, size_t rows, size_t width, float *y);
void dp_plain_gelu_erf_backward(const float *x, size_t rows, size_t width, float *y, float *d);
void dp_plain_relu2_forward(const float *x, size_t rows, size_t width, float *y);
void dp_plain_relu2_backward(const float *x, size_t rows, size_t width, float *y, float *d);
void dp_plain_swiglu_forward(const float *x, size_t rows, size_t width, float *y);
void dp_plain_swiglu_backward(const float *x, size_t rows, size_t width, float *y, float *d);
void dp_plain_geglu_forward(const float *x, size_t rows, size_t width, float *y);
void dp_plain_geglu_backward(const float *x, size_t rows, size_t width, float *y, float *d);

#endif
