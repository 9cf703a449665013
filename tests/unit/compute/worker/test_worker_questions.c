/* THREADS_TEST. EVAL and SAMPLE to a worker in a child process. */
#include "tests/unit/compute/worker_kit.h"

static void training_can_be_watched_and_sampled(void **state)
{
    (void)state;
    const peer p = ready_peer(7);
    train_until(&p, 1, STEPS);
    const dp_trainer_msg eval = {.kind = DP_TRAINER_EVAL, .tokens = 200};
    send_views(&p, &eval, NULL, 0);
    const answer score = expect(&p, DP_TRAINER_EVALUATED);
    CHECK(score.msg.loss > 5 && score.msg.loss < 6.5); /* theta has not moved yet */
    CHECK(score.msg.bits_per_byte > 1 && score.msg.tokens >= 200 &&
          score.msg.tokens < 200 + TINY_CONTEXT);
    const dp_trainer_msg sample = {
        .kind = DP_TRAINER_SAMPLE, .text = "light and", .tokens = 20, .seed = 5};
    send_views(&p, &sample, NULL, 0);
    const answer text = expect(&p, DP_TRAINER_SAMPLED);
    CHECK(strncmp(text.msg.text, "light and", 9) == 0 && strlen(text.msg.text) > 9);
    stop(&p);
}

static void a_worker_that_answers_a_question_shows_that_it_lives(void **state)
{
    (void)state;
    const peer p = ready_peer(7);
    const dp_trainer_msg questions[2] = {
        {.kind = DP_TRAINER_EVAL, .tokens = 200},
        {.kind = DP_TRAINER_SAMPLE, .text = "light and", .tokens = 20, .seed = 5}};
    send_views(&p, &questions[0], NULL, 0);
    CHECK(expect(&p, DP_TRAINER_STEP).msg.steps == 0); /* It has never trained. */
    expect(&p, DP_TRAINER_EVALUATED);
    stop(&p);
    const peer other = ready_peer(8);
    send_views(&other, &questions[1], NULL, 0);
    CHECK(expect(&other, DP_TRAINER_STEP).msg.steps == 0);
    expect(&other, DP_TRAINER_SAMPLED);
    stop(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_can_be_watched_and_sampled),
        cmocka_unit_test(a_worker_that_answers_a_question_shows_that_it_lives),
    };
    return cmocka_run_group_tests(tests, make_files, drop_files);
}
