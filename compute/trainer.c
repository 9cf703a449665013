#include "compute/trainer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutation.h"
#include "compute/codec.h"
#include "compute/consensus.h"
#include "compute/feedback.h"
#include "compute/memory.h"
#include "compute/plan.h"
#include "compute/state.h"
#include "compute/trainer_inside.h"

static dp_status open_engine(dp_trainer *t, const dp_trainer_setup *setup, dp_why *why)
{
    const dp_manifest *const m = &t->manifest;
    const dp_model_config config = dp_manifest_model(m);
    DP_TRY(dp_model_open(&t->model, &config, why));
    DP_TRY(dp_pool_open(&t->pool, setup->threads));
    const uint64_t usable = dp_memory_usable();
    const dp_plan_request request = {.manifest = m,
                                     .threads = dp_pool_threads(t->pool),
                                     .budget = usable != 0 ? usable : UINT64_MAX,
                                     .rows = setup->alone ? setup->rows : 0,
                                     .alone = setup->alone};
    dp_plan plan;
    DP_TRY(dp_plan_make(&plan, &request, why));
    const dp_gpt_options options = {.rows_max = plan.rows,
                                    .pool = t->pool,
                                    .precision = dp_precision_of_kind(m->precision),
                                    .recompute = plan.recompute};
    t->rows_max = plan.rows;
    t->rows_next = setup->alone ? plan.rows : 1;
    DP_TRY(dp_gpt_open(&t->gpt, &t->model, &options));
    const dp_optim_setup optim = {
        .model = &t->model, .kind = m->optimizer, .weights = m->weights, .seed = t->seed};
    DP_TRY(dp_optim_init(&t->optim, &optim));
    t->schedule = dp_schedule_of(m);
    DP_TRY(dp_schedule_check(&t->schedule, why));
    t->n = t->model.n_elements;
    t->x = dp_gpt_params(t->gpt);
    return t->n > DP_CODEC_ELEMENTS_MAX ? DP_TOOBIG : DP_OK;
}

static dp_status open_vectors(dp_trainer *t)
{
    float **const vectors[] = {&t->theta, &t->e, &t->frozen, &t->a, &t->published};
    if (t->alone) {
        t->theta = t->x;
    }
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0] && !t->alone; i++) {
        *vectors[i] = dp_alloc(t->n, sizeof(float));
        if (*vectors[i] == NULL) {
            return DP_NOMEM;
        }
    }
    const size_t tokens = (size_t)t->rows_max * t->manifest.context;
    t->inputs = dp_alloc(tokens, sizeof *t->inputs);
    t->targets = dp_alloc(tokens, sizeof *t->targets);
    if (t->inputs == NULL || t->targets == NULL) {
        return DP_NOMEM;
    }
    const dp_loader_setup batches = {.data = &t->data,
                                     .seed = t->manifest.model_seed,
                                     .member = t->member,
                                     .life = t->seed,
                                     .length = t->manifest.context,
                                     .batch_rows = t->manifest.batch_rows,
                                     .rows_max = t->rows_max,
                                     .passes = t->alone};
    DP_TRY(dp_loader_open(&t->loader, &batches));
    const uint64_t blob_bytes = dp_codec_bytes_max(DP_CODEC_FP32, t->n);
    dp_buf_init(&t->pending_blob, blob_bytes);
    dp_buf_init(&t->frozen_blob, blob_bytes);
    dp_buf_init(&t->bytes, dp_state_bytes(t->n));
    return DP_OK;
}

static dp_status open_shards(dp_trainer *t, const dp_trainer_setup *setup, dp_why *why)
{
    const dp_manifest *const m = &t->manifest;
    if (!dp_shard_table_is(setup->data)) {
        return dp_data_open(&t->data, setup->data, m->vocab, m->val_per_mille, why);
    }
    DP_TRY(dp_data_open_table(&t->data, setup->data, m->vocab, m->val_per_mille, why));
    if (setup->n_shards != t->data.n_parts) {
        return dp_why_set(why, DP_BADARG, "the data has %u shards, %zu of them are here",
                          t->data.n_parts, setup->n_shards);
    }
    for (uint32_t i = 0; i < t->data.n_parts; i++) {
        DP_TRY(dp_data_attach(&t->data, i, setup->shards[i], why));
    }
    return DP_OK;
}

