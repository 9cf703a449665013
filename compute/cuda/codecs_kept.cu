/* sparse and random: a block writes each run into a slot, lengths become offsets, slots move to where they belong. The bytes are those
 * of codec_sparse.c and codec_values.c, and so are the chosen elements: the k largest magnitudes, of equal ones the first. */
#include "compute/cuda/codecs_kept.cuh"

#include "compute/cuda/codecs.cuh"
#include "compute/cuda/launch.h"

enum {
    WARPS = DP_CODEC_THREADS / 32,
    OWN = DP_CUDA_RUN / DP_CODEC_THREADS, /* keys of a thread */
    GAP_WORDS = 48,                       /* 1504 bits: the most, with one of 16 kept */
    SCAN_THREADS = 1024
};
#define ALL 0xffffffffU
#define INFINITY_BITS 0x7f800000U

/* The chosen of a run, in order, and room to find them. */
struct choice {
    uint16_t index[DP_CUDA_KEPT_MAX];
    float value[DP_CUDA_KEPT_MAX];
    unsigned long long counts[2][WARPS];
    unsigned greater[WARPS];
    unsigned equal[WARPS];
    unsigned gaps[GAP_WORDS];
};

/* Element j of this thread: warps own stretches of a run, so that lanes read neighbours and the order is warp, j, lane. */
static __device__ __forceinline__ unsigned element_of(unsigned j)
{
    return threadIdx.x / 32 * (OWN * 32) + j * 32 + threadIdx.x % 32;
}

/* The k-th largest of the block's keys, digit by digit of two bits from the top: how many keys reach each of three candidates
 * decides the digit. Keys beyond the run are 0, behind all others. */
static __device__ uint32_t threshold_of(const uint32_t key[OWN], unsigned k, choice &c)
{
    const unsigned warp = threadIdx.x / 32;
    uint32_t threshold = 0;
    for (unsigned round = 0; round < 16; round++) {
        const unsigned shift = 30 - 2 * round;
        unsigned long long counts = 0; /* three of 16 bits: 4096 at most each */
#pragma unroll
        for (unsigned j = 0; j < OWN; j++) {
            counts += key[j] >= (threshold | 1U << shift) ? 1ULL : 0;
            counts += key[j] >= (threshold | 2U << shift) ? 1ULL << 16 : 0;
            counts += key[j] >= (threshold | 3U << shift) ? 1ULL << 32 : 0;
        }
        for (int step = 16; step > 0; step /= 2) {
            counts += __shfl_xor_sync(ALL, counts, step);
        }
        c.counts[round % 2][warp] = counts; /* Two rows: who is late still reads the one before. */
        __syncthreads();
        counts = 0;
        for (unsigned i = 0; i < WARPS; i++) {
            counts += c.counts[round % 2][i];
        }
        const uint32_t digit = (counts >> 32 & 0xffffU) >= k   ? 3
                               : (counts >> 16 & 0xffffU) >= k ? 2
                               : (counts & 0xffffU) >= k       ? 1
                                                               : 0;
        threshold |= digit << shift;
    }
    return threshold;
}

