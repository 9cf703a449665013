#include "compute/backend/process_group_cards.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/backend/backend_cpu.h"
#include "compute/backend/process_group_inside.h"
#include "compute/machine/pool.h"

/* All of backend.h that is not of the team is the first card's. */
struct dp_engine {
    const dp_backend *inner;
    dp_engine *card; /* the first one's, owned */
    dp_pool *pool;   /* for sums by the host */
    dp_process_group_engine *team;
};

/* ---- Life. */

static void engine_close(dp_engine *e)
{
    if (e == NULL) {
        return;
    }
    dp_process_group_engine_close(e->team);
    e->inner->close(e->card);
    dp_pool_close(e->pool);
    dp_free(e);
}

static dp_status open_engine(dp_engine *e, const dp_engine_setup *setup, dp_why *why)
{
    dp_process_group *const team = setup->team;
    dp_engine_setup own = *setup;
    own.team = NULL;
    own.rows_max = dp_process_group_rows(setup->rows_max, dp_process_group_lanes(team));
    own.part = 0;
    own.parts = dp_process_group_processes(team);
    dp_process_group_bind(team);
    DP_TRY(dp_pool_open(&e->pool, setup->threads));
    DP_TRY(e->inner->create(&e->card, &own, why));
    const dp_process_group_body body = {.pool = e->pool, .backend = e->inner, .engine = e->card};
    return dp_process_group_open_with(&e->team, team, setup, &body, why);
}

static dp_status create(dp_engine **out, const dp_engine_setup *setup, dp_why *why)
{
    const dp_process_group_cards *const cards = setup->team != NULL ? setup->team->cards : NULL;
    if (cards == NULL || setup->rows_max == 0) {
        return dp_why_set(why, DP_BADARG, "no team that has cards, or no rows");
    }
    dp_engine *const e = dp_alloc(1, sizeof *e);
    if (e == NULL) {
        return DP_NOMEM;
    }
    e->inner = cards->inner;
    const dp_status status = open_engine(e, setup, why);
    if (status != DP_OK) {
        engine_close(e);
        return status;
    }
    *out = e;
    return DP_OK;
}

static const char *problem(const dp_engine *e)
{
    const char *const own = e->inner->problem(e->card);
    return own[0] != '\0' ? own : dp_process_group_problem(e->team);
}

/* ---- Vectors. */

/* Before a write to v. */
static dp_engine *writing(dp_engine *e, dp_vector v)
{
    if (v == DP_VECTOR_X || v == DP_VECTOR_THETA) { /* One and the same where there is no round. */
        dp_process_group_moved(e->team);
    }
    return e->card;
}

static dp_status init(dp_engine *e, uint64_t seed)
{
    return e->inner->init(writing(e, DP_VECTOR_THETA), seed);
}

static dp_status load(dp_engine *e, dp_vector to, dp_view bytes)
{
    return e->inner->load(writing(e, to), to, bytes);
}

static const float *values(dp_engine *e, dp_vector from)
{
    return e->inner->values(e->card, from);
}

static dp_status zero(dp_engine *e, dp_vector to)
{
    return e->inner->zero(writing(e, to), to);
}

static dp_status copy(dp_engine *e, dp_vector to, dp_vector from)
{
    return e->inner->copy(writing(e, to), to, from);
}

static dp_status add(dp_engine *e, dp_vector to, dp_vector from)
{
    return e->inner->add(writing(e, to), to, from);
}

static dp_status subtract(dp_engine *e, dp_vector to, dp_vector from)
{
    return e->inner->subtract(writing(e, to), to, from);
}

static dp_status scale(dp_engine *e, dp_vector to, uint32_t lambda)
{
    return e->inner->scale(writing(e, to), to, lambda);
}

static dp_status snapshot(dp_engine *e, dp_vector to, dp_vector feedback, dp_vector from)
{
    return e->inner->snapshot(writing(e, to), to, feedback, from);
}

/* ---- Training: the team's. */

static dp_status reset(dp_engine *e)
{
    return dp_process_group_reset(e->team);
}

static dp_status drop(dp_engine *e)
{
    dp_process_group_drop(e->team);
    return DP_OK;
}

static dp_status step(dp_engine *e, const dp_gpt_batch *batch, float factor, double *loss_sum)
{
    return dp_process_group_step(e->team, batch, factor, loss_sum);
}

