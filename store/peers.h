/* Peers seen before, with keys and addresses, so that a node finds its run again after a restart.
 * This is not the roster. */
#ifndef DP_STORE_PEERS_H
#define DP_STORE_PEERS_H

#include "store/db.h"

enum {
    DP_PEERS_MAX = 4096,         /* Then the one heard least recently is removed. */
    DP_PEER_CARD_MAX = 1024,     /* Bytes: keys and certificate as the caller encodes them. */
    DP_PEER_ADDRESSES_MAX = 576, /* Characters, with NUL: addresses separated by one space. */
};

typedef struct dp_peer_row {
    dp_hash id;
    uint8_t card[DP_PEER_CARD_MAX];
    uint32_t card_bytes;
    char addresses[DP_PEER_ADDRESSES_MAX];
    uint64_t last_ok_ms; /* Unix time of the last good contact; 0: never. */
    uint64_t n_bad;      /* Times it served something wrong. */
} dp_peer_row;

/* Insert or replace by id. */
DP_MUST dp_status dp_peer_save(dp_store *store, const dp_peer_row *peer);
DP_MUST dp_status dp_peer_load(dp_store *store, const dp_hash *id,
                               dp_peer_row *peer); /* DP_NOTFOUND */
/* Most recently heard first, at most max. */
DP_MUST dp_status dp_peer_list(dp_store *store, dp_peer_row *list, uint32_t max, uint32_t *count);
/* DP_OK also if the row is absent. */
DP_MUST dp_status dp_peer_forget(dp_store *store, const dp_hash *id);

#endif
