/* status, peers, rounds, events and hello of a node in a run: their keys, and those that are nil or
 * left out. The driver is a mock; test_control.c has the client's side. */
#define CALL_KIT_LOOK
#include "daemon/control/list_stream.h"
#include "tests/unit/daemon/bandwidth_limiter_kit.h"
#include "tests/unit/daemon/suspension_kit.h"

static struct {
    bool clock_is_wrong;
} net;

bool dp_driver_clock(const dp_driver *driver, dp_wall_view *clock, char *text, size_t size)
{
    (void)driver;
    *clock = (dp_wall_view){.ahead_ms = -5000, .correction_ms = 0};
    snprintf(text, size, "this machine's clock is ahead");
    return net.clock_is_wrong;
}

uint32_t dp_data_objects(const dp_driver *driver, uint32_t *here)
{
    (void)driver;
    *here = 1;
    return 4;
}

static void open_node(void)
{
    memset(&net, 0, sizeof net);
    call_open();
    allowance_open();
    suspension_open();
    call_kit.has_manifest = true;
    call_kit.has_node = true;
    call_kit.view.running = true;
    call_kit.view.trainer = "up";
    call_kit.view.node = (dp_node_view){.mode = DP_MODE_SYNC, .round = 12, .quorum = true};
    desk.names[1] = "bob";
}

static const dp_pack_value *run_of_status(void)
{
    CALL_ALONE(dp_method_status);
    return dp_pack_key(call_body(), "run");
}

/* Is the key there, and nil? */
static bool is_nil(const dp_pack_value *map, const char *key)
{
    const dp_pack_value *value = dp_pack_key(map, key);
    uint64_t number = 0;
    dp_view text;
    bool flag = false;
    return value != NULL && !dp_pack_get_u64(value, &number) && !dp_pack_get_text(value, &text) &&
           !dp_pack_get_bool(value, &flag);
}

static void the_word_for_what_a_node_does_follows_its_mode(void **state)
{
    (void)state;
    open_node();
    assert_string_equal(dp_call_state(&desk.daemon), "training");
    call_kit.view.node.mode = DP_MODE_GOSSIP;
    assert_string_equal(dp_call_state(&desk.daemon), "gossip");
    call_kit.view.running = false;
    assert_string_equal(dp_call_state(&desk.daemon), "starting");
    call_kit.has_manifest = false;
    assert_string_equal(dp_call_state(&desk.daemon), "joining");
    CALL_ALONE(dp_method_hello);
    assert_string_equal(text_at(call_body(), "run"), "kjv");
    desk.daemon.driver = NULL;
    assert_string_equal(dp_call_state(&desk.daemon), "idle");
    CALL_ALONE(dp_method_hello);
    assert_null(dp_pack_key(call_body(), "run"));
    call_close();
}

static void values_unknown_before_the_node_runs_are_nil(void **state)
{
    static const char *const keys[] = {"round",  "members",    "alive",    "counted",
                                       "quorum", "state_root", "is_voter", "refused"};
    (void)state;
    open_node();
    call_kit.view.running = false;
    const dp_pack_value *run = run_of_status();
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        assert_true(is_nil(run, keys[i]));
    }
    call_kit.view.running = true;
    run = run_of_status();
    assert_int_equal(number_at(run, "round"), 12);
    assert_true(flag_at(run, "quorum") && is_nil(run, "state_root"));
    call_kit.view.node.state_root = name_of(3);
    call_kit.view.counted = 2;
    call_kit.view.counted_before = 40;
    run = run_of_status();
    assert_null(dp_pack_key(run, "no_room"));
    call_kit.view.no_room = "the store is at its limit";
    run = run_of_status();
    assert_string_equal(text_at(run, "no_room"), "the store is at its limit");
    assert_int_equal(strlen(text_at(run, "state_root")), 64);
    assert_int_equal(number_at(run, "counted"), 42);
    call_close();
}

