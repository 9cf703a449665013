/* Planning, opening and closing. */
#include "compute/cuda/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "base/alloc.h"
#include "compute/backend/process_group.h"
#include "compute/cuda/claim.h"

enum {
    TOKENS_ENOUGH = 8192, /* of a micro-batch: products reach the card's speed */
    RESERVE_DIVISOR = 20, /* of free memory stays free: a context grows, and fragments */
    CACHE_PATH_MAX = 1024,
    MIB = 1024 * 1024
};

/* ---- The plan. */

static uint64_t usable(uint64_t room)
{
    return room - room / RESERVE_DIVISOR;
}

static dp_cuda_shape shape_of_request(const dp_plan_request *request, const dp_model *model)
{
    const dp_manifest *const m = request->manifest;
    return (dp_cuda_shape){.model = model,
                           .type = dp_precision_of_kind(m->precision),
                           .optimizer = m->optimizer,
                           .weights = m->weights,
                           .alone = request->alone,
                           .momentum = m->outer_mu_milli > 0,
                           .parts = request->processes > 0 ? request->processes : 1};
}

/* Left free for rounds, which take the blobs' memory when they need it; with less they go by the
 * host. An int8 blob and as much again: 32 sparse ones need less. */
static uint64_t round_bytes(const dp_cuda_shape *shape)
{
    return shape->alone ? 0 : 2 * (uint64_t)shape->model->n_elements;
}

static dp_plan_step step_with(const dp_cuda_shape *shape, size_t rows)
{
    dp_cuda_shape with = *shape;
    with.rows = rows;
    const dp_cuda_bytes bytes = dp_cuda_bytes_of(&with);
    const uint64_t total = bytes.total + round_bytes(shape);
    return (dp_plan_step){.rows = (uint32_t)rows, .activations = bytes.activations, .total = total};
}

/* The most rows up to most that fit, by halving the gap; rows 0 where not even one does. */
static dp_plan_step largest_step(const dp_cuda_shape *shape, uint64_t budget, uint32_t most)
{
    dp_plan_step best = step_with(shape, 1);
    if (best.total > budget) {
        best.rows = 0;
        return best;
    }
    uint32_t beyond = most + 1;
    while (beyond - best.rows > 1) {
        const dp_plan_step middle = step_with(shape, best.rows + (beyond - best.rows) / 2);
        if (middle.total <= budget) {
            best = middle;
        } else {
            beyond = middle.rows;
        }
    }
    return best;
}

/* The plan is of one card's share; its rows are those of all cards. */
static void count_cards(dp_plan *plan, const dp_cuda_shape *shape, uint32_t wanted)
{
    const uint64_t cards = shape->parts;
    for (int at = 0; at < DP_RECOMPUTE_STEPS; at++) {
        const uint64_t rows = plan->steps[at].rows * cards;
        plan->steps[at].rows = rows < wanted ? (uint32_t)rows : wanted;
    }
    plan->rows = plan->rows * cards < wanted ? (uint32_t)(plan->rows * cards) : wanted;
}

