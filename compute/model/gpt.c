/* Opening, checking and the calls; the buffers are cut in gpt_memory.c, the arithmetic is in the
 * other gpt_*.c. */
#include "compute/model/gpt.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/model/gpt_decode_inside.h"

enum {
    SLICE_MIN = 24,        /* tokens */
    SLICE_STEP = 4,        /* rows that a table multiplies together beyond whole groups */
    SLICE_GROUP = 12,      /* rows of a group; that of every table divides it */
    SLICE_COST = 6,        /* rows that could be multiplied while a slice fetches its weights */
    ZERO_FLOATS = 1 << 18, /* of one task */
};

static dp_status check_options(const dp_gpt_options *options)
{
    if (options->rows_max == 0 || (unsigned)options->recompute >= DP_RECOMPUTE_STEPS ||
        (unsigned)options->precision >= DP_PRECISIONS || (unsigned)options->packs >= DP_GPT_PACKS) {
        return DP_BADARG;
    }
    return options->rows_max > DP_GPT_ROWS_MAX ? DP_TOOBIG : DP_OK;
}

size_t dp_gpt_bytes(const dp_model *model, const dp_gpt_options *options)
{
    if (check_options(options) != DP_OK) {
        return 0;
    }
    dp_gpt gpt = dp_gpt_setup(model, options);
    const size_t floats = dp_gpt_carve(&gpt, NULL) + DP_GPT_ALIGN_FLOATS;
    return sizeof gpt + model->config.layers * sizeof *gpt.layers + floats * sizeof(float);
}

dp_status dp_gpt_open_with(dp_gpt **out, const dp_model *model, size_t rows_max, dp_pool *pool,
                           const dp_ops *ops)
{
    return dp_gpt_open(
        out, model,
        &(dp_gpt_options){
            .rows_max = rows_max, .pool = pool, .recompute = DP_RECOMPUTE_NORMS, .ops = ops});
}

dp_status dp_gpt_open(dp_gpt **out, const dp_model *model, const dp_gpt_options *options)
{
    DP_TRY(check_options(options));
    if ((model->base != NULL) != (options->base != NULL)) {
        return DP_BADARG;
    }
    dp_gpt *gpt = dp_alloc(1, sizeof *gpt);
    if (gpt == NULL) {
        return DP_NOMEM;
    }
    *gpt = dp_gpt_setup(model, options);
    const size_t floats = dp_gpt_carve(gpt, NULL);
    gpt->layers = dp_alloc(model->config.layers, sizeof *gpt->layers);
    gpt->memory = dp_alloc(floats + DP_GPT_ALIGN_FLOATS, sizeof(float));
    if (gpt->layers == NULL || gpt->memory == NULL) {
        dp_gpt_close(gpt);
        return DP_NOMEM;
    }
    const size_t align = DP_GPT_ALIGN_FLOATS * sizeof(float);
    const size_t past = (uintptr_t)gpt->memory % align;
    const size_t carved =
        dp_gpt_carve(gpt, (float *)gpt->memory + (align - past) % align / sizeof(float));
    dp_assert(carved == floats);
    for (int kind = DP_ROPE_NONE + 1; kind < DP_ROPE_KINDS; kind++) {
        if (gpt->angles[kind] != NULL) {
            const dp_rope_turns turns = dp_model_turns(model, (dp_rope_kind)kind);
            dp_rope_angles(&turns, model->config.context, gpt->angles[kind]);
        }
    }
    *out = gpt;
    return DP_OK;
}

void dp_gpt_close(dp_gpt *gpt)
{
    if (gpt == NULL) {
        return;
    }
    dp_free(gpt->memory);
    dp_free(gpt->layers);
    dp_free(gpt);
}

const dp_model *dp_gpt_model(const dp_gpt *gpt)
{
    return gpt->trained;
}

const float *dp_gpt_params(const dp_gpt *gpt)
{
    return gpt->params;
}

