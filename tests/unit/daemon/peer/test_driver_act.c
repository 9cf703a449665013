/* Each action calls its function with the right arguments. All of these functions are mocks. */
#include "tests/unit/daemon/desk.h"

/* The last call: its name and arguments. */
static struct call {
    const char *name;
    uint32_t n;
    dp_peer peer;
    dp_hash root;
    uint64_t a;
    uint64_t b;
    const void *pointer;
} call;

static void called(struct call what)
{
    what.n = call.n + 1;
    call = what;
}

void dp_transport_send_all(dp_transport *transport, dp_view bytes)
{
    (void)transport;
    called((struct call){.name = "send_all", .a = bytes.size});
}

dp_status dp_transport_send(dp_transport *transport, const dp_peer *peer, dp_lane lane,
                            dp_view bytes)
{
    (void)transport;
    called((struct call){.name = "send", .peer = *peer, .a = bytes.size, .b = lane});
    return DP_NOTFOUND; /* No link: the message is dropped. */
}

void dp_transport_hangup(dp_transport *transport, const dp_peer *peer)
{
    (void)transport;
    called((struct call){.name = "hangup", .peer = *peer});
}

void dp_driver_dial(dp_driver *driver, const dp_peer *peer, const dp_addr *addrs, uint32_t n_addrs)
{
    (void)driver;
    called((struct call){.name = "dial", .peer = *peer, .a = n_addrs, .b = addrs[0].port});
}

void dp_driver_store(dp_driver *driver, const dp_action *action)
{
    (void)driver;
    called((struct call){.name = "store", .pointer = action});
}

void dp_driver_save(dp_driver *driver, const dp_action *action)
{
    (void)driver;
    called((struct call){.name = "save", .pointer = action});
}

void dp_driver_keep(dp_driver *driver, const dp_action *action)
{
    (void)driver;
    called((struct call){.name = "keep", .pointer = action, .root = call.root});
}

void dp_object_transfer_begin(dp_object_transfer *object_transfer, const dp_hash *root,
                              uint64_t size, const dp_hash *leaves, dp_object_use use,
                              uint64_t round)
{
    (void)object_transfer;
    (void)round;
    called((struct call){.name = "begin", .root = *root, .a = size, .b = use, .pointer = leaves});
}

void dp_object_transfer_cancel(dp_object_transfer *object_transfer, const dp_hash *root)
{
    (void)object_transfer;
    called((struct call){.name = "cancel", .root = *root});
}

void dp_object_transfer_get_info(dp_object_transfer *object_transfer, const dp_peer *peer,
                                 const dp_hash *root, uint32_t ahead)
{
    (void)object_transfer;
    called((struct call){.name = "get_info", .peer = *peer, .root = *root, .a = ahead});
}

void dp_object_transfer_get_chunk(dp_object_transfer *object_transfer, const dp_peer *peer,
                                  const dp_hash *root, uint32_t index)
{
    (void)object_transfer;
    called((struct call){.name = "get_chunk", .peer = *peer, .root = *root, .a = index});
}

void dp_object_transfer_serve_info(dp_object_transfer *object_transfer, const dp_peer *peer,
                                   const dp_hash *root)
{
    (void)object_transfer;
    called((struct call){.name = "serve_info", .peer = *peer, .root = *root});
}

void dp_object_transfer_serve_chunk(dp_object_transfer *object_transfer, const dp_peer *peer,
                                    const dp_hash *root, uint32_t index)
{
    (void)object_transfer;
    called((struct call){.name = "serve_chunk", .peer = *peer, .root = *root, .a = index});
}

void dp_object_transfer_serve_records(dp_object_transfer *object_transfer, const dp_peer *peer,
                                      uint64_t from, uint32_t count)
{
    (void)object_transfer;
    called((struct call){.name = "serve_records", .peer = *peer, .a = from, .b = count});
}

void dp_object_transfer_serve_manifest(dp_object_transfer *object_transfer, const dp_peer *peer)
{
    (void)object_transfer;
    called((struct call){.name = "serve_manifest", .peer = *peer});
}

void dp_driver_trainer_open(dp_driver *driver)
{
    (void)driver;
    called((struct call){.name = "trainer_open"});
}

void dp_driver_command_trainer(dp_driver *driver, const dp_action *action)
{
    (void)driver;
    called((struct call){.name = "command", .pointer = action});
}

void dp_driver_renewed(dp_driver *driver, const dp_renewal *renewal)
{
    (void)driver;
    called((struct call){.name = "renewed", .pointer = renewal});
}

