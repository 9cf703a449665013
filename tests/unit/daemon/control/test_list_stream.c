/* THREADS_TEST. Lists of rounds and events: from the store and the event log together, in pages,
 * filtered, gone on with after a number, and followed. */
#include "daemon/control/list_stream.h"
#include "store/chain.h"
#include "tests/unit/daemon/bandwidth_limiter_kit.h"
#include "tests/unit/daemon/suspension_kit.h"

enum { MINUTE_MS = 60000, FIRST_ID = 5000, T0 = 1000000 };

bool dp_driver_clock(const dp_driver *driver, dp_wall_view *clock, char *text, size_t size)
{
    (void)driver;
    (void)clock;
    (void)text;
    (void)size;
    return false;
}

uint32_t dp_data_objects(const dp_driver *driver, uint32_t *here)
{
    (void)driver;
    (void)here;
    return 0;
}

static dp_peer peer_of(uint8_t number)
{
    return (dp_peer){{number}};
}

/* ---- what the store has ---- */

static dp_record record;

/* The test writes to the store itself: only while its thread does nothing. */
static void rest_store(void)
{
    while (dp_store_thread_waiting(desk.daemon.store_thread) > 0) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
}

/* The record of a slot, a minute after the one before: a round with two contributors, 1 and 2, and
 * so many members that were late, from 3 on; or without a round number the roster's. */
static void put_record(uint64_t slot, uint64_t round, uint32_t n_late)
{
    static uint8_t room[64 * 1024];
    dp_view bytes;
    memset(&record, 0, sizeof record);
    record.kind = round != 0 ? DP_RECORD_ROUND : DP_RECORD_CONFIG;
    record.has_config = round == 0;
    record.slot = slot;
    record.time_ms = T0 + slot * MINUTE_MS;
    record.round = round;
    record.n_listed = round != 0 ? 2 : 0;
    for (uint32_t i = 0; i < record.n_listed; i++) {
        record.listed[i].peer = peer_of((uint8_t)(i + 1));
        record.listed[i].steps = 1;
        record.listed[i].tokens = 10;
        record.listed[i].bytes = 100;
    }
    for (uint32_t i = 0; i < n_late; i++) {
        record.late[record.n_late++] = peer_of((uint8_t)(3 + i));
    }
    CHECK_OK(dp_record_encode(&record, room, sizeof room, &bytes));
    CHECK_OK(dp_record_decode(&record, bytes));
    const dp_chain_record row = {
        .slot = slot, .hash = dp_record_hash(bytes), .record = bytes, .cert = dp_view_text("cert")};
    rest_store();
    CHECK_OK(dp_chain_append(desk.shelf.store, &desk.driver->facts.run, &row));
}

/* As the driver does it when a record is written. */
static void add_row(uint64_t slot, uint64_t round, uint32_t n_late)
{
    dp_event_log_round row;
    put_record(slot, round, n_late);
    dp_event_log_round_of_record(&record, &desk.driver->self, &row);
    row.live = true;
    row.keep = 16;
    dp_event_log_round_add(desk.daemon.event_log, &row);
    dp_streams_on_entry(&desk.daemon, DP_STREAM_OF_ROUNDS);
}

static void add_exchange(uint64_t slot)
{
    const dp_event_log_round row = {.kind = DP_EVENT_LOG_GOSSIP,
                                    .slot = slot,
                                    .time_ms = T0 + slot * MINUTE_MS + 1,
                                    .partner = peer_of(2),
                                    .live = true};
    dp_event_log_round_add(desk.daemon.event_log, &row);
    dp_streams_on_entry(&desk.daemon, DP_STREAM_OF_ROUNDS);
}

/* Events of an earlier life, with ids from 1 on, a minute apart; each third is about peer 2. */
static void put_events(uint32_t n)
{
    rest_store();
    for (uint32_t i = 1; i <= n; i++) {
        dp_journal_event row = {.id = i, .time_ms = T0 + i * MINUTE_MS, .round = i / 10};
        row.peer.bytes[0] = i % 3 == 0 ? 2 : 0;
        snprintf(row.name, sizeof row.name, "old.event");
        snprintf(row.text, sizeof row.text, "old %u", i);
        CHECK_OK(dp_journal_append(desk.shelf.store, &row, 1));
    }
}