static void rates_and_errors_are_told_where_they_are_known(void **state)
{
    double number = 0;
    (void)state;
    open_node();
    const dp_pack_value *run = run_of_status();
    assert_true(is_nil(run, "tokens_per_s") && is_nil(run, "loss"));
    assert_null(dp_pack_key(run, "update_norm"));
    assert_null(dp_pack_key(run, "trainer_ms"));
    assert_null(dp_pack_key(run, "held_out"));
    assert_null(dp_pack_key(run, "part_error"));
    call_kit.view.tokens_per_s = 1500;
    call_kit.view.trained_us = 9000;
    call_kit.view.update_norm = 4;
    call_kit.view.update_error = 1;
    call_kit.view.trainer_next_ms = 4000;
    call_kit.view.trainer_deaths = 3;
    desk.daemon.measured =
        (dp_measured){.round = 7, .tokens = 8192, .loss = 3.5, .bits_per_byte = 1.75};
    run = run_of_status();
    assert_true(dp_pack_get_f64(dp_pack_key(run, "update_error"), &number) && number == 0.25);
    const dp_pack_value *const held_out = dp_pack_key(run, "held_out");
    assert_true(dp_pack_get_f64(dp_pack_key(held_out, "loss"), &number) && number == 3.5);
    assert_int_equal(number_at(held_out, "round"), 7);
    assert_true(dp_pack_get_f64(dp_pack_key(run, "tokens_per_s"), &number) && number == 1500);
    assert_int_equal(number_at(dp_pack_key(run, "trainer_ms"), "trained"), 9);
    assert_true(number_at(run, "trainer_deaths") == 3 && number_at(run, "trainer_next_ms") == 4000);
    call_close();
}

static void limits_pause_and_clock_are_told_where_something_is_set_or_wrong(void **state)
{
    (void)state;
    open_node();
    const dp_pack_value *run = run_of_status();
    assert_null(dp_pack_key(run, "upload_max"));
    assert_null(dp_pack_key(run, "upload_month"));
    assert_null(dp_pack_key(run, "clock"));
    assert_null(dp_pack_key(call_body(), "paused"));
    net.clock_is_wrong = true;
    call_kit.view.transport.limits.upload = 125000;
    desk.config.upload_month = 200;
    bandwidth_limiter_kit.view.used[DP_BANDWIDTH_QUOTA_UP] = 150;
    suspension_kit.owner = (dp_pause){.holds = true, .since_ms = 7, .user = "ann"};
    run = run_of_status();
    assert_true(number_at(run, "upload_max") == 125000 && number_at(run, "upload_month") == 200);
    assert_int_equal(number_at(run, "upload_month_used"), 150);
    int64_t behind_ms = 0;
    assert_true(dp_pack_get_i64(dp_pack_key(dp_pack_key(run, "clock"), "behind_ms"), &behind_ms));
    assert_int_equal(behind_ms, -5000);
    assert_string_equal(text_at(dp_pack_key(call_body(), "paused"), "by"), "ann");
    assert_null(dp_pack_key(call_body(), "suspended"));
    suspension_kit.word = "heat";
    suspension_kit.text = "it must cool first";
    run = run_of_status();
    const dp_pack_value *const first = dp_pack_at(dp_pack_key(call_body(), "suspended"), 0);
    assert_string_equal(text_at(first, "cause"), "heat");
    assert_string_equal(text_at(first, "text"), "it must cool first");
    desk.daemon.bandwidth_limiter = NULL; /* The daemon is ending. */
    run = run_of_status();
    assert_null(dp_pack_key(run, "upload_month_used"));
    call_close();
}

static void a_halt_names_the_liar_and_a_lost_store_is_told(void **state)
{
    (void)state;
    open_node();
    call_kit.view.node.culprit = (dp_peer){{1}};
    assert_null(dp_pack_key(run_of_status(), "voted_twice"));
    call_kit.view.node.mode = DP_MODE_HALTED;
    assert_string_equal(text_at(run_of_status(), "voted_twice_name"), "bob");
    desk.daemon.driver = NULL;
    CALL_ALONE(dp_method_status);
    assert_null(dp_pack_key(call_body(), "lost"));
    desk.daemon.lost = true;
    CALL_ALONE(dp_method_status);
    assert_non_null(strstr(text_at(call_body(), "lost"), "its store was damaged"));
    assert_null(dp_pack_key(call_body(), "run"));
    call_close();
}

