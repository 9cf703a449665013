/* sparse: a block writes each run into a slot, lengths become offsets, slots move to
 * where they belong. The bytes are those of codec_sparse.c and codec_values.c, and so are the
 * chosen elements: the k largest magnitudes, of equal ones the first. */
#include "compute/cuda/codecs_kept.cuh"

#include "compute/cuda/codecs.cuh"
#include "compute/cuda/codecs_top.cuh"
#include "compute/cuda/launch.h"

enum {
    WARPS = DP_CODEC_THREADS / 32,
    GAP_WORDS = 48, /* 1504 bits: the most, with one of 16 kept */
    SCAN_THREADS = 1024,
    LEFT_BLOCKS = 1024 /* that share the elements that no warp could choose */
};
#define ALL 0xffffffffU
#define INFINITY_BITS 0x7f800000U
/* Blocks of a processor, which has no more threads on Turing. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define LISTED_BLOCKS 4
#else
#define LISTED_BLOCKS 5
#endif

/* The chosen of a run, and the codes of their gaps. */
struct choice {
    dp_top top;
    unsigned gaps[GAP_WORDS];
};

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
        largest = max(largest, dp_element_key(c.top.value[i]));
    }
    largest = dp_top_largest(largest);
    centroids found = {dp_element_top(largest), 0, 0, 0};
    if (largest == 0) {
        return found;
    }
    for (unsigned i = lane; i < k; i += 32) {
        found.sum += dp_element_magnitude(c.top.value[i], found.top);
    }
    found.sum = sum_of_lanes(found.sum);
    if (!two) {
        found.hi = dp_element_mean(found.sum, k, found.top);
        return found;
    }
    uint64_t high = 0;
    unsigned n_high = 0;
    for (unsigned i = lane; i < k; i += 32) {
        const uint64_t magnitude = dp_element_magnitude(c.top.value[i], found.top);
        const bool in = magnitude * k >= found.sum;
        high += in ? magnitude : 0;
        n_high += in ? 1 : 0;
    }
    high = sum_of_lanes(high);
    n_high = dp_top_sum(n_high);
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
        const unsigned gap = !in ? 0
                             : i == 0
                                 ? c.top.index[0]
                                 : static_cast<unsigned>(c.top.index[i]) - c.top.index[i - 1] - 1;
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
    write_bits(k, out + heads, lane, [&](unsigned i) { return c.top.value[i] < 0; });
    unsigned at = heads + k_bytes;
    if (two) {
        write_bits(k, out + at, lane, [&](unsigned i) {
            return dp_element_magnitude(c.top.value[i], found.top) * k >= found.sum;
        });
        at += k_bytes;
    }
    return at + write_gaps(c, k, low, out + at, lane);
}

/* ---- Runs. */

/* Helpers of the kernels of runs. */
struct kept_runs {
    const float *a;
    size_t n;
    size_t count;
    unsigned low;
    size_t slot_bytes;
    uint8_t *slots;
    uint64_t *lengths; /* of each run, then how many are left */
    uint32_t *left;    /* these */
    uint32_t *bad;
};

static __device__ __forceinline__ unsigned *left_count(const kept_runs &r)
{
    return reinterpret_cast<unsigned *>(&r.lengths[r.count]);
}

/* keep is a power of two. */
static __device__ __forceinline__ unsigned kept_of(const kept_runs &r, unsigned length)
{
    return (length + (2U << r.low) - 1) >> (r.low + 1);
}

/* By a warp that has chosen. */
static __device__ __forceinline__ void finish_run(const kept_runs &r, const dp_cuda_blob &codec,
                                                  size_t run, unsigned k, choice &c)
{
    const unsigned lane = threadIdx.x % 32;
    const unsigned bytes = write_run(c, k, codec, r.low, r.slots + run * r.slot_bytes, lane);
    if (lane == 0) {
        r.lengths[run] = bytes;
    }
}

static __global__ void begin(kept_runs r)
{
    *left_count(r) = 0;
}

/* One warp per run, for whole runs. A run in which the warp cannot choose the largest elements goes
 * to the list r.left, for write_kept. */