/* Fills index and value with the k elements, ascending. */
static __device__ void choose(const float *a, const uint32_t key[OWN], unsigned k, choice &c)
{
    const unsigned warp = threadIdx.x / 32;
    const unsigned before = (1U << (threadIdx.x % 32)) - 1;
    const uint32_t threshold = threshold_of(key, k, c);
    unsigned n_greater = 0;
    unsigned n_equal = 0;
#pragma unroll
    for (unsigned j = 0; j < OWN; j++) {
        n_greater += static_cast<unsigned>(__popc(__ballot_sync(ALL, key[j] > threshold ? 1 : 0)));
        n_equal += static_cast<unsigned>(__popc(__ballot_sync(ALL, key[j] == threshold ? 1 : 0)));
    }
    c.greater[warp] = n_greater;
    c.equal[warp] = n_equal;
    __syncthreads();
    unsigned greater = 0;
    unsigned equal = 0;
    unsigned all_greater = 0;
    for (unsigned i = 0; i < WARPS; i++) {
        greater += i < warp ? c.greater[i] : 0;
        equal += i < warp ? c.equal[i] : 0;
        all_greater += c.greater[i];
    }
    const unsigned wanted = k - all_greater; /* of those at the threshold, the first */
#pragma unroll
    for (unsigned j = 0; j < OWN; j++) {
        const unsigned above = __ballot_sync(ALL, key[j] > threshold ? 1 : 0);
        const unsigned at = __ballot_sync(ALL, key[j] == threshold ? 1 : 0);
        const unsigned rank = equal + static_cast<unsigned>(__popc(at & before));
        if (key[j] > threshold || (key[j] == threshold && rank < wanted)) {
            const unsigned place =
                greater + static_cast<unsigned>(__popc(above & before)) + min(rank, wanted);
            const unsigned e = element_of(j);
            c.index[place] = static_cast<uint16_t>(e);
            c.value[place] = a[e];
        }
        greater += static_cast<unsigned>(__popc(above));
        equal += static_cast<unsigned>(__popc(at));
    }
    __syncthreads();
}

/* ---- One warp writes a run. */

static __device__ __forceinline__ uint64_t sum_of_lanes(uint64_t sum)
{
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(ALL, sum, step);
    }
    return sum;
}

struct centroids {
    uint32_t top;
    uint64_t sum;
    uint16_t lo;
    uint16_t hi;
};

/* codec_values.c, split. */
static __device__ centroids split(const choice &c, unsigned k, bool two, unsigned lane)
{
    uint32_t largest = 0;
    for (unsigned i = lane; i < k; i += 32) {
        largest = max(largest, dp_element_key(c.value[i]));
    }
    for (int step = 16; step > 0; step /= 2) {
        largest = max(largest, __shfl_xor_sync(ALL, largest, step));
    }
    centroids found = {dp_element_top(largest), 0, 0, 0};
    if (largest == 0) {
        return found;
    }
    for (unsigned i = lane; i < k; i += 32) {
        found.sum += dp_element_magnitude(c.value[i], found.top);
    }
    found.sum = sum_of_lanes(found.sum);
    if (!two) {
        found.hi = dp_element_mean(found.sum, k, found.top);
        return found;
    }
    uint64_t high = 0;
    uint64_t n_high = 0;
    for (unsigned i = lane; i < k; i += 32) {
        const uint64_t magnitude = dp_element_magnitude(c.value[i], found.top);
        const bool in = magnitude * k >= found.sum;
        high += in ? magnitude : 0;
        n_high += in ? 1 : 0;
    }
    high = sum_of_lanes(high);
    n_high = sum_of_lanes(n_high);
    found.hi = dp_element_mean(high, n_high, found.top);
    found.lo = n_high == k ? static_cast<uint16_t>(0)
                           : dp_element_mean(found.sum - high, k - n_high, found.top);
    return found;
}

/* k bits to bytes, from the lowest up; is(i) of entry i. */
template <typename Is>
static __device__ void write_bits(unsigned k, uint8_t *out, unsigned lane, Is is)
{
    for (unsigned base = 0; base < k; base += 32) {
        const unsigned i = base + lane;
        const unsigned bits = __ballot_sync(ALL, i < k && is(i) ? 1 : 0);
        if (lane < 4 && base / 8 + lane < (k + 7) / 8) {
            out[base / 8 + lane] = static_cast<uint8_t>(bits >> (8 * lane));
        }
    }
}

/* `count` bits of value from bit `at` on; they were 0. */
static __device__ __forceinline__ void set_bits(unsigned *words, unsigned at, unsigned value,
                                                unsigned count)
{
    const unsigned shift = at % 32;
    atomicOr(&words[at / 32], value << shift);
    if (shift + count > 32) {
        atomicOr(&words[at / 32 + 1], value >> (32 - shift));
    }
}

