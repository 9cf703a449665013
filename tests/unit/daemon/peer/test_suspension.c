/* The owner's pause through starts, ends and clocks, and the commands that the node gets. The
 * driver, the quota and the count of rounds are mocks. */
#include "daemon/peer/suspension.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "daemon/owner/machine_watch.h"
#include "daemon/peer/supervisor.h"
#include "tests/unit/daemon/bandwidth_limiter_kit.h"

#define NOV_10 UINT64_C(1794268800000)
#define HOUR_MS UINT64_C(3600000)

static uint64_t wall;
static uint64_t steady;
static const char *drained; /* NULL: a round is open and has not counted the work */

static uint64_t wall_ms(void)
{
    return wall;
}

static uint64_t steady_ms(void)
{
    return steady;
}

uint64_t dp_supervisor_counted(const dp_daemon *daemon)
{
    (void)daemon;
    return 0;
}

const char *dp_supervisor_drained(const dp_daemon *daemon, uint64_t counted, uint64_t waited_ms,
                                  uint64_t limit_ms)
{
    (void)daemon;
    (void)counted;
    CHECK(waited_ms < limit_ms);
    return drained;
}

/* ---- machine_watch.c */

static struct {
    dp_machine_use use;
    bool sees;
    bool hangs;
    uint32_t n_open; /* now */
    dp_card_use cards;
    bool at_cards;
    bool yields; /* as the driver was told */
} machine;

void dp_driver_yield(dp_driver *driver, bool yields)
{
    (void)driver;
    machine.yields = yields;
}

dp_status dp_machine_watch_open(dp_machine_watch **watch, const char *root, uint32_t self,
                                uint64_t every_ms)
{
    CHECK(root[0] == '\0' && self == (uint32_t)getpid() && every_ms > 0);
    machine.n_open++;
    *watch = (dp_machine_watch *)(void *)&machine;
    return DP_OK;
}

void dp_machine_watch_close(dp_machine_watch *watch)
{
    machine.n_open -= watch != NULL ? 1 : 0;
}

void dp_machine_watch_script(dp_machine_watch *watch, uint32_t pid)
{
    (void)watch;
    (void)pid;
}

bool dp_machine_watch_see(dp_machine_watch *watch, uint64_t late_ms, dp_machine_use *use,
                          bool *hangs)
{
    *hangs = watch != NULL && machine.hangs;
    if (watch == NULL || !machine.sees || machine.hangs) {
        return false;
    }
    CHECK(late_ms > DP_MACHINE_WATCH_MS);
    *use = machine.use;
    return true;
}

void dp_machine_watch_cards(dp_machine_watch *watch, bool wanted)
{
    machine.at_cards = watch != NULL && wanted;
}

bool dp_machine_watch_see_cards(dp_machine_watch *watch, uint64_t late_ms, dp_card_use *cards)
{
    CHECK(watch != NULL && late_ms > DP_MACHINE_WATCH_MS);
    if (machine.at_cards && machine.sees && !machine.hangs) {
        *cards = machine.cards;
    }
    return machine.at_cards && machine.sees && !machine.hangs;
}

static void begin(void)
{
    const dp_suspension_clocks clocks = {wall_ms, steady_ms};
    CHECK_OK(dp_suspension_open(&desk.daemon.suspension, &desk.daemon, &clocks));
}

/* The store is read before its thread has it. */
static void open_daemon(void)
{
    call_open();
    allowance_open();
    call_kit.view.running = true;
    call_kit.view.node.mode = DP_MODE_SYNC;
    call_kit.view.device = "";
    wall = NOV_10;
    steady = 1000;
    drained = NULL;
    memset(&machine, 0, sizeof machine);
    desk.daemon.store = desk.shelf.store;
    begin();
}

static void close_daemon(void)
{
    dp_suspension_close(desk.daemon.suspension);
    desk.daemon.suspension = NULL;
    call_close();
}

static bool is_quiet(void *context)
{
    (void)context;
    return dp_store_thread_waiting(desk.daemon.store_thread) == 0;
}

/* kill -9, and a start after it. */
static void start_anew(void)
{
    turn_until(&desk.loop, is_quiet, NULL);
    dp_suspension_close(desk.daemon.suspension);
    begin();
}

static void order(const dp_pause *pause)
{
    CHECK_OK(dp_suspension_pause(desk.daemon.suspension, pause, NULL, NULL));
}

