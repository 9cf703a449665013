/* ckpt.list, ckpt.verify, ckpt.export, sample, eval: questions about the model. The trainer and the
 * export are played. */
#include "daemon/model/export.h"
#include "daemon/model/sampling.h"
#include "store/ckpt.h"
#include "store/inside.h"
#include "tests/unit/daemon/call_kit.h"

static struct {
    dp_trainer_msg question;
    uint32_t n_asked;
    dp_driver_answer *answer;
    void *context;
    uint32_t n_exports;
    char path[DP_CONFIG_PATH_MAX];
    dp_export_form form;
    uint32_t n_samplings;
    dp_trainer_msg sampled; /* the question of the last */
    bool has_checkpoint;
} net;

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

void dp_export_start(dp_daemon *daemon, const dp_call *call, const char *path,
                     const dp_export_form *form)
{
    (void)daemon;
    (void)call;
    net.n_exports++;
    net.form = *form;
    snprintf(net.path, sizeof net.path, "%s", path);
}

void dp_sampling_start(dp_daemon *daemon, const dp_call *call, const dp_trainer_msg *question,
                       dp_sampling_without *without)
{
    net.n_samplings++;
    net.sampled = *question;
    if (!net.has_checkpoint) {
        without(daemon, call, question);
    }
}

void dp_sampling_reply(const dp_call *call, const dp_trainer_msg *question, const char *text,
                       uint64_t round, const char *source)
{
    dp_packer packer;
    (void)question;
    CHECK(dp_call_begin(call, DP_CONTROL_REPLY, &packer));
    dp_group map = dp_map_begin(&packer);
    dp_pair_text(&map, "text", text);
    dp_pair_u64(&map, "round", round);
    dp_pair_text(&map, "source", source);
    dp_group_end(&map);
    dp_call_end(call, &packer);
}

static void open_node(void)
{
    memset(&net, 0, sizeof net);
    call_open();
    call_kit.view.trainer = "up";
    call_kit.view.node.applied = 12;
}

enum { RECOVERED = 20 }; /* this round's state has no known record */

static void save_of(uint64_t round, size_t size)
{
    uint8_t *bytes = noise(round, size);
    dp_ckpt ckpt = {.round = round,
                    .slot = 100 + round,
                    .state_root = round != RECOVERED ? name_of(round) : (dp_hash){{0}},
                    .created_ms = 7};
    const dp_hash run = desk.driver->facts.run;
    CHECK_OK(dp_ckpt_save(desk.shelf.store, &run, &ckpt, dp_view_of(bytes, size)));
    free(bytes);
}

static void save(uint64_t round)
{
    save_of(round, 5000);
}

static void checkpoints_are_listed_newest_first_with_their_size(void **state)
{
    uint32_t count = 0;
    (void)state;
    open_node();
    save(RECOVERED);
    save(8);
    save(9);
    CALL_ALONE(dp_method_ckpt_list);
    call_wait();
    const dp_pack_value *list = dp_pack_key(call_body(), "checkpoints");
    assert_true(dp_pack_is_array(list, &count) && count == 3);
    assert_string_equal(text_at(dp_pack_at(list, 0), "state"), "recovered");
    assert_true(number_at(dp_pack_at(list, 1), "round") == 9);
    assert_true(number_at(dp_pack_at(list, 2), "slot") == 108);
    assert_true(number_at(dp_pack_at(list, 2), "bytes") == 5000);
    assert_string_equal(text_at(dp_pack_at(list, 2), "state"), "complete");
    call_close();
}

static void a_damaged_checkpoint_is_counted_and_listed_as_bad(void **state)
{
    (void)state;
    open_node();
    save(8);
    CALL_ALONE(dp_method_ckpt_verify);
    call_wait();
    assert_true(number_at(call_body(), "good") == 1 && number_at(call_body(), "bad") == 0);
    dp_query query =
        dp_query_of(&desk.shelf.store->chunks, "UPDATE chunk SET data = zeroblob(size)");
    CHECK_OK(dp_query_run(&query));
    CALL_ALONE(dp_method_ckpt_verify);
    call_wait();
    assert_true(number_at(call_body(), "good") == 0 && number_at(call_body(), "bad") == 1);
    CALL_ALONE(dp_method_ckpt_list);
    call_wait();
    assert_string_equal(text_at(dp_pack_at(dp_pack_key(call_body(), "checkpoints"), 0), "state"),
                        "bad");
    call_close();
}

/* A verification of many GiB takes minutes: the watchdog would kill a daemon that did it in one. */
static void votes_are_written_while_checkpoints_are_verified(void **state)
{
    (void)state;
    open_node();
    save_of(8, DP_PIECE_BYTES + 5000);
    desk_hold();
    CALL_ALONE(dp_method_ckpt_verify);
    assert_true(desk_writes_between(DP_STORE_THREAD_BULK, call_is_answered));
    assert_true(number_at(call_body(), "good") == 1 && number_at(call_body(), "bad") == 0);
    call_close();
}

