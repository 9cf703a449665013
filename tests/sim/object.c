#include "tests/sim/object.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"

uint64_t dp_sim_hash(uint64_t seed, dp_view bytes)
{
    uint64_t hash = dp_mix64(seed ^ bytes.size);
    size_t at = 0;

    for (; at + 8 <= bytes.size; at += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes.data + at, 8);
        hash = (hash ^ word) * 0x9fb21c651e98df25ULL;
        hash ^= hash >> 32;
    }
    if (at < bytes.size) {
        uint64_t word = 0;
        memcpy(&word, bytes.data + at, bytes.size - at);
        hash = (hash ^ word) * 0x9fb21c651e98df25ULL;
    }
    return dp_mix64(hash);
}

static uint32_t slot_of(const dp_shelf *shelf, const dp_hash *root)
{
    uint64_t word = 0;

    memcpy(&word, root->bytes, sizeof word);
    uint32_t slot = (uint32_t)word & (shelf->n_slots - 1);
    while (shelf->slots[slot] != 0 &&
           !dp_hash_equal(&shelf->items[shelf->slots[slot] - 1].root, root)) {
        slot = (slot + 1) & (shelf->n_slots - 1);
    }
    return slot;
}

void dp_shelf_close(dp_shelf *shelf)
{
    for (uint32_t i = 0; i < shelf->count; i++) {
        free(shelf->items[i].data);
    }
    free(shelf->items);
    free(shelf->slots);
    memset(shelf, 0, sizeof *shelf);
}

static void grow(dp_shelf *shelf)
{
    const uint32_t capacity = shelf->capacity == 0 ? 256 : shelf->capacity * 2;

    shelf->items = realloc(shelf->items, (size_t)capacity * sizeof *shelf->items);
    free(shelf->slots);
    shelf->n_slots = capacity * 2;
    shelf->slots = calloc(shelf->n_slots, sizeof *shelf->slots);
    dp_assert(shelf->items != NULL && shelf->slots != NULL);
    shelf->capacity = capacity;
    for (uint32_t i = 0; i < shelf->count; i++) {
        shelf->slots[slot_of(shelf, &shelf->items[i].root)] = i + 1;
    }
}

uint32_t dp_shelf_add(dp_shelf *shelf, dp_view bytes)
{
    dp_assert(bytes.size > 0 && bytes.size <= DP_CHUNK_BYTES_MIN);
    if (shelf->count == shelf->capacity) {
        grow(shelf);
    }
    dp_shelf_item item = {.size = (uint32_t)bytes.size};
    item.root = dp_object_hash(bytes, &item.leaf);
    const uint32_t slot = slot_of(shelf, &item.root);
    if (shelf->slots[slot] != 0) {
        return shelf->slots[slot] - 1;
    }
    item.data = malloc(bytes.size);
    dp_assert(item.data != NULL);
    memcpy(item.data, bytes.data, bytes.size);
    shelf->items[shelf->count] = item;
    shelf->slots[slot] = ++shelf->count;
    return shelf->count - 1;
}

uint32_t dp_shelf_find(const dp_shelf *shelf, const dp_hash *root)
{
    if (shelf->count == 0) {
        return DP_SHELF_NONE;
    }
    const uint32_t found = shelf->slots[slot_of(shelf, root)];
    return found == 0 ? DP_SHELF_NONE : found - 1;
}

dp_view dp_shelf_bytes(const dp_shelf *shelf, uint32_t number)
{
    dp_assert(number < shelf->count);
    return dp_view_of(shelf->items[number].data, shelf->items[number].size);
}
