/* The programs on cards as a library of ours tells of them (tests/cuda/nvml), with processes that
 * are written into a folder; and how long this node leaves its cards to others. */
#include "daemon/owner/card_use.h"

#include <stdlib.h>

#include "tests/lib/check.h"
#include "tests/lib/fake_root.h"

enum { SELF = 100, WORKER = 200, SCRIPT = 300, GAME = 400, OTHER_WORKER = 500 };

static void put_process(unsigned pid, unsigned parent, const char *name)
{
    char path[64];
    char text[128];
    snprintf(path, sizeof path, "proc/%u", pid);
    folder(path);
    snprintf(path, sizeof path, "proc/%u/comm", pid);
    snprintf(text, sizeof text, "%s\n", name);
    put(path, text);
    snprintf(path, sizeof path, "proc/%u/stat", pid);
    snprintf(text, sizeof text, "%u (%s) S %u 1 1 0 -1 4194560 1 2 3 4 9 0 0 0 20 0 1 0 5\n", pid,
             name, parent);
    put(path, text);
}

static void put_machine(void)
{
    put_process(SELF, 1, "dpnoded");
    put_process(WORKER, SELF, "dpnode-worker");
    put_process(SCRIPT, 1, "python3");
    put_process(GAME, 1, "a game");
    put_process(OTHER_WORKER, 1, "dpnode-worker");
}

/* programs: as fake_nvml.c has them. */
static void look(dp_card_use *use, const char *programs)
{
    char path[TEMPDIR_FILE_MAX];
    put("programs", programs);
    CHECK(setenv("FAKE_NVML_PROGRAMS", tempdir_file(&fake_root, "programs", path), 1) == 0);
    dp_card_use_look(use, fake_root.path, SELF, SCRIPT);
}

static void another_program_on_a_card_of_this_node_uses_it(void **state)
{
    dp_card_use use = {.told = false};
    (void)state;
    put_machine();
    look(&use, "0 200 compute\n1 400 compute\n");
    CHECK(use.told && use.own == 1 && use.used == 0 && use.pid == 0); /* Its card is another. */
    look(&use, "0 200 compute\n0 400 compute\n");
    CHECK(use.used == 1 && use.pid == GAME);
    assert_string_equal(use.name, "a game");
    look(&use, "0 400 compute\n"); /* This node has left it meanwhile. */
    CHECK(use.own == 1 && use.used == 1);
    look(&use, "");
    CHECK(use.told && use.used == 0 && use.pid == 0);
    dp_card_use_end(&use);
    dp_card_use_end(&use);
}

static void processes_of_this_node_and_trainers_are_nobody_else(void **state)
{
    dp_card_use use = {.told = false};
    (void)state;
    put_machine();
    look(&use, "1 300 compute\n1 200 compute\n1 500 compute\n1 4242 compute\n");
    CHECK(use.told && use.own == 2 && use.used == 0);
    dp_card_use_end(&use);
}

static void a_program_that_only_draws_uses_a_card_from_a_quarter_on(void **state)
{
    dp_card_use use = {.told = false};
    (void)state;
    put_machine();
    look(&use, "0 200 compute\n0 400 25\n");
    CHECK(use.told && use.used == 0);
    look(&use, "0 200 compute\n0 400 26\n");
    CHECK(use.used == 1 && use.pid == GAME);
    look(&use, "0 200 compute\n0 400 101\n"); /* nonsense */
    CHECK(use.used == 0);
    look(&use, "0 200 compute\n1 400 90\n");
    CHECK(use.used == 0);
    dp_card_use_end(&use);
}

static void a_library_that_fails_says_nothing(void **state)
{
    static const char *const calls[] = {"init", "count", "index", "processes"};
    (void)state;
    put_machine();
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        dp_card_use use = {.own = 1};
        CHECK(setenv("FAKE_NVML", calls[i], 1) == 0);
        look(&use, "0 200 compute\n0 400 compute\n");
        CHECK(!use.told && use.used == 0 && use.pid == 0);
        CHECK(setenv("FAKE_NVML", "", 1) == 0);
        look(&use, "0 200 compute\n0 400 compute\n"); /* It is asked again. */
        CHECK(use.told && use.used == 1);
        dp_card_use_end(&use);
    }
}

static void a_card_is_free_again_when_nobody_has_used_it_for_a_minute(void **state)
{
    dp_card_yielding yielding = {.holds = false};
    const dp_card_use used = {.told = true, .own = 1, .used = 1};
    const dp_card_use free_again = {.told = true, .own = 1};
    (void)state;
    CHECK(!dp_card_yielding_pass(&yielding, &free_again, 1000) && !yielding.holds);
    CHECK(dp_card_yielding_pass(&yielding, &used, 1200) && yielding.holds);
    CHECK(!dp_card_yielding_pass(&yielding, &used, 5000) && yielding.holds);
    CHECK(!dp_card_yielding_pass(&yielding, &free_again, 5000 + DP_CARD_FREE_MS - 1));
    CHECK(yielding.holds);
    CHECK(dp_card_yielding_pass(&yielding, NULL, 5000 + DP_CARD_FREE_MS) && !yielding.holds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_root(another_program_on_a_card_of_this_node_uses_it),
        in_root(processes_of_this_node_and_trainers_are_nobody_else),
        in_root(a_program_that_only_draws_uses_a_card_from_a_quarter_on),
        in_root(a_library_that_fails_says_nothing),
        cmocka_unit_test(a_card_is_free_again_when_nobody_has_used_it_for_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
