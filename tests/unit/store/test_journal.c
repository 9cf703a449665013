#include "tests/unit/store/shelf.h"

#include "store/journal.h"
#include "store/peers.h"

enum { SMALL = 3000 };

static dp_pending_row pending_of(shelf *s, uint64_t t, uint64_t seed)
{
    dp_pending_row pending = {.t = t, .base = name_of(t), .tokens = 4096, .steps = 30};
    pending.root = put_noise(s->store, seed, SMALL, DP_PIN_PENDING, t);
    pending.a_root = put_noise(s->store, seed + 1, SMALL, DP_PIN_PENDING, t);
    return pending;
}

static void the_pending_publication_replaces_the_earlier_and_its_objects(void **state)
{
    (void)state;
    const dp_hash run = pin_of(DP_PIN_PENDING, 0).run;
    dp_pending_row got;
    shelf s;
    shelf_open(&s);
    CHECK_STATUS(dp_pending_load(s.store, &run, &got), DP_NOTFOUND);
    const dp_pending_row first = pending_of(&s, 1, 10);
    CHECK_OK(dp_pending_save(s.store, &run, &first));
    const dp_pending_row second = pending_of(&s, 2, 20);
    CHECK_OK(dp_pending_save(s.store, &run, &second));
    shelf_reopen(&s);
    CHECK_OK(dp_pending_load(s.store, &run, &got));
    assert_memory_equal(&got, &second, sizeof got);
    CHECK(holds_noise(s.store, &second.a_root, 21, SMALL));
    CHECK_STATUS(dp_object_verify(s.store, &first.root), DP_NOTFOUND);
    CHECK_OK(dp_pending_delete(s.store, &run));
    CHECK_OK(dp_object_collect(s.store, NULL));
    CHECK_STATUS(dp_object_verify(s.store, &second.a_root), DP_NOTFOUND);
    shelf_close(&s);
}

static void one_round_has_one_publication(void **state)
{
    (void)state;
    const dp_hash run = pin_of(DP_PIN_PENDING, 0).run;
    shelf s;
    shelf_open(&s);
    const dp_pending_row first = pending_of(&s, 1, 10);
    dp_pending_row other = pending_of(&s, 1, 20);
    CHECK_OK(dp_pending_save(s.store, &run, &first));
    CHECK_OK(dp_pending_save(s.store, &run, &first));
    CHECK_STATUS(dp_pending_save(s.store, &run, &other), DP_EXISTS);
    other.root = name_of(3);
    other.t = 2;
    CHECK_STATUS(dp_pending_save(s.store, &run, &other), DP_NOTFOUND);
    shelf_close(&s);
}

static void settling_saves_the_feedback_and_ends_the_pending_at_once(void **state)
{
    (void)state;
    const dp_hash run = pin_of(DP_PIN_PENDING, 0).run;
    dp_pending_row got;
    dp_feedback_row feedback = {.tag = 1, .root = name_of(9)};
    dp_feedback_row loaded;
    shelf s;
    shelf_open(&s);
    const dp_pending_row pending = pending_of(&s, 1, 10);
    CHECK_OK(dp_pending_save(s.store, &run, &pending));
    CHECK_STATUS(dp_pending_settle(s.store, &run, &feedback), DP_NOTFOUND);
    CHECK_OK(dp_pending_load(s.store, &run, &got));
    feedback.root = put_noise(s.store, 30, SMALL, DP_PIN_PENDING, 1);
    CHECK_OK(dp_pending_settle(s.store, &run, &feedback));
    shelf_reopen(&s);
    CHECK_STATUS(dp_pending_load(s.store, &run, &got), DP_NOTFOUND);
    CHECK_OK(dp_feedback_load(s.store, &run, &loaded));
    assert_memory_equal(&loaded, &feedback, sizeof loaded);
    CHECK(holds_noise(s.store, &feedback.root, 30, SMALL));
    CHECK_OK(dp_feedback_delete(s.store, &run));
    CHECK_STATUS(dp_feedback_load(s.store, &run, &loaded), DP_NOTFOUND);
    shelf_close(&s);
}

