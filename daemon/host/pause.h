/* The owner's pause: its start, and the user of this machine that ordered it. Bytes of the store's
 * row "pause", no I/O. The row exists exactly while the pause holds, so a row that cannot be read
 * still means that the node is paused. */
#ifndef DP_DAEMON_HOST_PAUSE_H
#define DP_DAEMON_HOST_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_PAUSE_USER_MAX = 32, DP_PAUSE_BYTES_MAX = 2 + 8 + DP_PAUSE_USER_MAX };

typedef struct dp_pause {
    bool holds;
    uint64_t since_ms;                /* unix; 0: unknown */
    char user[DP_PAUSE_USER_MAX + 1]; /* "": not known */
} dp_pause;

/* u8 version 1 | u64 since_ms | u8 size, user. */
dp_view dp_pause_write(const dp_pause *pause, uint8_t out[DP_PAUSE_BYTES_MAX]);
/* The pause is in force even if the bytes cannot be read. DP_CORRUPT, DP_VERSION: its start and its
 * author are not known. */
DP_MUST dp_status dp_pause_read(dp_pause *pause, dp_view bytes);
/* ", by alice, since 2026-11-23 10:55:02 UTC"; unknown parts are left out. */
void dp_pause_text(const dp_pause *pause, char *text, size_t size);

#endif
