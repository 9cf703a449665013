#include "compute/cuda/head.h"

#include "compute/cuda/reduce.cuh"

enum { THREADS = 512, WARPS = THREADS / DP_LANES, SUM_THREADS = 1024, BLOCKS_MAX = 1 << 20 };

/* Softmax over several values at once: their largest, and the sum of exp(value - largest) (Milakov,
 * Gimelshein 2018). */
typedef struct soft {
    float largest;
    float sum;
} soft;

/* exp(x - of) where both may be minus infinity: then nothing has been seen yet. */
static __device__ inline float exp_over(float x, float of)
{
    return x == of ? 1.0F : dp_exp2((x - of) * DP_LOG2E);
}

static __device__ inline soft soft_add(soft a, soft b)
{
    const float largest = fmaxf(a.largest, b.largest);
    return soft{largest,
                a.sum * exp_over(a.largest, largest) + b.sum * exp_over(b.largest, largest)};
}

/* fmaxf drops a NaN, so a sum that has seen one must keep it. */
static __device__ inline void soft_take(soft *s, const float value[DP_VECTOR], size_t column,
                                        size_t vocab)
{
    float largest = s->largest;
#pragma unroll
    for (int i = 0; i < DP_VECTOR; i++) {
        largest = column + (size_t)i < vocab ? fmaxf(largest, value[i]) : largest;
    }
    s->sum *= exp_over(s->largest, largest);
    s->largest = largest;
#pragma unroll
    for (int i = 0; i < DP_VECTOR; i++) {
        s->sum += column + (size_t)i < vocab ? exp_over(value[i], largest) : 0.0F;
    }
}

/* tanh(x / cap) of a logit, 0 without a cap; *x becomes the capped one. */
static __device__ inline float cap_logit(float *x, float cap)
{
    if (cap <= 0.0F) {
        return 0.0F;
    }
    const float t = 2.0F * dp_sigmoid(2.0F * *x / cap) - 1.0F;
    *x = cap * t;
    return t;
}

/* Of all threads of the block, in a fixed order. */
static __device__ soft soft_of_block(soft mine, soft *room)
{
    for (int step = DP_LANES / 2; step > 0; step /= 2) {
        mine = soft_add(mine, soft{__shfl_xor_sync(0xffffffffU, mine.largest, step),
                                   __shfl_xor_sync(0xffffffffU, mine.sum, step)});
    }
    __syncthreads(); /* Nobody still reads the row before. */
    if (threadIdx.x % DP_LANES == 0) {
        room[threadIdx.x / DP_LANES] = mine;
    }
    __syncthreads();
    soft all = room[0];
    for (int i = 1; i < WARPS; i++) {
        all = soft_add(all, room[i]);
    }
    return all;
}

/* A block takes a row; it reads the row twice, the second time out of the cache, from the end
 * on. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    classifier_kernel(const dp_cuda_classifier c, T *logits, bool even)
{
    __shared__ soft room[WARPS];
    const float scale = c.scale * (c.scale_by == nullptr ? 1.0F : *c.scale_by);
    const size_t reach = (c.ld + DP_VECTOR - 1) / DP_VECTOR;
    for (size_t row = blockIdx.x; row < c.rows; row += gridDim.x) {
        T *const x = logits + row * c.ld;
        const size_t target = c.targets[row];
        soft mine = {-INFINITY, 0.0F};
        for (size_t at = threadIdx.x; at * DP_VECTOR < c.vocab; at += THREADS) {
            float value[DP_VECTOR];
            dp_load_row(value, x, at * DP_VECTOR, even ? c.ld : c.vocab, even);
#pragma unroll
            for (int i = 0; i < DP_VECTOR; i++) {
                cap_logit(&value[i], c.softcap);
            }
            soft_take(&mine, value, at * DP_VECTOR, c.vocab);
        }
        const soft all = soft_of_block(mine, room);
        if (threadIdx.x == 0) {
            float z = target < c.vocab ? dp_to_float(x[target]) : NAN;
            cap_logit(&z, c.softcap);
            c.losses[row] = all.largest - z + logf(all.sum);
        }
        if (c.scale == 0.0F) {
            continue;
        }
        __syncthreads(); /* The target's logit is about to change. */
        const float over = 1.0F / all.sum;
        for (size_t back = threadIdx.x; back < reach; back += THREADS) {
            const size_t column = (reach - 1 - back) * DP_VECTOR;
            float value[DP_VECTOR];
            dp_load_row(value, x, column, even ? c.ld : c.vocab, even);
#pragma unroll
            for (int i = 0; i < DP_VECTOR; i++) {
                const float t = cap_logit(&value[i], c.softcap);
                const float p = exp_over(value[i], all.largest) * over;
                const float d =
                    scale * (p - (column + (size_t)i == target ? 1.0F : 0.0F)) * (1.0F - t * t);
                value[i] = column + (size_t)i < c.vocab ? d : 0.0F;
            }
            dp_store_row(x, value, column, c.ld, even);
        }
    }
}

