/* The hours in which the owner lets this node train: windows of the local week. A parser and a
 * calendar; reads no clock.
 *
 * Text: windows separated by commas. A window is days, times, or both: "22:00-07:00", "sat-sun",
 * "mon-fri 22:00-07:00". A window whose end is not after its begin lasts into the next day; its
 * days are those on which it begins. Empty, or "always": any time.
 *
 * A window goes by the time that the local clock shows (base/local_time.h): where the clock is set
 * forward over it, it is shorter or does not come; where an hour comes twice, both are inside. */
#ifndef DP_DAEMON_OWNER_TRAINING_HOURS_H
#define DP_DAEMON_OWNER_TRAINING_HOURS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { DP_HOURS_WINDOWS_MAX = 16, DP_HOURS_TEXT_MAX = 160 };

typedef struct dp_hours {
    uint32_t n; /* 0: any time */
    struct {
        uint8_t days;     /* bit 0: it begins on Mondays */
        uint16_t from;    /* minutes since midnight */
        uint16_t minutes; /* its length, at least 1, at most a day */
    } windows[DP_HOURS_WINDOWS_MAX];
} dp_hours;

/* DP_BADARG: why names the window and the mistake; *hours stays. */
DP_MUST dp_status dp_hours_read(dp_hours *hours, const char *text, dp_why *why);
/* Is it inside a window? */
bool dp_hours_open(const dp_hours *schedule, uint64_t now_ms);
/* The first full minute after now at which that is otherwise; 0: none within eight days. Some
 * milliseconds at most. */
uint64_t dp_hours_next(const dp_hours *schedule, uint64_t now_ms);

#endif
