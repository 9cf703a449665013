/* The answers of the trainer, as events of the node. The trainer is played, and so are the files
 * that take vectors and slices. JUDGED is tested in test_driver_judge.c. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/peer/suspension.h"
#include "tests/unit/daemon/desk.h"

static struct {
    uint64_t now_ms;
    uint32_t n_killed;
    uint32_t n_postponed;
    char cause[128];
    uint32_t n_taken;
    uint32_t n_added;
    dp_driver_wait waits[8]; /* commands under way, in order */
    uint32_t n_waits;
    uint32_t n_failed;
    dp_driver_wait failed;
    char what[128];
    uint32_t n_heard;
    double heard;
} net;

uint64_t uv_now(const uv_loop_t *loop)
{
    (void)loop;
    return net.now_ms;
}

void dp_suspension_act(dp_suspension *suspension)
{
    (void)suspension;
}

void dp_trainer_process_kill(dp_trainer_process *trainer, const char *cause)
{
    (void)trainer;
    net.n_killed++;
    snprintf(net.cause, sizeof net.cause, "%s", cause);
}

void dp_trainer_process_postpone(dp_trainer_process *trainer, const char *cause)
{
    (void)trainer;
    net.n_postponed++;
    snprintf(net.cause, sizeof net.cause, "%s", cause);
}

void dp_driver_publication_store(dp_driver *driver, const dp_trainer_msg *msg, const int *fds,
                                 uint32_t n_fds)
{
    (void)driver;
    (void)msg;
    net.n_taken++;
    for (uint32_t i = 0; i < n_fds; i++) {
        close(fds[i]);
    }
}

void dp_driver_slices_added(dp_driver *driver, const dp_trainer_msg *msg)
{
    (void)driver;
    (void)msg;
    net.n_added++;
}

bool dp_driver_answered(dp_driver *driver, dp_trainer_kind command, dp_driver_wait *wait)
{
    (void)driver;
    for (uint32_t i = 0; i < net.n_waits; i++) {
        if (net.waits[i].command == command) {
            *wait = net.waits[i];
            net.n_waits--;
            memmove(net.waits + i, net.waits + i + 1, (net.n_waits - i) * sizeof *wait);
            driver->n_waits = net.n_waits;
            return true;
        }
    }
    return false;
}

void dp_driver_command_failed(dp_driver *driver, const dp_driver_wait *wait, const char *what)
{
    (void)driver;
    net.n_failed++;
    net.failed = *wait;
    snprintf(net.what, sizeof net.what, "%s", what);
}

static void on_heard(void *context, const dp_trainer_msg *reply, const char *why)
{
    (void)context;
    CHECK(reply != NULL && why == NULL);
    net.n_heard++;
    net.heard = reply->loss;
}

static dp_driver *open_trainer(void)
{
    memset(&net, 0, sizeof net);
    net.now_ms = 1000;
    return desk_open();
}

static void expect(dp_driver_wait wait)
{
    desk.driver->waits[net.n_waits] = wait;
    net.waits[net.n_waits++] = wait;
    desk.driver->n_waits = net.n_waits;
}

static void answer(const dp_trainer_msg *msg)
{
    dp_driver_on_answer(desk.driver, msg, NULL, 0);
}

static int file_of(const char *text)
{
    int fd = -1;
    CHECK_OK(dp_memfd_make("state", dp_view_text(text), &fd));
    return fd;
}

static bool is_closed(int fd)
{
    return fcntl(fd, F_GETFD) == -1 && errno == EBADF;
}

static void a_model_that_is_open_is_told_with_who_computes(void **state)
{
    dp_driver *driver = open_trainer();
    const dp_trainer_msg msg = {.kind = DP_TRAINER_OPENED, .elements = 5000, .text = "cuda:0"};
    (void)state;
    expect((dp_driver_wait){.command = DP_TRAINER_OPEN});
    answer(&msg);
    assert_true(driver->trainer_open && driver->elements == 5000);
    assert_string_equal(driver->device, "cuda:0");
    assert_true(desk_logged("holds 5000 parameters on cuda:0"));
    assert_true(desk.n_events == 1 && desk.events[0].type == DP_EV_TRAINER_UP);
    desk_close();
}

