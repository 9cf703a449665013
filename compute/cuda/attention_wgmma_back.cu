/* Attention backward by the warpgroups of sm_90a, for heads of 64 and 128: the two kernels of
 * attention_mma.cu with the tiles, the ring and the pairs of attention_wgmma.cu. One goes through
 * the queries for a tile of keys (dk, dv), one through the keys for a tile of queries (dq); 7
 * products instead of 5, and nothing is added by two blocks.
 *
 * The expected speed on an H200: per cycle its SM multiplies 2048 pairs of halves, computes 16
 * exponentials and reads or writes 128 bytes of shared memory. 64 by 64 at heads of 128 are 4 * 64
 * * 64 * 128 / 2048 = 1024 cycles of products in the first kernel and 768 in the second, each with
 * 256 of exponentials and some 10 instructions a score, 320. Two warpgroups take turns at the
 * tensor cores; a warpgroup alone waits for its own products. With half of the rest in the open
 * that is (1024 + 768) / (1024 + 768 + 576) = 75 % of the peak for what is multiplied, 5/7 of it
 * for what is counted: 54 %, some 430 of the 790 TFLOP/s that this card holds, less the diagonal
 * (128 / (T + 128), 11 % at 1024 tokens). Heads of 64: half the products for the same rest, 61 %
 * and 5/7, some 340. Shared memory is as near. A product of 64 rows by n columns, 16 deep, takes n
 * / 2 cycles and reads 32 n bytes, and 2048 more where its left factor lies there: 64 columns
 * (heads of 128, first kernel) of scores are at the limit of 128 bytes a cycle, 128 columns at 96,
 * those with the left factor in registers at 64. In all the first kernel at heads of 128 reads 64 +
 * 32 KiB for each 64 by 64 of a warpgroup, is given 16 KiB (half of the pair) and reads its numbers
 * 4 warps * 64 times: about 1020 cycles beside 1024 of products, so whatever collides there shows.
 * The second: 96 + 32 + 32 KiB for 64 by 128, 1280 cycles beside 1536. Not yet run on a GPU. */
#include "compute/cuda/attention_group.cuh"

enum { SLOTS = 2, GROUPS = 2, ROWS = GROUPS * DP_GROUP_ROWS };

/* Registers of a thread: together the 504 a lane that three warpgroups have (wgmma.cuh). */
enum { COMPUTING = 240, ASKING = 24 };

/* How much of the other side comes at a time, so that sums fit 240 registers. */
template <int D> struct keys_size; /* early: dv is under way while gradients of scores are made */
template <> struct keys_size<64> {
    static const int columns = 128;
    static const bool early = false; /* Its factor has no registers until probabilities are done. */
};
template <> struct keys_size<128> {
    static const int columns = 64;
    static const bool early = true;
};
template <int D> struct queries_size;
template <> struct queries_size<64> {
    static const int columns = 128;
};
template <> struct queries_size<128> {
    static const int columns = 128;
};

typedef struct backward_maps {
    dp_tile_map held[2]; /* k and v, or q and d_out: tiles of 64 rows */
    dp_tile_map ring[2]; /* the others: tiles of columns rows */
} backward_maps;

typedef dp_tile_barriers<SLOTS> backward_barriers;

/* Two tiles of each warpgroup that stay for a turn, SLOTS pairs of tiles, numbers of the columns of
 * each, barriers. */
template <int D, int COLUMNS> struct rooms {
    static const int held = DP_GROUP_ROWS * D * 2; /* bytes of one tile */
    static const int tile = COLUMNS * D * 2;
    unsigned char *held_tiles; /* [2][GROUPS] */
    unsigned char *slots;      /* [SLOTS][2] */
    float *numbers;            /* [SLOTS][2][COLUMNS] */
    backward_barriers *barriers;
};

template <int D, int COLUMNS> static size_t shared_bytes(void)
{
    return DP_BULK_ALIGN + 2 * GROUPS * rooms<D, COLUMNS>::held +
           2 * SLOTS * rooms<D, COLUMNS>::tile + SLOTS * 2 * COLUMNS * sizeof(float) +
           sizeof(backward_barriers);
}

