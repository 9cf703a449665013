/* Engines of the CPU on process groups: the same bits for every number of processes, and an error
 * if one has ended. */
#include "compute/backend/process_group.h"

#include <math.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "compute/backend/backend_cpu.h"
#include "compute/backend/process_group_cards.h"
#include "compute/backend/process_group_inside.h"
#include "compute/cpu/ops.h"
#include "tests/lib/allocfail.h"
#include "tests/lib/check.h"
#include "tests/lib/optim_pairs.h"

enum { LANES = 4, ROWS = 6, LENGTH = 17, VOCAB = 64, TOKENS = ROWS * LENGTH, STEPS = 3 };

static dp_model model;
static uint32_t tokens[2 * TOKENS + 1];

static int open_all(void **state)
{
    (void)state;
    static const dp_model_config config = {
        .layers = 2, .width = 32, .heads = 2, .context = LENGTH, .vocab = VOCAB};
    dp_rng rng;
    dp_rng_init(&rng, 3);
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        tokens[i] = (uint32_t)dp_rng_below(&rng, VOCAB);
    }
    return dp_model_open(&model, &config, NULL) == DP_OK ? 0 : 1;
}

static int close_all(void **state)
{
    (void)state;
    dp_model_close(&model);
    return 0;
}

static dp_engine *engine_on(dp_process_group *team, const optim_pair *pair)
{
    const dp_engine_setup setup = {.model = &model,
                                   .precision = DP_PRECISION_FP32,
                                   .optimizer = pair->optimizer,
                                   .weights = pair->weights,
                                   .seed = 5,
                                   .rows_max = ROWS,
                                   .recompute = DP_RECOMPUTE_NORMS,
                                   .threads = 1,
                                   .team = team};
    dp_engine *e = NULL;
    dp_why why = {{0}};
    const dp_status status = dp_backend_cpu()->create(&e, &setup, &why);
    if (status != DP_OK) {
        print_error("%s\n", why.text);
    }
    CHECK_OK(status);
    CHECK_OK(dp_backend_cpu()->init(e, 1));
    CHECK_OK(dp_backend_cpu()->copy(e, DP_VECTOR_X, DP_VECTOR_THETA));
    CHECK_OK(dp_backend_cpu()->reset(e));
    CHECK_OK(dp_backend_cpu()->drop(e));
    return e;
}

typedef struct told {
    double losses[2];
    double norm;
} told;

/* Two micro-batches of unlike sizes, one of them with fewer rows than lanes, and the step. */
static dp_status step(dp_engine *e, told *t)
{
    static const dp_optim_options options = {.lr = 1e-2F,
                                             .beta1 = 0.9F,
                                             .beta2 = 0.95F,
                                             .eps = 1e-8F,
                                             .decay = 0.1F,
                                             .clip = 1.0F,
                                             .momentum = 0.95F};
    const dp_backend *const b = dp_backend_cpu();
    const dp_gpt_batch batches[2] = {{tokens, tokens + 1, ROWS, LENGTH},
                                     {tokens + TOKENS, tokens + TOKENS + 1, LANES - 1, LENGTH}};
    const float scale = 1.0F / (float)((ROWS + LANES - 1) * LENGTH);
    for (size_t i = 0; i < 2; i++) {
        DP_TRY(b->step(e, &batches[i], scale, &t->losses[i]));
    }
    DP_TRY(b->norm(e, &t->norm));
    DP_TRY(b->update(e, &options, t->norm));
    return b->drop(e);
}

/* Steps, then a move of x from outside as a round's, then the state lent and taken again. x at the
 * end, to be freed. */