static void padding_of_the_trainers_vectors_is_not_told_as_parameters(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    const dp_trainer_msg msg = {.kind = DP_TRAINER_OPENED, .elements = 512};
    driver->has_manifest = true;
    driver->manifest.arch = DP_ARCH_EXTERNAL;
    driver->manifest.elements = 507;
    expect((dp_driver_wait){.command = DP_TRAINER_OPEN});
    answer(&msg);
    assert_int_equal(driver->elements, 507);
    assert_true(desk_logged("holds 507 parameters"));
    driver->manifest.arch = DP_ARCH_GPT2;
    desk_close();
}

static void an_answer_that_nobody_waits_for_is_told_and_dropped(void **state)
{
    static const dp_trainer_kind kinds[] = {
        DP_TRAINER_OPENED, DP_TRAINER_READY_AT, DP_TRAINER_ADDED,    DP_TRAINER_MIXED,
        DP_TRAINER_JUDGED, DP_TRAINER_SAMPLED,  DP_TRAINER_EVALUATED};
    (void)state;
    open_trainer();
    for (uint32_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        answer(&(dp_trainer_msg){.kind = kinds[i]});
        assert_int_equal(dp_event_log_entries(desk.daemon.event_log), i + 1);
    }
    assert_true(desk_logged("trainer.odd"));
    assert_true(desk.n_events == 0 && net.n_killed == 0);
    desk_close();
}

static void a_script_is_told_of_and_named_until_it_goes(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    driver->has_manifest = true;
    driver->manifest.arch = DP_ARCH_EXTERNAL;
    answer(&(dp_trainer_msg){.kind = DP_TRAINER_SCRIPT, .pid = 812});
    assert_int_equal(driver->script_pid, 812);
    assert_true(desk_logged("process 812 trains with this node"));
    driver->tokens_per_s = 5;
    answer(&(dp_trainer_msg){.kind = DP_TRAINER_SCRIPT});
    assert_true(driver->script_pid == 0 && driver->tokens_per_s == 0);
    assert_true(desk_logged("the script is gone"));
    assert_true(desk.n_events == 2 && desk.events[0].type == DP_EV_SCRIPT &&
                desk.events[0].u.script.present && !desk.events[1].u.script.present);
    driver->manifest.arch = DP_ARCH_GPT2;
    desk_close();
}

/* The node trains with it and without it, so it hears nothing. */
static void a_script_of_a_built_in_model_is_named_and_changes_nothing_for_the_node(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    driver->has_manifest = true;
    answer(&(dp_trainer_msg){.kind = DP_TRAINER_SCRIPT, .pid = 812});
    assert_int_equal(driver->script_pid, 812);
    answer(&(dp_trainer_msg){.kind = DP_TRAINER_SCRIPT});
    assert_true(driver->script_pid == 0 && desk.n_events == 0);
    assert_true(desk_logged("this node's own trainer goes on"));
    desk_close();
}

/* A trainer that claims a script in a run that exchanges gradients gains nothing. */
static void a_script_in_a_run_of_gradients_is_not_believed(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    driver->has_manifest = true;
    driver->manifest.exchange = DP_EXCHANGE_GRADIENTS;
    answer(&(dp_trainer_msg){.kind = DP_TRAINER_SCRIPT, .pid = 812});
    assert_true(driver->script_pid == 0 && desk.n_events == 0);
    driver->manifest.exchange = DP_EXCHANGE_UPDATES;
    desk_close();
}

static void a_trainer_that_must_cool_is_heard_until_it_has(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    answer(&(dp_trainer_msg){.kind = DP_TRAINER_RESTING, .ok = true, .celsius = 88});
    assert_true(driver->rests && driver->rests_celsius == 88);
    answer(&(dp_trainer_msg){.kind = DP_TRAINER_RESTING});
    assert_false(driver->rests);
    assert_int_equal(driver->celsius, 88);
    desk_close();
}

static void heat_and_power_come_with_steps_where_they_are_known(void **state)
{
    (void)state;
    dp_driver *driver = open_trainer();
    answer(&(dp_trainer_msg){.kind = DP_TRAINER_STEP, .celsius = 71, .watts = 180});
    assert_true(driver->celsius == 71 && driver->watts == 180);
    answer(&(dp_trainer_msg){.kind = DP_TRAINER_STEP}); /* None was read since. */
    assert_true(driver->celsius == 71 && driver->watts == 180);
    answer(&(dp_trainer_msg){.kind = DP_TRAINER_STEP, .celsius = 72});
    assert_true(driver->celsius == 72 && driver->watts == 0);
    desk_close();
}

