/* limits: shows and sets the limits of this node. */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "cli/json.h"
#include "cli/print.h"
#include "cli/watch/question.h"

enum { RATE_BYTES = 128, NOW_BYTES = 320 };

/* One row for each shown value; kind says how the value is read and written. */
static const struct limit {
    const char *option;
    const char *key;
    enum { MBIT, MONTH, DAY, CELSIUS, WATTS, SHARE, THREADS, NICE, DISK, HOURS, SWITCH } kind;
    uint64_t least;
    uint64_t most;
    const char *used; /* of a month */
    const char *rate; /* effective value, of "holds" ... */
    const char *by;   /* ... and the limit that sets it */
} limits[] = {
    {"upload", "upload_mbit", MBIT, 0, 100000, NULL, "upload_rate", "upload_by"},
    {"download", "download_mbit", MBIT, 0, 100000, NULL, "download_rate", "download_by"},
    {"upload-month", "upload_month", MONTH, 0, UINT64_C(1) << 60, "upload_used", "upload_rate",
     "upload_by"},
    {"download-month", "download_month", MONTH, 0, UINT64_C(1) << 60, "download_used",
     "download_rate", "download_by"},
    {"month-day", "month_day", DAY, 1, 28, NULL, NULL, NULL},
    {"celsius", "celsius_max", CELSIUS, 0, 150, NULL, NULL, NULL},
    {"watts", "watts_max", WATTS, 0, 100000, NULL, NULL, NULL},
    {"vram-share", "vram_share", SHARE, 0, 100, NULL, NULL, NULL},
    {"yield-card", "yield_card", SWITCH, 0, 1, NULL, NULL, NULL},
    {"threads", "threads", THREADS, 0, 256, NULL, NULL, NULL},
    {"nice", "nice", NICE, 0, 19, NULL, NULL, NULL},
    {"disk", "store_max", DISK, 0, UINT64_MAX, NULL, NULL, NULL},
    {"schedule", "schedule", HOURS, 0, 0, NULL, NULL, NULL},
    {"idle-only", "idle_only", SWITCH, 0, 1, NULL, NULL, NULL},
    {"not-on-battery", "not_on_battery", SWITCH, 0, 1, NULL, NULL, NULL},
};
enum { LIMITS = sizeof limits / sizeof limits[0] };

static bool is_size(const struct limit *limit)
{
    return limit->kind == MONTH || limit->kind == DISK;
}

static bool read_size(const dp_cmd *cmd, const struct limit *limit, uint64_t *bytes,
                      dp_control_error *error)
{
    const char *const text = dp_cmd_option(cmd, limit->option);
    char why[200];
    if (text == NULL || (dp_size_read(text, bytes) && *bytes <= limit->most)) {
        return true;
    }
    snprintf(why, sizeof why,
             "--%s is \"%.40s\"; it must be a size such as 200GB (200G is in steps of 1024), or 0 "
             "for unlimited",
             limit->option, text);
    dp_error_set(error, DP_EXIT_USAGE, "E0001", "dpnode limits --upload-month 200GB",
                 "an option's size is not valid", why);
    return false;
}

static bool read_switch(const dp_cmd *cmd, const struct limit *limit, uint64_t *on,
                        dp_control_error *error)
{
    const char *const text = dp_cmd_option(cmd, limit->option);
    char why[120];
    if (text == NULL || strcmp(text, "on") == 0 || strcmp(text, "off") == 0) {
        *on = text != NULL && strcmp(text, "on") == 0 ? 1 : 0;
        return true;
    }
    snprintf(why, sizeof why, "--%s is \"%.40s\"; it must be on or off", limit->option, text);
    dp_error_set(error, DP_EXIT_USAGE, "E0001", "dpnode limits --idle-only on",
                 "an option's value is not valid", why);
    return false;
}

static bool read_value(const dp_cmd *cmd, const struct limit *limit, uint64_t *value,
                       dp_control_error *error)
{
    if (limit->kind == HOURS) {
        return true; /* The daemon reads it. */
    }
    if (limit->kind == SWITCH) {
        return read_switch(cmd, limit, value, error);
    }
    return is_size(limit)
               ? read_size(cmd, limit, value, error)
               : dp_cmd_number(cmd, limit->option, limit->least, limit->most, value, error);
}

