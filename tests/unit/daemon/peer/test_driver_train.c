/* The trainer process in the life of the driver: opened, asked, slow, dead. The process itself is
 * played, and so are the files that make commands and take answers. */
#include "daemon/peer/suspension.h"
#include "tests/unit/daemon/desk.h"

static struct {
    uint64_t now_ms;
    dp_trainer_process_config config;
    dp_status opens;
    dp_status starts;
    dp_status tells;
    uint32_t n_opened;
    uint32_t n_closed;
    uint32_t n_told;
    dp_trainer_msg told; /* the last */
    dp_trainer_limits limits;
    uint32_t n_replaced;
    uint32_t n_acts; /* of the suspension */
    uint32_t n_killed;
    char cause[128];
    uint32_t n_early; /* asked to start early */
    bool starts_early;
    uint64_t next_ms;
    uint32_t in_a_row;
    uint32_t deaths;
    bool takes_cpu;
    bool held;
    uint32_t n_idle; /* of four nodes */
    uint32_t n_slices_failed;
    uint32_t n_reduce_failed;
    uint32_t n_judged;
    uint32_t n_model;
    uint32_t n_answers;
    bool last_answer_is_null;
    char why[128];
} net;

uint64_t uv_now(const uv_loop_t *loop)
{
    (void)loop;
    return net.now_ms;
}

dp_status dp_trainer_process_open(dp_trainer_process **trainer,
                                  const dp_trainer_process_config *config)
{
    net.config = *config;
    net.n_opened++;
    if (net.opens == DP_OK) {
        *trainer = (dp_trainer_process *)(void *)&net;
    }
    return net.opens;
}

dp_status dp_trainer_process_start(dp_trainer_process *trainer, dp_why *why)
{
    (void)trainer;
    return net.starts == DP_OK ? DP_OK : dp_why_set(why, net.starts, "no program dpnode-worker");
}

void dp_trainer_process_close(dp_trainer_process *trainer)
{
    (void)trainer;
    net.n_closed++;
}

dp_status dp_trainer_process_tell(dp_trainer_process *trainer, const dp_trainer_msg *msg,
                                  const int *fds, uint32_t n_fds)
{
    (void)trainer;
    (void)fds;
    (void)n_fds;
    net.told = *msg;
    net.n_told++;
    return net.tells;
}

void dp_trainer_process_kill(dp_trainer_process *trainer, const char *cause)
{
    (void)trainer;
    net.n_killed++;
    snprintf(net.cause, sizeof net.cause, "%s", cause);
}

void dp_trainer_process_limit(dp_trainer_process *trainer, const dp_trainer_limits *limits)
{
    (void)trainer;
    net.limits = *limits;
}

void dp_trainer_process_replace(dp_trainer_process *trainer, const char *cause)
{
    (void)trainer;
    net.n_replaced++;
    snprintf(net.cause, sizeof net.cause, "%s", cause);
}

void dp_suspension_act(dp_suspension *suspension)
{
    (void)suspension;
    net.n_acts++;
}

void dp_trainer_process_hold(dp_trainer_process *trainer, const char *cause)
{
    CHECK(trainer != NULL && cause != NULL);
    snprintf(net.cause, sizeof net.cause, "%s", cause);
    net.held = true;
}

void dp_trainer_process_let_go(dp_trainer_process *trainer)
{
    CHECK(trainer != NULL);
    net.held = false;
}

void dp_trainer_process_look(dp_trainer_process *trainer)
{
    (void)trainer;
}

uint64_t dp_trainer_process_next_ms(const dp_trainer_process *trainer)
{
    (void)trainer;
    return net.next_ms;
}

bool dp_trainer_process_start_early(dp_trainer_process *trainer)
{
    (void)trainer;
    net.n_early++;
    return net.starts_early;
}

uint32_t dp_trainer_process_in_a_row(const dp_trainer_process *trainer)
{
    (void)trainer;
    return net.in_a_row;
}

uint32_t dp_trainer_process_deaths(const dp_trainer_process *trainer)
{
    (void)trainer;
    return net.deaths;
}

bool dp_trainer_process_takes_cpu(const dp_trainer_process *trainer)
{
    (void)trainer;
    return net.takes_cpu;
}

void dp_trainer_process_take_cpu(dp_trainer_process *trainer)
{
    (void)trainer;
    net.takes_cpu = true;
}

void dp_node_look(const dp_node *node, dp_node_view *view)
{
    (void)node;
    *view = (dp_node_view){.idle = net.n_idle, .alive = 4};
}

void dp_driver_open_model(dp_driver *driver)
{
    (void)driver;
    net.n_model++;
}

