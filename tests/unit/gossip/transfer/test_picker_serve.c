/* The chunk picker serves others at a bounded rate, wakes when something is due, and counts its
 * transfers. */
#include "gossip/transfer/picker_internal.h"
#include "tests/unit/gossip/kit/fetcher.h"

static uint32_t served(fetcher *f, uint32_t member)
{
    uint32_t n = 0;

    while (dp_picker_serve_allows(f->picker, now_of(f), member)) {
        n++;
        assert_true(n < 100000);
    }
    return n;
}

static void a_peer_may_ask_for_as_many_at_once_as_in_a_second(void **state)
{
    fetcher *const f = fetcher_of(2);
    const uint64_t step = DP_SECOND / DP_SERVES_PER_SECOND;

    (void)state;
    for (uint32_t i = 1; i <= 2; i++) {
        ((dp_member *)(uintptr_t)dp_members_at(f->members, i))->in_roster = true;
    }
    CHECK(served(f, 1) == DP_SERVES_PER_SECOND);
    CHECK(served(f, 2) == DP_SERVES_PER_SECOND);
    f->now += step - 1;
    CHECK(served(f, 1) == 0);
    f->now += 1;
    CHECK(served(f, 1) == 1);
    f->now += 10 * step + step / 2;
    CHECK(served(f, 1) == 10);
    f->now += step - step / 2; /* The half is not lost. */
    CHECK(served(f, 1) == 1);
    f->now += 3600 * DP_SECOND;
    CHECK(served(f, 1) == DP_SERVES_PER_SECOND);
    fetcher_close(f);
}

static void a_served_request_names_the_asker_the_object_and_the_chunk(void **state)
{
    fetcher *const f = fetcher_of(2);
    const dp_peer asker = mesh_peer(2);

    (void)state;
    begin(f);
    CHECK(dp_picker_serve_chunk(f->picker, now_of(f), 2, &f->root, DP_CHUNKS_MAX - 1, &f->out));
    CHECK(!dp_picker_serve_chunk(f->picker, now_of(f), 2, &f->root, DP_CHUNKS_MAX, &f->out));
    CHECK(dp_picker_serve_info(f->picker, now_of(f), 2, &f->root, &f->out));
    CHECK(f->actions->count == 2);
    const dp_action *const chunk_action = nth_of(f, DP_DO_SERVE_CHUNK, 0);
    const dp_action *const info_action = nth_of(f, DP_DO_SERVE_INFO, 0);
    CHECK(chunk_action != NULL && info_action != NULL);
    CHECK(chunk_action->u.get.index == DP_CHUNKS_MAX - 1 && info_action->u.get.index == 0);
    CHECK(dp_peer_equal(&chunk_action->u.get.peer, &asker));
    CHECK(dp_hash_equal(&chunk_action->u.get.root, &f->root));
    CHECK(dp_hash_equal(&info_action->u.get.root, &f->root));
    fetcher_close(f);
}

static void bytes_are_counted_by_chunks_that_are_here(void **state)
{
    fetcher *const f = fetcher_of(2);
    dp_picker *const picker = f->picker;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        picker->wants[i] = (dp_want){.used = true,
                                     .begun = true,
                                     .root = {{(uint8_t)(i + 1)}},
                                     .size = SIZE,
                                     .n_chunks = CHUNKS,
                                     .order = i + 1};
        picker->queue[i] = (uint8_t)i;
    }
    picker->order = 2;
    picker->n_wanted = 2;
    picker->wants[0].n_have = 1;
    picker->wants[0].have[3] = 1;
    picker->wants[1].n_have = CHUNKS;
    memset(picker->wants[1].have, 1, CHUNKS);
    CHECK_OK(dp_picker_check(picker, NULL));
    CHECK(dp_picker_count(picker) == 2);
    CHECK(dp_picker_bytes_wanted(picker) == 2 * SIZE);
    CHECK(dp_picker_bytes_waiting(picker) == SIZE - DP_CHUNK_BYTES_MIN);
    CHECK(dp_picker_bytes_of(picker, &picker->wants[0].root) == DP_CHUNK_BYTES_MIN);
    CHECK(dp_picker_bytes_of(picker, &picker->wants[1].root) == SIZE);
    CHECK(dp_picker_bytes_of(picker, &f->root) == 0);
    CHECK(dp_picker_sources(picker) == 0);
    for (uint32_t i = 0; i < 3; i++) {
        picker->flights[2 * i] = (dp_flight){.used = true, .member = i == 2 ? 1 : 1 + i};
    }
    CHECK(dp_picker_sources(picker) == 2);
    picker->flights[0].used = false;
    CHECK(dp_picker_sources(picker) == 2);
    picker->flights[2].used = false;
    CHECK(dp_picker_sources(picker) == 1);
    picker->flights[4].used = false;
    picker->wants[0].used = picker->wants[1].used = false;
    picker->n_wanted = 0;
    fetcher_close(f);
}

