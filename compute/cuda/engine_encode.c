/* Encodings, on the stream of low priority: begun, then looked after while steps go on, then taken.
 * To the bit. */
#include <string.h>

#include "compute/cuda/codecs_host.h"
#include "compute/cuda/engine_rounds.h"

enum { SIDE = 1 /* of the two news */ };

/* Memory of the card, taken for the time of the encoding. */
static void carve(dp_cuda_encoding *to, dp_cuda_arena *arena, const dp_codec *codec, size_t n)
{
    const dp_cuda_blob options = dp_cuda_blob_of(codec);
    const size_t slots = dp_cuda_slot_bytes(&options, n);
    to->out = dp_cuda_carve(arena, dp_codec_bytes_max(codec, n) - DP_CODEC_HEADER_BYTES);
    to->slots = slots == 0 ? NULL : dp_cuda_carve(arena, slots);
    to->offsets = dp_cuda_carve(arena, (dp_cuda_runs(n) + 1) * sizeof *to->offsets);
}

static bool is_of_f(dp_vector from)
{
    return from == DP_VECTOR_F;
}

/* DP_NOMEM: the old buffers are gone too. */
static dp_status grow(dp_engine *e, dp_cuda_stage *stage, size_t size)
{
    void *memory;
    if (stage->size >= size) {
        return DP_OK;
    }
    if (stage->bytes != NULL) {
        dp_cuda_mirror_free(e, stage->bytes);
        *stage = (dp_cuda_stage){0};
    }
    DP_TRY(DP_CUDA(&e->device, host_alloc, &memory, size));
    *stage = (dp_cuda_stage){.bytes = memory, .size = size};
    return DP_OK;
}

/* The vector as the compute stream leaves it now, its blob, and the result for both. */
static dp_status put_on_stream(dp_engine *e, const dp_codec *codec, const dp_cuda_encoding *to)
{
    const dp_cuda_publication *const p = &e->publication;
    const dp_cuda_blob options = dp_cuda_blob_of(codec);
    const float *const a = dp_cuda_vector(e, p->from);
    uint8_t *const stage = e->stages[is_of_f(p->from)].bytes;
    dp_cuda_news *const news = e->news + SIDE;
    dp_cuda_device *const device = &e->device;
    const cudaStream_t side = device->side;
    DP_TRY(DP_CUDA(device, event_record, device->before, device->compute));
    DP_TRY(DP_CUDA(device, stream_wait, side, device->before));
    DP_TRY(DP_CUDA(device, fill, news, 0, sizeof *news, side));
    DP_TRY(DP_CUDA_RUN(device, dp_cuda_encode(a, e->n, &options, to, side)));
    DP_TRY(DP_CUDA(device, copy, e->host_news + SIDE, news, sizeof *news, DP_CUDA_TO_HOST, side));
    /* All that it may be: how much it is the host does not know yet. */
    DP_TRY(DP_CUDA(device, copy, stage + p->header, to->out, p->room, DP_CUDA_TO_HOST, side));
    DP_TRY(DP_CUDA(device, copy, e->mirror_taken, a, e->n * sizeof *a, DP_CUDA_TO_HOST, side));
    return DP_CUDA(device, event_record, device->encoded, side);
}

/* DP_NOMEM: no room on the card, or none that is page-locked. */
static dp_status begin(dp_engine *e, const dp_codec *codec, dp_view header)
{
    dp_cuda_publication *const p = &e->publication;
    dp_cuda_stage *const stage = &e->stages[is_of_f(p->from)];
    dp_cuda_encoding to = {.bad = &e->news[SIDE].bad, .bytes = &e->news[SIDE].bytes};
    dp_cuda_arena arena = {0};
    p->header = header.size;
    p->room = dp_codec_bytes_max(codec, e->n) - DP_CODEC_HEADER_BYTES;
    DP_TRY(dp_cuda_mirror_locked(e, &e->mirror_taken)); /* A stream writes it beside steps. */
    DP_TRY(grow(e, stage, p->header + p->room));
    memcpy(stage->bytes, header.data, header.size);
    carve(&to, &arena, codec, e->n);
    DP_TRY(dp_cuda_lend(e, &p->scratch, arena.used));
    p->scratch_bytes = arena.used;
    arena = (dp_cuda_arena){.base = p->scratch};
    carve(&to, &arena, codec, e->n);
    return put_on_stream(e, codec, &to);
}

static void give_back(dp_engine *e)
{
    dp_cuda_give_back(e, e->publication.scratch, e->publication.scratch_bytes);
    e->publication = (dp_cuda_publication){0};
}

void dp_cuda_encode_forget(dp_engine *e)
{
    if (e->publication.begun && !e->publication.there) {
        DP_IGNORE(dp_cuda_wait(&e->device, e->device.side)); /* A lost card has ended it. */
    }
    give_back(e);
}

dp_status dp_cuda_e_encode_start(dp_engine *e, dp_vector from, const dp_codec *codec)
{
    dp_buf *const own = &e->blobs[is_of_f(from)];
    dp_assert(from == DP_VECTOR_A || from == DP_VECTOR_F);
    dp_assert(!e->publication.begun);
    dp_buf_clear(own);
    DP_TRY(dp_codec_header(codec, e->n, own)); /* From here on the codec exists. */
    e->publication = (dp_cuda_publication){.from = from};
    dp_status status = begin(e, codec, dp_buf_view(own));
    if (status == DP_NOMEM) {
        give_back(e);
        dp_buf_clear(own);
        e->publication = (dp_cuda_publication){.from = from, .there = true};
        status = dp_cuda_encode_by_host(e, from, codec, own);
    }
    e->publication.begun = true;
    if (status != DP_OK) {
        dp_cuda_encode_forget(e);
    }
    return status;
}

dp_status dp_cuda_e_encode_ready(dp_engine *e, bool *ready)
{
    dp_assert(e->publication.begun);
    *ready = true;
    return e->publication.there ? DP_OK : dp_cuda_has_come(&e->device, e->device.encoded, ready);
}

static dp_status take(dp_engine *e, dp_view *blob, const float **values)
{
    const dp_cuda_publication *const p = &e->publication;
    const dp_cuda_news *const news = e->host_news + SIDE;
    if (p->there) {
        *blob = dp_buf_view(&e->blobs[is_of_f(p->from)]);
        *values = dp_cuda_e_values(e, p->from);
        return *values == NULL ? DP_IO : DP_OK;
    }
    DP_TRY(dp_cuda_wait(&e->device, e->device.side));
    /* A card that computes nonsense must not make the host read beyond. */
    if (news->bad != 0 || news->bytes > p->room) {
        return DP_DIVERGED;
    }
    *blob = dp_view_of(e->stages[is_of_f(p->from)].bytes, p->header + news->bytes);
    *values = e->mirror_taken;
    return DP_OK;
}

dp_status dp_cuda_e_encode_take(dp_engine *e, dp_view *blob, const float **values)
{
    dp_assert(e->publication.begun);
    const dp_status status = take(e, blob, values);
    /* Memory is given back while the card has nothing to do for us: that waits for all of it. */
    give_back(e);
    return status;
}

dp_status dp_cuda_e_encode(dp_engine *e, dp_vector from, const dp_codec *codec, dp_view *blob)
{
    const float *values;
    DP_TRY(dp_cuda_e_encode_start(e, from, codec));
    return dp_cuda_e_encode_take(e, blob, &values);
}