static void add_event(const dp_peer *peer, const char *text)
{
    dp_event_log_add(desk.daemon.event_log, DP_LOG_INFO, "new.event", 7, peer, "%s", text);
    dp_streams_on_entry(&desk.daemon, DP_STREAM_OF_EVENTS);
}

static void open_node(void)
{
    call_open();
    allowance_open();
    suspension_open();
    call_kit.has_manifest = true;
    call_kit.has_node = true;
    call_kit.view.running = true;
    call_kit.n_members = 12; /* Their ids are their numbers. */
    call_kit.view.node = (dp_node_view){.mode = DP_MODE_SYNC};
    desk.names[2] = "bob";
    desk.driver->self = peer_of(1);
    desk.daemon.identity.ed.public_key[0] = 1;
    dp_event_log_begin(desk.daemon.event_log, FIRST_ID);
}

/* Fifty slots: 10 changes the roster alone, so 11 decides round 10. The event log has the rounds
 * of slots 41 on. */
static void open_chain(void)
{
    open_node();
    for (uint64_t slot = 1; slot <= 40; slot++) {
        put_record(slot, slot == 10 ? 0 : slot - (slot > 10), slot % 5 == 0 ? 1 : 0);
    }
    for (uint64_t slot = 41; slot <= 50; slot++) {
        add_row(slot, slot - 1, slot % 5 == 0 ? 1 : 0);
    }
}

/* ---- what came ---- */

static const dp_pack_value *round_at(uint32_t index)
{
    return dp_pack_key(call_body_at(index), "round");
}

/* Were these rounds told, each once and in order, and then counted? */
static void check_rounds(uint64_t first, uint64_t last)
{
    call_wait();
    assert_int_equal(number_at(call_body(), "count"), last + 1 - first);
    assert_int_equal(call_kit.n_frames, last + 2 - first);
    for (uint64_t round = first; round <= last; round++) {
        assert_int_equal(number_at(round_at((uint32_t)(round - first)), "round"), round);
    }
}

static uint64_t id_at(uint32_t index)
{
    return number_at(dp_pack_key(call_body_at(index), "event"), "id");
}

static void check_ids(const uint64_t *ids, uint32_t n)
{
    call_wait();
    assert_int_equal(number_at(call_body(), "count"), n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(id_at(i), ids[i]);
    }
}

