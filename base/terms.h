/* What goes into the mean of one chunk of a dense exchange: as daemon/exchange.c collects it and compute/dense.c adds it up, which do
 * not see each other. */
#ifndef DP_BASE_TERMS_H
#define DP_BASE_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DP_TERMS_PARTS_MAX = 3 };

typedef struct dp_terms {
    uint8_t codec;
    bool begun;      /* sum holds x and what was added before */
    uint32_t weight; /* of x */
    uint32_t n_parts;
    size_t n;     /* elements */
    float *x;     /* this member's own */
    int64_t *sum; /* [n]; NULL where there is none and nothing is begun */
    const uint8_t *parts[DP_TERMS_PARTS_MAX]; /* of the codec, checked */
    uint32_t weights[DP_TERMS_PARTS_MAX];
} dp_terms;

#endif
