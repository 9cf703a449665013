#include "cli/top/chart.h"

#include "tests/unit/cli/top/picture_kit.h"

static void draw(const double *values, size_t count)
{
    const dp_area area = {.rows = picture.rows, .columns = picture.columns};
    dp_grid_clear(&picture);
    dp_chart_draw(&picture, &area, values, count);
}

static void a_falling_line_goes_from_the_upper_left_to_the_lower_right(void **state)
{
    const double values[] = {4, 3, 2, 1};
    (void)state;
    picture_open(13, 3, false);
    draw(values, 4);
    assert_true(picture_is(" 4.000 **\n"
                           "         **\n"
                           " 1.000     **\n"));
    picture_open(13, 2, true);
    draw(values, 4);
    assert_true(picture_is(" 4.000 \u2811\u2822\u28c0\n"
                           " 1.000    \u2809\u2822\u2884\n"));
}

static void more_values_than_dots_are_means(void **state)
{
    double values[600];
    (void)state;
    for (int i = 0; i < 600; i++) {
        values[i] = i < 300 ? 2 + i % 2 : 1;
    }
    picture_open(13, 2, false);
    draw(values, 600);
    assert_true(picture_is(" 2.500 ***\n"
                           " 1.000    ***\n"));
}

static void a_jump_is_drawn_without_gaps(void **state)
{
    const double values[] = {1, 1, 1, 9, 9, 9};
    (void)state;
    picture_open(13, 4, false);
    draw(values, 6);
    assert_true(picture_is(" 9.000    ***\n"
                           "          *\n"
                           "          *\n"
                           " 1.000 ***\n"));
}

static void equal_values_are_a_line(void **state)
{
    const double values[] = {2, 2};
    (void)state;
    picture_open(12, 2, false);
    draw(values, 2);
    assert_true(picture_is(" 2.000 *****\n 2.000\n"));
}

static void without_room_or_values_nothing_is_drawn(void **state)
{
    const double values[] = {2, 1};
    (void)state;
    picture_open(11, 2, true);
    draw(values, 2);
    assert_true(picture_is("\n\n"));
    picture_open(40, 2, true);
    draw(values, 1);
    assert_true(picture_is("\n\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_falling_line_goes_from_the_upper_left_to_the_lower_right,
                                        picture_setup, picture_teardown),
        cmocka_unit_test_setup_teardown(more_values_than_dots_are_means, picture_setup,
                                        picture_teardown),
        cmocka_unit_test_setup_teardown(a_jump_is_drawn_without_gaps, picture_setup,
                                        picture_teardown),
        cmocka_unit_test_setup_teardown(equal_values_are_a_line, picture_setup, picture_teardown),
        cmocka_unit_test_setup_teardown(without_room_or_values_nothing_is_drawn, picture_setup,
                                        picture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
