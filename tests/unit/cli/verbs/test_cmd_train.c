/* train and eval FOLDER: the arguments of the tool, its reports, and its end. */
#include "tests/lib/tempdir.h"
#include "tests/unit/cli/tool_kit.h"
#include "tests/unit/cli/verb_kit.h"

static tempdir dir;
static char yaml[TEMPDIR_FILE_MAX]; /* a manifest that names a text beside it */

static void write_file(const char *name, const char *text, char path[TEMPDIR_FILE_MAX])
{
    FILE *file = fopen(tempdir_file(&dir, name, path), "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int open_folder(void **state)
{
    char text[TEMPDIR_FILE_MAX];
    tempdir_open(&dir);
    write_file("book.txt", "In the beginning", text);
    write_file("run.yaml", "name: book\ntext: book.txt\n", yaml);
    memset(&tool_kit, 0, sizeof tool_kit);
    return verb_setup(state);
}

static int close_folder(void **state)
{
    (void)state;
    tempdir_close(&dir);
    return 0;
}

static void a_run_trains_in_a_folder_of_its_name_with_the_options_passed_on(void **state)
{
    (void)state;
    assert_int_equal(VERB(dp_verb_train, yaml, "--steps", "20", "--backend", "auto"), 0);
    assert_true(strncmp(tool_kit.words, "train book --steps 20 --backend auto --manifest ", 48) ==
                0);
    assert_true(tool_got("/book.txt "));
    assert_null(strstr(tool_kit.words, "--resume"));
    assert_int_equal(VERB(dp_verb_train, yaml, "--out", "there", "--resume"), 0);
    assert_true(tool_got("train there ") && tool_got("--resume "));
    assert_int_equal(VERB(dp_verb_train, "--resume", "--out", "there"), 0);
    assert_string_equal(tool_kit.words, "train there --resume ");
}

/* The file and the folder are dpnode's own business: the tool does not hear of them. */
static void figures_go_to_a_file_and_a_folder(void **state)
{
    char metrics[TEMPDIR_FILE_MAX];
    char events[TEMPDIR_FILE_MAX];
    char text[2048] = "";
    (void)state;
    tempdir_file(&dir, "m.jsonl", metrics);
    tempdir_file(&dir, "events", events);
    tool_kit.answer =
        "{'event':'start','step':0,'target':2}\n"
        "{'event':'step','step':1,'target':2,'outcome':'done','loss':3.5}\n"
        "{'event':'validation','step':1,'loss':4,'perplexity':54.6,'bits_per_byte':2,"
        "'is_best':true,'best':{'step':1,'loss':4}}\n"
        "{'event':'validation','step':2,'loss':5,'is_best':false,'best':{'step':1,'loss':4}}\n"
        "{'event':'end','step':2,'early':true,'best':{'step':1,'loss':4},'model':true}\n";
    assert_int_equal(VERB(dp_verb_train, yaml, "--val-steps", "1", "--patience", "1", "--metrics",
                          metrics, "--tensorboard", events),
                     0);
    assert_true(tool_got("--val-steps 1 ") && tool_got("--patience 1 "));
    assert_null(strstr(tool_kit.words, "m.jsonl"));
    assert_true(verb_said("held out at step 1: loss 4.0000, perplexity 54.60"));
    assert_true(verb_said("the best was 4.0000 at step 1"));
    assert_true(verb_said("ended early: the held-out loss has not fallen since step 1"));
    assert_true(verb_said("dpnode ckpt export DIR --from book --best"));
    FILE *const file = fopen(metrics, "re");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    assert_int_equal(fclose(file), 0);
    assert_non_null(strstr(text, "{\"event\":\"step\",\"step\":1,"));
    assert_non_null(strstr(text, "\"time_ms\":"));
    assert_null(strstr(text, "\"end\""));
    assert_int_equal(access(events, R_OK), 0);
}

static void figures_that_cannot_be_written_are_told_once_and_training_goes_on(void **state)
{
    (void)state;
    tool_kit.answer = "{'event':'start','step':0,'target':2}\n"
                      "{'event':'step','step':1,'target':2,'loss':3.5}\n"
                      "{'event':'step','step':2,'target':2,'loss':3.5}\n";
    assert_int_equal(
        VERB(dp_verb_train, yaml, "--metrics", "/dev/full", "--tensorboard", "/dev/null/x"), 0);
    const char *const first = strstr(verb_kit.err, "/dev/full is not written: No space left");
    assert_non_null(first);
    assert_null(strstr(first + 1, "/dev/full"));
    assert_non_null(strstr(verb_kit.err, "; training goes on"));
    assert_non_null(strstr(verb_kit.err, "the folder /dev/null/x cannot be made"));
    assert_int_equal(VERB(dp_verb_train, yaml, "--metrics", ""), DP_EXIT_USAGE);
}

static void without_a_manifest_or_with_two_nothing_is_run(void **state)
{
    (void)state;
    assert_int_equal(VERB_ALONE(dp_verb_train), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_train, yaml, "--demo", "kjv"), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_train, "--resume"), DP_EXIT_USAGE); /* Where? */
    assert_true(verb_warned("--out is missing or cannot be used"));
    assert_int_equal(VERB(dp_verb_train, yaml, "--out", ""), DP_EXIT_USAGE);
    assert_true(VERB(dp_verb_train, "/nowhere.yaml") != 0);
    assert_int_equal(tool_kit.n_runs, 0);
}

