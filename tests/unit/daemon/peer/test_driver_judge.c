/* The handling of DP_DO_JUDGE: the trainer, the store thread and the store are played here. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "daemon/peer/driver_inside.h"
#include "daemon/peer/suspension.h"
#include "store/pieces.h"
#include "tests/lib/check.h"

enum { TOLD_MAX = 64, EVENTS_MAX = 64, UPDATE_BYTES = 100 };

/* A driver whose commands to the trainer are tested, and a record of its calls. */
static struct desk {
    uv_loop_t loop;
    dp_config config;
    dp_daemon daemon;
    dp_driver *driver;
    dp_trainer_process_hooks hooks; /* as the driver gave them to the trainer */
    dp_list jobs;                   /* at the store thread */
    dp_status stored;               /* the store's answer for every object */
    dp_trainer_msg told[TOLD_MAX];
    uint32_t n_told;
    dp_event events[EVENTS_MAX];
    uint32_t n_events;
    uint32_t killed;
    uint32_t lost;
} desk;

/* ---- Who is played. */

void dp_event_log_add(dp_event_log *event_log, dp_log_level level, const char *name, uint64_t round,
                      const dp_peer *peer, const char *format, ...)
{
    (void)event_log;
    (void)level;
    (void)name;
    (void)round;
    (void)peer;
    (void)format;
}

void dp_driver_feed(dp_driver *driver, dp_event *event)
{
    (void)driver;
    CHECK(desk.n_events < EVENTS_MAX);
    desk.events[desk.n_events++] = *event;
}

void dp_driver_lost(dp_driver *driver, const dp_hash *root, dp_status status)
{
    (void)driver;
    (void)root;
    (void)status;
    desk.lost++;
}

bool dp_driver_post(dp_driver *driver, dp_store_thread_job *job, dp_store_thread_class class)
{
    (void)driver;
    (void)class;
    dp_list_push_back(&desk.jobs, &job->link);
    return true;
}

void dp_driver_job_done(dp_driver *driver)
{
    (void)driver;
}

void dp_driver_publication_store(dp_driver *driver, const dp_trainer_msg *msg, const int *fds,
                                 uint32_t n_fds)
{
    (void)driver;
    (void)msg;
    (void)fds;
    CHECK(n_fds == 0);
}

void dp_driver_reduce_failed(dp_driver *driver, uint64_t round, uint32_t part, dp_status status)
{
    (void)driver;
    (void)round;
    (void)part;
    (void)status;
}

void dp_driver_publication_drop(dp_driver *driver)
{
    (void)driver;
}

dp_status dp_pieces_read(dp_pieces_reading *reading, dp_store *store)
{
    uint8_t bytes[UPDATE_BYTES];
    (void)store;
    DP_TRY(desk.stored);
    memset(bytes, 7, sizeof bytes);
    reading->more = false;
    return reading->take(reading->context, dp_view_of(bytes, sizeof bytes));
}

dp_status dp_trainer_process_open(dp_trainer_process **trainer,
                                  const dp_trainer_process_config *config)
{
    desk.hooks = config->hooks;
    *trainer = (dp_trainer_process *)(void *)&desk;
    return DP_OK;
}

dp_status dp_trainer_process_start(dp_trainer_process *trainer, dp_why *why)
{
    (void)trainer;
    (void)why;
    return DP_OK;
}

void dp_trainer_process_close(dp_trainer_process *trainer)
{
    (void)trainer;
}

dp_status dp_trainer_process_tell(dp_trainer_process *trainer, const dp_trainer_msg *msg,
                                  const int *fds, uint32_t n_fds)
{
    (void)trainer;
    CHECK(desk.n_told < TOLD_MAX);
    desk.told[desk.n_told++] = *msg;
    for (uint32_t i = 0; i < n_fds; i++) {
        close(fds[i]);
    }
    return DP_OK;
}