static bool read_values(const dp_cmd *cmd, uint64_t values[LIMITS], dp_control_error *error)
{
    for (int i = 0; i < LIMITS; i++) {
        if (!read_value(cmd, &limits[i], &values[i], error)) {
            return false;
        }
    }
    return true;
}

static dp_parameter parameter_of(const dp_cmd *cmd, const struct limit *limit, uint64_t value)
{
    return (dp_parameter){
        .key = limit->key,
        .text = limit->kind == HOURS ? dp_cmd_option(cmd, limit->option) : NULL,
        .number = value,
        .is_flag = limit->kind == SWITCH,
    };
}

/* The key whose order --reset drops; "all" for all; NULL without the option. False: there is no
 * such limit. */
static bool read_reset(const dp_cmd *cmd, const char **key, dp_control_error *error)
{
    const char *const name = dp_cmd_option(cmd, "reset");
    char why[120];
    *key = NULL;
    if (name == NULL || strcmp(name, "all") == 0) {
        *key = name;
        return true;
    }
    for (int i = 0; i < LIMITS; i++) {
        if (strcmp(limits[i].option, name) == 0) {
            *key = limits[i].key;
            return true;
        }
    }
    snprintf(why, sizeof why, "--reset is \"%.40s\"; it must be the name of a limit, or all", name);
    dp_error_set(error, DP_EXIT_USAGE, "E0001", "dpnode limits   # lists the limits",
                 "there is no such limit", why);
    return false;
}

static int ask(const dp_cmd *cmd, const uint64_t values[LIMITS], const char *reset, json_t **result,
               dp_control_error *error)
{
    dp_parameter named[LIMITS + 1];
    dp_question question = {.method = "limits", .parameters = named};
    if (reset != NULL) {
        named[question.n_parameters++] = (dp_parameter){.key = "reset", .text = reset};
    }
    for (int i = 0; i < LIMITS; i++) {
        if (dp_cmd_option(cmd, limits[i].option) != NULL) {
            named[question.n_parameters++] = parameter_of(cmd, &limits[i], values[i]);
        }
    }
    return dp_question_ask(cmd->socket, 0, &question, result, error);
}

/* A daemon of an older version ignores unknown fields, and answers anyway. */
static bool is_known(const dp_cmd *cmd, const json_t *result, dp_control_error *error)
{
    char why[80];
    const bool resets = dp_cmd_option(cmd, "reset") != NULL;
    for (int i = -1; i < LIMITS; i++) {
        const char *const option = i < 0 ? "reset" : limits[i].option;
        if ((i < 0 ? resets : dp_cmd_option(cmd, option) != NULL) &&
            json_object_get(result, i < 0 ? "set" : limits[i].key) == NULL) {
            snprintf(why, sizeof why, "the daemon does not know --%s; nothing was set", option);
            dp_error_set(error, DP_EXIT_PROTOCOL, "E0102",
                         "dpnode down, then dpnode up   # with the installed version",
                         "the running daemon is an older version", why);
            return false;
        }
    }
    return true;
}

/* "at most 5 Mbit/s now, by upload": the effective rate, and the other limit if that causes it. */
static void describe_rate(const struct limit *limit, const json_t *result, char text[RATE_BYTES])
{
    const json_t *const holds = json_object_get(result, "holds");
    const json_t *const month = json_object_get(result, "month");
    const char *const by = dp_json_text(holds, limit->by, "");
    char rate[DP_PRINT_CELL_MAX];
    text[0] = '\0';
    for (int i = 0; i < LIMITS; i++) {
        if (strcmp(limits[i].key, by) != 0) {
            continue;
        }
        if (limits[i].kind == MONTH && dp_json_int(month, limits[i].rate, 1) == 0) {
            snprintf(text, RATE_BYTES, "0 now, since %s is used up", limits[i].option);
        } else {
            dp_print_rate((uint64_t)dp_json_int(holds, limit->rate, 0), rate);
            snprintf(text, RATE_BYTES, "at most %s now%s%s", rate,
                     &limits[i] == limit ? "" : ", by ",
                     &limits[i] == limit ? "" : limits[i].option);
        }
    }
}

/* "; 2.6 Mbit/s on average until the end": the rest of a month's quota, over the time until it
 * ends. */
