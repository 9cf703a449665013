#include "base/digest.h"

#include <sodium.h>
#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"

_Static_assert(sizeof(crypto_generichash_state) <= sizeof(dp_digest), "dp_digest is too small");
_Static_assert(_Alignof(crypto_generichash_state) <= _Alignof(dp_digest),
               "dp_digest is misaligned");

static const char chunk_domain[] = "dpnode/chunk/1";
static const char object_domain[] = "dpnode/object/1";

static crypto_generichash_state *state_of(dp_digest *digest)
{
    return (crypto_generichash_state *)(void *)digest->opaque;
}

/* sodium_init picks the fastest implementation. It may be called often and by several threads; the
 * flag only saves its lock. If it fails the portable implementation is used, which gives the same
 * bytes. */
static void pick_implementation(void)
{
    static atomic_bool picked;

    if (!atomic_load_explicit(&picked, memory_order_relaxed)) {
        if (sodium_init() >= 0) {
            atomic_store_explicit(&picked, true, memory_order_relaxed);
        }
    }
}

void dp_digest_init(dp_digest *digest, const char *domain)
{
    pick_implementation();
    const int failed = crypto_generichash_init(state_of(digest), NULL, 0, DP_HASH_BYTES);
    dp_assert(failed == 0);
    dp_digest_add(digest, dp_view_of(domain, strlen(domain) + 1));
}

void dp_digest_add(dp_digest *digest, dp_view bytes)
{
    if (bytes.size > 0) {
        const int failed = crypto_generichash_update(state_of(digest), bytes.data, bytes.size);
        dp_assert(failed == 0);
    }
}

void dp_digest_add_u64(dp_digest *digest, uint64_t value)
{
    uint8_t bytes[8];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    dp_write_u64(&writer, value);
    dp_digest_add(digest, dp_view_of(bytes, sizeof bytes));
}

dp_hash dp_digest_end(dp_digest *digest)
{
    dp_hash hash;

    const int failed = crypto_generichash_final(state_of(digest), hash.bytes, DP_HASH_BYTES);
    dp_assert(failed == 0);
    return hash;
}

dp_hash dp_hash_of(const char *domain, dp_view bytes)
{
    dp_digest digest;

    dp_digest_init(&digest, domain);
    dp_digest_add(&digest, bytes);
    return dp_digest_end(&digest);
}

bool dp_hash_is_zero(const dp_hash *hash)
{
    static const dp_hash zero;

    return dp_hash_equal(hash, &zero);
}

int dp_hash_compare(const dp_hash *a, const dp_hash *b)
{
    return memcmp(a->bytes, b->bytes, DP_HASH_BYTES);
}

uint32_t dp_object_chunk_bytes(uint64_t size)
{
    uint32_t chunk_bytes = DP_CHUNK_BYTES_MIN;

    while (chunk_bytes < DP_CHUNK_BYTES_MAX && size > (uint64_t)DP_CHUNKS_AIM * chunk_bytes) {
        chunk_bytes *= 2;
    }
    return chunk_bytes;
}

uint32_t dp_object_chunks(uint64_t size)
{
    const uint32_t chunk_bytes = dp_object_chunk_bytes(size);

    if (size > DP_OBJECT_BYTES_MAX) {
        return DP_CHUNKS_MAX + 1;
    }
    return (uint32_t)((size + chunk_bytes - 1) / chunk_bytes);
}

uint32_t dp_object_chunk_size(uint64_t size, uint32_t index)
{
    const uint32_t chunk_bytes = dp_object_chunk_bytes(size);
    const uint64_t start = (uint64_t)index * chunk_bytes;

    dp_assert(start < size);
    return size - start < chunk_bytes ? (uint32_t)(size - start) : chunk_bytes;
}

dp_hash dp_chunk_leaf(dp_view chunk)
{
    return dp_hash_of(chunk_domain, chunk);
}

dp_hash dp_object_root(uint64_t size, const dp_hash *leaves)
{
    dp_digest digest;

    dp_assert(size <= DP_OBJECT_BYTES_MAX);
    dp_digest_init(&digest, object_domain);
    dp_digest_add_u64(&digest, size);
    dp_digest_add(&digest, dp_view_of(leaves, (size_t)dp_object_chunks(size) * sizeof(dp_hash)));
    return dp_digest_end(&digest);
}

dp_hash dp_object_hash(dp_view bytes, dp_hash *leaves)
{
    dp_digest digest;
    const uint32_t chunks = dp_object_chunks(bytes.size);
    const uint8_t *at = bytes.data;

    dp_assert(bytes.size <= DP_OBJECT_BYTES_MAX);
    dp_digest_init(&digest, object_domain);
    dp_digest_add_u64(&digest, bytes.size);
    for (uint32_t i = 0; i < chunks; i++) {
        const uint32_t chunk_size = dp_object_chunk_size(bytes.size, i);
        const dp_hash leaf = dp_chunk_leaf(dp_view_of(at, chunk_size));

        at += chunk_size;
        dp_digest_add(&digest, dp_view_of(leaf.bytes, DP_HASH_BYTES));
        if (leaves != NULL) {
            leaves[i] = leaf;
        }
    }
    return dp_digest_end(&digest);
}
