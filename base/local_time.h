/* Times as people write them (7:30, 90s, 2026-11-28T10:40), and the local time of the machine: the
 * zone of the environment variable TZ, else the system's. Reads no clock.
 *
 * Where a change of the clock skips an hour, a time in that hour is taken as the end of the gap;
 * where an hour comes twice, the first one counts. */
#ifndef DP_BASE_LOCAL_TIME_H
#define DP_BASE_LOCAL_TIME_H

#include <stdbool.h>
#include <stdint.h>

enum { DP_DAY_MINUTES = 24 * 60, DP_WEEK_MINUTES = 7 * DP_DAY_MINUTES };

/* Reads "7:30", "07:30", and "24:00", as minutes since midnight; *end is after it. False: any other
 * text; *minute stays. */
bool dp_day_time_read(const char *text, uint32_t *minute, const char **end);

/* Minutes of the local calendar since its 1970-01-01 00:00, as a clock on the wall shows them: they
 * jump when the clock is set. unix_ms below 2^53. */
int64_t dp_local_minutes(uint64_t unix_ms);
/* The same as minutes since Monday 00:00, below DP_WEEK_MINUTES. */
uint32_t dp_local_week_minute(uint64_t unix_ms);
/* The first instant after now at which the local clock shows this minute of a day (below
 * DP_DAY_MINUTES), or passes it. */
uint64_t dp_local_next(uint64_t now_ms, uint32_t minute);
/* The first instant at which the local clock shows these minutes of its calendar
 * (dp_local_minutes), or passes them; 0 where that is before 1970. */
uint64_t dp_local_at(int64_t minutes);

/* For errors: all forms that dp_instant_read takes, before now and after it. */
#define DP_INSTANT_FORMS_BEFORE "a time such as 10m, 2h or 3d, 10:40, or 2026-11-28T10:40"
#define DP_INSTANT_FORMS_AFTER "a local time of the day such as 07:30, or 2026-11-28T07:30"

/* Reads "90" and "90s", "15m" or "15min", "24h" and "7d", at least one second and at most 2^32 of
 * the unit. False: any other text; *seconds stays. */
bool dp_span_read(const char *text, uint64_t *seconds);

typedef enum dp_instant_side { DP_INSTANT_BEFORE = 0, DP_INSTANT_AFTER } dp_instant_side;

/* Reads an instant, in local time. Before now: a span (so long ago), the last time of the day that
 * is not after now ("10:40"), or a date with a time. After now: the first such time of the day
 * after it, or a date with a time; a span is none, since options for lengths exist. A date's time
 * may have seconds ("2026-11-28T10:40:05"); it may lie on either side of now. False: any other
 * text, a date that no calendar has, or an instant before 1970; *unix_ms stays. now_ms below
 * 2^53. */
bool dp_instant_read(const char *text, uint64_t now_ms, dp_instant_side side, uint64_t *unix_ms);

#endif
