#include "compute/trainer/trainer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutation.h"
#include "base/run/samples.h"
#include "compute/backend/backend_cpu.h"
#include "compute/backend/team_cards.h"
#include "compute/model/state.h"
#include "compute/trainer/trainer_inside.h"

/* The capability that a setting of the run needs. */
static uint32_t needs_of(const dp_manifest *m)
{
    static const uint32_t precisions[] = {[DP_PRECISION_FP32] = DP_CAN_FP32,
                                          [DP_PRECISION_BF16] = DP_CAN_BF16,
                                          [DP_PRECISION_FP16] = DP_CAN_FP16};
    static const uint32_t optimizers[] = {[DP_OPTIM_ADAMW] = DP_CAN_ADAMW,
                                          [DP_OPTIM_LAMB] = DP_CAN_LAMB,
                                          [DP_OPTIM_LARS] = DP_CAN_LARS,
                                          [DP_OPTIM_MUON] = DP_CAN_MUON};
    const bool bf16_weights = m->weights != 0 && m->weights != DP_WEIGHTS_FP32;
    return precisions[m->precision] | optimizers[m->optimizer] |
           (bf16_weights ? DP_CAN_BF16_WEIGHTS : 0) | DP_CAN_CODECS;
}

/* Of the outer step, and of the state: the engine holds the one of momentum, trainer_gradients.c
 * the two of AdamW. */
static uint32_t moments_of(const dp_trainer *t)
{
    return t->alone ? 0 : dp_manifest_moments(&t->manifest);
}

static bool has_momentum(const dp_trainer *t)
{
    return moments_of(t) == 1;
}

static dp_status open_engine(dp_trainer *t, const dp_trainer_setup *setup, dp_why *why)
{
    const dp_manifest *const m = &t->manifest;
    const dp_model_config config = dp_manifest_model(m);
    DP_TRY(dp_model_open(&t->model, &config, why));
    t->n = t->model.n_elements;
    t->schedule = dp_schedule_of(m);
    DP_TRY(dp_schedule_check(&t->schedule, why));
    t->backend = setup->backend != NULL ? setup->backend : dp_backend_cpu();
    if ((needs_of(m) & ~t->backend->capabilities) != 0) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "the backend '%s' has not the precision, optimizer or kind of weights "
                          "that this run asks for; --backend cpu has them",
                          t->backend->name);
    }
    dp_team *const team = dp_team_serves(setup->team, t->backend) ? setup->team : NULL;
    const dp_plan_request request = {.manifest = m,
                                     .processes = team != NULL ? dp_team_processes(team) : 0,
                                     .lanes = team != NULL ? dp_team_lanes(team) : 0,
                                     .threads = setup->threads,
                                     .data = setup->alone ? 0 : dp_manifest_data_bytes(m),
                                     .loaded = true,
                                     .rows = setup->alone ? setup->rows : 0,
                                     .alone = setup->alone};
    dp_plan plan;
    DP_TRY(t->backend->plan(setup->device, &request, &plan, why));
    t->rows_max = plan.rows;
    t->rows_next = setup->alone ? plan.rows : 1;
    const dp_engine_setup engine = {.model = &t->model,
                                    .precision = m->precision,
                                    .optimizer = m->optimizer,
                                    .weights = m->weights,
                                    .seed = t->seed,
                                    .device = setup->device,
                                    .rows_max = plan.rows,
                                    .recompute = plan.recompute,
                                    .packs = plan.packs,
                                    .threads = setup->threads,
                                    .team = team,
                                    .alone = setup->alone,
                                    .momentum = has_momentum(t)};
    return t->backend->create(&t->engine, &engine, why);
}