void dp_trainer_process_kill(dp_trainer_process *trainer, const char *cause)
{
    (void)trainer;
    desk.killed++;
    desk.hooks.down(desk.hooks.context, cause);
}

void dp_trainer_process_hold(dp_trainer_process *trainer, const char *cause)
{
    (void)trainer;
    (void)cause;
}

void dp_trainer_process_let_go(dp_trainer_process *trainer)
{
    (void)trainer;
}

void dp_trainer_process_postpone(dp_trainer_process *trainer, const char *cause)
{
    (void)trainer;
    fail_msg("the trainer %s", cause);
}

void dp_trainer_process_replace(dp_trainer_process *trainer, const char *cause)
{
    dp_trainer_process_kill(trainer, cause);
}

uint32_t dp_trainer_process_deaths(const dp_trainer_process *trainer)
{
    (void)trainer;
    return 0;
}

void dp_trainer_process_look(dp_trainer_process *trainer)
{
    (void)trainer;
}

bool dp_trainer_process_takes_cpu(const dp_trainer_process *trainer)
{
    (void)trainer;
    return true;
}

void dp_trainer_process_take_cpu(dp_trainer_process *trainer)
{
    (void)trainer;
}

uint32_t dp_trainer_process_in_a_row(const dp_trainer_process *trainer)
{
    (void)trainer;
    return 0;
}

uint64_t dp_trainer_process_next_ms(const dp_trainer_process *trainer)
{
    (void)trainer;
    return 0;
}

bool dp_trainer_process_start_early(dp_trainer_process *trainer)
{
    (void)trainer;
    return false;
}

void dp_suspension_act(dp_suspension *suspension)
{
    (void)suspension;
}

void dp_trainer_process_limit(dp_trainer_process *trainer, const dp_trainer_limits *limits)
{
    (void)trainer;
    (void)limits;
}

/* ---- Acts. */

static void desk_open(void)
{
    memset(&desk, 0, sizeof desk);
    CHECK(uv_loop_init(&desk.loop) == 0);
    dp_list_init(&desk.jobs);
    strcpy(desk.config.worker, "dpnode-worker");
    desk.daemon.config = &desk.config;
    desk.daemon.loop = &desk.loop;
    desk.driver = test_calloc(1, sizeof *desk.driver);
    desk.driver->daemon = &desk.daemon;
    dp_list_init(&desk.driver->held);
    dp_list_init(&desk.driver->behind);
    dp_driver_trainer_open(desk.driver);
    desk.driver->trainer_open = true;
}

static void desk_close(void)
{
    CHECK(dp_list_empty(&desk.jobs));
    dp_driver_trainer_close(desk.driver);
    CHECK(uv_loop_close(&desk.loop) == 0);
    test_free(desk.driver);
}

static void save_all(void)
{
    while (!dp_list_empty(&desk.jobs)) {
        dp_store_thread_job *const job = DP_LIST_ITEM(desk.jobs.next, dp_store_thread_job, link);
        dp_list_remove(&job->link);
        job->run(job, NULL);
        job->done(job);
    }
}

static dp_action judge_of(uint8_t name)
{
    dp_action action = {.type = DP_DO_JUDGE};
    action.u.judge.root.bytes[0] = name;
    action.u.judge.keep = 64;
    action.u.judge.scale = 60000;
    action.u.judge.tokens = 512;
    action.u.judge.seed = 99;
    action.u.judge.peer.bytes[3] = name;
    action.u.judge.own = 1000;
    action.u.judge.own_count = 12;
    action.u.judge.n_ranges = 1;
    action.u.judge.ranges[0] = (dp_sample_range){.first = 5, .count = 6};
    return action;
}

static void ask(uint8_t name)
{
    const dp_action action = judge_of(name);
    dp_driver_command_trainer(desk.driver, &action);
}

static void answer(uint32_t id, bool failed)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_JUDGED,
                                .id = id,
                                .judged = {.failed = failed,
                                           .compared = true,
                                           .align = -5,
                                           .held = {.micro = -6, .error_micro = 7, .tokens = 8},
                                           .likeness = {9}}};
    dp_driver_on_answer(desk.driver, &msg, NULL, 0);
}

