#include "daemon/host/config.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/nearest.h"
#include "base/size.h"
#include "daemon/host/advertise.h"
#include "daemon/host/bandwidth_quota.h"

#define TEXT(field) offsetof(dp_config, field), sizeof(((dp_config *)0)->field)
#define NUMBER(field) offsetof(dp_config, field), sizeof(((dp_config *)0)->field)

static const dp_setting settings[] = {
    {"dir", DP_SETTING_TEXT, "PATH", "", 0, 0,
     "directory of keys and store, used by one daemon at a time", TEXT(dir)},
    {"socket", DP_SETTING_TEXT, "PATH", "", 0, 0, "control socket for dpnode", TEXT(socket)},
    {"listen", DP_SETTING_TEXT, "ADDR:PORT", "[::]:7717", 0, 0,
     "address and port for peers, opened when the node has a run; [::] is IPv4 and IPv6, port 0 is "
     "any free port",
     TEXT(listen)},
    {"advertise", DP_SETTING_TEXT, "ADDR:PORT,...", "", 0, 0,
     "addresses or names for peers to dial, up to four, if they differ from this machine's own",
     TEXT(advertise)},
    {"name", DP_SETTING_TEXT, "NAME", "", 0, 0, "name of this node, shown to people", TEXT(name)},
    {"worker", DP_SETTING_TEXT, "PATH", "", 0, 0, "path of the trainer program", TEXT(worker)},
    {"log-level", DP_SETTING_TEXT, "LEVEL", "info", 0, 0, "debug, info, warn or error",
     TEXT(log_level)},
    {"log-file", DP_SETTING_TEXT, "PATH", "", 0, 0,
     "log file, instead of standard error; five files of 10 MiB; SIGHUP reopens it",
     TEXT(log_file)},
    {"threads", DP_SETTING_NUMBER, "N", "0", 0, 256,
     "threads of the trainer; 0: as many as the machine grants", NUMBER(threads)},
    {"processes", DP_SETTING_NUMBER, "N", "1", 1, 64,
     "processes of the trainer that share its threads and train as one on the CPU; best one per "
     "CPU socket",
     NUMBER(processes)},
    {"backend", DP_SETTING_TEXT, "NAME", "auto", 0, 0,
     "backend: auto (a GPU if its plugin is installed), cpu, cuda, cuda:1 (the second card), "
     "cuda:0,1 (two cards as one), or the path of a plugin",
     TEXT(backend)},
    {"nice", DP_SETTING_NUMBER, "N", "10", 0, 19, "niceness of the trainer", NUMBER(nice)},
    {"celsius-max", DP_SETTING_NUMBER, "N", "0", 0, 150,
     "highest temperature of the processor or GPU in degrees Celsius; training pauses briefly to "
     "stay below it; 0: unlimited",
     NUMBER(celsius_max)},
    {"watts-max", DP_SETTING_NUMBER, "N", "0", 0, 100000,
     "highest average power of a GPU in watts; training pauses briefly to stay below it; 0: "
     "unlimited",
     NUMBER(watts_max)},
    {"upload-max", DP_SETTING_NUMBER, "MBIT", "0", 0, DP_CONFIG_MBIT_MAX,
     "largest upload rate in Mbit/s for updates, data and states; dpnode limits changes it; 0: "
     "unlimited",
     NUMBER(upload_max)},
    {"download-max", DP_SETTING_NUMBER, "MBIT", "0", 0, DP_CONFIG_MBIT_MAX,
     "largest download rate in Mbit/s for updates, data and states; dpnode limits changes it; 0: "
     "unlimited",
     NUMBER(download_max)},
    {"upload-month", DP_SETTING_BYTES, "SIZE", "0", 0, DP_BANDWIDTH_QUOTA_CAP_MAX,
     "upload quota per month, such as 200GB, spread over the rest of the month; dpnode limits "
     "changes it; 0: unlimited",
     NUMBER(upload_month)},
    {"download-month", DP_SETTING_BYTES, "SIZE", "0", 0, DP_BANDWIDTH_QUOTA_CAP_MAX,
     "download quota per month, spread over the rest of the month; dpnode limits changes it; 0: "
     "unlimited",
     NUMBER(download_month)},
    {"month-day", DP_SETTING_NUMBER, "DAY", "1", 1, DP_BANDWIDTH_QUOTA_DAY_MAX,
     "day on which the month begins, at 00:00 UTC", NUMBER(month_day)},
    {"answer-time", DP_SETTING_NUMBER, "SECONDS", "300", 1, 86400,
     "time after which a trainer that does not answer is restarted", NUMBER(answer_time)},
    {"apply-memory", DP_SETTING_BYTES, "SIZE", "4G", 0, UINT64_MAX,
     "memory for the updates of a round; a round with more bytes, or more than 32 updates, is "
     "summed in slices, two in memory at a time",
     NUMBER(apply_memory)},
    {"write-per-day", DP_SETTING_BYTES, "SIZE", "50G", 0, UINT64_MAX,
     "largest number of checkpoint bytes written per day; 0: a checkpoint after every round; a "
     "voter exceeds it for a checkpoint every 32 rounds",
     NUMBER(write_per_day)},
    {"store-max", DP_SETTING_BYTES, "SIZE", "0", 0, UINT64_MAX,
     "largest size of the store; 0: unlimited", NUMBER(store_max)},
    {"ballast", DP_SETTING_BYTES, "SIZE", "64M", 0, UINT64_MAX,
     "size of the disk reserve: a file that is released when the disk is full, so that votes can "
     "be written",
     NUMBER(ballast)},
    {"margin", DP_SETTING_BYTES, "SIZE", "64M", 0, UINT64_MAX,
     "free disk space that large writes leave", NUMBER(margin)},
    {"network-dir", DP_SETTING_FLAG, "", "0", 0, 1,
     "allow a directory on a network file system, whose locks and syncs may fail",
     NUMBER(network_dir)},
    {"drain-on-file", DP_SETTING_TEXT, "PATH", "", 0, 0,
     "stop when this file exists and a round has counted this node's work", TEXT(drain_on_file)},
    {"drain-time", DP_SETTING_NUMBER, "SECONDS", "25", 0, 86400,
     "longest wait for that round, also after SIGTERM; a second SIGTERM, or SIGINT, stops at once",
     NUMBER(drain_time)},
    {"token-file", DP_SETTING_TEXT, "PATH", "", 0, 0,
     "join the run of the invite token in this file, when the file exists, unless this node has a "
     "run; with create-from the created run's invite is kept in it",
     TEXT(token_file)},
    {"create-from", DP_SETTING_TEXT, "FILE", "", 0, 0,
     "create a run from this manifest, which names its text, at the first start, if token-file "
     "does not exist; demo:kjv is the demo",
     TEXT(create_from)},
    {"observer", DP_SETTING_FLAG, "", "0", 0, 1, "store and serve data, never train",
     NUMBER(observer)},
    {"one-level", DP_SETTING_FLAG, "", "0", 0, 1,
     "for measurements: fetch each result of a part from its owner, not from a nearby node",
     NUMBER(one_level)},
};