static void pass(uint64_t ms)
{
    wall += ms;
    steady += ms;
    dp_suspension_act(desk.daemon.suspension);
}

static dp_pause owner(void)
{
    return dp_suspension_owner(desk.daemon.suspension);
}

static bool told(dp_command command)
{
    const bool was = call_kit.n_commands > 0 && call_kit.command == command;
    call_kit.n_commands = 0;
    call_kit.view.node.mode = command == DP_COMMAND_PAUSE ? DP_MODE_PAUSED : DP_MODE_SYNC;
    return was;
}

static void a_pause_outlives_the_daemon_until_it_is_resumed(void **state)
{
    (void)state;
    open_daemon();
    CHECK(!owner().holds);
    order(&(dp_pause){.holds = true, .since_ms = NOV_10, .user = "alice"});
    CHECK(told(DP_COMMAND_PAUSE));
    start_anew();
    CHECK(owner().holds && owner().since_ms == NOV_10);
    assert_string_equal(owner().user, "alice");
    order(&(dp_pause){.holds = false});
    CHECK(told(DP_COMMAND_RESUME));
    start_anew();
    CHECK(!owner().holds);
    close_daemon();
}

static void a_pause_outlives_the_row_that_meta_db_has_lost(void **state)
{
    (void)state;
    open_daemon();
    order(&(dp_pause){.holds = true, .since_ms = NOV_10, .user = "alice"});
    turn_until(&desk.loop, is_quiet, NULL);
    CHECK_OK(dp_store_delete(desk.shelf.store, "pause"));
    start_anew();
    CHECK(owner().holds && owner().since_ms == NOV_10);
    order(&(dp_pause){.holds = false});
    start_anew();
    CHECK(!owner().holds);
    close_daemon();
}

static void a_damaged_order_means_paused(void **state)
{
    (void)state;
    open_daemon();
    CHECK_OK(dp_store_thread_put(desk.daemon.store_thread, "pause", dp_view_text("\x01junk"), NULL,
                                 NULL));
    start_anew();
    CHECK(owner().holds && owner().since_ms == 0 && owner().until_ms == 0);
    assert_string_equal(owner().user, "");
    CHECK(desk_logged("pause.damaged"));
    pass(1000);
    CHECK(told(DP_COMMAND_PAUSE));
    close_daemon();
}

static void a_pause_ends_at_its_time_and_once(void **state)
{
    (void)state;
    open_daemon();
    order(&(dp_pause){.holds = true, .since_ms = wall, .until_ms = wall + HOUR_MS});
    CHECK(told(DP_COMMAND_PAUSE));
    start_anew(); /* Its end is kept. */
    pass(HOUR_MS - 1);
    CHECK(owner().holds && call_kit.n_commands == 0);
    pass(1);
    CHECK(!owner().holds && told(DP_COMMAND_RESUME) && desk_logged("pause.over"));
    pass(1000);
    CHECK(call_kit.n_commands == 0);
    start_anew();
    CHECK(!owner().holds);
    close_daemon();
}

static void a_clock_that_is_set_moves_an_hour_and_not_a_length(void **state)
{
    (void)state;
    open_daemon();
    order(&(dp_pause){
        .holds = true, .since_ms = wall, .until_ms = wall + HOUR_MS, .for_ms = HOUR_MS});
    wall += 5 * HOUR_MS; /* It was five hours slow. */
    pass(1000);
    CHECK(owner().holds && desk_logged("pause.clock"));
    pass(HOUR_MS - 2000);
    CHECK(owner().holds);
    pass(1000);
    CHECK(!owner().holds);
    order(&(dp_pause){.holds = true, .since_ms = wall, .until_ms = wall + HOUR_MS});
    wall += HOUR_MS;
    pass(0);
    CHECK(!owner().holds);
    close_daemon();
}

