/* sample: a checkpoint and a question as input of a tool, and its text. The tool is a mock. */
#include "daemon/model/sampling.h"
#include "tests/unit/daemon/model_kit.h"

static dp_trainer_msg question;
static uint32_t n_without;

static void without(dp_daemon *daemon, const dp_call *call, const dp_trainer_msg *asked)
{
    (void)daemon;
    assert_string_equal(asked->text, question.text);
    n_without++;
    dp_call_fail(call, 75, "E0411", "", "as the trainer would", "");
}

static void begin(void)
{
    const dp_call call = {.daemon = &desk.daemon, .client = 1, .id = 7};
    question = (dp_trainer_msg){.kind = DP_TRAINER_SAMPLE,
                                .tokens = 30,
                                .seed = UINT64_MAX,
                                .temperature = 0.75,
                                .top_k = 5,
                                .top_p = 0.9,
                                .text = "--help\nIn the"};
    dp_sampling_start(&desk.daemon, &call, &question, without);
}

static void start(void)
{
    call_clear();
    tool.done = NULL;
    begin();
    turn_until(&desk.loop, is_running, NULL);
}

static bool has_word(const char *word)
{
    for (uint32_t i = 0; i < tool.n_words; i++) {
        if (strcmp(tool.words[i], word) == 0) {
            return true;
        }
    }
    return false;
}

static void a_checkpoint_and_a_prompt_become_text_of_its_round(void **state)
{
    double number = 0;
    (void)state;
    open_run(8);
    start();
    assert_int_equal(size_of("manifest"), 8);
    assert_int_equal(size_of("state"), 5000);
    assert_int_equal(size_of("tokenizer.json"), 300);
    assert_int_equal(size_of("prompt"), 13); /* A file: it cannot be taken for an option. */
    assert_string_equal(tool.words[0], "sample");
    assert_true(has_word("--tokens=30") && has_word("--seed=18446744073709551615"));
    assert_true(has_word("--temperature=0.75") && has_word("--top-k=5"));
    assert_true(has_word("--nice=19") && has_word("--threads=1")); /* The trainer comes first. */
    tool.done(tool.context, 0, "In the beginning");
    assert_string_equal(text_at(call_body(), "text"), "In the beginning");
    assert_string_equal(text_at(call_body(), "source"), "checkpoint");
    assert_int_equal(number_at(call_body(), "round"), 8);
    assert_int_equal(number_at(call_body(), "top_k"), 5);
    assert_true(dp_pack_get_f64(dp_pack_key(call_body(), "top_p"), &number) && number == 0.9);
    assert_true(tool.n_removed == 1 && desk.daemon.n_samplings == 0);
    call_close();
}

static void without_a_checkpoint_somebody_else_answers(void **state)
{
    (void)state;
    open_run(0);
    n_without = 0;
    start();
    assert_true(n_without == 1 && tool.done == NULL && tool.n_removed == 1);
    assert_int_equal(desk.daemon.n_samplings, 0);
    call_close();
}

static void the_output_of_the_tool_is_the_reason_of_a_failure(void **state)
{
    (void)state;
    open_run(8);
    start();
    tool.done(tool.context, 69, "a sample needs 900 MiB of memory, and 100 MiB are left");
    assert_true(call_failed("E0413", 69));
    assert_string_equal(call_kit.error.why,
                        "a sample needs 900 MiB of memory, and 100 MiB are left");
    assert_int_equal(tool.n_removed, 1);
    tool.runs = DP_TOOBIG;
    start();
    turn_until(&desk.loop, call_is_answered, NULL);
    assert_true(call_failed("E0413", 74) && tool.n_removed == 2);
    assert_int_equal(desk.daemon.n_samplings, 0);
    call_close();
}

/* Each has the model in memory. */
static void only_a_few_texts_are_generated_at_a_time(void **state)
{
    (void)state;
    open_run(8);
    desk.daemon.n_samplings = DP_SAMPLINGS_MAX;
    start();
    assert_true(call_failed("E0414", 75) && tool.done == NULL && tool.n_removed == 0);
    desk.daemon.n_samplings = DP_SAMPLINGS_MAX - 1;
    start();
    assert_int_equal(desk.daemon.n_samplings, DP_SAMPLINGS_MAX);
    tool.done(tool.context, 0, "x");
    assert_int_equal(desk.daemon.n_samplings, DP_SAMPLINGS_MAX - 1);
    call_close();
}

static void without_room_nothing_is_begun(void **state)
{
    (void)state;
    open_run(8);
    tool.folders = DP_NOSPACE;
    start();
    assert_true(call_failed("E0413", 74) && tool.n_removed == 0);
    tool.folders = DP_OK;
    dp_store_thread *store_thread = desk.daemon.store_thread;
    desk.daemon.store_thread = NULL;
    start();
    assert_true(call_failed("E0402", 75) && tool.n_removed == 1);
    desk.daemon.store_thread = store_thread;
    assert_int_equal(desk.daemon.n_samplings, 0);
    call_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_and_a_prompt_become_text_of_its_round),
        cmocka_unit_test(without_a_checkpoint_somebody_else_answers),
        cmocka_unit_test(the_output_of_the_tool_is_the_reason_of_a_failure),
        cmocka_unit_test(only_a_few_texts_are_generated_at_a_time),
        cmocka_unit_test(without_room_nothing_is_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
