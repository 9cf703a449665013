#include "daemon/net/path.h"

#include "tests/lib/check.h"

#define SECOND 1000000ULL

/* A sender that the path of this test carries along: rate in bytes per second, loss in
 * millionths. */
struct road {
    dp_path path;
    dp_path_loss loss;
    dp_path_sample sample;
};

static struct road road_of(uint32_t min_rtt_us)
{
    struct road road = {
        .sample = {.now_us = SECOND, .min_rtt_us = min_rtt_us, .srtt_us = min_rtt_us}};
    dp_path_step(&road.path, &road.sample);
    dp_path_count(&road.loss, (dp_path *[]){&road.path}, 1);
    return road;
}

static void drive(struct road *road, unsigned quarters, uint64_t rate, uint32_t loss,
                  uint32_t queue_us)
{
    for (unsigned i = 0; i < quarters; i++) {
        const uint64_t bytes = rate / 4;
        road->sample.now_us += SECOND / 4;
        road->sample.busy_us += SECOND / 4;
        road->sample.acked += bytes;
        road->sample.sent += bytes + bytes * loss / 1000000;
        road->sample.again += bytes * loss / 1000000;
        road->sample.srtt_us = road->sample.min_rtt_us + queue_us;
        dp_path_step(&road->path, &road->sample);
        dp_path_count(&road->loss, (dp_path *[]){&road->path}, 1);
    }
}

/* The pace for a rate, on a path of 100 ms where a queue of this length stands. */
static uint64_t drained(uint64_t rate, uint32_t queued_us)
{
    return rate - rate / 32 - rate / 1000 * (queued_us - 30000) / 1000;
}

static void a_short_path_is_left_alone(void **state)
{
    struct road road = road_of(DP_PATH_LONG_RTT_US - 1);
    (void)state;
    drive(&road, 40, 1000000000, 20000, 100000);
    assert_int_equal(road.path.pace, 0);
    assert_int_equal(road.loss.wanted, 1);
}

static void a_path_of_unknown_length_is_left_alone(void **state)
{
    struct road road = road_of(0);
    (void)state;
    drive(&road, 10, 10000000, 20000, 0);
    assert_int_equal(road.path.pace, 0);
    assert_int_equal(road.loss.wanted, 1);
}

static void a_long_path_is_not_paced_before_a_queue_stood(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, 40, 10000000, 0, 0);
    assert_int_equal(road.path.pace, 0);
    assert_int_equal(road.loss.wanted, 1);
}

static void a_queue_paces_it_a_little_below_what_it_carried(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, 4, 10000000, 0, 60000);
    assert_int_equal(road.path.pace, drained(10000000, 60000));
    /* The best it has seen counts, so that draining does not spiral down. */
    drive(&road, DP_PATH_RATES - 5, 9687500, 0, 60000);
    assert_int_equal(road.path.pace, drained(10000000, 60000));
    drive(&road, 5, 5000000, 0, 60000);
    CHECK(road.path.pace < 9687500); /* But not for ever. */
}

static void without_a_queue_it_grows_when_it_is_used(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, 4, 10000000, 0, 60000);
    const uint64_t pace = road.path.pace;
    drive(&road, 1, pace, 0, 0);
    assert_int_equal(road.path.pace, pace + pace / 8);
    drive(&road, 3, 20000000, 0, 0);
    CHECK(road.path.pace > pace + pace / 3);
}

/* A queue that stands although less is sent than was carried is not ours: once in two seconds the
 * pace rises a little above the rate. */
static void a_queue_that_does_not_drain_slows_nobody_for_ever(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, 1, 10000000, 0, 60000);
    for (unsigned i = 0; i < 400; i++) { /* The path carries whatever is sent, up to 10 MB/s. */
        drive(&road, 1, road.path.pace < 10000000 ? road.path.pace : 10000000, 0, 60000);
        CHECK(road.path.pace > 9000000 && road.path.pace <= 11250000);
    }
}

static void nor_all_connections_of_a_line(void **state)
{
    struct road roads[2] = {road_of(100000), road_of(100000)};
    dp_path *const paths[2] = {&roads[0].path, &roads[1].path};
    dp_path_line line = {.next_total = 0};
    (void)state;
    drive(&roads[0], 1, 5000000, 0, 60000);
    drive(&roads[1], 1, 5000000, 0, 60000);
    for (unsigned i = 0; i < 400; i++) {
        dp_path_share(&line, paths, 2);
        CHECK(paths[0]->pace > 4500000 && paths[0]->pace <= 5625000);
        drive(&roads[0], 1, paths[0]->pace < 5000000 ? paths[0]->pace : 5000000, 0, 60000);
        drive(&roads[1], 1, paths[1]->pace < 5000000 ? paths[1]->pace : 5000000, 0, 60000);
    }
}

