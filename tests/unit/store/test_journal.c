#include "tests/unit/store/shelf.h"

#include "store/journal.h"
#include "store/peers.h"

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
    CHECK_OK(dp_journal_back(s.store, UINT64_MAX, got, 3, &count));
    CHECK(count == 3 && got[2].id == 3 * BATCH && got[2].round == 2);
    assert_string_equal(got[2].text, "i=4999");
    CHECK_OK(dp_journal_read(s.store, 3 * BATCH, got, 3, &count));
    assert_int_equal(count, 0);
    memset(events[0].name, 'x', sizeof events[0].name);
    CHECK_STATUS(dp_journal_append(s.store, events, 1), DP_BADARG);
    free(events);
    shelf_close(&s);
}

static void ids_that_are_given_grow_with_gaps_and_are_not_used_again(void **state)
{
    dp_journal_event list[4] = {{.id = 7, .name = "a"}, {.id = 4000000, .name = "b"}};
    dp_journal_event got[4];
    uint32_t count = 0;
    uint64_t last = 1;
    shelf s;
    (void)state;
    shelf_open(&s);
    CHECK_OK(dp_journal_last(s.store, &last));
    assert_int_equal(last, 0);
    list[1].peer = name_of(3);
    CHECK_OK(dp_journal_append(s.store, list, 2));
    CHECK_OK(dp_journal_append(s.store, list, 2)); /* Those are there. */
    list[0].id = 0;
    CHECK_OK(dp_journal_append(s.store, list, 1));
    CHECK_OK(dp_journal_last(s.store, &last));
    assert_int_equal(last, 4000001);
    CHECK_OK(dp_journal_read(s.store, 7, got, 4, &count));
    CHECK(count == 2 && got[0].id == 4000000 && got[1].id == 4000001);
    CHECK(dp_hash_equal(&got[0].peer, &list[1].peer) && dp_hash_is_zero(&got[1].peer));
    assert_string_equal(got[0].name, "b");
    CHECK_OK(dp_journal_back(s.store, 4000000, got, 4, &count));
    CHECK(count == 1 && got[0].id == 7);
    CHECK_OK(dp_journal_back(s.store, UINT64_MAX, got, 2, &count));
    CHECK(count == 2 && got[0].id == 4000000);
    snprintf(list[0].name, sizeof list[0].name, "a name");
    CHECK_STATUS(dp_journal_append(s.store, list, 1), DP_BADARG);
    shelf_close(&s);
}

static void gaps_and_restarts_do_not_change_how_many_are_kept(void **state)
{
    enum { BATCH = 1000, GAP = 500000 };
    dp_journal_event *events = calloc(BATCH, sizeof *events);
    dp_journal_event got[2];
    uint32_t count = 0;
    (void)state;
    assert_non_null(events);
    shelf s;
    shelf_open(&s);
    for (uint32_t batch = 0; batch < 13; batch++) {
        for (uint32_t i = 0; i < BATCH; i++) {
            events[i].id = 1 + batch * GAP + i;
            snprintf(events[i].name, sizeof events[i].name, "x");
        }
        CHECK_OK(dp_journal_append(s.store, events, BATCH));
        if (batch % 4 == 0) {
            shelf_reopen(&s);
        }
    }
    CHECK_OK(dp_journal_read(s.store, 0, got, 2, &count));
    CHECK(count == 2 && got[0].id == 1 + 3 * GAP);
    free(events);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_event_journal_is_bounded_and_its_ids_grow),
        cmocka_unit_test(ids_that_are_given_grow_with_gaps_and_are_not_used_again),
        cmocka_unit_test(gaps_and_restarts_do_not_change_how_many_are_kept),
        cmocka_unit_test(peers_are_remembered_up_to_a_limit),
    };
    tempdir_in_memory(); /* Many syncs; test_db stays on a disk, and waits for its own. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
