#include <stdlib.h>

#include "store/journal.h"
#include "tests/unit/daemon/house.h"

static dp_peer peer_of(uint8_t number)
{
    dp_peer peer = {{0}};
    memset(peer.bytes, number, sizeof peer.bytes);
    return peer;
}

static const char *last_text(const dp_diary *diary)
{
    return dp_diary_entry_at(diary, dp_diary_entries(diary) - 1)->text;
}

static void the_ring_keeps_the_last_entries_in_order(void **state)
{
    struct house house;
    (void)state;
    house_open(&house);
    dp_diary *diary = house.daemon.diary;
    CHECK(dp_diary_entry_at(diary, 0) == NULL && dp_diary_entries(diary) == 0);
    for (int i = 1; i <= DP_DIARY_ENTRIES_MAX + 5; i++) {
        dp_diary_add(diary, DP_LOG_DEBUG, "test.entry", 0, NULL, "entry %d", i);
    }
    assert_int_equal(dp_diary_entries(diary), DP_DIARY_ENTRIES_MAX);
    assert_int_equal(dp_diary_entry_at(diary, 0)->id, 6);
    assert_string_equal(dp_diary_entry_at(diary, 0)->text, "entry 6");
    assert_int_equal(dp_diary_entry_at(diary, DP_DIARY_ENTRIES_MAX - 1)->id,
                     DP_DIARY_ENTRIES_MAX + 5);
    CHECK(dp_diary_entry_at(diary, DP_DIARY_ENTRIES_MAX) == NULL);
    house_close(&house);
}

static void long_texts_are_cut_and_quotes_do_not_break_a_log_line(void **state)
{
    struct house house;
    const dp_peer peer = peer_of(3);
    (void)state;
    house_open(&house);
    dp_diary *diary = house.daemon.diary;
    dp_diary_add(diary, DP_LOG_INFO, "test.a_name_that_is_longer_than_forty_characters", 7, &peer,
                 "%0500d", 1);
    assert_int_equal(strlen(last_text(diary)), DP_DIARY_TEXT_MAX - 1);
    assert_int_equal(strlen(dp_diary_entry_at(diary, 0)->name), DP_DIARY_NAME_MAX - 1);
    CHECK(dp_peer_equal(&dp_diary_entry_at(diary, 0)->peer, &peer));
    dp_diary_add(diary, DP_LOG_INFO, "test.quote", 0, NULL, "%s", "a\" evt=forged\nlvl=error");
    CHECK(house_logged(&house, "msg=\"a\\\" evt=forged?lvl=error\""));
    house_close(&house);
}

