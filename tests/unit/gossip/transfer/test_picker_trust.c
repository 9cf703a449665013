#include "tests/unit/gossip/kit/fetcher.h"

static void two_bad_chunks_end_the_trust_in_a_holder(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(2);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    info(f, 1, &f->root, SIZE);
    const dp_peer liar = mesh_peer(1);
    chunk(f, &liar, 0, DP_BADHASH);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == 1); /* a second chance */
    chunk(f, &liar, 1, DP_BADHASH);
    CHECK(count_of(f, DP_DO_NOTE) == 1);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == 0);
    begin(f);
    dp_picker_holder(f->picker, now_of(f), &f->root, 2, &f->out);
    const dp_peer honest = mesh_peer(2);
    for (uint32_t i = 0; i < count_of(f, DP_DO_GET_CHUNK); i++) {
        CHECK(dp_peer_equal(&nth_of(f, DP_DO_GET_CHUNK, i)->u.get.peer, &honest));
    }
    CHECK(count_of(f, DP_DO_GET_CHUNK) == 4);
    fetcher_close(f);
}

static void any_linked_peer_is_asked_when_no_holder_is_linked(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(2);
    want(f, DP_PRIORITY_ROUND);
    const dp_peer author = mesh_peer(1);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    dp_members_link_down(f->members, now_of(f), 1, &author, DP_LINK_RESET, &f->out);
    dp_picker_link_down(f->picker, now_of(f), 1, &f->out);
    tick_after(f, 250 * DP_MS - 1);
    CHECK(count_of(f, DP_DO_GET_INFO) == 0);
    tick_after(f, 1);
    const dp_peer between = mesh_peer(2);
    const dp_action *const get = nth_of(f, DP_DO_GET_INFO, 0);
    CHECK(get != NULL && dp_peer_equal(&get->u.get.peer, &between));
    fetcher_close(f);
}

static void a_liar_that_is_the_only_holder_is_asked_ever_more_rarely(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(1);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    info(f, 1, &f->root, SIZE);
    const dp_peer liar = mesh_peer(1);
    chunk(f, &liar, 0, DP_BADHASH);
    chunk(f, &liar, 1, DP_BADHASH);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == 0);
    for (uint64_t wait_us = 5 * DP_SECOND; wait_us <= 40 * DP_SECOND; wait_us *= 2) {
        tick_after(f, wait_us - 1);
        CHECK(count_of(f, DP_DO_GET_CHUNK) == 0);
        tick_after(f, 1);
        CHECK(count_of(f, DP_DO_GET_CHUNK) > 0);
        begin(f);
        chunk(f, &liar, 0, DP_BADHASH); /* one more lie is enough now */
        CHECK(count_of(f, DP_DO_GET_CHUNK) == 0);
    }
    fetcher_close(f);
}

static void a_possible_holder_does_not_keep_a_liar_from_being_asked_again(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(3);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    dp_picker_holders_all(f->picker, now_of(f), &f->root, &f->out);
    info(f, 1, &f->root, SIZE);
    const dp_peer liar = mesh_peer(1);
    chunk(f, &liar, 0, DP_BADHASH);
    chunk(f, &liar, 1, DP_BADHASH);
    const uint64_t pardon_us = f->now + 5 * DP_SECOND;
    bool again = false;
    while (!again && f->now < pardon_us + DP_SECOND) { /* The others are asked, and are silent. */
        const dp_time wake = dp_picker_wake(f->picker);
        CHECK(wake.us > f->now);
        tick_after(f, wake.us - f->now);
        for (uint32_t i = 0; i < count_of(f, DP_DO_GET_CHUNK); i++) {
            again = again || dp_peer_equal(&nth_of(f, DP_DO_GET_CHUNK, i)->u.get.peer, &liar);
        }
    }
    CHECK(again && f->now >= pardon_us);
    fetcher_close(f);
}

