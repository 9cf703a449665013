/* Attention by tensor cores, after Dao 2023 (FlashAttention-2), for heads of any multiple of 8 up
 * to 256. Tiles are D = 64, 128 or 256 wide; a narrower head lies in the first columns of the next
 * width, with zeros behind it.
 *
 * Forward: a block has a tile of queries and goes through the keys up to the diagonal; scores,
 * probabilities and the output stay in registers. Backward is two kernels, 7 products instead of 5,
 * so that nothing is added by two blocks: one goes through the queries for a tile of keys (dk, dv),
 * one through the keys for a tile of queries (dq). Scores stand as keys x queries in the first, so
 * that the factors of its next product are in registers too. With tiles of 256 the sums of dk and
 * of dv do not both fit the registers: the first kernel runs twice, once for each.
 *
 * sm_75 takes the same kernels for fp16 alone, with products half as deep (mma.cuh). It has no
 * copies that come by themselves, so nothing is asked for ahead, and half the shared memory:
 * backward has one stage there. */
#include "compute/cuda/attention_inside.cuh"
#include "compute/cuda/attention_tile.cuh"

enum {
    WARPS = 4,
    THREADS = WARPS * DP_LANES,
    SHARED = 99 * 1024, /* of a block on sm_86, sm_89 and sm_120; others from sm_80 on have more */
    SHARED_BY8 = 64 * 1024 /* on sm_75 */
};

/* The results of a pass over the queries for a tile of keys. */
enum { DK = 1, DV = 2 };

/* The part of a tile that one warp computes, chosen so that the sums fit 255 registers: MT times 16
 * rows, and COLUMNS of the other side at a time. */
template <int D> struct forward_size;
template <> struct forward_size<64> {
    static const int mt = 2, columns = 64;
};
template <> struct forward_size<128> {
    static const int mt = 2, columns = 32;
};
template <> struct forward_size<256> {
    static const int mt = 1, columns = 32;
};
template <int D, int STAGES> struct keys_size;
template <> struct keys_size<64, 2> {
    static const int mt = 2, columns = 32;
};
template <> struct keys_size<128, 2> {
    static const int mt = 1, columns = 32;
};
template <> struct keys_size<256, 2> {
    static const int mt = 1, columns = 16;
};
template <int D> struct keys_size<D, 1> { /* Two blocks then share an SM of sm_75. */
    static const int mt = 1, columns = 32;
};
template <int D, int STAGES> struct queries_size;
template <> struct queries_size<64, 2> {
    static const int mt = 2, columns = 32;
};
template <> struct queries_size<128, 2> {
    static const int mt = 1, columns = 64;
};
template <> struct queries_size<256, 2> {
    static const int mt = 1, columns = 16;
};
template <int D> struct queries_size<D, 1> {
    static const int mt = 1, columns = 32;
};

/* Sums of row-like numbers over the four lanes that share a row. */
static __device__ inline float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 2));
}

static __device__ inline float quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffffU, x, 1);
    return x + __shfl_xor_sync(0xffffffffU, x, 2);
}

/* ---- forward */

/* Scores become probabilities over the largest of each row so far; sums of rows and the output
 * follow a larger one. unit: scores times it are exponents of 2. */
template <int D, int MT, int COLUMNS>
static __device__ inline void online_softmax(float (&s)[MT][COLUMNS / 8][4],
                                             float (&out)[MT][D / 8][4], float (&largest)[MT][2],
                                             float (&sum)[MT][2], float unit)
{
#pragma unroll
    for (int m = 0; m < MT; m++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float top = largest[m][i];
#pragma unroll
            for (int n = 0; n < COLUMNS / 8; n++) {
                top = fmaxf(top, fmaxf(s[m][n][2 * i], s[m][n][2 * i + 1]));
            }
            top = quad_max(top);
            const float shrink = dp_exp2((largest[m][i] - top) * unit);
            const float base = top * unit;
            largest[m][i] = top;
            sum[m][i] *= shrink;
#pragma unroll
            for (int n = 0; n < D / 8; n++) {
                out[m][n][2 * i] *= shrink;
                out[m][n][2 * i + 1] *= shrink;
            }
#pragma unroll
            for (int n = 0; n < COLUMNS / 8; n++) {
                s[m][n][2 * i] = dp_exp2(s[m][n][2 * i] * unit - base);
                s[m][n][2 * i + 1] = dp_exp2(s[m][n][2 * i + 1] * unit - base);
                sum[m][i] += s[m][n][2 * i] + s[m][n][2 * i + 1];
            }
        }
    }
}

