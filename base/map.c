#include "base/map.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"

/* Linear probing. Removal shifts the following keys back instead of leaving marks, so a map that
 * lives long never fills up with them, and a search ends at the first free slot: at least half of
 * the slots are free. */
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
    made.index =
        dp_reserve(1, made.slots * sizeof *made.index + (size_t)capacity * sizeof *made.entries);
    if (made.index == NULL) {
        return DP_NOMEM;
    }
    made.entries = (dp_map_entry *)(void *)(made.index + made.slots);
    *map = made;
    return DP_OK;
}

void dp_map_close(dp_map *map)
{
    dp_free(map->index);
    *map = (dp_map){0};
}

/* The hash of a key; its low bits are the home slot. */
static uint32_t tag_of(const dp_map *map, const dp_hash *key)
{
    uint64_t words[4];

    _Static_assert(sizeof words == sizeof key->bytes, "a key is four words");
    memcpy(words, key->bytes, sizeof words);
    /* Two products of keyed words, folded: without the seed nobody can choose colliding keys. */
    const unsigned __int128 a =
        (unsigned __int128)(words[0] ^ map->salts[0]) * (words[1] ^ map->salts[1]);
    const unsigned __int128 b =
        (unsigned __int128)(words[2] ^ map->salts[2]) * (words[3] ^ map->salts[3]);
    const uint64_t mixed = (uint64_t)a ^ (uint64_t)(a >> 64) ^ (uint64_t)b ^ (uint64_t)(b >> 64);
    return (uint32_t)(mixed ^ mixed >> 32);
}

/* The slot of the key, or the free slot for it. */
static uint32_t slot_of(const dp_map *map, const dp_hash *key, uint32_t tag)
{
    uint32_t slot = tag & (map->slots - 1);

    while (map->index[slot].place != 0 &&
           (map->index[slot].tag != tag ||
            !dp_hash_equal(&map->entries[map->index[slot].place - 1].key, key))) {
        slot = (slot + 1) & (map->slots - 1);
    }
    return slot;
}

bool dp_map_get(const dp_map *map, const dp_hash *key, uint32_t *value)
{
    if (map->count == 0) {
        return false;
    }
    const uint32_t place = map->index[slot_of(map, key, tag_of(map, key))].place;
    if (place == 0) {
        return false;
    }
    *value = map->entries[place - 1].value;
    return true;
}

dp_status dp_map_put(dp_map *map, const dp_hash *key, uint32_t value)
{
    dp_assert(map->slots > 0);
    const uint32_t tag = tag_of(map, key);
    const uint32_t slot = slot_of(map, key, tag);
    if (map->index[slot].place == 0) {
        if (map->count == map->capacity) {
            return DP_TOOBIG;
        }
        map->entries[map->count] = (dp_map_entry){.key = *key, .slot = slot};
        map->index[slot] = (dp_map_slot){.place = ++map->count, .tag = tag};
    }
    map->entries[map->index[slot].place - 1].value = value;
    return DP_OK;
}

void dp_map_clear(dp_map *map)
{
    if (map->count > 0) {
        memset(map->index, 0, map->slots * sizeof *map->index);
        map->count = 0;
    }
}

/* Removes the slot and moves later keys of its run up. */
static void close_hole(dp_map *map, uint32_t hole)
{
    const uint32_t mask = map->slots - 1;

    /* A key moves into the hole if the hole lies between its home and its slot. */
    for (uint32_t slot = (hole + 1) & mask; map->index[slot].place != 0; slot = (slot + 1) & mask) {
        const uint32_t home = map->index[slot].tag & mask;

        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            map->index[hole] = map->index[slot];
            map->entries[map->index[hole].place - 1].slot = hole;
            hole = slot;
        }
    }
    map->index[hole].place = 0;
}

bool dp_map_remove(dp_map *map, const dp_hash *key)
{
    if (map->count == 0) {
        return false;
    }
    const uint32_t slot = slot_of(map, key, tag_of(map, key));
    const uint32_t place = map->index[slot].place;
    if (place == 0) {
        return false;
    }
    close_hole(map, slot);
    /* The last entry takes the place of this one. */
    map->count--;
    if (place - 1 != map->count) {
        map->entries[place - 1] = map->entries[map->count];
        map->index[map->entries[place - 1].slot].place = place;
    }
    return true;
}
