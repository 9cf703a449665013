/* Byte-level byte-pair encoding (Sennrich et al. 2016; over bytes as in GPT-2): text <-> tokens, training, and the file
 * that Hugging Face's tokenizers call tokenizer.json. No files are opened here.
 *
 * Token ids: the 256 bytes first, in order of the code points by which tokenizer.json writes them ('!' is 0), then one
 * per merge that makes a new string. Everything is deterministic. */
#ifndef DP_COMPUTE_BPE_H
#define DP_COMPUTE_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    DP_BPE_TOKENS_MIN = 256,
    DP_BPE_TOKENS_MAX = 65536,    /* pairs of ids are u32 keys */
    DP_BPE_TOKEN_BYTES_MAX = 256, /* of one token */
    DP_BPE_JSON_BYTES_MAX = 32 << 20
};

typedef struct dp_bpe dp_bpe;

/* Tokens that grow. A zeroed one is empty and open. */
typedef struct dp_tokens {
    uint32_t *ids;
    size_t count;
    size_t capacity;
} dp_tokens;

void dp_tokens_close(dp_tokens *tokens);

/* Merge the most frequent pair of neighbours within pieces (words.h) until there are n_tokens, or no pair occurs twice;
 * the least pair of ids wins a tie. DP_BADARG (n_tokens, empty text), DP_BADMSG (not UTF-8), DP_NOMEM; why may be NULL. */
DP_MUST dp_status dp_bpe_train(dp_bpe **out, dp_view text, size_t n_tokens, dp_why *why);
void dp_bpe_close(dp_bpe *bpe); /* Accepts NULL. */

size_t dp_bpe_count(const dp_bpe *bpe);
/* The bytes of a token, lent until close; empty for ids out of range. */
dp_view dp_bpe_token(const dp_bpe *bpe, uint32_t id);

/* Append the tokens of text. DP_BADARG (empty), DP_BADMSG (not UTF-8), DP_NOMEM: then tokens are as before. */
DP_MUST dp_status dp_bpe_encode(const dp_bpe *bpe, dp_view text, dp_tokens *tokens, dp_why *why);
/* Append the bytes of the tokens, which need not be UTF-8. DP_BADARG (id), DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_bpe_decode(const dp_bpe *bpe, const uint32_t *ids, size_t count, dp_buf *out);

/* tokenizer.json, the same bytes for the same tokens. */
DP_MUST dp_status dp_bpe_save(const dp_bpe *bpe, dp_buf *out);
/* Total. DP_BADMSG with a sentence unless it is a byte-level BPE whose ids are 0..n-1, with all bytes, and merges that make
 * tokens of the vocabulary. Added tokens and normalizers are not supported. */
DP_MUST dp_status dp_bpe_load(dp_bpe **out, dp_view json, dp_why *why);

#endif