static void files_that_do_not_go_with_an_answer_are_closed(void **state)
{
    const int fds[2] = {file_of("one"), file_of("two")};
    const dp_trainer_msg msg = {.kind = DP_TRAINER_MIXED};
    (void)state;
    open_trainer();
    expect((dp_driver_wait){.command = DP_TRAINER_MIX});
    dp_driver_on_answer(desk.driver, &msg, fds, 2);
    assert_true(is_closed(fds[0]) && is_closed(fds[1]));
    assert_true(desk.n_events == 0 && desk_logged("an unexpected"));
    assert_int_equal(net.n_waits, 1); /* The command still waits. */
    desk_close();
}

static void a_state_is_mapped_and_the_one_before_it_goes(void **state)
{
    static const dp_hash root = {.bytes = {6}};
    dp_trainer_msg msg = {.kind = DP_TRAINER_APPLIED, .round = 8, .root = root, .outer_reach = 1.5};
    (void)state;
    dp_driver *driver = open_trainer();
    for (uint64_t round = 8; round <= 9; round++) {
        const int fd = file_of(round == 8 ? "eight" : "nine");
        msg.round = round;
        expect((dp_driver_wait){.command = DP_TRAINER_APPLY});
        dp_driver_on_answer(driver, &msg, &fd, 1);
        assert_true(is_closed(fd));
    }
    assert_true(driver->snapshot.size == 4 && memcmp(driver->snapshot.data, "nine", 4) == 0);
    assert_true(driver->snapshot_round == 9 && dp_hash_equal(&driver->snapshot_root, &root));
    assert_true(desk.n_events == 2 && desk.events[1].type == DP_EV_APPLIED);
    assert_true(desk.events[1].u.applied.round == 9 && desk.events[1].u.applied.tensor_bytes == 4);
    assert_true(driver->outer_reach == 1.5);
    dp_memfd_unmap(driver->snapshot);
    desk_close();
}

static void a_state_that_cannot_be_mapped_ends_the_trainer(void **state)
{
    int fd = -1;
    const dp_trainer_msg msg = {.kind = DP_TRAINER_APPLIED};
    (void)state;
    open_trainer();
    CHECK_OK(dp_memfd_start("open", &fd)); /* It is not sealed. */
    expect((dp_driver_wait){.command = DP_TRAINER_APPLY});
    dp_driver_on_answer(desk.driver, &msg, &fd, 1);
    assert_true(is_closed(fd) && net.n_killed == 1 && desk.n_events == 0);
    desk_close();
}

static void step(uint32_t steps, uint64_t tokens, uint64_t after_ms)
{
    const dp_trainer_msg msg = {
        .kind = DP_TRAINER_STEP, .round = 3, .steps = steps, .tokens = tokens, .loss = 2};
    net.now_ms += after_ms;
    answer(&msg);
}

static void speed_is_measured_between_two_steps_of_one_publication(void **state)
{
    dp_driver *driver = open_trainer();
    (void)state;
    step(1, 100, 0);
    assert_true(desk.events[0].type == DP_EV_TRAINED && desk.events[0].u.trained.step_us == 0);
    assert_true(driver->tokens_per_s == 0);
    step(3, 300, 500);
    assert_int_equal(desk.events[1].u.trained.step_us, 250000);
    assert_true(driver->tokens_per_s == 400 && driver->loss == 2);
    step(1, 100, 500); /* Counts fall: the next publication has begun. */
    assert_int_equal(desk.events[2].u.trained.step_us, 0);
    assert_true(driver->tokens_per_s == 400);
    step(2, 200, 0); /* In no time. */
    assert_int_equal(desk.events[3].u.trained.step_us, 0);
    desk_close();
}

static void drop_steps(uint32_t skipped, uint32_t spikes, uint64_t after_ms)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_STEP, .skipped = skipped, .spikes = spikes};
    net.now_ms += after_ms;
    answer(&msg);
}

