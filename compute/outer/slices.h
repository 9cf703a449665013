/* The sum of a record's updates in slices, if one call cannot take all of them: earlier slices are
 * kept as one fp32 update. Exact, like consensus.h: for any slices in the same order every node
 * gets the same bits, those of one call with all updates, because a float sum survives writing and
 * reading. Knows no records. */
#ifndef DP_COMPUTE_OUTER_SLICES_H
#define DP_COMPUTE_OUTER_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "compute/outer/consensus.h"

/* One less than of one sum: the sum of earlier slices is an item too. */
enum { DP_SLICE_ITEMS_MAX = DP_CONSENSUS_ITEMS_MAX - 1 };

/* Adds a slice: sum is empty or the fp32 blob of n elements of earlier calls; then g = sum + q
 * 2^-31 decode(blob) over the items in order; with steps times the gain of each codec
 * (consensus.h). Applying g as the one update of a round, with a share of 1, equals applying all of
 * them. The blobs have been checked. DP_BADARG (no or too many items), DP_NOMEM, DP_TOOBIG;
 * DP_DIVERGED: g is not finite or above 2^60, which no record leads to: an update has an energy of
 * at most 2^112 on a grid of 2^-48, so its elements are at most 2^32, the shares of a round sum to
 * at most 1, and gains are at most 4. DP_BADMSG, DP_VERSION: a blob was not checked. On failure sum
 * is empty. */
DP_MUST dp_status dp_slice_add(dp_buf *sum, size_t n, const dp_view *blobs, const uint32_t *q,
                               size_t n_items, bool steps);

#endif
