/* THREADS_TEST. The worker of a run of any model, as a daemon sees it: a script connects, and
 * publications wait for its looks. */
#include "tests/unit/compute/worker_kit.h"

#include <string.h>

#include "tests/lib/tempdir.h"
#include "tests/unit/compute/any_run.h"

#define DPNODE_IMPLEMENTATION
#include "contrib/script/dpnode.h"

static any_run run;
static tempdir dir;
static char path[TEMPDIR_FILE_MAX];
static float a[6];
static float b[1];
static float c[500];
static const dpnode_tensor tensors[] = {{"a", a, 2, {2, 3}}, {"b", b, 0, {0}}, {"c", c, 1, {500}}};

static int set_up(void **state)
{
    (void)state;
    tempdir_open(&dir);
    tempdir_file(&dir, "script.sock", path);
    any_run_open(&run);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    any_run_close(&run);
    tempdir_close(&dir);
    return 0;
}

static void train(const peer *p, uint64_t round)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_TRAIN, .round = round, .tokens = 10 * round};
    send_views(p, &msg, NULL, 0);
}

/* A worker that has the first weights. */
static peer ready(void)
{
    const peer p = start_with(&(dp_worker_options){.threads = 1, .script_path = path});
    expect(&p, DP_TRAINER_HELLO);
    const dp_trainer_msg open = {.kind = DP_TRAINER_OPEN, .member = {1}};
    const dp_view views[2] = {dp_view_of(run.manifest, run.manifest_size), dp_buf_view(&run.table)};
    send_views(&p, &open, views, 2);
    assert_int_equal(expect(&p, DP_TRAINER_OPENED).msg.elements, N);
    const dp_trainer_msg load = {.kind = DP_TRAINER_LOAD};
    const dp_view init = dp_buf_view(&run.init);
    send_views(&p, &load, &init, 1);
    expect(&p, DP_TRAINER_READY_AT);
    return p;
}

/* Before there are weights a script would begin with zeros. */
static void the_door_opens_once_there_are_weights(void **state)
{
    (void)state;
    dpnode *script = NULL;
    const peer p = start_with(&(dp_worker_options){.threads = 1, .script_path = path});
    expect(&p, DP_TRAINER_HELLO);
    const dp_trainer_msg open = {.kind = DP_TRAINER_OPEN, .member = {1}};
    const dp_view views[2] = {dp_view_of(run.manifest, run.manifest_size), dp_buf_view(&run.table)};
    send_views(&p, &open, views, 2);
    expect(&p, DP_TRAINER_OPENED);
    assert_int_equal(dpnode_open(&script, path, tensors, 3), DPNODE_NO_NODE);
    stop(&p);
}

static dpnode *connected(const peer *p)
{
    dpnode *script = NULL;
    if (dpnode_open(&script, path, tensors, 3) != DPNODE_OK) {
        fail_msg("%s", dpnode_problem(NULL));
    }
    assert_int_equal(expect(p, DP_TRAINER_SCRIPT).msg.pid, getpid());
    return script;
}

static void leave(const peer *p, dpnode *script)
{
    dpnode_close(script);
    assert_int_equal(expect(p, DP_TRAINER_SCRIPT).msg.pid, 0);
}

/* A step on samples of this script. */
static void step(dpnode *script, float to, uint32_t samples)
{
    uint64_t indices[16];
    CHECK(dpnode_draw(script, indices, samples) == samples);
    for (size_t i = 0; i < 500; i++) {
        c[i] += to;
    }
    assert_int_equal(dpnode_step(script, samples, 2.0), DPNODE_OK);
}

static void ask_publication(const peer *p, uint64_t round)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_PUBLISH, .round = round};
    send_views(p, &msg, NULL, 0);
}

static void check_nothing(const peer *p)
{
    const dp_trainer_msg check = {.kind = DP_TRAINER_CHECK, .id = 5};
    const dp_view junk = dp_view_text("no blob");
    send_views(p, &check, &junk, 1);
    CHECK(!expect(p, DP_TRAINER_CHECKED).msg.ok); /* and PUBLISHED did not come before it */
}

static void a_publication_waits_for_the_look_and_holds_what_is_copied(void **state)
{
    (void)state;
    const peer p = ready();
    dpnode *const script = connected(&p);
    train(&p, 1);
    step(script, 0.5F, 4);
    ask_publication(&p, 1);
    check_nothing(&p);
    train(&p, 1); /* A new lease does not end the wait. */
    check_nothing(&p);
    /* The command may still be on its way to the compute thread: steps go on until it has come. */
    answer told = {0};
    uint64_t steps = 1;
    do {
        step(script, 0.25F, 4);
        steps++;
        const ssize_t size = recv(p.socket, &told, 1, MSG_PEEK | MSG_DONTWAIT);
        if (size > 0) {
            CHECK_OK(dp_trainer_receive(p.socket, &told.msg, told.fds, &told.n_fds));
        }
    } while (told.msg.kind != DP_TRAINER_PUBLISHED);
    CHECK(told.msg.steps >= 2 && told.msg.steps <= steps);
    CHECK(told.msg.tokens == 4ULL * told.msg.steps && told.msg.reach.own == told.msg.tokens);
    CHECK(told.msg.loss == 2.0 && told.n_fds == 2 && told.msg.energy > 0);
    release(&told);
    leave(&p, script);
    stop(&p);
}

