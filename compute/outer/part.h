/* Parts of an update (gossip/record/part.h): the places of shares in a vector, the blobs of parts,
 * their reduction by owners, and the places of a round's results. Exact, like consensus.h: every
 * node gets the same bits. Knows no peers.
 *
 * A part begins and ends at codec runs, so that its runs are a piece of the runs of the whole blob:
 * share s of n elements lies at element min(n, floor(s R / 65536) DP_CODEC_RUN), with R = ceil(n /
 * DP_CODEC_RUN) runs. A part may have no elements; its blob is a header. */
#ifndef DP_COMPUTE_OUTER_PART_H
#define DP_COMPUTE_OUTER_PART_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/run/part_cuts.h"
#include "base/trainer/trainer_msg.h"
#include "compute/codec/codec.h"

/* The place of a range in a vector of so many elements. DP_BADARG: it ends before it begins, or
 * beyond the vector. */
DP_MUST dp_status dp_part_place_of(dp_part_range range, size_t elements, dp_part_place *place);
/* The shares of part p < cuts->n. */
dp_part_range dp_part_range_of(const dp_part_cuts *cuts, uint32_t p);

/* The blob of a part in two pieces, header and runs; the runs are borrowed from the whole blob. */
typedef struct dp_part_blob {
    uint8_t header[DP_CODEC_HEADER_BYTES];
    dp_view runs;
    unsigned __int128 energy;
} dp_part_blob;

/* Cuts a blob of n elements into parts, in the order of cuts. *energy: the sum of their energies,
 * saturated at DP_CODEC_ENERGY_MAX, so that no part has more than that. Checks first: DP_BADMSG,
 * DP_VERSION. DP_NOMEM. */
DP_MUST dp_status dp_part_cut(dp_view blob, size_t n, const dp_part_cuts *cuts,
                              dp_part_blob parts[DP_PARTS_MAX], unsigned __int128 *energy);

/* Energy of a part's blob from a peer. Accepts any bytes: DP_BADMSG, DP_VERSION. */
DP_MUST dp_status dp_part_energy(dp_view blob, dp_part_place place, unsigned __int128 *energy);

/* Blobs of one part, and their shares of the sum. */
typedef struct dp_part_items {
    const dp_view *blobs;
    const uint32_t *q; /* Q31 */
    size_t n;
} dp_part_items;

/* Measurements of a reduced part. */
typedef struct dp_part_sum {
    unsigned __int128 energy; /* of the result */
    double norm;              /* of the sum; near */
    double error;             /* of the sum minus the result, which no error feedback keeps; near */
} dp_part_sum;

/* Appends to out the blob, by this codec, of g = sum of q 2^-31 decode(blob) over the items in
 * order (consensus.h). DP_BADARG (no or too many items), DP_BADMSG, DP_VERSION, DP_DIVERGED (g is
 * too large for the codec: weights above 1), DP_TOOBIG, DP_NOMEM: out is unchanged. */
DP_MUST dp_status dp_part_reduce(const dp_codec *codec, dp_part_place place,
                                 const dp_part_items *items, dp_buf *out, dp_part_sum *sum);

/* Results of a round, each of a range. */
typedef struct dp_part_results {
    const dp_part_range *ranges;
    const dp_view *blobs;
    const uint32_t *q; /* Q31, at most 2^31 */
    size_t n;          /* at most DP_PARTS_MAX */
} dp_part_results;

/* The places of results in a vector of so many elements, for the outer step (consensus.h).
 * DP_BADARG: ranges are not in order, too many, or q is above 2^31; DP_BADMSG, DP_VERSION: a blob
 * does not match its range. */
DP_MUST dp_status dp_part_places(const dp_part_results *results, size_t elements,
                                 dp_part_place places[DP_PARTS_MAX]);

/* The outcome of a publication that a round of parts included. */
typedef struct dp_part_outcome {
    const dp_part_cuts *cuts;
    uint32_t taken; /* bit p: part p counts it */
    uint32_t clip;  /* Q16 */
    float beta;
} dp_part_outcome;

/* Appends e to out as little-endian floats: e = beta (a - clip decode(blob)) on the parts that
 * count the publication, e = a on the others (feedback.h). blob: of the whole publication; a: n
 * floats. DP_BADMSG, DP_VERSION, DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_part_settle(const dp_part_outcome *outcome, const float *a, size_t n,
                                 dp_view blob, dp_buf *out);

#endif