static float *play(dp_engine *e, told *t)
{
    const dp_backend *const b = dp_backend_cpu();
    dp_optim_vector lent[DP_BACKEND_STATE_MAX];
    for (int i = 0; i < STEPS; i++) {
        CHECK_OK(step(e, &t[i]));
    }
    CHECK_OK(b->subtract(e, DP_VECTOR_X, DP_VECTOR_THETA));
    CHECK_OK(b->scale(e, DP_VECTOR_X, 40000));
    CHECK_OK(b->add(e, DP_VECTOR_X, DP_VECTOR_THETA));
    CHECK_OK(step(e, &t[STEPS]));
    const size_t count = b->lend_state(e, lent);
    CHECK(count > 1);
    for (size_t v = 1; v < count; v++) { /* From then on the values of the checkpoint count. */
        for (size_t i = 0; i < model.n_elements; i++) {
            lent[v].values[i] *= 0.5F;
        }
    }
    CHECK_OK(b->take_state(e, 2));
    CHECK(b->updates(e) == 2);
    CHECK_OK(step(e, &t[STEPS + 1]));
    CHECK(b->updates(e) == 3);
    const size_t bytes = model.n_elements * sizeof(float);
    float *const x = test_malloc(bytes);
    memcpy(x, b->values(e, DP_VECTOR_X), bytes);
    return x;
}

static float *play_on(uint32_t processes, const optim_pair *pair, told *t)
{
    dp_process_group *team = NULL;
    CHECK_OK(dp_process_group_start(&team, processes, LANES, NULL));
    dp_engine *const e = engine_on(team, pair);
    float *const x = play(e, t);
    dp_backend_cpu()->close(e);
    dp_process_group_close(team);
    return x;
}

static void processes_change_no_bit(void **state)
{
    (void)state;
    static const uint32_t processes[] = {2, 3, 4};
    for (size_t k = 0; k < OPTIM_PAIRS; k++) {
        told wanted[STEPS + 2];
        float *const x = play_on(1, &optim_pairs[k], wanted);
        for (size_t p = 0; p < sizeof processes / sizeof processes[0]; p++) {
            told got[STEPS + 2];
            float *const other = play_on(processes[p], &optim_pairs[k], got);
            CHECK(memcmp(got, wanted, sizeof got) == 0);
            CHECK(memcmp(other, x, model.n_elements * sizeof *x) == 0);
            test_free(other);
        }
        test_free(x);
    }
}

static void a_team_trains_as_one_engine_to_rounding(void **state)
{
    (void)state;
    told together[STEPS + 2];
    told alone[STEPS + 2];
    float *const x = play_on(2, &(optim_pair){DP_OPTIM_ADAMW, DP_WEIGHTS_FP32}, together);
    dp_engine *const e = engine_on(NULL, &(optim_pair){DP_OPTIM_ADAMW, DP_WEIGHTS_FP32});
    float *const other = play(e, alone);
    for (size_t i = 0; i < STEPS + 2; i++) {
        CHECK(fabs(together[i].norm - alone[i].norm) <= 1e-4 * alone[i].norm);
        for (size_t k = 0; k < 2; k++) {
            CHECK(fabs(together[i].losses[k] - alone[i].losses[k]) <= 1e-4 * alone[i].losses[k]);
        }
    }
    CHECK(alone[STEPS].losses[0] < alone[0].losses[0]);
    dp_backend_cpu()->close(e);
    test_free(other);
    test_free(x);
}

static void looks_and_gradients_are_those_of_the_whole_batch(void **state)
{
    (void)state;
    const dp_backend *const b = dp_backend_cpu();
    const dp_gpt_batch batch = {tokens, tokens + 1, ROWS, LENGTH};
    dp_process_group *team = NULL;
    double losses[3];
    double norm;
    CHECK_OK(dp_process_group_start(&team, 2, 0, NULL));
    CHECK(dp_process_group_lanes(team) == 2);
    dp_engine *const e = engine_on(team, &(optim_pair){DP_OPTIM_ADAMW, DP_WEIGHTS_FP32});
    CHECK_OK(b->loss(e, DP_VECTOR_THETA, &batch, &losses[0]));
    CHECK_OK(b->step(e, &batch, 1, &losses[1]));
    CHECK(fabs(losses[0] - losses[1]) <= 1e-5 * losses[0]);
    const float *g = b->gradients(e);
    CHECK(g != NULL);
    CHECK_OK(b->norm(e, &norm));
    double square = 0;
    for (size_t i = 0; i < model.n_elements; i++) {
        square += (double)g[i] * (double)g[i];
    }
    CHECK(fabs(sqrt(square) - norm) <= 1e-6 * norm); /* Blocks are summed in fp32. */
    /* More after the sum was asked for is added to it. */
    CHECK_OK(b->step(e, &batch, 1, &losses[2]));
    CHECK(losses[2] == losses[1]);
    double twice;
    CHECK_OK(b->norm(e, &twice));
    CHECK(fabs(twice - 2 * norm) <= 1e-5 * norm);
    CHECK_OK(b->drop(e));
    CHECK_OK(b->norm(e, &norm));
    CHECK(norm == 0);
    CHECK_STATUS(b->step(e, &(dp_gpt_batch){tokens, tokens + 1, ROWS + 1, LENGTH}, 1, &norm),
                 DP_BADARG);
    b->close(e);
    /* The same processes serve the next model. */
    dp_engine *const next = engine_on(team, &(optim_pair){DP_OPTIM_LAMB, DP_WEIGHTS_FP32});
    told t;
    CHECK_OK(step(next, &t));
    b->close(next);
    dp_process_group_close(team);
}

