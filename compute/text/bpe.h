/* Tokenizers: text <-> tokens, training, and the file that Hugging Face's tokenizers call
 * tokenizer.json. No files are opened here.
 *
 * Encoding has these steps: added tokens that are not normalised are cut out; the text between them
 * is normalised (normalizer.h); the other added tokens are cut out; the rest is cut into pieces
 * (pretokenizer.h); the model makes tokens of each piece. Models: byte-pair encoding (Sennrich et
 * al. 2016; merges.h) over bytes, as in GPT-2, or over characters with tokens for bytes, as
 * SentencePiece does it; and Unigram (unigram.h).
 *
 * Tokens trained here: the 256 bytes first, in order of the code points by which tokenizer.json
 * writes them ('!' is 0), then one per merge that makes a new string; pieces of GPT-2. Everything
 * is deterministic, for one version of the Unicode tables of pcre2 and utf8proc (decision 058). */
#ifndef DP_COMPUTE_TEXT_BPE_H
#define DP_COMPUTE_TEXT_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    DP_BPE_TOKENS_MIN = 256,
    DP_BPE_TOKENS_MAX =
        262144, /* limit of ids; the largest published byte-level vocabularies have 201,088 */
    DP_BPE_TOKEN_BYTES_MAX = 256, /* of one token */
    DP_BPE_JSON_BYTES_MAX = 64 << 20
};

typedef struct dp_bpe dp_bpe;

/* Tokens that grow. A zeroed one is empty and open. */
typedef struct dp_tokens {
    uint32_t *ids;
    size_t count;
    size_t capacity;
} dp_tokens;

void dp_tokens_close(dp_tokens *tokens);
/* DP_NOMEM: as before. */
DP_MUST dp_status dp_tokens_append(dp_tokens *tokens, const uint32_t *ids, size_t count);

/* Trains a tokenizer: merges the most frequent pair of neighbours within pieces until there are
 * n_tokens, or no pair occurs twice; the smallest pair of ids wins a tie. DP_BADARG (n_tokens,
 * empty text), DP_BADMSG (not UTF-8), DP_NOMEM; why may be NULL. */
DP_MUST dp_status dp_bpe_train(dp_bpe **out, dp_view text, size_t n_tokens, dp_why *why);
void dp_bpe_close(dp_bpe *bpe); /* Accepts NULL. */

/* The highest id plus 1: the smallest vocabulary of a model. */
size_t dp_bpe_count(const dp_bpe *bpe);
/* The bytes of a token as the model knows them, lent until close; empty for an unused id. */
dp_view dp_bpe_token(const dp_bpe *bpe, uint32_t id);
/* Bytes of text that a token stands for: a mark for a space counts one. 0 for an unused id, and for
 * a special token. */
size_t dp_bpe_text_bytes(const dp_bpe *bpe, uint32_t id);
/* Makes text a special token with the next id. DP_BADARG (empty), DP_EXISTS, DP_TOOBIG,
 * DP_NOMEM. */
DP_MUST dp_status dp_bpe_add_special(dp_bpe *bpe, dp_view text, uint32_t *id);
/* Id of the added token with this text; false if there is none. */
bool dp_bpe_special(const dp_bpe *bpe, dp_view text, uint32_t *id);

/* The token after each document: the one that the file's post-processor puts there, else the first
 * that exists of <|endoftext|>, <|end_of_text|>, </s>, <|end|>, <eos> and
 * <｜end▁of▁sentence｜>. False: none. */
bool dp_bpe_end_of_text(const dp_bpe *bpe, uint32_t *id);
/* The tokens that the file's post-processor puts before each document, such as <s>; lent until
 * close. */
const uint32_t *dp_bpe_begin_of_text(const dp_bpe *bpe, size_t *count);

/* An encoder caches frequent pieces. One thread at a time; bpe is borrowed until close. */
typedef struct dp_encoder dp_encoder;

/* DP_NOMEM, DP_UNSUPPORTED (matcher.h). */
DP_MUST dp_status dp_encoder_open(dp_encoder **out, const dp_bpe *bpe, dp_why *why);
void dp_encoder_close(dp_encoder *encoder); /* Accepts NULL. */
/* Appends the tokens of text, which may be empty. DP_BADMSG (not UTF-8, or too many combining
 * marks), DP_TOOBIG (a piece, or the growth by a normalizer), DP_NOMEM: tokens are unchanged. */
DP_MUST dp_status dp_encode(dp_encoder *encoder, dp_view text, dp_tokens *tokens, dp_why *why);

/* Opens an encoder, encodes one text, and closes it. */
DP_MUST dp_status dp_bpe_encode(const dp_bpe *bpe, dp_view text, dp_tokens *tokens, dp_why *why);
/* Appends the text of the tokens, by the file's decoder. With pieces of bytes these are the bytes,
 * which may be no UTF-8, and added tokens as they are written. DP_BADARG (id), DP_TOOBIG,
 * DP_NOMEM. */
DP_MUST dp_status dp_bpe_decode(const dp_bpe *bpe, const uint32_t *ids, size_t count, dp_buf *out);

/* Appends tokenizer.json, the same bytes for the same tokenizer. DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_bpe_save(const dp_bpe *bpe, dp_buf *out);
/* Reads a tokenizer, exactly or not at all. Accepts any bytes: DP_BADMSG or DP_UNSUPPORTED with a
 * sentence that names the part and its place, DP_TOOBIG, DP_NOMEM. Over bytes, all bytes must have
 * a token; merges must make tokens of the vocabulary, ids must be unique and below
 * DP_BPE_TOKENS_MAX; some ids may be unused. Special tokens with higher ids are left out.
 * Truncation and padding are ignored: they concern single inputs, not the stream that a model
 * trains on. */
DP_MUST dp_status dp_bpe_load(dp_bpe **out, dp_view json, dp_why *why);

#endif
