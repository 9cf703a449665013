#include "daemon/host/bandwidth_quota.h"

#include <string.h>

#include "base/assert.h"

#define DAY_MS UINT64_C(86400000)
#define HOUR_MS UINT64_C(3600000)
#define WALL_MS_MAX UINT64_C(253402300799999) /* the end of the year 9999 */

enum {
    VERSION = 1,
    LIVED_DAYS_MAX = 32,
    EPOCH_DAYS = 719468, /* from 0000-03-01 to 1970-01-01 */
    ERA_DAYS = 146097,   /* 400 years */
    ERA_YEARS = 400
};

/* Years begin with March here, so that a leap day is the last one. Gregorian, of days since 1970;
 * after H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days and
 * days_from_civil. */
static uint64_t days_of(uint32_t number, uint32_t day)
{
    const uint64_t shifted = (uint64_t)number - 2; /* months since 0000-03 */
    const uint64_t year = shifted / 12;
    const uint64_t of_year = (153 * (shifted % 12) + 2) / 5 + day - 1;
    const uint64_t of_era = year % ERA_YEARS;
    return year / ERA_YEARS * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year -
           EPOCH_DAYS;
}

static uint32_t number_of(uint64_t days, uint32_t *day)
{
    const uint64_t shifted = days + EPOCH_DAYS;
    const uint64_t of_era = shifted % ERA_DAYS;
    const uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const uint64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    const uint64_t month = (5 * of_year + 2) / 153; /* since March */
    *day = (uint32_t)(of_year - (153 * month + 2) / 5 + 1);
    return (uint32_t)((shifted / ERA_DAYS * ERA_YEARS + year) * 12 + month + 2);
}

uint32_t dp_bandwidth_quota_number(uint64_t wall_ms, uint32_t day, uint64_t *begin_ms,
                                   uint64_t *end_ms)
{
    dp_assert(day >= 1 && day <= DP_BANDWIDTH_QUOTA_DAY_MAX);
    const uint64_t wall = wall_ms < WALL_MS_MAX ? wall_ms : WALL_MS_MAX;
    uint32_t of_month = 0;
    uint32_t number = number_of(wall / DAY_MS, &of_month);
    number -= of_month < day ? 1 : 0;
    if (begin_ms != NULL) { /* The first month of all may have begun before 1970. */
        *begin_ms = wall / DAY_MS < 31 && of_month < day ? 0 : days_of(number, day) * DAY_MS;
    }
    if (end_ms != NULL) {
        *end_ms = days_of(number + 1, day) * DAY_MS;
    }
    return number;
}

static uint64_t left_of(const dp_bandwidth_quota *month, dp_bandwidth_quota_way way, uint64_t cap)
{
    const uint64_t used = month->counts[0].used[way];
    return used < cap ? cap - used : 0;
}

uint64_t dp_bandwidth_quota_left_ms(const dp_bandwidth_quota *month)
{
    const uint64_t lived = month->counts[0].lived_ms;
    const uint64_t most = LIVED_DAYS_MAX * DAY_MS;
    uint64_t end_ms = 0;
    DP_IGNORE(dp_bandwidth_quota_number(month->wall_ms, month->day, NULL,
                                        &end_ms)); /* The end of this month is needed. */
    const uint64_t wall = month->wall_ms < end_ms ? end_ms - month->wall_ms : 0;
    const uint64_t alive = lived < most ? most - lived : 0;
    return wall < alive ? wall : alive;
}

/* The part of the remaining bytes that a span of the remaining time may use. */
static uint64_t share(const dp_bandwidth_quota *month, uint64_t left, uint64_t span_ms)
{
    const uint64_t until = dp_bandwidth_quota_left_ms(month);
    const unsigned __int128 time_ms = until > HOUR_MS ? until : HOUR_MS;
    return (uint64_t)((unsigned __int128)left * span_ms / time_ms);
}

static uint64_t saved_most(const dp_bandwidth_quota *month, uint64_t left)
{
    const uint64_t day = share(month, left, DAY_MS);
    return day < left ? day : left;
}

void dp_bandwidth_quota_init(dp_bandwidth_quota *month, uint32_t day, uint64_t wall_ms,
                             uint64_t now_ms)
{
    *month = (dp_bandwidth_quota){.day = day, .n = 1, .wall_ms = wall_ms, .now_ms = now_ms};
    month->counts[0].number = dp_bandwidth_quota_number(wall_ms, day, NULL, NULL);
    for (int way = 0; way < DP_BANDWIDTH_QUOTA_WAYS; way++) {
        month->saved[way] = UINT64_MAX;
    }
}

/* Puts the count of this month first; the others move back by one. */
static void turn_to(dp_bandwidth_quota *month, uint32_t number)
{
    dp_bandwidth_quota_count count = {.number = number};
    uint32_t at = 0;
    while (at < month->n && month->counts[at].number != number) {
        at++;
    }
    if (at < month->n) {
        count = month->counts[at];
    } else if (month->n < DP_BANDWIDTH_QUOTA_MONTHS_MAX) {
        month->n++;
    } else {
        at = DP_BANDWIDTH_QUOTA_MONTHS_MAX - 1;
    }
    memmove(month->counts + 1, month->counts, at * sizeof count);
    month->counts[0] = count;
}