static void a_batch_with_a_token_of_no_model_adds_nothing(void **state)
{
    (void)state;
    const dp_backend *const b = dp_backend_cpu();
    const dp_gpt_batch batch = {tokens, tokens + 1, ROWS, LENGTH};
    uint32_t foreign[TOKENS + 1];
    dp_process_group *team = NULL;
    double loss;
    double norm;
    double twice;
    memcpy(foreign, tokens, sizeof foreign);
    foreign[TOKENS - 1] = VOCAB; /* In the second process's rows. */
    CHECK_OK(dp_process_group_start(&team, 2, 0, NULL));
    dp_engine *const e = engine_on(team, &(optim_pair){DP_OPTIM_ADAMW, DP_WEIGHTS_FP32});
    CHECK_OK(b->step(e, &batch, 1, &loss));
    CHECK_OK(b->norm(e, &norm));
    CHECK_STATUS(b->step(e, &(dp_gpt_batch){foreign, foreign + 1, ROWS, LENGTH}, 1, &loss),
                 DP_BADARG);
    CHECK_STATUS(b->step(e, &(dp_gpt_batch){tokens, foreign, ROWS, LENGTH}, 1, &loss), DP_BADARG);
    CHECK_OK(b->step(e, &batch, 1, &loss));
    CHECK_OK(b->norm(e, &twice));
    CHECK(fabs(twice - 2 * norm) <= 1e-5 * norm);
    b->close(e);
    dp_process_group_close(team);
}

/* A process that is stopped until some alarms have come, so that its answer is waited for when they
 * do. */
static pid_t stopped;
static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
    enum { ENOUGH = 20 };
    (void)number;
    alarms = alarms + 1;
    if (alarms == ENOUGH) {
        (void)kill(stopped, SIGCONT);
    }
}

/* Also after a failure: no process remains stopped. */
static int let_go(void **state)
{
    (void)state;
    (void)kill(stopped, SIGCONT);
    return setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
}

static void signals_do_not_disturb_the_opening_of_an_engine(void **state)
{
    (void)state;
    const struct itimerval often = {.it_interval = {.tv_usec = 1000},
                                    .it_value = {.tv_usec = 1000}};
    const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    dp_process_group *team = NULL;
    told t;
    CHECK_OK(dp_process_group_start(&team, 2, LANES, NULL));
    stopped = team->others[1].pid;
    CHECK(kill(stopped, SIGSTOP) == 0);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    dp_engine *const e = engine_on(team, &(optim_pair){DP_OPTIM_ADAMW, DP_WEIGHTS_FP32});
    CHECK(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL) == 0);
    CHECK_OK(step(e, &t));
    dp_backend_cpu()->close(e);
    dp_process_group_close(team);
}

static void a_process_that_dies_ends_the_team_with_a_sentence(void **state)
{
    (void)state;
    dp_process_group *team = NULL;
    told t;
    CHECK_OK(dp_process_group_start(&team, 3, LANES, NULL));
    dp_engine *const e = engine_on(team, &(optim_pair){DP_OPTIM_ADAMW, DP_WEIGHTS_FP32});
    CHECK_OK(step(e, &t));
    CHECK(strcmp(dp_backend_cpu()->problem(e), "") == 0);
    CHECK(kill(team->others[2].pid, SIGKILL) == 0);
    CHECK_STATUS(step(e, &t), DP_IO);
    CHECK(strstr(dp_backend_cpu()->problem(e), "process 2 of the 3 that compute is gone") != NULL);
    CHECK_STATUS(step(e, &t), DP_IO);
    dp_backend_cpu()->close(e);
    dp_process_group_close(team);
}

