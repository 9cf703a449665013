/* The replay cache of the port: ephemeral keys of first handshake messages that authenticated, so
 * that each is answered once. Pure memory: reads no clock. Messages with a right time and messages
 * with a wrong time have a ring each, so that old messages, which an eavesdropper may have recorded
 * in numbers, displace no new ones.
 *
 * A full ring forgets the oldest key. Only holders of the run's secret can fill it with new ones,
 * and they need no replay to be answered; refusing newcomers instead would let one of them close
 * the port. DP_REPLAY_MAX is 17 handshakes in each second of the four minutes (DP_CHANNEL_CLOCK_MS
 * to either side) in which a message's time may be right. */
#ifndef DP_GOSSIP_IDENTITY_REPLAY_H
#define DP_GOSSIP_IDENTITY_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DP_REPLAY_MAX = 4096,
    DP_REPLAY_STALE_MAX = 1024,
    DP_REPLAY_KEY_BYTES = 16 /* of the 32: keys of two handshakes are random */
};

typedef struct dp_replay_key {
    uint8_t bytes[DP_REPLAY_KEY_BYTES];
} dp_replay_key;

/* Zero is an empty one. */
typedef struct dp_replay_cache {
    uint32_t n; /* timely */
    uint32_t next;
    uint32_t n_stale;
    uint32_t next_stale;
    dp_replay_key timely[DP_REPLAY_MAX];
    dp_replay_key stale[DP_REPLAY_STALE_MAX];
} dp_replay_cache;

/* Remember the ephemeral key of a message. False: it is known already. At most 5,120
 * comparisons. */
bool dp_replay_add(dp_replay_cache *cache, const uint8_t ephemeral[32], bool timely);

#endif
