/* int4: per block a scale and steps of -7..7, two in a byte, as two's complement; -8 is none. */
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "compute/codec/codec_family.h"
#include "compute/codec/codec_steps.h"
#include "compute/cpu/half.h"

enum {
    MOST = 7,
    BLOCK_MAX = 256,
    NO_STEP = 1 << 16 /* marks -8: above any sum of squares of a block */
};
_Static_assert(MOST *MOST *BLOCK_MAX < NO_STEP, "sums of squares do not reach it");

static size_t run_bytes_max(const dp_codec *codec)
{
    return DP_CODEC_RUN / 2 + 2 * dp_codec_blocks(codec);
}

/* Two steps in a byte, the first in the lower half; an odd last byte is filled with 0. */
static void pack(const int8_t *q, size_t n, dp_writer *out)
{
    uint8_t bytes[BLOCK_MAX / 2];
    for (size_t i = 0; i < n / 2; i++) {
        bytes[i] = (uint8_t)(((unsigned)q[2 * i] & 15U) | (unsigned)q[2 * i + 1] << 4);
    }
    if (n % 2 == 1) {
        bytes[n / 2] = (uint8_t)q[n - 1] & 15U;
    }
    dp_write_bytes(out, bytes, (n + 1) / 2);
}

/* False: the input is too short, or the fill is not 0. */
static bool unpack(dp_reader *in, size_t n, uint8_t *nibble)
{
    const dp_view bytes = dp_read_view(in, (n + 1) / 2);
    if (in->failed) {
        return false;
    }
    size_t i = 0;
#if defined(__SSE2__) /* Compilers take three times as long with blocks of 64. */
    const __m128i low = _mm_set1_epi8(15);
    for (; i + 16 <= n / 2; i += 16) {
        const __m128i pairs = _mm_loadu_si128((const __m128i *)(const void *)(bytes.data + i));
        const __m128i first = _mm_and_si128(pairs, low);
        const __m128i second = _mm_and_si128(_mm_srli_epi16(pairs, 4), low);
        __m128i *const to = (__m128i *)(void *)(nibble + 2 * i);
        _mm_storeu_si128(to, _mm_unpacklo_epi8(first, second));
        _mm_storeu_si128(to + 1, _mm_unpackhi_epi8(first, second));
    }
#endif
    for (; i < n / 2; i++) {
        nibble[2 * i] = bytes.data[i] & 15U;
        nibble[2 * i + 1] = bytes.data[i] >> 4;
    }
    if (n % 2 == 1) {
        nibble[n - 1] = bytes.data[n / 2] & 15U;
        return bytes.data[n / 2] >> 4 == 0;
    }
    return true;
}

static dp_status write(const dp_codec_slice *slice, dp_writer *out)
{
    for (size_t done = 0; done < slice->length; done += slice->codec->block) {
        const size_t length = dp_codec_block_length(slice->codec, slice->length - done);
        uint16_t half;
        int8_t q[BLOCK_MAX];
        DP_TRY(dp_codec_steps_of(slice->ops, slice->a + done, length, MOST, &half, q));
        dp_write_u16(out, half);
        pack(q, length, out);
    }
    return DP_OK;
}

static dp_status decode_block(const dp_codec_ops *ops, uint16_t half, const uint8_t *nibble,
                              size_t length, float *value, unsigned __int128 *energy)
{
    static const float steps[16] = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
    static const uint32_t squares[16] = {0,       1,  4,  9,  16, 25, 36, 49,
                                         NO_STEP, 49, 36, 25, 16, 9,  4,  1};
    float values[16];
    for (size_t i = 0; i < 16; i++) {
        values[i] = steps[i] * dp_half_value(half);
    }
    const uint32_t sum = ops->lookup(nibble, length, values, squares, value);
    if (!dp_half_is_magnitude(half) || sum >= NO_STEP || (half == 0 && sum != 0)) {
        return DP_BADMSG;
    }
    const unsigned __int128 grid = dp_half_grid(half);
    *energy += sum * grid * grid;
    return DP_OK;
}

static dp_status read(dp_codec_cursor *cursor, dp_codec_run *run)
{
    dp_codec_dense_begin(run);
    for (size_t done = 0; done < run->length; done += cursor->codec.block) {
        const size_t length = dp_codec_block_length(&cursor->codec, run->length - done);
        const uint16_t half = dp_read_u16(&cursor->reader);
        uint8_t nibble[BLOCK_MAX];
        if (!unpack(&cursor->reader, length, nibble)) {
            return DP_BADMSG;
        }
        DP_TRY(decode_block(cursor->ops, half, nibble, length, run->value + done, &run->energy));
    }
    return DP_OK;
}

const dp_codec_family dp_codec_int4 = {run_bytes_max, write, read, NULL};
