/* Update blobs: n floats of the arena <-> bytes, by one of four codecs. Knows no error feedback (feedback.h) and no
 * weights (consensus.h).
 *
 * A blob is read by replicas that must agree on every bit, so decoding, checking and energies use integers, exact float
 * products and sums of one order; there is no libm, no contraction and no dependence on threads.
 *
 *   offset size
 *        0    4  "DPU1"
 *        4    1  version 1
 *        5    1  dp_codec_kind
 *        6    2  0
 *        8    8  elements n
 *       16       payload: runs of 4096 consecutive elements (the last may be shorter), each as its codec says:
 *                fp32    4 bytes per element;  bf16  2 bytes
 *                int8    per block of 256 (the last may be shorter): fp16 scale | one int8 per element in -127..127
 *                sparse  fp16 c_lo | fp16 c_hi | signs | magnitudes | gaps (codec_sparse.c draws the bits)
 * All integers are little-endian; nothing follows the last run. */
#ifndef DP_COMPUTE_CODEC_H
#define DP_COMPUTE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/manifest.h"

enum {
    DP_CODEC_HEADER_BYTES = 16,
    DP_CODEC_RUN = 4096,  /* elements of a run */
    DP_CODEC_TOP = 64,    /* sparse: entries kept of a full run, one in 64 */
    DP_CODEC_BLOCK = 256, /* int8: elements under one scale */
    DP_CODEC_RICE = 5     /* sparse: low bits of a gap, near log2 of the mean gap 63 */
};
#define DP_CODEC_ELEMENTS_MAX ((size_t)1 << 31) /* as fp32 they fill the largest object */
/* fp32 and bf16: larger magnitudes are refused on both sides, so that sums of squares stay finite. */
#define DP_CODEC_VALUE_MAX 0x1p60F
/* Energies saturate here: times 144 (an accumulated round counts (12/k)^2) they still fit 128 bits. */
#define DP_CODEC_ENERGY_MAX ((((unsigned __int128)1) << 120) - 1)

/* Append the blob of a[0..n-1] to out. DP_DIVERGED when some a is not finite (fp32, bf16: or passes
 * DP_CODEC_VALUE_MAX), DP_TOOBIG, DP_NOMEM; then out is as before. Takes 3 passes over a at most; decode(encode(d)) == d
 * for every d that decode has given (int8: while the block's scale is a normal half). */
DP_MUST dp_status dp_codec_encode(dp_codec_kind kind, const float *a, size_t n, dp_buf *out);
/* No blob of n elements is longer, whatever its codec: the bound for receivers. */
uint64_t dp_codec_bytes_max(dp_codec_kind kind, size_t n);

/* The whole blob decodes to n elements and nothing is left over. Any bytes: DP_OK, DP_BADMSG or DP_VERSION, in time
 * linear in their number. */
DP_MUST dp_status dp_codec_check(dp_view blob, size_t n);
/* d[0..n-1], elements that are not stored are +0. Checks first; on failure d is untouched. */
DP_MUST dp_status dp_codec_decode(dp_view blob, float *d, size_t n);
/* Sum of squares on the grid 2^-48, the same on every machine. sparse: sum over runs of n_lo c_lo^2 + n_hi c_hi^2,
 * int8: sum over blocks of (sum q^2) scale^2, both exact with halves as multiples of 2^-24;
 * fp32, bf16: floor(S 2^48), S summed in double, serially within runs, then serially over them.
 * At most DP_CODEC_ENERGY_MAX. Checks first. */
DP_MUST dp_status dp_codec_energy(dp_view blob, size_t n, unsigned __int128 *energy);
/* The kind that the header names; DP_BADMSG if it is none of ours. Looks at nothing else. */
DP_MUST dp_status dp_codec_kind_of(dp_view blob, dp_codec_kind *kind);
/* "sparse"; NULL out of range. And back; false if there is no such codec. */
const char *dp_codec_name(dp_codec_kind kind);
bool dp_codec_named(const char *name, dp_codec_kind *kind);

/* One decoded run: count stored entries; entry i is element index[i], or element i of the run when dense. */
typedef struct dp_codec_run {
    size_t length; /* elements of the run */
    size_t count;
    bool dense;
    unsigned __int128 energy;     /* sparse, int8: exact, grid 2^-48 */
    double square;                /* fp32, bf16: sum of squares */
    uint16_t index[DP_CODEC_TOP]; /* ascending; not for dense */
    float value[DP_CODEC_RUN];
} dp_codec_run;

/* Reads a blob run by run: for those who add blobs up without unpacking them whole. */
typedef struct dp_codec_cursor {
    dp_reader reader;
    dp_codec_kind kind;
    size_t left; /* elements not read yet */
} dp_codec_cursor;

/* DP_BADMSG or DP_VERSION when the header does not name n elements. */
DP_MUST dp_status dp_codec_open(dp_codec_cursor *cursor, dp_view blob, size_t n);
/* The next run; cursor->left says whether there is one. After the last run DP_BADMSG if bytes are left over. */
DP_MUST dp_status dp_codec_next(dp_codec_cursor *cursor, dp_codec_run *run);
/* The run's elements, those not stored +0. d: run->length floats. */
void dp_codec_expand(const dp_codec_run *run, float *d);

#endif
