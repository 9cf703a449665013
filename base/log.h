/* The log: one line of key=value text, or one JSON object, per event. Event names are stable, so
 * that scripts may match them. Only daemon/, cli/ and the worker log; other code returns a status
 * or an action. */
#ifndef DP_BASE_LOG_H
#define DP_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum dp_log_level { DP_LOG_DEBUG, DP_LOG_INFO, DP_LOG_WARN, DP_LOG_ERROR } dp_log_level;

enum { DP_LOG_LINE_MAX = 2048, DP_LOG_TEXT_MAX = 1024 };

/* Sets where lines go (default: stderr) and the lowest level that is written. Not thread-safe: call
 * before threads start. */
void dp_log_init(FILE *out, dp_log_level least, const char *program);
/* Sends lines to write instead of a file, each whole and with its line break; NULL: to the file
 * again. Every thread that logs calls write, also at the same time. Not thread-safe: call while one
 * thread runs. */
typedef void dp_log_writer(void *context, const char *line, size_t size);
void dp_log_set_writer(dp_log_writer *write, void *context);
/* Writes JSON objects instead of key=value lines. Not thread-safe: call while one thread runs. */
void dp_log_set_json(bool json);

/* Writes one line: ts=… lvl=info prog=dpnoded evt=round.commit <format>. The format writes
 * key=value pairs, text values as key=%s with DP_LOG_TEXT. Thread-safe: a line is one write of at
 * most DP_LOG_LINE_MAX bytes; a longer one is cut and marked with cut=1. Control characters and
 * bytes that are not UTF-8 become '?'. */
void dp_log(dp_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Any text as one quoted value; lives until the end of the enclosing block. dp_log(DP_LOG_WARN,
 * "config.bad", "why=%s", DP_LOG_TEXT(why.text)); */
#define DP_LOG_TEXT(text) dp_log_quote((char[DP_LOG_TEXT_MAX]){0}, (text))

/* Writes text into out (DP_LOG_TEXT_MAX bytes) in quotes, with \ before " and \, cut where it does
 * not fit. Returns out. */
const char *dp_log_quote(char *out, const char *text);

#endif