static dp_status open_batches(dp_trainer *t)
{
    const size_t tokens = (size_t)t->rows_max * t->manifest.context;
    t->inputs = dp_alloc(tokens, sizeof *t->inputs);
    t->targets = dp_alloc(tokens, sizeof *t->targets);
    if (t->inputs == NULL || t->targets == NULL) {
        return DP_NOMEM;
    }
    const dp_loader_setup batches = {.data = &t->data,
                                     .seed = t->manifest.model_seed,
                                     .own_seed = dp_trainer_line_seed(t, t->member),
                                     .length = t->manifest.context,
                                     .rows_max = t->rows_max};
    DP_TRY(dp_loader_open(&t->loader, &batches));
    dp_buf_init(&t->restored, dp_codec_bytes_most(t->n));
    dp_buf_init(&t->early.piece, dp_codec_bytes_most((size_t)DP_EARLY_RUNS * DP_CODEC_RUN));
    dp_buf_init(&t->bytes, dp_state_bytes(t->n, DP_STATE_MOMENTS_MAX));
    return dp_trainer_has_gradients(t) ? dp_trainer_gradients_open(t) : DP_OK;
}

static dp_status open_shards(dp_trainer *t, const dp_trainer_setup *setup, dp_why *why)
{
    const dp_manifest *const m = &t->manifest;
    uint64_t tokens[DP_MANIFEST_SHARDS_MAX];
    if (setup->n_shards != m->n_shards) {
        return dp_why_set(why, DP_BADARG, "the run's data has %u shards, %zu of them are here",
                          m->n_shards, setup->n_shards);
    }
    for (uint32_t i = 0; i < m->n_shards; i++) {
        tokens[i] = m->shards[i].tokens;
    }
    DP_TRY(dp_data_open_list(&t->data, tokens, m->n_shards, m->vocab, m->val_per_mille, why));
    for (uint32_t i = 0; i < m->n_shards; i++) {
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
    return open_batches(t);
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
    dp_alignment_close(&t->own);
    dp_buf_close(&t->bytes);
    dp_buf_close(&t->early.piece);
    dp_buf_close(&t->restored);
    dp_trainer_gradients_close(t);
    dp_free(t->targets);
    dp_free(t->inputs);
    if (t->engine != NULL) {
        t->backend->close(t->engine);
    }
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
    return t->backend->values(t->engine, DP_VECTOR_THETA);
}

const float *dp_trainer_params(const dp_trainer *t)
{
    return t->backend->values(t->engine, DP_VECTOR_X);
}

const float *dp_trainer_feedback(const dp_trainer *t)
{
    return t->backend->values(t->engine, DP_VECTOR_E);
}

const float *dp_trainer_frozen(const dp_trainer *t)
{
    return t->backend->values(t->engine, DP_VECTOR_F);
}

/* Start over from theta: every drawer is empty. */
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
    t->n_ranges = 0;
    t->last = (dp_trainer_last){0};
    dp_assert(!t->publishing);
    t->pending = false;
    t->gradients.ready = false;
    t->pending_blob = (dp_view){0};
    dp_alignment_forget(&t->own);
    t->open = (dp_trainer_tally){0};
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
    DP_TRY(t->backend->init(t->engine, t->manifest.model_seed));
    if (has_momentum(t)) {
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
    return t->alone || state->moments == moments_of(t) || dp_broken(29);
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

dp_status dp_trainer_state(dp_trainer *t, dp_view *state, dp_hash *root)
{
    const uint32_t moments = dp_broken(29) ? 0 : moments_of(t);
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
    /* What was published is in a alone; what is open or frozen now is measured from theta, as
     * before. */
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
        t->open.carried += earlier->lambda > 0 ? earlier->tokens : 0;
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
    t->pending_tally = (dp_trainer_tally){.tokens = earlier->tokens};
    return DP_OK;
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

static dp_status settle_pending(dp_trainer *t, const dp_trainer_record *record)
{
    if (record->settle == DP_SETTLE_INCLUDED) {
        DP_TRY(dp_trainer_settle(t, record->clip, &record->cuts, record->taken, t->pending_blob));
    } else {
        DP_TRY(t->backend->copy(t->engine, DP_VECTOR_E, DP_VECTOR_A));
        if (dp_broken(22)) {
            DP_TRY(t->backend->scale(t->engine, DP_VECTOR_E, t->manifest.feedback_beta_milli * 65));
        }
        t->open.carried += t->pending_tally.carried + t->pending_tally.tokens;
    }
    t->left_out = record->settle == DP_SETTLE_INCLUDED ? 0 : t->left_out + 1;
    t->pending = false;
    t->pending_tally = (dp_trainer_tally){0};
    return DP_OK;
}

/* e, F and O age; x, which is -F - O here, with them. */
static dp_status age(dp_trainer *t, uint32_t lambda)
{
    dp_trainer_gradients_age(t, lambda);
    DP_TRY(t->backend->scale(t->engine, DP_VECTOR_E, lambda));
    DP_TRY(t->backend->scale(t->engine, DP_VECTOR_F, lambda));
    return t->backend->scale(t->engine, DP_VECTOR_X, lambda);
}

static uint32_t momentum_of(const dp_trainer *t)
{
    return (uint32_t)((uint64_t)t->manifest.outer_mu_milli * 65536 / 1000);
}

static dp_status outer_step(dp_trainer *t, const dp_trainer_record *record)
{
    if (dp_trainer_has_gradients(t)) {
        return dp_trainer_step_of_all(t, record);
    }
    const dp_outer outer = {.alpha = record->alpha, .mu = momentum_of(t)};
    const dp_consensus_items items = dp_trainer_items(t, record);
    return t->backend->apply(t->engine, &items, &outer, &t->outer);
}

/* While theta moves, x holds its displacement from the anchor, and a pending anchor its own from
 * theta. *moved: what theta's new values are worth. */
static dp_status move_theta(dp_trainer *t, const dp_trainer_record *record, dp_status *moved)
{
    const dp_backend *const b = t->backend;
    const bool settles = record->settle != DP_SETTLE_NONE;
    DP_TRY(b->subtract(t->engine, DP_VECTOR_X, dp_trainer_anchor(t)));
    const bool stays = t->pending && !settles;
    if (stays) {
        DP_TRY(b->subtract(t->engine, DP_VECTOR_ANCHOR, DP_VECTOR_THETA));
    }
    *moved = outer_step(t, record);
    if (stays) {
        DP_TRY(b->add(t->engine, DP_VECTOR_ANCHOR, DP_VECTOR_THETA));
    }
    if (*moved == DP_NOMEM) { /* Nothing has: x goes back to where it was, to rounding. */
        DP_TRY(b->add(t->engine, DP_VECTOR_X, dp_trainer_anchor(t)));
        return DP_NOMEM;
    }
    if (settles) {
        DP_TRY(settle_pending(t, record));
    }
    DP_TRY(age(t, record->lambda));
    if (dp_broken(28)) {
        return b->copy(t->engine, DP_VECTOR_X, dp_trainer_anchor(t));
    }
    return b->add(t->engine, DP_VECTOR_X, dp_trainer_anchor(t));
}

/* Work that is worth nothing claims nothing; until a lease comes, steps are of the own line. */
static dp_status forget_progress(dp_trainer *t)
{
    t->open = (dp_trainer_tally){0};
    t->n_ranges = 0;
    return dp_trainer_drop_step(t);
}

dp_status dp_trainer_apply(dp_trainer *t, const dp_trainer_record *record)
{
    const bool settles = record->settle != DP_SETTLE_NONE;
    if (record->n_items > DP_TRAINER_ITEMS_MAX || (settles && !t->pending)) {
        return DP_BADARG;
    }
    dp_trainer_record whole = *record;
    DP_TRY(dp_trainer_join(t, &whole));
    dp_status moved;
    DP_TRY(move_theta(t, &whole, &moved));
    t->state_round = record->round;
    t->committed = record->tokens;
    t->contributors = whole.contributors;
    if (record->lambda == 0) {
        DP_TRY(forget_progress(t));
    }
    return moved;
}

dp_outer_seen dp_trainer_outer(const dp_trainer *t)
{
    return t->outer;
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
    double total = 0;
    DP_TRY(t->backend->mix(t->engine, blobs, share, &total));
    *moved = (double)weights[0] * total;
    return DP_OK;
}

const char *dp_trainer_problem(const dp_trainer *t)
{
    return t->backend->problem(t->engine);
}