/* A doubling window fills the line at the end of the sample: its mean is low, but the last delivery
 * rate is that of the line. */
static void the_first_queue_goes_by_what_arrived_last(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    road.sample.delivered = 9000000;
    drive(&road, 1, 4000000, 0, 60000);
    assert_int_equal(road.path.pace, drained(9000000, 60000));
    drive(&road, 1, 8000000, 0, 60000); /* Then by what was carried. */
    assert_int_equal(road.path.pace, drained(8000000, 60000));
    road = road_of(100000);
    road.sample.delivered = UINT64_MAX; /* The kernel may report anything. */
    drive(&road, 1, 4000000, 0, 60000);
    assert_int_equal(road.path.pace, drained(16000000, 60000));
}

static void before_the_line_is_known_it_grows_faster(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, DP_PATH_KNOWN - 1, 10000000, 0, 60000);
    const uint64_t pace = road.path.pace;
    drive(&road, 1, pace, 0, 0);
    assert_int_equal(road.path.pace, pace + pace / 4);
}

/* As when a window starts small after a pause: this rate does not describe the path. */
static void little_without_a_queue_lowers_nothing(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, 4, 10000000, 0, 60000);
    const uint64_t pace = road.path.pace;
    drive(&road, 100, 1000000, 0, 0);
    assert_int_equal(road.path.pace, pace);
}

static void a_sender_with_little_data_measures_nothing(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, 8, 4 * (DP_PATH_BYTES_MIN - 1), 0, 90000);
    assert_int_equal(road.path.pace, 0);
    for (unsigned i = 0; i < 8; i++) { /* Much, but in a tenth of the time. */
        road.sample.now_us += SECOND / 4;
        road.sample.busy_us += SECOND / 40;
        road.sample.acked += 1000000;
        road.sample.sent += 1000000;
        road.sample.srtt_us = 500000;
        dp_path_step(&road.path, &road.sample);
    }
    assert_int_equal(road.path.pace, 0);
}

static void a_wrong_measurement_does_not_starve_a_link(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, 20, 4 * DP_PATH_BYTES_MIN, 900000, 900000);
    CHECK(road.path.pace >= DP_PATH_PACE_MIN);
    road.sample.acked = 5; /* Counters that went back, as no kernel's do. */
    drive(&road, 4, 1000000, 0, 0);
    CHECK(road.path.pace >= DP_PATH_PACE_MIN);
}

static void loss_without_a_queue_asks_for_more_connections_and_calm_for_one(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, DP_PATH_CLEAR_SAMPLES, 1000000, 0, 0);
    drive(&road, 1, 1000000, 6000, 0);
    assert_int_equal(road.loss.wanted, 1); /* One segment is chance. */
    drive(&road, 1, 1000000, 6000, 0);
    assert_int_equal(road.loss.wanted, 2);
    drive(&road, 4, 1000000, 6000, 0);
    assert_int_equal(road.loss.wanted, 8);
    drive(&road, 50, 1000000, 5000, 0);
    assert_int_equal(road.loss.wanted, DP_PATH_CONNECTIONS_MAX);
    drive(&road, DP_PATH_CALM_SAMPLES - 1, 1000000, 0, 0);
    assert_int_equal(road.loss.wanted, DP_PATH_CONNECTIONS_MAX);
    drive(&road, 1, 1000000, 0, 0);
    assert_int_equal(road.loss.wanted, 1);
}

/* An overshoot is lost and counted when its queue is gone already. */
static void loss_right_after_a_queue_is_our_own(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        drive(&road, 1, 1000000, 0, 90000);
        drive(&road, DP_PATH_CLEAR_SAMPLES - 1, 1000000, 20000, 0);
    }
    assert_int_equal(road.loss.wanted, 1);
}

static void on_a_full_line_all_get_the_same(void **state)
{
    struct road roads[3] = {road_of(100000), road_of(100000), road_of(100000)};
    dp_path *const paths[3] = {&roads[0].path, &roads[1].path, &roads[2].path};
    dp_path_line line = {.next_total = 0};
    (void)state;
    drive(&roads[0], 1, 6000000, 0, 60000);
    drive(&roads[1], 1, 4000000, 0, 60000);
    drive(&roads[2], 1, 2000000, 0, 10000);
    dp_path_share(&line, paths, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(paths[i]->pace, (drained(12000000, 60000)) / 3);
    }
}

