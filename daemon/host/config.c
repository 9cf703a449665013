#include "daemon/host/config.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/settings/node_paths.h"
#include "base/size.h"
#include "daemon/host/advertise.h"

static size_t count_settings(void)
{
    size_t count = 0;
    DP_IGNORE(dp_settings(&count) == NULL);
    return count;
}

static const dp_setting *setting_at(size_t index)
{
    size_t count = 0;
    return &dp_settings(&count)[index];
}

static dp_status set_number(dp_config *config, const dp_setting *setting, const char *value,
                            dp_why *why)
{
    errno = 0;
    char *end = NULL;
    uint64_t number = 0;
    if (setting->kind == DP_SETTING_BYTES && isdigit((unsigned char)value[0])) {
        if (!dp_size_read(value, &number)) {
            return dp_why_set(why, DP_BADARG,
                              "%s: \"%s\" is not a size (use K, M, G or T, or KB, MB, GB or TB "
                              "for steps of 1000)",
                              setting->name, value);
        }
        end = strchr(value, '\0');
    } else if (isdigit((unsigned char)value[0])) {
        number = strtoull(value, &end, 10);
    }
    if (end == NULL || errno != 0) {
        return dp_why_set(why, DP_BADARG, "%s: \"%s\" is not a number", setting->name, value);
    }
    if (*end != '\0' || number < setting->least || number > setting->most) {
        return dp_why_set(why, DP_BADARG, "%s: \"%s\" must be a number from %llu to %llu",
                          setting->name, value, (unsigned long long)setting->least,
                          (unsigned long long)setting->most);
    }
    memcpy((char *)config + setting->offset, &(uint64_t){number}, sizeof(uint64_t));
    return DP_OK;
}

/* Index in a list that ends with NULL, or -1. */
static int word_of(const char *value, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], value) == 0) {
            return i;
        }
    }
    return -1;
}

static dp_status set_flag(dp_config *config, const dp_setting *setting, const char *value,
                          dp_why *why)
{
    static const char *const words[] = {"0", "1", "false", "true", "no", "yes", "off", "on", NULL};
    const int word = word_of(value, words);
    if (word < 0) {
        return dp_why_set(why, DP_BADARG, "%s: \"%s\" must be 1 or 0", setting->name, value);
    }
    const bool on = word % 2 == 1;
    memcpy((char *)config + setting->offset, &on, sizeof on);
    return DP_OK;
}

static dp_status set_text(dp_config *config, const dp_setting *setting, const char *value,
                          dp_why *why)
{
    static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
    if (strlen(value) >= setting->size) {
        return dp_why_set(why, DP_BADARG, "%s: must have at most %zu characters", setting->name,
                          setting->size - 1);
    }
    if (setting->offset == offsetof(dp_config, log_level) && word_of(value, levels) < 0) {
        return dp_why_set(why, DP_BADARG, "%s: \"%s\" must be debug, info, warn or error",
                          setting->name, value);
    }
    if (setting->offset == offsetof(dp_config, schedule)) {
        dp_hours hours;
        dp_why wrong = {""};
        if (dp_hours_read(&hours, value, &wrong) != DP_OK) {
            return dp_why_set(why, DP_BADARG, "%s: %.300s", setting->name, wrong.text);
        }
    }
    memcpy((char *)config + setting->offset, value, strlen(value) + 1);
    return DP_OK;
}

dp_status dp_config_set(dp_config *config, const char *name, const char *value, dp_why *why)
{
    const int index = dp_setting_find(name, strlen(name));
    if (index < 0) {
        return dp_why_set(why, DP_NOTFOUND, "unknown setting \"%s\"; see dpnoded --help", name);
    }
    const dp_setting *const setting = setting_at((size_t)index);
    switch (setting->kind) {
    case DP_SETTING_TEXT:
        return set_text(config, setting, value, why);
    case DP_SETTING_FLAG:
        return set_flag(config, setting, value, why);
    case DP_SETTING_NUMBER:
    case DP_SETTING_BYTES:
        return set_number(config, setting, value, why);
    }
    return DP_BADARG;
}

