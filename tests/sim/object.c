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
        free(shelf->items[i].leaves);
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

static dp_view slice(dp_view bytes, uint32_t n_chunks, uint32_t index)
{
    const size_t each = bytes.size / n_chunks;
    const size_t size = index + 1 < n_chunks ? each : bytes.size - each * index;

    return dp_view_of(bytes.data + each * index, size);
}

/* One in three is a single chunk, as small ones are in a real run. */
static uint32_t chunks_of(const dp_shelf *shelf, dp_view bytes)
{
    const uint64_t drawn = dp_sim_hash(0x6368756e6bULL, bytes);

    if (shelf->chunks_max < 2 || drawn % 3 == 0 || bytes.size < shelf->chunks_max) {
        return 1;
    }
    return 2 + (uint32_t)(drawn / 3 % (shelf->chunks_max - 1));
}

/* Size, leaves and root. */
static void cut(const dp_shelf *shelf, dp_view bytes, dp_shelf_item *item,
                dp_hash leaves[DP_SHELF_CHUNKS_MAX])
{
    item->n_bytes = (uint32_t)bytes.size;
    item->n_chunks = chunks_of(shelf, bytes);
    for (uint32_t i = 0; i < item->n_chunks; i++) {
        leaves[i] = dp_chunk_leaf(slice(bytes, item->n_chunks, i));
    }
    item->size = (uint64_t)(item->n_chunks - 1) * DP_CHUNK_BYTES_MIN +
                 slice(bytes, item->n_chunks, item->n_chunks - 1).size;
    item->root = dp_object_root(item->size, leaves);
}

dp_hash dp_shelf_root(const dp_shelf *shelf, dp_view bytes)
{
    dp_hash leaves[DP_SHELF_CHUNKS_MAX];
    dp_shelf_item item = {0};

    cut(shelf, bytes, &item, leaves);
    return item.root;
}

uint32_t dp_shelf_add(dp_shelf *shelf, dp_view bytes)
{
    dp_assert(bytes.size > 0 && bytes.size <= DP_CHUNK_BYTES_MIN);
    dp_assert(shelf->chunks_max <= DP_SHELF_CHUNKS_MAX);
    if (shelf->count == shelf->capacity) {
        grow(shelf);
    }
    dp_shelf_item item = {0};
    dp_hash leaves[DP_SHELF_CHUNKS_MAX];
    cut(shelf, bytes, &item, leaves);
    const uint32_t slot = slot_of(shelf, &item.root);
    if (shelf->slots[slot] != 0) {
        return shelf->slots[slot] - 1;
    }
    item.data = malloc(bytes.size);
    item.leaves = malloc(item.n_chunks * sizeof leaves[0]);
    dp_assert(item.data != NULL && item.leaves != NULL);
    memcpy(item.leaves, leaves, item.n_chunks * sizeof leaves[0]);
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
    return dp_view_of(shelf->items[number].data, shelf->items[number].n_bytes);
}

dp_view dp_shelf_chunk(const dp_shelf *shelf, uint32_t number, uint32_t index)
{
    dp_assert(number < shelf->count && index < shelf->items[number].n_chunks);
    return slice(dp_shelf_bytes(shelf, number), shelf->items[number].n_chunks, index);
}
