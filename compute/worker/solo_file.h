/* Checkpoints of training without peers: everything that the coming steps depend on, in one file
 * each. Plain files and not SQLite: a checkpoint is one sequence of bytes, written once, read once
 * and replaced as a whole; and compute/ sees no store. What is here never was published, so there
 * is no round, record or object to tie it to.
 *
 * FOLDER/step-<12 digits>.ckpt, little-endian, the same bytes whenever the same steps led there:
 *   offset size
 *        0    4  "DPC1"
 *        4    4  version 1
 *        8   32  H("dpnode/solo-manifest/1", canonical bytes of the manifest)
 *       40    4  rows of a micro-batch
 *       44    4  vectors k: x, then those of the optimizer (optim.h), in its order
 *       48    8  elements n of each
 *       56   48  u64 each: steps, done, tokens, skipped, spikes, updates (dp_trainer_place)
 *      104   16  f32 scale, u32 good, u64 skipped (dp_scaler)
 *      120   12  u32 each: count, next, row (dp_spike)
 *      132  256  f32 recent[64]
 *      388  4kn  f32: the vectors, one after the other
 *        .   32  H("dpnode/solo/1", all before)
 *
 * Durable and atomic: written beside its name, synced, renamed, the folder synced; the last
 * DP_SOLO_KEPT stay. A file that a crash or a full disk left half-way has another name, or its hash
 * does not hold, and the one before is taken. */
#ifndef DP_COMPUTE_WORKER_SOLO_FILE_H
#define DP_COMPUTE_WORKER_SOLO_FILE_H

#include "base/digest.h"
#include "compute/trainer/trainer.h"
#include "compute/trainer/trainer_keep.h"

enum { DP_SOLO_HEAD_BYTES = 388, DP_SOLO_KEPT = 2, DP_SOLO_FILES_MAX = 64 };

typedef struct dp_solo_head {
    dp_hash manifest;
    uint32_t rows;
    uint32_t vectors;
    uint64_t elements;
    dp_trainer_place place;
} dp_solo_head;

void dp_solo_head_write(const dp_solo_head *head, uint8_t out[DP_SOLO_HEAD_BYTES]);
/* Total. DP_BADMSG, DP_VERSION; then head is untouched. */
DP_MUST dp_status dp_solo_head_read(dp_solo_head *head, dp_view bytes);

/* Steps of the checkpoints in folder, newest first; how many were written to steps. A folder that
 * cannot be read has none. */
size_t dp_solo_list(const char *folder, uint64_t steps[DP_SOLO_FILES_MAX]);

/* The trainer as it is, between two steps; vectors, elements and place of head are filled in. Older
 * ones but one are removed once it is durable. *hash: of the file. DP_IO, DP_NOSPACE, DP_NOMEM,
 * with a sentence: then those before are as they were. */
DP_MUST dp_status dp_solo_save(const char *folder, dp_trainer *trainer, dp_solo_head *head,
                               dp_hash *hash, dp_why *why);
/* The head alone, to know how to open a trainer for it. Its hash has not been looked at. */
DP_MUST dp_status dp_solo_peek(const char *folder, uint64_t steps, dp_solo_head *head, dp_why *why);
/* Into a trainer that was opened for head (as peeked). DP_BADHASH, DP_BADMSG, DP_DIVERGED, DP_IO,
 * DP_NOTFOUND with a sentence: then the trainer's vectors are spoiled; load another, or init. */
DP_MUST dp_status dp_solo_load(const char *folder, const dp_solo_head *head, dp_trainer *trainer,
                               dp_why *why);

#endif
