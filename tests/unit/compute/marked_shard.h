/* Shards of documents that are kept apart, from tokens and their marks. For tests. */
#ifndef DP_TESTS_UNIT_COMPUTE_MARKED_SHARD_H
#define DP_TESTS_UNIT_COMPUTE_MARKED_SHARD_H

#include "tests/lib/check.h"

#include "compute/data/shard.h"

/* Appends a shard to out. marks: dp_mark bits, one of each token; nothing is checked. */
static inline void marked_shard(const uint32_t *ids, const uint8_t *marks, size_t n, uint32_t vocab,
                                dp_buf *out)
{
    uint8_t header[DP_SHARD_HEADER_BYTES];
    uint8_t *room;
    const uint32_t token_bytes = dp_shard_token_bytes(vocab);
    const size_t bits = (size_t)dp_shard_bits_bytes(n);
    dp_shard_header(header, vocab, n, n, true);
    CHECK_OK(dp_buf_append(out, dp_view_of(header, sizeof header)));
    CHECK_OK(dp_buf_reserve(out, n * token_bytes + 2 * bits, &room));
    memset(room, 0, n * token_bytes + 2 * bits);
    dp_shard_pack(ids, n, token_bytes, room);
    for (size_t i = 0; i < n; i++) {
        const uint8_t bit = (uint8_t)(1U << (i % 8));
        room[n * token_bytes + i / 8] |= (marks[i] & DP_MARK_BEGINS) != 0 ? bit : (uint8_t)0;
        room[n * token_bytes + bits + i / 8] |= (marks[i] & DP_MARK_LOSS) != 0 ? bit : (uint8_t)0;
    }
    dp_buf_commit(out, n * token_bytes + 2 * bits);
}

#endif