static void describe_mean(const json_t *month, uint64_t cap, uint64_t used,
                          char text[DP_PRINT_CELL_MAX])
{
    const uint64_t end = (uint64_t)dp_json_int(month, "end_ms", 0);
    const uint64_t now = dp_print_now_ms();
    char rate[DP_PRINT_CELL_MAX];
    text[0] = '\0';
    if (end > now && cap > used) {
        dp_print_rate((uint64_t)((double)(cap - used) * 1000 / (double)(end - now)), rate);
        snprintf(text, DP_PRINT_CELL_MAX, "; %.20s on average until the end", rate);
    }
}

static void describe_day(uint64_t day, const json_t *month, char value[DP_PRINT_CELL_MAX],
                         char now[NOW_BYTES])
{
    char left[DP_PRINT_CELL_MAX];
    const uint64_t end = (uint64_t)dp_json_int(month, "end_ms", 0);
    const uint64_t at = dp_print_now_ms();
    dp_print_span(end > at ? (end - at) / 1000 : 0, left);
    snprintf(value, DP_PRINT_CELL_MAX, "%llu", (unsigned long long)day);
    snprintf(now, NOW_BYTES, "next month begins in %s", left);
}

static void describe_month(const struct limit *limit, const json_t *result, uint64_t number,
                           char value[DP_PRINT_CELL_MAX], char now[NOW_BYTES])
{
    const json_t *const month = json_object_get(result, "month");
    char used[DP_SIZE_TEXT_MAX];
    char rate[RATE_BYTES];
    char mean[DP_PRINT_CELL_MAX];
    dp_size_text((uint64_t)dp_json_int(month, limit->used, 0), used);
    dp_size_text(number, value);
    const long long allowed = dp_json_int(month, limit->rate, 0); /* of the month alone */
    describe_rate(limit, result, rate);
    if (number == 0) {
        snprintf(value, DP_PRINT_CELL_MAX, "unlimited");
        snprintf(now, NOW_BYTES, "%s this month", used);
    } else if (allowed == 0) {
        snprintf(now, NOW_BYTES, "%s this month: quota used up, training is stopped", used);
    } else {
        describe_mean(month, number, (uint64_t)dp_json_int(month, limit->used, 0), mean);
        snprintf(now, NOW_BYTES, "%s this month%s%s%s", used, rate[0] != '\0' ? ", " : "", rate,
                 mean);
    }
}

/* The value, and its present state. */
static void describe(const struct limit *limit, const json_t *result, char value[DP_PRINT_CELL_MAX],
                     char now[NOW_BYTES])
{
    const uint64_t number = (uint64_t)dp_json_int(result, limit->key, 0);
    const unsigned long long shown = number;
    snprintf(now, NOW_BYTES, "%s", dp_json_text(json_object_get(result, "notes"), limit->key, ""));
    switch (limit->kind) {
    case MBIT:
        dp_print_mbit((long long)number, value);
        describe_rate(limit, result, now);
        return;
    case DAY:
        describe_day(number, json_object_get(result, "month"), value, now);
        return;
    case MONTH:
        describe_month(limit, result, number, value, now);
        return;
    case CELSIUS:
        snprintf(value, DP_PRINT_CELL_MAX, "%llu C", shown);
        break;
    case WATTS:
        snprintf(value, DP_PRINT_CELL_MAX, "%llu W", shown);
        break;
    case SHARE:
        snprintf(value, DP_PRINT_CELL_MAX, "%llu %%", shown);
        break;
    case DISK:
        dp_size_text(number, value);
        break;
    case THREADS:
        snprintf(value, DP_PRINT_CELL_MAX, "%llu", shown);
        snprintf(now, NOW_BYTES, "%s", number == 0 ? "all that the machine grants" : "");
        return;
    case HOURS: {
        const char *const text = dp_json_text(result, limit->key, "");
        snprintf(value, DP_PRINT_CELL_MAX, "%s",
                 text[0] == '\0'                            ? "always"
                 : strlen(text) < (size_t)DP_PRINT_CELL_MAX ? text
                                                            : "several windows: see --json");
        return;
    }
    case SWITCH:
        snprintf(value, DP_PRINT_CELL_MAX, "%s",
                 dp_json_flag(result, limit->key) == 1 ? "on" : "off");
        return;
    case NICE:
        snprintf(value, DP_PRINT_CELL_MAX, "%llu", shown);
        return;
    }
    if (number == 0) {
        snprintf(value, DP_PRINT_CELL_MAX, "unlimited");
    }
}

