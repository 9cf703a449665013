/* Token shards: a file of u16 tokens, windows into it for training and validation. Keeps no state: which windows a step
 * sees is a pure function of where the step stands, so there is nothing to save or to restore. Opens no files.
 *
 *   offset size
 *        0    4  "DPD1"
 *        4    2  version 1
 *        6    2  0
 *        8    4  vocab: every token is less
 *       12    4  0
 *       16    8  tokens n
 *       24    8  bytes of the text that the tokens stand for
 *       32   2n  tokens, u16 little-endian
 * The last val_per_mille of the tokens are held out. */
#ifndef DP_COMPUTE_DATA_H
#define DP_COMPUTE_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_DATA_HEADER_BYTES = 32 };

typedef struct dp_data {
    const uint8_t *tokens; /* borrowed: u16 little-endian */
    uint64_t n_tokens;
    uint64_t n_train; /* the first of them; the rest is held out */
    uint64_t text_bytes;
    uint32_t vocab;
} dp_data;

/* Append a shard to out. ids: all less than vocab, which is asserted. DP_TOOBIG (also a vocab above 65536: the
 * file has u16), DP_NOMEM. */
DP_MUST dp_status dp_data_write(const uint32_t *ids, size_t count, uint32_t vocab,
                                uint64_t text_bytes, dp_buf *out);
/* Total. bytes are borrowed as long as data is used; all tokens are looked at once. DP_BADMSG, DP_VERSION, or DP_BADARG
 * when tokens do not fit a model with this vocab. */
DP_MUST dp_status dp_data_open(dp_data *data, dp_view bytes, uint32_t vocab, uint32_t val_per_mille,
                               dp_why *why);

/* Where a row of a batch stands in the run. */
typedef struct dp_data_place {
    uint64_t seed; /* of the run */
    uint64_t round;
    const uint8_t *member; /* 32 bytes */
    uint64_t life;         /* of the process that draws it: a random number */
    uint64_t step;         /* of this life */
    uint64_t row;
} dp_data_place;

/* x = tokens[s .. s+length-1], y one token on, s uniform over the training part, drawn by hashing the place.
 * DP_BADARG if the training part has less than length + 1 tokens. */
DP_MUST dp_status dp_data_row(const dp_data *data, const dp_data_place *place, size_t length,
                              uint32_t *x, uint32_t *y);

/* Windows of the held-out part, one after the other: each full one has length targets; if not even one is full but there
 * are two tokens, a short one. */
uint64_t dp_data_val_windows(const dp_data *data, size_t length);
/* Window index < dp_data_val_windows. Returns its length: targets in y. */
size_t dp_data_val_row(const dp_data *data, uint64_t index, size_t length, uint32_t *x,
                       uint32_t *y);

#endif
