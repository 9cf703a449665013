/* Real child processes: shell scripts in a folder of the test stand in for dpnode-worker. */
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/host/tool.h"
#include "tests/unit/daemon/house.h"

struct bench {
    struct house house;
    unsigned n_done;
    int exit;
    char output[DP_TOOL_OUTPUT_MAX];
};

static void on_done(void *context, int exit, const char *output)
{
    struct bench *bench = context;
    bench->n_done++;
    bench->exit = exit;
    snprintf(bench->output, sizeof bench->output, "%s", output);
}

static bool is_done(void *context)
{
    return ((struct bench *)context)->n_done > 0;
}

static void bench_open(struct bench *bench, const char *script)
{
    memset(bench, 0, sizeof *bench);
    house_open(&bench->house);
    tempdir_file(&bench->house.shelf.dir, "worker", bench->house.config.worker);
    if (script != NULL) {
        FILE *file = fopen(bench->house.config.worker, "w");
        assert_non_null(file);
        fprintf(file, "#!/bin/sh\n%s\n", script);
        fclose(file);
        assert_int_equal(chmod(bench->house.config.worker, 0700), 0);
    }
}

static void run_tool(struct bench *bench, const char *const *arguments)
{
    CHECK_OK(dp_tool_run(&bench->house.daemon, bench->house.daemon.config->worker, arguments,
                         on_done, bench));
    turn_until(&bench->house.loop, is_done, bench);
    assert_int_equal(bench->n_done, 1);
}

static void the_output_of_a_tool_on_both_streams_is_reported(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, "echo out $1 \"$2\"; echo err >&2");
    run_tool(&bench, (const char *[]){"--prepare", "two words", NULL});
    CHECK(bench.exit == 0);
    assert_string_equal(bench.output, "out --prepare two words\nerr");
    house_close(&bench.house);
}

static void a_tool_that_fails_or_dies_is_not_ok(void **state)
{
    static const char *const scripts[] = {"echo why; exit 3", "echo why; kill -9 $$"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct bench bench;
        bench_open(&bench, scripts[i]);
        run_tool(&bench, (const char *[]){NULL});
        CHECK(bench.exit != 0);
        assert_string_equal(bench.output, "why");
        house_close(&bench.house);
    }
}

static void a_missing_program_is_told_like_a_failure(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, NULL);
    run_tool(&bench, (const char *[]){"x", NULL});
    CHECK(bench.exit != 0 && strstr(bench.output, "worker") != NULL);
    house_close(&bench.house);
}

static void a_tool_that_prints_without_end_is_cut_in_what_is_kept(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, "head -c 300000 /dev/zero | tr '\\0' a");
    run_tool(&bench, (const char *[]){NULL});
    CHECK(bench.exit == 0);
    assert_int_equal(strlen(bench.output), DP_TOOL_OUTPUT_MAX - 1);
    house_close(&bench.house);
}

static void arguments_have_limits(void **state)
{
    struct bench bench;
    char text[700];
    const char *many[DP_TOOL_ARGUMENTS_MAX + 2] = {NULL};
    (void)state;
    bench_open(&bench, "exit 0");
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK_STATUS(
        dp_tool_run(&bench.house.daemon, "false", (const char *[]){text, NULL}, on_done, &bench),
        DP_TOOBIG);
    for (int i = 0; i <= DP_TOOL_ARGUMENTS_MAX; i++) {
        many[i] = "x";
    }
    CHECK_STATUS(dp_tool_run(&bench.house.daemon, "false", many, on_done, &bench), DP_TOOBIG);
    assert_int_equal(bench.n_done, 0);
    many[DP_TOOL_ARGUMENTS_MAX] = NULL;
    run_tool(&bench, many);
    CHECK(bench.exit == 0);
    house_close(&bench.house);
}

