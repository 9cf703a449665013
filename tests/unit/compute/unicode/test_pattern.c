#include "tests/lib/check.h"

#include "compute/unicode/pattern.h"

static dp_status translate(const char *given, char out[1024], dp_why *why)
{
    dp_buf made;
    dp_buf_init(&made, 1023);
    const dp_status status = dp_pattern_translate(dp_view_text(given), &made, why);
    memcpy(out, made.data != NULL ? made.data : (const uint8_t *)"", made.size);
    out[made.size] = '\0';
    dp_buf_close(&made);
    return status;
}

static void patterns_are_written_in_words_that_pcre2_reads_in_the_same_way(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"ab", "ab"},
        {"a#-", "a\\x{23}\\x{2d}"},
        {"\\s+(?!\\S)", "[" DP_PATTERN_SPACE "]+(?![^" DP_PATTERN_SPACE "])"},
        {"[^\\s\\p{L}]", "[^" DP_PATTERN_SPACE "\\p{L}]"},
        {"\\p{Han}|\\P{^Lu}", "[\\p{sc:Han}]|[\\p{Lu}]"},
        {"(?i:'s|re)?x", "(?i:\\x{27}s|re)?x"},
        {"(a)(?:b)(?=d)(?<=e)(?<!f)", "(?:a)(?:b)(?=d)(?<=e)(?<!f)"},
        {"a{2}b{,3}c{4,}d{5,6}e{x", "a{2,2}b{0,3}c{4,}d{5,6}e\\x{7b}x"},
        {"a+?b*+c??", "a+?b*+c??"},
        {"[[a-c]x-]", "[a-cx\\x{2d}]"},
        {"[\\]\\-\\\\]", "[\\x{5d}\\x{2d}\\x{5c}]"},
        {"[\\s\\S]", "[\\x{0}-\\x{10ffff}]"},
        {"\\x{4e00}\\u3042\\x41\\n", "\\x{4e00}\\x{3042}A\\x{a}"},
        {"\xe2\x96\x81\xf0\x9f\x99\x82", "\\x{2581}\\x{1f642}"},
        {".\\d\\D", "[^\\x{a}][\\p{Nd}][\\P{Nd}]"},
        {"x$", "x(?=\\x{a}|\\z)"},
        {"\\Ax", "\\Ax"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char made[1024];
        CHECK_OK(translate(cases[i][0], made, NULL));
        if (strcmp(made, cases[i][1]) != 0) {
            print_error("%s: %s, not %s\n", cases[i][0], made, cases[i][1]);
            CHECK(false);
        }
    }
}

static void what_may_mean_something_else_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *given;
        dp_status status;
        const char *words;
    } cases[] = {
        {"", DP_UNSUPPORTED, "the empty text"},
        {"a|", DP_UNSUPPORTED, "the empty text"},
        {"a*", DP_UNSUPPORTED, "the empty text"},
        {"(?=a)", DP_UNSUPPORTED, "the empty text"},
        {"^", DP_UNSUPPORTED, "the empty text"},
        {"(a*)+b", DP_UNSUPPORTED, "a repetition"},
        {"(?=a)*b", DP_UNSUPPORTED, "a repetition"},
        {"^*b", DP_UNSUPPORTED, "a repetition"},
        {"a**", DP_UNSUPPORTED, "a repetition"},
        {"a{2}?b", DP_UNSUPPORTED, "a repetition"},
        {"a{2000}", DP_UNSUPPORTED, "a repetition"},
        {"a{3,2}", DP_UNSUPPORTED, "a repetition"},
        {"*a", DP_BADMSG, "a repetition of nothing"},
        {"\\ba", DP_UNSUPPORTED, "an escape that is not done here before byte 2"},
        {"(a)\\1", DP_UNSUPPORTED, "an escape"},
        {"\\w", DP_UNSUPPORTED, "an escape"},
        {"[\\W]", DP_UNSUPPORTED, "an escape"},
        {"\\x80a", DP_UNSUPPORTED, "no character"},
        {"\\ud800a", DP_BADMSG, "number of a character"},
        {"\\p{Klingon}a", DP_UNSUPPORTED, "a property"},
        {"\\pLa", DP_UNSUPPORTED, "without a name"},
        {"(?<x>a)", DP_UNSUPPORTED, "a kind of group"},
        {"(?i)a", DP_UNSUPPORTED, "a kind of group"},
        {"(?>a)", DP_UNSUPPORTED, "a kind of group"},
        {"(?i:ss)", DP_UNSUPPORTED, "(?i:)"},
        {"(?i:\xc3\xa9)", DP_UNSUPPORTED, "(?i:)"},
        {"(?i:\\p{L})", DP_UNSUPPORTED, "(?i:)"},
        {"[a&&b]", DP_UNSUPPORTED, "within brackets"},
        {"[[:alpha:]]", DP_UNSUPPORTED, "within brackets"},
        {"[a[^b]]", DP_UNSUPPORTED, "within brackets"},
        {"[]", DP_UNSUPPORTED, "empty brackets"},
        {"[\\S]", DP_UNSUPPORTED, "in brackets"},
        {"[z-a]", DP_UNSUPPORTED, "a range"},
        {"[a", DP_BADMSG, "brackets that do not close"},
        {"(a", DP_BADMSG, "a group that does not close"},
        {"a)", DP_BADMSG, "closes nothing"},
        {"a\\", DP_BADMSG, "a backslash"},
        {"((((((((((((((((a))))))))))))))))", DP_UNSUPPORTED, "too many groups"},
        {"a\xff", DP_BADMSG, "not UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char made[1024];
        dp_why why = {{0}};
        CHECK_STATUS(translate(cases[i].given, made, &why), cases[i].status);
        if (strstr(why.text, cases[i].words) == NULL) {
            print_error("%s: %s\n", cases[i].given, why.text);
            CHECK(false);
        }
    }
}

static void a_quoted_text_has_no_signs(void **state)
{
    (void)state;
    dp_buf made;
    dp_buf_init(&made, 100);
    CHECK_OK(dp_pattern_quote(dp_view_text("a.b\xc3\xa9"), &made));
    CHECK(dp_view_equal(dp_buf_view(&made), dp_view_text("a\\x{2e}b\\x{e9}")));
    dp_buf_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_are_written_in_words_that_pcre2_reads_in_the_same_way),
        cmocka_unit_test(what_may_mean_something_else_is_refused),
        cmocka_unit_test(a_quoted_text_has_no_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
