/* The place and the vectors that a standalone trainer keeps between processes. */
#include "compute/trainer/trainer_keep.h"

#include <string.h>

#include "base/assert.h"
#include "compute/trainer/trainer_inside.h"

dp_trainer_last dp_trainer_last_of(const dp_trainer *t)
{
    return t->last;
}

bool dp_trainer_between_steps(const dp_trainer *t)
{
    return t->rows_done == 0;
}

dp_status dp_trainer_undo_step(dp_trainer *t)
{
    const uint64_t batch = t->batch_count;
    DP_TRY(dp_trainer_drop_step(t));
    t->batch_count = batch;
    return DP_OK;
}

dp_trainer_place dp_trainer_place_of(const dp_trainer *t)
{
    dp_assert(t->alone && t->rows_done == 0);
    return (dp_trainer_place){.steps = t->step_count,
                              .done = t->open.steps,
                              .tokens = t->open.tokens,
                              .skipped = t->open.skipped,
                              .spikes = t->open.spikes,
                              .updates = t->backend->updates(t->engine),
                              .losses = t->losses,
                              .scaler = t->scaler};
}

uint64_t dp_trainer_batch_losses(const dp_trainer *t)
{
    const uint64_t windows = dp_data_windows(&t->data, t->manifest.context);
    const double each = (double)dp_data_losses(&t->data, t->manifest.context) / (double)windows;
    const uint64_t batch = (uint64_t)(each * t->manifest.batch_rows);
    return batch > 0 ? batch : 1;
}

uint64_t dp_trainer_held_out_losses(const dp_trainer *t)
{
    return dp_data_val_losses(&t->data, t->manifest.context);
}

static bool is_possible(const dp_trainer *t, const dp_trainer_place *p)
{
    const uint64_t each = (uint64_t)t->manifest.batch_rows * t->manifest.context;
    return p->steps <= UINT32_MAX && p->done <= p->steps && p->skipped == p->steps - p->done &&
           p->spikes <= p->skipped && p->updates == p->done &&
           (t->data.documents ? p->tokens <= p->done * each : p->tokens == p->done * each) &&
           p->losses.count <= DP_SPIKE_WINDOW && p->losses.next < DP_SPIKE_WINDOW &&
           p->losses.row <= DP_SPIKE_ROW_MAX && dp_scaler_is_possible(&p->scaler);
}

dp_status dp_trainer_place_at(dp_trainer *t, const dp_trainer_place *p)
{
    dp_assert(t->alone);
    if (!is_possible(t, p)) {
        return DP_BADMSG;
    }
    DP_TRY(dp_trainer_drop_step(t));
    DP_TRY(t->backend->take_state(t->engine, p->updates));
    t->step_count = p->steps;
    t->batch_count = p->steps;
    t->open = (dp_trainer_tally){.steps = (uint32_t)p->done,
                                 .skipped = (uint32_t)p->skipped,
                                 .spikes = (uint32_t)p->spikes,
                                 .tokens = p->tokens};
    t->losses = p->losses;
    t->scaler = p->scaler;
    t->last = (dp_trainer_last){.step = p->steps};
    return DP_OK;
}

size_t dp_trainer_vectors(dp_trainer *t, dp_optim_vector out[DP_TRAINER_VECTORS_MAX])
{
    return t->backend->lend_state(t->engine, out);
}