#define CHECK_IDS(...)                                                                             \
    check_ids((const uint64_t[]){__VA_ARGS__},                                                     \
              sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static uint64_t minute(uint64_t n)
{
    return T0 + n * MINUTE_MS;
}

/* ---- rounds ---- */

static void rounds_from_before_the_start_are_in_the_chain(void **state)
{
    (void)state;
    open_chain();
    CALL(dp_method_rounds, NUMBER("last", 1000));
    check_rounds(1, 49);
    const dp_pack_value *const old = round_at(1);
    assert_int_equal(number_at(old, "slot"), 2);
    assert_int_equal(number_at(old, "duration_ms"), MINUTE_MS);
    assert_int_equal(number_at(old, "time_ms"), minute(2));
    assert_true(flag_at(old, "counted") && dp_pack_key(old, "seq") == NULL);
    assert_null(dp_pack_key(round_at(0), "duration_ms")); /* The first. */
    assert_int_equal(number_at(round_at(9), "duration_ms"), 2 * MINUTE_MS);
    assert_int_equal(number_at(round_at(45), "keep"), 16); /* The event log knows more. */
    assert_int_equal(number_at(round_at(40), "seq"), FIRST_ID + 1);
    CALL(dp_method_rounds, NUMBER("last", 45));
    check_rounds(5, 49);
    CALL(dp_method_rounds, NUMBER("last", 3));
    check_rounds(47, 49);
    CALL_ALONE(dp_method_rounds);
    check_rounds(30, 49);
    CALL(dp_method_rounds, NUMBER("last", 0));
    assert_int_equal(number_at(call_body(), "count"), 0);
    call_close();
}

static void rounds_are_chosen_by_their_time(void **state)
{
    (void)state;
    open_chain();
    CALL(dp_method_rounds, NUMBER("since_ms", minute(30)));
    check_rounds(29, 49);
    CALL(dp_method_rounds, NUMBER("since_ms", minute(5)), NUMBER("until_ms", minute(9)));
    check_rounds(5, 8);
    CALL(dp_method_rounds, NUMBER("since_ms", minute(45)));
    check_rounds(44, 49);
    CALL(dp_method_rounds, NUMBER("until_ms", minute(4)));
    check_rounds(1, 3);
    CALL(dp_method_rounds, NUMBER("until_ms", minute(40)), NUMBER("last", 2));
    check_rounds(37, 38);
    CALL(dp_method_rounds, NUMBER("since_ms", minute(20)), NUMBER("until_ms", minute(47)),
         NUMBER("last", 10));
    check_rounds(36, 45);
    CALL(dp_method_rounds, NUMBER("since_ms", minute(99)));
    call_wait();
    assert_int_equal(number_at(call_body(), "count"), 0);
    CALL(dp_method_rounds, NUMBER("since_ms", 9), NUMBER("until_ms", 3));
    call_wait();
    assert_int_equal(number_at(call_body(), "count"), 0);
    call_close();
}

static void rounds_are_chosen_by_a_member_that_they_list_or_leave_out(void **state)
{
    (void)state;
    open_chain();
    CALL(dp_method_rounds, TEXT("peer", "bob"));
    check_rounds(1, 49);
    call_kit.members[3] = (dp_member_view){.in_roster = true};
    desk.names[3] = "eve";
    CALL(dp_method_rounds, TEXT("peer", "eve"));
    call_wait();
    assert_int_equal(number_at(call_body(), "count"), 9); /* Slots 5, 15, 20 to 50. */
    assert_int_equal(number_at(round_at(0), "slot"), 5);
    assert_int_equal(number_at(round_at(1), "slot"), 15);
    assert_int_equal(number_at(round_at(8), "slot"), 50);
    CALL(dp_method_rounds, TEXT("peer", "eve"), NUMBER("last", 4));
    call_wait();
    assert_int_equal(number_at(call_body(), "count"), 4);
    assert_int_equal(number_at(round_at(0), "slot"), 35);
    CALL(dp_method_rounds, TEXT("peer", "nobody"));
    assert_true(call_failed("E0120", 1));
    call_close();
}

static void a_member_that_a_row_has_no_room_for_is_found_in_its_record(void **state)
{
    (void)state;
    open_chain();
    add_row(51, 50, 10); /* Members 3 to 12; the row keeps 8. */
    add_row(52, 51, 10);
    desk.names[11] = "zoe";
    CALL(dp_method_rounds, TEXT("peer", "zoe"), FLAG("follow", true), NUMBER("last", 1));
    while (call_kit.n_frames < 1) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    assert_int_equal(number_at(round_at(0), "round"), 51);
    add_row(53, 52, 7);
    add_row(54, 53, 10);
    while (call_kit.n_frames < 2) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    add_row(55, 54, 10);
    while (call_kit.n_frames < 3) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    assert_int_equal(number_at(round_at(1), "round"), 53);
    assert_int_equal(number_at(round_at(2), "round"), 54);
    call_close();
}

static void a_list_of_rounds_goes_on_where_its_client_left_it(void **state)
{
    (void)state;
    open_chain();
    add_exchange(50);
    CALL(dp_method_rounds, NUMBER("after", 77), NUMBER("after_slot", 38)); /* Of an earlier life. */
    call_wait();
    assert_int_equal(number_at(call_body(), "count"), 13);
    assert_int_equal(number_at(round_at(0), "slot"), 39);
    assert_string_equal(text_at(round_at(12), "kind"), "gossip");
    CALL(dp_method_rounds, NUMBER("after", 77), NUMBER("after_slot", 12), FLAG("follow", true));
    while (call_kit.n_frames < 39) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    assert_int_equal(number_at(round_at(0), "slot"), 13);
    add_exchange(50);
    add_row(51, 50, 0);
    assert_int_equal(call_kit.n_frames, 41);
    assert_string_equal(text_at(round_at(39), "kind"), "gossip");
    const uint64_t seq = number_at(round_at(39), "seq");
    CALL(dp_method_rounds, NUMBER("after", seq), NUMBER("after_slot", 50));
    call_wait();
    assert_int_equal(number_at(call_body(), "count"), 1);
    assert_int_equal(number_at(round_at(0), "seq"), seq + 1);
    CALL(dp_method_rounds, NUMBER("after", seq)); /* A client that does not know slots. */
    call_wait();
    assert_int_equal(number_at(call_body(), "count"), 1);
    call_close();
}

static void rounds_of_a_chain_that_went_back_are_new(void **state)
{
    (void)state;
    open_node();
    for (uint64_t slot = 1; slot <= 3; slot++) {
        put_record(slot, slot, 0);
    }
    /* Of the life before, where the client saw eight slots. */
    CALL(dp_method_rounds, NUMBER("after", 77), NUMBER("after_slot", 8), FLAG("follow", true));
    rest_store();
    assert_int_equal(call_kit.n_frames, 0);
    for (uint64_t slot = 4; slot <= 10; slot++) {
        add_row(slot, slot, 0);
    }
    assert_int_equal(call_kit.n_frames, 7);
    assert_int_equal(number_at(round_at(0), "slot"), 4);
    const uint64_t seq = number_at(round_at(1), "seq");
    CALL(dp_method_rounds, NUMBER("after", seq), NUMBER("after_slot", 5));
    check_rounds(6, 10);
    CALL(dp_method_rounds, NUMBER("after", 0), NUMBER("after_slot", 8)); /* It saw records only. */
    check_rounds(4, 10);
    call_close();
}

static void a_list_of_rounds_ends_with_the_run(void **state)
{
    (void)state;
    open_chain();
    CALL(dp_method_rounds, NUMBER("last", 2), FLAG("follow", true));
    assert_int_equal(call_kit.n_frames, 2);
    desk.driver->facts.run.bytes[0] ^= 1;
    dp_streams_on_entry(&desk.daemon, DP_STREAM_OF_ROUNDS);
    CHECK(call_kit.n_errors == 1 && strcmp(call_kit.error.code, "E0110") == 0);
    call_close();
}

/* ---- events ---- */

static void events_from_before_the_start_are_in_the_journal(void **state)
{
    (void)state;
    open_node();
    put_events(300);
    add_event(NULL, "one");
    add_event(NULL, "two");
    CALL(dp_method_events, NUMBER("last", 2));
    CHECK_IDS(FIRST_ID, FIRST_ID + 1);
    CALL(dp_method_events, NUMBER("last", 4));
    CHECK_IDS(299, 300, FIRST_ID, FIRST_ID + 1);
    const dp_pack_value *event = dp_pack_key(call_body_at(0), "event");
    assert_string_equal(text_at(event, "name"), "old.event");
    assert_string_equal(text_at(event, "text"), "old 299");
    assert_int_equal(number_at(event, "round"), 29);
    CALL(dp_method_events, NUMBER("last", 1000));
    call_wait();
    assert_int_equal(number_at(call_body(), "count"), 302);
    assert_true(id_at(0) == 1 && id_at(299) == 300 && id_at(301) == FIRST_ID + 1);
    CALL(dp_method_events, NUMBER("since_ms", minute(298)), NUMBER("until_ms", minute(300)));
    CHECK_IDS(298, 299);
    CALL(dp_method_events, NUMBER("until_ms", minute(200)), NUMBER("last", 2));
    CHECK_IDS(198, 199);
    call_close();
}

static void events_are_chosen_by_the_peer_that_they_are_about(void **state)
{
    char text[64];
    char id[DP_PEER_TEXT_MAX];
    const dp_peer bob = peer_of(2);
    (void)state;
    open_node();
    put_events(30);
    dp_peer_text(&bob, id);
    snprintf(text, sizeof text, "refused by %s", id);
    add_event(NULL, text);
    add_event(NULL, "bob is only a word");
    add_event(&bob, "it went");
    CALL(dp_method_events, TEXT("peer", "bob"), NUMBER("since_ms", minute(22)));
    CHECK_IDS(24, 27, 30, FIRST_ID, FIRST_ID + 2);
    assert_string_equal(text_at(dp_pack_key(call_body_at(0), "event"), "peer"), id);
    CALL(dp_method_events, TEXT("peer", id), NUMBER("last", 3));
    CHECK_IDS(30, FIRST_ID, FIRST_ID + 2);
    CALL(dp_method_events, TEXT("peer", "carl"));
    assert_true(call_failed("E0120", 1));
    desk.daemon.driver = NULL;
    CALL(dp_method_events, TEXT("peer", "bob"));
    assert_true(call_failed("E0105", 75)); /* So the kit tells that there is no run. */
    desk.daemon.driver = desk.driver;
    call_close();
}

static void a_list_of_events_goes_on_where_its_client_left_it(void **state)
{
    (void)state;
    open_node();
    put_events(10);
    add_event(NULL, "one");
    CALL(dp_method_events, NUMBER("after", 8));
    CHECK_IDS(9, 10, FIRST_ID);
    CALL(dp_method_events, NUMBER("after", FIRST_ID));
    CHECK_IDS();
    add_event(NULL, "two");
    CALL(dp_method_events, NUMBER("after", FIRST_ID), FLAG("follow", true));
    assert_true(call_kit.n_frames == 1 && id_at(0) == FIRST_ID + 1);
    add_event(NULL, "three");
    assert_true(call_kit.n_frames == 2 && id_at(1) == FIRST_ID + 2);
    CALL(dp_method_events, NUMBER("after", UINT64_MAX - 1));
    CHECK_IDS();
    call_close();
}

static void a_client_that_reads_slowly_misses_nothing_that_the_journal_has(void **state)
{
    char text[32];
    const uint32_t n = DP_EVENT_LOG_ENTRIES_MAX + 300;
    (void)state;
    open_node();
    CALL(dp_method_events, FLAG("follow", true), NUMBER("last", 0));
    call_kit.waiting = DP_STREAM_WAITING + 1;
    for (uint32_t i = 0; i < n; i++) {
        snprintf(text, sizeof text, "entry %u", i);
        add_event(NULL, text);
    }
    assert_int_equal(call_kit.n_frames, 0);
    call_kit.waiting = 0;
    dp_streams_on_room(&desk.daemon, 1);
    while (call_kit.n_frames < n) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(id_at(i), FIRST_ID + i);
    }
    call_close();
}