float *dp_gpt_params_to_write(dp_gpt *gpt)
{
    gpt->weights = gpt->params;
    dp_gpt_packs_stale(gpt);
    return gpt->params;
}

void dp_gpt_look_at(dp_gpt *gpt, const float *params)
{
    const float *const wanted = params != NULL ? params : gpt->params;
    if (gpt->weights != wanted) {
        gpt->weights = wanted;
        dp_gpt_packs_stale(gpt);
    }
}

/* Some elements of the gradients. */
struct zeros {
    float *at;
    size_t count;
};

/* A piece of them: one thread alone would hold up the others for as long as memory takes. */
static void zero_task(void *ctx, size_t index, size_t worker)
{
    const struct zeros *zeros = ctx;
    (void)worker;
    const size_t first = index * ZERO_FLOATS;
    const size_t left = zeros->count - first;
    memset(zeros->at + first, 0, (left < ZERO_FLOATS ? left : ZERO_FLOATS) * sizeof *zeros->at);
}

static void zero(dp_gpt *gpt, size_t first, size_t last)
{
    struct zeros zeros = {gpt->grads + first, last - first};
    dp_pool_run(gpt->pool, (last - first + ZERO_FLOATS - 1) / ZERO_FLOATS, zero_task, &zeros);
}

float *dp_gpt_grads(dp_gpt *gpt)
{
    if (gpt->unwritten) {
        gpt->unwritten = false;
        zero(gpt, 0, gpt->trained->n_elements);
    }
    return gpt->grads;
}

void dp_gpt_grads_at(dp_gpt *gpt, float *grads)
{
    gpt->grads = grads;
    gpt->unwritten = false;
}

/* True if each gradient of the tensor is the sum of a product, which backward can write without a
 * read. */
static bool is_product(const dp_gpt *gpt, const dp_tensor *tensor)
{
    return tensor == dp_model_head(gpt->model) ||
           (tensor->n_dims == 2 && tensor->slot < DP_LAYER_SLOTS);
}

void dp_gpt_zero_grads(dp_gpt *gpt)
{
    const dp_model *const model = gpt->model;
    size_t first = 0;
    if (dp_gpt_adapts(gpt)) {
        zero(gpt, 0, gpt->trained->n_elements);
        return;
    }
    for (size_t i = 0; i < model->n_tensors; i++) {
        const dp_tensor *const tensor = &model->tensors[i];
        if (is_product(gpt, tensor)) {
            zero(gpt, first, tensor->offset);
            first = tensor->offset + tensor->elements;
        }
    }
    zero(gpt, first, model->n_elements);
    gpt->unwritten = true;
}

/* Inputs are below the vocabulary but for their marks. */
static dp_status check_inputs(const dp_gpt *gpt, const uint32_t *x)
{
    for (size_t i = 0; i < gpt->tokens; i++) {
        if (dp_token_of(x[i]) >= gpt->model->config.vocab) {
            return DP_BADARG;
        }
    }
    return DP_OK;
}

static dp_status check_targets(const dp_gpt *gpt, const uint32_t *y)
{
    for (size_t i = 0; i < gpt->tokens; i++) {
        if (y[i] >= gpt->model->config.vocab && y[i] != DP_TOKEN_NO_LOSS) {
            return DP_BADARG;
        }
    }
    return DP_OK;
}

/* The positions of a batch that has marks. */
static void find_positions(dp_gpt *gpt, const uint32_t *x)
{
    bool marked = false;
    for (size_t i = 0; i < gpt->tokens; i++) {
        const size_t in_row = i % gpt->batch.length;
        const bool begins = (x[i] & DP_TOKEN_BEGINS) != 0;
        gpt->positions_room[i] = begins || in_row == 0 ? 0 : gpt->positions_room[i - 1] + 1;
        marked = marked || (begins && in_row > 0);
    }
    gpt->positions = marked ? gpt->positions_room : NULL;
}

