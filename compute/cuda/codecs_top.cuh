/* The k largest magnitudes of a run of 4096: of equal ones the first, in the order of the run.
 * Private to codecs_kept.cu.
 *
 * The common case is done by a warp, which reads the run once. Sixteen elements are a group; the
 * warp keeps the largest of each group. Then it finds a bound that at least k of these values
 * reach. At least k elements reach the bound, so the k largest elements are among those that reach
 * it. They lie in few groups, and in a bell-shaped update they are hardly more than k (73 for k =
 * 64). The warp reads these groups again and lists the elements that reach the bound; the list
 * contains the k largest. Where too many reach it (a run of few values, or mostly of zeros), or
 * where many are kept, a block looks at all elements, digit by digit. */
#ifndef DP_COMPUTE_CUDA_CODECS_TOP_CUH
#define DP_COMPUTE_CUDA_CODECS_TOP_CUH

#include <math.h>

#include "compute/cuda/codecs.cuh"
#include "compute/cuda/element.cuh"

enum {
    DP_TOP_GROUP = 16, /* elements of a group: four times four neighbours */
    DP_TOP_STEP =
        DP_CUDA_RUN / 4, /* from four to four: so that few neighbours are not one group's */
    DP_TOP_OF_LANE = DP_CUDA_RUN / DP_TOP_GROUP / 32, /* groups whose largest a lane keeps */
    DP_TOP_LISTED = 128,                              /* k beyond which there are no lists */
    DP_TOP_CHUNKS = 5,                                /* of 32 groups that are read again at most */
    DP_TOP_LIST = 255,                                /* so that a byte holds each place in it */
    DP_TOP_FEW = 4,                                   /* keys of a lane: those of a list of 128 */
    DP_TOP_MANY = 8,
    DP_TOP_FLOOR_BIT = 14 /* the last that the floor looks at: nine bits of the significand */
};
#define DP_TOP_ALL 0xffffffffU

/* The chosen of a run, in order. */
struct dp_top {
    uint16_t index[DP_CUDA_KEPT_MAX];
    float value[DP_CUDA_KEPT_MAX];
};

/* ---- Of a warp. */

static __device__ __forceinline__ unsigned dp_top_sum(unsigned value)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned sum;
    asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(value));
    return sum;
#else
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(DP_TOP_ALL, value, step);
    }
    return value;
#endif
}

static __device__ __forceinline__ uint32_t dp_top_largest(uint32_t value)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint32_t largest;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(largest) : "r"(value));
    return largest;
#else
    for (int step = 16; step > 0; step /= 2) {
        value = max(value, __shfl_xor_sync(DP_TOP_ALL, value, step));
    }
    return value;
#endif
}

/* Sum over this lane and those below. */
static __device__ __forceinline__ unsigned dp_top_scan(unsigned value)
{
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
        const unsigned other = __shfl_up_sync(DP_TOP_ALL, value, step);
        value += lane >= step ? other : 0;
    }
    return value;
}

/* How many of the warp's keys reach a number; both below 2^31. */
template <unsigned KEYS>
static __device__ __forceinline__ unsigned dp_top_reach(const uint32_t (&key)[KEYS],
                                                        uint32_t number)
{
    unsigned below = 0;
#pragma unroll
    for (unsigned i = 0; i < KEYS; i++) {
        below += (key[i] - number) >> 31; /* Two instructions; a comparison takes three. */
    }
    return 32 * KEYS - dp_top_sum(below);
}

/* ---- By a warp. */

/* The sixteen of a group: elements 4 group + i of each quarter of the run. run at 16 bytes. */
static __device__ __forceinline__ void dp_top_load(const float *run, unsigned group,
                                                   float own[DP_TOP_GROUP])
{
#pragma unroll
    for (unsigned quarter = 0; quarter < 4; quarter++) {
        const dp_chunk chunk =
            *reinterpret_cast<const dp_chunk *>(run + quarter * DP_TOP_STEP + 4 * group);
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            own[4 * quarter + i] = dp_of_bits(chunk.word[i]);
        }
    }
}

