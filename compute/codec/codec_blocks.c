/* Helpers of codecs with one scale per block. */
#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#include <string.h>

#include "compute/codec/codec_family.h"
#include "compute/cpu/codec_element.h"
#include "compute/cpu/half.h"

void dp_codec_blocks_begin(dp_codec_run *run)
{
    run->energy = 0;
    run->square = 0;
    run->count = run->length;
    run->dense = true;
}

uint16_t dp_codec_mean(uint64_t numerator, uint64_t denominator, uint32_t top)
{
    return dp_element_mean(numerator, denominator, top);
}

void dp_codec_pack_nibbles(const uint8_t *nibble, size_t n, dp_writer *out)
{
    uint8_t bytes[DP_CODEC_RUN / 2];
    for (size_t i = 0; i < n / 2; i++) {
        bytes[i] = (uint8_t)((nibble[2 * i] & 15U) | (unsigned)nibble[2 * i + 1] << 4);
    }
    if (n % 2 == 1) {
        bytes[n / 2] = nibble[n - 1] & 15U;
    }
    dp_write_bytes(out, bytes, (n + 1) / 2);
}

bool dp_codec_unpack_nibbles(dp_reader *in, size_t n, uint8_t *nibble)
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

static dp_status decode_block(const dp_codec_codes *codes, const dp_codec_ops *ops, uint16_t half,
                              const uint8_t *code, size_t length, float *value,
                              unsigned __int128 *energy)
{
    float values[16];
    for (size_t i = 0; i < 16; i++) {
        values[i] = codes->unit[i] * dp_half_value(half);
    }
    const uint32_t sum = ops->lookup(code, length, values, codes->square, value);
    if (!dp_half_is_magnitude(half) || sum >= DP_CODEC_NO_CODE || (half == 0 && sum != 0)) {
        return DP_BADMSG;
    }
    const unsigned __int128 grid = dp_half_grid(half);
    *energy += (sum * grid * grid) >> codes->shift;
    return DP_OK;
}

dp_status dp_codec_read_codes(const dp_codec_codes *codes, dp_codec_cursor *cursor,
                              dp_codec_run *run)
{
    dp_codec_blocks_begin(run);
    for (size_t done = 0; done < run->length; done += cursor->codec.block) {
        const size_t length = dp_codec_block_length(&cursor->codec, run->length - done);
        const uint16_t half = dp_read_u16(&cursor->reader);
        uint8_t code[DP_CODEC_CODES_MAX];
        if (!dp_codec_unpack_nibbles(&cursor->reader, length, code)) {
            return DP_BADMSG;
        }
        DP_TRY(
            decode_block(codes, cursor->ops, half, code, length, run->value + done, &run->energy));
    }
    return DP_OK;
}
