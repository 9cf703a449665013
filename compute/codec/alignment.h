/* The alignment of an update with one's own: the cosine of a decoded blob and a reference that is
 * kept as bfloat16. Knows no rounds. Cao et al. 2021 (FLTrust) weigh updates by the same number. */
#ifndef DP_COMPUTE_CODEC_ALIGNMENT_H
#define DP_COMPUTE_CODEC_ALIGNMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* A zeroed one holds no reference and no memory. */
typedef struct dp_alignment {
    uint16_t *reference; /* bfloat16, n of them */
    size_t n;
    double square; /* of the reference */
    bool has;
} dp_alignment;

/* Sets the reference to a[0..n-1]; n is the same in all calls. Allocates on the first call.
 * DP_NOMEM, or DP_DIVERGED (a value is not finite): no reference is held. */
DP_MUST dp_status dp_alignment_set(dp_alignment *alignment, const float *a, size_t n);
/* Forgets the reference; keeps the memory. */
void dp_alignment_forget(dp_alignment *alignment);
void dp_alignment_close(dp_alignment *alignment);
/* <d, reference> / (|d| |reference|) of the decoded blob d, within -1..1; 0 if one of them is zero.
 * Needs a reference. Checks the blob first: DP_BADMSG, DP_VERSION. Sums in double: within a codec
 * run eight sums, each of stored entries 8 apart, added in their order; then run by run. */
DP_MUST dp_status dp_alignment_cosine(const dp_alignment *alignment, dp_view blob, double *cosine);

#endif