static void without_a_run_memory_or_room_nothing_is_read(void **state)
{
    (void)state;
    open_node();
    call_kit.fails_at = 1;
    CALL_ALONE(dp_method_ckpt_list);
    assert_true(call_failed("E0199", 70));
    CALL_ALONE(dp_method_eval);
    assert_true(call_failed("E0199", 70));
    call_kit.fails_at = 0;
    dp_store_thread *store_thread = desk.daemon.store_thread;
    desk.daemon.store_thread = NULL;
    CALL_ALONE(dp_method_ckpt_verify);
    assert_true(call_failed("E0402", 75));
    desk.daemon.store_thread = store_thread;
    desk.daemon.driver = NULL;
    CALL_ALONE(dp_method_ckpt_list);
    CALL_ALONE(dp_method_sample);
    CALL(dp_method_ckpt_export, TEXT("path", "/m"));
    assert_true(call_failed("E0105", 75) && net.n_asked == 0 && net.n_exports == 0);
    call_close();
}

static void an_export_has_a_folder_and_one_kind_of_file(void **state)
{
    (void)state;
    open_node();
    CALL(dp_method_ckpt_export, TEXT("path", "/m"), TEXT("gguf", "q8_0"), NUMBER("umask", 01022));
    assert_int_equal(net.n_exports, 1);
    assert_string_equal(net.path, "/m");
    assert_string_equal(net.form.option, "--gguf");
    assert_string_equal(net.form.type, "q8_0");
    assert_int_equal(net.form.umask, 022);
    CALL(dp_method_ckpt_export, TEXT("path", "/m"), TEXT("llmc", "bf16"));
    assert_string_equal(net.form.option, "--llmc");
    CALL(dp_method_ckpt_export, TEXT("path", "/m"));
    assert_string_equal(net.form.option, "");
    assert_int_equal(net.form.umask, 077); /* Of one that does not say it: private. */
    call_close();
}

static void exports_that_cannot_be_are_refused(void **state)
{
    char type[300];
    (void)state;
    open_node();
    memset(type, 'q', sizeof type - 1);
    type[sizeof type - 1] = '\0';
    CALL(dp_method_ckpt_export, TEXT("path", "relative"));
    assert_true(call_failed("E0403", 64));
    CALL(dp_method_ckpt_export, TEXT("gguf", "f32"));
    assert_true(call_failed("E0403", 64));
    CALL(dp_method_ckpt_export, TEXT("path", "/m"), TEXT("gguf", "f32"), TEXT("llmc", "f32"));
    assert_true(call_failed("E0403", 64));
    CALL(dp_method_ckpt_export, TEXT("path", "/m"), TEXT("gguf", type));
    assert_true(call_failed("E0403", 64) && net.n_exports == 0);
    call_close();
}

static void a_sample_is_of_a_checkpoint_with_the_sampler_that_was_asked_for(void **state)
{
    (void)state;
    open_node();
    call_kit.has_manifest = true;
    net.has_checkpoint = true;
    CALL_ALONE(dp_method_sample);
    assert_true(net.n_samplings == 1 && net.n_asked == 0);
    assert_true(net.sampled.temperature == 0.8 && net.sampled.top_p == 1);
    assert_int_equal(net.sampled.top_k, 40);
    CALL(dp_method_sample, NUMBER("top_k", 7), NUMBER("temperature", 0), NUMBER("seed", 3));
    assert_true(net.n_samplings == 2 && net.sampled.temperature == 0 && net.sampled.seed == 3);
    assert_int_equal(net.sampled.top_k, 7);
    CALL(dp_method_sample, NUMBER("top_k", 0));
    assert_true(call_failed("E0001", 64));
    CALL(dp_method_sample, NUMBER("top_p", 2));
    assert_true(call_failed("E0001", 64));
    CALL(dp_method_sample, NUMBER("temperature", 1001));
    assert_true(call_failed("E0001", 64) && net.n_samplings == 2);
    call_close();
}

static void a_prompt_is_taken_whole_or_refused(void **state)
{
    static char prompt[DP_TRAINER_TEXT_MAX + 2];
    (void)state;
    open_node();
    call_kit.has_manifest = true;
    net.has_checkpoint = true;
    memset(prompt, 'x', sizeof prompt - 1);
    CALL(dp_method_sample, TEXT("prompt", prompt));
    assert_true(call_failed("E0001", 64) && net.n_samplings == 0);
    prompt[DP_TRAINER_TEXT_MAX] = '\0';
    CALL(dp_method_sample, TEXT("prompt", prompt));
    assert_true(net.n_samplings == 1);
    assert_string_equal(net.sampled.text, prompt);
    call_close();
}

