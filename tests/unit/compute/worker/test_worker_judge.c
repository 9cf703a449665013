/* THREADS_TEST. The worker that is asked what an update would do, over a socketpair. */
#include "tests/unit/compute/worker_kit.h"

#include "compute/codec/codec.h"

static dp_trainer_msg question(uint32_t id, uint32_t windows)
{
    return (dp_trainer_msg){.kind = DP_TRAINER_JUDGE,
                            .id = id,
                            .scale = ONE / 8,
                            .tokens = windows * TINY_CONTEXT,
                            .seed = 5,
                            .member = {2},
                            .own_count = 4 * STEPS};
}

static answer judge(const peer *p, const dp_trainer_msg *msg, int fd)
{
    CHECK_OK(dp_trainer_send(p->socket, msg, &fd, 1));
    const answer a = expect(p, DP_TRAINER_JUDGED);
    assert_int_equal(a.n_fds, 0);
    assert_int_equal(a.msg.id, msg->id);
    return a;
}

static void an_update_is_judged_beside_the_own_one(void **state)
{
    (void)state;
    const peer author = ready_peer(2);
    const peer p = ready_peer(1);
    train_until(&author, 1, STEPS);
    train_until(&p, 1, STEPS);
    const answer theirs = publish(&author, 1);
    const dp_trainer_msg first = question(1, 4);
    CHECK(!judge(&p, &first, theirs.fds[0]).msg.judged.compared); /* It has published nothing. */
    const answer own = publish(&p, 1);
    const dp_trainer_msg second = question(2, 4);
    const answer a = judge(&p, &second, theirs.fds[0]);
    CHECK(!a.msg.judged.failed && a.msg.judged.compared && a.msg.judged.align > 0);
    assert_int_equal(a.msg.judged.held.tokens, 4 * TINY_CONTEXT);
    assert_int_equal(a.msg.judged.claimed.tokens, 4 * TINY_CONTEXT);
    CHECK(a.msg.judged.held.micro > 0 && a.msg.judged.held.error_micro > 0);
    release(&own);
    release(&theirs);
    stop(&author);
    stop(&p);
}

/* Commands are answered in order, and commands that change theta do not overlap with those that
 * read it. */
static void judgements_keep_the_order_of_commands(void **state)
{
    (void)state;
    const peer p = ready_peer(1);
    train_until(&p, 1, STEPS);
    const answer own = publish(&p, 1);
    dp_trainer_msg before = question(8, 2);
    dp_trainer_msg after = question(9, 2);
    const dp_trainer_msg record = record_of(1, DP_SETTLE_INCLUDED, 1);
    before.scale = 64 * ONE; /* So far that it matters where it begins, also after few steps. */
    after.scale = before.scale;
    CHECK_OK(dp_trainer_send(p.socket, &before, own.fds, 1));
    CHECK_OK(dp_trainer_send(p.socket, &record, own.fds, 1));
    CHECK_OK(dp_trainer_send(p.socket, &after, own.fds, 1));
    const answer first = expect(&p, DP_TRAINER_JUDGED);
    assert_int_equal(first.msg.id, 8);
    const answer applied = expect(&p, DP_TRAINER_APPLIED);
    const answer last = expect(&p, DP_TRAINER_JUDGED);
    assert_int_equal(last.msg.id, 9);
    CHECK(first.msg.judged.held.micro != last.msg.judged.held.micro);
    CHECK(first.msg.judged.align == last.msg.judged.align && first.msg.judged.align > 0);
    release(&applied);
    release(&own);
    stop(&p);
}

static void a_failed_measurement_is_answered_and_training_continues(void **state)
{
    (void)state;
    const peer p = ready_peer(1);
    train_until(&p, 1, STEPS);
    const answer own = publish(&p, 1);
    dp_trainer_msg msg = question(3, 2);
    int odd;
    CHECK_OK(dp_memfd_make("test", dp_view_text("no update"), &odd));
    CHECK(judge(&p, &msg, odd).msg.judged.failed);
    msg.keep = 3; /* No density of this run. */
    CHECK(judge(&p, &msg, own.fds[0]).msg.judged.failed);
    msg.keep = 0;
    CHECK(!judge(&p, &msg, own.fds[0]).msg.judged.failed);
    send_views(&p, &msg, NULL, 0);
    const answer none = expect(&p, DP_TRAINER_FAILED);
    assert_int_equal(none.msg.of, DP_TRAINER_JUDGE);
    train_until(&p, 2, 1);
    close(odd);
    release(&own);
    stop(&p);
}

static void theta_comes_first(void **state)
{
    (void)state;
    const peer p = start();
    CHECK(open_run(&p, 1) > 0);
    const dp_trainer_msg msg = question(3, 2);
    const dp_view blob = dp_view_text("no update");
    send_views(&p, &msg, &blob, 1);
    assert_int_equal(expect(&p, DP_TRAINER_FAILED).msg.of, DP_TRAINER_JUDGE);
    stop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_is_judged_beside_the_own_one),
        cmocka_unit_test(judgements_keep_the_order_of_commands),
        cmocka_unit_test(a_failed_measurement_is_answered_and_training_continues),
        cmocka_unit_test(theta_comes_first),
    };
    return cmocka_run_group_tests(tests, make_slow_files, drop_files);
}
