#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "compute/cpus.h"
#include "tests/lib/tempdir.h"

/* A root of control groups that is not the machine's: "<root>/cgroup" stands for /proc/self/cgroup. */
static tempdir root;

static int make_root(void **state)
{
    (void)state;
    tempdir_open(&root);
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    tempdir_close(&root);
    return 0;
}

static void put(const char *name, const char *text)
{
    char path[TEMPDIR_FILE_MAX];
    FILE *file = fopen(tempdir_file(&root, name, path), "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void folder(const char *name)
{
    char path[TEMPDIR_FILE_MAX];
    assert_int_equal(mkdir(tempdir_file(&root, name, path), 0700), 0);
}

static size_t quota(void)
{
    char path[TEMPDIR_FILE_MAX];
    return dp_cpus_quota(tempdir_file(&root, "cgroup", path), root.path);
}

static void a_quota_rounds_up_to_whole_cpus(void **state)
{
    (void)state;
    assert_int_equal(dp_cpus_of_cpu_max("200000 100000\n"), 2);
    assert_int_equal(dp_cpus_of_cpu_max("150000 100000\n"), 2);
    assert_int_equal(dp_cpus_of_cpu_max("1000 100000"), 1);
    assert_int_equal(dp_cpus_of_cpu_max("max 100000\n"), 0);
    assert_int_equal(dp_cpus_of_cpu_max(""), 0);
    assert_int_equal(dp_cpus_of_cpu_max("100000"), 0);
    assert_int_equal(dp_cpus_of_cpu_max("100000 0"), 0);
    assert_int_equal(dp_cpus_of_cpu_max("-5 100000"), 0);
    assert_int_equal(dp_cpus_of_cpu_max("9223372036854775807 9223372036854775807"), 0);
    assert_int_equal(dp_cpus_of_cpu_max("99999999999999999999999 1"), 0);
}

static void a_group_is_limited_by_itself_and_by_those_above(void **state)
{
    (void)state;
    folder("outer");
    folder("outer/inner");
    put("cgroup", "0::/outer/inner\n");
    assert_int_equal(quota(), 0);
    put("outer/inner/cpu.max", "max 100000\n");
    assert_int_equal(quota(), 0);
    put("outer/cpu.max", "300000 100000\n");
    assert_int_equal(quota(), 3);
    put("outer/inner/cpu.max", "50000 100000\n");
    assert_int_equal(quota(), 1);
    put("outer/inner/cpu.max", "900000 100000\n");
    assert_int_equal(quota(), 3);
}

static void version_1_has_its_own_files_and_names(void **state)
{
    (void)state;
    folder("cpu,cpuacct");
    folder("cpu,cpuacct/box");
    put("cgroup", "12:memory:/box\n4:cpu,cpuacct:/box\n1:name=systemd:/box\n");
    assert_int_equal(quota(), 0);
    put("cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
    put("cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota(), 0);
    put("cpu,cpuacct/box/cpu.cfs_quota_us", "250000\n");
    assert_int_equal(quota(), 3);
    folder("cpu");
    put("cpu/cpu.cfs_quota_us", "150000\n");
    put("cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota(), 2); /* That of the root, under the short name. */
}

static void cpusets_and_accounting_limit_no_time(void **state)
{
    (void)state;
    folder("cpuset");
    put("cpuset/cpu.cfs_quota_us", "100000\n");
    put("cpuset/cpu.cfs_period_us", "100000\n");
    put("cgroup", "3:cpuset:/\n2:cpuacct:/\n");
    assert_int_equal(quota(), 0);
}

static void both_versions_together_give_the_lesser(void **state)
{
    (void)state;
    folder("cpu");
    put("cpu/cpu.cfs_quota_us", "400000\n");
    put("cpu/cpu.cfs_period_us", "100000\n");
    put("cpu.max", "500000 100000\n");
    put("cgroup", "1:cpu:/\n0::/\n");
    assert_int_equal(quota(), 4);
    put("cpu.max", "200000 100000\n");
    assert_int_equal(quota(), 2);
}

static void a_container_that_sees_another_root_has_the_roots_quota(void **state)
{
    (void)state;
    put("cgroup", "0::/host/path/that/is/not/here\n");
    put("cpu.max", "200000 100000\n");
    assert_int_equal(quota(), 2);
}

static void nonsense_and_absence_limit_nothing(void **state)
{
    (void)state;
    assert_int_equal(quota(), 0);
    const char *const lines[] = {
        "",      "\n",       ":",         "::",   "0:", "0::", "0::relative\n",
        "cpu\n", "1:cpu:\n", "1:,,,:/\n", "1:cpu"};
    put("cpu.max", "100000 100000\n");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        put("cgroup", lines[i]);
        assert_int_equal(quota(), 0);
    }
    char deep[9000];
    memset(deep, '/', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    memcpy(deep, "0::", 3);
    put("cgroup", deep);
    assert_in_range(quota(), 0, 1); /* It ends. */
}

static void this_process_may_use_what_its_affinity_allows(void **state)
{
    (void)state;
    cpu_set_t before;
    cpu_set_t one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_in_range(dp_cpus_usable(), 1, CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
        if (CPU_ISSET(cpu, &before)) {
            CPU_SET(cpu, &one);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(dp_cpus_usable(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

#define in_root(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quota_rounds_up_to_whole_cpus),
        in_root(a_group_is_limited_by_itself_and_by_those_above),
        in_root(version_1_has_its_own_files_and_names),
        in_root(cpusets_and_accounting_limit_no_time),
        in_root(both_versions_together_give_the_lesser),
        in_root(a_container_that_sees_another_root_has_the_roots_quota),
        in_root(nonsense_and_absence_limit_nothing),
        cmocka_unit_test(this_process_may_use_what_its_affinity_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