static void heat_power_and_load_are_told_and_nil_where_no_sensor_is_read(void **state)
{
    double load = -1;
    (void)state;
    open_node();
    CALL_ALONE(dp_method_status);
    const dp_pack_value *machine = dp_pack_key(call_body(), "machine");
    assert_true(is_nil(machine, "celsius") && is_nil(machine, "watts"));
    assert_true(dp_pack_get_f64(dp_pack_key(machine, "load"), &load) && load >= 0);
    assert_true(number_at(machine, "processors") >= 1);
    call_kit.view.celsius = 71;
    call_kit.view.watts = 180;
    CALL_ALONE(dp_method_status);
    machine = dp_pack_key(call_body(), "machine");
    assert_true(dp_pack_get_f64(dp_pack_key(machine, "celsius"), &load) && load == 71);
    assert_true(dp_pack_get_f64(dp_pack_key(machine, "watts"), &load) && load == 180);
    desk.daemon.driver = NULL;
    CALL_ALONE(dp_method_status);
    assert_true(is_nil(dp_pack_key(call_body(), "machine"), "celsius"));
    desk.daemon.driver = desk.driver;
    call_close();
}

static const char *rest_at(uint32_t index)
{
    const dp_pack_value *const list = dp_pack_key(call_body(), "rests");
    uint32_t count = 0;
    assert_true(dp_pack_is_array(list, &count));
    return index < count ? text_at(dp_pack_at(list, index), "reason") : "";
}

static void every_reason_for_which_it_does_not_train_is_told(void **state)
{
    (void)state;
    open_node();
    call_kit.view.training = true;
    CALL_ALONE(dp_method_status);
    assert_string_equal(rest_at(0), "");
    call_kit.view.training = false;
    CALL_ALONE(dp_method_status);
    assert_string_equal(rest_at(0), "model");
    desk.driver->manifest.arch = DP_ARCH_EXTERNAL;
    CALL_ALONE(dp_method_status);
    assert_string_equal(rest_at(0), "script");
    desk.driver->manifest.arch = DP_ARCH_GPT2;
    call_kit.view.trainer = "starting";
    CALL_ALONE(dp_method_status);
    assert_string_equal(rest_at(0), "trainer");
    call_kit.view.trainer_next_ms = 900;
    CALL_ALONE(dp_method_status);
    assert_string_equal(rest_at(0), "crashes");
    desk.config.observer = true;
    CALL_ALONE(dp_method_status);
    assert_string_equal(rest_at(0), "observer");
    suspension_kit.owner = (dp_pause){.holds = true, .waits = true}; /* It trains on. */
    CALL_ALONE(dp_method_status);
    assert_string_equal(rest_at(0), "observer");
    suspension_kit.owner.waits = false;
    suspension_kit.word = "heat";
    suspension_kit.text = "it is 90 degrees hot";
    desk.daemon.suspension = (dp_suspension *)(void *)&suspension_kit;
    CALL_ALONE(dp_method_status);
    assert_string_equal(rest_at(0), "pause");
    assert_string_equal(rest_at(1), "heat");
    assert_string_equal(text_at(dp_pack_at(dp_pack_key(call_body(), "rests"), 1), "text"),
                        "it is 90 degrees hot");
    assert_string_equal(rest_at(2), "");
    suspension_kit.owner.holds = false;
    suspension_kit.word = NULL;
    desk.config.observer = false;
    static const struct {
        dp_mode mode;
        const char *word;
    } modes[] = {{DP_MODE_JOINING, "data"}, {DP_MODE_HALTED, "halted"}, {DP_MODE_LEFT, "left"}};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        call_kit.view.node.mode = modes[i].mode;
        CALL_ALONE(dp_method_status);
        assert_string_equal(rest_at(0), modes[i].word);
    }
    call_kit.view.node.mode = DP_MODE_GOSSIP;
    call_kit.view.trainer = "up";
    desk.driver->manifest.exchange = DP_EXCHANGE_GRADIENTS;
    CALL_ALONE(dp_method_status);
    assert_string_equal(rest_at(0), "quorum");
    call_kit.view.running = false;
    CALL_ALONE(dp_method_status);
    assert_string_equal(rest_at(0), "starting");
    call_kit.has_manifest = false;
    CALL_ALONE(dp_method_status);
    assert_string_equal(rest_at(0), "joining");
    desk.daemon.driver = NULL;
    CALL_ALONE(dp_method_status);
    assert_string_equal(rest_at(0), "idle");
    desk.daemon.driver = desk.driver;
    call_close();
}

