#include "tests/lib/check.h"

#include "compute/unicode/matcher.h"
#include "tests/lib/allocfail.h"

static dp_matcher *opened(const char *pattern, dp_pattern_kind kind)
{
    dp_matcher *matcher;
    CHECK_OK(dp_matcher_open(&matcher, dp_view_text(pattern), kind, NULL));
    return matcher;
}

static void the_leftmost_match_is_found_from_a_place_on(void **state)
{
    (void)state;
    dp_matcher *const matcher = opened("b+|\\Aa", DP_PATTERN_REGEX);
    const dp_view text = dp_view_text("abbab");
    size_t begin = 9;
    size_t end = 9;
    CHECK_OK(dp_matcher_find(matcher, text, 0, &begin, &end, NULL));
    CHECK(begin == 0 && end == 1);
    CHECK_OK(dp_matcher_find(matcher, text, 1, &begin, &end, NULL));
    CHECK(begin == 1 && end == 3);
    CHECK_OK(dp_matcher_find(matcher, text, 3, &begin, &end, NULL)); /* \A is the text's start. */
    CHECK(begin == 4 && end == 5);
    CHECK_STATUS(dp_matcher_find(matcher, text, 5, &begin, &end, NULL), DP_NOTFOUND);
    CHECK(begin == 4 && end == 5);
    dp_matcher_close(matcher);
}

static void a_literal_pattern_is_no_expression(void **state)
{
    (void)state;
    dp_matcher *const matcher = opened("a.", DP_PATTERN_LITERAL);
    size_t begin;
    size_t end;
    CHECK_OK(dp_matcher_find(matcher, dp_view_text("ab a."), 0, &begin, &end, NULL));
    CHECK(begin == 3 && end == 5);
    dp_matcher_close(matcher);
}

/* It takes 2^n steps for n letters. */
static void a_pattern_made_to_go_back_and_forth_ends_with_a_sentence(void **state)
{
    (void)state;
    dp_matcher *const matcher = opened("(?:a+)+b", DP_PATTERN_REGEX);
    static char text[200];
    size_t begin = 7;
    size_t end = 7;
    dp_why why = {{0}};
    memset(text, 'a', sizeof text);
    memcpy(text + sizeof text - 2, "!b", 2);
    CHECK_STATUS(dp_matcher_find(matcher, dp_view_of(text, sizeof text), 0, &begin, &end, &why),
                 DP_TOOBIG);
    CHECK(strstr(why.text, "more than 68736 steps at byte 0") != NULL);
    CHECK(begin == 7 && end == 7);
    dp_matcher_close(matcher);
}

static void patterns_that_pcre2_does_not_take_are_refused(void **state)
{
    (void)state;
    dp_matcher *matcher;
    dp_why why = {{0}};
    CHECK_STATUS(dp_matcher_open(&matcher, dp_view_text("(?<=a+)b"), DP_PATTERN_REGEX, &why),
                 DP_UNSUPPORTED);
    CHECK(strstr(why.text, "pcre2 does not take the pattern: ") != NULL);
    CHECK_STATUS(dp_matcher_open(&matcher, dp_view_text("a*"), DP_PATTERN_OURS, &why),
                 DP_UNSUPPORTED);
    CHECK_STATUS(dp_matcher_open(&matcher, dp_view_text("\\ba"), DP_PATTERN_REGEX, &why),
                 DP_UNSUPPORTED);
}

static dp_status open_once(void *context)
{
    dp_matcher *matcher;
    (void)context;
    DP_TRY(dp_matcher_open(&matcher, dp_view_text("a+"), DP_PATTERN_REGEX, NULL));
    dp_matcher_close(matcher);
    return DP_OK;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    CHECK(fail_each_allocation(open_once, NULL) >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_leftmost_match_is_found_from_a_place_on),
        cmocka_unit_test(a_literal_pattern_is_no_expression),
        cmocka_unit_test(a_pattern_made_to_go_back_and_forth_ends_with_a_sentence),
        cmocka_unit_test(patterns_that_pcre2_does_not_take_are_refused),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
