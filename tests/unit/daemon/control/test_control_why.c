/* why: the activity of the node, or the outcome of a round or state of a member, as a sentence with
 * causes. */
#include "tests/unit/daemon/bandwidth_limiter_kit.h"
#include "tests/unit/daemon/suspension_kit.h"

static bool clock_is_wrong;

bool dp_driver_clock(const dp_driver *driver, dp_wall_view *clock, char *text, size_t size)
{
    (void)driver;
    *clock = (dp_wall_view){.met = 1};
    snprintf(text, size, "this machine's clock is 5 min behind");
    return clock_is_wrong;
}

uint32_t dp_data_objects(const dp_driver *driver, uint32_t *here)
{
    (void)driver;
    *here = 1;
    return 4;
}

static void open_node(void)
{
    call_open();
    allowance_open();
    suspension_open();
    clock_is_wrong = false;
    call_kit.has_manifest = true;
    call_kit.has_node = true;
    call_kit.view.running = true;
    call_kit.view.trainer = "up";
    call_kit.view.node =
        (dp_node_view){.mode = DP_MODE_SYNC, .round = 12, .alive = 3, .members = 4, .voters = 3};
    call_kit.n_members = 3; /* 0 is this node */
    for (uint32_t i = 0; i < 3; i++) {
        call_kit.members[i] = (dp_member_view){.in_roster = true, .round = 12, .included = 11};
    }
    desk.names[0] = "ann";
    desk.names[1] = "bob";
    desk.names[2] = "carl";
}

static bool answers(const char *text)
{
    const char *answer = text_at(call_body(), "answer");
    if (strstr(answer, text) == NULL) {
        print_error("it answers: %s\n", answer);
        return false;
    }
    return true;
}

static bool says_now(const char *text)
{
    CALL_ALONE(dp_method_why);
    return answers(text);
}

static void each_mode_has_a_sentence(void **state)
{
    (void)state;
    open_node();
    assert_true(says_now(
        "training in synchronous rounds: 3 nodes alive, 4 members, last decided round 12"));
    call_kit.view.device = "cpu: 4 threads";
    assert_true(says_now(", on cpu: 4 threads"));
    call_kit.view.trainer = "starting";
    assert_true(says_now("following in synchronous rounds") && answers("; trainer starting"));
    call_kit.view.node.mode = DP_MODE_GOSSIP;
    assert_true(says_now("no majority of the 3 voters is reachable") &&
                answers("trains on and averages in pairs"));
    desk.driver->manifest.exchange = DP_EXCHANGE_GRADIENTS;
    assert_true(says_now("waits with its next gradient"));
    call_kit.members[1].voter = true;
    call_kit.members[1].state = DP_MEMBER_DEAD;
    call_kit.members[2].state = DP_MEMBER_DEAD;
    assert_true(says_now("waits with its next gradient; away: bob ("));
    assert_true(answers("). Start these voters: dpnode up"));
    assert_false(answers("carl")); /* It does not vote. */
    call_kit.members[1].state = DP_MEMBER_ALIVE;
    assert_true(says_now("waits with its next gradient"));
    assert_false(answers("Start these voters"));
    call_kit.members[0].voter = true;
    assert_true(says_now("; this node has lost its vote key") && answers("dpnode run fork"));
    call_kit.view.node.is_voter = true;
    assert_true(says_now("waits with its next gradient"));
    assert_false(answers("vote key"));
    call_kit.view.node.mode = DP_MODE_JOINING;
    call_kit.view.node.bytes_wanted = 3 << 20;
    call_kit.view.node.bytes_waiting = 2 << 20;
    assert_true(says_now("1 of 4 parts of the data are on this node; 1.0 of 3.0 MiB fetched"));
    call_kit.view.running = false;
    assert_true(says_now("starting: reading the store"));
    call_kit.has_manifest = false;
    call_kit.view.transport.links = 2;
    assert_true(says_now("joining: waiting for a member of the run to answer (2 links)"));
    call_close();
}

