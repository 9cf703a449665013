#include "compute/cuda/embed.h"

#include "base/run/model_config.h"
#include "compute/cuda/element.cuh"

enum {
    THREADS = 256,
    TILE = DP_CUDA_EMBED_TILE,
    DIGITS = DP_CUDA_SORT_DIGITS,
    DIGIT_BITS = 6,
    SORT_WARPS = THREADS / DP_LANES,
    SORT_EACH = DP_CUDA_SORT_TILE / THREADS, /* keys of a thread */
    BLOCKS_MAX = 1 << 20
};

static_assert(1 << DIGIT_BITS == DIGITS, "a digit");

/* The memory of the sort; all of n or of tiles * DIGITS words. */
typedef struct sort_room {
    uint32_t *keys[2];
    uint32_t *places[2];
    uint32_t *counts;
} sort_room;

/* ---- forward */

template <typename S>
static __global__ void __launch_bounds__(THREADS)
    forward_kernel(const dp_cuda_embed e, const float *table, const float *positions, bool even,
                   S *x)
{
    const size_t vectors = (e.width + DP_VECTOR - 1) / DP_VECTOR;
    const size_t all = e.rows * e.length * vectors;
    const size_t stride = (size_t)gridDim.x * THREADS;
    for (size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x; at < all; at += stride) {
        const size_t i = at / vectors;
        const size_t column = at % vectors * DP_VECTOR;
        const size_t token = e.tokens[i];
        float value[DP_VECTOR];
        float more[DP_VECTOR] = {0};
        if (positions != nullptr) {
            dp_load_row(more, positions + i % e.length * e.width, column, e.width, even);
        }
        if (token < e.vocab) {
            dp_load_row(value, table + token * e.width, column, e.width, even);
        }
#pragma unroll
        for (int j = 0; j < DP_VECTOR; j++) {
            value[j] = token < e.vocab ? value[j] + more[j] : NAN;
        }
        dp_store_row(x + i * e.width, value, column, e.width, even);
    }
}

/* ---- sorting: counts of each tile's digits, where each (digit, tile) begins, then every key to
 * its place */

/* Lanes that have the same digit as this one. */
static __device__ inline uint32_t same_digit(uint32_t digit, bool here)
{
    uint32_t same = __ballot_sync(0xffffffffU, here ? 1 : 0);
#pragma unroll
    for (int bit = 0; bit < DIGIT_BITS; bit++) {
        const uint32_t ones = __ballot_sync(0xffffffffU, (int)(digit >> bit & 1U));
        same &= (digit >> bit & 1U) != 0 ? ones : ~ones;
    }
    return same;
}

/* A number that is not a token sorts behind all tokens. */
static __device__ inline uint32_t key_of(uint32_t token, uint32_t vocab)
{
    return token < vocab ? token : vocab;
}

/* counts[digit][tile]. */
static __global__ void __launch_bounds__(THREADS)
    count_kernel(const uint32_t *keys, size_t n, uint32_t vocab, unsigned shift, uint32_t *counts)
{
    __shared__ uint32_t count[DIGITS];
    if (threadIdx.x < DIGITS) {
        count[threadIdx.x] = 0;
    }
    __syncthreads();
    const size_t first = (size_t)blockIdx.x * DP_CUDA_SORT_TILE;
    for (size_t i = threadIdx.x; i < DP_CUDA_SORT_TILE; i += THREADS) {
        if (first + i < n) {
            const uint32_t key = key_of(keys[first + i], vocab);
            atomicAdd(&count[key >> shift & (DIGITS - 1U)], 1U); /* Integers: exact. */
        }
    }
    __syncthreads();
    if (threadIdx.x < DIGITS) {
        counts[(size_t)threadIdx.x * gridDim.x + blockIdx.x] = count[threadIdx.x];
    }
}

/* Each count becomes the sum of those before it; one block. */
static __global__ void __launch_bounds__(THREADS) scan_kernel(uint32_t *counts, size_t n)
{
    __shared__ uint32_t warps[SORT_WARPS];
    const unsigned lane = threadIdx.x % DP_LANES;
    const unsigned warp = threadIdx.x / DP_LANES;
    uint32_t before = 0;
    for (size_t first = 0; first < n; first += THREADS) {
        const size_t at = first + threadIdx.x;
        const uint32_t own = at < n ? counts[at] : 0;
        uint32_t sum = own;
        for (unsigned step = 1; step < DP_LANES; step *= 2) {
            const uint32_t left = __shfl_up_sync(0xffffffffU, sum, step);
            sum += lane >= step ? left : 0;
        }
        if (lane == DP_LANES - 1) {
            warps[warp] = sum;
        }
        __syncthreads();
        uint32_t total = 0;
        for (unsigned i = 0; i < SORT_WARPS; i++) {
            sum += i < warp ? warps[i] : 0;
            total += warps[i];
        }
        if (at < n) {
            counts[at] = before + sum - own;
        }
        before += total;
        __syncthreads();
    }
}

