#include "compute/machine/tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

int dp_tool_complain(dp_status status, const dp_why *why)
{
    fprintf(stderr, "%s\n", why->text[0] != '\0' ? why->text : dp_status_text(status));
    switch ((int)status) {
    case DP_NOTFOUND:
        return EX_NOINPUT;
    case DP_IO:
    case DP_NOSPACE:
        return EX_IOERR;
    case DP_NOMEM:
        return EX_OSERR;
    default:
        return EX_DATAERR;
    }
}

bool dp_tool_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || value < least ||
        value > most) {
        fprintf(stderr, "'%s' must be a number from %" PRIu64 " to %" PRIu64 "\n", text, least,
                most);
        return false;
    }
    *out = value;
    return true;
}

bool dp_tool_real(const char *text, double least, double most, double *out)
{
    char *end;
    errno = 0;
    const double value = strtod(text, &end);
    /* No sign, no words like nan, no hexadecimal digits. */
    if (errno != 0 || text[0] == '\0' || text[0] == '-' ||
        text[strspn(text, "0123456789.eE-")] != '\0' || *end != '\0' || !(value >= least) ||
        !(value <= most)) {
        fprintf(stderr, "'%s' must be a number from %g to %g\n", text, least, most);
        return false;
    }
    *out = value;
    return true;
}