static void silence_about_info_moves_on_to_the_next_holder(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(3);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holders_all(f->picker, now_of(f), &f->root, &f->out);
    bool asked[4] = {false};
    for (uint32_t i = 0; i < 6; i++) {
        const dp_action *const get = nth_of(f, DP_DO_GET_INFO, 0);
        CHECK(get != NULL);
        asked[get->u.get.peer.bytes[0] - 1] = true;
        const dp_time wake = dp_picker_wake(f->picker);
        CHECK(wake.us > f->now);
        tick_after(f, wake.us - f->now);
    }
    CHECK(asked[1] && asked[2] && asked[3]);
    fetcher_close(f);
}

static void silence_costs_no_more_for_the_second_than_for_the_first(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(4);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holders_all(f->picker, now_of(f), &f->root, &f->out);
    for (uint64_t wait_us = 250 * DP_MS; wait_us <= DP_SECOND; wait_us *= 2) {
        bool asked[5] = {false};
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t member = asked_of(f, DP_DO_GET_INFO);
            CHECK(!asked[member]); /* All are asked before one is asked again. */
            asked[member] = true;
            CHECK(dp_picker_wake(f->picker).us == f->now + wait_us);
            tick_after(f, wait_us);
        }
    }
    info(f, 3, &f->root, SIZE); /* It was only slow. */
    CHECK(count_of(f, DP_DO_GET_CHUNK) == DP_FLIGHTS_PER_HOLDER + 1);
    fetcher_close(f);
}

static void a_holder_that_lacks_it_is_asked_again_after_a_while(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(1);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    info(f, 1, &f->root, SIZE);
    const dp_peer peer = mesh_peer(1);
    for (uint32_t i = 0; i < 4; i++) {
        chunk(f, &peer, i, DP_NOTFOUND);
        CHECK(count_of(f, DP_DO_GET_CHUNK) == 0);
    }
    tick_after(f, dp_picker_wake(f->picker).us - f->now);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == 4);
    CHECK(dp_picker_wake(f->picker).us > f->now);
    fetcher_close(f);
}

static void a_peer_that_lacks_it_says_so_and_the_next_is_asked_at_once(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(5);
    bool asked[6] = {false};
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holders_all(f->picker, now_of(f), &f->root, &f->out);
    for (uint32_t i = 0; i < 5; i++) {
        const uint32_t member = asked_of(f, DP_DO_GET_INFO);
        const dp_peer peer = mesh_peer(member);
        const dp_peer other = mesh_peer(member == 1 ? 2 : 1);
        CHECK(!asked[member]);
        asked[member] = true;
        chunk(f, &other, 0, DP_NOTFOUND); /* it was not asked */
        CHECK(f->actions->count == 0);
        chunk(f, &peer, 0, DP_NOTFOUND);
        CHECK(count_of(f, DP_DO_GET_INFO) == (i < 4 ? 1 : 0));
    }
    /* All lack it: they are asked again, after ever longer waits. */
    for (uint64_t wait_us = 250 * DP_MS; wait_us <= DP_SECOND; wait_us *= 2) {
        tick_after(f, wait_us - 1);
        CHECK(count_of(f, DP_DO_GET_INFO) == 0);
        tick_after(f, 1);
        for (uint32_t i = 0; i < 5; i++) {
            const dp_peer peer = mesh_peer(asked_of(f, DP_DO_GET_INFO));
            chunk(f, &peer, 0, DP_NOTFOUND);
        }
        CHECK(count_of(f, DP_DO_GET_INFO) == 0);
    }
    fetcher_close(f);
}

/* The first of two members that is asked lacks the object; then the other is asked. Returns the
 * first. */
static uint32_t one_of_two_lacks_it(fetcher *f)
{
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holders_all(f->picker, now_of(f), &f->root, &f->out);
    const uint32_t first = asked_of(f, DP_DO_GET_INFO);
    const dp_peer peer = mesh_peer(first);
    chunk(f, &peer, 0, DP_NOTFOUND);
    CHECK(asked_of(f, DP_DO_GET_INFO) == 3 - first);
    return first;
}

/* An author that keeps its update for one voter says so too, and it may be the last that has it
 * (dpsim, swarm 1182). */
