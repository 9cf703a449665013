#include "compute/cuda/act.h"

#include "compute/cuda/columns.cuh"

enum { THREADS = 256, BLOCKS_MAX = 1 << 16 };

#define GELU_SLOPE 1.59576912160573071176F /* 2 sqrt(2/pi) */
#define GELU_CUBE 0.044715F
#define HALF_ROOT 0.70710678118654752440F    /* sqrt(1/2) */
#define DENSITY_AT_0 0.39894228040143267794F /* 1/sqrt(2 pi) */

/* A kind as functions of a value of x, or of a gate and an up. tanh(u) = 2 sigmoid(2u) - 1 makes
 * GELU x * sigmoid(2u), which keeps its relative precision where it comes near 0. */
struct gelu {
    static const int inputs = 1;
    static __device__ float value(float x, float)
    {
        return x * dp_sigmoid(GELU_SLOPE * (x + GELU_CUBE * x * x * x));
    }
    static __device__ void slopes(float x, float, float d, float *dx, float *)
    {
        const float s = dp_sigmoid(GELU_SLOPE * (x + GELU_CUBE * x * x * x));
        const float inner = GELU_SLOPE * (1.0F + 3.0F * GELU_CUBE * x * x);
        /* Far out the slope is 0 or 1, and inner may overflow. */
        const float bend = s * (1.0F - s);
        *dx = d * (s + (bend == 0.0F ? 0.0F : x * bend * inner));
    }
};

/* A NaN is not below 0 and stays. */
struct relu2 {
    static const int inputs = 1;
    static __device__ float value(float x, float)
    {
        const float y = x < 0.0F ? 0.0F : x;
        return y * y;
    }
    static __device__ void slopes(float x, float, float d, float *dx, float *)
    {
        *dx = d * 2.0F * (x < 0.0F ? 0.0F : x);
    }
};

struct swiglu {
    static const int inputs = 2;
    static __device__ float value(float gate, float up)
    {
        return gate * dp_sigmoid(gate) * up;
    }
    static __device__ void slopes(float gate, float up, float d, float *d_gate, float *d_up)
    {
        const float s = dp_sigmoid(gate);
        const float bend = 1.0F - s;
        *d_gate = d * up * s * (1.0F + (bend == 0.0F ? 0.0F : gate * bend));
        *d_up = d * gate * s;
    }
};

/* erfc keeps the relative precision of the share below x far on the left. */
struct gelu_erf {
    static const int inputs = 1;
    static __device__ float value(float x, float)
    {
        return x * 0.5F * erfcf(x * -HALF_ROOT);
    }
    static __device__ void slopes(float x, float, float d, float *dx, float *)
    {
        const float density = DENSITY_AT_0 * expf(-0.5F * x * x);
        *dx = d * (0.5F * erfcf(x * -HALF_ROOT) + (density == 0.0F ? 0.0F : x * density));
    }
};

struct geglu {
    static const int inputs = 2;
    static __device__ float value(float gate, float up)
    {
        return gelu::value(gate, 0.0F) * up;
    }
    static __device__ void slopes(float gate, float up, float d, float *d_gate, float *d_up)
    {
        gelu::slopes(gate, 0.0F, d * up, d_gate, nullptr);
        *d_up = d * gelu::value(gate, 0.0F);
    }
};

/* One thread takes a vector of a row at a time. */
template <typename K, typename T>
static __global__ void __launch_bounds__(THREADS)
    forward_kernel(const T *x, size_t rows, size_t width, bool even, T *y)
{
    const size_t vectors = (width + DP_VECTOR - 1) / DP_VECTOR;
    const size_t stride = (size_t)gridDim.x * THREADS;
    for (size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x; at < rows * vectors;
         at += stride) {
        const size_t row = at / vectors;
        const size_t column = at % vectors * DP_VECTOR;
        float in[DP_VECTOR];
        float up[DP_VECTOR] = {0};
        dp_load_row(in, x + row * K::inputs * width, column, width, even);
        if (K::inputs == 2) {
            dp_load_row(up, x + (row * K::inputs + 1) * width, column, width, even);
        }
#pragma unroll
        for (int i = 0; i < DP_VECTOR; i++) {
            in[i] = K::value(in[i], up[i]);
        }
        dp_store_row(y + row * width, in, column, width, even);
    }
}

