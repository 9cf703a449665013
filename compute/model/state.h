/* Canonical bytes of the replicated tensor state, whose object root the voters certify: theta and
 * the moments of the run's outer step: none, its momentum m, or m and v of AdamW. Not a checkpoint
 * of one node: no moments of the local optimizer, no error feedback.
 *
 *   offset size
 *        0    4  "DPS1"
 *        4    2  version 1
 *        6    2  vectors that follow theta: 0, 1 (m) or 2 (m, v)
 *        8    8  elements n of the arena, padding included
 *       16    8  round: ROUND records that the state holds
 *       24    8  0
 *       32   4n  theta, fp32, little-endian
 *  32 + 4n   4n  m, the same, if it follows
 *  32 + 8n   4n  v, the same, if it follows */
#ifndef DP_COMPUTE_MODEL_STATE_H
#define DP_COMPUTE_MODEL_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_STATE_HEADER_BYTES = 32, DP_STATE_MOMENTS_MAX = 2 };

static inline uint64_t dp_state_bytes(size_t n, uint32_t moments)
{
    return DP_STATE_HEADER_BYTES + (1 + (uint64_t)moments) * 4 * (uint64_t)n;
}

/* Appends only the header, for callers that append the vectors themselves. DP_TOOBIG, DP_NOMEM: out
 * is unchanged. */
DP_MUST dp_status dp_state_write_header(uint64_t round, size_t n, uint32_t moments, dp_buf *out);
/* Appends the state to out; m NULL: none. Same statuses. */
DP_MUST dp_status dp_state_write(uint64_t round, const float *theta, const float *m, size_t n,
                                 dp_buf *out);

/* A state in memory; the views are borrowed from its bytes. */
typedef struct dp_state {
    uint64_t round;
    uint64_t elements;
    dp_view theta; /* 4 bytes each */
    uint32_t moments;
    dp_view momentum; /* m: the same, or empty */
    dp_view second;   /* v: the same, or empty */
} dp_state;

/* Accepts any bytes; checks no values. DP_BADMSG, DP_VERSION. */
DP_MUST dp_status dp_state_open(dp_state *state, dp_view bytes);
/* Reads theta of a state of n elements; other vectors may follow. Accepts any bytes: DP_BADMSG
 * (also: not n elements), DP_VERSION, DP_DIVERGED (a value is not finite); on failure theta is
 * untouched. */
DP_MUST dp_status dp_state_read(dp_view bytes, uint64_t *round, float *theta, size_t n);

/* n floats as little-endian bytes, the form of a, F and other vectors in files and messages.
 * DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_floats_write(const float *x, size_t n, dp_buf *out);
/* DP_BADMSG unless bytes are exactly n floats, DP_DIVERGED if one is not finite. */
DP_MUST dp_status dp_floats_check(dp_view bytes, size_t n);
/* DP_BADMSG unless bytes are exactly n floats, DP_DIVERGED if one is not finite; then x is
 * untouched. */
DP_MUST dp_status dp_floats_read(dp_view bytes, float *x, size_t n);

#endif
