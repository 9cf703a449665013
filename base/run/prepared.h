/* The names of the files that dpnode-worker --prepare leaves in a folder for who founds a run: the
 * manifest with its data part filled in (canonical, unsigned), and the objects that it names. And
 * what the run takes of a disk. */
#ifndef DP_BASE_RUN_PREPARED_H
#define DP_BASE_RUN_PREPARED_H

#include <inttypes.h>
#include <stdio.h>

#include "base/run/manifest.h"

#define DP_PREPARED_MANIFEST "manifest.bin"
#define DP_PREPARED_TOKENIZER "tokenizer.json"
#define DP_PREPARED_INIT "init.state" /* where the run starts from weights */

enum {
    DP_PREPARED_NAME_MAX = 32,
    DP_PREPARED_NO_MEMORY =
        69 /* the tool's exit status: the model does not fit where it would train */
};

/* What a member's disk must have free for the run at least: data_bytes that are to be written, and
 * two states, the last and the one being written; the store's ballast and margin besides. */
static inline uint64_t dp_prepared_disk_bytes(const dp_manifest *manifest, uint64_t data_bytes)
{
    const dp_model_config config = dp_manifest_model(manifest);
    const uint64_t vectors = 1 + (uint64_t)dp_manifest_moments(manifest);
    return data_bytes + 2 * vectors * sizeof(float) * dp_model_config_parameters(&config);
}

/* "tokens-00000.bin" and so on. */
static inline void dp_prepared_shard(uint32_t index, char name[DP_PREPARED_NAME_MAX])
{
    snprintf(name, DP_PREPARED_NAME_MAX, "tokens-%05" PRIu32 ".bin", index);
}

#endif
