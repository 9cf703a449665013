/* The state of a trainer: its first weights, state bytes in and out (state.h), and work that an
 * earlier process had published or frozen. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "compute/model/state.h"
#include "compute/trainer/trainer_inside.h"

/* Starts over from theta with empty work buffers. */
static dp_status start_at(dp_trainer *t, uint64_t round)
{
    const dp_backend *const b = t->backend;
    if (!t->alone) {
        DP_TRY(b->copy(t->engine, DP_VECTOR_X, DP_VECTOR_THETA));
        DP_TRY(b->zero(t->engine, DP_VECTOR_E));
        DP_TRY(b->zero(t->engine, DP_VECTOR_F));
    }
    DP_TRY(b->reset(t->engine));
    DP_TRY(dp_trainer_drop_step(t));
    t->batch_count = 0;
    t->drawn = (dp_reach){0};
    t->reach = (dp_reach){0};
    dp_trainer_drop_lease(t);
    t->last = (dp_trainer_last){0};
    dp_assert(!t->publishing);
    t->pending = false;
    t->gradients.ready = false;
    t->pending_blob = (dp_view){0};
    dp_alignment_forget(&t->own);
    t->open = (dp_trainer_tally){0};
    t->unsent = (dp_trainer_tally){0};
    t->pending_tally = (dp_trainer_tally){0};
    t->left_out = 0;
    t->step_count = 0;
    t->losses = (dp_spike){0};
    t->scaler = dp_scaler_start();
    t->contributors = 0;
    t->state_round = round;
    t->aim_round = round;
    return DP_OK;
}

dp_status dp_trainer_init(dp_trainer *t)
{
    if (dp_manifest_external(&t->manifest)) {
        return DP_UNSUPPORTED; /* Its first weights are an object. */
    }
    DP_TRY(t->backend->init(t->engine, t->manifest.model_seed));
    if (dp_trainer_moments(t) == 1) {
        DP_TRY(t->backend->zero(t->engine, DP_VECTOR_M));
    }
    if (dp_trainer_has_gradients(t)) {
        dp_trainer_gradients_zero(t);
    }
    t->committed = 0;
    return start_at(t, 0);
}

/* Moments belong to the state just as theta does (SAFETY G1): without it replicas would step
 * apart. */
static bool has_vectors(const dp_trainer *t, const dp_state *state)
{
    return t->alone || state->moments == dp_trainer_moments(t) || dp_broken(29);
}

dp_status dp_trainer_load(dp_trainer *t, uint64_t round, dp_view state)
{
    dp_state from;
    DP_TRY(dp_state_open(&from, state));
    if (from.round != round || from.elements != t->n || !has_vectors(t, &from)) {
        return DP_BADMSG;
    }
    if (dp_trainer_has_gradients(t)) {
        DP_TRY(dp_trainer_gradients_load(t, &from));
    } else if (from.momentum.size > 0 && !t->alone) {
        DP_TRY(dp_floats_check(from.theta, t->n)); /* So that both are loaded or none. */
        DP_TRY(t->backend->load(t->engine, DP_VECTOR_M, from.momentum));
    }
    DP_TRY(t->backend->load(t->engine, DP_VECTOR_THETA, from.theta));
    return start_at(t, round);
}

/* A vector on its way out. */
static dp_status values_of(const dp_trainer *t, dp_vector vector, const float **values)
{
    *values = t->backend->values(t->engine, vector);
    return *values != NULL ? DP_OK : DP_IO;
}

static dp_status append_vector(dp_trainer *t, dp_vector vector)
{
    const float *values;
    DP_TRY(values_of(t, vector, &values));
    return dp_floats_write(values, t->n, &t->bytes);
}

dp_buf *dp_trainer_bytes_anew(dp_trainer *t)
{
    t->added = 0;
    dp_buf_clear(&t->bytes);
    return &t->bytes;
}

