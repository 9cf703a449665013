#include "bench/quality_run.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "bench/clock.h"
#include "bench/quality_parts.h"
#include "compute/codec/codec.h"
#include "compute/trainer/trainer.h"
#include "gossip/ledger/density.h"
#include "gossip/ledger/weights.h"
#include "gossip/round/deadline.h"

enum { ONE_Q16 = 65536, LATE_ROUNDS = 4 };

typedef struct worker {
    dp_trainer *trainer;
    uint8_t member[32];
    dp_buf blob;    /* published last, or frozen last */
    const float *a; /* of this round's publication, until the trainer is called again */
    uint32_t steps; /* in a round */
    uint64_t seen;  /* steps done or dropped so far */
    /* Of the publication under way. */
    dp_weight_in claim;
    uint64_t carried;
    bool counted;
    bool rejected;   /* by a hook */
    uint32_t age;    /* 1: it was too late for the round before, and waits for this one */
    uint32_t missed; /* consecutive rounds without it */
    /* As in the ledger. */
    uint64_t included; /* round; 0: never */
    uint64_t w;
    uint64_t bytes; /* sent */
    double formula; /* the same, by the formula */
} worker;

typedef struct run {
    const quality_scale *scale;
    const quality_plan *plan;
    quality_result *result;
    worker workers[QUALITY_WORKERS];
    uint32_t n;
    dp_rng rng;
    uint64_t round; /* decided */
    uint64_t tokens;
    uint32_t alpha; /* Q16 */
    dp_density density;
    const quality_text *text;
    quality_shards shards;
    dp_buf combined; /* of a hook or of owners: the vector that replaces the weighted sum */
    float *left;     /* of owners: the residual of their sums; NULL: none */
    uint64_t sums_bytes;
} run;

static uint32_t rows_of(const quality_scale *scale, const quality_plan *plan)
{
    return plan->kind == QUALITY_AS_ONE ? scale->rows * quality_nodes(plan) : scale->rows;
}

static dp_status manifest_of(const quality_scale *scale, const quality_plan *plan, dp_view shard,
                             uint64_t tokens, uint64_t seed, uint8_t out[DP_MANIFEST_BYTES_MAX],
                             size_t *size)
{
    dp_manifest m;
    dp_manifest_default(&m);
    m.layers = scale->layers;
    m.width = scale->width;
    m.heads = scale->heads;
    m.context = scale->context;
    m.vocab = QUALITY_VOCAB;
    m.model_seed = seed;
    m.batch_rows = rows_of(scale, plan);
    m.lr_nano = scale->lr_nano;
    if (scale->optimizer != 0) {
        m.optimizer = scale->optimizer;
    }
    /* The tokens that the schedule sees: all committed tokens, in gossip the worker's own. */
    const bool own = plan->kind == QUALITY_GOSSIP && plan->every == 0;
    const uint64_t seen_by = own ? 1 : plan->workers;
    const uint64_t a_step = seen_by * m.batch_rows * scale->context;
    m.total_tokens = scale->steps * a_step;
    m.warmup_tokens = scale->warmup * a_step;
    m.inner_steps_max = scale->inner;
    m.n_shards = 1;
    m.shards[0] = (dp_manifest_shard){
        .root = dp_object_hash(shard, NULL), .bytes = shard.size, .tokens = tokens};
    m.codec = plan->codec;
    if (plan->keep > 0) {
        m.codec_keep = plan->keep;
    }
    m.codec_keep_most = plan->keep_most;
    m.outer_mu_milli = plan->mu_milli;
    m.long_once = plan->mu_milli > 0 ? DP_ON : DP_OFF;
    m.feedback_beta_milli = plan->beta_milli;
    m.alpha_milli = plan->alpha_milli;
    return dp_manifest_encode(&m, out, size);
}

