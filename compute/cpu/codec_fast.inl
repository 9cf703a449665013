/* The loops of the codecs for one instruction set: the including file has set DP_LANES and the
 * target. The compiler makes vectors of most of them; where it does not, they are written with the
 * instructions. */

#include "base/assert.h"
#include "compute/cpu/codec_element.h"
#include "compute/cpu/codec_ops.h"

enum {
    FEW = 512,          /* candidates that are cheaper to sort out than to reduce further */
    OCTAVE = 0x00800000 /* distance of the bits of x and 2 x */
};

/* Lanes beyond n are never counted. */
typedef struct candidates {
    uint32_t key[DP_CODEC_RUN + DP_LANES];
    uint32_t at[DP_CODEC_RUN + DP_LANES];
    size_t count;
} candidates;

static uint32_t fast_largest(const float *a, size_t n)
{
    int32_t largest = 0; /* Keys have no sign bit, and every processor compares signed ones. */
    for (size_t i = 0; i < n; i++) {
        const int32_t key = (int32_t)dp_element_key(a[i]);
        largest = key > largest ? key : largest;
    }
    return (uint32_t)largest;
}

static size_t fast_count(const uint32_t *keys, size_t n, uint32_t threshold)
{
    int32_t count = 0;
    for (size_t i = 0; i < n; i++) {
        count += (int32_t)keys[i] >= (int32_t)threshold ? 1 : 0;
    }
    return (size_t)count;
}

static size_t fast_count_floats(const float *a, size_t n, uint32_t threshold)
{
    int32_t count = 0;
    for (size_t i = 0; i < n; i++) {
        count += (int32_t)dp_element_key(a[i]) >= (int32_t)threshold ? 1 : 0;
    }
    return (size_t)count;
}

/* Those with keys from threshold on, in their order. */
static void fast_gather(candidates *c, const float *a, size_t n, uint32_t threshold)
{
    size_t i = 0;
    size_t kept = 0;
#if DP_LANES == 16
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    const __m512i least = _mm512_set1_epi32((int)threshold);
    __m512i at = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    for (; i + 16 <= n; i += 16) {
        const __m512i keys = _mm512_and_si512(_mm512_loadu_si512(a + i), magnitude);
        const __mmask16 in = _mm512_cmpge_epi32_mask(keys, least);
        /* Compressed in registers: to memory it is slow on some processors. */
        _mm512_storeu_si512(c->key + kept, _mm512_maskz_compress_epi32(in, keys));
        _mm512_storeu_si512(c->at + kept, _mm512_maskz_compress_epi32(in, at));
        /* Not of the mask itself: gcc 12 spills 16 bits of it under the thread sanitizer, and
         * counts 32. */
        kept += (size_t)__builtin_popcount(_cvtmask16_u32(in));
        at = _mm512_add_epi32(at, _mm512_set1_epi32(16));
    }
#else
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    const __m256i below = _mm256_set1_epi32((int)threshold - 1);
    for (; i + 8 <= n; i += 8) {
        const __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)(a + i));
        const __m256i in = _mm256_cmpgt_epi32(_mm256_and_si256(bits, magnitude), below);
        unsigned mask = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(in));
        while (mask != 0) {
            const size_t j = i + (size_t)__builtin_ctz(mask);
            c->key[kept] = dp_element_key(a[j]);
            c->at[kept] = (uint32_t)j;
            kept++;
            mask &= mask - 1;
        }
    }
#endif
    for (; i < n; i++) {
        const uint32_t key = dp_element_key(a[i]);
        c->key[kept] = key;
        c->at[kept] = (uint32_t)i;
        kept += key >= threshold;
    }
    c->count = kept;
}