dp_status dp_trainer_state_bytes(dp_trainer *t, dp_view *state, dp_hash *root)
{
    const uint32_t moments = dp_broken(29) ? 0 : dp_trainer_moments(t);
    DP_TRY(dp_state_write_header(t->state_round, t->n, moments, dp_trainer_bytes_anew(t)));
    DP_TRY(append_vector(t, DP_VECTOR_THETA));
    if (moments == 1) {
        DP_TRY(append_vector(t, DP_VECTOR_M));
    } else if (moments == 2) {
        DP_TRY(dp_trainer_gradients_append(t));
    }
    *state = dp_buf_view(&t->bytes);
    *root = dp_object_hash(*state, NULL);
    return DP_OK;
}

static dp_status keep_pending(dp_trainer *t, dp_view a, dp_view blob)
{
    DP_TRY(dp_codec_check(blob, t->n));
    dp_buf_clear(&t->restored);
    DP_TRY(dp_buf_append(&t->restored, blob));
    DP_TRY(t->backend->load(t->engine, DP_VECTOR_A, a));
    /* Only a holds the published work; open and frozen work is measured from theta, as before. */
    DP_TRY(t->backend->copy(t->engine, DP_VECTOR_ANCHOR, DP_VECTOR_THETA));
    t->pending_blob = dp_buf_view(&t->restored);
    t->pending = true;
    return DP_OK;
}

static dp_status restore_frozen(dp_trainer *t, dp_view f, uint32_t lambda)
{
    const dp_backend *const b = t->backend;
    DP_TRY(b->add(t->engine, DP_VECTOR_X, DP_VECTOR_F));
    const dp_status status = b->load(t->engine, DP_VECTOR_F, f);
    if (status == DP_OK) {
        DP_TRY(b->scale(t->engine, DP_VECTOR_F, lambda));
    }
    DP_TRY(b->subtract(t->engine, DP_VECTOR_X, DP_VECTOR_F));
    return status;
}

/* Its losses are unknown. */
static dp_trainer_tally tally_of(const dp_trainer_earlier *earlier)
{
    const uint64_t carried =
        earlier->carried < earlier->tokens ? earlier->carried : earlier->tokens;
    return (dp_trainer_tally){.steps = earlier->steps,
                              .restored = earlier->steps,
                              .tokens = earlier->tokens - carried,
                              .carried = carried};
}

/* e as the settled publication left it. */
static dp_status restore_residual(dp_trainer *t, const dp_trainer_earlier *earlier)
{
    if (earlier->settle == DP_SETTLE_INCLUDED) {
        DP_TRY(dp_codec_check(earlier->blob, t->n));
        DP_TRY(t->backend->load(t->engine, DP_VECTOR_A, earlier->a));
        DP_TRY(dp_trainer_settle(t, earlier->clip, &earlier->cuts, earlier->taken, earlier->blob));
    } else {
        DP_TRY(t->backend->load(t->engine, dp_broken(20) ? DP_VECTOR_A : DP_VECTOR_E, earlier->a));
        if (dp_broken(20)) {
            DP_TRY(t->backend->add(t->engine, DP_VECTOR_E, DP_VECTOR_A));
        }
        if (earlier->lambda > 0) {
            const dp_trainer_tally tally = tally_of(earlier);
            dp_trainer_keep_unsent(t, &tally);
        }
        t->left_out = 1;
    }
    return t->backend->scale(t->engine, DP_VECTOR_E, earlier->lambda);
}

dp_status dp_trainer_restore(dp_trainer *t, const dp_trainer_earlier *earlier)
{
    if (earlier->kind == DP_RESTORE_FROZEN) {
        DP_TRY(restore_frozen(t, earlier->a, earlier->lambda));
        if (earlier->lambda == 0) {
            return DP_OK; /* Nothing of it is left, and so no weight. */
        }
        t->open.steps += earlier->steps;
        t->open.restored += earlier->steps;
        t->open.tokens += earlier->tokens;
        return DP_OK;
    }
    if (t->pending) {
        return DP_BUSY;
    }
    if (earlier->settle != DP_SETTLE_NONE) {
        return restore_residual(t, earlier);
    }
    DP_TRY(keep_pending(t, earlier->a, earlier->blob));
    t->pending_tally = tally_of(earlier);
    return DP_OK;
}
