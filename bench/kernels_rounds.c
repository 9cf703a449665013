/* The kernels of a round on a card: a vector of parameters is encoded by every codec, then the blob
 * of the standard codec is settled and applied. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "bench/kernels_rig.h"
#include "compute/cuda/codecs_host.h"
#include "compute/cuda/outer.h"

enum { ITEMS = 8, NAME_MAX = 32 };

/* The numbers that kernels return for an encoding. */
typedef struct news {
    uint64_t bytes;
    uint32_t bad;
    uint32_t padding;
} news;

/* The blob is at D_WIDE; its header is never written, because no kernel reads it. Slots and offsets
 * lie in tensors that the steps no longer need. */
static dp_cuda_encoding encoding_of(const rig *r)
{
    news *const told = r->at[RIG_NEWS];
    return (dp_cuda_encoding){.out = (uint8_t *)r->at[RIG_D_WIDE] + DP_CODEC_HEADER_BYTES,
                              .bytes = &told->bytes,
                              .bad = &told->bad,
                              .slots = r->at[RIG_QKV],
                              .offsets = r->at[RIG_D_QKV]};
}

static dp_status encode(const rig *r, cudaStream_t stream)
{
    const dp_cuda_blob options = dp_cuda_blob_of(&r->codec);
    const dp_cuda_encoding to = encoding_of(r);
    return dp_cuda_encode(rig_floats(r, RIG_WIDE), rig_parameters(r), &options, &to, stream);
}

static dp_cuda_blob blob_of(const rig *r)
{
    dp_cuda_blob blob = dp_cuda_blob_of(&r->codec);
    blob.bytes = r->at[RIG_D_WIDE];
    blob.runs = r->at[RIG_D_QKV];
    return blob;
}

static dp_status settle(const rig *r, cudaStream_t stream)
{
    const dp_cuda_blob blob = blob_of(r);
    return dp_cuda_settle(rig_floats(r, RIG_QKV), rig_floats(r, RIG_WIDE), rig_parameters(r), &blob,
                          1U << 16, 0.95F, stream);
}

static dp_status apply(const rig *r, cudaStream_t stream)
{
    news *const told = r->at[RIG_NEWS];
    dp_cuda_items items = {.count = ITEMS};
    for (size_t i = 0; i < ITEMS; i++) {
        items.blobs[i] = blob_of(r);
        items.f[i] = 1.0F / ITEMS;
    }
    return dp_cuda_outer_plain(rig_floats(r, RIG_QKV), rig_parameters(r), &items, 1.0F, &told->bad,
                               stream);
}

/* Times an encoding; *payload: bytes that it wrote. */
static dp_status run_codec(rig *r, dp_codec_kind kind, double *payload)
{
    const news nothing = {0};
    char name[NAME_MAX];
    news told;
    float ms;
    r->codec = dp_codec_default(kind);
    snprintf(name, sizeof name, "encode %s", dp_codec_name(kind));
    DP_TRY(rig_put(r, RIG_NEWS, &nothing, sizeof nothing));
    if (!rig_wants(r, name)) {
        return DP_OK;
    }
    DP_TRY(rig_time(r, encode, &ms));
    DP_TRY(rig_get(r, RIG_NEWS, &told, sizeof told));
    if (told.bad != 0) {
        return dp_why_set(&r->device.problem, DP_DIVERGED, "%s: the vector is not finite", name);
    }
    *payload = (double)told.bytes;
    rig_print(r, name, (double)ms, 4.0 * (double)rig_parameters(r) + *payload, 0.0);
    return DP_OK;
}

/* Offsets of runs count from the header on. */
static dp_status move_runs(rig *r)
{
    const size_t count = dp_cuda_runs(rig_parameters(r)) + 1;
    uint64_t *const runs = dp_alloc(count, sizeof *runs);
    if (runs == NULL) {
        return DP_NOMEM;
    }
    dp_status status = rig_get(r, RIG_D_QKV, runs, count * sizeof *runs);
    for (size_t i = 0; i < count && status == DP_OK; i++) {
        runs[i] += DP_CODEC_HEADER_BYTES;
    }
    if (status == DP_OK) {
        status = rig_put(r, RIG_D_QKV, runs, count * sizeof *runs);
    }
    dp_free(runs);
    return status;
}

static dp_status run_blob(rig *r)
{
    const double vector = 4.0 * (double)rig_parameters(r);
    double payload = 0.0;
    float ms;
    DP_TRY(run_codec(r, DP_CODEC_SPARSE, &payload));
    if (payload == 0.0) {
        return DP_OK;
    }
    DP_TRY(move_runs(r));
    DP_TRY(rig_time(r, settle, &ms));
    rig_print(r, "settle sparse", (double)ms, 2.0 * vector + payload, 0.0);
    DP_TRY(rig_time(r, apply, &ms));
    /* The same blob eight times: only the first read comes from memory. */
    rig_print(r, "apply 8 sparse", (double)ms, 2.0 * vector + payload, 0.0);
    return DP_OK;
}

dp_status rig_run_rounds(rig *r)
{
    dp_rng rng;
    double payload;
    dp_rng_init(&rng, 2);
    DP_TRY(rig_fill(r, RIG_WIDE, &rng)); /* Earlier steps have changed the contents. */
    size_t count = 0;
    const dp_codec_row *const rows = dp_codec_rows(&count);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].kind != DP_CODEC_SPARSE) {
            DP_TRY(run_codec(r, rows[i].kind, &payload));
        }
    }
    return run_blob(r);
}
