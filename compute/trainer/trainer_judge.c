/* Judges a peer's update: its effect on theta (base/run/judged.h). Training pauses meanwhile and is
 * unchanged afterwards. */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/run/token_marks.h"
#include "compute/codec/simhash.h"
#include "compute/data/order.h"
#include "compute/trainer/trainer_inside.h"

enum {
    WINDOWS_MAX = 256, /* of a gain: more tell little more, and the node waits */
    ONE = 65536,
    NATS_MAX = 1000 /* DP_GAIN_MICRO_MAX */
};

/* Which windows; the number also keys their order, so that one kind says nothing of the other. */
typedef enum windows_kind { HELD_OUT, CLAIMED, KINDS } windows_kind;

/* Losses of whole windows, in nats. */
typedef struct losses {
    uint32_t n;
    uint32_t targets[WINDOWS_MAX]; /* with a loss, in each */
    double before[WINDOWS_MAX];    /* of theta */
    double after[WINDOWS_MAX];     /* with the update; infinite where it has none */
} losses;

/* ---- Windows. */

static uint64_t held_out(dp_trainer *t)
{
    const size_t context = t->manifest.context;
    const uint64_t windows = dp_data_val_windows(&t->data, context);
    if (windows == 1 && dp_data_val_row(&t->data, 0, context, t->inputs, t->targets) != context) {
        return 0; /* The only one is short. */
    }
    return windows;
}

/* The claimed samples, saturated at 2^62, which is more than all there are. */
static uint64_t claimed(const dp_trainer_update *update)
{
    const uint64_t most = UINT64_C(1) << 62;
    uint64_t sum = update->own_count < most ? update->own_count : most;
    for (uint32_t i = 0; i < update->n_ranges; i++) {
        const uint64_t room = most - sum;
        sum += update->ranges[i].count < room ? update->ranges[i].count : room;
    }
    return sum;
}

static uint64_t windows_of(dp_trainer *t, const dp_trainer_update *update, windows_kind kind)
{
    return kind == HELD_OUT ? held_out(t) : claimed(update);
}

/* Sample number index of the claim: the ranges in order, then the own line. */
static dp_status take_claimed(dp_trainer *t, const dp_trainer_update *update, uint64_t index)
{
    const size_t context = t->manifest.context;
    for (uint32_t i = 0; i < update->n_ranges; i++) {
        if (index < update->ranges[i].count) {
            return dp_data_sample(&t->data, t->manifest.model_seed, update->ranges[i].first + index,
                                  context, t->inputs, t->targets);
        }
        index -= update->ranges[i].count;
    }
    return dp_data_sample(&t->data, dp_trainer_line_seed(t, update->member), update->own + index,
                          context, t->inputs, t->targets);
}

/* Window number i of those that are drawn from count. */
static dp_status take_window(dp_trainer *t, const dp_trainer_update *update, windows_kind kind,
                             uint64_t count, uint32_t i)
{
    const size_t context = t->manifest.context;
    const uint64_t index = dp_order_at(update->seed, (uint64_t)kind, count, i);
    if (kind == CLAIMED) {
        return take_claimed(t, update, index);
    }
    return dp_data_val_row(&t->data, index, context, t->inputs, t->targets) == context ? DP_OK
                                                                                       : DP_AGAIN;
}

/* One window at a time, since a backend tells sums alone and their spread is wanted. */
static dp_status loss_of_each(dp_trainer *t, const dp_trainer_update *update, windows_kind kind,
                              losses *l, double *loss)
{
    const uint64_t count = windows_of(t, update, kind);
    const dp_gpt_batch batch = {
        .x = t->inputs, .y = t->targets, .rows = 1, .length = t->manifest.context};
    for (uint32_t i = 0; i < l->n; i++) {
        DP_TRY(take_window(t, update, kind, count, i));
        l->targets[i] = 0;
        for (size_t j = 0; j < batch.length; j++) {
            l->targets[i] += t->targets[j] != DP_TOKEN_NO_LOSS;
        }
        const dp_status status = t->backend->loss(t->engine, DP_VECTOR_THETA, &batch, &loss[i]);
        if (status == DP_DIVERGED) {
            loss[i] = (double)INFINITY;
        } else {
            DP_TRY(status);
        }
    }
    return DP_OK;
}

static uint32_t windows_wanted(dp_trainer *t, const dp_trainer_update *update, windows_kind kind)
{
    const uint64_t context = t->manifest.context;
    const uint64_t most = windows_of(t, update, kind);
    const uint64_t wanted = (update->tokens + context - 1) / context;
    const uint64_t n = wanted < most ? wanted : most;
    return n < WINDOWS_MAX ? (uint32_t)n : WINDOWS_MAX;
}

/* ---- With the update. */

/* Of the run's step, if all updates were this one. */
static uint32_t step_of(const dp_trainer *t, uint32_t scale)
{
    const uint64_t alpha = (uint64_t)t->manifest.alpha_milli * ONE / 1000;
    const uint64_t step = alpha * scale / ONE;
    return step < UINT32_MAX ? (uint32_t)step : UINT32_MAX;
}