/* Halve [low, high) while more than few keys are from low on; count(low) >= k > count(high). */
static uint32_t fast_lower(const float *a, size_t n, size_t k, uint32_t largest, uint32_t *high)
{
    uint32_t low = 0;
    size_t count = n;
    *high = largest + 1;
    /* Octave by octave, then faster, down from the largest until k are in. */
    for (uint32_t step = OCTAVE; step < largest; step *= 2) {
        const uint32_t probe = largest - step;
        const size_t found = fast_count_floats(a, n, probe);
        if (found >= k) {
            low = probe;
            count = found;
            break;
        }
        *high = probe;
    }
    while (count > FEW && *high - low > 1) {
        const uint32_t probe = low + (*high - low) / 2;
        const size_t found = fast_count_floats(a, n, probe);
        if (found >= k) {
            low = probe;
            count = found;
        } else {
            *high = probe;
        }
    }
    return low;
}

static void fast_choose(const float *a, size_t n, size_t k, uint32_t largest, uint16_t *index)
{
    dp_assert(n <= DP_CODEC_RUN && k >= 1 && k <= n);
    uint32_t high;
    uint32_t low = fast_lower(a, n, k, largest, &high);
    candidates c;
    fast_gather(&c, a, n, low);
    size_t count = c.count;
    size_t above = fast_count(c.key, c.count, high); /* fewer than k */
    /* The threshold is the largest key from which on there are at least k. */
    while (count > k && high - low > 1) {
        const uint32_t probe = low + (high - low) / 2;
        const size_t found = fast_count(c.key, c.count, probe);
        if (found >= k) {
            low = probe;
            count = found;
        } else {
            high = probe;
            above = found;
        }
    }
    /* count == k: all from low on. Otherwise high = low + 1, so every element that is not above is
     * equal. */
    size_t equal = count == k ? DP_CODEC_RUN : k - above;
    size_t kept = 0;
    for (size_t i = 0; i < c.count && kept < k; i++) {
        if (c.key[i] < low || (c.key[i] < high && equal == 0)) {
            continue;
        }
        equal -= c.key[i] < high;
        index[kept] = (uint16_t)c.at[i];
        kept++;
    }
    dp_assert(kept == k);
}

static void fast_steps(const float *a, size_t n, float scale, float most, int8_t *q)
{
    for (size_t i = 0; i < n; i++) {
        q[i] = dp_element_step(a[i], scale, most);
    }
}

static uint32_t fast_unsteps(const int8_t *q, size_t n, float scale, float *d)
{
    int32_t squares = 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t step = q[i];
        squares += step * step;
        d[i] = (float)step * scale;
    }
    return (uint32_t)squares;
}

static uint64_t fast_sum(const float *a, size_t n, uint32_t top)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += dp_element_magnitude(a[i], top);
    }
    return sum;
}

static void fast_signs(const float *a, size_t n, uint8_t *out)
{
    size_t i = 0;
#if DP_LANES == 16
    for (; i + 16 <= n; i += 16) {
        const __mmask16 mask =
            _mm512_cmp_ps_mask(_mm512_loadu_ps(a + i), _mm512_setzero_ps(), _CMP_LT_OQ);
        out[i / 8] = (uint8_t)mask;
        out[i / 8 + 1] = (uint8_t)(mask >> 8);
    }
#else
    for (; i + 8 <= n; i += 8) {
        const __m256 below = _mm256_cmp_ps(_mm256_loadu_ps(a + i), _mm256_setzero_ps(), _CMP_LT_OQ);
        out[i / 8] = (uint8_t)_mm256_movemask_ps(below);
    }
#endif
    for (; i < n; i++) {
        const uint8_t bit = (uint8_t)((a[i] < 0 ? 1U : 0U) << (i % 8));
        out[i / 8] = i % 8 == 0 ? bit : (uint8_t)(out[i / 8] | bit);
    }
}

