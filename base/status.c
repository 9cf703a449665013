#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

struct status_row {
    const char *name;
    const char *text;
};

static const struct status_row rows[DP_STATUS_COUNT] = {
    [DP_OK] = {"DP_OK", "it worked"},
    [DP_BADARG] = {"DP_BADARG", "the request cannot be"},
    [DP_BADMSG] = {"DP_BADMSG", "the bytes do not parse"},
    [DP_TOOBIG] = {"DP_TOOBIG", "a limit would be passed"},
    [DP_NOMEM] = {"DP_NOMEM", "there is no memory left"},
    [DP_IO] = {"DP_IO", "the operating system refused a read or write"},
    [DP_NOSPACE] = {"DP_NOSPACE", "the disk is full"},
    [DP_NOTFOUND] = {"DP_NOTFOUND", "it is not there"},
    [DP_EXISTS] = {"DP_EXISTS", "it is there already"},
    [DP_DENIED] = {"DP_DENIED", "it is not permitted"},
    [DP_EXPIRED] = {"DP_EXPIRED", "its time is over"},
    [DP_BADSIG] = {"DP_BADSIG", "the signature does not verify"},
    [DP_BADHASH] = {"DP_BADHASH", "the content does not match its hash"},
    [DP_VERSION] = {"DP_VERSION", "it was written by a version not spoken here"},
    [DP_AGAIN] = {"DP_AGAIN", "not now, try again"},
    [DP_TIMEOUT] = {"DP_TIMEOUT", "it took too long"},
    [DP_CLOSED] = {"DP_CLOSED", "the other side is gone"},
    [DP_CORRUPT] = {"DP_CORRUPT", "the stored state contradicts itself"},
    [DP_DIVERGED] = {"DP_DIVERGED", "a number is not finite or replicas differ"},
    [DP_UNSUPPORTED] = {"DP_UNSUPPORTED", "this machine or build cannot do it"},
    [DP_BUSY] = {"DP_BUSY", "somebody else holds it"},
};

/* A status may come from a damaged caller, so the index is checked as a number. */
static const struct status_row *row_of(dp_status status)
{
    static const struct status_row unknown = {"DP_UNKNOWN", "an unknown status"};
    const size_t index = (size_t)status;

    return index < DP_STATUS_COUNT && rows[index].name != NULL ? &rows[index] : &unknown;
}

const char *dp_status_name(dp_status status)
{
    return row_of(status)->name;
}

const char *dp_status_text(dp_status status)
{
    return row_of(status)->text;
}

dp_status(dp_why_set)(dp_why *why, dp_status status, const char *format, ...)
{
    if (why != NULL) {
        va_list arguments;

        va_start(arguments, format);
        if (vsnprintf(why->text, sizeof why->text, format, arguments) < 0) {
            why->text[0] = '\0';
        }
        va_end(arguments);
    }
    return status;
}
