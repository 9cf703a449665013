#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "compute/machine/cgroup.h"
#include "tests/unit/compute/cgroup_place.h"

/* A limit of these tests: the number in a file "limit". */
static uint64_t limit_of(const char *path)
{
    char line[DP_CGROUP_LINE_MAX];
    dp_cgroup_line(path, "limit", line);
    return strtoull(line, NULL, 10);
}

static uint64_t least(const char *controller)
{
    return dp_cgroup_min(fake_place(), controller, limit_of);
}

static void no_limit_is_no_lesser_one(void **state)
{
    (void)state;
    assert_int_equal(dp_cgroup_lesser(0, 0), 0);
    assert_int_equal(dp_cgroup_lesser(0, 7), 7);
    assert_int_equal(dp_cgroup_lesser(7, 0), 7);
    assert_int_equal(dp_cgroup_lesser(7, 3), 3);
    assert_int_equal(dp_cgroup_lesser(3, UINT64_MAX), 3);
}

static void every_group_up_to_the_root_may_limit(void **state)
{
    (void)state;
    folder("a/b");
    put("cgroup", "0::/a/b\n");
    assert_int_equal(least("cpu"), 0);
    put("limit", "30\n");
    assert_int_equal(least("cpu"), 30);
    put("a/limit", "20\n");
    assert_int_equal(least("cpu"), 20);
    put("a/b/limit", "10\n");
    assert_int_equal(least("cpu"), 10);
    put("a/b/limit", "0\n");
    assert_int_equal(least("cpu"), 20);
}

static void groups_of_version_1_count_for_their_controllers_alone(void **state)
{
    (void)state;
    folder("cpu,cpuacct/box");
    folder("cpuset");
    folder("cpu");
    put("cgroup", "4:cpu,cpuacct:/box\n3:cpuset:/\n1:name=systemd:/box\n");
    put("cpuset/limit", "1\n");
    assert_int_equal(least("cpu"), 0);
    assert_int_equal(least("cpuset"), 1);
    assert_int_equal(least("memory"), 0);
    put("cpu,cpuacct/box/limit", "5\n");
    assert_int_equal(least("cpu"), 5);
    assert_int_equal(least("cpuacct"), 5);
    put("cpu/limit", "4\n"); /* The same hierarchy under its short name. */
    assert_int_equal(least("cpu"), 4);
}

static void a_container_that_sees_another_root_has_the_roots_limit(void **state)
{
    (void)state;
    put("cgroup", "0::/host/path/that/is/not/here\n");
    put("limit", "2\n");
    assert_int_equal(least("cpu"), 2);
}

static void nonsense_and_absence_limit_nothing(void **state)
{
    (void)state;
    assert_int_equal(least("cpu"), 0);
    const char *const lines[] = {
        "",      "\n",       ":",         "::",   "0:", "0::", "0::relative\n",
        "cpu\n", "1:cpu:\n", "1:,,,:/\n", "1:cpu"};
    put("limit", "1\n");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        put("cgroup", lines[i]);
        assert_int_equal(least("cpu"), 0);
    }
    char deep[9000];
    memset(deep, '/', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    memcpy(deep, "0::", 3);
    put("cgroup", deep);
    assert_in_range(least("cpu"), 0, 1); /* It ends. */
}

static void no_more_groups_are_read_than_a_process_can_have(void **state)
{
    (void)state;
    char lines[8000] = "";
    folder("cpu");
    put("cpu/limit", "3\n");
    for (size_t i = 0; i < 64; i++) {
        strcat(lines, "9:pids:/\n");
    }
    strcat(lines, "1:cpu:/\n");
    put("cgroup", lines);
    assert_int_equal(least("cpu"), 0);
    put("cgroup", lines + strlen("9:pids:/\n"));
    assert_int_equal(least("cpu"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_limit_is_no_lesser_one),
        in_root(every_group_up_to_the_root_may_limit),
        in_root(groups_of_version_1_count_for_their_controllers_alone),
        in_root(a_container_that_sees_another_root_has_the_roots_limit),
        in_root(nonsense_and_absence_limit_nothing),
        in_root(no_more_groups_are_read_than_a_process_can_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