/* The path of a program beside this one. */
static void find_beside(const char *name, char found[DP_CONFIG_PATH_MAX])
{
    char path[DP_CONFIG_PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    const char *slash = NULL;
    if (size > 0) {
        path[size] = '\0';
        slash = strrchr(path, '/');
    }
    const int folder = slash != NULL ? (int)(slash + 1 - path) : 0;
    snprintf(found, DP_CONFIG_PATH_MAX, "%.*s%s", folder, path, name);
}

_Static_assert((int)DP_CONFIG_PATH_MAX == (int)DP_NODE_PATH_MAX, "a standard place fits");

dp_status dp_config_default(dp_config *config, dp_why *why)
{
    *config = (dp_config){0};
    for (size_t i = 0; i < count_settings(); i++) {
        DP_TRY(dp_config_set(config, setting_at(i)->name, setting_at(i)->standard, why));
    }
    dp_node_path_config(config->config_file);
    dp_node_path_dir(config->dir);
    dp_node_path_socket(config->socket);
    find_beside("dpnode-worker", config->worker);
    find_beside("dpnode", config->cli);
    if (gethostname(config->name, sizeof config->name - 1) != 0 || config->name[0] == '\0') {
        snprintf(config->name, sizeof config->name, "node");
    }
    return DP_OK;
}

dp_setting_from dp_config_from(const dp_config *config, const char *name)
{
    const int index = dp_setting_find(name, strlen(name));
    dp_assert(index >= 0);
    return (dp_setting_from)config->from[index];
}

static dp_status read_environment(dp_config *config, dp_why *why)
{
    for (size_t i = 0; i < count_settings(); i++) {
        char variable[64] = "DPNODE_";
        size_t at = strlen(variable);
        for (const char *c = setting_at(i)->name; *c != '\0' && at + 1 < sizeof variable; c++) {
            variable[at++] = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
        }
        variable[at] = '\0';
        const char *value =
            getenv(variable); /* NOLINT(concurrency-mt-unsafe): before any thread starts */
        if (value != NULL) {
            DP_TRY(dp_config_set(config, setting_at(i)->name, value, why));
            config->from[i] = DP_SETTING_ENVIRONMENT;
            config->line[i] = 0;
        }
    }
    return DP_OK;
}

/* It is no setting: an option would show it in the list of processes. */
static dp_status read_token(dp_config *config, dp_why *why)
{
    const char *const token =
        getenv("DPNODE_TOKEN"); /* NOLINT(concurrency-mt-unsafe): before any thread starts */
    if (token != NULL && strlen(token) >= sizeof config->token) {
        return dp_why_set(why, DP_BADARG, "DPNODE_TOKEN is longer than any token");
    }
    snprintf(config->token, sizeof config->token, "%s", token != NULL ? token : "");
    return DP_OK;
}

static dp_status unknown_option(const char *argument, size_t size, dp_why *why)
{
    const char *const nearest = dp_setting_nearest(argument + 2, size);
    return nearest == NULL
               ? dp_why_set(why, DP_BADARG, "unknown option %s; see dpnoded --help", argument)
               : dp_why_set(why, DP_BADARG,
                            "unknown option %s; did you mean --%s? See dpnoded --help", argument,
                            nearest);
}

static dp_status read_argument(dp_config *config, int argc, char **argv, int *at, dp_why *why)
{
    const char *argument = argv[*at];
    if (strncmp(argument, "--", 2) != 0) {
        return dp_why_set(why, DP_BADARG, "\"%s\" is not an option; options look like --dir PATH",
                          argument);
    }
    const char *name = argument + 2;
    const char *equals = strchr(name, '=');
    const size_t size = equals == NULL ? strlen(name) : (size_t)(equals - name);
    const int index = dp_setting_find(name, size);
    if (index < 0) {
        return unknown_option(argument, size, why);
    }
    const dp_setting *const setting = setting_at((size_t)index);
    const char *value = equals == NULL ? NULL : equals + 1;
    if (value == NULL && setting->kind == DP_SETTING_FLAG) {
        value = "1";
    }
    if (value == NULL) {
        if (*at + 1 >= argc) {
            return dp_why_set(why, DP_BADARG, "--%s needs a value: --%s %s", setting->name,
                              setting->name, setting->unit);
        }
        value = argv[++*at];
    }
    config->from[index] = DP_SETTING_COMMAND;
    config->line[index] = 0;
    return dp_config_set(config, setting->name, value, why);
}

/* The port that a cloud maps, if nothing else is set. */
static void take_cloud(dp_config *config)
{
    const char *const colon = strrchr(config->listen, ':');
    const long port = colon == NULL ? 0 : strtol(colon + 1, NULL, 10);
    const bool set = dp_config_from(config, "listen") != DP_SETTING_STANDARD;
    dp_cloud_port found;
    if (dp_config_from(config, "advertise") != DP_SETTING_STANDARD || port <= 0 ||
        port > UINT16_MAX || !dp_cloud_port_find(environ, (uint16_t)port, set, &found)) {
        return;
    }
    if (!set) {
        snprintf(config->listen, sizeof config->listen, "[::]:%u", (unsigned)found.inner);
        config->from[dp_setting_find("listen", strlen("listen"))] = DP_SETTING_ENVIRONMENT;
    }
    _Static_assert(sizeof config->advertise >= DP_ADDRESS_TEXT_MAX, "an address fits");
    dp_address_text(&found.outer, config->advertise);
    config->from[dp_setting_find("advertise", strlen("advertise"))] = DP_SETTING_ENVIRONMENT;
}

/* Checks the required settings, and those that are parsed later. */
static dp_status check(const dp_config *config, dp_why *why)
{
    const struct {
        const char *name;
        const char *value;
        const char *needs;
    } needed[] = {{"dir", config->dir, "the path of a folder"},
                  {"socket", config->socket, "the path of a socket"},
                  {"listen", config->listen, "an address as [::]:7717"},
                  {"worker", config->worker, "the path of the trainer program"},
                  {"backend", config->backend, "auto, cpu or the name of a plugin"}};

    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (needed[i].value[0] == '\0') {
            return dp_why_set(why, DP_BADARG, "--%s is empty; it needs %s", needed[i].name,
                              needed[i].needs);
        }
    }
    if (config->token[0] != '\0' &&
        (config->token_file[0] != '\0' || config->create_from[0] != '\0')) {
        return dp_why_set(why, DP_BADARG,
                          "DPNODE_TOKEN is set besides %s; give one of them: unset DPNODE_TOKEN",
                          config->token_file[0] != '\0' ? "token-file" : "create-from");
    }
    dp_address addresses[DP_ADDRS_MAX];
    uint32_t n_addresses = 0;
    return dp_advertise_parse(config->advertise, addresses, &n_addresses, why);
}

