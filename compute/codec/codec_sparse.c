/* sparse: the k = ceil(length / keep) largest magnitudes of a run of 4096 (top-k by chunk, after
 * SparseLoCo, Sarfi et al. 2025), their values by codec_values.c and their positions as Rice-coded
 * gaps (there 12 bits each).
 *
 *   values      nothing follows where they are as good as zero
 *   gaps        k times: q ones and a zero, then b = log2(keep) - 1 bits r: 2^b q + r elements lie
 *               between this entry and the last. Bits fill bytes from the least significant up;
 *               they end on a byte with zero padding
 *
 * The mean gap is keep - 1, and the best parameter near log2(0.69 keep) (Rice 1979). */
#include <string.h>

#include "base/assert.h"
#include "compute/codec/codec_family.h"

static unsigned low_bits(const dp_codec *codec)
{
    return (unsigned)__builtin_ctz(codec->keep) - 1;
}

static size_t run_bytes_max(const dp_codec *codec)
{
    const size_t k = DP_CODEC_RUN / codec->keep;
    const size_t bits = k * (low_bits(codec) + 1) + ((DP_CODEC_RUN - k) >> low_bits(codec));
    return dp_codec_values_bytes_max(codec) + (bits + 7) / 8;
}

static void write_gaps(dp_writer *out, unsigned low, const uint16_t *index, size_t k)
{
    uint64_t bits = 0;
    unsigned held = 0;
    int32_t last = -1;
    for (size_t i = 0; i < k; i++) {
        const uint32_t gap = (uint32_t)((int32_t)index[i] - last - 1);
        last = index[i];
        uint32_t ones = gap >> low;
        while (ones >= 8) { /* Long unary parts go out byte by byte, so that 64 bits suffice. */
            bits |= UINT64_C(0xff) << held;
            dp_write_u8(out, (uint8_t)bits);
            bits >>= 8;
            ones -= 8;
        }
        bits |= ((UINT64_C(1) << ones) - 1) << held;
        held += ones + 1;
        bits |= (uint64_t)(gap & ((1U << low) - 1)) << held;
        held += low;
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

static dp_status write(const dp_codec_slice *slice, dp_writer *out)
{
    const uint32_t largest = slice->ops->largest(slice->a, slice->length);
    if (largest >= DP_CODEC_INFINITY_BITS) {
        return DP_DIVERGED;
    }
    const size_t k = dp_codec_entries(slice->codec, slice->length);
    dp_assert(k <= DP_CODEC_KEPT_MAX);
    uint16_t index[DP_CODEC_KEPT_MAX];
    if (largest > 0) {
        slice->ops->choose(slice->a, slice->length, k, largest, index);
    } else {
        memset(index, 0, sizeof index);
    }
    if (dp_codec_values_write(slice, index, k, out)) {
        write_gaps(out, low_bits(slice->codec), index, k);
    }
    return DP_OK;
}

/* ---- Reading. */

typedef struct bit_source {
    const uint8_t *bytes;
    size_t size;
    size_t at; /* in bits; may pass the end, where all bits are 0 */
} bit_source;

enum { PEEK = 56 };

/* The next PEEK bits, from the lowest up. */
static uint64_t peek(const bit_source *source)
{
    const size_t byte = source->at / 8;
    uint64_t bits = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (byte + sizeof bits <= source->size) {
        memcpy(&bits, source->bytes + byte, sizeof bits);
        return (bits >> (source->at % 8)) & ((UINT64_C(1) << PEEK) - 1);
    }
#endif
    for (size_t i = 0; i < sizeof bits && byte + i < source->size; i++) {
        bits |= (uint64_t)source->bytes[byte + i] << (8 * i);
    }
    return (bits >> (source->at % 8)) & ((UINT64_C(1) << PEEK) - 1);
}

/* Positions from gaps; false if one is not below length. Several gaps are read from one peek. Ones
 * end with the input, or when they have passed the run. */
static bool read_gaps(bit_source *source, unsigned low, size_t k, size_t length, uint16_t *index)
{
    size_t at = 0;
    size_t i = 0;
    while (i < k) {
        uint64_t bits = peek(source);
        unsigned left = PEEK;
        unsigned ones = (unsigned)__builtin_ctzll(~bits);
        while (i < k && ones + 1 + low <= left) {
            at += (size_t)ones << low | (bits >> (ones + 1) & ((UINT64_C(1) << low) - 1));
            if (at >= length) {
                return false;
            }
            index[i] = (uint16_t)at;
            at++;
            i++;
            bits >>= ones + 1 + low;
            left -= ones + 1 + low;
            ones = (unsigned)__builtin_ctzll(~bits);
        }
        source->at += PEEK - left;
        if (i < k && left == PEEK) { /* More ones than a peek shows: some of them now. */
            ones = ones < PEEK / 2 ? ones : PEEK / 2;
            at += (size_t)ones << low;
            source->at += ones;
            if (at >= length) {
                return false;
            }
        }
    }
    return true;
}

static dp_status read(dp_codec_cursor *cursor, dp_codec_run *run)
{
    const size_t k = dp_codec_entries(&cursor->codec, run->length);
    DP_TRY(dp_codec_values_read(cursor, k, run));
    if (run->count == 0) {
        return DP_OK;
    }
    dp_reader *const in = &cursor->reader;
    bit_source source = {.bytes = in->at, .size = dp_reader_left(in)};
    if (!read_gaps(&source, low_bits(&cursor->codec), k, run->length, run->index)) {
        return DP_BADMSG;
    }
    const size_t bytes = (source.at + 7) / 8;
    const dp_view gaps = dp_read_view(in, bytes);
    if (in->failed || (source.at % 8 != 0 && gaps.data[bytes - 1] >> (source.at % 8) != 0)) {
        return DP_BADMSG;
    }
    return DP_OK;
}

const dp_codec_family dp_codec_sparse = {run_bytes_max, write, read, NULL};