static void a_peer_that_lacked_it_is_asked_again_when_the_last_other_link_ends(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(2);
    const uint32_t first = one_of_two_lacks_it(f);
    const dp_peer last = mesh_peer(3 - first);
    begin(f);
    dp_members_link_down(f->members, now_of(f), 1, &last, DP_LINK_RESET, &f->out);
    begin(f);
    dp_picker_link_down(f->picker, now_of(f), 3 - first, &f->out);
    CHECK(f->actions->count == 0);
    tick_after(f, 250 * DP_MS);
    CHECK(asked_of(f, DP_DO_GET_INFO) == first);
    fetcher_close(f);
}

static void a_peer_that_lacked_it_is_asked_again_when_the_others_were_silent(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(2);
    const uint32_t first = one_of_two_lacks_it(f);
    bool again = false;
    for (uint32_t i = 0; i < 4; i++) {
        tick_after(f, 2 * DP_SECOND);
        again = again || (count_of(f, DP_DO_GET_INFO) == 1 && asked_of(f, DP_DO_GET_INFO) == first);
    }
    CHECK(again);
    fetcher_close(f);
}

static void a_peer_that_has_it_now_is_asked_at_once_unless_it_lied(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(2);
    const dp_peer first = mesh_peer(1);
    const dp_peer liar = mesh_peer(2);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    info(f, 1, &f->root, SIZE);
    for (uint32_t i = 0; i < DP_FLIGHTS_PER_HOLDER; i++) {
        chunk(f, &first, i, DP_NOTFOUND);
    }
    begin(f);
    dp_picker_holder(f->picker, now_of(f), &f->root, 2, &f->out);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == DP_FLIGHTS_PER_HOLDER);
    chunk(f, &liar, 0, DP_BADHASH);
    chunk(f, &liar, 1, DP_BADHASH);
    begin(f);
    dp_picker_holder(f->picker, now_of(f), &f->root, 2, &f->out);
    CHECK(f->actions->count == 0);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == DP_FLIGHTS_PER_HOLDER);
    CHECK(asked_of(f, DP_DO_GET_CHUNK) == 1);
    fetcher_close(f);
}

static void a_known_holder_is_asked_before_possible_ones(void **state)
{
    (void)state;
    for (uint32_t holder = 1; holder <= 8; holder++) {
        fetcher *const f = fetcher_of(8);
        want(f, DP_PRIORITY_ROUND);
        dp_picker_holder(f->picker, now_of(f), &f->root, holder, &f->out);
        dp_picker_holders_all(f->picker, now_of(f), &f->root, &f->out);
        CHECK(asked_of(f, DP_DO_GET_INFO) == holder);
        info(f, holder, &f->root, SIZE);
        CHECK(asked_of(f, DP_DO_GET_CHUNK) == holder);
        /* one of the possible holders */
        CHECK(count_of(f, DP_DO_GET_CHUNK) == DP_FLIGHTS_PER_HOLDER + 1);
        fetcher_close(f);
    }
    fetcher *const f = fetcher_of(8);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 3, &f->out);
    dp_picker_holders_all(f->picker, now_of(f), &f->root, &f->out);
    tick_after(f, dp_picker_wake(f->picker).us - f->now);
    CHECK(asked_of(f, DP_DO_GET_INFO) != 3); /* silent, perhaps dead */
    fetcher_close(f);
}

/* The only chunk of this step that was asked of another than this member. */
static const dp_action *asked_beside(const fetcher *f, uint32_t member)
{
    const dp_peer peer = mesh_peer(member);
    const dp_action *other = NULL;

    for (uint32_t i = 0; i < count_of(f, DP_DO_GET_CHUNK); i++) {
        const dp_action *const get = nth_of(f, DP_DO_GET_CHUNK, i);
        if (!dp_peer_equal(&get->u.get.peer, &peer)) {
            CHECK(other == NULL);
            other = get;
        }
    }
    CHECK(other != NULL);
    return other;
}