/* Scores of keys behind their query are minus infinity. query, key: of the warp's first row and
 * column. */
template <int MT, int COLUMNS>
static __device__ inline void mask(float (&s)[MT][COLUMNS / 8][4], int query, int key)
{
    const int lane = (int)threadIdx.x % DP_LANES;
    if (key + COLUMNS - 1 <= query) {
        return;
    }
#pragma unroll
    for (int m = 0; m < MT; m++) {
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; n++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int row = query + 16 * m + i / 2 * 8 + lane / 4;
                const int column = key + 8 * n + i % 2 + 2 * (lane % 4);
                s[m][n][i] = column > row ? -INFINITY : s[m][n][i];
            }
        }
    }
}

template <typename T, int D>
static __global__ void __launch_bounds__(THREADS) forward_kernel(const dp_cuda_attention a)
{
    const int MT = forward_size<D>::mt;
    const int COLUMNS = forward_size<D>::columns;
    const int ROWS = WARPS * MT * 16;
    DP_SHARED(T, q_tile);
    T *const k_tile = q_tile + ROWS * D;
    T *const v_tile = k_tile + COLUMNS * D;
    /* Later tiles have more keys: they begin first. */
    const int length = (int)a.length;
    const int width = (int)a.head;
    const int first = (int)(gridDim.x - 1 - blockIdx.x) * ROWS;
    const size_t token = blockIdx.z * a.length;
    const size_t kv_head = blockIdx.y / (a.heads / a.kv_heads);
    const T *const q = dp_head_in<T>(a.q, a.ld_qk, token, blockIdx.y, a.head);
    const T *const k = dp_head_in<T>(a.k, a.ld_qk, token, kv_head, a.head);
    const T *const v = dp_head_in<T>(a.v, a.ld_v, token, kv_head, a.head);
    const int row = (int)threadIdx.x / DP_LANES * MT * 16; /* of the warp in the tile */
    const int query = first + row;
    const int end = first + ROWS < length ? first + ROWS : length; /* of keys */
    const float unit = DP_LOG2E / sqrtf((float)a.head);

    float out[MT][D / 8][4] = {};
    float largest[MT][2];
    float sum[MT][2];
#pragma unroll
    for (int m = 0; m < MT; m++) {
        largest[m][0] = largest[m][1] = -INFINITY;
        sum[m][0] = sum[m][1] = 0.0F;
    }
    dp_tile_load<T, D, ROWS, THREADS>(q_tile, q, a.ld_qk, first, length, width);
    dp_tile_load<T, D, COLUMNS, THREADS>(k_tile, k, a.ld_qk, 0, length, width);
    dp_copies_close();
    for (int key = 0; key < end; key += COLUMNS) {
        const bool seen = key < query + MT * 16; /* by the warp */
        float s[MT][COLUMNS / 8][4];
        dp_copies_wait<0>();
        __syncthreads(); /* Keys are there, and all are done with the values before. */
        dp_tile_load<T, D, COLUMNS, THREADS>(v_tile, v, a.ld_v, key, length, width);
        dp_copies_close();
        if (seen) {
            dp_tile_product<T, D, MT, COLUMNS>(s, q_tile, row, k_tile);
        }
        dp_copies_wait<0>();
        __syncthreads(); /* Values are there, and all are done with the keys. */
        if (key + COLUMNS < end) {
            dp_tile_load<T, D, COLUMNS, THREADS>(k_tile, k, a.ld_qk, key + COLUMNS, length, width);
        }
        dp_copies_close();
        if (seen) {
            mask<MT, COLUMNS>(s, query, key);
            online_softmax<D, MT, COLUMNS>(s, out, largest, sum, unit);
            dp_tile_add_product<T, D, MT, COLUMNS>(out, s, v_tile);
        }
    }
    float *const lse = a.lse + (blockIdx.z * a.heads + blockIdx.y) * a.length;
#pragma unroll
    for (int m = 0; m < MT; m++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int at = query + 16 * m + 8 * i + (int)threadIdx.x % DP_LANES / 4;
            sum[m][i] = quad_sum(sum[m][i]);
            if (at < length && threadIdx.x % 4 == 0) {
                lse[at] = largest[m][i] * (unit * DP_LN2) + logf(sum[m][i]);
            }
            sum[m][i] = 1.0F / sum[m][i];
        }
    }
    dp_tile_store<T, D, MT>(dp_head_of<T>(a.out, a.ld_out, token, blockIdx.y, a.head), a.ld_out,
                            query, length, width, out, sum);
}

