#include "base/run/samples.h"

uint64_t dp_samples_training(uint64_t tokens, uint32_t val_per_mille)
{
    return tokens - (uint64_t)((unsigned __int128)tokens * val_per_mille / 1000);
}

uint64_t dp_samples_training_here(uint64_t n_train, uint64_t begin, uint64_t tokens)
{
    const uint64_t left = n_train > begin ? n_train - begin : 0;
    return left < tokens ? left : tokens;
}

uint64_t dp_samples_windows(uint64_t tokens, uint64_t length)
{
    return tokens > 0 && length > 0 ? (tokens - 1) / length : 0;
}

uint64_t dp_manifest_tokens(const dp_manifest *manifest)
{
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < manifest->n_shards; i++) {
        tokens += manifest->shards[i].tokens;
    }
    return tokens;
}

uint64_t dp_manifest_data_bytes(const dp_manifest *manifest)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < manifest->n_shards; i++) {
        bytes += manifest->shards[i].bytes;
    }
    return bytes;
}

uint64_t dp_manifest_samples(const dp_manifest *manifest)
{
    if (dp_manifest_external(manifest)) {
        return manifest->samples;
    }
    const uint64_t n_train =
        dp_samples_training(dp_manifest_tokens(manifest), manifest->val_per_mille);
    uint64_t begin = 0;
    uint64_t samples = 0;
    for (uint32_t i = 0; i < manifest->n_shards; i++) {
        const uint64_t tokens = manifest->shards[i].tokens;
        samples +=
            dp_samples_windows(dp_samples_training_here(n_train, begin, tokens), manifest->context);
        begin += tokens;
    }
    return samples;
}