static void a_page_waits_until_the_client_has_read(void **state)
{
    (void)state;
    open_chain();
    call_kit.waiting = DP_STREAM_WAITING + 1;
    CALL(dp_method_rounds, NUMBER("last", 1000));
    for (int i = 0; i < 20; i++) {
        uv_run(&desk.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(call_kit.n_frames, 0);
    call_kit.waiting = 0;
    dp_streams_on_room(&desk.daemon, 2); /* Another client. */
    assert_int_equal(call_kit.n_frames, 0);
    dp_streams_on_room(&desk.daemon, 1);
    check_rounds(1, 49);
    call_close();
}

/* ---- why ---- */

static bool answers(const char *text)
{
    call_wait();
    return strstr(text_at(call_body(), "answer"), text) != NULL;
}

static const char *cause_at(uint32_t index)
{
    return text_at(dp_pack_at(dp_pack_key(call_body(), "causes"), index), "text");
}

static uint32_t n_causes(void)
{
    uint32_t count = 0;
    assert_true(dp_pack_is_array(dp_pack_key(call_body(), "causes"), &count));
    return count;
}

static void a_round_from_before_the_start_is_explained(void **state)
{
    (void)state;
    open_chain();
    put_events(400); /* Of round 4 those from 40 to 49. */
    CALL(dp_method_why, NUMBER("round", 4));
    assert_true(answers("round 4 was decided with 2 of 2 contributors"));
    assert_true(flag_at(call_body(), "known"));
    assert_int_equal(n_causes(), 10);
    assert_string_equal(cause_at(0), "old 40");
    CALL(dp_method_why, NUMBER("round", 5));
    assert_true(answers("was left out: its update was not ready in time"));
    CALL(dp_method_why, NUMBER("round", 10)); /* Its slot is 11. */
    assert_true(answers("round 10 was decided with 2 of 2 contributors"));
    CALL(dp_method_why, NUMBER("round", 49));
    assert_true(answers("round 49 was decided with 2 of 3 contributors"));
    CALL(dp_method_why, NUMBER("round", 0));
    assert_true(answers("round 0 is not known to this node"));
    call_close();
}

static void the_last_events_of_a_time_or_a_peer_explain(void **state)
{
    const dp_peer bob = peer_of(2);
    (void)state;
    open_node();
    put_events(400);
    add_event(&bob, "it went");
    CALL(dp_method_why, TEXT("peer", "bob"));
    call_wait();
    assert_int_equal(n_causes(), 12);
    assert_string_equal(cause_at(10), "old 399");
    assert_string_equal(cause_at(11), "it went");
    CALL(dp_method_why, NUMBER("since_ms", minute(20)), NUMBER("until_ms", minute(23)));
    call_wait();
    assert_int_equal(n_causes(), 3);
    assert_string_equal(cause_at(0), "old 20");
    CALL(dp_method_why, TEXT("peer", "bob"), NUMBER("until_ms", minute(10)));
    call_wait();
    assert_int_equal(n_causes(), 3);
    assert_string_equal(cause_at(2), "old 9");
    call_close();
}

/* ---- ends ---- */

static void a_client_that_goes_ends_its_lists_at_any_moment(void **state)
{
    (void)state;
    open_chain();
    CALL(dp_method_rounds, NUMBER("last", 1000)); /* The store thread has it. */
    assert_int_equal(desk.daemon.n_streams, 1);
    dp_streams_on_gone(&desk.daemon, 1);
    while (desk.daemon.n_streams > 0) {
        uv_run(&desk.loop, UV_RUN_ONCE);
    }
    CALL(dp_method_events, FLAG("follow", true), NUMBER("last", 0));
    dp_streams_on_gone(&desk.daemon, 2);
    assert_int_equal(desk.daemon.n_streams, 1);
    call_kit.is_gone = true;
    add_event(NULL, "nobody hears it");
    assert_int_equal(desk.daemon.n_streams, 0);
    call_close();
}

static void a_client_has_only_so_many_lists(void **state)
{
    (void)state;
    open_node();
    for (int i = 0; i < DP_STREAMS_OF_CLIENT_MAX; i++) {
        CALL(dp_method_events, FLAG("follow", true), NUMBER("last", 0));
        assert_int_equal(call_kit.n_errors, 0);
    }
    CALL(dp_method_rounds, FLAG("follow", true));
    assert_true(call_failed("E0137", 75));
    call_close();
}

static void a_history_that_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    open_chain();
    const dp_chain_record bad = {
        .slot = 51, .record = dp_view_text("x"), .cert = dp_view_text("y")};
    rest_store();
    CHECK_OK(dp_chain_append(desk.shelf.store, &desk.driver->facts.run, &bad));
    dp_event_log_close(desk.daemon.event_log); /* An empty one: all is in the store. */
    const dp_event_log_hooks hooks = {.entry = desk_entry, .round = desk_round};
    CHECK_OK(
        dp_event_log_open(&desk.daemon.event_log, &desk.loop, desk.daemon.store_thread, &hooks));
    CALL(dp_method_rounds, NUMBER("last", 1000));
    call_wait();
    assert_int_equal(call_kit.n_errors, 1);
    assert_string_equal(call_kit.error.code, "E0136");
    call_kit.fails_at = 1;
    CALL(dp_method_rounds, NUMBER("last", 1000));
    assert_true(call_failed("E0199", 70));
    call_kit.fails_at = 2;
    CALL(dp_method_rounds, NUMBER("last", 1000));
    assert_true(call_failed("E0136", 74));
    call_kit.fails_at = 0;
    call_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_from_before_the_start_are_in_the_chain),
        cmocka_unit_test(rounds_are_chosen_by_their_time),
        cmocka_unit_test(rounds_are_chosen_by_a_member_that_they_list_or_leave_out),
        cmocka_unit_test(a_member_that_a_row_has_no_room_for_is_found_in_its_record),
        cmocka_unit_test(a_list_of_rounds_goes_on_where_its_client_left_it),
        cmocka_unit_test(rounds_of_a_chain_that_went_back_are_new),
        cmocka_unit_test(a_list_of_rounds_ends_with_the_run),
        cmocka_unit_test(events_from_before_the_start_are_in_the_journal),
        cmocka_unit_test(events_are_chosen_by_the_peer_that_they_are_about),
        cmocka_unit_test(a_list_of_events_goes_on_where_its_client_left_it),
        cmocka_unit_test(a_client_that_reads_slowly_misses_nothing_that_the_journal_has),
        cmocka_unit_test(a_page_waits_until_the_client_has_read),
        cmocka_unit_test(a_round_from_before_the_start_is_explained),
        cmocka_unit_test(the_last_events_of_a_time_or_a_peer_explain),
        cmocka_unit_test(a_client_that_goes_ends_its_lists_at_any_moment),
        cmocka_unit_test(a_client_has_only_so_many_lists),
        cmocka_unit_test(a_history_that_cannot_be_read_is_an_error),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
