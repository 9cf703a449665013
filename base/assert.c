#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void dp_assert_failed(const char *condition, const char *file, int line)
{
    /* Ignore a failed print: the process aborts next. */
    if (fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition) > 0) {
        (void)fflush(stderr);
    }
    abort();
}