/* The cost of products on so many rows, in rows. */
static size_t cost_of(size_t rows)
{
    const size_t left = rows % SLICE_GROUP;
    const size_t tail = left == 0 || left > SLICE_STEP ? 0 : SLICE_GROUP - SLICE_STEP;
    return (rows + SLICE_GROUP - 1) / SLICE_GROUP * SLICE_GROUP - tail + SLICE_COST;
}

size_t dp_gpt_slice_of(size_t tokens, size_t threads)
{
    size_t best = SLICE_MIN;
    size_t best_cost = SIZE_MAX;
    for (size_t slice = DP_GPT_SLICE_MAX; slice >= SLICE_MIN; slice -= SLICE_STEP) {
        /* Equal slices in rounds of one per thread; the rest finds a thread that is idle, if there
         * is one. */
        const size_t whole = tokens / slice;
        const size_t rest = tokens % slice;
        size_t cost = (whole + threads - 1) / threads * cost_of(slice);
        cost += rest > 0 && whole % threads == 0 ? cost_of(rest) : 0;
        if (cost < best_cost) {
            best = slice;
            best_cost = cost;
        }
    }
    return best;
}

static dp_status take_batch(dp_gpt *gpt, const dp_gpt_batch *batch)
{
    if (batch->rows == 0 || batch->rows > gpt->rows_max || batch->length == 0 ||
        batch->length > gpt->model->config.context) {
        return DP_BADARG;
    }
    gpt->batch = *batch;
    gpt->tokens = batch->rows * batch->length;
    gpt->slice = dp_gpt_slice_of(gpt->tokens, dp_pool_threads(gpt->pool));
    DP_TRY(check_inputs(gpt, batch->x));
    find_positions(gpt, batch->x);
    return gpt->positions != NULL && gpt->cache != NULL ? DP_BADARG : DP_OK;
}

static dp_status sum_losses(const dp_gpt *gpt, double *loss_sum)
{
    double sum = 0.0;
    for (size_t i = 0; i < gpt->tokens; i++) {
        sum += (double)gpt->losses[i];
    }
    if (!isfinite(sum)) {
        return DP_DIVERGED;
    }
    *loss_sum = sum;
    return DP_OK;
}

dp_status dp_gpt_step(dp_gpt *gpt, const dp_gpt_batch *batch, float scale, double *loss_sum)
{
    DP_TRY(take_batch(gpt, batch));
    DP_TRY(check_targets(gpt, batch->y));
    if (!(scale > 0.0F) || !isfinite(scale)) {
        return DP_BADARG;
    }
    dp_gpt_look_at(gpt, NULL);
    gpt->scale = scale;
    gpt->backward = true;
    gpt->first_terms = gpt->unwritten;
    gpt->unwritten = false;
    dp_gpt_forward(gpt);
    dp_gpt_head(gpt);
    dp_gpt_backward(gpt);
    return sum_losses(gpt, loss_sum);
}

dp_status dp_gpt_loss(dp_gpt *gpt, const dp_gpt_batch *batch, double *loss_sum)
{
    DP_TRY(take_batch(gpt, batch));
    DP_TRY(check_targets(gpt, batch->y));
    gpt->scale = 0.0F;
    gpt->backward = false;
    dp_gpt_forward(gpt);
    dp_gpt_head(gpt);
    return sum_losses(gpt, loss_sum);
}

dp_status dp_gpt_logits(dp_gpt *gpt, const uint32_t *tokens, size_t length, float *logits)
{
    const dp_gpt_batch batch = {.x = tokens, .rows = 1, .length = length};
    DP_TRY(take_batch(gpt, &batch));
    gpt->backward = false;
    dp_gpt_forward(gpt);
    dp_gpt_head_last(gpt, logits);
    for (size_t i = 0; i < gpt->model->config.vocab; i++) {
        if (!isfinite(logits[i])) {
            return DP_DIVERGED;
        }
    }
    return DP_OK;
}
