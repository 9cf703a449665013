#include "base/local_time.h"

#include <time.h>

enum {
    MINUTE_MS = 60000,
    SEARCH_MINUTES = 3 * DP_DAY_MINUTES, /* A day may be skipped whole (Samoa, 2011). */
    THURSDAY = 3 * DP_DAY_MINUTES        /* 1970-01-01, in a week from Monday on */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool dp_day_time_read(const char *text, uint32_t *minute, const char **end)
{
    uint32_t hour = 0;
    unsigned n = 0;
    for (; n < 2 && is_digit(text[n]); n++) {
        hour = 10 * hour + (uint32_t)(text[n] - '0');
    }
    const char *const rest = text + n;
    if (n == 0 || rest[0] != ':' || !is_digit(rest[1]) || !is_digit(rest[2]) || is_digit(rest[3])) {
        return false;
    }
    const uint32_t past = (uint32_t)(10 * (rest[1] - '0') + rest[2] - '0');
    if (past >= 60 || hour * 60 + past > DP_DAY_MINUTES) {
        return false;
    }
    *minute = hour * 60 + past;
    *end = rest + 3;
    return true;
}

int64_t dp_local_minutes(uint64_t unix_ms)
{
    const time_t at = (time_t)(unix_ms / 1000);
    struct tm parts = {0};
    if (localtime_r(&at, &parts) == NULL) {
        return (int64_t)(unix_ms / MINUTE_MS); /* beyond any calendar */
    }
    parts.tm_sec = 0;
    return (int64_t)timegm(&parts) / 60;
}

uint32_t dp_local_week_minute(uint64_t unix_ms)
{
    const int64_t minutes = (dp_local_minutes(unix_ms) + THURSDAY) % DP_WEEK_MINUTES;
    return (uint32_t)(minutes < 0 ? minutes + DP_WEEK_MINUTES : minutes);
}

/* The number of days that have reached this minute, up to that moment of the local clock. */
static int64_t days_with(int64_t local, uint32_t minute)
{
    const int64_t from = local - minute;
    return from >= 0 ? from / DP_DAY_MINUTES : -1 - (-1 - from) / DP_DAY_MINUTES;
}

uint64_t dp_local_next(uint64_t now_ms, uint32_t minute)
{
    const uint64_t first = now_ms / MINUTE_MS + 1;
    int64_t furthest = days_with(dp_local_minutes(now_ms), minute);
    for (uint64_t at = first; at < first + SEARCH_MINUTES; at++) {
        const int64_t days = days_with(dp_local_minutes(at * MINUTE_MS), minute);
        if (days > furthest) {
            return at * MINUTE_MS;
        }
    }
    return (first + DP_DAY_MINUTES) * MINUTE_MS;
}
