/* Attention forward by the warpgroups of sm_90a, after Shah et al. 2024 (FlashAttention-3), for
 * heads of 64 and 128.
 *
 * A block has one warpgroup that asks the copy engine for tiles, and two or three that compute 64
 * queries each. Those ask for the scores of the next keys and the output of the last at once, and
 * make probabilities of the one while the other is under way. A block takes two tiles of queries,
 * one from the end and one from the beginning, so that all blocks have as many keys to go through,
 * and the second tile's queries and keys are there when the first is done.
 *
 * The expected speed on an H200: its SM multiplies 2048 pairs of halves and computes 16
 * exponentials per cycle. 64 queries by 128 keys at heads of 128 are 2 * 64 * 128 * 128 / 2048 =
 * 1024 cycles of products, 8192 / 16 = 512 of exponentials, and about 4 instructions a score beside
 * them (scale, largest, sum, rounding) at 128 a cycle, 256. All of that fits beside the products of
 * the other warpgroup; with a fifth of it in the open 1024 / (1024 + 154) = 87 % of the peak. The
 * diagonal's half-empty tiles cost 128 / (T + 128), 11 % at 1024 tokens, begin and end of a block
 * some 3 of 30 us: about 70 %, 690 of 989 TFLOP/s at the clock of the peak, 550 at the 790 that
 * this card holds. Heads of 64 have 512 cycles of products for the same 768 of the rest, which then
 * bound them: at most 67 %, some 400 TFLOP/s with the diagonal. Not yet run on a GPU. */
#include "compute/cuda/attention_group.cuh"

enum { KEYS = 128, SLOTS = 4 };

/* How many warpgroups compute, and the registers of each thread: 512 a lane of all four groups
 * together, 504 of three (wgmma.cuh). */
template <int D> struct forward_size;
template <> struct forward_size<64> {
    static const int groups = 3, registers = 160, asking = 32;
};
template <> struct forward_size<128> {
    static const int groups = 2, registers = 240, asking = 24;
};

typedef struct forward_maps {
    dp_tile_map q, k, v;
} forward_maps;

typedef dp_tile_barriers<SLOTS>
    forward_barriers; /* The ring has keys and values, in turn; queries stay. */

template <typename T, int D> static size_t forward_shared(void)
{
    return DP_BULK_ALIGN +
           (DP_GROUP_ROWS * forward_size<D>::groups + KEYS * SLOTS) * D * sizeof(T) +
           sizeof(forward_barriers);
}

/* ---- the warps that ask */

template <int D>
static __device__ inline void ask(const forward_maps *maps, const dp_cuda_attention *a,
                                  unsigned char *queries, unsigned char *slots,
                                  forward_barriers *barriers)
{
    const int GROUPS = forward_size<D>::groups;
    const int ROWS = GROUPS * DP_GROUP_ROWS;
    const int length = (int)a->length;
    const int tiles = (length + ROWS - 1) / ROWS;
    const int row = (int)blockIdx.z;
    const int kv_head = (int)(blockIdx.y / (a->heads / a->kv_heads));
    const int bytes = KEYS * D * 2;
    int item = 0;
    for (int turn = 0; turn < dp_turns(tiles); turn++) {
        const int first = dp_turn_of_last(turn, tiles) * ROWS;
        const int blocks = dp_blocks_below<KEYS>(first + ROWS, length);
        dp_barrier_wait(&barriers->done, (turn & 1) ^ 1);
        dp_barrier_expect(&barriers->held, ROWS * D * 2);
        for (int group = 0; group < GROUPS; group++) {
            dp_tile_ask<D, DP_GROUP_ROWS>(queries + group * DP_GROUP_ROWS * D * 2, &maps->q,
                                          (int)blockIdx.y, first + group * DP_GROUP_ROWS, row,
                                          &barriers->held);
        }
        for (int i = 0; i < 2 * blocks; i++, item++) {
            dp_barrier *const full = &barriers->ring.full[item % SLOTS];
            dp_ring_await_empty(&barriers->ring, item);
            dp_barrier_expect(full, bytes);
            dp_tile_ask<D, KEYS>(slots + item % SLOTS * bytes, i % 2 == 0 ? &maps->k : &maps->v,
                                 kv_head, i / 2 * KEYS, row, full);
        }
    }
}

/* ---- the warps that compute */