/* Keys of the largest of this lane's groups: group 32 i + lane. room: 32 DP_TOP_OF_LANE floats,
 * because a loop in registers alone is unrolled whole, with more loads in advance than there are
 * registers. False: some element of the warp's is not finite. */
static __device__ __forceinline__ bool dp_top_scan_run(const float *run, float *room,
                                                       uint32_t most[DP_TOP_OF_LANE])
{
    const unsigned lane = threadIdx.x % 32;
    float sum = 0; /* 0 times a value that is not finite is NaN, and so is a sum with it. */
#pragma unroll 2
    for (unsigned at = 0; at < DP_TOP_OF_LANE; at++) {
        float own[DP_TOP_GROUP];
        float largest = 0;
        dp_top_load(run, 32 * at + lane, own);
#pragma unroll
        for (unsigned i = 0; i < DP_TOP_GROUP; i++) {
            largest = fmaxf(largest, fabsf(own[i]));
            sum = fmaf(own[i], 0.0F, sum);
        }
        room[32 * at + lane] = largest;
    }
#pragma unroll
    for (unsigned at = 0; at < DP_TOP_OF_LANE; at++) {
        most[at] = dp_bits_of(room[32 * at + lane]);
    }
    return __ballot_sync(DP_TOP_ALL, sum == 0.0F ? 1 : 0) == DP_TOP_ALL;
}

/* A number that the largest of at least k groups reach, and of hardly more; of a number's leading
 * bits, as many as that takes. */
static __device__ __forceinline__ uint32_t dp_top_floor(const uint32_t (&most)[DP_TOP_OF_LANE],
                                                        unsigned k)
{
    uint32_t floor = 0;
#pragma unroll 1
    for (unsigned bit = 30; bit >= DP_TOP_FLOOR_BIT; bit--) {
        const uint32_t candidate = floor | 1U << bit;
        const unsigned n = dp_top_reach(most, candidate);
        floor = n >= k ? candidate : floor;
        if (n >= k && n <= k + k / 4) {
            break;
        }
    }
    return floor;
}

/* Groups that reach the floor, ascending, as many as there is room for; returns how many they
 * are. */
static __device__ __forceinline__ unsigned dp_top_groups(const uint32_t most[DP_TOP_OF_LANE],
                                                         uint32_t floor, uint8_t *groups)
{
    const unsigned lane = threadIdx.x % 32;
    unsigned n = 0;
#pragma unroll
    for (unsigned at = 0; at < DP_TOP_OF_LANE; at++) {
        const bool in = most[at] >= floor;
        const unsigned all = __ballot_sync(DP_TOP_ALL, in ? 1 : 0);
        const unsigned place = n + static_cast<unsigned>(__popc(all & ((1U << lane) - 1)));
        if (in && place < 32 * DP_TOP_CHUNKS) {
            groups[place] = static_cast<uint8_t>(32 * at + lane);
        }
        n += static_cast<unsigned>(__popc(all));
    }
    __syncwarp();
    return n;
}

/* Bit 4 quarter + i: element i of the group's quarter reaches the floor. */
static __device__ __forceinline__ unsigned dp_top_mask(const float *run, unsigned group,
                                                       float floor)
{
    float own[DP_TOP_GROUP];
    unsigned mask = 0;
    dp_top_load(run, group, own);
#pragma unroll
    for (unsigned i = 0; i < DP_TOP_GROUP; i++) {
        mask |= fabsf(own[i]) >= floor ? 1U << i : 0U;
    }
    return mask;
}

/* Bytes of a word: how many bits of each quarter are set. */
static __device__ __forceinline__ unsigned dp_top_counts(unsigned mask)
{
    unsigned counts = 0;
#pragma unroll
    for (unsigned quarter = 0; quarter < 4; quarter++) {
        counts |= static_cast<unsigned>(__popc(mask >> (4 * quarter) & 15U)) << (8 * quarter);
    }
    return counts;
}