/* "dpnode limits, by ann, 2026-11-28 19:02". */
static void describe_source(const json_t *result, const char *key, char text[NOW_BYTES])
{
    const char *const from = dp_json_text(json_object_get(result, "from"), key, "?");
    const json_t *const set = json_object_get(json_object_get(result, "set"), key);
    const char *const by = dp_json_text(set, "by", "");
    char date[DP_PRINT_CELL_MAX];
    if (strncmp(from, "dpnode limits", strlen("dpnode limits")) != 0 || set == NULL) {
        snprintf(text, NOW_BYTES, "%s", from);
        return;
    }
    dp_print_date((uint64_t)dp_json_int(set, "ms", 0), date);
    snprintf(text, NOW_BYTES, "%s%s%s, %s", from, by[0] != '\0' ? ", by " : "", by, date);
}

static void print_limits(const json_t *result)
{
    static const char *const columns[] = {"LIMIT", "VALUE", "SET BY", "NOW"};
    dp_table *table = dp_table_open(columns, sizeof columns / sizeof columns[0], 0);
    for (int i = 0; i < LIMITS; i++) {
        char value[DP_PRINT_CELL_MAX];
        char now[NOW_BYTES];
        char source[NOW_BYTES];
        if (json_object_get(result, limits[i].key) == NULL) {
            continue; /* of an older daemon */
        }
        describe(&limits[i], result, value, now);
        describe_source(result, limits[i].key, source);
        dp_table_row(table);
        dp_table_cell(table, limits[i].option);
        dp_table_cell(table, value);
        dp_table_cell(table, source);
        dp_table_cell(table, now);
    }
    dp_table_close(table, true);
}

static int run_limits(dp_cmd *cmd)
{
    dp_control_error error;
    json_t *result = NULL;
    uint64_t values[LIMITS] = {0};
    const char *reset = NULL;
    if (!read_values(cmd, values, &error) || !read_reset(cmd, &reset, &error) ||
        ask(cmd, values, reset, &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (!is_known(cmd, result, &error)) {
        json_decref(result);
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    print_limits(result);
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_limits = {
    .name = "limits",
    .run = run_limits,
    .arguments = "",
    .summary = "show or set the limits of this node: line, heat, power, hours, disk; while it runs",
    .examples = "  dpnode limits\n  dpnode limits --upload 5 --download 50\n  dpnode limits "
                "--upload 0   # unlimited\n  dpnode limits --upload-month 200GB --month-day 15\n"
                "  dpnode limits --celsius 80 --threads 4\n"
                "  dpnode limits --vram-share 60 --yield-card on   # beside games and other work\n"
                "  dpnode limits --schedule \"mon-fri 22:00-07:00, sat-sun\"\n"
                "  dpnode limits --not-on-battery on --idle-only on\n  dpnode limits --reset all\n",
    .options =
        {{"upload", 0, "MBIT", "largest upload rate in Mbit/s; 0: unlimited"},
         {"download", 0, "MBIT", "largest download rate in Mbit/s; 0: unlimited"},
         {"upload-month", 0, "SIZE", "upload quota per month, such as 200GB; 0: unlimited"},
         {"download-month", 0, "SIZE", "download quota per month, such as 200GB; 0: unlimited"},
         {"month-day", 0, "DAY", "day on which the month begins, 00:00 UTC; 1 to 28"},
         {"celsius", 0, "N", "highest temperature in degrees Celsius; 0: unlimited"},
         {"watts", 0, "N", "highest average power of a GPU; 0: unlimited"},
         {"vram-share", 0, "N", "largest share of a GPU's memory in percent; 0: all that is free"},
         {"yield-card", 0, "on|off", "give the GPU back while another program uses it"},
         {"threads", 0, "N", "threads of the trainer; 0: as many as the machine grants"},
         {"nice", 0, "N", "niceness of the trainer, 0 to 19"},
         {"disk", 0, "SIZE", "largest size of the store, such as 50GB; 0: unlimited"},
         {"schedule", 0, "WINDOWS",
          "local hours of training: \"22:00-07:00\", \"mon-fri 22:00-07:00, sat-sun\", always"},
         {"idle-only", 0, "on|off", "train only while nobody uses the machine"},
         {"not-on-battery", 0, "on|off", "train only while the machine is on mains"},
         {"reset", 0, "LIMIT", "drop the order about a limit, or all of them"}},
};
