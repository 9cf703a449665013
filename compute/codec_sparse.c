/* The sparse codec: the k = ceil(length / 64) largest magnitudes of a run of 4096, each as a sign and one magnitude bit
 * that picks one of two centroids, and their positions as Rice-coded gaps (after SparseLoCo, Sarfi et al. 2025; there the
 * values have 2 bits and the indices 12).
 *
 *   c_lo   u16  fp16, mean of the kept magnitudes below their mean; 0 if there are none
 *   c_hi   u16  fp16, mean of the others, >= c_lo. 0: the run is all zero and nothing follows
 *   signs       k bits, 1 = negative
 *   bits        k bits, 1 = c_hi
 *   gaps        k times: q ones and a zero, then 5 bits r: 32 q + r elements lie between this entry and the last
 * Bits fill bytes from the least significant up; signs, bits and gaps each end on a byte with zero padding. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "compute/codec_family.h"
#include "compute/half.h"

enum {
    INFINITY_BITS = 0x7f800000,
    MAGNITUDE_BITS = 0x7fffffff,
    DIGIT_BITS = 11, /* 31 bits of magnitude as digits of 11, 10 and 10 */
    DIGITS = 1 << DIGIT_BITS,
    GAP_BYTES_MAX = 64 /* (64 * 6 + (4096 - 64) / 32 + 7) / 8 */
};

_Static_assert((DP_CODEC_TOP * (DP_CODEC_RICE + 1) +
                (DP_CODEC_RUN - DP_CODEC_TOP) / (1 << DP_CODEC_RICE) + 7) /
                       8 <=
                   GAP_BYTES_MAX,
               "gaps of a full run fit");

static size_t entries_of(size_t length)
{
    return (length + DP_CODEC_TOP - 1) / DP_CODEC_TOP;
}

/* Of the count keys, the digit (key >> shift, limit values) that holds the *rank-th largest; *rank becomes its rank
 * among the keys with that digit. 1 <= *rank <= count. */
static uint32_t digit_of_rank(const uint32_t *keys, size_t count, unsigned shift, uint32_t limit,
                              size_t *rank)
{
    uint16_t histogram[DIGITS] = {0};
    dp_assert(limit <= DIGITS && count <= DP_CODEC_RUN);
    for (size_t i = 0; i < count; i++) {
        histogram[(keys[i] >> shift) & (limit - 1)]++;
    }
    uint32_t digit = limit - 1;
    while (histogram[digit] < *rank) {
        *rank -= histogram[digit];
        digit--;
    }
    return digit;
}

static size_t keep_digit(uint32_t *keys, size_t count, unsigned shift, uint32_t digit,
                         uint32_t limit)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t key = keys[i];
        keys[kept] = key;
        kept += ((key >> shift) & (limit - 1)) == digit;
    }
    return kept;
}

/* The k-th largest key, and how many of the keys equal to it belong to the k. */
static uint32_t threshold_of(const uint32_t *keys, size_t length, size_t k, size_t *equal)
{
    uint32_t work[DP_CODEC_RUN];
    memcpy(work, keys, length * sizeof *work);
    static const struct {
        unsigned shift;
        uint32_t limit;
    } digits[3] = {{20, 2048}, {10, 1024}, {0, 1024}};
    size_t rank = k;
    size_t count = length;
    uint32_t threshold = 0;
    for (size_t i = 0; i < 3; i++) {
        const uint32_t digit = digit_of_rank(work, count, digits[i].shift, digits[i].limit, &rank);
        count = keep_digit(work, count, digits[i].shift, digit, digits[i].limit);
        threshold |= digit << digits[i].shift;
    }
    *equal = rank;
    return threshold;
}

