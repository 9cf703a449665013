/* run create and run validate: from a manifest file to one call of the daemon. Tool and start are
 * played. */
#include "cli/verbs/cmd_run.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/cli/start_kit.h"
#include "tests/unit/cli/tool_kit.h"

static tempdir dir;
static char yaml[TEMPDIR_FILE_MAX]; /* a manifest that names a text beside it */
static char text[TEMPDIR_FILE_MAX];

static void write_file(const char *name, const char *bytes, char path[TEMPDIR_FILE_MAX])
{
    FILE *file = fopen(tempdir_file(&dir, name, path), "we");
    assert_non_null(file);
    fputs(bytes, file);
    assert_int_equal(fclose(file), 0);
}

static int open_folder(void **state)
{
    tempdir_open(&dir);
    write_file("book.txt", "In the beginning", text);
    write_file("run.yaml", "name: book\ntext: book.txt\n", yaml);
    unsetenv("DPNODE_BACKEND");
    unsetenv("DPNODE_OBSERVER");
    memset(&tool_kit, 0, sizeof tool_kit);
    tool_kit.answer = "{'fits': true}";
    return start_setup(state);
}

static int close_folder(void **state)
{
    (void)state;
    tempdir_close(&dir);
    return 0;
}

static const char *param(const char *key)
{
    return dp_json_text(verb_kit.calls[0].params, key, "");
}

static void a_manifest_goes_to_the_daemon_with_the_text_that_it_names(void **state)
{
    (void)state;
    verb_answer("{'run': 'book', 'id': '0123456789abcdef0123', 'elements': 124000000}");
    assert_int_equal(VERB(dp_verb_run_create, yaml, "--name", "ann"), 0);
    assert_string_equal(verb_kit.calls[0].method, "run.create");
    assert_string_equal(param("text_path"), text);
    assert_string_equal(param("name"), "ann");
    assert_string_equal(param("from_path"), "");
    assert_true(strlen(param("manifest")) > 100); /* Its canonical bytes. */
    assert_true(verb_said("run book created (id 0123456789abcdef, 124M parameters)"));
    assert_int_equal(tool_kit.n_runs, 0); /* A daemon that runs looks itself. */
    verb_answer("{'run': 'book'}");
    assert_int_equal(VERB(dp_verb_run_create, yaml, "--text", yaml, "--json"), 0);
    assert_string_equal(param("text_path"), yaml);
    assert_true(verb_said("\"run\":\"book\""));
}

static void no_daemon_is_started_for_what_this_machine_cannot_do(void **state)
{
    (void)state;
    start_kit.starts = true;
    tool_kit.answer = "{'fits': false, 'why': 'it lacks 3 GiB'}";
    assert_int_equal(VERB(dp_verb_run_create, yaml), DP_EXIT_UNAVAILABLE);
    assert_true(verb_warned("E0311") && verb_warned("it lacks 3 GiB"));
    assert_true(tool_got("--plan ") && tool_got("--backend auto "));
    assert_true(start_kit.n == 0 && verb_kit.n_calls == 0);
    setenv("DPNODE_OBSERVER", "yes", 1); /* It never trains: any model fits. */
    setenv("DPNODE_BACKEND", "cpu", 1);
    verb_answer("{'run': 'book'}");
    assert_int_equal(VERB(dp_verb_run_create, yaml), 0);
    assert_int_equal(start_kit.n, 1);
}

static void a_daemon_started_for_a_run_that_fails_is_ended_again(void **state)
{
    (void)state;
    start_kit.starts = true;
    verb_refuse(DP_EXIT_DATA, "E0304", "the text cannot be used");
    assert_int_equal(VERB(dp_verb_run_create, yaml), DP_EXIT_DATA);
    assert_true(start_kit.n_undone == 1 && verb_warned("E0304"));
    start_kit.starts = false;
    verb_refuse(DP_EXIT_DATA, "E0304", "the text cannot be used");
    assert_int_equal(VERB(dp_verb_run_create, yaml), DP_EXIT_DATA);
    assert_int_equal(start_kit.n_undone, 1);
    start_kit.fails = DP_EXIT_UNAVAILABLE;
    assert_int_equal(VERB(dp_verb_run_create, yaml), DP_EXIT_UNAVAILABLE);
    assert_true(verb_warned("E0102"));
}