static dp_status open_data(dp_trainer *t, const dp_trainer_setup *setup, dp_why *why)
{
    DP_TRY(open_shards(t, setup, why));
    if (t->data.vocab > dp_bpe_count(t->bpe)) {
        return dp_why_set(why, DP_BADARG,
                          "the data was made for a vocabulary of %u tokens, the tokenizer has %zu",
                          t->data.vocab, dp_bpe_count(t->bpe));
    }
    if (dp_data_windows(&t->data, t->manifest.context) == 0) {
        return dp_why_set(why, DP_BADARG,
                          "the data has %llu training tokens; one sequence needs %u, in one shard",
                          (unsigned long long)t->data.n_train, t->manifest.context + 1);
    }
    return DP_OK;
}

static dp_status open_all(dp_trainer *t, const dp_trainer_setup *setup, dp_why *why)
{
    const dp_status status = dp_manifest_decode(&t->manifest, setup->manifest);
    if (status != DP_OK) {
        return dp_why_set(why, status, "the manifest does not parse");
    }
    memcpy(t->member, setup->member, sizeof t->member);
    t->seed = setup->seed;
    t->alone = setup->alone;
    DP_TRY(dp_bpe_load(&t->bpe, setup->tokenizer, why));
    if (dp_bpe_count(t->bpe) > t->manifest.vocab) {
        return dp_why_set(why, DP_BADARG, "the tokenizer has %zu tokens, the model only %u",
                          dp_bpe_count(t->bpe), t->manifest.vocab);
    }
    DP_TRY(open_data(t, setup, why));
    DP_TRY(open_engine(t, setup, why));
    return open_vectors(t);
}

dp_status dp_trainer_open(dp_trainer **out, const dp_trainer_setup *setup, dp_why *why)
{
    dp_trainer *const t = dp_alloc(1, sizeof *t);
    if (t == NULL) {
        return DP_NOMEM;
    }
    const dp_status status = open_all(t, setup, why);
    if (status != DP_OK) {
        dp_trainer_close(t);
        return status;
    }
    *out = t;
    return DP_OK;
}

void dp_trainer_close(dp_trainer *t)
{
    if (t == NULL) {
        return;
    }
    dp_loader_close(t->loader);
    dp_buf_close(&t->bytes);
    dp_buf_close(&t->frozen_blob);
    dp_buf_close(&t->pending_blob);
    dp_free(t->targets);
    dp_free(t->inputs);
    dp_free(t->published);
    dp_free(t->a);
    dp_free(t->frozen);
    dp_free(t->e);
    dp_free(t->alone ? NULL : t->theta);
    dp_optim_close(&t->optim);
    dp_gpt_close(t->gpt);
    dp_pool_close(t->pool);
    dp_model_close(&t->model);
    dp_data_close(&t->data);
    dp_bpe_close(t->bpe);
    dp_free(t);
}

size_t dp_trainer_elements(const dp_trainer *t)
{
    return t->n;
}

const dp_manifest *dp_trainer_manifest(const dp_trainer *t)
{
    return &t->manifest;
}

uint64_t dp_trainer_round(const dp_trainer *t)
{
    return t->state_round;
}

const float *dp_trainer_theta(const dp_trainer *t)
{
    return t->theta;
}

const float *dp_trainer_params(const dp_trainer *t)
{
    return t->x;
}

const float *dp_trainer_feedback(const dp_trainer *t)
{
    return t->e;
}

const float *dp_trainer_frozen(const dp_trainer *t)
{
    return t->frozen;
}

/* Start over from theta: every drawer is empty. */
static void start_at(dp_trainer *t, uint64_t round)
{
    const size_t size = t->n * sizeof(float);
    if (!t->alone) {
        memcpy(t->x, t->theta, size);
        memset(t->e, 0, size);
        memset(t->frozen, 0, size);
    }
    t->pending = false;
    dp_buf_clear(&t->pending_blob);
    dp_optim_reset(&t->optim);
    dp_trainer_drop_step(t);
    t->batch_count = t->alone ? 0 : t->batch_count;
    t->last = (dp_trainer_last){0};
    t->open = (dp_trainer_tally){0};
    t->pending_tally = (dp_trainer_tally){0};
    t->step_count = 0;
    t->losses = (dp_spike){0};
    t->scaler = dp_scaler_start();
    t->contributors = 0;
    t->state_round = round;
    t->aim_round = round;
}

