/* Regular expressions of tokenizer.json, which Oniguruma runs, rewritten so that pcre2 finds the
 * same matches. Rewrites texts; matches nothing (matcher.h).
 *
 * The two read much alike and some things differently: \s, ^, $, nested classes, {,n}. Only what is
 * known to mean the same is written, in words that do not depend on options; everything else is
 * refused: back references, \b, \w (in Oniguruma some numbers of Latin-1 are words outside of
 * brackets and none inside), POSIX classes, intersections, options but (?i:) around ASCII, atomic
 * groups (the JIT compiler of pcre2 10.42 differs from its interpreter in (?>a*+|b)), patterns that
 * match the empty text or repeat a part that may be empty. White space is spelled out as Unicode's
 * White_Space, because \s of pcre2 also has U+180E. */
#ifndef DP_COMPUTE_UNICODE_PATTERN_H
#define DP_COMPUTE_UNICODE_PATTERN_H

#include "base/bytes.h"

enum {
    DP_PATTERN_BYTES_MAX = 64 * 1024, /* DeepSeek's longest has 1,700 */
    DP_PATTERN_GROUPS_MAX = 16,       /* one within another */
    DP_PATTERN_REPEATS_MAX = 1000
};

/* Unicode's White_Space, and the word characters of Rust's regex without the two joiners, as they
 * stand inside a class of pcre2. */
#define DP_PATTERN_SPACE "\\x{9}-\\x{d}\\x{85}\\p{Z}"
#define DP_PATTERN_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"

/* Appends the pattern of pcre2 (UTF and UCP). given: UTF-8. DP_UNSUPPORTED: the sentence names what
 * is not done and its place; DP_BADMSG (malformed), DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_pattern_translate(dp_view given, dp_buf *out, dp_why *why);
/* Appends the pattern that matches this text alone. DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_pattern_quote(dp_view text, dp_buf *out);

#endif
