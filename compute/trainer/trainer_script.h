/* A script in the place of the trainer's steps: its weights in and out, and the samples that it
 * draws. In a run of any model nobody else takes steps; in a run of a built-in model the engine
 * does while there is no script. Runs that exchange gradients have none. Knows no socket
 * (compute/worker/script_door.h). As with trainer.h, one thread calls at a time. */
#ifndef DP_COMPUTE_TRAINER_TRAINER_SCRIPT_H
#define DP_COMPUTE_TRAINER_TRAINER_SCRIPT_H

#include "compute/model/model.h"
#include "compute/trainer/trainer.h"

enum {
    DP_SCRIPT_DRAWN_MAX = 1 << 20, /* samples that are drawn and not used */
    DP_SCRIPT_STRETCHES_MAX = 64   /* of samples of one line, drawn one after the other */
};

/* The work of a script between two copies of its weights. */
typedef struct dp_script_work {
    uint32_t steps;   /* of its optimizer */
    uint64_t samples; /* in these, in the order in which they were drawn */
    double loss_sum;  /* of the steps' mean losses; not finite: unknown */
} dp_script_work;

/* The script takes the steps from now on: dp_trainer_work may not be called. A step of the engine
 * that is under way is dropped, with its samples; all other work stays open. DP_IO. */
DP_MUST dp_status dp_trainer_begin_script(dp_trainer *trainer);
/* The script is gone: what it has drawn and not used is drawn again. The engine of a built-in model
 * goes on with empty moments and a warm-up, as its own are of weights of long ago. DP_IO. */
DP_MUST dp_status dp_trainer_end_script(dp_trainer *trainer);
/* The learning rate of the run's schedule for a step that begins now, without the warm-up after a
 * load; 0 in a run of any model. */
double dp_trainer_rate(const dp_trainer *trainer);

/* The model; its tensors are none in a run of any model. Lent until close. */
const dp_model *dp_trainer_model(const dp_trainer *trainer);
/* The bytes of the table of tensors in a run of any model, else none; lent until close. */
dp_view dp_trainer_table(const dp_trainer *trainer);

/* x = weights (n floats), which the work led to; counts the work. Expired samples have no tokens.
 * DP_BADARG: more samples than were drawn; DP_DIVERGED: a weight is not finite; then nothing has
 * changed. DP_IO. */
DP_MUST dp_status dp_trainer_take_weights(dp_trainer *trainer, const float *weights,
                                          const dp_script_work *work);
/* weights (n floats) = x. DP_IO. */
DP_MUST dp_status dp_trainer_give_weights(dp_trainer *trainer, float *weights);
/* weights (n floats): in, those that the script has without its steps since; out, what it has to
 * add to them, x - weights. DP_IO. */
DP_MUST dp_status dp_trainer_give_moves(dp_trainer *trainer, float *weights);

/* A lease was told since the last load, or since all work was discarded. Before, samples are of the
 * own line, and expire when a lease comes. */
bool dp_trainer_has_lease(const dp_trainer *trainer);
/* The next samples as indices of the data set, at most n; marks them as drawn. Returns how many:
 * fewer if there would be more than DP_SCRIPT_DRAWN_MAX. */
uint32_t dp_trainer_draw(dp_trainer *trainer, uint32_t n, uint64_t *indices);
/* Forgets so many drawn samples, the oldest, whose work is lost. More than were drawn: all. */
void dp_trainer_pass_drawn(dp_trainer *trainer, uint64_t samples);

#endif
