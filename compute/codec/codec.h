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
 *        7    1  bits of a value, if only some elements are sent; else 0
 *        8    4  elements n
 *       12    4  number of the first run: of a part of a vector (part.h); else 0
 *       16    8  0
 *       24       payload: runs of 4096 consecutive elements (the last may be shorter), each
 *                as its codec says:
 *
 *   codec         bytes of a run                                                written in
 *   fp32          4 per element                                                 codec_fp32.c
 *   bf16          2 per element                                                 codec_bf16.c
 *   int8          per block (the last may be shorter): fp16 scale |
 *                 one int8 per element in -127..127                              codec_int8.c
 *   int4          per block: fp16 scale | 4 bits per element in -7..7            codec_int4.c
 *   sparse        kept values | gaps between them                               codec_sparse.c
 *
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
/* fp32 and bf16: both sides refuse larger magnitudes, so that sums of squares stay finite. */
#define DP_CODEC_VALUE_MAX 0x1p60F
/* Energies saturate here: times 144 (an accumulated round counts (12/k)^2) they still fit 128
 * bits. */
#define DP_CODEC_ENERGY_MAX ((((unsigned __int128)1) << 120) - 1)

/* A codec with its options. An option that the codec lacks is 0, so that equal codecs have equal
 * members. */
typedef struct dp_codec {
    dp_codec_kind kind;
    uint32_t block; /* elements under one scale */
    uint32_t keep;  /* one element of so many is kept */
    uint32_t bits;  /* of a kept value */
} dp_codec;

/* The codec with its default options. kind must exist. */
dp_codec dp_codec_default(dp_codec_kind kind);
/* The codec of a run's publications; and the dense one, for pairwise exchanges and for work that is
 * too large for a sparse codec: the same, or int8 if the codec sends some elements only. The
 * manifest has been checked. */
dp_codec dp_codec_of_run(const dp_manifest *manifest);
dp_codec dp_codec_dense_of_run(const dp_manifest *manifest);
/* True if a round may have this density: codec_keep, twice that, ... up to codec_keep_most of the
 * manifest; 0 means codec_keep. */
bool dp_codec_keep_permitted(const dp_manifest *manifest, uint32_t keep);
/* The codec of a round with a permitted density: a sparse codec keeps one of keep elements. */
dp_codec dp_codec_of_round(const dp_manifest *manifest, uint32_t keep);
/* The codec of a node whose last publication was left out. It holds two rounds of work, so a sparse
 * codec sends twice as many elements, at most one in DP_CODEC_KEEP_MIN. Other codecs stay. */
dp_codec dp_codec_after_loss(const dp_manifest *manifest, uint32_t keep);
/* True if a round with this density accepts the codec: one of the last two, or the dense one. False
 * if the density is not permitted. */
bool dp_codec_allowed(const dp_codec *codec, const dp_manifest *manifest, uint32_t keep);

/* Appends the blob of a[0..n-1] to out. DP_DIVERGED: some a is not finite (fp32, bf16: or above
 * DP_CODEC_VALUE_MAX); DP_BADARG: no such codec or options; DP_TOOBIG, DP_NOMEM. On failure out is
 * unchanged. Decoding is idempotent: for d = decode(encode(a)), decode(encode(d)) == d. */
DP_MUST dp_status dp_codec_encode(const dp_codec *codec, const float *a, size_t n, dp_buf *out);
/* The same with the loops of one table, for tests and benches. */
DP_MUST dp_status dp_codec_encode_with(const dp_codec_ops *ops, const dp_codec *codec,
                                       const float *a, size_t n, dp_buf *out);
/* Appends only the header, for a caller that makes the runs itself. DP_BADARG, DP_TOOBIG, DP_NOMEM:
 * out is unchanged. */
DP_MUST dp_status dp_codec_header(const dp_codec *codec, size_t n, dp_buf *out);
/* The same for a part, elements first .. first + n - 1 of a vector. first, here and below, must be
 * the start of a codec run; else DP_BADARG. */
DP_MUST dp_status dp_codec_header_at(const dp_codec *codec, size_t first, size_t n, dp_buf *out);
/* Appends only the runs of elements first .. first + n - 1, which are a[0..n-1]. Statuses of
 * dp_codec_encode. */
DP_MUST dp_status dp_codec_append(const dp_codec *codec, const float *a, size_t first, size_t n,
                                  dp_buf *out);
/* The longest blob of n elements by this codec; 0: none exists. */
uint64_t dp_codec_bytes_max(const dp_codec *codec, size_t n);
/* The same by any codec: the limit for receivers. */
uint64_t dp_codec_bytes_max_any(size_t n);

/* DP_OK if the whole blob decodes to n elements. Accepts any bytes: DP_BADMSG, DP_VERSION; time
 * linear in their number. */