void dp_driver_on_answer(void *context, const dp_trainer_msg *msg, const int *fds, uint32_t n_fds)
{
    (void)context;
    (void)msg;
    (void)fds;
    (void)n_fds;
}

void dp_driver_judged(dp_driver *driver, const dp_hash *root, const dp_judged *found)
{
    (void)driver;
    CHECK(root->bytes[0] == 6 && found == NULL);
    net.n_judged++;
}

void dp_driver_slices_failed(dp_driver *driver, uint64_t round)
{
    (void)driver;
    CHECK(round == 9);
    net.n_slices_failed++;
}

void dp_driver_reduce_failed(dp_driver *driver, uint64_t round, uint32_t part, dp_status status)
{
    (void)driver;
    CHECK(round == 9 && part == 3 && status == DP_CORRUPT);
    net.n_reduce_failed++;
}

void dp_driver_publication_drop(dp_driver *driver)
{
    (void)driver;
}

void dp_driver_commands_drop(dp_driver *driver)
{
    (void)driver;
}

static void on_answer(void *context, const dp_trainer_msg *reply, const char *why)
{
    (void)context;
    net.n_answers++;
    net.last_answer_is_null = reply == NULL;
    snprintf(net.why, sizeof net.why, "%s", why != NULL ? why : "");
}

static dp_driver *open_trainer(void)
{
    memset(&net, 0, sizeof net);
    net.now_ms = 1000;
    dp_driver *driver = desk_open();
    snprintf(desk.config.worker, sizeof desk.config.worker, "/usr/bin/dpnode-worker");
    dp_driver_trainer_open(driver);
    driver->trainer_open = true;
    return driver;
}

static void close_trainer(void)
{
    dp_driver_trainer_close(desk.driver);
    desk_close();
}

static void expect(dp_trainer_kind command, dp_driver_answer *answer)
{
    const dp_driver_wait wait = {.command = command,
                                 .round = 9,
                                 .part = 3,
                                 .root = {.bytes = {6}},
                                 .exchange = {5},
                                 .since_ms = net.now_ms,
                                 .answer = answer};
    dp_driver_expect(desk.driver, &wait);
}

static void dies(const char *cause)
{
    net.config.hooks.down(net.config.hooks.context, cause);
}

static void a_trainer_is_opened_once_with_what_the_settings_say(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    dp_driver_trainer_open(driver);
    assert_int_equal(net.n_opened, 1);
    assert_string_equal(net.config.program, "/usr/bin/dpnode-worker");
    assert_true(driver->trainer_wanted);
    net.config.hooks.started(net.config.hooks.context);
    assert_int_equal(net.n_model, 1);
    close_trainer();
    assert_int_equal(net.n_closed, 1);
}

static void a_program_that_cannot_be_started_is_told(void **state)
{
    (void)state;
    memset(&net, 0, sizeof net);
    net.starts = DP_NOTFOUND;
    dp_driver *driver = desk_open();
    dp_driver_trainer_open(driver);
    assert_true(desk_logged("trainer.missing") && desk_logged("no program dpnode-worker"));
    close_trainer();
}

static void a_trainer_that_yields_its_gpu_is_held_also_before_it_is_opened(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    dp_driver_yield(driver, true);
    CHECK(net.held);
    dies("gives its GPU to other programs");
    CHECK(desk_logged("gives its GPU to other programs; it restarts when they have left the GPU"));
    dp_driver_yield(driver, false);
    CHECK(!net.held);
    close_trainer();
    memset(&net, 0, sizeof net);
    driver = desk_open();
    dp_driver_yield(driver, true); /* There is none. */
    CHECK(!net.held);
    dp_driver_trainer_open(driver);
    CHECK(net.held);
    close_trainer();
}

static void answers_go_to_the_oldest_command_of_their_kind(void **state)
{
    dp_driver_wait wait;
    (void)state;
    dp_driver *driver = open_trainer();
    expect(DP_TRAINER_REDUCE, NULL);
    expect(DP_TRAINER_APPLY, NULL);
    driver->waits[0].part = 1;
    expect(DP_TRAINER_REDUCE, NULL);
    assert_true(dp_driver_answered(driver, DP_TRAINER_REDUCE, &wait) && wait.part == 1);
    assert_int_equal(driver->waits[0].command, DP_TRAINER_APPLY);
    assert_true(dp_driver_answered(driver, DP_TRAINER_REDUCE, &wait) && wait.part == 3);
    assert_false(dp_driver_answered(driver, DP_TRAINER_REDUCE, &wait));
    assert_int_equal(driver->n_waits, 1);
    close_trainer();
}

