#include <stdlib.h>

#include "store/journal.h"
#include "tests/unit/daemon/house.h"

static dp_peer peer_of(uint8_t number)
{
    dp_peer peer = {{0}};
    memset(peer.bytes, number, sizeof peer.bytes);
    return peer;
}

static const char *last_text(const dp_event_log *event_log)
{
    return dp_event_log_entry_at(event_log, dp_event_log_entries(event_log) - 1)->text;
}

static void the_ring_keeps_the_last_entries_in_order(void **state)
{
    struct house house;
    (void)state;
    house_open(&house);
    dp_event_log *event_log = house.daemon.event_log;
    CHECK(dp_event_log_entry_at(event_log, 0) == NULL && dp_event_log_entries(event_log) == 0);
    for (int i = 1; i <= DP_EVENT_LOG_ENTRIES_MAX + 5; i++) {
        dp_event_log_add(event_log, DP_LOG_DEBUG, "test.entry", 0, NULL, "entry %d", i);
    }
    assert_int_equal(dp_event_log_entries(event_log), DP_EVENT_LOG_ENTRIES_MAX);
    assert_int_equal(dp_event_log_entry_at(event_log, 0)->id, 6);
    assert_string_equal(dp_event_log_entry_at(event_log, 0)->text, "entry 6");
    assert_int_equal(dp_event_log_entry_at(event_log, DP_EVENT_LOG_ENTRIES_MAX - 1)->id,
                     DP_EVENT_LOG_ENTRIES_MAX + 5);
    CHECK(dp_event_log_entry_at(event_log, DP_EVENT_LOG_ENTRIES_MAX) == NULL);
    house_close(&house);
}

static void long_texts_are_cut_and_quotes_do_not_break_a_log_line(void **state)
{
    struct house house;
    const dp_peer peer = peer_of(3);
    (void)state;
    house_open(&house);
    dp_event_log *event_log = house.daemon.event_log;
    dp_event_log_add(event_log, DP_LOG_INFO, "test.a_name_that_is_longer_than_forty_characters", 7,
                     &peer, "%0500d", 1);
    assert_int_equal(strlen(last_text(event_log)), DP_EVENT_LOG_TEXT_MAX - 1);
    assert_int_equal(strlen(dp_event_log_entry_at(event_log, 0)->name), DP_EVENT_LOG_NAME_MAX - 1);
    CHECK(dp_peer_equal(&dp_event_log_entry_at(event_log, 0)->peer, &peer));
    dp_event_log_add(event_log, DP_LOG_INFO, "test.quote", 0, NULL, "%s",
                     "a\" evt=forged\nlvl=error");
    CHECK(house_logged(&house, "msg=\"a\\\" evt=forged?lvl=error\""));
    house_close(&house);
}

static void every_note_becomes_a_sentence(void **state)
{
    struct house house;
    (void)state;
    house_open(&house);
    dp_event_log *event_log = house.daemon.event_log;
    for (int code = 1; code < DP_NOTE_CODE_COUNT; code++) {
        const dp_note note = {.code = (dp_note_code)code,
                              .round = 9,
                              .peer = peer_of(5),
                              .a = 1,
                              .b = 2,
                              .cause = "a cause"};
        dp_event_log_note(event_log, &note, "bob");
        const dp_event_log_entry *entry =
            dp_event_log_entry_at(event_log, dp_event_log_entries(event_log) - 1);
        CHECK(entry->text[0] != '\0' && entry->round == 9 && entry->code == (dp_note_code)code);
        assert_string_equal(entry->name, dp_note_name((dp_note_code)code));
    }
    house_close(&house);
}

static void a_note_names_its_peer_by_name_or_by_id(void **state)
{
    struct house house;
    char id[DP_PEER_TEXT_MAX];
    char wanted[128];
    const dp_peer peer = peer_of(5);
    dp_note note = {.code = DP_NOTE_STRAGGLER, .round = 9, .peer = peer, .cause = "not ready"};
    (void)state;
    house_open(&house);
    dp_event_log *event_log = house.daemon.event_log;
    dp_peer_text(&peer, id);
    dp_event_log_note(event_log, &note, "bob");
    snprintf(wanted, sizeof wanted, "round 9 does not wait for bob (%s): not ready", id);
    assert_string_equal(last_text(event_log), wanted);
    dp_event_log_note(event_log, &note, "");
    snprintf(wanted, sizeof wanted, "round 9 does not wait for %s: not ready", id);
    assert_string_equal(last_text(event_log), wanted);
    dp_event_log_note(event_log, &note, "a name of many more characters than anybody could want");
    CHECK(strstr(last_text(event_log), id) != NULL);
    note.peer = (dp_peer){{0}};
    dp_event_log_note(event_log, &note, NULL);
    assert_string_equal(last_text(event_log),
                        "round 9 does not wait for an unknown peer: not ready");
    house_close(&house);
}