/* Lists the elements of these groups that reach the floor, in the order of the run: quarter, group,
 * element. Returns how many there are; more than DP_TOP_LIST: nothing is listed. */
static __device__ __forceinline__ unsigned dp_top_list(const float *run, const uint8_t *groups,
                                                       unsigned n_groups, uint32_t floor,
                                                       uint16_t *index)
{
    const unsigned lane = threadIdx.x % 32;
    unsigned masks[DP_TOP_CHUNKS];
    unsigned places[DP_TOP_CHUNKS]; /* of each quarter a byte */
    unsigned even = 0;              /* of quarters 0 and 2, 16 bits each */
    unsigned odd = 0;
#pragma unroll
    for (unsigned chunk = 0; chunk < DP_TOP_CHUNKS; chunk++) {
        masks[chunk] = 0;
        places[chunk] = 0;
        if (32 * chunk < n_groups) {
            const unsigned at = 32 * chunk + lane;
            masks[chunk] = at < n_groups ? dp_top_mask(run, groups[at], dp_of_bits(floor)) : 0;
            const unsigned counts = dp_top_counts(masks[chunk]);
            const unsigned end = dp_top_scan(counts); /* 128 at most in each byte */
            const unsigned all = __shfl_sync(DP_TOP_ALL, end, 31);
            places[chunk] = end - counts + (even & 0xff00ffU) + ((odd & 0xff00ffU) << 8);
            even += all & 0xff00ffU;
            odd += all >> 8 & 0xff00ffU;
        }
    }
    const unsigned pairs = even + odd;
    const unsigned total = (pairs & 0xffffU) + (pairs >> 16);
    if (total > DP_TOP_LIST) {
        return total;
    }
    const unsigned all = even | odd << 8;
    const unsigned before = (all << 8) + (all << 16) + (all << 24); /* quarters before each */
#pragma unroll
    for (unsigned chunk = 0; chunk < DP_TOP_CHUNKS; chunk++) {
        if (32 * chunk < n_groups) {
            const unsigned first = masks[chunk] != 0 ? 4U * groups[32 * chunk + lane] : 0;
            unsigned place = places[chunk] + before;
            while (masks[chunk] != 0) {
                const auto j = static_cast<unsigned>(__ffs(static_cast<int>(masks[chunk])) - 1);
                const unsigned shift = j / 4 * 8;
                index[place >> shift & 255U] =
                    static_cast<uint16_t>(j / 4 * DP_TOP_STEP + first + j % 4);
                place += 1U << shift;
                masks[chunk] &= masks[chunk] - 1;
            }
        }
    }
    __syncwarp();
    return total;
}

/* A number that exactly k keys reach, or the k-th largest key. All of the list reach the floor;
 * other keys are 0, and no number is. */
template <unsigned KEYS>
static __device__ __forceinline__ uint32_t dp_top_threshold(const uint32_t (&key)[KEYS],
                                                            unsigned listed, unsigned k,
                                                            uint32_t floor)
{
    uint32_t largest = floor;
#pragma unroll
    for (unsigned i = 0; i < KEYS; i++) {
        largest = max(largest, key[i]);
    }
    largest = dp_top_largest(largest);
    /* All of the list have the bits above those in which the largest and the floor differ. */
    unsigned bits = 32U - static_cast<unsigned>(__clz(static_cast<int>(largest ^ floor)));
    uint32_t threshold = floor >> bits << bits;
    bits = listed == k ? 0 : bits;
#pragma unroll 1
    while (bits > 0) {
        bits--;
        const uint32_t candidate = threshold | 1U << bits;
        const unsigned n = dp_top_reach(key, candidate);
        if (n >= k) {
            threshold = candidate;
            bits = n == k ? 0 : bits;
        }
    }
    return threshold;
}

