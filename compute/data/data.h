/* The tokens of a run as windows for training and validation, from one shard or several. Stateless:
 * the windows of a step are a pure function of its number, so there is nothing to save. Opens no
 * files.
 *
 * The shards follow one another in the order of the manifest; the last val_per_mille of all tokens
 * are held out. No window reaches from one shard into the next. Their number follows from the
 * manifest alone (base/run/samples.h).
 *
 * A shard may keep documents apart (shard.h). Its windows carry marks (base/run/token_marks.h), and
 * its held-out windows begin at a multiple of their length from its start, as the training ones
 * do: a shard that was packed for this length (compute/corpus/window_packer.h) has whole documents
 * in each of them.
 *
 * The windows of a shard's training part lie side by side; a pass visits each once, in an order of
 * its own (order.h). Samples have one number through all passes: pass s / n, place s % n, with n =
 * dp_data_windows. In a run of several nodes records give members ranges of samples
 * (gossip/ledger/lease.h), so that each is committed once; a standalone trainer visits all. */
#ifndef DP_COMPUTE_DATA_DATA_H
#define DP_COMPUTE_DATA_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "compute/data/shard.h"

/* A shard and the number of its first token; tokens is NULL until the shard is attached. */
typedef struct dp_data_part {
    dp_shard shard;
    uint64_t begin;
} dp_data_part;

typedef struct dp_data {
    dp_data_part one;    /* of a single shard */
    dp_data_part *parts; /* of a list, else NULL */
    uint32_t n_parts;
    uint64_t n_tokens;
    uint64_t n_train;    /* the first tokens are for training; the rest is held out */
    uint64_t text_bytes; /* of the attached shards; 0: unknown for one of them */
    bool documents;      /* an attached shard keeps documents apart */
    uint32_t vocab;      /* vocabulary of the data; 0: unknown */
    uint32_t vocab_most; /* vocabulary of the model */
} dp_data;

/* Opens one shard, of dpnode or llm.c, and reads all tokens once. Accepts any bytes, borrowed as
 * long as data is used. DP_BADMSG, DP_VERSION; DP_BADARG: tokens do not fit a model with this
 * vocab. Needs no close. */
DP_MUST dp_status dp_data_open(dp_data *data, dp_view bytes, uint32_t vocab, uint32_t val_per_mille,
                               dp_why *why);
/* Opens a list of n shards with so many tokens each, none of them attached. DP_BADARG: n is 0.
 * DP_NOMEM. */
DP_MUST dp_status dp_data_open_list(dp_data *data, const uint64_t *tokens, uint32_t n,
                                    uint32_t vocab, uint32_t val_per_mille, dp_why *why);
void dp_data_close(dp_data *data); /* Accepts a zeroed one. */
/* Attaches shard index of the list, borrowed until close; the caller has checked its hash. Not
 * while another thread reads. DP_BADARG (index; also tokens that do not fit), DP_BADMSG (another
 * number of tokens than in the list), DP_VERSION. */
DP_MUST dp_status dp_data_attach(dp_data *data, uint32_t index, dp_view bytes, dp_why *why);

/* Training windows of a pass: side by side, length targets each. */
uint64_t dp_data_windows(const dp_data *data, size_t length);
/* Tokens with a loss in these windows of all attached shards. */
uint64_t dp_data_losses(const dp_data *data, size_t length);
/* Reads sample number sample in the order of seed: x is a window, y the same shifted by one token.
 * DP_BADARG: no training part has length + 1 tokens; DP_AGAIN: the shard is not attached. */
DP_MUST dp_status dp_data_sample(const dp_data *data, uint64_t seed, uint64_t sample, size_t length,
                                 uint32_t *x, uint32_t *y);
/* The shard of that sample, so that it can be fetched before. DP_BADARG as there. */
DP_MUST dp_status dp_data_sample_shard(const dp_data *data, uint64_t seed, uint64_t sample,
                                       size_t length, uint32_t *index);

/* Windows of the held-out part, one after the other: each full one has length targets; if not even
 * one is full but the last shard holds out two tokens, a short one. */
uint64_t dp_data_val_windows(const dp_data *data, size_t length);
/* Tokens with a loss in these windows of all attached shards. */
uint64_t dp_data_val_losses(const dp_data *data, size_t length);
/* Reads window index < dp_data_val_windows. Returns its length, the targets in y; 0: the shard is
 * not attached. */
size_t dp_data_val_row(const dp_data *data, uint64_t index, size_t length, uint32_t *x,
                       uint32_t *y);

#endif
