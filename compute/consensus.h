/* The outer step that every replica computes alike: theta -= alpha * sum of f_i d_i. Exact order, no threads inside a
 * block, no contraction; the weights come from the record.
 *
 * For each element: acc = +0; for the contributors in the given order, where the blob stores this element:
 * acc = acc + f v, then theta = theta - alpha acc; every operation a rounded float one. */
#ifndef DP_COMPUTE_CONSENSUS_H
#define DP_COMPUTE_CONSENSUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_CONSENSUS_ITEMS_MAX = 32 };

/* blobs: n_items of them in order of peer key, each of n elements; q: f_i = q_i 2^-31; alpha in Q16.
 * Checks all blobs first: DP_BADMSG, DP_VERSION, or DP_BADARG (n_items): then theta is untouched.
 * DP_DIVERGED when a result is not finite: theta may not be used. DP_NOMEM: untouched. */
DP_MUST dp_status dp_consensus_apply(float *theta, size_t n, const dp_view *blobs,
                                     const uint32_t *q, size_t n_items, uint32_t alpha);

#endif