static void save(dp_bandwidth_quota *month, const uint64_t caps[DP_BANDWIDTH_QUOTA_WAYS],
                 uint64_t passed_ms)
{
    for (int way = 0; way < DP_BANDWIDTH_QUOTA_WAYS; way++) {
        uint64_t *const saved = &month->saved[way];
        if (caps[way] == 0) {
            *saved = UINT64_MAX;
            continue;
        }
        const uint64_t left = left_of(month, (dp_bandwidth_quota_way)way, caps[way]);
        const uint64_t most = saved_most(month, left);
        const uint64_t more = share(month, left, passed_ms < DAY_MS ? passed_ms : DAY_MS);
        *saved = *saved >= most || more >= most - *saved ? most : *saved + more;
    }
}

void dp_bandwidth_quota_pass(dp_bandwidth_quota *month,
                             const uint64_t caps[DP_BANDWIDTH_QUOTA_WAYS], uint32_t day,
                             uint64_t wall_ms, uint64_t now_ms)
{
    const uint64_t passed_ms = now_ms > month->now_ms ? now_ms - month->now_ms : 0;
    const uint32_t number = dp_bandwidth_quota_number(wall_ms, day, NULL, NULL);
    month->counts[0].lived_ms += passed_ms;
    month->now_ms = now_ms;
    month->wall_ms = wall_ms;
    if (day != month->day) { /* The other counts belong to months with another first day. */
        month->day = day;
        month->n = 1;
        month->counts[0].number = number;
    }
    if (month->counts[0].number != number) {
        turn_to(month, number);
    }
    if (month->counts[0].lived_ms >= LIVED_DAYS_MAX * DAY_MS) {
        month->counts[0] = (dp_bandwidth_quota_count){.number = number};
    }
    save(month, caps, passed_ms);
}

void dp_bandwidth_quota_use(dp_bandwidth_quota *month, dp_bandwidth_quota_way way, uint64_t bytes)
{
    uint64_t *const used = &month->counts[0].used[way];
    uint64_t *const saved = &month->saved[way];
    *used = bytes < UINT64_MAX - *used ? *used + bytes : UINT64_MAX;
    if (*saved != UINT64_MAX) {
        *saved -= bytes < *saved ? bytes : *saved;
    }
}

uint64_t dp_bandwidth_quota_rate(const dp_bandwidth_quota *month, dp_bandwidth_quota_way way,
                                 uint64_t cap)
{
    dp_assert(cap <= DP_BANDWIDTH_QUOTA_CAP_MAX);
    if (cap == 0) {
        return UINT64_MAX;
    }
    const uint64_t left = left_of(month, way, cap);
    const uint64_t most = saved_most(month, left);
    const uint64_t saved = month->saved[way] < most ? month->saved[way] : most;
    const uint64_t rate = share(month, left, 1000) + saved / (HOUR_MS / 1000);
    return left == 0 ? 0 : rate > 0 ? rate : 1;
}

dp_view dp_bandwidth_quota_write(const dp_bandwidth_quota *month,
                                 uint8_t out[DP_BANDWIDTH_QUOTA_BYTES_MAX])
{
    dp_writer writer = dp_writer_of(out, DP_BANDWIDTH_QUOTA_BYTES_MAX);
    dp_view view = dp_view_of(out, 0);
    dp_write_u8(&writer, VERSION);
    dp_write_u8(&writer, (uint8_t)month->day);
    dp_write_u16(&writer, (uint16_t)month->n);
    for (uint32_t i = 0; i < month->n; i++) {
        dp_write_u32(&writer, month->counts[i].number);
        dp_write_u64(&writer, month->counts[i].lived_ms);
        dp_write_u64(&writer, month->counts[i].used[DP_BANDWIDTH_QUOTA_UP]);
        dp_write_u64(&writer, month->counts[i].used[DP_BANDWIDTH_QUOTA_DOWN]);
    }
    dp_write_u64(&writer, month->saved[DP_BANDWIDTH_QUOTA_UP]);
    dp_write_u64(&writer, month->saved[DP_BANDWIDTH_QUOTA_DOWN]);
    const dp_status status = dp_writer_finish(&writer, &view);
    dp_assert(status == DP_OK);
    return view;
}

/* Checks: the count of now exists, and each month occurs once. */
static bool is_good(const dp_bandwidth_quota *month)
{
    if (month->day < 1 || month->day > DP_BANDWIDTH_QUOTA_DAY_MAX || month->n < 1) {
        return false;
    }
    for (uint32_t i = 0; i < month->n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (month->counts[i].number == month->counts[k].number) {
                return false;
            }
        }
    }
    return true;
}

dp_status dp_bandwidth_quota_read(dp_bandwidth_quota *month, dp_view bytes)
{
    dp_bandwidth_quota read = *month;
    dp_reader reader = dp_reader_of(bytes);
    if (dp_read_u8(&reader) != VERSION) {
        return reader.failed ? DP_CORRUPT : DP_VERSION;
    }
    read.day = dp_read_u8(&reader);
    read.n = dp_read_u16(&reader);
    if (read.n > DP_BANDWIDTH_QUOTA_MONTHS_MAX) {
        return DP_CORRUPT;
    }
    for (uint32_t i = 0; i < read.n; i++) {
        read.counts[i].number = dp_read_u32(&reader);
        read.counts[i].lived_ms = dp_read_u64(&reader);
        read.counts[i].used[DP_BANDWIDTH_QUOTA_UP] = dp_read_u64(&reader);
        read.counts[i].used[DP_BANDWIDTH_QUOTA_DOWN] = dp_read_u64(&reader);
    }
    read.saved[DP_BANDWIDTH_QUOTA_UP] = dp_read_u64(&reader);
    read.saved[DP_BANDWIDTH_QUOTA_DOWN] = dp_read_u64(&reader);
    if (dp_reader_finish(&reader) != DP_OK || !is_good(&read)) {
        return DP_CORRUPT;
    }
    *month = read;
    return DP_OK;
}
