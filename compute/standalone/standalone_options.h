/* The options of standalone training that say how long it goes on and what is saved and measured on
 * the way. The folder keeps them, so that a resumed run needs none of them again.
 *
 * FOLDER/options.json: {"steps", "save_steps", "save_seconds", "val_steps", "val_tokens",
 * "patience"}; val_steps is absent if it is chosen. */
#ifndef DP_COMPUTE_STANDALONE_STANDALONE_OPTIONS_H
#define DP_COMPUTE_STANDALONE_STANDALONE_OPTIONS_H

#include <stdint.h>

#include "base/bytes.h"

#define DP_STANDALONE_OPTIONS_FILE "options.json"
#define DP_STANDALONE_UNSET UINT64_MAX /* not given */

typedef struct dp_standalone_options {
    uint64_t steps;      /* in all; unset, 0: up to train.total_tokens of the manifest */
    uint64_t save_steps; /* steps between checkpoints; unset, 0: by time only */
    uint64_t save_s;     /* also a checkpoint after so many seconds; unset: 300; 0: never */
    /* Between two validations; unset: chosen by dp_standalone_val_steps; 0: no validation at all */
    uint64_t val_steps;
    uint64_t val_tokens; /* of one, rounded up to whole windows; unset, 0: 65,536 */
    uint64_t patience;   /* validations without a better one that end training; unset, 0: never */
} dp_standalone_options;

/* All unset. */
dp_standalone_options dp_standalone_options_none(void);
/* Sets those that are unset to the folder's. A file that is absent or damaged has none. */
void dp_standalone_options_inherit(dp_standalone_options *options, const char *folder);
/* Writes them for later processes, unless the folder has the same. DP_IO, DP_NOSPACE, DP_NOMEM,
 * with a sentence. */
DP_MUST dp_status dp_standalone_options_keep(const dp_standalone_options *options,
                                             const char *folder, dp_why *why);
/* Sets those that have defaults to them if they are unset: all but val_steps. */
void dp_standalone_options_complete(dp_standalone_options *options);

#endif
