/* A table of distinct byte strings with their counts. */
#ifndef DP_COMPUTE_MACHINE_WORDS_H
#define DP_COMPUTE_MACHINE_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    DP_WORDS_MAX = 1 << 30,
    DP_WORDS_PROBES_MAX = 1024 /* probes of a search */
};

/* Distinct byte strings in order of first appearance. The bytes stay the caller's. */
typedef struct dp_words {
    dp_view *words;
    uint64_t *times; /* the count of each */
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /* open addressing: index + 1, or 0 */
    uint32_t n_slots;
} dp_words;

/* A zeroed dp_words is empty and open. */
void dp_words_close(dp_words *words);
/* Counts a word; *index: its index. DP_NOMEM; DP_TOOBIG (DP_WORDS_MAX; or words chosen so that a
 * search takes more than DP_WORDS_PROBES_MAX probes). */
DP_MUST dp_status dp_words_add(dp_words *words, dp_view word, uint32_t *index);
bool dp_words_find(const dp_words *words, dp_view word, uint32_t *index);

#endif
