#include "cli/print.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/paths.h"
#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

static void sizes_counts_and_spans_read_well(void **state)
{
    (void)state;
    char text[DP_PRINT_CELL_MAX];
    dp_print_bytes(0, text);
    assert_string_equal(text, "0 B");
    dp_print_bytes(1023, text);
    assert_string_equal(text, "1023 B");
    dp_print_bytes(1536, text);
    assert_string_equal(text, "1.5 KiB");
    dp_print_bytes(UINT64_MAX, text);
    assert_string_equal(text, "16777216 TiB");
    dp_print_count(999, text);
    assert_string_equal(text, "999");
    dp_print_count(12345, text);
    assert_string_equal(text, "12.3k");
    dp_print_count(940800, text);
    assert_string_equal(text, "941k");
    dp_print_span(119, text);
    assert_string_equal(text, "119 s");
    dp_print_span(3600, text);
    assert_string_equal(text, "60 min");
    dp_print_span(7 * 86400, text);
    assert_string_equal(text, "7 d");
    dp_print_span(7 * 86400 - 1, text);
    assert_string_equal(text, "6 d 23 h");
    dp_print_span(UINT64_C(2) * 3600 + 59, text);
    assert_string_equal(text, "2 h");
    dp_print_span(UINT64_MAX, text);
    assert_string_equal(text, "213503982334601 d 7 h");
}

static void lines_and_months_are_said_as_providers_say_them(void **state)
{
    (void)state;
    char text[DP_PRINT_CELL_MAX];
    dp_print_rate(250000, text);
    assert_string_equal(text, "2 Mbit/s");
    dp_print_rate(260000, text);
    assert_string_equal(text, "2.1 Mbit/s");
    dp_print_rate(13000000, text);
    assert_string_equal(text, "104 Mbit/s");
    dp_print_rate(10000, text);
    assert_string_equal(text, "80 kbit/s");
    dp_print_rate(1, text);
    assert_string_equal(text, "0.0 kbit/s");
}

static void a_name_from_a_peer_cannot_steer_the_terminal(void **state)
{
    (void)state;
    char text[] = "a\x1b[2J\nb\x7f\xc3\xbc";
    dp_print_harmless(text);
    assert_string_equal(text, "a?[2J?b?\xc3\xbc");
    /* CSI as C1, an override of the direction and an isolate; the last byte is half a character. */
    char more[] = "\xc2\x9b"
                  "2J\xe2\x80\xae"
                  "b\xe2\x81\xa6\xe2\x80\x94\xc2\xa0\xc2";
    dp_print_harmless(more);
    assert_string_equal(more, "??2J???b???\xe2\x80\x94\xc2\xa0\xc2");
}

static void folders_are_made_and_removed_with_all_below(void **state)
{
    (void)state;
    tempdir dir;
    char top[TEMPDIR_FILE_MAX];
    char deep[DP_CLI_PATH_MAX];
    tempdir_open(&dir);
    tempdir_file(&dir, "a", top);
    snprintf(deep, sizeof deep, "%.300s/b/c", top);
    CHECK_OK(dp_path_make_folders(deep));
    CHECK_OK(dp_path_make_folders(deep));
    snprintf(deep, sizeof deep, "%.300s/b/file", top);
    FILE *file = fopen(deep, "we");
    assert_non_null(file);
    fclose(file);
    CHECK_STATUS(dp_path_make_folders(deep), DP_IO);
    CHECK_OK(dp_path_remove_tree(top));
    CHECK(fopen(deep, "re") == NULL);
    tempdir_close(&dir);
}

static void the_environment_moves_socket_and_directory(void **state)
{
    (void)state;
    char path[DP_CLI_PATH_MAX];
    setenv("DPNODE_SOCKET", "/tmp/x.s", 1);
    setenv("DPNODE_DIR", "/tmp/dir", 1);
    dp_path_socket(path);
    assert_string_equal(path, "/tmp/x.s");
    dp_path_dir(NULL, path);
    assert_string_equal(path, "/tmp/dir");
    dp_path_dir("given", path);
    assert_string_equal(path, "given");
    CHECK_OK(dp_path_absolute(".//given", path));
    CHECK(strstr(path, "/given") != NULL && strstr(path, "./") == NULL);
    CHECK_OK(dp_path_absolute("given", path));
    CHECK(path[0] == '/' && strstr(path, "/given") != NULL);
    unsetenv("DPNODE_SOCKET");
    unsetenv("DPNODE_DIR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_counts_and_spans_read_well),
        cmocka_unit_test(lines_and_months_are_said_as_providers_say_them),
        cmocka_unit_test(a_name_from_a_peer_cannot_steer_the_terminal),
        cmocka_unit_test(folders_are_made_and_removed_with_all_below),
        cmocka_unit_test(the_environment_moves_socket_and_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