void dp_driver_secrets(dp_driver *driver, const dp_secrets *secrets)
{
    (void)driver;
    called((struct call){.name = "secrets", .pointer = secrets});
}

void dp_driver_remember_soon(dp_driver *driver)
{
    (void)driver;
    called((struct call){.name = "remember_soon"});
}

static uint64_t held_us; /* as the node says; 0: it does not know */

void dp_node_look(const dp_node *node, dp_node_view *view)
{
    (void)node;
    *view = (dp_node_view){.round = 9, .slot = 12, .alive = 5, .held_known = held_us != 0};
    view->held_us = held_us;
}

static uint64_t now_ms;  /* of the loop */
static bool is_stranger; /* to the roster: whatever peer is asked for */

uint64_t uv_now(const uv_loop_t *loop)
{
    (void)loop;
    return now_ms;
}

bool dp_node_admitted(const dp_node *node, const dp_peer *of, uint8_t x_public[32])
{
    (void)node;
    (void)of;
    (void)x_public;
    return !is_stranger;
}

static const dp_peer peer = {{3}};
static const dp_hash root = {.bytes = {4}};

/* True: it was one call, of this name. */
static bool acts(const dp_action *action, const char *name)
{
    call = (struct call){.n = 0};
    dp_driver_act(desk.driver, action);
    if (call.n != 1 || strcmp(call.name, name) != 0) {
        print_error("%u calls, the last is %s and not %s\n", call.n, call.name, name);
        return false;
    }
    return true;
}

static void messages_go_to_one_peer_or_to_all_on_the_control_lane(void **state)
{
    dp_action action = {.type = DP_DO_SEND};
    (void)state;
    desk_open();
    action.u.send.to = DP_TO_ALL;
    action.u.send.bytes = dp_view_text("four");
    assert_true(acts(&action, "send_all") && call.a == 4);
    action.u.send.to = DP_TO_PEER;
    action.u.send.peer = peer;
    assert_true(acts(&action, "send") && call.a == 4 && call.b == DP_LANE_CONTROL);
    assert_true(dp_peer_equal(&call.peer, &peer));
    action = (dp_action){.type = DP_DO_HANGUP, .u.peer = peer};
    assert_true(acts(&action, "hangup") && dp_peer_equal(&call.peer, &peer));
    action = (dp_action){.type = DP_DO_DIAL};
    action.u.dial.peer = peer;
    action.u.dial.n_addrs = 2;
    action.u.dial.addrs[0].port = 77;
    assert_true(acts(&action, "dial") && call.a == 2 && call.b == 77);
    desk_close();
}

static void objects_go_to_the_courier_with_what_is_asked(void **state)
{
    dp_action action = {.type = DP_DO_OBJECT_BEGIN};
    (void)state;
    desk_open();
    action.u.object.root = root;
    action.u.object.size = 1234;
    action.u.object.leaves = &root;
    action.u.object.use = DP_USE_STATE;
    assert_true(acts(&action, "begin") && call.a == 1234 && call.b == DP_USE_STATE);
    assert_true(call.pointer == &root && dp_hash_equal(&call.root, &root));
    static const struct {
        dp_action_type type;
        const char *name;
        uint64_t a;
    } gets[] = {{DP_DO_GET_INFO, "get_info", 6},
                {DP_DO_GET_CHUNK, "get_chunk", 5},
                {DP_DO_SERVE_INFO, "serve_info", 0},
                {DP_DO_SERVE_CHUNK, "serve_chunk", 5}};
    for (size_t i = 0; i < sizeof gets / sizeof gets[0]; i++) {
        action = (dp_action){.type = gets[i].type};
        action.u.get.peer = peer;
        action.u.get.root = root;
        action.u.get.index = 5;
        action.u.get.ahead = 6;
        assert_true(acts(&action, gets[i].name) && call.a == gets[i].a);
        assert_true(dp_peer_equal(&call.peer, &peer) && dp_hash_equal(&call.root, &root));
    }
    action = (dp_action){.type = DP_DO_SERVE_RECORDS};
    action.u.serve.peer = peer;
    action.u.serve.from = 40;
    action.u.serve.count = 8;
    assert_true(acts(&action, "serve_records") && call.a == 40 && call.b == 8);
    action = (dp_action){.type = DP_DO_SERVE_MANIFEST, .u.peer = peer};
    assert_true(acts(&action, "serve_manifest") && dp_peer_equal(&call.peer, &peer));
    desk_close();
}

