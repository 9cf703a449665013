/* When the loss on held-out text is measured; the trainer is played. */
#include "daemon/model/held_out.h"
#include "tests/unit/daemon/call_kit.h"

static struct {
    dp_trainer_msg question;
    uint32_t n_asked;
    dp_driver_answer *answer;
    void *context;
} net;

static dp_held_out *held_out;

dp_status dp_driver_ask(dp_driver *driver, const dp_trainer_msg *question, dp_driver_answer *answer,
                        void *context)
{
    (void)driver;
    net.question = *question;
    net.n_asked++;
    net.answer = answer;
    net.context = context;
    return DP_OK;
}

/* Milliseconds of the clock that answers are timed by, and so many more. */
static uint64_t later(uint64_t ms)
{
    return uv_hrtime() / 1000000 + ms;
}

enum { HOUR_MS = 3600 * 1000, NEVER_MS = 1 << 30 };

static void open_node(void)
{
    memset(&net, 0, sizeof net);
    dp_driver *const driver = call_open();
    call_kit.has_manifest = true;
    call_kit.view.trainer = "up";
    call_kit.view.running = true;
    call_kit.view.training = true;
    call_kit.view.node.applied = 12;
    driver->manifest.val_per_mille = 50;
    desk.daemon.driver = driver;
    CHECK_OK(dp_held_out_open(&held_out, &desk.daemon, NEVER_MS));
    dp_held_out_look(held_out, later(0)); /* It sees the run. */
}

static void close_node(void)
{
    dp_held_out_close(held_out);
    call_close();
}

static void answer(double loss)
{
    const dp_trainer_msg reply = {
        .kind = DP_TRAINER_EVALUATED, .loss = loss, .bits_per_byte = loss / 2, .tokens = 8200};
    net.answer(net.context, &reply, NULL);
}

static void a_model_that_has_moved_is_measured_after_a_while(void **state)
{
    (void)state;
    open_node();
    dp_held_out_look(held_out, later(DP_HELD_OUT_FIRST_MS / 2));
    assert_int_equal(net.n_asked, 0);
    dp_held_out_look(held_out, later(DP_HELD_OUT_FIRST_MS));
    assert_int_equal(net.n_asked, 1);
    assert_true(net.question.kind == DP_TRAINER_EVAL && net.question.tokens == DP_HELD_OUT_TOKENS);
    dp_held_out_look(held_out, later(HOUR_MS)); /* One question at a time. */
    assert_int_equal(net.n_asked, 1);
    answer(3.5);
    assert_true(desk.daemon.measured.loss == 3.5 && desk.daemon.measured.bits_per_byte == 1.75);
    assert_true(desk.daemon.measured.round == 12 && desk.daemon.measured.tokens == 8200);
    dp_held_out_look(held_out, later(HOUR_MS)); /* The same model. */
    assert_int_equal(net.n_asked, 1);
    call_kit.view.node.applied = 13;
    dp_held_out_look(held_out, later(0)); /* Too soon. */
    assert_int_equal(net.n_asked, 1);
    dp_held_out_look(held_out, later(HOUR_MS));
    assert_int_equal(net.n_asked, 2);
    close_node();
}

/* The run was seen 25 s ago and the question asked 2 s ago: 100 s follow without one. */
static void a_slow_measurement_is_followed_by_a_long_rest(void **state)
{
    (void)state;
    open_node();
    desk.daemon.driver = NULL;
    dp_held_out_look(held_out, later(0));
    desk.daemon.driver = desk.driver;
    dp_held_out_look(held_out, later(0) - 25000);
    dp_held_out_look(held_out, later(0) - 2000);
    assert_int_equal(net.n_asked, 1);
    answer(3.5);
    call_kit.view.node.applied = 13;
    dp_held_out_look(held_out, later(90000));
    assert_int_equal(net.n_asked, 1);
    dp_held_out_look(held_out, later(HOUR_MS));
    assert_int_equal(net.n_asked, 2);
    close_node();
}

static void where_nothing_can_or_may_be_measured_nobody_is_asked(void **state)
{
    (void)state;
    open_node();
    const uint64_t due = later(HOUR_MS);
    desk.driver->manifest.val_per_mille = 0;
    dp_held_out_look(held_out, due);
    desk.driver->manifest.val_per_mille = 50;
    desk.driver->manifest.arch = DP_ARCH_EXTERNAL;
    dp_held_out_look(held_out, due);
    desk.driver->manifest.arch = DP_ARCH_GPT2;
    call_kit.view.training = false; /* a pause: the machine is the owner's */
    dp_held_out_look(held_out, due);
    call_kit.view.training = true;
    call_kit.view.trainer = "starting";
    dp_held_out_look(held_out, due);
    call_kit.view.trainer = "up";
    call_kit.has_manifest = false;
    dp_held_out_look(held_out, due);
    assert_int_equal(net.n_asked, 0);
    call_kit.has_manifest = true;
    dp_held_out_look(held_out, due);
    assert_int_equal(net.n_asked, 1);
    close_node();
}

static void a_failure_is_tried_again_later_and_another_run_begins_anew(void **state)
{
    (void)state;
    open_node();
    dp_held_out_look(held_out, later(HOUR_MS));
    net.answer(net.context, NULL, "the trainer crashed");
    assert_int_equal(desk.daemon.measured.tokens, 0);
    dp_held_out_look(held_out, later(DP_HELD_OUT_AGAIN_MS / 2));
    assert_int_equal(net.n_asked, 1);
    dp_held_out_look(held_out, later(DP_HELD_OUT_AGAIN_MS + 1000));
    assert_int_equal(net.n_asked, 2);
    answer(3.5);
    dp_driver *const driver = desk.daemon.driver;
    desk.daemon.driver = NULL; /* The run is left. */
    dp_held_out_look(held_out, later(HOUR_MS));
    assert_int_equal(desk.daemon.measured.tokens, 0);
    desk.daemon.driver = driver;
    close_node();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_that_has_moved_is_measured_after_a_while),
        cmocka_unit_test(a_slow_measurement_is_followed_by_a_long_rest),
        cmocka_unit_test(where_nothing_can_or_may_be_measured_nobody_is_asked),
        cmocka_unit_test(a_failure_is_tried_again_later_and_another_run_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