static dp_status open_worker(run *r, worker *w, uint32_t index, uint64_t seed, dp_why *why)
{
    static const uint32_t shares[] = {1, 2, 4, 1};
    uint8_t manifest[DP_MANIFEST_BYTES_MAX];
    size_t size;
    uint64_t tokens;
    const dp_view shard = quality_shard_of(&r->shards, r->text, index, &tokens);
    DP_TRY(manifest_of(r->scale, r->plan, shard, tokens, seed, manifest, &size));
    w->steps = r->scale->inner / (r->plan->unlike ? shares[index % 4] : 1);
    w->member[0] = (uint8_t)(index + 1);
    dp_trainer_setup setup = {.manifest = dp_view_of(manifest, size),
                              .tokenizer = dp_buf_view(&r->text->tokenizer),
                              .shards = &shard,
                              .n_shards = 1,
                              .seed = seed * 100 + index,
                              .threads = 1};
    memcpy(setup.member, w->member, sizeof w->member);
    DP_TRY(dp_trainer_open(&w->trainer, &setup, why));
    dp_buf_init(&w->blob, dp_codec_bytes_max_any(dp_trainer_elements(w->trainer)));
    const dp_view start = r->plan->start;
    return start.size > 0 ? dp_trainer_load(w->trainer, 0, start) : dp_trainer_init(w->trainer);
}

static dp_status open_run(run *r, uint64_t seed, dp_why *why)
{
    DP_TRY(quality_shards_open(&r->shards, r->text, r->plan->split, r->plan->workers, why));
    r->density = (dp_density){.densest = r->plan->keep,
                              .sparsest = r->plan->keep_most,
                              .keep = r->plan->keep,
                              .before = r->plan->keep};
    for (uint32_t i = 0; i < r->plan->workers; i++) {
        r->n = i + 1;
        DP_TRY(open_worker(r, &r->workers[i], i, seed, why));
    }
    r->result->parameters = (double)dp_trainer_elements(r->workers[0].trainer);
    r->alpha = (uint32_t)((uint64_t)r->plan->alpha_milli * ONE_Q16 / 1000);
    dp_rng_init(&r->rng, seed);
    return DP_OK;
}

static void close_run(run *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        dp_trainer_close(r->workers[i].trainer);
        dp_buf_close(&r->workers[i].blob);
    }
    quality_shards_close(&r->shards);
    dp_buf_close(&r->combined);
    dp_free(r->left);
}

static dp_status train(run *r, worker *w, uint32_t steps)
{
    dp_trainer_aim(w->trainer, r->round + 1, r->tokens);
    w->seen += steps;
    while (dp_trainer_last_of(w->trainer).step < w->seen) {
        DP_TRY(dp_trainer_work(w->trainer));
    }
    return DP_OK;
}

static dp_status keep_blob(worker *w, dp_view blob)
{
    dp_buf_clear(&w->blob);
    return dp_buf_append(&w->blob, blob);
}

/* Rounds of work that may be in the next publication, as dp_ledger_rounds counts them. */
static uint32_t rounds_of(const run *r, const worker *w)
{
    const uint64_t since = r->round + 1 - w->included;
    return since < 4 ? (uint32_t)since : 4;
}

static dp_status publish(run *r, worker *w, bool dense)
{
    const dp_trainer_progress done = dp_trainer_progress_of(w->trainer);
    dp_view blob;
    dp_view a;
    const uint32_t keep = dp_density_moves(&r->density) ? r->density.keep : 0;
    DP_TRY(dp_trainer_publish_start(w->trainer, dense, keep));
    DP_TRY(dp_trainer_publish_take(w->trainer, &blob, &a));
    DP_TRY(keep_blob(w, blob));
    w->a = (const float *)(const void *)a.data; /* little-endian floats, as the machine's */
    w->claim =
        (dp_weight_in){.tokens = done.tokens, .steps = done.steps, .rounds = rounds_of(r, w)};
    DP_TRY(dp_codec_energy(blob, dp_trainer_elements(w->trainer), &w->claim.energy));
    w->carried = done.carried;
    /* H = 1 sends after every step; the size of a blob does not depend on the number of its steps.
     * A single worker sends nothing. */
    const uint64_t times = r->plan->kind == QUALITY_AS_ONE ? r->scale->inner : r->n > 1;
    w->bytes += blob.size * times;
    quality_plan sent = *r->plan; /* After a lost publication it accumulates more rounds. */
    dp_codec codec;
    uint64_t elements;
    DP_TRY(dp_codec_peek(blob, &codec, &elements));
    sent.codec = codec.kind;
    sent.keep = codec.keep;
    w->formula += (double)times * quality_bytes_of(&sent, r->result->parameters);
    return DP_OK;
}

/* Whether this round waits for a worker that is always late: the third round without it does, then
 * ever fewer (gossip/round/deadline.h). */
