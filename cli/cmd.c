#include "cli/cmd.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/nearest.h"
#include "cli/json.h"
#include "cli/paths.h"
#include "cli/print.h"

static const dp_option common[] = {
    {"json", 0, NULL, "print JSON: one object, or one per line for a stream"},
    {"socket", 0, "PATH", "control socket of the daemon [DPNODE_SOCKET]"},
    {"help", 'h', NULL, "show this help"},
};
enum { COMMON_COUNT = sizeof common / sizeof common[0] };

const dp_option *dp_cmd_common(size_t *count)
{
    *count = COMMON_COUNT;
    return common;
}

void dp_error_set(dp_control_error *error, int exit, const char *code, const char *fix,
                  const char *what, const char *why)
{
    *error = (dp_control_error){.exit = exit};
    snprintf(error->code, sizeof error->code, "%s", code);
    snprintf(error->what, sizeof error->what, "%s", what);
    snprintf(error->why, sizeof error->why, "%s", why);
    snprintf(error->fix, sizeof error->fix, "%s", fix);
}

static dp_status refuse(const dp_cmd *cmd, dp_control_error *error, const char *what,
                        const char *why)
{
    char fix[96];
    dp_assert(cmd->verb != NULL);
    snprintf(fix, sizeof fix, "dpnode %s --help", cmd->verb->name);
    dp_error_set(error, DP_EXIT_USAGE, "E0001", fix, what, why);
    return DP_BADARG;
}

/* ---- parsing ---- */

static bool named(const dp_option *option, const char *name, size_t size)
{
    return strlen(option->name) == size && memcmp(option->name, name, size) == 0;
}

static unsigned option_count(const dp_verb *verb)
{
    unsigned count = 0;
    while (count < DP_OPTIONS_MAX && verb->options[count].name != NULL) {
        count++;
    }
    return count;
}

/* The option called name (size characters), or with that letter; *slot is its place among the
 * verb's, or -1. */
static const dp_option *find_option(const dp_verb *verb, const char *name, size_t size, char letter,
                                    int *slot)
{
    const unsigned count = option_count(verb);
    for (unsigned i = 0; i < count; i++) {
        const dp_option *option = &verb->options[i];
        if (letter != 0 ? option->letter == letter : named(option, name, size)) {
            *slot = (int)i;
            return option;
        }
    }
    *slot = -1;
    for (unsigned i = 0; i < COMMON_COUNT; i++) {
        if (letter != 0 ? common[i].letter == letter : named(&common[i], name, size)) {
            return &common[i];
        }
    }
    return NULL;
}

static dp_status take_socket(dp_cmd *cmd, const char *path, dp_control_error *error)
{
    if (path[0] == '\0' || strlen(path) > DP_CONTROL_PATH_MAX) {
        return refuse(cmd, error, "the path of the socket cannot be used",
                      "a unix socket has a path of 1 to 100 characters");
    }
    snprintf(cmd->socket, sizeof cmd->socket, "%s", path);
    cmd->socket_given = true;
    return DP_OK;
}

static dp_status store_option(dp_cmd *cmd, const dp_option *option, int slot, const char *value,
                              dp_control_error *error)
{
    if (slot >= 0) {
        cmd->values[slot] = value;
    } else if (strcmp(option->name, "json") == 0) {
        cmd->json = true;
    } else if (strcmp(option->name, "help") == 0) {
        cmd->help = true;
    } else {
        return take_socket(cmd, value, error);
    }
    return DP_OK;
}

static bool names_file(const dp_option *option)
{
    return option->value != NULL &&
           (strcmp(option->value, "PATH") == 0 || strcmp(option->value, "FILE") == 0 ||
            strcmp(option->value, "FOLDER") == 0);
}

/* text: as given, with two dashes and optionally "=VALUE", or a dash and a letter. */
static dp_status unknown_option(const dp_cmd *cmd, const char *text, dp_control_error *error)
{
    char name[DP_NEAREST_SIZE_MAX + 2];
    char why[160];
    dp_assert(cmd->verb != NULL);
    const unsigned count = option_count(cmd->verb);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text + 1, "=") - 1,
             text[1] == '-' ? text + 2 : "");
    dp_nearest nearest = {.word = name};
    for (unsigned i = 0; i < count; i++) {
        dp_nearest_offer(&nearest, cmd->verb->options[i].name);
    }
    for (unsigned i = 0; i < COMMON_COUNT; i++) {
        dp_nearest_offer(&nearest, common[i].name);
    }
    snprintf(why, sizeof why, "%.70s%s%s%s", text, nearest.best != NULL ? "; did you mean --" : "",
             nearest.best != NULL ? nearest.best : "", nearest.best != NULL ? "?" : "");
    return refuse(cmd, error, "unknown option", why);
}

