/* Lines of the worker as figures: which are written, and what goes wrong. */
#include "cli/figures/train_figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"

static unsigned n_warnings;
static char warning[1024];

static void on_warning(void *context, const char *sentence)
{
    (void)context;
    n_warnings++;
    snprintf(warning, sizeof warning, "%s", sentence);
}

static void take(dp_train_figures *figures, const char *text)
{
    char line[512];
    snprintf(line, sizeof line, "%s", text);
    for (char *at = line; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    json_t *const object = json_loads(line, 0, NULL);
    CHECK(object != NULL);
    dp_train_figures_take(figures, object, 1700000000000);
    json_decref(object);
}

static size_t size_of(const char *path)
{
    FILE *const file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    CHECK(fseek(file, 0, SEEK_END) == 0);
    const long size = ftell(file);
    CHECK(fclose(file) == 0);
    return (size_t)size;
}

static void only_steps_and_validations_are_figures(void **state)
{
    (void)state;
    char folder[] = "/tmp/dpnode-figures-XXXXXX";
    char metrics[64];
    char events[64];
    char command[64];
    dp_train_figures figures = {.warn = on_warning};
    CHECK(mkdtemp(folder) != NULL);
    snprintf(metrics, sizeof metrics, "%s/m.jsonl", folder);
    snprintf(events, sizeof events, "%s/tb", folder);
    CHECK(dp_train_figures_open(&figures, metrics, events));
    take(&figures, "{'event':'plan','plan':{}}");
    take(&figures, "{'event':'note','why':'x'}");
    CHECK(access(metrics, F_OK) != 0 && access(events, F_OK) != 0);
    take(&figures, "{'event':'start','step':10}");
    take(&figures, "{'event':'step','step':11,'loss':2.5,'lr':1e-3}");
    take(&figures, "{'event':'step','step':12,'loss':null,'lr':1e-3}"); /* not finite */
    take(&figures, "{'event':'validation','step':12,'loss':2,'bits_per_byte':1}");
    take(&figures, "{'event':'end','step':12}");
    dp_train_figures_close(&figures);
    CHECK(size_of(metrics) > 100 && size_of(figures.events.file.path) > 150);
    CHECK(figures.events.first_step == 11 && n_warnings == 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0); /* NOLINT(cert-env33-c): the path is mkdtemp's */
}

static void trouble_is_told_once(void **state)
{
    (void)state;
    dp_train_figures figures = {.warn = on_warning};
    n_warnings = 0;
    CHECK(dp_train_figures_open(&figures, "/dev/full", NULL));
    for (int i = 0; i < 3; i++) {
        take(&figures, "{'event':'step','step':1,'loss':2.5}");
    }
    dp_train_figures_close(&figures);
    CHECK(n_warnings == 1 && strstr(warning, "/dev/full") != NULL);
    CHECK(strstr(warning, "; training goes on") != NULL);
    CHECK(!dp_train_figures_open(&figures, "", NULL));
}

static void without_a_file_and_a_folder_nothing_happens(void **state)
{
    (void)state;
    dp_train_figures figures = {.warn = on_warning};
    n_warnings = 0;
    CHECK(dp_train_figures_open(&figures, NULL, NULL));
    take(&figures, "{'event':'start','step':0}");
    take(&figures, "{'event':'step','step':1}");
    dp_train_figures_close(&figures);
    CHECK(n_warnings == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_steps_and_validations_are_figures),
        cmocka_unit_test(trouble_is_told_once),
        cmocka_unit_test(without_a_file_and_a_folder_nothing_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