/* Stable: keys of one digit keep their order. places NULL: a key's place is its index. */
static __global__ void __launch_bounds__(THREADS)
    scatter_kernel(const uint32_t *keys, const uint32_t *places, size_t n, uint32_t vocab,
                   unsigned shift, const uint32_t *counts, uint32_t *keys_out, uint32_t *places_out)
{
    __shared__ uint32_t next[DIGITS];              /* where the digit's next key goes */
    __shared__ uint32_t warps[SORT_WARPS][DIGITS]; /* keys of each warp in this turn */
    const unsigned lane = threadIdx.x % DP_LANES;
    const unsigned warp = threadIdx.x / DP_LANES;
    if (threadIdx.x < DIGITS) {
        next[threadIdx.x] = counts[(size_t)threadIdx.x * gridDim.x + blockIdx.x];
    }
    for (int turn = 0; turn < SORT_EACH; turn++) {
        const size_t at =
            (size_t)blockIdx.x * DP_CUDA_SORT_TILE + (size_t)turn * THREADS + threadIdx.x;
        const bool here = at < n;
        const uint32_t key = here ? key_of(keys[at], vocab) : 0;
        const uint32_t digit = key >> shift & (DIGITS - 1U);
        for (unsigned i = lane; i < DIGITS; i += DP_LANES) {
            warps[warp][i] = 0;
        }
        __syncwarp();
        const uint32_t same = same_digit(digit, here);
        const uint32_t rank = (uint32_t)__popc(same & ((1U << lane) - 1U));
        if (here && rank == 0) {
            warps[warp][digit] = (uint32_t)__popc(same);
        }
        __syncthreads();
        if (here) {
            uint32_t to = next[digit] + rank;
            for (unsigned i = 0; i < warp; i++) {
                to += warps[i][digit];
            }
            keys_out[to] = key;
            places_out[to] = places == nullptr ? (uint32_t)at : places[at];
        }
        __syncthreads();
        if (threadIdx.x < DIGITS) {
            for (unsigned i = 0; i < SORT_WARPS; i++) {
                next[threadIdx.x] += warps[i][threadIdx.x];
            }
        }
        __syncthreads();
    }
}

/* ---- sums of runs */

/* A block sums TILE sorted rows in a vector of columns for each thread. The first and the last run
 * may go on in other tiles: their sums go to pieces[tile][0 or 1]; one that fills the tile counts
 * as the first. */
template <typename S>
static __global__ void __launch_bounds__(THREADS)
    tile_kernel(const dp_cuda_embed e, const uint32_t *keys, const uint32_t *places, const S *dx,
                bool even, float *pieces, float *d_table)
{
    const size_t n = e.rows * e.length;
    const size_t column = ((size_t)blockIdx.y * blockDim.x + threadIdx.x) * DP_VECTOR;
    const size_t first = (size_t)blockIdx.x * TILE;
    const size_t last = first + TILE < n ? first + TILE : n;
    if (column >= e.width) {
        return;
    }
    for (size_t begin = first; begin < last;) {
        const uint32_t token = keys[begin];
        float sum[DP_VECTOR] = {0};
        size_t end = begin;
        for (; end < last && keys[end] == token; end++) {
            float value[DP_VECTOR];
            dp_load_row(value, dx + (size_t)places[end] * e.width, column, e.width, even);
#pragma unroll
            for (int i = 0; i < DP_VECTOR; i++) {
                sum[i] += value[i];
            }
        }
        const bool from_before = begin == first && first > 0 && keys[first - 1] == token;
        const bool goes_on = end == last && last < n && keys[last] == token;
        if (from_before || goes_on) {
            float *const piece =
                pieces + ((size_t)blockIdx.x * 2 + (from_before ? 0 : 1)) * e.width;
            dp_store_row(piece, sum, column, e.width, even);
        } else if (token < e.vocab) {
            float old[DP_VECTOR];
            dp_load_row(old, d_table + (size_t)token * e.width, column, e.width, even);
#pragma unroll
            for (int i = 0; i < DP_VECTOR; i++) {
                sum[i] += old[i];
            }
            dp_store_row(d_table + (size_t)token * e.width, sum, column, e.width, even);
        }
        begin = end;
    }
}

