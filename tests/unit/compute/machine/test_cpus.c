#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>

#include "compute/machine/cpus.h"
#include "tests/unit/compute/cgroup_place.h"

static size_t quota(void)
{
    return dp_cpus_quota(fake_place());
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

/* On any machine: with a quota of one processor one thread is started. */
static void a_quota_below_the_affinity_is_what_is_used(void **state)
{
    (void)state;
    const size_t allowed = dp_cpus_allowed();
    put("cgroup", "0::/box\n");
    folder("box");
    put("box/cpu.max", "max 100000\n");
    assert_int_equal(dp_cpus_usable_in(fake_place()), allowed);
    put("box/cpu.max", "90000 100000\n");
    assert_int_equal(dp_cpus_usable_in(fake_place()), 1);
    put("box/cpu.max", "100000000 100000\n"); /* a thousand */
    assert_int_equal(dp_cpus_usable_in(fake_place()), allowed < 1000 ? allowed : 1000);
}

static void this_process_may_use_what_its_affinity_allows(void **state)
{
    (void)state;
    cpu_set_t before;
    cpu_set_t one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(dp_cpus_allowed(), CPU_COUNT(&before));
    assert_in_range(dp_cpus_usable(), 1, CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
        if (CPU_ISSET(cpu, &before)) {
            CPU_SET(cpu, &one);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(dp_cpus_allowed(), 1);
    assert_int_equal(dp_cpus_usable(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quota_rounds_up_to_whole_cpus),
        in_root(a_group_is_limited_by_itself_and_by_those_above),
        in_root(version_1_has_its_own_files_and_names),
        in_root(both_versions_together_give_the_lesser),
        in_root(a_quota_below_the_affinity_is_what_is_used),
        cmocka_unit_test(this_process_may_use_what_its_affinity_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
