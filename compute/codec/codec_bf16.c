/* bf16: the upper half of each float, rounded to nearest, ties to even. */
#include "compute/codec/codec_family.h"
#include "compute/codec/codec_floats.h"
#include "compute/cpu/half.h"

static size_t run_bytes_max(const dp_codec *codec)
{
    (void)codec;
    return sizeof(uint16_t[DP_CODEC_RUN]);
}

static dp_status write(const dp_codec_slice *slice, dp_writer *out)
{
    if (!dp_codec_floats_in_range(slice->ops, slice->a, slice->length)) {
        return DP_DIVERGED;
    }
    uint8_t bytes[sizeof(uint16_t[DP_CODEC_RUN])];
    for (size_t i = 0; i < slice->length; i++) {
        const uint16_t bits = dp_bfloat_of(slice->a[i]);
        bytes[2 * i] = (uint8_t)bits;
        bytes[2 * i + 1] = (uint8_t)(bits >> 8);
    }
    dp_write_bytes(out, bytes, sizeof(uint16_t) * slice->length);
    return DP_OK;
}

static dp_status read(dp_codec_cursor *cursor, dp_codec_run *run)
{
    const dp_view bytes = dp_read_view(&cursor->reader, sizeof(uint16_t) * run->length);
    if (cursor->reader.failed) {
        return DP_BADMSG;
    }
    for (size_t i = 0; i < run->length; i++) {
        run->value[i] = dp_bfloat_value((uint16_t)dp_codec_load_u16(bytes.data + 2 * i));
    }
    dp_codec_dense_begin(run);
    return dp_codec_floats_in_range(cursor->ops, run->value, run->length) ? DP_OK : DP_BADMSG;
}

const dp_codec_family dp_codec_bf16 = {run_bytes_max, write, read, dp_codec_floats_measure};
