/* The engine of the CPU and the calls that its two files share. Private to backend_cpu*.c.
 *
 * Every call runs on the thread that opened the engine. */
#ifndef DP_COMPUTE_BACKEND_BACKEND_CPU_INSIDE_H
#define DP_COMPUTE_BACKEND_BACKEND_CPU_INSIDE_H

#include "compute/backend/backend.h"
#include "compute/backend/process_group.h"
#include "compute/model/gpt.h"
#include "compute/model/optim.h"

struct dp_engine {
    const dp_model *model; /* borrowed */
    dp_pool *pool;
    dp_gpt *gpt;                   /* NULL: the model is only a vector */
    dp_optim optim;                /* unused with a process group, which has its own */
    dp_process_group_engine *team; /* the process group's engine; NULL: this process alone */
    uint32_t rows;                 /* most rows of a batch of gpt */
    bool alone;
    size_t n;                 /* elements of every vector */
    float *owned[DP_VECTORS]; /* NULL: x of gpt, m without momentum, and all of them when alone */
    dp_buf blobs[2];          /* of a and of F */
    /* Encoded by encode_start and not yet taken; DP_VECTOR_NONE: none. The blob is complete. */
    dp_vector encoding;
};

/* True if the vector is the weights of gpt: x, and theta when alone. */
bool dp_backend_cpu_is_of_gpt(const dp_engine *e, dp_vector v);
/* The n elements of a vector, lent until the engine closes. */
const float *dp_backend_cpu_read(const dp_engine *e, dp_vector v);
/* The same to write to. Call it anew for each change: the call tells gpt and the process group that
 * the weights have changed. */
float *dp_backend_cpu_write(dp_engine *e, dp_vector v);

/* Entries of dp_backend (backend.h), in backend_cpu_rounds.c. */
DP_MUST dp_status dp_backend_cpu_encode(dp_engine *e, dp_vector from, const dp_codec *codec,
                                        dp_view *blob);
DP_MUST dp_status dp_backend_cpu_encode_start(dp_engine *e, dp_vector from, const dp_codec *codec);
DP_MUST dp_status dp_backend_cpu_encode_ready(dp_engine *e, bool *ready);
DP_MUST dp_status dp_backend_cpu_encode_take(dp_engine *e, dp_view *blob, const float **out);
DP_MUST dp_status dp_backend_cpu_settle(dp_engine *e, dp_view blob, uint32_t clip, float beta);
DP_MUST dp_status dp_backend_cpu_apply(dp_engine *e, const dp_consensus_items *items,
                                       const dp_outer *outer, dp_outer_seen *seen);
DP_MUST dp_status dp_backend_cpu_mix(dp_engine *e, const dp_view blobs[2], double share,
                                     double *sum);

#endif