static __global__ void __launch_bounds__(DP_CODEC_THREADS, LISTED_BLOCKS)
    write_listed(kept_runs r, dp_cuda_blob codec)
{
    __shared__ choice choices[WARPS];
    __shared__ uint8_t groups[WARPS][32 * DP_TOP_CHUNKS];
    const unsigned warp = threadIdx.x / 32;
    const size_t run = static_cast<size_t>(blockIdx.x) * WARPS + warp;
    if (run >= r.count) { /* The whole warp. */
        return;
    }
    const float *const values = r.a + run * DP_CUDA_RUN;
    const unsigned k = kept_of(r, DP_CUDA_RUN);
    uint32_t most[DP_TOP_OF_LANE];
    const bool whole = r.n - run * DP_CUDA_RUN >= DP_CUDA_RUN;
    if (whole && !dp_top_scan_run(values, choices[warp].top.value, most)) {
        if (threadIdx.x % 32 == 0) {
            *r.bad = 1;
            r.lengths[run] = 0;
        }
        return;
    }
    if (whole && dp_top_by_list(values, most, k, groups[warp], choices[warp].top)) {
        finish_run(r, codec, run, k, choices[warp]);
    } else if (threadIdx.x % 32 == 0) {
        r.left[atomicAdd(left_count(r), 1U)] = static_cast<uint32_t>(run);
    }
}

/* The block chooses, for its first warp. False: some element is not finite. */
static __device__ __forceinline__ bool choose(const kept_runs &r, size_t run, dp_top_room &room,
                                              dp_top &top)
{
    const float *const values = r.a + run * DP_CUDA_RUN;
    const unsigned length = dp_codec_length(r.n, run);
    const unsigned k = kept_of(r, length);
    uint32_t key[DP_TOP_OWN];
    bool finite = true;
#pragma unroll
    for (unsigned j = 0; j < DP_TOP_OWN; j++) {
        const unsigned e = dp_top_element(j);
        key[j] = e < length ? dp_element_key(values[e]) : 0;
        finite = finite && key[j] < INFINITY_BITS;
    }
    if (__syncthreads_or(finite ? 0 : 1) != 0) {
        return false;
    }
    dp_top_of_all(values, key, k, room, top);
    return true;
}

/* A block to a run: of those that are left, or of all where none were listed. */
static __global__ void __launch_bounds__(DP_CODEC_THREADS)
    write_kept(kept_runs r, dp_cuda_blob codec)
{
    __shared__ choice c;
    __shared__ dp_top_room room;
    const size_t count = r.left == nullptr ? r.count : *left_count(r);
    for (size_t i = blockIdx.x; i < count; i += gridDim.x) {
        const size_t run = r.left == nullptr ? i : r.left[i];
        if (!choose(r, run, room, c.top)) {
            if (threadIdx.x == 0) {
                *r.bad = 1;
                r.lengths[run] = 0;
            }
        } else if (threadIdx.x < 32) {
            finish_run(r, codec, run, kept_of(r, dp_codec_length(r.n, run)), c);
        }
        __syncthreads(); /* The next run's choice goes where this one's was. */
    }
}

/* ---- Lengths become offsets, in place; the place behind the last holds the sum. */

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
    kept_runs r = {.a = a,
                   .n = n,
                   .count = dp_cuda_runs(n),
                   .low = dp_kept_low_bits(codec.keep),
                   .slot_bytes = dp_kept_slot_bytes(codec),
                   .slots = to.slots,
                   .lengths = to.offsets,
                   .left = nullptr,
                   .bad = to.bad};
    size_t blocks = r.count;
    if (DP_CUDA_RUN / codec.keep <= DP_TOP_LISTED) {
        /* Nothing is packed yet: four bytes a run, which no run is shorter than. */
        r.left = reinterpret_cast<uint32_t *>(to.out);
        blocks = r.count < LEFT_BLOCKS ? r.count : static_cast<size_t>(LEFT_BLOCKS);
        DP_TRY(DP_LAUNCH(begin, 1, 1, 0, stream, r));
        DP_TRY(DP_LAUNCH(write_listed, dp_cuda_blocks(r.count, WARPS), DP_CODEC_THREADS, 0, stream,
                         r, codec));
    }
    DP_TRY(DP_LAUNCH(write_kept, dp_cuda_blocks(blocks, 1), DP_CODEC_THREADS, 0, stream, r, codec));
    DP_TRY(DP_LAUNCH(scan, 1, SCAN_THREADS, 0, stream, to.offsets, r.count, to.bytes));
    return DP_LAUNCH(pack, dp_cuda_blocks(r.count, WARPS), DP_CODEC_THREADS, 0, stream, to.slots,
                     r.slot_bytes, to.offsets, r.count, to.out);
}
