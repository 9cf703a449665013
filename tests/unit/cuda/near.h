/* Shared by the tests of the near kernels: random tensors of a precision on the card, and
 * comparison with the definitions of compute/cpu/ops.h.
 *
 * Inputs are rounded to their type first, so the CPU's reference (loops in double) sees the same
 * numbers. An output may then be off by half a unit of its type, and by the error of fp32 sums,
 * which each test states. Outputs start as NaN, so an element that a kernel forgets fails. */
#ifndef DP_TESTS_UNIT_CUDA_NEAR_H
#define DP_TESTS_UNIT_CUDA_NEAR_H

#include "tests/lib/check.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "compute/cpu/ops.h"
#include "compute/cpu/precision.h"
#include "tests/cuda/card.h"

static const dp_precision near_types[] = {DP_FP32, DP_BF16, DP_FP16};
enum { NEAR_TYPES = sizeof near_types / sizeof near_types[0], NEAR_ORDERS = 3 };

/* Half a unit in the last place, relative. */
static inline double near_unit(dp_precision type)
{
    return type == DP_FP32 ? 0x1p-24 : type == DP_BF16 ? 0x1p-8 : 0x1p-11;
}

/* Uniform in (-size, size), of the type's values. Free it. */
static inline float *near_fill(size_t n, uint64_t seed, float size, dp_precision type)
{
    float *const x = calloc(n + 1, sizeof *x);
    assert_non_null(x);
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        x[i] = dp_round_to(type, size * ((float)dp_rng_below(&rng, 20001) / 10000.0F - 1.0F));
    }
    return x;
}

static inline float *near_room(size_t n)
{
    return near_fill(n, 0, 0.0F, DP_FP32);
}

static inline uint16_t near_half_of(float x)
{
    const float size = fabsf(x);
    const uint16_t sign = signbit(x) ? 0x8000U : 0;
    return (uint16_t)(sign | (isnan(x)   ? 0x7e00U
                              : isinf(x) ? 0x7c00U
                                         : dp_half_of((double)size, false)));
}

static inline size_t near_bytes(dp_precision type)
{
    return type == DP_FP32 ? 4 : 2;
}

/* On the card; offset elements lie before it, to spoil its alignment. Free with near_free. */
static inline void *near_put_at(const float *x, size_t n, dp_precision type, size_t offset)
{
    uint16_t *const halves = calloc(2 * (n + offset) + 1, sizeof *halves);
    assert_non_null(halves);
    for (size_t i = 0; i < n; i++) {
        if (type == DP_FP32) {
            memcpy((char *)halves + (i + offset) * 4, &x[i], 4);
        } else {
            halves[offset + i] =
                type == DP_FP16 ? near_half_of(x[i]) : (uint16_t)(dp_float_bits(x[i]) >> 16);
        }
    }
    char *const card = card_put(halves, (n + offset) * near_bytes(type));
    free(halves);
    return card + offset * near_bytes(type);
}

static inline void near_free_at(void *card, dp_precision type, size_t offset)
{
    card_free((char *)card - offset * near_bytes(type));
}

static inline void *near_put(const float *x, size_t n, dp_precision type)
{
    return near_put_at(x, n, type, 0);
}

/* All NaN. */
static inline void *near_poison(size_t n, dp_precision type)
{
    return card_put(NULL, n * near_bytes(type));
}

/* Floats of what is on the card. Free it. */
static inline float *near_get(const void *card, size_t n, dp_precision type)
{
    float *const x = near_room(n);
    uint16_t *const halves = calloc(2 * n + 1, sizeof *halves);
    assert_non_null(halves);
    card_get(card, halves, n * near_bytes(type));
    for (size_t i = 0; i < n; i++) {
        const bool nan = (halves[i] & 0x7fffU) > 0x7c00U;
        if (type == DP_FP32) {
            memcpy(&x[i], (char *)halves + i * 4, 4);
        } else if (type == DP_FP16) {
            x[i] = nan ? NAN : dp_half_float(halves[i]);
        } else {
            x[i] = dp_bfloat_value(halves[i]);
        }
    }
    free(halves);
    return x;
}

/* got: n elements of type on the card; each within half a unit and slack of right. */
static inline void near_check(const char *what, const void *got, const float *right, size_t n,
                              dp_precision type, double slack)
{
    float *const x = near_get(got, n, type);
    for (size_t i = 0; i < n; i++) {
        const double most = 1.01 * near_unit(type) * fabs((double)right[i]) + slack +
                            (type == DP_FP16 ? 0x1p-25 : 0.0);
        if (!(fabs((double)x[i] - (double)right[i]) <= most)) { /* also when either is NaN */
            fail_msg("%s[%zu] of %zu, %s: %.9g, right %.9g within %.3g", what, i, n,
                     dp_precision_name(type), (double)x[i], (double)right[i], most);
        }
    }
    free(x);
}

/* The same bits on the card and in x, which near_get gave. */
static inline void near_same(const void *card, const float *x, size_t n, dp_precision type)
{
    float *const now = near_get(card, n, type);
    assert_memory_equal(now, x, n * sizeof *x);
    free(now);
}

#endif