/* One thing after the other is due, each sooner than the one before. */
static void it_wakes_for_what_is_due_first(void **state)
{
    fetcher *const f = fetcher_of(2);
    dp_picker *const picker = f->picker;
    const uint64_t now = f->now;
    dp_want *const want = &picker->wants[0];

    (void)state;
    CHECK(dp_picker_wake(picker).us == UINT64_MAX);
    *want =
        (dp_want){.used = true, .info_from = DP_MEMBER_NONE, .lonely_at = DP_NEVER, .size = SIZE};
    picker->queue[0] = 0;
    picker->n_wanted = 1;
    CHECK(dp_picker_wake(picker).us == UINT64_MAX);
    want->lonely_at = (dp_time){now + 90};
    CHECK(dp_picker_wake(picker).us == now + 90);
    want->pardon_at = (dp_time){now + 80};
    CHECK(dp_picker_wake(picker).us == now + 80);
    want->forgive_at = (dp_time){now + 70};
    CHECK(dp_picker_wake(picker).us == now + 70);
    want->pause_until = (dp_time){now + 60};
    CHECK(dp_picker_wake(picker).us == now + 60);
    want->info_deadline = (dp_time){now + 50};
    CHECK(dp_picker_wake(picker).us == now + 60); /* No peer was asked. */
    want->info_from = 1;
    CHECK(dp_picker_wake(picker).us == now + 50);
    want->begun = true;
    CHECK(dp_picker_wake(picker).us == now + 60);
    want->n_chunks = CHUNKS;
    picker->flights[5] =
        (dp_flight){.used = true, .member = 1, .deadline = {now + 40}, .hedge_at = {now + 45}};
    picker->n_flights = 1;
    CHECK(dp_picker_wake(picker).us == now + 40);
    picker->flights[5].hedge_at = (dp_time){now + 30};
    CHECK(dp_picker_wake(picker).us == now + 30);
    picker->flights[5].used = false;
    picker->n_flights = 0;
    CHECK(dp_picker_wake(picker).us == now + 60);
    want->used = false;
    picker->n_wanted = 0;
    fetcher_close(f);
}

/* At each of these instants, and not one microsecond sooner, the tick acts. */
static void the_tick_acts_when_it_is_due_and_no_sooner(void **state)
{
    fetcher *const f = fetcher_of(0);
    dp_picker *const picker = f->picker;
    dp_want *const want = &picker->wants[0];
    const uint64_t due = f->now + DP_SECOND;

    (void)state;
    picker->queue[0] = 0;
    picker->n_wanted = 1;
    for (uint32_t early = 0; early < 2; early++) {
        f->now = due - early;
        *want = (dp_want){.used = true,
                          .info_from = 1,
                          .info_deadline = {due},
                          .pause_until = {due},
                          .forgive_at = {due},
                          .pardon_at = {due},
                          .lonely_at = {due},
                          .n_faults = 1,
                          .faults = {{.member = 2, .bad = DP_BAD_CHUNKS_MAX}}};
        dp_want_set_bit(want->banned, 2, true);
        begin(f);
        dp_picker_tick(picker, now_of(f), &f->out);
        CHECK(want->info_from == (early ? 1 : DP_MEMBER_NONE));
        CHECK(dp_want_bit(want->silent, 1) == !early);
        CHECK(want->pause_until.us == (early ? due : 0));
        CHECK(want->forgive_at.us == (early ? due : 0) && want->forgiven == 1 - early);
        CHECK(want->pardon_at.us == (early ? due : 0) && want->pardons == 1 - early);
        CHECK(want->faults[0].bad == DP_BAD_CHUNKS_MAX - (early ? 0 : 1));
        CHECK(dp_want_bit(want->banned, 2) == early);
        CHECK(want->all == !early);
        CHECK(want->lonely_at.us == (early ? due : UINT64_MAX));
    }
    want->used = false;
    picker->n_wanted = 0;
    fetcher_close(f);
}

