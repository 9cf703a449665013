/* Files about a run of a built-in model that a script may read: what it needs to build the model
 * and to find its samples without a second copy of the text (docs/TRAINER.md, section 6). */
#ifndef DP_COMPUTE_WORKER_RUN_FILES_H
#define DP_COMPUTE_WORKER_RUN_FILES_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/run/manifest.h"

enum {
    DP_RUN_FILE_ABOUT,  /* JSON: numbers of the manifest, and where each shard has its tokens */
    DP_RUN_FILE_CONFIG, /* config.json of Hugging Face; empty if transformers has no such model */
    DP_RUN_FILE_TOKENIZER, /* tokenizer.json */
    DP_RUN_FILE_SHARDS,    /* the first shard */
    DP_RUN_FILES_MAX = DP_RUN_FILE_SHARDS + DP_MANIFEST_SHARDS_MAX
};

typedef struct dp_run_file {
    int fd; /* sealed memfd; -1: none */
    uint64_t bytes;
} dp_run_file;

typedef struct dp_run_files {
    uint32_t n;
    dp_run_file files[DP_RUN_FILES_MAX];
} dp_run_files;

/* given: sealed memfds of the tokenizer and then of the shards, in the manifest's order; each is
 * duplicated. shards: the bytes of the latter, manifest->n_shards of both. DP_NOMEM (also
 * descriptors), DP_IO, DP_BADMSG. Pair: close. */
DP_MUST dp_status dp_run_files_open(dp_run_files *files, const dp_manifest *manifest,
                                    const int *given, const dp_view *shards);
void dp_run_files_close(dp_run_files *files); /* Accepts a zeroed one. */
/* File number, lent until close; one without bytes if there is none. */
dp_run_file dp_run_files_at(const dp_run_files *files, uint32_t number);

#endif
