#include "tests/lib/check.h"

#include "base/bytes.h"
#include "compute/text/pretokenizer.h"

enum { MOST = 24 };

typedef struct example {
    dp_pretokenizer_kind kind;
    const char *text;
    const char *pieces[MOST];
} example;

static const example examples[] = {
    {DP_PRETOKENIZER_GPT2,
     "I'll  go,\n\n said 42 caf\xc3\xa9s!\t ",
     {"I", "'ll", " ", " go", ",", "\n\n", " said", " 42", " caf\xc3\xa9s", "!", "\t "}},
    {DP_PRETOKENIZER_GPT2, "I'LL 12345", {"I", "'", "LL", " 12345"}},
    {DP_PRETOKENIZER_LLAMA3,
     "I'LL  go,\n\n said 12345!\r\n\t x",
     {"I", "'LL", " ", " go", ",\n\n", " said", " ", "123", "45", "!\r\n", "\t", " x"}},
    {DP_PRETOKENIZER_QWEN2, "a 123\n \n b", {"a", " ", "1", "2", "3", "\n \n", " b"}},
    {DP_PRETOKENIZER_QWEN2, "(word)", {"(word", ")"}},
    /* White space as Unicode has it: U+0085 and U+3000 are, U+180E is not. */
    {DP_PRETOKENIZER_GPT2, "a\xc2\x85\xe3\x80\x80", {"a", "\xc2\x85\xe3\x80\x80"}},
    {DP_PRETOKENIZER_GPT2, "a \xe1\xa0\x8e", {"a", " \xe1\xa0\x8e"}},
    {DP_PRETOKENIZER_LLAMA3,
     "x\xe1\xa0\x8e"
     "b",
     {"x", "\xe1\xa0\x8e"
           "b"}},
    /* The long s is an s in any case. */
    {DP_PRETOKENIZER_LLAMA3, "it'\xc5\xbf ok", {"it", "'\xc5\xbf", " ok"}},
};

static void pieces_are_those_of_the_patterns(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const dp_view text = dp_view_text(examples[i].text);
        dp_pretokenizer *pieces;
        size_t at = 0;
        CHECK_OK(dp_pretokenizer_open(&pieces, examples[i].kind, NULL));
        for (size_t j = 0; at < text.size; j++) {
            size_t size;
            CHECK_OK(dp_pretokenizer_next(pieces, text, at, &size, NULL));
            CHECK(j < MOST && examples[i].pieces[j] != NULL);
            const dp_view piece = dp_view_of(text.data + at, size);
            CHECK(dp_view_equal(piece, dp_view_text(examples[i].pieces[j])));
            at += size;
        }
        dp_pretokenizer_close(pieces);
    }
}

static void a_pattern_is_known_by_its_text_or_not_at_all(void **state)
{
    (void)state;
    dp_pretokenizer_kind kind = DP_PRETOKENIZER_KINDS;
    for (unsigned i = 0; i < DP_PRETOKENIZER_KINDS; i++) {
        CHECK(dp_pretokenizer_kind_of(dp_pretokenizer_pattern((dp_pretokenizer_kind)i), &kind));
        CHECK(kind == (dp_pretokenizer_kind)i);
    }
    CHECK(!dp_pretokenizer_kind_of("(a+)+$", &kind));
    CHECK(!dp_pretokenizer_kind_of("", &kind));
}

/* Each makes the patterns go back, or look far ahead, or hold much. */
static void long_runs_are_one_piece_and_take_linear_time(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    static uint8_t text[SIZE];
    static const char runs[] = {' ', '\n', 'a', '!', '\''};
    for (unsigned kind = 0; kind < DP_PRETOKENIZER_KINDS; kind++) {
        dp_pretokenizer *pieces;
        CHECK_OK(dp_pretokenizer_open(&pieces, (dp_pretokenizer_kind)kind, NULL));
        for (size_t i = 0; i < sizeof runs; i++) {
            size_t size;
            memset(text, runs[i], SIZE);
            text[SIZE - 1] = 'x';
            CHECK_OK(dp_pretokenizer_next(pieces, dp_view_of(text, SIZE), 0, &size, NULL));
            CHECK(size >= SIZE - 2);
        }
        dp_pretokenizer_close(pieces);
    }
}

static void a_piece_beyond_all_measure_is_refused(void **state)
{
    (void)state;
    const size_t size = (size_t)DP_PIECE_BYTES_MAX + 1;
    uint8_t *const text = test_malloc(size);
    dp_pretokenizer *pieces;
    dp_why why = {{0}};
    size_t piece = 7;
    memset(text, 'a', size);
    CHECK_OK(dp_pretokenizer_open(&pieces, DP_PRETOKENIZER_GPT2, NULL));
    CHECK_STATUS(dp_pretokenizer_next(pieces, dp_view_of(text, size), 0, &piece, &why), DP_TOOBIG);
    CHECK(strstr(why.text, "64 MiB at byte 0") != NULL && piece == 7);
    dp_pretokenizer_close(pieces);
    test_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_those_of_the_patterns),
        cmocka_unit_test(a_pattern_is_known_by_its_text_or_not_at_all),
        cmocka_unit_test(long_runs_are_one_piece_and_take_linear_time),
        cmocka_unit_test(a_piece_beyond_all_measure_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
