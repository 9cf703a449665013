/* Applies a record: the outer step, and the settling of the own work. Also pairwise averaging. */
#include "base/mutation.h"
#include "compute/trainer/trainer_inside.h"

static dp_status settle_pending(dp_trainer *t, const dp_trainer_record *record)
{
    if (record->settle == DP_SETTLE_INCLUDED) {
        DP_TRY(dp_trainer_settle(t, record->clip, &record->cuts, record->taken, t->pending_blob));
    } else {
        DP_TRY(t->backend->copy(t->engine, DP_VECTOR_E, DP_VECTOR_A));
        if (dp_broken(22)) {
            DP_TRY(t->backend->scale(t->engine, DP_VECTOR_E, t->manifest.feedback_beta_milli * 65));
        }
        dp_trainer_keep_unsent(t, &t->pending_tally);
    }
    t->left_out = record->settle == DP_SETTLE_INCLUDED ? 0 : t->left_out + 1;
    t->pending = false;
    t->pending_tally = (dp_trainer_tally){0};
    return DP_OK;
}

/* e, F and O age; x, which is -F - O here, with them. */
static dp_status age(dp_trainer *t, uint32_t lambda)
{
    dp_trainer_gradients_age(t, lambda);
    DP_TRY(t->backend->scale(t->engine, DP_VECTOR_E, lambda));
    DP_TRY(t->backend->scale(t->engine, DP_VECTOR_F, lambda));
    return t->backend->scale(t->engine, DP_VECTOR_X, lambda);
}

static uint32_t momentum_of(const dp_trainer *t)
{
    return (uint32_t)((uint64_t)t->manifest.outer_mu_milli * 65536 / 1000);
}

static dp_status outer_step(dp_trainer *t, const dp_trainer_record *record)
{
    if (dp_trainer_has_gradients(t)) {
        return dp_trainer_step_of_all(t, record);
    }
    const dp_outer outer = {
        .alpha = record->alpha, .mu = momentum_of(t), .long_once = t->manifest.long_once == DP_ON};
    const dp_consensus_items items = dp_trainer_items(t, record);
    return t->backend->apply(t->engine, &items, &outer, &t->outer);
}

/* While theta moves, x holds its displacement from the anchor, and a pending anchor its own from
 * theta. *moved: the status of theta's new values. */
static dp_status move_theta(dp_trainer *t, const dp_trainer_record *record, dp_status *moved)
{
    const dp_backend *const b = t->backend;
    const bool settles = record->settle != DP_SETTLE_NONE;
    DP_TRY(b->subtract(t->engine, DP_VECTOR_X, dp_trainer_anchor(t)));
    const bool stays = t->pending && !settles;
    if (stays) {
        DP_TRY(b->subtract(t->engine, DP_VECTOR_ANCHOR, DP_VECTOR_THETA));
    }
    *moved = outer_step(t, record);
    if (stays) {
        DP_TRY(b->add(t->engine, DP_VECTOR_ANCHOR, DP_VECTOR_THETA));
    }
    if (*moved == DP_NOMEM) { /* Nothing has: x goes back to where it was, to rounding. */
        DP_TRY(b->add(t->engine, DP_VECTOR_X, dp_trainer_anchor(t)));
        return DP_NOMEM;
    }
    if (settles) {
        DP_TRY(settle_pending(t, record));
    }
    DP_TRY(age(t, record->lambda));
    if (dp_broken(28)) {
        return b->copy(t->engine, DP_VECTOR_X, dp_trainer_anchor(t));
    }
    return b->add(t->engine, DP_VECTOR_X, dp_trainer_anchor(t));
}

/* Work that is worth nothing claims nothing. */
static dp_status forget_progress(dp_trainer *t)
{
    t->open = (dp_trainer_tally){0};
    t->unsent = (dp_trainer_tally){0};
    dp_trainer_drop_lease(t);
    return dp_trainer_drop_step(t);
}

dp_status dp_trainer_apply(dp_trainer *t, const dp_trainer_record *record)
{
    const bool settles = record->settle != DP_SETTLE_NONE;
    if (record->n_items > DP_TRAINER_ITEMS_MAX || (settles && !t->pending)) {
        return DP_BADARG;
    }
    dp_trainer_record whole = *record;
    DP_TRY(dp_trainer_join(t, &whole));
    dp_status moved;
    DP_TRY(move_theta(t, &whole, &moved));
    t->state_round = record->round;
    t->committed = record->tokens;
    t->contributors = whole.contributors;
    if (!dp_trainer_has_gradients(t)) { /* There every step is a record, and moves no farther. */
        dp_spike_moved(&t->losses);
    }
    if (record->lambda == 0) {
        DP_TRY(forget_progress(t));
    }
    return moved;
}

dp_outer_seen dp_trainer_outer(const dp_trainer *t)
{
    return t->outer;
}

dp_status dp_trainer_mix(dp_trainer *t, const uint64_t weights[2], const dp_view blobs[2],
                         uint32_t lambda, double *moved)
{
    DP_TRY(dp_codec_check(blobs[0], t->n));
    DP_TRY(dp_codec_check(blobs[1], t->n));
    *moved = 0;
    const double sum = (double)weights[0] + (double)weights[1];
    if (sum == 0) {
        return DP_OK;
    }
    const double share = (double)weights[1] / sum * ((double)lambda / 65536.0);
    double total = 0;
    DP_TRY(t->backend->mix(t->engine, blobs, share, &total));
    *moved = (double)weights[0] * total;
    dp_spike_moved(&t->losses);
    return DP_OK;
}