static void dropped_steps_are_told_in_one_line_a_second(void **state)
{
    open_trainer();
    (void)state;
    drop_steps(0, 0, 0);
    assert_int_equal(dp_event_log_entries(desk.daemon.event_log), 0);
    drop_steps(3, 1, 10);
    assert_true(desk_logged("skipped 3 training steps: 1 loss spikes, 2 not finite"));
    drop_steps(5, 1, 999);
    assert_int_equal(dp_event_log_entries(desk.daemon.event_log), 1);
    drop_steps(6, 2, 1);
    assert_true(desk_logged("skipped 3 training steps: 1 loss spikes, 2 not finite"));
    assert_int_equal(dp_event_log_entries(desk.daemon.event_log), 2);
    drop_steps(1, 1, 2000); /* Totals fall with a new publication. */
    assert_true(desk_logged("skipped 1 training steps: 1 loss spikes, 0 not finite"));
    desk_close();
}

static void batches_without_a_token_to_learn_from_are_told_as_such(void **state)
{
    dp_trainer_msg msg = {.kind = DP_TRAINER_STEP, .skipped = 7, .empty = 7};
    (void)state;
    open_trainer();
    answer(&msg);
    assert_true(desk_logged("nothing to learn from in 7 batches"));
    assert_int_equal(dp_event_log_entries(desk.daemon.event_log), 1);
    msg.skipped += 3;
    msg.spikes = 2;
    net.now_ms += 1000;
    answer(&msg);
    assert_true(desk_logged("skipped 3 training steps: 2 loss spikes, 1 not finite"));
    assert_int_equal(dp_event_log_entries(desk.daemon.event_log), 2);
    desk_close();
}

static void where_the_trainer_stands_follows_an_init_or_a_load(void **state)
{
    static const dp_trainer_kind commands[] = {DP_TRAINER_INIT, DP_TRAINER_LOAD};
    (void)state;
    open_trainer();
    for (uint32_t i = 0; i < 2; i++) {
        expect((dp_driver_wait){.command = commands[i]});
        answer(&(dp_trainer_msg){.kind = DP_TRAINER_READY_AT, .round = 40 + i});
        assert_int_equal(desk.events[i].type, DP_EV_TRAINER_AT);
        assert_true(desk.events[i].u.at.round == 40 + i && desk.events[i].u.at.status == DP_OK);
    }
    assert_int_equal(net.n_waits, 0);
    desk_close();
}

static void a_check_is_told_of_the_blob_that_had_its_number(void **state)
{
    static const dp_hash root = {.bytes = {6}};
    dp_driver *driver = open_trainer();
    const dp_trainer_msg msg = {.kind = DP_TRAINER_CHECKED,
                                .id = 3 * DP_DRIVER_CHECKS_MAX + 7,
                                .ok = true,
                                .foreign = true,
                                .energy = 55};
    (void)state;
    driver->checks[7].root = root;
    driver->checks[7].range = (dp_part_range){.first = 1, .end = 2};
    answer(&msg);
    assert_true(desk.events[0].type == DP_EV_CHECKED && desk.events[0].u.checked.ok);
    assert_true(dp_hash_equal(&desk.events[0].u.checked.root, &root));
    assert_true(desk.events[0].u.checked.first == 1 && desk.events[0].u.checked.end == 2);
    assert_true(desk.events[0].u.checked.foreign && desk.events[0].u.checked.energy == 55);
    desk_close();
}

static void vectors_of_what_was_asked_are_taken_and_others_end_the_trainer(void **state)
{
    static const struct {
        uint64_t round;
        uint32_t part;
        bool taken;
    } cases[] = {{9, 2, true}, {9, 3, false}, {8, 2, false}};
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        const dp_trainer_msg msg = {
            .kind = DP_TRAINER_REDUCED, .round = cases[i].round, .part = cases[i].part};
        const int fd = file_of("sum");
        open_trainer();
        expect((dp_driver_wait){.command = DP_TRAINER_REDUCE, .round = 9, .part = 2});
        dp_driver_on_answer(desk.driver, &msg, &fd, 1);
        assert_true(net.n_taken == cases[i].taken && net.n_killed == !cases[i].taken);
        assert_true(is_closed(fd));
        desk_close();
    }
}

static void a_publication_cut_otherwise_than_asked_ends_the_trainer(void **state)
{
    dp_trainer_msg msg = {.kind = DP_TRAINER_PUBLISHED, .cuts = {.n = 1, .first = {5}}};
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        const int fds[3] = {file_of("blob"), file_of("vector"), file_of("part")};
        open_trainer();
        expect((dp_driver_wait){.command = DP_TRAINER_PUBLISH, .cuts = {.n = 1, .first = {5}}});
        dp_driver_on_answer(desk.driver, &msg, fds, 3);
        assert_true(net.n_taken == (i == 0) && net.n_killed == (i == 1));
        assert_true(is_closed(fds[0]) && is_closed(fds[2]));
        msg.cuts.first[0] = 6;
        desk_close();
    }
}

