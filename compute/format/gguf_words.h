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
/* Whole pairs. key: with the architecture in front when it begins with a dot. */
void dp_gguf_key(dp_gguf_pairs *pairs, const char *key, uint32_t type);
void dp_gguf_pair_u32(dp_gguf_pairs *pairs, const char *key, uint32_t value);
void dp_gguf_pair_real(dp_gguf_pairs *pairs, const char *key, float value);
void dp_gguf_pair_text(dp_gguf_pairs *pairs, const char *key, const char *value);

/* Whether llama.cpp knows how this tokenizer cuts text; otherwise it would make other tokens. */
bool dp_gguf_words_known(const dp_bpe *bpe);
/* tokenizer.ggml.*, of a known one: vocab entries; those that bpe lacks are marked as unused. */
void dp_gguf_words(dp_gguf_pairs *pairs, const dp_bpe *bpe, uint32_t vocab);

#endif