static void every_note_becomes_a_sentence(void **state)
{
    struct house house;
    (void)state;
    house_open(&house);
    dp_diary *diary = house.daemon.diary;
    for (int code = 1; code < DP_NOTE_CODE_COUNT; code++) {
        const dp_note note = {.code = (dp_note_code)code,
                              .round = 9,
                              .peer = peer_of(5),
                              .a = 1,
                              .b = 2,
                              .cause = "a cause"};
        dp_diary_note(diary, &note, "bob");
        const dp_diary_entry *entry = dp_diary_entry_at(diary, dp_diary_entries(diary) - 1);
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
    dp_diary *diary = house.daemon.diary;
    dp_peer_text(&peer, id);
    dp_diary_note(diary, &note, "bob");
    snprintf(wanted, sizeof wanted, "round 9 does not wait for bob (%s): not ready", id);
    assert_string_equal(last_text(diary), wanted);
    dp_diary_note(diary, &note, "");
    snprintf(wanted, sizeof wanted, "round 9 does not wait for %s: not ready", id);
    assert_string_equal(last_text(diary), wanted);
    dp_diary_note(diary, &note, "a name of many more characters than anybody could want");
    CHECK(strstr(last_text(diary), id) != NULL);
    note.peer = (dp_peer){{0}};
    dp_diary_note(diary, &note, NULL);
    assert_string_equal(last_text(diary), "round 9 does not wait for an unknown peer: not ready");
    house_close(&house);
}

static void let_go_work_is_told_as_a_share(void **state)
{
    struct house house;
    dp_note note = {.code = DP_NOTE_DISCARDED, .round = 9, .a = 10427, .cause = "lambda"};
    (void)state;
    house_open(&house);
    dp_diary_note(house.daemon.diary, &note, NULL);
    assert_string_equal(
        last_text(house.daemon.diary),
        "discarded 15.9 % of the unaveraged work: it aged while rounds were missed");
    note.a = 65536;
    dp_diary_note(house.daemon.diary, &note, NULL);
    CHECK(strncmp(last_text(house.daemon.diary), "discarded 100.0 % of the", 24) == 0);
    house_close(&house);
}

static void a_cause_in_one_word_becomes_a_sentence(void **state)
{
    struct house house;
    dp_note note = {.code = DP_NOTE_CLOSED, .round = 9, .a = 2, .b = 3, .cause = "grace"};
    (void)state;
    house_open(&house);
    dp_diary_note(house.daemon.diary, &note, NULL);
    assert_string_equal(last_text(house.daemon.diary),
                        "round 9 closes with 2 of 3: enough are ready, and the grace for "
                        "the others has ended");
    note.cause = "first";
    dp_diary_note(house.daemon.diary, &note, NULL);
    assert_string_equal(last_text(house.daemon.diary),
                        "round 9 closes with 2 of 3: the share of round.close_at is ready");
    note = (dp_note){.code = DP_NOTE_VOTERS, .round = 9, .a = 1, .b = 3, .cause = ""};
    dp_diary_note(house.daemon.diary, &note, NULL);
    assert_string_equal(last_text(house.daemon.diary), "voters 1 -> 3");
    house_close(&house);
}

static bool nothing_waits(void *context)
{
    return dp_saver_waiting(context) == 0;
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
        dp_diary_add(house.daemon.diary, i % 3 == 0 ? DP_LOG_DEBUG : DP_LOG_INFO, "test.entry",
                     (uint64_t)i, NULL, "entry %d", i);
    }
    dp_diary_flush(house.daemon.diary);
    turn_until(&house.loop, nothing_waits, house.daemon.saver);
    CHECK_OK(dp_journal_tail(house.shelf.store, events, 200, &count));
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

static void hear_entry(void *context, const dp_diary_entry *entry)
{
    (void)context;
    (void)entry;
}

static void hear_round(void *context, const dp_diary_round *round)
{
    struct ear *ear = context;
    ear->n_rounds++;
    ear->last = round->round;
}

static dp_diary_round row_of(uint64_t round, uint64_t time_ms)
{
    return (dp_diary_round){
        .kind = DP_DIARY_SYNC, .round = round, .time_ms = time_ms, .live = true};
}

static void rounds_are_kept_found_and_told_once_each(void **state)
{
    struct house house;
    struct ear ear = {0};
    dp_diary *diary = NULL;
    const dp_diary_hooks hooks = {&ear, hear_entry, hear_round};
    (void)state;
    house_open(&house);
    CHECK_OK(dp_diary_open(&diary, &house.loop, house.daemon.saver, &hooks));
    CHECK(dp_diary_round_at(diary, 0) == NULL && dp_diary_round_find(diary, 1) == NULL);
    for (uint64_t i = 1; i <= DP_DIARY_ROUNDS_MAX + 3; i++) {
        const dp_diary_round row = row_of(i, 1000 * i);
        dp_diary_round_add(diary, &row);
    }
    assert_int_equal(ear.n_rounds, DP_DIARY_ROUNDS_MAX + 3);
    assert_int_equal(dp_diary_rounds(diary), DP_DIARY_ROUNDS_MAX);
    assert_int_equal(dp_diary_round_at(diary, 0)->round, 4);
    CHECK(dp_diary_round_find(diary, 3) == NULL);
    assert_int_equal(dp_diary_round_find(diary, 500)->duration_ms, 1000);

    dp_diary_round old = row_of(600, 600 * 1000);
    old.live = false; /* read from the chain: nobody is told */
    dp_diary_round_add(diary, &old);
    assert_int_equal(ear.n_rounds, DP_DIARY_ROUNDS_MAX + 3);
    assert_int_equal(dp_diary_rounds(diary), DP_DIARY_ROUNDS_MAX);
    dp_diary_close(diary);
    house_close(&house);
}

static void a_row_that_comes_again_keeps_how_long_its_round_took(void **state)
{
    struct house house;
    (void)state;
    house_open(&house);
    dp_diary *diary = house.daemon.diary;
    const dp_diary_round rows[] = {row_of(1, 1000), row_of(2, 3500), row_of(2, 3500),
                                   row_of(1, 1000), row_of(3, 4000)};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dp_diary_round_add(diary, &rows[i]);
    }
    assert_int_equal(dp_diary_rounds(diary), 3);
    assert_int_equal(dp_diary_round_find(diary, 1)->duration_ms, 0);
    assert_int_equal(dp_diary_round_find(diary, 2)->duration_ms, 2500);
    assert_int_equal(dp_diary_round_find(diary, 3)->duration_ms, 500);
    house_close(&house);
}

