/* fp16: each element as the nearest half, ties to even, at most 65504; error feedback keeps the
 * rest. */
#include <math.h>
#include <string.h>

#include "compute/codec/codec_family.h"
#include "compute/cpu/half.h"

static size_t run_bytes_max(const dp_codec *codec)
{
    (void)codec;
    return sizeof(uint16_t[DP_CODEC_RUN]);
}

static dp_status write(const dp_codec_slice *slice, dp_writer *out)
{
    if (slice->ops->largest(slice->a, slice->length) >= DP_CODEC_INFINITY_BITS) {
        return DP_DIVERGED;
    }
    uint16_t half[DP_CODEC_RUN];
    slice->ops->halves(slice->a, slice->length, half);
    uint8_t bytes[sizeof half];
    for (size_t i = 0; i < slice->length; i++) {
        bytes[2 * i] = (uint8_t)half[i];
        bytes[2 * i + 1] = (uint8_t)(half[i] >> 8);
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
    uint16_t half[DP_CODEC_RUN];
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(half, bytes.data, bytes.size);
#else
    for (size_t i = 0; i < run->length; i++) {
        half[i] = (uint16_t)dp_codec_load_u16(bytes.data + 2 * i);
    }
#endif
    dp_codec_blocks_begin(run);
    return cursor->ops->floats(half, run->length, run->value) ? DP_OK : DP_BADMSG;
}

static void measure(dp_codec_run *runs, size_t n)
{
    for (size_t r = 0; r < n; r++) {
        for (size_t i = 0; i < runs[r].length; i++) {
            const uint64_t grid = (uint64_t)(fabsf(runs[r].value[i]) * 0x1p24F);
            runs[r].energy += (unsigned __int128)grid * grid;
        }
    }
}

const dp_codec_family dp_codec_fp16 = {run_bytes_max, write, read, measure};
