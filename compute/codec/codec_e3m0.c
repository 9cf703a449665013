/* e3m0: per block a scale s and for each element a sign and a power of two, 4 bits (the format of
 * Streaming DiLoCo, Douillard et al. 2025; the scale is ours).
 *
 *   u16 s, fp16 | per element 4 bits: j = 0: 0; j = 1..7: s 2^(j - 7); 8 + j: the same, negative; 8
 *     is none
 *
 * Powers are chosen as nearest to first 2^(j - 7), first = 7/8 of the largest magnitude: with
 * bell-shaped values that leaves an error of 0.18 |a|, where the largest itself leaves 0.19. s is
 * then the best for the chosen powers, sum |a| p / sum p^2, so the error is orthogonal to what is
 * sent. */
#include <string.h>

#include "compute/codec/codec_family.h"
#include "compute/cpu/codec_element.h"
#include "compute/cpu/half.h"

enum { BLOCK_MAX = DP_CODEC_CODES_MAX };
#define FIRST_SHARE 0.875F

static size_t run_bytes_max(const dp_codec *codec)
{
    return DP_CODEC_RUN / 2 + 2 * dp_codec_blocks(codec);
}

/* The scale and the codes of one block. */
static uint16_t encode_block(const dp_codec_ops *ops, const float *a, size_t length,
                             uint32_t largest, uint8_t *code)
{
    const float most = dp_float_of_bits(largest);
    uint16_t half = 0;
    if (most >= 0x1p-26F) { /* Smaller values have no half, and their first step no inverse. */
        uint64_t sums[2];
        const uint32_t top = dp_element_top(largest);
        ops->powers(a, length, FIRST_SHARE * most, top, code, sums);
        /* In units of p = 2^(j - 1), of which 64 make s. */
        half = dp_codec_mean(sums[0], sums[1], top + 6);
    }
    if (half == 0) {
        memset(code, 0, length);
    }
    return half;
}

static dp_status write(const dp_codec_slice *slice, dp_writer *out)
{
    for (size_t done = 0; done < slice->length; done += slice->codec->block) {
        const size_t length = dp_codec_block_length(slice->codec, slice->length - done);
        const uint32_t largest = slice->ops->largest(slice->a + done, length);
        if (largest >= DP_CODEC_INFINITY_BITS) {
            return DP_DIVERGED;
        }
        uint8_t code[BLOCK_MAX];
        dp_write_u16(out, encode_block(slice->ops, slice->a + done, length, largest, code));
        dp_codec_pack_nibbles(code, length, out);
    }
    return DP_OK;
}

static dp_status read(dp_codec_cursor *cursor, dp_codec_run *run)
{
    /* Squares in units of 2^-12: those of the smallest. */
    static const dp_codec_codes codes = {
        .unit = {0, 0x1p-6F, 0x1p-5F, 0x1p-4F, 0x1p-3F, 0x1p-2F, 0x1p-1F, 1.0F, 0, -0x1p-6F,
                 -0x1p-5F, -0x1p-4F, -0x1p-3F, -0x1p-2F, -0x1p-1F, -1.0F},
        .square = {0, 1, 4, 16, 64, 256, 1024, 4096, DP_CODEC_NO_CODE, 1, 4, 16, 64, 256, 1024,
                   4096},
        .shift = 12};
    return dp_codec_read_codes(&codes, cursor, run);
}

const dp_codec_family dp_codec_e3m0 = {run_bytes_max, write, read, NULL};