template <int D, int COLUMNS>
static __device__ inline rooms<D, COLUMNS> rooms_in(unsigned char *room)
{
    rooms<D, COLUMNS> r;
    r.held_tiles = dp_tiles_begin(room);
    r.slots = r.held_tiles + 2 * GROUPS * r.held;
    r.numbers = (float *)(r.slots + 2 * SLOTS * r.tile);
    r.barriers = (backward_barriers *)(r.numbers + SLOTS * 2 * COLUMNS);
    return r;
}

/* ---- the warps that ask */

/* The tiles that stay for this turn, by one thread. */
template <int D, int COLUMNS>
static __device__ inline void ask_held(const backward_maps *maps, const rooms<D, COLUMNS> *r,
                                       int head, int first, int row)
{
    dp_barrier_expect(&r->barriers->held, 2 * GROUPS * r->held);
    for (int i = 0; i < 2 * GROUPS; i++) {
        dp_tile_ask<D, DP_GROUP_ROWS>(r->held_tiles + i * r->held, &maps->held[i / GROUPS], head,
                                      first + i % GROUPS * DP_GROUP_ROWS, row, &r->barriers->held);
    }
}

/* The next pair of the ring, by one thread. */
template <int D, int COLUMNS>
static __device__ inline void ask_pair(const backward_maps *maps, const rooms<D, COLUMNS> *r,
                                       int item, int head, int first, int row)
{
    dp_barrier *const full = &r->barriers->ring.full[item % SLOTS];
    unsigned char *const slot = r->slots + item % SLOTS * 2 * r->tile;
    dp_barrier_expect(full, 2 * r->tile);
    dp_tile_ask<D, COLUMNS>(slot, &maps->ring[0], head, first, row, full);
    dp_tile_ask<D, COLUMNS>(slot + r->tile, &maps->ring[1], head, first, row, full);
}

/* ---- dk and dv of a tile of keys */

/* Turns of one block: its tiles of keys, and for each the queries from the first key on, of every
 * head of the group. */
typedef struct key_turn {
    int first;  /* key */
    int begin;  /* block of queries */
    int blocks; /* of them, for each head */
} key_turn;

template <int COLUMNS>
static __device__ inline key_turn key_turn_of(int turn, int tiles, int length)
{
    const int first = dp_turn_of_first(turn, tiles) * ROWS;
    const int begin = first / COLUMNS;
    return {first, begin, (length + COLUMNS - 1) / COLUMNS - begin};
}

/* By a warp. Numbers of queries at length or behind give probability 0. */
template <int D, int COLUMNS>
static __device__ inline void ask_queries(const backward_maps *maps, const dp_cuda_attention *a,
                                          const float *delta, const rooms<D, COLUMNS> *r)
{
    const int length = (int)a->length;
    const int tiles = (length + ROWS - 1) / ROWS;
    const int groups = (int)(a->heads / a->kv_heads);
    const int lane = (int)threadIdx.x % DP_LANES;
    int item = 0;
    for (int turn = 0; turn < dp_turns(tiles); turn++) {
        const key_turn t = key_turn_of<COLUMNS>(turn, tiles, length);
        dp_barrier_wait(&r->barriers->done, (turn & 1) ^ 1);
        if (lane == 0) {
            ask_held(maps, r, (int)blockIdx.y, t.first, (int)blockIdx.z);
        }
        for (int i = 0; i < groups * t.blocks; i++, item++) {
            const int head = (int)blockIdx.y * groups + i / t.blocks;
            const int first = (t.begin + i % t.blocks) * COLUMNS;
            const size_t at = (blockIdx.z * a->heads + (size_t)head) * a->length + (size_t)first;
            float *const numbers = r->numbers + item % SLOTS * 2 * COLUMNS;
            dp_ring_await_empty(&r->barriers->ring, item);
            for (int j = lane; j < COLUMNS; j += DP_LANES) {
                const bool there = first + j < length;
                numbers[j] = there ? a->lse[at + (size_t)j] * DP_LOG2E : INFINITY;
                numbers[COLUMNS + j] = there ? delta[at + (size_t)j] : 0.0F;
            }
            if (lane == 0) {
                ask_pair(maps, r, item, head, first, (int)blockIdx.z);
            } else {
                dp_barrier_arrive(&r->barriers->ring.full[item % SLOTS]);
            }
        }
    }
}