static void the_uplink_is_the_rate_of_busy_long_paths(void **state)
{
    struct road roads[2] = {road_of(100000), road_of(100)};
    dp_path *const paths[2] = {&roads[0].path, &roads[1].path};
    dp_path_line line = {.next_total = 0};
    (void)state;
    assert_int_equal(dp_path_uplink(&line), 0);
    drive(&roads[1], 1, 90000000, 0, 0); /* On a LAN nothing is measured. */
    dp_path_share(&line, paths, 2);
    assert_int_equal(dp_path_uplink(&line), 0);
    drive(&roads[0], 1, 6000000, 0, 0);
    dp_path_share(&line, paths, 2);
    drive(&roads[0], 1, 2000000, 0, 0);
    dp_path_share(&line, paths, 2);
    assert_int_equal(dp_path_uplink(&line), 6000000);
    for (unsigned i = 0; i < DP_PATH_RATES; i++) { /* Old samples are forgotten. */
        drive(&roads[0], 1, 3000000, 0, 0);
        dp_path_share(&line, paths, 2);
    }
    assert_int_equal(dp_path_uplink(&line), 3000000);
}

static void a_line_that_fills_for_the_first_time_is_shared_by_what_arrived_last(void **state)
{
    struct road roads[2] = {road_of(100000), road_of(100000)};
    dp_path *const paths[2] = {&roads[0].path, &roads[1].path};
    dp_path_line line = {.next_total = 0};
    (void)state;
    roads[0].sample.delivered = 7000000;
    roads[1].sample.delivered = 5000000;
    drive(&roads[0], 1, 3000000, 0, 60000);
    drive(&roads[1], 1, 3000000, 0, 60000);
    dp_path_share(&line, paths, 2);
    assert_int_equal(paths[0]->pace, (drained(12000000, 60000)) / 2);
    drive(&roads[0], 1, 5000000, 0, 60000);
    drive(&roads[1], 1, 5000000, 0, 60000);
    dp_path_share(&line, paths, 2);
    assert_int_equal(paths[1]->pace, (drained(10000000, 60000)) / 2);
}

static void a_far_line_that_is_full_does_not_slow_others(void **state)
{
    struct road roads[3] = {road_of(100000), road_of(100000), road_of(100000)};
    dp_path *const paths[3] = {&roads[0].path, &roads[1].path, &roads[2].path};
    dp_path_line line = {.next_total = 0};
    (void)state;
    drive(&roads[0], 1, 6000000, 0, 0);
    drive(&roads[1], 1, 6000000, 0, 0);
    drive(&roads[2], 1, 1000000, 0, 60000);
    dp_path_share(&line, paths, 3);
    assert_int_equal(paths[0]->pace, 0);
    assert_int_equal(paths[2]->pace, drained(1000000, 60000));
    dp_path_share(&line, paths, 0); /* nobody */
    dp_path_share(&line, &paths[2], 1);
    assert_int_equal(paths[2]->pace, drained(1000000, 60000));
}

static void loss_that_our_own_queue_makes_asks_for_none(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, 20, 10000000, 20000, 90000);
    assert_int_equal(road.loss.wanted, 1);
}

static void a_receiver_of_gaps_opens_connections_too(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, DP_PATH_CLEAR_SAMPLES, 0, 0, 0);
    for (unsigned i = 0; i < 6; i++) {
        road.sample.now_us += SECOND / 4;
        road.sample.segments_in += 500;
        road.sample.out_of_order_in += 10;
        dp_path_step(&road.path, &road.sample);
        dp_path_count(&road.loss, (dp_path *[]){&road.path}, 1);
    }
    assert_int_equal(road.loss.wanted, 8);
    assert_int_equal(road.path.pace, 0);
}

static void few_losses_in_much_traffic_ask_for_none(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, DP_PATH_CLEAR_SAMPLES, 10000000, 0, 0);
    for (unsigned i = 0; i < 20; i++) { /* One segment in five megabytes. */
        road.sample.again += DP_PATH_SEGMENT;
        drive(&road, 2, 10000000, 0, 0);
    }
    assert_int_equal(road.loss.wanted, 1);
}

static void losses_of_all_connections_to_a_peer_count_together(void **state)
{
    struct road roads[2] = {road_of(100000), road_of(100000)};
    dp_path_loss loss = {.wanted = 0};
    (void)state;
    drive(&roads[0], DP_PATH_CLEAR_SAMPLES, 400000, 0, 0);
    drive(&roads[1], DP_PATH_CLEAR_SAMPLES, 400000, 0, 0);
    roads[0].sample.again += DP_PATH_SEGMENT;
    roads[1].sample.again += DP_PATH_SEGMENT;
    drive(&roads[0], 1, 400000, 0, 0);
    drive(&roads[1], 1, 400000, 0, 0);
    dp_path_count(&loss, (dp_path *[]){&roads[0].path, &roads[1].path}, 2);
    assert_int_equal(loss.wanted, 2);
    dp_path_count(&loss, NULL, 0); /* All are gone. */
    assert_int_equal(loss.wanted, 2);
}

