/* Writes pairs of a GGUF file, and those of the tokenizer. Private to compute/format/gguf*.c. */
#ifndef DP_COMPUTE_FORMAT_GGUF_WORDS_H
#define DP_COMPUTE_FORMAT_GGUF_WORDS_H

#include <stdbool.h>

#include "base/bytes.h"
#include "compute/text/bpe.h"

/* Types of values. */
enum {
    DP_GGUF_U32 = 4,
    DP_GGUF_I32 = 5,
    DP_GGUF_REAL = 6,
    DP_GGUF_BOOL = 7,
    DP_GGUF_TEXT = 8,
    DP_GGUF_ARRAY = 9
};

/* Pairs that are appended and counted; after a failure further calls do nothing. */
typedef struct dp_gguf_pairs {
    dp_buf *out;
    uint64_t count;
    dp_status status;
} dp_gguf_pairs;

void dp_gguf_raw(dp_gguf_pairs *pairs, const void *bytes, size_t size);
void dp_gguf_u32(dp_gguf_pairs *pairs, uint32_t value);
void dp_gguf_u64(dp_gguf_pairs *pairs, uint64_t value);
void dp_gguf_string(dp_gguf_pairs *pairs, dp_view text);
/* Whole pairs. */
void dp_gguf_key(dp_gguf_pairs *pairs, const char *key, uint32_t type);
void dp_gguf_pair_u32(dp_gguf_pairs *pairs, const char *key, uint32_t value);
void dp_gguf_pair_real(dp_gguf_pairs *pairs, const char *key, float value);
void dp_gguf_pair_text(dp_gguf_pairs *pairs, const char *key, const char *value);

/* Whether llama.cpp makes the tokens of this tokenizer. It knows byte-level BPE by the names of
 * some patterns (its "gpt2"), and SentencePiece's BPE (its "llama"), which joins any neighbours
 * whose text is a token, by scores of tokens: ranks of merges are such scores if all merges of a
 * token follow each other, and every split of a token is one. DP_UNSUPPORTED with a sentence;
 * DP_NOMEM. */
DP_MUST dp_status dp_gguf_words_check(const dp_bpe *bpe, dp_why *why);
/* tokenizer.ggml.*, of a checked one: vocab entries; those that bpe lacks are marked as unused. */
void dp_gguf_words(dp_gguf_pairs *pairs, const dp_bpe *bpe, uint32_t vocab);

#endif
