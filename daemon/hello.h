/* What two daemons say of themselves in a handshake, for people:
 *     0  u8   version of the sender, 1 or later
 *     1  u8   size | name of the node
 * A later version adds fields after the name, which an earlier one skips. */
#ifndef DP_DAEMON_HELLO_H
#define DP_DAEMON_HELLO_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/manifest.h"

/* Only a test builds with another number: a daemon of the next version, see tests/lib/next_version.c. */
#ifndef DP_HELLO_VERSION
#define DP_HELLO_VERSION 1
#endif

/* Returns the size. name: at most DP_NAME_MAX characters. */
size_t dp_hello_write(const char *name, uint8_t *out, size_t capacity);
/* Total. Names come from strangers: only printable ASCII without quotes goes through, the rest becomes "_". False, and name as it
 * was, when there is none to read. */
bool dp_hello_read(dp_view hello, char name[DP_NAME_MAX + 1]);

#endif