void dp_trainer_init(dp_trainer *t)
{
    dp_model_init(&t->model, t->manifest.model_seed, t->theta);
    t->committed = 0;
    start_at(t, 0);
}

dp_status dp_trainer_load(dp_trainer *t, uint64_t round, dp_view state)
{
    uint64_t held;
    uint64_t elements;
    DP_TRY(dp_state_peek(state, &held, &elements));
    if (held != round) {
        return DP_BADMSG;
    }
    DP_TRY(dp_state_read(state, &held, t->theta, t->n));
    start_at(t, round);
    return DP_OK;
}

dp_status dp_trainer_state(dp_trainer *t, dp_view *state, dp_hash *root)
{
    dp_buf_clear(&t->bytes);
    DP_TRY(dp_state_write(t->state_round, t->theta, t->n, &t->bytes));
    *state = dp_buf_view(&t->bytes);
    *root = dp_object_hash(*state, NULL);
    return DP_OK;
}

/* What x is measured from: x = anchor - F - O. */
static const float *anchor(const dp_trainer *t)
{
    return t->pending ? t->published : t->theta;
}

/* e = beta (a - clip decode(blob)), run by run. blob has been checked. */
static dp_status settle_included(dp_trainer *t, uint32_t clip, const float *a, dp_view blob)
{
    const float beta = (float)t->manifest.feedback_beta_milli / 1000.0F;
    dp_codec_cursor cursor;
    DP_TRY(dp_codec_open(&cursor, blob, t->n));
    size_t at = 0;
    dp_codec_run run;
    while (cursor.left > 0) {
        DP_TRY(dp_codec_next(&cursor, &run));
        float d[DP_CODEC_RUN];
        dp_codec_expand(&run, d);
        dp_feedback_included(t->e + at, a + at, d, clip, beta, run.length);
        at += run.length;
    }
    return DP_OK;
}

static dp_status keep_pending(dp_trainer *t, dp_view a, dp_view blob)
{
    DP_TRY(dp_codec_check(blob, t->n));
    dp_buf_clear(&t->pending_blob);
    DP_TRY(dp_buf_append(&t->pending_blob, blob));
    DP_TRY(dp_floats_read(a, t->a, t->n));
    /* What was published is in a alone; what is open or frozen now is measured from theta, as before. */
    memcpy(t->published, t->theta, t->n * sizeof *t->published);
    t->pending = true;
    t->pending_tally = (dp_trainer_tally){0};
    return DP_OK;
}

static dp_status restore_frozen(dp_trainer *t, dp_view f, uint32_t lambda)
{
    for (size_t i = 0; i < t->n; i++) {
        t->x[i] += t->frozen[i];
    }
    const dp_status status = dp_floats_read(f, t->frozen, t->n);
    if (status == DP_OK) {
        dp_feedback_scale(t->frozen, lambda, t->n);
    }
    for (size_t i = 0; i < t->n; i++) {
        t->x[i] -= t->frozen[i];
    }
    return status;
}

/* e as the settled publication left it. */
static dp_status restore_residual(dp_trainer *t, const dp_trainer_earlier *earlier)
{
    if (earlier->settle == DP_SETTLE_INCLUDED) {
        DP_TRY(dp_codec_check(earlier->blob, t->n));
        DP_TRY(dp_floats_read(earlier->a, t->a, t->n));
        DP_TRY(settle_included(t, earlier->clip, t->a, earlier->blob));
    } else {
#if DP_MUTATION == 20
        DP_TRY(dp_floats_read(earlier->a, t->a, t->n));
        for (size_t i = 0; i < t->n; i++) {
            t->e[i] += t->a[i];
        }
#else
        DP_TRY(dp_floats_read(earlier->a, t->e, t->n));
#endif
    }
    dp_feedback_scale(t->e, earlier->lambda, t->n);
    return DP_OK;
}

