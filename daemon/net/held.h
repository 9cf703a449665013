/* The budget for memory that peers make this node hold: messages in pieces, and answers that were
 * not read yet. Each connection has its own bound; this is the bound of all together. Guests share
 * a small part of it, since one token admits any number of them. Pure. */
#ifndef DP_DAEMON_NET_HELD_H
#define DP_DAEMON_NET_HELD_H

#include <stdbool.h>
#include <stdint.h>

#define DP_HELD_GUESTS_MAX (32ULL << 20) /* of all guests together */
#define DP_HELD_LEAST (256ULL << 20) /* a quarter of the machine's memory, and so much at least */

typedef struct dp_held {
    uint64_t limit;
    uint64_t bytes;  /* held now, those of guests among them */
    uint64_t guests; /* of these, for guests */
    uint64_t most;   /* that bytes ever was */
} dp_held;

/* machine: bytes of memory that it has; 0: not known. */
void dp_held_init(dp_held *held, uint64_t machine);
/* False: no room. */
bool dp_held_take(dp_held *held, bool guest, uint64_t bytes);
/* Beyond the limit too: the first message of a member's connection, which would else wait for
 * messages of others that never end. */
void dp_held_take_anyway(dp_held *held, bool guest, uint64_t bytes);
void dp_held_give(dp_held *held, bool guest, uint64_t bytes);

#endif
