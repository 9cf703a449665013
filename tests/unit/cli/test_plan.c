/* The memory and disk that a run takes of this machine, before it is made. The tool that computes
 * the plan is played. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk.h"
#include "cli/paths.h"
#include "cli/plan.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/cli/tool_kit.h"
#include "tests/unit/cli/verb_kit.h"

static tempdir dir;
static dp_manifest manifest;

static int open_folder(void **state)
{
    tempdir_open(&dir);
    memset(&tool_kit, 0, sizeof tool_kit);
    dp_manifest_default(&manifest);
    return verb_setup(state);
}

static int close_folder(void **state)
{
    (void)state;
    tempdir_close(&dir);
    return 0;
}

static const char *file_of(const char *name, size_t size)
{
    static char path[TEMPDIR_FILE_MAX];
    FILE *file = fopen(tempdir_file(&dir, name, path), "we");
    assert_non_null(file);
    for (size_t i = 0; i < size; i++) {
        fputc('x', file);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

static void data_counts_as_itself_and_a_folder_as_its_shards(void **state)
{
    (void)state;
    assert_int_equal(dp_plan_data_bytes(file_of("book.txt", 70)), 70);
    file_of("tokens-00000.bin", 100);
    file_of("tokens-00001.bin", 30);
    file_of(".bin", 1000); /* The end alone is no name. */
    assert_int_equal(dp_plan_data_bytes(dir.path), 130);
    assert_int_equal(dp_plan_data_bytes("/nowhere"), 0);
}

static void the_tool_is_asked_about_a_backend_and_its_answer_is_given_back(void **state)
{
    (void)state;
    tool_kit.answer = "{'total': 7}";
    json_t *plan = dp_plan_ask(&manifest, "cuda:0", 1000);
    assert_int_equal(dp_json_int(plan, "total", 0), 7);
    json_decref(plan);
    assert_true(tool_got("--plan ") && tool_got("--data 1000 --backend cuda:0 "));
    plan = dp_plan_ask(&manifest, NULL, 0);
    json_decref(plan);
    assert_null(strstr(tool_kit.words, "--backend"));
}

static void a_tool_that_fails_or_talks_nonsense_gives_no_plan(void **state)
{
    (void)state;
    tool_kit.answer = "no JSON";
    assert_null(dp_plan_ask(&manifest, NULL, 0));
    tool_kit.answer = "{}";
    tool_kit.exit = 69;
    assert_null(dp_plan_ask(&manifest, NULL, 0));
    tool_kit.exit = 0;
    tool_kit.status = DP_NOTFOUND;
    assert_null(dp_plan_ask(&manifest, NULL, 0));
}

static const char *plan_text;

static int run_print(dp_cmd *cmd)
{
    json_t *plan = verb_json(plan_text);
    (void)cmd;
    dp_plan_print(plan, false);
    json_decref(plan);
    return 0;
}

static const dp_verb print_plan = {
    .name = "plan", .run = run_print, .arguments = "", .summary = "", .examples = ""};

static void a_plan_is_told_with_its_sum_and_whether_it_fits(void **state)
{
    (void)state;
    plan_text = "{'parameters': 124000000, 'weights': 1048576, 'total': 3145728, 'budget': "
                "1073741824, 'fits': true, 'rows': 4, 'recompute': 'none', 'packs': 'all'}";
    assert_int_equal(VERB_ALONE(print_plan), 0);
    assert_true(verb_said("needs for 124M parameters") && verb_said("1.0 MiB  weights, fp32"));
    assert_true(verb_said("3.0 MiB  total"));
    assert_true(verb_said("4 sequences at a time, recomputes: none, packed weights: all"));
    plan_text = "{'fits': false, 'why': 'it lacks 3 GiB'}";
    assert_int_equal(VERB_ALONE(print_plan), 0);
    assert_true(verb_said("does not fit this machine: it lacks 3 GiB"));
}

static void a_short_text_is_tried_and_its_folder_goes_again(void **state)
{
    char why[DP_PLAN_WHY_MAX] = "";
    (void)state;
    setenv("TMPDIR", dir.path, 1);
    const char *path = file_of("book.txt", 10);
    assert_true(dp_plan_text_holds(&manifest, path, false, why));
    assert_true(tool_kit.n_runs == 1 && tool_got("--prepare ") && tool_got("--manifest "));
    char made[DP_CLI_PATH_MAX]; /* the third word */
    assert_int_equal(sscanf(tool_kit.words, "%*s %*s %511s", made), 1);
    assert_true(strncmp(made, dir.path, strlen(dir.path)) == 0);
    assert_int_not_equal(access(made, F_OK), 0);
    tool_kit.exit = DP_EXIT_DATA;
    tool_kit.says = "the text has 3 tokens";
    assert_false(dp_plan_text_holds(&manifest, path, false, why));
    assert_string_equal(why, "the text has 3 tokens");
    tool_kit.status = DP_NOTFOUND; /* Without the tool there is no reason to refuse it. */
    assert_true(dp_plan_text_holds(&manifest, path, false, why));
    unsetenv("TMPDIR");
}

static void a_long_text_is_believed(void **state)
{
    char why[DP_PLAN_WHY_MAX] = "";
    (void)state;
    manifest.context = 8;
    assert_true(dp_plan_text_holds(&manifest, file_of("book.txt", 20000), false, why));
    assert_int_equal(tool_kit.n_runs, 0);
}

static void the_disk_of_a_folder_that_is_to_be_made_is_its_parents(void **state)
{
    char why[DP_PLAN_WHY_MAX] = "";
    char path[TEMPDIR_FILE_MAX];
    uint64_t there = 0;
    (void)state;
    tempdir_file(&dir, "not/yet/there", path);
    assert_true(dp_disk_free(dir.path, &there));
    assert_true(dp_plan_disk_holds(&manifest, 0, path, why));
    /* It would fit once; but it is there prepared, and in the store. */
    assert_false(dp_plan_disk_holds(&manifest, there / 4 * 3, path, why));
    assert_non_null(strstr(why, dir.path));
    assert_non_null(strstr(why, "data and two states need "));
}

static void the_model_of_weights_is_what_the_tool_says(void **state)
{
    dp_model_config model = {.layers = 99};
    (void)state;
    tool_kit.answer = "name: weights\nmodel:\n  layers: 2\n  width: 64\n  heads: 2\n";
    assert_true(dp_plan_model("/weights", &model));
    assert_true(model.layers == 2 && tool_got("--model /weights "));
    model.layers = 99;
    tool_kit.answer = "no manifest";
    assert_false(dp_plan_model("/weights", &model));
    tool_kit.status = DP_NOTFOUND;
    assert_false(dp_plan_model("/weights", &model));
    assert_int_equal(model.layers, 99); /* Untouched. */
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_folder, close_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(data_counts_as_itself_and_a_folder_as_its_shards),
        TEST(the_tool_is_asked_about_a_backend_and_its_answer_is_given_back),
        TEST(a_tool_that_fails_or_talks_nonsense_gives_no_plan),
        TEST(a_plan_is_told_with_its_sum_and_whether_it_fits),
        TEST(a_short_text_is_tried_and_its_folder_goes_again),
        TEST(a_long_text_is_believed),
        TEST(the_disk_of_a_folder_that_is_to_be_made_is_its_parents),
        TEST(the_model_of_weights_is_what_the_tool_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