/* The run that begins in this block's tile and goes on behind it. */
static __global__ void __launch_bounds__(THREADS)
    run_kernel(const dp_cuda_embed e, const uint32_t *keys, size_t tiles, bool even,
               const float *pieces, float *d_table)
{
    const size_t column = ((size_t)blockIdx.y * blockDim.x + threadIdx.x) * DP_VECTOR;
    const size_t first = (size_t)blockIdx.x * TILE;
    const size_t next = first + TILE; /* The last tile has none. */
    const uint32_t token = keys[next - 1];
    const bool begins = first == 0 || keys[first - 1] != token || keys[first] != token;
    if (column >= e.width || !begins || keys[next] != token || token >= e.vocab) {
        return;
    }
    float sum[DP_VECTOR];
    dp_load_row(sum, pieces + ((size_t)blockIdx.x * 2 + 1) * e.width, column, e.width, even);
    for (size_t tile = blockIdx.x + 1U; tile < tiles && keys[tile * TILE] == token; tile++) {
        float more[DP_VECTOR];
        dp_load_row(more, pieces + tile * 2 * e.width, column, e.width, even);
#pragma unroll
        for (int i = 0; i < DP_VECTOR; i++) {
            sum[i] += more[i];
        }
    }
    float old[DP_VECTOR];
    dp_load_row(old, d_table + (size_t)token * e.width, column, e.width, even);
#pragma unroll
    for (int i = 0; i < DP_VECTOR; i++) {
        sum[i] += old[i];
    }
    dp_store_row(d_table + (size_t)token * e.width, sum, column, e.width, even);
}

template <typename S>
static __global__ void __launch_bounds__(THREADS)
    positions_kernel(const dp_cuda_embed e, const S *dx, bool even, float *d_positions)
{
    const size_t vectors = (e.width + DP_VECTOR - 1) / DP_VECTOR;
    const size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= e.length * vectors) {
        return;
    }
    const size_t place = at / vectors;
    const size_t column = at % vectors * DP_VECTOR;
    float sum[DP_VECTOR] = {0};
#pragma unroll 4
    for (size_t row = 0; row < e.rows; row++) {
        float value[DP_VECTOR];
        dp_load_row(value, dx + (row * e.length + place) * e.width, column, e.width, even);
#pragma unroll
        for (int i = 0; i < DP_VECTOR; i++) {
            sum[i] += value[i];
        }
    }
    float old[DP_VECTOR];
    dp_load_row(old, d_positions + place * e.width, column, e.width, even);
#pragma unroll
    for (int i = 0; i < DP_VECTOR; i++) {
        sum[i] += old[i];
    }
    dp_store_row(d_positions + place * e.width, sum, column, e.width, even);
}

/* ---- launching */

static bool even_of(const dp_cuda_embed *e, const void *a, const void *b, const void *c)
{
    return e->width % DP_VECTOR == 0 && dp_even(a, 0) && dp_even(b, 0) && dp_even(c, 0);
}

static dp_status check(const dp_cuda_embed *e)
{
    if (e->length == 0 || e->width == 0 || e->vocab == 0 || e->vocab > DP_MODEL_VOCAB_MAX) {
        return DP_BADARG;
    }
    return e->rows > DP_CUDA_EMBED_TOKENS_MAX / e->length ? DP_TOOBIG : DP_OK;
}

template <typename S>
static dp_status forward(const dp_cuda_embed *e, const float *table, const float *positions,
                         void *x, cudaStream_t stream)
{
    const size_t vectors = e->rows * e->length * dp_blocks(e->width, DP_VECTOR);
    return DP_LAUNCH(
        forward_kernel<S>, dim3((unsigned)dp_least(dp_blocks(vectors, THREADS), BLOCKS_MAX)),
        dim3(THREADS), 0, stream, *e, table, positions, even_of(e, table, positions, x), (S *)x);
}

extern "C" dp_status dp_cuda_embed_forward(const dp_cuda_embed *e, const float *table,
                                           const float *positions, void *x, cudaStream_t stream)
{
    DP_TRY(check(e));
    switch (e->stream) {
    case DP_FP32:
        return forward<float>(e, table, positions, x, stream);
    case DP_BF16:
        return forward<dp_bf16>(e, table, positions, x, stream);
    case DP_FP16:
        return forward<dp_fp16>(e, table, positions, x, stream);
    case DP_PRECISIONS:
        break;
    }
    return DP_BADARG;
}

