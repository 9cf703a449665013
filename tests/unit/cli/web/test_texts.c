/* Texts of checkpoints; dpnode is played by a script. */
#include "cli/web/texts.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

static tempdir dir;
static dp_texts texts;

static void open_texts(const char *script)
{
    char path[TEMPDIR_FILE_MAX];
    tempdir_open(&dir);
    FILE *const file = fopen(tempdir_file(&dir, "dpnode", path), "we");
    CHECK(file != NULL && fputs(script, file) >= 0 && fclose(file) == 0 && chmod(path, 0700) == 0);
    CHECK_OK(dp_texts_open(&texts, "/s", "In the"));
    snprintf(texts.program, sizeof texts.program, "%s", path);
}

static void close_texts(void)
{
    dp_texts_close(&texts);
    tempdir_close(&dir);
}

/* A look with a checkpoint of this round; below 0: none. */
static const json_t *look(long long round, uint64_t now_ms)
{
    json_t *const status =
        round < 0 ? json_pack("{s:{}}", "run")
                  : json_pack("{s:{s:I}}", "run", "checkpoint_round", (json_int_t)round);
    const json_t *const text = dp_texts_look(&texts, status, now_ms, 1700);
    json_decref(status);
    return text;
}

/* Looks until the process has ended. */
static const json_t *wait_for_text(long long round, uint64_t now_ms)
{
    while (texts.pid > 0) {
        struct pollfd wanted = {.fd = texts.fd, .events = POLLIN};
        CHECK(poll(&wanted, 1, 60000) == 1);
        const json_t *const text = look(round, now_ms);
        if (text != NULL) {
            return text;
        }
    }
    return NULL;
}

static void each_checkpoint_has_its_text_once(void **state)
{
    (void)state;
    open_texts("#!/bin/sh\n"
               "test \"$1 $2 $3 $5 $6 $7\" = \"sample --json --seed=1 --prompt In the "
               "--socket=/s\""
               " || exit 1\n"
               "echo '{\"text\": \"In the beginning\", \"round\": 7}'\n");
    CHECK(look(-1, 1000) == NULL && texts.pid == 0);
    CHECK(look(7, 1000) == NULL && texts.pid > 0);
    const json_t *const text = wait_for_text(7, 2000); /* A second: twenty of rest follow. */
    assert_string_equal(json_string_value(json_object_get(text, "text")), "In the beginning");
    assert_int_equal(json_integer_value(json_object_get(text, "round")), 7);
    assert_int_equal(json_integer_value(json_object_get(text, "time_ms")), 1700);
    CHECK(look(7, 90000) == NULL && texts.pid == 0); /* the same checkpoint */
    CHECK(look(8, 21999) == NULL && texts.pid == 0); /* too soon */
    CHECK(look(8, 22000) == NULL && texts.pid > 0);
    CHECK(wait_for_text(8, 22001) != NULL);
    for (long long round = 9; round < 30; round++) {
        CHECK(look(round, 100000 * (uint64_t)round) == NULL && texts.pid > 0);
        CHECK(wait_for_text(round, 100000 * (uint64_t)round + 1) != NULL);
    }
    assert_int_equal(json_array_size(texts.list), DP_TEXTS_KEPT);
    close_texts();
}

static void what_is_no_text_is_left_out(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "#!/bin/sh\necho '{\"error\": {\"code\": \"E0413\"}}'\nexit 69\n",
        "#!/bin/sh\nexit 1\n",
        "#!/bin/sh\nwhile true; do echo endless; done\n",
        "#!/nonexistent/shell\n",
    };
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        open_texts(scripts[i]);
        CHECK(look(3, 1000) == NULL && texts.pid > 0);
        CHECK(wait_for_text(3, 1001) == NULL && json_array_size(texts.list) == 0);
        close_texts();
    }
}

static void a_process_that_hangs_is_ended(void **state)
{
    (void)state;
    open_texts("#!/bin/sh\nexec sleep 600\n");
    CHECK(look(3, 1000) == NULL && texts.pid > 0);
    CHECK(look(3, 1000 + DP_TEXTS_MOST_MS) == NULL && texts.pid > 0);
    CHECK(look(3, 1001 + DP_TEXTS_MOST_MS) == NULL && texts.pid == 0);
    CHECK(look(4, 100 * (uint64_t)DP_TEXTS_MOST_MS) == NULL && texts.pid > 0);
    close_texts(); /* ends it, too */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_checkpoint_has_its_text_once),
        cmocka_unit_test(what_is_no_text_is_left_out),
        cmocka_unit_test(a_process_that_hangs_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