static void let_go_work_is_told_as_a_share(void **state)
{
    struct house house;
    dp_note note = {.code = DP_NOTE_DISCARDED, .round = 9, .a = 10427, .cause = "lambda"};
    (void)state;
    house_open(&house);
    dp_event_log_note(house.daemon.event_log, &note, NULL);
    assert_string_equal(
        last_text(house.daemon.event_log),
        "discarded 15.9 % of the unaveraged work: work ages with the rounds that its node missed");
    note.a = 65536;
    dp_event_log_note(house.daemon.event_log, &note, NULL);
    CHECK(strncmp(last_text(house.daemon.event_log), "discarded 100.0 % of the", 24) == 0);
    house_close(&house);
}

static void a_cause_in_one_word_becomes_a_sentence(void **state)
{
    struct house house;
    dp_note note = {.code = DP_NOTE_CLOSED, .round = 9, .a = 2, .b = 3, .cause = "grace"};
    (void)state;
    house_open(&house);
    dp_event_log_note(house.daemon.event_log, &note, NULL);
    assert_string_equal(last_text(house.daemon.event_log),
                        "round 9 closes with 2 of 3: enough are ready, and the grace for "
                        "the others has ended");
    note = (dp_note){.code = DP_NOTE_VOTERS, .round = 9, .a = 1, .b = 3, .cause = ""};
    dp_event_log_note(house.daemon.event_log, &note, NULL);
    assert_string_equal(last_text(house.daemon.event_log), "voters 1 -> 3");
    house_close(&house);
}

static bool nothing_waits(void *context)
{
    return dp_store_thread_waiting(context) == 0;
}

static void entries_reach_the_journal(void **state)
{
    struct house house;
    dp_journal_event *events = calloc(200, sizeof *events);
    uint32_t count = 0;
    (void)state;
    assert_non_null(events);
    house_open(&house);
    for (int i = 0; i < 150; i++) {
        dp_event_log_add(house.daemon.event_log, i % 3 == 0 ? DP_LOG_DEBUG : DP_LOG_INFO,
                         "test.entry", (uint64_t)i, NULL, "entry %d", i);
    }
    dp_event_log_flush(house.daemon.event_log);
    turn_until(&house.loop, nothing_waits, house.daemon.store_thread);
    CHECK_OK(dp_journal_back(house.shelf.store, UINT64_MAX, events, 200, &count));
    assert_int_equal(count, 100); /* without those at debug level */
    assert_string_equal(events[0].text, "entry 1");
    assert_string_equal(events[99].text, "entry 149");
    assert_int_equal(events[99].round, 149);
    free(events);
    house_close(&house);
}

struct ear {
    unsigned n_rounds;
    uint64_t last;
};

static void hear_entry(void *context, const dp_event_log_entry *entry)
{
    (void)context;
    (void)entry;
}

static void hear_round(void *context, const dp_event_log_round *round)
{
    struct ear *ear = context;
    ear->n_rounds++;
    ear->last = round->round;
}

static dp_event_log_round row_of(uint64_t round, uint64_t time_ms)
{
    return (dp_event_log_round){
        .kind = DP_EVENT_LOG_SYNC, .round = round, .time_ms = time_ms, .live = true};
}

