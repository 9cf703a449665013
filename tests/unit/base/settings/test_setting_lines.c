/* Lines of a configuration file, and files that are none. Mistakes with their columns, as the
 * daemon reports them, are tested in test_config_file.c. */
#include <stdio.h>
#include <string.h>

#include "base/settings/setting_lines.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

static dp_setting_lines lines_of(const char *text)
{
    return (dp_setting_lines){.next = text, .end = text + strlen(text)};
}

static void check_next(dp_setting_lines *lines, uint32_t number, const char *name,
                       const char *value)
{
    assert_true(dp_setting_lines_next(lines));
    assert_int_equal(lines->number, number);
    CHECK(lines->name_size == strlen(name) && memcmp(lines->name, name, strlen(name)) == 0);
    CHECK(lines->value_size == strlen(value) && memcmp(lines->value, value, strlen(value)) == 0);
}

static void blanks_and_comments_are_left_out(void **state)
{
    dp_setting_lines lines = lines_of("# a = b\n\n  dir =\t/a b # c \r\n\t#\nname=\nx = y = z");
    (void)state;
    check_next(&lines, 3, "dir", "/a b # c");
    check_next(&lines, 5, "name", "");
    check_next(&lines, 6, "x", "y = z");
    assert_false(dp_setting_lines_next(&lines));
    assert_null(lines.wrong);
}

static void nothing_is_read_after_a_mistake(void **state)
{
    dp_setting_lines lines = lines_of("a = 1\nb\nc = 3\n");
    (void)state;
    check_next(&lines, 1, "a", "1");
    for (int i = 0; i < 2; i++) {
        assert_false(dp_setting_lines_next(&lines));
        assert_non_null(lines.wrong);
        CHECK(lines.number == 2 && lines.wrong_at == lines.line + 1);
    }
}

static void a_file_is_loaded_up_to_one_byte_more_than_it_may_have(void **state)
{
    static char bytes[DP_SETTING_FILE_MAX + 1];
    tempdir dir;
    char path[TEMPDIR_FILE_MAX];
    size_t size = 0;
    dp_why why = {""};
    (void)state;
    tempdir_open(&dir);
    CHECK_STATUS(dp_setting_file_load(dir.path, bytes, &size, &why), DP_BADMSG);
    CHECK_STATUS(dp_setting_file_load(tempdir_file(&dir, "f", path), bytes, &size, &why),
                 DP_NOTFOUND);
    FILE *const file = fopen(path, "we");
    assert_non_null(file);
    for (int i = 0; i < DP_SETTING_FILE_MAX + 10; i++) {
        putc('#', file);
    }
    assert_int_equal(fclose(file), 0);
    CHECK_OK(dp_setting_file_load(path, bytes, &size, &why));
    assert_int_equal(size, DP_SETTING_FILE_MAX + 1);
    tempdir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blanks_and_comments_are_left_out),
        cmocka_unit_test(nothing_is_read_after_a_mistake),
        cmocka_unit_test(a_file_is_loaded_up_to_one_byte_more_than_it_may_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
