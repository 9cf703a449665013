#include "cli/figures/figure_file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/check.h"

static char folder[64];

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/dpnode-figures-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command); /* NOLINT(cert-env33-c): the path is mkdtemp's */
}

static size_t read_file(const char *path, char *out, size_t most)
{
    FILE *const file = fopen(path, "re");
    if (file == NULL) {
        return SIZE_MAX;
    }
    const size_t size = fread(out, 1, most, file);
    CHECK(fclose(file) == 0);
    return size;
}

static void what_is_appended_stands_behind_what_was_there(void **state)
{
    (void)state;
    dp_figure_file file;
    dp_why why;
    char text[64];
    for (int i = 0; i < 2; i++) { /* The second is another process, later. */
        CHECK(dp_figure_file_init(&file, path_of("figures")));
        CHECK_OK(dp_figure_file_append(&file, dp_view_text("one\n"), &why));
        CHECK_OK(dp_figure_file_append(&file, dp_view_text("two\n"), &why));
        dp_figure_file_close(&file);
    }
    assert_int_equal(read_file(file.path, text, sizeof text), 16);
    assert_memory_equal(text, "one\ntwo\none\ntwo\n", 16);
}

/* A limit of the file's size plays the full disk. */
static void a_line_that_does_not_fit_is_taken_back_and_told_once(void **state)
{
    (void)state;
    dp_figure_file file;
    dp_why why;
    char text[64];
    struct rlimit all;
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && getrlimit(RLIMIT_FSIZE, &all) == 0);
    const struct rlimit few = {.rlim_cur = 10, .rlim_max = all.rlim_max};
    CHECK(dp_figure_file_init(&file, path_of("full")));
    CHECK_OK(dp_figure_file_append(&file, dp_view_text("1234567\n"), &why));
    CHECK(setrlimit(RLIMIT_FSIZE, &few) == 0);
    CHECK(dp_figure_file_append(&file, dp_view_text("abcdefg\n"), &why) != DP_OK);
    CHECK(strstr(why.text, "full is not written") != NULL);
    CHECK(dp_figure_file_append(&file, dp_view_text("abcdefg\n"), &why) != DP_OK);
    CHECK(why.text[0] == '\0');
    CHECK(setrlimit(RLIMIT_FSIZE, &all) == 0);
    assert_int_equal(read_file(file.path, text, sizeof text), 8);
    CHECK_OK(dp_figure_file_append(&file, dp_view_text("hijklmn\n"), &why)); /* It goes on. */
    assert_int_equal(read_file(file.path, text, sizeof text), 16);
    assert_memory_equal(text, "1234567\nhijklmn\n", 16);
    dp_figure_file_close(&file);
}

static void a_file_that_cannot_be_made_is_tried_again(void **state)
{
    (void)state;
    dp_figure_file file;
    dp_why why;
    char text[8];
    char later[128];
    CHECK(dp_figure_file_init(&file, path_of("later/figures")));
    CHECK_STATUS(dp_figure_file_append(&file, dp_view_text("1\n"), &why), DP_IO);
    CHECK(strstr(why.text, "No such file") != NULL);
    snprintf(later, sizeof later, "%s", path_of("later"));
    CHECK(mkdir(later, 0700) == 0);
    CHECK_OK(dp_figure_file_append(&file, dp_view_text("2\n"), &why));
    assert_int_equal(read_file(file.path, text, sizeof text), 2);
    dp_figure_file_close(&file);
    CHECK(dp_figure_file_init(&file, "/dev/full"));
    CHECK_STATUS(dp_figure_file_append(&file, dp_view_text("1\n"), &why), DP_NOSPACE);
    dp_figure_file_close(&file);
}

static void a_pipe_without_a_reader_holds_nobody_up(void **state)
{
    (void)state;
    dp_figure_file file;
    dp_why why;
    CHECK(dp_figure_file_init(&file, path_of("pipe")));
    CHECK(mkfifo(file.path, 0600) == 0);
    CHECK_STATUS(dp_figure_file_append(&file, dp_view_text("1\n"), &why), DP_IO);
    dp_figure_file_close(&file);
}

static void a_path_that_is_too_long_is_refused(void **state)
{
    (void)state;
    static char path[2 * DP_CLI_PATH_MAX];
    dp_figure_file file;
    memset(path, 'x', sizeof path - 1);
    CHECK(!dp_figure_file_init(&file, path) && !dp_figure_file_init(&file, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_appended_stands_behind_what_was_there),
        cmocka_unit_test(a_line_that_does_not_fit_is_taken_back_and_told_once),
        cmocka_unit_test(a_file_that_cannot_be_made_is_tried_again),
        cmocka_unit_test(a_pipe_without_a_reader_holds_nobody_up),
        cmocka_unit_test(a_path_that_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
