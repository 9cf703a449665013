/* Attention in fp32 on plain cores, for any type and any head up to DP_MODEL_HEAD_WIDTH_MAX: right
 * everywhere, fast nowhere.
 *
 * A warp has a few rows (queries, or in one half of backward keys) and goes through the other side
 * in tiles of 32: a lane scores one column of the tile, then the lanes share the width of the head
 * to add the tile's rows, weighted by their scores. */
#include "compute/cuda/attention_inside.cuh"
#include "compute/cuda/reduce.cuh"
#include "compute/model/model.h"

enum {
    WARPS = 4,
    THREADS = WARPS * DP_LANES,
    FORWARD_ROWS = 4, /* of a warp */
    BACKWARD_ROWS = 2,
    SHARE = DP_MODEL_HEAD_WIDTH_MAX / DP_LANES /* elements of a head that a lane has */
};

/* Shared memory of a block: a tile with odd rows, so that lanes read different banks; rows of all
 * warps; weights of a tile. */
static size_t shared_floats(size_t head, size_t row_sets, size_t rows)
{
    return DP_LANES * (head + 1) + WARPS * rows * (row_sets * head + DP_LANES);
}

/* Rows first .. of a head as floats in room [rows][step]; those at length or behind are 0. */
template <typename T>
static __device__ inline void load_rows(float *room, size_t rows, size_t step, const T *from,
                                        size_t ld, size_t first, size_t length, size_t head)
{
    for (size_t at = threadIdx.x; at < rows * head; at += THREADS) {
        const size_t row = at / head;
        const size_t i = at % head;
        room[row * step + i] =
            first + row < length ? dp_to_float(from[(first + row) * ld + i]) : 0.0F;
    }
}

/* score[r] = row r of the warp . the lane's row of the tile. */
template <int ROWS>
static __device__ inline void score(float (&scores)[ROWS], const float *rows, const float *tile,
                                    size_t head)
{
    const float *const mine = tile + threadIdx.x % DP_LANES * (head + 1);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        scores[r] = 0.0F;
    }
    for (size_t i = 0; i < head; i++) {
        const float x = mine[i];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            scores[r] += rows[(size_t)r * head + i] * x;
        }
    }
}

/* sums[r] += sum over the lanes' weights[r] of their rows of the tile. room: [ROWS][32] of the
 * warp. */
template <int ROWS>
static __device__ inline void add_weighted(float (&sums)[ROWS][SHARE], const float (&weights)[ROWS],
                                           float *room, const float *tile, size_t head)
{
    const size_t lane = threadIdx.x % DP_LANES;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        room[r * DP_LANES + (int)lane] = weights[r];
    }
    __syncwarp();
    for (size_t j = 0; j < DP_LANES; j++) {
#pragma unroll
        for (int c = 0; c < SHARE; c++) {
            const size_t i = lane + (size_t)c * DP_LANES;
            const float x = i < head ? tile[j * (head + 1) + i] : 0.0F;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                sums[r][c] += room[r * DP_LANES + (int)j] * x;
            }
        }
    }
    __syncwarp();
}

