#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void dp_assert_failed(const char *condition, const char *file, int line)
{
    /* Nothing can be done about a failed print: we are about to abort. */
    if (fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition) > 0) {
        (void)fflush(stderr);
    }
    abort();
}
