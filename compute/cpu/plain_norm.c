/* LayerNorm and RMSNorm as plain loops. */
#include <math.h>

#include "compute/cpu/plain.h"

void dp_plain_norm_again(const dp_norm_rows *norm, const float *bias, float *y)
{
    for (size_t row = 0; row < norm->rows; row++) {
        for (size_t i = 0; i < norm->width; i++) {
            const size_t at = row * norm->width + i;
            y[at] = (norm->x[at] - norm->mean[row]) * norm->rstd[row] * norm->gain[i] + bias[i];
        }
    }
}

void dp_plain_norm_forward(const dp_norm_rows *norm, const float *bias, float *y)
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
    dp_plain_norm_again(norm, bias, y);
}

void dp_plain_norm_backward(const dp_norm_rows *norm, const float *dy, const float *residual,
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

void dp_plain_norm_grads(const dp_norm_rows *norm, const float *dy, size_t first, size_t last,
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

void dp_plain_rms_again(const dp_rms_rows *norm, float *y, size_t ld_y)
{
    for (size_t row = 0; row < norm->rows; row++) {
        for (size_t i = 0; i < norm->groups * norm->width; i++) {
            const float rstd = norm->rstd[row * norm->groups + i / norm->width];
            y[row * ld_y + i] = norm->x[row * norm->ld + i] * rstd * norm->gain[i % norm->width];
        }
    }
}

void dp_plain_rms_forward(const dp_rms_rows *norm, float *y, size_t ld_y)
{
    for (size_t i = 0; i < norm->rows * norm->groups; i++) {
        const float *x = norm->x + i / norm->groups * norm->ld + i % norm->groups * norm->width;
        double squares = 0.0;
        for (size_t j = 0; j < norm->width; j++) {
            squares += (double)x[j] * (double)x[j] / (double)norm->width;
        }
        norm->rstd[i] = (float)(1.0 / sqrt(squares + (double)norm->eps));
    }
    dp_plain_rms_again(norm, y, ld_y);
}

void dp_plain_rms_backward(const dp_rms_rows *norm, const float *dy, const float *residual,
                           float *dx, size_t ld_d)
{
    for (size_t i = 0; i < norm->rows * norm->groups; i++) {
        const size_t row = i / norm->groups;
        const size_t column = i % norm->groups * norm->width;
        const float *x = norm->x + row * norm->ld + column;
        const size_t at = row * ld_d + column;
        const double rstd = (double)norm->rstd[i];
        double dot = 0.0;
        for (size_t j = 0; j < norm->width; j++) {
            const double unit = (double)x[j] * rstd;
            dot += (double)dy[at + j] * (double)norm->gain[j] * unit / (double)norm->width;
        }
        for (size_t j = 0; j < norm->width; j++) {
            const double d = (double)dy[at + j] * (double)norm->gain[j] - (double)x[j] * rstd * dot;
            dx[at + j] = (float)((residual == NULL ? 0.0 : (double)residual[at + j]) + d * rstd);
        }
    }
}

void dp_plain_rms_grads(const dp_rms_rows *norm, const float *dy, size_t ld_dy, size_t first,
                        size_t last, float *d_gain)
{
    for (size_t j = first; j < last; j++) {
        double gain = 0.0;
        for (size_t i = 0; i < norm->rows * norm->groups; i++) {
            const size_t row = i / norm->groups;
            const size_t column = i % norm->groups * norm->width + j;
            gain += (double)dy[row * ld_dy + column] * (double)norm->x[row * norm->ld + column] *
                    (double)norm->rstd[i];
        }
        d_gain[j] += (float)gain;
    }
}