/* Of the first so many in index the k largest, to index and value. */
template <unsigned KEYS>
static __device__ __forceinline__ void dp_top_of_list(const float *run, unsigned listed, unsigned k,
                                                      uint32_t floor, dp_top &c)
{
    const unsigned lane = threadIdx.x % 32;
    const unsigned before = (1U << lane) - 1;
    uint32_t key[KEYS];
#pragma unroll
    for (unsigned i = 0; i < KEYS; i++) {
        const unsigned at = 32 * i + lane;
        key[i] = at < listed ? dp_element_key(run[c.index[at]]) : 0;
    }
    const uint32_t threshold = dp_top_threshold(key, listed, k, floor);
    const unsigned wanted = k - dp_top_reach(key, threshold + 1); /* of those at it */
    unsigned greater = 0;
    unsigned equal = 0;
#pragma unroll
    for (unsigned i = 0; i < KEYS; i++) {
        const unsigned e = c.index[32 * i + lane]; /* Behind the list: anything, and not chosen. */
        const unsigned above = __ballot_sync(DP_TOP_ALL, key[i] > threshold ? 1 : 0);
        const unsigned at = __ballot_sync(DP_TOP_ALL, key[i] == threshold ? 1 : 0);
        const unsigned rank = equal + static_cast<unsigned>(__popc(at & before));
        __syncwarp(); /* An index moves to its place or a lower one, which all lanes have read. */
        if (key[i] > threshold || (key[i] == threshold && rank < wanted)) {
            const unsigned place =
                greater + static_cast<unsigned>(__popc(above & before)) + min(rank, wanted);
            c.index[place] = static_cast<uint16_t>(e);
            c.value[place] = run[e];
        }
        greater += static_cast<unsigned>(__popc(above));
        equal += static_cast<unsigned>(__popc(at));
    }
    __syncwarp();
}

/* The k largest, to index and value; groups: room for 32 DP_TOP_CHUNKS. False: too many are as
 * large, or next to them. */
static __device__ __forceinline__ bool dp_top_by_list(const float *run,
                                                      const uint32_t (&most)[DP_TOP_OF_LANE],
                                                      unsigned k, uint8_t *groups, dp_top &c)
{
    const uint32_t floor = dp_top_floor(most, k);
    const unsigned n_groups = dp_top_groups(most, floor, groups);
    if (n_groups > 32 * DP_TOP_CHUNKS) {
        return false;
    }
    const unsigned listed = dp_top_list(run, groups, n_groups, floor, c.index);
    if (listed > DP_TOP_LIST) {
        return false;
    }
    if (listed <= 32 * DP_TOP_FEW) {
        dp_top_of_list<DP_TOP_FEW>(run, listed, k, floor, c);
    } else {
        dp_top_of_list<DP_TOP_MANY>(run, listed, k, floor, c);
    }
    return true;
}

/* ---- By a block: all of them. */

enum {
    DP_TOP_WARPS = DP_CODEC_THREADS / 32,
    DP_TOP_OWN = DP_CUDA_RUN / DP_CODEC_THREADS /* keys of a thread */
};

/* Shared. */
struct dp_top_room {
    unsigned long long counts[2][DP_TOP_WARPS];
    unsigned greater[DP_TOP_WARPS];
    unsigned equal[DP_TOP_WARPS];
};

/* Element j of this thread: warps own stretches of a run, so that lanes read neighbours and the
 * order is warp, j, lane. */
static __device__ __forceinline__ unsigned dp_top_element(unsigned j)
{
    return threadIdx.x / 32 * (DP_TOP_OWN * 32) + j * 32 + threadIdx.x % 32;
}

/* The k-th largest of the block's keys, digit by digit of two bits from the top: how many keys
 * reach each of three candidates decides the digit. Keys beyond the run are 0, behind all
 * others. */
