#include "base/map.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"

/* Linear probing. Removal shifts the following keys back instead of leaving marks, so a map that lives long never
 * fills up with them, and a search ends at the first free slot: at least half of the slots are free. */
enum { CAPACITY_MAX = 1 << 24 };

dp_status dp_map_init(dp_map *map, uint32_t capacity, uint64_t seed)
{
    dp_map made = {.capacity = capacity, .slots = 2};

    for (uint64_t i = 0; i < 4; i++) {
        made.salts[i] = dp_mix64(seed + i);
    }
    if (capacity > CAPACITY_MAX) {
        return DP_TOOBIG;
    }
    while (made.slots < 2 * capacity) {
        made.slots *= 2;
    }
    made.entries = dp_reserve(made.slots, sizeof *made.entries);
    if (made.entries == NULL) {
        return DP_NOMEM;
    }
    *map = made;
    return DP_OK;
}

void dp_map_close(dp_map *map)
{
    dp_free(map->entries);
    *map = (dp_map){0};
}

/* Where the key would stand if nothing were in its way. */
static uint32_t home_of(const dp_map *map, const dp_hash *key)
{
    uint64_t words[4];

    _Static_assert(sizeof words == sizeof key->bytes, "a key is four words");
    memcpy(words, key->bytes, sizeof words);
    /* Two products of keyed words, folded: who does not know the seed cannot choose keys that meet. */
    const unsigned __int128 a =
        (unsigned __int128)(words[0] ^ map->salts[0]) * (words[1] ^ map->salts[1]);
    const unsigned __int128 b =
        (unsigned __int128)(words[2] ^ map->salts[2]) * (words[3] ^ map->salts[3]);
    const uint64_t mixed = (uint64_t)a ^ (uint64_t)(a >> 64) ^ (uint64_t)b ^ (uint64_t)(b >> 64);
    return (uint32_t)(mixed ^ mixed >> 32) & (map->slots - 1);
}

/* The slot of the key, or the free slot where it would go. */
static uint32_t slot_of(const dp_map *map, const dp_hash *key)
{
    uint32_t slot = home_of(map, key);

    while (map->entries[slot].used && !dp_hash_equal(&map->entries[slot].key, key)) {
        slot = (slot + 1) & (map->slots - 1);
    }
    return slot;
}

bool dp_map_get(const dp_map *map, const dp_hash *key, uint32_t *value)
{
    if (map->count == 0) {
        return false;
    }
    const uint32_t slot = slot_of(map, key);
    if (!map->entries[slot].used) {
        return false;
    }
    *value = map->entries[slot].value;
    return true;
}

dp_status dp_map_put(dp_map *map, const dp_hash *key, uint32_t value)
{
    dp_assert(map->slots > 0);
    const uint32_t slot = slot_of(map, key);

    if (!map->entries[slot].used) {
        if (map->count >= map->capacity) {
            return DP_TOOBIG;
        }
        map->entries[slot].used = 1;
        map->entries[slot].key = *key;
        map->count++;
    }
    map->entries[slot].value = value;
    return DP_OK;
}

void dp_map_clear(dp_map *map)
{
    if (map->count > 0) {
        memset(map->entries, 0, map->slots * sizeof *map->entries);
        map->count = 0;
    }
}

bool dp_map_remove(dp_map *map, const dp_hash *key)
{
    if (map->count == 0) {
        return false;
    }
    const uint32_t mask = map->slots - 1;
    uint32_t hole = slot_of(map, key);
    if (!map->entries[hole].used) {
        return false;
    }
    /* A key moves into the hole if the hole lies on the way from its home to where it stands. */
    for (uint32_t slot = (hole + 1) & mask; map->entries[slot].used; slot = (slot + 1) & mask) {
        const uint32_t home = home_of(map, &map->entries[slot].key);

        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            map->entries[hole].key = map->entries[slot].key;
            map->entries[hole].value = map->entries[slot].value;
            hole = slot;
        }
    }
    map->entries[hole].used = 0;
    map->count--;
    return true;
}
