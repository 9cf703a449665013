/* BLAKE2b-256 of views, and the two-level hash that names every object (update, state, data,
 * manifest). */
#ifndef DP_BASE_DIGEST_H
#define DP_BASE_DIGEST_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

enum { DP_HASH_BYTES = 32 };

typedef struct dp_hash {
    uint8_t bytes[DP_HASH_BYTES];
} dp_hash;

/* Incremental BLAKE2b-256 (Aumasson et al. 2013). The domain string separates hashes of different
 * kinds: it is hashed first, followed by one zero byte. */
typedef struct dp_digest {
    alignas(64) uint8_t opaque[384]; /* crypto_generichash_state */
} dp_digest;

void dp_digest_init(dp_digest *digest, const char *domain);
void dp_digest_add(dp_digest *digest, dp_view bytes);
void dp_digest_add_u64(dp_digest *digest, uint64_t value);
dp_hash dp_digest_end(dp_digest *digest);
/* One call for one view. */
dp_hash dp_hash_of(const char *domain, dp_view bytes);
/* Inline, because nearly every step of a node searches tables of hashes. */
static inline bool dp_hash_equal(const dp_hash *a, const dp_hash *b)
{
    return memcmp(a->bytes, b->bytes, DP_HASH_BYTES) == 0;
}
bool dp_hash_is_zero(const dp_hash *hash);
/* Compares byte by byte: negative, 0, positive. */
int dp_hash_compare(const dp_hash *a, const dp_hash *b);

/* An object is a run of bytes cut in chunks of one size, which follows from its total size alone:
 * 256 KiB, doubled until at most 1,024 chunks are needed, at most 4 MiB; above 4 GiB there are more
 * chunks, up to 2,048. leaf = H("dpnode/chunk/1", bytes of the chunk); root = H("dpnode/object/1",
 * u64 size, leaves in order). An empty object has no chunk and a root all the same. */
enum {
    DP_CHUNK_BYTES_MIN = 256 * 1024,
    DP_CHUNK_BYTES_MAX = 4 * 1024 * 1024,
    DP_CHUNKS_AIM = 1024,
    DP_CHUNKS_MAX = 2048
};
#define DP_OBJECT_BYTES_MAX ((uint64_t)DP_CHUNKS_MAX * DP_CHUNK_BYTES_MAX)

uint32_t dp_object_chunk_bytes(uint64_t size);
/* Number of chunks; DP_CHUNKS_MAX + 1 for a size above DP_OBJECT_BYTES_MAX, so that checks against
 * DP_CHUNKS_MAX refuse it. */
uint32_t dp_object_chunks(uint64_t size);
/* Bytes in chunk index (the last one may be short). index < dp_object_chunks(size). */
uint32_t dp_object_chunk_size(uint64_t size, uint32_t index);
dp_hash dp_chunk_leaf(dp_view chunk);
/* leaves: dp_object_chunks(size) of them. */
dp_hash dp_object_root(uint64_t size, const dp_hash *leaves);
/* Root of bytes in memory; leaves may be NULL, else it receives dp_object_chunks(size) hashes. */
dp_hash dp_object_hash(dp_view bytes, dp_hash *leaves);

#endif
