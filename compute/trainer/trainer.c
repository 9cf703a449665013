/* Opening and closing a trainer, its vectors and its progress. Shared fields are in
 * trainer_inside.h, which lists the other files. */
#include "compute/trainer/trainer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutation.h"
#include "base/run/samples.h"
#include "compute/backend/backend_cpu.h"
#include "compute/backend/process_group_cards.h"
#include "compute/model/state.h"
#include "compute/model/tensor_table.h"
#include "compute/trainer/trainer_inside.h"

/* The capability that a setting of the run, or its data, needs. */
static uint32_t needs_of(const dp_trainer *t)
{
    const dp_manifest *const m = &t->manifest;
    static const uint32_t precisions[] = {[DP_PRECISION_FP32] = DP_CAN_FP32,
                                          [DP_PRECISION_BF16] = DP_CAN_BF16,
                                          [DP_PRECISION_FP16] = DP_CAN_FP16};
    static const uint32_t optimizers[] = {[DP_OPTIM_ADAMW] = DP_CAN_ADAMW,
                                          [DP_OPTIM_LAMB] = DP_CAN_LAMB,
                                          [DP_OPTIM_LARS] = DP_CAN_LARS,
                                          [DP_OPTIM_MUON] = DP_CAN_MUON};
    _Static_assert(sizeof optimizers / sizeof optimizers[0] == DP_OPTIM_LAST + 1,
                   "each optimizer has a capability");
    const bool bf16_weights = m->weights != 0 && m->weights != DP_WEIGHTS_FP32;
    return precisions[m->precision] | optimizers[m->optimizer] |
           (bf16_weights ? DP_CAN_BF16_WEIGHTS : 0) | DP_CAN_CODECS |
           (dp_manifest_adapts(m) ? DP_CAN_ADAPTERS : 0) |
           (t->data.documents ? DP_CAN_DOCUMENTS : 0);
}

uint32_t dp_trainer_moments(const dp_trainer *t)
{
    return t->alone ? 0 : dp_manifest_moments(&t->manifest);
}

static dp_status open_model(dp_trainer *t, dp_view base, dp_why *why)
{
    const dp_model_config config = dp_manifest_model(&t->manifest);
    if (dp_manifest_external(&t->manifest)) {
        dp_model_open_vector(&t->model, t->manifest.elements);
        return DP_OK;
    }
    DP_TRY(dp_model_open(&t->model, &config, why));
    return dp_manifest_adapts(&t->manifest)
               ? dp_base_weights_open(&t->base, t->model.base, t->manifest.base_kind, base, why)
               : DP_OK;
}

/* The backend lacks something that the run needs. */
static dp_status check_capabilities(const dp_trainer *t, dp_why *why)
{
    const uint32_t missing = needs_of(t) & ~t->backend->capabilities;
    if (missing == DP_CAN_DOCUMENTS) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "the CPU trains on documents that are kept apart, as prompts with their "
                          "answers are; the backend '%s' does not yet; --backend cpu asks for the "
                          "CPU",
                          t->backend->name);
    }
    if (missing == DP_CAN_ADAPTERS) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "the CPU trains adapters, the backend '%s' does not yet; --backend cpu "
                          "asks for the CPU",
                          t->backend->name);
    }
    return missing == 0
               ? DP_OK
               : dp_why_set(why, DP_UNSUPPORTED,
                            "the backend '%s' has not the precision, optimizer or kind of weights "
                            "that this run asks for; --backend cpu has them",
                            t->backend->name);
}

