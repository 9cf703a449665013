/* The trainer's publications, which are encoded while it trains on. */
#include "base/assert.h"
#include "compute/backend/backend_cpu.h"
#include "compute/model/state.h"
#include "compute/trainer/trainer_inside.h"

void dp_trainer_keep_unsent(dp_trainer *t, const dp_trainer_tally *tally)
{
    t->open.carried += tally->carried + tally->tokens;
    if (dp_manifest_external(&t->manifest)) {
        t->unsent = *tally;
    }
}

dp_trainer_tally dp_trainer_offered(const dp_trainer *t)
{
    dp_trainer_tally offered = t->open;
    if (offered.tokens == 0) {
        dp_assert(offered.carried >= t->unsent.tokens);
        offered.steps += t->unsent.steps;
        offered.restored += t->unsent.restored;
        offered.loss_sum += t->unsent.loss_sum;
        offered.tokens = t->unsent.tokens;
        offered.carried -= t->unsent.tokens;
    }
    return offered;
}

/* Local work that is not finite cannot be published, now or later. */
static dp_status drop_local_work(dp_trainer *t)
{
    const dp_backend *const b = t->backend;
    const uint64_t carried = t->open.carried;
    t->gradients.ready = false;
    t->open = (dp_trainer_tally){.carried = carried};
    t->unsent = (dp_trainer_tally){0};
    t->step_count = 0;
    t->losses = (dp_spike){0};
    DP_TRY(b->copy(t->engine, DP_VECTOR_X, dp_trainer_anchor(t)));
    DP_TRY(b->zero(t->engine, DP_VECTOR_F));
    DP_TRY(b->reset(t->engine));
    return dp_trainer_drop_step(t);
}

/* to = e + (from - x), or e and the gradient. */
static dp_status gather(dp_trainer *t, dp_vector to, dp_vector e)
{
    const dp_vector from = dp_trainer_anchor(t);
    return dp_trainer_has_gradients(t) ? dp_trainer_gather(t)
                                       : t->backend->snapshot(t->engine, to, e, from);
}

/* Checks a blob of a plugin like one of a peer. */
static dp_status check_own(const dp_trainer *t, dp_view blob)
{
    return t->backend == dp_backend_cpu() ? DP_OK : dp_codec_check(blob, t->n);
}

static dp_codec codec_of(const dp_trainer *t, bool dense, uint32_t keep)
{
    /* Only once: a node left out for its slow link would be left out again. */
    return dense              ? dp_codec_dense_of_run(&t->manifest)
           : t->left_out == 1 ? dp_codec_after_loss(&t->manifest, keep)
                              : dp_codec_of_round(&t->manifest, keep);
}

dp_status dp_trainer_publish_start(dp_trainer *t, bool dense, uint32_t keep)
{
    if (!dp_codec_keep_permitted(&t->manifest, keep)) {
        return DP_BADARG;
    }
    if (t->pending || t->publishing) {
        return DP_BUSY;
    }
    const dp_trainer_tally offered = dp_trainer_offered(t);
    /* Work that was left out is in e, which a dense publication would leave for later. */
    const bool of_e = t->open.tokens == 0 && t->unsent.tokens > 0;
    const dp_codec codec = codec_of(t, dense && !of_e, keep);
    /* A dense publication leaves e, the rest of a sparse codec, to later ones: sent at once, the
     * unsent rest of many rounds took the model from 2.07 to 2.91 nats per byte
     * (docs/records/learning-quality-2026-11.md, a return from gossip). */
    t->apart =
        codec.keep == 0 && dp_codec_of_run(&t->manifest).keep != 0 && !dp_trainer_has_gradients(t);
    dp_status status = gather(t, DP_VECTOR_A, t->apart ? DP_VECTOR_NONE : DP_VECTOR_E);
    if (status == DP_OK) {
        status = t->backend->encode_start(t->engine, DP_VECTOR_A, &codec);
    }
    if (status == DP_DIVERGED) {
        DP_TRY(drop_local_work(t));
    }
    DP_TRY(status);
    DP_TRY(t->backend->copy(t->engine, DP_VECTOR_ANCHOR, DP_VECTOR_X));
    t->publishing = true;
    t->pending_tally = offered;
    t->open = (dp_trainer_tally){0};
    t->unsent = (dp_trainer_tally){0};
    return DP_OK;
}