/* Scores of keys behind their query are minus infinity. query: of this thread's first row. */
template <int COLUMNS>
static __device__ inline void mask(float (&s)[COLUMNS / 8][4], int query, int key)
{
    const int column = key + 2 * ((int)threadIdx.x % 4);
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            s[n][i] = column + 8 * n + i % 2 > query + i / 2 * 8 ? -INFINITY : s[n][i];
        }
    }
}

/* Online softmax: turns scores into probabilities relative to the largest score of each row so far,
 * and updates the sums of rows. shrink: the factor for the output so far. unit: scores times unit
 * are exponents of 2. */
template <int COLUMNS>
static __device__ inline void online_softmax(float (&s)[COLUMNS / 8][4], float (&largest)[2],
                                             float (&sum)[2], float (&shrink)[2], float unit)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float top = largest[i];
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; n++) {
            top = fmaxf(top, fmaxf(s[n][2 * i], s[n][2 * i + 1]));
        }
        top = dp_quad_max(top);
        shrink[i] = dp_exp2((largest[i] - top) * unit);
        largest[i] = top;
        sum[i] *= shrink[i];
        const float base = top * unit;
#pragma unroll
        for (int n = 0; n < COLUMNS / 8; n++) {
            s[n][2 * i] = dp_exp2(s[n][2 * i] * unit - base);
            s[n][2 * i + 1] = dp_exp2(s[n][2 * i + 1] * unit - base);
            sum[i] += s[n][2 * i] + s[n][2 * i + 1];
        }
    }
}

template <int D>
static __device__ inline void shrink_rows(float (&out)[D / 8][4], const float (&shrink)[2])
{
#pragma unroll
    for (int n = 0; n < D / 8; n++) {
        out[n][0] *= shrink[0];
        out[n][1] *= shrink[0];
        out[n][2] *= shrink[1];
        out[n][3] *= shrink[1];
    }
}

/* One tile: 64 queries of this warpgroup against all keys that they see. item: of the tile's first
 * keys. */
template <typename T, int D>
static __device__ inline void compute(const dp_cuda_attention *a, int first, int blocks, int item,
                                      int turn, const unsigned char *queries,
                                      const unsigned char *slots, forward_barriers *barriers)
{
    const int bytes = KEYS * D * 2;
    const int length = (int)a->length;
    const int own = dp_blocks_below<KEYS>(first + DP_GROUP_ROWS, length);
    const int seen = own < blocks ? own : blocks; /* Without a query below length: all. */
    const int query = first + dp_group_row();
    const float unit = DP_LOG2E / sqrtf((float)D);
    const uint64_t q = dp_factor<DP_GROUP_ROWS>(queries);
    const uint64_t slot = dp_factor<KEYS>(slots);
    dp_ring<SLOTS> *const ring = &barriers->ring;
    float out[D / 8][4];
    float s[KEYS / 8][4];
    uint32_t p[KEYS / 16][4];
    float largest[2] = {-INFINITY, -INFINITY};
    float sum[2] = {0.0F, 0.0F};
    float shrink[2];

    dp_group_clear(out);
    dp_barrier_wait(&barriers->held, turn & 1);
    for (int block = 0; block < seen; block++) {
        const int keys = item + 2 * block;
        dp_ring_await_full(ring, keys);
        dp_group_begin();
        dp_group_product<T, D, KEYS>(s, q, dp_factor_from(slot, keys % SLOTS * bytes));
        dp_group_close();
        if (block >
            0) { /* The output of the block before, while probabilities of this one are made. */
            dp_ring_await_full(ring, keys - 1);
            dp_group_begin();
            dp_group_add_product<T, D, KEYS>(out, p,
                                             dp_factor_from(slot, (keys - 1) % SLOTS * bytes));
            dp_group_close();
            dp_group_wait<1>();
        } else {
            dp_group_wait<0>();
        }
        dp_group_keep(s);
        dp_ring_release(ring, keys);
        if ((block + 1) * KEYS - 1 > first) {
            mask<KEYS>(s, query, block * KEYS);
        }
        online_softmax<KEYS>(s, largest, sum, shrink, unit);
        dp_group_wait<0>();
        dp_group_keep(out);
        if (block > 0) {
            dp_ring_release(ring, keys - 1);
        }
        shrink_rows<D>(out, shrink);
        dp_group_hold<T, KEYS>(p, s);
    }
    if (threadIdx.x % DP_LANES == 0) {
        dp_barrier_arrive(&barriers->done);
    }
    const int last = item + 2 * seen - 1;
    dp_ring_await_full(ring, last);
    dp_group_begin();
    dp_group_add_product<T, D, KEYS>(out, p, dp_factor_from(slot, last % SLOTS * bytes));
    dp_group_close();
    dp_group_wait<0>();
    dp_group_keep(out);
    dp_ring_release(ring, last);
    for (int rest = last + 1; rest < item + 2 * blocks; rest++) { /* for the other warpgroups */
        dp_ring_await_full(ring, rest);
        dp_ring_release(ring, rest);
    }

    float *const lse = a->lse + (blockIdx.z * a->heads + blockIdx.y) * a->length;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        sum[i] = dp_quad_sum(sum[i]);
        if (query + 8 * i < length && threadIdx.x % 4 == 0) {
            lse[query + 8 * i] = largest[i] * (unit * DP_LN2) + logf(sum[i]);
        }
        sum[i] = 1.0F / sum[i];
    }
    dp_group_store<T, D>(dp_head_of<T>(a->out, a->ld_out, blockIdx.z * a->length, blockIdx.y, D),
                         a->ld_out, query, length, out, sum);
}

