/* Pretokenization: cuts text into the pieces that the model takes one by one, in steps as
 * tokenizer.json lists them. A step may change its text (spaces to a mark, a mark in front) and may
 * cut it where a pattern matches; each piece goes to the next step. */
#ifndef DP_COMPUTE_TEXT_PRETOKENIZER_H
#define DP_COMPUTE_TEXT_PRETOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "compute/unicode/matcher.h"

enum { DP_PRETOKENIZER_STEPS_MAX = 16, DP_MARK_BYTES_MAX = 4 };

/* Which of the matches and of the texts between them are pieces. */
typedef enum dp_split_behavior {
    DP_SPLIT_ISOLATED,             /* each match and each text between is a piece */
    DP_SPLIT_REMOVED,              /* matches are dropped */
    DP_SPLIT_CONTIGUOUS,           /* matches that touch are one piece */
    DP_SPLIT_MERGED_WITH_PREVIOUS, /* a match belongs to the text before it */
    DP_SPLIT_MERGED_WITH_NEXT
} dp_split_behavior;

/* Where a text gets a mark in front, if it does not begin with one. */
typedef enum dp_prefix { DP_PREFIX_NEVER, DP_PREFIX_FIRST, DP_PREFIX_ALWAYS } dp_prefix;

typedef struct dp_pretokenizer_step {
    uint8_t *pattern; /* owned; NULL: the step does not cut */
    size_t pattern_bytes;
    dp_pattern_kind kind;
    dp_split_behavior behavior;
    bool invert; /* matches are what is between, and the other way */
    dp_prefix prefix;
    bool replaces; /* each space becomes the mark */
    uint8_t mark[DP_MARK_BYTES_MAX];
    uint8_t mark_bytes;
} dp_pretokenizer_step;

/* A zeroed one is empty and open: the whole text is one piece. */
typedef struct dp_pretokenizer_steps {
    dp_pretokenizer_step items[DP_PRETOKENIZER_STEPS_MAX];
    unsigned count;
} dp_pretokenizer_steps;

void dp_pretokenizer_steps_close(dp_pretokenizer_steps *steps);
/* Appends a step; its pattern is copied from here, or absent if empty. DP_TOOBIG
 * (DP_PRETOKENIZER_STEPS_MAX), DP_NOMEM. */
DP_MUST dp_status dp_pretokenizer_steps_add(dp_pretokenizer_steps *steps,
                                            const dp_pretokenizer_step *step, dp_view pattern);

/* The pattern of GPT-2 (Radford et al. 2019), by which ByteLevel cuts. */
#define DP_PRETOKENIZER_GPT2                                                                       \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* Steps with compiled patterns, and the text that they cut; one thread at a time. */
typedef struct dp_pretokenizer dp_pretokenizer;

/* steps is borrowed until close. DP_UNSUPPORTED or DP_BADMSG (a pattern; the sentence has the
 * number of its step), DP_NOMEM. */
DP_MUST dp_status dp_pretokenizer_open(dp_pretokenizer **out, const dp_pretokenizer_steps *steps,
                                       dp_why *why);
void dp_pretokenizer_close(dp_pretokenizer *pieces); /* Accepts NULL. */
/* Begins a text, which is UTF-8 and borrowed until the last piece. first: its bytes at the start
 * that come from the first character of the document; pieces that begin there are
 * DP_PREFIX_FIRST. */
DP_MUST dp_status dp_pretokenizer_begin(dp_pretokenizer *pieces, dp_view text, size_t first);
/* The next piece, lent until the next call; never empty. DP_NOTFOUND: no more, without a sentence.
 * DP_TOOBIG: longer than DP_PIECE_BYTES_MAX, or the matcher gave up. DP_NOMEM. */
DP_MUST dp_status dp_pretokenizer_next(dp_pretokenizer *pieces, dp_view *piece, dp_why *why);

#endif