static void a_trainer_that_answers_nothing_is_ended(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    for (uint32_t i = 0; i < DP_DRIVER_WAITS_MAX; i++) {
        expect(DP_TRAINER_APPLY, NULL);
    }
    assert_int_equal(net.n_killed, 0);
    expect(DP_TRAINER_APPLY, NULL);
    assert_true(net.n_killed == 1 && driver->n_waits == DP_DRIVER_WAITS_MAX);
    assert_string_equal(net.cause, "leaves too many commands unanswered");
    close_trainer();
}

/* As ticks do. */
static void watch_for(uint64_t ms)
{
    for (; ms > DP_DRIVER_TICK_MS; ms -= DP_DRIVER_TICK_MS) {
        net.now_ms += DP_DRIVER_TICK_MS;
        dp_driver_watch_trainer(desk.driver);
    }
    net.now_ms += ms;
    dp_driver_watch_trainer(desk.driver);
}

static void a_command_may_take_its_time_from_when_it_is_the_oldest(void **state)
{
    dp_driver_wait wait;
    (void)state;
    dp_driver *driver = open_trainer();
    desk.config.answer_time = 10;
    expect(DP_TRAINER_PUBLISH, NULL);
    expect(DP_TRAINER_APPLY, NULL);
    watch_for(10000);
    assert_int_equal(net.n_killed, 0);
    assert_true(dp_driver_answered(driver, DP_TRAINER_PUBLISH, &wait));
    watch_for(10000);
    assert_int_equal(net.n_killed, 0);
    watch_for(1);
    assert_int_equal(net.n_killed, 1);
    assert_string_equal(net.cause, "did not answer");
    close_trainer();
}

static void time_in_which_the_machine_stood_still_does_not_count(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    desk.config.answer_time = 10;
    dp_driver_watch_trainer(driver);
    expect(DP_TRAINER_APPLY, NULL);
    watch_for(9000);
    net.now_ms += 3600 * 1000;
    dp_driver_watch_trainer(driver);
    watch_for(10000);
    assert_int_equal(net.n_killed, 0);
    watch_for(1);
    assert_int_equal(net.n_killed, 1);
    close_trainer();
}

static void a_trainer_that_hangs_in_a_question_is_ended(void **state)
{
    (void)state;
    open_trainer();
    desk.config.answer_time = 10;
    expect(DP_TRAINER_EVAL, on_answer);
    expect(DP_TRAINER_APPLY, NULL);
    watch_for(10000);
    assert_int_equal(net.n_killed, 0);
    watch_for(1);
    assert_int_equal(net.n_killed, 1);
    close_trainer();
}

static void a_command_that_failed_is_told_to_the_node_as_what_it_waits_for(void **state)
{
    static const struct {
        dp_trainer_kind command;
        dp_event_type event;
    } rows[] = {{DP_TRAINER_INIT, DP_EV_TRAINER_AT},
                {DP_TRAINER_LOAD, DP_EV_TRAINER_AT},
                {DP_TRAINER_APPLY, DP_EV_APPLIED},
                {DP_TRAINER_MIX, DP_EV_MIXED}};
    dp_driver_wait wait = {.round = 9, .part = 3, .root = {.bytes = {6}}, .exchange = {5}};
    (void)state;
    dp_driver *driver = open_trainer();
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wait.command = rows[i].command;
        dp_driver_command_failed(driver, &wait, "no reason");
        assert_int_equal(desk.events[i].type, rows[i].event);
    }
    assert_true(desk.events[1].u.at.round == 9 && desk.events[1].u.at.status == DP_CORRUPT);
    assert_int_equal(desk.events[2].u.applied.status, DP_CORRUPT);
    assert_true(desk.events[3].u.mixed.exchange[0] == 5);
    assert_int_equal(desk.events[3].u.mixed.status, DP_CORRUPT);
    wait.command = DP_TRAINER_ADD;
    dp_driver_command_failed(driver, &wait, "no reason");
    wait.command = DP_TRAINER_REDUCE;
    dp_driver_command_failed(driver, &wait, "no reason");
    wait.command = DP_TRAINER_JUDGE;
    dp_driver_command_failed(driver, &wait, "no reason");
    assert_true(net.n_slices_failed == 1 && net.n_reduce_failed == 1 && net.n_judged == 1);
    assert_true(net.n_killed == 0 && desk_logged("trainer.failed"));
    close_trainer();
}

