/* The codecs for updates: one row for each, with its name, its number and its options. Their
 * arithmetic is in compute/codec/codec.h.
 *
 * A codec is a row here and one file compute/codec/codec_<name>.c that defines dp_codec_<name>
 * (compute/codec/codec_family.h). */
#ifndef DP_BASE_RUN_CODEC_KIND_H
#define DP_BASE_RUN_CODEC_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Numbers stand in blobs and manifests, so they stay: 5, 7, 8 and 9 were codecs that are gone.
 *
 * Columns: name | NAME | number | elements under one scale: minimum, maximum (powers of two),
 * default; 0: no scales | true if only one of keep elements is sent, with bits for each. */
#define DP_CODEC_LIST(ROW)                                                                         \
    ROW(fp32, FP32, 1, 0, 0, 0, false)                                                             \
    ROW(bf16, BF16, 2, 0, 0, 0, false)                                                             \
    ROW(int8, INT8, 3, 256, 1024, 256, false)                                                      \
    ROW(sparse, SPARSE, 4, 0, 0, 0, true)                                                          \
    ROW(int4, INT4, 6, 64, 256, 64, false)

enum {
#define DP_CODEC_ROW(name, NAME, number, least, most, standard, thins) DP_CODEC_PLACE_##NAME,
    DP_CODEC_LIST(DP_CODEC_ROW)
#undef DP_CODEC_ROW
        DP_CODEC_COUNT
};

typedef enum dp_codec_kind {
#define DP_CODEC_ROW(name, NAME, number, least, most, standard, thins) DP_CODEC_##NAME = (number),
    DP_CODEC_LIST(DP_CODEC_ROW)
#undef DP_CODEC_ROW
        DP_CODEC_KINDS /* one more than the last */
} dp_codec_kind;

enum {
    DP_CODEC_KEEP_MIN = 16, /* one of 16 .. one of 128, powers of two */
    DP_CODEC_KEEP_MAX = 128,
    DP_CODEC_KEEP_DEFAULT = 64,
    DP_CODEC_BITS_MAX = 2, /* 1: the sign; 2: the sign and one of two magnitudes */
    DP_CODEC_BITS_DEFAULT = 2
};

/* The options of a codec. */
typedef struct dp_codec_row {
    const char *name;
    dp_codec_kind kind;
    uint32_t block_min; /* 0: no scales */
    uint32_t block_max;
    uint32_t block_default;
    bool thins;
} dp_codec_row;

/* Factor on the outer step for updates of this codec that keeps one element of keep, Q16; 65536 for
 * a codec that keeps all. A sparse codec leaves work over that arrives rounds later and decayed,
 * and a longer step makes up for it. Measured (docs/BENCHMARKS.md, learning quality). */
uint32_t dp_codec_gain(dp_codec_kind kind, uint32_t keep);

/* All, with ascending numbers. */
const dp_codec_row *dp_codec_rows(size_t *count);
/* NULL: no codec has this number. */
const dp_codec_row *dp_codec_row_of(unsigned kind);
/* The name of a codec, "sparse"; NULL: none. And the reverse; false: no such name. */
const char *dp_codec_name(dp_codec_kind kind);
bool dp_codec_named(const char *name, dp_codec_kind *kind);
/* The name of the codec to use for a deleted one, "int4" for "sign"; NULL: none had this name. */
const char *dp_codec_instead(const char *name);
/* DP_OK if the codec accepts these options. block 0 is its default; keep and bits are ignored if
 * the codec keeps all elements. DP_BADARG with a sentence, which for kind and keep begins with the
 * key of the manifest. */
DP_MUST dp_status dp_codec_options_check(dp_codec_kind kind, uint32_t block, uint32_t keep,
                                         uint32_t bits, dp_why *why);

#endif
