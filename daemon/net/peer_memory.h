/* The budget for memory that peers make this node hold: incomplete messages, and unread answers.
 * Each connection has its own bound; this is the bound of all together. Guests share a small part
 * of it, since one token admits any number of them. Pure. */
#ifndef DP_DAEMON_NET_PEER_MEMORY_H
#define DP_DAEMON_NET_PEER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#define DP_PEER_MEMORY_GUESTS_MAX (32ULL << 20) /* of all guests together */
/* The budget is a quarter of the machine's memory, and at least this. */
#define DP_PEER_MEMORY_LEAST (256ULL << 20)

typedef struct dp_peer_memory {
    uint64_t limit;
    uint64_t bytes;  /* held now, those of guests among them */
    uint64_t guests; /* of these, for guests */
    uint64_t most;   /* largest value of bytes so far */
} dp_peer_memory;

/* machine: its bytes of memory; 0: unknown. */
void dp_peer_memory_init(dp_peer_memory *memory, uint64_t machine);
/* False: no room. */
bool dp_peer_memory_take(dp_peer_memory *memory, bool guest, uint64_t bytes);
/* Takes it even beyond the limit: for the first message of a member's connection, which would
 * otherwise wait for messages of others that never end. */
void dp_peer_memory_take_anyway(dp_peer_memory *memory, bool guest, uint64_t bytes);
void dp_peer_memory_give(dp_peer_memory *memory, bool guest, uint64_t bytes);

#endif
