/* Activations as plain loops. */
#include <math.h>

#include "compute/cpu/plain.h"

#define GELU_ROOT 0.79788456080286535588 /* sqrt(2/pi) */

static double gelu(double v)
{
    return 0.5 * v * (1.0 + tanh(GELU_ROOT * (v + 0.044715 * v * v * v)));
}

static double gelu_slope(double v)
{
    const double t = tanh(GELU_ROOT * (v + 0.044715 * v * v * v));
    return 0.5 * (1.0 + t) + 0.5 * v * (1.0 - t * t) * GELU_ROOT * (1.0 + 3.0 * 0.044715 * v * v);
}

void dp_plain_gelu_forward(const float *x, size_t rows, size_t width, float *y)
{
    for (size_t i = 0; i < rows * width; i++) {
        y[i] = (float)gelu((double)x[i]);
    }
}

void dp_plain_gelu_backward(const float *x, size_t rows, size_t width, float *y, float *d)
{
    dp_plain_gelu_forward(x, rows, width, y);
    for (size_t i = 0; i < rows * width; i++) {
        d[i] = (float)((double)d[i] * gelu_slope((double)x[i]));
    }
}

/* A NaN is not below 0 and stays. */
static float relu(float x)
{
    return x < 0.0F ? 0.0F : x;
}

void dp_plain_relu2_forward(const float *x, size_t rows, size_t width, float *y)
{
    for (size_t i = 0; i < rows * width; i++) {
        y[i] = relu(x[i]) * relu(x[i]);
    }
}

void dp_plain_relu2_backward(const float *x, size_t rows, size_t width, float *y, float *d)
{
    dp_plain_relu2_forward(x, rows, width, y);
    for (size_t i = 0; i < rows * width; i++) {
        d[i] *= 2.0F * relu(x[i]);
    }
}

void dp_plain_swiglu_forward(const float *x, size_t rows, size_t width, float *y)
{
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < width; i++) {
            const double gate = (double)x[2 * row * width + i];
            const double up = (double)x[(2 * row + 1) * width + i];
            y[row * width + i] = (float)(gate / (1.0 + exp(-gate)) * up);
        }
    }
}

void dp_plain_swiglu_backward(const float *x, size_t rows, size_t width, float *y, float *d)
{
    dp_plain_swiglu_forward(x, rows, width, y);
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < width; i++) {
            const size_t at = 2 * row * width + i;
            const double gate = (double)x[at];
            const double up = (double)x[at + width];
            const double dy = (double)d[at];
            const double s = 1.0 / (1.0 + exp(-gate));
            d[at] = (float)(dy * up * s * (1.0 + gate * (1.0 - s)));
            d[at + width] = (float)(dy * gate * s);
        }
    }
}

void dp_plain_geglu_forward(const float *x, size_t rows, size_t width, float *y)
{
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < width; i++) {
            const double up = (double)x[(2 * row + 1) * width + i];
            y[row * width + i] = (float)(gelu((double)x[2 * row * width + i]) * up);
        }
    }
}

void dp_plain_geglu_backward(const float *x, size_t rows, size_t width, float *y, float *d)
{
    dp_plain_geglu_forward(x, rows, width, y);
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < width; i++) {
            const size_t at = 2 * row * width + i;
            const double gate = (double)x[at];
            const double dy = (double)d[at];
            d[at] = (float)(dy * (double)x[at + width] * gelu_slope(gate));
            d[at + width] = (float)(dy * gelu(gate));
        }
    }
}

/* Of the normal distribution: the share below v. */
static double share_below(double v)
{
    return 0.5 * (1.0 + erf(v * M_SQRT1_2));
}

void dp_plain_gelu_erf_forward(const float *x, size_t rows, size_t width, float *y)
{
    for (size_t i = 0; i < rows * width; i++) {
        y[i] = (float)((double)x[i] * share_below((double)x[i]));
    }
}

void dp_plain_gelu_erf_backward(const float *x, size_t rows, size_t width, float *y, float *d)
{
    dp_plain_gelu_erf_forward(x, rows, width, y);
    for (size_t i = 0; i < rows * width; i++) {
        const double v = (double)x[i];
        const double density = exp(-0.5 * v * v) * M_2_SQRTPI * M_SQRT1_2 * 0.5;
        d[i] = (float)((double)d[i] * (share_below(v) + v * density));
    }
}
