/* A run's figures: what is written once, and when another file begins. */
#include "cli/figures/run_figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"

static unsigned n_warnings;

static void on_warning(void *context, const char *sentence)
{
    (void)context;
    (void)sentence;
    n_warnings++;
}

static json_t *value(const char *text)
{
    char line[1024];
    snprintf(line, sizeof line, "%s", text);
    for (char *at = line; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    json_t *const made = json_loads(line, 0, NULL);
    CHECK(made != NULL);
    return made;
}

static long size_of(const dp_run_figures *figures)
{
    FILE *const file = fopen(figures->events.file.path, "re");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    const long size = ftell(file);
    CHECK(fclose(file) == 0);
    return size;
}

static void take(dp_run_figures *figures, const char *status, const char *rounds)
{
    json_t *const is = value(status);
    json_t *const list = value(rounds);
    dp_run_figures_take(figures, is, list, 1700000000000);
    CHECK(figures->failed || !dp_run_figures_lacks(figures, is) || json_array_size(list) == 0);
    json_decref(is);
    json_decref(list);
}

#define ROUNDS                                                                                     \
    "[{'slot':4,'round':3,'loss':5.5,'time_ms':1,'listed':2,'duration_ms':3000},"                  \
    "{'slot':5,'round':4,'loss':5.25,'time_ms':2,'listed':3}]"

static void each_round_and_each_measurement_is_written_once(void **state)
{
    (void)state;
    char folder[] = "/tmp/dpnode-run-figures-XXXXXX";
    char command[64];
    char first[DP_CLI_PATH_MAX];
    CHECK(mkdtemp(folder) != NULL);
    dp_run_figures figures = {.folder = folder, .warn = on_warning};
    json_t *const none = value("{'state':'idle'}");
    CHECK(!dp_run_figures_lacks(&figures, none) && !dp_run_figures_lacks(&figures, NULL));
    json_decref(none);
    take(&figures, "{'run':{'id':'aa','slot':5,'round':4,'tokens_per_s':10.5}}", ROUNDS);
    CHECK(figures.is_open && figures.slot == 5 && figures.events.first_step == 3);
    const long two = size_of(&figures);
    take(&figures, "{'run':{'id':'aa','slot':5,'round':4}}", ROUNDS);
    CHECK(size_of(&figures) == two);
    take(&figures, "{'run':{'id':'aa','slot':5,'round':4,'held_out':{'loss':5,'round':4}}}",
         ROUNDS);
    const long measured = size_of(&figures);
    CHECK(measured > two && figures.measured == 4);
    take(&figures, "{'run':{'id':'aa','slot':5,'round':4,'held_out':{'loss':5,'round':4}}}",
         ROUNDS);
    CHECK(size_of(&figures) == measured);
    json_t *const text = value("{'round':4,'text':'In the'}");
    dp_run_figures_text(&figures, text, 1);
    json_decref(text);
    CHECK(size_of(&figures) > measured);
    snprintf(first, sizeof first, "%s", figures.events.file.path);
    take(&figures, "{'run':{'id':'bb','slot':5,'round':4}}", ROUNDS); /* another run */
    CHECK(strcmp(first, figures.events.file.path) != 0 && figures.slot == 5);
    snprintf(first, sizeof first, "%s", figures.events.file.path);
    json_t *const back = value("{'run':{'id':'bb','slot':4,'round':3}}");
    CHECK(dp_run_figures_lacks(&figures, back)); /* The chain has gone back. */
    json_decref(back);
    take(&figures, "{'run':{'id':'bb','slot':4,'round':3}}", ROUNDS);
    CHECK(strcmp(first, figures.events.file.path) != 0 && figures.slot == 4);
    CHECK(figures.events.first_step == 3);
    dp_run_figures_close(&figures);
    CHECK(n_warnings == 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0); /* NOLINT(cert-env33-c): the path is mkdtemp's */
}

static void a_folder_that_cannot_be_made_is_told_once(void **state)
{
    (void)state;
    dp_run_figures figures = {.folder = "/dev/null/x", .warn = on_warning};
    n_warnings = 0;
    take(&figures, "{'run':{'id':'aa','slot':5,'round':4}}", ROUNDS);
    take(&figures, "{'run':{'id':'aa','slot':6,'round':5}}", ROUNDS);
    CHECK(n_warnings == 1 && !figures.is_open);
    dp_run_figures_close(&figures);
}

static void rounds_that_are_nonsense_are_no_figures(void **state)
{
    (void)state;
    char folder[] = "/tmp/dpnode-run-figures-XXXXXX";
    char command[64];
    CHECK(mkdtemp(folder) != NULL);
    dp_run_figures figures = {.folder = folder, .warn = on_warning};
    n_warnings = 0;
    take(&figures, "{'run':{'id':7,'slot':1}}",
         "[null,3,{},{'slot':'x'},{'slot':1,'round':-4,'loss':1},{'slot':1,'loss':'low'}]");
    dp_run_figures_close(&figures);
    CHECK(n_warnings == 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0); /* NOLINT(cert-env33-c): the path is mkdtemp's */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_round_and_each_measurement_is_written_once),
        cmocka_unit_test(a_folder_that_cannot_be_made_is_told_once),
        cmocka_unit_test(rounds_that_are_nonsense_are_no_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