static __device__ uint32_t dp_top_digits(const uint32_t key[DP_TOP_OWN], unsigned k,
                                         dp_top_room &room)
{
    const unsigned warp = threadIdx.x / 32;
    uint32_t threshold = 0;
    for (unsigned round = 0; round < 16; round++) {
        const unsigned shift = 30 - 2 * round;
        unsigned long long counts = 0; /* three of 16 bits: 4096 at most each */
#pragma unroll
        for (unsigned j = 0; j < DP_TOP_OWN; j++) {
            counts += key[j] >= (threshold | 1U << shift) ? 1ULL : 0;
            counts += key[j] >= (threshold | 2U << shift) ? 1ULL << 16 : 0;
            counts += key[j] >= (threshold | 3U << shift) ? 1ULL << 32 : 0;
        }
        for (int step = 16; step > 0; step /= 2) {
            counts += __shfl_xor_sync(DP_TOP_ALL, counts, step);
        }
        room.counts[round % 2][warp] =
            counts; /* Two rows: a late thread still reads the one before. */
        __syncthreads();
        counts = 0;
        for (unsigned i = 0; i < DP_TOP_WARPS; i++) {
            counts += room.counts[round % 2][i];
        }
        const uint32_t digit = (counts >> 32 & 0xffffU) >= k   ? 3
                               : (counts >> 16 & 0xffffU) >= k ? 2
                               : (counts & 0xffffU) >= k       ? 1
                                                               : 0;
        threshold |= digit << shift;
    }
    return threshold;
}

/* Fills index and value with the k elements, ascending. key: of each thread's elements, 0 beyond
 * the run. */
static __device__ void dp_top_of_all(const float *run, const uint32_t key[DP_TOP_OWN], unsigned k,
                                     dp_top_room &room, dp_top &c)
{
    const unsigned warp = threadIdx.x / 32;
    const unsigned before = (1U << (threadIdx.x % 32)) - 1;
    const uint32_t threshold = dp_top_digits(key, k, room);
    unsigned n_greater = 0;
    unsigned n_equal = 0;
#pragma unroll
    for (unsigned j = 0; j < DP_TOP_OWN; j++) {
        n_greater +=
            static_cast<unsigned>(__popc(__ballot_sync(DP_TOP_ALL, key[j] > threshold ? 1 : 0)));
        n_equal +=
            static_cast<unsigned>(__popc(__ballot_sync(DP_TOP_ALL, key[j] == threshold ? 1 : 0)));
    }
    room.greater[warp] = n_greater;
    room.equal[warp] = n_equal;
    __syncthreads();
    unsigned greater = 0;
    unsigned equal = 0;
    unsigned all_greater = 0;
    for (unsigned i = 0; i < DP_TOP_WARPS; i++) {
        greater += i < warp ? room.greater[i] : 0;
        equal += i < warp ? room.equal[i] : 0;
        all_greater += room.greater[i];
    }
    const unsigned wanted = k - all_greater; /* of those at the threshold, the first */
#pragma unroll
    for (unsigned j = 0; j < DP_TOP_OWN; j++) {
        const unsigned above = __ballot_sync(DP_TOP_ALL, key[j] > threshold ? 1 : 0);
        const unsigned at = __ballot_sync(DP_TOP_ALL, key[j] == threshold ? 1 : 0);
        const unsigned rank = equal + static_cast<unsigned>(__popc(at & before));
        if (key[j] > threshold || (key[j] == threshold && rank < wanted)) {
            const unsigned place =
                greater + static_cast<unsigned>(__popc(above & before)) + min(rank, wanted);
            const unsigned e = dp_top_element(j);
            c.index[place] = static_cast<uint16_t>(e);
            c.value[place] = run[e];
        }
        greater += static_cast<unsigned>(__popc(above));
        equal += static_cast<unsigned>(__popc(at));
    }
    __syncthreads();
}

#endif
