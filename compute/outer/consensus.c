#include "compute/outer/consensus.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutation.h"
#include "compute/codec/codec.h"

enum { ONE = 65536 };

/* Stores elements first .. end - 1 of the vector. */
typedef struct item {
    dp_view blob;
    float f;
    size_t first;
    size_t end;
    dp_codec_cursor cursor;
} item;

struct dp_consensus_sum {
    item items[DP_CONSENSUS_ITEMS_MAX];
    size_t n_items;
    size_t first; /* range of the vector */
    size_t end;
    size_t at; /* where the next run begins */
    const dp_codec_ops *ops;
    dp_codec_run run;
    float acc[DP_CODEC_RUN]; /* g of the run */
    size_t length;           /* of the run */
};

typedef struct dp_consensus_sum workspace;

float dp_consensus_factor(const dp_consensus_items *items, size_t i)
{
    const float share = (float)items->q[i] * 0x1p-31F;
    dp_codec codec = {.kind = DP_CODEC_KINDS};
    uint64_t elements;

    if (!items->steps || dp_codec_peek(items->blobs[i], &codec, &elements) != DP_OK) {
        return share; /* An invalid blob is found when it is decoded. */
    }
    return share * ((float)dp_codec_gain(codec.kind, codec.keep) * 0x1p-16F);
}

/* Of elements first .. first + n - 1. NULL: no memory. */
static workspace *workspace_of(dp_part_place all, const dp_consensus_items *items)
{
    workspace *const work = dp_alloc(1, sizeof *work);
    if (work == NULL) {
        return NULL;
    }
    work->n_items = items->n;
    work->first = all.first;
    work->end = all.first + all.n;
    work->ops = dp_codec_ops_best();
    for (size_t i = 0; i < items->n; i++) {
        const dp_part_place place = items->places != NULL ? items->places[i] : all;
        work->items[i] = (item){.blob = items->blobs[i],
                                .f = dp_consensus_factor(items, i),
                                .first = place.first,
                                .end = place.first + place.n};
    }
    return work;
}

static void add_run(workspace *work, float f)
{
    if (dp_broken(39) && work->run.dense) {
        for (size_t i = 0; i < work->run.length; i++) {
            /* One rounding where the others have two. */
            work->acc[i] = fmaf(f, work->run.value[i], work->acc[i]);
        }
        return;
    }
    dp_codec_add(work->ops, &work->run, f, work->acc);
}

static dp_status rewind_blobs(workspace *work)
{
    work->at = work->first;
    for (size_t i = 0; i < work->n_items; i++) {
        item *const one = &work->items[i];
        DP_TRY(dp_codec_open_at(&one->cursor, one->blob, one->first, one->end - one->first));
    }
    return DP_OK;
}

/* g of the next run, of all blobs that store it. */
static dp_status next_run(workspace *work)
{
    const size_t left = work->end - work->at;
    work->length = left < DP_CODEC_RUN ? left : DP_CODEC_RUN;
    memset(work->acc, 0, work->length * sizeof *work->acc);
    for (size_t i = 0; i < work->n_items; i++) {
        item *const one = &work->items[i];
        if (work->at < one->first || work->at >= one->end) {
            continue;
        }
        DP_TRY(dp_codec_next(&one->cursor, &work->run));
        if (work->run.length != work->length) {
            return DP_BADMSG;
        }
        add_run(work, one->f);
    }
    work->at += work->length;
    return DP_OK;
}

static dp_status apply_plain(workspace *work, float *theta, float step)
{
    bool finite = true;
    while (work->at < work->end) {
        DP_TRY(next_run(work));
        const bool good = work->ops->move(theta, work->acc, work->length, step);
        finite = finite && good;
        theta += work->length;
    }
    return finite ? DP_OK : DP_DIVERGED;
}

/* Of the step that comes; nothing is changed. */
static dp_status measure(workspace *work, const float *m, float mu, dp_outer_sums *sums)
{
    *sums = (dp_outer_sums){0};
    while (work->at < work->end) {
        DP_TRY(next_run(work));
        dp_outer_sums run = {0};
        for (size_t i = 0; i < work->length; i++) {
            const float g = work->acc[i];
            const float kept = mu * m[i];
            const float next = kept + g;
            run.along += (double)next * (double)g;
            run.square += (double)g * (double)g;
            run.kept += (double)m[i] * (double)m[i];
        }
        sums->along += run.along;
        sums->square += run.square;
        sums->kept += run.kept;
        m += work->length;
    }
    return DP_OK;
}