static dp_exchange_row exchange_of(shelf *s, uint8_t id)
{
    dp_exchange_row row;
    memset(&row, 0, sizeof row);
    memset(row.id, id, sizeof row.id);
    row.peer = name_of(id);
    row.role = DP_JOURNAL_DECIDER;
    row.w_own = UINT64_MAX;
    row.w_other = 5;
    row.own_incarnation = UINT64_MAX - 1;
    row.base = name_of(4);
    row.own_root = put_noise(s->store, id, SMALL, DP_PIN_EXCHANGE, 0);
    row.other_root = put_noise(s->store, id + 100U, SMALL, DP_PIN_EXCHANGE, 0);
    snprintf(row.sum_before, sizeof row.sum_before, "sum=%d", id);
    return row;
}

static void an_exchange_in_doubt_is_found_after_a_restart(void **state)
{
    (void)state;
    const dp_hash run = pin_of(DP_PIN_EXCHANGE, 0).run;
    dp_exchange_row list[4];
    uint32_t count = 0;
    shelf s;
    shelf_open(&s);
    dp_exchange_row one = exchange_of(&s, 1);
    dp_exchange_row two = exchange_of(&s, 2);
    CHECK_OK(dp_exchange_save(s.store, &run, &one));
    CHECK_OK(dp_exchange_save(s.store, &run, &two));
    one.state = DP_JOURNAL_COMMITTED;
    CHECK_OK(dp_exchange_save(s.store, &run, &one));
    two.state = DP_JOURNAL_ABORTED;
    CHECK_OK(dp_exchange_save(s.store, &run, &two));
    shelf_reopen(&s);
    CHECK_OK(dp_exchange_unfinished(s.store, &run, list, 4, &count));
    assert_int_equal(count, 1);
    assert_memory_equal(&list[0], &one, sizeof one);
    CHECK(holds_noise(s.store, &one.other_root, 101, SMALL));
    CHECK_STATUS(dp_object_verify(s.store, &two.own_root), DP_NOTFOUND);
    CHECK_STATUS(dp_exchange_unfinished(s.store, &run, list, 0, &count), DP_TOOBIG);
    CHECK_OK(dp_exchange_last(s.store, &run, list, 4, &count));
    CHECK(count == 2 && list[0].id[0] == 2);
    shelf_close(&s);
}

static void a_decided_exchange_does_not_change_its_mind(void **state)
{
    (void)state;
    const dp_hash run = pin_of(DP_PIN_EXCHANGE, 0).run;
    shelf s;
    shelf_open(&s);
    dp_exchange_row row = exchange_of(&s, 1);
    row.state = DP_JOURNAL_COMMITTED;
    CHECK_OK(dp_exchange_save(s.store, &run, &row));
    row.state = DP_JOURNAL_ABORTED;
    CHECK_STATUS(dp_exchange_save(s.store, &run, &row), DP_BADARG);
    row.state = DP_JOURNAL_PREPARED;
    CHECK_STATUS(dp_exchange_save(s.store, &run, &row), DP_BADARG);
    row.state = DP_JOURNAL_DONE;
    CHECK_OK(dp_exchange_save(s.store, &run, &row));
    row.state = DP_JOURNAL_COMMITTED;
    CHECK_STATUS(dp_exchange_save(s.store, &run, &row), DP_BADARG);
    memset(row.sum_after, 'x', sizeof row.sum_after);
    CHECK_STATUS(dp_exchange_save(s.store, &run, &row), DP_BADARG);
    shelf_close(&s);
}

static void the_event_journal_is_bounded_and_its_ids_grow(void **state)
{
    (void)state;
    enum { BATCH = 5000 };
    dp_journal_event *events = calloc(BATCH, sizeof *events);
    dp_journal_event got[3];
    uint32_t count = 0;
    assert_non_null(events);
    shelf s;
    shelf_open(&s);
    for (int batch = 0; batch < 3; batch++) {
        for (uint32_t i = 0; i < BATCH; i++) {
            events[i].round = (uint64_t)batch;
            snprintf(events[i].name, sizeof events[i].name, "round.commit");
            snprintf(events[i].text, sizeof events[i].text, "i=%u", (unsigned)i);
        }
        CHECK_OK(dp_journal_append(s.store, events, BATCH));
    }
    CHECK_OK(dp_journal_read(s.store, 0, got, 3, &count));
    CHECK(count == 3 && got[0].id == 3 * BATCH - DP_JOURNAL_EVENTS_MAX + 1);
    CHECK_OK(dp_journal_tail(s.store, got, 3, &count));
    CHECK(count == 3 && got[2].id == 3 * BATCH && got[2].round == 2);
    assert_string_equal(got[2].text, "i=4999");
    CHECK_OK(dp_journal_read(s.store, 3 * BATCH, got, 3, &count));
    assert_int_equal(count, 0);
    memset(events[0].name, 'x', sizeof events[0].name);
    CHECK_STATUS(dp_journal_append(s.store, events, 1), DP_BADARG);
    free(events);
    shelf_close(&s);
}