static void expect_failed(uint32_t index, uint8_t name)
{
    static const dp_judged nothing = {.failed = true};
    const dp_event *const event = &desk.events[index];
    CHECK(index < desk.n_events && event->type == DP_EV_JUDGED);
    CHECK(event->u.judged.root.bytes[0] == name);
    assert_memory_equal(&event->u.judged.found, &nothing, sizeof nothing);
}

/* ---- Tests. */

static void an_update_goes_to_the_trainer_and_what_it_found_to_the_node(void **state)
{
    (void)state;
    desk_open();
    ask(1);
    ask(2);
    CHECK(desk.n_told == 0); /* Its bytes are read first. */
    save_all();
    CHECK(desk.n_told == 2 && desk.n_events == 0);
    const dp_trainer_msg *const told = &desk.told[1];
    CHECK(told->kind == DP_TRAINER_JUDGE && told->id != desk.told[0].id);
    CHECK(told->keep == 64 && told->scale == 60000 && told->tokens == 512 && told->seed == 99);
    CHECK(told->member[3] == 2 && told->reach.own == 1000 && told->own_count == 12);
    CHECK(told->n_ranges == 1 && told->ranges[0].first == 5 && told->ranges[0].count == 6);
    answer(desk.told[0].id, false);
    answer(desk.told[1].id, true);
    CHECK(desk.n_events == 2 && desk.killed == 0 && desk.driver->n_judges == 0);
    CHECK(desk.events[0].type == DP_EV_JUDGED && desk.events[0].u.judged.root.bytes[0] == 1);
    const dp_judged *const found = &desk.events[0].u.judged.found;
    CHECK(!found->failed && found->compared && found->align == -5 && found->held.micro == -6);
    CHECK(found->held.error_micro == 7 && found->held.tokens == 8 && found->likeness[0] == 9);
    expect_failed(1, 2);
    desk_close();
}

static void commands_stay_in_order(void **state)
{
    (void)state;
    const dp_action train = {.type = DP_DO_TRAIN, .u.train.round = 3};
    desk_open();
    ask(1);
    dp_driver_command_trainer(desk.driver, &train);
    ask(2);
    save_all();
    CHECK(desk.n_told == 3 && desk.told[0].kind == DP_TRAINER_JUDGE);
    CHECK(desk.told[1].kind == DP_TRAINER_TRAIN && desk.told[2].kind == DP_TRAINER_JUDGE);
    desk_close();
}

static void an_object_that_is_lost_or_cannot_be_read_is_told_once_as_not_measured(void **state)
{
    (void)state;
    static const dp_status statuses[] = {DP_BADHASH, DP_NOTFOUND, DP_IO};
    for (uint8_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        desk_open();
        desk.stored = statuses[i];
        ask(i);
        save_all();
        CHECK(desk.n_told == 0 && desk.n_events == 1 && desk.killed == 0);
        expect_failed(0, i);
        CHECK(desk.lost == (statuses[i] != DP_IO) && desk.driver->n_judges == 0);
        desk_close();
    }
}

static void missing_memory_delays_it(void **state)
{
    (void)state;
    desk_open();
    desk.stored = DP_NOMEM;
    ask(1);
    save_all();
    CHECK(desk.n_told == 0 && desk.n_events == 0);
    desk.stored = DP_OK;
    dp_driver_commands_retry(desk.driver);
    save_all();
    CHECK(desk.n_told == 1);
    answer(desk.told[0].id, false);
    CHECK(desk.n_events == 1);
    desk_close();
}

