/* The trainer's local steps: batch, gradient, optimizer. */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/run/token_marks.h"
#include "compute/machine/stopwatch.h"
#include "compute/trainer/trainer_inside.h"

enum {
    MICRO_US = 80 * 1000, /* A command waits for at most one micro-batch. */
    WARM_STEPS = 20       /* After init or load the moments know nothing yet. */
};

dp_status dp_trainer_drop_step(dp_trainer *t)
{
    t->rows_done = 0;
    t->batch_count++; /* Done or not, the next step sees others. */
    t->reach = t->drawn;
    dp_trainer_script_expire(t, true);
    dp_trainer_script_expire(t, false);
    t->step_loss = 0;
    t->step_losses = 0;
    return t->backend->drop(t->engine);
}

static dp_status skip_step(dp_trainer *t, dp_trainer_last last)
{
    t->open.skipped++;
    t->open.empty += last.outcome == DP_STEP_EMPTY;
    t->step_count++;
    last.step = t->step_count;
    t->last = last;
    return dp_trainer_drop_step(t);
}

/* ---- Rows of a micro-batch. */

/* Beside peers the clock decides how many rows go at a time, and a device searches for algorithms
 * and keeps a graph for each number: so there are few numbers, rows_max and the powers of two below
 * it, which are 13 at most. A trainer alone has always the same. */
static uint32_t count_of(const dp_trainer *t, uint32_t rows)
{
    uint32_t power = 1;
    if (t->alone || rows >= t->rows_max) {
        return rows;
    }
    while (power <= rows / 2) {
        power *= 2;
    }
    return power;
}

_Static_assert(DP_GPT_ROWS_MAX == 1 << 12, "13 numbers of rows");

static dp_loader_place next_place(const dp_trainer *t)
{
    const uint32_t left = t->manifest.batch_rows - t->rows_done;
    const uint32_t most = left < t->rows_next ? left : t->rows_next;
    const dp_loader_place place = dp_trainer_next_place(t, count_of(t, most));
    return dp_trainer_next_place(t, count_of(t, place.rows)); /* Less where a lease ends. */
}

/* True once for each number of rows: the device may have searched then. */
static bool is_first(dp_trainer *t, uint32_t rows)
{
    uint32_t bit = rows == t->rows_max ? 31 : 0;
    while (rows < t->rows_max && rows >> bit > 1) {
        bit++;
    }
    const bool first = (t->rows_seen >> bit & 1U) == 0;
    t->rows_seen |= UINT32_C(1) << bit;
    return first;
}

/* Rows of the next micro-batch from the time that the last one took; at most twice as many. */
static void size_next(dp_trainer *t, uint32_t rows, uint64_t took_us)
{
    const bool first = is_first(t, rows);
    if (rows < count_of(t, t->rows_next) && took_us < MICRO_US) {
        return; /* The rest of a batch or of a lease says nothing about more rows. */
    }
    uint64_t fit = took_us == 0 ? t->rows_max : (uint64_t)rows * MICRO_US / took_us;
    fit = fit > 2 * (uint64_t)rows ? 2 * (uint64_t)rows : fit;
    fit = fit > t->rows_max ? t->rows_max : fit;
    fit = first && fit < t->rows_next ? t->rows_next : fit;
    t->rows_next = fit == 0 ? 1 : (uint32_t)fit;
}

/* ---- Steps. */

static double scheduled_rate(const dp_trainer *t)
{
    /* Own work that is not committed yet counts too, or a long round would stand still in the
     * warm-up. */
    const uint64_t tokens = t->committed + t->open.tokens + t->pending_tally.tokens;
    return dp_schedule_lr(&t->schedule, tokens, t->contributors) *
           dp_schedule_batch_factor(&t->manifest, t->contributors);
}

double dp_trainer_rate(const dp_trainer *t)
{
    return dp_manifest_external(&t->manifest) ? 0 : scheduled_rate(t);
}

static float learning_rate(const dp_trainer *t)
{
    const double rate = scheduled_rate(t);
    if (t->alone) {
        return (float)rate;
    }
    const double warm = t->step_count < WARM_STEPS ? (double)(t->step_count + 1) / WARM_STEPS : 1;
    return (float)(rate * warm);
}

static bool scales_loss(const dp_trainer *t)
{
    return t->manifest.precision == DP_PRECISION_FP16;
}

static float loss_scale(const dp_trainer *t)
{
    return scales_loss(t) ? t->scaler.scale : 1.0F;
}

static void scaler_told(dp_trainer *t, bool finite)
{
    if (scales_loss(t)) {
        dp_scaler_told(&t->scaler, finite);
    }
}