static void fill_plan(dp_plan *plan, dp_cuda_shape *shape, const dp_plan_request *all)
{
    const dp_manifest *const m = all->manifest;
    const uint32_t cards = (uint32_t)shape->parts;
    dp_plan_request own = *all;
    own.rows = dp_process_group_rows(all->rows, cards);
    const dp_plan_request *const request = &own;
    const uint32_t together = all->rows != 0 ? all->rows : m->batch_rows;
    const uint32_t wanted = dp_process_group_rows(together, cards);
    const uint32_t most = wanted < DP_GPT_ROWS_MAX ? wanted : DP_GPT_ROWS_MAX;
    const uint64_t batch = (uint64_t)most * m->context;
    const uint64_t enough = batch < TOKENS_ENOUGH ? batch : TOKENS_ENOUGH;
    shape->rows = 1;
    const dp_cuda_bytes bytes = dp_cuda_bytes_of(shape);
    *plan = (dp_plan){.budget = request->budget,
                      .parameters = shape->model->n_parameters,
                      .weights = bytes.weights,
                      .gradients = bytes.gradients,
                      .moments = bytes.moments,
                      .anchors = bytes.anchors,
                      .buffers = bytes.buffers + round_bytes(shape),
                      .packs = DP_GPT_PACKS_KEPT};
    for (int at = 0; at < DP_RECOMPUTE_STEPS; at++) {
        shape->recompute = (dp_recompute)at;
        plan->steps[at] = largest_step(shape, request->budget, most);
    }
    int chosen = 0;
    for (int at = 0; at < DP_RECOMPUTE_STEPS; at++) {
        chosen = plan->steps[at].rows > plan->steps[chosen].rows ? at : chosen;
        if (plan->steps[chosen].rows >= request->rows &&
            (uint64_t)plan->steps[chosen].rows * m->context >= enough) {
            break;
        }
    }
    if (plan->steps[chosen].rows == 0 || plan->steps[chosen].rows < request->rows) {
        chosen = DP_RECOMPUTE_LAYER; /* Report the smallest missing amount. */
    }
    plan->recompute = (dp_recompute)chosen;
    plan->rows = plan->steps[chosen].rows < request->rows ? 0 : plan->steps[chosen].rows;
    plan->activations = plan->steps[chosen].activations;
    plan->total = plan->steps[chosen].total;
    count_cards(plan, shape, together);
}

/* percent: the share of the card by which plan->budget came about; 0: none. */
static dp_status too_small_a_share(const dp_plan *plan, uint32_t percent, dp_why *why)
{
    return dp_why_set(why, DP_TOOBIG,
                      "training this model takes %.0f MiB of the card with one sequence and all "
                      "recomputed, and of the %" PRIu32 " %% that its owner grants %.0f MiB are "
                      "there; to grant more: dpnode limits --vram-share PERCENT",
                      (double)plan->total / MIB, percent, (double)plan->budget / MIB);
}

static dp_status too_small(const dp_plan *plan, const dp_plan_request *request, dp_why *why)
{
    const uint32_t rows = plan->steps[DP_RECOMPUTE_LAYER].rows;
    if (request->card_share != 0 && rows == 0) {
        return too_small_a_share(plan, request->card_share, why);
    }
    const double needs = (double)plan->total / MIB;
    const double there = (double)plan->budget / MIB;
    if (rows > 0) {
        return dp_why_set(why, DP_TOOBIG,
                          "training this model with %" PRIu32 " sequences at a time does not fit "
                          "into %.0f MiB of the card; --rows %" PRIu32 " would",
                          request->rows, there, rows);
    }
    return dp_why_set(why, DP_TOOBIG,
                      "training this model takes %.0f MiB of the card with one sequence and all "
                      "recomputed, and %.0f MiB are there; end what else uses the card, or take a "
                      "smaller model.context or model.preset",
                      needs, there);
}

/* share: as card_share of the request. */
static dp_status budget_of(uint32_t index, uint32_t share, uint64_t *budget, dp_why *why)
{
    uint64_t room = 0;
    uint64_t total = 0;
    DP_TRY(dp_cuda_device_room(dp_cuda_api_of(), index, &room, &total, why));
    const uint64_t granted = share != 0 ? total / 100 * share : UINT64_MAX;
    *budget = usable(granted < room ? granted : room);
    return DP_OK;
}

/* Refuses a model with a part that the kernels do not compute yet. */
static dp_status check_parts(const dp_model *model, dp_why *why)
{
    const struct {
        bool wanted;
        const char *part;
    } rows[] = {
        {dp_model_layer_traits(&model->config, 0).window != 0, "a window below model.context"},
        {dp_model_has(model, DP_HAS_NORMS_AFTER), "norms behind its parts"},
        {dp_model_has(model, DP_HAS_WHOLE_NORMS), "norms of the whole q and k"},
        {dp_model_has(model, DP_HAS_SCALED_EMBEDDING), "scaled embeddings"},
        {model->config.scores_softcap_milli != 0, "a soft cap of scores"},
        {dp_model_has(model, DP_HAS_PARALLEL_PARTS), "parts beside each other"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].wanted) {
            return dp_why_set(why, DP_UNSUPPORTED,
                              "model.arch %s with %s is not computed by this card yet; the CPU "
                              "trains it: --backend cpu",
                              dp_model_family_of(model->config.arch)->name, rows[i].part);
        }
    }
    return DP_OK;
}