static const float *gradients(dp_engine *e)
{
    return dp_process_group_gradients(e->team);
}

static dp_status norm(dp_engine *e, double *length)
{
    return dp_process_group_norm(e->team, length);
}

static dp_status update(dp_engine *e, const dp_optim_options *options, double length)
{
    return dp_process_group_update(e->team, options, length);
}

static size_t lend_state(dp_engine *e, dp_optim_vector out[DP_BACKEND_STATE_MAX])
{
    size_t count = 0;
    if (dp_process_group_lend(e->team, out + 1, &count) != DP_OK) {
        return 0;
    }
    out[0] = *dp_process_group_card_x(e->team);
    return 1 + count;
}

static dp_status take_state(dp_engine *e, uint64_t updates)
{
    dp_process_group_moved(e->team);
    return dp_process_group_take(e->team, updates);
}

static uint64_t updates_of(const dp_engine *e)
{
    return dp_process_group_updates(e->team);
}

/* ---- Looks and rounds: the first card's. */

static dp_status loss(dp_engine *e, dp_vector weights, const dp_gpt_batch *batch, double *loss_sum)
{
    return e->inner->loss(e->card, weights, batch, loss_sum);
}

static dp_status logits_of(dp_engine *e, dp_vector weights, const uint32_t *tokens, size_t length,
                           float *logits)
{
    return e->inner->logits(e->card, weights, tokens, length, logits);
}

static dp_status encode(dp_engine *e, dp_vector from, const dp_codec *codec, dp_view *blob)
{
    return e->inner->encode(e->card, from, codec, blob);
}

static dp_status encode_start(dp_engine *e, dp_vector from, const dp_codec *codec)
{
    return e->inner->encode_start(e->card, from, codec);
}

static dp_status encode_ready(dp_engine *e, bool *ready)
{
    return e->inner->encode_ready(e->card, ready);
}

static dp_status encode_take(dp_engine *e, dp_view *blob, const float **taken)
{
    return e->inner->encode_take(e->card, blob, taken);
}

static dp_status settle(dp_engine *e, dp_view blob, uint32_t clip, float beta)
{
    return e->inner->settle(e->card, blob, clip, beta);
}

static dp_status apply(dp_engine *e, const dp_consensus_items *items, const dp_outer *outer,
                       dp_outer_seen *seen)
{
    return e->inner->apply(writing(e, DP_VECTOR_THETA), items, outer, seen);
}

static dp_status mix(dp_engine *e, const dp_view blobs[2], double share, double *sum)
{
    return e->inner->mix(writing(e, DP_VECTOR_X), blobs, share, sum);
}

/* Devices and plans stay inner's, which take no engine. */
static dp_backend table_over(const dp_backend *inner)
{
    dp_backend table = *inner;
    table.parts = NULL;
    table.create = create;
    table.close = engine_close;
    table.problem = problem;
    table.init = init;
    table.load = load;
    table.values = values;
    table.zero = zero;
    table.copy = copy;
    table.add = add;
    table.subtract = subtract;
    table.scale = scale;
    table.snapshot = snapshot;
    table.reset = reset;
    table.drop = drop;
    table.step = step;
    table.gradients = gradients;
    table.norm = norm;
    table.update = update;
    table.lend_state = lend_state;
    table.take_state = take_state;
    table.updates = updates_of;
    table.loss = loss;
    table.logits = logits_of;
    table.encode = encode;
    table.encode_start = encode_start;
    table.encode_ready = encode_ready;
    table.encode_take = encode_take;
    table.settle = settle;
    table.apply = apply;
    table.mix = mix;
    return table;
}

dp_status dp_process_group_use_cards(dp_process_group *team, const dp_backend *inner,
                                     const char *path, const uint32_t *devices,
                                     void (*tell)(const char *sentence), const dp_backend **out,
                                     dp_why *why)
{
    if (inner->parts == NULL) {
        return dp_why_set(why, DP_UNSUPPORTED, "the backend '%s' trains on one device alone",
                          inner->name);
    }
    if (team->lanes != team->processes || strlen(path) >= PATH_MAX) {
        return dp_why_set(why, DP_BADARG, "a team of cards has one lane to a card");
    }
    dp_process_group_cards *const cards =
        team->cards != NULL ? team->cards : dp_alloc(1, sizeof *cards);
    if (cards == NULL) {
        return DP_NOMEM;
    }
    *cards = (dp_process_group_cards){.table = table_over(inner), .inner = inner, .tell = tell};
    memcpy(cards->path, path, strlen(path) + 1);
    memcpy(cards->devices, devices, team->processes * sizeof *devices);
    team->cards = cards;
    *out = &cards->table;
    return DP_OK;
}