template <typename T, int ROWS>
static __device__ inline void store_rows(T *to, size_t ld, size_t first, size_t length, size_t head,
                                         const float (&sums)[ROWS][SHARE],
                                         const float (&scale)[ROWS])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int c = 0; c < SHARE; c++) {
            const size_t i = threadIdx.x % DP_LANES + (size_t)c * DP_LANES;
            if (i < head && first + (size_t)r < length) {
                dp_store_one(to + (first + (size_t)r) * ld + i, sums[r][c] * scale[r]);
            }
        }
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) forward_kernel(const dp_cuda_attention a)
{
    const int ROWS = FORWARD_ROWS;
    DP_SHARED(float, tile);
    float *const q_rows = tile + DP_LANES * (a.head + 1);
    const size_t warp = threadIdx.x / DP_LANES;
    const size_t lane = threadIdx.x % DP_LANES;
    float *const weights = q_rows + WARPS * ROWS * a.head + warp * ROWS * DP_LANES;
    const float *const mine = q_rows + warp * ROWS * a.head;
    const size_t first = (gridDim.x - 1 - blockIdx.x) * (size_t)(WARPS * ROWS);
    const size_t query = first + warp * ROWS;
    const size_t token = blockIdx.z * a.length;
    const size_t kv_head = blockIdx.y / (a.heads / a.kv_heads);
    const T *const k = dp_head_in<T>(a.k, a.ld_qk, token, kv_head, a.head);
    const T *const v = dp_head_in<T>(a.v, a.ld_v, token, kv_head, a.head);
    const size_t end = first + WARPS * ROWS < a.length ? first + WARPS * ROWS : a.length;
    const float unit = DP_LOG2E / sqrtf((float)a.head);
    float out[ROWS][SHARE] = {};
    float largest[ROWS];
    float sum[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        largest[r] = -INFINITY;
        sum[r] = 0.0F;
    }
    load_rows(q_rows, WARPS * ROWS, a.head, dp_head_in<T>(a.q, a.ld_qk, token, blockIdx.y, a.head),
              a.ld_qk, first, a.length, a.head);
    for (size_t key = 0; key < end; key += DP_LANES) {
        float p[ROWS];
        load_rows(tile, DP_LANES, a.head + 1, k, a.ld_qk, key, a.length, a.head);
        __syncthreads();
        score<ROWS>(p, mine, tile, a.head);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            p[r] = key + lane > query + (size_t)r ? -INFINITY : p[r];
            const float top = fmaxf(largest[r], dp_lanes_max(p[r], DP_LANES));
            const float shrink = dp_exp2((largest[r] - top) * unit);
            p[r] = dp_exp2((p[r] - top) * unit);
            sum[r] = sum[r] * shrink + p[r];
            largest[r] = top;
#pragma unroll
            for (int c = 0; c < SHARE; c++) {
                out[r][c] *= shrink;
            }
        }
        __syncthreads();
        load_rows(tile, DP_LANES, a.head + 1, v, a.ld_v, key, a.length, a.head);
        __syncthreads();
        add_weighted<ROWS>(out, p, weights, tile, a.head);
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        sum[r] = dp_lanes_sum(sum[r], DP_LANES);
        if (lane == 0 && query + (size_t)r < a.length) {
            a.lse[(blockIdx.z * a.heads + blockIdx.y) * a.length + query + (size_t)r] =
                largest[r] * (unit * DP_LN2) + logf(sum[r]);
        }
        sum[r] = 1.0F / sum[r];
    }
    store_rows<T, ROWS>(dp_head_of<T>(a.out, a.ld_out, token, blockIdx.y, a.head), a.ld_out, query,
                        a.length, a.head, out, sum);
}

