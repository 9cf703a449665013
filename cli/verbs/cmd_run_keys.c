/* The keys of a manifest, printed by `run validate --keys`: values, presets, modes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/run/run_mode.h"
#include "cli/demo.h"
#include "cli/file.h"
#include "cli/json.h"
#include "cli/plan.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/qr.h"
#include "cli/start/start.h"
#include "cli/verbs/cmd_run.h"

static json_t *choices_json(const dp_manifest_choice *choices, size_t count)
{
    json_t *all = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *words = json_array();
        const char *standard = "";
        for (size_t w = 0; w < choices[i].n_words; w++) {
            const dp_manifest_word *const word = &choices[i].words[w];
            standard = word->value == choices[i].default_value ? word->name : standard;
            json_array_append_new(words, json_string(word->name));
        }
        json_array_append_new(all, json_pack("{s:s,s:s,s:o,s:s}", "key", choices[i].key, "standard",
                                             standard, "words", words, "text", choices[i].text));
    }
    return all;
}

static void print_choices(const dp_manifest_choice *choices, size_t count)
{
    printf("\nname, text: a name and the path of the text.\n");
    for (size_t i = 0; i < count; i++) {
        char words[DP_MANIFEST_WORDS_MAX];
        dp_manifest_words_text(&choices[i], words, sizeof words);
        printf("%s: %s. %s\n", choices[i].key, words, choices[i].text);
    }
}

static json_t *presets_json(void)
{
    size_t count = 0;
    const dp_model_preset *const presets = dp_model_presets(&count);
    json_t *all = json_array();
    for (size_t i = 0; i < count; i++) {
        const json_int_t parameters = (json_int_t)dp_model_config_parameters(&presets[i].config);
        json_array_append_new(all, json_pack("{s:s,s:I,s:s}", "name", presets[i].name, "parameters",
                                             parameters, "text", presets[i].text));
    }
    return all;
}

static void print_presets(void)
{
    size_t count = 0;
    const dp_model_preset *const presets = dp_model_presets(&count);
    printf("\nmodel.preset sets the other model keys that are not given:\n");
    for (size_t i = 0; i < count; i++) {
        char size[DP_PRINT_CELL_MAX];
        dp_print_count((double)dp_model_config_parameters(&presets[i].config), size);
        printf("  %-12s %6s parameters  %s\n", presets[i].name, size, presets[i].text);
    }
}

static json_t *modes_json(void)
{
    size_t count = 0;
    const dp_run_mode *const modes = dp_run_modes(&count);
    json_t *all = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(all, json_pack("{s:s,s:s,s:f,s:f,s:b,s:s}", "name", modes[i].name,
                                             "codec", dp_codec_name(modes[i].codec), "alpha",
                                             modes[i].alpha_milli / 1000.0, "momentum",
                                             modes[i].outer_mu_milli / 1000.0, "pairs",
                                             modes[i].pairs == DP_ON, "text", modes[i].text));
    }
    return all;
}

static void print_modes(void)
{
    size_t count = 0;
    const dp_run_mode *const modes = dp_run_modes(&count);
    printf("\nround.mode sets codec, alpha, momentum and other keys of a mode, if they are not "
           "given:\n");
    for (size_t i = 0; i < count; i++) {
        printf("  %-12s %6s, %.3g, %.3g  %s\n", modes[i].name, dp_codec_name(modes[i].codec),
               modes[i].alpha_milli / 1000.0, modes[i].outer_mu_milli / 1000.0, modes[i].text);
    }
}

int dp_run_print_keys(const dp_cmd *cmd)
{
    size_t n_choices = 0;
    const dp_manifest_choice *choices = dp_manifest_choices(&n_choices);
    size_t count = 0;
    const dp_manifest_row *rows = dp_manifest_rows(&count);
    json_t *keys = json_array();
    static const char *const columns[] = {"KEY", "DEFAULT", "MIN", "MAX", "MEANING"};
    dp_table *table = cmd->json ? NULL : dp_table_open(columns, 5, 0x0e);
    for (size_t i = 0; i < count; i++) {
        const double scale = (double)rows[i].scale;
        const double values[3] = {(double)rows[i].default_value / scale,
                                  (double)rows[i].min / scale, (double)rows[i].max / scale};
        if (cmd->json) {
            json_array_append_new(keys, json_pack("{s:s,s:f,s:f,s:f,s:s}", "key", rows[i].key,
                                                  "standard", values[0], "least", values[1], "most",
                                                  values[2], "text", rows[i].text));
            continue;
        }
        dp_table_row(table);
        dp_table_cell(table, rows[i].key);
        for (int k = 0; k < 3; k++) {
            char text[DP_PRINT_CELL_MAX];
            if (values[k] >= 9e18) {
                snprintf(text, sizeof text, "any"); /* 2 to the 63, or 64 */
            } else {
                snprintf(text, sizeof text, "%.10g", values[k]);
            }
            dp_table_cell(table, text);
        }
        dp_table_cell(table, rows[i].text);
    }
    if (cmd->json) {
        return dp_cmd_print(json_pack("{s:o,s:o,s:o,s:o}", "keys", keys, "words",
                                      choices_json(choices, n_choices), "presets", presets_json(),
                                      "modes", modes_json()));
    }
    json_decref(keys);
    dp_table_close(table, true);
    print_choices(choices, n_choices);
    print_presets();
    print_modes();
    return 0;
}
