/* The engine of backend.h on a card: the layout of its memory, and the calls of the table in the
 * files engine_*.c. plugin.c puts them into the table. Private to these.
 *
 * One block of the card holds everything: weights, gradients, the work buffers of a round, the
 * optimizer's state and the net. Where it does not fit, fewer rows go at a time (step then takes a
 * batch in parts), then the ladder goes up; only then create gives up. Buffers that the host reads
 * or fills lie in page-locked memory, which is allocated when it is first asked for; copies of
 * vectors that nothing computes beside lie in other memory where there is none of it. */
#ifndef DP_COMPUTE_CUDA_ENGINE_H
#define DP_COMPUTE_CUDA_ENGINE_H

#include "base/assert.h"
#include "compute/backend/backend.h"
#include "compute/cuda/engine_optim.h"
#include "compute/cuda/graph.h"
#include "compute/cuda/link.h"
#include "compute/cuda/net.h"
#include "compute/machine/process_barrier.h"

/* The settings that determine the memory of an engine. */
typedef struct dp_cuda_shape {
    const dp_model *model;
    dp_precision type;
    dp_optim_kind optimizer;
    dp_weights_kind weights;
    bool alone;
    bool momentum;
    dp_recompute recompute;
    size_t rows;
    size_t part; /* of parts, of which there is at least one */
    size_t parts;
} dp_cuda_shape;

/* Of one small block that kernels write and the host reads. */
typedef struct dp_cuda_news {
    double sum;
    uint64_t bytes; /* of an encoding */
    uint32_t bad;   /* some result was not finite */
    uint32_t padding;
} dp_cuda_news;

/* The encoding under way, on the side stream. Its staging in page-locked memory is a whole blob and
 * a whole vector, so that the card writes without a host thread that empties it meanwhile. */
typedef struct dp_cuda_publication {
    bool begun; /* and not taken */
    bool there; /* made by the host, in blobs: nothing is under way */
    dp_vector from;
    size_t header; /* bytes of it before the payload */
    size_t room;   /* for the payload */
    void *scratch; /* of the card, for the time of the encoding */
    size_t scratch_bytes;
} dp_cuda_publication;

/* Page-locked, grows to the largest blob asked for. */
typedef struct dp_cuda_stage {
    uint8_t *bytes;
    size_t size;
} dp_cuda_stage;

enum { DP_CUDA_MIRRORS = 2 + DP_OPTIM_VECTORS_MAX };

struct dp_engine {
    dp_cuda_shape shape;
    dp_cuda_device device;
    int claim;          /* of the card (claim.h); -1: none */
    dp_cuda_link *link; /* of the other parts' engines; NULL: none */
    dp_cuda_gemm *gemm;
    dp_cuda_graphs graphs;
    dp_cuda_net net;
    dp_cuda_layer *layers; /* owned */
    size_t n;              /* elements of every vector */
    uint64_t memory_max;   /* of dp_engine_setup */
    uint64_t held;         /* bytes at memory, and those lent */
    void *memory;          /* of the card: all that follows up to news, and the net's buffers */
    /* bytes of it that begin as 0; buffers of the net are written before they are read */
    size_t zeroed;

    float *vectors[DP_VECTORS]; /* NULL: there is none; alone: theta is x */
    float *grads;
    float *staging; /* values from other parts' engines, until they are added; NULL: none */
    void *typed;    /* weights of the type; NULL with fp32, where they are the vector itself */
    const float *typed_of; /* the vector that typed is of; NULL: of none as it is now */
    dp_cuda_news *news; /* two: of the calls on the compute stream, of the encoding on the other */

    dp_cuda_optimizer optim;
    float *mirror;       /* n floats of the host (dp_cuda_mirror); NULL: not asked for yet */
    float *mirror_other; /* the same, where two are needed at once, and of gradients */
    float *mirror_state[DP_OPTIM_VECTORS_MAX]; /* the same, of the optimizer's vectors */
    void *plain[DP_CUDA_MIRRORS]; /* those of these mirrors that are not page-locked; owned */
    uint32_t *host_batch;         /* page-locked: tokens, then targets, of rows_max rows */
    float *host_losses;           /* page-locked: of as many tokens */
    float *host_scale;            /* page-locked: one */
    dp_cuda_news *host_news;      /* the same two */
    dp_cuda_publication publication;
    dp_cuda_stage stages[2]; /* blobs of a and of F, lent */
    float *mirror_taken;     /* n floats of the host, page-locked: the vector with its blob */
    dp_buf blobs[2];         /* the same blobs where the host makes them; headers */
};

/* Bytes of the card by their use. */
typedef struct dp_cuda_bytes {
    uint64_t weights; /* x and its typed copy */
    uint64_t gradients;
    uint64_t moments;
    uint64_t anchors;
    uint64_t buffers; /* workspace of products */
    uint64_t activations;
    uint64_t total;
} dp_cuda_bytes;

dp_cuda_bytes dp_cuda_bytes_of(const dp_cuda_shape *shape);
/* Of the optimizer, without its seed. */
static inline dp_optim_setup dp_cuda_optim_setup(const dp_cuda_shape *shape)
{
    return (dp_optim_setup){.model = shape->model,
                            .kind = shape->optimizer,
                            .weights = shape->weights,
                            .part = shape->part,
                            .parts = shape->parts};
}

/* ---- engine.c */

dp_status dp_cuda_plan(uint32_t index, const dp_plan_request *request, dp_plan *plan, dp_why *why);
dp_status dp_cuda_create(dp_engine **out, const dp_engine_setup *setup, dp_why *why);
void dp_cuda_close(dp_engine *engine);