/* Scores, keys by queries, become probabilities; 0 where the query is before the key. key: of this
 * thread's first row. */
template <int COLUMNS>
static __device__ inline void expose(float (&p)[COLUMNS / 8][4], const float *lse, int key,
                                     int query, float unit)
{
    const int pair = 2 * ((int)threadIdx.x % 4);
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int column = 8 * n + pair + i % 2;
            const float exponent = p[n][i] * unit - lse[column];
            p[n][i] = key + i / 2 * 8 > query + column ? 0.0F : dp_exp2(exponent);
        }
    }
}

/* Gradients of probabilities become those of scores. */
template <int COLUMNS>
static __device__ inline void slope(float (&ds)[COLUMNS / 8][4], const float (&p)[COLUMNS / 8][4],
                                    const float *delta)
{
    const int pair = 2 * ((int)threadIdx.x % 4);
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            ds[n][i] = p[n][i] * (ds[n][i] - delta[8 * n + pair + i % 2]);
        }
    }
}

/* One pair of the ring's: dv += p' * d_out, dk += ds' * q. */
template <typename T, int D, int COLUMNS>
static __device__ inline void add_queries(float (&dk)[D / 8][4], float (&dv)[D / 8][4], uint64_t k,
                                          uint64_t v, const unsigned char *slot,
                                          const float *numbers, int key, int query)
{
    const float unit = DP_LOG2E / sqrtf((float)D);
    const uint64_t q = dp_factor<COLUMNS>(slot);
    const uint64_t d_out = dp_factor<COLUMNS>(slot + rooms<D, COLUMNS>::tile);
    float p[COLUMNS / 8][4];
    float ds[COLUMNS / 8][4];
    uint32_t held_p[COLUMNS / 16][4];
    uint32_t held_ds[COLUMNS / 16][4];
    dp_group_begin();
    dp_group_product<T, D, COLUMNS>(p, k, q);
    dp_group_close();
    dp_group_product<T, D, COLUMNS>(ds, v, d_out);
    dp_group_close();
    dp_group_wait<1>();
    dp_group_keep(p);
    expose<COLUMNS>(p, numbers, key, query, unit);
    if (keys_size<D>::early) {
        dp_group_hold<T, COLUMNS>(held_p, p);
        dp_group_begin();
        dp_group_add_product<T, D, COLUMNS>(dv, held_p, d_out);
        dp_group_close();
        dp_group_wait<1>();
    } else {
        dp_group_wait<0>();
    }
    dp_group_keep(ds);
    slope<COLUMNS>(ds, p, numbers + COLUMNS);
    dp_group_hold<T, COLUMNS>(held_ds, ds);
    if (!keys_size<D>::early) {
        dp_group_hold<T, COLUMNS>(held_p, p);
    }
    dp_group_begin();
    if (!keys_size<D>::early) {
        dp_group_add_product<T, D, COLUMNS>(dv, held_p, d_out);
    }
    dp_group_add_product<T, D, COLUMNS>(dk, held_ds, q);
    dp_group_close();
    dp_group_wait<0>();
    dp_group_keep(dv);
    dp_group_keep(dk);
}