static void after_a_failed_publication_freeze_or_open_another_trainer_starts(void **state)
{
    static const dp_trainer_kind kinds[] = {DP_TRAINER_PUBLISH, DP_TRAINER_FREEZE, DP_TRAINER_OPEN};
    (void)state;
    open_trainer();
    for (uint32_t i = 0; i < 3; i++) {
        const dp_driver_wait wait = {.command = kinds[i]};
        dp_driver_command_failed(desk.driver, &wait, "no reason");
        assert_true(net.n_killed == i + 1 && desk.n_events == 0);
    }
    close_trainer();
}

static void a_failed_question_is_told_to_the_person_alone(void **state)
{
    const dp_driver_wait wait = {.command = DP_TRAINER_SAMPLE, .answer = on_answer};
    (void)state;
    open_trainer();
    dp_driver_command_failed(desk.driver, &wait, "the prompt is too long");
    assert_true(net.n_answers == 1 && net.last_answer_is_null);
    assert_string_equal(net.why, "the prompt is too long");
    assert_true(desk.n_events == 0 && net.n_killed == 0);
    close_trainer();
}

static void a_death_ends_all_that_was_under_way_and_the_node_hears_of_it(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    driver->training = true;
    driver->tokens_per_s = 7;
    net.in_a_row = 1;
    expect(DP_TRAINER_APPLY, NULL);
    expect(DP_TRAINER_SAMPLE, on_answer);
    dies("died of a signal");
    assert_true(driver->n_waits == 0 && !driver->trainer_open && !driver->training);
    assert_true(driver->trainer_life == 1 && driver->tokens_per_s == 0);
    assert_true(net.n_answers == 1 && net.last_answer_is_null);
    assert_string_equal(net.why, "the trainer crashed");
    assert_true(desk.n_events == 1 && desk.events[0].type == DP_EV_TRAINER_DOWN);
    assert_true(desk_logged("the trainer died of a signal; it restarts"));
    net.in_a_row = 3;
    net.next_ms = 4001;
    dies("died of a signal");
    assert_true(desk_logged("3 times in a row; it restarts in 5 s"));
    close_trainer();
}

static void after_two_lives_on_a_device_the_cpu_computes(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    snprintf(driver->device, sizeof driver->device, "cuda:0");
    net.deaths = DP_TRAINER_DEVICE_LIVES - 1;
    dies("died");
    assert_false(net.takes_cpu);
    net.deaths = DP_TRAINER_DEVICE_LIVES;
    dies("died");
    assert_true(net.takes_cpu && driver->device[0] == '\0');
    assert_true(desk_logged("again on this device; falling back to the CPU"));
    close_trainer();
}

static void the_cpu_and_a_program_of_ones_own_keep_what_they_compute_on(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    net.deaths = DP_TRAINER_DEVICE_LIVES;
    snprintf(driver->device, sizeof driver->device, "cpu: 4 threads");
    dies("died");
    assert_false(net.takes_cpu);
    snprintf(driver->device, sizeof driver->device, "cuda:0");
    snprintf(desk.config.worker, sizeof desk.config.worker, "/home/ann/my-trainer");
    dies("died");
    assert_false(net.takes_cpu);
    close_trainer();
}

static void when_most_nodes_have_no_trainer_this_one_starts_early(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    driver->node = (dp_node *)(void *)&net;
    net.next_ms = DP_TRAINER_SOON_MS + 1;
    net.n_idle = 2; /* Half of them. */
    dp_driver_watch_trainer(driver);
    assert_int_equal(net.n_early, 0);
    net.n_idle = 3;
    dp_driver_watch_trainer(driver);
    assert_int_equal(net.n_early, 1);
    assert_false(desk_logged("trainer.early")); /* It may not now. */
    net.starts_early = true;
    dp_driver_watch_trainer(driver);
    assert_true(desk_logged("3 of 4 nodes have no trainer"));
    net.next_ms = DP_TRAINER_SOON_MS;
    dp_driver_watch_trainer(driver);
    assert_int_equal(net.n_early, 2);
    driver->node = NULL;
    close_trainer();
}

static void people_ask_only_a_trainer_that_holds_the_model_and_not_too_much(void **state)
{
    const dp_trainer_msg question = {.kind = DP_TRAINER_SAMPLE};
    (void)state;
    dp_driver *driver = open_trainer();
    driver->trainer_open = false;
    CHECK_STATUS(dp_driver_ask(driver, &question, on_answer, NULL), DP_CLOSED);
    assert_string_equal(net.why, "the trainer has not loaded it");
    driver->trainer_open = true;
    for (uint32_t i = 0; i < DP_DRIVER_QUESTIONS_MAX; i++) {
        CHECK_OK(dp_driver_ask(driver, &question, on_answer, NULL));
    }
    assert_true(net.n_told == DP_DRIVER_QUESTIONS_MAX && net.n_answers == 1);
    CHECK_STATUS(dp_driver_ask(driver, &question, on_answer, NULL), DP_AGAIN);
    assert_string_equal(net.why, "too many questions are waiting");
    close_trainer();
    assert_int_equal(net.n_answers, 2 + DP_DRIVER_QUESTIONS_MAX);
    assert_string_equal(net.why, "the daemon is stopping");
}

