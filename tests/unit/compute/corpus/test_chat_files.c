#include "tests/lib/check.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compute/corpus/chat_files.h"
#include "compute/machine/files.h"
#include "compute/template/chat.h"
#include "tests/lib/tempdir.h"

typedef struct two {
    tempdir from;
    tempdir to;
    dp_buf files[DP_CHAT_FILES];
} two;

static void begin(two *t)
{
    tempdir_open(&t->from);
    tempdir_open(&t->to);
    for (size_t i = 0; i < DP_CHAT_FILES; i++) {
        dp_buf_init(&t->files[i], DP_CHAT_CONFIG_MAX);
    }
}

static void end(two *t)
{
    for (size_t i = 0; i < DP_CHAT_FILES; i++) {
        dp_buf_close(&t->files[i]);
    }
    tempdir_close(&t->to);
    tempdir_close(&t->from);
}

static void both_files_are_copied_byte_for_byte(void **state)
{
    static const uint8_t jinja[] = {'{', '{', 0, 0xff, '\n'};
    two t;
    (void)state;
    begin(&t);
    CHECK_OK(dp_file_write(t.from.path, "tokenizer_config.json", dp_view_text("{}\n"), NULL));
    CHECK_OK(dp_file_write(t.from.path, "chat_template.jinja", dp_view_of(jinja, 5), NULL));
    CHECK_OK(dp_chat_files_copy(t.from.path, t.to.path, NULL));
    CHECK_OK(dp_chat_files_read(t.to.path, t.files, NULL));
    CHECK(dp_view_equal(dp_buf_view(&t.files[0]), dp_view_text("{}\n")));
    CHECK(dp_view_equal(dp_buf_view(&t.files[1]), dp_view_of(jinja, 5)));
    end(&t);
}

static void a_folder_without_them_gives_nothing_and_leaves_the_other_as_it_is(void **state)
{
    two t;
    (void)state;
    begin(&t);
    CHECK_OK(dp_file_write(t.to.path, "chat_template.jinja", dp_view_text("kept"), NULL));
    CHECK_OK(dp_chat_files_copy(t.from.path, t.to.path, NULL));
    CHECK_OK(dp_chat_files_read(t.to.path, t.files, NULL));
    CHECK(t.files[0].size == 0 && dp_view_equal(dp_buf_view(&t.files[1]), dp_view_text("kept")));
    end(&t);
}

static void the_source_of_the_template_is_found_in_either_file(void **state)
{
    two t;
    dp_why why = {{0}};
    (void)state;
    begin(&t);
    CHECK_STATUS(dp_chat_files_source(t.from.path, &t.files[0], &why), DP_NOTFOUND);
    CHECK_OK(dp_file_write(t.from.path, "tokenizer_config.json",
                           dp_view_text("{\"chat_template\": \"{{ 1 }}\"}"), NULL));
    CHECK_OK(dp_chat_files_source(t.from.path, &t.files[0], &why));
    CHECK(dp_view_equal(dp_buf_view(&t.files[0]), dp_view_text("{{ 1 }}")));
    CHECK_OK(dp_file_write(t.from.path, "chat_template.jinja", dp_view_text("{{ 2 }}"), NULL));
    CHECK_OK(dp_chat_files_source(t.from.path, &t.files[1], &why));
    CHECK(dp_view_equal(dp_buf_view(&t.files[1]), dp_view_text("{{ 2 }}")));
    end(&t);
}

static void a_file_beyond_the_bound_and_one_that_cannot_be_written_are_named(void **state)
{
    two t;
    dp_why why = {{0}};
    char path[TEMPDIR_FILE_MAX];
    (void)state;
    begin(&t);
    CHECK_OK(dp_file_write(t.from.path, "chat_template.jinja", dp_view_text("x"), NULL));
    CHECK(truncate(tempdir_file(&t.from, "chat_template.jinja", path), DP_CHAT_CONFIG_MAX + 1) ==
          0);
    CHECK_STATUS(dp_chat_files_copy(t.from.path, t.to.path, &why), DP_TOOBIG);
    CHECK(strstr(why.text, "chat_template.jinja") != NULL);
    CHECK(truncate(path, 1) == 0);
    CHECK(dp_chat_files_copy(t.from.path, "/nonexistent", &why) != DP_OK);
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_files_are_copied_byte_for_byte),
        cmocka_unit_test(a_folder_without_them_gives_nothing_and_leaves_the_other_as_it_is),
        cmocka_unit_test(the_source_of_the_template_is_found_in_either_file),
        cmocka_unit_test(a_file_beyond_the_bound_and_one_that_cannot_be_written_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