dp_status dp_trainer_restore(dp_trainer *t, const dp_trainer_earlier *earlier)
{
    if (earlier->kind == DP_RESTORE_FROZEN) {
        DP_TRY(restore_frozen(t, earlier->a, earlier->lambda));
        t->open.steps += earlier->steps;
        t->open.restored += earlier->steps;
        t->open.tokens += earlier->tokens;
        return DP_OK;
    }
    if (t->pending) {
        return DP_BUSY;
    }
    return earlier->settle == DP_SETTLE_NONE ? keep_pending(t, earlier->a, earlier->blob)
                                             : restore_residual(t, earlier);
}

void dp_trainer_aim(dp_trainer *t, uint64_t round, uint64_t tokens)
{
    t->aim_round = round;
    t->committed = tokens;
}

static double mean_loss(const dp_trainer_tally *tally)
{
    const uint32_t seen = tally->steps - tally->restored;
    return seen > 0 ? tally->loss_sum / seen : 0;
}

dp_trainer_progress dp_trainer_progress_of(const dp_trainer *t)
{
    return (dp_trainer_progress){.round = t->aim_round,
                                 .steps = t->open.steps,
                                 .skipped = t->open.skipped,
                                 .spikes = t->open.spikes,
                                 .tokens = t->open.tokens,
                                 .carried = t->open.carried,
                                 .loss = mean_loss(&t->open)};
}

static dp_codec_kind dense_codec(const dp_trainer *t)
{
    return t->manifest.codec == DP_CODEC_SPARSE ? DP_CODEC_INT8 : t->manifest.codec;
}

/* Local work that is not finite cannot be published, now or later. */
static void drop_local_work(dp_trainer *t)
{
    memcpy(t->x, anchor(t), t->n * sizeof *t->x);
    memset(t->frozen, 0, t->n * sizeof *t->frozen);
    dp_optim_reset(&t->optim);
    dp_trainer_drop_step(t);
    const uint64_t carried = t->open.carried;
    t->open = (dp_trainer_tally){.carried = carried};
    t->step_count = 0;
    t->losses = (dp_spike){0};
}

dp_status dp_trainer_publish(dp_trainer *t, bool dense, dp_view *blob, dp_view *a)
{
    if (t->pending) {
        return DP_BUSY;
    }
    const dp_codec_kind kind = dense ? dense_codec(t) : t->manifest.codec;
    dp_buf_clear(&t->pending_blob);
    dp_buf_clear(&t->bytes);
    dp_status status = dp_feedback_publish(t->a, t->e, t->theta, t->x, t->n);
    if (status == DP_OK) {
        status = dp_codec_encode(kind, t->a, t->n, &t->pending_blob);
    }
    if (status == DP_DIVERGED) {
        drop_local_work(t);
    }
    DP_TRY(status);
    DP_TRY(dp_floats_write(t->a, t->n, &t->bytes));
    memcpy(t->published, t->x, t->n * sizeof *t->x);
    memset(t->e, 0, t->n * sizeof *t->e);
    memset(t->frozen, 0, t->n * sizeof *t->frozen);
    t->pending = true;
    t->pending_tally = t->open;
    t->open = (dp_trainer_tally){0};
    *blob = dp_buf_view(&t->pending_blob);
    *a = dp_buf_view(&t->bytes);
    return DP_OK;
}

static dp_status settle_pending(dp_trainer *t, const dp_trainer_record *record)
{
    if (record->settle == DP_SETTLE_INCLUDED) {
        DP_TRY(settle_included(t, record->clip, t->a, dp_buf_view(&t->pending_blob)));
    } else {
        memcpy(t->e, t->a, t->n * sizeof *t->e);
#if DP_MUTATION == 22
        dp_feedback_scale(t->e, t->manifest.feedback_beta_milli * 65, t->n);
#endif
        t->open.carried += t->pending_tally.carried + t->pending_tally.tokens;
    }
    t->pending = false;
    t->pending_tally = (dp_trainer_tally){0};
    return DP_OK;
}

