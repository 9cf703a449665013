/* Only the slices of an APPLY: records the commands to the trainer and the events of the node. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/peer/driver_inside.h"
#include "tests/lib/check.h"

enum { TOLD_MAX = 64, ROUND = 7 };

typedef struct told {
    uint64_t round;
    uint32_t at;
    uint32_t n;
    dp_hash first;
} told;

/* A driver whose slices are tested, and a record of its calls. */
static struct desk {
    dp_config config;
    dp_daemon daemon;
    dp_driver *driver;
    dp_apply_item items[DP_LISTED_MAX];
    told told[TOLD_MAX];
    uint32_t n_told;
    uint32_t behind;  /* number of releases of the waiting commands */
    uint32_t dropped; /* APPLYs */
    uint32_t fed;
    dp_event event; /* the last */
    uint32_t dies;  /* the trainer is killed when it gets its dies-th slice; 0: never */
} desk;

void dp_event_log_add(dp_event_log *event_log, dp_log_level level, const char *name, uint64_t round,
                      const dp_peer *peer, const char *format, ...)
{
    (void)event_log;
    (void)level;
    (void)peer;
    (void)format;
    assert_string_equal(name, "apply.slices");
    assert_int_equal(round, ROUND);
}

void dp_driver_command_slice(dp_driver *driver, uint64_t round, uint32_t at,
                             const dp_apply_item *items, uint32_t n)
{
    assert_true(desk.n_told < TOLD_MAX);
    desk.told[desk.n_told++] = (told){.round = round, .at = at, .n = n, .first = items[0].root};
    if (desk.n_told == desk.dies) { /* As when there is no memory for a command. */
        dp_driver_slices_drop(driver);
    }
}

void dp_driver_commands_release(dp_driver *driver)
{
    assert_null(driver->slices); /* Otherwise they would wait again. */
    desk.behind++;
}

void dp_driver_drop_apply(dp_driver *driver)
{
    assert_null(driver->slices);
    desk.dropped++;
}

void dp_driver_feed(dp_driver *driver, dp_event *event)
{
    (void)driver;
    desk.fed++;
    desk.event = *event;
}

/* Updates of so many bytes each; the setting apply-memory. */
static dp_driver *desk_of(uint64_t bytes, uint64_t memory)
{
    memset(&desk, 0, sizeof desk);
    desk.driver = test_calloc(1, sizeof *desk.driver);
    desk.config.apply_memory = memory;
    desk.daemon.config = &desk.config;
    desk.driver->daemon = &desk.daemon;
    for (uint32_t i = 0; i < DP_LISTED_MAX; i++) {
        desk.items[i].bytes = bytes;
        memcpy(desk.items[i].root.bytes, &i, sizeof i);
    }
    return desk.driver;
}

static void desk_close(void)
{
    dp_driver_slices_drop(desk.driver);
    test_free(desk.driver);
}

/* The trainer has added the oldest slice that it was told and has not answered. */
static void answer(uint32_t slice)
{
    const dp_trainer_msg msg = {.round = desk.told[slice].round,
                                .at = desk.told[slice].at + desk.told[slice].n};

    dp_driver_slices_added(desk.driver, &msg);
}

static void as_many_updates_as_one_command_takes_need_no_slices(void **state)
{
    const dp_driver *driver = desk_of(1000, 32 * 1000);

    (void)state;
    assert_false(dp_driver_slices_needed(driver, desk.items, 1));
    assert_false(dp_driver_slices_needed(driver, desk.items, DP_TRAINER_ITEMS_MAX));
    assert_true(dp_driver_slices_needed(driver, desk.items, DP_TRAINER_ITEMS_MAX + 1));
    desk.config.apply_memory = 32 * 1000 - 1;
    assert_true(dp_driver_slices_needed(driver, desk.items, DP_TRAINER_ITEMS_MAX));
    desk_close();
}

static void a_thousand_updates_are_told_whole_in_order_and_two_slices_ahead(void **state)
{
    dp_driver *driver = desk_of(1000, UINT64_MAX);
    const uint32_t n = 1000;
    uint32_t next = 0;

    (void)state;
    assert_true(dp_driver_slices_begin(driver, ROUND, desk.items, n));
    assert_int_equal(desk.n_told, DP_DRIVER_SLICES_AHEAD);
    for (uint32_t s = 0; s < desk.n_told; s++) {
        uint32_t first = 0;
        memcpy(&first, desk.told[s].first.bytes, sizeof first);
        assert_int_equal(desk.told[s].round, ROUND);
        assert_int_equal(desk.told[s].at, next);
        assert_int_equal(first, next);
        assert_true(desk.told[s].n > 0 && desk.told[s].n <= DP_TRAINER_ITEMS_MAX);
        next += desk.told[s].n;
        assert_int_equal(desk.behind, 0);
        answer(s);
        assert_true(desk.n_told <= s + 1 + DP_DRIVER_SLICES_AHEAD);
    }
    assert_int_equal(next, n);
    assert_int_equal(desk.n_told, (n + DP_TRAINER_ITEMS_MAX - 1) / DP_TRAINER_ITEMS_MAX);
    assert_int_equal(desk.behind, 1);
    assert_null(driver->slices);
    assert_int_equal(desk.fed, 0); /* The APPLY behind it is answered by the trainer. */
    desk_close();
}

