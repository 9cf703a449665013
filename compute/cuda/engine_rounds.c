/* The calls of a round on blobs, on the card, to the bit. */
#include "compute/cuda/engine_rounds.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/cuda/codecs_host.h"

/* ---- Blobs on the card. */

static size_t offsets_bytes(const dp_engine *e)
{
    return (dp_cuda_runs(e->n) + 1) * sizeof(uint64_t);
}

static size_t sums_of(const dp_engine *e)
{
    return DP_CUDA_OUTER_SUMS * dp_cuda_runs(e->n);
}

/* Pieces of the blobs, one after another; with base NULL they are counted. */
static void carve(dp_cuda_blobs *b, dp_cuda_arena *arena, const dp_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        b->items.blobs[i].bytes = dp_cuda_carve(arena, views[i].size);
        b->items.blobs[i].runs = dp_cuda_carve(arena, offsets_bytes(b->engine));
    }
    b->sums = dp_cuda_carve(arena, sums_of(b->engine) * sizeof *b->sums);
}

static dp_status put(dp_engine *e, const void *to, const void *from, size_t bytes)
{
    /* The kernels read the values that are written here, and so have them const. */
    void *target;
    memcpy(&target, &to, sizeof target);
    DP_TRY(DP_CUDA(&e->device, copy, target, from, bytes, DP_CUDA_TO_DEVICE, e->device.compute));
    return dp_cuda_wait(&e->device, e->device.compute);
}

static dp_status put_blob(dp_cuda_blobs *b, size_t i, dp_view view, const dp_part_place *place)
{
    dp_engine *const e = b->engine;
    dp_cuda_blob *const blob = &b->items.blobs[i];
    const dp_cuda_blob room = *blob;
    dp_codec_cursor cursor;
    DP_TRY(dp_codec_open_at(&cursor, view, place->first, place->n));
    *blob = dp_cuda_blob_of(&cursor.codec);
    blob->bytes = room.bytes;
    blob->first = (uint32_t)(place->first / DP_CUDA_RUN);
    blob->end = blob->first + (uint32_t)dp_cuda_runs(place->n);
    DP_TRY(put(e, room.bytes, view.data, view.size));
    if (!dp_cuda_runs_differ(&cursor.codec)) {
        return DP_OK;
    }
    blob->runs = room.runs;
    DP_TRY(dp_cuda_find_runs(view, *place, b->offsets));
    return put(e, room.runs, b->offsets, (dp_cuda_runs(place->n) + 1) * sizeof(uint64_t));
}

dp_status dp_cuda_blobs_open(dp_cuda_blobs *b, dp_engine *e, const dp_consensus_items *items)
{
    const dp_part_place all = {.n = e->n};
    const size_t count = items->n;
    *b = (dp_cuda_blobs){.engine = e};
    if (count > DP_CUDA_ITEMS_MAX) {
        return DP_BADARG;
    }
    b->offsets = dp_alloc(1, offsets_bytes(e));
    b->host_sums = dp_alloc(sums_of(e), sizeof *b->host_sums);
    if (b->offsets == NULL || b->host_sums == NULL) {
        return DP_NOMEM;
    }
    dp_cuda_arena arena = {0};
    carve(b, &arena, items->blobs, count);
    DP_TRY(dp_cuda_lend(e, &b->memory, arena.used));
    b->memory_bytes = arena.used;
    arena = (dp_cuda_arena){.base = b->memory};
    carve(b, &arena, items->blobs, count);
    for (size_t i = 0; i < count; i++) {
        const dp_part_place *const place = items->places != NULL ? &items->places[i] : &all;
        DP_TRY(put_blob(b, i, items->blobs[i], place));
        b->items.f[i] = items->q == NULL ? 0.0F : dp_consensus_factor(items, i);
    }
    b->items.count = (uint32_t)count;
    return DP_OK;
}

void dp_cuda_blobs_close(dp_cuda_blobs *b)
{
    if (b->engine != NULL) {
        dp_cuda_give_back(b->engine, b->memory, b->memory_bytes);
    }
    dp_free(b->host_sums);
    dp_free(b->offsets);
    *b = (dp_cuda_blobs){0};
}

dp_status dp_cuda_blobs_sums(dp_cuda_blobs *b)
{
    dp_engine *const e = b->engine;
    const size_t bytes = sums_of(e) * sizeof *b->sums;
    DP_TRY(DP_CUDA(&e->device, copy, b->host_sums, b->sums, bytes, DP_CUDA_TO_HOST,
                   e->device.compute));
    return dp_cuda_wait(&e->device, e->device.compute);
}

/* ---- The calls. */