static void counters_add_up_and_stop_at_the_top(void **state)
{
    (void)state;
    dp_counter_row amounts[] = {{"rounds", 2}, {"bytes", INT64_MAX}};
    dp_counter_row list[2];
    uint32_t count = 0;
    uint64_t value = 9;
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_counter_get(s.store, "rounds", &value));
    assert_int_equal(value, 0);
    CHECK_OK(dp_counter_add(s.store, amounts, 2));
    CHECK_OK(dp_counter_add(s.store, amounts, 2));
    CHECK_OK(dp_counter_list(s.store, list, 2, &count));
    CHECK(count == 2 && list[0].value == INT64_MAX && list[1].value == 4);
    CHECK_STATUS(dp_counter_list(s.store, list, 1, &count), DP_TOOBIG);
    amounts[0].value = UINT64_MAX;
    CHECK_STATUS(dp_counter_add(s.store, amounts, 1), DP_TOOBIG);
    shelf_close(&s);
}

static void peers_are_remembered_up_to_a_limit(void **state)
{
    (void)state;
    static dp_peer_row list[4];
    dp_peer_row peer;
    uint32_t count = 0;
    shelf s;
    shelf_open(&s);
    memset(&peer, 0, sizeof peer);
    for (uint64_t i = 0; i < 20; i++) {
        peer.id = name_of(i);
        peer.card_bytes = (uint32_t)i;
        peer.last_ok_ms = i;
        snprintf(peer.addresses, sizeof peer.addresses, "10.0.0.%u:7000", (unsigned)i);
        CHECK_OK(dp_peer_save(s.store, &peer));
    }
    CHECK_OK(dp_peer_list(s.store, list, 4, &count));
    CHECK(count == 4 && list[0].last_ok_ms == 19 && list[0].card_bytes == 19);
    assert_string_equal(list[0].addresses, "10.0.0.19:7000");
    CHECK_OK(dp_peer_forget(s.store, &peer.id));
    CHECK_STATUS(dp_peer_load(s.store, &peer.id, &peer), DP_NOTFOUND);
    memset(peer.addresses, 'x', sizeof peer.addresses);
    CHECK_STATUS(dp_peer_save(s.store, &peer), DP_BADARG);
    shelf_close(&s);
}

static void a_token_is_used_by_so_many_nodes_and_no_more(void **state)
{
    (void)state;
    const dp_hash token = name_of(1);
    const dp_hash nodes[] = {name_of(2), name_of(3), name_of(4)};
    uint32_t uses = 0;
    shelf s;
    shelf_open(&s);
    CHECK_OK(dp_invite_use(s.store, &token, &nodes[0], 2));
    CHECK_OK(dp_invite_use(s.store, &token, &nodes[1], 2));
    CHECK_OK(dp_invite_use(s.store, &token, &nodes[0], 2));
    shelf_reopen(&s);
    CHECK_STATUS(dp_invite_use(s.store, &token, &nodes[2], 2), DP_EXPIRED);
    CHECK_OK(dp_invite_uses(s.store, &token, &uses));
    assert_int_equal(uses, 2);
    shelf_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pending_publication_replaces_the_earlier_and_its_objects),
        cmocka_unit_test(one_round_has_one_publication),
        cmocka_unit_test(settling_saves_the_feedback_and_ends_the_pending_at_once),
        cmocka_unit_test(an_exchange_in_doubt_is_found_after_a_restart),
        cmocka_unit_test(a_decided_exchange_does_not_change_its_mind),
        cmocka_unit_test(the_event_journal_is_bounded_and_its_ids_grow),
        cmocka_unit_test(counters_add_up_and_stop_at_the_top),
        cmocka_unit_test(peers_are_remembered_up_to_a_limit),
        cmocka_unit_test(a_token_is_used_by_so_many_nodes_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
