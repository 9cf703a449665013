/* Shared by the tests of the operations. Each table of this machine is compared with plain loops in
 * float64, which the tests contain once more and independently. Outputs start as NaN, so an element
 * that a kernel forgets fails. */
#ifndef DP_TESTS_UNIT_COMPUTE_OPS_CHECK_H
#define DP_TESTS_UNIT_COMPUTE_OPS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "compute/cpu/ops.h"

static inline float *fill(size_t n, uint64_t seed, float size)
{
    float *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        x[i] = size * ((float)dp_rng_below(&rng, 20001) / 10000.0F - 1.0F);
    }
    return x;
}

static inline float *poison(size_t n)
{
    float *x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) {
        x[i] = NAN;
    }
    return x;
}

/* Aligned room for kernels that ask for it. */
static inline float *room(size_t n)
{
    float *x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) {
        x[i] = NAN;
    }
    return x;
}

static inline void check(const dp_ops *ops, const char *what, double got, double right,
                         double tolerance)
{
    if (!(fabs(got - right) <= tolerance)) { /* also when either is NaN */
        fail_msg("%s %s: %.9g, right %.9g", ops->name, what, got, right);
    }
}

static const size_t sizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

#endif
