#include "tests/lib/check.h"

#include "base/bytes.h"
#include "compute/text/pretokenizer.h"

enum { MOST = 24 };

typedef enum kind { GPT2, LLAMA3, QWEN2, KINDS } kind;

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WORD "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define TAIL " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const char *const patterns[KINDS] = {
    [GPT2] = DP_PRETOKENIZER_GPT2,
    [LLAMA3] = CONTRACTIONS "|" WORD "|\\p{N}{1,3}|" TAIL,
    [QWEN2] = CONTRACTIONS "|" WORD "|\\p{N}|" TAIL,
};

/* Steps and what they make of a text. */
typedef struct cutter {
    dp_pretokenizer_steps steps;
    dp_pretokenizer *pieces;
} cutter;

static void cutter_open(cutter *c, const dp_pretokenizer_step *steps, const char *const *given,
                        size_t count)
{
    *c = (cutter){.pieces = NULL};
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(dp_pretokenizer_steps_add(&c->steps, &steps[i], dp_view_text(given[i])));
    }
    CHECK_OK(dp_pretokenizer_open(&c->pieces, &c->steps, NULL));
}

static void cutter_of(cutter *c, kind k)
{
    const dp_pretokenizer_step step = {.kind = DP_PATTERN_REGEX, .behavior = DP_SPLIT_ISOLATED};
    cutter_open(c, &step, &patterns[k], 1);
}

static void cutter_close(cutter *c)
{
    dp_pretokenizer_close(c->pieces);
    dp_pretokenizer_steps_close(&c->steps);
}

static void check_pieces(cutter *c, const char *text, size_t first, const char *const *wanted)
{
    dp_view piece;
    size_t i = 0;
    CHECK_OK(dp_pretokenizer_begin(c->pieces, dp_view_text(text), first));
    while (dp_pretokenizer_next(c->pieces, &piece, NULL) == DP_OK) {
        if (wanted[i] == NULL || !dp_view_equal(piece, dp_view_text(wanted[i]))) {
            print_error("'%s', piece %zu: '%.*s'\n", text, i, (int)piece.size,
                        (const char *)piece.data);
            CHECK(false);
        }
        i++;
    }
    CHECK(wanted[i] == NULL);
}

typedef struct example {
    kind kind;
    const char *text;
    const char *pieces[MOST];
} example;

static const example examples[] = {
    {GPT2,
     "I'll  go,\n\n said 42 caf\xc3\xa9s!\t ",
     {"I", "'ll", " ", " go", ",", "\n\n", " said", " 42", " caf\xc3\xa9s", "!", "\t "}},
    {GPT2, "I'LL 12345", {"I", "'", "LL", " 12345"}},
    {LLAMA3,
     "I'LL  go,\n\n said 12345!\r\n\t x",
     {"I", "'LL", " ", " go", ",\n\n", " said", " ", "123", "45", "!\r\n", "\t", " x"}},
    {QWEN2, "a 123\n \n b", {"a", " ", "1", "2", "3", "\n \n", " b"}},
    {QWEN2, "(word)", {"(word", ")"}},
    /* White space as Unicode has it: U+0085 and U+3000 are, U+180E is not. */
    {GPT2, "a\xc2\x85\xe3\x80\x80", {"a", "\xc2\x85\xe3\x80\x80"}},
    {GPT2, "a \xe1\xa0\x8e", {"a", " \xe1\xa0\x8e"}},
    {LLAMA3,
     "x\xe1\xa0\x8e"
     "b",
     {"x", "\xe1\xa0\x8e"
           "b"}},
    /* The long s is an s in any case. */
    {LLAMA3, "it'\xc5\xbf ok", {"it", "'\xc5\xbf", " ok"}},
};

static void pieces_are_those_of_the_patterns(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        cutter c;
        cutter_of(&c, examples[i].kind);
        check_pieces(&c, examples[i].text, 1, examples[i].pieces);
        cutter_close(&c);
    }
}

static void a_split_keeps_drops_or_joins_its_matches(void **state)
{
    (void)state;
    static const struct {
        dp_split_behavior behavior;
        bool invert;
        const char *pieces[8];
    } cases[] = {
        {DP_SPLIT_ISOLATED, false, {"-", "a", "-", "-", "b", "-"}},
        {DP_SPLIT_REMOVED, false, {"a", "b"}},
        {DP_SPLIT_REMOVED, true, {"-", "-", "-", "-"}},
        {DP_SPLIT_CONTIGUOUS, false, {"-", "a", "--", "b", "-"}},
        {DP_SPLIT_MERGED_WITH_PREVIOUS, false, {"-", "a-", "-", "b-"}},
        {DP_SPLIT_MERGED_WITH_PREVIOUS, true, {"-a", "-", "-b", "-"}},
        {DP_SPLIT_MERGED_WITH_NEXT, false, {"-a", "-", "-b", "-"}},
    };
    const char *const dash = "-";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dp_pretokenizer_step step = {
            .kind = DP_PATTERN_LITERAL, .behavior = cases[i].behavior, .invert = cases[i].invert};
        cutter c;
        cutter_open(&c, &step, &dash, 1);
        check_pieces(&c, "-a--b-", 1, cases[i].pieces);
        cutter_close(&c);
    }
}

