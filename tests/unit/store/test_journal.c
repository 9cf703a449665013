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
        cmocka_unit_test(peers_are_remembered_up_to_a_limit),
    };
    tempdir_in_memory(); /* Many syncs; test_db stays on a disk, and waits for its own. */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
