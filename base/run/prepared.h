/* Files that dpnode-worker --prepare writes for the founder of a run: the manifest with its data
 * filled in (canonical, unsigned) and the objects that it names. And the disk space of a run. */
#ifndef DP_BASE_RUN_PREPARED_H
#define DP_BASE_RUN_PREPARED_H

#include <inttypes.h>
#include <stdio.h>

#include "base/run/manifest.h"

#define DP_PREPARED_MANIFEST "manifest.bin"
#define DP_PREPARED_TOKENIZER "tokenizer.json"
#define DP_PREPARED_TABLE "tensors.table" /* of a run of any model, in its place */
#define DP_PREPARED_INIT "init.state"     /* only if the run starts from given weights */
#define DP_PREPARED_BASE "base.weights"   /* only with adapters: in the place of these */

enum {
    DP_PREPARED_NAME_MAX = 32,
    DP_PREPARED_NO_MEMORY = 69 /* exit status of the tool: the model does not fit */
};

/* Minimum of free disk for a member: data_bytes that will be written and two states, the last and
 * the one being written. Ballast and margin of the store come on top. */
static inline uint64_t dp_prepared_disk_bytes(const dp_manifest *manifest, uint64_t data_bytes)
{
    const uint64_t vectors = 1 + (uint64_t)dp_manifest_moments(manifest);
    return data_bytes + 2 * vectors * sizeof(float) * dp_manifest_parameters(manifest);
}

/* The file whose root is manifest->tokenizer. */
static inline const char *dp_prepared_first(const dp_manifest *manifest)
{
    return dp_manifest_external(manifest) ? DP_PREPARED_TABLE : DP_PREPARED_TOKENIZER;
}

/* "tokens-00000.bin" and so on. */
static inline void dp_prepared_shard(uint32_t index, char name[DP_PREPARED_NAME_MAX])
{
    snprintf(name, DP_PREPARED_NAME_MAX, "tokens-%05" PRIu32 ".bin", index);
}

#endif
