/* Every object that any simulated node ever made, once: a shelf by content hash. Disks hold numbers of this shelf. */
#ifndef DP_SIM_OBJECT_H
#define DP_SIM_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"

enum { DP_SHELF_NONE = 0xffffffff };

typedef struct dp_shelf_item {
    dp_hash root;
    dp_hash leaf; /* simulated objects are below one chunk */
    uint32_t size;
    uint8_t *data;
} dp_shelf_item;

typedef struct dp_shelf {
    dp_shelf_item *items;
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /* open addressing: number + 1, or 0 */
    uint32_t n_slots;
} dp_shelf;

void dp_shelf_close(dp_shelf *shelf);
/* Copies bytes (1..DP_CHUNK_BYTES_MIN of them). The same bytes give the same number. Aborts when memory is gone. */
uint32_t dp_shelf_add(dp_shelf *shelf, dp_view bytes);
/* DP_SHELF_NONE if nobody ever made it. */
uint32_t dp_shelf_find(const dp_shelf *shelf, const dp_hash *root);
dp_view dp_shelf_bytes(const dp_shelf *shelf, uint32_t number);

/* A fast 64-bit hash of bytes for traces and simulated signatures; not for hostile data. */
uint64_t dp_sim_hash(uint64_t seed, dp_view bytes);

#endif