static void messages_about_an_unwanted_object_change_nothing(void **state)
{
    fetcher *const f = fetcher_of(2);
    const dp_hash other = {{77}};
    dp_hash roots[DP_WANTED_MAX];

    (void)state;
    want(f, DP_PRIORITY_ROUND);
    dp_picker_expect(f->picker, &other, 5);
    dp_picker_holder(f->picker, now_of(f), &other, 1, &f->out);
    dp_picker_holders_all(f->picker, now_of(f), &other, &f->out);
    dp_picker_cancel(f->picker, now_of(f), &other, &f->out);
    dp_picker_object(f->picker, now_of(f), &other, &f->out);
    info(f, 1, &other, SIZE);
    CHECK(f->actions->count == 0);
    CHECK(!dp_picker_wants(f->picker, &other) && !dp_picker_waits(f->picker, &other));
    CHECK(!dp_picker_unsure(f->picker, &other) && !dp_picker_unsure(f->picker, &f->root));
    CHECK(!dp_picker_asks_all(f->picker, &other, DP_PRIORITY_ROUND));
    CHECK(dp_picker_wants(f->picker, &f->root) && dp_picker_waits(f->picker, &f->root));
    CHECK(dp_picker_hesitant(f->picker, DP_PRIORITY_ROUND, roots) == 1);
    CHECK(dp_hash_equal(&roots[0], &f->root));
    dp_picker_expect(f->picker, &f->root, 5); /* Its size is known. */
    CHECK(f->picker->wants[0].told == SIZE);
    begin(f);
    dp_picker_holders_all(f->picker, now_of(f), &f->root, &f->out);
    CHECK(dp_picker_asks_all(f->picker, &f->root, DP_PRIORITY_ROUND));
    CHECK(dp_picker_hesitant(f->picker, DP_PRIORITY_ROUND, roots) == 0);
    CHECK(f->picker->wants[0].lonely_at.us == UINT64_MAX);
    CHECK(count_of(f, DP_DO_GET_INFO) == 1);
    info(f, 1, &f->root, SIZE);
    CHECK(dp_picker_wants(f->picker, &f->root) && !dp_picker_waits(f->picker, &f->root));
    fetcher_close(f);
}

/* Its row is another member's from now on. */
static void data_about_a_member_are_forgotten_with_it(void **state)
{
    fetcher *const f = fetcher_of(2);
    dp_picker *const picker = f->picker;
    dp_want *const want = &picker->wants[0];

    (void)state;
    *want = (dp_want){.used = true,
                      .info_from = 2,
                      .n_faults = 3,
                      .faults = {{.member = 1, .bad = 1}, {.member = 2, .bad = 2}, {.member = 3}}};
    picker->queue[0] = 0;
    picker->n_wanted = 1;
    for (uint32_t i = 1; i <= 3; i++) {
        dp_want_set_bit(want->holders, i, true);
        dp_want_set_bit(want->banned, i, true);
        dp_want_set_bit(want->silent, i, true);
        picker->patience_us[i] = picker->chunk_us[i] = 100 + i;
        picker->windows[i] = (uint8_t)i;
        picker->servings[i].tokens = i;
    }
    dp_picker_forget(picker, 2);
    for (uint32_t i = 1; i <= 3; i++) {
        const bool kept = i != 2;
        CHECK(dp_want_bit(want->holders, i) == kept && dp_want_bit(want->banned, i) == kept);
        CHECK(dp_want_bit(want->silent, i) == kept);
        CHECK(picker->patience_us[i] == (kept ? 100 + i : 0));
        CHECK(picker->chunk_us[i] == (kept ? 100 + i : 0));
        CHECK(picker->windows[i] == (kept ? i : 0));
        CHECK(picker->servings[i].tokens == (kept ? i : 0));
    }
    CHECK(want->n_faults == 2 && want->faults[0].member == 1 && want->faults[1].member == 3);
    CHECK(want->info_from == DP_MEMBER_NONE);
    want->info_from = 1;
    dp_picker_forget(picker, 2);
    CHECK(want->info_from == 1);
    want->used = false;
    picker->n_wanted = 0;
    fetcher_close(f);
}

static void a_member_may_ask_within_its_bounds_alone(void **state)
{
    const dp_picker_config good = {.members = NULL, .members_max = 16};
    fetcher *const f = fetcher_of(1);
    dp_picker *picker = NULL;

    (void)state;
    CHECK_STATUS(dp_picker_open(&picker, &good), DP_BADARG);
    for (uint32_t i = 0; i < 3; i++) {
        const dp_picker_config config = {.members = f->members,
                                         .members_max = i == 0   ? 0
                                                        : i == 1 ? DP_MEMBERS_MAX
                                                                 : DP_MEMBERS_MAX + 1};
        CHECK_STATUS(dp_picker_open(&picker, &config), i == 1 ? DP_OK : DP_BADARG);
    }
    dp_picker_close(picker);
    fetcher_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_may_ask_for_as_many_at_once_as_in_a_second),
        cmocka_unit_test(a_served_request_names_the_asker_the_object_and_the_chunk),
        cmocka_unit_test(bytes_are_counted_by_chunks_that_are_here),
        cmocka_unit_test(it_wakes_for_what_is_due_first),
        cmocka_unit_test(the_tick_acts_when_it_is_due_and_no_sooner),
        cmocka_unit_test(messages_about_an_unwanted_object_change_nothing),
        cmocka_unit_test(data_about_a_member_are_forgotten_with_it),
        cmocka_unit_test(a_member_may_ask_within_its_bounds_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
