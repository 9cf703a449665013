#include "base/size.h"

#include <ctype.h>
#include <errno.h>
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