/* ---- backward: dk and dv of a tile of keys */

/* Numbers of COLUMNS queries, for the exponent and the slope; those at length or behind give
 * probability 0. */
template <int COLUMNS>
static __device__ inline void load_queries(float *room, const float *lse, const float *delta,
                                           int first, int length)
{
    for (int i = (int)threadIdx.x; i < COLUMNS; i += THREADS) {
        const bool there = first + i < length;
        room[i] = there ? lse[first + i] * DP_LOG2E : INFINITY;
        room[COLUMNS + i] = there ? delta[first + i] : 0.0F;
    }
}

/* Gradients of probabilities, keys x queries, become those of scores. delta: of the queries. */
template <int MT, int COLUMNS>
static __device__ inline void slopes(float (&ds)[MT][COLUMNS / 8][4],
                                     const float (&p)[MT][COLUMNS / 8][4], const float *delta)
{
#pragma unroll
    for (int m = 0; m < MT; m++) {
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; n++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int column = 8 * n + i % 2 + 2 * ((int)threadIdx.x % 4);
                ds[m][n][i] = p[m][n][i] * (ds[m][n][i] - delta[column]);
            }
        }
    }
}

/* RESULTS: dk, dv or both. */
template <typename T, int D, int STAGES, int RESULTS>
static __global__ void __launch_bounds__(THREADS)
    keys_kernel(const dp_cuda_attention a, const dp_cuda_attention_grads grads)
{
    const int MT = keys_size<D, STAGES>::mt;
    const int COLUMNS = keys_size<D, STAGES>::columns;
    const int ROWS = WARPS * MT * 16;
    const int STAGE = 2 * COLUMNS * D; /* halves of q and d_out */
    DP_SHARED(T, k_tile);
    T *const v_tile = k_tile + ROWS * D;
    T *const stages = v_tile + ROWS * D;
    float *const numbers = (float *)(stages + STAGES * STAGE); /* [STAGES][2][COLUMNS] */
    const int AHEAD = STAGES - 1;
    const int length = (int)a.length;
    const int width = (int)a.head;
    const int first = (int)blockIdx.x * ROWS; /* Earlier tiles have more queries. */
    const size_t token = blockIdx.z * a.length;
    const int groups = (int)(a.heads / a.kv_heads);
    const int row = (int)threadIdx.x / DP_LANES * MT * 16;
    const int key = first + row;
    const int lane = (int)threadIdx.x % DP_LANES;
    const float unit = DP_LOG2E / sqrtf((float)a.head);
    /* Queries from the tile's first key on, for each head of the group in turn. */
    const int begin = first / COLUMNS;
    const int blocks = (length + COLUMNS - 1) / COLUMNS - begin;

    float dk[MT][D / 8][4] = {};
    float dv[MT][D / 8][4] = {};
    dp_tile_load<T, D, ROWS, THREADS>(k_tile,
                                      dp_head_in<T>(a.k, a.ld_qk, token, blockIdx.y, a.head),
                                      a.ld_qk, first, length, width);
    dp_tile_load<T, D, ROWS, THREADS>(v_tile, dp_head_in<T>(a.v, a.ld_v, token, blockIdx.y, a.head),
                                      a.ld_v, first, length, width);
    for (int turn = 0; turn < groups * blocks + AHEAD; turn++) {
        if (turn < groups * blocks) { /* Asks for the next turn's queries. */
            const size_t head = blockIdx.y * (size_t)groups + (size_t)(turn / blocks);
            const int at = (begin + turn % blocks) * COLUMNS;
            const size_t numbers_at = (blockIdx.z * a.heads + head) * a.length;
            T *const stage = stages + turn % STAGES * STAGE;
            dp_tile_load<T, D, COLUMNS, THREADS>(stage,
                                                 dp_head_in<T>(a.q, a.ld_qk, token, head, a.head),
                                                 a.ld_qk, at, length, width);
            dp_tile_load<T, D, COLUMNS, THREADS>(
                stage + COLUMNS * D, dp_head_in<T>(grads.d_out, a.ld_out, token, head, a.head),
                a.ld_out, at, length, width);
            load_queries<COLUMNS>(numbers + turn % STAGES * 2 * COLUMNS, a.lse + numbers_at,
                                  grads.scratch + numbers_at, at, length);
        }
        dp_copies_close();
        if (turn < AHEAD) {
            continue;
        }
        const int last = turn - AHEAD;
        const T *const q_tile = stages + last % STAGES * STAGE;
        const T *const d_tile = q_tile + COLUMNS * D;
        const float *const lse = numbers + last % STAGES * 2 * COLUMNS;
        const int query = (begin + last % blocks) * COLUMNS;
        dp_copies_wait<STAGES - 1>();
        __syncthreads();
        if (key < query + COLUMNS) { /* else the whole warp's keys are behind these queries */
            float p[MT][COLUMNS / 8][4];
            float ds[MT][COLUMNS / 8][4];
            dp_tile_product<T, D, MT, COLUMNS>(p, k_tile, row, q_tile);
#pragma unroll
            for (int m = 0; m < MT; m++) {
#pragma unroll
                for (int n = 0; n < COLUMNS / 8; n++) {
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        const int column = 8 * n + i % 2 + 2 * (lane % 4);
                        const int at = key + 16 * m + i / 2 * 8 + lane / 4;
                        const float exponent = p[m][n][i] * unit - lse[column];
                        p[m][n][i] = at > query + column ? 0.0F : dp_exp2(exponent);
                    }
                }
            }
            if ((RESULTS & DV) != 0) {
                dp_tile_add_product<T, D, MT, COLUMNS>(dv, p, d_tile);
            }
            if ((RESULTS & DK) != 0) {
                dp_tile_product<T, D, MT, COLUMNS>(ds, v_tile, row, d_tile);
                slopes<MT, COLUMNS>(ds, p, lse + COLUMNS);
                dp_tile_add_product<T, D, MT, COLUMNS>(dk, ds, q_tile);
            }
        }
        __syncthreads(); /* A later turn writes where this one has read. */
    }
    float scale[MT][2];
    float one[MT][2];