static void those_that_only_may_have_it_are_tried_one_at_a_time(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(8);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    dp_picker_holders_all(f->picker, now_of(f), &f->root, &f->out);
    info(f, 1, &f->root, SIZE);
    const dp_action first = *asked_beside(f, 1);
    chunk(f, &first.u.get.peer, first.u.get.index, DP_NOTFOUND);
    const dp_action second = *asked_beside(f, 1);
    CHECK(!dp_peer_equal(&first.u.get.peer, &second.u.get.peer));
    chunk(f, &second.u.get.peer, second.u.get.index, DP_OK);
    const dp_action *const third = asked_beside(f, 1); /* of the certain holder */
    CHECK(dp_peer_equal(&second.u.get.peer, &third->u.get.peer));
    fetcher_close(f);
}

static void each_liar_is_counted_for_itself(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(3);
    want(f, DP_PRIORITY_ROUND);
    for (uint32_t i = 1; i <= 3; i++) {
        dp_picker_holder(f->picker, now_of(f), &f->root, i, &f->out);
    }
    dp_want *const wanted = &f->picker->wants[f->picker->queue[0]];
    for (uint32_t i = 1; i <= 2; i++) {
        dp_picker_blame(f->picker, wanted, i, 1, "lied", &f->out);
    }
    CHECK(wanted->n_faults == 2 && wanted->faults[0].bad == 1 && wanted->faults[1].bad == 1);
    CHECK(!dp_want_bit(wanted->banned, 1) && !dp_want_bit(wanted->banned, 2));
    dp_picker_blame(f->picker, wanted, 2, DP_BAD_CHUNKS_MAX - 1, "lied", &f->out);
    CHECK(!dp_want_bit(wanted->banned, 1) && dp_want_bit(wanted->banned, 2));
    /* Peers that lacked it are asked again, and a liar is not. */
    dp_picker_lacks(f->picker, wanted, 3, now_of(f));
    CHECK(dp_want_bit(wanted->banned, 3));
    dp_picker_ask_lacking(wanted);
    CHECK(!dp_want_bit(wanted->banned, 3) && dp_want_bit(wanted->banned, 2));
    fetcher_close(f);
}

static void one_liar_more_than_are_counted_has_no_second_chance(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(3);
    want(f, DP_PRIORITY_ROUND);
    dp_want *const wanted = &f->picker->wants[f->picker->queue[0]];
    wanted->n_faults = sizeof wanted->faults / sizeof wanted->faults[0];
    for (uint32_t i = 0; i < wanted->n_faults; i++) {
        wanted->faults[i] = (dp_fault){.member = 2, .bad = 1};
    }
    dp_picker_blame(f->picker, wanted, 1, 1, "lied", &f->out);
    CHECK(dp_want_bit(wanted->banned, 1));
    CHECK(wanted->n_faults == sizeof wanted->faults / sizeof wanted->faults[0]);
    fetcher_close(f);
}

static void an_object_that_is_wanted_more_urgently_goes_before_others(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(1);
    const dp_hash first = {{1}};
    const dp_hash second = {{2}};
    CHECK_OK(dp_picker_want(f->picker, now_of(f), &first, 100, DP_USE_BLOB, DP_PRIORITY_REPLAY,
                            &f->out));
    CHECK_OK(dp_picker_want(f->picker, now_of(f), &second, 100, DP_USE_BLOB, DP_PRIORITY_REPLAY,
                            &f->out));
    CHECK(dp_hash_equal(&f->picker->wants[f->picker->queue[0]].root, &first));
    CHECK_OK(dp_picker_want(f->picker, now_of(f), &second, 100, DP_USE_BLOB, DP_PRIORITY_ROUND,
                            &f->out));
    CHECK(dp_hash_equal(&f->picker->wants[f->picker->queue[0]].root, &second));
    CHECK(f->picker->wants[f->picker->queue[0]].priority == DP_PRIORITY_ROUND);
    CHECK_OK(dp_picker_want(f->picker, now_of(f), &second, 100, DP_USE_BLOB, DP_PRIORITY_DATA,
                            &f->out)); /* Not back. */
    CHECK(f->picker->wants[f->picker->queue[0]].priority == DP_PRIORITY_ROUND);
    CHECK(f->picker->n_wanted == 2);
    fetcher_close(f);
}

