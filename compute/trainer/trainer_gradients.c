/* The trainer of a run that exchanges gradients (round.mode ddp): it computes one batch and waits
 * for the record. Every replica takes the optimizer's step on the mean gradient (outer_adamw.h), so
 * x is theta and there is no local optimizer. The work here is on the host, where the data passes
 * anyway: gradients are encoded and states are hashed there. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/codec/feedback.h"
#include "compute/model/state.h"
#include "compute/outer/consensus.h"
#include "compute/outer/outer_adamw.h"
#include "compute/trainer/trainer_inside.h"

bool dp_trainer_has_gradients(const dp_trainer *t)
{
    return t->manifest.exchange == DP_EXCHANGE_GRADIENTS && !t->alone;
}

dp_status dp_trainer_gradients_open(dp_trainer *t)
{
    dp_trainer_gradients *const own = &t->gradients;
    float **const vectors[] = {&own->g, &own->work, &own->m, &own->v};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        *vectors[i] = dp_alloc(t->n, sizeof **vectors[i]);
        if (*vectors[i] == NULL) {
            return DP_NOMEM;
        }
    }
    return DP_OK;
}

void dp_trainer_gradients_close(dp_trainer *t)
{
    dp_trainer_gradients *const own = &t->gradients;
    dp_free(own->v);
    dp_free(own->m);
    dp_free(own->work);
    dp_free(own->g);
    *own = (dp_trainer_gradients){0};
}

void dp_trainer_gradients_zero(dp_trainer *t)
{
    memset(t->gradients.m, 0, t->n * sizeof *t->gradients.m);
    memset(t->gradients.v, 0, t->n * sizeof *t->gradients.v);
}

dp_status dp_trainer_gradients_load(dp_trainer *t, const dp_state *from)
{
    DP_TRY(dp_floats_check(from->theta, t->n)); /* So that all are loaded or none. */
    DP_TRY(dp_floats_check(from->second, t->n));
    DP_TRY(dp_floats_read(from->momentum, t->gradients.m, t->n));
    return dp_floats_read(from->second, t->gradients.v, t->n);
}

dp_status dp_trainer_gradients_append(dp_trainer *t)
{
    DP_TRY(dp_floats_write(t->gradients.m, t->n, &t->bytes));
    return dp_floats_write(t->gradients.v, t->n, &t->bytes);
}

bool dp_trainer_waits(const dp_trainer *t)
{
    return dp_manifest_external(&t->manifest) ||
           (dp_trainer_has_gradients(t) && (t->gradients.ready || t->publishing || t->pending));
}

dp_status dp_trainer_take_gradient(dp_trainer *t, float loss_scale)
{
    const float *const from = t->backend->gradients(t->engine);
    if (from == NULL) {
        return DP_IO;
    }
    /* A power of two, where every token has a loss: nothing is lost. */
    const float factor = 1.0F / loss_scale;
    for (size_t i = 0; i < t->n; i++) {
        t->gradients.g[i] = factor * from[i];
    }
    t->gradients.ready = true;
    return DP_OK;
}

static dp_status load_work(dp_trainer *t, dp_vector to)
{
    DP_TRY(dp_floats_write(t->gradients.work, t->n, dp_trainer_bytes_anew(t)));
    return t->backend->load(t->engine, to, dp_buf_view(&t->bytes));
}

dp_status dp_trainer_gather(dp_trainer *t)
{
    const float *const e = t->backend->values(t->engine, DP_VECTOR_E);
    if (e == NULL) {
        return DP_IO;
    }
    for (size_t i = 0; i < t->n; i++) {
        t->gradients.work[i] = t->gradients.ready ? e[i] + t->gradients.g[i] : e[i];
    }
    return load_work(t, DP_VECTOR_A);
}

/* The rate is a function of the record alone, so a node that has just loaded a state takes the same
 * step. */
static dp_outer_adamw options_of(const dp_trainer *t, const dp_trainer_record *record)
{
    const dp_manifest *const m = &t->manifest;
    const double rate = dp_schedule_lr(&t->schedule, record->tokens, record->contributors) *
                        dp_schedule_batch_factor(m, record->contributors);
    return (dp_outer_adamw){.lr = (float)rate,
                            .beta1 = (float)m->beta1_micro * 1e-6F,
                            .beta2 = (float)m->beta2_micro * 1e-6F,
                            .eps = 1e-8F,
                            .decay = (float)m->decay_micro * 1e-6F,
                            .clip = (float)m->clip_milli * 1e-3F,
                            .step = record->round};
}

dp_status dp_trainer_step_of_all(dp_trainer *t, const dp_trainer_record *record)
{
    dp_trainer_gradients *const own = &t->gradients;
    const dp_outer_adamw options = options_of(t, record);
    t->outer = (dp_outer_seen){.reach = 1, .eta = options.lr, .in_m = 1};
    if (record->n_items == 0) {
        return DP_OK;
    }
    const dp_consensus_items items = dp_trainer_items(t, record);
    DP_TRY(dp_consensus_mean(own->work, t->n, &items));
    const float *const theta = t->backend->values(t->engine, DP_VECTOR_THETA);
    if (theta == NULL) {
        return DP_IO;
    }
    DP_TRY(dp_outer_adamw_step(&t->model, &options, theta, own->m, own->v, own->work));
    return load_work(t, DP_VECTOR_THETA);
}

void dp_trainer_gradients_age(dp_trainer *t, uint32_t lambda)
{
    if (t->gradients.ready) {
        dp_feedback_scale(t->gradients.g, lambda, t->n);
        t->gradients.ready = lambda > 0;
    }
}