_Static_assert(sizeof settings / sizeof settings[0] <= DP_CONFIG_SETTINGS_MAX, "they fit");

const dp_setting *dp_settings(size_t *count)
{
    *count = sizeof settings / sizeof settings[0];
    return settings;
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

dp_status dp_config_set(dp_config *config, const char *name, const char *value, dp_why *why)
{
    static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const dp_setting *setting = &settings[i];
        if (strcmp(setting->name, name) != 0) {
            continue;
        }
        switch (setting->kind) {
        case DP_SETTING_TEXT:
            if (strlen(value) >= setting->size) {
                return dp_why_set(why, DP_BADARG, "%s: must have at most %zu characters", name,
                                  setting->size - 1);
            }
            if (setting->offset == offsetof(dp_config, log_level) && word_of(value, levels) < 0) {
                return dp_why_set(why, DP_BADARG, "%s: \"%s\" must be debug, info, warn or error",
                                  name, value);
            }
            memcpy((char *)config + setting->offset, value, strlen(value) + 1);
            return DP_OK;
        case DP_SETTING_FLAG:
            return set_flag(config, setting, value, why);
        case DP_SETTING_NUMBER:
        case DP_SETTING_BYTES:
            return set_number(config, setting, value, why);
        }
    }
    return dp_why_set(why, DP_NOTFOUND, "unknown setting \"%s\"; see dpnoded --help", name);
}