static void weights_to_start_from_bring_their_model(void **state)
{
    (void)state;
    tool_kit.answer = "model:\n  layers: 2\n  width: 64\n  heads: 2\nname: weights\n";
    verb_answer("{'run': 'book'}");
    assert_int_equal(VERB(dp_verb_run_create, yaml, "--from", "/weights"), 0);
    assert_string_equal(param("from_path"), "/weights");
    assert_true(tool_got("--model /weights "));
}

static void manifests_and_texts_that_cannot_be_read_are_named(void **state)
{
    char path[TEMPDIR_FILE_MAX];
    (void)state;
    assert_int_equal(VERB_ALONE(dp_verb_run_create), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_run_create, yaml, "--demo", "kjv"), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_run_create, "--demo", "bach"), DP_EXIT_USAGE);
    assert_true(verb_warned("E0307"));
    assert_int_equal(VERB(dp_verb_run_create, "/nowhere.yaml"), DP_EXIT_NOINPUT);
    assert_true(verb_warned("E0306") && verb_warned("/nowhere.yaml"));
    assert_int_equal(VERB(dp_verb_run_create, dir.path), DP_EXIT_NOINPUT);
    assert_true(verb_warned("it is not a file"));
    write_file("bad.yaml", "train:\n  lr: fast\n", path);
    assert_int_equal(VERB(dp_verb_run_create, path), DP_EXIT_DATA);
    assert_true(verb_warned("E0301") && verb_warned("bad.yaml:2"));
    write_file("bare.yaml", "name: book\n", path);
    assert_int_equal(VERB(dp_verb_run_create, path), DP_EXIT_USAGE);
    assert_true(verb_warned("E0308"));
    assert_int_equal(VERB(dp_verb_run_create, path, "--text", "/nowhere.txt"), DP_EXIT_NOINPUT);
    assert_true(verb_warned("E0309") && verb_warned("/nowhere.txt"));
    assert_int_equal(verb_kit.n_calls, 0);
}

static void a_good_manifest_is_told_with_its_plan(void **state)
{
    (void)state;
    tool_kit.answer = "{'fits': true, 'parameters': 1000}";
    assert_int_equal(VERB(dp_verb_run_validate, yaml), 0);
    assert_true(verb_said("run.yaml is valid: a manifest of run book"));
    assert_true(verb_said("1 of 32 to 1 of 128 elements, as the lines permit"));
    assert_true(verb_said("needs for 1.00k parameters"));
    assert_int_equal(VERB(dp_verb_run_validate, yaml, "--json"), 0);
    assert_true(verb_said("\"valid\":true") && verb_said("\"plan\":{"));
    tool_kit.status = DP_NOTFOUND; /* Without the tool there is no reason to refuse it. */
    assert_int_equal(VERB(dp_verb_run_validate, yaml), 0);
    assert_true(verb_said("The memory for training is not known"));
}

static void a_manifest_that_cannot_run_here_ends_with_1(void **state)
{
    (void)state;
    tool_kit.answer = "{'fits': false, 'why': 'it lacks 3 GiB'}";
    assert_int_equal(VERB(dp_verb_run_validate, yaml), DP_EXIT_NEGATIVE);
    assert_true(verb_said("does not fit this machine: it lacks 3 GiB"));
    assert_int_equal(VERB(dp_verb_run_validate, yaml, "--json"), DP_EXIT_NEGATIVE);
    assert_true(verb_said("\"valid\":false"));
    tool_kit.exit = DP_EXIT_DATA; /* Of the text, as of the plan. */
    tool_kit.says = "the text has 3 tokens";
    assert_int_equal(VERB(dp_verb_run_validate, yaml), DP_EXIT_NEGATIVE);
    assert_true(verb_said("the text: the text has 3 tokens"));
    assert_int_equal(VERB_ALONE(dp_verb_run_validate), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_run_validate, "/nowhere.yaml"), DP_EXIT_NOINPUT);
}