static void the_problem_of_the_first_start_is_told_with_its_fix(void **state)
{
    (void)state;
    open_node();
    CALL_ALONE(dp_method_status);
    assert_null(dp_pack_key(call_body(), "problem"));
    assert_null(dp_pack_key(call_body(), "trying"));
    call_kit.tries = true;
    CALL_ALONE(dp_method_status);
    assert_true(flag_at(call_body(), "trying"));
    call_kit.tries = false;
    call_kit.problem =
        (dp_control_error){.code = "E0203", .what = "no token", .why = "cause", .fix = "a command"};
    for (int i = 0; i < 2; i++) { /* In a run, and idle. */
        CALL_ALONE(dp_method_status);
        const dp_pack_value *const problem = dp_pack_key(call_body(), "problem");
        assert_string_equal(text_at(problem, "code"), "E0203");
        assert_string_equal(text_at(problem, "what"), "no token");
        assert_string_equal(text_at(problem, "why"), "cause");
        assert_string_equal(text_at(problem, "fix"), "a command");
        desk.daemon.driver = NULL;
    }
    call_close();
}

static const dp_pack_value *peer_at(uint32_t index)
{
    return dp_pack_at(dp_pack_key(call_body(), "peers"), index);
}

static void peers_are_listed_without_guests_that_have_gone(void **state)
{
    uint32_t count = 0;
    (void)state;
    open_node();
    call_kit.n_members = 4;
    call_kit.members[0] = (dp_member_view){.in_roster = true, .voter = true};
    call_kit.members[1] = (dp_member_view){
        .in_roster = true, .linked = true, .rtt_us = 1500, .round = 12, .n_addrs = 1};
    call_kit.members[1].addrs[0] = (dp_addr){.family = 4, .ip = {10, 0, 0, 1}, .port = 7};
    call_kit.members[2] = (dp_member_view){.state = DP_MEMBER_DEAD};
    call_kit.members[3] = (dp_member_view){.state = DP_MEMBER_ALIVE};
    CALL_ALONE(dp_method_peers);
    assert_true(dp_pack_is_array(dp_pack_key(call_body(), "peers"), &count) && count == 3);
    assert_true(flag_at(peer_at(0), "self") && is_nil(peer_at(0), "name"));
    assert_string_equal(text_at(peer_at(1), "name"), "bob");
    assert_int_equal(number_at(peer_at(1), "bytes_sent"), 1001);
    assert_int_equal(number_at(peer_at(1), "bytes_received"), 2000);
    assert_null(dp_pack_key(peer_at(0), "bytes_sent")); /* This node. */
    assert_null(dp_pack_key(peer_at(2), "bytes_sent")); /* It never had a link. */
    dp_view address;
    assert_true(dp_pack_get_text(dp_pack_at(dp_pack_key(peer_at(1), "addresses"), 0), &address));
    assert_memory_equal(address.data, "10.0.0.1:7", 10);
    assert_true(is_nil(peer_at(2), "round") && dp_pack_key(peer_at(2), "rtt_ms") == NULL);
    assert_int_equal(number_at(call_body(), "more"), 0);
    call_kit.members[0].in_roster = false; /* A newcomer cannot know who has gone. */
    CALL_ALONE(dp_method_peers);
    assert_true(dp_pack_is_array(dp_pack_key(call_body(), "peers"), &count) && count == 4);
    desk.daemon.driver = NULL;
    CALL_ALONE(dp_method_peers);
    assert_true(call_failed("E0110", 69));
    call_close();
}

static void add_round(uint64_t number)
{
    dp_event_log_round round = {.kind = DP_EVENT_LOG_SYNC,
                                .round = number,
                                .slot = number,
                                .listed = 2,
                                .active = 3,
                                .bytes = 2000,
                                .loss_micro = 2500000,
                                .keep = 16,
                                .lines = DP_LINES_SLOW,
                                .update_norm = 4,
                                .update_error = 1,
                                .n_peers = 1,
                                .n_left_out = 1};
    round.peers[0].peer = (dp_peer){{1}};
    round.peers[0].q = 1U << 30;
    round.left_out[0] = (dp_left_out){.peer = {{1}}, .cause = "it has not announced an update"};
    dp_event_log_round_add(desk.daemon.event_log, &round);
}

