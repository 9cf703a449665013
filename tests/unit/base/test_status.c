#include "tests/lib/check.h"

static void every_status_has_its_own_name_and_text(void **state)
{
    (void)state;
    for (int a = 0; a < DP_STATUS_COUNT; a++) {
        assert_int_equal(strncmp(dp_status_name((dp_status)a), "DP_", 3), 0);
        assert_string_not_equal(dp_status_name((dp_status)a), "DP_UNKNOWN");
        assert_true(strlen(dp_status_text((dp_status)a)) > 5);
        for (int b = 0; b < a; b++) {
            assert_string_not_equal(dp_status_name((dp_status)a), dp_status_name((dp_status)b));
            assert_string_not_equal(dp_status_text((dp_status)a), dp_status_text((dp_status)b));
        }
    }
    assert_string_equal(dp_status_name(DP_BADMSG), "DP_BADMSG");
}

static void a_status_out_of_range_is_unknown(void **state)
{
    (void)state;
    assert_string_equal(dp_status_name(DP_STATUS_COUNT), "DP_UNKNOWN");
    assert_string_equal(dp_status_name((dp_status)0x7fffffff), "DP_UNKNOWN");
    assert_non_null(dp_status_text((dp_status)0x7fffffff));
}

static dp_status tries(dp_status first, int *reached)
{
    DP_TRY(first);
    *reached += 1;
    return DP_OK;
}

static void try_returns_early_only_on_failure(void **state)
{
    int reached = 0;

    (void)state;
    CHECK_STATUS(tries(DP_IO, &reached), DP_IO);
    assert_int_equal(reached, 0);
    CHECK_OK(tries(DP_OK, &reached));
    assert_int_equal(reached, 1);
}

static void why_keeps_the_sentence_and_hands_back_the_status(void **state)
{
    dp_why why;

    (void)state;
    CHECK_STATUS(dp_why_set(&why, DP_BADARG, "line %d: %s", 7, "no such key"), DP_BADARG);
    assert_string_equal(why.text, "line 7: no such key");
    CHECK_STATUS(dp_why_set(NULL, DP_IO, "nobody listens"), DP_IO);
}

static void why_cuts_a_long_sentence(void **state)
{
    char text[2 * DP_WHY_MAX];
    dp_why why;

    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    CHECK_STATUS(dp_why_set(&why, DP_TOOBIG, "%s", text), DP_TOOBIG);
    assert_int_equal(strlen(why.text), DP_WHY_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_own_name_and_text),
        cmocka_unit_test(a_status_out_of_range_is_unknown),
        cmocka_unit_test(try_returns_early_only_on_failure),
        cmocka_unit_test(why_keeps_the_sentence_and_hands_back_the_status),
        cmocka_unit_test(why_cuts_a_long_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
