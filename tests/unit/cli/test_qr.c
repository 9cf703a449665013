/* A token as a picture, where the terminal can show one. */
#include <langinfo.h>
#include <locale.h>

#include "cli/qr.h"
#include "tests/unit/cli/verb_kit.h"

static const char *text;

static int run_draw(dp_cmd *cmd)
{
    (void)cmd;
    dp_qr_print(text);
    return 0;
}

static const dp_verb draw = {
    .name = "draw", .run = run_draw, .arguments = "", .summary = "", .examples = ""};

/* Lines of the picture, which must be equally wide; its width in blocks. */
static unsigned size_of(unsigned *width)
{
    unsigned lines = 0;
    unsigned at = 0;
    *width = 0;
    for (const char *c = verb_kit.out; *c != '\0'; c++) {
        if (*c == '\n') {
            assert_true(*width == 0 || *width == at);
            *width = at;
            at = 0;
            lines++;
        } else if (((unsigned char)*c & 0xc0) != 0x80) { /* The first byte of a letter. */
            at++;
        }
    }
    return lines;
}

static void a_short_text_is_a_square_with_a_light_margin(void **state)
{
    unsigned width = 0;
    (void)state;
    if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) {
        skip();
    }
    text = "DPN1-ABC";
    assert_int_equal(VERB_ALONE(draw), 0);
    const unsigned lines = size_of(&width);
    assert_int_equal(width, 21 + 2 * 2); /* The smallest code. */
    assert_int_equal(lines, (21 + 2 * 2 + 1) / 2);
    for (unsigned i = 0; i < width; i++) { /* Two rows of the margin: full blocks. */
        assert_memory_equal(verb_kit.out + (size_t)3 * i, "\xe2\x96\x88", 3);
    }
    char first[VERB_TEXT_MAX];
    memcpy(first, verb_kit.out, sizeof first);
    text = "DPN1-ABD";
    assert_int_equal(VERB_ALONE(draw), 0);
    assert_string_not_equal(verb_kit.out, first);
    setlocale(LC_CTYPE, "C");
}

static void a_terminal_without_blocks_and_a_text_too_long_get_nothing(void **state)
{
    static char longest[4000];
    (void)state;
    text = "DPN1-ABC";
    assert_int_equal(VERB_ALONE(draw), 0); /* In the locale C. */
    assert_string_equal(verb_kit.out, "");
    if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) {
        skip();
    }
    memset(longest, 'x', sizeof longest - 1);
    text = longest;
    assert_int_equal(VERB_ALONE(draw), 0);
    assert_string_equal(verb_kit.out, "");
    setlocale(LC_CTYPE, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(a_short_text_is_a_square_with_a_light_margin),
        VERB_TEST(a_terminal_without_blocks_and_a_text_too_long_get_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
