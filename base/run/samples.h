/* Counts the training windows in the data of a run from its manifest alone: the samples of one
 * pass. Every node gets the same number, also without any shard. Reads no token.
 *
 * The shards follow one another in the order of the manifest; the last data.val of all tokens are
 * held out. The windows of a shard's training part lie side by side, model.context targets each,
 * and none reaches from one shard into the next:
 *     samples = sum over shards of floor((training tokens - 1) / model.context)
 * A run of any model has data.samples of them, and its script finds sample s by itself.
 * Samples have one number through all passes: sample s is place s mod n of pass s div n
 * (compute/data/data.h). */
#ifndef DP_BASE_RUN_SAMPLES_H
#define DP_BASE_RUN_SAMPLES_H

#include "base/run/manifest.h"

/* Number of training tokens, which come first; the others are held out. tokens <= 2^63,
 * val_per_mille <= 1000. */
uint64_t dp_samples_training(uint64_t tokens, uint32_t val_per_mille);
/* Number of training tokens in a shard that begins at token begin and has tokens, when the data has
 * n_train of them. */
uint64_t dp_samples_training_here(uint64_t n_train, uint64_t begin, uint64_t tokens);
/* Number of windows of length targets in tokens; 0 for length 0. */
uint64_t dp_samples_windows(uint64_t tokens, uint64_t length);

/* Tokens of all shards of a checked manifest. */
uint64_t dp_manifest_tokens(const dp_manifest *manifest);
uint64_t dp_manifest_data_bytes(const dp_manifest *manifest); /* bytes of the same shards */
/* Samples of one pass; 0: the data is too short for one window, or unknown. */
uint64_t dp_manifest_samples(const dp_manifest *manifest);

#endif
