/* Parts of a gradient while backward goes on (bucket.h): in the last micro-batch of a batch each
 * part of the round is made of e and the gradient and encoded as soon as all of its terms are
 * there. The publication is made from the whole vector afterwards, as ever, and comes to the same
 * bytes unless the step is dropped or a record comes before it. */
#include "base/assert.h"
#include "compute/codec/bucket.h"
#include "compute/outer/part.h"
#include "compute/trainer/trainer_inside.h"

void dp_trainer_on_part(dp_trainer *t, const dp_part_cuts *cuts, dp_trainer_take_part take,
                        void *context)
{
    dp_trainer_early *const early = &t->early;
    early->cuts = (dp_part_cuts){.n = 0};
    if (cuts == NULL || !dp_trainer_has_gradients(t) ||
        (t->backend->capabilities & DP_CAN_TELL_FINAL) == 0) {
        return;
    }
    dp_assert(dp_part_cuts_good(cuts));
    early->cuts = *cuts;
    early->take = take;
    early->context = context;
}

/* a = e + g of the run at this element, encoded behind what the piece holds. */
static dp_status add_run(dp_trainer_early *early, size_t at, size_t length, dp_buf *piece)
{
    float a[DP_CODEC_RUN];
    for (size_t i = 0; i < length; i++) { /* As dp_trainer_gather has it, to the bit. */
        const float g = early->factor * early->gradients[at + i];
        a[i] = early->e[at + i] + g;
    }
    return dp_codec_append(&early->codec, a, at, length, piece);
}

static dp_status tell_part(dp_trainer_early *early, uint32_t part, size_t first, size_t last)
{
    dp_buf *const piece = &early->piece;
    size_t told = 0;
    dp_buf_clear(piece);
    DP_TRY(dp_codec_header_at(&early->codec, first, last - first, piece));
    for (size_t at = first, runs = 1; at < last; runs++) {
        const size_t length = last - at < DP_CODEC_RUN ? last - at : (size_t)DP_CODEC_RUN;
        DP_TRY(add_run(early, at, length, piece));
        at += length;
        if (runs % DP_EARLY_RUNS == 0 || at == last) {
            early->take(early->context, part, told, dp_buf_view(piece), at == last);
            told += piece->size;
            dp_buf_clear(piece);
        }
    }
    return DP_OK;
}

/* A dp_bucket_take. The publication reports a part that cannot be encoded. */
static void take_bucket(void *context, size_t index, size_t first, size_t last)
{
    dp_trainer_early *const early = context;
    if (!early->failed && last > first) {
        early->failed = tell_part(early, (uint32_t)index, first, last) != DP_OK;
    }
}

/* A dp_backend_final. */
static void tell_final(void *context, const float *gradients, const float *e, size_t first)
{
    dp_trainer_early *const early = context;
    dp_buckets buckets = {
        .starts = early->starts, .left = early->left, .take = take_bucket, .context = early};
    early->gradients = gradients;
    early->e = e; /* No step changes it. */
    dp_buckets_final(&buckets, first);
    early->left = buckets.left;
}

static dp_status place_parts(dp_trainer_early *early, size_t n)
{
    for (uint32_t p = 0; p < early->cuts.n; p++) {
        dp_part_place place;
        DP_TRY(dp_part_place_of(dp_part_range_of(&early->cuts, p), n, &place));
        early->starts[p] = place.first;
    }
    early->starts[early->cuts.n] = n;
    return DP_OK;
}

dp_status dp_trainer_tell_parts(dp_trainer *t, float loss_scale)
{
    dp_trainer_early *const early = &t->early;
    if (early->cuts.n == 0) {
        return DP_OK;
    }
    DP_TRY(place_parts(early, t->n));
    early->codec = dp_trainer_codec(t, false, 0);
    early->factor = 1.0F / loss_scale;
    early->left = early->cuts.n;
    early->failed = false;
    t->backend->on_final(t->engine, tell_final, DP_VECTOR_E, early);
    return DP_OK;
}
