#include "daemon/owner/training_hours.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/local_time.h"

enum { DAYS = 7, MINUTE_MS = 60000, SEARCH_MINUTES = 8 * DP_DAY_MINUTES, ALL_DAYS = 0x7f };

static const char *const day_names[DAYS] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

static const char *skip_spaces(const char *text)
{
    while (*text == ' ') {
        text++;
    }
    return text;
}

/* The number of the day whose name text begins with; -1: none. */
static int day_at(const char *text)
{
    for (int day = 0; day < DAYS; day++) {
        if (strncasecmp(text, day_names[day], 3) == 0) {
            return day;
        }
    }
    return -1;
}

/* Reads "mon" or "fri-mon" at *text, if there is a letter; days stays otherwise. */
static bool read_days(const char **text, uint8_t *days, bool *any)
{
    const char *at = *text;
    *any = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
    if (!*any) {
        return true;
    }
    const int first = day_at(at);
    int last = first;
    at += first >= 0 ? 3 : 0;
    if (first >= 0 && *at == '-') {
        last = day_at(at + 1);
        at += 4;
    }
    if (first < 0 || last < 0 || (*at != '\0' && *at != ' ' && *at != ',')) {
        return false;
    }
    *days = 0;
    for (int day = first;; day = (day + 1) % DAYS) {
        *days |= (uint8_t)(1U << day);
        if (day == last) {
            break;
        }
    }
    *text = skip_spaces(at);
    return true;
}

static dp_status refuse(dp_why *why, uint32_t number, const char *window, const char *mistake)
{
    const int size = (int)strcspn(window, ",");
    return dp_why_set(why, DP_BADARG, "window %u, \"%.*s\", %s", number, size < 40 ? size : 40,
                      window, mistake);
}

/* One window at *text, which is then after it. */
static dp_status read_window(const char **text, uint32_t number, dp_hours *schedule, dp_why *why)
{
    const char *const window = *text;
    uint8_t days = ALL_DAYS;
    uint32_t from = 0;
    uint32_t to = DP_DAY_MINUTES;
    bool named = false;
    if (number > DP_HOURS_WINDOWS_MAX) {
        return dp_why_set(why, DP_BADARG, "at most %d windows are possible", DP_HOURS_WINDOWS_MAX);
    }
    if (!read_days(text, &days, &named)) {
        return refuse(why, number, window,
                      "has an unknown day: use mon, tue, wed, thu, fri, sat, sun, or mon-fri");
    }
    if (!named || (**text != '\0' && **text != ',')) {
        if (!dp_day_time_read(*text, &from, text) || **text != '-' ||
            !dp_day_time_read(*text + 1, &to, text) || from == DP_DAY_MINUTES) {
            return refuse(why, number, window,
                          "is not like 22:00-07:00, mon-fri 22:00-07:00 or sat");
        }
        if (from == to) {
            return refuse(why, number, window,
                          "is empty: it ends when it begins; a whole day is 00:00-24:00");
        }
    }
    *text = skip_spaces(*text);
    if (**text != '\0' && **text != ',') {
        return refuse(why, number, window,
                      "has something after its end; separate windows by commas");
    }
    schedule->windows[schedule->n].days = days;
    schedule->windows[schedule->n].from = (uint16_t)from;
    schedule->windows[schedule->n].minutes =
        (uint16_t)(to > from ? to - from : to + DP_DAY_MINUTES - from);
    schedule->n++;
    return DP_OK;
}

dp_status dp_hours_read(dp_hours *hours, const char *text, dp_why *why)
{
    dp_hours read = {.n = 0};
    const char *at = skip_spaces(text);
    bool more = *at != '\0' && strcasecmp(at, "always") != 0;
    for (uint32_t number = 1; more; number++) {
        DP_TRY(read_window(&at, number, &read, why));
        more = *at == ',';
        at = more ? skip_spaces(at + 1) : at;
    }
    *hours = read;
    return DP_OK;
}

static bool is_inside(const dp_hours *schedule, uint32_t minute)
{
    for (uint32_t i = 0; i < schedule->n; i++) {
        for (uint32_t day = 0; day < DAYS; day++) {
            const uint32_t begin = day * DP_DAY_MINUTES + schedule->windows[i].from;
            const uint32_t passed = (minute + DP_WEEK_MINUTES - begin) % DP_WEEK_MINUTES;
            if ((schedule->windows[i].days >> day & 1U) != 0 &&
                passed < schedule->windows[i].minutes) {
                return true;
            }
        }
    }
    return schedule->n == 0;
}

bool dp_hours_open(const dp_hours *schedule, uint64_t now_ms)
{
    return is_inside(schedule, dp_local_week_minute(now_ms));
}

uint64_t dp_hours_next(const dp_hours *schedule, uint64_t now_ms)
{
    const bool open = dp_hours_open(schedule, now_ms);
    const uint64_t first = now_ms / MINUTE_MS + 1;
    for (uint64_t at = first; schedule->n > 0 && at < first + SEARCH_MINUTES; at++) {
        if (dp_hours_open(schedule, at * MINUTE_MS) != open) {
            return at * MINUTE_MS;
        }
    }
    return 0;
}