dp_status dp_cuda_plan(uint32_t index, const dp_plan_request *request, dp_plan *plan, dp_why *why)
{
    const dp_model_config config = dp_manifest_model(request->manifest);
    dp_plan_request whole = *request;
    dp_model model = {0};
    if (whole.budget == 0) {
        DP_TRY(budget_of(index, whole.card_share, &whole.budget, why));
    } else {
        whole.card_share = 0;
    }
    DP_TRY(dp_model_open(&model, &config, why));
    dp_status status = check_parts(&model, why);
    if (status == DP_OK) {
        dp_cuda_shape shape = shape_of_request(&whole, &model);
        fill_plan(plan, &shape, &whole);
        status = plan->rows > 0 ? DP_OK : too_small(plan, &whole, why);
    }
    dp_model_close(&model);
    return status;
}

/* ---- Opening. */

/* Of a card that hangs each of these frees only what is the host's (device.h). */
static void close_card(dp_engine *e)
{
    void *const locked[] = {
        e->optim.host_terms, e->host_news,       e->host_scale,   e->host_losses,  e->host_batch,
        e->stages[1].bytes,  e->stages[0].bytes, e->mirror_taken, e->mirror_other, e->mirror};
    if (!e->device.hangs) {
        dp_cuda_here(&e->device);
    }
    dp_cuda_link_close(e->link); /* First: nothing ends on the card while NCCL waits there. */
    dp_cuda_encode_forget(e);
    dp_cuda_graphs_close(&e->graphs);
    dp_cuda_gemm_close(e->gemm);
    for (size_t i = 0; i < sizeof locked / sizeof locked[0]; i++) {
        dp_cuda_mirror_free(e, locked[i]);
    }
    for (size_t i = 0; i < DP_OPTIM_VECTORS_MAX; i++) {
        dp_cuda_mirror_free(e, e->mirror_state[i]);
    }
    if (e->memory != NULL) {
        dp_cuda_device_free(&e->device, e->memory);
    }
    dp_cuda_device_close(&e->device);
}

void dp_cuda_close(dp_engine *e)
{
    if (e == NULL) {
        return;
    }
    if (e->device.api != NULL) {
        close_card(e);
    }
    if (e->claim >= 0) {
        close(e->claim);
    }
    dp_buf_close(&e->blobs[1]);
    dp_buf_close(&e->blobs[0]);
    dp_cuda_optimizer_close(&e->optim);
    dp_free(e->layers);
    dp_free(e);
}

/* Less memory for the same: first fewer rows at a time, then more that is computed again. False:
 * there is nothing less. */
static bool shrink(dp_cuda_shape *shape)
{
    if (shape->rows > 1) {
        shape->rows /= 2;
        return true;
    }
    if (shape->recompute < DP_RECOMPUTE_LAYER) {
        shape->recompute = (dp_recompute)(shape->recompute + 1);
        return true;
    }
    return false;
}

/* Gives the block back where it leaves too little for what comes after it: DP_NOMEM. The least
 * block may try. */
static dp_status leave_room(dp_engine *e)
{
    size_t left = 0;
    size_t total = 0;
    if (e->shape.rows == 1 && e->shape.recompute == DP_RECOMPUTE_LAYER) {
        return DP_OK;
    }
    DP_TRY(DP_CUDA(&e->device, mem_info, &left, &total));
    if (left >= dp_cuda_gemm_room()) {
        return DP_OK;
    }
    dp_cuda_device_free(&e->device, e->memory);
    e->memory = NULL;
    return DP_NOMEM;
}

