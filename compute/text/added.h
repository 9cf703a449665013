/* Added tokens, which stand in text as they are, such as <|endoftext|>: finds them before
 * pretokenization. */
#ifndef DP_COMPUTE_TEXT_ADDED_H
#define DP_COMPUTE_TEXT_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_ADDED_MAX = 16384 }; /* Gemma 3 has 6,415 */

typedef struct dp_added_token {
    dp_view text; /* borrowed: lives as long as the table */
    uint32_t id;
    bool special;     /* stands for no text */
    bool single_word; /* not beside a word character */
    bool takes_left;  /* white space before it too (lstrip) */
    bool takes_right; /* white space after it too (rstrip) */
} dp_added_token;

/* A zeroed one is empty and open. */
typedef struct dp_added {
    dp_added_token *items; /* in order of their bytes */
    uint32_t count;
    uint32_t capacity;
    bool starts[256]; /* some token begins with this byte */
} dp_added;

void dp_added_close(dp_added *added);
/* Adds a token. DP_BADARG (empty), DP_EXISTS (the text), DP_TOOBIG (DP_ADDED_MAX), DP_NOMEM. */
DP_MUST dp_status dp_added_add(dp_added *added, dp_added_token token);
/* The leftmost token that starts at or after at; of several the longest. False: none. */
bool dp_added_next(const dp_added *added, dp_view text, size_t at, size_t *begin,
                   const dp_added_token **token);

#endif