template <typename T, int D, int COLUMNS>
static __device__ inline void compute_keys(const dp_cuda_attention *a,
                                           const dp_cuda_attention_grads *grads,
                                           const rooms<D, COLUMNS> *r, int group)
{
    const int length = (int)a->length;
    const int tiles = (length + ROWS - 1) / ROWS;
    const int groups = (int)(a->heads / a->kv_heads);
    const uint64_t k = dp_factor<DP_GROUP_ROWS>(r->held_tiles + group * r->held);
    const uint64_t v = dp_factor<DP_GROUP_ROWS>(r->held_tiles + (GROUPS + group) * r->held);
    const float unit = 1.0F / sqrtf((float)D);
    const float scale[2] = {unit, unit};
    const float one[2] = {1.0F, 1.0F};
    int item = 0;
    for (int turn = 0; turn < dp_turns(tiles); turn++) {
        const key_turn t = key_turn_of<COLUMNS>(turn, tiles, length);
        const int own = t.first + group * DP_GROUP_ROWS;
        const int key = own + dp_group_row();
        float dk[D / 8][4];
        float dv[D / 8][4];
        dp_group_clear(dk);
        dp_group_clear(dv);
        dp_barrier_wait(&r->barriers->held, turn & 1);
        const int items = groups * t.blocks;
        int query = t.begin * COLUMNS;
        for (int i = 0; i < items; i++, item++) {
            dp_ring_await_full(&r->barriers->ring, item);
            if (own < query + COLUMNS) { /* else all keys are behind these queries */
                add_queries<T, D, COLUMNS>(dk, dv, k, v, r->slots + item % SLOTS * 2 * r->tile,
                                           r->numbers + item % SLOTS * 2 * COLUMNS, key, query);
            }
            __syncwarp(); /* All lanes have read the numbers. */
            dp_ring_release(&r->barriers->ring, item);
            query = query + COLUMNS < length ? query + COLUMNS : t.begin * COLUMNS; /* next head */
        }
        if (threadIdx.x % DP_LANES == 0) {
            dp_barrier_arrive(&r->barriers->done);
        }
        const size_t token = blockIdx.z * a->length;
        dp_group_store<T, D>(dp_head_of<T>(grads->dk, grads->ld_d, token, blockIdx.y, D),
                             grads->ld_d, key, length, dk, scale);
        dp_group_store<T, D>(dp_head_of<T>(grads->dv, grads->ld_d, token, blockIdx.y, D),
                             grads->ld_d, key, length, dv, one);
    }
}

/* ---- dq of a tile of queries */

/* By one thread. */
template <int D, int COLUMNS>
static __device__ inline void ask_keys(const backward_maps *maps, const dp_cuda_attention *a,
                                       const rooms<D, COLUMNS> *r)
{
    const int length = (int)a->length;
    const int tiles = (length + ROWS - 1) / ROWS;
    const int kv_head = (int)(blockIdx.y / (a->heads / a->kv_heads));
    int item = 0;
    for (int turn = 0; turn < dp_turns(tiles); turn++) {
        const int first = dp_turn_of_last(turn, tiles) * ROWS;
        const int blocks = dp_blocks_below<COLUMNS>(first + ROWS, length);
        dp_barrier_wait(&r->barriers->done, (turn & 1) ^ 1);
        ask_held(maps, r, (int)blockIdx.y, first, (int)blockIdx.z);
        for (int i = 0; i < blocks; i++, item++) {
            dp_ring_await_empty(&r->barriers->ring, item);
            ask_pair(maps, r, item, kv_head, i * COLUMNS, (int)blockIdx.z);
        }
    }
}

/* Scores become probabilities and ds the gradients of scores. query: of this thread's first row. */
template <int COLUMNS>
static __device__ inline void slope_rows(float (&ds)[COLUMNS / 8][4],
                                         const float (&s)[COLUMNS / 8][4], const float (&lse)[2],
                                         const float (&delta)[2], int query, int key, float unit)
{
    const int column = key + 2 * ((int)threadIdx.x % 4);
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float p = column + 8 * n + i % 2 > query + i / 2 * 8
                                ? 0.0F
                                : dp_exp2(s[n][i] * unit - lse[i / 2]);
            ds[n][i] = p * (ds[n][i] - delta[i / 2]);
        }
    }
}

/* One pair of the ring's: dq += ds * k. */
template <typename T, int D, int COLUMNS>
static __device__ inline void add_keys(float (&dq)[D / 8][4], uint64_t q, uint64_t d_out,
                                       const unsigned char *slot, const float (&lse)[2],
                                       const float (&delta)[2], int query, int key)
{
    const float unit = DP_LOG2E / sqrtf((float)D);
    const uint64_t k = dp_factor<COLUMNS>(slot);
    const uint64_t v = dp_factor<COLUMNS>(slot + rooms<D, COLUMNS>::tile);
    float s[COLUMNS / 8][4];
    float ds[COLUMNS / 8][4];
    uint32_t held[COLUMNS / 16][4];
    dp_group_begin();
    dp_group_product<T, D, COLUMNS>(s, q, k);
    dp_group_product<T, D, COLUMNS>(ds, d_out, v);
    dp_group_close();
    dp_group_wait<0>();
    dp_group_keep(s);
    dp_group_keep(ds);
    slope_rows<COLUMNS>(ds, s, lse, delta, query, key, unit);
    dp_group_hold<T, COLUMNS>(held, ds);
    dp_group_begin();
    dp_group_add_product<T, D, COLUMNS>(dq, held, k);
    dp_group_close();
    dp_group_wait<0>();
    dp_group_keep(dq);
}