static dp_status take_memory(dp_engine *e, dp_why *why)
{
    dp_status status;
    size_t bytes;
    do {
        e->net =
            dp_cuda_net_setup(e->shape.model, e->shape.type, e->shape.recompute, e->shape.rows);
        dp_cuda_arena arena = {0};
        dp_cuda_engine_carve(e, &arena);
        bytes = arena.used;
        status = DP_CUDA(&e->device, device_alloc, &e->memory, bytes);
        if (status == DP_OK) {
            status = leave_room(e);
        }
    } while (status == DP_NOMEM && shrink(&e->shape));
    if (status == DP_NOMEM) {
        return dp_why_set(why, DP_TOOBIG,
                          "%s has no %zu MiB free for this model with one sequence and all "
                          "recomputed; end what else uses the card, or take a smaller "
                          "model.context or model.preset",
                          e->device.properties.name, bytes / MIB);
    }
    DP_TRY(status);
    e->device.problem = (dp_why){{0}}; /* of memory that was asked for before it shrank */
    e->held = bytes;
    dp_cuda_arena arena = {.base = e->memory};
    e->net.layers = e->layers;
    dp_cuda_engine_carve(e, &arena);
    return DP_CUDA(&e->device, fill, e->memory, 0, e->zeroed, e->device.compute);
}

static dp_status host_piece(dp_engine *e, void *out, size_t bytes)
{
    void *memory;
    DP_TRY(DP_CUDA(&e->device, host_alloc, &memory, bytes));
    memcpy(out, &memory, sizeof memory);
    return DP_OK;
}

static dp_status take_host_memory(dp_engine *e)
{
    const size_t tokens = e->shape.rows * e->shape.model->config.context;
    DP_TRY(host_piece(e, &e->host_batch, 2 * tokens * sizeof *e->host_batch));
    DP_TRY(host_piece(e, &e->host_losses, tokens * sizeof *e->host_losses));
    DP_TRY(host_piece(e, &e->host_scale, sizeof *e->host_scale));
    DP_TRY(host_piece(e, &e->optim.host_terms, sizeof *e->optim.host_terms));
    return host_piece(e, &e->host_news, 2 * sizeof *e->host_news);
}

/* dp_rope_angles of one kind, computed on the host in double; room: for all of them. */
static dp_status put_angles_of(dp_engine *e, dp_rope_kind kind, float *room, size_t floats)
{
    const dp_rope_turns turns = dp_model_turns(e->shape.model, kind);
    dp_rope_angles(&turns, e->shape.model->config.context, room);
    DP_TRY(DP_CUDA(&e->device, copy, e->net.angles[kind], room, floats * sizeof *room,
                   DP_CUDA_TO_DEVICE, e->device.compute));
    return dp_cuda_wait(&e->device, e->device.compute);
}

static dp_status put_angles(dp_engine *e)
{
    const dp_model_config *const config = &e->shape.model->config;
    const size_t floats = (size_t)config->context * config->head_width;
    dp_status status = DP_OK;
    float *const room = dp_alloc(floats, sizeof *room);
    if (room == NULL) {
        return DP_NOMEM;
    }
    for (int kind = DP_ROPE_NONE + 1; kind < DP_ROPE_KINDS && status == DP_OK; kind++) {
        if (e->net.angles[kind] != NULL) {
            status = put_angles_of(e, (dp_rope_kind)kind, room, floats);
        }
    }
    dp_free(room);
    return status;
}

/* Where found algorithms of products are kept: the user's cache folder; "" where there is none. */
static void cache_folder(char out[CACHE_PATH_MAX])
{
    /* Nobody sets them meanwhile. */
    const char *const cache = getenv("XDG_CACHE_HOME"); /* NOLINT(concurrency-mt-unsafe) */
    const char *const home = getenv("HOME");            /* NOLINT(concurrency-mt-unsafe) */
    int size = 0;
    if (cache != NULL && cache[0] == '/') {
        size = snprintf(out, CACHE_PATH_MAX, "%s/dpnode", cache);
    } else if (home != NULL && home[0] == '/') {
        size = snprintf(out, CACHE_PATH_MAX, "%s/.cache/dpnode", home);
    }
    if (size <= 0 || size >= CACHE_PATH_MAX) {
        out[0] = '\0';
    }
}

