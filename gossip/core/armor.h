/* Bytes as text that survives hands and terminals: base32 in small code words that say where a
 * wrong character stands. Does not know the meaning of the bytes.
 *
 * Text is "DPN1-" and base32 (RFC 4648 alphabet A-Z 2-7, no padding). Every 28 characters of data,
 * and the rest at the end, are followed by 2 check characters: a Reed-Solomon code word of distance
 * 3 over GF(32) (Reed, Solomon 1960), which finds any two wrong characters in it and names the
 * place of a single one. Nothing is ever corrected silently. */
#ifndef DP_GOSSIP_CORE_ARMOR_H
#define DP_GOSSIP_CORE_ARMOR_H

#include <stddef.h>

#include "base/bytes.h"

enum { DP_ARMOR_DATA_CHARS = 28, DP_ARMOR_CHECK_CHARS = 2, DP_ARMOR_TEXT_MAX = 4096 };

/* text: DP_ARMOR_TEXT_MAX characters and a NUL. DP_TOOBIG when they do not suffice. */
DP_MUST dp_status dp_armor_write(dp_view bytes, char text[DP_ARMOR_TEXT_MAX + 1]);

/* Append the bytes of a text to out. Any case; spaces, line breaks and dashes are skipped.
 * DP_BADMSG: not such a text, or damaged; DP_VERSION: "DPN" and another digit; DP_TOOBIG: over
 * DP_ARMOR_TEXT_MAX characters. Each with a sentence in why. position may be NULL; on DP_BADMSG it
 * gets the damaged character, counted from 1 in the text as given, or 0. */
DP_MUST dp_status dp_armor_read(dp_view text, dp_buf *out, size_t *position, dp_why *why);

#endif