static void without_a_checkpoint_a_sample_goes_to_the_trainer(void **state)
{
    (void)state;
    open_node();
    call_kit.has_manifest = true;
    CALL(dp_method_sample, TEXT("prompt", "In the"), NUMBER("tokens", 5000), NUMBER("seed", 9));
    assert_true(net.question.kind == DP_TRAINER_SAMPLE && net.question.seed == 9);
    assert_int_equal(net.question.tokens, 2000); /* At most. */
    assert_string_equal(net.question.text, "In the");
    const dp_trainer_msg reply = {.kind = DP_TRAINER_SAMPLED, .text = "beginning"};
    net.answer(net.context, &reply, NULL);
    assert_string_equal(text_at(call_body(), "text"), "beginning");
    assert_string_equal(text_at(call_body(), "source"), "trainer");
    assert_int_equal(number_at(call_body(), "round"), 12);
    CALL_ALONE(dp_method_sample);
    assert_int_equal(net.question.tokens, 120);
    net.answer(net.context, NULL, "the trainer crashed");
    assert_true(call_failed("E0411", 75));
    assert_string_equal(call_kit.error.why, "the trainer crashed");
    call_close();
}

static void an_evaluation_comes_back_with_loss_and_tokens(void **state)
{
    double loss = 0;
    (void)state;
    open_node();
    CALL(dp_method_eval, NUMBER("tokens", 5000));
    assert_true(net.question.kind == DP_TRAINER_EVAL && net.question.tokens == 5000);
    const dp_trainer_msg reply = {
        .kind = DP_TRAINER_EVALUATED, .loss = 2.5, .bits_per_byte = 1.25, .tokens = 4999};
    net.answer(net.context, &reply, NULL);
    assert_true(dp_pack_get_f64(dp_pack_key(call_body(), "loss"), &loss) && loss == 2.5);
    assert_int_equal(number_at(call_body(), "tokens"), 4999);
    assert_null(dp_pack_key(call_body(), "text"));
    call_close();
}

static void nobody_hears_an_answer_after_going_away(void **state)
{
    (void)state;
    open_node();
    CALL_ALONE(dp_method_eval);
    call_kit.is_gone = true;
    net.answer(net.context, NULL, "the trainer crashed");
    assert_true(call_kit.n_errors == 0 && call_kit.n_frames == 0);
    call_close();
}

static void a_trainer_that_is_not_up_is_not_asked(void **state)
{
    (void)state;
    open_node();
    call_kit.view.trainer = "starting";
    CALL_ALONE(dp_method_sample);
    assert_true(call_failed("E0410", 75) && net.n_asked == 0);
    call_close();
}

static void a_model_that_dpnode_cannot_run_answers_no_question(void **state)
{
    (void)state;
    open_node();
    call_kit.has_manifest = true;
    desk.driver->manifest.arch = DP_ARCH_EXTERNAL;
    CALL_ALONE(dp_method_sample);
    assert_true(call_failed("E0412", 69) && net.n_asked == 0);
    CALL_ALONE(dp_method_eval);
    assert_true(call_failed("E0412", 69) && net.n_asked == 0);
    CALL(dp_method_ckpt_export, TEXT("path", "/m"), TEXT("gguf", "f32"));
    assert_true(call_failed("E0403", 64) && net.n_exports == 0);
    CALL(dp_method_ckpt_export, TEXT("path", "/m"));
    assert_int_equal(net.n_exports, 1);
    desk.driver->manifest.arch = DP_ARCH_GPT2;
    call_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_are_listed_newest_first_with_their_size),
        cmocka_unit_test(a_damaged_checkpoint_is_counted_and_listed_as_bad),
        cmocka_unit_test(votes_are_written_while_checkpoints_are_verified),
        cmocka_unit_test(without_a_run_memory_or_room_nothing_is_read),
        cmocka_unit_test(an_export_has_a_folder_and_one_kind_of_file),
        cmocka_unit_test(exports_that_cannot_be_are_refused),
        cmocka_unit_test(a_sample_is_of_a_checkpoint_with_the_sampler_that_was_asked_for),
        cmocka_unit_test(a_prompt_is_taken_whole_or_refused),
        cmocka_unit_test(without_a_checkpoint_a_sample_goes_to_the_trainer),
        cmocka_unit_test(an_evaluation_comes_back_with_loss_and_tokens),
        cmocka_unit_test(nobody_hears_an_answer_after_going_away),
        cmocka_unit_test(a_trainer_that_is_not_up_is_not_asked),
        cmocka_unit_test(a_model_that_dpnode_cannot_run_answers_no_question),
    };
    tempdir_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
