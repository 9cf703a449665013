/* UTF-8 text: checks, and normal forms (Unicode Standard Annex 15), made by utf8proc. Knows no
 * tokens. */
#ifndef DP_COMPUTE_UNICODE_UTF8_H
#define DP_COMPUTE_UNICODE_UTF8_H

#include <stdbool.h>
#include <stdint.h>

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

typedef enum dp_normal_form { DP_NFC, DP_NFD, DP_NFKC, DP_NFKD } dp_normal_form;

/* A character takes at most this many times its bytes (U+FDFA, in NFKC). */
enum { DP_NORMAL_GROWTH_MAX = 11 };

/* Appends text, which is UTF-8, in a normal form to out. DP_BADMSG (more than DP_MARKS_MAX marks in
 * a row), DP_TOOBIG (out), DP_NOMEM. */
DP_MUST dp_status dp_normal_form_append(dp_normal_form form, dp_view text, dp_buf *out,
                                        dp_why *why);

/* Unicode's White_Space. */
bool dp_utf8_is_space(uint32_t code);
/* The character at at < text.size of UTF-8; *size: its bytes. */
uint32_t dp_utf8_char(dp_view text, size_t at, size_t *size);
/* The start of the last character before at > 0. */
size_t dp_utf8_before(dp_view text, size_t at);

#endif