/* argv[*at] starts with '-'. */
static dp_status take_option(dp_cmd *cmd, int argc, char **argv, int *at, dp_control_error *error)
{
    const char *text = argv[*at];
    const bool is_long = text[1] == '-';
    const char *name = text + 2;
    const char *equals = is_long ? strchr(name, '=') : NULL;
    int slot = -1;
    const dp_option *option =
        is_long ? find_option(cmd->verb, name,
                              equals != NULL ? (size_t)(equals - name) : strlen(name), 0, &slot)
                : find_option(cmd->verb, NULL, 0, text[1], &slot);
    if (option == NULL || (!is_long && text[2] != '\0' && option->value == NULL)) {
        return unknown_option(cmd, text, error);
    }
    const char *value = "";
    if (option->value == NULL && equals != NULL) {
        return refuse(cmd, error, "this option takes no value", text);
    }
    if (option->value != NULL) {
        if (equals != NULL) {
            value = equals + 1;
        } else if (!is_long && text[2] != '\0') {
            value = text + 2;
        } else if (*at + 1 < argc) {
            value = argv[++*at];
        } else {
            return refuse(cmd, error, "this option needs a value", text);
        }
    }
    if (value[0] == '\0' && names_file(option)) { /* It would mean the working directory, or /. */
        char why[80];
        snprintf(why, sizeof why, "--%s is \"\"", option->name);
        return refuse(cmd, error, "an option's path is empty", why);
    }
    return store_option(cmd, option, slot, value, error);
}

dp_status dp_cmd_parse(dp_cmd *cmd, const dp_verb *verb, int argc, char **argv,
                       dp_control_error *error)
{
    cmd->verb = verb;
    bool only_arguments = false;
    for (int i = 0; i < argc; i++) {
        if (!only_arguments && strcmp(argv[i], "--") == 0) {
            only_arguments = true;
        } else if (!only_arguments && argv[i][0] == '-' && argv[i][1] != '\0') {
            DP_TRY(take_option(cmd, argc, argv, &i, error));
        } else if (argv[i][0] == '\0') { /* Often an unset variable of the shell. */
            char why[160];
            snprintf(why, sizeof why, "\"\"; usage: dpnode %s %s", verb->name, verb->arguments);
            return refuse(cmd, error, "an argument is empty", why);
        } else if (cmd->n_args == verb->n_args_max) {
            return refuse(cmd, error, "too many arguments", argv[i]);
        } else {
            cmd->args[cmd->n_args++] = argv[i];
        }
    }
    if (!cmd->help && cmd->n_args < verb->n_args_min) {
        char why[160];
        snprintf(why, sizeof why, "usage: dpnode %s %s", verb->name, verb->arguments);
        return refuse(cmd, error, "an argument is missing", why);
    }
    return DP_OK;
}

static void print_option(const dp_option *option)
{
    char flag[48];
    char letter[8] = "    ";
    if (option->letter != 0) {
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    }
    snprintf(flag, sizeof flag, "%s--%s%s%s", letter, option->name,
             option->value != NULL ? " " : "", option->value != NULL ? option->value : "");
    printf("  %-26s %s\n", flag, option->text);
}

static void print_help(const dp_cmd *cmd, const dp_verb *verb)
{
    const unsigned count = option_count(verb);
    printf("%s\nusage: %s%s%s%s [OPTIONS]\n\n%c%s.\n\n", verb->examples,
           verb->program != NULL ? verb->program : "dpnode ", verb->name,
           verb->arguments[0] != '\0' ? " " : "", verb->arguments, toupper(verb->summary[0]),
           verb->summary + 1);
    for (unsigned i = 0; i < count; i++) {
        print_option(&verb->options[i]);
    }
    for (unsigned i = 0; i < COMMON_COUNT; i++) {
        if (!verb->refuses_json || strcmp(common[i].name, "json") != 0) {
            print_option(&common[i]);
        }
    }
    if (cmd->tell_others != NULL) {
        cmd->tell_others(verb->name);
    }
}

/* ---- reading options ---- */

const char *dp_cmd_option(const dp_cmd *cmd, const char *name)
{
    int slot = -1;
    const dp_option *option = find_option(cmd->verb, name, strlen(name), 0, &slot);
    dp_assert(option != NULL && slot >= 0);
    return cmd->values[slot];
}

/* Reads the leading digits of text; *end is after them. False without digits or above
 * UINT64_MAX. */
static bool read_digits(const char *text, uint64_t *number, const char **end)
{
    char *stop = NULL;
    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    *number = strtoull(text, &stop, 10);
    *end = stop;
    return errno == 0;
}

bool dp_cmd_number(const dp_cmd *cmd, const char *name, uint64_t least, uint64_t most,
                   uint64_t *number, dp_control_error *error)
{
    const char *text = dp_cmd_option(cmd, name);
    const char *end = "";
    uint64_t value = 0;
    if (text == NULL) {
        return true;
    }
    if (read_digits(text, &value, &end) && *end == '\0' && value >= least && value <= most) {
        *number = value;
        return true;
    }
    char why[160];
    snprintf(why, sizeof why, "--%s is \"%.40s\"; it must be a number from %llu to %llu", name,
             text, (unsigned long long)least, (unsigned long long)most);
    DP_IGNORE(
        refuse(cmd, error, "an option's number is not valid", why)); /* The caller gets false. */
    return false;
}