/* dq of a few queries. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    queries_kernel(const dp_cuda_attention a, const dp_cuda_attention_grads g)
{
    const int ROWS = BACKWARD_ROWS;
    DP_SHARED(float, tile);
    float *const q_rows = tile + DP_LANES * (a.head + 1);
    float *const d_rows = q_rows + WARPS * ROWS * a.head;
    const size_t warp = threadIdx.x / DP_LANES;
    const size_t lane = threadIdx.x % DP_LANES;
    float *const weights = d_rows + WARPS * ROWS * a.head + warp * ROWS * DP_LANES;
    const size_t first = (gridDim.x - 1 - blockIdx.x) * (size_t)(WARPS * ROWS);
    const size_t query = first + warp * ROWS;
    const size_t token = blockIdx.z * a.length;
    const size_t kv_head = blockIdx.y / (a.heads / a.kv_heads);
    const T *const k = dp_head_in<T>(a.k, a.ld_qk, token, kv_head, a.head);
    const T *const v = dp_head_in<T>(a.v, a.ld_v, token, kv_head, a.head);
    const size_t numbers = (blockIdx.z * a.heads + blockIdx.y) * a.length;
    const size_t end = first + WARPS * ROWS < a.length ? first + WARPS * ROWS : a.length;
    const float unit = DP_LOG2E / sqrtf((float)a.head);
    float dq[ROWS][SHARE] = {};
    float scale[ROWS];
    load_rows(q_rows, WARPS * ROWS, a.head, dp_head_in<T>(a.q, a.ld_qk, token, blockIdx.y, a.head),
              a.ld_qk, first, a.length, a.head);
    load_rows(d_rows, WARPS * ROWS, a.head,
              dp_head_in<T>(g.d_out, a.ld_out, token, blockIdx.y, a.head), a.ld_out, first,
              a.length, a.head);
    for (size_t key = 0; key < end; key += DP_LANES) {
        float p[ROWS];
        float ds[ROWS];
        load_rows(tile, DP_LANES, a.head + 1, v, a.ld_v, key, a.length, a.head);
        __syncthreads();
        score<ROWS>(ds, d_rows + warp * ROWS * a.head, tile, a.head);
        __syncthreads();
        load_rows(tile, DP_LANES, a.head + 1, k, a.ld_qk, key, a.length, a.head);
        __syncthreads();
        score<ROWS>(p, q_rows + warp * ROWS * a.head, tile, a.head);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const size_t at = query + (size_t)r;
            const bool seen = at < a.length && key + lane <= at;
            const float lse = seen ? a.lse[numbers + at] : 0.0F;
            const float delta = seen ? g.scratch[numbers + at] : 0.0F;
            ds[r] = seen ? dp_exp2(p[r] * unit - lse * DP_LOG2E) * (ds[r] - delta) : 0.0F;
        }
        add_weighted<ROWS>(dq, ds, weights, tile, a.head);
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        scale[r] = unit * DP_LN2;
    }
    store_rows<T, ROWS>(dp_head_of<T>(g.dq, g.ld_d, token, blockIdx.y, a.head), g.ld_d, query,
                        a.length, a.head, dq, scale);
}

/* dk and dv of a few keys. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    keys_kernel(const dp_cuda_attention a, const dp_cuda_attention_grads g)
{
    const int ROWS = BACKWARD_ROWS;
    DP_SHARED(float, tile);
    float *const k_rows = tile + DP_LANES * (a.head + 1);
    float *const v_rows = k_rows + WARPS * ROWS * a.head;
    const size_t warp = threadIdx.x / DP_LANES;
    const size_t lane = threadIdx.x % DP_LANES;
    float *const weights = v_rows + WARPS * ROWS * a.head + warp * ROWS * DP_LANES;
    const size_t first = (size_t)blockIdx.x * (WARPS * ROWS);
    const size_t key = first + warp * ROWS;
    const size_t token = blockIdx.z * a.length;
    const size_t groups = a.heads / a.kv_heads;
    const float unit = DP_LOG2E / sqrtf((float)a.head);
    float dk[ROWS][SHARE] = {};
    float dv[ROWS][SHARE] = {};
    float scale[ROWS];
    float one[ROWS];
    load_rows(k_rows, WARPS * ROWS, a.head, dp_head_in<T>(a.k, a.ld_qk, token, blockIdx.y, a.head),
              a.ld_qk, first, a.length, a.head);
    load_rows(v_rows, WARPS * ROWS, a.head, dp_head_in<T>(a.v, a.ld_v, token, blockIdx.y, a.head),
              a.ld_v, first, a.length, a.head);
    for (size_t head = blockIdx.y * groups; head < (blockIdx.y + 1) * groups; head++) {
        const T *const q = dp_head_in<T>(a.q, a.ld_qk, token, head, a.head);
        const T *const d_out = dp_head_in<T>(g.d_out, a.ld_out, token, head, a.head);
        const size_t numbers = (blockIdx.z * a.heads + head) * a.length;
        for (size_t query = first / DP_LANES * DP_LANES; query < a.length; query += DP_LANES) {
            const size_t at = query + lane;
            float p[ROWS];
            float ds[ROWS];
            load_rows(tile, DP_LANES, a.head + 1, q, a.ld_qk, query, a.length, a.head);
            __syncthreads();
            score<ROWS>(p, k_rows + warp * ROWS * a.head, tile, a.head);
            __syncthreads();
            load_rows(tile, DP_LANES, a.head + 1, d_out, a.ld_out, query, a.length, a.head);
            __syncthreads();
            score<ROWS>(ds, v_rows + warp * ROWS * a.head, tile, a.head);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const bool seen = at < a.length && key + (size_t)r <= at;
                const float lse = seen ? a.lse[numbers + at] : 0.0F;
                const float delta = seen ? g.scratch[numbers + at] : 0.0F;
                p[r] = seen ? dp_exp2(p[r] * unit - lse * DP_LOG2E) : 0.0F;
                ds[r] = seen ? p[r] * (ds[r] - delta) : 0.0F;
            }
            add_weighted<ROWS>(dv, p, weights, tile, a.head);
            __syncthreads();
            load_rows(tile, DP_LANES, a.head + 1, q, a.ld_qk, query, a.length, a.head);
            __syncthreads();
            add_weighted<ROWS>(dk, ds, weights, tile, a.head);
            __syncthreads();
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        scale[r] = unit * DP_LN2;
        one[r] = 1.0F;
    }
    store_rows<T, ROWS>(dp_head_of<T>(g.dk, g.ld_d, token, blockIdx.y, a.head), g.ld_d, key,
                        a.length, a.head, dk, scale);
    store_rows<T, ROWS>(dp_head_of<T>(g.dv, g.ld_d, token, blockIdx.y, a.head), g.ld_d, key,
                        a.length, a.head, dv, one);
}

template <typename T> static dp_status forward(const dp_cuda_attention *a, cudaStream_t stream)
{
    const dim3 grid((unsigned)dp_blocks(a->length, WARPS * FORWARD_ROWS), (unsigned)a->heads,
                    (unsigned)a->rows);
    const size_t shared = shared_floats(a->head, 1, FORWARD_ROWS) * sizeof(float);
    return DP_LAUNCH(forward_kernel<T>, grid, dim3(THREADS), shared, stream, *a);
}

template <typename T>
static dp_status backward(const dp_cuda_attention *a, const dp_cuda_attention_grads *g,
                          cudaStream_t stream)
{
    const unsigned tiles = (unsigned)dp_blocks(a->length, WARPS * BACKWARD_ROWS);
    const size_t shared = shared_floats(a->head, 2, BACKWARD_ROWS) * sizeof(float);
    DP_TRY(DP_LAUNCH(keys_kernel<T>, dim3(tiles, (unsigned)a->kv_heads, (unsigned)a->rows),
                     dim3(THREADS), shared, stream, *a, *g));
    return DP_LAUNCH(queries_kernel<T>, dim3(tiles, (unsigned)a->heads, (unsigned)a->rows),
                     dim3(THREADS), shared, stream, *a, *g);
}

dp_status dp_attention_plain_forward(const dp_cuda_attention *a, cudaStream_t stream)
{
    switch (a->type) {
    case DP_FP32:
        return forward<float>(a, stream);
    case DP_BF16:
        return forward<dp_bf16>(a, stream);
    case DP_FP16:
        return forward<dp_fp16>(a, stream);
    case DP_PRECISIONS:
        break;
    }
    return DP_BADARG;
}

dp_status dp_attention_plain_backward(const dp_cuda_attention *a, const dp_cuda_attention_grads *g,
                                      cudaStream_t stream)
{
    switch (a->type) {
    case DP_FP32:
        return backward<float>(a, g, stream);
    case DP_BF16:
        return backward<dp_bf16>(a, g, stream);
    case DP_FP16:
        return backward<dp_fp16>(a, g, stream);
    case DP_PRECISIONS:
        break;
    }
    return DP_BADARG;
}
