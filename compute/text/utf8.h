/* UTF-8 text: checks, and normal form C (Unicode Standard Annex 15), composed by utf8proc. Knows no
 * tokens. */
#ifndef DP_COMPUTE_TEXT_UTF8_H
#define DP_COMPUTE_TEXT_UTF8_H

#include "base/bytes.h"

/* Longest run of combining marks that is sorted; the time grows with the square of the length.
 * Unicode calls 30 generous for any language (Annex 15, section 13). */
enum { DP_MARKS_MAX = 4096 };

/* The first byte that is not UTF-8 (RFC 3629: no surrogates, nothing overlong), or size if all
 * is. */
size_t dp_utf8_bad_at(dp_view text);
/* DP_OK, or DP_BADMSG with the place of the first bad byte. */
DP_MUST dp_status dp_utf8_check(dp_view text, dp_why *why);

/* The bytes of a text to keep within most: the cut falls between two characters. */
size_t dp_utf8_fit(dp_view text, size_t most);

/* Appends the normal form C of text, which is UTF-8, to out. DP_BADMSG (more than DP_MARKS_MAX
 * marks in a row), DP_TOOBIG (out), DP_NOMEM. */
DP_MUST dp_status dp_nfc_append(dp_view text, dp_buf *out, dp_why *why);

#endif