bool dp_cmd_real(const dp_cmd *cmd, const char *name, double least, double most, double *number,
                 dp_control_error *error)
{
    const char *text = dp_cmd_option(cmd, name);
    char *end = NULL;
    if (text == NULL) {
        return true;
    }
    errno = 0;
    const double value = strtod(text, &end);
    /* No sign, no words like nan, no hexadecimal digits. */
    if (errno == 0 && text[0] != '\0' && text[0] != '-' && *end == '\0' &&
        text[strspn(text, "0123456789.eE-")] == '\0' && value >= least && value <= most) {
        *number = value;
        return true;
    }
    char why[160];
    snprintf(why, sizeof why, "--%s is \"%.40s\"; it must be a number from %g to %g", name, text,
             least, most);
    DP_IGNORE(
        refuse(cmd, error, "an option's number is not valid", why)); /* The caller gets false. */
    return false;
}

bool dp_cmd_seconds(const dp_cmd *cmd, const char *name, uint64_t *seconds, dp_control_error *error)
{
    const char *text = dp_cmd_option(cmd, name);
    if (text == NULL || dp_span_read(text, seconds)) {
        return true;
    }
    char why[160];
    snprintf(why, sizeof why, "--%s is \"%.40s\"; it must be a time such as 90s, 15m, 24h or 7d",
             name, text);
    DP_IGNORE(
        refuse(cmd, error, "an option's time is not valid", why)); /* The caller gets false. */
    return false;
}

bool dp_cmd_instant(const dp_cmd *cmd, const char *name, uint64_t now_ms, dp_instant_side side,
                    uint64_t *unix_ms, dp_control_error *error)
{
    const char *const text = dp_cmd_option(cmd, name);
    if (text == NULL || dp_instant_read(text, now_ms, side, unix_ms)) {
        return true;
    }
    char why[200];
    snprintf(why, sizeof why, "--%s is \"%.40s\"; it must be %s", name, text,
             side == DP_INSTANT_AFTER ? DP_INSTANT_FORMS_AFTER : DP_INSTANT_FORMS_BEFORE);
    DP_IGNORE(
        refuse(cmd, error, "an option's time is not valid", why)); /* The caller gets false. */
    return false;
}

/* ---- ends ---- */

int dp_cmd_fail(const dp_cmd *cmd, const dp_control_error *error)
{
    if (cmd->json) {
        /* The exit status is that of the error. */
        DP_IGNORE(dp_cmd_print(json_pack("{s:{s:s,s:o,s:o,s:o,s:i}}", "error", "code", error->code,
                                         "what", dp_json_string(error->what), "why",
                                         dp_json_string(error->why), "fix",
                                         dp_json_string(error->fix), "exit", error->exit)));
        return error->exit;
    }
    dp_control_error shown = *error; /* It may have words of a file or of a peer. */
    dp_print_harmless(shown.what);
    dp_print_harmless(shown.why);
    dp_print_harmless(shown.fix);
    fflush(stdout);
    fprintf(stderr, "error %s: %s\n", shown.code, shown.what);
    if (shown.why[0] != '\0') {
        fprintf(stderr, "  why: %s\n", shown.why);
    }
    if (shown.fix[0] != '\0') {
        fprintf(stderr, "  fix: %s\n", shown.fix);
    }
    return error->exit;
}

int dp_cmd_print(json_t *value)
{
    const bool failed =
        value == NULL ||
        json_dumpf(value, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12)) !=
            0 ||
        putchar('\n') == EOF || fflush(stdout) != 0;
    json_decref(value);
    return failed ? DP_EXIT_IO : 0;
}

/* ---- calls ---- */

int dp_cmd_run(dp_cmd *cmd, const dp_verb *verb, int argc, char **argv)
{
    dp_control_error error;
    char socket[DP_CLI_PATH_MAX];
    const bool found_alike = dp_path_socket(socket);
    const bool long_socket = strlen(socket) > DP_CONTROL_PATH_MAX;
    snprintf(cmd->socket, sizeof cmd->socket, "%.*s", DP_CONTROL_PATH_MAX, socket);
    if (dp_cmd_parse(cmd, verb, argc, argv, &error) != DP_OK) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->help) {
        print_help(cmd, verb);
        return 0;
    }
    if (long_socket && !cmd->socket_given) {
        dp_error_set(&error, DP_EXIT_USAGE, "E0003", "give a shorter one with --socket",
                     "a unix socket has a path of at most 100 characters", socket);
        return dp_cmd_fail(cmd, &error);
    }
    cmd->socket_given = cmd->socket_given || !found_alike;
    return verb->run(cmd);
}

int dp_cmd_program(const dp_verb *verb, int argc, char **argv)
{
    dp_cmd cmd = {.json = false};
    for (int i = 1; i < argc; i++) { /* So that a mistake in the arguments is told as JSON too. */
        cmd.json = cmd.json || strcmp(argv[i], "--json") == 0;
    }
    return dp_cmd_run(&cmd, verb, argc - 1, argv + 1);
}
