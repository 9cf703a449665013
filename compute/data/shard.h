/* One file of tokens in memory: our own token shard, and those of llm.c and nanoGPT. Opens no
 * files; which tokens a step sees is said in data.h.
 *
 *   ours, version 1 (u16) and 2 (u32)                llm.c, 256 int32, the others 0
 *   offset size                                      offset size
 *        0    4  "DPD1"                                   0    4  20240520 (u16) or 20240801 (u32)
 *        4    2  version 1 or 2                           4    4  version 1 with u16, 7 with u32
 *        6    2  0 in version 1, 4 in version 2           8    4  tokens n
 *        8    4  vocab: every token is less            1024       n tokens
 *       12    4  0
 *       16    8  tokens n                            nanoGPT: tokens, u16, and nothing else, so
 *             that a file of it is known
 *       24    8  bytes of the text they stand for             only by being called so
 *       32       n tokens
 * Numbers and tokens are little-endian. u32 where the vocabulary has more than 65,536 tokens. */
#ifndef DP_COMPUTE_DATA_SHARD_H
#define DP_COMPUTE_DATA_SHARD_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_SHARD_HEADER_BYTES = 32 };

typedef enum dp_shard_format { DP_SHARD_OWN, DP_SHARD_LLMC, DP_SHARD_NANOGPT } dp_shard_format;

typedef struct dp_shard {
    dp_shard_format format;
    const uint8_t *tokens; /* borrowed */
    uint64_t n_tokens;
    uint32_t token_bytes; /* 2 or 4 */
    uint32_t vocab;       /* 0: the file does not say */
    uint64_t text_bytes;  /* 0: the file does not say */
} dp_shard;

/* "dpnode", "llm.c", "nanoGPT" */
const char *dp_shard_format_name(dp_shard_format format);
/* Bytes of one token in a shard of ours for this vocabulary. */
uint32_t dp_shard_token_bytes(uint32_t vocab);

/* The header of a shard of ours. */
void dp_shard_header(uint8_t out[DP_SHARD_HEADER_BYTES], uint32_t vocab, uint64_t n_tokens,
                     uint64_t text_bytes);
/* count tokens as they stand in a file; room for count * token_bytes. */
void dp_shard_pack(const uint32_t *ids, size_t count, uint32_t token_bytes, uint8_t *out);
/* Append a whole shard of ours to out. ids: all less than vocab, which is asserted. DP_TOOBIG,
 * DP_NOMEM. */
DP_MUST dp_status dp_shard_write(const uint32_t *ids, size_t count, uint32_t vocab,
                                 uint64_t text_bytes, dp_buf *out);

/* Total. Knows ours and llm.c's by their first bytes; bytes are borrowed. Does not look at the
 * tokens. DP_BADMSG, DP_VERSION. */
DP_MUST dp_status dp_shard_open(dp_shard *shard, dp_view bytes, dp_why *why);
/* Bytes that are called nanoGPT's. DP_BADMSG: odd size. */
DP_MUST dp_status dp_shard_open_nanogpt(dp_shard *shard, dp_view bytes, dp_why *why);
/* Looks at all tokens once: they must be less than vocab, and than the shard's own. DP_BADARG,
 * naming token and vocabulary; DP_BADMSG if the shard breaks its own word. */
DP_MUST dp_status dp_shard_check(const dp_shard *shard, uint32_t vocab, dp_why *why);

/* Tokens first .. first + count - 1, which must be there. */
void dp_shard_read(const dp_shard *shard, uint64_t first, size_t count, uint32_t *ids);
/* One more than the greatest token; 0 of no tokens. */
uint64_t dp_shard_needs(const dp_shard *shard);

#endif
