/* The state that a standalone trainer (standalone.h) keeps between processes: its place in the run
 * and the vectors of its optimizer. Writes no file (standalone_file.h does). Call between two
 * steps, on the trainer's thread. */
#ifndef DP_COMPUTE_TRAINER_TRAINER_KEEP_H
#define DP_COMPUTE_TRAINER_TRAINER_KEEP_H

#include "compute/trainer/trainer.h"

/* All that the coming steps depend on, beside the vectors. */
typedef struct dp_trainer_place {
    uint64_t steps; /* done and dropped; also the cursor: the next sample is steps * train.batch */
    uint64_t done;
    uint64_t tokens;  /* with a loss, of steps that were done: where the schedule stands */
    uint64_t skipped; /* dropped */
    uint64_t spikes;  /* of these */
    /* of the optimizer: its bias correction, and the key of stochastic rounding */
    uint64_t updates;
    dp_spike losses;
    dp_scaler scaler;
} dp_trainer_place;

enum { DP_TRAINER_VECTORS_MAX = DP_BACKEND_STATE_MAX };

/* Both places are of a trainer opened with alone. */
dp_trainer_place dp_trainer_place_of(const dp_trainer *trainer);
/* Takes up training at place; the caller has filled the vectors before. DP_BADMSG: no sequence of
 * steps leads to place, and nothing has changed. DP_IO. */
DP_MUST dp_status dp_trainer_place_at(dp_trainer *trainer, const dp_trainer_place *place);
/* Lends "x" and the vectors of the optimizer, dp_trainer_elements floats each, to read and to fill,
 * until the next call on the trainer. Returns how many; 0: failed, see dp_trainer_problem. */
size_t dp_trainer_vectors(dp_trainer *trainer, dp_optim_vector out[DP_TRAINER_VECTORS_MAX]);
/* Tokens with a loss in a batch, on average over the training data, at least 1. */
uint64_t dp_trainer_batch_losses(const dp_trainer *trainer);
/* Tokens with a loss in the held-out windows: dp_trainer_eval finds as many without a limit. */
uint64_t dp_trainer_held_out_losses(const dp_trainer *trainer);
/* True if no step is under way. */
bool dp_trainer_between_steps(const dp_trainer *trainer);
/* Undoes the step under way; the next step takes the same samples. DP_IO. */
DP_MUST dp_status dp_trainer_undo_step(dp_trainer *trainer);

#endif