#pragma unroll
    for (int m = 0; m < MT; m++) {
        scale[m][0] = scale[m][1] = unit * DP_LN2;
        one[m][0] = one[m][1] = 1.0F;
    }
    if ((RESULTS & DK) != 0) {
        dp_tile_store<T, D, MT>(dp_head_of<T>(grads.dk, grads.ld_d, token, blockIdx.y, a.head),
                                grads.ld_d, key, length, width, dk, scale);
    }
    if ((RESULTS & DV) != 0) {
        dp_tile_store<T, D, MT>(dp_head_of<T>(grads.dv, grads.ld_d, token, blockIdx.y, a.head),
                                grads.ld_d, key, length, width, dv, one);
    }
}

/* ---- backward: dq of a tile of queries */

template <typename T, int D, int STAGES>
static __global__ void __launch_bounds__(THREADS)
    queries_kernel(const dp_cuda_attention a, const dp_cuda_attention_grads grads)
{
    const int MT = queries_size<D, STAGES>::mt;
    const int COLUMNS = queries_size<D, STAGES>::columns;
    const int ROWS = WARPS * MT * 16;
    const int STAGE = 2 * COLUMNS * D; /* halves of k and v */
    const int AHEAD = STAGES - 1;
    DP_SHARED(T, q_tile);
    T *const d_tile = q_tile + ROWS * D;
    T *const stages = d_tile + ROWS * D;
    const int length = (int)a.length;
    const int width = (int)a.head;
    const int first = (int)(gridDim.x - 1 - blockIdx.x) * ROWS;
    const size_t token = blockIdx.z * a.length;
    const size_t kv_head = blockIdx.y / (a.heads / a.kv_heads);
    const T *const k = dp_head_in<T>(a.k, a.ld_qk, token, kv_head, a.head);
    const T *const v = dp_head_in<T>(a.v, a.ld_v, token, kv_head, a.head);
    const int row = (int)threadIdx.x / DP_LANES * MT * 16;
    const int query = first + row;
    const int lane = (int)threadIdx.x % DP_LANES;
    const float unit = DP_LOG2E / sqrtf((float)a.head);
    const int end = first + ROWS < length ? first + ROWS : length;
    const int blocks = (end + COLUMNS - 1) / COLUMNS;

    float dq[MT][D / 8][4] = {};
    float lse[MT][2];
    float delta[MT][2];
#pragma unroll
    for (int m = 0; m < MT; m++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int at = query + 16 * m + 8 * i + lane / 4;
            const size_t numbers = (blockIdx.z * a.heads + blockIdx.y) * a.length + (size_t)at;
            lse[m][i] = at < length ? a.lse[numbers] * DP_LOG2E : INFINITY;
            delta[m][i] = at < length ? grads.scratch[numbers] : 0.0F;
        }
    }
    dp_tile_load<T, D, ROWS, THREADS>(q_tile,
                                      dp_head_in<T>(a.q, a.ld_qk, token, blockIdx.y, a.head),
                                      a.ld_qk, first, length, width);
    dp_tile_load<T, D, ROWS, THREADS>(
        d_tile, dp_head_in<T>(grads.d_out, a.ld_out, token, blockIdx.y, a.head), a.ld_out, first,
        length, width);
    for (int turn = 0; turn < blocks + AHEAD; turn++) {
        if (turn < blocks) { /* Asks for the next turn's keys and values. */
            T *const stage = stages + turn % STAGES * STAGE;
            dp_tile_load<T, D, COLUMNS, THREADS>(stage, k, a.ld_qk, turn * COLUMNS, length, width);
            dp_tile_load<T, D, COLUMNS, THREADS>(stage + COLUMNS * D, v, a.ld_v, turn * COLUMNS,
                                                 length, width);
        }
        dp_copies_close();
        if (turn < AHEAD) {
            continue;
        }
        const int last = turn - AHEAD;
        const T *const k_tile = stages + last % STAGES * STAGE;
        const T *const v_tile = k_tile + COLUMNS * D;
        const int key = last * COLUMNS;
        dp_copies_wait<STAGES - 1>();
        __syncthreads();
        if (key < query + MT * 16) {
            float p[MT][COLUMNS / 8][4];
            float ds[MT][COLUMNS / 8][4];
            dp_tile_product<T, D, MT, COLUMNS>(p, q_tile, row, k_tile);
            dp_tile_product<T, D, MT, COLUMNS>(ds, d_tile, row, v_tile);
            mask<MT, COLUMNS>(p, query, key);
#pragma unroll
            for (int m = 0; m < MT; m++) {
#pragma unroll
                for (int n = 0; n < COLUMNS / 8; n++) {
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        const float exponent = p[m][n][i] * unit - lse[m][i / 2];
                        ds[m][n][i] = dp_exp2(exponent) * (ds[m][n][i] - delta[m][i / 2]);
                    }
                }
            }
            dp_tile_add_product<T, D, MT, COLUMNS>(dq, ds, k_tile);
        }
        __syncthreads(); /* A later turn writes where this one has read. */
    }
    float scale[MT][2];
