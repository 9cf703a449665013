/* The owner's pause: its start, its end, and the user of this machine that ordered it. Bytes of the
 * store's row "pause", no I/O. The row exists exactly while an order is in force, so a row that
 * cannot be read still means that the node is paused. */
#ifndef DP_DAEMON_OWNER_PAUSE_H
#define DP_DAEMON_OWNER_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    DP_PAUSE_USER_MAX = 32,
    DP_PAUSE_BYTES_MAX = 2 + 8 + DP_PAUSE_USER_MAX + 8 + 8 + 1,
    DP_PAUSE_TEXT_MAX = DP_PAUSE_USER_MAX + 160
};
/* The longest pause that has an end: a year and a day. */
#define DP_PAUSE_MS_MAX (UINT64_C(366) * 86400 * 1000)

typedef struct dp_pause {
    bool holds;        /* there is an order */
    bool waits;        /* it begins when a round has counted this node's work */
    uint64_t since_ms; /* unix, of its start, of the order while it waits; 0: unknown */
    uint64_t until_ms; /* unix; 0: until resume, or not known while it waits */
    /* its length, where the owner has given that: it counts time that passes, and a changed clock
     * does not change it. 0: until_ms is a time of the clock */
    uint64_t for_ms;
    char user[DP_PAUSE_USER_MAX + 1]; /* "": not known */
} dp_pause;

/* u8 version 2 | u64 since_ms | u8 size, user | u64 until_ms | u64 for_ms | u8 waits, 0 or 1.
 * Version 1, which is read too, ends after user. */
dp_view dp_pause_write(const dp_pause *pause, uint8_t out[DP_PAUSE_BYTES_MAX]);
/* The pause is in force even if the bytes cannot be read. DP_CORRUPT, DP_VERSION: its start, its
 * end and its author are not known. */
DP_MUST dp_status dp_pause_read(dp_pause *pause, dp_view bytes);
/* It begins: the node trains no more. */
void dp_pause_begin(dp_pause *pause, uint64_t now_ms);
/* Is it in force, and at its end? */
bool dp_pause_is_over(const dp_pause *pause, uint64_t now_ms);
/* The clock has been set, forward by moved_ms: a pause of a length keeps what is left of it. True
 * if that changed its end. */
bool dp_pause_clock_moved(dp_pause *pause, int64_t moved_ms);
/* At the start of a daemon, which knows no time but the clock's: a pause that waited begins, and
 * one of a length lasts no longer than that from now on, even if the clock was set back. True if
 * this changed the pause. */
bool dp_pause_restart(dp_pause *pause, uint64_t now_ms);
/* ", by alice, since 2026-11-23 10:55:02 CET, until 2026-11-23 12:55:02 CET", in local time;
 * unknown parts are left out. While it waits: ", by alice, when a round has counted this node's
 * work, for 2 h". text has room for DP_PAUSE_TEXT_MAX. */
void dp_pause_text(const dp_pause *pause, char *text, size_t size);

#endif