dp_status dp_trainer_publish_ready(dp_trainer *t, bool *ready)
{
    return t->publishing ? t->backend->encode_ready(t->engine, ready) : DP_BADARG;
}

/* There is no publication: its work is open still. */
static void reopen(dp_trainer *t)
{
    const dp_trainer_tally *const back = &t->pending_tally;
    t->open.steps += back->steps;
    t->open.restored += back->restored;
    t->open.skipped += back->skipped;
    t->open.empty += back->empty;
    t->open.spikes += back->spikes;
    t->open.tokens += back->tokens;
    t->open.carried += back->carried;
    t->open.loss_sum += back->loss_sum;
    t->pending_tally = (dp_trainer_tally){0};
}

/* Lent until the next call. */
static dp_status write_values(dp_trainer *t, const float *values, dp_view *bytes)
{
    if (values == NULL) {
        return DP_IO;
    }
    DP_TRY(dp_floats_write(values, t->n, dp_trainer_bytes_anew(t)));
    *bytes = dp_buf_view(&t->bytes);
    return DP_OK;
}

static dp_status take_own(dp_trainer *t, dp_view *blob, dp_view *a)
{
    const float *values;
    DP_TRY(t->backend->encode_take(t->engine, blob, &values));
    DP_TRY(check_own(t, *blob));
    if (t->apart) {
        /* a holds all that is not sent, so that nothing but it has to outlive this process. */
        DP_TRY(t->backend->add(t->engine, DP_VECTOR_A, DP_VECTOR_E));
        values = t->backend->values(t->engine, DP_VECTOR_A);
    }
    DP_TRY(write_values(t, values, a));
    dp_trainer_remember(t, values);
    /* e and F are in a from here on. No step looks at them, so until now they could stay for the
     * case of a failure. */
    DP_TRY(t->backend->zero(t->engine, DP_VECTOR_E));
    return t->backend->zero(t->engine, DP_VECTOR_F);
}

dp_status dp_trainer_publish_take(dp_trainer *t, dp_view *blob, dp_view *a)
{
    dp_view made;
    dp_view bytes;
    if (!t->publishing) {
        return DP_BADARG;
    }
    t->publishing = false;
    const dp_status status = take_own(t, &made, &bytes);
    if (status != DP_OK) {
        reopen(t);
    }
    if (status == DP_DIVERGED) {
        DP_TRY(drop_local_work(t));
    }
    DP_TRY(status);
    t->pending = true;
    t->gradients.ready = false;
    t->pending_blob = made;
    *blob = made;
    *a = bytes;
    return DP_OK;
}

dp_status dp_trainer_publish(dp_trainer *t, bool dense, dp_view *blob, dp_view *a)
{
    DP_TRY(dp_trainer_publish_start(t, dense, 0));
    return dp_trainer_publish_take(t, blob, a);
}

dp_status dp_trainer_codec_error(dp_trainer *t, double *norm, double *error)
{
    if (!t->pending) {
        return DP_BADARG;
    }
    const float *const a = t->backend->values(t->engine, DP_VECTOR_A);
    return a == NULL ? DP_IO : dp_codec_error(t->pending_blob, a, t->n, norm, error);
}

dp_status dp_trainer_freeze(dp_trainer *t, dp_view *blob, dp_view *f)
{
    if (dp_trainer_has_gradients(t)) {
        return DP_BADARG;
    }
    const dp_codec codec = dp_codec_dense_of_run(&t->manifest);
    dp_view made;
    dp_status status = gather(t, DP_VECTOR_F, DP_VECTOR_NONE);
    if (status == DP_OK) {
        status = t->backend->encode(t->engine, DP_VECTOR_F, &codec, &made);
    }
    if (status == DP_OK) {
        status = check_own(t, made);
    }
    if (status == DP_DIVERGED) {
        DP_TRY(drop_local_work(t));
    }
    DP_TRY(status);
    DP_TRY(write_values(t, t->backend->values(t->engine, DP_VECTOR_F), f));
    *blob = made;
    return DP_OK;
}
