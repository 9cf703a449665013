/* The tokens of a run as windows for training and validation, from one shard or several. Keeps no
 * state: which windows a step sees is a pure function of where the step stands, so there is nothing
 * to save or to restore. Opens no files.
 *
 * The shards follow one another in the order of the manifest; the last val_per_mille of all tokens
 * are held out. No window reaches from one shard into the next. How many there are follows from the
 * manifest alone (base/run/samples.h).
 *
 * The windows of a shard's training part lie side by side; a pass visits each exactly once, in an
 * order of its own (order.h). Samples have one number that counts through all passes: pass s / n,
 * place s % n of n = dp_data_windows. A run of many gives its members ranges of them by its records
 * (gossip/ledger/lease.h), so that each is committed once; alone, a trainer goes through all. */
#ifndef DP_COMPUTE_DATA_DATA_H
#define DP_COMPUTE_DATA_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "compute/data/shard.h"

/* A shard and where its tokens begin among all; tokens is NULL while it is not here. */
typedef struct dp_data_part {
    dp_shard shard;
    uint64_t begin;
} dp_data_part;

typedef struct dp_data {
    dp_data_part one;    /* of a single shard */
    dp_data_part *parts; /* of a list, else NULL */
    uint32_t n_parts;
    uint64_t n_tokens;
    uint64_t n_train;    /* the first of them; the rest is held out */
    uint64_t text_bytes; /* of the shards that are here; 0: one of them does not say */
    uint32_t vocab;      /* that the data was made for; 0: it does not say */
    uint32_t vocab_most; /* of the model */
} dp_data;

/* One shard, ours or llm.c's. Total. bytes are borrowed as long as data is used; all tokens are
 * looked at once. DP_BADMSG, DP_VERSION, or DP_BADARG when tokens do not fit a model with this
 * vocab. Needs no close. */
DP_MUST dp_status dp_data_open(dp_data *data, dp_view bytes, uint32_t vocab, uint32_t val_per_mille,
                               dp_why *why);
/* n shards of so many tokens each, none of which is here yet. DP_BADARG: n is 0. DP_NOMEM. */
DP_MUST dp_status dp_data_open_list(dp_data *data, const uint64_t *tokens, uint32_t n,
                                    uint32_t vocab, uint32_t val_per_mille, dp_why *why);
void dp_data_close(dp_data *data); /* Accepts a zeroed one. */
/* Shard number index of the list is here, borrowed until close: its hash was checked by who brought
 * it. Not while another thread reads. DP_BADARG (index; also tokens that do not fit), DP_BADMSG
 * (not as many as the list says), DP_VERSION. */
DP_MUST dp_status dp_data_attach(dp_data *data, uint32_t index, dp_view bytes, dp_why *why);

/* Training windows of a pass: side by side, length targets each. */
uint64_t dp_data_windows(const dp_data *data, size_t length);
/* Sample number sample in the order of seed: x is a window, y the same one token on. DP_BADARG if
 * no training part has length + 1 tokens; DP_AGAIN: the shard is not here. */
DP_MUST dp_status dp_data_sample(const dp_data *data, uint64_t seed, uint64_t sample, size_t length,
                                 uint32_t *x, uint32_t *y);
/* The shard that holds it, so that it can be fetched before. DP_BADARG as there. */
DP_MUST dp_status dp_data_sample_shard(const dp_data *data, uint64_t seed, uint64_t sample,
                                       size_t length, uint32_t *index);

/* Windows of the held-out part, one after the other: each full one has length targets; if not even
 * one is full but the last shard holds out two tokens, a short one. */
uint64_t dp_data_val_windows(const dp_data *data, size_t length);
/* Window index < dp_data_val_windows. Returns its length: targets in y; 0 if the shard is not
 * here. */
size_t dp_data_val_row(const dp_data *data, uint64_t index, size_t length, uint32_t *x,
                       uint32_t *y);

#endif
