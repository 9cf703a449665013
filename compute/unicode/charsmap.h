/* The character map of a SentencePiece model: rules that replace short texts, in a double-array
 * trie (Aoe 1989). A map comes from a file and may hold any bytes; every step is checked.
 *
 * Bytes: u32 size of the trie, little-endian | units of u32 | texts, UTF-8, each ended by a NUL. A
 * unit: bits 0 to 7 and 31 label, 8 has a value, 10 to 30 offset to the children (times 256 if bit
 * 9 is set), which is joined to places by exclusive or; a value is a place in the texts. */
#ifndef DP_COMPUTE_UNICODE_CHARSMAP_H
#define DP_COMPUTE_UNICODE_CHARSMAP_H

#include "base/bytes.h"

enum { DP_CHARSMAP_BYTES_MAX = 4 << 20 }; /* nmt_nfkc has 240 KB */

typedef struct dp_charsmap dp_charsmap;

/* From base64, as tokenizer.json has it. DP_BADMSG (base64, sizes, UTF-8), DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_charsmap_open(dp_charsmap **out, dp_view base64, dp_why *why);
void dp_charsmap_close(dp_charsmap *map); /* Accepts NULL. */
/* Appends text with the rules applied, as Hugging Face's tokenizers apply them: to each grapheme
 * cluster of fewer than six bytes as a whole, by the shortest rule that it begins with, else to its
 * characters one by one. text: UTF-8. DP_TOOBIG (out), DP_NOMEM. */
DP_MUST dp_status dp_charsmap_append(const dp_charsmap *map, dp_view text, dp_buf *out);

#endif