/* Rice codes of the gaps: lengths, where each begins by a scan, then all at once. Returns bytes. */
static __device__ unsigned write_gaps(choice &c, unsigned k, unsigned low, uint8_t *out,
                                      unsigned lane)
{
    for (unsigned i = lane; i < GAP_WORDS; i += 32) {
        c.gaps[i] = 0;
    }
    __syncwarp();
    unsigned base = 0;
    for (unsigned first = 0; first < k; first += 32) {
        const unsigned i = first + lane;
        const bool in = i < k;
        const unsigned gap = !in      ? 0
                             : i == 0 ? c.index[0]
                                      : static_cast<unsigned>(c.index[i]) - c.index[i - 1] - 1;
        const unsigned bits = in ? (gap >> low) + 1 + low : 0;
        unsigned end = bits; /* inclusive sum over lanes */
        for (unsigned step = 1; step < 32; step *= 2) {
            const unsigned other = __shfl_up_sync(ALL, end, step);
            end += lane >= step ? other : 0;
        }
        if (in) {
            unsigned at = base + end - bits;
            unsigned ones = gap >> low;
            while (ones > 0) {
                const unsigned some = min(ones, 31U);
                set_bits(c.gaps, at, (1U << some) - 1, some);
                at += some;
                ones -= some;
            }
            set_bits(c.gaps, at + 1, gap & ((1U << low) - 1), low);
        }
        base += __shfl_sync(ALL, end, 31);
    }
    __syncwarp();
    const unsigned bytes = (base + 7) / 8;
    for (unsigned i = lane; i < bytes; i += 32) {
        out[i] = static_cast<uint8_t>(c.gaps[i / 4] >> (i % 4 * 8));
    }
    return bytes;
}

/* The whole run; returns its bytes. */
static __device__ unsigned write_run(choice &c, unsigned k, const dp_cuda_blob &codec, unsigned low,
                                     uint8_t *out, unsigned lane)
{
    const bool two = codec.bits == 2;
    const centroids found = split(c, k, two, lane);
    const unsigned heads = two ? 4 : 2;
    const unsigned both = two ? static_cast<unsigned>(found.hi == 0 ? 0 : found.lo) |
                                    static_cast<unsigned>(found.hi) << 16
                              : found.hi;
    if (lane < heads) {
        out[lane] = static_cast<uint8_t>(both >> (8 * lane));
    }
    if (found.hi == 0) {
        return heads;
    }
    const unsigned k_bytes = (k + 7) / 8;
    write_bits(k, out + heads, lane, [&](unsigned i) { return c.value[i] < 0; });
    unsigned at = heads + k_bytes;
    if (two) {
        write_bits(k, out + at, lane, [&](unsigned i) {
            return dp_element_magnitude(c.value[i], found.top) * k >= found.sum;
        });
        at += k_bytes;
    }
    return codec.kind == DP_CODEC_SPARSE ? at + write_gaps(c, k, low, out + at, lane) : at;
}