static void phases_reach_the_row_of_their_round_before_and_after_it_is_added(void **state)
{
    struct house house;
    dp_event_log_round row = row_of(20, 1000);
    uint64_t ms = 0;
    (void)state;
    house_open(&house);
    dp_event_log *const event_log = house.daemon.event_log;
    dp_event_log_held(event_log, 20, 7000); /* It was not opened here. */
    dp_event_log_phase(event_log, 20, DP_PHASE_OPENED);
    dp_event_log_phase(event_log, 20, DP_PHASE_PUBLISHED);
    dp_event_log_held(event_log, 20, 7000);
    dp_event_log_phase(event_log, 21, DP_PHASE_OPENED);
    dp_event_log_round_add(event_log, &row);
    const dp_event_log_round *const kept = dp_event_log_round_find(event_log, 20);
    CHECK(kept->phases.opened_ms >= 1000 && dp_phases_ms(&kept->phases, DP_PHASE_HELD, &ms) &&
          ms == 7);
    CHECK(dp_phases_ms(&kept->phases, DP_PHASE_PUBLISHED, &ms));
    CHECK(!dp_phases_ms(&kept->phases, DP_PHASE_APPLIED, &ms));
    dp_event_log_phase(event_log, 20, DP_PHASE_APPLIED);
    CHECK(dp_phases_ms(&kept->phases, DP_PHASE_APPLIED, &ms));
    for (uint64_t round = 21; round < 21 + DP_EVENT_LOG_PHASES_MAX; round++) {
        dp_event_log_phase(event_log, round, DP_PHASE_OPENED);
    }
    dp_event_log_phase(event_log, 20, DP_PHASE_DECIDED); /* Its place is taken. */
    CHECK(!dp_phases_ms(&kept->phases, DP_PHASE_DECIDED, &ms));
    row = row_of(5, 500);
    dp_event_log_round_add(event_log, &row);
    CHECK(dp_event_log_round_find(event_log, 5)->phases.opened_ms == 0);
    row = row_of(22, 500);
    row.live = false; /* From the chain. */
    dp_event_log_round_add(event_log, &row);
    CHECK(dp_event_log_round_find(event_log, 22)->phases.opened_ms == 0);
    house_close(&house);
}

static void the_last_round_with_all_phases_is_found_behind_those_under_way(void **state)
{
    struct house house;
    dp_phase_times times;
    (void)state;
    house_open(&house);
    dp_event_log *const event_log = house.daemon.event_log;
    CHECK(dp_event_log_round_phased(event_log) == NULL);
    for (uint64_t round = 1; round <= 3; round++) {
        const dp_event_log_round row = row_of(round, 1000 * round);
        dp_event_log_phase(event_log, round, DP_PHASE_OPENED);
        dp_event_log_phase(event_log, round, DP_PHASE_PUBLISHED);
        dp_event_log_held(event_log, round, 7000);
        dp_event_log_phase(event_log, round, DP_PHASE_DECIDED);
        dp_event_log_round_add(event_log, &row);
        CHECK(dp_event_log_round_phased(event_log) ==
              dp_event_log_round_find(event_log, round - 1));
        if (round < 3) {
            dp_event_log_phase(event_log, round, DP_PHASE_APPLIED);
        }
    }
    const dp_event_log_round *const found = dp_event_log_round_phased(event_log);
    CHECK(found->round == 2 && dp_phases_times(&found->phases, &times));
    for (uint64_t round = 4; round < 4 + DP_EVENT_LOG_PHASES_MAX; round++) {
        const dp_event_log_round row = row_of(round, 1000 * round); /* As an observer has them. */
        dp_event_log_round_add(event_log, &row);
    }
    CHECK(dp_event_log_round_phased(event_log) == NULL); /* It is the last one no more. */
    house_close(&house);
}

static void rounds_are_counted_once_by_who_was_in_them(void **state)
{
    struct house house;
    (void)state;
    house_open(&house);
    dp_event_log *const event_log = house.daemon.event_log;
    dp_event_log_round row = row_of(1, 1000);
    row.listed = row.active = 3;
    row.live = false; /* Of the chain, from before the start. */
    dp_event_log_round_add(event_log, &row);
    assert_int_equal(dp_event_log_turnout_of(event_log).all, 0);
    row = row_of(2, 2000);
    row.listed = row.active = 3;
    dp_event_log_round_add(event_log, &row);
    dp_event_log_round_add(event_log, &row);
    row = row_of(3, 3000);
    row.listed = 2;
    row.active = 3;
    dp_event_log_round_add(event_log, &row);
    row.kind = DP_EVENT_LOG_GOSSIP;
    dp_event_log_round_add(event_log, &row);
    const dp_event_log_turnout turnout = dp_event_log_turnout_of(event_log);
    CHECK(turnout.all == 1 && turnout.some == 1);
    house_close(&house);
}

