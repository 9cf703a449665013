#include "base/disk.h"

#include "tests/lib/check.h"

#include <string.h>

static void a_full_disk_is_told_with_its_path_and_what_is_free(void **state)
{
    char text[DP_DISK_TEXT_MAX];
    uint64_t bytes = 0;
    (void)state;
    CHECK(dp_disk_free("/", &bytes));
    dp_disk_full_text("/proc", text); /* A file system without room. */
    assert_string_equal(text, "the disk is full: 0 B are free where /proc lies");
}

static void where_nothing_can_be_told_the_path_is(void **state)
{
    char text[DP_DISK_TEXT_MAX];
    char path[400];
    uint64_t bytes = 7;
    (void)state;
    CHECK(!dp_disk_free("/nowhere", &bytes) && bytes == 7);
    dp_disk_full_text("/nowhere", text);
    assert_string_equal(text, "the disk is full where /nowhere lies");
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    dp_disk_full_text(path, text);
    CHECK(strlen(text) < sizeof text && strstr(text, "xxx lies") != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_is_told_with_its_path_and_what_is_free),
        cmocka_unit_test(where_nothing_can_be_told_the_path_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