template <typename T, int D, int COLUMNS>
static __device__ inline void compute_queries(const dp_cuda_attention *a,
                                              const dp_cuda_attention_grads *grads,
                                              const rooms<D, COLUMNS> *r, int group)
{
    const int length = (int)a->length;
    const int tiles = (length + ROWS - 1) / ROWS;
    const uint64_t q = dp_factor<DP_GROUP_ROWS>(r->held_tiles + group * r->held);
    const uint64_t d_out = dp_factor<DP_GROUP_ROWS>(r->held_tiles + (GROUPS + group) * r->held);
    const float unit = 1.0F / sqrtf((float)D);
    const float scale[2] = {unit, unit};
    int item = 0;
    for (int turn = 0; turn < dp_turns(tiles); turn++) {
        const int first = dp_turn_of_last(turn, tiles) * ROWS;
        const int blocks = dp_blocks_below<COLUMNS>(first + ROWS, length);
        const int own = first + group * DP_GROUP_ROWS;
        const int query = own + dp_group_row();
        const size_t numbers = (blockIdx.z * a->heads + blockIdx.y) * a->length + (size_t)query;
        float lse[2];
        float delta[2];
        float dq[D / 8][4];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const bool there = query + 8 * i < length;
            lse[i] = there ? a->lse[numbers + 8 * i] * DP_LOG2E : INFINITY;
            delta[i] = there ? grads->scratch[numbers + 8 * i] : 0.0F;
        }
        dp_group_clear(dq);
        dp_barrier_wait(&r->barriers->held, turn & 1);
        for (int i = 0; i < blocks; i++, item++) {
            dp_ring_await_full(&r->barriers->ring, item);
            if (i * COLUMNS < own + DP_GROUP_ROWS) { /* else all keys are behind the queries */
                add_keys<T, D, COLUMNS>(dq, q, d_out, r->slots + item % SLOTS * 2 * r->tile, lse,
                                        delta, query, i * COLUMNS);
            }
            dp_ring_release(&r->barriers->ring, item);
        }
        if (threadIdx.x % DP_LANES == 0) {
            dp_barrier_arrive(&r->barriers->done);
        }
        dp_group_store<T, D>(
            dp_head_of<T>(grads->dq, grads->ld_d, blockIdx.z * a->length, blockIdx.y, D),
            grads->ld_d, query, length, dq, scale);
    }
}

/* ---- the kernel, of keys or of queries */

/* askers: threads that ask. */
template <typename T, int D> struct keys_side {
    static const int width = D;
    static const int columns = keys_size<D>::columns;
    static const int askers = DP_LANES;
    static __device__ inline void ask(const backward_maps *maps, const dp_cuda_attention *a,
                                      const dp_cuda_attention_grads *grads,
                                      const rooms<D, columns> *r)
    {
        ask_queries<D, columns>(maps, a, grads->scratch, r);
    }
    static __device__ inline void compute(const dp_cuda_attention *a,
                                          const dp_cuda_attention_grads *grads,
                                          const rooms<D, columns> *r, int group)
    {
        compute_keys<T, D, columns>(a, grads, r, group);
    }
};

template <typename T, int D> struct queries_side {
    static const int width = D;
    static const int columns = queries_size<D>::columns;
    static const int askers = 1;
    static __device__ inline void ask(const backward_maps *maps, const dp_cuda_attention *a,
                                      const dp_cuda_attention_grads *, const rooms<D, columns> *r)
    {
        ask_keys<D, columns>(maps, a, r);
    }
    static __device__ inline void compute(const dp_cuda_attention *a,
                                          const dp_cuda_attention_grads *grads,
                                          const rooms<D, columns> *r, int group)
    {
        compute_queries<T, D, columns>(a, grads, r, group);
    }
};