template <typename T, int D>
static __global__ void __launch_bounds__((forward_size<D>::groups + 1) * DP_GROUP, 1)
    forward_kernel(const __grid_constant__ forward_maps maps,
                   const __grid_constant__ dp_cuda_attention a)
{
#if DP_HAS_WGMMA
    const int GROUPS = forward_size<D>::groups;
    const int ROWS = GROUPS * DP_GROUP_ROWS;
    DP_SHARED(unsigned char, room);
    unsigned char *const queries = dp_tiles_begin(room);
    unsigned char *const slots = queries + ROWS * D * 2;
    forward_barriers *const barriers = (forward_barriers *)(slots + SLOTS * KEYS * D * 2);
    const int group = dp_group_index();
    if (threadIdx.x == 0) {
        dp_tile_barriers_init(barriers, 1, GROUPS);
    }
    __syncthreads();
    if (group == GROUPS) {
        dp_group_registers_less<forward_size<D>::asking>();
        if (threadIdx.x % DP_GROUP == 0) {
            ask<D>(&maps, &a, queries, slots, barriers);
        }
    } else {
        dp_group_registers_more<forward_size<D>::registers>();
        const int tiles = ((int)a.length + ROWS - 1) / ROWS;
        int item = 0;
        for (int turn = 0; turn < dp_turns(tiles); turn++) {
            const int first = dp_turn_of_last(turn, tiles) * ROWS;
            const int blocks = dp_blocks_below<KEYS>(first + ROWS, (int)a.length);
            compute<T, D>(&a, first + group * DP_GROUP_ROWS, blocks, item, turn,
                          queries + group * DP_GROUP_ROWS * D * 2, slots, barriers);
            item += 2 * blocks;
        }
    }
#else
    __trap();
#endif
}

/* ---- launching */

template <typename T, int D>
static dp_status forward(const dp_cuda_attention *a, cudaStream_t stream)
{
    const size_t rows = (size_t)forward_size<D>::groups * DP_GROUP_ROWS;
    const size_t pairs = (dp_blocks(a->length, rows) + 1) / 2;
    const dim3 grid((unsigned)pairs, (unsigned)a->heads, (unsigned)a->rows);
    const dim3 block((forward_size<D>::groups + 1) * DP_GROUP);
    forward_maps maps;
    DP_TRY(dp_tile_map_make(&maps.q, (const T *)a->q, a->ld_qk, a->rows, a->length, a->heads, D,
                            DP_GROUP_ROWS));
    DP_TRY(dp_tile_map_make(&maps.k, (const T *)a->k, a->ld_qk, a->rows, a->length, a->kv_heads, D,
                            KEYS));
    DP_TRY(dp_tile_map_make(&maps.v, (const T *)a->v, a->ld_v, a->rows, a->length, a->kv_heads, D,
                            KEYS));
    return DP_LAUNCH((forward_kernel<T, D>), grid, block, (forward_shared<T, D>()), stream, maps,
                     *a);
}

bool dp_attention_wgmma_known(void)
{
    return dp_tile_map_known();
}

dp_status dp_attention_wgmma_forward(const dp_cuda_attention *a, cudaStream_t stream)
{
    if (a->type == DP_BF16) {
        return a->head == 64 ? forward<dp_bf16, 64>(a, stream) : forward<dp_bf16, 128>(a, stream);
    }
    return a->head == 64 ? forward<dp_fp16, 64>(a, stream) : forward<dp_fp16, 128>(a, stream);
}
