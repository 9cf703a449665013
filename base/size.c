#include "base/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool dp_size_read(const char *text, uint64_t *bytes)
{
    static const char letters[] = "KMGT";
    char *end = NULL;
    errno = 0;
    unsigned long long number = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    if (end == NULL || errno != 0) {
        return false;
    }
    if (*end != '\0') {
        const char *const letter = strchr(letters, toupper((unsigned char)*end));
        const char *const rest = end + 1;
        const uint64_t step = strcmp(rest, "B") == 0 ? 1000 : 1024;
        if (letter == NULL || (*rest != '\0' && step == 1024 && strcmp(rest, "iB") != 0)) {
            return false;
        }
        for (const char *at = letters; at <= letter; at++) {
            if (number > UINT64_MAX / step) {
                return false;
            }
            number *= step;
        }
    }
    *bytes = number;
    return true;
}