template <typename Side>
static __global__ void __launch_bounds__((GROUPS + 1) * DP_GROUP, 1)
    backward_kernel(const __grid_constant__ backward_maps maps,
                    const __grid_constant__ dp_cuda_attention a,
                    const __grid_constant__ dp_cuda_attention_grads grads)
{
#if DP_HAS_WGMMA
    DP_SHARED(unsigned char, room);
    const rooms<Side::width, Side::columns> r = rooms_in<Side::width, Side::columns>(room);
    const int group = dp_group_index();
    if (threadIdx.x == 0) {
        dp_tile_barriers_init(r.barriers, Side::askers, GROUPS);
    }
    __syncthreads();
    if (group == GROUPS) {
        dp_group_registers_less<ASKING>();
        if (threadIdx.x % DP_GROUP < Side::askers) {
            Side::ask(&maps, &a, &grads, &r);
        }
    } else {
        dp_group_registers_more<COMPUTING>();
        Side::compute(&a, &grads, &r, group);
    }
#else
    __trap();
#endif
}

/* ---- launching */

/* The heads of q (and d_out at ld_out) or of k and v, tiles of box rows. */
template <typename T, int D>
static dp_status map_queries(dp_tile_map maps[2], const dp_cuda_attention *a,
                             const dp_cuda_attention_grads *g, unsigned box)
{
    DP_TRY(dp_tile_map_make(&maps[0], (const T *)a->q, a->ld_qk, a->rows, a->length, a->heads, D,
                            box));
    return dp_tile_map_make(&maps[1], (const T *)g->d_out, a->ld_out, a->rows, a->length, a->heads,
                            D, box);
}

template <typename T, int D>
static dp_status map_keys(dp_tile_map maps[2], const dp_cuda_attention *a, unsigned box)
{
    DP_TRY(dp_tile_map_make(&maps[0], (const T *)a->k, a->ld_qk, a->rows, a->length, a->kv_heads, D,
                            box));
    return dp_tile_map_make(&maps[1], (const T *)a->v, a->ld_v, a->rows, a->length, a->kv_heads, D,
                            box);
}

/* A block to each pair of tiles of a head. */
template <typename Side>
static dp_status launch(const backward_maps &maps, const dp_cuda_attention *a,
                        const dp_cuda_attention_grads *g, size_t heads, cudaStream_t stream)
{
    const unsigned pairs = (unsigned)((dp_blocks(a->length, ROWS) + 1) / 2);
    const dim3 grid(pairs, (unsigned)heads, (unsigned)a->rows);
    return DP_LAUNCH((backward_kernel<Side>), grid, dim3((GROUPS + 1) * DP_GROUP),
                     (shared_bytes<Side::width, Side::columns>()), stream, maps, *a, *g);
}

template <typename T, int D>
static dp_status backward(const dp_cuda_attention *a, const dp_cuda_attention_grads *g,
                          cudaStream_t stream)
{
    backward_maps maps;
    DP_TRY((map_keys<T, D>(maps.held, a, DP_GROUP_ROWS)));
    DP_TRY((map_queries<T, D>(maps.ring, a, g, keys_side<T, D>::columns)));
    DP_TRY((launch<keys_side<T, D>>(maps, a, g, a->kv_heads, stream)));
    DP_TRY((map_queries<T, D>(maps.held, a, g, DP_GROUP_ROWS)));
    DP_TRY((map_keys<T, D>(maps.ring, a, queries_side<T, D>::columns)));
    return launch<queries_side<T, D>>(maps, a, g, a->heads, stream);
}

dp_status dp_attention_wgmma_backward(const dp_cuda_attention *a, const dp_cuda_attention_grads *g,
                                      cudaStream_t stream)
{
    if (a->type == DP_BF16) {
        return a->head == 64 ? backward<dp_bf16, 64>(a, g, stream)
                             : backward<dp_bf16, 128>(a, g, stream);
    }
    return a->head == 64 ? backward<dp_fp16, 64>(a, g, stream)
                         : backward<dp_fp16, 128>(a, g, stream);
}