static __global__ void __launch_bounds__(SUM_THREADS)
    sum_kernel(const float *losses, size_t n, double *sum)
{
    __shared__ double sums[SUM_THREADS];
    double total = 0.0;
    for (size_t i = threadIdx.x; i < n; i += SUM_THREADS) {
        total += (double)losses[i];
    }
    sums[threadIdx.x] = total;
    for (unsigned step = SUM_THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) {
            sums[threadIdx.x] += sums[threadIdx.x + step];
        }
    }
    if (threadIdx.x == 0) {
        *sum += sums[0];
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    out_kernel(const T *x, size_t n, float cap, float *out)
{
    const size_t stride = (size_t)gridDim.x * THREADS;
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += stride) {
        float value = dp_to_float(x[i]);
        cap_logit(&value, cap);
        out[i] = value;
    }
}

template <typename T> static dp_status classify(const dp_cuda_classifier *c, cudaStream_t stream)
{
    const bool even = c->ld % DP_VECTOR == 0 && dp_even(c->logits, 0);
    return DP_LAUNCH(classifier_kernel<T>, dim3((unsigned)dp_least(c->rows, BLOCKS_MAX)),
                     dim3(THREADS), 0, stream, *c, (T *)c->logits, even);
}

extern "C" dp_status dp_cuda_classify(const dp_cuda_classifier *c, cudaStream_t stream)
{
    if (c->vocab == 0 || c->ld < c->vocab) {
        return DP_BADARG;
    }
    switch (c->type) {
    case DP_FP32:
        return classify<float>(c, stream);
    case DP_BF16:
        return classify<dp_bf16>(c, stream);
    case DP_FP16:
        return classify<dp_fp16>(c, stream);
    case DP_PRECISIONS:
        break;
    }
    return DP_BADARG;
}

extern "C" dp_status dp_cuda_loss_sum(const float *losses, size_t n, double *sum,
                                      cudaStream_t stream)
{
    return DP_LAUNCH(sum_kernel, dim3(1), dim3(SUM_THREADS), 0, stream, losses, n, sum);
}

extern "C" dp_status dp_cuda_logits_out(const void *x, dp_precision type, size_t n, float cap,
                                        float *out, cudaStream_t stream)
{
    const dim3 grid((unsigned)dp_least(dp_blocks(n, THREADS), BLOCKS_MAX));
    switch (type) {
    case DP_FP32:
        return DP_LAUNCH(out_kernel<float>, grid, dim3(THREADS), 0, stream, (const float *)x, n,
                         cap, out);
    case DP_BF16:
        return DP_LAUNCH(out_kernel<dp_bf16>, grid, dim3(THREADS), 0, stream, (const dp_bf16 *)x, n,
                         cap, out);
    case DP_FP16:
        return DP_LAUNCH(out_kernel<dp_fp16>, grid, dim3(THREADS), 0, stream, (const dp_fp16 *)x, n,
                         cap, out);
    case DP_PRECISIONS:
        break;
    }
    return DP_BADARG;
}
