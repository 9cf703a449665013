#include "compute/trainer/trainer_script.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/run/samples.h"
#include "compute/data/order.h"
#include "compute/trainer/trainer_inside.h"

#define LOSS_MAX 1e30 /* of a sum: beyond it the script has gone wrong, and the loss is unknown */

dp_status dp_trainer_script_open(dp_trainer *t, dp_view table)
{
    dp_buf_init(&t->script.table, table.size);
    return dp_buf_append(&t->script.table, table);
}

void dp_trainer_script_close(dp_trainer *t)
{
    dp_buf_close(&t->script.table);
}

dp_view dp_trainer_table(const dp_trainer *t)
{
    return dp_buf_view(&t->script.table);
}

const dp_model *dp_trainer_model(const dp_trainer *t)
{
    return &t->model;
}

/* ---- Begin and end. */

dp_status dp_trainer_begin_script(dp_trainer *t)
{
    dp_assert(!dp_trainer_has_gradients(t) && !t->alone);
    if (t->rows_done > 0) {
        DP_TRY(dp_trainer_drop_step(t));
    }
    t->script.active = true;
    return DP_OK;
}

/* The engine's moments and losses are of other weights. */
static dp_status restart_engine(dp_trainer *t)
{
    t->step_count = 0;
    t->losses = (dp_spike){0};
    return t->backend->reset(t->engine);
}

dp_status dp_trainer_end_script(dp_trainer *t)
{
    dp_trainer_script *const s = &t->script;
    s->active = false;
    s->n_stretches = 0;
    s->n_drawn = 0;
    t->drawn = t->reach;
    DP_TRY(restart_engine(t));
    return s->leaseless ? DP_OK : dp_trainer_lease(t, &s->lease_from, s->lease, s->n_lease);
}

/* ---- Samples. */