static dp_status open_host(dp_engine *e, const dp_engine_setup *setup)
{
    const uint64_t blob_bytes = dp_codec_bytes_max_any(e->n);
    dp_buf_init(&e->blobs[0], blob_bytes);
    dp_buf_init(&e->blobs[1], blob_bytes);
    e->layers = dp_alloc(setup->model->config.layers, sizeof *e->layers);
    dp_optim_setup optim = dp_cuda_optim_setup(&e->shape);
    optim.seed = setup->seed;
    DP_TRY(dp_cuda_optimizer_open(&e->optim, &optim));
    return e->layers == NULL ? DP_NOMEM : DP_OK;
}

static dp_status open_card(dp_engine *e, const dp_engine_setup *setup, dp_why *why)
{
    char cache[CACHE_PATH_MAX];
    DP_TRY(dp_cuda_device_open(&e->device, dp_cuda_api_of(), setup->device, why));
    const dp_cuda_properties *const p = &e->device.properties;
    if (e->shape.type == DP_BF16 && !dp_cuda_has_bf16(p)) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "%s computes no bf16; take train.precision fp16 or fp32", p->name);
    }
    if (!setup->shared) {
        DP_TRY(dp_cuda_claim(p, &e->claim, why));
    }
    e->graphs.device = &e->device;
    DP_TRY(take_memory(e, why));
    cache_folder(cache);
    DP_TRY(dp_cuda_gemm_open(&e->gemm, &e->device, cache, why));
    e->net.device = &e->device;
    e->net.gemm = e->gemm;
    e->net.attention = dp_cuda_attention_path_for(p->major, p->minor);
    e->net.stream = e->device.compute;
    e->optim.device = &e->device;
    e->optim.gemm = e->gemm;
    DP_TRY(take_host_memory(e));
    DP_TRY(dp_cuda_optimizer_start(&e->optim));
    return put_angles(e);
}

dp_status dp_cuda_create(dp_engine **out, const dp_engine_setup *setup, dp_why *why)
{
    if (setup->rows_max == 0 || (unsigned)setup->recompute >= DP_RECOMPUTE_STEPS) {
        return dp_why_set(why, DP_BADARG, "no rows, or no such step of the recompute ladder");
    }
    if (setup->parts > DP_PROCESS_BARRIER_PROCESSES_MAX ||
        (setup->part > 0 && setup->part >= setup->parts)) {
        return dp_why_set(why, DP_BADARG, "no part %zu of %zu: %d at most", setup->part,
                          setup->parts, DP_PROCESS_BARRIER_PROCESSES_MAX);
    }
    if (setup->model->n_elements > DP_CODEC_ELEMENTS_MAX || setup->rows_max > DP_GPT_ROWS_MAX) {
        return dp_why_set(why, DP_TOOBIG, "a model of %zu numbers is too large: %zu at most",
                          setup->model->n_elements, DP_CODEC_ELEMENTS_MAX);
    }
    DP_TRY(check_parts(setup->model, why));
    dp_engine *const e = dp_alloc(1, sizeof *e);
    if (e == NULL) {
        return DP_NOMEM;
    }
    e->claim = -1;
    e->n = setup->model->n_elements;
    e->memory_max = setup->memory_max;
    e->shape = (dp_cuda_shape){.model = setup->model,
                               .type = dp_precision_of_kind(setup->precision),
                               .optimizer = setup->optimizer,
                               .weights = setup->weights,
                               .alone = setup->alone,
                               .momentum = setup->momentum,
                               .recompute = setup->recompute,
                               .rows = setup->rows_max,
                               .part = setup->part,
                               .parts = setup->parts > 0 ? setup->parts : 1};
    dp_status status = open_host(e, setup);
    if (status == DP_OK) {
        status = open_card(e, setup, why);
    }
    if (status != DP_OK) {
        if (why != NULL && why->text[0] == '\0' && e->device.problem.text[0] != '\0') {
            DP_IGNORE(dp_why_set(why, status, "%s", e->device.problem.text));
        }
        dp_cuda_close(e);
        return status;
    }
    *out = e;
    return DP_OK;
}