static void a_pause_after_the_round_begins_when_it_has_counted_the_work(void **state)
{
    const dp_pause later = {
        .holds = true, .waits = true, .since_ms = NOV_10, .for_ms = HOUR_MS, .user = "ann"};
    (void)state;
    open_daemon();
    order(&later);
    pass(3 * HOUR_MS);
    CHECK(owner().waits && call_kit.n_commands == 0);
    drained = "drained: this node's work is counted";
    pass(1000);
    CHECK(!owner().waits && owner().since_ms == wall && owner().until_ms == wall + HOUR_MS);
    CHECK(told(DP_COMMAND_PAUSE) && desk_logged("paused by its owner, by ann, since "));
    drained = NULL;
    order(&later);
    start_anew(); /* There is nothing to wait for any more. */
    CHECK(owner().holds && !owner().waits && owner().until_ms == wall + HOUR_MS);
    close_daemon();
}

static void a_used_up_month_and_a_pause_end_each_for_itself(void **state)
{
    (void)state;
    open_daemon();
    bandwidth_limiter_kit.cap = "this month's upload is used up";
    call_kit.view.node.mode = DP_MODE_JOINING; /* It may fetch the run. */
    pass(1000);
    CHECK(call_kit.n_commands == 0);
    call_kit.view.node.mode = DP_MODE_SYNC;
    pass(1000);
    CHECK(told(DP_COMMAND_PAUSE));
    order(&(dp_pause){.holds = true, .since_ms = wall});
    CHECK(told(DP_COMMAND_PAUSE));
    bandwidth_limiter_kit.cap = NULL;
    pass(1000);
    CHECK(call_kit.n_commands == 0);
    order(&(dp_pause){.holds = false});
    CHECK(told(DP_COMMAND_RESUME));
    CHECK(dp_suspension_pause(NULL, &(dp_pause){.holds = true}, NULL, NULL) == DP_CLOSED);
    CHECK(!dp_suspension_owner(NULL).holds);
    close_daemon();
}

static void a_machine_that_must_cool_is_suspended_until_it_has(void **state)
{
    char text[DP_SUSPENSION_TEXT_MAX];
    const char *word = "";
    (void)state;
    open_daemon();
    CHECK(!dp_suspension_cause(desk.daemon.suspension, 0, &word, text));
    desk.config.celsius_max = 70;
    call_kit.view.rests = true;
    call_kit.view.rests_celsius = 81;
    dp_suspension_act(desk.daemon.suspension); /* By the trainer's word, without a tick. */
    CHECK(told(DP_COMMAND_PAUSE));
    CHECK(dp_suspension_cause(desk.daemon.suspension, 0, &word, text));
    assert_string_equal(word, "heat");
    assert_string_equal(text, "it was at 81 degrees Celsius, far above its limit of 70, and must "
                              "cool first");
    CHECK(!dp_suspension_cause(desk.daemon.suspension, 1, &word, text));
    bandwidth_limiter_kit.cap = "this month's upload is used up";
    pass(1000);
    CHECK(dp_suspension_cause(desk.daemon.suspension, 1, &word, text) && call_kit.n_commands == 0);
    bandwidth_limiter_kit.cap = NULL;
    call_kit.view.rests = false;
    pass(1000);
    CHECK(told(DP_COMMAND_RESUME));
    CHECK(!dp_suspension_cause(desk.daemon.suspension, 0, &word, text));
    CHECK(!dp_suspension_cause(NULL, 0, &word, text));
    close_daemon();
}

static const char *cause(unsigned index)
{
    static char text[DP_SUSPENSION_TEXT_MAX];
    const char *word = "";
    return dp_suspension_cause(desk.daemon.suspension, index, &word, text) ? text : "";
}

static void at_the_end_of_its_hours_a_node_lets_the_round_count_its_work(void **state)
{
    char text[DP_SUSPENSION_TEXT_MAX];
    (void)state;
    open_daemon(); /* at 00:00 */
    snprintf(desk.config.schedule, sizeof desk.config.schedule, "22:00-01:00");
    pass(1000);
    CHECK(call_kit.n_commands == 0 && dp_suspension_note(desk.daemon.suspension, "schedule", text));
    assert_string_equal(text, "open until Tue 01:00");
    pass(HOUR_MS);
    CHECK(call_kit.n_commands == 0); /* The round is open. */
    drained = "drained: this node's work is counted";
    pass(1000);
    CHECK(told(DP_COMMAND_PAUSE));
    assert_string_equal(cause(0), "it is outside of the schedule (22:00-01:00) until Tue 22:00");
    drained = NULL;
    pass(1000);
    CHECK(call_kit.n_commands == 0);
    start_anew(); /* It is outside at once. */
    CHECK(cause(0)[0] != '\0');
    wall = NOV_10 + 22 * HOUR_MS; /* The clock is set: the next tick goes by it. */
    dp_suspension_act(desk.daemon.suspension);
    CHECK(told(DP_COMMAND_RESUME) && cause(0)[0] == '\0');
    desk.config.schedule[0] = '\0';
    pass(10 * HOUR_MS);
    CHECK(call_kit.n_commands == 0);
    CHECK(!dp_suspension_note(desk.daemon.suspension, "schedule", text));
    close_daemon();
}

