#include "daemon/net/throttle.h"

#include "tests/lib/check.h"

#define SECOND UINT64_C(1000000)
#define MBIT UINT64_C(125000)

enum { BURST = DP_THROTTLE_BURST_BYTES, SLICE = DP_THROTTLE_SLICE_BYTES };

static void open_with(dp_throttle *throttle, uint64_t rate)
{
    dp_throttle_init(throttle);
    dp_throttle_set(throttle, rate, SECOND);
}

/* As a connection with more to send than may go: bytes that pass until then, with a look every
 * millisecond. */
static uint64_t passes(dp_throttle *throttle, dp_throttle_place *place, uint64_t from_us,
                       uint64_t until_us)
{
    uint64_t sum = 0;
    for (uint64_t now = from_us; now < until_us; now += 1000) {
        DP_IGNORE(dp_throttle_call(throttle, now) == NULL);
        const uint64_t may = dp_throttle_ask(throttle, place, now);
        if (may > 0) {
            dp_throttle_pay(throttle, place, may, now);
            sum += may;
        }
    }
    dp_throttle_leave(throttle, place, until_us);
    return sum;
}

static void without_a_limit_everything_passes_at_once(void **state)
{
    dp_throttle throttle;
    open_with(&throttle, 0);
    dp_throttle_place place = {0};
    (void)state;
    for (int i = 0; i < 3; i++) {
        CHECK(dp_throttle_ask(&throttle, &place, SECOND) == UINT64_MAX);
        dp_throttle_pay(&throttle, &place, UINT32_MAX, SECOND);
    }
    dp_throttle_pay_control(&throttle, UINT32_MAX, SECOND);
    CHECK(!place.waits && dp_throttle_wait_us(&throttle, SECOND) == UINT64_MAX);
    assert_int_equal(dp_throttle_held_us(&throttle, 2 * SECOND), 0);
}

static void in_any_time_no_more_passes_than_the_rate_and_a_burst(void **state)
{
    static const uint64_t rates[] = {MBIT, 2 * MBIT, 2 * MBIT + 7, 1000 * MBIT,
                                     DP_THROTTLE_RATE_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        dp_throttle throttle;
        open_with(&throttle, rates[i]);
        dp_throttle_place place = {0};
        const uint64_t burst = rates[i] / 20 > BURST ? rates[i] / 20 : BURST;
        const uint64_t slice = dp_throttle_slice(&throttle);
        const uint64_t sum = passes(&throttle, &place, SECOND, 11 * SECOND);
        CHECK(sum <= 10 * rates[i] + burst + slice);
        CHECK(sum >= 10 * rates[i] - slice); /* Nor less: the line is used. */
        /* After an hour of silence a burst is there, and no more. */
        const uint64_t again = passes(&throttle, &place, 3611 * SECOND, 3612 * SECOND);
        CHECK(again <= rates[i] + burst + slice);
    }
}

static void a_limit_that_changes_all_the_time_holds(void **state)
{
    dp_throttle throttle;
    dp_throttle_place place = {0};
    uint64_t sum = 0;
    (void)state;
    open_with(&throttle, MBIT);
    for (uint64_t i = 1; i <= 1000; i++) { /* each 10 ms */
        sum += passes(&throttle, &place, SECOND + (i - 1) * 10000, SECOND + i * 10000);
        dp_throttle_set(&throttle, MBIT - i % 2, SECOND + i * 10000);
    }
    CHECK(sum <= 10 * MBIT + BURST + SLICE);
    CHECK(sum >= 9 * MBIT);
    dp_throttle_pay(&throttle, &place, 10 * MBIT, 12 * SECOND); /* A debt stays. */
    dp_throttle_set(&throttle, 2 * MBIT, 12 * SECOND);
    CHECK(dp_throttle_ask(&throttle, &place, 12 * SECOND) == 0);
    dp_throttle_leave(&throttle, &place, 12 * SECOND);
    dp_throttle_set(&throttle, 0, 12 * SECOND);
    dp_throttle_set(&throttle, MBIT, 12 * SECOND); /* Anew. */
    CHECK(dp_throttle_ask(&throttle, &place, 12 * SECOND) == BURST);
}

