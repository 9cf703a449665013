/* The text that two daemons send about themselves in a handshake, for people:
 *     0  u8   version of the sender, 1 or later
 *     1  u8   size | name of the node
 *        u32  rules of the sender, since version 2
 *        u8   1: a renewal of its certificate follows (gossip/identity/renewal.h), 136 bytes; 0:
 *             none; since version 3
 * A later version adds fields after these, which an earlier one skips. */
#ifndef DP_DAEMON_NET_HELLO_H
#define DP_DAEMON_NET_HELLO_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/run/manifest.h"
#include "gossip/identity/renewal.h"

/* Only a test builds with other numbers: a daemon of the next version, see
 * tests/lib/next_version.c. */
#ifndef DP_HELLO_VERSION
#define DP_HELLO_VERSION 3
#endif
/* The version of the rules that all members must share and that no version in a manifest, record or
 * message covers: which updates may be published, and how a round uses them. It grows with every
 * change that an earlier program refuses. 2: twice the elements after a lost publication. 3: the
 * length of a step follows from the kind of the update; fences, exchanges and claims are bounded by
 * signed statements. 4: records may revoke invites; from then on a node that is not a member admits
 * nobody by its invites (gossip/ledger/inviting.h). 5: records may rotate the join secret
 * (gossip/identity/rotation.h). */
#ifndef DP_RULES
#define DP_RULES 6
#endif

typedef struct dp_hello {
    char name[DP_NAME_MAX + 1];
    uint32_t rules;     /* 1: of version 1 */
    dp_renewal renewal; /* until_ms 0: none */
} dp_hello;

/* Returns the size. name: at most DP_NAME_MAX characters. renewal: until_ms 0: none. */
size_t dp_hello_write(const char *name, const dp_renewal *renewal, uint8_t *out, size_t capacity);
/* Total. Names come from strangers: only printable ASCII without quotes is kept, the rest becomes
 * "_". False, with hello unchanged, if there is none to read. */
bool dp_hello_read(dp_view bytes, dp_hello *hello);

#endif
