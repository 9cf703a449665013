#include "tests/sim/toy_bytes.h"

#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"

void dp_toy_init(dp_toy *toy, uint32_t member, uint32_t beta_milli, uint64_t noise)
{
    memset(toy, 0, sizeof *toy);
    toy->member = member;
    toy->beta_milli = beta_milli;
    toy->noise = noise;
}

/* ---- samples ---- */

static void add_span(dp_toy_samples *samples, dp_toy_span span)
{
    dp_toy_span *last = samples->n > 0 ? &samples->spans[samples->n - 1] : NULL;

    if (last != NULL && last->line == span.line && last->end == span.first) {
        last->end = span.end;
        return;
    }
    dp_assert(samples->n < DP_TOY_SPANS_MAX);
    samples->spans[samples->n++] = span;
}

static void move_samples(dp_toy_samples *to, dp_toy_samples *from)
{
    for (uint32_t i = 0; i < from->n; i++) {
        add_span(to, from->spans[i]);
    }
    from->n = 0;
}

static void drop_first(dp_toy *toy, uint64_t count)
{
    while (count > 0 && toy->n_ranges > 0) {
        dp_sample_range *range = &toy->ranges[0];
        const uint64_t take = range->count < count ? range->count : count;
        range->first += take;
        range->count -= take;
        count -= take;
        if (range->count == 0) {
            toy->n_ranges--;
            memmove(toy->ranges, toy->ranges + 1, toy->n_ranges * sizeof toy->ranges[0]);
        }
    }
}

void dp_toy_lease(dp_toy *toy, const dp_reach *reach, const dp_sample_range *ranges, uint32_t n)
{
    dp_assert(n <= DP_LEASE_RANGES_MAX);
    toy->n_ranges = n;
    if (n > 0) {
        memcpy(toy->ranges, ranges, n * sizeof ranges[0]);
    }
    if (toy->reach.leased < reach->leased) {
        toy->reach.leased = reach->leased;
    }
    if (toy->reach.own < reach->own) {
        toy->reach.own = reach->own;
    }
    if (!dp_broken(51)) {
        drop_first(toy, toy->reach.leased - reach->leased);
    }
}

static void draw(dp_toy *toy)
{
    if (toy->n_ranges > 0) {
        const uint64_t sample = toy->ranges[0].first;
        add_span(&toy->in_open, (dp_toy_span){.first = sample, .end = sample + 1});
        drop_first(toy, 1);
        toy->reach.leased++;
        return;
    }
    add_span(
        &toy->in_open,
        (dp_toy_span){.line = 1 + toy->member, .first = toy->reach.own, .end = toy->reach.own + 1});
    toy->reach.own++;
}

/* ---- the model; its state: u64 round, then the elements of theta, then those of m ---- */

void dp_toy_first(uint64_t model_seed, dp_toy_model *model)
{
    memset(model, 0, sizeof *model);
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        model->theta[i] = (int64_t)(dp_mix64(model_seed + i) & 0xffffff) - 0x800000;
    }
}

void dp_toy_state(uint64_t round, const dp_toy_model *model, uint8_t state[DP_TOY_STATE_BYTES])
{
    dp_writer w = dp_writer_of(state, DP_TOY_STATE_BYTES);

    dp_write_u64(&w, round);
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        dp_write_u64(&w, (uint64_t)model->theta[i]);
    }
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        /* M29: the state does not contain the momentum. */
        dp_write_u64(&w, dp_broken(29) ? 0 : (uint64_t)model->m[i]);
    }
    dp_assert(!w.full && w.size == DP_TOY_STATE_BYTES);
}

static void place_x(dp_toy *toy)
{
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        toy->x[i] = toy->model.theta[i] - toy->open[i] - toy->frozen[i] - toy->a_moved[i];
    }
}

static void empty(dp_toy *toy, dp_toy_vector buffer)
{
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        toy->discarded[i] += buffer[i];
        buffer[i] = 0;
    }
}

static void forget_pending(dp_toy *toy)
{
    toy->pending = false;
    toy->pending_tokens = 0;
    memset(toy->a, 0, sizeof toy->a);
    memset(toy->a_moved, 0, sizeof toy->a_moved);
    memset(toy->sent, 0, sizeof toy->sent);
}