static void another_command_ends_the_wait_and_the_last_copy_is_published(void **state)
{
    (void)state;
    const peer p = ready();
    dpnode *const script = connected(&p);
    train(&p, 1);
    step(script, 0.5F, 4);
    ask_publication(&p, 1);
    train(&p, 0); /* Its owner pauses the node. */
    answer told = expect(&p, DP_TRAINER_PUBLISHED);
    CHECK(told.msg.steps == 1 && told.msg.tokens == 4 && told.msg.energy > 0);
    release(&told);
    leave(&p, script);
    stop(&p);
}

static void a_script_that_looks_no_more_holds_up_no_publication(void **state)
{
    (void)state;
    const peer p = ready();
    dpnode *const script = connected(&p);
    train(&p, 1);
    step(script, 0.5F, 4);
    ask_publication(&p, 1); /* Steps took no time so far, so the worker gives up soon. */
    answer told = expect(&p, DP_TRAINER_PUBLISHED);
    CHECK(told.msg.steps == 1 && told.msg.tokens == 4);
    release(&told);
    step(script, 0.5F, 4); /* It was not cut off. */
    leave(&p, script);
    stop(&p);
}

static void a_script_that_dies_ends_the_wait(void **state)
{
    (void)state;
    const peer p = ready();
    dpnode *const script = connected(&p);
    train(&p, 1);
    ask_publication(&p, 1);
    check_nothing(&p);
    dpnode_close(script);
    bool gone = false;
    bool published = false;
    while (!gone || !published) {
        answer told = {0};
        CHECK_OK(dp_trainer_receive(p.socket, &told.msg, told.fds, &told.n_fds));
        gone = gone || told.msg.kind == DP_TRAINER_SCRIPT;
        published = published || told.msg.kind == DP_TRAINER_PUBLISHED;
        release(&told);
    }
    stop(&p);
}

static void without_a_script_a_publication_comes_at_once(void **state)
{
    (void)state;
    const peer p = ready();
    train(&p, 1);
    ask_publication(&p, 1);
    const answer told = expect(&p, DP_TRAINER_PUBLISHED);
    CHECK(told.msg.steps == 0);
    release(&told);
    stop(&p);
}

static void a_record_moves_the_script_and_two_replicas_stay_equal(void **state)
{
    (void)state;
    const peer p = ready();
    const peer q = ready(); /* takes the socket's path over; its own script is nobody */
    train(&p, 1);
    ask_publication(&p, 1);
    answer none = expect(&p, DP_TRAINER_PUBLISHED);
    dp_trainer_msg to_p = record_of(1, DP_SETTLE_INCLUDED, 1);
    dp_trainer_msg to_q = record_of(1, DP_SETTLE_NONE, 1);
    const dp_hash root_p = apply(&p, &to_p, none.fds);
    const dp_hash root_q = apply(&q, &to_q, none.fds);
    CHECK(dp_hash_equal(&root_p, &root_q));
    release(&none);
    stop(&q);
    stop(&p);
}

static void a_freeze_waits_as_a_publication_does(void **state)
{
    (void)state;
    const peer p = ready();
    dpnode *const script = connected(&p);
    train(&p, 1);
    const dp_trainer_msg freeze = {.kind = DP_TRAINER_FREEZE, .exchange = {7}};
    send_views(&p, &freeze, NULL, 0);
    check_nothing(&p);
    answer told = {0};
    while (told.msg.kind != DP_TRAINER_FROZEN) {
        step(script, 0.25F, 2);
        const ssize_t size = recv(p.socket, &told, 1, MSG_PEEK | MSG_DONTWAIT);
        if (size > 0) {
            CHECK_OK(dp_trainer_receive(p.socket, &told.msg, told.fds, &told.n_fds));
        }
    }
    CHECK(told.msg.exchange[0] == 7 && told.msg.steps > 0);
    release(&told);
    leave(&p, script);
    stop(&p);
}

static void publish_a_step(const peer *p, dpnode *script, answer *told)
{
    train(p, 1);
    step(script, 0.5F, 4);
    ask_publication(p, 1);
    *told = expect(p, DP_TRAINER_PUBLISHED); /* The script looks no more. */
    CHECK(told->msg.steps == 1 && told->msg.tokens == 4 && told->msg.carried == 0);
}

