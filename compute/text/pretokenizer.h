/* Pretokenization: cuts text into the pieces within which byte-pair merges happen, with the
 * patterns of GPT-2, Llama-3 and Qwen2, run by pcre2. No merges here (merges.h).
 *
 * Only known patterns are run: pcre2 could read a pattern of a file in another way than the program
 * that trained with it, and a pattern could be made to never end. A new one is a row in
 * pretokenizer.c, after a comparison. White space is spelled out as Unicode's White_Space, because
 * \s of pcre2 also has U+180E. */
#ifndef DP_COMPUTE_TEXT_PRETOKENIZER_H
#define DP_COMPUTE_TEXT_PRETOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

typedef enum dp_pretokenizer_kind {
    DP_PRETOKENIZER_GPT2, /* Radford et al. 2019; ByteLevel of Hugging Face's tokenizers */
    /* digits in threes from the left, contractions in any case, line ends with the characters
     * before them */
    DP_PRETOKENIZER_LLAMA3,
    DP_PRETOKENIZER_QWEN2, /* the same with single digits */
    DP_PRETOKENIZER_KINDS
} dp_pretokenizer_kind;

/* A longer piece is refused: merging takes 32 bytes of memory for each of its bytes. */
enum { DP_PIECE_BYTES_MAX = 64 << 20 };

/* The pattern as tokenizer.json writes it. */
const char *dp_pretokenizer_pattern(dp_pretokenizer_kind kind);
/* False if no kind has this pattern. */
bool dp_pretokenizer_kind_of(const char *pattern, dp_pretokenizer_kind *kind);

/* A compiled pattern; one thread at a time. */
typedef struct dp_pretokenizer dp_pretokenizer;

/* DP_NOMEM; DP_UNSUPPORTED: this pcre2 has no Unicode. */
DP_MUST dp_status dp_pretokenizer_open(dp_pretokenizer **out, dp_pretokenizer_kind kind,
                                       dp_why *why);
void dp_pretokenizer_close(dp_pretokenizer *pieces); /* Accepts NULL. */
/* The size, at least 1, of the piece that starts at at < text.size; pieces follow one another
 * without gaps. text is UTF-8 (utf8.h), and at is the start of a character. DP_TOOBIG: longer than
 * DP_PIECE_BYTES_MAX, or the matcher gave up. */
DP_MUST dp_status dp_pretokenizer_next(dp_pretokenizer *pieces, dp_view text, size_t at,
                                       size_t *size, dp_why *why);

#endif
