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

bool dp_size_read(const char *text, uint64_t *bytes)
{
    char *end = NULL;
    errno = 0;
    const unsigned long long number =
        isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    const uint64_t unit = end != NULL && errno == 0 ? unit_of(end) : 0;
    if (unit == 0 || number > UINT64_MAX / unit) {
        return false;
    }
    *bytes = number * unit;
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