static void a_slice_of_another_place_ends_the_trainer(void **state)
{
    (void)state;
    open_trainer();
    expect((dp_driver_wait){.command = DP_TRAINER_ADD, .round = 9, .part = 64});
    answer(&(dp_trainer_msg){.kind = DP_TRAINER_ADDED, .round = 9, .at = 64});
    assert_true(net.n_added == 1 && net.n_killed == 0);
    expect((dp_driver_wait){.command = DP_TRAINER_ADD, .round = 9, .part = 96});
    answer(&(dp_trainer_msg){.kind = DP_TRAINER_ADDED, .round = 9, .at = 64});
    assert_true(net.n_added == 1 && net.n_killed == 1);
    desk_close();
}

static void an_exchange_tells_what_it_moved(void **state)
{
    dp_driver *driver = open_trainer();
    (void)state;
    expect((dp_driver_wait){.command = DP_TRAINER_MIX});
    answer(&(dp_trainer_msg){.kind = DP_TRAINER_MIXED, .exchange = {9}, .moved = 0.25});
    assert_true(desk.events[0].type == DP_EV_MIXED && desk.events[0].u.mixed.exchange[0] == 9);
    assert_true(driver->moved == 0.25 && desk_logged("gossip.moved"));
    desk_close();
}

static void a_person_hears_the_answer_to_a_question(void **state)
{
    (void)state;
    open_trainer();
    expect((dp_driver_wait){.command = DP_TRAINER_EVAL, .answer = on_heard});
    answer(&(dp_trainer_msg){.kind = DP_TRAINER_EVALUATED, .loss = 1.25});
    assert_true(net.n_heard == 1 && net.heard == 1.25 && desk.n_events == 0);
    desk_close();
}

static dp_trainer_msg failure(dp_trainer_kind of, const char *text)
{
    dp_trainer_msg msg = {.kind = DP_TRAINER_FAILED, .of = of};
    snprintf(msg.text, sizeof msg.text, "%s", text);
    return msg;
}

static void a_step_shows_that_the_trainer_works_on_a_question_but_not_on_a_command(void **state)
{
    const dp_trainer_msg step = {.kind = DP_TRAINER_STEP};
    dp_driver_wait done;
    (void)state;
    dp_driver *driver = open_trainer();
    driver->loss = 2;
    expect((dp_driver_wait){.command = DP_TRAINER_EVAL, .since_ms = 500, .answer = on_heard});
    expect((dp_driver_wait){.command = DP_TRAINER_APPLY, .since_ms = 500});
    answer(&step);
    assert_true(driver->waits[0].since_ms == 1000 && driver->waits[1].since_ms == 500);
    assert_true(driver->loss == 2); /* It has no steps, and so no loss. */
    assert_true(dp_driver_answered(driver, DP_TRAINER_EVAL, &done));
    driver->waits[0] = net.waits[0];
    answer(&step);
    assert_int_equal(driver->waits[0].since_ms, 500);
    desk_close();
}

static void a_failure_is_that_of_the_command_that_it_names_or_of_the_oldest(void **state)
{
    char text[128];
    (void)state;
    open_trainer();
    expect((dp_driver_wait){.command = DP_TRAINER_APPLY, .round = 1});
    expect((dp_driver_wait){.command = DP_TRAINER_REDUCE, .round = 2});
    snprintf(text, sizeof text, "%s: no such part", dp_trainer_kind_name(DP_TRAINER_REDUCE));
    dp_trainer_msg msg = failure(DP_TRAINER_REDUCE, text);
    answer(&msg);
    assert_true(net.n_failed == 1 && net.failed.round == 2);
    assert_string_equal(net.what, "no such part"); /* Without the name, which is told anyway. */
    msg = failure(0, "broken: why");
    answer(&msg);
    assert_true(net.n_failed == 2 && net.failed.round == 1);
    assert_string_equal(net.what, "broken: why");
    assert_int_equal(net.n_killed, 0);
    desk_close();
}