#pragma unroll
    for (int m = 0; m < MT; m++) {
        scale[m][0] = scale[m][1] = unit * DP_LN2;
    }
    dp_tile_store<T, D, MT>(dp_head_of<T>(grads.dq, grads.ld_d, token, blockIdx.y, a.head),
                            grads.ld_d, query, length, width, dq, scale);
}

/* ---- launching */

template <typename T, int D>
static dp_status forward(const dp_cuda_attention *a, cudaStream_t stream)
{
    const size_t rows = (size_t)WARPS * forward_size<D>::mt * 16;
    const size_t shared = (rows + 2 * forward_size<D>::columns) * D * sizeof(T);
    const dim3 grid((unsigned)dp_blocks(a->length, rows), (unsigned)a->heads, (unsigned)a->rows);
    return DP_LAUNCH((forward_kernel<T, D>), grid, dim3(THREADS), shared, stream, *a);
}

template <typename T, int D, int STAGES, int RESULTS>
static dp_status keys_pass(const dp_cuda_attention *a, const dp_cuda_attention_grads *g,
                           cudaStream_t stream)
{
    const size_t rows = (size_t)WARPS * keys_size<D, STAGES>::mt * 16;
    const size_t columns = keys_size<D, STAGES>::columns;
    const size_t shared =
        (2 * rows + 2 * STAGES * columns) * D * sizeof(T) + 2 * STAGES * columns * sizeof(float);
    static_assert(shared <= (STAGES > 1 ? SHARED : SHARED_BY8), "as much as the cards have");
    const dim3 grid((unsigned)dp_blocks(a->length, rows), (unsigned)a->kv_heads, (unsigned)a->rows);
    return DP_LAUNCH((keys_kernel<T, D, STAGES, RESULTS>), grid, dim3(THREADS), shared, stream, *a,
                     *g);
}

