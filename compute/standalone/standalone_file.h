/* Checkpoints of standalone training: all that the next steps depend on, in one file each. Plain
 * files and not SQLite: a checkpoint is one sequence of bytes, written once, read once and replaced
 * as a whole, and compute/ may not include store/. Nothing is published, so there is no round,
 * record or object that a checkpoint belongs to.
 *
 * FOLDER/step-<12 digits>.ckpt, little-endian, the same bytes after the same steps:
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
 * FOLDER/best-<12 digits>.ckpt, the same: the one of the lowest held-out loss (standalone_val.h).
 *
 * Durable and atomic: written beside its name, synced, renamed, the folder synced; the last
 * DP_STANDALONE_KEPT stay, and one of the best. An incomplete file after a crash or on a full
 * disk has another name or a wrong hash, and the one before it is used. */
#ifndef DP_COMPUTE_STANDALONE_STANDALONE_FILE_H
#define DP_COMPUTE_STANDALONE_STANDALONE_FILE_H

#include "base/digest.h"
#include "compute/trainer/trainer.h"
#include "compute/trainer/trainer_keep.h"

enum { DP_STANDALONE_HEAD_BYTES = 388, DP_STANDALONE_KEPT = 2, DP_STANDALONE_FILES_MAX = 64 };

typedef enum dp_standalone_which { DP_STANDALONE_LAST, DP_STANDALONE_BEST } dp_standalone_which;

typedef struct dp_standalone_head {
    dp_hash manifest;
    uint32_t rows;
    uint32_t vectors;
    uint64_t elements;
    dp_trainer_place place;
} dp_standalone_head;

void dp_standalone_head_write(const dp_standalone_head *head,
                              uint8_t out[DP_STANDALONE_HEAD_BYTES]);
/* Accepts any bytes. DP_BADMSG, DP_VERSION: head is untouched. */
DP_MUST dp_status dp_standalone_head_read(dp_standalone_head *head, dp_view bytes);

/* Steps of the checkpoints in folder, newest first; returns how many. A folder that cannot be read
 * has none. */
size_t dp_standalone_list(const char *folder, dp_standalone_which which,
                          uint64_t steps[DP_STANDALONE_FILES_MAX]);

/* Saves the trainer between two steps, and fills in vectors, elements and place of head. Once
 * the file is durable, removes all older ones but one; of the best ones all others. *hash: of
 * the file. DP_IO, DP_NOSPACE, DP_NOMEM, with a sentence: older checkpoints are untouched. */
DP_MUST dp_status dp_standalone_save(const char *folder, dp_standalone_which which,
                                     dp_trainer *trainer, dp_standalone_head *head, dp_hash *hash,
                                     dp_why *why);
/* Makes room on a full disk: removes all last checkpoints but the one of this step. True: there was
 * one. */
bool dp_standalone_keep_one(const char *folder, uint64_t steps);
/* Reads the head, from which a trainer can be opened. Does not check the hash of the file. */
DP_MUST dp_status dp_standalone_peek(const char *folder, dp_standalone_which which, uint64_t steps,
                                     dp_standalone_head *head, dp_why *why);
/* Loads a checkpoint into a trainer opened for its head. DP_BADHASH, DP_BADMSG, DP_DIVERGED, DP_IO,
 * DP_NOTFOUND with a sentence: the trainer's vectors are invalid; load another checkpoint, or
 * init. */
DP_MUST dp_status dp_standalone_load(const char *folder, dp_standalone_which which,
                                     const dp_standalone_head *head, dp_trainer *trainer,
                                     dp_why *why);
/* Reads the weights alone, x, of a checkpoint with this head: head->elements floats. Checks the
 * hash of the whole file. The same statuses: the weights are invalid. */
DP_MUST dp_status dp_standalone_weights(const char *folder, dp_standalone_which which,
                                        const dp_standalone_head *head, float *weights,
                                        dp_why *why);

#endif