static dp_optim_options options_of(const dp_trainer *t)
{
    const dp_manifest *const m = &t->manifest;
    return (dp_optim_options){.lr = learning_rate(t),
                              .beta1 = (float)m->beta1_micro * 1e-6F,
                              .beta2 = (float)m->beta2_micro * 1e-6F,
                              .eps = m->optimizer == DP_OPTIM_LAMB ? 1e-6F : 1e-8F,
                              .decay = (float)m->decay_micro * 1e-6F,
                              .clip = (float)m->clip_milli * 1e-3F,
                              .momentum = (float)m->momentum_micro * 1e-6F,
                              .loss_scale = loss_scale(t)};
}

uint64_t dp_trainer_computed_us(const dp_trainer *t)
{
    return t->computed_us;
}

/* Targets with a loss. */
static uint64_t losses_in(const dp_trainer *t, const uint32_t *targets, uint64_t n)
{
    if (!t->data.documents) {
        return n;
    }
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++) {
        count += targets[i] != DP_TOKEN_NO_LOSS;
    }
    return count;
}

/* The whole of a step's gradient is there: look at it and take the step. */
static dp_status finish_step(dp_trainer *t)
{
    const uint64_t tokens = t->step_losses;
    const uint64_t all = (uint64_t)t->manifest.batch_rows * t->manifest.context;
    dp_optim_options options = options_of(t);
    if (tokens == 0) { /* There is nothing to learn from. */
        return skip_step(t, (dp_trainer_last){.outcome = DP_STEP_EMPTY,
                                              .loss = (double)NAN,
                                              .norm = (double)NAN,
                                              .rate = (double)options.lr});
    }
    /* The gradient is that of the sum over all targets of the batch, divided by their number as if
     * each had a loss. */
    options.loss_scale *= (float)tokens / (float)all;
    const double loss = t->step_loss / (double)tokens;
    double norm;
    DP_TRY(t->backend->norm(t->engine, &norm));
    const bool finite = isfinite(loss) && isfinite(norm);
    dp_trainer_last last = {.outcome = DP_STEP_NOT_FINITE,
                            .loss = loss,
                            .norm = norm / (double)options.loss_scale,
                            .rate = (double)options.lr};
    scaler_told(t, finite);
    if (!finite) {
        return skip_step(t, last);
    }
    if (!dp_spike_is_good(&t->losses, loss, (double)t->manifest.spike_milli * 1e-3)) {
        t->open.spikes++;
        last.outcome = DP_STEP_SPIKE;
        return skip_step(t, last);
    }
    const dp_status status = dp_trainer_has_gradients(t)
                                 ? dp_trainer_take_gradient(t, options.loss_scale)
                                 : t->backend->update(t->engine, &options, norm);
    if (status == DP_DIVERGED) {
        return skip_step(t, last);
    }
    DP_TRY(status);
    t->step_count++;
    t->open.steps++;
    t->open.tokens += tokens;
    t->open.loss_sum += loss;
    last.outcome = DP_STEP_DONE;
    last.step = t->step_count;
    t->last = last;
    return dp_trainer_drop_step(t);
}

dp_status dp_trainer_work(dp_trainer *t)
{
    dp_assert(!t->script.active);
    if (dp_trainer_waits(t)) {
        return DP_OK;
    }
    const uint32_t batch_rows = t->manifest.batch_rows;
    const size_t length = t->manifest.context;
    const dp_loader_place place = next_place(t);
    const uint32_t rows = place.rows;
    dp_loader_rows loaded;
    DP_TRY(dp_loader_take(t->loader, &place, &loaded));
    dp_trainer_pass_over(t, &place);
    const dp_gpt_batch batch = {.x = loaded.x, .y = loaded.y, .rows = rows, .length = length};
    const float scale = loss_scale(t) / ((float)batch_rows * (float)length);
    const uint64_t start = dp_now_us();
    double loss_sum = 0;
    const dp_status status = t->backend->step(t->engine, &batch, scale, &loss_sum);
    if (status == DP_DIVERGED) {
        scaler_told(t, false);
        return skip_step(t, (dp_trainer_last){.outcome = DP_STEP_NOT_FINITE,
                                              .loss = (double)NAN,
                                              .norm = (double)NAN,
                                              .rate = (double)learning_rate(t)});
    }
    DP_TRY(status);
    const uint64_t stepped = dp_now_us();
    t->computed_us += stepped - start;
    if (!t->alone) {
        size_next(t, rows, stepped - start);
    }
    t->rows_done += rows;
    t->step_loss += loss_sum;
    t->step_losses += losses_in(t, loaded.y, rows * length);
    if (t->rows_done < batch_rows) {
        return DP_OK;
    }
    const dp_status finished = finish_step(t);
    t->computed_us += dp_now_us() - stepped;
    return finished;
}