dp_outer_seen dp_outer_step(const dp_outer *outer, const dp_outer_sums *sums)
{
    const double alpha = (double)outer->alpha * 0x1p-16;
    const double mu = (double)outer->mu * 0x1p-16;
    dp_outer_seen seen = {.reach = 1, .eta = (float)alpha, .in_m = 1};

    if (sums == NULL || !(sums->square > 0)) {
        return seen;
    }
    double along = sums->along;
    double square = sums->square;
    if (outer->long_once && sums->kept > 0 && square > sums->kept) {
        const double far = alpha / (1 - mu);
        seen.in_m = (float)sqrt(sums->kept / square);
        seen.once = (1 - seen.in_m) * (far < 1 ? (float)far : 1.0F);
        const double s = (double)seen.in_m;
        const double mixed = sums->along - sums->square; /* mu <m, g>, with the old m */
        square = s * s * sums->square;
        along = s * mixed + square;
    }
    const double ratio = square > 0 ? along / square : 0;
    seen.reach = 1 + mu * ratio;
    if (alpha * seen.reach > DP_OUTER_REACH_MAX) {
        seen.eta = (float)(DP_OUTER_REACH_MAX / seen.reach);
    }
    return seen;
}

static dp_status apply_nesterov(workspace *work, float *theta, float *m, float mu,
                                const dp_outer_seen *step)
{
    bool finite = true;
    while (work->at < work->end) {
        DP_TRY(next_run(work));
        for (size_t i = 0; i < work->length; i++) {
            const float g = work->acc[i];
            const float u = step->in_m * g;
            const float kept = mu * m[i];
            m[i] = kept + u;
            const float ahead = mu * m[i];
            const float moved = step->eta * (u + ahead);
            const float once = step->once * g;
            theta[i] -= moved + once;
            finite = finite && isfinite(theta[i]) && isfinite(m[i]);
        }
        theta += work->length;
        m += work->length;
    }
    return finite ? DP_OK : DP_DIVERGED;
}

static dp_status apply(workspace *work, float *theta, float *m, const dp_outer *outer,
                       dp_outer_seen *seen)
{
    const float mu = (float)outer->mu * 0x1p-16F;
    dp_outer_sums sums;
    *seen = dp_outer_step(outer, NULL);
    DP_TRY(rewind_blobs(work));
    if (outer->mu == 0) {
        return apply_plain(work, theta, seen->eta);
    }
    DP_TRY(measure(work, m, mu, &sums));
    *seen = dp_outer_step(outer, &sums);
    DP_TRY(rewind_blobs(work));
    return apply_nesterov(work, theta, m, mu, seen);
}

dp_status dp_consensus_apply(float *theta, float *m, size_t n, const dp_consensus_items *items,
                             const dp_outer *outer, dp_outer_seen *seen)
{
    dp_assert(outer->mu < ONE && (outer->mu == 0 || m != NULL));
    if (items->n > DP_CONSENSUS_ITEMS_MAX) {
        return DP_BADARG;
    }
    dp_outer_seen own = dp_outer_step(outer, NULL);
    if (items->n > 0) {
        workspace *const work = workspace_of((dp_part_place){.n = n}, items);
        if (work == NULL) {
            return DP_NOMEM;
        }
        const dp_status status = apply(work, theta, m, outer, &own);
        dp_free(work);
        DP_TRY(status);
    }
    if (seen != NULL) {
        *seen = own;
    }
    return DP_OK;
}

static dp_status gather(workspace *work, float *g)
{
    DP_TRY(rewind_blobs(work));
    while (work->at < work->end) {
        DP_TRY(next_run(work));
        memcpy(g, work->acc, work->length * sizeof *g);
        g += work->length;
    }
    return DP_OK;
}

dp_status dp_consensus_mean(float *g, size_t n, const dp_consensus_items *items)
{
    if (items->n > DP_CONSENSUS_ITEMS_MAX) {
        return DP_BADARG;
    }
    if (items->n == 0) {
        memset(g, 0, n * sizeof *g);
        return DP_OK;
    }
    workspace *const work = workspace_of((dp_part_place){.n = n}, items);
    if (work == NULL) {
        return DP_NOMEM;
    }
    const dp_status status = gather(work, g);
    dp_free(work);
    return status;
}

dp_status dp_consensus_sum_open(dp_consensus_sum **out, size_t first, size_t n,
                                const dp_consensus_items *items)
{
    dp_assert(items->places == NULL);
    if (items->n == 0 || items->n > DP_CONSENSUS_ITEMS_MAX) {
        return DP_BADARG;
    }
    workspace *const work = workspace_of((dp_part_place){.first = first, .n = n}, items);
    if (work == NULL) {
        return DP_NOMEM;
    }
    const dp_status status = rewind_blobs(work);
    if (status != DP_OK) {
        dp_free(work);
        return status;
    }
    *out = work;
    return DP_OK;
}

void dp_consensus_sum_close(dp_consensus_sum *sum)
{
    dp_free(sum);
}

dp_status dp_consensus_sum_next(dp_consensus_sum *sum, const float **g, size_t *length)
{
    sum->length = 0;
    if (sum->at < sum->end) {
        DP_TRY(next_run(sum));
    }
    *g = sum->acc;
    *length = sum->length;
    return DP_OK;
}