static void a_slow_rate_loses_nothing_to_rounding(void **state)
{
    dp_throttle throttle;
    open_with(&throttle, MBIT + 1);
    dp_throttle_place place = {0};
    (void)state;
    dp_throttle_pay(&throttle, &place, BURST, SECOND);
    CHECK(dp_throttle_ask(&throttle, &place, SECOND) == 0);
    for (uint64_t now = SECOND; now <= SECOND + 100000; now += 3) {
        CHECK(dp_throttle_wait_us(&throttle, now) > 0);
    }
    CHECK(throttle.room >= (int64_t)(MBIT + 1) / 10 - 1);
}

static void waiting_connections_are_called_in_turn_with_a_slice_each(void **state)
{
    dp_throttle throttle;
    open_with(&throttle, 2 * MBIT);
    dp_throttle_place places[3] = {{.granted = 0}};
    dp_throttle_place last = {0};
    uint64_t served[3] = {0};
    (void)state;
    dp_throttle_pay(&throttle, &last, BURST, SECOND);
    for (int i = 0; i < 3; i++) {
        CHECK(dp_throttle_ask(&throttle, &places[i], SECOND) == 0 && places[i].waits);
    }
    for (uint64_t now = SECOND; now < 3 * SECOND; now += 5000) {
        dp_throttle_place *called = dp_throttle_call(&throttle, now);
        if (called == NULL) {
            continue;
        }
        /* A place that asks anew stands behind those that wait. */
        CHECK(dp_throttle_ask(&throttle, &last, now) == 0);
        dp_throttle_leave(&throttle, &last, now);
        const uint64_t may = dp_throttle_ask(&throttle, called, now);
        assert_int_equal(may, SLICE);
        dp_throttle_pay(&throttle, called, may, now);
        served[called - places] += may;
        CHECK(dp_throttle_ask(&throttle, called, now) == 0);
    }
    const uint64_t sum = served[0] + served[1] + served[2];
    CHECK(sum >= 4 * MBIT - 2 * SLICE && sum <= 4 * MBIT + SLICE);
    for (int i = 0; i < 3; i++) {
        CHECK(served[i] + SLICE >= sum / 3 && served[i] <= sum / 3 + SLICE);
        dp_throttle_leave(&throttle, &places[i], 3 * SECOND);
    }
    CHECK(dp_list_empty(&throttle.waiting));
}

static void the_wait_that_is_told_is_enough_and_no_more(void **state)
{
    dp_throttle throttle;
    open_with(&throttle, 2 * MBIT);
    dp_throttle_place place = {0};
    (void)state;
    dp_throttle_pay(&throttle, &place, BURST + SLICE, SECOND);
    CHECK(dp_throttle_ask(&throttle, &place, SECOND) == 0);
    const uint64_t wait = dp_throttle_wait_us(&throttle, SECOND);
    CHECK(dp_throttle_call(&throttle, SECOND + wait - 10) == NULL);
    CHECK(dp_throttle_call(&throttle, SECOND + wait) == &place && !place.waits);
    CHECK(dp_throttle_wait_us(&throttle, SECOND + wait) == UINT64_MAX);
    assert_int_equal(dp_throttle_held_us(&throttle, 9 * SECOND), wait);
}

static void control_never_waits_and_bulk_has_what_it_leaves(void **state)
{
    dp_throttle throttle;
    open_with(&throttle, 8 * MBIT);
    dp_throttle_place place = {0};
    uint64_t sum = 0;
    (void)state;
    dp_throttle_pay(&throttle, &place, BURST, SECOND);
    for (uint64_t now = SECOND; now < 5 * SECOND; now += 50000) {
        dp_throttle_pay_control(&throttle, 2 * MBIT / 20, now);
        sum += passes(&throttle, &place, now, now + 50000);
    }
    CHECK(sum <= 4 * 6 * MBIT + SLICE && sum >= 4 * 6 * MBIT - 2 * SLICE);
}

