/* The interface of one codec to codec.c, a codec run to bytes and back, and helpers that several
 * codecs share. Private to codec*.c.
 *
 * A new codec is a row of base/run/codec_kind.h and a file that defines dp_codec_<name>. */
#ifndef DP_COMPUTE_CODEC_CODEC_FAMILY_H
#define DP_COMPUTE_CODEC_CODEC_FAMILY_H

#include "compute/codec/codec.h"
#include "compute/cpu/codec_ops.h"

/* One codec run to write. */
typedef struct dp_codec_slice {
    const dp_codec_ops *ops;
    const dp_codec *codec;
    uint64_t at; /* number of the run in the blob */
    const float *a;
    size_t length; /* 1 .. DP_CODEC_RUN */
} dp_codec_slice;

typedef struct dp_codec_family {
    /* The longest run. */
    size_t (*run_bytes_max)(const dp_codec *codec);
    /* Appends the run to out, which has room. DP_DIVERGED as in dp_codec_encode. */
    dp_status (*write)(const dp_codec_slice *slice, dp_writer *out);
    /* Reads run cursor->at of run->length elements into the rest of *run. Accepts any bytes:
     * DP_BADMSG. */
    dp_status (*read)(dp_codec_cursor *cursor, dp_codec_run *run);
    /* Sets energy or square of n <= DP_CODEC_ABREAST runs; NULL: read has done it. */
    void (*measure)(dp_codec_run *runs, size_t n);
} dp_codec_family;

#define DP_CODEC_ROW(name, NAME, number, least, most, standard, thins)                             \
    extern const dp_codec_family dp_codec_##name;
DP_CODEC_LIST(DP_CODEC_ROW)
#undef DP_CODEC_ROW

enum { DP_CODEC_INFINITY_BITS = 0x7f800000, DP_CODEC_MAGNITUDE_BITS = 0x7fffffff };

/* ---- Means without an order. A finite float's magnitude as an integer multiple of 2^(top - 174),
 * where top is the exponent field of the largest float of the sum (at least 1): exact down to 2^-24
 * of the largest, cut below. Sums of 4096 fit 64 bits. */

/* numerator / denominator in units of 2^(top - 174) as the nearest half, at most the largest. */
uint16_t dp_codec_mean(uint64_t numerator, uint64_t denominator, uint32_t top);

/* ---- Kept values (codec_values.c): sparse and random. */

/* The k (1..DP_CODEC_KEPT_MAX) values slice->a[index[i]], all finite, as their signs and one or two
 * centroids:
 *
 *   c_lo   u16  fp16, only with 2 bits: mean of the magnitudes below their mean; 0 if there are
 *          none
 *   c_hi   u16  fp16, mean of the others, >= c_lo. 0: all is as good as zero, and nothing follows
 *   signs       k bits, 1 = negative
 *   high        k bits, only with 2 bits: 1 = c_hi
 *
 * Bits fill bytes from the least significant up; signs and high each end on a byte with zero
 * padding. Returns whether something follows. */
bool dp_codec_values_write(const dp_codec_slice *slice, const uint16_t *index, size_t k,
                           dp_writer *out);
/* Sets count (k, or 0 if nothing follows), value, energy and all else but index. DP_BADMSG. */
dp_status dp_codec_values_read(dp_codec_cursor *cursor, size_t k, dp_codec_run *run);
size_t dp_codec_values_bytes_max(const dp_codec *codec);

/* Entries of a run. */
static inline size_t dp_codec_entries(const dp_codec *codec, size_t length)
{
    return (length + codec->keep - 1) / codec->keep;
}

static inline uint32_t dp_codec_load_u16(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

/* ---- Blocks (codec_blocks.c): int8, int4, e3m0 and sign. */

/* Sets energy, square, count and dense of a run whose values come block by block. */
void dp_codec_blocks_begin(dp_codec_run *run);

static inline size_t dp_codec_block_length(const dp_codec *codec, size_t left)
{
    return left < codec->block ? left : codec->block;
}

/* Blocks of a full run. */
static inline size_t dp_codec_blocks(const dp_codec *codec)
{
    return DP_CODEC_RUN / codec->block;
}

/* Marks a code of 4 bits that does not exist: above any sum of real ones in a block, at most 4096
 * each. */
enum { DP_CODEC_NO_CODE = 1 << 21, DP_CODEC_CODES_MAX = 256 };
_Static_assert(DP_CODEC_CODES_MAX * 4096 < DP_CODEC_NO_CODE &&
                   DP_CODEC_NO_CODE <= UINT32_MAX / DP_CODEC_CODES_MAX,
               "sums of weights neither reach it nor wrap");

/* Writes two elements of 4 bits per byte, the first in the lower half; an odd last byte is filled
 * with 0. */
void dp_codec_pack_nibbles(const uint8_t *nibble, size_t n, dp_writer *out);
/* Reads them. False: the input is too short, or the fill is not 0. */
bool dp_codec_unpack_nibbles(dp_reader *in, size_t n, uint8_t *nibble);

/* The values of the 16 codes of 4 bits, with a scale s per block: s times unit, with energy s^2
 * times square. */
typedef struct dp_codec_codes {
    float unit[16];
    uint32_t square[16]; /* in units of 2^-shift; DP_CODEC_NO_CODE: no such code */
    uint32_t shift;
} dp_codec_codes;

/* Reads blocks: u16 s (fp16), then 4 bits per element. DP_BADMSG. */
DP_MUST dp_status dp_codec_read_codes(const dp_codec_codes *codes, dp_codec_cursor *cursor,
                                      dp_codec_run *run);

#endif
