/* The folder of training without peers (solo.h): made, locked, opened, checked against its
 * manifest. No steps here. */
#ifndef DP_COMPUTE_WORKER_SOLO_FOLDER_H
#define DP_COMPUTE_WORKER_SOLO_FOLDER_H

#include <limits.h>

#include "compute/format/prepare.h"
#include "compute/trainer/trainer.h"

#define DP_SOLO_STATE "state.bin"

/* lock is -1 until it is taken; the rest is zero until begin or open. */
typedef struct dp_solo_folder {
    char path[PATH_MAX];
    int lock;
    dp_manifest manifest;
    uint8_t canonical[DP_MANIFEST_BYTES_MAX];
    size_t canonical_size;
    dp_hash hash; /* of canonical */
    dp_buf tokenizer;
    dp_view shards[DP_MANIFEST_SHARDS_MAX]; /* mapped */
} dp_solo_folder;

void dp_solo_folder_close(dp_solo_folder *folder); /* Accepts one whose lock is -1. */
/* path, made if make says so, and its lock. DP_BUSY: another process trains there; DP_NOTFOUND,
 * DP_IO. */
DP_MUST dp_status dp_solo_folder_lock(dp_solo_folder *folder, const char *path, bool make,
                                      dp_why *why);
/* Prepare text and weights of from, name what came of them in the manifest, write that, and open
 * all. */
DP_MUST dp_status dp_solo_folder_begin(dp_solo_folder *folder, const dp_manifest *manifest,
                                       const dp_prepare_job *from, dp_prepared *made, dp_why *why);
/* The first weights, as state bytes, checked against the manifest; empty where it has none. Close
 * out. DP_BADHASH, DP_IO ... */
DP_MUST dp_status dp_solo_folder_init(const dp_solo_folder *folder, dp_buf *out, dp_why *why);
/* Manifest, tokenizer and data of folder->path, checked against the manifest's hashes. DP_BADHASH,
 * DP_NOTFOUND, DP_IO. */
DP_MUST dp_status dp_solo_folder_open(dp_solo_folder *folder, dp_why *why);
/* Whether canonical bytes say the same but for keys and hashes. DP_BADARG: they do not; the
 * sentence names a key. */
DP_MUST dp_status dp_solo_folder_same(const dp_solo_folder *folder, dp_view canonical, dp_why *why);
/* For a trainer that is alone; rows and threads are the caller's. Borrows from folder. */
dp_trainer_setup dp_solo_folder_setup(const dp_solo_folder *folder);
/* FOLDER/model from FOLDER/state.bin, the state of a trainer (state.h), which is removed. */
DP_MUST dp_status dp_solo_folder_export(const dp_solo_folder *folder, dp_why *why);

#endif