/* Opens an engine on the team of processes that context is. */
static dp_status attempt(void *context)
{
    const dp_engine_setup setup = {.model = &model,
                                   .precision = DP_PRECISION_FP32,
                                   .rows_max = ROWS,
                                   .recompute = DP_RECOMPUTE_NORMS,
                                   .threads = 1,
                                   .alone = true,
                                   .team = context};
    dp_engine *e = NULL;
    DP_TRY(dp_backend_cpu()->create(&e, &setup, NULL));
    dp_backend_cpu()->close(e);
    return DP_OK;
}

static void an_engine_that_lacks_memory_leaves_a_team_that_serves_the_next(void **state)
{
    (void)state;
    dp_process_group *team = NULL;
    told t;
    CHECK_OK(dp_process_group_start(&team, 3, LANES, NULL));
    CHECK(fail_each_allocation(attempt, team) > 5);
    dp_engine *const e = engine_on(team, &(optim_pair){DP_OPTIM_ADAMW, DP_WEIGHTS_FP32});
    CHECK_OK(step(e, &t));
    dp_backend_cpu()->close(e);
    CHECK(kill(team->others[1].pid, SIGKILL) == 0);
    CHECK_STATUS(attempt(team), DP_IO);
    dp_process_group_close(team);
}

static void an_answer_that_comes_too_late_is_none_to_the_next_order(void **state)
{
    enum { SOON_MS = 20 };
    (void)state;
    dp_process_group *team = NULL;
    CHECK_OK(dp_process_group_start(&team, 3, LANES, NULL));
    team->open_ms = SOON_MS;
    stopped = team->others[1].pid;
    CHECK(kill(stopped, SIGSTOP) == 0);
    CHECK_STATUS(attempt(team), DP_IO);
    CHECK(kill(stopped, SIGCONT) == 0);
    /* It has ended, and the others notice it at once. */
    team->open_ms = DP_PROCESS_GROUP_WAIT_US / 1000;
    CHECK_STATUS(attempt(team), DP_IO);
    dp_process_group_close(team);
}

static void a_process_that_dies_while_it_opens_is_not_waited_for(void **state)
{
    (void)state;
    dp_process_group *team = NULL;
    CHECK_OK(dp_process_group_start(&team, 2, LANES, NULL));
    stopped = team->others[1].pid;
    CHECK(kill(stopped, SIGSTOP) == 0);
    const pid_t killer = fork();
    if (killer == 0) {
        _exit(kill(stopped, SIGKILL) == 0 ? 0 : 1);
    }
    CHECK(killer > 0);
    CHECK_STATUS(attempt(team), DP_IO); /* Otherwise it would take ten minutes. */
    int ended = 1;
    CHECK(waitpid(killer, &ended, 0) == killer && ended == 0);
    dp_process_group_close(team);
}

static void an_invalid_process_group_is_refused(void **state)
{
    (void)state;
    dp_process_group *team = NULL;
    dp_why why = {{0}};
    CHECK_STATUS(dp_process_group_start(&team, 0, 0, &why), DP_BADARG);
    CHECK_STATUS(dp_process_group_start(&team, 4, 3, &why), DP_BADARG);
    CHECK(strstr(why.text, "4 processes with 3 lanes") != NULL);
    CHECK_STATUS(dp_process_group_start(&team, 1, DP_ZERO_LANES_MAX + 1, &why), DP_BADARG);
    CHECK_STATUS(dp_process_group_start(&team, DP_PROCESS_BARRIER_PROCESSES_MAX + 1, 0, &why),
                 DP_BADARG);
    CHECK(team == NULL);
    dp_process_group_close(NULL);
}

/* Two that report a temperature, the third only its power; there are no others. */
static dp_status look_at_card(uint32_t index, dp_device *out, dp_why *why)
{
    static const dp_device cards[] = {{.celsius = 60, .watts = 200, .bf16 = true},
                                      {.celsius = 71, .watts = 90, .bf16 = true},
                                      {.celsius = INT32_MIN, .watts = 250}};
    if (index >= sizeof cards / sizeof cards[0]) {
        return dp_why_set(why, DP_IO, "it is gone");
    }
    *out = cards[index];
    return DP_OK;
}