static void every_key_is_listed_with_its_bounds(void **state)
{
    size_t count = 0;
    const dp_manifest_row *rows = dp_manifest_rows(&count);
    (void)state;
    assert_int_equal(VERB(dp_verb_run_validate, "--keys"), 0);
    for (size_t i = 0; i < count; i++) {
        assert_true(verb_said(rows[i].key));
    }
    assert_true(verb_said("model.preset sets") && verb_said("round.mode sets"));
    assert_int_equal(VERB(dp_verb_run_validate, "--keys", "--json"), 0);
    json_t *all = json_loads(verb_kit.out, 0, NULL);
    assert_non_null(all);
    assert_int_equal(json_array_size(json_object_get(all, "keys")), count);
    assert_true(json_array_size(json_object_get(all, "modes")) > 0);
    json_decref(all);
}

static void a_text_lies_beside_its_manifest_unless_its_path_is_whole(void **state)
{
    static dp_manifest_file file;
    char path[DP_CLI_PATH_MAX];
    (void)state;
    snprintf(file.text_path, sizeof file.text_path, "book.txt");
    dp_run_text_path("runs/book.yaml", &file, path);
    assert_string_equal(path, "runs/book.txt");
    dp_run_text_path("book.yaml", &file, path);
    assert_string_equal(path, "book.txt");
    snprintf(file.text_path, sizeof file.text_path, "/books/book.txt");
    dp_run_text_path("runs/book.yaml", &file, path);
    assert_string_equal(path, "/books/book.txt");
    file.text_path[0] = '\0';
    dp_run_text_path("runs/book.yaml", &file, path);
    assert_string_equal(path, "");
}

static void any_model_begins_from_its_file_and_needs_no_text(void **state)
{
    static const char any[] =
        "model: {arch: external}\ndata: {samples: 50}\nmembers: {trust: members}\n";
    char path[TEMPDIR_FILE_MAX];
    char with_text[TEMPDIR_FILE_MAX];
    char words[200];
    (void)state;
    write_file("any.yaml", any, path);
    snprintf(words, sizeof words, "%stext: book.txt\n", any);
    write_file("with_text.yaml", words, with_text);
    assert_int_equal(VERB(dp_verb_run_create, path), DP_EXIT_USAGE);
    assert_true(verb_warned("E0314") && verb_warned("--from model.safetensors"));
    assert_int_equal(VERB(dp_verb_run_create, path, "--from", "/m", "--text", text), DP_EXIT_USAGE);
    assert_true(verb_warned("# without --text"));
    assert_int_equal(VERB(dp_verb_run_create, with_text, "--from", "/m"), DP_EXIT_USAGE);
    assert_true(verb_warned("without the line text:"));
    tool_kit.exit = DP_EXIT_DATA;
    tool_kit.says = "/m: tensor w has no elements";
    assert_int_equal(VERB(dp_verb_run_create, path, "--from", "/m"), DP_EXIT_DATA);
    assert_true(verb_warned("E0313") && verb_warned("tensor w has no elements"));
    assert_int_equal(VERB(dp_verb_run_validate, path, "--from", "/m"), DP_EXIT_DATA);
    assert_int_equal(verb_kit.n_calls, 0);
    tool_kit.exit = 0;
    tool_kit.says = NULL;
    tool_kit.answer = "{'tensors': 2, 'elements': 12, 'table_bytes': 40}";
    verb_answer("{'run': 'any'}");
    assert_int_equal(VERB(dp_verb_run_create, path, "--from", "/m"), 0);
    assert_true(tool_got("--tensors /m "));
    assert_string_equal(param("from_path"), "/m");
    assert_string_equal(param("text_path"), "");
}