static void a_pause_and_a_used_up_month_are_told_apart(void **state)
{
    (void)state;
    open_node();
    call_kit.view.node.mode = DP_MODE_PAUSED;
    suspension_kit.owner = (dp_pause){.holds = true, .user = "ann"};
    assert_true(says_now("paused by its owner, by ann. To train again: dpnode resume"));
    suspension_kit.word = "quota";
    suspension_kit.text = "this month's upload is used up";
    assert_true(says_now(", and this month's upload is used up. To train again"));
    suspension_kit.owner.holds = false;
    assert_true(says_now(
        "training stopped by the quota: this month's upload is used up. This node stays a member"));
    call_close();
}

static void a_pause_that_waits_for_a_round_is_told(void **state)
{
    (void)state;
    open_node();
    call_kit.view.node.mode = DP_MODE_SYNC;
    suspension_kit.owner =
        (dp_pause){.holds = true, .waits = true, .for_ms = 7200000, .user = "ann"};
    assert_true(says_now("; its owner has ordered a pause, by ann, when a round has counted this "
                         "node's work, for 2 h"));
    call_close();
}

static void a_halt_names_the_voter_or_the_two_forks(void **state)
{
    (void)state;
    open_node();
    call_kit.view.node.mode = DP_MODE_HALTED;
    call_kit.view.node.culprit = (dp_peer){{1}};
    assert_true(says_now("halted: the voter bob, ") && answers("dpnode run fork"));
    call_kit.view.node.culprit = (dp_peer){{0}};
    assert_true(says_now("restarted twice with the root key at one place") &&
                answers("dpnode run merge"));
    call_close();
}

static void a_node_that_is_out_says_by_whose_wish(void **state)
{
    static const struct {
        uint32_t gone;
        const char *text;
    } rows[] = {{DP_REMOVE_HARMFUL, "most of this node's updates make the model worse"},
                {DP_REMOVE_REVOKED, "membership was revoked"},
                {DP_REMOVE_LEFT, "this node has left the run"}};
    (void)state;
    open_node();
    call_kit.view.node.mode = DP_MODE_LEFT;
    call_kit.n_roster = 1;
    call_kit.roster[0].peer = dp_identity_peer(&desk.daemon.identity);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        call_kit.roster[0].gone = rows[i].gone;
        assert_true(says_now(rows[i].text));
    }
    call_close();
}

static void other_faults_are_added(void **state)
{
    (void)state;
    open_node();
    clock_is_wrong = true;
    call_kit.view.trainer_next_ms = 4001;
    call_kit.view.trainer_deaths = 1;
    call_kit.view.refused = true;
    assert_true(says_now("; the trainer crashed 1 time in a row and restarts in 5 s"));
    assert_true(answers("; this machine's clock is 5 min behind (timedatectl set-ntp true)"));
    assert_true(answers("while the join secret was rotated twice"));
    call_kit.view.no_room = "the store is at its limit";
    assert_true(says_now("; its update waits for room and is not counted: the store is at its"));
    call_close();
}

static void a_member_is_found_by_name_and_by_both_forms_of_its_id(void **state)
{
    char id[DP_PEER_TEXT_MAX];
    char hex[2 * DP_PUBLIC_KEY_BYTES + 1];
    const dp_peer peer = {{1}};
    (void)state;
    open_node();
    call_kit.members[1].voter = true;
    call_kit.members[1].linked = true;
    call_kit.members[1].state = DP_MEMBER_ALIVE;
    dp_peer_text(&peer, id);
    dp_hex(dp_view_of(peer.bytes, sizeof peer.bytes), hex);
    const char *const words[] = {"bob", id, hex};
    for (size_t i = 0; i < 3; i++) {
        CALL(dp_method_why, TEXT("peer", words[i]));
        call_wait();
        assert_true(answers("bob is alive, a voter, at round 12; last counted in round"));
        assert_null(strstr(text_at(call_body(), "answer"), "no connection"));
    }
    CALL(dp_method_why, TEXT("peer", "ann"));
    call_wait();
    assert_true(answers("ann (this node) is"));
    CALL(dp_method_why, TEXT("peer", "carl"));
    call_wait();
    assert_true(answers("a member without a vote") && answers("not connected"));
    call_close();
}

