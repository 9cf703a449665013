/* Waits of a round of parts: by answers where parts are small, by bytes where they are large, and
 * never without end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gossip/parts/part_wait.h"

#define MB 1000000ULL
#define HARD_US (400 * DP_SECOND)

static const dp_time start = {1000 * DP_SECOND};

/* Four contributions of so many bytes to a part, on a line of so many bytes per second. */
static dp_part_wait wait_for(uint64_t bytes, uint64_t rate)
{
    uint64_t all[4] = {bytes, bytes, bytes, bytes};

    return dp_part_wait_of(500 * DP_MS, 100 * DP_MS, all, 4, rate, HARD_US);
}

static uint64_t after_s(dp_time at)
{
    return dp_time_between(start, at) / DP_SECOND;
}

static dp_time at_s(uint64_t s)
{
    return dp_time_after(start, s * DP_SECOND);
}

static void small_parts_are_waited_for_as_long_as_answers_take(void **state)
{
    const dp_part_wait wait = wait_for(1000, 10 * MB);

    (void)state;
    assert_int_equal(wait.base_us, 2400 * DP_MS); /* Four chunks and four round trips. */
    assert_int_equal(dp_part_wait_owner(&wait, start, start, 1).us, start.us + wait.base_us);
    assert_int_equal(dp_part_wait_owner(&wait, start, at_s(2), 1).us, start.us + wait.base_us);
    assert_in_range(dp_part_wait_line(&wait), wait.base_us, wait.base_us + DP_MS);
    assert_in_range(dp_part_wait_close(&wait), 16 * wait.base_us, 16 * (wait.base_us + DP_MS));
}

static void an_owner_waits_on_while_the_bytes_of_a_large_part_come(void **state)
{
    const dp_part_wait wait = wait_for(250 * MB, 25 * MB); /* 40 s */

    (void)state;
    for (uint64_t s = 0; s < 60; s++) {
        assert_true(after_s(dp_part_wait_owner(&wait, start, at_s(s), 1)) >= s + 2);
    }
}

static void an_owner_goes_without_what_comes_no_more(void **state)
{
    const dp_part_wait wait = wait_for(250 * MB, 25 * MB);

    (void)state;
    assert_int_equal(dp_part_wait_owner(&wait, start, start, 1).us, start.us + wait.base_us);
    assert_int_equal(dp_part_wait_owner(&wait, start, at_s(30), 1).us, at_s(30).us + wait.base_us);
    assert_int_equal(dp_part_wait_owner(&wait, start, (dp_time){0}, 1).us,
                     start.us + wait.base_us); /* Moved before it was waited for. */
}

static void an_author_that_sends_byte_by_byte_gets_twice_the_transfer_time(void **state)
{
    const dp_part_wait large = wait_for(250 * MB, 25 * MB);
    const dp_part_wait slow = wait_for(2500 * MB, 25 * MB);

    (void)state;
    assert_int_equal(after_s(dp_part_wait_owner(&large, start, at_s(1000), 1)), 80);
    assert_int_equal(after_s(dp_part_wait_owner(&slow, start, at_s(1000), 1)),
                     200); /* Half of it. */
}

static void a_member_of_no_recent_round_gets_more_but_bounded_time(void **state)
{
    const dp_part_wait wait = wait_for(1000, 10 * MB);
    uint64_t bytes[1] = {1000};
    const dp_part_wait far = dp_part_wait_of(100 * DP_SECOND, 0, bytes, 1, 0, HARD_US);

    (void)state;
    assert_int_equal(dp_part_wait_owner(&wait, start, start, 12).us, start.us + 12 * wait.base_us);
    assert_int_equal(far.base_us, HARD_US / 4);
    assert_int_equal(dp_part_wait_owner(&far, start, start, 12).us, start.us + HARD_US);
}

static void the_next_in_line_gives_an_owner_the_time_of_its_bytes(void **state)
{
    const dp_part_wait wait = wait_for(250 * MB, 25 * MB);
    const dp_part_wait slow = wait_for(2500 * MB, 25 * MB);

    (void)state;
    assert_int_equal(dp_part_wait_line(&wait), wait.base_us + 40 * DP_SECOND);
    assert_int_equal(dp_part_wait_line(&slow), HARD_US / 4);
    assert_int_equal(dp_part_wait_close(&slow), 2 * HARD_US);
}

static void before_anything_was_measured_a_line_of_a_megabyte_per_second_is_taken(void **state)
{
    const dp_part_wait wait = wait_for(10 * MB, 0);

    (void)state;
    assert_int_equal(wait.transfer_us, 40 * DP_SECOND);
}

static void a_few_who_tell_of_huge_parts_hold_up_nobody(void **state)
{
    uint64_t honest[5] = {9 * MB, 10 * MB, 11 * MB, 10 * MB, 10 * MB};
    uint64_t lying[5] = {UINT64_MAX, 10 * MB, UINT64_MAX, 9 * MB, 10 * MB};
    const dp_part_wait of_honest = dp_part_wait_of(0, 0, honest, 5, MB, HARD_US);
    const dp_part_wait of_lying = dp_part_wait_of(0, 0, lying, 5, MB, HARD_US);

    (void)state;
    assert_int_equal(of_honest.transfer_us, 50 * DP_SECOND);
    assert_int_equal(of_lying.transfer_us, of_honest.transfer_us);
    assert_int_equal(of_lying.base_us, DP_PART_BASE_US_MIN);
}

static void nothing_told_and_no_number_breaks_it(void **state)
{
    uint64_t huge[2] = {UINT64_MAX, UINT64_MAX};
    const dp_part_wait none = dp_part_wait_of(0, 0, huge, 0, 0, HARD_US);
    const dp_part_wait most = dp_part_wait_of(1U << 30, 1U << 30, huge, 2, 1, HARD_US);
    const dp_part_wait no_deadline = dp_part_wait_of(0, 0, huge, 2, 0, 0);

    (void)state;
    assert_int_equal(none.transfer_us, 0);
    assert_int_equal(most.transfer_us, HARD_US);
    assert_int_equal(dp_part_wait_close(&no_deadline), 0);
    assert_int_equal(dp_part_wait_owner(&no_deadline, start, start, 12).us, start.us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_parts_are_waited_for_as_long_as_answers_take),
        cmocka_unit_test(an_owner_waits_on_while_the_bytes_of_a_large_part_come),
        cmocka_unit_test(an_owner_goes_without_what_comes_no_more),
        cmocka_unit_test(an_author_that_sends_byte_by_byte_gets_twice_the_transfer_time),
        cmocka_unit_test(a_member_of_no_recent_round_gets_more_but_bounded_time),
        cmocka_unit_test(the_next_in_line_gives_an_owner_the_time_of_its_bytes),
        cmocka_unit_test(before_anything_was_measured_a_line_of_a_megabyte_per_second_is_taken),
        cmocka_unit_test(a_few_who_tell_of_huge_parts_hold_up_nobody),
        cmocka_unit_test(nothing_told_and_no_number_breaks_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