/* After so long a liar that nobody else stands in for is asked once more; the time is set once. */
static void a_pardon_is_planned_for_a_liar_where_no_other_is_said_to_have_it(void **state)
{
    static const uint32_t waits[] = {5, 10, 20, 40, 80, 80};

    (void)state;
    fetcher *const f = fetcher_of(2);
    dp_want *const wanted = &f->picker->wants[0];
    want(f, DP_PRIORITY_ROUND);
    dp_want_set_bit(wanted->banned, 1, true);
    dp_picker_plan_pardon(f->picker, wanted, now_of(f));
    CHECK(wanted->pardon_at.us == 0); /* Nobody lied. */
    wanted->n_faults = 1;
    wanted->faults[0].member = 1;
    wanted->faults[0].bad = DP_BAD_CHUNKS_MAX;
    dp_want_set_bit(wanted->holders, 2, true);
    dp_picker_plan_pardon(f->picker, wanted, now_of(f));
    CHECK(wanted->pardon_at.us == 0); /* The other has it. */
    dp_want_set_bit(wanted->holders, 2, false);
    for (uint32_t i = 0; i < 6; i++) {
        wanted->pardon_at = (dp_time){0};
        wanted->pardons = i;
        dp_picker_plan_pardon(f->picker, wanted, now_of(f));
        CHECK(wanted->pardon_at.us == f->now + waits[i] * DP_SECOND);
        dp_picker_plan_pardon(f->picker, wanted, (dp_time){f->now + 3});
        CHECK(wanted->pardon_at.us == f->now + waits[i] * DP_SECOND);
    }
    for (uint32_t other = 0; other < 2; other++) {
        wanted->faults[0].bad = DP_BAD_CHUNKS_MAX;
        dp_want_set_bit(wanted->banned, 1, true);
        dp_want_set_bit(wanted->holders, 2, other == 1);
        wanted->pardons = 0;
        wanted->pardon_at = now_of(f);
        dp_picker_pardon(f->picker, wanted);
        CHECK(wanted->pardon_at.us == 0 && wanted->pardons == 1);
        CHECK(dp_want_bit(wanted->banned, 1) == (other == 1));
        CHECK(wanted->faults[0].bad == DP_BAD_CHUNKS_MAX - (other == 1 ? 0 : 1));
    }
    dp_picker_cancel(f->picker, now_of(f), &f->root, &f->out);
    fetcher_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_bad_chunks_end_the_trust_in_a_holder),
        cmocka_unit_test(any_linked_peer_is_asked_when_no_holder_is_linked),
        cmocka_unit_test(a_liar_that_is_the_only_holder_is_asked_ever_more_rarely),
        cmocka_unit_test(a_possible_holder_does_not_keep_a_liar_from_being_asked_again),
        cmocka_unit_test(silence_about_info_moves_on_to_the_next_holder),
        cmocka_unit_test(silence_costs_no_more_for_the_second_than_for_the_first),
        cmocka_unit_test(a_holder_that_lacks_it_is_asked_again_after_a_while),
        cmocka_unit_test(a_peer_that_lacks_it_says_so_and_the_next_is_asked_at_once),
        cmocka_unit_test(a_peer_that_lacked_it_is_asked_again_when_the_last_other_link_ends),
        cmocka_unit_test(a_peer_that_lacked_it_is_asked_again_when_the_others_were_silent),
        cmocka_unit_test(a_peer_that_has_it_now_is_asked_at_once_unless_it_lied),
        cmocka_unit_test(a_known_holder_is_asked_before_possible_ones),
        cmocka_unit_test(those_that_only_may_have_it_are_tried_one_at_a_time),
        cmocka_unit_test(each_liar_is_counted_for_itself),
        cmocka_unit_test(one_liar_more_than_are_counted_has_no_second_chance),
        cmocka_unit_test(an_object_that_is_wanted_more_urgently_goes_before_others),
        cmocka_unit_test(a_pardon_is_planned_for_a_liar_where_no_other_is_said_to_have_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
