/* int4: per block a scale and steps of -7..7, two in a byte, as two's complement; -8 is none. */
#include "compute/codec_family.h"
#include "compute/codec_steps.h"
#include "compute/half.h"

enum { MOST = 7, BLOCK_MAX = DP_CODEC_CODES_MAX };

static size_t run_bytes_max(const dp_codec *codec)
{
    return DP_CODEC_RUN / 2 + 2 * dp_codec_blocks(codec);
}

static dp_status write(const dp_codec_slice *slice, dp_writer *out)
{
    for (size_t done = 0; done < slice->length; done += slice->codec->block) {
        const size_t length = dp_codec_block_length(slice->codec, slice->length - done);
        uint16_t half;
        int8_t q[BLOCK_MAX];
        DP_TRY(dp_codec_steps_of(slice->ops, slice->a + done, length, MOST, &half, q));
        uint8_t nibble[BLOCK_MAX];
        for (size_t i = 0; i < length; i++) {
            nibble[i] = (uint8_t)q[i] & 15U;
        }
        dp_write_u16(out, half);
        dp_codec_pack_nibbles(nibble, length, out);
    }
    return DP_OK;
}

static dp_status decode_block(const dp_codec_ops *ops, uint16_t half, const uint8_t *nibble,
                              size_t length, float *value, unsigned __int128 *energy)
{
    static const int8_t steps[16] = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
    static const uint32_t squares[16] = {0,  1,  4,  9,  16, 25, 36, 49, DP_CODEC_NO_CODE,
                                         49, 36, 25, 16, 9,  4,  1};
    float values[16];
    for (size_t i = 0; i < 16; i++) {
        values[i] = (float)steps[i] * dp_half_value(half);
    }
    const uint32_t sum = ops->lookup(nibble, length, values, squares, value);
    if (!dp_half_is_magnitude(half) || sum >= DP_CODEC_NO_CODE || (half == 0 && sum != 0)) {
        return DP_BADMSG;
    }
    const unsigned __int128 grid = dp_half_grid(half);
    *energy += sum * grid * grid;
    return DP_OK;
}

static dp_status read(dp_codec_cursor *cursor, dp_codec_run *run)
{
    dp_codec_blocks_begin(run);
    for (size_t done = 0; done < run->length; done += cursor->codec.block) {
        const size_t length = dp_codec_block_length(&cursor->codec, run->length - done);
        const uint16_t half = dp_read_u16(&cursor->reader);
        uint8_t nibble[BLOCK_MAX];
        if (!dp_codec_unpack_nibbles(&cursor->reader, length, nibble)) {
            return DP_BADMSG;
        }
        DP_TRY(decode_block(cursor->ops, half, nibble, length, run->value + done, &run->energy));
    }
    return DP_OK;
}

const dp_codec_family dp_codec_int4 = {run_bytes_max, write, read, NULL};