/* One vector of a row; *sum: the values of dx that memory holds then, NULL where nobody asks. */
template <typename K, typename T>
static __device__ inline void step_back(const T *x, size_t row, size_t column, size_t width,
                                        bool even, const T *dy, size_t ld_dy, T *dx, T *y,
                                        float *sum)
{
    float in[DP_VECTOR];
    float up[DP_VECTOR] = {0};
    float d[DP_VECTOR];
    float out[DP_VECTOR];
    dp_load_row(in, x + row * K::inputs * width, column, width, even);
    if (K::inputs == 2) {
        dp_load_row(up, x + (row * K::inputs + 1) * width, column, width, even);
    }
    dp_load_row(d, dy + row * ld_dy, column, width, even);
#pragma unroll
    for (int i = 0; i < DP_VECTOR; i++) {
        float d_in;
        float d_up = 0.0F;
        out[i] = K::value(in[i], up[i]);
        K::slopes(in[i], up[i], d[i], &d_in, &d_up);
        in[i] = d_in;
        up[i] = d_up;
    }
    dp_store_row(dx + row * K::inputs * width, in, column, width, even);
    if (K::inputs == 2) {
        dp_store_row(dx + (row * K::inputs + 1) * width, up, column, width, even);
    }
    if (y != nullptr) {
        dp_store_row(y + row * width, out, column, width, even);
    }
    if (sum != nullptr) {
#pragma unroll
        for (int i = 0; i < DP_VECTOR; i++) {
            sum[i] += dp_rounded((T *)nullptr, in[i]);
        }
    }
}

template <typename K, typename T>
static __global__ void __launch_bounds__(THREADS)
    backward_kernel(const T *x, size_t rows, size_t width, bool even, const T *dy, size_t ld_dy,
                    T *dx, T *y)
{
    const size_t vectors = (width + DP_VECTOR - 1) / DP_VECTOR;
    const size_t stride = (size_t)gridDim.x * THREADS;
    for (size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x; at < rows * vectors;
         at += stride) {
        step_back<K>(x, at / vectors, at % vectors * DP_VECTOR, width, even, dy, ld_dy, dx, y,
                     nullptr);
    }
}

/* The same by strips, with the sums of dx's columns: the gradient of the bias before the
 * activation. Kinds of one input. */
template <typename K, typename T>
static __global__ void __launch_bounds__(DP_STRIP_THREADS)
    strip_kernel(const T *x, size_t rows, size_t width, size_t per_strip, bool even, const T *dy,
                 size_t ld_dy, T *dx, T *y, float *partial)
{
    const dp_strip strip = dp_strip_of(rows, per_strip);
    float sum[DP_VECTOR] = {0};
    if (strip.column < width) {
        for (size_t row = strip.first; row < strip.last; row += DP_STRIP_ROWS) {
            step_back<K>(x, row, strip.column, width, even, dy, ld_dy, dx, y, sum);
        }
    }
    dp_strip_keep(sum, width, partial);
}

static dim3 grid_for(const dp_cuda_activation *act)
{
    const size_t vectors = act->rows * dp_blocks(act->width, DP_VECTOR);
    return dim3((unsigned)dp_least(dp_blocks(vectors, THREADS), BLOCKS_MAX));
}

template <typename K, typename T>
static dp_status forward_of(const dp_cuda_activation *act, void *y, cudaStream_t stream)
{
    const bool even = act->width % DP_VECTOR == 0 && dp_even(act->x, 0) && dp_even(y, 0);
    return DP_LAUNCH((forward_kernel<K, T>), grid_for(act), dim3(THREADS), 0, stream,
                     (const T *)act->x, act->rows, act->width, even, (T *)y);
}

/* Further arguments of backward. */
typedef struct back {
    const void *dy;
    size_t ld_dy;
    void *dx;
    void *y;
    float *d_bias;
    float *scratch;
} back;

