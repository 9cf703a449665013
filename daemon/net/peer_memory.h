/* The budget for memory that peers make this node hold: messages in pieces, and answers that were
 * not read yet. Each connection has its own bound; this is the bound of all together. Guests share
 * a small part of it, since one token admits any number of them. Pure. */
#ifndef DP_DAEMON_NET_PEER_MEMORY_H
#define DP_DAEMON_NET_PEER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#define DP_PEER_MEMORY_GUESTS_MAX (32ULL << 20) /* of all guests together */
/* The budget is a quarter of the machine's memory, and so much at least. */
#define DP_PEER_MEMORY_LEAST (256ULL << 20)

typedef struct dp_peer_memory {
    uint64_t limit;
    uint64_t bytes;  /* held now, those of guests among them */
    uint64_t guests; /* of these, for guests */
    uint64_t most;   /* that bytes ever was */
} dp_peer_memory;

/* machine: bytes of memory that it has; 0: not known. */
void dp_peer_memory_init(dp_peer_memory *memory, uint64_t machine);
/* False: no room. */
bool dp_peer_memory_take(dp_peer_memory *memory, bool guest, uint64_t bytes);
/* Beyond the limit too: the first message of a member's connection, which would else wait for
 * messages of others that never end. */
void dp_peer_memory_take_anyway(dp_peer_memory *memory, bool guest, uint64_t bytes);
void dp_peer_memory_give(dp_peer_memory *memory, bool guest, uint64_t bytes);

#endif
