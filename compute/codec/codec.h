/* Update blobs: n floats of the arena <-> bytes, by one of the codecs of base/run/codec_kind.h.
 * Knows no error feedback (feedback.h) and no weights (consensus.h).
 *
 * A blob is read by replicas that must agree on every bit, and made by backends that must agree on
 * every byte, so all of it is integers, single float operations and sums that have one order or
 * none; there is no libm, no contraction, no dependence on threads or on the processor.
 *
 *   offset size
 *        0    4  "DPU1"
 *        4    1  version 2
 *        5    1  dp_codec_kind
 *        6    1  log2 of the elements under one scale, or of keep; else 0
 *        7    1  bits of a value, where some elements only are kept; else 0
 *        8    4  elements n
 *       12    4  number of the first run: of a part of a vector (part.h); else 0
 *       16    8  seed of the positions (random); else 0
 *       24       payload: runs of 4096 consecutive elements (the last may be shorter), each as its
 *                codec says: fp32    4 bytes per element;  bf16, fp16  2 bytes
 *                (codec_fp32.c, ...) int8    per block (the last may be shorter): fp16 scale | one
 *                int8 per element in -127..127 int4    per block: fp16 scale | 4 bits per element
 *                in -7..7                      (codec_steps.c) e3m0    per block: fp16 scale | 4
 *                bits per element, a sign and a power of two    (codec_e3m0.c) sign    per block:
 *                fp16 scale | 1 bit per element                                (codec_sign.c)
 *                sparse  kept values | gaps between them
 *                (codec_sparse.c) random  kept values
 *                (codec_random.c)
 * All integers are little-endian; nothing follows the last run. */
#ifndef DP_COMPUTE_CODEC_CODEC_H
#define DP_COMPUTE_CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/run/manifest.h"
#include "compute/cpu/codec_ops.h"

enum {
    DP_CODEC_HEADER_BYTES = 24,
    DP_CODEC_KEPT_MAX = DP_CODEC_RUN / DP_CODEC_KEEP_MIN /* entries of a run */
};
#define DP_CODEC_ELEMENTS_MAX ((size_t)1 << 31) /* as fp32 they fill the largest object */
/* fp32 and bf16: larger magnitudes are refused on both sides, so that sums of squares stay
 * finite. */
#define DP_CODEC_VALUE_MAX 0x1p60F
/* Energies saturate here: times 144 (an accumulated round counts (12/k)^2) they still fit 128
 * bits. */
#define DP_CODEC_ENERGY_MAX ((((unsigned __int128)1) << 120) - 1)

/* A codec with its options. What it has no use for is 0, so that two of them are the same iff their
 * members are. */
typedef struct dp_codec {
    dp_codec_kind kind;
    uint32_t block; /* elements under one scale */
    uint32_t keep;  /* one element of so many is kept */
    uint32_t bits;  /* of a kept value */
    uint64_t seed;  /* of the positions: random */
} dp_codec;

/* With its standard options; DP_CODEC_KINDS and beyond do not exist. */
dp_codec dp_codec_default(dp_codec_kind kind);
/* What a run publishes with, and the dense one of its exchanges and of what had grown too much for
 * a sparse one: the same codec, or int8 where it keeps some elements only. The manifest has been
 * checked. Seed 0. */
dp_codec dp_codec_of_run(const dp_manifest *manifest);
dp_codec dp_codec_dense_of_run(const dp_manifest *manifest);
/* May a round have this density: codec_keep, twice that, .. codec_keep_most of the manifest; 0
 * stands for codec_keep. */
bool dp_codec_keep_permitted(const dp_manifest *manifest, uint32_t keep);
/* Of a round with this density, which is permitted: a codec that keeps some elements keeps one of
 * keep. */
dp_codec dp_codec_of_round(const dp_manifest *manifest, uint32_t keep);
/* With what a node publishes in it whose last publication was left out: two rounds of work are in
 * it, so sparse keeps twice as many elements, one in DP_CODEC_KEEP_MIN at most. Any other codec
 * is that of the round; random ones add up only where all draw alike. */
dp_codec dp_codec_after_loss(const dp_manifest *manifest, uint32_t keep);
/* Whether updates of a round with this density may be encoded so: by one of the last two, or the
 * dense one, any seed. False where the density is not permitted. */
bool dp_codec_allowed(const dp_codec *codec, const dp_manifest *manifest, uint32_t keep);

/* Append the blob of a[0..n-1] to out. DP_DIVERGED when some a is not finite (fp32, bf16: or passes
 * DP_CODEC_VALUE_MAX), DP_BADARG (no such codec or options), DP_TOOBIG, DP_NOMEM; then out is as
 * before. What decode makes of it is a fixed point: for d = decode(encode(a)), decode(encode(d)) ==
 * d. */
DP_MUST dp_status dp_codec_encode(const dp_codec *codec, const float *a, size_t n, dp_buf *out);
/* The same with the loops of one table, for tests and benches. */
DP_MUST dp_status dp_codec_encode_with(const dp_codec_ops *ops, const dp_codec *codec,
                                       const float *a, size_t n, dp_buf *out);
/* Append the header alone, for who makes the runs elsewhere. DP_BADARG, DP_TOOBIG, DP_NOMEM; then
 * out is as before. */
DP_MUST dp_status dp_codec_header(const dp_codec *codec, size_t n, dp_buf *out);
/* The same of a part: elements first .. first + n - 1 of a vector. first, here and below, is where
 * a run begins; else DP_BADARG. */
