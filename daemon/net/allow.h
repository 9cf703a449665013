/* What the owner allows this node to take of its line: one value each, and who has said it. Who
 * says what last wins while the daemon runs; at its start the command line wins, then the
 * environment, then what `dpnode limits` has set once, then the default. A table and bytes;
 * allowance.h acts by it. */
#ifndef DP_DAEMON_NET_ALLOW_H
#define DP_DAEMON_NET_ALLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "daemon/host/config.h"

typedef enum dp_allow {
    DP_ALLOW_UPLOAD = 0, /* Mbit/s; 0: any */
    DP_ALLOW_DOWNLOAD,
    DP_ALLOW_UPLOAD_MONTH, /* bytes; 0: any */
    DP_ALLOW_DOWNLOAD_MONTH,
    DP_ALLOW_MONTH_DAY, /* on which a month begins */
    DP_ALLOWS
} dp_allow;

typedef struct dp_allow_row {
    const char *key;     /* of the control protocol */
    const char *setting; /* of the daemon */
    uint64_t least;
    uint64_t most;
} dp_allow_row;
extern const dp_allow_row dp_allow_rows[DP_ALLOWS];

typedef enum dp_allow_from {
    DP_ALLOW_STANDARD = 0,
    DP_ALLOW_ENVIRONMENT,
    DP_ALLOW_COMMAND,
    DP_ALLOW_KEPT, /* dpnode limits, and so it stays */
    /* dpnode limits, until the daemon ends: then the command line or the environment says so
     * again */
    DP_ALLOW_NOW
} dp_allow_from;
const char *dp_allow_from_text(dp_allow_from from);

typedef struct dp_allow_value {
    uint64_t value;
    dp_allow_from from;
    uint64_t said; /* by the config */
    dp_allow_from said_from;
    bool kept; /* dpnode limits has set this one: */
    uint64_t kept_value;
} dp_allow_value;

typedef struct dp_allow_set {
    dp_allow_value values[DP_ALLOWS];
} dp_allow_set;

/* At the start of a daemon that keeps nothing yet. */
void dp_allow_begin(dp_allow_set *set, const dp_config *config);
/* By dpnode limits; within the bounds of its row. */
void dp_allow_change(dp_allow_set *set, dp_allow which, uint64_t value);

enum { DP_ALLOW_BYTES_MAX = 2 + DP_ALLOWS * (1 + 8) };
/* What is kept: u8 version 1 | u8 n | n times {u8 which, rising | u64 value}; little-endian. */
dp_view dp_allow_write(const dp_allow_set *set, uint8_t out[DP_ALLOW_BYTES_MAX]);
/* After dp_allow_begin. DP_CORRUPT, DP_VERSION: the set stays as it was. */
DP_MUST dp_status dp_allow_read(dp_allow_set *set, dp_view bytes);

#endif
