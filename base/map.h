/* A hash map of fixed capacity from 32-byte keys to small numbers; open addressing, keyed by an
 * injected seed. Keys stand one after the other, as many as there are, and slots of eight bytes say
 * where: a map of much room that holds little is little memory. Iterate the owner's own array,
 * never the map: its order depends on the seed. */
#ifndef DP_BASE_MAP_H
#define DP_BASE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"

typedef struct dp_map_entry {
    dp_hash key;
    uint32_t value;
    uint32_t slot; /* that names it */
} dp_map_entry;

typedef struct dp_map_slot {
    uint32_t place; /* of its entry, from 1; 0: free */
    uint32_t tag;   /* of its key: home and more */
} dp_map_slot;

typedef struct dp_map {
    dp_map_slot *index;    /* slots of them */
    dp_map_entry *entries; /* in the same block, behind; count of capacity */
    uint32_t slots;        /* a power of two, at least 2 * capacity */
    uint32_t count;
    uint32_t capacity;
    uint64_t salts[4]; /* from the seed */
} dp_map;

DP_MUST dp_status dp_map_init(dp_map *map, uint32_t capacity, uint64_t seed);
void dp_map_close(dp_map *map);
/* True and *value set if the key is there. */
bool dp_map_get(const dp_map *map, const dp_hash *key, uint32_t *value);
/* Insert or replace. DP_TOOBIG when capacity keys are there already. */
DP_MUST dp_status dp_map_put(dp_map *map, const dp_hash *key, uint32_t value);
/* Empty, as after init. */
void dp_map_clear(dp_map *map);
/* True if it was there. */
bool dp_map_remove(dp_map *map, const dp_hash *key);

#endif
