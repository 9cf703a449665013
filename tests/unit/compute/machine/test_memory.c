#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute/machine/memory.h"
#include "tests/unit/compute/cgroup_place.h"

static uint64_t limit(void)
{
    return dp_memory_limit(fake_place());
}

static uint64_t available(void)
{
    char path[TEMPDIR_FILE_MAX];
    return dp_memory_available(tempdir_file(&fake_root, "meminfo", path));
}

static void what_is_available_is_read_in_kib(void **state)
{
    (void)state;
    assert_int_equal(available(), 0); /* no file */
    put("meminfo", "MemTotal:       8000 kB\nMemFree: 1 kB\nMemAvailable:    5000 kB\n");
    assert_int_equal(available(), 5000 * 1024);
    put("meminfo", "MemTotal:       8000 kB\n");
    assert_int_equal(available(), 0);
    put("meminfo", "MemAvailable: 99999999999999999999999 kB\n");
    assert_int_equal(available(), 0);
}

static void the_least_limit_of_the_groups_above_counts(void **state)
{
    (void)state;
    put("cgroup", "0::/a/b\n");
    assert_int_equal(limit(), 0); /* a container that sees another root */
    folder("a/b");
    put("a/b/memory.max", "max\n");
    assert_int_equal(limit(), 0);
    put("a/memory.max", "1000000\n");
    assert_int_equal(limit(), 1000000);
    put("a/b/memory.max", "2000000\n");
    assert_int_equal(limit(), 1000000);
    put("memory.max", "500\n");
    assert_int_equal(limit(), 500);
}

static void the_first_kind_of_groups_counts_as_well(void **state)
{
    (void)state;
    folder("memory/x");
    put("cgroup", "12:pids:/x\n7:memory:/x\nrubbish\n::\n3:cpu\n");
    put("memory/x/memory.limit_in_bytes", "300000\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    assert_int_equal(limit(), 300000);
}

static void what_is_taken_already_counts_for_a_limit_and_not_for_what_is_left(void **state)
{
    (void)state;
    char path[TEMPDIR_FILE_MAX];
    const char *const meminfo = tempdir_file(&fake_root, "meminfo", path);
    put("meminfo", "MemAvailable:    5000 kB\n");
    put("cgroup", "0::/box\n");
    folder("box");
    put("box/memory.max", "max\n");
    const uint64_t all = (uint64_t)5000 * 1024;
    assert_int_equal(dp_memory_usable_in(fake_place(), meminfo, 0), all / 10 * 9);
    assert_int_equal(dp_memory_usable_in(fake_place(), meminfo, all), 2 * all / 10 * 9);
    put("box/memory.max", "1000000\n");
    assert_int_equal(dp_memory_usable_in(fake_place(), meminfo, 0), 900000);
    assert_int_equal(dp_memory_usable_in(fake_place(), meminfo, all), 900000);
    assert_int_equal(dp_memory_usable_in(fake_place(), "/nonexistent", 0), 900000);
}

static uint64_t usable(uint64_t taken)
{
    return dp_memory_usable_in(fake_place(), "/nonexistent", taken);
}

static void what_others_of_a_group_use_is_not_left(void **state)
{
    (void)state;
    put("cgroup", "0::/box/node\n");
    folder("box/node");
    put("box/memory.max", "1000000\n");
    put("box/memory.current", "600000\n");
    put("box/memory.stat", "anon 500000\nfile 100000\ninactive_file 60000\nactive_file 40000\n");
    assert_int_equal(usable(0), 450000);      /* Pages of files do not count as used. */
    assert_int_equal(usable(200000), 630000); /* Of which so many are the caller's. */
    assert_int_equal(usable(900000), 900000);
    put("box/node/memory.max", "400000\n"); /* Nothing is used there. */
    assert_int_equal(usable(0), 360000);
    put("box/memory.current", "2000000\n"); /* A lowered limit. */
    assert_true(usable(0) > 0 && usable(0) < 100000);
}

static void a_group_that_is_slowed_down_has_its_limit_there(void **state)
{
    (void)state;
    put("cgroup", "0::/box\n");
    folder("box");
    put("box/memory.max", "1000000\n");
    put("box/memory.high", "max\n");
    assert_int_equal(limit(), 1000000);
    put("box/memory.high", "800000\n");
    assert_int_equal(limit(), 800000);
    assert_int_equal(usable(0), 720000);
}

static void the_first_kind_of_groups_tells_what_is_used_as_well(void **state)
{
    (void)state;
    put("cgroup", "7:memory:/x\n");
    folder("memory/x");
    put("memory/x/memory.limit_in_bytes", "300000\n");
    put("memory/x/memory.usage_in_bytes", "150000\n");
    put("memory/x/memory.stat", "inactive_file 1\nactive_file 1\ntotal_inactive_file 20000\n"
                                "total_active_file 30000\n");
    assert_int_equal(usable(0), 180000);
}

static void this_machine_has_memory(void **state)
{
    (void)state;
    assert_true(dp_memory_usable() > 1 << 20);
    const uint64_t limit = dp_memory_limit(&dp_cgroup_own);
    const uint64_t taken = dp_memory_usable_with((uint64_t)1 << 50);
    assert_true(limit != 0 ? taken <= limit : taken > (uint64_t)1 << 49);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_root(what_is_available_is_read_in_kib),
        in_root(the_least_limit_of_the_groups_above_counts),
        in_root(the_first_kind_of_groups_counts_as_well),
        in_root(what_is_taken_already_counts_for_a_limit_and_not_for_what_is_left),
        in_root(what_others_of_a_group_use_is_not_left),
        in_root(a_group_that_is_slowed_down_has_its_limit_there),
        in_root(the_first_kind_of_groups_tells_what_is_used_as_well),
        cmocka_unit_test(this_machine_has_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