static void a_mark_comes_in_front_of_all_pieces_of_the_first_or_of_none(void **state)
{
    (void)state;
    static const char *const wanted[][5] = {
        [DP_PREFIX_NEVER] = {"ab", "_c", "_d"},
        [DP_PREFIX_FIRST] = {"_ab", "_c", "_d"},
        [DP_PREFIX_ALWAYS] = {"_ab", "_c", "_d"},
    };
    static const char *const inside[][5] = {
        [DP_PREFIX_NEVER] = {"ab", "c", "d"},
        [DP_PREFIX_FIRST] = {"_ab", "c", "d"},
        [DP_PREFIX_ALWAYS] = {"_ab", "_c", "_d"},
    };
    static const char *const later[] = {"ab", "c", "d", NULL};
    for (unsigned prefix = 0; prefix < 3; prefix++) {
        const dp_pretokenizer_step steps[] = {
            {.kind = DP_PATTERN_LITERAL, .behavior = DP_SPLIT_REMOVED},
            {.kind = DP_PATTERN_LITERAL,
             .behavior = DP_SPLIT_MERGED_WITH_NEXT,
             .prefix = (dp_prefix)prefix,
             .replaces = true,
             .mark = "_",
             .mark_bytes = 1},
        };
        const char *const given[] = {" ", "_"};
        cutter c;
        cutter_open(&c, &steps[1], &given[1], 1);
        check_pieces(&c, "ab c d", 1, wanted[prefix]);
        check_pieces(&c, "_ab c d", 1, wanted[DP_PREFIX_ALWAYS]); /* has its mark */
        cutter_close(&c);
        cutter_open(&c, steps, given, 2);
        check_pieces(&c, "ab c d", 1, inside[prefix]);
        check_pieces(&c, "ab c d", 0, prefix == DP_PREFIX_FIRST ? later : inside[prefix]);
        cutter_close(&c);
    }
}

static void without_steps_the_text_is_one_piece(void **state)
{
    (void)state;
    static const char *const whole[] = {"a b", NULL};
    static const char *const none[] = {NULL};
    cutter c;
    cutter_open(&c, NULL, NULL, 0);
    check_pieces(&c, "a b", 1, whole);
    check_pieces(&c, "", 1, none);
    cutter_close(&c);
    cutter_of(&c, GPT2);
    check_pieces(&c, "", 1, none);
    cutter_close(&c);
}

/* Each makes the patterns go back, or look far ahead, or hold much. */
static void long_runs_are_one_piece_and_take_linear_time(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    static uint8_t text[SIZE];
    static const char runs[] = {' ', '\n', 'a', '!', '\''};
    for (unsigned k = 0; k < KINDS; k++) {
        cutter c;
        cutter_of(&c, (kind)k);
        for (size_t i = 0; i < sizeof runs; i++) {
            dp_view piece;
            memset(text, runs[i], SIZE);
            text[SIZE - 1] = 'x';
            CHECK_OK(dp_pretokenizer_begin(c.pieces, dp_view_of(text, SIZE), 1));
            CHECK_OK(dp_pretokenizer_next(c.pieces, &piece, NULL));
            CHECK(piece.size >= SIZE - 2);
        }
        cutter_close(&c);
    }
}

static void a_piece_beyond_all_measure_is_refused(void **state)
{
    (void)state;
    const size_t size = (size_t)DP_PIECE_BYTES_MAX + 1;
    uint8_t *const text = test_malloc(size);
    cutter c;
    dp_why why = {{0}};
    dp_view piece = {NULL, 7};
    memset(text, 'a', size);
    cutter_of(&c, GPT2);
    CHECK_OK(dp_pretokenizer_begin(c.pieces, dp_view_of(text, size), 1));
    CHECK_STATUS(dp_pretokenizer_next(c.pieces, &piece, &why), DP_TOOBIG);
    CHECK(strstr(why.text, "64 MiB at byte 0") != NULL && piece.size == 7);
    cutter_close(&c);
    test_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_those_of_the_patterns),
        cmocka_unit_test(a_split_keeps_drops_or_joins_its_matches),
        cmocka_unit_test(a_mark_comes_in_front_of_all_pieces_of_the_first_or_of_none),
        cmocka_unit_test(without_steps_the_text_is_one_piece),
        cmocka_unit_test(long_runs_are_one_piece_and_take_linear_time),
        cmocka_unit_test(a_piece_beyond_all_measure_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
