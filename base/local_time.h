/* Times of the day as people write them, and the local time of the machine: the zone of the
 * environment variable TZ, else the system's. Reads no clock.
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

#endif
