#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "compute/cpu/precision.h"

static void every_half_stays_and_its_neighbours_round_to_it(void **state)
{
    (void)state;
    for (uint16_t half = 0; half <= DP_HALF_MAX; half++) {
        const float here = dp_half_value(half);
        assert_true(dp_round_fp16(here) == here && dp_round_fp16(-here) == -here);
        if (half == DP_HALF_MAX) {
            break;
        }
        const float next = dp_half_value(half + 1);
        const float middle = (here + next) / 2.0F; /* exact: one more bit */
        assert_true(dp_round_fp16(middle) == (half % 2 == 0 ? here : next));
        assert_true(dp_round_fp16(nextafterf(middle, 0.0F)) == here);
        assert_true(dp_round_fp16(nextafterf(middle, INFINITY)) == next);
    }
    assert_true(dp_round_fp16(65519.99F) == 65504.0F);
    assert_true(isinf(dp_round_fp16(65520.0F)) && dp_round_fp16(-1e30F) == -INFINITY);
    assert_true(dp_round_fp16(0x1p-26F) == 0.0F && signbit(dp_round_fp16(-0x1p-26F)));
}

static void bf16_is_the_nearest_of_its_neighbours(void **state)
{
    (void)state;
    for (uint32_t upper = 0; upper < 0x7f7fU; upper++) {
        const float here = dp_float_of_bits(upper << 16);
        const float next = dp_float_of_bits((upper + 1) << 16);
        const float middle = dp_float_of_bits((upper << 16) | 0x8000U);
        assert_true(dp_round_bf16(here) == here && dp_round_bf16(-here) == -here);
        assert_true(dp_round_bf16(middle) == (upper % 2 == 0 ? here : next));
        assert_true(dp_round_bf16(dp_float_of_bits((upper << 16) | 0x7fffU)) == here);
        assert_true(dp_round_bf16(dp_float_of_bits((upper << 16) | 0x8001U)) == next);
    }
    assert_true(isinf(dp_round_bf16(3.4e38F)));
}

static void values_that_are_not_finite_stay(void **state)
{
    (void)state;
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        assert_true(isnan(dp_round_to(precision, dp_float_of_bits(0x7f800001U))));
        assert_true(isnan(dp_round_to(precision, dp_float_of_bits(0xffffffffU))));
        assert_true(dp_round_to(precision, INFINITY) == INFINITY);
        assert_true(dp_round_to(precision, -INFINITY) == -INFINITY);
    }
    assert_true(dp_round_to(DP_FP32, 0.1F) == 0.1F);
}

static void precisions_are_found_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < DP_PRECISIONS; i++) {
        dp_precision found = DP_PRECISIONS;
        assert_true(dp_precision_of(dp_precision_name(i), &found));
        assert_int_equal(found, i);
    }
    dp_precision untouched = DP_BF16;
    assert_false(dp_precision_of("fp64", &untouched));
    assert_int_equal(untouched, DP_BF16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_stays_and_its_neighbours_round_to_it),
        cmocka_unit_test(bf16_is_the_nearest_of_its_neighbours),
        cmocka_unit_test(values_that_are_not_finite_stay),
        cmocka_unit_test(precisions_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
