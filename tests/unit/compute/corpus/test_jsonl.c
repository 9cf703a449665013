#include "tests/lib/check.h"

#include <stdlib.h>

#include "compute/corpus/jsonl.h"
#include "compute/machine/files.h"
#include "tests/lib/tempdir.h"

static void check_text(const char *line, const char *text, size_t size)
{
    dp_jsonl jsonl = {0};
    dp_view got = {0};
    CHECK_OK(dp_jsonl_read(&jsonl, dp_view_text(line), "text", &got, NULL));
    CHECK(dp_view_equal(got, dp_view_of(text, size)));
    dp_jsonl_close(&jsonl);
}

static void the_text_of_a_line_is_found(void **state)
{
    (void)state;
    check_text("{\"text\": \"a\\nb \\u00e9\", \"id\": 7}\r\n", "a\nb \xc3\xa9", 6);
    check_text("{\"text\": \"nul \\u0000 inside\"}", "nul \0 inside", 12);
    check_text("{\"text\": \"\"}", "", 0);
    check_text("{\"id\": 123456789012345678901234567890, \"text\": \"a\"}", "a", 1);
    check_text(" \t\r\n", "", 0);
    check_text("", "", 0);
}

static void check_refused(const char *line, const char *words)
{
    dp_jsonl jsonl = {0};
    dp_view text = dp_view_of("x", 1);
    dp_why why = {{0}};
    CHECK_STATUS(dp_jsonl_read(&jsonl, dp_view_text(line), "text", &text, &why), DP_BADMSG);
    CHECK(strstr(why.text, words) != NULL && text.size == 1);
    dp_jsonl_close(&jsonl);
}

static void lines_that_are_no_documents_are_refused(void **state)
{
    (void)state;
    check_refused("{\"text\": \"cut", "not JSON");
    check_refused("{\"text\": \"\xff\"}", "not JSON");
    check_refused("{\"text\": \"\\ud800\"}", "not JSON");
    check_refused("{} {}", "not JSON");
    check_refused("{\"body\": \"x\"}", "field \"text\"");
    check_refused("{\"text\": [\"x\"]}", "field \"text\"");
    check_refused("[\"text\"]", "field \"text\"");
}

static void a_byte_order_mark_is_no_part_of_the_first_line(void **state)
{
    (void)state;
    tempdir dir;
    dp_lines lines;
    dp_view line;
    char path[TEMPDIR_FILE_MAX];
    tempdir_open(&dir);
    CHECK_OK(dp_file_write(dir.path, "a", dp_view_text("\xef\xbb\xbf{}\n\xef\xbb\xbf[]\n"), NULL));
    CHECK_OK(dp_lines_open(&lines, tempdir_file(&dir, "a", path), NULL));
    CHECK_OK(dp_lines_next(&lines, &line, NULL));
    CHECK(dp_view_equal(line, dp_view_text("{}")));
    CHECK_OK(dp_lines_next(&lines, &line, NULL));
    CHECK(line.size == 5);
    CHECK_STATUS(dp_lines_next(&lines, &line, NULL), DP_NOTFOUND);
    dp_lines_close(&lines);
    tempdir_close(&dir);
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    char *const line = test_malloc(DEPTH + 1);
    memset(line, '[', DEPTH);
    line[DEPTH] = '\0';
    check_refused(line, "not JSON");
    test_free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_of_a_line_is_found),
        cmocka_unit_test(lines_that_are_no_documents_are_refused),
        cmocka_unit_test(a_byte_order_mark_is_no_part_of_the_first_line),
        cmocka_unit_test(deep_nesting_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
