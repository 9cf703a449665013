/* Output for people: tables, spans of time, sizes, and progress on a terminal. */
#ifndef DP_CLI_PRINT_H
#define DP_CLI_PRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { DP_PRINT_CELL_MAX = 64, DP_PRINT_COLUMNS_MAX = 12 };

/* "4.1 MiB". text holds DP_PRINT_CELL_MAX characters, here and below. */
void dp_print_bytes(uint64_t bytes, char text[DP_PRINT_CELL_MAX]);
/* "412", "12.3k", "1.9M". */
void dp_print_count(double count, char text[DP_PRINT_CELL_MAX]);
/* "20 Mbit/s", or "not limited" for 0. */
void dp_print_mbit(long long mbit, char text[DP_PRINT_CELL_MAX]);
/* "3.2 Mbit/s", "80 kbit/s" of bytes per second. */
void dp_print_rate(uint64_t bytes_per_s, char text[DP_PRINT_CELL_MAX]);
/* "40 s", "12 min", "3 h", "9 d". */
void dp_print_span(uint64_t seconds, char text[DP_PRINT_CELL_MAX]);
/* "10:41:07" of local time. */
void dp_print_clock(uint64_t unix_ms, char text[DP_PRINT_CELL_MAX]);
/* "2026-11-28 10:41" of local time. */
void dp_print_date(uint64_t unix_ms, char text[DP_PRINT_CELL_MAX]);
uint64_t dp_print_now_ms(void); /* unix */

/* Replaces characters that could control a terminal by '?', one for each byte. In place. */
void dp_print_harmless(char *text);
/* Prints text on stdout without such characters, except line breaks and tabs. */
void dp_print_text(const char *text);

/* A table for the terminal. Columns are added first, then rows cell by cell; print also frees
 * it. */
typedef struct dp_table dp_table;
dp_table *dp_table_open(const char *const *columns, unsigned count, unsigned right_mask);
void dp_table_row(dp_table *table);
void dp_table_cell(dp_table *table, const char *text);
/* Prints to stdout, unless print is false, and frees. */
void dp_table_close(dp_table *table, bool print);

/* "ok" in a form that the terminal can show. */
const char *dp_print_mark(bool good);

#endif