static void the_hottest_card_and_the_one_of_most_power_count(void **state)
{
    static const dp_backend_parts parts = {0};
    static const uint32_t devices[] = {2, 0, 1, 9};
    dp_backend card = *dp_backend_cpu();
    const dp_backend *cards = NULL;
    dp_process_group *team = NULL;
    dp_why why = {{0}};
    int32_t celsius = 0;
    uint32_t watts = 0;
    (void)state;
    card.parts = &parts;
    card.device = look_at_card;
    CHECK_OK(dp_process_group_start(&team, 4, 0, NULL));
    CHECK_OK(dp_process_group_use_cards(team, &card, "", devices, NULL, &cards, &why));
    const dp_group_devices all[] = {
        dp_process_group_devices(team, cards, devices[0]),
        dp_process_group_devices(team, &card, 0), /* Not the team's: alone. */
        dp_process_group_devices(NULL, &card, 9)};
    dp_process_group_close(team); /* A thread that reads the sensors may be left behind. */
    dp_group_devices_feel(&all[0], &celsius, &watts);
    CHECK(celsius == 71 && watts == 250);
    dp_group_devices_feel(&all[1], &celsius, &watts);
    CHECK(celsius == 60 && watts == 200);
    dp_group_devices_feel(&all[2], &celsius, &watts);
    CHECK(celsius == INT32_MIN && watts == 0);
}

static void cards_that_differ_train_in_the_precision_that_all_have(void **state)
{
    (void)state;
    dp_backend card = *dp_backend_cpu();
    card.device = look_at_card;
    dp_group_devices some = {.backend = &card, .n = 2, .devices = {0, 1, 2}};
    assert_int_equal(dp_group_devices_precision(&some, DP_PRECISION_AUTO), DP_PRECISION_BF16);
    assert_int_equal(dp_group_devices_precision(&some, DP_PRECISION_FP16), DP_PRECISION_FP16);
    some.n = 3;
    assert_int_equal(dp_group_devices_precision(&some, DP_PRECISION_AUTO), DP_PRECISION_FP32);
    assert_int_equal(dp_group_devices_precision(&some, DP_PRECISION_BF16), DP_PRECISION_BF16);
    some = (dp_group_devices){.backend = &card, .n = 1, .devices = {9}}; /* It is gone. */
    assert_int_equal(dp_group_devices_precision(&some, DP_PRECISION_AUTO), DP_PRECISION_FP32);
    some.devices[0] = 0;
    card.capabilities &= ~(uint32_t)DP_CAN_BF16;
    assert_int_equal(dp_group_devices_precision(&some, DP_PRECISION_AUTO), DP_PRECISION_FP32);
    some.backend = dp_backend_cpu();
    assert_int_equal(dp_group_devices_precision(&some, DP_PRECISION_AUTO),
                     dp_ops_has_fast_bf16() ? DP_PRECISION_BF16 : DP_PRECISION_FP32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_change_no_bit),
        cmocka_unit_test(a_team_trains_as_one_engine_to_rounding),
        cmocka_unit_test(looks_and_gradients_are_those_of_the_whole_batch),
        cmocka_unit_test(a_batch_with_a_token_of_no_model_adds_nothing),
        cmocka_unit_test_teardown(signals_do_not_disturb_the_opening_of_an_engine, let_go),
        cmocka_unit_test(a_process_that_dies_ends_the_team_with_a_sentence),
        cmocka_unit_test(an_engine_that_lacks_memory_leaves_a_team_that_serves_the_next),
        cmocka_unit_test_teardown(an_answer_that_comes_too_late_is_none_to_the_next_order, let_go),
        cmocka_unit_test_teardown(a_process_that_dies_while_it_opens_is_not_waited_for, let_go),
        cmocka_unit_test(an_invalid_process_group_is_refused),
        cmocka_unit_test(the_hottest_card_and_the_one_of_most_power_count),
        cmocka_unit_test(cards_that_differ_train_in_the_precision_that_all_have),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