DP_MUST dp_status dp_codec_check(dp_view blob, size_t n);
/* The same of a part that begins with element first. */
DP_MUST dp_status dp_codec_check_at(dp_view blob, size_t first, size_t n);
/* Decodes to d[0..n-1]; elements that are not stored are +0. Checks first; on failure d is
 * untouched. */
DP_MUST dp_status dp_codec_decode(dp_view blob, float *d, size_t n);
/* The energy: sum of squares in units of 2^-48, the same on every machine, saturated at
 * DP_CODEC_ENERGY_MAX. Exact with fp16 numbers as multiples of 2^-24:
 *     int8, int4  sum over blocks of (sum q^2) scale^2
 *     sparse      sum over runs of n_lo c_lo^2 + n_hi c_hi^2
 *     fp32, bf16  floor(S 2^48), S summed in double, serially within runs, then over them
 * Checks first: DP_BADMSG, DP_VERSION. A part counts as a vector of its own. */
DP_MUST dp_status dp_codec_energy(dp_view blob, size_t n, unsigned __int128 *energy);
/* Reads the header only. DP_BADMSG: no blob; DP_VERSION. For a part *elements has the number of its
 * first run in the upper half, so that it equals no real number of elements. */
DP_MUST dp_status dp_codec_peek(dp_view blob, dp_codec *codec, uint64_t *elements);
/* *norm = |a| and *error = |a - decode(blob)|, the loss of the codec. Near: sums in double. Checks
 * first. */
DP_MUST dp_status dp_codec_error(dp_view blob, const float *a, size_t n, double *norm,
                                 double *error);

/* One decoded codec run: count stored entries; entry i is element index[i], or element i of the run
 * if dense. */
typedef struct dp_codec_run {
    size_t length; /* elements of the run */
    size_t count;
    bool dense;
    unsigned __int128 energy;          /* exact, grid 2^-48; fp32, bf16: 0 */
    double square;                     /* fp32, bf16: sum of squares, once measured */
    uint16_t index[DP_CODEC_KEPT_MAX]; /* ascending; not for dense */
    float value[DP_CODEC_RUN];
} dp_codec_run;

/* Reads a blob run by run, for sums that do not unpack whole blobs. */
typedef struct dp_codec_cursor {
    dp_reader reader;
    dp_codec codec;
    const dp_codec_ops *ops; /* the fastest table; all give the same bits */
    size_t left;             /* elements not read yet */
} dp_codec_cursor;

/* Opens a blob of n elements. DP_BADMSG, DP_VERSION: the header does not match. */
DP_MUST dp_status dp_codec_open(dp_codec_cursor *cursor, dp_view blob, size_t n);
/* The same of a part that begins with element first. */
DP_MUST dp_status dp_codec_open_at(dp_codec_cursor *cursor, dp_view blob, size_t first, size_t n);
/* A cursor on the runs of n elements, without a header. */
dp_codec_cursor dp_codec_cursor_of(const dp_codec *codec, dp_view runs, size_t n);

/* The energy of a blob while its runs are read: start zeroed, add runs in order, end. */
typedef struct dp_codec_tally {
    unsigned __int128 exact;
    double square;
} dp_codec_tally;

/* Runs that are measured together: sums within a run have an order, so several runs at once take
 * the time of one. */
enum { DP_CODEC_ABREAST = 4 };

/* Adds n <= DP_CODEC_ABREAST runs, in order. */
void dp_codec_tally_add(dp_codec_tally *tally, const dp_codec *codec, dp_codec_run *runs, size_t n);
/* True if the codec measures after reading, so that several runs should be added together. */
bool dp_codec_tally_waits(const dp_codec *codec);
unsigned __int128 dp_codec_tally_end(const dp_codec_tally *tally);
/* Energy of the next n elements, which end with a run or are all that is left. DP_BADMSG. */
DP_MUST dp_status dp_codec_energy_next(dp_codec_cursor *cursor, size_t n,
                                       unsigned __int128 *energy);
/* Reads the next run; cursor->left > 0 says that there is one. After the last run DP_BADMSG: bytes
 * are left over. */
DP_MUST dp_status dp_codec_next(dp_codec_cursor *cursor, dp_codec_run *run);
/* Adds |g|^2 and |g - decoded run|^2 to sums, over run->length floats. Near. */
void dp_codec_leaves(const dp_codec_ops *ops, const dp_codec_run *run, const float *g,
                     double sums[2]);
/* Expands a run to d, run->length floats; elements that are not stored are +0. */
void dp_codec_expand(const dp_codec_run *run, float *d);
/* acc[i] = acc[i] + f value, a rounded product and a rounded sum, for the stored elements of the
 * run. */
void dp_codec_add(const dp_codec_ops *ops, const dp_codec_run *run, float f, float *acc);

#endif
