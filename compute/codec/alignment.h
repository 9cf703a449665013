/* How far an update points where one's own does: the cosine of a decoded blob and a reference that
 * is kept at two bytes an element. Knows no rounds. Cao et al. 2021 (FLTrust) weigh updates by the
 * same number. */
#ifndef DP_COMPUTE_CODEC_ALIGNMENT_H
#define DP_COMPUTE_CODEC_ALIGNMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* Zeroed it holds no reference and takes no memory. */
typedef struct dp_alignment {
    uint16_t *reference; /* bfloat16, n of them */
    size_t n;
    double square; /* of the reference */
    bool has;
} dp_alignment;

/* The reference is a[0..n-1] from now on; n is the same in all calls. Memory is taken the first
 * time. DP_NOMEM: there is none. DP_DIVERGED: one is not finite, and there is none. */
DP_MUST dp_status dp_alignment_set(dp_alignment *alignment, const float *a, size_t n);
/* No reference; the memory stays for the next. */
void dp_alignment_forget(dp_alignment *alignment);
void dp_alignment_close(dp_alignment *alignment);
/* <d, reference> / (|d| |reference|) of the decoded blob, within -1..1; 0 where one of them is
 * zero. There is a reference. Sums in double: within runs eight, of the stored entries 8 apart,
 * added up in their order, then run by run. Checks first. */
DP_MUST dp_status dp_alignment_cosine(const dp_alignment *alignment, dp_view blob, double *cosine);

#endif
