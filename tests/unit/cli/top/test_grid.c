/* The grid: what text of others may do to a picture, which is nothing beyond its cells. */
#include "cli/top/grid.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/lib/check.h"

static dp_grid grid;
static dp_buf line;

static int setup(void **state)
{
    (void)state;
    CHECK(setlocale(LC_ALL, "C.UTF-8") != NULL); /* Debian's libc-bin has it. */
    CHECK_OK(dp_grid_open(&grid, 12, 3, true));
    dp_buf_init(&line, 1000);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dp_grid_close(&grid);
    dp_buf_close(&line);
    return 0;
}

static const char *row(int number)
{
    dp_buf_clear(&line);
    CHECK_OK(dp_grid_text(&grid, number, &line));
    CHECK_OK(dp_buf_append(&line, dp_view_of("", 1)));
    return (const char *)line.data;
}

static void text_stays_within_its_width_and_the_grid(void **state)
{
    (void)state;
    assert_int_equal(dp_grid_put(&grid, 0, 2, 5, DP_STYLE_PLAIN, "abcdefgh"), 5);
    assert_string_equal(row(0), "  abcd\xe2\x80\xa6");
    assert_int_equal(dp_grid_put(&grid, 1, 10, 99, DP_STYLE_PLAIN, "xyz"), 2);
    assert_string_equal(row(1), "          x\xe2\x80\xa6");
    assert_string_equal(row(2), "");
    assert_int_equal(dp_grid_put(&grid, 3, 0, 5, DP_STYLE_PLAIN, "no such row"), 0);
    assert_int_equal(dp_grid_put(&grid, -1, 0, 5, DP_STYLE_PLAIN, "x"), 0);
    assert_int_equal(dp_grid_put(&grid, 0, 12, 5, DP_STYLE_PLAIN, "x"), 0);
    assert_int_equal(dp_grid_put(&grid, 0, 0, -3, DP_STYLE_PLAIN, "x"), 0);
    dp_grid_set(&grid, 9, 9, 'x', DP_STYLE_PLAIN);
    dp_grid_paint(&grid, 9, 9, 900, DP_STYLE_BAD);
    assert_int_equal(dp_grid_get(&grid, 9, 9), 0);
}

/* A node may be named like this. Clearing, moving, titles, right-to-left marks: all are gone. */
static void escape_sequences_are_letters_between_question_marks(void **state)
{
    (void)state;
    dp_grid_put(&grid, 0, 0, 12, DP_STYLE_PLAIN, "\x1b[2J\x1b[1;1Hx");
    assert_string_equal(row(0), "?[2J?[1;1Hx");
    dp_grid_put(&grid, 1, 0, 12, DP_STYLE_PLAIN, "a\x07\x7f\x01\nb\tc\r");
    assert_string_equal(row(1), "a??? b c");
    dp_grid_put(&grid, 2, 0, 12, DP_STYLE_PLAIN,
                "\xc2\x9b"
                "2J"
                "\xe2\x80\xae"
                "x\xe2\x80\x8b"
                "y");
    assert_string_equal(row(2), "?2Jxy"); /* C1 control, override, zero width */
}

static void bytes_that_are_no_utf8_are_question_marks(void **state)
{
    (void)state;
    dp_grid_put(&grid, 0, 0, 12, DP_STYLE_PLAIN, "a\xff\xc3(\xed\xa0\x80\xe4\xb8");
    const char *const text = row(0);
    for (size_t i = 0; text[i] != '\0'; i++) {
        assert_true(text[i] > 0);
    }
    assert_true(text[0] == 'a' && text[1] == '?' && text[3] == '(');
}

static void wide_characters_take_two_cells_and_are_never_cut_in_half(void **state)
{
    (void)state;
    assert_int_equal(dp_grid_width(&grid, "\xe4\xb8\xad\xe6\x96\x87"), 4);
    assert_int_equal(dp_grid_put(&grid, 0, 0, 4, DP_STYLE_PLAIN, "\xe4\xb8\xad\xe6\x96\x87"), 4);
    assert_int_equal(dp_grid_get(&grid, 0, 1), 0);
    assert_string_equal(row(0), "\xe4\xb8\xad\xe6\x96\x87");
    dp_grid_set(&grid, 0, 1, '|', DP_STYLE_PLAIN); /* over its right half */
    assert_string_equal(row(0), " |\xe6\x96\x87");
    dp_grid_set(&grid, 0, 2, '|', DP_STYLE_PLAIN); /* over its left half */
    assert_string_equal(row(0), " ||");
    assert_int_equal(dp_grid_put(&grid, 1, 0, 3, DP_STYLE_PLAIN, "\xe4\xb8\xad\xe6\x96\x87"), 3);
    assert_string_equal(row(1), "\xe4\xb8\xad\xe2\x80\xa6");
    assert_int_equal(dp_grid_put(&grid, 2, 11, 9, DP_STYLE_PLAIN, "\xe4\xb8\xad"), 1);
    assert_string_equal(row(2), "           \xe2\x80\xa6");
}