void dp_toy_start(dp_toy *toy, uint64_t round, const dp_toy_model *model)
{
    toy->model = *model;
    toy->round = round;
    toy->has_theta = true;
    empty(toy, toy->open);
    empty(toy, toy->frozen);
    empty(toy, toy->a);
    forget_pending(toy);
    if (!dp_broken(20)) {
        empty(toy, toy->e);
    }
    toy->open_work = (dp_toy_work){0};
    toy->frozen_work = (dp_toy_work){0};
    toy->carried = 0;
    toy->in_open.n = 0;
    toy->in_frozen.n = 0;
    toy->in_a.n = 0;
    toy->in_e.n = 0;
    toy->reach = (dp_reach){0}; /* Samples lost with the work buffers may be drawn again. */
    toy->n_ranges = 0;
    place_x(toy);
}

dp_status dp_toy_load(dp_toy *toy, dp_view state)
{
    dp_toy_model model;
    dp_reader r = dp_reader_of(state);
    const uint64_t round = dp_read_u64(&r);

    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        model.theta[i] = (int64_t)dp_read_u64(&r);
    }
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        model.m[i] = (int64_t)dp_read_u64(&r);
    }
    DP_TRY(dp_reader_finish(&r));
    dp_toy_start(toy, round, &model);
    return DP_OK;
}

void dp_toy_train(dp_toy *toy, uint32_t steps)
{
    for (uint32_t s = 0; s < steps; s++) {
        const uint64_t word = dp_mix64(++toy->noise);
        for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
            const int64_t target = (int64_t)(toy->member % 5) * 1000;
            const int64_t noise = (int64_t)((word >> (i % 48)) & 0xffff) - 0x8000;
            const int64_t move = (toy->x[i] - target + noise) / 64;
            toy->x[i] -= move;
            toy->open[i] += move;
            toy->made[i] += move;
        }
        draw(toy);
    }
    toy->open_work.steps += steps;
    toy->open_work.tokens += (uint64_t)steps * DP_TOY_TOKENS_PER_STEP;
}

void dp_toy_publish(dp_toy *toy, bool dense, const dp_part_cuts *cuts, uint64_t nonce,
                    dp_toy_parcel *parcel)
{
    dp_assert(!toy->pending);
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        toy->a_moved[i] = toy->frozen[i] + toy->open[i];
        toy->a[i] = toy->e[i] + toy->a_moved[i];
        toy->e[i] = 0;
        toy->frozen[i] = 0;
        toy->open[i] = 0;
    }
    toy->pending = true;
    memset(parcel, 0, sizeof *parcel);
    toy->cuts = *cuts;
    if (cuts->n > 0) {
        dp_toy_encode_parts(toy->a, dense, cuts, nonce, parcel);
    } else {
        const uint32_t kept = dp_toy_kept(DP_TOY_ELEMENTS, toy->keep);
        dp_toy_encode(toy->a, dense ? DP_TOY_ELEMENTS : kept, nonce, parcel);
    }
    const dp_status decoded =
        dp_toy_decode(dp_view_of(parcel->blob, parcel->blob_size), toy->sent, &parcel->energy);
    dp_assert(decoded == DP_OK);
    parcel->work = toy->open_work;
    parcel->carried = toy->carried + toy->frozen_work.tokens;
    if (parcel->work.steps == 0) {
        parcel->work = toy->frozen_work;
        parcel->carried = toy->carried;
    }
    toy->pending_tokens = parcel->work.tokens + parcel->carried;
    toy->in_a.n = 0;
    move_samples(&toy->in_a, &toy->in_e);
    move_samples(&toy->in_a, &toy->in_frozen);
    move_samples(&toy->in_a, &toy->in_open);
    parcel->samples = toy->in_a;
    parcel->reach = toy->reach;
    const dp_toy_work whole = {.steps = parcel->work.steps, .tokens = toy->pending_tokens};
    dp_toy_write_vector(toy->a, whole, &toy->in_a, parcel->vector);
    toy->open_work = (dp_toy_work){0};
    toy->frozen_work = (dp_toy_work){0};
    toy->carried = 0;
}

/* The part clip * decoded blob that a record takes. */
static int64_t taken(int64_t sent, uint32_t clip_q16)
{
    return (int64_t)((__int128)sent * clip_q16 / 65536);
}

/* e as the outcome leaves it, from a and the record alone: settling twice is settling once. */
static bool is_taken(const dp_toy_outcome *outcome, uint32_t element)
{
    return outcome->settle == DP_SETTLE_INCLUDED &&
           (outcome->cuts.n == 0 ||
            (outcome->taken >> dp_toy_part_of(&outcome->cuts, element) & 1U) != 0);
}

