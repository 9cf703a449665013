/* Canonical bytes of the replicated tensor state, whose object root the voters certify. Not a checkpoint of one node: no
 * moments, no error feedback.
 *
 *   offset size
 *        0    4  "DPS1"
 *        4    2  version 1
 *        6    2  0
 *        8    8  elements n of the arena, padding included
 *       16    8  round: ROUND records that the state holds
 *       24    8  0
 *       32   4n  theta, fp32, little-endian */
#ifndef DP_COMPUTE_STATE_H
#define DP_COMPUTE_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_STATE_HEADER_BYTES = 32 };

static inline uint64_t dp_state_bytes(size_t n)
{
    return DP_STATE_HEADER_BYTES + 4 * (uint64_t)n;
}

/* Append the state to out: DP_TOOBIG, DP_NOMEM; then out is as before. */
DP_MUST dp_status dp_state_write(uint64_t round, const float *theta, size_t n, dp_buf *out);
/* Total. DP_BADMSG (not a state of n elements), DP_VERSION, DP_DIVERGED (a value is not finite); then nothing is
 * written. */
DP_MUST dp_status dp_state_read(dp_view bytes, uint64_t *round, float *theta, size_t n);
/* The header alone, for those who do not know the model. Same errors, but no value is looked at. */
DP_MUST dp_status dp_state_peek(dp_view bytes, uint64_t *round, uint64_t *elements);

/* n floats as little-endian bytes and back: how a, F and other vectors of one node travel. */
DP_MUST dp_status dp_floats_write(const float *x, size_t n, dp_buf *out);
/* DP_BADMSG unless bytes are exactly n floats, DP_DIVERGED if one is not finite; then x is untouched. */
DP_MUST dp_status dp_floats_read(dp_view bytes, float *x, size_t n);

#endif