#if DP_LANES == 16
static uint32_t fast_lookup(const uint8_t *code, size_t n, const float value[16],
                            const uint32_t weight[16], float *d)
{
    const __m512 values = _mm512_loadu_ps(value);
    const __m512i weights = _mm512_loadu_si512(weight);
    __m512i sums = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m512i which =
            _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(code + i)));
        _mm512_storeu_ps(d + i, _mm512_permutexvar_ps(which, values));
        sums = _mm512_add_epi32(sums, _mm512_permutexvar_epi32(which, weights));
    }
    uint32_t sum = (uint32_t)_mm512_reduce_add_epi32(sums);
    for (; i < n; i++) {
        d[i] = value[code[i]];
        sum += weight[code[i]];
    }
    return sum;
}
#else
/* Entry code[i] of 16 in two halves: both are looked up, and the code's fourth bit says which it
 * is. */
static __m256 lookup_8(__m256i which, __m256 low, __m256 high)
{
    const __m256 upper = _mm256_castsi256_ps(_mm256_slli_epi32(which, 28));
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, which),
                            _mm256_permutevar8x32_ps(high, which), upper);
}

static uint32_t fast_lookup(const uint8_t *code, size_t n, const float value[16],
                            const uint32_t weight[16], float *d)
{
    const __m256 values[2] = {_mm256_loadu_ps(value), _mm256_loadu_ps(value + 8)};
    const __m256 weights[2] = {
        _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(const void *)weight)),
        _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(const void *)(weight + 8)))};
    __m256i sums = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i which =
            _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(code + i)));
        _mm256_storeu_ps(d + i, lookup_8(which, values[0], values[1]));
        sums = _mm256_add_epi32(sums, _mm256_castps_si256(lookup_8(which, weights[0], weights[1])));
    }
    uint32_t lanes[DP_LANES];
    _mm256_storeu_si256((__m256i *)(void *)lanes, sums);
    uint32_t sum = 0;
    for (size_t j = 0; j < DP_LANES; j++) {
        sum += lanes[j];
    }
    for (; i < n; i++) {
        d[i] = value[code[i]];
        sum += weight[code[i]];
    }
    return sum;
}
#endif

static void fast_add(float *acc, const float *v, size_t n, float f)
{
    for (size_t i = 0; i < n; i++) {
        acc[i] += f * v[i];
    }
}

static bool fast_move(float *theta, const float *acc, size_t n, float step)
{
    int32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        const float moved = theta[i] - step * acc[i];
        const int32_t key = (int32_t)dp_element_key(moved);
        largest = key > largest ? key : largest;
        theta[i] = moved;
    }
    return largest < 0x7f800000;
}

/* Eight floats, and as doubles. */
typedef float octet __attribute__((vector_size(32)));
typedef double octet_wide __attribute__((vector_size(64)));

static void fast_squares(const float *a, const float *d, size_t n, double sums[2])
{
    enum { LANES = 8 };
    octet_wide whole = {0};
    octet_wide left = {0};
    for (size_t i = 0; i < n; i += LANES) {
        octet of_a = {0}; /* Behind the end 0 is added. */
        octet of_d = {0};
        if (n - i >= LANES) {
            memcpy(&of_a, a + i, sizeof of_a);
            memcpy(&of_d, d + i, sizeof of_d);
        } else {
            memcpy(&of_a, a + i, (n - i) * sizeof *a);
            memcpy(&of_d, d + i, (n - i) * sizeof *d);
        }
        const octet_wide value = __builtin_convertvector(of_a, octet_wide);
        const octet_wide rest = value - __builtin_convertvector(of_d, octet_wide);
        whole += value * value;
        left += rest * rest;
    }
    for (size_t j = 0; j < LANES; j++) {
        sums[0] += whole[j];
        sums[1] += left[j];
    }
}

#define DP_CODEC_FAST_TABLE(table_name)                                                            \
    {                                                                                              \
        .name = (table_name), .largest = fast_largest, .choose = fast_choose, .steps = fast_steps, \
        .unsteps = fast_unsteps, .sum = fast_sum, .signs = fast_signs, .lookup = fast_lookup,      \
        .add = fast_add, .move = fast_move, .squares = fast_squares,                               \
    }
