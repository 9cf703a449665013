/* Kept values as signs and one or two centroids (after SparseLoCo, Sarfi et al. 2025; there with
 * per-tensor bins). codec_family.h draws the bytes.
 *
 * Sums are integers of 48 bits under the largest magnitude, so that they have no order: a block of
 * a graphics processor may add them with atomics. An entry is high iff magnitude k >= sum of
 * all. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "compute/codec/codec_family.h"
#include "compute/cpu/codec_element.h"

enum { BIT_BYTES_MAX = DP_CODEC_KEPT_MAX / 8 };

typedef struct centroids {
    uint16_t lo;
    uint16_t hi;
} centroids;

static uint8_t bit_at(bool bit, size_t i)
{
    return (uint8_t)((bit ? 1U : 0U) << (i % 8));
}

/* The two means below and above the mean; high: true for values of the upper one. */
static centroids split(const dp_codec_slice *slice, const float *v, size_t k, uint8_t *high)
{
    const uint32_t largest = slice->ops->largest(v, k);
    const uint32_t top = dp_element_top(largest);
    const uint64_t sum = slice->ops->sum(v, k, top);
    centroids c = {0};
    if (largest == 0) {
        return c;
    }
    if (slice->codec->bits == 1) {
        c.hi = dp_element_mean(sum, k, top);
        return c;
    }
    uint64_t sum_high = 0;
    size_t n_high = 0;
    for (size_t i = 0; i < k; i++) {
        const uint64_t magnitude = dp_element_magnitude(v[i], top);
        const bool in = magnitude * k >= sum;
        sum_high += in ? magnitude : 0;
        n_high += in ? 1 : 0;
        high[i / 8] |= bit_at(in, i);
    }
    dp_assert(n_high > 0); /* The largest is no less than the mean. */
    c.hi = dp_element_mean(sum_high, n_high, top);
    c.lo = n_high == k ? 0 : dp_element_mean(sum - sum_high, k - n_high, top);
    return c;
}

bool dp_codec_values_write(const dp_codec_slice *slice, const uint16_t *index, size_t k,
                           dp_writer *out)
{
    dp_assert(k >= 1 && k <= DP_CODEC_KEPT_MAX);
    float v[DP_CODEC_KEPT_MAX];
    for (size_t i = 0; i < k; i++) {
        v[i] = slice->a[index[i]];
    }
    uint8_t high[BIT_BYTES_MAX] = {0};
    const bool two = slice->codec->bits == 2;
    const centroids c = split(slice, v, k, high);
    if (two) {
        dp_write_u16(out, c.hi == 0 ? 0 : c.lo);
    }
    dp_write_u16(out, c.hi);
    if (c.hi == 0) {
        return false;
    }
    uint8_t signs[BIT_BYTES_MAX];
    slice->ops->signs(v, k, signs);
    dp_write_bytes(out, signs, (k + 7) / 8);
    if (two) {
        dp_write_bytes(out, high, (k + 7) / 8);
    }
    return true;
}

/* k bits and zero padding. */
static bool read_bits(dp_reader *in, size_t k, dp_view *bits)
{
    *bits = dp_read_view(in, (k + 7) / 8);
    return !in->failed && (k % 8 == 0 || bits->data[k / 8] >> (k % 8) == 0);
}

/* The values of the run, without branches; a centroid of 0 is +0 whatever its sign bit. */
static void set_values(dp_codec_run *run, size_t k, const uint8_t *signs, const uint8_t *high,
                       const uint16_t halves[2])
{
    uint32_t magnitude[2];
    uint32_t sign[2];
    for (size_t i = 0; i < 2; i++) {
        magnitude[i] = dp_float_bits(dp_half_value(halves[i]));
        sign[i] = halves[i] > 0 || dp_broken(41) ? 0x80000000U : 0;
    }
    for (size_t i = 0; i < k; i++) {
        const uint32_t which = (uint32_t)high[i / 8] >> (i % 8) & 1U;
        const uint32_t negative = ((uint32_t)signs[i / 8] >> (i % 8)) << 31;
        run->value[i] = dp_float_of_bits(magnitude[which] | (negative & sign[which]));
    }
}

dp_status dp_codec_values_read(dp_codec_cursor *cursor, size_t k, dp_codec_run *run)
{
    dp_assert(k >= 1 && k <= DP_CODEC_KEPT_MAX);
    dp_reader *const in = &cursor->reader;
    const bool two = cursor->codec.bits == 2;
    const uint16_t lo = two ? dp_read_u16(in) : 0;
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
    dp_view signs;
    dp_view high = {0};
    if (!read_bits(in, k, &signs) || (two && !read_bits(in, k, &high))) {
        return DP_BADMSG;
    }
    static const uint8_t all_high[BIT_BYTES_MAX] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    const uint16_t halves[2] = {lo, hi};
    set_values(run, k, signs.data, two ? high.data : all_high, halves);
    size_t n_high = two ? 0 : k;
    for (size_t i = 0; i < high.size; i++) {
        n_high += (size_t)__builtin_popcount(high.data[i]);
    }
    const unsigned __int128 grid_lo = dp_half_grid(lo);
    const unsigned __int128 grid_hi = dp_half_grid(hi);
    run->count = k;
    run->energy = n_high * grid_hi * grid_hi + (k - n_high) * grid_lo * grid_lo;
    return DP_OK;
}

size_t dp_codec_values_bytes_max(const dp_codec *codec)
{
    const size_t k = DP_CODEC_RUN / codec->keep;
    return codec->bits * (sizeof(uint16_t) + (k + 7) / 8);
}