static void a_folder_is_made_and_removed_with_its_files(void **state)
{
    struct bench bench;
    char path[DP_CONFIG_PATH_MAX];
    char file[DP_CONFIG_PATH_MAX + 8];
    struct stat about;
    (void)state;
    bench_open(&bench, NULL);
    CHECK_OK(dp_tool_folder(&bench.house.daemon, path));
    CHECK(stat(path, &about) == 0 && (about.st_mode & 0777) == 0700);
    snprintf(file, sizeof file, "%s/file", path);
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    fclose(out);
    dp_tool_folder_remove(path);
    CHECK(stat(path, &about) != 0);
    dp_tool_folder_remove(path);
    memset(bench.house.config.dir, 'a', sizeof bench.house.config.dir - 1);
    CHECK_STATUS(dp_tool_folder(&bench.house.daemon, path), DP_IO);
    house_close(&bench.house);
}

static void put_folder(const struct bench *bench, const char *name)
{
    char path[DP_CONFIG_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", bench->house.config.dir, name);
    assert_int_equal(mkdir(path, 0700), 0);
    CHECK_OK(dp_tool_file(path, "file", dp_view_text("content")));
}

static bool has_file(const struct bench *bench, const char *name)
{
    char path[DP_CONFIG_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s/file", bench->house.config.dir, name);
    return access(path, F_OK) == 0;
}

static void folders_of_an_earlier_life_are_removed_and_no_others(void **state)
{
    static const char *const others[] = {"work", "work-abc", "work-abcdefg", "other-abcde"};
    struct bench bench;
    char path[DP_CONFIG_PATH_MAX];
    char link[DP_CONFIG_PATH_MAX + 32];
    (void)state;
    bench_open(&bench, NULL);
    CHECK_OK(dp_tool_folder(&bench.house.daemon, path));
    CHECK_OK(dp_tool_file(path, "file", dp_view_text("content")));
    put_folder(&bench, "work-abcdef");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        put_folder(&bench, others[i]);
    }
    snprintf(link, sizeof link, "%s/work-linked", bench.house.config.dir);
    assert_int_equal(symlink("other-abcde", link), 0);
    dp_tool_folders_remove(bench.house.config.dir);
    CHECK(access(path, F_OK) != 0 && !has_file(&bench, "work-abcdef"));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        CHECK(has_file(&bench, others[i]));
    }
    dp_tool_folders_remove("/nowhere");
    house_close(&bench.house);
}

static void check_sentence(const char *line, const char *wanted)
{
    char got[128];
    dp_tool_sentence(line, got, sizeof got);
    assert_string_equal(got, wanted);
}

static void the_result_of_the_tool_is_a_sentence(void **state)
{
    (void)state;
    check_sentence("{\"tokenizer_bytes\": 70210, \"tokens\": 1519708, \"data_bytes\": 3039448, "
                   "\"text_bytes\": 4404412, "
                   "\"vocab\": 1024}\n",
                   "1,519,708 tokens from 4,404,412 bytes of text");
    check_sentence("a warning\n{\"tokens\": 999, \"text_bytes\": 1000}",
                   "999 tokens from 1,000 bytes of text");
    check_sentence("{\"tensors\": 4, \"elements\": 1324, \"table_bytes\": 98}",
                   "1,324 numbers in 4 tensors");
    check_sentence("{\"tokens\": 0, \"text_bytes\": 18446744073709551615}",
                   "0 tokens from 18,446,744,073,709,551,615 bytes of text");
}

static void another_line_is_not_shown_raw(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "{",
        "{\"tokens\": 5}",
        "{\"tokens\": , \"text_bytes\": 1}",
        "{\"tokens\": -5, \"text_bytes\": 1}",
        "{\"tokens\": 18446744073709551616, \"text_bytes\": 1}",
        "{\"text_bytes\": 1, \"tokens\": ",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        check_sentence(lines[i], "the text is ready");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_output_of_a_tool_on_both_streams_is_reported),
        cmocka_unit_test(a_tool_that_fails_or_dies_is_not_ok),
        cmocka_unit_test(a_missing_program_is_told_like_a_failure),
        cmocka_unit_test(a_tool_that_prints_without_end_is_cut_in_what_is_kept),
        cmocka_unit_test(arguments_have_limits),
        cmocka_unit_test(a_folder_is_made_and_removed_with_its_files),
        cmocka_unit_test(folders_of_an_earlier_life_are_removed_and_no_others),
        cmocka_unit_test(the_result_of_the_tool_is_a_sentence),
        cmocka_unit_test(another_line_is_not_shown_raw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