/* Losses of theta less the step; theta is as before then. The step is the outer one without
 * momentum, so that m stays. */
static dp_status look_ahead(dp_trainer *t, const dp_trainer_update *update, losses all[KINDS])
{
    static const uint32_t q_one = UINT32_C(1) << 31;
    const dp_trainer_record record = {.q = &q_one, .blobs = &update->blob, .n_items = 1};
    const dp_consensus_items items = dp_trainer_items(t, &record);
    const dp_outer outer = {.alpha = step_of(t, update->scale)};
    const float *const theta = t->backend->values(t->engine, DP_VECTOR_THETA);
    if (theta == NULL) {
        return DP_IO;
    }
    DP_TRY(dp_floats_write(theta, t->n, dp_trainer_bytes_anew(t)));
    dp_outer_seen seen;
    dp_status status = t->backend->apply(t->engine, &items, &outer, &seen);
    const bool finite = status != DP_DIVERGED;
    status = finite ? status : DP_OK;
    for (int kind = 0; kind < KINDS && status == DP_OK; kind++) {
        for (uint32_t i = 0; i < all[kind].n; i++) {
            all[kind].after[i] = (double)INFINITY;
        }
        if (finite) {
            status = loss_of_each(t, update, (windows_kind)kind, &all[kind], all[kind].after);
        }
    }
    const dp_status back = t->backend->load(t->engine, DP_VECTOR_THETA, dp_buf_view(&t->bytes));
    return back == DP_OK ? status : DP_IO; /* Without theta it may not go on. */
}

static uint64_t micro_of(double nats)
{
    return (uint64_t)llround(fmin(nats, NATS_MAX) * 1e6);
}

/* Nats per target of one window; 0: it has none. */
static double gain_in(const losses *l, uint32_t i)
{
    if (l->targets[i] == 0) {
        return 0;
    }
    return fmax(fmin((l->before[i] - l->after[i]) / l->targets[i], NATS_MAX), -NATS_MAX);
}

/* Mean and standard error over windows; of a single one the error is as large as the gain, as
 * nothing is known of its spread. */
static dp_gain gain_of(const losses *l)
{
    double sum = 0;
    double squares = 0;
    uint32_t tokens = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        sum += gain_in(l, i);
        tokens += l->targets[i];
    }
    const double mean = l->n > 0 ? sum / l->n : 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const double off = gain_in(l, i) - mean;
        squares += off * off;
    }
    const double error = l->n > 1 ? sqrt(squares / (l->n - 1) / l->n) : fabs(mean);
    const int64_t micro = (int64_t)micro_of(fabs(mean));
    return (dp_gain){
        .micro = mean < 0 ? -micro : micro, .error_micro = micro_of(error), .tokens = tokens};
}

static dp_status measure_gains(dp_trainer *t, const dp_trainer_update *update, dp_judged *out)
{
    losses all[KINDS];
    for (int kind = 0; kind < KINDS; kind++) {
        losses *const l = &all[kind];
        l->n = windows_wanted(t, update, (windows_kind)kind);
        DP_TRY(loss_of_each(t, update, (windows_kind)kind, l, l->before));
        for (uint32_t i = 0; i < l->n; i++) {
            if (!isfinite(l->before[i])) {
                return DP_DIVERGED;
            }
        }
    }
    if (all[HELD_OUT].n + all[CLAIMED].n == 0) {
        return DP_OK;
    }
    DP_TRY(look_ahead(t, update, all));
    out->held = gain_of(&all[HELD_OUT]);
    out->claimed = gain_of(&all[CLAIMED]);
    return DP_OK;
}

/* ---- Beside the own one. */

void dp_trainer_remember(dp_trainer *t, const float *a)
{
    if (t->judges) {
        DP_IGNORE(dp_alignment_set(&t->own, a, t->n)); /* Then it has none to compare with. */
    }
}

/* The first time there is at most the pending publication. */
static dp_status find_own(dp_trainer *t)
{
    t->judges = true;
    if (!t->own.has && t->pending) {
        const float *const a = t->backend->values(t->engine, DP_VECTOR_A);
        if (a == NULL) {
            return DP_IO;
        }
        dp_trainer_remember(t, a);
    }
    return DP_OK;
}

dp_status dp_trainer_judge(dp_trainer *t, const dp_trainer_update *update, dp_judged *out)
{
    dp_judged found = {0};
    double cosine = 0;
    dp_assert(!t->alone);
    DP_TRY(find_own(t));
    DP_TRY(dp_codec_check(update->blob, t->n));
    if (t->own.has) {
        DP_TRY(dp_alignment_cosine(&t->own, update->blob, &cosine));
    }
    found.compared = t->own.has;
    found.align = (int32_t)lround(cosine * DP_ALIGN_ONE);
    DP_TRY(dp_simhash(update->blob, t->n, found.likeness));
    /* How far a gradient leads is the optimizer's matter, which has moments of its own. */
    const bool runs = !dp_trainer_has_gradients(t) && !dp_manifest_external(&t->manifest);
    if (update->tokens > 0 && runs) {
        DP_TRY(measure_gains(t, update, &found));
    }
    *out = found;
    return DP_OK;
}
