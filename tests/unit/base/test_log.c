#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>

#include "tests/lib/check.h"

/* THREADS_TEST: lines of several threads must not mix. */

static FILE *file;

/* Each test logs into a file of its own. */
static int open_log(void **state)
{
    (void)state;
    file = tmpfile();
    dp_log_init(file, DP_LOG_INFO, "test");
    dp_log_set_json(false);
    return file == NULL;
}

static int close_log(void **state)
{
    (void)state;
    dp_log_init(NULL, DP_LOG_INFO, NULL);
    return fclose(file);
}

/* The text that was logged so far, without the time of day at its start. */
static const char *logged(void)
{
    static char text[64 * 1024];

    rewind(file);
    const size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    const char *const level = strstr(text, "lvl");
    return level == NULL ? text : level;
}

static void a_line_is_level_program_event_and_pairs(void **state)
{
    (void)state;
    dp_log(DP_LOG_INFO, "round.commit", "round=%d late=%s", 812, "none");
    assert_string_equal(logged(), "lvl=info prog=test evt=round.commit round=812 late=none\n");
}

static void the_line_starts_with_the_time_in_utc(void **state)
{
    char line[128] = {0};

    (void)state;
    dp_log(DP_LOG_ERROR, "x", "%s", "");
    rewind(file);
    assert_non_null(fgets(line, sizeof line, file));
    const char *const pattern = "ts=dddd-dd-ddTdd:dd:dd.ddddddZ lvl=error prog=test evt=x\n";
    assert_int_equal(strlen(line), strlen(pattern));
    for (size_t i = 0; i < strlen(pattern); i++) {
        if (pattern[i] == 'd' && i < 30) {
            assert_in_range(line[i], '0', '9');
        } else {
            assert_int_equal(line[i], pattern[i]);
        }
    }
}

static void lower_levels_are_not_written(void **state)
{
    (void)state;
    dp_log(DP_LOG_DEBUG, "noise", "a=%d", 1);
    assert_string_equal(logged(), "");
    dp_log(DP_LOG_WARN, "heard", "a=%d", 1);
    assert_non_null(strstr(logged(), "lvl=warn prog=test evt=heard a=1\n"));
}

static void text_is_quoted_and_cannot_make_a_second_line(void **state)
{
    (void)state;
    dp_log(DP_LOG_INFO, "e", "why=%s", DP_LOG_TEXT("a \"b\" \\ c\nts=fake \x1b[2J \xff\xc3\xa9"));
    assert_string_equal(logged(), "lvl=info prog=test evt=e "
                                  "why=\"a \\\"b\\\" \\\\ c?ts=fake ?[2J ?\xc3\xa9\"\n");
}

static void a_long_text_is_cut_inside_its_quotes(void **state)
{
    char out[DP_LOG_TEXT_MAX];
    char text[3 * DP_LOG_TEXT_MAX];

    (void)state;
    memset(text, '"', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_ptr_equal(dp_log_quote(out, text), out);
    const size_t size = strlen(out);
    assert_in_range(size, DP_LOG_TEXT_MAX - 5, DP_LOG_TEXT_MAX - 1);
    assert_int_equal(out[size - 1], '"');
    assert_int_equal((size - 2) % 2, 0);
}

static void a_line_too_long_is_cut_and_says_so(void **state)
{
    char text[3 * DP_LOG_LINE_MAX];

    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    dp_log(DP_LOG_INFO, "e", "a=%s", text);
    rewind(file);
    const size_t size = fread(text, 1, sizeof text, file);
    assert_in_range(size, DP_LOG_LINE_MAX - 32, DP_LOG_LINE_MAX);
    assert_memory_equal(text + size - 8, "x cut=1\n", 8);
}

static void json_lines_hold_numbers_texts_and_quoted_texts(void **state)
{
    (void)state;
    dp_log_set_json(true);
    dp_log(DP_LOG_INFO, "e", "n=12 m=-0.5 id=007f z=007 q=%s empty= word",
           DP_LOG_TEXT("a \"b\" = c"));
    assert_string_equal(
        logged(),
        "lvl\":\"info\",\"prog\":\"test\",\"evt\":\"e\",\"n\":12,\"m\":-0.5,\"id\":\"007f\","
        "\"z\":\"007\",\"q\":\"a \\\"b\\\" = c\",\"empty\":\"\"}\n");
}

static void json_stays_json_whatever_the_values_hold(void **state)
{
    (void)state;
    dp_log_set_json(true);
    dp_log(DP_LOG_INFO, "e", "%s", "a=\"x\"y\" b=\"\\q\" c=\"open");
    assert_non_null(
        strstr(logged(), "\"evt\":\"e\",\"a\":\"\\\"x\\\"y\\\" b=\\\"\\\\q\\\" c=\\\"open\"}\n"));
}

static void json_too_long_drops_whole_pairs(void **state)
{
    char text[DP_LOG_LINE_MAX];

    (void)state;
    dp_log_set_json(true);
    memset(text, '\\', sizeof text);
    text[1500] = '\0';
    dp_log(DP_LOG_INFO, "e", "a=1 b=%s", text);
    assert_string_equal(logged(),
                        "lvl\":\"info\",\"prog\":\"test\",\"evt\":\"e\",\"a\":1,\"cut\":1}\n");
}

static void *log_many(void *name)
{
    for (unsigned i = 0; i < 50; i++) {
        dp_log(DP_LOG_INFO, "many", "who=%s n=%u end=1", (const char *)name, i);
    }
    return NULL;
}

static void lines_of_several_threads_do_not_mix(void **state)
{
    char names[3][2] = {"a", "b", "c"};
    pthread_t threads[3];
    char line[256];
    unsigned lines = 0;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, log_many, names[i]), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    rewind(file);
    while (fgets(line, sizeof line, file) != NULL) {
        assert_int_equal(strncmp(line, "ts=", 3), 0);
        assert_non_null(strstr(line, " end=1\n"));
        lines++;
    }
    assert_int_equal(lines, 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_is_level_program_event_and_pairs, open_log,
                                        close_log),
        cmocka_unit_test_setup_teardown(the_line_starts_with_the_time_in_utc, open_log, close_log),
        cmocka_unit_test_setup_teardown(lower_levels_are_not_written, open_log, close_log),
        cmocka_unit_test_setup_teardown(text_is_quoted_and_cannot_make_a_second_line, open_log,
                                        close_log),
        cmocka_unit_test_setup_teardown(a_long_text_is_cut_inside_its_quotes, open_log, close_log),
        cmocka_unit_test_setup_teardown(a_line_too_long_is_cut_and_says_so, open_log, close_log),
        cmocka_unit_test_setup_teardown(json_lines_hold_numbers_texts_and_quoted_texts, open_log,
                                        close_log),
        cmocka_unit_test_setup_teardown(json_stays_json_whatever_the_values_hold, open_log,
                                        close_log),
        cmocka_unit_test_setup_teardown(json_too_long_drops_whole_pairs, open_log, close_log),
        cmocka_unit_test_setup_teardown(lines_of_several_threads_do_not_mix, open_log, close_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