static void the_last_rounds_come_one_by_one_and_are_counted(void **state)
{
    double number = 0;
    (void)state;
    open_node();
    for (uint64_t round = 1; round <= 25; round++) {
        add_round(round);
    }
    CALL_ALONE(dp_method_rounds);
    assert_true(call_kit.n_frames == 21 && number_at(call_body(), "count") == 20);
    CALL(dp_method_rounds, NUMBER("last", 2));
    assert_int_equal(number_at(call_body(), "count"), 2);
    const dp_pack_value *round = dp_pack_key(call_body_at(0), "round");
    assert_int_equal(number_at(round, "round"), 24);
    assert_string_equal(text_at(round, "lines"), "slow");
    assert_true(dp_pack_get_f64(dp_pack_key(round, "loss"), &number) && number == 2.5);
    assert_true(number_at(round, "wire_bytes_per_copy") > 1000); /* More than a blob of its own. */
    const dp_pack_value *left = dp_pack_at(dp_pack_key(round, "left_out"), 0);
    assert_string_equal(text_at(left, "name"), "bob");
    assert_string_equal(text_at(left, "cause"), "it has not announced an update");
    const dp_pack_value *peer = dp_pack_at(dp_pack_key(round, "peers"), 0);
    assert_true(dp_pack_get_f64(dp_pack_key(peer, "weight_share"), &number) && number == 0.5);
    CALL(dp_method_rounds, NUMBER("last", 0), FLAG("follow", true));
    assert_int_equal(call_kit.n_frames, 0);
    add_round(26);
    dp_streams_on_entry(&desk.daemon, DP_STREAM_OF_ROUNDS);
    assert_int_equal(call_kit.n_frames, 1);
    assert_int_equal(number_at(dp_pack_key(call_body_at(0), "round"), "round"), 26);
    call_close();
}

static void a_round_tells_the_phases_of_this_node(void **state)
{
    uint64_t ms = 0;
    (void)state;
    open_node();
    add_round(7);
    CALL(dp_method_rounds, NUMBER("last", 1));
    assert_null(dp_pack_key(dp_pack_key(call_body_at(0), "round"), "phases"));
    assert_null(dp_pack_key(run_of_status(), "phases"));
    dp_event_log_round *const row = dp_event_log_round_find(desk.daemon.event_log, 7);
    row->phases.opened_ms = 12345;
    for (uint64_t i = 0; i < DP_PHASES; i++) {
        row->phases.at_us[i] = 1000000 * (1 + i);
    }
    row->phases.at_us[DP_PHASE_READY] = 0;
    CALL(dp_method_rounds, NUMBER("last", 1));
    const dp_pack_value *const round = dp_pack_key(call_body_at(0), "round");
    const dp_pack_value *const phases = dp_pack_key(round, "phases");
    assert_int_equal(number_at(phases, "opened_at_ms"), 12345);
    assert_int_equal(number_at(phases, "published_ms"), 1000);
    assert_int_equal(number_at(phases, "held_ms"), 3000);
    assert_int_equal(number_at(phases, "decided_ms"), 4000);
    assert_int_equal(number_at(phases, "applied_ms"), 5000);
    assert_false(dp_pack_get_u64(dp_pack_key(phases, "ready_ms"), &ms));
    assert_int_equal(number_at(round, "compute_ms"), 1000);
    assert_int_equal(number_at(round, "transfer_ms"), 2000);
    assert_int_equal(number_at(round, "wait_ms"), 2000);
    dp_event_log_round_add(
        desk.daemon.event_log,
        &(dp_event_log_round){
            .kind = DP_EVENT_LOG_SYNC, .round = 8, .listed = 2, .active = 3, .live = true});
    const dp_pack_value *const run = run_of_status();
    const dp_pack_value *const last = dp_pack_key(run, "phases");
    assert_true(number_at(last, "round") == 7 && number_at(last, "compute_ms") == 1000);
    assert_true(number_at(last, "transfer_ms") == 2000 && number_at(last, "wait_ms") == 2000);
    assert_true(number_at(run, "rounds_all") == 0 && number_at(run, "rounds_some") == 1);
    call_close();
}

