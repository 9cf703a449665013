/* int8: per block a scale and steps of -127..127; and the arithmetic of uniform steps. */
#include <string.h>

#include "compute/codec/codec_family.h"
#include "compute/codec/codec_steps.h"
#include "compute/cpu/half.h"

enum { MOST = 127, BLOCK_MAX = 1024 };

dp_status dp_codec_steps_of(const dp_codec_ops *ops, const float *a, size_t length, float most,
                            uint16_t *half, int8_t *q)
{
    const uint32_t bits = ops->largest(a, length);
    if (bits >= DP_CODEC_INFINITY_BITS) {
        return DP_DIVERGED;
    }
    const float largest = dp_float_of_bits(bits);
    uint16_t scale = dp_half_of((double)largest / (double)most, true);
    if (scale > 0) {
        int8_t top;
        ops->steps(&largest, 1, dp_half_value(scale), most, &top);
        const bool fits =
            (float)top * dp_half_value(scale) <= most * dp_half_value((uint16_t)(scale - 1));
        scale = (uint16_t)(scale - (fits ? 1 : 0));
    }
    *half = scale;
    if (scale == 0) {
        memset(q, 0, length);
    } else {
        ops->steps(a, length, dp_half_value(scale), most, q);
    }
    return DP_OK;
}

/* value[i] = q[i] scale; adds the energy of the block. */
static dp_status steps_back(const dp_codec_ops *ops, uint16_t half, const int8_t *q, size_t length,
                            float *value, unsigned __int128 *energy)
{
    if (!dp_half_is_magnitude(half)) {
        return DP_BADMSG;
    }
    const uint32_t squares = ops->unsteps(q, length, dp_half_value(half), value);
    if (half == 0 && squares != 0) {
        return DP_BADMSG;
    }
    const unsigned __int128 grid = dp_half_grid(half);
    *energy += squares * grid * grid;
    return DP_OK;
}

static size_t run_bytes_max(const dp_codec *codec)
{
    return DP_CODEC_RUN + 2 * dp_codec_blocks(codec);
}

static dp_status write(const dp_codec_slice *slice, dp_writer *out)
{
    for (size_t done = 0; done < slice->length; done += slice->codec->block) {
        const size_t length = dp_codec_block_length(slice->codec, slice->length - done);
        uint16_t half;
        int8_t q[BLOCK_MAX];
        DP_TRY(dp_codec_steps_of(slice->ops, slice->a + done, length, MOST, &half, q));
        dp_write_u16(out, half);
        dp_write_bytes(out, q, length);
    }
    return DP_OK;
}

static dp_status read(dp_codec_cursor *cursor, dp_codec_run *run)
{
    dp_codec_dense_begin(run);
    for (size_t done = 0; done < run->length; done += cursor->codec.block) {
        const size_t length = dp_codec_block_length(&cursor->codec, run->length - done);
        const uint16_t half = dp_read_u16(&cursor->reader);
        const dp_view bytes = dp_read_view(&cursor->reader, length);
        if (cursor->reader.failed) {
            return DP_BADMSG;
        }
        const int8_t *const q = (const int8_t *)bytes.data;
        uint8_t bad = 0;
        for (size_t i = 0; i < length; i++) {
            bad |= q[i] < -MOST ? 1 : 0;
        }
        if (bad != 0) {
            return DP_BADMSG;
        }
        DP_TRY(steps_back(cursor->ops, half, q, length, run->value + done, &run->energy));
    }
    return DP_OK;
}

const dp_codec_family dp_codec_int8 = {run_bytes_max, write, read, NULL};
