/* int4: per block a scale and steps of -7..7, two in a byte, as two's complement; -8 is none. */
#include "compute/codec/codec_family.h"
#include "compute/codec/codec_steps.h"
#include "compute/cpu/half.h"

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

static dp_status read(dp_codec_cursor *cursor, dp_codec_run *run)
{
    static const dp_codec_codes codes = {
        .unit = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1},
        .square = {0, 1, 4, 9, 16, 25, 36, 49, DP_CODEC_NO_CODE, 49, 36, 25, 16, 9, 4, 1},
        .shift = 0};
    return dp_codec_read_codes(&codes, cursor, run);
}

const dp_codec_family dp_codec_int4 = {run_bytes_max, write, read, NULL};
