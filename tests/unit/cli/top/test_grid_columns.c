#include "cli/top/grid_columns.h"

#include "tests/unit/cli/top/picture_kit.h"

static const dp_grid_column rows[] = {
    {.head = "NAME", .width = 6, .takes_rest = true},
    {.head = "RATE", .width = 5, .right = true},
    {.head = "LESS", .width = 6, .rank = 1},
    {.head = "LEAST", .width = 6, .rank = 2},
};
static const dp_grid_columns table = {rows, 4};

static void draw(int width, const char *const *cells)
{
    const dp_area line = {.rows = 1, .columns = width};
    picture_open(40, 1, true);
    dp_grid_columns_put(&picture, &line, &table, cells, DP_STYLE_PLAIN);
}

static void the_least_important_columns_go_first(void **state)
{
    int widths[DP_GRID_TABLE_MAX];
    (void)state;
    dp_grid_columns_fit(&table, 30, widths);
    assert_true(widths[0] == 10 && widths[3] == 6);
    dp_grid_columns_fit(&table, 25, widths);
    assert_true(widths[0] == 12 && widths[2] == 6 && widths[3] == 0);
    dp_grid_columns_fit(&table, 18, widths);
    assert_true(widths[0] == 12 && widths[2] == 0 && widths[3] == 0);
    dp_grid_columns_fit(&table, 3, widths);
    assert_true(widths[0] == 6 && widths[1] == 5 && widths[2] == 0);
}

static void numbers_stand_at_the_right_under_their_head(void **state)
{
    static const char *const cells[] = {"a name that is long", "1.5", "x", "y"};
    (void)state;
    draw(26, NULL);
    assert_true(picture_is("NAME    RATE LESS   LEAST\n"));
    draw(26, cells);
    assert_true(picture_is("a nam\u2026   1.5 x      y\n"));
}

static void a_line_never_leaves_its_area(void **state)
{
    static const char *const cells[] = {"0123456789", "0123456789", "0123456789", "0123456789"};
    (void)state;
    for (int width = 0; width < 30; width++) {
        draw(width, cells);
        for (int i = width; i < picture.columns; i++) {
            assert_int_equal(dp_grid_get(&picture, 0, i), ' ');
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_least_important_columns_go_first, picture_setup,
                                        picture_teardown),
        cmocka_unit_test_setup_teardown(numbers_stand_at_the_right_under_their_head, picture_setup,
                                        picture_teardown),
        cmocka_unit_test_setup_teardown(a_line_never_leaves_its_area, picture_setup,
                                        picture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
