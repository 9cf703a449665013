/* Text cut into the pieces within which byte-pair merges happen, and a table that counts different pieces. No merges here
 * (bpe.h). */
#ifndef DP_COMPUTE_WORDS_H
#define DP_COMPUTE_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* A longer piece is cut, so that merging stays cheap on any text. (Hugging Face's tokenizers do not cut.) */
enum { DP_PIECE_BYTES_MAX = 1024 };

typedef struct dp_split dp_split;

/* Pieces by the pattern of GPT-2 (Radford et al. 2019): contractions, letters, digits, other signs, each with one leading
 * space, and white space. text is borrowed until close.
 * DP_BADARG: empty. DP_BADMSG: not UTF-8; why says at which byte. DP_UNSUPPORTED: no Unicode in this pcre2. DP_NOMEM. */
DP_MUST dp_status dp_split_open(dp_split **out, dp_view text, dp_why *why);
void dp_split_close(dp_split *split);
/* False at the end. The pieces are the text in order, nothing left out. */
bool dp_split_next(dp_split *split, dp_view *piece);

/* The first byte that is not UTF-8, or size if all is. */
size_t dp_utf8_bad_at(dp_view text);

/* Different byte strings in order of first appearance. The bytes stay the caller's. */
typedef struct dp_words {
    dp_view *words;
    uint64_t *times; /* how often each was added */
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /* open addressing: index + 1, or 0 */
    uint32_t n_slots;
} dp_words;

/* A zeroed dp_words is empty and open. */
void dp_words_close(dp_words *words);
/* *index of the word, added or found. DP_NOMEM, DP_TOOBIG (2^30 words). */
DP_MUST dp_status dp_words_add(dp_words *words, dp_view word, uint32_t *index);
bool dp_words_find(const dp_words *words, dp_view word, uint32_t *index);

#endif
