/* The waits of the chunk picker, and its number of requests at once, by its measurements. */
#include "gossip/transfer/picker_internal.h"
#include "tests/unit/gossip/kit/fetcher.h"

static void rtt_is(const fetcher *f, uint32_t member, uint32_t us)
{
    ((dp_member *)(uintptr_t)dp_members_at(f->members, member))->rtt =
        (dp_rtt){.srtt_us = us, .samples = 1};
}

static dp_want wanted(uint64_t size)
{
    return (dp_want){.used = true, .size = size, .n_chunks = dp_object_chunks(size)};
}

static void before_anything_came_a_chunk_has_the_time_of_a_megabyte_per_second(void **state)
{
    fetcher *const f = fetcher_of(2);
    dp_want want = wanted(SIZE);
    const uint64_t guess =
        DP_CHUNK_WAIT_US_MIN + dp_object_chunk_bytes(SIZE) * DP_SECOND / 1000000ULL;

    (void)state;
    CHECK(dp_picker_hedge_wait(f->picker, &want) == guess);
    for (uint32_t failures = 0; failures < 9; failures++) {
        const uint64_t doubled = 2 * guess << (failures < 5 ? failures : 5);
        want.failures = failures;
        CHECK(dp_picker_chunk_wait(f->picker, &want, 1) ==
              (doubled < DP_CHUNK_WAIT_US_MAX ? doubled : DP_CHUNK_WAIT_US_MAX));
    }
    fetcher_close(f);
}

static void then_a_chunk_has_twice_the_time_that_most_of_its_size_took(void **state)
{
    fetcher *const f = fetcher_of(2);
    dp_want want = wanted(SIZE);
    const uint32_t class_of_size = 0;

    (void)state;
    CHECK(dp_object_chunk_bytes(SIZE) == DP_CHUNK_BYTES_MIN);
    dp_span_add(&f->picker->spans[class_of_size], 400 * DP_MS);
    dp_span_add(&f->picker->spans[class_of_size + 1], 700 * DP_MS);
    CHECK(dp_picker_hedge_wait(f->picker, &want) == 400 * DP_MS);
    CHECK(dp_picker_chunk_wait(f->picker, &want, 1) == 800 * DP_MS);
    CHECK(dp_picker_chunk_p95(f->picker) == 700 * DP_MS);
    dp_span_add(&f->picker->spans[class_of_size], 20 * DP_MS);
    for (uint32_t i = 0; i < DP_SPAN_SAMPLES; i++) {
        dp_span_add(&f->picker->spans[class_of_size], 20 * DP_MS);
    }
    CHECK(dp_picker_chunk_wait(f->picker, &want, 1) == DP_CHUNK_WAIT_US_MIN);
    const dp_time again = dp_picker_hedge_again(f->picker, &want, (dp_time){DP_SECOND});
    CHECK(again.us == DP_SECOND + 50 * DP_MS); /* No sooner. */
    fetcher_close(f);
}

static void a_thin_line_has_its_own_time_where_nobody_else_is_known_to_have_it(void **state)
{
    fetcher *const f = fetcher_of(3);
    dp_want want = wanted(SIZE);

    (void)state;
    dp_span_add(&f->picker->spans[0], 200 * DP_MS);
    f->picker->patience_us[1] = 3000 * DP_MS;
    dp_want_set_bit(want.holders, 1, true);
    CHECK(!dp_picker_has_another(f->picker, &want, 1));
    CHECK(dp_picker_chunk_wait(f->picker, &want, 1) == 3000 * DP_MS);
    dp_want_set_bit(want.holders, 9, true); /* It has no link. */
    CHECK(dp_picker_chunk_wait(f->picker, &want, 1) == 3000 * DP_MS);
    dp_want_set_bit(want.holders, 3, true);
    CHECK(dp_picker_has_another(f->picker, &want, 1));
    CHECK(dp_picker_chunk_wait(f->picker, &want, 1) == 400 * DP_MS);
    dp_want_set_bit(want.holders, 3, false);
    f->picker->patience_us[1] = 300 * DP_MS; /* Less than is usual. */
    CHECK(dp_picker_chunk_wait(f->picker, &want, 1) == 400 * DP_MS);
    fetcher_close(f);
}