static void a_dropped_object_is_fetched_no_more_and_let_go(void **state)
{
    dp_action action = {.type = DP_DO_OBJECT_DROP};
    (void)state;
    desk_open();
    action.u.keep.root = root;
    call = (struct call){.n = 0};
    dp_driver_act(desk.driver, &action);
    assert_true(call.n == 2 && strcmp(call.name, "keep") == 0 && call.pointer == &action);
    assert_true(dp_hash_equal(&call.root, &root)); /* cancel came first. */
    action.type = DP_DO_OBJECT_KEEP;
    assert_true(acts(&action, "keep") && call.pointer == &action);
    desk_close();
}

static void whatever_the_trainer_is_to_do_goes_to_it(void **state)
{
    static const dp_action_type types[] = {
        DP_DO_TRAINER_INIT, DP_DO_TRAINER_LOAD, DP_DO_TRAINER_RESTORE, DP_DO_TRAIN,
        DP_DO_TRAIN_STOP,   DP_DO_PUBLISH,      DP_DO_CHECK,           DP_DO_APPLY,
        DP_DO_FREEZE,       DP_DO_MIX,          DP_DO_REDUCE,          DP_DO_JUDGE};
    static dp_action action;
    (void)state;
    desk_open();
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        action = (dp_action){.type = types[i]};
        assert_true(acts(&action, "command") && call.pointer == &action);
    }
    action = (dp_action){.type = DP_DO_TRAINER_OPEN};
    assert_true(acts(&action, "trainer_open"));
    desk_close();
}

static void durable_actions_go_to_the_store(void **state)
{
    dp_action action = {.type = DP_DO_STORE};
    (void)state;
    desk_open();
    assert_true(acts(&action, "store") && call.pointer == &action);
    action.type = DP_DO_SAVE;
    assert_true(acts(&action, "save") && call.pointer == &action);
    action.type = DP_DO_RENEWED;
    assert_true(acts(&action, "renewed") && call.pointer == &action.u.renewal);
    action.type = DP_DO_SECRETS;
    assert_true(acts(&action, "secrets") && call.pointer == &action.u.secrets);
    desk_close();
}

static void note(dp_note_code code, const char *cause)
{
    const dp_action action = {
        .type = DP_DO_NOTE,
        .u.note = {.code = code, .round = 9, .peer = peer, .a = 10, .b = 20, .cause = cause}};
    dp_driver_act(desk.driver, &action);
}

static void notes_are_written_and_counted(void **state)
{
    dp_driver *driver = desk_open();
    dp_event_log *event_log = desk.daemon.event_log;
    (void)state;
    call = (struct call){.n = 0};
    note(DP_NOTE_COUNTED, "");
    assert_true(driver->counted == 1 && dp_event_log_entries(event_log) == 1);
    assert_int_equal(dp_event_log_entry_at(event_log, 0)->code, DP_NOTE_COUNTED);
    note(DP_NOTE_READY, "");
    assert_true(driver->counted == 1 && dp_event_log_entries(event_log) == 2 && call.n == 0);
    note(DP_NOTE_ADMITTED, "");
    assert_true(call.n == 1 && strcmp(call.name, "remember_soon") == 0);
    desk_close();
}

/* Their identities cost nothing: each is told, and 5,000 of them took the place of all history. */
static void states_of_guests_are_events_once_a_minute_and_counted_otherwise(void **state)
{
    dp_driver *driver = desk_open();
    const dp_event_log *event_log = desk.daemon.event_log;
    (void)state;
    is_stranger = true;
    now_ms = 1000;
    for (uint32_t i = 0; i < 100; i++) {
        note(DP_NOTE_MEMBER, "linked");
        dp_driver_guests_tick(driver);
    }
    assert_int_equal(dp_event_log_entries(event_log), 1);
    now_ms += 60 * 1000;
    dp_driver_guests_tick(driver);
    dp_driver_guests_tick(driver);
    assert_int_equal(dp_event_log_entries(event_log), 2);
    assert_true(desk_logged("99 times"));
    is_stranger = false;
    for (uint32_t i = 0; i < 3; i++) {
        note(DP_NOTE_MEMBER, "linked");
    }
    assert_int_equal(dp_event_log_entries(event_log), 5);
    desk_close();
}

static void an_exchange_has_a_row_among_the_rounds_with_what_it_moved(void **state)
{
    dp_driver *driver = desk_open();
    (void)state;
    driver->moved = 0.5;
    note(DP_NOTE_EXCHANGE, "done");
    const dp_event_log_round *round = dp_event_log_round_at(desk.daemon.event_log, 0);
    assert_non_null(round);
    assert_true(round->kind == DP_EVENT_LOG_GOSSIP && round->round == 9 && round->slot == 12);
    assert_true(round->active == 5 && dp_peer_equal(&round->partner, &peer) && round->live);
    assert_true(round->weight_own == 10 && round->weight_other == 20 && round->moved == 0.5);
    assert_string_equal(round->cause, "done");
    desk_close();
}