static void a_manifest_may_name_its_weights_and_from_wins_over_it(void **state)
{
    char path[TEMPDIR_FILE_MAX];
    char weights[TEMPDIR_FILE_MAX];
    char words[2 * TEMPDIR_FILE_MAX];
    (void)state;
    write_file("any.yaml",
               "model: {arch: external}\nfrom: m.safetensors\ndata: {samples: 50}\n"
               "members: {trust: members}\n",
               path);
    tempdir_file(&dir, "m.safetensors", weights);
    tool_kit.answer = "{'tensors': 2, 'elements': 12, 'table_bytes': 40}";
    verb_answer("{'run': 'any'}");
    assert_int_equal(VERB(dp_verb_run_create, path), 0);
    assert_string_equal(param("from_path"), weights);
    snprintf(words, sizeof words, "--tensors %s ", weights);
    assert_true(tool_got(words));
    verb_answer("{'run': 'any'}");
    assert_int_equal(VERB(dp_verb_run_create, path, "--from", "/other"), 0);
    assert_string_equal(param("from_path"), "/other");
    tool_kit.answer =
        "{'fits': true, 'tensors': 2, 'parameters': 12, 'elements': 12, 'anchors': 240}";
    assert_int_equal(VERB(dp_verb_run_validate, path), 0);
    assert_true(verb_said("for 12 parameters"));
}

static void
model_keys_that_are_not_given_are_those_of_the_weights_that_a_manifest_names(void **state)
{
    static dp_manifest_file file;
    dp_control_error error;
    char path[TEMPDIR_FILE_MAX];
    (void)state;
    /* By itself 3 heads do not divide the default width. */
    write_file("own.yaml", "text: book.txt\nfrom: ./gpt\nmodel: {heads: 3}\n", path);
    tool_kit.answer = "name: weights\nmodel:\n  layers: 2\n  width: 96\n  heads: 4\n";
    const int status = dp_run_manifest_read(path, NULL, &file, &error);
    if (status != 0) {
        print_error("%s\n", error.why);
    }
    assert_int_equal(status, 0);
    assert_int_equal(file.manifest.width, 96);
    assert_int_equal(file.manifest.heads, 3);
    tool_kit.exit = 65; /* Nobody knows these weights: the keys stand alone. */
    assert_int_equal(dp_run_manifest_read(path, NULL, &file, &error), DP_EXIT_DATA);
    assert_string_equal(error.code, "E0301");
}

static void any_model_is_validated_with_and_without_its_file(void **state)
{
    char path[TEMPDIR_FILE_MAX];
    (void)state;
    write_file("any.yaml",
               "model: {arch: external}\ndata: {samples: 50}\nmembers: {trust: members}\n", path);
    assert_int_equal(VERB(dp_verb_run_validate, path), 0);
    assert_true(verb_said("Memory and disk follow from the model"));
    assert_int_equal(tool_kit.n_runs, 0);
    tool_kit.answer = "{'fits': true, 'parameters': 12, 'elements': 12, 'anchors': 240}";
    assert_int_equal(VERB(dp_verb_run_validate, path, "--from", "/m"), 0);
    assert_true(verb_said("without the script, for 12 parameters") && verb_said("240 B"));
    assert_true(verb_said("the script that trains the model needs more on top"));
    assert_null(strstr(verb_kit.out, "activations"));
    assert_int_equal(VERB(dp_verb_run_validate, yaml, "--from", "/m"), DP_EXIT_USAGE);
    assert_true(verb_warned("--from is for model.arch external"));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_folder, close_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_manifest_goes_to_the_daemon_with_the_text_that_it_names),
        TEST(no_daemon_is_started_for_what_this_machine_cannot_do),
        TEST(a_daemon_started_for_a_run_that_fails_is_ended_again),
        TEST(weights_to_start_from_bring_their_model),
        TEST(manifests_and_texts_that_cannot_be_read_are_named),
        TEST(a_good_manifest_is_told_with_its_plan),
        TEST(a_manifest_that_cannot_run_here_ends_with_1),
        TEST(every_key_is_listed_with_its_bounds),
        TEST(a_text_lies_beside_its_manifest_unless_its_path_is_whole),
        TEST(any_model_begins_from_its_file_and_needs_no_text),
        TEST(a_manifest_may_name_its_weights_and_from_wins_over_it),
        TEST(model_keys_that_are_not_given_are_those_of_the_weights_that_a_manifest_names),
        TEST(any_model_is_validated_with_and_without_its_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