/* a of both publications, whatever of it their codecs send. */
static bool same_work(const answer *x, const answer *y)
{
    const dp_view first = map(x->fds[1]);
    const dp_view second = map(y->fds[1]);
    const bool same = first.size == second.size && memcmp(first.data, second.data, first.size) == 0;
    dp_memfd_unmap(first);
    dp_memfd_unmap(second);
    return same && x->msg.energy > 0 && y->msg.energy > 0;
}

/* No step comes any more that would say that there is something to publish. */
static void steps_that_a_record_left_out_are_told_and_published_without_a_script(void **state)
{
    (void)state;
    for (uint32_t gone_before = 0; gone_before < 2; gone_before++) {
        const peer p = ready();
        dpnode *const script = connected(&p);
        answer first;
        publish_a_step(&p, script, &first);
        const dp_trainer_msg record = record_of(1, DP_SETTLE_LEFT_OUT, 0);
        if (gone_before) {
            leave(&p, script);
            (void)apply(&p, &record, NULL);
        } else {
            (void)apply(&p, &record, NULL);
            check_nothing(&p); /* The script may take steps, and then these are carried. */
            dpnode_close(script);
        }
        const answer waits = expect(&p, DP_TRAINER_STEP);
        CHECK(waits.msg.steps == 1 && waits.msg.tokens == 4 && waits.msg.loss == 2.0);
        CHECK(waits.msg.again);
        if (!gone_before) {
            assert_int_equal(expect(&p, DP_TRAINER_SCRIPT).msg.pid, 0);
        }
        ask_publication(&p, 2);
        const answer again = expect(&p, DP_TRAINER_PUBLISHED);
        CHECK(again.msg.steps == 1 && again.msg.tokens == 4 && again.msg.carried == 0);
        CHECK(same_work(&first, &again) && again.msg.reach.own == first.msg.reach.own);
        dp_trainer_msg counts = record_of(2, DP_SETTLE_INCLUDED, 1);
        (void)apply(&p, &counts, again.fds);
        ask_publication(&p, 3);
        const answer none = expect(&p, DP_TRAINER_PUBLISHED); /* and no STEP was told */
        CHECK(none.msg.steps == 0 && none.msg.tokens == 0 && none.msg.carried == 0);
        release(&none);
        release(&again);
        release(&first);
        stop(&p);
    }
}

static void steps_that_a_record_left_out_are_told_by_a_worker_that_restores_them(void **state)
{
    (void)state;
    const peer p = ready();
    dpnode *const script = connected(&p);
    answer first;
    publish_a_step(&p, script, &first);
    leave(&p, script);
    const peer q = ready();
    const dp_trainer_msg restore = {.kind = DP_TRAINER_RESTORE,
                                    .round = 1,
                                    .restore = DP_RESTORE_PENDING,
                                    .settle = DP_SETTLE_LEFT_OUT,
                                    .lambda = ONE,
                                    .steps = 1,
                                    .tokens = 4};
    const int fds[2] = {first.fds[1], first.fds[0]};
    CHECK_OK(dp_trainer_send(q.socket, &restore, fds, 2));
    const answer waits = expect(&q, DP_TRAINER_STEP);
    CHECK(waits.msg.steps == 1 && waits.msg.tokens == 4 && waits.msg.again);
    ask_publication(&q, 2);
    const answer again = expect(&q, DP_TRAINER_PUBLISHED);
    CHECK(again.msg.steps == 1 && again.msg.tokens == 4 && same_work(&first, &again));
    release(&again);
    release(&first);
    stop(&q);
    stop(&p);
}

static void a_worker_without_a_path_holds_the_model_all_the_same(void **state)
{
    (void)state;
    path[0] = '/';
    path[1] = '\0'; /* a folder, where no socket can be */
    const peer p = ready();
    train(&p, 1);
    ask_publication(&p, 1);
    const answer told = expect(&p, DP_TRAINER_PUBLISHED);
    release(&told);
    stop(&p);
}

#define TEST_OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_OF(the_door_opens_once_there_are_weights),
        TEST_OF(a_publication_waits_for_the_look_and_holds_what_is_copied),
        TEST_OF(another_command_ends_the_wait_and_the_last_copy_is_published),
        TEST_OF(a_script_that_looks_no_more_holds_up_no_publication),
        TEST_OF(a_script_that_dies_ends_the_wait),
        TEST_OF(without_a_script_a_publication_comes_at_once),
        TEST_OF(a_record_moves_the_script_and_two_replicas_stay_equal),
        TEST_OF(a_freeze_waits_as_a_publication_does),
        TEST_OF(steps_that_a_record_left_out_are_told_and_published_without_a_script),
        TEST_OF(steps_that_a_record_left_out_are_told_by_a_worker_that_restores_them),
        TEST_OF(a_worker_without_a_path_holds_the_model_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