static void pair_exchanges_are_rows_of_their_own(void **state)
{
    struct house house;
    (void)state;
    house_open(&house);
    dp_diary *diary = house.daemon.diary;
    const dp_diary_round sync = row_of(5, 1000);
    const dp_diary_round pair = {
        .kind = DP_DIARY_GOSSIP, .round = 5, .time_ms = 1500, .live = true};
    dp_diary_round_add(diary, &sync);
    dp_diary_round_add(diary, &pair);
    dp_diary_round_add(diary, &pair);
    assert_int_equal(dp_diary_rounds(diary), 3);
    CHECK(dp_diary_round_find(diary, 5)->kind == DP_DIARY_SYNC);
    house_close(&house);
}

static void the_state_root_of_a_round_can_be_filled_in_later(void **state)
{
    struct house house;
    (void)state;
    house_open(&house);
    const dp_diary_round row = row_of(5, 1000);
    dp_diary_round_add(house.daemon.diary, &row);
    CHECK(dp_hash_is_zero(&dp_diary_round_find(house.daemon.diary, 5)->state_root));
    dp_diary_round_find(house.daemon.diary, 5)->state_root = name_of(5);
    const dp_hash wanted = name_of(5);
    CHECK(dp_hash_equal(&dp_diary_round_at(house.daemon.diary, 0)->state_root, &wanted));
    house_close(&house);
}

static void a_record_is_read_as_this_node_sees_it(void **state)
{
    static dp_record record;
    static dp_diary_round row;
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
    dp_diary_round_of_record(&record, &self, &row);
    CHECK(row.kind == DP_DIARY_SYNC && row.round == 12 && row.slot == 14 && row.listed == 3 &&
          row.active == 4);
    CHECK(row.counted && !row.live && row.tokens == 6000 && row.bytes == 300 && row.n_peers == 3);
    assert_int_equal(row.loss_micro, 2000000);
    assert_int_equal(row.lines, DP_LINES_SLOW);
    CHECK(dp_peer_equal(&row.peers[1].peer, &self) && row.peers[1].tokens == 2000 &&
          row.peers[1].q == 7);
    dp_diary_round_of_record(&record, &other, &row);
    CHECK(!row.counted);
    record = (dp_record){.round = 13};
    dp_diary_round_of_record(&record, &self, &row);
    CHECK(row.loss_micro == 0 && row.listed == 0 && !row.counted);
}

static void who_was_left_out_is_told_by_the_record_and_why_by_who_closed_the_round(void **state)
{
    struct house house;
    static dp_record record;
    static dp_diary_round row;
    const dp_peer self = peer_of(2);
    dp_note note = {
        .code = DP_NOTE_STRAGGLER, .round = 12, .peer = peer_of(7), .cause = "not alive"};
    (void)state;
    house_open(&house);
    dp_diary *diary = house.daemon.diary;
    record = (dp_record){.round = 12, .slot = 14, .n_late = 12};
    for (uint8_t i = 0; i < 12; i++) {
        record.late[i] = peer_of((uint8_t)(6 + i));
    }
    dp_diary_straggler(diary, &note); /* Before its round is decided. */
    note.peer = peer_of(30);
    for (uint32_t i = 0; i < 2 * DP_DIARY_STRAGGLERS_MAX; i++) {
        dp_diary_straggler(diary, &note); /* In time for the record after all. */
    }
    dp_diary_round_of_record(&record, &self, &row);
    dp_diary_round_add(diary, &row);
    const dp_diary_round *kept = dp_diary_round_find(diary, 12);
    assert_int_equal(kept->n_left_out, DP_DIARY_LEFT_OUT_MAX);
    for (uint32_t i = 0; i < DP_DIARY_LEFT_OUT_MAX; i++) {
        CHECK(dp_peer_equal(&kept->left_out[i].peer, &record.late[i]));
        assert_string_equal(kept->left_out[i].cause, i == 1 ? "not alive" : "not ready in time");
    }
    record.round = 13; /* Of which nothing was said. */
    dp_diary_round_of_record(&record, &self, &row);
    dp_diary_round_add(diary, &row);
    assert_string_equal(dp_diary_round_find(diary, 13)->left_out[1].cause, "not ready in time");
    house_close(&house);
}

static void a_closed_diary_takes_late_entries_quietly(void **state)
{
    (void)state;
    dp_diary_add(NULL, DP_LOG_INFO, "test.late", 0, NULL, "too late");
    dp_diary_close(NULL);
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
        cmocka_unit_test(rounds_are_kept_found_and_told_once_each),
        cmocka_unit_test(a_row_that_comes_again_keeps_how_long_its_round_took),
        cmocka_unit_test(pair_exchanges_are_rows_of_their_own),
        cmocka_unit_test(the_state_root_of_a_round_can_be_filled_in_later),
        cmocka_unit_test(a_record_is_read_as_this_node_sees_it),
        cmocka_unit_test(who_was_left_out_is_told_by_the_record_and_why_by_who_closed_the_round),
        cmocka_unit_test(a_closed_diary_takes_late_entries_quietly),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