static void a_trainer_that_fails_at_it_keeps_its_process(void **state)
{
    (void)state;
    const dp_trainer_msg msg = {
        .kind = DP_TRAINER_FAILED, .of = DP_TRAINER_JUDGE, .text = "judge: no reason"};
    desk_open();
    ask(1);
    ask(2);
    save_all();
    dp_driver_on_answer(desk.driver, &msg, NULL, 0);
    CHECK(desk.killed == 0 && desk.n_events == 1);
    expect_failed(0, 1); /* The oldest. */
    answer(desk.told[1].id, false);
    CHECK(desk.n_events == 2 && !desk.events[1].u.judged.found.failed);
    answer(desk.told[1].id, false); /* Nobody asked. */
    CHECK(desk.n_events == 2);
    desk_close();
}

static void a_trainer_that_judges_another_update_is_replaced(void **state)
{
    (void)state;
    desk_open();
    ask(1);
    save_all();
    answer(desk.told[0].id + 1, false);
    CHECK(desk.killed == 1 && desk.n_events == 1);
    CHECK(desk.events[0].type == DP_EV_TRAINER_DOWN);
    desk_close();
}

static void a_trainer_that_dies_ends_all_of_them_without_an_answer(void **state)
{
    (void)state;
    desk_open();
    ask(1);
    save_all();
    ask(2); /* Still at the store thread. */
    dp_trainer_process_kill(desk.driver->trainer, "died");
    save_all();
    CHECK(desk.n_told == 1 && desk.n_events == 1);
    CHECK(desk.events[0].type == DP_EV_TRAINER_DOWN);
    ask(3); /* Before the next one is open. */
    CHECK(desk.n_events == 2);
    expect_failed(1, 3);
    desk.driver->trainer_open = true;
    ask(4);
    save_all();
    CHECK(desk.n_told == 2);
    answer(desk.told[1].id, false);
    CHECK(desk.n_events == 3 && desk.events[2].u.judged.root.bytes[0] == 4);
    desk_close();
}

static void no_more_are_under_way_than_a_record_lists(void **state)
{
    (void)state;
    desk_open();
    for (uint32_t i = 0; i < DP_DRIVER_JUDGES_MAX; i++) {
        ask((uint8_t)i);
    }
    save_all();
    CHECK(desk.n_told == DP_DRIVER_JUDGES_MAX && desk.n_events == 0);
    ask(200);
    CHECK(desk.n_events == 1);
    expect_failed(0, 200);
    answer(desk.told[0].id, false);
    ask(201);
    save_all();
    CHECK(desk.n_told == DP_DRIVER_JUDGES_MAX + 1 && desk.n_events == 2 && desk.killed == 0);
    desk_close();
}

static void hear_sample(void *context, const dp_trainer_msg *msg, const char *why)
{
    CHECK(msg == NULL && why != NULL);
    (*(uint32_t *)context)++;
}

static void people_may_ask_while_updates_are_judged(void **state)
{
    (void)state;
    const dp_trainer_msg question = {.kind = DP_TRAINER_SAMPLE};
    uint32_t heard = 0;
    desk_open();
    for (uint32_t i = 0; i < DP_DRIVER_JUDGES_MAX; i++) {
        ask((uint8_t)i);
    }
    save_all();
    CHECK_OK(dp_driver_ask(desk.driver, &question, hear_sample, &heard));
    CHECK(heard == 0);
    desk_close();
    CHECK(heard == 1); /* That the daemon is stopping. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_goes_to_the_trainer_and_what_it_found_to_the_node),
        cmocka_unit_test(commands_stay_in_order),
        cmocka_unit_test(an_object_that_is_lost_or_cannot_be_read_is_told_once_as_not_measured),
        cmocka_unit_test(missing_memory_delays_it),
        cmocka_unit_test(a_trainer_that_fails_at_it_keeps_its_process),
        cmocka_unit_test(a_trainer_that_judges_another_update_is_replaced),
        cmocka_unit_test(a_trainer_that_dies_ends_all_of_them_without_an_answer),
        cmocka_unit_test(no_more_are_under_way_than_a_record_lists),
        cmocka_unit_test(people_may_ask_while_updates_are_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