static void a_failure_of_a_command_without_an_answer_ends_the_trainer(void **state)
{
    const dp_trainer_msg named = failure(DP_TRAINER_TRAIN, "cannot go on");
    const dp_trainer_msg unnamed = failure(0, "cannot go on");
    (void)state;
    open_trainer();
    answer(&named);
    answer(&unnamed);
    assert_true(net.n_failed == 0 && net.n_killed == 2 && desk_logged("trainer.failed"));
    desk_close();
}

static void a_trainer_that_lacks_memory_is_replaced_but_not_for_a_question(void **state)
{
    dp_trainer_msg msg = failure(DP_TRAINER_APPLY, "no memory");
    (void)state;
    open_trainer();
    msg.lacks = true;
    expect((dp_driver_wait){.command = DP_TRAINER_APPLY});
    answer(&msg);
    assert_true(net.n_killed == 1 && net.n_failed == 0 && desk_logged("trainer.lack"));
    msg.of = DP_TRAINER_SAMPLE;
    expect((dp_driver_wait){.command = DP_TRAINER_SAMPLE, .answer = on_heard});
    answer(&msg);
    assert_true(net.n_killed == 1 && net.n_failed == 1);
    assert_int_equal(net.failed.command, DP_TRAINER_SAMPLE);
    desk_close();
}

static void a_model_that_does_not_fit_is_told_with_a_way_out_and_tried_later(void **state)
{
    dp_trainer_msg msg =
        failure(DP_TRAINER_OPEN,
                "open: training this model takes 44900 MiB with one sequence and all "
                "recomputed, and 27000 MiB are there; model.layers 12 would fit (DP_TOOBIG)");
    (void)state;
    open_trainer();
    msg.lacks = true;
    expect((dp_driver_wait){.command = DP_TRAINER_OPEN});
    answer(&msg);
    assert_true(net.n_postponed == 1 && net.n_killed == 0 && net.n_failed == 0);
    assert_true(desk_logged("E0311 the model does not fit"));
    assert_true(
        desk_logged("dpnoded --observer stores and serves data without training; training"));
    assert_true(desk_logged("model.layers 12 would fit"));
    desk_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_that_is_open_is_told_with_who_computes),
        cmocka_unit_test(padding_of_the_trainers_vectors_is_not_told_as_parameters),
        cmocka_unit_test(an_answer_that_nobody_waits_for_is_told_and_dropped),
        cmocka_unit_test(a_script_is_told_of_and_named_until_it_goes),
        cmocka_unit_test(a_script_of_a_built_in_model_is_named_and_changes_nothing_for_the_node),
        cmocka_unit_test(a_script_in_a_run_of_gradients_is_not_believed),
        cmocka_unit_test(a_trainer_that_must_cool_is_heard_until_it_has),
        cmocka_unit_test(heat_and_power_come_with_steps_where_they_are_known),
        cmocka_unit_test(files_that_do_not_go_with_an_answer_are_closed),
        cmocka_unit_test(a_state_is_mapped_and_the_one_before_it_goes),
        cmocka_unit_test(a_state_that_cannot_be_mapped_ends_the_trainer),
        cmocka_unit_test(speed_is_measured_between_two_steps_of_one_publication),
        cmocka_unit_test(dropped_steps_are_told_in_one_line_a_second),
        cmocka_unit_test(batches_without_a_token_to_learn_from_are_told_as_such),
        cmocka_unit_test(where_the_trainer_stands_follows_an_init_or_a_load),
        cmocka_unit_test(a_check_is_told_of_the_blob_that_had_its_number),
        cmocka_unit_test(vectors_of_what_was_asked_are_taken_and_others_end_the_trainer),
        cmocka_unit_test(a_publication_cut_otherwise_than_asked_ends_the_trainer),
        cmocka_unit_test(a_slice_of_another_place_ends_the_trainer),
        cmocka_unit_test(an_exchange_tells_what_it_moved),
        cmocka_unit_test(a_person_hears_the_answer_to_a_question),
        cmocka_unit_test(a_step_shows_that_the_trainer_works_on_a_question_but_not_on_a_command),
        cmocka_unit_test(a_failure_is_that_of_the_command_that_it_names_or_of_the_oldest),
        cmocka_unit_test(a_failure_of_a_command_without_an_answer_ends_the_trainer),
        cmocka_unit_test(a_trainer_that_lacks_memory_is_replaced_but_not_for_a_question),
        cmocka_unit_test(a_model_that_does_not_fit_is_told_with_a_way_out_and_tried_later),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