DP_MUST dp_status dp_codec_header_at(const dp_codec *codec, size_t first, size_t n, dp_buf *out);
/* Append the runs alone of elements first .. first + n - 1, which are a[0..n-1]. As
 * dp_codec_encode. */
DP_MUST dp_status dp_codec_append(const dp_codec *codec, const float *a, size_t first, size_t n,
                                  dp_buf *out);
/* No blob of n elements by this codec is longer; 0 where there can be none. */
uint64_t dp_codec_bytes_max(const dp_codec *codec, size_t n);
/* ... by any codec: the bound for receivers. */
uint64_t dp_codec_bytes_max_any(size_t n);

/* The whole blob decodes to n elements and nothing is left over. Any bytes: DP_OK, DP_BADMSG or
 * DP_VERSION, in time linear in their number. */
DP_MUST dp_status dp_codec_check(dp_view blob, size_t n);
/* The same of a part that begins with element first. */
DP_MUST dp_status dp_codec_check_at(dp_view blob, size_t first, size_t n);
/* d[0..n-1], elements that are not stored are +0. Checks first; on failure d is untouched. */
DP_MUST dp_status dp_codec_decode(dp_view blob, float *d, size_t n);
/* Sum of squares on the grid 2^-48, the same on every machine; exact with halves as multiples of
 * 2^-24: int8, int4: sum over blocks of (sum q^2) scale^2; sign: of length scale^2; e3m0: of
 * floor((sum 4^p) scale^2); sparse, random: sum over runs of n_lo c_lo^2 + n_hi c_hi^2; fp16: sum
 * of the squares;
 * fp32, bf16: floor(S 2^48), S summed in double, serially within runs, then serially over them. At
 * most DP_CODEC_ENERGY_MAX. Checks first. Of a part: of its elements, as if they were a vector. */
DP_MUST dp_status dp_codec_energy(dp_view blob, size_t n, unsigned __int128 *energy);
/* What the header names; DP_BADMSG if it is none of ours, DP_VERSION. Looks at nothing else. Of a
 * part *elements holds the number of its first run in the upper half, so that it is no number of
 * elements that anybody has. */
DP_MUST dp_status dp_codec_peek(dp_view blob, dp_codec *codec, uint64_t *elements);
/* |a|, and |a - decode(blob)|: what the blob leaves over. Near: sums in double. Checks first. */
DP_MUST dp_status dp_codec_error(dp_view blob, const float *a, size_t n, double *norm,
                                 double *error);

/* One decoded run: count stored entries; entry i is element index[i], or element i of the run when
 * dense. */
typedef struct dp_codec_run {
    size_t length; /* elements of the run */
    size_t count;
    bool dense;
    unsigned __int128 energy;          /* exact, grid 2^-48; fp32, bf16, fp16: 0 unless asked for */
    double square;                     /* fp32, bf16: sum of squares, if asked for */
    uint16_t index[DP_CODEC_KEPT_MAX]; /* ascending; not for dense */
    float value[DP_CODEC_RUN];
} dp_codec_run;

/* Reads a blob run by run: for those who add blobs up without unpacking them whole. */
typedef struct dp_codec_cursor {
    dp_reader reader;
    dp_codec codec;
    const dp_codec_ops *ops; /* the best; any other gives the same */
    uint64_t at;             /* number of the next run */
    size_t left;             /* elements not read yet */
} dp_codec_cursor;

/* DP_BADMSG or DP_VERSION when the header does not name n elements. */
DP_MUST dp_status dp_codec_open(dp_codec_cursor *cursor, dp_view blob, size_t n);
/* The same of a part that begins with element first. */
DP_MUST dp_status dp_codec_open_at(dp_codec_cursor *cursor, dp_view blob, size_t first, size_t n);
/* A cursor on runs without a header: of elements first .. first + n - 1. */
dp_codec_cursor dp_codec_cursor_of(const dp_codec *codec, dp_view runs, size_t first, size_t n);

/* The energy of a blob while its runs are read: zeroed, add runs in order, end. */
typedef struct dp_codec_tally {
    unsigned __int128 exact;
    double square;
} dp_codec_tally;

/* So many runs are measured at a time as fast as one: sums within runs have an order, those of
 * several do not wait for each other. */
enum { DP_CODEC_ABREAST = 4 };

/* n <= DP_CODEC_ABREAST of them, in order. */
void dp_codec_tally_add(dp_codec_tally *tally, const dp_codec *codec, dp_codec_run *runs, size_t n);
/* Whether reading leaves something to be measured: then they are better added several at a time. */
bool dp_codec_tally_waits(const dp_codec *codec);
unsigned __int128 dp_codec_tally_end(const dp_codec_tally *tally);
/* Energy of the next n elements, which end with a run, or are all that is left. DP_BADMSG. */
DP_MUST dp_status dp_codec_energy_next(dp_codec_cursor *cursor, size_t n,
                                       unsigned __int128 *energy);
/* The next run; cursor->left says whether there is one. After the last run DP_BADMSG if bytes are
 * left over. */
DP_MUST dp_status dp_codec_next(dp_codec_cursor *cursor, dp_codec_run *run);
/* Adds to sums |g|^2 and |g - decoded run|^2: run->length floats. Near. */
void dp_codec_leaves(const dp_codec_ops *ops, const dp_codec_run *run, const float *g,
                     double sums[2]);
/* The run's elements, those not stored +0. d: run->length floats. */
void dp_codec_expand(const dp_codec_run *run, float *d);
/* acc[i] = acc[i] + f value, a rounded product and a rounded sum, for the elements that the run
 * stores. */
void dp_codec_add(const dp_codec_ops *ops, const dp_codec_run *run, float f, float *acc);

#endif
