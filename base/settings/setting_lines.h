/* The lines of a configuration file: `name = value`, blank ones and ones that begin with #. The
 * caller decides which names and values are valid. */
#ifndef DP_BASE_SETTINGS_SETTING_LINES_H
#define DP_BASE_SETTINGS_SETTING_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { DP_SETTING_FILE_MAX = 64 * 1024 };

/* Reads the file at path; *size: its bytes, which are cut after DP_SETTING_FILE_MAX + 1. With a
 * sentence: DP_NOTFOUND, DP_IO, or DP_BADMSG of a path that is no file. */
DP_MUST dp_status dp_setting_file_load(const char *path, char bytes[DP_SETTING_FILE_MAX + 1],
                                       size_t *size, dp_why *why);

/* Initialize as {.next = the first byte, .end = after the last}. */
typedef struct dp_setting_lines {
    const char *next;
    const char *end;
    const char *line; /* the last line that was read, and its number from 1 */
    uint32_t number;
    const char *name; /* its setting, without blanks around name and value */
    size_t name_size;
    const char *value;
    size_t value_size;
    const char *wrong;    /* its mistake at wrong_at, as a sentence; NULL: none */
    const char *wrong_at; /* in the line, or its end */
} dp_setting_lines;

/* Advances to the next setting. False: the text has no more, or the line has a mistake. */
bool dp_setting_lines_next(dp_setting_lines *lines);

#endif
