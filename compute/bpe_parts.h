/* What bpe.c, bpe_train.c and bpe_json.c share: the token table under construction. Private to compute/bpe*.c. */
#ifndef DP_COMPUTE_BPE_PARTS_H
#define DP_COMPUTE_BPE_PARTS_H

#include "compute/bpe.h"

/* An empty table: no tokens, no merges. */
DP_MUST dp_status dp_bpe_new(dp_bpe **out);
/* The 256 one-byte tokens with ids 0..255, in the order of bpe.h. */
DP_MUST dp_status dp_bpe_add_bytes(dp_bpe *bpe);
/* Next id for these bytes (copied). DP_EXISTS, DP_TOOBIG (table, length), DP_BADARG (empty), DP_NOMEM. */
DP_MUST dp_status dp_bpe_add_token(dp_bpe *bpe, dp_view bytes);
bool dp_bpe_find(const dp_bpe *bpe, dp_view bytes, uint32_t *id);
/* Next merge; its result is the token of the joined bytes. DP_NOTFOUND if there is none, DP_EXISTS if the pair merges
 * already, DP_BADARG (ids), DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_bpe_add_merge(dp_bpe *bpe, uint32_t left, uint32_t right);
size_t dp_bpe_merges(const dp_bpe *bpe);
void dp_bpe_merge(const dp_bpe *bpe, size_t index, uint32_t *left, uint32_t *right);
/* Fills byte -> id; false if a byte has no token. Before encoding. */
bool dp_bpe_seal(dp_bpe *bpe);

/* Merge all left-right neighbours in ids[0..count-1] from left to right; returns the new count. */
size_t dp_bpe_merge_all(uint32_t *ids, size_t count, uint32_t left, uint32_t right,
                        uint32_t result);

/* The code point by which tokenizer.json writes a byte: itself where it prints, else 256 and up. */
uint32_t dp_bpe_code_point(uint8_t byte);
/* The code point in UTF-8 (1 or 2 bytes); returns the size. */
size_t dp_bpe_write_byte(uint8_t byte, char out[2]);
/* Bytes of a token as tokenizer.json writes it; DP_BADMSG for other characters. out holds text.size bytes. */
DP_MUST dp_status dp_bpe_read_token(dp_view text, uint8_t *out, size_t *size);

#endif