static bool is_in_time(run *r, const worker *w)
{
    if (r->plan->slow_late && w->steps < r->scale->inner) {
        return dp_deadline_is_owed(w->missed, r->round + 1);
    }
    return dp_rng_below(&r->rng, 100) >= r->plan->drop_percent;
}

/* Draws the workers that are counted; at least one is. A publication that has waited since the
 * round before is always counted. */
static void draw_counted(run *r)
{
    uint32_t n = 0;
    while (n == 0) {
        for (uint32_t i = 0; i < r->n; i++) {
            worker *const w = &r->workers[i];
            w->counted = w->age > 0 || is_in_time(r, w);
            n += w->counted;
        }
    }
    for (uint32_t i = 0; i < r->n; i++) {
        r->workers[i].missed = r->workers[i].counted ? 0 : r->workers[i].missed + 1;
    }
}

typedef struct decision {
    dp_weight_out rows[QUALITY_WORKERS];
    uint32_t q[QUALITY_WORKERS];
    dp_view blobs[QUALITY_WORKERS];
    uint32_t n;
    dp_view sum; /* replaces all; empty: none */
} decision;

/* The numbers of the record, as gossip/ledger/valid.c fills them in. */
static void decide(run *r, decision *d)
{
    dp_weight_in in[QUALITY_WORKERS];
    unsigned __int128 late = 0;
    *d = (decision){.n = 0};
    for (uint32_t i = 0; i < r->n; i++) {
        const worker *const w = &r->workers[i];
        if (w->counted) {
            in[d->n] = w->claim;
            in[d->n].age = w->age;
            d->blobs[d->n++] = dp_buf_view(&w->blob);
        } else if (w->included > 0 && w->included + LATE_ROUNDS >= r->round + 1) {
            late += w->w;
        }
    }
    if (d->n > 0) {
        dp_weights(in, d->n, late, d->rows);
    }
    for (uint32_t i = 0; i < d->n; i++) {
        d->q[i] = d->rows[i].q;
    }
}

/* The part of the record that all workers apply; each adds its own fields. */
static dp_trainer_record record_of(const run *r, const decision *d, const quality_parts *parts)
{
    dp_trainer_record record = {.round = r->round,
                                .tokens = r->tokens,
                                .alpha = r->alpha,
                                .lambda = ONE_Q16,
                                .contributors = d->n,
                                .q = d->q,
                                .blobs = d->blobs,
                                .n_items = d->n};
    static const uint32_t whole = (uint32_t)1 << 31;
    if (d->sum.size > 0) {
        record.q = &whole;
        record.blobs = &d->sum;
        record.n_items = 1;
    }
    if (r->plan->parts) {
        record.cuts = parts->cuts;
        record.taken = dp_part_all(parts->cuts.n);
        record.q = parts->q;
        record.blobs = parts->views;
        record.ranges = parts->ranges;
        record.n_items = parts->cuts.n;
    }
    return record;
}

/* A hook's sum as one update with all elements, so its share is 1. */
static dp_status combine(run *r, decision *d)
{
    const quality_hooks *const hooks = r->plan->hooks;
    const size_t n = dp_trainer_elements(r->workers[0].trainer);
    float *const g = dp_alloc(n, sizeof *g);
    if (g == NULL) {
        return DP_NOMEM;
    }
    dp_status status = hooks->combine(hooks->context, d->blobs, d->q, d->n, g);
    const dp_codec codec = dp_codec_default(DP_CODEC_FP32);
    dp_buf_close(&r->combined);
    dp_buf_init(&r->combined, dp_codec_bytes_max_any(n));
    if (status == DP_OK) {
        status = dp_codec_encode(&codec, g, n, &r->combined);
    }
    dp_free(g);
    d->sum = dp_buf_view(&r->combined);
    return status;
}

/* g += q decode(blob), for each; d: room for a decoded one. */
static dp_status add_all(const decision *d, size_t n, float *room, float *g)
{
    for (uint32_t k = 0; k < d->n; k++) {
        DP_TRY(dp_codec_decode(d->blobs[k], room, n));
        for (size_t i = 0; i < n; i++) {
            g[i] += (float)(d->q[k] * 0x1p-31 * (double)room[i]);
        }
    }
    return DP_OK;
}