static void an_exchange_is_a_round_of_another_kind(void **state)
{
    const dp_event_log_round round = {.kind = DP_EVENT_LOG_GOSSIP,
                                      .round = 9,
                                      .partner = {{1}},
                                      .weight_own = 10,
                                      .weight_other = 30,
                                      .cause = "done"};
    (void)state;
    open_node();
    dp_event_log_round_add(desk.daemon.event_log, &round);
    CALL_ALONE(dp_method_rounds);
    call_wait(); /* The chain in the store may have older ones. */
    const dp_pack_value *got = dp_pack_key(call_body_at(0), "round");
    assert_string_equal(text_at(got, "kind"), "gossip");
    const dp_pack_value *exchange = dp_pack_key(got, "exchange");
    assert_string_equal(text_at(dp_pack_key(exchange, "peer"), "name"), "bob");
    assert_int_equal(number_at(exchange, "weight_other"), 30);
    assert_null(dp_pack_key(got, "tokens"));
    call_close();
}

static void events_are_told_of_a_node_without_a_run_too(void **state)
{
    (void)state;
    open_node();
    desk.daemon.driver = NULL;
    for (uint32_t i = 1; i <= 3; i++) {
        dp_event_log_add(desk.daemon.event_log, DP_LOG_INFO, "test.entry", i - 1, NULL, "entry %u",
                         i);
    }
    CALL(dp_method_events, NUMBER("last", 2));
    assert_int_equal(number_at(call_body(), "count"), 2);
    const dp_pack_value *event = dp_pack_key(call_body_at(0), "event");
    assert_string_equal(text_at(event, "text"), "entry 2");
    assert_int_equal(number_at(event, "round"), 1);
    CALL(dp_method_events, NUMBER("last", 2), FLAG("follow", true));
    assert_int_equal(call_kit.n_frames, 2);
    dp_event_log_add(desk.daemon.event_log, DP_LOG_INFO, "test.entry", 0, NULL, "entry 4");
    dp_streams_on_entry(&desk.daemon, DP_STREAM_OF_EVENTS);
    assert_int_equal(call_kit.n_frames, 3);
    assert_string_equal(text_at(dp_pack_key(call_body_at(2), "event"), "text"), "entry 4");
    CALL_ALONE(dp_method_rounds);
    assert_true(call_failed("E0110", 69));
    call_kit.is_gone = true;
    CALL_ALONE(dp_method_events);
    CALL_ALONE(dp_method_status);
    assert_true(call_kit.n_frames == 0 && call_kit.n_errors == 0);
    call_close();
}

static void a_run_of_any_model_waits_for_a_script(void **state)
{
    (void)state;
    open_node();
    const dp_pack_value *run = run_of_status();
    assert_null(dp_pack_key(run, "external"));
    desk.driver->manifest.arch = DP_ARCH_EXTERNAL;
    desk.driver->manifest.unit = 3;
    assert_string_equal(dp_call_state(&desk.daemon), "waiting");
    run = run_of_status();
    assert_true(flag_at(run, "external") && number_at(run, "sample_tokens") == 3);
    assert_null(dp_pack_key(run, "script_pid"));
    call_kit.view.script_pid = 812;
    assert_string_equal(dp_call_state(&desk.daemon), "training");
    run = run_of_status();
    assert_int_equal(number_at(run, "script_pid"), 812);
    call_kit.view.node.mode = DP_MODE_GOSSIP;
    assert_string_equal(dp_call_state(&desk.daemon), "gossip");
    desk.driver->manifest.arch = DP_ARCH_GPT2;
    call_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_word_for_what_a_node_does_follows_its_mode),
        cmocka_unit_test(values_unknown_before_the_node_runs_are_nil),
        cmocka_unit_test(rates_and_errors_are_told_where_they_are_known),
        cmocka_unit_test(limits_pause_and_clock_are_told_where_something_is_set_or_wrong),
        cmocka_unit_test(heat_power_and_load_are_told_and_nil_where_no_sensor_is_read),
        cmocka_unit_test(every_reason_for_which_it_does_not_train_is_told),
        cmocka_unit_test(the_problem_of_the_first_start_is_told_with_its_fix),
        cmocka_unit_test(a_halt_names_the_liar_and_a_lost_store_is_told),
        cmocka_unit_test(peers_are_listed_without_guests_that_have_gone),
        cmocka_unit_test(the_last_rounds_come_one_by_one_and_are_counted),
        cmocka_unit_test(a_round_tells_the_phases_of_this_node),
        cmocka_unit_test(an_exchange_is_a_round_of_another_kind),
        cmocka_unit_test(events_are_told_of_a_node_without_a_run_too),
        cmocka_unit_test(a_run_of_any_model_waits_for_a_script),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
