#include "compute/machine/numa.h"

#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

static tempdir root;
static int first; /* two processors that this test may use */
static int second;

static int find_processors(void **state)
{
    (void)state;
    cpu_set_t set;
    first = -1;
    second = -1;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 1;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE && second < 0; cpu++) {
        if (CPU_ISSET((size_t)cpu, &set)) {
            second = first < 0 ? -1 : cpu;
            first = first < 0 ? cpu : first;
        }
    }
    return 0;
}

static int open_root(void **state)
{
    (void)state;
    tempdir_open(&root);
    return 0;
}

static int close_root(void **state)
{
    (void)state;
    tempdir_close(&root);
    return 0;
}

static void put_node(unsigned node, const char *list)
{
    char name[64];
    char path[TEMPDIR_FILE_MAX];
    snprintf(name, sizeof name, "node%u", node);
    CHECK(mkdir(tempdir_file(&root, name, path), 0700) == 0);
    snprintf(name, sizeof name, "node%u/cpulist", node);
    FILE *const file = fopen(tempdir_file(&root, name, path), "w");
    CHECK(file != NULL);
    CHECK(fputs(list, file) >= 0 && fclose(file) == 0);
}

/* In a process of its own: 0 where it is bound to that processor alone, 1 where nothing has
 * changed. */
static int bound(uint32_t index, uint32_t count, int processor)
{
    int status = 0;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        cpu_set_t before;
        cpu_set_t after;
        DP_IGNORE(sched_getaffinity(0, sizeof before, &before) != 0);
        const bool did = dp_numa_bind(root.path, index, count);
        DP_IGNORE(sched_getaffinity(0, sizeof after, &after) != 0);
        const bool alone =
            CPU_COUNT(&after) == 1 && processor >= 0 && CPU_ISSET((size_t)processor, &after);
        _exit(did && alone ? 0 : !did && CPU_EQUAL(&before, &after) ? 1 : 2);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void each_process_stays_on_a_node_of_its_own(void **state)
{
    (void)state;
    char list[64];
    if (second < 0) {
        skip();
    }
    snprintf(list, sizeof list, "%d,%d-%d\n", first, CPU_SETSIZE - 2, CPU_SETSIZE - 1);
    put_node(0, list);
    put_node(1, "\n"); /* memory alone */
    snprintf(list, sizeof list, "%d\n", second);
    put_node(7, list);
    CHECK(bound(0, 2, first) == 0);
    CHECK(bound(1, 2, second) == 0);
    CHECK(bound(0, 1, first) == 1); /* One process takes them all. */
    CHECK(bound(0, 3, first) == 1); /* Not as many as processes. */
    CHECK(bound(2, 2, first) == 1);
}

static void an_unreadable_topology_binds_no_process(void **state)
{
    (void)state;
    static const char *const lists[] = {"x\n",  "0-\n",         "1-0\n",  "0;1\n",
                                        "-1\n", "0-99999999\n", "0,,1\n", "0,x\n"};
    put_node(0, "0\n");
    for (unsigned i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        put_node(1, lists[i]);
        CHECK(bound(0, 2, -1) == 1);
        char path[TEMPDIR_FILE_MAX];
        CHECK(unlink(tempdir_file(&root, "node1/cpulist", path)) == 0);
        CHECK(rmdir(tempdir_file(&root, "node1", path)) == 0);
    }
    CHECK(bound(0, 2, -1) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_process_stays_on_a_node_of_its_own, open_root,
                                        close_root),
        cmocka_unit_test_setup_teardown(an_unreadable_topology_binds_no_process, open_root,
                                        close_root),
    };
    return cmocka_run_group_tests(tests, find_processors, NULL);
}
