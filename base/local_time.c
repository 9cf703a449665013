#include "base/local_time.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

enum {
    YEAR_MIN = 1970,
    YEAR_BASE = 1900, /* of struct tm */
    MINUTE_MS = 60000,
    SEARCH_MINUTES = 3 * DP_DAY_MINUTES, /* A day may be skipped whole (Samoa, 2011). */
    ZONE_MINUTES = 26 * 60,       /* No zone is so far from UTC, plus a change of the clock. */
    THURSDAY = 3 * DP_DAY_MINUTES /* 1970-01-01, in a week from Monday on */
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

uint64_t dp_local_at(int64_t minutes)
{
    const int64_t first = minutes > ZONE_MINUTES ? minutes - ZONE_MINUTES : 0;
    const int64_t end = first + (int64_t)2 * ZONE_MINUTES;
    int64_t at = first;
    while (at < end && dp_local_minutes((uint64_t)at * MINUTE_MS) < minutes) {
        at++;
    }
    return (uint64_t)at * MINUTE_MS;
}

/* Reads from least to most digits; *end is after them. */
static bool read_digits(const char *text, unsigned least, unsigned most, uint64_t *number,
                        const char **end)
{
    uint64_t value = 0;
    unsigned n = 0;
    for (; n < most && text[n] >= '0' && text[n] <= '9'; n++) {
        value = 10 * value + (uint64_t)(text[n] - '0');
    }
    if (n < least) {
        return false;
    }
    *number = value;
    *end = text + n;
    return true;
}

bool dp_span_read(const char *text, uint64_t *seconds)
{
    static const struct {
        const char *unit;
        uint64_t seconds;
    } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}};
    const char *end = "";
    uint64_t value = 0;
    if (!read_digits(text, 1, 10, &value, &end) || value == 0 || value >= UINT32_MAX) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].unit) == 0) {
            *seconds = value * units[i].seconds;
            return true;
        }
    }
    return false;
}

/* Reads digits, and the character after them, which it skips. */
static bool read_part(const char **text, unsigned n_digits, char after, int *part)
{
    uint64_t value = 0;
    const char *end = "";
    if (!read_digits(*text, n_digits, n_digits, &value, &end) || *end != after) {
        return false;
    }
    *part = (int)value;
    *text = end + (after != '\0');
    return true;
}

/* The date and time at the start of text, with or without seconds, as minutes of the calendar since
 * 1970 and seconds. */
static bool read_date(const char *text, int64_t *minutes, int *second)
{
    struct tm parts = {0};
    const char *at = text;
    if (!read_part(&at, 4, '-', &parts.tm_year) || !read_part(&at, 2, '-', &parts.tm_mon) ||
        !read_part(&at, 2, 'T', &parts.tm_mday) || !read_part(&at, 2, ':', &parts.tm_hour)) {
        return false;
    }
    *second = 0;
    if (!read_part(&at, 2, '\0', &parts.tm_min) &&
        (!read_part(&at, 2, ':', &parts.tm_min) || !read_part(&at, 2, '\0', second))) {
        return false;
    }
    if (parts.tm_year < YEAR_MIN || parts.tm_hour > 23 || parts.tm_min > 59 || *second > 59) {
        return false;
    }
    parts.tm_year -= YEAR_BASE;
    parts.tm_mon -= 1;
    const struct tm wanted = parts;
    const time_t at_s = timegm(&parts); /* It moves a 30th of February to March. */
    *minutes = (int64_t)at_s / 60;
    return at_s >= 0 && parts.tm_mon == wanted.tm_mon && parts.tm_mday == wanted.tm_mday;
}

/* The last time that is not after now, or the first one after it. */
static uint64_t day_time(uint64_t now_ms, uint32_t minute, dp_instant_side side)
{
    if (side == DP_INSTANT_AFTER) {
        return dp_local_next(now_ms, minute % DP_DAY_MINUTES);
    }
    const int64_t day = dp_local_minutes(now_ms) / DP_DAY_MINUTES * DP_DAY_MINUTES;
    const uint64_t today = dp_local_at(day + minute % DP_DAY_MINUTES);
    return today <= now_ms ? today : dp_local_at(day - DP_DAY_MINUTES + minute % DP_DAY_MINUTES);
}

bool dp_instant_read(const char *text, uint64_t now_ms, dp_instant_side side, uint64_t *unix_ms)
{
    const char *end = "";
    uint64_t seconds = 0;
    uint32_t minute = 0;
    int64_t minutes = 0;
    int second = 0;
    if (side == DP_INSTANT_BEFORE && dp_span_read(text, &seconds)) {
        if (seconds * 1000 > now_ms) {
            return false;
        }
        *unix_ms = now_ms - seconds * 1000;
        return true;
    }
    if (dp_day_time_read(text, &minute, &end) && *end == '\0') {
        *unix_ms = day_time(now_ms, minute, side);
        return true;
    }
    if (!read_date(text, &minutes, &second)) {
        return false;
    }
    *unix_ms = dp_local_at(minutes) + (uint64_t)second * 1000;
    return true;
}