/* Sums by a kernel of their own for two inputs, which no published model gives a bias. */
template <typename K, typename T>
static dp_status backward_of(const dp_cuda_activation *act, const back *b, cudaStream_t stream)
{
    const bool even = act->width % DP_VECTOR == 0 && dp_even(act->x, 0) &&
                      dp_even(b->dy, b->ld_dy * sizeof(T)) && dp_even(b->dx, 0) && dp_even(b->y, 0);
    const T *const x = (const T *)act->x;
    const T *const dy = (const T *)b->dy;
    T *const dx = (T *)b->dx;
    T *const y = (T *)b->y;
    if (b->d_bias != nullptr && K::inputs == 1) {
        DP_TRY(DP_LAUNCH((strip_kernel<K, T>), dp_strip_grid(act->rows, act->width),
                         dim3(DP_STRIP_THREADS), 0, stream, x, act->rows, act->width,
                         dp_cuda_strip_rows(act->rows), even, dy, b->ld_dy, dx, y, b->scratch));
        return dp_cuda_add_strips(b->scratch, dp_cuda_strips(act->rows), act->width, act->width,
                                  b->d_bias, stream);
    }
    DP_TRY(DP_LAUNCH((backward_kernel<K, T>), grid_for(act), dim3(THREADS), 0, stream, x, act->rows,
                     act->width, even, dy, b->ld_dy, dx, y));
    const size_t wide = K::inputs * act->width;
    return b->d_bias == nullptr ? DP_OK
                                : dp_cuda_add_columns(dx, act->type, act->rows, wide, wide,
                                                      b->d_bias, b->scratch, stream);
}

template <typename K>
static dp_status forward(const dp_cuda_activation *act, void *y, cudaStream_t stream)
{
    switch (act->type) {
    case DP_FP32:
        return forward_of<K, float>(act, y, stream);
    case DP_BF16:
        return forward_of<K, dp_bf16>(act, y, stream);
    case DP_FP16:
        return forward_of<K, dp_fp16>(act, y, stream);
    case DP_PRECISIONS:
        break;
    }
    return DP_BADARG;
}

template <typename K>
static dp_status backward(const dp_cuda_activation *act, const back *b, cudaStream_t stream)
{
    switch (act->type) {
    case DP_FP32:
        return backward_of<K, float>(act, b, stream);
    case DP_BF16:
        return backward_of<K, dp_bf16>(act, b, stream);
    case DP_FP16:
        return backward_of<K, dp_fp16>(act, b, stream);
    case DP_PRECISIONS:
        break;
    }
    return DP_BADARG;
}

extern "C" dp_status dp_cuda_activation_forward(const dp_cuda_activation *act, void *y,
                                                cudaStream_t stream)
{
    if (act->rows == 0 || act->width == 0) {
        return DP_OK;
    }
    switch (act->kind) {
    case DP_GELU:
        return forward<gelu>(act, y, stream);
    case DP_RELU2:
        return forward<relu2>(act, y, stream);
    case DP_SWIGLU:
        return forward<swiglu>(act, y, stream);
    case DP_GELU_ERF:
        return forward<gelu_erf>(act, y, stream);
    case DP_GEGLU:
        return forward<geglu>(act, y, stream);
    case DP_ACTIVATION_KINDS:
        break;
    }
    return DP_BADARG;
}

extern "C" dp_status dp_cuda_activation_backward(const dp_cuda_activation *act, const void *dy,
                                                 size_t ld_dy, void *dx, void *y, float *d_bias,
                                                 float *scratch, cudaStream_t stream)
{
    const back b = {dy, ld_dy, dx, y, d_bias, scratch};
    if (act->rows == 0 || act->width == 0) {
        return DP_OK;
    }
    switch (act->kind) {
    case DP_GELU:
        return backward<gelu>(act, &b, stream);
    case DP_RELU2:
        return backward<relu2>(act, &b, stream);
    case DP_SWIGLU:
        return backward<swiglu>(act, &b, stream);
    case DP_GELU_ERF:
        return backward<gelu_erf>(act, &b, stream);
    case DP_GEGLU:
        return backward<geglu>(act, &b, stream);
    case DP_ACTIVATION_KINDS:
        break;
    }
    return DP_BADARG;
}
