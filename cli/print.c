#include "cli/print.h"

#include <langinfo.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"

enum { CELL_BYTES = 512 };

struct dp_table {
    struct libscols_table *table;
    struct libscols_line *line;
    unsigned column;
    bool failed;
};

void dp_print_bytes(uint64_t bytes, char text[DP_PRINT_CELL_MAX])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(text, DP_PRINT_CELL_MAX, "%.*f %s", unit == 0 || value >= 100 ? 0 : 1, value,
             units[unit]);
}

void dp_print_rate(uint64_t bytes_per_s, char text[DP_PRINT_CELL_MAX])
{
    const double kbit = (double)bytes_per_s * 8 / 1000;
    const bool whole = bytes_per_s % 125000 == 0;
    if (kbit >= 1000) {
        snprintf(text, DP_PRINT_CELL_MAX, "%.*f Mbit/s", whole || kbit >= 100000 ? 0 : 1,
                 kbit / 1000);
    } else {
        snprintf(text, DP_PRINT_CELL_MAX, "%.*f kbit/s", kbit >= 10 ? 0 : 1, kbit);
    }
}

void dp_print_mbit(long long mbit, char text[DP_PRINT_CELL_MAX])
{
    if (mbit > 0) {
        snprintf(text, DP_PRINT_CELL_MAX, "%lld Mbit/s", mbit);
    } else {
        snprintf(text, DP_PRINT_CELL_MAX, "unlimited");
    }
}

void dp_print_count(double count, char text[DP_PRINT_CELL_MAX])
{
    static const char units[] = {' ', 'k', 'M', 'G', 'T'};
    size_t unit = 0;
    while (count >= 1000 && unit + 1 < sizeof units) {
        count /= 1000;
        unit++;
    }
    if (unit == 0) {
        snprintf(text, DP_PRINT_CELL_MAX, "%.0f", count);
    } else {
        snprintf(text, DP_PRINT_CELL_MAX, "%.*f%c",
                 count >= 100  ? 0
                 : count >= 10 ? 1
                               : 2,
                 count, units[unit]);
    }
}

void dp_print_span(uint64_t seconds, char text[DP_PRINT_CELL_MAX])
{
    static const struct {
        uint64_t from;
        uint64_t unit;
        const char *name;
    } rows[] = {{2 * UINT64_C(86400), 86400, "d"},
                {2 * UINT64_C(3600), 3600, "h"},
                {120, 60, "min"},
                {0, 1, "s"}};
    size_t i = 0;
    while (seconds < rows[i].from) {
        i++;
    }
    const int used = snprintf(text, DP_PRINT_CELL_MAX, "%llu %s",
                              (unsigned long long)(seconds / rows[i].unit), rows[i].name);
    const uint64_t rest = i < 2 ? seconds % rows[i].unit / rows[i + 1].unit : 0;
    if (rest > 0) {
        snprintf(text + used, DP_PRINT_CELL_MAX - (size_t)used, " %llu %s",
                 (unsigned long long)rest, rows[i + 1].name);
    }
}

void dp_print_clock(uint64_t unix_ms, char text[DP_PRINT_CELL_MAX])
{
    const time_t when = (time_t)(unix_ms / 1000);
    struct tm parts;
    if (localtime_r(&when, &parts) == NULL ||
        strftime(text, DP_PRINT_CELL_MAX, "%H:%M:%S", &parts) == 0) {
        snprintf(text, DP_PRINT_CELL_MAX, "?");
    }
}

void dp_print_date(uint64_t unix_ms, char text[DP_PRINT_CELL_MAX])
{
    const time_t when = (time_t)(unix_ms / 1000);
    struct tm parts;
    if (localtime_r(&when, &parts) == NULL ||
        strftime(text, DP_PRINT_CELL_MAX, "%Y-%m-%d %H:%M", &parts) == 0) {
        snprintf(text, DP_PRINT_CELL_MAX, "?");
    }
}

uint64_t dp_print_now_ms(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The bytes of the character at text if it can control a terminal; 0: it cannot. In UTF-8: C0 and
 * DEL, C1 (U+0080 to 009F), and the marks that turn the direction of writing (U+202A to 202E, 2066
 * to 2069). */
static size_t steers(const char *text)
{
    const unsigned char *const c = (const unsigned char *)text;
    if (c[0] < 0x20 || c[0] == 0x7f) {
        return 1;
    }
    if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f) {
        return 2;
    }
    const bool turns = c[0] == 0xe2 && ((c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae) ||
                                        (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
    return turns ? 3 : 0;
}

void dp_print_harmless(char *text)
{
    while (*text != '\0') {
        const size_t size = steers(text);
        memset(text, '?', size);
        text += size > 0 ? size : 1;
    }
}

void dp_print_text(const char *text)
{
    while (*text != '\0') {
        const size_t size = steers(text);
        if (size == 0 || *text == '\n' || *text == '\t') {
            putchar(*text);
        }
        text += size > 0 ? size : 1;
    }
}

const char *dp_print_mark(bool good)
{
    const bool utf8 =
        strcmp(nl_langinfo(CODESET), "UTF-8") == 0; /* NOLINT(concurrency-mt-unsafe): one thread */
    if (utf8) {
        return good ? "\xe2\x9c\x93" : "\xe2\x9c\x97";
    }
    return good ? "ok" : "no";
}

/* ---- tables ---- */

dp_table *dp_table_open(const char *const *columns, unsigned count, unsigned right_mask)
{
    dp_table *self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        return NULL;
    }
    self->table = scols_new_table();
    self->failed = self->table == NULL;
    for (unsigned i = 0; i < count && !self->failed; i++) {
        const int flags = (right_mask >> i & 1) != 0 ? SCOLS_FL_RIGHT : 0;
        self->failed = scols_table_new_column(self->table, columns[i], 0, flags) == NULL;
    }
    return self;
}

void dp_table_row(dp_table *table)
{
    if (table != NULL && !table->failed) {
        table->line = scols_table_new_line(table->table, NULL);
        table->failed = table->line == NULL;
        table->column = 0;
    }
}

void dp_table_cell(dp_table *table, const char *text)
{
    char cell[CELL_BYTES];
    if (table == NULL || table->failed) {
        return;
    }
    const int size = snprintf(cell, sizeof cell, "%s", text);
    if (size >= (int)sizeof cell) {
        /* A longer table is not cut silently. */
        memcpy(cell + sizeof cell - sizeof "...", "...", sizeof "...");
    }
    dp_print_harmless(cell);
    table->failed = scols_line_set_data(table->line, table->column++, cell) != 0;
}

void dp_table_close(dp_table *table, bool print)
{
    if (table == NULL || table->failed) {
        fprintf(stderr, "dpnode: no memory for a table\n");
    } else if (print) {
        scols_print_table(table->table);
    }
    if (table != NULL) {
        scols_unref_table(table->table);
        dp_free(table);
    }
}
