/* The table of settings, and their values as text. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "daemon/host/bandwidth_quota.h"
#include "daemon/host/config.h"

#define FIELD(field) offsetof(dp_config, field), sizeof(((dp_config *)0)->field)
#define TEXT(field) FIELD(field), false
#define NUMBER(field) FIELD(field), false
#define LIVE(field) FIELD(field), true

static const dp_setting settings[] = {
    {"dir", DP_SETTING_TEXT, "PATH", "", 0, 0,
     "directory of keys and store, used by one daemon at a time", TEXT(dir)},
    {"socket", DP_SETTING_TEXT, "PATH", "", 0, 0, "control socket for dpnode", TEXT(socket)},
    {"config", DP_SETTING_TEXT, "FILE", "", 0, 0,
     "configuration file, with lines such as upload-max = 20; SIGHUP reads it again",
     LIVE(config_file)},
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
     "threads of the trainer; 0: as many as the machine grants", LIVE(threads)},
    {"processes", DP_SETTING_NUMBER, "N", "1", 1, 64,
     "processes of the trainer that share its threads and train as one on the CPU; best one per "
     "CPU socket",
     NUMBER(processes)},
    {"backend", DP_SETTING_TEXT, "NAME", "auto", 0, 0,
     "backend: auto (a GPU if its plugin is installed), cpu, cuda, cuda:1 (the second card), "
     "cuda:0,1 (two cards as one), or the path of a plugin",
     TEXT(backend)},
    {"nice", DP_SETTING_NUMBER, "N", "10", 0, 19, "niceness of the trainer", LIVE(nice)},
    {"celsius-max", DP_SETTING_NUMBER, "N", "0", 0, 150,
     "highest temperature of the processor or GPU in degrees Celsius; training pauses briefly to "
     "stay below it; 0: unlimited",
     LIVE(celsius_max)},
    {"watts-max", DP_SETTING_NUMBER, "N", "0", 0, 100000,
     "highest average power of a GPU in watts; training pauses briefly to stay below it; 0: "
     "unlimited",
     LIVE(watts_max)},
    {"vram-share", DP_SETTING_NUMBER, "PERCENT", "0", 0, 100,
     "largest share of a GPU's memory that training takes, by fewer sequences at a time; a model "
     "that does not fit is trained by the CPU; 0: all that is free",
     LIVE(vram_share)},
    {"yield-card", DP_SETTING_FLAG, "", "0", 0, 1,
     "give the GPUs and their memory back within a second when another program uses one of them, "
     "and train again a minute after it has ended",
     LIVE(yield_card)},
    {"schedule", DP_SETTING_TEXT, "WINDOWS", "", 0, 0,
     "local hours in which this node trains, such as 22:00-07:00, or mon-fri 22:00-07:00, sat-sun; "
     "empty, or always: at any time",
     LIVE(schedule)},
    {"idle-only", DP_SETTING_FLAG, "", "0", 0, 1,
     "train only while nobody uses the machine: no input at a terminal or laptop keyboard for "
     "three minutes, and other programs take less than a quarter of the processors",
     LIVE(idle_only)},
    {"not-on-battery", DP_SETTING_FLAG, "", "0", 0, 1, "train only while the machine is on mains",
     LIVE(not_on_battery)},
    {"upload-max", DP_SETTING_NUMBER, "MBIT", "0", 0, DP_CONFIG_MBIT_MAX,
     "largest upload rate in Mbit/s for updates, data and states; dpnode limits changes it; 0: "
     "unlimited",
     LIVE(upload_max)},
    {"download-max", DP_SETTING_NUMBER, "MBIT", "0", 0, DP_CONFIG_MBIT_MAX,
     "largest download rate in Mbit/s for updates, data and states; dpnode limits changes it; 0: "
     "unlimited",
     LIVE(download_max)},
    {"upload-month", DP_SETTING_BYTES, "SIZE", "0", 0, DP_BANDWIDTH_QUOTA_CAP_MAX,
     "upload quota per month, such as 200GB, spread over the rest of the month; dpnode limits "
     "changes it; 0: unlimited",
     LIVE(upload_month)},
    {"download-month", DP_SETTING_BYTES, "SIZE", "0", 0, DP_BANDWIDTH_QUOTA_CAP_MAX,
     "download quota per month, spread over the rest of the month; dpnode limits changes it; 0: "
     "unlimited",
     LIVE(download_month)},
    {"month-day", DP_SETTING_NUMBER, "DAY", "1", 1, DP_BANDWIDTH_QUOTA_DAY_MAX,
     "day on which the month begins, at 00:00 UTC", LIVE(month_day)},
    {"answer-time", DP_SETTING_NUMBER, "SECONDS", "300", 1, 86400,
     "time after which a trainer that does not answer is restarted", LIVE(answer_time)},
    {"apply-memory", DP_SETTING_BYTES, "SIZE", "4G", 0, UINT64_MAX,
     "memory for the updates of a round; a round with more bytes, or more than 32 updates, is "
     "summed in slices, two in memory at a time",
     NUMBER(apply_memory)},
    {"write-per-day", DP_SETTING_BYTES, "SIZE", "50G", 0, UINT64_MAX,
     "largest number of checkpoint bytes written per day; 0: a checkpoint after every round; a "
     "voter exceeds it for a checkpoint every 32 rounds",
     LIVE(write_per_day)},
    {"store-max", DP_SETTING_BYTES, "SIZE", "0", 0, UINT64_MAX,
     "largest size of the store; 0: unlimited", LIVE(store_max)},
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
     LIVE(drain_time)},
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
    {"machine-root", DP_SETTING_TEXT, "PATH", "", 0, 0,
     "for tests: folder with sys, proc and dev in place of this machine's", TEXT(machine_root)},
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

int dp_setting_find(const char *name, size_t size)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (strlen(settings[i].name) == size && memcmp(settings[i].name, name, size) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const char *dp_setting_nearest(const char *name, size_t size)
{
    char word[DP_NEAREST_SIZE_MAX + 2];
    snprintf(word, sizeof word, "%.*s", (int)(size < sizeof word ? size : sizeof word - 1), name);
    dp_nearest nearest = {.word = word};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        dp_nearest_offer(&nearest, settings[i].name);
    }
    return nearest.best;
}

static uint64_t number_of(const dp_config *config, const dp_setting *setting)
{
    uint64_t number;
    memcpy(&number, (const char *)config + setting->offset, sizeof number);
    return number;
}

/* In the largest unit that is exact: steps of 1024 before those of 1000. */
static void size_text(uint64_t number, char text[DP_CONFIG_VALUE_MAX])
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {
        {"T", UINT64_C(1) << 40},     {"TB", UINT64_C(1000000000000)}, {"G", UINT64_C(1) << 30},
        {"GB", UINT64_C(1000000000)}, {"M", UINT64_C(1) << 20},        {"MB", UINT64_C(1000000)},
        {"K", UINT64_C(1) << 10},     {"KB", UINT64_C(1000)},          {"", 1}};
    size_t i = number == 0 ? sizeof units / sizeof units[0] - 1 : 0;
    while (number % units[i].bytes != 0) {
        i++;
    }
    snprintf(text, DP_CONFIG_VALUE_MAX, "%llu%s", (unsigned long long)(number / units[i].bytes),
             units[i].unit);
}

