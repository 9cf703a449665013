/* A hash map of fixed capacity from 32-byte keys to small numbers, with open addressing and a seed
 * from outside. Entries stand in one array without gaps, and slots of eight bytes refer to them, so
 * that a large map with few entries touches little memory. Its order depends on the seed: iterate
 * the owner's own array instead. */
#ifndef DP_BASE_MAP_H
#define DP_BASE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"

typedef struct dp_map_entry {
    dp_hash key;
    uint32_t value;
    uint32_t slot; /* the slot that refers to it */
} dp_map_entry;

typedef struct dp_map_slot {
    uint32_t place; /* index of its entry plus 1; 0: free */
    uint32_t tag;   /* bits of the key's hash: the home slot and more */
} dp_map_slot;

typedef struct dp_map {
    dp_map_slot *index;    /* one block with entries: slots items */
    dp_map_entry *entries; /* behind index in its block: count of capacity used */
    uint32_t slots;        /* a power of two, at least 2 * capacity */
    uint32_t count;
    uint32_t capacity;
    uint64_t salts[4]; /* from the seed */
} dp_map;

DP_MUST dp_status dp_map_init(dp_map *map, uint32_t capacity, uint64_t seed);
void dp_map_close(dp_map *map);
/* True and *value set if the key is there. */
bool dp_map_get(const dp_map *map, const dp_hash *key, uint32_t *value);
/* Inserts or replaces. DP_TOOBIG: the key is new and the map holds capacity keys. */
DP_MUST dp_status dp_map_put(dp_map *map, const dp_hash *key, uint32_t value);
/* Removes all keys. */
void dp_map_clear(dp_map *map);
/* Returns whether the key was there. */
bool dp_map_remove(dp_map *map, const dp_hash *key);

#endif