dp_status dp_trainer_apply(dp_trainer *t, const dp_trainer_record *record)
{
    const bool settles = record->settle != DP_SETTLE_NONE;
    if (record->n_items > DP_CONSENSUS_ITEMS_MAX || (settles && !t->pending)) {
        return DP_BADARG;
    }
    for (size_t i = 0; i < record->n_items; i++) {
        DP_TRY(dp_codec_check(record->blobs[i], t->n));
    }
    /* While theta moves, x holds its displacement from the anchor, and a pending anchor its own from theta. */
    const float *const from = anchor(t);
    for (size_t i = 0; i < t->n; i++) {
        t->x[i] -= from[i];
    }
    const bool stays = t->pending && !settles;
    for (size_t i = 0; stays && i < t->n; i++) {
        t->published[i] -= t->theta[i];
    }
    const dp_status status = dp_consensus_apply(t->theta, t->n, record->blobs, record->q,
                                                record->n_items, record->alpha);
    for (size_t i = 0; stays && i < t->n; i++) {
        t->published[i] += t->theta[i];
    }
    if (settles) {
        DP_TRY(settle_pending(t, record));
    }
    dp_feedback_scale(t->e, record->lambda, t->n);
    dp_feedback_scale(t->frozen, record->lambda, t->n);
    dp_feedback_scale(t->x, record->lambda, t->n);
    const float *const to = anchor(t);
    for (size_t i = 0; i < t->n; i++) {
#if DP_MUTATION == 28
        t->x[i] = to[i];
#else
        t->x[i] += to[i];
#endif
    }
    t->state_round = record->round;
    t->committed = record->tokens;
    t->contributors = (uint32_t)record->n_items;
    return status;
}

dp_status dp_trainer_freeze(dp_trainer *t, dp_view *blob, dp_view *f)
{
    const float *const from = anchor(t);
    for (size_t i = 0; i < t->n; i++) {
        t->frozen[i] = from[i] - t->x[i];
    }
    dp_buf_clear(&t->frozen_blob);
    dp_buf_clear(&t->bytes);
    const dp_status status = dp_codec_encode(dense_codec(t), t->frozen, t->n, &t->frozen_blob);
    if (status == DP_DIVERGED) {
        drop_local_work(t);
    }
    DP_TRY(status);
    DP_TRY(dp_floats_write(t->frozen, t->n, &t->bytes));
    *blob = dp_buf_view(&t->frozen_blob);
    *f = dp_buf_view(&t->bytes);
    return DP_OK;
}

/* One run of the exchange; returns the sum of the changes of F. */
static double mix_run(dp_trainer *t, size_t at, const dp_codec_run runs[2], double share)
{
    float own[DP_CODEC_RUN];
    float other[DP_CODEC_RUN];
    dp_codec_expand(&runs[0], own);
    dp_codec_expand(&runs[1], other);
    double moved = 0;
    for (size_t i = 0; i < runs[0].length; i++) {
        /* D' - D_own without forming D'. */
        const float change = (float)(share * ((double)other[i] - (double)own[i]));
#if DP_MUTATION == 32
        t->frozen[at + i] = own[i] + change;
#else
        t->frozen[at + i] += change;
#endif
        t->x[at + i] -= change;
        moved += (double)change;
    }
    return moved;
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
    dp_codec_cursor cursors[2];
    dp_codec_run *const runs = dp_alloc(2, sizeof *runs);
    if (runs == NULL) {
        return DP_NOMEM;
    }
    dp_status status = DP_OK;
    for (size_t i = 0; i < 2 && status == DP_OK; i++) {
        status = dp_codec_open(&cursors[i], blobs[i], t->n);
    }
    double total = 0;
    size_t at = 0;
    while (status == DP_OK && cursors[0].left > 0) {
        status = dp_codec_next(&cursors[0], &runs[0]);
        if (status == DP_OK) {
            status = dp_codec_next(&cursors[1], &runs[1]);
        }
        if (status == DP_OK) {
            total += mix_run(t, at, runs, share);
            at += runs[0].length;
        }
    }
    dp_free(runs);
    *moved = (double)weights[0] * total;
    return status;
}
