/* int4: per block a scale and steps of -7..7, two in a byte, as two's complement; -8 is none. */
#include "compute/codec_family.h"
#include "compute/codec_steps.h"

enum { MOST = 7, BLOCK_MAX = 256 };

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
    dp_codec_blocks_begin(run);
    for (size_t done = 0; done < run->length; done += cursor->codec.block) {
        const size_t length = dp_codec_block_length(&cursor->codec, run->length - done);
        const uint16_t half = dp_read_u16(&cursor->reader);
        uint8_t nibble[BLOCK_MAX];
        if (!dp_codec_unpack_nibbles(&cursor->reader, length, nibble)) {
            return DP_BADMSG;
        }
        int8_t q[BLOCK_MAX];
        uint8_t bad = 0;
        for (size_t i = 0; i < length; i++) {
            q[i] = (int8_t)((nibble[i] ^ 8) - 8);
            bad |= q[i] < -MOST ? 1 : 0;
        }
        if (bad != 0) {
            return DP_BADMSG;
        }
        DP_TRY(dp_codec_steps_back(cursor->ops, half, q, length, run->value + done, &run->energy));
    }
    return DP_OK;
}

const dp_codec_family dp_codec_int4 = {run_bytes_max, write, read, NULL};
