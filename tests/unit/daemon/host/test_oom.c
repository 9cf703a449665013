/* Counters of the kernel in files of a folder of this test's. */
#include "daemon/host/oom.h"

#include "tests/lib/check.h"
#include "tests/lib/fake_root.h"

static const dp_oom_place *place(void)
{
    static char groups[TEMPDIR_FILE_MAX];
    static char vmstat[TEMPDIR_FILE_MAX];
    static dp_oom_place at;
    at = (dp_oom_place){.groups = tempdir_file(&fake_root, "cgroup", groups),
                        .root = fake_root.path,
                        .vmstat = tempdir_file(&fake_root, "vmstat", vmstat)};
    return &at;
}

static uint64_t count(void)
{
    uint64_t kills = 999;
    return dp_oom_kills(place(), &kills) ? kills : 1000;
}

static void the_own_group_is_asked_before_the_machine(void **state)
{
    (void)state;
    assert_int_equal(count(), 1000); /* Nothing counts. */
    put("vmstat", "pgpgin 5\noom_kill 7\nallocstall 3\n");
    assert_int_equal(count(), 7);
    put("cgroup", "0::/a/b\n");
    assert_int_equal(count(), 7);
    folder("a/b");
    put("a/b/memory.events", "low 0\nhigh 0\nmax 12\noom 4\noom_kill 3\noom_group_kill 9\n");
    assert_int_equal(count(), 3);
}

static void a_container_sees_its_group_as_the_root(void **state)
{
    (void)state;
    put("cgroup", "0::/docker/that/cannot/be/seen\n");
    put("memory.events", "oom_kill 4\n");
    assert_int_equal(count(), 4);
}

static void version_1_counts_in_the_group_of_memory(void **state)
{
    (void)state;
    folder("memory/box");
    put("memory/box/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    put("cgroup", "12:cpu,cpuacct:/box\n11:memory:/box\n0::/box\n");
    assert_int_equal(count(), 2);
}

static void what_is_no_counter_counts_nothing(void **state)
{
    static const char *const bad[] = {
        "", "oom_kill", "oom_kill \n", "oom_kill -1\n", "oom_kill x\n", " oom_kill 1\n"};
    (void)state;
    folder("a");
    put("cgroup", "nonsense\n::\n0:\n0::a\n0::/a\n");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put("a/memory.events", bad[i]);
        assert_int_equal(count(), 1000);
    }
    put("a/memory.events", "oom_kill 99999999999999999999999\n");
    assert_true(count() == UINT64_MAX);
}

static void a_kill_counts_for_a_death_soon_after_it(void **state)
{
    dp_oom oom = {.looked_ms = 0};
    (void)state;
    put("vmstat", "oom_kill 5\n");
    dp_oom_begin(&oom, place(), 1000);
    CHECK(!dp_oom_happened(&oom, place()));
    put("vmstat", "oom_kill 6\n");
    CHECK(dp_oom_happened(&oom, place()));
    dp_oom_look(&oom, place(), 1000 + DP_OOM_LOOK_MS); /* It dies as slowly as it is large. */
    CHECK(dp_oom_happened(&oom, place()));
    dp_oom_look(&oom, place(), 1001 + DP_OOM_LOOK_MS);
    CHECK(dp_oom_happened(&oom, place()));
    dp_oom_look(&oom, place(), 1000 + 2 * DP_OOM_LOOK_MS); /* That was somebody else. */
    CHECK(!dp_oom_happened(&oom, place()));
    dp_oom_begin(&oom, place(), 2000 + 2 * DP_OOM_LOOK_MS);
    CHECK(!dp_oom_happened(&oom, place()));
}

static void without_a_count_before_nothing_is_said_of_one_after(void **state)
{
    dp_oom oom = {.looked_ms = 0};
    (void)state;
    dp_oom_begin(&oom, place(), 0);
    put("vmstat", "oom_kill 5\n");
    CHECK(!dp_oom_happened(&oom, place()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_root(the_own_group_is_asked_before_the_machine),
        in_root(a_container_sees_its_group_as_the_root),
        in_root(version_1_counts_in_the_group_of_memory),
        in_root(what_is_no_counter_counts_nothing),
        in_root(a_kill_counts_for_a_death_soon_after_it),
        in_root(without_a_count_before_nothing_is_said_of_one_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