static void an_update_larger_than_the_memory_is_a_slice_of_its_own(void **state)
{
    dp_driver *driver = desk_of(1000, 1);

    (void)state;
    desk.items[1].bytes = UINT64_MAX; /* A size that a record may claim: no sum of such wraps. */
    assert_true(dp_driver_slices_begin(driver, ROUND, desk.items, 3));
    answer(0);
    answer(1);
    answer(2);
    assert_int_equal(desk.n_told, 3);
    for (uint32_t s = 0; s < 3; s++) {
        assert_int_equal(desk.told[s].n, 1);
    }
    assert_int_equal(desk.behind, 1);
    desk_close();
}

static void sizes_that_would_wrap_when_added_do_not_share_a_slice(void **state)
{
    const dp_driver *driver = desk_of(UINT64_MAX / 2 + 1, UINT64_MAX);

    (void)state;
    assert_true(dp_driver_slices_needed(driver, desk.items, 2));
    desk_close();
}

static void the_caller_may_change_its_items_meanwhile(void **state)
{
    dp_driver *driver = desk_of(1000, UINT64_MAX);
    uint32_t first = 0;

    (void)state;
    assert_true(dp_driver_slices_begin(driver, ROUND, desk.items, 100));
    memset(desk.items, 0xff, sizeof desk.items);
    answer(0);
    memcpy(&first, desk.told[2].first.bytes, sizeof first);
    assert_int_equal(first, 2 * DP_TRAINER_ITEMS_MAX);
    desk_close();
}

static void one_apply_is_cut_at_a_time(void **state)
{
    dp_driver *driver = desk_of(1000, UINT64_MAX);

    (void)state;
    assert_true(dp_driver_slices_begin(driver, ROUND, desk.items, 100));
    assert_false(dp_driver_slices_begin(driver, ROUND, desk.items, 100));
    assert_int_equal(desk.n_told, DP_DRIVER_SLICES_AHEAD); /* And the first goes on. */
    answer(0);
    assert_int_equal(desk.n_told, DP_DRIVER_SLICES_AHEAD + 1);
    desk_close();
}

static void a_slice_that_fails_fails_the_apply_once(void **state)
{
    dp_driver *driver = desk_of(1000, UINT64_MAX);

    (void)state;
    assert_true(dp_driver_slices_begin(driver, ROUND, desk.items, 100));
    dp_driver_slices_failed(driver, ROUND + 1); /* Of a record that nobody adds up any more. */
    assert_int_equal(desk.fed, 0);
    dp_driver_slices_failed(driver, ROUND);
    assert_int_equal(desk.fed, 1);
    assert_int_equal(desk.event.type, DP_EV_APPLIED);
    assert_int_equal(desk.event.u.applied.round, ROUND);
    assert_int_equal(desk.event.u.applied.status, DP_CORRUPT);
    assert_int_equal(desk.dropped, 1);
    assert_int_equal(desk.behind, 1);
    dp_driver_slices_failed(driver, ROUND); /* The second slice that was under way. */
    answer(1);
    assert_int_equal(desk.fed, 1);
    assert_int_equal(desk.dropped, 1);
    assert_int_equal(desk.n_told, DP_DRIVER_SLICES_AHEAD);
    desk_close();
}

static void an_answer_of_another_round_is_of_no_use(void **state)
{
    dp_driver *driver = desk_of(1000, UINT64_MAX);

    (void)state;
    dp_driver_slices_added(driver, &(dp_trainer_msg){.round = ROUND, .at = 32}); /* None is cut. */
    assert_true(dp_driver_slices_begin(driver, ROUND, desk.items, 100));
    dp_driver_slices_added(driver, &(dp_trainer_msg){.round = ROUND - 1, .at = 100});
    assert_non_null(driver->slices);
    assert_int_equal(desk.n_told, DP_DRIVER_SLICES_AHEAD);
    desk_close();
}

static void a_trainer_that_dies_at_the_first_slice_is_told_no_second(void **state)
{
    dp_driver *driver = desk_of(1000, UINT64_MAX);

    (void)state;
    desk.dies = 1;
    assert_false(dp_driver_slices_begin(driver, ROUND, desk.items, 100));
    assert_int_equal(desk.n_told, 1);
    desk.dies = 0;
    assert_true(dp_driver_slices_begin(driver, ROUND, desk.items, 100)); /* The next life. */
    desk_close();
}

static void without_memory_nothing_is_told(void **state)
{
    dp_driver *driver = desk_of(1000, UINT64_MAX);

    (void)state;
    dp_alloc_fail_after(1);
    assert_false(dp_driver_slices_begin(driver, ROUND, desk.items, 100));
    dp_alloc_fail_after(0);
    assert_int_equal(desk.n_told, 0);
    assert_null(driver->slices);
    desk_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_updates_as_one_command_takes_need_no_slices),
        cmocka_unit_test(a_thousand_updates_are_told_whole_in_order_and_two_slices_ahead),
        cmocka_unit_test(an_update_larger_than_the_memory_is_a_slice_of_its_own),
        cmocka_unit_test(sizes_that_would_wrap_when_added_do_not_share_a_slice),
        cmocka_unit_test(the_caller_may_change_its_items_meanwhile),
        cmocka_unit_test(one_apply_is_cut_at_a_time),
        cmocka_unit_test(a_slice_that_fails_fails_the_apply_once),
        cmocka_unit_test(an_answer_of_another_round_is_of_no_use),
        cmocka_unit_test(a_trainer_that_dies_at_the_first_slice_is_told_no_second),
        cmocka_unit_test(without_memory_nothing_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