static uint64_t phase_of(dp_phase phase)
{
    uint64_t ms = 0;
    const dp_event_log_round *const row = dp_event_log_round_find(desk.daemon.event_log, 9);
    return dp_phases_ms(&row->phases, phase, &ms) ? ms : UINT64_MAX;
}

static void notes_and_commands_are_the_phases_of_a_round(void **state)
{
    const dp_event_log_round row = {.kind = DP_EVENT_LOG_SYNC, .round = 9, .live = true};
    dp_action action = {.type = DP_DO_APPLY, .u.apply = {.round = 9}};
    dp_driver *driver = desk_open();
    (void)state;
    dp_event_log_round_add(desk.daemon.event_log, &row);
    held_us = 0;
    note(DP_NOTE_DECIDED, "");
    assert_true(phase_of(DP_PHASE_DECIDED) == UINT64_MAX); /* It is not known when it opened. */
    note(DP_NOTE_ROUND_OPENED, "");
    note(DP_NOTE_PUBLISHED, "");
    assert_int_equal(driver->published_round, 9);
    assert_true(phase_of(DP_PHASE_PUBLISHED) != UINT64_MAX);
    assert_true(phase_of(DP_PHASE_HELD) == UINT64_MAX);
    held_us = 77000;
    note(DP_NOTE_DECIDED, "");
    assert_int_equal(phase_of(DP_PHASE_HELD), 77);
    dp_driver_act(driver, &action); /* It was known before. */
    assert_int_equal(phase_of(DP_PHASE_HELD), 77);
    assert_true(phase_of(DP_PHASE_APPLIED) == UINT64_MAX);
    note(DP_NOTE_APPLIED, "");
    assert_true(phase_of(DP_PHASE_APPLIED) != UINT64_MAX);
    desk_close();
    driver = desk_open();
    dp_event_log_round_add(desk.daemon.event_log, &row);
    held_us = 0;
    note(DP_NOTE_ROUND_OPENED, "");
    note(DP_NOTE_DECIDED, "");
    assert_true(phase_of(DP_PHASE_HELD) == UINT64_MAX);
    dp_driver_act(driver, &action);
    assert_true(phase_of(DP_PHASE_HELD) != UINT64_MAX);
    desk_close();
}

static void a_halt_names_who_voted_twice_or_the_two_forks(void **state)
{
    dp_action action = {.type = DP_DO_HALT,
                        .u.note = {.code = DP_NOTE_MODE, .round = 7, .peer = peer, .cause = ""}};
    (void)state;
    desk_open();
    dp_driver_act(desk.driver, &action);
    assert_true(desk_logged("run.halted") && desk_logged("voted twice in one ballot"));
    assert_false(desk_logged("restarted the chain twice"));
    action.u.note.peer = (dp_peer){{0}};
    dp_driver_act(desk.driver, &action);
    assert_true(desk_logged("the root key has restarted the chain twice at one place"));
    assert_false(desk.ended);
    desk_close();
}

static void a_chain_that_begins_anew_begins_a_new_life(void **state)
{
    const dp_action action = {.type = DP_DO_REOPEN};
    (void)state;
    desk_open();
    dp_driver_act(desk.driver, &action);
    assert_true(desk.ended && desk.daemon.again && desk.exit_status == 0);
    desk_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_go_to_one_peer_or_to_all_on_the_control_lane),
        cmocka_unit_test(objects_go_to_the_courier_with_what_is_asked),
        cmocka_unit_test(a_dropped_object_is_fetched_no_more_and_let_go),
        cmocka_unit_test(whatever_the_trainer_is_to_do_goes_to_it),
        cmocka_unit_test(durable_actions_go_to_the_store),
        cmocka_unit_test(notes_are_written_and_counted),
        cmocka_unit_test(states_of_guests_are_events_once_a_minute_and_counted_otherwise),
        cmocka_unit_test(an_exchange_has_a_row_among_the_rounds_with_what_it_moved),
        cmocka_unit_test(notes_and_commands_are_the_phases_of_a_round),
        cmocka_unit_test(a_halt_names_who_voted_twice_or_the_two_forks),
        cmocka_unit_test(a_chain_that_begins_anew_begins_a_new_life),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
