#include "tests/lib/check.h"

#include "compute/text/normalizer.h"

/* One step, with a pattern and a content. */
static void check_step(dp_normalizer_step step, const char *pattern, const char *content,
                       const char *text, const char *wanted, size_t wanted_first)
{
    dp_normalizer_steps steps = {.count = 1};
    dp_normalizer *normalizer;
    dp_view normal;
    size_t first = 99;
    steps.items[0] = step;
    dp_buf_init(&steps.items[0].pattern, 100);
    dp_buf_init(&steps.items[0].content, 100);
    CHECK_OK(dp_buf_append(&steps.items[0].pattern, dp_view_text(pattern)));
    CHECK_OK(dp_buf_append(&steps.items[0].content, dp_view_text(content)));
    CHECK_OK(dp_normalizer_open(&normalizer, &steps, NULL));
    CHECK_OK(dp_normalizer_apply(normalizer, dp_view_text(text), &normal, &first, NULL));
    if (!dp_view_equal(normal, dp_view_text(wanted)) || first != wanted_first) {
        print_error("'%s' became '%.*s', first %zu\n", text, (int)normal.size,
                    (const char *)normal.data, first);
        CHECK(false);
    }
    dp_normalizer_close(normalizer);
    dp_normalizer_steps_close(&steps);
}

static void check_kind(dp_normalizer_kind kind, const char *text, const char *wanted, size_t first)
{
    check_step((dp_normalizer_step){.kind = kind}, "", "", text, wanted, first);
}

static void each_kind_changes_what_it_is_named_for(void **state)
{
    (void)state;
    check_kind(DP_NORMALIZER_NFC, "e\xcc\x81x", "\xc3\xa9x", 1);
    check_kind(DP_NORMALIZER_NFD, "\xc3\xa9x", "e\xcc\x81x", 3);
    check_kind(DP_NORMALIZER_NFKC, "\xef\xac\x81x", "fix", 2);
    check_kind(DP_NORMALIZER_NFKD, "\xe2\x84\xab", "A\xcc\x8a", 3);
    check_kind(DP_NORMALIZER_LOWERCASE, "A\xc4\xb0\xce\xa3", "ai\xcc\x87\xcf\x83", 1);
    check_kind(DP_NORMALIZER_STRIP_ACCENTS, "e\xcc\x81x\xe0\xa4\xbe", "ex", 1);
    check_kind(DP_NORMALIZER_NMT, "\x01\tx\x7f\xe2\x80\x8b", " x ", 0);
    check_step((dp_normalizer_step){.kind = DP_NORMALIZER_STRIP, .left = true}, "", "",
               " \xc2\xa0x ", "x ", 0);
    check_step((dp_normalizer_step){.kind = DP_NORMALIZER_STRIP, .right = true}, "", "", " x \n",
               " x", 1);
    check_step((dp_normalizer_step){.kind = DP_NORMALIZER_PREPEND}, "", "\xe2\x96\x81", "x",
               "\xe2\x96\x81x", 4);
    check_kind(DP_NORMALIZER_NFC, "", "", 0);
}

/* A replacement of several characters counts as coming from the last of them. */
static void replacing_knows_what_came_from_the_first_character(void **state)
{
    (void)state;
    const dp_normalizer_step literal = {.kind = DP_NORMALIZER_REPLACE,
                                        .pattern_kind = DP_PATTERN_LITERAL};
    const dp_normalizer_step regex = {.kind = DP_NORMALIZER_REPLACE,
                                      .pattern_kind = DP_PATTERN_REGEX};
    check_step(literal, " ", "__", " a b", "__a__b", 2);
    check_step(literal, "``", "\"", "``a``", "\"a\"", 0);
    check_step(literal, "a", "", "ba", "b", 1);
    check_step(regex, " {2,}", " ", "a   b c", "a b c", 1);
    check_step(regex, "\\A +| +\\z", "", "  a  ", "a", 0);
}

static void growth_beyond_all_measure_is_refused(void **state)
{
    (void)state;
    static char text[4000];
    dp_normalizer_steps steps = {.count = 3};
    dp_normalizer *normalizer;
    dp_view normal;
    size_t first;
    dp_why why = {{0}};
    memset(text, 'a', sizeof text);
    for (unsigned i = 0; i < 3; i++) {
        dp_normalizer_step *const s = &steps.items[i];
        s->kind = DP_NORMALIZER_REPLACE;
        s->pattern_kind = DP_PATTERN_LITERAL;
        dp_buf_init(&s->pattern, 100);
        dp_buf_init(&s->content, 100);
        CHECK_OK(dp_buf_append(&s->pattern, dp_view_text("a")));
        CHECK_OK(dp_buf_append(&s->content, dp_view_text("aaaaa")));
    }
    CHECK_OK(dp_normalizer_open(&normalizer, &steps, NULL));
    CHECK_STATUS(
        dp_normalizer_apply(normalizer, dp_view_of(text, sizeof text), &normal, &first, &why),
        DP_TOOBIG);
    CHECK(strstr(why.text, "grows to more than 64 times") != NULL);
    dp_normalizer_close(normalizer);
    dp_normalizer_steps_close(&steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_changes_what_it_is_named_for),
        cmocka_unit_test(replacing_knows_what_came_from_the_first_character),
        cmocka_unit_test(growth_beyond_all_measure_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
