/* Sums over rows, column by column, on a GPU: gradients of biases, and the second half of every
 * gradient that is summed over rows.
 *
 * Two stages. Blocks sum strips of rows into scratch, then a fixed tree adds the strips: how many
 * strips there are follows from the shape alone, so every device that computes the same partial
 * sums ends with the same bits. No atomics. */
#ifndef DP_COMPUTE_CUDA_COLUMNS_H
#define DP_COMPUTE_CUDA_COLUMNS_H

#include <stddef.h>

#include "base/status.h"
#include "compute/cpu/precision.h"
#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enough blocks to keep the largest cards' memory busy. */
enum { DP_CUDA_STRIPS_MAX = 1024 };

/* Strips that rows are cut into, 1 .. DP_CUDA_STRIPS_MAX; all but the last have
 * dp_cuda_strip_rows. */
static inline size_t dp_cuda_strip_rows(size_t rows)
{
    const size_t least = (rows + DP_CUDA_STRIPS_MAX - 1) / DP_CUDA_STRIPS_MAX;
    return least < 16 ? 16 : least;
}

static inline size_t dp_cuda_strips(size_t rows)
{
    const size_t per_strip = dp_cuda_strip_rows(rows);
    return rows == 0 ? 1 : (rows + per_strip - 1) / per_strip;
}

/* Floats of scratch that dp_cuda_add_columns takes. */
static inline size_t dp_cuda_columns_scratch(size_t rows, size_t width)
{
    return dp_cuda_strips(rows) * width;
}

/* sum[j] += sum over rows of x[row][j]. x: [rows][width] of type at ld elements; sum: [width]
 * floats; all on the stream's device. DP_BADARG for a type that is none; DP_IO when the launch
 * fails (then sum holds anything). */
DP_MUST dp_status dp_cuda_add_columns(const void *x, dp_precision type, size_t rows, size_t width,
                                      size_t ld, float *sum, float *scratch, cudaStream_t stream);

/* sum[j] += partial[0][j] + partial[1][j] + ..., as a tree over strips. partial: [strips] rows of
 * width floats at ld. */
DP_MUST dp_status dp_cuda_add_strips(const float *partial, size_t strips, size_t width, size_t ld,
                                     float *sum, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