void dp_trainer_script_expire(dp_trainer *t, bool own)
{
    dp_trainer_script *const s = &t->script;
    for (uint32_t i = 0; i < s->n_stretches; i++) {
        s->stretches[i].expired = s->stretches[i].expired || s->stretches[i].own == own;
    }
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Samples that were drawn when nobody knew where the lines go on. */
static void forget_guesses(dp_trainer *t, const dp_reach *from)
{
    dp_trainer_script_expire(t, false);
    dp_trainer_script_expire(t, true);
    t->drawn.leased = larger(t->drawn.leased, from->leased);
    t->drawn.own = larger(t->drawn.own, from->own);
    t->reach = t->drawn;
    t->script.leaseless = false;
}

void dp_trainer_script_jump(dp_trainer *t, const dp_reach *from)
{
    if (t->script.leaseless) {
        forget_guesses(t, from);
        return;
    }
    if (from->leased > t->drawn.leased) {
        dp_trainer_script_expire(t, false);
        t->drawn.leased = from->leased;
        t->reach.leased = from->leased;
    }
    if (from->own > t->drawn.own) {
        dp_trainer_script_expire(t, true);
        t->drawn.own = from->own;
        t->reach.own = from->own;
    }
}

bool dp_trainer_has_lease(const dp_trainer *t)
{
    return !t->script.leaseless;
}

static bool continues(const dp_trainer_script *s, bool own)
{
    const dp_drawn_stretch *const last =
        s->n_stretches > 0 ? &s->stretches[s->n_stretches - 1] : NULL;
    return last != NULL && last->own == own && !last->expired;
}

static void remember(dp_trainer_script *s, bool own, uint64_t count)
{
    if (!continues(s, own)) {
        dp_assert(s->n_stretches < DP_SCRIPT_STRETCHES_MAX);
        s->stretches[s->n_stretches++] = (dp_drawn_stretch){.own = own};
    }
    s->stretches[s->n_stretches - 1].count += count;
    s->n_drawn += count;
}

uint32_t dp_trainer_draw(dp_trainer *t, uint32_t n, uint64_t *indices)
{
    dp_trainer_script *const s = &t->script;
    const uint64_t all = dp_manifest_samples(&t->manifest);
    const uint64_t own_seed = dp_trainer_line_seed(t, t->member);
    const uint64_t room = DP_SCRIPT_DRAWN_MAX - s->n_drawn;
    uint32_t made = 0;
    n = n < room ? n : (uint32_t)room;
    while (made < n) {
        const dp_loader_place place = dp_trainer_next_place(t, n - made);
        if (s->n_stretches == DP_SCRIPT_STRETCHES_MAX && !continues(s, place.own)) {
            break;
        }
        const uint64_t seed = place.own ? own_seed : t->manifest.model_seed;
        for (uint32_t i = 0; i < place.rows; i++) {
            const uint64_t sample = place.sample + i;
            indices[made + i] = dp_order_at(seed, sample / all, all, sample % all);
        }
        remember(s, place.own, place.rows);
        dp_trainer_pass_over(t, &place);
        made += place.rows;
    }
    return made;
}

/* Takes the oldest samples, at most so many, out of the list. Returns those of a stretch that has
 * not expired. */
static uint64_t use(dp_trainer *t, uint64_t samples, bool counts)
{
    dp_trainer_script *const s = &t->script;
    uint64_t good = 0;
    while (samples > 0 && s->n_stretches > 0) {
        dp_drawn_stretch *const first = &s->stretches[0];
        const uint64_t here = first->count < samples ? first->count : samples;
        if (!first->expired) {
            *(first->own ? &t->reach.own : &t->reach.leased) += here;
            good += counts ? here : 0;
        }
        first->count -= here;
        samples -= here;
        s->n_drawn -= here;
        if (first->count == 0) {
            s->n_stretches--;
            memmove(first, first + 1, s->n_stretches * sizeof *first);
        }
    }
    return good;
}

void dp_trainer_pass_drawn(dp_trainer *t, uint64_t samples)
{
    (void)use(t, samples, false);
}

/* ---- Weights. */

static dp_view bytes_of(const float *values, size_t n)
{
    return dp_view_of((const uint8_t *)values, n * sizeof *values);
}

/* Tokens that a sample counts as: of documents kept apart, those with a loss on average. */
static uint64_t tokens_of_sample(const dp_trainer *t)
{
    if (!t->data.documents) {
        return dp_manifest_sample_tokens(&t->manifest);
    }
    const uint64_t windows = dp_data_windows(&t->data, t->manifest.context);
    return dp_data_losses(&t->data, t->manifest.context) / (windows > 0 ? windows : 1);
}

dp_status dp_trainer_take_weights(dp_trainer *t, const float *weights, const dp_script_work *work)
{
    if (work->samples > t->script.n_drawn) {
        return DP_BADARG;
    }
    DP_TRY(t->backend->load(t->engine, DP_VECTOR_X, bytes_of(weights, t->n)));
    const bool told = fabs(work->loss_sum) < LOSS_MAX; /* not if it is NaN */
    t->open.steps += work->steps;
    t->open.restored += told ? 0 : work->steps;
    t->open.loss_sum += told ? work->loss_sum : 0;
    t->open.tokens += use(t, work->samples, true) * tokens_of_sample(t);
    return DP_OK;
}

static dp_status weights_now(dp_trainer *t, const float **x)
{
    *x = t->backend->values(t->engine, DP_VECTOR_X);
    return *x != NULL ? DP_OK : DP_IO;
}

dp_status dp_trainer_give_weights(dp_trainer *t, float *weights)
{
    const float *x;
    DP_TRY(weights_now(t, &x));
    memcpy(weights, x, t->n * sizeof *weights);
    return DP_OK;
}

dp_status dp_trainer_give_moves(dp_trainer *t, float *weights)
{
    const float *x;
    DP_TRY(weights_now(t, &x));
    for (size_t i = 0; i < t->n; i++) {
        weights[i] = x[i] - weights[i];
    }
    return DP_OK;
}
