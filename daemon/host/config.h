/* The daemon's settings: one table row per setting drives parsing, checks, `dpnoded --help` and
 * `dpnode config show`. The program sees a const dp_config, whose live settings config_live.h
 * changes while it runs. */
#ifndef DP_DAEMON_HOST_CONFIG_H
#define DP_DAEMON_HOST_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "daemon/owner/machine_use.h"
#include "daemon/owner/training_hours.h"
#include "gossip/identity/invite.h"

enum {
    DP_CONFIG_PATH_MAX = 512,
    DP_CONFIG_NAME_MAX = 32,
    DP_CONFIG_MBIT_MAX = 100000,
    DP_CONFIG_SETTINGS_MAX = 48
};

/* The source of a setting. */
typedef enum dp_setting_from {
    DP_SETTING_STANDARD = 0,
    DP_SETTING_FILE,
    DP_SETTING_ORDER, /* dpnode limits, stored */
    DP_SETTING_ENVIRONMENT,
    DP_SETTING_COMMAND, /* the command line, which wins at the start */
    /* dpnode limits, until the daemon ends: then the command line or the environment applies
     * again */
    DP_SETTING_ORDER_NOW
} dp_setting_from;

typedef struct dp_config {
    char dir[DP_CONFIG_PATH_MAX];
    char socket[DP_CONFIG_PATH_MAX];
    char config_file[DP_CONFIG_PATH_MAX]; /* empty: none is read */
    char listen[DP_ADDRESS_TEXT_MAX + 8]; /* "ADDR:PORT"; port 0: any */
    char advertise[DP_CONFIG_PATH_MAX];   /* addresses for others to dial; empty: by listen */
    char name[DP_CONFIG_NAME_MAX + 1];
    char worker[DP_CONFIG_PATH_MAX];  /* path of dpnode-worker */
    char backend[DP_CONFIG_PATH_MAX]; /* of the trainer */
    char log_level[8];
    char log_file[DP_CONFIG_PATH_MAX];      /* empty: standard error */
    uint64_t threads;                       /* of the trainer; 0: as many as the machine allows */
    uint64_t processes;                     /* of the trainer, which share the threads */
    uint64_t nice;                          /* of the trainer */
    uint64_t celsius_max;                   /* 0: none */
    uint64_t watts_max;                     /* 0: none */
    uint64_t vram_share;                    /* percent of a card's memory; 0: all that is free */
    char schedule[DP_HOURS_TEXT_MAX];       /* hours of training; empty: any time */
    uint64_t upload_max;                    /* Mbit/s from the start; 0: unlimited */
    uint64_t download_max;                  /* the same */
    uint64_t upload_month;                  /* bytes per month from the start; 0: unlimited */
    uint64_t download_month;                /* the same */
    uint64_t month_day;                     /* day on which a month begins, UTC */
    uint64_t answer_time;                   /* seconds */
    uint64_t apply_memory;                  /* bytes */
    uint64_t write_per_day;                 /* bytes of checkpoints; 0: every round */
    uint64_t store_max;                     /* bytes; 0: no quota */
    uint64_t ballast;                       /* bytes */
    uint64_t margin;                        /* bytes that must stay free on the disk */
    uint64_t drain_time;                    /* seconds */
    char drain_on_file[DP_CONFIG_PATH_MAX]; /* empty: none is looked for */
    char token_file[DP_CONFIG_PATH_MAX];    /* empty: none is looked for */
    char create_from[DP_CONFIG_PATH_MAX];   /* empty: no run is created without a command */
    char token[DP_TOKEN_TEXT_MAX + 2];      /* DPNODE_TOKEN; empty: none */
    char machine_root[DP_MACHINE_ROOT_MAX]; /* for tests; empty: this machine */
    char cli[DP_CONFIG_PATH_MAX];           /* path of dpnode, beside the running program */
    bool network_dir;                       /* the directory may lie on a network file system */
    bool observer;
    bool idle_only;
    bool not_on_battery;
    bool yield_card;
    bool one_level;
    uint8_t from[DP_CONFIG_SETTINGS_MAX];  /* dp_setting_from of each row of the table */
    uint16_t line[DP_CONFIG_SETTINGS_MAX]; /* of the configuration file; 0: not from there */
} dp_config;

typedef enum dp_setting_kind {
    DP_SETTING_TEXT,
    DP_SETTING_NUMBER,
    DP_SETTING_BYTES,
    DP_SETTING_FLAG
} dp_setting_kind;

typedef struct dp_setting {
    const char *name; /* "listen": --listen, DPNODE_LISTEN */
    dp_setting_kind kind;
    const char *unit;     /* "ADDR:PORT" */
    const char *standard; /* default as text */
    uint64_t least;
    uint64_t most;
    const char *text; /* one sentence */
    size_t offset;
    size_t size; /* of a text field */
    bool live;   /* changes while the daemon runs; others need a restart */
} dp_setting;

const dp_setting *dp_settings(size_t *count);
/* Its index in the table; -1: there is none of this name. name need not end after size. */
int dp_setting_find(const char *name, size_t size);
/* The nearest name, for "did you mean"; NULL: none is near. */
const char *dp_setting_nearest(const char *name, size_t size);

/* Defaults: system folders for root, XDG folders otherwise; the worker beside the running
 * program. */
DP_MUST dp_status dp_config_default(dp_config *config, dp_why *why);
/* Set one by name. DP_NOTFOUND: no such setting. DP_BADARG: out of range or not a number; why says
 * which. */
DP_MUST dp_status dp_config_set(dp_config *config, const char *name, const char *value,
                                dp_why *why);
/* The setting must exist. */
dp_setting_from dp_config_from(const dp_config *config, const char *name);
enum { DP_CONFIG_VALUE_MAX = DP_CONFIG_PATH_MAX };
/* The value as dp_config_set reads it: sizes in the largest unit that is exact, flags as 1 or 0. */
void dp_config_text(const dp_config *config, const dp_setting *setting,
                    char text[DP_CONFIG_VALUE_MAX]);
/* True if the setting (its index) has the same value in both. */
bool dp_config_same(const dp_config *a, const dp_config *b, size_t index);
/* "file", "environment", ... for the source of a setting; lives for ever. */
const char *dp_setting_from_text(dp_setting_from from);

/* config_file.c: sets what the file at path says, lines `name = value`, blank ones and ones that
 * begin with #. DP_BADMSG with "FILE:LINE:COLUMN: sentence": an unknown name, a name that stands
 * twice, a value that dp_config_set refuses, or no file of at most DP_SETTING_FILE_MAX bytes;
 * DP_NOTFOUND; DP_IO: it cannot be read. Then config may have changed. */
DP_MUST dp_status dp_config_file_read(dp_config *config, const char *path, dp_why *why);
/* The same of the bytes of a file, whose path is only named. */
DP_MUST dp_status dp_config_file_parse(dp_config *config, const char *path, dp_view bytes,
                                       dp_why *why);
/* Defaults, then the configuration file, DPNODE_<NAME> and DPNODE_TOKEN from the environment, then
 * --name value and --name=value. A file that the setting config names must exist; its default need
 * not. argv[0] is skipped. If neither gives listen and advertise, the variables of clouds are used
 * (daemon/host/advertise.h). *help is set by --help, *version by --version. DP_BADARG with a
 * sentence; for the file as dp_config_file_read. */
DP_MUST dp_status dp_config_read(dp_config *config, int argc, char **argv, bool *help,
                                 bool *version, dp_why *why);

#endif
