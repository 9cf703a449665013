/* One file of tokens in memory: the token shard of dpnode, and those of llm.c and nanoGPT. Opens no
 * files; data.h decides which tokens a step reads.
 *
 *   dpnode, version 1 (u16) and 2 (u32)             llm.c, 256 int32, the others 0
 *   offset size                                      offset size
 *        0    4  "DPD1"                                   0    4  20240520 (u16) or 20240801 (u32)
 *        4    2  version 1 or 2                           4    4  version 1 with u16, 7 with u32
 *        6    2  0 in version 1, 4 in version 2           8    4  tokens n
 *        8    4  vocab: every token is less            1024       n tokens
 *       12    4  0
 *       16    8  tokens n                              nanoGPT
 *       24    8  bytes of the text they stand for         0       tokens, u16, and nothing else, so
 *       32       n tokens                                         that its name alone tells it
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
/* Bytes of one token in a shard of dpnode for this vocabulary. */
uint32_t dp_shard_token_bytes(uint32_t vocab);

/* The header of a token shard of dpnode. */
void dp_shard_header(uint8_t out[DP_SHARD_HEADER_BYTES], uint32_t vocab, uint64_t n_tokens,
                     uint64_t text_bytes);
/* Writes count tokens in the form of a file; out has count * token_bytes. */
void dp_shard_pack(const uint32_t *ids, size_t count, uint32_t token_bytes, uint8_t *out);
/* Appends a whole shard of dpnode to out. ids: all less than vocab, which is asserted. DP_TOOBIG,
 * DP_NOMEM. */
DP_MUST dp_status dp_shard_write(const uint32_t *ids, size_t count, uint32_t vocab,
                                 uint64_t text_bytes, dp_buf *out);

/* Opens a shard of dpnode or llm.c, told apart by their first bytes, which are borrowed. Accepts
 * any bytes; does not read the tokens. DP_BADMSG, DP_VERSION. */
DP_MUST dp_status dp_shard_open(dp_shard *shard, dp_view bytes, dp_why *why);
/* Opens bytes that the caller knows to be nanoGPT's. DP_BADMSG: odd size. */
DP_MUST dp_status dp_shard_open_nanogpt(dp_shard *shard, dp_view bytes, dp_why *why);
/* Checks that all tokens are below vocab and below the shard's own vocabulary. DP_BADARG with token
 * and vocabulary; DP_BADMSG: above the shard's own. */
DP_MUST dp_status dp_shard_check(const dp_shard *shard, uint32_t vocab, dp_why *why);

/* Reads tokens first .. first + count - 1, which must exist. */
void dp_shard_read(const dp_shard *shard, uint64_t first, size_t count, uint32_t *ids);
/* The smallest vocabulary that holds all tokens: the largest one plus 1; 0 without tokens. */
uint64_t dp_shard_needs(const dp_shard *shard);

#endif