static void settle_pending(dp_toy *toy, const dp_toy_outcome *outcome)
{
    const dp_settle settle = outcome->settle;
    const uint32_t clip_q16 = outcome->clip_q16;

    dp_assert(toy->pending && settle != DP_SETTLE_NONE);
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        int64_t rest = toy->a[i];
        if (is_taken(outcome, i)) {
            const int64_t took = taken(toy->sent[i], clip_q16);
            /* M23: also drops the clipped part. */
            const int64_t gone = dp_broken(23) ? toy->sent[i] : took;
            const int64_t left = toy->a[i] - gone;
            toy->discarded[i] += gone - took;
            rest = left * toy->beta_milli / 1000;
            toy->applied[i] += took;
            toy->discarded[i] += left - rest;
        } else if (dp_broken(22)) {
            /* beta applies to the part that was never sent. */
            rest = rest * toy->beta_milli / 1000;
            toy->discarded[i] += toy->a[i] - rest;
        }
        if (dp_broken(20)) {
            toy->e[i] += rest;
        } else {
            toy->discarded[i] += toy->e[i];
            toy->e[i] = rest;
        }
    }
    if (settle == DP_SETTLE_LEFT_OUT) {
        toy->carried += toy->pending_tokens;
        toy->in_e = toy->in_a;
    } else {
        toy->in_e.n = 0;
    }
    toy->in_a.n = 0;
    forget_pending(toy);
}

static void shrink(dp_toy *toy, dp_toy_vector vector, uint32_t lambda_q16)
{
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        const int64_t kept = (int64_t)((__int128)vector[i] * lambda_q16 / 65536);
        toy->discarded[i] += vector[i] - kept;
        vector[i] = kept;
    }
}

static void fade(dp_toy *toy, uint32_t lambda_q16)
{
    if (lambda_q16 < 65536) {
        shrink(toy, toy->e, lambda_q16);
        shrink(toy, toy->frozen, lambda_q16);
        shrink(toy, toy->open, lambda_q16);
    }
    if (lambda_q16 == 0) { /* Work without weight claims no tokens. */
        toy->open_work = (dp_toy_work){0};
        toy->frozen_work = (dp_toy_work){0};
        toy->n_ranges = 0;
        toy->carried = 0;
        toy->in_e.n = 0;
        toy->in_frozen.n = 0;
        toy->in_open.n = 0;
    }
}

static void restore_frozen(dp_toy *toy, const dp_toy_vector values, dp_toy_work work,
                           const dp_toy_samples *samples, uint32_t lambda_q16)
{
    empty(toy, toy->frozen);
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        toy->made[i] += values[i];
        toy->frozen[i] = values[i];
    }
    toy->frozen_work = lambda_q16 > 0 ? work : (dp_toy_work){0};
    toy->in_frozen = *samples;
    toy->in_frozen.n = lambda_q16 > 0 ? samples->n : 0;
    shrink(toy, toy->frozen, lambda_q16);
}

dp_status dp_toy_restore(dp_toy *toy, bool frozen, dp_view vector, dp_view blob,
                         const dp_toy_outcome *outcome, uint32_t lambda_q16)
{
    dp_toy_vector values;
    dp_toy_vector sent = {0};
    dp_toy_work work;
    dp_toy_samples samples;
    unsigned __int128 energy = 0;

    DP_TRY(dp_toy_read_vector(vector, values, &work, &samples));
    if (frozen) {
        restore_frozen(toy, values, work, &samples, lambda_q16);
    } else {
        DP_TRY(dp_toy_decode(blob, sent, &energy));
        empty(toy, toy->a);
        forget_pending(toy);
        for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
            toy->made[i] += values[i];
        }
        memcpy(toy->a, values, sizeof values);
        memcpy(toy->sent, sent, sizeof sent);
        toy->pending = true;
        toy->pending_tokens = work.tokens;
        toy->in_a = samples;
        toy->cuts = outcome->cuts;
        if (outcome->settle != DP_SETTLE_NONE) {
            settle_pending(toy, outcome);
            shrink(toy, toy->e, lambda_q16);
            toy->carried = lambda_q16 > 0 ? toy->carried : 0;
            toy->in_e.n = lambda_q16 > 0 ? toy->in_e.n : 0;
        }
    }
    place_x(toy);
    return DP_OK;
}