static size_t padded(size_t words)
{
    return (words + 63) / 64 * 64;
}

size_t dp_cuda_embed_scratch(size_t tokens, size_t width)
{
    const size_t counts = dp_blocks(tokens, DP_CUDA_SORT_TILE) * DIGITS;
    return (4 * padded(tokens) + padded(counts) + 2 * dp_blocks(tokens, TILE) * width) *
           sizeof(uint32_t);
}

/* Sorts e->tokens; *sorted says which of the room's keys and places hold the result. */
static dp_status sort(const dp_cuda_embed *e, const sort_room *room, int *sorted,
                      cudaStream_t stream)
{
    const size_t n = e->rows * e->length;
    const size_t tiles = dp_blocks(n, DP_CUDA_SORT_TILE);
    const uint32_t *keys = e->tokens;
    const uint32_t *places = nullptr;
    const uint32_t vocab = (uint32_t)e->vocab;
    unsigned bits = DIGIT_BITS;
    while (bits < 32 && vocab >> bits != 0) {
        bits += DIGIT_BITS;
    }
    *sorted = 1;
    for (unsigned shift = 0; shift < bits; shift += DIGIT_BITS) {
        *sorted = 1 - *sorted;
        DP_TRY(DP_LAUNCH(count_kernel, dim3((unsigned)tiles), dim3(THREADS), 0, stream, keys, n,
                         vocab, shift, room->counts));
        DP_TRY(DP_LAUNCH(scan_kernel, dim3(1), dim3(THREADS), 0, stream, room->counts,
                         tiles * DIGITS));
        DP_TRY(DP_LAUNCH(scatter_kernel, dim3((unsigned)tiles), dim3(THREADS), 0, stream, keys,
                         places, n, vocab, shift, (const uint32_t *)room->counts,
                         room->keys[*sorted], room->places[*sorted]));
        keys = room->keys[*sorted];
        places = room->places[*sorted];
    }
    return DP_OK;
}

template <typename S>
static dp_status backward(const dp_cuda_embed *e, const S *dx, float *d_table, float *d_positions,
                          void *scratch, cudaStream_t stream)
{
    const size_t n = e->rows * e->length;
    const size_t tiles = dp_blocks(n, TILE);
    const size_t vectors = dp_blocks(e->width, DP_VECTOR);
    const unsigned threads = (unsigned)dp_least(dp_blocks(vectors, DP_LANES) * DP_LANES, THREADS);
    const unsigned columns = (unsigned)dp_blocks(vectors, threads);
    uint32_t *const words = (uint32_t *)scratch;
    const size_t step = padded(n);
    const sort_room room = {
        {words, words + step}, {words + 2 * step, words + 3 * step}, words + 4 * step};
    float *const pieces = (float *)room.counts + padded(dp_blocks(n, DP_CUDA_SORT_TILE) * DIGITS);
    const bool even = even_of(e, dx, d_table, d_positions) && dp_even(scratch, 0);
    int sorted;
    if (d_positions != nullptr) {
        DP_TRY(DP_LAUNCH(positions_kernel<S>,
                         dim3((unsigned)dp_blocks(e->length * vectors, THREADS)), dim3(THREADS), 0,
                         stream, *e, dx, even, d_positions));
    }
    DP_TRY(sort(e, &room, &sorted, stream));
    DP_TRY(DP_LAUNCH(tile_kernel<S>, dim3((unsigned)tiles, columns), dim3(threads), 0, stream, *e,
                     (const uint32_t *)room.keys[sorted], (const uint32_t *)room.places[sorted], dx,
                     even, pieces, d_table));
    return DP_LAUNCH(run_kernel, dim3((unsigned)tiles - 1, columns), dim3(threads), 0, stream, *e,
                     (const uint32_t *)room.keys[sorted], tiles, even, (const float *)pieces,
                     d_table);
}

extern "C" dp_status dp_cuda_embed_backward(const dp_cuda_embed *e, const void *dx, float *d_table,
                                            float *d_positions, void *scratch, cudaStream_t stream)
{
    DP_TRY(check(e));
    if (e->rows == 0) {
        return DP_OK;
    }
    switch (e->stream) {
    case DP_FP32:
        return backward(e, (const float *)dx, d_table, d_positions, scratch, stream);
    case DP_BF16:
        return backward(e, (const dp_bf16 *)dx, d_table, d_positions, scratch, stream);
    case DP_FP16:
        return backward(e, (const dp_fp16 *)dx, d_table, d_positions, scratch, stream);
    case DP_PRECISIONS:
        break;
    }
    return DP_BADARG;
}
