/* Normalization: changes the text between added tokens before it is cut into pieces, in steps as
 * tokenizer.json lists them. */
#ifndef DP_COMPUTE_TEXT_NORMALIZER_H
#define DP_COMPUTE_TEXT_NORMALIZER_H

#include <stdbool.h>

#include "base/bytes.h"
#include "compute/unicode/charsmap.h"
#include "compute/unicode/matcher.h"

enum {
    DP_NORMALIZER_STEPS_MAX = 16,
    DP_NORMALIZER_CONTENT_MAX = 256, /* bytes that replace a match, or are put in front */
    DP_NORMALIZER_GROWTH_MAX = 64    /* times the bytes of the text, by all steps together */
};

/* The order is that of the table in normalizer.c. */
typedef enum dp_normalizer_kind {
    DP_NORMALIZER_NFC,
    DP_NORMALIZER_NFD,
    DP_NORMALIZER_NFKC,
    DP_NORMALIZER_NFKD,
    DP_NORMALIZER_LOWERCASE,
    DP_NORMALIZER_STRIP,         /* white space at the ends */
    DP_NORMALIZER_STRIP_ACCENTS, /* all marks */
    DP_NORMALIZER_NMT,           /* control characters away, others to spaces */
    DP_NORMALIZER_REPLACE,
    DP_NORMALIZER_PREPEND,
    DP_NORMALIZER_PRECOMPILED, /* charsmap.h */
    DP_NORMALIZER_KINDS
} dp_normalizer_kind;

typedef struct dp_normalizer_step {
    dp_normalizer_kind kind;
    bool left; /* which ends are stripped */
    bool right;
    dp_pattern_kind pattern_kind; /* DP_PATTERN_REGEX or DP_PATTERN_LITERAL */
    dp_buf pattern;               /* that is replaced */
    dp_buf content;               /* what comes for it, or in front */
    dp_charsmap *map;
} dp_normalizer_step;

/* A zeroed one is empty and open. */
typedef struct dp_normalizer_steps {
    dp_normalizer_step items[DP_NORMALIZER_STEPS_MAX];
    unsigned count;
} dp_normalizer_steps;

void dp_normalizer_steps_close(dp_normalizer_steps *steps);
/* The kind whose type tokenizer.json writes like this; false: none. */
bool dp_normalizer_kind_of(const char *type, dp_normalizer_kind *kind);

/* Steps with compiled patterns, and room for texts; one thread at a time. */
typedef struct dp_normalizer dp_normalizer;

/* steps is borrowed until close. DP_UNSUPPORTED or DP_BADMSG (a pattern, with the number of its
 * step), DP_NOMEM. */
DP_MUST dp_status dp_normalizer_open(dp_normalizer **out, const dp_normalizer_steps *steps,
                                     dp_why *why);
void dp_normalizer_close(dp_normalizer *normalizer); /* Accepts NULL. */
/* *normal: text after all steps, lent until the next call; text itself if there are none. *first:
 * the bytes at its start that come from the first character of text. DP_BADMSG (utf8.h), DP_TOOBIG
 * (growth; or a matcher gave up), DP_NOMEM. */
DP_MUST dp_status dp_normalizer_apply(dp_normalizer *normalizer, dp_view text, dp_view *normal,
                                      size_t *first, dp_why *why);

#endif