/* The k largest magnitudes in ascending order of position; equal ones by lowest position. */
static void choose(const uint32_t *keys, size_t length, size_t k, uint16_t *index)
{
    size_t equal;
    const uint32_t threshold = threshold_of(keys, length, k, &equal);
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        if (keys[i] < threshold) {
            continue;
        }
        if (keys[i] == threshold) {
            if (equal == 0) {
                continue;
            }
            equal--;
        }
        index[n] = (uint16_t)i;
        n++;
    }
    dp_assert(n == k);
}

typedef struct centroids {
    uint16_t lo;
    uint16_t hi;
    uint64_t high; /* bit i: entry i stands for hi */
} centroids;

/* Two means about the mean, in double, summed in order of position. */
static centroids split(const float *a, const uint16_t *index, size_t k)
{
    double sum = 0;
    float largest = 0;
    for (size_t i = 0; i < k; i++) {
        const float magnitude = a[index[i]] < 0 ? -a[index[i]] : a[index[i]];
        largest = magnitude > largest ? magnitude : largest;
        sum += (double)magnitude;
    }
    double mean = sum / (double)k;
    mean = mean > (double)largest ? (double)largest
                                  : mean; /* A rounded mean may not pass all values. */
    double low = 0;
    double high = 0;
    size_t n_high = 0;
    centroids c = {0};
    for (size_t i = 0; i < k; i++) {
        const float value = a[index[i]];
        const double magnitude = (double)(value < 0 ? -value : value);
        if (magnitude >= mean) {
            high += magnitude;
            n_high++;
            c.high |= UINT64_C(1) << i;
        } else {
            low += magnitude;
        }
    }
    c.hi = dp_half_of(high / (double)n_high, false);
    c.lo = n_high == k ? 0 : dp_half_of(low / (double)(k - n_high), false);
    return c;
}

static void write_bits(dp_writer *out, uint64_t bits, size_t count)
{
    for (size_t done = 0; done < count; done += 8) {
        dp_write_u8(out, (uint8_t)(bits >> done));
    }
}

static void write_gaps(dp_writer *out, const uint16_t *index, size_t k)
{
    uint64_t bits = 0;
    unsigned held = 0;
    int32_t last = -1;
    for (size_t i = 0; i < k; i++) {
        const uint32_t gap = (uint32_t)((int32_t)index[i] - last - 1);
        last = index[i];
        uint32_t ones = gap >> DP_CODEC_RICE;
        while (ones >=
               8) { /* Long unary parts go out byte by byte, so that 64 bits always suffice. */
            bits |= UINT64_C(0xff) << held;
            dp_write_u8(out, (uint8_t)bits);
            bits >>= 8;
            ones -= 8;
        }
        bits |= ((UINT64_C(1) << ones) - 1) << held;
        held += ones + 1;
        bits |= (uint64_t)(gap & ((1U << DP_CODEC_RICE) - 1)) << held;
        held += DP_CODEC_RICE;
        while (held >= 8) {
            dp_write_u8(out, (uint8_t)bits);
            bits >>= 8;
            held -= 8;
        }
    }
    if (held > 0) {
        dp_write_u8(out, (uint8_t)bits);
    }
}

dp_status dp_codec_sparse_write(const float *a, size_t length, dp_writer *out)
{
    uint32_t keys[DP_CODEC_RUN];
    uint32_t largest = 0;
    for (size_t i = 0; i < length; i++) {
        const uint32_t key = dp_float_bits(a[i]) & MAGNITUDE_BITS;
        keys[i] = key;
        largest = key > largest ? key : largest;
    }
    if (largest >= INFINITY_BITS) {
        return DP_DIVERGED;
    }
    const size_t k = entries_of(length);
    dp_assert(k <= DP_CODEC_TOP);
    uint16_t index[DP_CODEC_TOP];
    centroids c = {0};
    if (largest > 0) {
        choose(keys, length, k, index);
        c = split(a, index, k);
    }
    if (c.hi == 0) {
        dp_write_u32(out, 0);
        return DP_OK;
    }
    uint64_t signs = 0;
    for (size_t i = 0; i < k; i++) {
        signs |= (uint64_t)(a[index[i]] < 0) << i;
    }
    dp_write_u16(out, c.lo);
    dp_write_u16(out, c.hi);
    write_bits(out, signs, k);
    write_bits(out, c.high, k);
    write_gaps(out, index, k);
    return DP_OK;
}

