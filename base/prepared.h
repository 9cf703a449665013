/* The names of the files that dpnode-worker --prepare leaves in a folder for who founds a run: the manifest with its data
 * part filled in (canonical, unsigned), and the objects that it names. */
#ifndef DP_BASE_PREPARED_H
#define DP_BASE_PREPARED_H

#include <inttypes.h>
#include <stdio.h>

#define DP_PREPARED_MANIFEST "manifest.bin"
#define DP_PREPARED_TOKENIZER "tokenizer.json"
#define DP_PREPARED_INIT "init.state" /* where the run starts from weights */

enum { DP_PREPARED_NAME_MAX = 32 };

/* "tokens-00000.bin" and so on. */
static inline void dp_prepared_shard(uint32_t index, char name[DP_PREPARED_NAME_MAX])
{
    snprintf(name, DP_PREPARED_NAME_MAX, "tokens-%05" PRIu32 ".bin", index);
}

#endif
