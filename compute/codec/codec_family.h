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
    const float *a;
    size_t length; /* 1 .. DP_CODEC_RUN */
} dp_codec_slice;

typedef struct dp_codec_family {
    /* The longest run. */
    size_t (*run_bytes_max)(const dp_codec *codec);
    /* Appends the run to out, which has room. DP_DIVERGED as in dp_codec_encode. */
    dp_status (*write)(const dp_codec_slice *slice, dp_writer *out);
    /* Reads the next run, of run->length elements, into the rest of *run. Accepts any bytes:
     * DP_BADMSG. */
    dp_status (*read)(dp_codec_cursor *cursor, dp_codec_run *run);
    /* Sets square of n <= DP_CODEC_ABREAST runs; NULL: read has set energy. */
    void (*measure)(dp_codec_run *runs, size_t n);
} dp_codec_family;

#define DP_CODEC_ROW(name, NAME, number, least, most, standard, thins)                             \
    extern const dp_codec_family dp_codec_##name;
DP_CODEC_LIST(DP_CODEC_ROW)
#undef DP_CODEC_ROW

enum { DP_CODEC_INFINITY_BITS = 0x7f800000 };

/* ---- Kept values (codec_values.c). */

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

/* Sets energy, square, count and dense of a run whose codec sends every value. */
static inline void dp_codec_dense_begin(dp_codec_run *run)
{
    run->energy = 0;
    run->square = 0;
    run->count = run->length;
    run->dense = true;
}

/* ---- Blocks under one scale: int8 and int4. */

static inline size_t dp_codec_block_length(const dp_codec *codec, size_t left)
{
    return left < codec->block ? left : codec->block;
}

/* Blocks of a full run. */
static inline size_t dp_codec_blocks(const dp_codec *codec)
{
    return DP_CODEC_RUN / codec->block;
}

#endif