static void
size_and_leaves_are_waited_for_a_quarter_of_a_second_and_longer_when_all_were_silent(void **state)
{
    fetcher *const f = fetcher_of(2);
    dp_want want = wanted(SIZE);

    (void)state;
    CHECK(dp_picker_info_wait(f->picker, &want, 1) == 250 * DP_MS);
    rtt_is(f, 1, 400 * DP_MS);
    CHECK(dp_picker_info_wait(f->picker, &want, 1) == 400 * DP_MS);
    rtt_is(f, 1, 900 * DP_MS);
    CHECK(dp_picker_info_wait(f->picker, &want, 1) == 500 * DP_MS);
    for (uint32_t times = 0; times < 9; times++) {
        want.asked_all = times;
        CHECK(dp_picker_info_wait(f->picker, &want, 2) == 250 * DP_MS << (times < 5 ? times : 5));
    }
    fetcher_close(f);
}

/* One chunk of the object comes from member 1 after so long, while so many are under way. */
static void comes(fetcher *f, uint64_t took_us, uint32_t flying)
{
    const dp_want *const want = &f->picker->wants[0];

    for (uint32_t i = 0; i < flying; i++) {
        f->picker->flights[i] = (dp_flight){
            .used = true, .member = 1, .chunk = i, .sent = {f->now}, .deadline = {f->now + 1}};
    }
    f->picker->n_flights = flying;
    dp_picker_measure(f->picker, want, 0, 1, (dp_time){f->now + took_us});
    memset(f->picker->flights, 0, sizeof f->picker->flights);
    f->picker->n_flights = 0;
}

static void
a_window_grows_by_chunks_that_waited_for_no_other_and_shrinks_by_those_that_did(void **state)
{
    fetcher *const f = fetcher_of(2);
    dp_picker *const picker = f->picker;
    const uint64_t trip = 100 * DP_MS;
    const uint64_t near = 5 * DP_MS;

    (void)state;
    rtt_is(f, 1, (uint32_t)trip);
    picker->wants[0] = wanted(SIZE);
    picker->wants[0].used = false;
    comes(f, 2 * trip + near, DP_FLIGHTS_PER_HOLDER - 1); /* The window was not full. */
    CHECK(picker->windows[1] == 0);
    comes(f, 2 * trip + near + 1, DP_FLIGHTS_PER_HOLDER); /* Slow. */
    CHECK(picker->windows[1] == 0);
    comes(f, 2 * trip + near, DP_FLIGHTS_PER_HOLDER);
    CHECK(picker->windows[1] == 1);
    comes(f, 3 * trip + near, DP_FLIGHTS_PER_HOLDER + 1); /* In between. */
    CHECK(picker->windows[1] == 1);
    comes(f, 3 * trip + near + 1, DP_FLIGHTS_PER_HOLDER + 1);
    CHECK(picker->windows[1] == 0);
    comes(f, 3 * trip + near + 1, DP_FLIGHTS_PER_HOLDER + 1); /* Never below the first. */
    CHECK(picker->windows[1] == 0);
    for (uint32_t i = 0; i < 40; i++) {
        comes(f, trip, DP_FLIGHTS_MAX);
    }
    CHECK(picker->windows[1] == DP_FLIGHTS_MAX - DP_FLIGHTS_PER_HOLDER);
    CHECK(picker->windows[2] == 0);
    const dp_want want = wanted(SIZE);
    CHECK(dp_picker_window(picker, &want, 1) == DP_FLIGHTS_MAX);
    CHECK(dp_picker_window(picker, &want, 2) == DP_FLIGHTS_PER_HOLDER);
    const dp_want huge = wanted(DP_OBJECT_BYTES_MAX);
    const uint64_t fit = DP_FLIGHT_BYTES_MAX / dp_object_chunk_bytes(DP_OBJECT_BYTES_MAX);
    CHECK(dp_picker_window(picker, &huge, 1) == (fit > DP_FLIGHTS_PER_HOLDER
                                                     ? (fit < DP_FLIGHTS_MAX ? fit : DP_FLIGHTS_MAX)
                                                     : DP_FLIGHTS_PER_HOLDER));
    fetcher_close(f);
}

