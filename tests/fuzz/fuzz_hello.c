/* Any bytes as what a daemon says of itself in a handshake: a name that may be shown, or none and
 * nothing touched. A name that was read is said again as it is. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "daemon/net/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name)
{
    dp_assert(memchr(name, '\0', DP_NAME_MAX + 1) != NULL);
    for (const char *c = name; *c != '\0'; c++) {
        dp_assert(*c > ' ' && *c < 127 && *c != '"' && *c != '\\');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const dp_hello before = {.name = "as it was", .rules = 77};
    dp_hello hello = before;
    dp_hello again = before;
    uint8_t said[2 + DP_NAME_MAX + 4 + 1 + DP_RENEWAL_BYTES + 8];

    if (!dp_hello_read(dp_view_of(data, size), &hello)) {
        dp_assert(strcmp(hello.name, before.name) == 0 && hello.rules == before.rules);
        return 0;
    }
    check_name(hello.name);
    dp_assert(data[0] > 1 || hello.rules == 1);
    const size_t said_bytes = dp_hello_write(hello.name, &hello.renewal, said, sizeof said);
    dp_assert(dp_hello_read(dp_view_of(said, said_bytes), &again));
    dp_assert(strcmp(again.name, hello.name) == 0 && again.rules == DP_RULES);
    return 0;
}
