/* Keeps the daemon's state for a second, so that many readers of it cost one question; lists of
 * rounds and events are asked for each time. Blocks, with a bound: a daemon that hangs holds a
 * question up for DP_SOURCE_WAIT_MS. One thread. */
#ifndef DP_CLI_WATCH_SOURCE_H
#define DP_CLI_WATCH_SOURCE_H

#include <jansson.h>

#include "cli/cmd.h"

enum {
    DP_SOURCE_FRESH_MS = 900, /* an answer of this age is still used */
    DP_SOURCE_WAIT_MS = 2000,
    DP_SOURCE_LAST_MAX = 512 /* rounds or events in one answer */
};

typedef struct dp_source {
    const char *socket;     /* borrowed */
    json_t *status;         /* NULL: no daemon answered the last question */
    json_t *peers;          /* NULL as status, or in no run */
    dp_control_error error; /* why status is NULL */
    uint64_t asked_ms;      /* when the last question was asked; 0: never */
    uint64_t version;       /* a number more with each answer, or failure */
} dp_source;

void dp_source_open(dp_source *source, const char *socket);
void dp_source_close(dp_source *source);

/* Asks for status and peers if the last answer is too old. now_ms: of a clock that only rises, and
 * at least 1. */
void dp_source_look(dp_source *source, uint64_t now_ms);

/* The next look asks, however fresh the last answer is: something was ordered. */
void dp_source_expire(dp_source *source);

/* The newest rounds or events (method is "rounds" or "events"), at most last, oldest first: a new
 * reference to an array. NULL: *error tells why. */
json_t *dp_source_list(const dp_source *source, const char *method, uint32_t last,
                       dp_control_error *error);

#endif