static void default_folders(dp_config *config)
{
    if (geteuid() == 0) {
        snprintf(config->dir, sizeof config->dir, "/var/lib/dpnode");
        snprintf(config->socket, sizeof config->socket, "/run/dpnode/dpnode.sock");
        return;
    }
    const char *home = getenv("HOME"); /* NOLINT(concurrency-mt-unsafe): before any thread starts */
    const char *state = getenv("XDG_STATE_HOME");
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (state != NULL && state[0] == '/') {
        snprintf(config->dir, sizeof config->dir, "%s/dpnode", state);
    } else {
        snprintf(config->dir, sizeof config->dir, "%s/.local/state/dpnode",
                 home == NULL ? "" : home);
    }
    if (runtime != NULL && runtime[0] == '/') {
        snprintf(config->socket, sizeof config->socket, "%s/dpnode/dpnode.sock", runtime);
    } else {
        const int size =
            snprintf(config->socket, sizeof config->socket, "%s/dpnode.sock", config->dir);
        dp_assert(size < (int)sizeof config->socket +
                             16); /* A path that long is refused when the socket is bound. */
    }
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

dp_status dp_config_default(dp_config *config, dp_why *why)
{
    *config = (dp_config){0};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        DP_TRY(dp_config_set(config, settings[i].name, settings[i].standard, why));
    }
    default_folders(config);
    find_beside("dpnode-worker", config->worker);
    find_beside("dpnode", config->cli);
    if (gethostname(config->name, sizeof config->name - 1) != 0 || config->name[0] == '\0') {
        snprintf(config->name, sizeof config->name, "node");
    }
    return DP_OK;
}

dp_setting_from dp_config_from(const dp_config *config, const char *name)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (strcmp(settings[i].name, name) == 0) {
            return (dp_setting_from)config->from[i];
        }
    }
    dp_assert(false);
    return DP_SETTING_STANDARD;
}

static dp_status read_environment(dp_config *config, dp_why *why)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        char variable[64] = "DPNODE_";
        size_t at = strlen(variable);
        for (const char *c = settings[i].name; *c != '\0' && at + 1 < sizeof variable; c++) {
            variable[at++] = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
        }
        variable[at] = '\0';
        const char *value =
            getenv(variable); /* NOLINT(concurrency-mt-unsafe): before any thread starts */
        if (value != NULL) {
            DP_TRY(dp_config_set(config, settings[i].name, value, why));
            config->from[i] = DP_SETTING_ENVIRONMENT;
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

static const dp_setting *setting_of(const char *name, size_t size)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (strlen(settings[i].name) == size && memcmp(settings[i].name, name, size) == 0) {
            return &settings[i];
        }
    }
    return NULL;
}

static dp_status unknown_option(const char *argument, size_t size, dp_why *why)
{
    char name[DP_NEAREST_SIZE_MAX + 2];
    snprintf(name, sizeof name, "%.*s", (int)(size < sizeof name ? size : sizeof name - 1),
             argument + 2);
    dp_nearest nearest = {.word = name};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        dp_nearest_offer(&nearest, settings[i].name);
    }
    return nearest.best == NULL
               ? dp_why_set(why, DP_BADARG, "unknown option %s; see dpnoded --help", argument)
               : dp_why_set(why, DP_BADARG,
                            "unknown option %s; did you mean --%s? See dpnoded --help", argument,
                            nearest.best);
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
    const dp_setting *setting = setting_of(name, size);
    if (setting == NULL) {
        return unknown_option(argument, size, why);
    }
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
    config->from[setting - settings] = DP_SETTING_COMMAND;
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
        config->from[setting_of("listen", strlen("listen")) - settings] = DP_SETTING_ENVIRONMENT;
    }
    _Static_assert(sizeof config->advertise >= DP_ADDRESS_TEXT_MAX, "an address fits");
    dp_address_text(&found.outer, config->advertise);
    config->from[setting_of("advertise", strlen("advertise")) - settings] = DP_SETTING_ENVIRONMENT;
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

dp_status dp_config_read(dp_config *config, int argc, char **argv, bool *help, bool *version,
                         dp_why *why)
{
    *help = false;
    *version = false;
    DP_TRY(dp_config_default(config, why));
    DP_TRY(read_environment(config, why));
    DP_TRY(read_token(config, why));
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            *help = true;
        } else if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0) {
            *version = true;
        } else {
            DP_TRY(read_argument(config, argc, argv, &i, why));
        }
    }
    take_cloud(config);
    return check(config, why);
}
