/* The Unigram model (Kudo 2018): of all ways to write a text as tokens, the one with the largest
 * sum of scores, found by Viterbi's algorithm. Sums are of doubles from left to right, and the
 * first of equals wins, as in Hugging Face's tokenizers. */
#ifndef DP_COMPUTE_TEXT_UNIGRAM_H
#define DP_COMPUTE_TEXT_UNIGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "compute/text/trie.h"

/* An unknown character scores this much less than the worst token. */
#define DP_UNIGRAM_UNKNOWN_PENALTY 10.0

/* A zeroed one may be closed. */
typedef struct dp_unigram {
    dp_trie trie;   /* bytes of a token -> id */
    double *scores; /* by id, finite */
    uint32_t count;
    uint32_t unknown; /* id */
    double unknown_score;
} dp_unigram;

void dp_unigram_close(dp_unigram *unigram);

/* A token of the best way, or a run of unknown characters. */
typedef struct dp_unigram_part {
    uint32_t begin;
    uint32_t end;
    uint32_t id; /* unigram->unknown for a run */
} dp_unigram_part;

/* Working memory, which grows with the longest text. A zeroed one is empty and open. */
typedef struct dp_unigram_room {
    void *memory;
    size_t size;
    dp_unigram_part *parts;
    size_t n_parts;
} dp_unigram_room;

void dp_unigram_room_close(dp_unigram_room *room);
/* Leaves the parts of text, which is UTF-8 and below 1 GiB, in room->parts. 28 bytes of memory for
 * each byte. DP_NOMEM. */
DP_MUST dp_status dp_unigram_apply(const dp_unigram *unigram, dp_unigram_room *room, dp_view text);

#endif
