#include "compute/cuda/columns.h"

#include "compute/cuda/columns.cuh"

enum { FINISH_ROWS = 32 /* threads over strips in the second stage */ };

/* One block sums a strip of rows in 32 vectors of columns. */
template <typename T>
static __global__ void __launch_bounds__(DP_STRIP_THREADS)
    strip_kernel(const T *x, size_t rows, size_t width, size_t ld, size_t per_strip, bool even,
                 float *partial)
{
    const dp_strip strip = dp_strip_of(rows, per_strip);
    float sum[DP_VECTOR] = {0};
#pragma unroll 4
    for (size_t row = strip.first; row < strip.last; row += DP_STRIP_ROWS) {
        float value[DP_VECTOR];
        dp_load_row(value, x + row * ld, strip.column, width, even);
#pragma unroll
        for (int i = 0; i < DP_VECTOR; i++) {
            sum[i] += value[i];
        }
    }
    dp_strip_keep(sum, width, partial);
}

/* One block adds all strips of 32 columns. */
static __global__ void __launch_bounds__(DP_LANES *FINISH_ROWS)
    finish_kernel(const float *partial, size_t strips, size_t width, size_t ld, float *sum)
{
    __shared__ float sums[FINISH_ROWS][DP_LANES];
    const size_t lane = threadIdx.x % DP_LANES;
    const size_t warp = threadIdx.x / DP_LANES;
    const size_t column = (size_t)blockIdx.x * DP_LANES + lane;
    float total = 0.0F;
    if (column < width) {
#pragma unroll 4
        for (size_t strip = warp; strip < strips; strip += FINISH_ROWS) {
            total += partial[strip * ld + column];
        }
    }
    sums[warp][lane] = total;
    for (size_t step = FINISH_ROWS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (warp < step) {
            sums[warp][lane] += sums[warp + step][lane];
        }
    }
    if (warp == 0 && column < width) {
        sum[column] += sums[0][lane];
    }
}

template <typename T>
static dp_status sum_strips(const T *x, size_t rows, size_t width, size_t ld, float *partial,
                            cudaStream_t stream)
{
    const bool even = dp_even(x, ld * sizeof(T)) && width % DP_VECTOR == 0;
    return DP_LAUNCH(strip_kernel<T>, dp_strip_grid(rows, width), dim3(DP_STRIP_THREADS), 0, stream,
                     x, rows, width, ld, dp_cuda_strip_rows(rows), even, partial);
}

extern "C" dp_status dp_cuda_add_strips(const float *partial, size_t strips, size_t width,
                                        size_t ld, float *sum, cudaStream_t stream)
{
    if (width == 0) {
        return DP_OK;
    }
    return DP_LAUNCH(finish_kernel, dim3((unsigned)dp_blocks(width, DP_LANES)),
                     dim3(DP_LANES * FINISH_ROWS), 0, stream, partial, strips, width, ld, sum);
}

extern "C" dp_status dp_cuda_add_columns(const void *x, dp_precision type, size_t rows,
                                         size_t width, size_t ld, float *sum, float *scratch,
                                         cudaStream_t stream)
{
    dp_status status = DP_BADARG;
    if (rows == 0 || width == 0) {
        return DP_OK;
    }
    switch (type) {
    case DP_FP32:
        status = sum_strips((const float *)x, rows, width, ld, scratch, stream);
        break;
    case DP_BF16:
        status = sum_strips((const dp_bf16 *)x, rows, width, ld, scratch, stream);
        break;
    case DP_FP16:
        status = sum_strips((const dp_fp16 *)x, rows, width, ld, scratch, stream);
        break;
    case DP_PRECISIONS:
        break;
    }
    if (status != DP_OK) {
        return status;
    }
    return dp_cuda_add_strips(scratch, dp_cuda_strips(rows), width, width, sum, stream);
}
