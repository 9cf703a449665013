/* ckpt ls, verify, export: checkpoints for people, and a model as files. */
#include "cli/paths.h"
#include "cli/print.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/cli/verb_kit.h"

static tempdir dir;

static int open_folder(void **state)
{
    tempdir_open(&dir);
    return verb_setup(state);
}

static int close_folder(void **state)
{
    (void)state;
    tempdir_close(&dir);
    return 0;
}

static void checkpoints_are_rows_with_their_age(void **state)
{
    char text[512];
    (void)state;
    snprintf(text, sizeof text,
             "{'checkpoints': [{'round': 12, 'bytes': 1048576, 'time_ms': %llu, 'state': 'kept', "
             "'state_root': 'abcd'}, {'round': 9}]}",
             (unsigned long long)dp_print_now_ms() - 7205 * 1000);
    verb_answer(text);
    assert_int_equal(VERB_ALONE(dp_verb_ckpt_ls), 0);
    assert_true(verb_asked(0, "ckpt.list", "{}"));
    assert_true(verb_said("12") && verb_said("1.0 MiB") && verb_said("2 h") && verb_said("kept"));
    assert_true(verb_said("abcd") && verb_said("9"));
    verb_answer("{'checkpoints': []}");
    assert_int_equal(VERB_ALONE(dp_verb_ckpt_ls), 0);
    assert_true(verb_said("no checkpoint yet"));
    verb_answer("{'checkpoints': []}");
    assert_int_equal(VERB(dp_verb_ckpt_ls, "--json"), 0);
    assert_true(verb_said("\"checkpoints\":[]"));
}

static void a_bad_checkpoint_ends_with_1(void **state)
{
    (void)state;
    verb_answer("{'good': 3, 'bad': 0}");
    assert_int_equal(VERB_ALONE(dp_verb_ckpt_verify), 0);
    assert_true(verb_asked(0, "ckpt.verify", "{}") && verb_said("3 checkpoints intact, 0 damaged"));
    verb_answer("{'good': 2, 'bad': 1}");
    assert_int_equal(VERB_ALONE(dp_verb_ckpt_verify), DP_EXIT_NEGATIVE);
    verb_answer("{'good': 2, 'bad': 1}");
    assert_int_equal(VERB(dp_verb_ckpt_verify, "--json"), DP_EXIT_NEGATIVE);
    assert_true(verb_said("\"bad\":1"));
    verb_refuse(DP_EXIT_TEMPORARY, "E0105", "this node is in no run");
    assert_int_equal(VERB_ALONE(dp_verb_ckpt_verify), DP_EXIT_TEMPORARY);
}

static void an_export_lists_its_files(void **state)
{
    char params[1024];
    char path[TEMPDIR_FILE_MAX];
    (void)state;
    tempdir_file(&dir, "model", path);
    verb_answer("{'path': '/m', 'files': ['model.gguf'], 'round': 12}");
    assert_int_equal(VERB(dp_verb_ckpt_export, path, "--gguf", "q8_0"), 0);
    snprintf(params, sizeof params, "{'umask': %u, 'path': '%s', 'gguf': 'q8_0'}",
             (unsigned)dp_path_user_umask(), path);
    assert_true(verb_asked(0, "ckpt.export", params));
    assert_true(verb_said("the model of round 12:\n  /m/model.gguf\n"));
    verb_answer("{'files': [], 'round': 12}");
    assert_int_equal(VERB(dp_verb_ckpt_export, path, "--llmc", "bf16", "--json"), 0);
    snprintf(params, sizeof params, "{'umask': %u, 'path': '%s', 'llmc': 'bf16'}",
             (unsigned)dp_path_user_umask(), path);
    assert_true(verb_asked(0, "ckpt.export", params));
}

static void types_that_no_file_has_ask_nothing(void **state)
{
    static const char *const rows[][2] = {
        {"--gguf", "q4_0"}, {"--llmc", "q8_0"}, {"--llmc", "f16"}, {"--gguf", ""}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(VERB(dp_verb_ckpt_export, "/nowhere", rows[i][0], rows[i][1]),
                         DP_EXIT_USAGE);
        assert_true(verb_warned("E0403"));
    }
    assert_int_equal(VERB(dp_verb_ckpt_export, "/nowhere", "--gguf", "f32", "--llmc", "f32"),
                     DP_EXIT_USAGE);
    assert_true(verb_warned("exclude each other") && verb_kit.n_calls == 0);
    assert_int_equal(VERB_ALONE(dp_verb_ckpt_export), DP_EXIT_USAGE);
}

static void a_model_that_is_there_is_written_over_by_force_alone(void **state)
{
    char path[TEMPDIR_FILE_MAX];
    (void)state;
    tempdir_file(&dir, "config.json", path);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(VERB(dp_verb_ckpt_export, dir.path), DP_EXIT_CANTCREATE);
    assert_true(verb_warned("E0407") && verb_warned("config.json") && verb_kit.n_calls == 0);
    verb_answer("{'files': [], 'round': 1}");
    assert_int_equal(VERB(dp_verb_ckpt_export, dir.path, "--force"), 0);
    verb_answer("{'files': [], 'round': 1}"); /* Another file: it is not overwritten. */
    assert_int_equal(VERB(dp_verb_ckpt_export, dir.path, "--gguf", "f32"), 0);
    tempdir_file(&dir, "model.gguf", path);
    file = fopen(path, "we");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(VERB(dp_verb_ckpt_export, dir.path, "--gguf", "f32"), DP_EXIT_CANTCREATE);
}

static void a_path_that_is_too_long_is_refused_and_not_cut(void **state)
{
    char path[2 * DP_CLI_PATH_MAX];
    char *long_name = path;
    (void)state;
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[510] = '\0'; /* The kit cuts words at 511 characters; a relative one grows beyond. */
    assert_int_equal(VERB(dp_verb_ckpt_export, long_name + 1), DP_EXIT_USAGE);
    assert_true(verb_warned("the path is too long") && verb_kit.n_calls == 0);
}

static void without_a_daemon_each_ends_as_unavailable(void **state)
{
    (void)state;
    verb_kit.is_down = true;
    assert_int_equal(VERB_ALONE(dp_verb_ckpt_ls), DP_EXIT_UNAVAILABLE);
    assert_int_equal(VERB_ALONE(dp_verb_ckpt_verify), DP_EXIT_UNAVAILABLE);
    assert_int_equal(VERB(dp_verb_ckpt_export, "/nowhere"), DP_EXIT_UNAVAILABLE);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_folder, close_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(checkpoints_are_rows_with_their_age),
        TEST(a_bad_checkpoint_ends_with_1),
        TEST(an_export_lists_its_files),
        TEST(types_that_no_file_has_ask_nothing),
        TEST(a_model_that_is_there_is_written_over_by_force_alone),
        TEST(a_path_that_is_too_long_is_refused_and_not_cut),
        TEST(without_a_daemon_each_ends_as_unavailable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