static void a_model_of_a_script_is_not_trained_here(void **state)
{
    char path[TEMPDIR_FILE_MAX];
    (void)state;
    write_file("any.yaml",
               "model: {arch: external}\ndata: {samples: 50}\nmembers: {trust: members}\n", path);
    tool_kit.answer = "{'elements': 12}";
    assert_int_equal(VERB(dp_verb_train, path, "--from", "/m"), DP_EXIT_USAGE);
    assert_true(verb_warned("E0515") && tool_got("--tensors /m "));
}

static void a_name_that_would_leave_the_folder_needs_an_out(void **state)
{
    static const char *const names[] = {".hidden", "../book"};
    char path[TEMPDIR_FILE_MAX];
    char text[128];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(text, sizeof text, "name: \"%s\"\ntext: book.txt\n", names[i]);
        write_file("odd.yaml", text, path);
        assert_true(VERB(dp_verb_train, path) != 0);
        assert_int_equal(tool_kit.n_runs, 0);
    }
}

static void what_the_tool_tells_is_told_for_a_person(void **state)
{
    (void)state;
    tool_kit.answer =
        "{'event': 'data', 'tokens': 5000}\n"
        "{'event': 'note', 'why': 'no card is here'}\n"
        "{'event': 'start', 'step': 0, 'target': 20, 'passes': 1.25, 'threads': 2, 'rows': 8}\n"
        "not a line of JSON\n"
        "{'event': 'step', 'step': 20, 'target': 20, 'loss': 2.5, 'lr': 0.003, "
        "'tokens_per_second': 1500, 'skipped': 1, 'eta_s': 0}\n"
        "{'event': 'end', 'step': 20, 'skipped': 1, 'tokens_per_second': 1500, 'hash': "
        "'0123456789abcdef01', 'model': true}\n";
    assert_int_equal(VERB(dp_verb_train, yaml, "--out", "there"), 0);
    assert_true(verb_said("text prepared: 5000 tokens") && verb_warned("note: no card is here"));
    assert_true(verb_said(
        "there: from step 0 to 20 (1.25 passes of the data), 2 threads, 8 sequences at a time"));
    assert_true(verb_said("step 20/20  loss 2.5000  lr 0.003  1.50k tokens/s  skipped 1"));
    assert_true(verb_said("20 steps done, 1 of them skipped") &&
                verb_said("there/model opens in transformers"));
    assert_true(verb_said("state 0123456789abcdef; measure it: dpnode eval there"));
}