dp_status dp_cuda_e_settle(dp_engine *e, dp_view blob, uint32_t clip, float beta)
{
    dp_cuda_blobs blobs;
    const cudaStream_t stream = e->device.compute;
    dp_status status = dp_cuda_blobs_open(&blobs, e, &(dp_consensus_items){.blobs = &blob, .n = 1});
    if (status == DP_OK) {
        status = DP_CUDA_RUN(&e->device, dp_cuda_settle(dp_cuda_writing(e, DP_VECTOR_E),
                                                        dp_cuda_vector(e, DP_VECTOR_A), e->n,
                                                        &blobs.items.blobs[0], clip, beta, stream));
    }
    if (status == DP_OK) {
        status = dp_cuda_wait(&e->device, stream); /* The blob goes now. */
    }
    dp_cuda_blobs_close(&blobs);
    return status == DP_NOMEM ? dp_cuda_settle_by_host(e, blob, clip, beta) : status;
}

/* Of the step that comes, summed as consensus.c does. */
static dp_status measure(dp_cuda_blobs *blobs, float mu, dp_outer_sums *sums)
{
    dp_engine *const e = blobs->engine;
    *sums = (dp_outer_sums){0};
    DP_TRY(DP_CUDA_RUN(&e->device,
                       dp_cuda_outer_measure(dp_cuda_vector(e, DP_VECTOR_M), e->n, &blobs->items,
                                             mu, blobs->sums, e->device.compute)));
    DP_TRY(dp_cuda_blobs_sums(blobs));
    for (size_t run = 0; run < dp_cuda_runs(e->n); run++) {
        const double *const of_run = &blobs->host_sums[DP_CUDA_OUTER_SUMS * run];
        sums->along += of_run[0];
        sums->square += of_run[1];
        sums->kept += of_run[2];
    }
    return DP_OK;
}

static dp_status apply(dp_cuda_blobs *blobs, const dp_outer *outer, dp_outer_seen *seen)
{
    dp_engine *const e = blobs->engine;
    const cudaStream_t stream = e->device.compute;
    const float mu = (float)outer->mu * 0x1p-16F;
    float *const theta = dp_cuda_writing(e, DP_VECTOR_THETA);
    *seen = dp_outer_step(outer, NULL);
    DP_TRY(dp_cuda_news_clear(e));
    if (outer->mu == 0) {
        DP_TRY(DP_CUDA_RUN(&e->device, dp_cuda_outer_plain(theta, e->n, &blobs->items, seen->eta,
                                                           &e->news->bad, stream)));
    } else {
        dp_outer_sums sums;
        DP_TRY(measure(blobs, mu, &sums));
        *seen = dp_outer_step(outer, &sums);
        const dp_cuda_nesterov step = {
            .mu = mu, .eta = seen->eta, .in_m = seen->in_m, .once = seen->once};
        DP_TRY(DP_CUDA_RUN(&e->device,
                           dp_cuda_outer_nesterov(theta, dp_cuda_writing(e, DP_VECTOR_M), e->n,
                                                  &blobs->items, &step, &e->news->bad, stream)));
    }
    DP_TRY(dp_cuda_news_read(e));
    return e->host_news->bad != 0 ? DP_DIVERGED : DP_OK;
}

dp_status dp_cuda_e_apply(dp_engine *e, const dp_consensus_items *items, const dp_outer *outer,
                          dp_outer_seen *seen)
{
    dp_outer_seen own = dp_outer_step(outer, NULL);
    dp_cuda_blobs there;
    dp_assert(outer->mu == 0 || dp_cuda_vector(e, DP_VECTOR_M) != NULL);
    dp_status status = dp_cuda_blobs_open(&there, e, items);
    const bool fits = status != DP_NOMEM;
    if (status == DP_OK && items->n > 0) {
        status = apply(&there, outer, &own);
    }
    dp_cuda_blobs_close(&there);
    if (!fits) {
        return dp_cuda_apply_by_host(e, items, outer, seen);
    }
    if (status == DP_OK && seen != NULL) {
        *seen = own;
    }
    return status;
}

static dp_status mix(dp_cuda_blobs *blobs, double share, double *sum)
{
    dp_engine *const e = blobs->engine;
    double total = 0;
    DP_TRY(DP_CUDA_RUN(&e->device,
                       dp_cuda_mix(dp_cuda_writing(e, DP_VECTOR_F), dp_cuda_writing(e, DP_VECTOR_X),
                                   e->n, &blobs->items.blobs[0], &blobs->items.blobs[1], share,
                                   blobs->sums, e->device.compute)));
    DP_TRY(dp_cuda_blobs_sums(blobs));
    for (size_t run = 0; run < dp_cuda_runs(e->n); run++) {
        total += blobs->host_sums[run];
    }
    *sum = total;
    return DP_OK;
}

dp_status dp_cuda_e_mix(dp_engine *e, const dp_view blobs[2], double share, double *sum)
{
    dp_cuda_blobs there;
    dp_status status = dp_cuda_blobs_open(&there, e, &(dp_consensus_items){.blobs = blobs, .n = 2});
    const bool fits = status != DP_NOMEM;
    if (status == DP_OK) {
        status = mix(&there, share, sum);
    }
    dp_cuda_blobs_close(&there);
    return fits ? status : dp_cuda_mix_by_host(e, blobs, share, sum);
}