static void a_question_without_memory_is_answered_and_does_not_wait(void **state)
{
    const dp_trainer_msg question = {.kind = DP_TRAINER_SAMPLE};
    (void)state;
    dp_driver *driver = open_trainer();
    net.tells = DP_NOMEM;
    CHECK_STATUS(dp_driver_ask(driver, &question, on_answer, NULL), DP_NOMEM);
    assert_true(net.n_answers == 1 && net.last_answer_is_null && driver->n_waits == 0);
    close_trainer();
    assert_int_equal(net.n_answers, 1);
}

static void heat_and_power_are_told_to_the_living_trainer_and_kept_for_the_next(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    driver->training = true;
    dp_driver_limit_trainer(driver); /* Nothing has changed. */
    assert_true(net.n_told == 0 && net.n_replaced == 0);
    desk.config.celsius_max = 80;
    desk.config.watts_max = 200;
    dp_driver_limit_trainer(driver);
    assert_true(net.n_told == 1 && net.told.kind == DP_TRAINER_LIMITS);
    assert_true(net.told.celsius == 80 && net.told.watts == 200);
    assert_true(net.limits.celsius_max == 80 && net.limits.watts_max == 200);
    dp_driver_limit_trainer(driver);
    dp_driver_renew_trainer(driver);
    assert_true(net.n_told == 1 && net.n_replaced == 0);
    close_trainer();
}

static void threads_and_niceness_wait_for_a_publication_and_not_for_ever(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    driver->training = true;
    desk.config.threads = 3;
    dp_driver_limit_trainer(driver);
    dp_driver_watch_trainer(driver);
    assert_true(net.n_replaced == 0 && net.limits.threads == 3);
    dp_driver_renew_trainer(driver); /* A publication is stored. */
    assert_int_equal(net.n_replaced, 1);
    assert_string_equal(net.cause, "takes its owner's limits");
    dp_driver_renew_trainer(driver);
    assert_int_equal(net.n_replaced, 1);
    desk.config.nice = 15;
    dp_driver_limit_trainer(driver);
    net.now_ms += 121 * 1000;
    dp_driver_watch_trainer(driver);
    assert_int_equal(net.n_replaced, 2);
    driver->training = false; /* There is nothing to lose. */
    desk.config.nice = 16;
    dp_driver_limit_trainer(driver);
    assert_int_equal(net.n_replaced, 3);
    close_trainer();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trainer_is_opened_once_with_what_the_settings_say),
        cmocka_unit_test(a_program_that_cannot_be_started_is_told),
        cmocka_unit_test(a_trainer_that_yields_its_gpu_is_held_also_before_it_is_opened),
        cmocka_unit_test(answers_go_to_the_oldest_command_of_their_kind),
        cmocka_unit_test(a_trainer_that_answers_nothing_is_ended),
        cmocka_unit_test(a_command_may_take_its_time_from_when_it_is_the_oldest),
        cmocka_unit_test(time_in_which_the_machine_stood_still_does_not_count),
        cmocka_unit_test(a_trainer_that_hangs_in_a_question_is_ended),
        cmocka_unit_test(a_command_that_failed_is_told_to_the_node_as_what_it_waits_for),
        cmocka_unit_test(after_a_failed_publication_freeze_or_open_another_trainer_starts),
        cmocka_unit_test(a_failed_question_is_told_to_the_person_alone),
        cmocka_unit_test(a_death_ends_all_that_was_under_way_and_the_node_hears_of_it),
        cmocka_unit_test(after_two_lives_on_a_device_the_cpu_computes),
        cmocka_unit_test(the_cpu_and_a_program_of_ones_own_keep_what_they_compute_on),
        cmocka_unit_test(when_most_nodes_have_no_trainer_this_one_starts_early),
        cmocka_unit_test(people_ask_only_a_trainer_that_holds_the_model_and_not_too_much),
        cmocka_unit_test(heat_and_power_are_told_to_the_living_trainer_and_kept_for_the_next),
        cmocka_unit_test(threads_and_niceness_wait_for_a_publication_and_not_for_ever),
        cmocka_unit_test(a_question_without_memory_is_answered_and_does_not_wait),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