/* The sums of all owners as one update: parts end at codec runs, so the result is the same. */
static dp_status sum_up_parts(run *r, decision *d)
{
    const size_t n = dp_trainer_elements(r->workers[0].trainer);
    dp_codec codec = dp_codec_default(DP_CODEC_SPARSE);
    float *const room = dp_alloc(n, sizeof *room);
    codec.keep = r->plan->sums_keep;
    if (r->left == NULL) {
        r->left = dp_alloc(n, sizeof *r->left);
    }
    dp_buf_close(&r->combined);
    dp_buf_init(&r->combined, dp_codec_bytes_max(&codec, n));
    dp_status status = room != NULL && r->left != NULL ? DP_OK : DP_NOMEM;
    if (status == DP_OK) {
        status = add_all(d, n, room, r->left);
    }
    if (status == DP_OK) {
        status = dp_codec_encode(&codec, r->left, n, &r->combined);
    }
    d->sum = dp_buf_view(&r->combined);
    if (status == DP_OK) {
        status = dp_codec_decode(d->sum, room, n);
    }
    for (size_t i = 0; i < n && status == DP_OK; i++) {
        r->left[i] = (float)r->plan->beta_milli / 1000.0F * (r->left[i] - room[i]);
    }
    r->sums_bytes += d->sum.size;
    dp_free(room);
    return status;
}

static dp_status settle(run *r, const decision *d, const quality_parts *parts)
{
    r->round++;
    uint32_t at = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        worker *const w = &r->workers[i];
        if (w->counted) {
            r->tokens += w->claim.tokens + w->carried;
        }
    }
    for (uint32_t i = 0; i < r->n; i++) {
        worker *const w = &r->workers[i];
        dp_trainer_record record = record_of(r, d, parts);
        record.settle = DP_SETTLE_LEFT_OUT;
        if (w->counted) {
            record.settle = DP_SETTLE_INCLUDED;
            record.clip = d->rows[at].clip;
            w->w = d->rows[at++].w;
            w->included = r->round - w->age;
            w->age = 0;
        } else if (r->plan->stale && !w->rejected) {
            record.settle = DP_SETTLE_NONE; /* It waits for the next round. */
            w->age = 1;
        } else {
            w->age = 0;
        }
        DP_TRY(dp_trainer_apply(w->trainer, &record));
    }
    return DP_OK;
}

/* Checks the property on which the whole design rests: all workers have the same bytes. */
static dp_status compare(run *r)
{
    dp_hash first;
    for (uint32_t i = 0; i < r->n; i++) {
        dp_view state;
        dp_hash root;
        DP_TRY(dp_trainer_state_bytes(r->workers[i].trainer, &state, &root));
        if (i > 0 && !dp_hash_equal(&root, &first)) {
            return DP_DIVERGED;
        }
        first = root;
    }
    return DP_OK;
}

/* On the texts that the workers read, each weighted by the number of its workers. */
static dp_status loss_of(run *r, double *loss)
{
    const double rotated = (double)r->shards.rotated_workers / r->n;
    const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    *loss = 0;
    for (int i = 0; i < 2; i++) {
        const double share = i == 0 ? 1 - rotated : rotated;
        dp_trainer_score score;
        if (share > 0) {
            DP_TRY(dp_trainer_eval(r->workers[0].trainer, &r->shards.held[i], r->scale->eval_tokens,
                                   &score));
            *loss += share * score.loss;
        }
    }
    r->result->eval_s += bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    return DP_OK;
}

static dp_status look(run *r)
{
    quality_result *const out = r->result;
    double loss;
    DP_TRY(loss_of(r, &loss));
    out->loss = loss;
    dp_assert(out->n_points < QUALITY_POINTS_MAX);
    out->points[out->n_points++] =
        (quality_point){.tokens = (double)r->tokens,
                        .bytes = (double)r->workers[0].bytes / out->parameters,
                        .loss = loss};
    return DP_OK;
}

/* The pieces for other owners and the worker's own result have together the size of one blob, plus
 * a header for each. */
static dp_status make_parts(run *r, const decision *d, quality_parts *parts)
{
    const dp_trainer *const any = r->workers[0].trainer;
    const dp_codec codec = dp_codec_of_run(dp_trainer_manifest(any));
    parts->sums = r->plan->sums;
    DP_TRY(quality_parts_make(parts, &codec, dp_trainer_elements(any), d->blobs, d->q, d->n));
    for (uint32_t i = 0; i < r->n; i++) {
        r->workers[i].bytes += (uint64_t)(parts->cuts.n - 1) * DP_CODEC_HEADER_BYTES;
    }
    return DP_OK;
}