static void rounds_are_kept_found_and_told_once_each(void **state)
{
    struct house house;
    struct ear ear = {0};
    dp_event_log *event_log = NULL;
    const dp_event_log_hooks hooks = {&ear, hear_entry, hear_round};
    (void)state;
    house_open(&house);
    CHECK_OK(dp_event_log_open(&event_log, &house.loop, house.daemon.store_thread, &hooks));
    CHECK(dp_event_log_round_at(event_log, 0) == NULL &&
          dp_event_log_round_find(event_log, 1) == NULL);
    for (uint64_t i = 1; i <= DP_EVENT_LOG_ROUNDS_MAX + 3; i++) {
        const dp_event_log_round row = row_of(i, 1000 * i);
        dp_event_log_round_add(event_log, &row);
    }
    assert_int_equal(ear.n_rounds, DP_EVENT_LOG_ROUNDS_MAX + 3);
    assert_int_equal(dp_event_log_rounds(event_log), DP_EVENT_LOG_ROUNDS_MAX);
    assert_int_equal(dp_event_log_round_at(event_log, 0)->round, 4);
    CHECK(dp_event_log_round_find(event_log, 3) == NULL);
    assert_int_equal(dp_event_log_round_find(event_log, 500)->duration_ms, 1000);

    dp_event_log_round old = row_of(600, 600 * 1000);
    old.live = false; /* read from the chain: nobody is told */
    dp_event_log_round_add(event_log, &old);
    assert_int_equal(ear.n_rounds, DP_EVENT_LOG_ROUNDS_MAX + 3);
    assert_int_equal(dp_event_log_rounds(event_log), DP_EVENT_LOG_ROUNDS_MAX);

    const uint64_t total = dp_event_log_rounds_total(event_log);
    dp_event_log_rounds_forget(event_log); /* Another run has a round 600 of its own. */
    CHECK(dp_event_log_rounds(event_log) == 0 && dp_event_log_round_at(event_log, 0) == NULL);
    const dp_event_log_round other = row_of(600, 2000 * 1000);
    dp_event_log_round_add(event_log, &other);
    assert_int_equal(dp_event_log_rounds_total(event_log), total + 1);
    assert_int_equal(dp_event_log_rounds(event_log), 1);
    assert_int_equal(dp_event_log_round_at(event_log, 0)->duration_ms, 0);
    dp_event_log_close(event_log);
    house_close(&house);
}

static void a_row_that_comes_again_keeps_how_long_its_round_took(void **state)
{
    struct house house;
    (void)state;
    house_open(&house);
    dp_event_log *event_log = house.daemon.event_log;
    const dp_event_log_round rows[] = {row_of(1, 1000), row_of(2, 3500), row_of(2, 3500),
                                       row_of(1, 1000), row_of(3, 4000)};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dp_event_log_round_add(event_log, &rows[i]);
    }
    assert_int_equal(dp_event_log_rounds(event_log), 3);
    assert_int_equal(dp_event_log_round_find(event_log, 1)->duration_ms, 0);
    assert_int_equal(dp_event_log_round_find(event_log, 2)->duration_ms, 2500);
    assert_int_equal(dp_event_log_round_find(event_log, 3)->duration_ms, 500);
    house_close(&house);
}

static void pair_exchanges_are_rows_of_their_own(void **state)
{
    struct house house;
    (void)state;
    house_open(&house);
    dp_event_log *event_log = house.daemon.event_log;
    const dp_event_log_round sync = row_of(5, 1000);
    const dp_event_log_round pair = {
        .kind = DP_EVENT_LOG_GOSSIP, .round = 5, .time_ms = 1500, .live = true};
    dp_event_log_round_add(event_log, &sync);
    dp_event_log_round_add(event_log, &pair);
    dp_event_log_round_add(event_log, &pair);
    assert_int_equal(dp_event_log_rounds(event_log), 3);
    CHECK(dp_event_log_round_find(event_log, 5)->kind == DP_EVENT_LOG_SYNC);
    house_close(&house);
}

static void the_state_root_of_a_round_can_be_filled_in_later(void **state)
{
    struct house house;
    (void)state;
    house_open(&house);
    const dp_event_log_round row = row_of(5, 1000);
    dp_event_log_round_add(house.daemon.event_log, &row);
    CHECK(dp_hash_is_zero(&dp_event_log_round_find(house.daemon.event_log, 5)->state_root));
    dp_event_log_round_find(house.daemon.event_log, 5)->state_root = name_of(5);
    const dp_hash wanted = name_of(5);
    CHECK(dp_hash_equal(&dp_event_log_round_at(house.daemon.event_log, 0)->state_root, &wanted));
    house_close(&house);
}

