/* Every object that any simulated node ever made, once: a shelf by content hash. Disks hold numbers
 * of this shelf. */
#ifndef DP_SIM_OBJECT_H
#define DP_SIM_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"

enum { DP_SHELF_NONE = 0xffffffff, DP_SHELF_CHUNKS_MAX = 16 };

/* Simulated objects have some hundred bytes. Where shelf.chunks_max says so they are cut in several
 * chunks all the same: each is a slice of the bytes, and stands for a whole chunk in the size that
 * the object is said to have, so that nodes fetch, lose and verify it as many chunks. Root and
 * leaves are real hashes of what travels. */
typedef struct dp_shelf_item {
    dp_hash root;
    dp_hash *leaves; /* n_chunks */
    uint32_t n_chunks;
    uint32_t n_bytes;
    uint64_t size; /* as nodes are told: n_bytes, and more in an object of several chunks */
    uint8_t *data; /* n_bytes */
} dp_shelf_item;

typedef struct dp_shelf {
    uint32_t chunks_max; /* 0: every object is one chunk */
    dp_shelf_item *items;
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /* open addressing: number + 1, or 0 */
    uint32_t n_slots;
} dp_shelf;

void dp_shelf_close(dp_shelf *shelf);
/* Copies bytes (1..DP_CHUNK_BYTES_MIN of them). The same bytes give the same number. Aborts when
 * memory is gone. */
uint32_t dp_shelf_add(dp_shelf *shelf, dp_view bytes);
/* The root that these bytes have here, on the shelf or not. */
dp_hash dp_shelf_root(const dp_shelf *shelf, dp_view bytes);
/* DP_SHELF_NONE if nobody ever made it. */
uint32_t dp_shelf_find(const dp_shelf *shelf, const dp_hash *root);
dp_view dp_shelf_bytes(const dp_shelf *shelf, uint32_t number);
/* index < n_chunks */
dp_view dp_shelf_chunk(const dp_shelf *shelf, uint32_t number, uint32_t index);

/* A fast 64-bit hash of bytes for traces and simulated signatures; not for hostile data. */
uint64_t dp_sim_hash(uint64_t seed, dp_view bytes);

#endif
