/* config show: the settings of the running daemon, and where each comes from. */
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/json.h"
#include "cli/print.h"

enum { ORIGIN_BYTES = 640 };

/* "file /etc/dpnode/dpnoded.conf:3", "dpnode limits, by ann, 2026-11-28 19:02". */
static void describe_origin(const json_t *setting, const char *file, char text[ORIGIN_BYTES])
{
    const char *const from = dp_json_text(setting, "from", "?");
    const char *const by = dp_json_text(setting, "by", "");
    char date[DP_PRINT_CELL_MAX] = "";
    if (strcmp(from, "file") == 0) {
        snprintf(text, ORIGIN_BYTES, "%s:%lld", file, dp_json_int(setting, "line", 0));
    } else if (strcmp(from, "order") == 0) {
        const uint64_t set_ms = (uint64_t)dp_json_int(setting, "set_ms", 0);
        if (set_ms != 0) {
            dp_print_date(set_ms, date);
        }
        snprintf(text, ORIGIN_BYTES, "dpnode limits%s%s%s%s", by[0] != '\0' ? ", by " : "", by,
                 date[0] != '\0' ? ", " : "", date);
    } else {
        snprintf(text, ORIGIN_BYTES, "%s", from);
    }
    if (dp_json_flag(setting, "until_restart") == 1) {
        const size_t used = strlen(text);
        snprintf(text + used, ORIGIN_BYTES - used, "%s",
                 strcmp(from, "order") == 0 ? ", until the daemon ends"
                                            : "; the file has another value for the next start");
    }
}

static void print_settings(const json_t *result, bool origin)
{
    static const char *const columns[] = {"SETTING", "VALUE", "FROM"};
    const json_t *const settings = json_object_get(result, "settings");
    const char *const file = dp_json_text(result, "file", "?");
    dp_table *table = dp_table_open(columns, origin ? 3 : 2, 0);
    for (size_t i = 0; i < json_array_size(settings); i++) {
        const json_t *const setting = json_array_get(settings, i);
        char text[ORIGIN_BYTES];
        dp_table_row(table);
        dp_table_cell(table, dp_json_text(setting, "name", "?"));
        dp_table_cell(table, dp_json_text(setting, "value", "?"));
        if (origin) {
            describe_origin(setting, file, text);
            dp_table_cell(table, text);
        }
    }
    dp_table_close(table, true);
}

static int run_config_show(dp_cmd *cmd)
{
    dp_control_error error;
    json_t *result = NULL;
    if (dp_client_ask(cmd, "config", &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    print_settings(result, dp_cmd_option(cmd, "origin") != NULL);
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_config_show = {
    .name = "config show",
    .run = run_config_show,
    .arguments = "",
    .summary = "show every setting of the running daemon, and where it comes from",
    .examples = "  dpnode config show\n  dpnode config show --origin\n",
    .options = {{"origin", 0, NULL,
                 "name the source: default, file and line, environment, command "
                 "line, or an order of dpnode limits"}},
};