static void a_name_that_nobody_or_two_have_is_refused(void **state)
{
    (void)state;
    open_node();
    CALL(dp_method_why, TEXT("peer", "eve"));
    call_wait();
    assert_true(call_failed("E0120", 1));
    assert_string_equal(call_kit.error.what, "unknown peer");
    desk.names[2] = "bob";
    CALL(dp_method_why, TEXT("peer", "bob"));
    call_wait();
    assert_true(call_failed("E0120", 1));
    assert_string_equal(call_kit.error.what, "several peers have this name");
    CALL(dp_method_why, NUMBER("peer", 7));
    call_wait();
    assert_true(call_failed("E0120", 1));
    desk.daemon.driver = NULL;
    CALL_ALONE(dp_method_why);
    assert_true(call_failed("E0105", 75));
    call_close();
}

static void a_round_tells_who_was_counted_left_out_and_not_waited_for(void **state)
{
    const dp_peer carl = {{2}};
    (void)state;
    open_node();
    dp_event_log_add(desk.daemon.event_log, DP_LOG_INFO, "member.state", 0, &carl,
                     "carl: alive -> suspect");
    dp_event_log_round round = {.kind = DP_EVENT_LOG_SYNC,
                                .round = 12,
                                .time_ms = dp_unix_ms() + 1000,
                                .listed = 1,
                                .active = 2,
                                .counted = true,
                                .live = true,
                                .n_peers = 1,
                                .n_left_out = 1};
    round.left_out[0] = (dp_left_out){.peer = {{1}}, .cause = "it has not announced an update"};
    dp_event_log_round_add(desk.daemon.event_log, &round);
    CALL(dp_method_why, NUMBER("round", 12));
    call_wait();
    assert_true(flag_at(call_body(), "known"));
    assert_true(
        answers("round 12 was decided with 1 of 2 contributors. This node's update was counted."));
    assert_true(answers(" bob was left out: it has not announced an update."));
    assert_true(answers(" Not waited for: carl: alive -> suspect."));
    assert_null(strstr(text_at(call_body(), "answer"), "opened"));
    dp_phases *const phases = &dp_event_log_round_find(desk.daemon.event_log, 12)->phases;
    phases->at_us[DP_PHASE_OPENED] = 1000000;
    phases->at_us[DP_PHASE_PUBLISHED] = 4100000;
    phases->at_us[DP_PHASE_DECIDED] = 5000000;
    CALL(dp_method_why, NUMBER("round", 12));
    call_wait();
    assert_true(answers(" After this node opened it: published 3.1 s, decided 4.0 s."));
    phases->at_us[DP_PHASE_HELD] = 4500000;
    CALL(dp_method_why, NUMBER("round", 12));
    call_wait();
    assert_true(answers("published 3.1 s, all updates here 3.5 s, decided 4.0 s: compute 3.1 s, "
                        "transfer 0.4 s, wait 0.5 s."));
    call_close();
}

static void rounds_that_are_not_known_are_told_apart(void **state)
{
    static const struct {
        uint64_t round;
        const char *text;
        bool known;
    } rows[] = {{13, "round 13 is under way", true},
                {14, "round 14 has not begun", false},
                {3, "round 3 is not known to this node", false}};
    (void)state;
    open_node();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CALL(dp_method_why, NUMBER("round", rows[i].round));
        call_wait();
        assert_true(answers(rows[i].text));
        assert_int_equal(flag_at(call_body(), "known"), rows[i].known);
    }
    call_close();
}

static uint32_t n_causes(void)
{
    uint32_t count = 0;
    CHECK(dp_pack_is_array(dp_pack_key(call_body(), "causes"), &count));
    return count;
}