/* ---- engine_memory.c */

/* Takes the pieces from the arena, or counts them. */
void dp_cuda_engine_carve(dp_engine *e, dp_cuda_arena *arena);
/* Where v is; NULL: there is none. */
static inline float *dp_cuda_vector(const dp_engine *e, dp_vector v)
{
    return e->vectors[v];
}
/* Call before a write to v: marks results made from it as old. Not for a vector that is being
 * encoded. */
static inline float *dp_cuda_writing(dp_engine *e, dp_vector v)
{
    dp_assert(!e->publication.begun || e->publication.from != v);
    if (e->typed_of == e->vectors[v]) {
        e->typed_of = NULL;
    }
    return e->vectors[v];
}
/* Memory of the card for a while, within memory_max. DP_NOMEM, DP_IO. give_back: accepts NULL. */
DP_MUST dp_status dp_cuda_lend(dp_engine *e, void **memory, size_t bytes);
void dp_cuda_give_back(dp_engine *e, void *memory, size_t bytes);
/* n floats of the host, once: page-locked, or where there is no such memory any other. mirror: of
 * e, but not mirror_taken. DP_NOMEM, DP_IO. */
DP_MUST dp_status dp_cuda_mirror(dp_engine *e, float **mirror);
/* Page-locked ones, once. DP_NOMEM, DP_IO. */
DP_MUST dp_status dp_cuda_mirror_locked(dp_engine *e, float **mirror);
/* dp_cuda_mirror for a call of backend.h that has no status: where there is no memory at all the
 * device is lost, with a sentence. */
DP_MUST bool dp_cuda_has_mirror(dp_engine *e, float **mirror);
/* Of both, and any other page-locked memory; accepts NULL. */
void dp_cuda_mirror_free(dp_engine *e, void *host);
/* n floats between card and host, done when it returns. */
DP_MUST dp_status dp_cuda_fetch(dp_engine *e, float *to, const float *from);
DP_MUST dp_status dp_cuda_put(dp_engine *e, float *to, const float *from);
/* Clears news before the kernels that write it, and reads it after them. */
DP_MUST dp_status dp_cuda_news_clear(dp_engine *e);
DP_MUST dp_status dp_cuda_news_read(dp_engine *e);

/* ---- engine_parts.c */

/* Of the card, for values that other engines send. */
size_t dp_cuda_stage_bytes(const dp_cuda_shape *shape);
extern const dp_backend_parts dp_cuda_parts;

/* ---- engine_encode.c */

/* Before closing: waits for an encoding under way and gives back its memory. */
void dp_cuda_encode_forget(dp_engine *e);

/* ---- engine_vectors.c, engine_train.c, engine_encode.c, engine_rounds.c: as backend.h says. */

dp_status dp_cuda_e_init(dp_engine *e, uint64_t seed);
dp_status dp_cuda_e_load(dp_engine *e, dp_vector to, dp_view bytes);
const float *dp_cuda_e_values(dp_engine *e, dp_vector from);
dp_status dp_cuda_e_zero(dp_engine *e, dp_vector to);
dp_status dp_cuda_e_copy(dp_engine *e, dp_vector to, dp_vector from);
dp_status dp_cuda_e_add(dp_engine *e, dp_vector to, dp_vector from);
dp_status dp_cuda_e_subtract(dp_engine *e, dp_vector to, dp_vector from);
dp_status dp_cuda_e_scale(dp_engine *e, dp_vector to, uint32_t lambda);
dp_status dp_cuda_e_snapshot(dp_engine *e, dp_vector to, dp_vector feedback, dp_vector from);

dp_status dp_cuda_e_reset(dp_engine *e);
dp_status dp_cuda_e_drop(dp_engine *e);
dp_status dp_cuda_e_step(dp_engine *e, const dp_gpt_batch *batch, float scale, double *loss_sum);
const float *dp_cuda_e_gradients(dp_engine *e);
dp_status dp_cuda_e_norm(dp_engine *e, double *norm);
dp_status dp_cuda_e_update(dp_engine *e, const dp_optim_options *options, double norm);
size_t dp_cuda_e_lend_state(dp_engine *e, dp_optim_vector out[DP_BACKEND_STATE_MAX]);
dp_status dp_cuda_e_take_state(dp_engine *e, uint64_t updates);
uint64_t dp_cuda_e_updates(const dp_engine *e);
dp_status dp_cuda_e_loss(dp_engine *e, dp_vector weights, const dp_gpt_batch *batch,
                         double *loss_sum);
dp_status dp_cuda_e_logits(dp_engine *e, dp_vector weights, const uint32_t *tokens, size_t length,
                           float *logits);

dp_status dp_cuda_e_encode(dp_engine *e, dp_vector from, const dp_codec *codec, dp_view *blob);
dp_status dp_cuda_e_encode_start(dp_engine *e, dp_vector from, const dp_codec *codec);
dp_status dp_cuda_e_encode_ready(dp_engine *e, bool *ready);
dp_status dp_cuda_e_encode_take(dp_engine *e, dp_view *blob, const float **values);
dp_status dp_cuda_e_settle(dp_engine *e, dp_view blob, uint32_t clip, float beta);
dp_status dp_cuda_e_apply(dp_engine *e, const dp_consensus_items *items, const dp_outer *outer,
                          dp_outer_seen *seen);
dp_status dp_cuda_e_mix(dp_engine *e, const dp_view blobs[2], double share, double *sum);

#endif
