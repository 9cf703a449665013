/* sign: per block the mean magnitude and one bit per element (Bernstein et al. 2018, signSGD; with
 * the mean as scale and error feedback Karimireddy et al. 2019).
 *
 *   u16 s, fp16, mean of |a| | a bit per element from the lowest up, 1: -s, 0: +s; the last byte
 *     filled with 0. s = 0: all bits 0 */
#include <string.h>

#include "compute/codec/codec_family.h"
#include "compute/cpu/codec_element.h"
#include "compute/cpu/half.h"

enum { BITS_MAX = DP_CODEC_RUN / 8 };

static size_t run_bytes_max(const dp_codec *codec)
{
    return BITS_MAX + 2 * dp_codec_blocks(codec);
}

static dp_status write(const dp_codec_slice *slice, dp_writer *out)
{
    for (size_t done = 0; done < slice->length; done += slice->codec->block) {
        const float *const a = slice->a + done;
        const size_t length = dp_codec_block_length(slice->codec, slice->length - done);
        const uint32_t largest = slice->ops->largest(a, length);
        if (largest >= DP_CODEC_INFINITY_BITS) {
            return DP_DIVERGED;
        }
        const uint32_t top = dp_element_top(largest);
        const uint16_t half = dp_codec_mean(slice->ops->sum(a, length, top), length, top);
        uint8_t bits[BITS_MAX];
        if (half == 0) {
            memset(bits, 0, (length + 7) / 8);
        } else {
            slice->ops->signs(a, length, bits);
        }
        dp_write_u16(out, half);
        dp_write_bytes(out, bits, (length + 7) / 8);
    }
    return DP_OK;
}

static dp_status decode_block(const dp_codec_ops *ops, uint16_t half, const uint8_t *bits,
                              size_t length, float *value)
{
    uint8_t any = 0;
    for (size_t i = 0; i < (length + 7) / 8; i++) {
        any |= bits[i];
    }
    const bool filled = length % 8 == 0 || bits[length / 8] >> (length % 8) == 0;
    if (!dp_half_is_magnitude(half) || !filled || (half == 0 && any != 0)) {
        return DP_BADMSG;
    }
    if (half == 0) {
        memset(value, 0, length * sizeof *value);
    } else {
        ops->unsigns(bits, length, dp_half_value(half), value);
    }
    return DP_OK;
}

static dp_status read(dp_codec_cursor *cursor, dp_codec_run *run)
{
    dp_codec_blocks_begin(run);
    for (size_t done = 0; done < run->length; done += cursor->codec.block) {
        const size_t length = dp_codec_block_length(&cursor->codec, run->length - done);
        const uint16_t half = dp_read_u16(&cursor->reader);
        const dp_view bits = dp_read_view(&cursor->reader, (length + 7) / 8);
        if (cursor->reader.failed) {
            return DP_BADMSG;
        }
        DP_TRY(decode_block(cursor->ops, half, bits.data, length, run->value + done));
        const unsigned __int128 grid = dp_half_grid(half);
        run->energy += length * grid * grid;
    }
    return DP_OK;
}

const dp_codec_family dp_codec_sign = {run_bytes_max, write, read, NULL};