static dp_status open_engine(dp_trainer *t, const dp_trainer_setup *setup, dp_why *why)
{
    const dp_manifest *const m = &t->manifest;
    DP_TRY(open_model(t, setup->base, why));
    t->n = t->model.n_elements;
    t->schedule = dp_schedule_of(m);
    DP_TRY(dp_schedule_check(&t->schedule, why));
    t->backend =
        setup->backend != NULL && !dp_manifest_external(m) ? setup->backend : dp_backend_cpu();
    const dp_group_devices devices =
        dp_process_group_devices(setup->team, t->backend, setup->device);
    t->manifest.precision = dp_group_devices_precision(&devices, m->precision);
    DP_TRY(check_capabilities(t, why));
    const bool teamed = dp_process_group_serves(setup->team, t->backend) &&
                        !dp_manifest_external(m) && !dp_manifest_adapts(m);
    dp_process_group *const team = teamed ? setup->team : NULL;
    const dp_plan_request request = {.manifest = m,
                                     .processes =
                                         team != NULL ? dp_process_group_processes(team) : 0,
                                     .lanes = team != NULL ? dp_process_group_lanes(team) : 0,
                                     .threads = setup->threads,
                                     .data = setup->alone ? 0 : dp_manifest_data_bytes(m),
                                     .loaded = true,
                                     .card_share = setup->card_share,
                                     .rows = setup->alone ? setup->rows : 0,
                                     .alone = setup->alone};
    dp_plan plan;
    DP_TRY(t->backend->plan(setup->device, &request, &plan, why));
    t->rows_max = plan.rows;
    t->rows_next = setup->alone ? plan.rows : 1;
    const dp_engine_setup engine = {.model = &t->model,
                                    .base = dp_manifest_adapts(m) ? &t->base : NULL,
                                    .precision = m->precision,
                                    .optimizer = m->optimizer,
                                    .weights = m->weights,
                                    .seed = t->seed,
                                    .device = setup->device,
                                    .rows_max = plan.rows,
                                    .recompute = plan.recompute,
                                    .packs = plan.packs,
                                    .memory_max = setup->card_share != 0 ? plan.budget : 0,
                                    .threads = setup->threads,
                                    .team = team,
                                    .alone = setup->alone,
                                    .momentum = dp_trainer_moments(t) == 1};
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
    return dp_trainer_has_gradients(t) ? dp_trainer_gradients_open(t) : DP_OK;
}

static void init_bytes(dp_trainer *t)
{
    dp_buf_init(&t->restored, dp_codec_bytes_max_any(t->n));
    dp_buf_init(&t->bytes, dp_state_bytes(t->n, DP_STATE_MOMENTS_MAX));
}

/* The vectors of a model that only a script knows: no words, no data, no network. */
static dp_status open_external(dp_trainer *t, const dp_trainer_setup *setup, dp_why *why)
{
    dp_tensor_table table;
    if (setup->alone) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "a model of model.arch external is trained by its script alone");
    }
    if (setup->n_shards != 0) {
        return dp_why_set(why, DP_BADARG, "a run of model.arch external has no shards");
    }
    DP_TRY(dp_tensor_table_open(&table, setup->tokenizer, why));
    if (table.elements != t->manifest.elements) {
        return dp_why_set(
            why, DP_BADMSG, "the manifest is of %llu elements, its table of tensors of %llu",
            (unsigned long long)t->manifest.elements, (unsigned long long)table.elements);
    }
    DP_TRY(open_engine(t, setup, why));
    init_bytes(t);
    return dp_trainer_script_open(t, setup->tokenizer);
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
    t->alive = setup->alive;
    t->alive_context = setup->context;
    if (dp_manifest_external(&t->manifest)) {
        return open_external(t, setup, why);
    }
    DP_TRY(dp_bpe_load(&t->bpe, setup->tokenizer, why));
    if (dp_bpe_count(t->bpe) > t->manifest.vocab) {
        return dp_why_set(why, DP_BADARG, "the tokenizer has %zu tokens, the model only %u",
                          dp_bpe_count(t->bpe), t->manifest.vocab);
    }
    DP_TRY(open_data(t, setup, why));
    DP_TRY(open_engine(t, setup, why));
    init_bytes(t);
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
    dp_buf_close(&t->restored);
    dp_trainer_gradients_close(t);
    dp_trainer_script_close(t);
    dp_free(t->targets);
    dp_free(t->inputs);
    if (t->engine != NULL) {
        t->backend->close(t->engine);
    }
    dp_base_weights_close(&t->base);
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

static dp_trainer_progress told(const dp_trainer *t, const dp_trainer_tally *tally)
{
    return (dp_trainer_progress){.round = t->aim_round,
                                 .steps = tally->steps,
                                 .skipped = tally->skipped,
                                 .empty = tally->empty,
                                 .spikes = tally->spikes,
                                 .tokens = tally->tokens,
                                 .carried = tally->carried,
                                 .loss = mean_loss(tally)};
}

dp_trainer_progress dp_trainer_progress_of(const dp_trainer *t)
{
    return told(t, &t->open);
}

dp_trainer_progress dp_trainer_offer(const dp_trainer *t)
{
    const dp_trainer_tally offered = dp_trainer_offered(t);
    dp_trainer_progress offer = told(t, &offered);
    offer.again = t->open.tokens == 0 && offered.tokens > 0;
    return offer;
}

const char *dp_trainer_problem(const dp_trainer *t)
{
    return t->backend->problem(t->engine);
}
