/* The validation of standalone training: how often and on how many tokens the held-out loss is
 * measured, which step was the best, and when training ends because nothing gets better. Knows no
 * trainer and no checkpoints.
 *
 * FOLDER/best.json: {"step", "loss", "bits_per_byte", "tokens"} of the best checkpoint, written
 * behind it. All that follows from it depends on steps and losses alone, which a resumed run
 * repeats to the bit; so a run that was killed ends where one without a break does. */
#ifndef DP_COMPUTE_STANDALONE_STANDALONE_VAL_H
#define DP_COMPUTE_STANDALONE_STANDALONE_VAL_H

#include "compute/standalone/standalone_options.h"
#include "compute/trainer/trainer.h"

#define DP_STANDALONE_BEST_FILE "best.json"

typedef struct dp_standalone_best {
    bool known;
    uint64_t step;
    dp_trainer_score score;
} dp_standalone_best;

/* Steps between two validations: those of the user, else a twentieth of the target, but at least so
 * many that validations take about a twentieth of the time: a token costs a third of one in a step
 * (forward without backward). held: held-out tokens of the run. options are complete. */
uint64_t dp_standalone_val_steps(const dp_standalone_options *options, uint64_t target,
                                 uint64_t batch_tokens, uint64_t held);
/* Takes a measurement at a step. True: it is the best so far; of equal ones the first is. A loss
 * that is not finite is never the best. */
bool dp_standalone_best_take(dp_standalone_best *best, uint64_t step,
                             const dp_trainer_score *score);
/* True if training ends after the validation at a step. */
bool dp_standalone_val_ends(const dp_standalone_options *options, const dp_standalone_best *best,
                            uint64_t step, uint64_t every);

/* Atomic. DP_IO, DP_NOSPACE, DP_NOMEM, with a sentence. */
DP_MUST dp_status dp_standalone_best_write(const char *folder, const dp_standalone_best *best,
                                           dp_why *why);
/* Not known if the file is absent or damaged. Accepts any bytes. */
void dp_standalone_best_read(const char *folder, dp_standalone_best *best);

#endif