static __global__ void __launch_bounds__(DP_CODEC_THREADS)
    write_kept(const float *__restrict__ a, size_t n, dp_cuda_blob codec, unsigned low,
               size_t slot_bytes, uint8_t *__restrict__ slots, uint64_t *__restrict__ lengths,
               uint32_t *bad)
{
    __shared__ choice c;
    const unsigned length = dp_codec_length(n, blockIdx.x);
    const float *const run = a + static_cast<size_t>(blockIdx.x) * DP_CUDA_RUN;
    const unsigned k = (length + codec.keep - 1) / codec.keep;
    uint32_t key[OWN];
    bool finite = true;
#pragma unroll
    for (unsigned j = 0; j < OWN; j++) {
        const unsigned e = element_of(j);
        key[j] = e < length ? dp_element_key(run[e]) : 0;
        finite = finite && key[j] < INFINITY_BITS;
    }
    if (__syncthreads_or(finite ? 0 : 1) != 0) {
        if (threadIdx.x == 0) {
            *bad = 1;
            lengths[blockIdx.x] = 0;
        }
        return;
    }
    if (codec.kind == DP_CODEC_SPARSE) {
        choose(run, key, k, c);
    } else {
        for (unsigned i = threadIdx.x; i < k; i += DP_CODEC_THREADS) {
            const unsigned e = dp_codec_drawn(codec, blockIdx.x, length, i);
            c.index[i] = static_cast<uint16_t>(e);
            c.value[i] = run[e];
        }
        __syncthreads();
    }
    if (threadIdx.x < 32) {
        uint8_t *const slot = slots + static_cast<size_t>(blockIdx.x) * slot_bytes;
        const unsigned bytes = write_run(c, k, codec, low, slot, threadIdx.x);
        if (threadIdx.x == 0) {
            lengths[blockIdx.x] = bytes;
        }
    }
}

/* ---- Lengths become offsets, in place; what lies behind the last is the sum. */

static __global__ void __launch_bounds__(SCAN_THREADS)
    scan(uint64_t *lengths, size_t count, uint64_t *bytes)
{
    __shared__ uint64_t warps[SCAN_THREADS / 32];
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    uint64_t base = 0;
    for (size_t first = 0; first < count; first += SCAN_THREADS) {
        const size_t i = first + threadIdx.x;
        const uint64_t own = i < count ? lengths[i] : 0;
        uint64_t end = own;
        for (unsigned step = 1; step < 32; step *= 2) {
            const uint64_t other = __shfl_up_sync(ALL, end, step);
            end += lane >= step ? other : 0;
        }
        if (lane == 31) {
            warps[warp] = end;
        }
        __syncthreads();
        uint64_t before = base;
        for (unsigned w = 0; w < SCAN_THREADS / 32; w++) {
            before += w < warp ? warps[w] : 0;
            base += warps[w];
        }
        if (i < count) {
            lengths[i] = before + end - own;
        }
        __syncthreads(); /* All have read the sums of warps. */
    }
    if (threadIdx.x == 0) {
        lengths[count] = base;
        *bytes = base;
    }
}

/* A run's bytes from its slot, by a warp. */
static __global__ void __launch_bounds__(DP_CODEC_THREADS)
    pack(const uint8_t *__restrict__ slots, size_t slot_bytes, const uint64_t *__restrict__ offsets,
         size_t count, uint8_t *__restrict__ out)
{
    const size_t run = static_cast<size_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
    if (run >= count) {
        return;
    }
    const uint64_t first = offsets[run];
    const auto bytes = static_cast<unsigned>(offsets[run + 1] - first);
    for (unsigned i = threadIdx.x % 32; i < bytes; i += 32) {
        out[first + i] = slots[run * slot_bytes + i];
    }
}

dp_status dp_kept_encode(const float *a, size_t n, const dp_cuda_blob &codec,
                         const dp_cuda_encoding &to, cudaStream_t stream)
{
    const size_t runs = dp_cuda_runs(n);
    const size_t slot = dp_kept_slot_bytes(codec);
    DP_TRY(DP_LAUNCH(write_kept, dp_cuda_blocks(runs, 1), DP_CODEC_THREADS, 0, stream, a, n, codec,
                     dp_kept_low_bits(codec.keep), slot, to.slots, to.offsets, to.bad));
    DP_TRY(DP_LAUNCH(scan, 1, SCAN_THREADS, 0, stream, to.offsets, runs, to.bytes));
    return DP_LAUNCH(pack, dp_cuda_blocks(runs, WARPS), DP_CODEC_THREADS, 0, stream, to.slots, slot,
                     to.offsets, runs, to.out);
}
