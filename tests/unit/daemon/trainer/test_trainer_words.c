/* The words with which the trainer's program is started: those of set options alone. */
#include "tests/lib/check.h"

#include <string.h>

#include "daemon/trainer/trainer_words.h"

static char program[] = "/opt/worker";
static char none[] = "";

static void said(const dp_trainer_process_config *config, char *backend, const char *wanted)
{
    dp_trainer_words all;
    char text[1024] = "";
    dp_trainer_say(&all, config, program, backend, 3);
    assert_null(all.at[all.n]);
    for (size_t i = 0; i < all.n; i++) {
        strcat(text, i > 0 ? " " : "");
        strcat(text, all.at[i]);
    }
    assert_string_equal(text, wanted);
}

static void without_settings_only_what_every_program_knows_is_said(void **state)
{
    (void)state;
    said(&(dp_trainer_process_config){.threads = 2, .nice = 10}, none,
         "/opt/worker --fd 3 --threads 2 --nice 10");
    said(&(dp_trainer_process_config){.processes = 1, .script = ""}, none,
         "/opt/worker --fd 3 --threads 0 --nice 0");
}

static void every_setting_is_said(void **state)
{
    char backend[] = "cuda";
    (void)state;
    said(&(dp_trainer_process_config){.threads = 1,
                                      .nice = 19,
                                      .processes = 4,
                                      .celsius_max = 80,
                                      .watts_max = 300,
                                      .vram_share = 60,
                                      .script = "/d/script.sock"},
         backend,
         "/opt/worker --fd 3 --threads 1 --nice 19 --processes 4 --backend cuda --celsius-max 80 "
         "--watts-max 300 --vram-share 60 --script /d/script.sock");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_settings_only_what_every_program_knows_is_said),
        cmocka_unit_test(every_setting_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