void dp_config_text(const dp_config *config, const dp_setting *setting,
                    char text[DP_CONFIG_VALUE_MAX])
{
    bool on = false;
    switch (setting->kind) {
    case DP_SETTING_TEXT:
        snprintf(text, DP_CONFIG_VALUE_MAX, "%s", (const char *)config + setting->offset);
        break;
    case DP_SETTING_FLAG:
        memcpy(&on, (const char *)config + setting->offset, sizeof on);
        snprintf(text, DP_CONFIG_VALUE_MAX, "%d", on ? 1 : 0);
        break;
    case DP_SETTING_NUMBER:
        snprintf(text, DP_CONFIG_VALUE_MAX, "%llu", (unsigned long long)number_of(config, setting));
        break;
    case DP_SETTING_BYTES:
        size_text(number_of(config, setting), text);
        break;
    }
}

bool dp_config_same(const dp_config *a, const dp_config *b, size_t index)
{
    char of_a[DP_CONFIG_VALUE_MAX];
    char of_b[DP_CONFIG_VALUE_MAX];
    dp_config_text(a, &settings[index], of_a);
    dp_config_text(b, &settings[index], of_b);
    return strcmp(of_a, of_b) == 0;
}

const char *dp_setting_from_text(dp_setting_from from)
{
    switch (from) {
    case DP_SETTING_STANDARD:
        return "default";
    case DP_SETTING_FILE:
        return "file";
    case DP_SETTING_ORDER:
        return "dpnode limits";
    case DP_SETTING_ENVIRONMENT:
        return "environment";
    case DP_SETTING_COMMAND:
        return "command line";
    case DP_SETTING_ORDER_NOW:
        return "dpnode limits, until the daemon ends";
    }
    return "?";
}
