#include "base/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The unit behind a number; 0: none such. */
static uint64_t unit_of(const char *text)
{
    static const char letters[] = "KMGT";
    const char *const letter =
        *text != '\0' ? strchr(letters, toupper((unsigned char)*text)) : NULL;
    uint64_t unit = 1;
    if (*text == '\0') {
        return 1;
    }
    const bool thousands = strcmp(text + 1, "B") == 0;
    if (letter == NULL || (!thousands && text[1] != '\0' && strcmp(text + 1, "iB") != 0)) {
        return 0;
    }
    for (const char *at = letters; at <= letter; at++) {
        unit *= thousands ? 1000 : 1024;
    }
    return unit;
}

/* Thousandths behind a point; false: none, or more than three places. */
static bool read_thousandths(char **at, uint64_t *thousandths)
{
    const char *const begin = *at;
    uint64_t place = 100;
    *thousandths = 0;
    for (; isdigit((unsigned char)**at) && place > 0; ++*at, place /= 10) {
        *thousandths += place * (uint64_t)(**at - '0');
    }
    return *at != begin;
}

bool dp_size_read(const char *text, uint64_t *bytes)
{
    char *end = NULL;
    uint64_t thousandths = 0;
    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    const bool has_point = *end == '.';
    end += has_point ? 1 : 0;
    if (errno != 0 || (has_point && !read_thousandths(&end, &thousandths))) {
        return false;
    }
    const uint64_t unit = unit_of(end);
    if (unit == 0 || (has_point && unit == 1) || number > UINT64_MAX / unit) {
        return false;
    }
    const uint64_t rest = unit / 1000 * thousandths + unit % 1000 * thousandths / 1000;
    if (rest > UINT64_MAX - number * unit) {
        return false;
    }
    *bytes = number * unit + rest;
    return true;
}

void dp_size_text(uint64_t bytes, char text[DP_SIZE_TEXT_MAX])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1000 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1000;
        unit++;
    }
    snprintf(text, DP_SIZE_TEXT_MAX, "%.*f %s", unit == 0 || value >= 100 ? 0 : 1, value,
             units[unit]);
}
