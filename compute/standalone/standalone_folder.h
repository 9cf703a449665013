/* The folder of standalone training (standalone.h): making, locking, opening, and checking it
 * against its manifest. No steps here. */
#ifndef DP_COMPUTE_STANDALONE_STANDALONE_FOLDER_H
#define DP_COMPUTE_STANDALONE_STANDALONE_FOLDER_H

#include <limits.h>

#include "compute/format/prepare.h"
#include "compute/trainer/trainer.h"

#define DP_STANDALONE_STATE "state.bin"

/* lock is -1 until it is taken; the other fields are zero until begin or open. */
typedef struct dp_standalone_folder {
    char path[PATH_MAX];
    int lock;
    dp_manifest manifest;
    uint8_t canonical[DP_MANIFEST_BYTES_MAX];
    size_t canonical_size;
    dp_hash hash; /* of canonical */
    dp_buf tokenizer;
    dp_view shards[DP_MANIFEST_SHARDS_MAX]; /* mapped */
    dp_view base;                           /* the same; empty without adapters */
} dp_standalone_folder;

void dp_standalone_folder_close(dp_standalone_folder *folder); /* Accepts one whose lock is -1. */
/* Locks the folder at path, which is made if make is true. DP_BUSY: another process trains there;
 * DP_NOTFOUND, DP_IO. */
DP_MUST dp_status dp_standalone_folder_lock(dp_standalone_folder *folder, const char *path,
                                            bool make, dp_why *why);
/* Prepares text and weights of from, puts their hashes into the manifest, writes it, and opens the
 * folder. */
DP_MUST dp_status dp_standalone_folder_begin(dp_standalone_folder *folder,
                                             const dp_manifest *manifest,
                                             const dp_prepare_job *from, dp_prepared *made,
                                             dp_why *why);
/* The first weights, as state bytes, checked against the manifest; empty if it has none. The caller
 * closes out. DP_BADHASH, DP_IO, DP_NOTFOUND. */
DP_MUST dp_status dp_standalone_folder_init(const dp_standalone_folder *folder, dp_buf *out,
                                            dp_why *why);
/* Opens manifest and tokenizer of folder->path, checked against the manifest's hash. The same
 * statuses as open. */
DP_MUST dp_status dp_standalone_folder_open_model(dp_standalone_folder *folder, dp_why *why);
/* Opens manifest, tokenizer and data of folder->path, checked against the manifest's hashes.
 * DP_BADHASH, DP_NOTFOUND, DP_IO. */
DP_MUST dp_status dp_standalone_folder_open(dp_standalone_folder *folder, dp_why *why);
/* DP_OK if canonical bytes equal the folder's manifest but for keys and hashes; DP_BADARG with a
 * sentence that names a differing key. */
DP_MUST dp_status dp_standalone_folder_same(const dp_standalone_folder *folder, dp_view canonical,
                                            dp_why *why);
/* The setup of a standalone trainer; the caller sets rows and threads. Borrows from folder. */
dp_trainer_setup dp_standalone_folder_setup(const dp_standalone_folder *folder);
/* The context of the first weights, by the kept config.json; 0: unknown. */
uint32_t dp_standalone_folder_context(const dp_standalone_folder *folder);
/* Makes FOLDER/model from FOLDER/state.bin, the state of a trainer (state.h), and removes the
 * latter. */
DP_MUST dp_status dp_standalone_folder_export(const dp_standalone_folder *folder, dp_why *why);

#endif