/* Everything that can name the configuration file, and that wins over it. */
static dp_status read_words(dp_config *config, int argc, char **argv, bool *help, bool *version,
                            dp_why *why)
{
    DP_TRY(read_environment(config, why));
    DP_TRY(read_token(config, why));
    dp_status status = DP_OK;
    for (int i = 1; i < argc && status == DP_OK; i++) {
        const bool asks = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
        const bool names = strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0;
        *help = *help || asks;
        *version = *version || names;
        status = asks || names ? DP_OK : read_argument(config, argc, argv, &i, why);
    }
    return status;
}

/* The file comes below what has named it, so these words are read once more. */
static dp_status read_file(dp_config *config, int argc, char **argv, dp_why *why)
{
    char path[DP_CONFIG_PATH_MAX];
    bool ignored = false;
    const bool named = dp_config_from(config, "config") != DP_SETTING_STANDARD;
    snprintf(path, sizeof path, "%s", config->config_file);
    DP_TRY(dp_config_default(config, why));
    const dp_status status = path[0] == '\0' ? DP_OK : dp_config_file_read(config, path, why);
    if (status != DP_OK && (status != DP_NOTFOUND || named)) {
        return status;
    }
    return read_words(config, argc, argv, &ignored, &ignored, why);
}

dp_status dp_config_read(dp_config *config, int argc, char **argv, bool *help, bool *version,
                         dp_why *why)
{
    *help = false;
    *version = false;
    DP_TRY(dp_config_default(config, why));
    DP_TRY(read_words(config, argc, argv, help, version, why));
    if (!*help && !*version) {
        DP_TRY(read_file(config, argc, argv, why));
    }
    take_cloud(config);
    return check(config, why);
}
