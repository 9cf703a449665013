/* Runs a pattern of tokenizer.json (pattern.h) over a text, by pcre2, within a bound of steps. */
#ifndef DP_COMPUTE_UNICODE_MATCHER_H
#define DP_COMPUTE_UNICODE_MATCHER_H

#include <stdbool.h>

#include "base/bytes.h"

/* A longer piece is refused: merging takes 32 bytes of memory for each of its bytes. */
enum { DP_PIECE_BYTES_MAX = 64 << 20 };

/* A compiled pattern; one thread at a time. */
typedef struct dp_matcher dp_matcher;

typedef enum dp_pattern_kind {
    DP_PATTERN_REGEX,   /* of tokenizer.json */
    DP_PATTERN_LITERAL, /* this text */
    DP_PATTERN_OURS     /* of pcre2, written here */
} dp_pattern_kind;

/* DP_UNSUPPORTED or DP_BADMSG with what the pattern has, DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_matcher_open(dp_matcher **out, dp_view pattern, dp_pattern_kind kind,
                                  dp_why *why);
void dp_matcher_close(dp_matcher *matcher); /* Accepts NULL. */
/* The leftmost match that starts at or after at <= text.size; begin < end. text is UTF-8, and at is
 * the start of a character. DP_NOTFOUND: none, without a sentence. DP_TOOBIG: longer than
 * DP_PIECE_BYTES_MAX, or the matcher gave up after a number of steps that grows with the text. */
DP_MUST dp_status dp_matcher_find(dp_matcher *matcher, dp_view text, size_t at, size_t *begin,
                                  size_t *end, dp_why *why);

#endif