/* Passes the publications to a hook, which may change and reject them. */
static dp_status show(run *r)
{
    const quality_hooks *const hooks = r->plan->hooks;
    quality_seat seats[QUALITY_WORKERS];
    for (uint32_t i = 0; i < r->n; i++) {
        worker *const w = &r->workers[i];
        seats[i] = (quality_seat){.trainer = w->trainer,
                                  .a = w->age == 0 ? w->a : NULL,
                                  .blob = &w->blob,
                                  .claim = &w->claim,
                                  .counted = w->counted};
    }
    DP_TRY(hooks->publications(hooks->context, r->round + 1, seats, r->n));
    for (uint32_t i = 0; i < r->n; i++) {
        worker *const w = &r->workers[i];
        w->rejected = seats[i].rejected;
        w->counted = w->counted && !w->rejected;
        DP_TRY(dp_codec_energy(dp_buf_view(&w->blob), dp_trainer_elements(w->trainer),
                               &w->claim.energy));
    }
    return DP_OK;
}

/* After the local steps: publications, perhaps steps that overlap, the record, its application. */
static dp_status close_round(run *r, bool dense, uint32_t overlap)
{
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->workers[i].age == 0) {
            DP_TRY(publish(r, &r->workers[i], dense));
        }
    }
    for (uint32_t i = 0; i < r->n; i++) {
        DP_TRY(train(r, &r->workers[i], overlap));
    }
    draw_counted(r);
    if (r->plan->hooks != NULL) {
        DP_TRY(show(r));
    }
    decision d;
    decide(r, &d);
    if (r->plan->hooks != NULL && r->plan->hooks->combine != NULL && d.n > 0) {
        DP_TRY(combine(r, &d));
    } else if (r->plan->sums_keep > 0 && !dense && d.n > 0) {
        DP_TRY(sum_up_parts(r, &d));
    }
    quality_parts parts = {0};
    dp_status status = r->plan->parts ? make_parts(r, &d, &parts) : DP_OK;
    if (status == DP_OK) {
        status = settle(r, &d, &parts);
    }
    quality_parts_close(&parts);
    DP_TRY(status);
    return compare(r);
}

/* The number of points of a curve, which does not depend on the number of rounds. */
static bool is_point(const run *r, uint32_t round, uint32_t rounds)
{
    const uint32_t every = rounds > r->scale->points ? rounds / r->scale->points : 1;
    return round % every == 0 || round == rounds;
}

/* The uplink statistics that a proposer would report in this round of so many. */
static dp_lines lines_in(uint32_t round, uint32_t rounds)
{
    return round > rounds / 4 && round <= rounds - rounds / 4 ? DP_LINES_SLOW : DP_LINES_FREE;
}

/* Both sides of one exchange, with weights by tokens. */
static dp_status exchange(run *r, worker *a, worker *b)
{
    worker *const pair[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        dp_view blob;
        dp_view f;
        DP_TRY(dp_trainer_freeze(pair[i]->trainer, &blob, &f));
        DP_TRY(keep_blob(pair[i], blob));
        pair[i]->bytes += blob.size;
        pair[i]->formula += quality_bytes_of(r->plan, r->result->parameters);
    }
    for (int i = 0; i < 2; i++) {
        worker *const own = pair[i];
        worker *const other = pair[1 - i];
        const uint64_t weights[2] = {dp_trainer_progress_of(own->trainer).tokens,
                                     dp_trainer_progress_of(other->trainer).tokens};
        const dp_view blobs[2] = {dp_buf_view(&own->blob), dp_buf_view(&other->blob)};
        double moved;
        DP_TRY(dp_trainer_mix(own->trainer, weights, blobs, ONE_Q16, &moved));
    }
    return DP_OK;
}