/* A round has long pauses: after one the path still has the connections that it needs. */
static void a_pause_keeps_connections_but_not_for_ever(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, DP_PATH_CLEAR_SAMPLES, 1000000, 0, 0);
    drive(&road, 20, 1000000, 6000, 0);
    assert_int_equal(road.loss.wanted, 8);
    drive(&road, DP_PATH_IDLE_SAMPLES - 1, 0, 0, 0);
    assert_int_equal(road.loss.wanted, 8);
    drive(&road, 1, 0, 0, 0);
    assert_int_equal(road.loss.wanted, 1);
}

/* As after a machine stood still for a moment. */
static void delayed_data_that_arrives_at_once_is_no_rate(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, 6, 10000000, 0, 60000);
    drive(&road, 1, 40000000, 0, 60000);
    assert_int_equal(road.path.pace, drained(12500000, 60000));
}

/* Other traffic used the path, and has ended: the path carried everything that was sent without a
 * queue. */
static void a_rate_sent_without_a_queue_counts_as_carried(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, 6, 1000000, 0, 60000);
    for (unsigned i = 0; i < 20; i++) {
        drive(&road, 1, road.path.pace, 0, 0);
    }
    const uint64_t pace = road.path.pace;
    CHECK(pace > 5000000);
    drive(&road, 1, pace, 0, 60000);
    assert_int_equal(road.path.pace, drained(pace, 60000));
}

static void a_long_queue_is_drained_faster_but_not_at_once(void **state)
{
    struct road road = road_of(100000);
    (void)state;
    drive(&road, 1, 10000000, 0, 90000);
    assert_int_equal(road.path.pace, drained(10000000, 90000));
    drive(&road, 1, 10000000, 0, 900000);
    assert_int_equal(road.path.pace, drained(10000000, 130000));
}

static void the_connection_that_is_through_first_is_the_one_with_most_room(void **state)
{
    const dp_path_room empty = {.window = 14480};
    const dp_path_room wide = {.waiting = 28960, .window = 144800};
    const dp_path_room hole = {.window = 14480, .hole = true};
    const dp_path_room stalled = {.window = 0, .hole = true, .stalled = true};
    (void)state;
    CHECK(dp_path_turns(&empty, 14480) == 16);
    CHECK(dp_path_turns(&wide, 14480) < dp_path_turns(&empty, 14480));
    CHECK(dp_path_turns(&empty, 14480) < dp_path_turns(&hole, 14480));
    CHECK(dp_path_turns(&hole, 1) < dp_path_turns(&stalled, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_path_is_left_alone),
        cmocka_unit_test(a_path_of_unknown_length_is_left_alone),
        cmocka_unit_test(a_long_path_is_not_paced_before_a_queue_stood),
        cmocka_unit_test(a_queue_paces_it_a_little_below_what_it_carried),
        cmocka_unit_test(without_a_queue_it_grows_when_it_is_used),
        cmocka_unit_test(a_queue_that_does_not_drain_slows_nobody_for_ever),
        cmocka_unit_test(nor_all_connections_of_a_line),
        cmocka_unit_test(the_first_queue_goes_by_what_arrived_last),
        cmocka_unit_test(before_the_line_is_known_it_grows_faster),
        cmocka_unit_test(little_without_a_queue_lowers_nothing),
        cmocka_unit_test(a_sender_with_little_data_measures_nothing),
        cmocka_unit_test(a_wrong_measurement_does_not_starve_a_link),
        cmocka_unit_test(loss_without_a_queue_asks_for_more_connections_and_calm_for_one),
        cmocka_unit_test(loss_right_after_a_queue_is_our_own),
        cmocka_unit_test(on_a_full_line_all_get_the_same),
        cmocka_unit_test(the_uplink_is_the_rate_of_busy_long_paths),
        cmocka_unit_test(a_line_that_fills_for_the_first_time_is_shared_by_what_arrived_last),
        cmocka_unit_test(a_far_line_that_is_full_does_not_slow_others),
        cmocka_unit_test(loss_that_our_own_queue_makes_asks_for_none),
        cmocka_unit_test(a_receiver_of_gaps_opens_connections_too),
        cmocka_unit_test(few_losses_in_much_traffic_ask_for_none),
        cmocka_unit_test(losses_of_all_connections_to_a_peer_count_together),
        cmocka_unit_test(a_pause_keeps_connections_but_not_for_ever),
        cmocka_unit_test(delayed_data_that_arrives_at_once_is_no_rate),
        cmocka_unit_test(a_rate_sent_without_a_queue_counts_as_carried),
        cmocka_unit_test(a_long_queue_is_drained_faster_but_not_at_once),
        cmocka_unit_test(the_connection_that_is_through_first_is_the_one_with_most_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