template <typename T, int D, int STAGES>
static dp_status queries_pass(const dp_cuda_attention *a, const dp_cuda_attention_grads *g,
                              cudaStream_t stream)
{
    const size_t rows = (size_t)WARPS * queries_size<D, STAGES>::mt * 16;
    const size_t shared =
        (2 * rows + 2 * STAGES * queries_size<D, STAGES>::columns) * D * sizeof(T);
    static_assert(shared <= (STAGES > 1 ? SHARED : SHARED_BY8), "as much as the cards have");
    const dim3 grid((unsigned)dp_blocks(a->length, rows), (unsigned)a->heads, (unsigned)a->rows);
    return DP_LAUNCH((queries_kernel<T, D, STAGES>), grid, dim3(THREADS), shared, stream, *a, *g);
}

/* STAGES: of the side that a block goes through, so that one comes while another is read. */
template <typename T, int D, int STAGES>
static dp_status backward(const dp_cuda_attention *a, const dp_cuda_attention_grads *g,
                          cudaStream_t stream)
{
    if constexpr (D <= 128) {
        DP_TRY((keys_pass<T, D, STAGES, DK | DV>(a, g, stream)));
    } else {
        DP_TRY((keys_pass<T, D, STAGES, DK>(a, g, stream)));
        DP_TRY((keys_pass<T, D, STAGES, DV>(a, g, stream)));
    }
    return queries_pass<T, D, STAGES>(a, g, stream);
}

/* By the narrowest tiles that hold a head. */
template <typename T> static dp_status forward_of(const dp_cuda_attention *a, cudaStream_t stream)
{
    return a->head <= 64    ? forward<T, 64>(a, stream)
           : a->head <= 128 ? forward<T, 128>(a, stream)
                            : forward<T, 256>(a, stream);
}

/* Heads up to 128: wider tiles do not fit the shared memory of sm_75. */
static dp_status forward_by8(const dp_cuda_attention *a, cudaStream_t stream)
{
    return a->head <= 64 ? forward<dp_fp16_by8, 64>(a, stream)
                         : forward<dp_fp16_by8, 128>(a, stream);
}

static dp_status backward_by8(const dp_cuda_attention *a, const dp_cuda_attention_grads *g,
                              cudaStream_t stream)
{
    return a->head <= 64 ? backward<dp_fp16_by8, 64, 1>(a, g, stream)
                         : backward<dp_fp16_by8, 128, 1>(a, g, stream);
}

template <typename T>
static dp_status backward_of(const dp_cuda_attention *a, const dp_cuda_attention_grads *g,
                             cudaStream_t stream)
{
    return a->head <= 64    ? backward<T, 64, 2>(a, g, stream)
           : a->head <= 128 ? backward<T, 128, 2>(a, g, stream)
                            : backward<T, 256, 2>(a, g, stream);
}

dp_status dp_attention_mma_forward(const dp_cuda_attention *a, cudaStream_t stream)
{
    if (a->type == DP_BF16) {
        return forward_of<dp_bf16>(a, stream);
    }
    return a->path == DP_ATTENTION_MMA8 ? forward_by8(a, stream) : forward_of<dp_fp16>(a, stream);
}

dp_status dp_attention_mma_backward(const dp_cuda_attention *a, const dp_cuda_attention_grads *g,
                                    cudaStream_t stream)
{
    if (a->type == DP_BF16) {
        return backward_of<dp_bf16>(a, g, stream);
    }
    return a->path == DP_ATTENTION_MMA8 ? backward_by8(a, g, stream)
                                        : backward_of<dp_fp16>(a, g, stream);
}