static dp_status exchange_all(run *r)
{
    uint32_t order[QUALITY_WORKERS];
    for (uint32_t i = 0; i < r->n; i++) {
        const uint32_t j = (uint32_t)dp_rng_below(&r->rng, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (uint32_t i = 0; i + 1 < r->n; i += 2) {
        DP_TRY(exchange(r, &r->workers[order[i]], &r->workers[order[i + 1]]));
    }
    return DP_OK;
}

/* The losses around the time in which some plans have no rounds. */
static dp_status look_around(run *r, uint32_t round, uint32_t rounds)
{
    const uint32_t middle = rounds / 2;
    double *const at = round == middle                                  ? &r->result->before
                       : round == middle + QUALITY_AWAY                 ? &r->result->back
                       : round == middle + QUALITY_AWAY + QUALITY_AFTER ? &r->result->after
                                                                        : NULL;
    return at != NULL ? loss_of(r, at) : DP_OK;
}

static dp_status run_rounds(run *r)
{
    const uint32_t rounds = r->scale->steps / r->scale->inner;
    const uint32_t middle = rounds / 2;
    uint32_t ahead = 0; /* steps of this round that were done while the last one was decided */
    for (uint32_t i = 1; i <= rounds; i++) {
        const bool away = r->plan->away && i > middle && i < middle + QUALITY_AWAY;
        const bool back = r->plan->away && i == middle + QUALITY_AWAY;
        const uint32_t overlap = i < rounds ? r->plan->overlap : 0;
        for (uint32_t k = 0; k < r->n; k++) {
            DP_TRY(train(r, &r->workers[k], r->workers[k].steps - ahead));
        }
        if (away) {
            DP_TRY(exchange_all(r));
            continue;
        }
        DP_TRY(close_round(r, back, overlap));
        DP_TRY(look_around(r, i, rounds));
        dp_density_next(&r->density, lines_in(i, rounds));
        ahead = overlap;
        if (is_point(r, i, rounds)) {
            DP_TRY(look(r));
        }
    }
    return DP_OK;
}

static dp_status run_gossip(run *r)
{
    const uint32_t rounds = r->scale->steps / r->scale->inner;
    for (uint32_t i = 0; i < rounds; i++) {
        for (uint32_t k = 0; k < r->n; k++) {
            DP_TRY(train(r, &r->workers[k], r->workers[k].steps));
        }
        const uint32_t every = r->plan->every > 0 ? r->plan->every : rounds;
        if (i + 1 < rounds && (i + 1) % every != 0) {
            DP_TRY(exchange_all(r));
        } else {
            DP_TRY(close_round(r, true, 0));
            if (is_point(r, i + 1, rounds)) {
                DP_TRY(look(r));
            }
        }
    }
    return DP_OK;
}

static void sum_up(run *r)
{
    quality_result *const out = r->result;
    const double steps = r->scale->steps;
    out->tokens = (double)r->tokens;
    out->rounds = (double)r->round;
    out->bytes = (double)r->workers[0].bytes / out->parameters / steps;
    const double others = quality_nodes(r->plan) - 1.0;
    const double sums = (double)r->sums_bytes / out->parameters / steps;
    out->sent = r->plan->parts           ? 2 * out->bytes * others / r->n
                : r->plan->sums_keep > 0 ? (out->bytes + sums) * others / r->n
                                         : out->bytes * others;
    out->bytes_formula = r->workers[0].formula / out->parameters / steps;
}

static dp_status keep_end(run *r)
{
    dp_view state;
    dp_hash root;
    if (r->plan->end == NULL) {
        return DP_OK;
    }
    DP_TRY(dp_trainer_state_bytes(r->workers[0].trainer, &state, &root));
    return dp_buf_append(r->plan->end, state);
}

void quality_run(const quality_scale *scale, const quality_plan *plan, const quality_text *text,
                 uint64_t seed, quality_result *result)
{
    *result = (quality_result){.status = DP_OK};
    dp_assert(plan->workers <= QUALITY_WORKERS && plan->overlap < scale->inner);
    dp_assert(!plan->parts || (plan->keep == 0 && plan->kind == QUALITY_ROUNDS));
    dp_assert(plan->hooks == NULL || (!plan->parts && plan->overlap == 0));
    run r = {.scale = scale, .plan = plan, .result = result, .text = text};
    dp_why why = {{0}};
    const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    dp_status status = open_run(&r, seed, &why);
    if (status == DP_OK) {
        status = plan->kind == QUALITY_GOSSIP ? run_gossip(&r) : run_rounds(&r);
    }
    if (status == DP_OK) {
        sum_up(&r);
        status = keep_end(&r);
    }
    close_run(&r);
    result->status = status;
    result->cpu_s = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    snprintf(result->problem, sizeof result->problem, "%.120s",
             why.text[0] != '\0' ? why.text : dp_status_text(status));
}