static void causes_are_what_is_no_routine_and_of_what_was_asked(void **state)
{
    const dp_peer bob = {{1}};
    (void)state;
    open_node();
    dp_event_log *event_log = desk.daemon.event_log;
    dp_event_log_add(event_log, DP_LOG_INFO, "ckpt.saved", 12, NULL, "routine");
    dp_event_log_add(event_log, DP_LOG_INFO, "link.up", 0, &bob, "routine");
    dp_event_log_add(event_log, DP_LOG_WARN, "trainer.down", 12, NULL, "the trainer crashed");
    dp_event_log_add(event_log, DP_LOG_WARN, "clock.differs", 0, &bob, "its clock differs");
    dp_event_log_add(event_log, DP_LOG_DEBUG, "judged", 13, &bob, "its update is aligned 17 %%");
    CALL_ALONE(dp_method_why);
    assert_int_equal(n_causes(), 2);
    const dp_pack_value *first = dp_pack_at(dp_pack_key(call_body(), "causes"), 0);
    assert_string_equal(text_at(first, "text"), "the trainer crashed");
    CALL(dp_method_why, TEXT("peer", "bob"));
    call_wait();
    assert_int_equal(n_causes(), 2);          /* A verdict is about its peer. */
    CALL(dp_method_why, NUMBER("round", 12)); /* Of a round routine counts too. */
    call_wait();
    assert_int_equal(n_causes(), 2);
    for (uint32_t i = 0; i < 30; i++) {
        dp_event_log_add(event_log, DP_LOG_WARN, "trainer.down", 12, NULL, "death %u", i);
    }
    CALL_ALONE(dp_method_why);
    assert_int_equal(n_causes(), 12); /* The last ones. */
    const dp_pack_value *last = dp_pack_at(dp_pack_key(call_body(), "causes"), 11);
    assert_string_equal(text_at(last, "text"), "death 29");
    call_close();
}

static void without_a_script_a_node_says_what_it_waits_for(void **state)
{
    (void)state;
    open_node();
    desk.driver->manifest.arch = DP_ARCH_EXTERNAL;
    assert_true(says_now("waiting for a script") && answers("/script.sock. The node holds"));
    call_kit.view.script_pid = 812;
    assert_true(says_now("training in synchronous rounds: process 812 takes the steps"));
    call_kit.view.script_pid = 0;
    call_kit.view.trainer = "down";
    assert_true(says_now("following in synchronous rounds") && answers("trainer down"));
    call_kit.view.node.mode = DP_MODE_GOSSIP;
    assert_true(says_now("Until then this node waits"));
    desk.driver->manifest.arch = DP_ARCH_GPT2;
    call_close();
}

static void a_node_that_a_token_did_not_bring_into_a_run_says_why(void **state)
{
    (void)state;
    open_node();
    call_kit.problem =
        (dp_control_error){.code = "E0216", .what = "not used", .why = "cause", .fix = "a command"};
    assert_true(says_now("training in synchronous rounds") &&
                answers("; E0216 not used: cause. To correct it: a command"));
    desk.daemon.driver = NULL;
    assert_true(says_now("E0216 not used: cause. To correct it: a command"));
    call_kit.problem.code[0] = '\0';
    call_kit.tries = true;
    assert_true(says_now("this node makes its first try to join or to create a run"));
    call_kit.tries = false;
    CALL_ALONE(dp_method_why);
    assert_string_equal(call_kit.error.code, "E0105"); /* As call_kit.h refuses idle nodes. */
    call_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mode_has_a_sentence),
        cmocka_unit_test(a_pause_and_a_used_up_month_are_told_apart),
        cmocka_unit_test(a_pause_that_waits_for_a_round_is_told),
        cmocka_unit_test(a_halt_names_the_voter_or_the_two_forks),
        cmocka_unit_test(a_node_that_is_out_says_by_whose_wish),
        cmocka_unit_test(a_node_that_a_token_did_not_bring_into_a_run_says_why),
        cmocka_unit_test(other_faults_are_added),
        cmocka_unit_test(a_member_is_found_by_name_and_by_both_forms_of_its_id),
        cmocka_unit_test(a_name_that_nobody_or_two_have_is_refused),
        cmocka_unit_test(a_round_tells_who_was_counted_left_out_and_not_waited_for),
        cmocka_unit_test(rounds_that_are_not_known_are_told_apart),
        cmocka_unit_test(causes_are_what_is_no_routine_and_of_what_was_asked),
        cmocka_unit_test(without_a_script_a_node_says_what_it_waits_for),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