static void a_storm_of_control_holds_up_bulk_for_a_second_at_most(void **state)
{
    dp_throttle throttle;
    open_with(&throttle, MBIT);
    dp_throttle_place place = {0};
    (void)state;
    for (int i = 0; i < 100; i++) {
        dp_throttle_pay_control(&throttle, MBIT, SECOND);
    }
    CHECK(dp_throttle_ask(&throttle, &place, SECOND) == 0);
    CHECK(dp_throttle_wait_us(&throttle, SECOND) <= SECOND + SECOND * SLICE / MBIT + 1);
    dp_throttle_leave(&throttle, &place, SECOND);
    /* The limit on the debt of control does not reduce the debt of bulk itself. */
    dp_throttle_pay(&throttle, &place, 3 * MBIT, SECOND);
    const int64_t owes = throttle.room;
    dp_throttle_pay_control(&throttle, MBIT, SECOND);
    assert_int_equal(throttle.room, owes);
}

static void a_limit_that_is_lifted_lets_everybody_go(void **state)
{
    dp_throttle throttle;
    open_with(&throttle, MBIT);
    dp_throttle_place places[2] = {{.granted = 0}};
    (void)state;
    dp_throttle_pay(&throttle, &places[0], 100 * MBIT, SECOND);
    CHECK(dp_throttle_ask(&throttle, &places[0], SECOND) == 0);
    CHECK(dp_throttle_ask(&throttle, &places[1], SECOND) == 0);
    dp_throttle_set(&throttle, 0, 2 * SECOND);
    assert_int_equal(dp_throttle_wait_us(&throttle, 2 * SECOND), 0);
    CHECK(dp_throttle_call(&throttle, 2 * SECOND) == &places[0]);
    CHECK(dp_throttle_call(&throttle, 2 * SECOND) == &places[1]);
    CHECK(dp_throttle_call(&throttle, 2 * SECOND) == NULL);
    CHECK(dp_throttle_ask(&throttle, &places[1], 2 * SECOND) == UINT64_MAX);
    assert_int_equal(dp_throttle_held_us(&throttle, 2 * SECOND), SECOND);
}

static void a_connection_that_leaves_the_line_is_not_called(void **state)
{
    dp_throttle throttle;
    open_with(&throttle, MBIT);
    dp_throttle_place places[2] = {{.granted = 0}};
    (void)state;
    dp_throttle_pay(&throttle, &places[0], BURST, SECOND);
    CHECK(dp_throttle_ask(&throttle, &places[0], SECOND) == 0);
    CHECK(dp_throttle_ask(&throttle, &places[1], SECOND) == 0);
    dp_throttle_leave(&throttle, &places[0], SECOND);
    dp_throttle_leave(&throttle, &places[0], SECOND); /* Twice does no harm. */
    CHECK(dp_throttle_call(&throttle, 2 * SECOND) == &places[1]);
    CHECK(dp_throttle_call(&throttle, 2 * SECOND) == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_limit_everything_passes_at_once),
        cmocka_unit_test(in_any_time_no_more_passes_than_the_rate_and_a_burst),
        cmocka_unit_test(a_limit_that_changes_all_the_time_holds),
        cmocka_unit_test(a_slow_rate_loses_nothing_to_rounding),
        cmocka_unit_test(waiting_connections_are_called_in_turn_with_a_slice_each),
        cmocka_unit_test(the_wait_that_is_told_is_enough_and_no_more),
        cmocka_unit_test(control_never_waits_and_bulk_has_what_it_leaves),
        cmocka_unit_test(a_storm_of_control_holds_up_bulk_for_a_second_at_most),
        cmocka_unit_test(a_limit_that_is_lifted_lets_everybody_go),
        cmocka_unit_test(a_connection_that_leaves_the_line_is_not_called),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
