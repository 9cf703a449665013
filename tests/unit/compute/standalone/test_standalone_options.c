/* Options of standalone training that the folder keeps. */
#include "compute/standalone/standalone_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "compute/machine/files.h"
#include "tests/lib/check.h"

typedef struct place {
    char folder[32];
    dp_why why;
} place;

static void open_place(place *p)
{
    *p = (place){.folder = "/tmp/dpnode-kept-XXXXXX"};
    CHECK(mkdtemp(p->folder) != NULL);
}

static void close_place(const place *p)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", p->folder);
    CHECK(system(command) == 0); /* NOLINT(cert-env33-c): the path is mkdtemp's */
}

static void what_is_not_given_is_the_folders_and_then_the_standard(void **state)
{
    (void)state;
    place p;
    open_place(&p);
    dp_standalone_options first = dp_standalone_options_none();
    first.steps = 30000;
    first.patience = 3;
    dp_standalone_options_complete(&first);
    CHECK(first.save_s == 300 && first.val_tokens == 65536 && first.save_steps == 0);
    CHECK(first.val_steps == DP_STANDALONE_UNSET); /* chosen */
    CHECK_OK(dp_standalone_options_keep(&first, p.folder, &p.why));
    dp_standalone_options again = dp_standalone_options_none();
    again.patience = 0; /* given */
    dp_standalone_options_inherit(&again, p.folder);
    CHECK(again.steps == 30000 && again.patience == 0 && again.save_s == 300);
    CHECK(again.val_steps == DP_STANDALONE_UNSET);
    close_place(&p);
}

static void the_same_options_are_not_written_again(void **state)
{
    (void)state;
    place p;
    struct stat before;
    struct stat after;
    char path[64];
    open_place(&p);
    dp_standalone_options options = dp_standalone_options_none();
    dp_standalone_options_complete(&options);
    CHECK_OK(dp_standalone_options_keep(&options, p.folder, &p.why));
    snprintf(path, sizeof path, "%s/" DP_STANDALONE_OPTIONS_FILE, p.folder);
    CHECK(stat(path, &before) == 0);
    CHECK_OK(dp_standalone_options_keep(&options, p.folder, &p.why));
    CHECK(stat(path, &after) == 0 && before.st_ino == after.st_ino);
    CHECK(dp_standalone_options_keep(&options, "/nonexistent", &p.why) != DP_OK);
    CHECK(p.why.text[0] != '\0');
    close_place(&p);
}

static void a_damaged_file_has_no_options(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "", "{", "[]", "{\"steps\":-1}", "{\"steps\":\"5\"}", "{\"steps\":1.5}"};
    place p;
    open_place(&p);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_OK(
            dp_file_write(p.folder, DP_STANDALONE_OPTIONS_FILE, dp_view_text(wrong[i]), &p.why));
        dp_standalone_options options = dp_standalone_options_none();
        dp_standalone_options_inherit(&options, p.folder);
        CHECK(options.steps == DP_STANDALONE_UNSET);
    }
    close_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_given_is_the_folders_and_then_the_standard),
        cmocka_unit_test(the_same_options_are_not_written_again),
        cmocka_unit_test(a_damaged_file_has_no_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
