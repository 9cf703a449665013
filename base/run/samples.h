/* How many training windows the data of a run makes, as its manifest lists it: the sample numbers
 * that a pass has. Every node counts alike, also one that holds no shard yet. Looks at no token.
 *
 * The shards follow one another in the order of the manifest; the last data.val of all tokens are
 *     held out. The windows of a shard's training part lie side by side, model.context targets
 *     each, and none reaches from one shard into the next: samples = sum over shards of
 *     floor((training tokens - 1) / model.context)
 * Samples have one number through all passes: sample s is place s mod n of pass s div n
 * (compute/data/data.h). */
#ifndef DP_BASE_RUN_SAMPLES_H
#define DP_BASE_RUN_SAMPLES_H

#include "base/run/manifest.h"

/* The first tokens of all, those that are not held out. tokens <= 2^63, val_per_mille <= 1000. */
uint64_t dp_samples_training(uint64_t tokens, uint32_t val_per_mille);
/* Of a shard that begins at token begin: how many of its tokens are among the first n_train. */
uint64_t dp_samples_training_here(uint64_t n_train, uint64_t begin, uint64_t tokens);
/* Windows of length targets that lie side by side in tokens; 0 for length 0. */
uint64_t dp_samples_windows(uint64_t tokens, uint64_t length);

/* Tokens of all shards of a checked manifest. */
uint64_t dp_manifest_tokens(const dp_manifest *manifest);
uint64_t dp_manifest_data_bytes(const dp_manifest *manifest); /* of the same shards */
/* Samples of one pass; 0: the data is too short for one window, or not known yet. */
uint64_t dp_manifest_samples(const dp_manifest *manifest);

#endif