static void battery_and_use_suspend_where_the_settings_say_so(void **state)
{
    char text[DP_SUSPENSION_TEXT_MAX];
    (void)state;
    open_daemon();
    machine.sees = true;
    machine.use = (dp_machine_use){
        .power = DP_MACHINE_POWER_BATTERY, .has_input = true, .input_s = 20, .has_before = true};
    pass(1000);
    CHECK(call_kit.n_commands == 0 && machine.n_open == 0); /* Nobody has asked. */
    desk.config.not_on_battery = true;
    desk.config.idle_only = true;
    pass(1000);
    CHECK(told(DP_COMMAND_PAUSE) && machine.n_open == 1);
    assert_string_equal(cause(0), "the machine runs on battery");
    assert_string_equal(cause(1), "somebody uses the machine: the last input is 20 s ago");
    CHECK(dp_suspension_note(desk.daemon.suspension, "not-on-battery", text));
    assert_string_equal(text, "on battery");
    machine.use.power = DP_MACHINE_POWER_MAINS;
    pass(1000);
    CHECK(call_kit.n_commands == 0); /* It is used. */
    machine.use.input_s = 200;
    pass(1000);
    CHECK(told(DP_COMMAND_RESUME));
    CHECK(dp_suspension_note(desk.daemon.suspension, "idle-only", text));
    assert_string_equal(text, "nobody uses the machine");
    desk.config.not_on_battery = false;
    desk.config.idle_only = false;
    pass(1000);
    CHECK(machine.n_open == 0);
    close_daemon();
}

static void sensors_that_lie_or_hang_are_told_once_and_stop_nothing(void **state)
{
    char text[DP_SUSPENSION_TEXT_MAX];
    (void)state;
    open_daemon();
    desk.config.not_on_battery = true;
    desk.config.idle_only = true;
    pass(1000); /* The first look is under way. */
    CHECK(call_kit.n_commands == 0 && !desk_logged("E0134"));
    machine.sees = true;
    machine.use = (dp_machine_use){.power = DP_MACHINE_POWER_UNKNOWN};
    pass(1000);
    CHECK(call_kit.n_commands == 0);
    CHECK(desk_logged("E0134 not-on-battery does nothing now, and this node trains: no power"));
    CHECK(desk_logged("E0134 idle-only does nothing now, and this node trains: neither load"));
    machine.use.power = DP_MACHINE_POWER_BATTERY;
    pass(1000);
    CHECK(told(DP_COMMAND_PAUSE));
    machine.hangs = true;
    pass(1000);
    CHECK(told(DP_COMMAND_RESUME) && desk_logged("a driver does not answer"));
    CHECK(dp_suspension_note(desk.daemon.suspension, "not-on-battery", text));
    assert_string_equal(text, "a driver does not answer");
    close_daemon();
}

static const char *card_note(void)
{
    static char text[DP_SUSPENSION_TEXT_MAX];
    return dp_suspension_note(desk.daemon.suspension, "yield-card", text) ? text : "";
}

static void while_another_program_uses_its_card_a_node_is_suspended_without_a_trainer(void **state)
{
    (void)state;
    open_daemon();
    machine.sees = true;
    machine.cards = (dp_card_use){.told = true, .own = 1, .used = 1, .pid = 42, .name = "a game"};
    pass(1000);
    CHECK(call_kit.n_commands == 0 && !machine.yields); /* Nobody has asked. */
    assert_string_equal(card_note(), "");
    desk.config.yield_card = true;
    pass(200);
    CHECK(told(DP_COMMAND_PAUSE) && machine.yields && desk_logged("card.yield"));
    assert_string_equal(cause(0), "another program uses its GPU: a game (process 42)");
    machine.cards.used = 0;
    pass(DP_CARD_FREE_MS - 1);
    CHECK(call_kit.n_commands == 0 && machine.yields);
    assert_string_equal(cause(0), "another program used its GPU within a minute");
    pass(1);
    CHECK(told(DP_COMMAND_RESUME) && !machine.yields);
    assert_string_equal(card_note(), "no other program uses its GPU");
    machine.cards.used = 1;
    pass(200);
    CHECK(told(DP_COMMAND_PAUSE) && machine.yields);
    desk.config.yield_card = false;
    pass(1000);
    CHECK(told(DP_COMMAND_RESUME) && !machine.yields && machine.n_open == 0);
    close_daemon();
}