void dp_process_group_take_choice(dp_process_group *team, dp_plugin_choice *choice,
                                  void (*tell)(const char *sentence))
{
    dp_why why = {{0}};
    if (choice->n_devices < 2) {
        return;
    }
    dp_status status = DP_NOMEM;
    if (team != NULL && team->processes == choice->n_devices) {
        status = dp_process_group_use_cards(team, choice->backend, choice->path, choice->devices,
                                            tell, &choice->backend, &why);
    }
    if (status != DP_OK) {
        dp_why line;
        DP_IGNORE(dp_why_set(&line, status, "%.400s; the first card computes alone",
                             why.text[0] != '\0' ? why.text : "no process for each card"));
        tell(line.text);
    }
}

dp_status dp_process_group_plan_choice(const dp_plugin_choice *choice,
                                       const dp_plan_request *request, dp_plan *out, dp_why *why)
{
    dp_plan_request all = *request;
    if (choice->n_devices < 2) {
        return choice->backend->plan(choice->device, request, out, why);
    }
    all.processes = choice->n_devices;
    all.lanes = choice->n_devices;
    for (uint32_t i = 0; i < choice->n_devices; i++) {
        dp_plan one;
        const dp_status status = choice->backend->plan(choice->devices[i], &all, &one, why);
        if (i == 0 || status != DP_OK || one.rows < out->rows) {
            *out = one;
        }
        DP_TRY(status);
    }
    return DP_OK;
}

bool dp_process_group_serves(const dp_process_group *team, const dp_backend *backend)
{
    return team != NULL &&
           (backend == dp_backend_cpu() || (team->cards != NULL && backend == &team->cards->table));
}

dp_group_devices dp_process_group_devices(const dp_process_group *team, const dp_backend *backend,
                                          uint32_t device)
{
    dp_group_devices of = {.backend = backend, .n = 1, .devices = {device}};
    const dp_process_group_cards *const cards = team != NULL ? team->cards : NULL;
    if (cards != NULL && backend == &cards->table) {
        of.backend = cards->inner;
        of.n = team->processes;
        memcpy(of.devices, cards->devices, of.n * sizeof of.devices[0]);
    }
    return of;
}

dp_group_devices dp_group_devices_of(const dp_plugin_choice *choice)
{
    dp_group_devices of = {.backend = choice->backend, .n = 1, .devices = {choice->device}};
    if (choice->n_devices > 1) {
        of.n = choice->n_devices;
        memcpy(of.devices, choice->devices, of.n * sizeof of.devices[0]);
    }
    return of;
}

dp_precision_kind dp_group_devices_precision(const dp_group_devices *of, dp_precision_kind asked)
{
    if (asked != DP_PRECISION_AUTO) {
        return asked;
    }
    bool bf16 = (of->backend->capabilities & DP_CAN_BF16) != 0;
    for (uint32_t i = 0; i < of->n && bf16; i++) {
        dp_device one = {.bf16 = false};
        dp_why why = {{0}};
        bf16 = of->backend->device(of->devices[i], &one, &why) == DP_OK && one.bf16;
    }
    return bf16 ? DP_PRECISION_BF16 : DP_PRECISION_FP32;
}

void dp_group_devices_feel(const dp_group_devices *of, int32_t *celsius, uint32_t *watts)
{
    *celsius = INT32_MIN;
    *watts = 0;
    for (uint32_t i = 0; i < of->n; i++) {
        dp_device one = {.celsius = INT32_MIN};
        dp_why why = {{0}};
        if (of->backend->device(of->devices[i], &one, &why) == DP_OK) {
            *celsius = one.celsius > *celsius ? one.celsius : *celsius;
            *watts = one.watts > *watts ? one.watts : *watts;
        }
    }
}