static void a_record_is_read_as_this_node_sees_it(void **state)
{
    static dp_record record;
    static dp_event_log_round row;
    const dp_peer self = peer_of(2);
    const dp_peer other = peer_of(9);
    (void)state;
    record = (dp_record){.round = 12, .slot = 14, .time_ms = 99, .n_listed = 3, .n_late = 1};
    for (uint8_t i = 0; i < 3; i++) {
        record.listed[i] = (dp_listed){.peer = peer_of((uint8_t)(i + 1)),
                                       .bytes = 100,
                                       .tokens = 1000U * (i + 1U),
                                       .steps = 5,
                                       .q = 7};
    }
    record.lines = DP_LINES_SLOW;
    record.listed[0].loss_micro = 4000000;
    record.listed[1].loss_micro = 1000000; /* the third does not know its loss */
    dp_event_log_round_of_record(&record, &self, &row);
    CHECK(row.kind == DP_EVENT_LOG_SYNC && row.round == 12 && row.slot == 14 && row.listed == 3 &&
          row.active == 4);
    CHECK(row.counted && !row.live && row.tokens == 6000 && row.bytes == 300 && row.n_peers == 3);
    assert_int_equal(row.loss_micro, 2000000);
    assert_int_equal(row.lines, DP_LINES_SLOW);
    CHECK(dp_peer_equal(&row.peers[1].peer, &self) && row.peers[1].tokens == 2000 &&
          row.peers[1].q == 7);
    dp_event_log_round_of_record(&record, &other, &row);
    CHECK(!row.counted);
    record = (dp_record){.round = 13};
    dp_event_log_round_of_record(&record, &self, &row);
    CHECK(row.loss_micro == 0 && row.listed == 0 && !row.counted);
}

static void the_record_names_left_out_members_and_the_closer_the_reasons(void **state)
{
    struct house house;
    static dp_record record;
    static dp_event_log_round row;
    const dp_peer self = peer_of(2);
    dp_note note = {
        .code = DP_NOTE_STRAGGLER, .round = 12, .peer = peer_of(7), .cause = "it does not answer"};
    (void)state;
    house_open(&house);
    dp_event_log *event_log = house.daemon.event_log;
    record = (dp_record){.round = 12, .slot = 14, .n_late = 12};
    for (uint8_t i = 0; i < 12; i++) {
        record.late[i] = peer_of((uint8_t)(6 + i));
    }
    dp_event_log_straggler(event_log, &note); /* Before its round is decided. */
    note.peer = peer_of(30);
    for (uint32_t i = 0; i < 2 * DP_EVENT_LOG_STRAGGLERS_MAX; i++) {
        dp_event_log_straggler(event_log, &note); /* In time for the record after all. */
    }
    dp_event_log_round_of_record(&record, &self, &row);
    dp_event_log_round_add(event_log, &row);
    const dp_event_log_round *kept = dp_event_log_round_find(event_log, 12);
    assert_int_equal(kept->n_left_out, DP_EVENT_LOG_LEFT_OUT_MAX);
    for (uint32_t i = 0; i < DP_EVENT_LOG_LEFT_OUT_MAX; i++) {
        CHECK(dp_peer_equal(&kept->left_out[i].peer, &record.late[i]));
        assert_string_equal(kept->left_out[i].cause,
                            i == 1 ? "it does not answer" : "its update was not ready in time");
    }
    record.round = 13; /* Of which nothing was said. */
    dp_event_log_round_of_record(&record, &self, &row);
    dp_event_log_round_add(event_log, &row);
    assert_string_equal(dp_event_log_round_find(event_log, 13)->left_out[1].cause,
                        "its update was not ready in time");
    house_close(&house);
}

static void a_closed_diary_takes_late_entries_quietly(void **state)
{
    (void)state;
    dp_event_log_add(NULL, DP_LOG_INFO, "test.late", 0, NULL, "too late");
    dp_event_log_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ring_keeps_the_last_entries_in_order),
        cmocka_unit_test(long_texts_are_cut_and_quotes_do_not_break_a_log_line),
        cmocka_unit_test(every_note_becomes_a_sentence),
        cmocka_unit_test(a_note_names_its_peer_by_name_or_by_id),
        cmocka_unit_test(let_go_work_is_told_as_a_share),
        cmocka_unit_test(a_cause_in_one_word_becomes_a_sentence),
        cmocka_unit_test(entries_reach_the_journal),
        cmocka_unit_test(phases_reach_the_row_of_their_round_before_and_after_it_is_added),
        cmocka_unit_test(the_last_round_with_all_phases_is_found_behind_those_under_way),
        cmocka_unit_test(rounds_are_counted_once_by_who_was_in_them),
        cmocka_unit_test(rounds_are_kept_found_and_told_once_each),
        cmocka_unit_test(a_row_that_comes_again_keeps_how_long_its_round_took),
        cmocka_unit_test(pair_exchanges_are_rows_of_their_own),
        cmocka_unit_test(the_state_root_of_a_round_can_be_filled_in_later),
        cmocka_unit_test(a_record_is_read_as_this_node_sees_it),
        cmocka_unit_test(the_record_names_left_out_members_and_the_closer_the_reasons),
        cmocka_unit_test(a_closed_diary_takes_late_entries_quietly),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