static void the_time_of_a_member_is_smoothed_and_after_a_late_chunk_doubled(void **state)
{
    fetcher *const f = fetcher_of(2);
    dp_picker *const picker = f->picker;

    (void)state;
    picker->wants[0] = wanted(SIZE);
    picker->wants[0].used = false;
    comes(f, 100, 1);
    CHECK(picker->chunk_us[1] == 100 && picker->patience_us[1] == 50);
    comes(f, 300, 1);
    CHECK(picker->chunk_us[1] == 150 && picker->patience_us[1] == 187); /* (150 + 600) / 4 */
    picker->wants[0].failures = 1; /* It may be the answer to an earlier request. */
    comes(f, 550, 1);
    CHECK(picker->chunk_us[1] == 250 && picker->patience_us[1] == 187);
    comes(f, 2 * DP_CHUNK_WAIT_US_MAX, 1);
    CHECK(picker->chunk_us[1] == (750 + (uint64_t)DP_CHUNK_WAIT_US_MAX) / 4);
    CHECK(dp_span_percentile(&picker->spans[0], 100) == DP_CHUNK_WAIT_US_MAX);
    CHECK(picker->chunk_us[2] == 0);
    picker->windows[1] = 7;
    picker->chunk_us[1] = 100;
    const dp_flight late = {
        .used = true, .member = 1, .sent = {1000}, .deadline = {1000 + DP_SECOND}};
    dp_picker_chunk_late(picker, &late);
    CHECK(picker->windows[1] == 3 && picker->chunk_us[1] == 200);
    CHECK(picker->patience_us[1] == 2 * DP_SECOND);
    const dp_flight sooner = {
        .used = true, .member = 1, .sent = {1000}, .deadline = {1000 + DP_MS}};
    dp_picker_chunk_late(picker, &sooner);
    CHECK(picker->patience_us[1] == 2 * DP_SECOND && picker->chunk_us[1] == 400);
    picker->chunk_us[1] = DP_CHUNK_WAIT_US_MAX / 2;
    dp_picker_chunk_late(picker, &sooner);
    CHECK(picker->chunk_us[1] == DP_CHUNK_WAIT_US_MAX);
    picker->chunk_us[1] = DP_CHUNK_WAIT_US_MAX / 2 - 1;
    dp_picker_chunk_late(picker, &sooner);
    CHECK(picker->chunk_us[1] == DP_CHUNK_WAIT_US_MAX - 2);
    const dp_flight first = {.used = true, .member = 2, .sent = {0}, .deadline = {100 * DP_SECOND}};
    dp_picker_chunk_late(picker, &first);
    CHECK(picker->chunk_us[2] == DP_CHUNK_WAIT_US_MIN);
    CHECK(picker->patience_us[2] == DP_CHUNK_WAIT_US_MAX);
    fetcher_close(f);
}

static void the_rate_counts_chunks_of_64_KiB_and_more_and_forgets_by_half(void **state)
{
    fetcher *const f = fetcher_of(1);
    dp_picker *const picker = f->picker;

    (void)state;
    picker->wants[0] = wanted(64 * 1024 - 1);
    picker->wants[0].used = false;
    dp_picker_rate_begin(picker, (dp_time){f->now});
    comes(f, DP_SECOND, 1);
    CHECK(dp_picker_rate(picker) == 0);
    CHECK(picker->rated.us == f->now + DP_SECOND); /* Its time does not count later either. */
    picker->wants[0] = wanted(64 * 1024);
    picker->wants[0].used = false;
    comes(f, 3 * DP_SECOND, 1);
    CHECK(picker->rate_us == 2 * DP_SECOND && picker->rate_bytes == 64 * 1024);
    CHECK(dp_picker_rate(picker) == 32 * 1024);
    comes(f, 9 * DP_SECOND, 1);
    CHECK(picker->rate_us == 8 * DP_SECOND && picker->rate_bytes == 2 * 64 * 1024);
    comes(f, 9 * DP_SECOND + 2, 1);
    CHECK(picker->rate_us == 4 * DP_SECOND + 1 && picker->rate_bytes == 3 * 32 * 1024);
    fetcher_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_anything_came_a_chunk_has_the_time_of_a_megabyte_per_second),
        cmocka_unit_test(then_a_chunk_has_twice_the_time_that_most_of_its_size_took),
        cmocka_unit_test(a_thin_line_has_its_own_time_where_nobody_else_is_known_to_have_it),
        cmocka_unit_test(
            size_and_leaves_are_waited_for_a_quarter_of_a_second_and_longer_when_all_were_silent),
        cmocka_unit_test(
            a_window_grows_by_chunks_that_waited_for_no_other_and_shrinks_by_those_that_did),
        cmocka_unit_test(the_time_of_a_member_is_smoothed_and_after_a_late_chunk_doubled),
        cmocka_unit_test(the_rate_counts_chunks_of_64_KiB_and_more_and_forgets_by_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
