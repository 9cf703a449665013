/* The sum of a record's updates that come in slices, where one call cannot be given all of them: as
 * the fp32 update that stands for those before. Exact, like consensus.h: however they are cut, as
 * long as their order stays, every node gets the same bits, and those of one call with all of them,
 * since a sum of floats that is written down and read again is the same. Knows no records. */
#ifndef DP_COMPUTE_OUTER_SLICES_H
#define DP_COMPUTE_OUTER_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "compute/outer/consensus.h"

enum { DP_SLICE_ITEMS_MAX = DP_CONSENSUS_ITEMS_MAX - 1 /* what came before them is one more */ };

/* sum: empty, or the fp32 blob of n elements that earlier calls have made; then g = sum + q 2^-31
 * decode(blob) over the items in the given order, of each element that they store; steps: times the
 * gain of each codec (consensus.h). To whom it is the one update of a round, with a share of 1,
 * does as if it had added all of them. The blobs have been checked. DP_BADARG (no or too many of
 * them), DP_NOMEM, DP_TOOBIG; DP_DIVERGED: g is not what an update may hold, finite and at most
 * 2^60. One call with all would not mind a sum above that, but records make none: an update has an
 * energy of at most 2^112 on a grid of 2^-48, so no element of it is above 2^32, and shares of a
 * round are together at most 1, with gains at most 4. DP_BADMSG, DP_VERSION: a blob was not checked
 * after all. Then sum is empty. */
DP_MUST dp_status dp_slice_add(dp_buf *sum, size_t n, const dp_view *blobs, const uint32_t *q,
                               size_t n_items, bool steps);

#endif