/* k bits and zero padding; false if the padding is not zero or the input ends. */
static bool read_bits(dp_reader *in, size_t k, uint64_t *bits)
{
    *bits = 0;
    for (size_t done = 0; done < k; done += 8) {
        *bits |= (uint64_t)dp_read_u8(in) << done;
    }
    return !in->failed && (k == 64 || *bits >> k == 0);
}

typedef struct bit_source {
    dp_reader *in;
    uint64_t bits;
    unsigned held;
} bit_source;

static void fill(bit_source *source, unsigned least)
{
    while (source->held < least) {
        source->bits |= (uint64_t)dp_read_u8(source->in) << source->held;
        source->held += 8;
    }
}

/* Positions from gaps. The unary part can pass the end of the run by less than 64, so the loop is bounded by it. */
static bool read_gaps(dp_reader *in, size_t k, size_t length, uint16_t *index)
{
    bit_source source = {.in = in};
    size_t at = 0;
    for (size_t i = 0; i < k; i++) {
        for (;;) {
            fill(&source, 1);
            const unsigned ones = (unsigned)__builtin_ctzll(~source.bits);
            const unsigned run = ones < source.held ? ones : source.held;
            at += (size_t)run << DP_CODEC_RICE;
            source.bits >>= run;
            source.held -= run;
            if (at >= length || in->failed) {
                return false;
            }
            if (source.held > 0) {
                break;
            }
        }
        fill(&source, 1 + DP_CODEC_RICE);
        at += (source.bits >> 1) & ((1U << DP_CODEC_RICE) - 1);
        source.bits >>= 1 + DP_CODEC_RICE;
        source.held -= 1 + DP_CODEC_RICE;
        if (at >= length || in->failed) {
            return false;
        }
        index[i] = (uint16_t)at;
        at++;
    }
    return source.bits == 0 && source.held < 8;
}

dp_status dp_codec_sparse_read(dp_reader *in, dp_codec_run *run)
{
    const uint16_t lo = dp_read_u16(in);
    const uint16_t hi = dp_read_u16(in);
    run->count = 0;
    run->dense = false;
    run->energy = 0;
    run->square = 0;
    if (in->failed || !dp_half_is_magnitude(hi) || lo > hi) {
        return DP_BADMSG;
    }
    if (hi == 0) {
        return DP_OK;
    }
    const size_t k = entries_of(run->length);
    dp_assert(k <= DP_CODEC_TOP);
    uint64_t signs;
    uint64_t high;
    if (!read_bits(in, k, &signs) || !read_bits(in, k, &high) ||
        !read_gaps(in, k, run->length, run->index)) {
        return DP_BADMSG;
    }
    const float value_lo = dp_half_value(lo);
    const float value_hi = dp_half_value(hi);
    for (size_t i = 0; i < k; i++) {
        const float magnitude = (high >> i) & 1U ? value_hi : value_lo;
        /* A centroid of 0 is +0 whatever its sign bit. */
#if DP_MUTATION == 41
        run->value[i] = (signs >> i) & 1U ? -magnitude : magnitude;
#else
        run->value[i] = (signs >> i) & 1U && magnitude > 0 ? -magnitude : magnitude;
#endif
    }
    const unsigned __int128 grid_lo = dp_half_grid(lo);
    const unsigned __int128 grid_hi = dp_half_grid(hi);
    const unsigned n_high = (unsigned)__builtin_popcountll(high);
    run->count = k;
    run->energy = n_high * grid_hi * grid_hi + (k - n_high) * grid_lo * grid_lo;
    return DP_OK;
}