void dp_toy_apply(dp_toy *toy, uint64_t round, const dp_toy_model *model,
                  const dp_toy_outcome *outcome, uint32_t lambda_q16)
{
    if (outcome->settle != DP_SETTLE_NONE) {
        settle_pending(toy, outcome);
    }
    fade(toy, lambda_q16);
    toy->model = *model;
    toy->round = round;
    if (dp_broken(28)) {
        memcpy(toy->x, model->theta, sizeof toy->x); /* Work that is not applied vanishes from x. */
    } else {
        place_x(toy);
    }
}

void dp_toy_freeze(dp_toy *toy, uint64_t nonce, dp_toy_parcel *parcel)
{
    dp_toy_vector sent;

    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        toy->frozen[i] += toy->open[i];
        if (dp_broken(30)) {
            toy->frozen[i] += toy->a[i]; /* Published work is also exchanged in a pair. */
        }
        toy->open[i] = 0;
    }
    toy->frozen_work.steps += toy->open_work.steps;
    toy->frozen_work.tokens += toy->open_work.tokens;
    toy->open_work = (dp_toy_work){0};
    move_samples(&toy->in_frozen, &toy->in_open);
    memset(parcel, 0, sizeof *parcel);
    dp_toy_encode(toy->frozen, DP_TOY_ELEMENTS, nonce, parcel);
    const dp_status decoded =
        dp_toy_decode(dp_view_of(parcel->blob, parcel->blob_size), sent, &parcel->energy);
    dp_assert(decoded == DP_OK);
    parcel->work = toy->frozen_work;
    parcel->reach = toy->reach;
    dp_toy_write_vector(toy->frozen, toy->frozen_work, &toy->in_frozen, parcel->vector);
}

dp_status dp_toy_mix(dp_toy *toy, const dp_view blobs[2], const uint64_t weights[2],
                     uint32_t lambda_q16, dp_toy_vector change)
{
    const __int128 all = (__int128)weights[0] + weights[1];
    dp_toy_vector mine;
    dp_toy_vector theirs;
    unsigned __int128 energy = 0;

    if (all == 0) {
        return DP_BADARG;
    }
    DP_TRY(dp_toy_decode(blobs[0], mine, &energy));
    DP_TRY(dp_toy_decode(blobs[1], theirs, &energy));
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        change[i] = (int64_t)((__int128)(theirs[i] - mine[i]) * weights[1] / all);
        const int64_t added = (int64_t)((__int128)change[i] * lambda_q16 / 65536);
        /* M32: adds the mean of the sent vectors, not the difference. */
        toy->frozen[i] = (dp_broken(32) ? mine[i] : toy->frozen[i]) + added;
        toy->made[i] += added;
    }
    if (dp_broken(31)) {
        toy->frozen_work.steps =
            (uint32_t)(all / 2 / DP_TOY_TOKENS_PER_STEP / DP_TOY_TOKENS_PER_STEP);
        toy->frozen_work.tokens = (uint64_t)toy->frozen_work.steps * DP_TOY_TOKENS_PER_STEP;
    }
    place_x(toy);
    return DP_OK;
}

bool dp_toy_balanced(const dp_toy *toy)
{
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        if (toy->made[i] != toy->open[i] + toy->frozen[i] + toy->a[i] + toy->e[i] +
                                toy->applied[i] + toy->discarded[i]) {
            return false;
        }
        if (toy->has_theta &&
            toy->x[i] != toy->model.theta[i] - toy->open[i] - toy->frozen[i] - toy->a_moved[i]) {
            return false;
        }
    }
    return true;
}

dp_status dp_toy_outer(dp_toy_model *model, uint32_t alpha_q16, const dp_toy_term *terms,
                       uint32_t count)
{
    __int128 sum[DP_TOY_ELEMENTS] = {0};

    for (uint32_t n = 0; n < count; n++) {
        dp_toy_vector value;
        unsigned __int128 energy = 0;
        DP_TRY(dp_toy_decode(terms[n].blob, value, &energy));
        for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
            sum[i] += (__int128)value[i] * terms[n].q;
        }
    }
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        const int64_t mean = (int64_t)(sum[i] / ((__int128)1 << 31));
        model->m[i] = mean + model->m[i] / 4;
        model->theta[i] -= (int64_t)((__int128)(mean + model->m[i] / 4) * alpha_q16 / 65536);
    }
    return DP_OK;
}
