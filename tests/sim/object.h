/* A shelf of all objects that simulated nodes have made, each once, by content hash. Disks hold
 * numbers of this shelf. */
#ifndef DP_SIM_OBJECT_H
#define DP_SIM_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"

enum { DP_SHELF_NONE = 0xffffffff, DP_SHELF_CHUNKS_MAX = 16 };

/* Simulated objects have some hundred bytes. With shelf.chunks_max they are still cut in several
 * chunks: each is a slice of the bytes and counts as a whole chunk in the announced size of the
 * object, so that nodes fetch, lose and verify several chunks. Root and leaves are real hashes of
 * the sent bytes. */
typedef struct dp_shelf_item {
    dp_hash root;
    dp_hash *leaves; /* n_chunks */
    uint32_t n_chunks;
    uint32_t n_bytes;
    uint64_t size; /* the announced size: n_bytes, and more for an object of several chunks */
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
/* Copies bytes (1..DP_CHUNK_BYTES_MIN of them). The same bytes give the same number. Aborts if
 * memory is exhausted. */
uint32_t dp_shelf_add(dp_shelf *shelf, dp_view bytes);
/* The root of these bytes, whether on the shelf or not. */
dp_hash dp_shelf_root(const dp_shelf *shelf, dp_view bytes);
/* DP_SHELF_NONE if no node has made it. */
uint32_t dp_shelf_find(const dp_shelf *shelf, const dp_hash *root);
dp_view dp_shelf_bytes(const dp_shelf *shelf, uint32_t number);
/* index < n_chunks */
dp_view dp_shelf_chunk(const dp_shelf *shelf, uint32_t number, uint32_t index);

/* A fast 64-bit hash of bytes for traces and simulated signatures; not for hostile data. */
uint64_t dp_sim_hash(uint64_t seed, dp_view bytes);

#endif
