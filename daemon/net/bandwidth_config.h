/* The bandwidth settings of the owner: one value each, and its source. At the start the command
 * line wins over the environment, over a stored value of `dpnode limits`, over the default; while
 * the daemon runs, the last change wins. A table and bytes; bandwidth_limiter.h applies them. */
#ifndef DP_DAEMON_NET_BANDWIDTH_CONFIG_H
#define DP_DAEMON_NET_BANDWIDTH_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "daemon/host/config.h"

typedef enum dp_bandwidth_config {
    DP_BANDWIDTH_CONFIG_UPLOAD = 0, /* Mbit/s; 0: unlimited */
    DP_BANDWIDTH_CONFIG_DOWNLOAD,
    DP_BANDWIDTH_CONFIG_UPLOAD_MONTH, /* bytes; 0: unlimited */
    DP_BANDWIDTH_CONFIG_DOWNLOAD_MONTH,
    DP_BANDWIDTH_CONFIG_MONTH_DAY, /* day on which a month begins */
    DP_BANDWIDTH_CONFIG_COUNT
} dp_bandwidth_config;

typedef struct dp_bandwidth_config_row {
    const char *key;     /* of the control protocol */
    const char *setting; /* of the daemon */
    uint64_t least;
    uint64_t most;
} dp_bandwidth_config_row;
extern const dp_bandwidth_config_row dp_bandwidth_config_rows[DP_BANDWIDTH_CONFIG_COUNT];

typedef enum dp_bandwidth_config_from {
    DP_BANDWIDTH_CONFIG_STANDARD = 0,
    DP_BANDWIDTH_CONFIG_ENVIRONMENT,
    DP_BANDWIDTH_CONFIG_COMMAND,
    DP_BANDWIDTH_CONFIG_KEPT, /* dpnode limits, stored */
    /* dpnode limits, until the daemon ends: then the command line or the environment applies
     * again */
    DP_BANDWIDTH_CONFIG_NOW
} dp_bandwidth_config_from;
const char *dp_bandwidth_config_from_text(dp_bandwidth_config_from from);

typedef struct dp_bandwidth_config_value {
    uint64_t value;
    dp_bandwidth_config_from from;
    uint64_t said; /* by the config */
    dp_bandwidth_config_from said_from;
    bool kept; /* dpnode limits has set this one: */
    uint64_t kept_value;
} dp_bandwidth_config_value;

typedef struct dp_bandwidth_config_set {
    dp_bandwidth_config_value values[DP_BANDWIDTH_CONFIG_COUNT];
} dp_bandwidth_config_set;

/* At the start of a daemon without stored settings. */
void dp_bandwidth_config_begin(dp_bandwidth_config_set *set, const dp_config *config);
/* By dpnode limits; within the bounds of its row. */
void dp_bandwidth_config_change(dp_bandwidth_config_set *set, dp_bandwidth_config which,
                                uint64_t value);

enum { DP_BANDWIDTH_CONFIG_BYTES_MAX = 2 + DP_BANDWIDTH_CONFIG_COUNT * (1 + 8) };
/* The stored form: u8 version 1 | u8 n | n times {u8 which, rising | u64 value}; little-endian. */
dp_view dp_bandwidth_config_write(const dp_bandwidth_config_set *set,
                                  uint8_t out[DP_BANDWIDTH_CONFIG_BYTES_MAX]);
/* After dp_bandwidth_config_begin. DP_CORRUPT, DP_VERSION: the set stays as it was. */
DP_MUST dp_status dp_bandwidth_config_read(dp_bandwidth_config_set *set, dp_view bytes);

#endif
