/* One file of tokens in memory: the token shard of dpnode, and those of llm.c and nanoGPT. Opens no
 * files; data.h decides which tokens a step reads.
 *
 *   dpnode, version 1 and 3 (u16), 2 and 4 (u32)    llm.c, 256 int32, the others 0
 *   offset size                                      offset size
 *        0    4  "DPD1"                                   0    4  20240520 (u16) or 20240801 (u32)
 *        4    2  version 1 to 4                           4    4  version 1 with u16, 7 with u32
 *        6    2  0 with u16, 4 with u32                   8    4  tokens n
 *        8    4  vocab: every token is less            1024       n tokens
 *       12    4  0
 *       16    8  tokens n                              nanoGPT
 *       24    8  bytes of the text they stand for         0       tokens, u16, and nothing else, so
 *       32       n tokens                                         that its name alone tells it
 *                versions 3 and 4: n bits: the token begins a document | n bits: it has a loss
 * Numbers and tokens are little-endian. u32 where the vocabulary has more than 65,536 tokens.
 *
 * Versions 3 and 4 hold documents that are kept apart. Bits fill bytes from the lowest up, and each
 * field of bits ends on a byte; the rest is 0. The first token begins a document. A token that
 * begins one has no loss: nothing of its document stands before it, and a model that reads the
 * document before would learn from another text. */
#ifndef DP_COMPUTE_DATA_SHARD_H
#define DP_COMPUTE_DATA_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_SHARD_HEADER_BYTES = 32 };

/* Marks of a token among documents that are kept apart. */
typedef enum dp_mark {
    DP_MARK_BEGINS = 1, /* the token begins a document */
    DP_MARK_LOSS = 2    /* it is a target: the model learns to predict it */
} dp_mark;

typedef enum dp_shard_format { DP_SHARD_OWN, DP_SHARD_LLMC, DP_SHARD_NANOGPT } dp_shard_format;

typedef struct dp_shard {
    dp_shard_format format;
    const uint8_t *tokens; /* borrowed */
    uint64_t n_tokens;
    uint32_t token_bytes;  /* 2 or 4 */
    uint32_t vocab;        /* 0: the file does not say */
    uint64_t text_bytes;   /* 0: the file does not say */
    const uint8_t *begins; /* bits, borrowed; NULL: no documents, as for losses */
    const uint8_t *losses;
} dp_shard;

/* "dpnode", "llm.c", "nanoGPT" */
const char *dp_shard_format_name(dp_shard_format format);
/* Bytes of one token in a shard of dpnode for this vocabulary. */
uint32_t dp_shard_token_bytes(uint32_t vocab);

/* The header of a token shard of dpnode. documents: bits follow the tokens. */
void dp_shard_header(uint8_t out[DP_SHARD_HEADER_BYTES], uint32_t vocab, uint64_t n_tokens,
                     uint64_t text_bytes, bool documents);
/* Bytes of n bits. */
static inline uint64_t dp_shard_bits_bytes(uint64_t n)
{
    return n / 8 + (n % 8 != 0);
}
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
/* Checks that all tokens are below vocab and below the shard's own vocabulary, and the bits of
 * documents. DP_BADARG with token and vocabulary; DP_BADMSG: above the shard's own, or a token that
 * begins a document has a loss. */
DP_MUST dp_status dp_shard_check(const dp_shard *shard, uint32_t vocab, dp_why *why);

/* Reads tokens first .. first + count - 1, which must exist. */
void dp_shard_read(const dp_shard *shard, uint64_t first, size_t count, uint32_t *ids);
/* The marks of a token; of a shard without documents each token has a loss and begins nothing. */
unsigned dp_shard_marks(const dp_shard *shard, uint64_t index);
/* Tokens with a loss among first .. first + count - 1, which must exist. */
uint64_t dp_shard_losses(const dp_shard *shard, uint64_t first, uint64_t count);
/* The smallest vocabulary that holds all tokens: the largest one plus 1; 0 without tokens. */
uint64_t dp_shard_needs(const dp_shard *shard);

#endif