static void without_unicode_each_other_character_is_one_question_mark(void **state)
{
    (void)state;
    grid.utf8 = false;
    assert_int_equal(dp_grid_width(&grid, "Zo\xc3\xab \xe4\xb8\xad"), 5);
    dp_grid_put(&grid, 0, 0, 12, DP_STYLE_PLAIN, "Zo\xc3\xab \xe4\xb8\xad");
    assert_string_equal(row(0), "Zo? ?");
    dp_grid_put(&grid, 1, 0, 3, DP_STYLE_PLAIN, "abcdef");
    assert_string_equal(row(1), "ab~");
}

static void a_paragraph_breaks_between_words_and_can_be_scrolled(void **state)
{
    const dp_area area = {.rows = 3, .columns = 8};
    (void)state;
    assert_int_equal(dp_grid_paragraph(&grid, &area, 0, DP_STYLE_PLAIN, "one two three\nfour"), 3);
    assert_string_equal(row(0), "one two");
    assert_string_equal(row(1), "three");
    assert_string_equal(row(2), "four");
    dp_grid_clear(&grid);
    assert_int_equal(dp_grid_paragraph(&grid, &area, 2, DP_STYLE_PLAIN, "one two three\nfour"), 3);
    assert_string_equal(row(0), "four");
    assert_string_equal(row(1), "");
    assert_int_equal(
        dp_grid_paragraph(&grid, &(dp_area){.columns = 3}, 0, DP_STYLE_PLAIN, "longer\n\nword"),
        5); /* lon ger, an empty line, wor d */
    assert_int_equal(dp_grid_paragraph(&grid, &(dp_area){.columns = 0}, 0, DP_STYLE_PLAIN, "ab"),
                     2);
}

static void parts_that_do_not_fit_are_left_out_whole(void **state)
{
    static const char *const texts[] = {"abc", "", "a long one", "de"};
    const dp_area area = {.rows = 1, .columns = 9};
    (void)state;
    assert_int_equal(dp_grid_parts(&grid, &area, DP_STYLE_PLAIN, texts, 4), 8);
    assert_string_equal(row(0), "abc   de");
}

static void a_size_is_bounded_and_memory_may_lack(void **state)
{
    dp_grid other;
    (void)state;
    CHECK_OK(dp_grid_open(&other, 100000, 0, true));
    assert_int_equal(other.columns, DP_GRID_COLUMNS_MAX);
    assert_int_equal(other.rows, 1);
    dp_grid_close(&other);
    dp_alloc_fail_after(1);
    CHECK_STATUS(dp_grid_open(&other, 80, 24, true), DP_NOMEM);
    dp_alloc_fail_after(0);
    dp_grid_close(&other);
}

/* Any bytes, at any place: nothing outside of the width changes. */
static void any_bytes_change_their_cells_alone(void **state)
{
    (void)state;
    srand(7);
    for (int round = 0; round < 5000; round++) {
        char text[24];
        const int column = rand() % 14 - 1;
        const int width = rand() % 8;
        for (size_t i = 0; i + 1 < sizeof text; i++) {
            text[i] = (char)(rand() % 256);
        }
        text[sizeof text - 1] = '\0';
        dp_grid_clear(&grid);
        dp_grid_put(&grid, 1, column, width, DP_STYLE_BAD, text);
        for (int i = 0; i < grid.columns * grid.rows; i++) {
            const int at = i % grid.columns;
            const bool inside = i / grid.columns == 1 && at >= column && at < column + width;
            const uint32_t c = grid.cells[i].character;
            assert_true(inside || (c == ' ' && grid.cells[i].style == DP_STYLE_PLAIN));
            assert_true(c == 0 || (c >= ' ' && c != 0x7f && (c < 0x80 || c > 0x9f)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_stays_within_its_width_and_the_grid, setup, teardown),
        cmocka_unit_test_setup_teardown(escape_sequences_are_letters_between_question_marks, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(bytes_that_are_no_utf8_are_question_marks, setup, teardown),
        cmocka_unit_test_setup_teardown(wide_characters_take_two_cells_and_are_never_cut_in_half,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(without_unicode_each_other_character_is_one_question_mark,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_paragraph_breaks_between_words_and_can_be_scrolled, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(parts_that_do_not_fit_are_left_out_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(a_size_is_bounded_and_memory_may_lack, setup, teardown),
        cmocka_unit_test_setup_teardown(any_bytes_change_their_cells_alone, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