static void a_trainer_on_the_cpu_yields_no_card_and_a_blind_library_is_told(void **state)
{
    (void)state;
    open_daemon();
    machine.sees = true;
    machine.cards = (dp_card_use){.told = true, .own = 1, .used = 1};
    desk.config.yield_card = true;
    call_kit.view.device = "cpu: avx2, 2 threads";
    pass(200);
    CHECK(call_kit.n_commands == 0 && !machine.yields);
    call_kit.view.device = "cuda: a card";
    machine.cards = (dp_card_use){.told = false};
    pass(200);
    CHECK(call_kit.n_commands == 0 &&
          desk_logged("E0134 yield-card does nothing now, and this node trains: NVIDIA's library"));
    assert_string_equal(card_note(), "the GPUs cannot be read");
    close_daemon();
}

static void a_script_is_paused_on_a_used_card_and_its_trainer_lives_on(void **state)
{
    (void)state;
    open_daemon();
    machine.sees = true;
    machine.cards = (dp_card_use){.told = true, .own = 1, .used = 1};
    desk.config.yield_card = true;
    call_kit.view.device = "cpu: avx2, 2 threads"; /* as in any run of any model */
    call_kit.view.script_pid = 77;
    pass(200);
    CHECK(told(DP_COMMAND_PAUSE) && !machine.yields);
    call_kit.view.device = "cuda: a card"; /* a built-in model */
    pass(200);
    CHECK(call_kit.n_commands == 0 && !machine.yields);
    call_kit.view.script_pid = 0;
    pass(200);
    CHECK(call_kit.n_commands == 0 && machine.yields);
    close_daemon();
}

static void without_the_limits_that_were_stored_it_waits_for_its_owner(void **state)
{
    static dp_config_live live;
    (void)state;
    open_daemon();
    dp_config_live_init(&live, &desk.config);
    live.damaged = true;
    desk.daemon.live = &live;
    pass(1000);
    CHECK(told(DP_COMMAND_PAUSE));
    CHECK(strstr(cause(0), "the stored limits cannot be read") != NULL);
    CHECK_OK(dp_config_live_keep(&live, desk.daemon.store_thread, NULL, NULL));
    pass(1000);
    CHECK(told(DP_COMMAND_RESUME));
    close_daemon();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_outlives_the_daemon_until_it_is_resumed),
        cmocka_unit_test(a_pause_outlives_the_row_that_meta_db_has_lost),
        cmocka_unit_test(a_damaged_order_means_paused),
        cmocka_unit_test(a_pause_ends_at_its_time_and_once),
        cmocka_unit_test(a_clock_that_is_set_moves_an_hour_and_not_a_length),
        cmocka_unit_test(a_pause_after_the_round_begins_when_it_has_counted_the_work),
        cmocka_unit_test(at_the_end_of_its_hours_a_node_lets_the_round_count_its_work),
        cmocka_unit_test(battery_and_use_suspend_where_the_settings_say_so),
        cmocka_unit_test(sensors_that_lie_or_hang_are_told_once_and_stop_nothing),
        cmocka_unit_test(while_another_program_uses_its_card_a_node_is_suspended_without_a_trainer),
        cmocka_unit_test(a_trainer_on_the_cpu_yields_no_card_and_a_blind_library_is_told),
        cmocka_unit_test(a_script_is_paused_on_a_used_card_and_its_trainer_lives_on),
        cmocka_unit_test(without_the_limits_that_were_stored_it_waits_for_its_owner),
        cmocka_unit_test(a_machine_that_must_cool_is_suspended_until_it_has),
        cmocka_unit_test(a_used_up_month_and_a_pause_end_each_for_itself),
    };
    setenv("TZ", "UTC", 1);
    tzset();
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