static void steps_come_seldom_but_a_dropped_one_is_always_told(void **state)
{
    (void)state;
    tool_kit.answer = "{'event': 'step', 'step': 1, 'target': 20, 'loss': 2}\n"
                      "{'event': 'step', 'step': 2, 'target': 20, 'loss': 2}\n"
                      "{'event': 'step', 'step': 3, 'target': 20, 'outcome': 'spike'}\n";
    assert_int_equal(VERB(dp_verb_train, yaml), 0);
    assert_true(verb_said("step 1/20") && verb_said("step 3/20") && verb_said("(dropped: spike)"));
    assert_null(strstr(verb_kit.out, "step 2/20")); /* Within ten seconds of the first. */
}

static void a_run_that_was_stopped_says_how_it_goes_on(void **state)
{
    (void)state;
    tool_kit.answer = "{'event': 'end', 'step': 7, 'stopped': true}\n";
    assert_int_equal(VERB(dp_verb_train, yaml, "--out", "there"), DP_EXIT_INTERRUPTED);
    assert_true(
        verb_said("stopped and saved at step 7; to continue: dpnode train --resume --out there"));
}

static void with_json_each_event_is_a_line(void **state)
{
    (void)state;
    tool_kit.answer = "{'event': 'data', 'tokens': 5}\n{'event': 'end', 'step': 1}";
    assert_int_equal(VERB(dp_verb_train, yaml, "--json"), 0);
    assert_string_equal(verb_kit.out,
                        "{\"event\":\"data\",\"tokens\":5}\n{\"event\":\"end\",\"step\":1}\n");
}

static void each_end_of_the_tool_has_a_code_and_a_reason(void **state)
{
    static const struct {
        int exit;
        const char *code;
    } rows[] = {{DP_EXIT_DATA, "E0513"},
                {DP_EXIT_UNAVAILABLE, "E0510"},
                {DP_EXIT_CANTCREATE, "E0511"},
                {DP_EXIT_TEMPORARY, "E0512"},
                {DP_EXIT_CONFIG, "E0514"}};
    (void)state;
    tool_kit.says = "the tool's own words";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tool_kit.exit = rows[i].exit;
        assert_int_equal(VERB(dp_verb_train, yaml), rows[i].exit);
        assert_true(verb_warned(rows[i].code) && verb_warned("the tool's own words"));
    }
    tool_kit.status = DP_NOTFOUND;
    assert_true(VERB(dp_verb_train, yaml) != 0);
    assert_true(verb_warned("dpnode-worker"));
}

static void a_folder_is_measured_by_the_tool(void **state)
{
    (void)state;
    tool_kit.answer = "{'step': 20, 'loss': 2.5, 'perplexity': 12.18, 'bits_per_byte': 1.25, "
                      "'tokens': 4999}";
    assert_int_equal(VERB(dp_verb_eval, "there", "--data", "other.txt", "-n", "50"), 0);
    assert_string_equal(tool_kit.words, "eval there --data other.txt --tokens 50 ");
    assert_true(verb_said("step 20: loss 2.5000 per token, perplexity 12.18, 1.2500 bits per byte,"
                          " on 4999 tokens\n"));
    tool_kit.answer = "no JSON";
    assert_true(VERB(dp_verb_eval, "there") != 0);
    tool_kit.exit = DP_EXIT_DATA;
    assert_int_equal(VERB(dp_verb_eval, "there"), DP_EXIT_DATA);
    assert_true(verb_warned("E0513") && verb_kit.n_calls == 0); /* No daemon is asked. */
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_folder, close_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_trains_in_a_folder_of_its_name_with_the_options_passed_on),
        TEST(figures_go_to_a_file_and_a_folder),
        TEST(figures_that_cannot_be_written_are_told_once_and_training_goes_on),
        TEST(without_a_manifest_or_with_two_nothing_is_run),
        TEST(a_model_of_a_script_is_not_trained_here),
        TEST(a_name_that_would_leave_the_folder_needs_an_out),
        TEST(what_the_tool_tells_is_told_for_a_person),
        TEST(steps_come_seldom_but_a_dropped_one_is_always_told),
        TEST(a_run_that_was_stopped_says_how_it_goes_on),
        TEST(with_json_each_event_is_a_line),
        TEST(each_end_of_the_tool_has_a_code_and_a_reason),
        TEST(a_folder_is_measured_by_the_tool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
