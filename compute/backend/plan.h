/* The memory plan of a training node: the memory that a model needs, the step of the recompute
 * ladder and the micro-batch that fit into a budget, and if none does, settings that would. Only
 * counts; gpt.h and optim.h allocate the counted memory. */
#ifndef DP_COMPUTE_BACKEND_PLAN_H
#define DP_COMPUTE_BACKEND_PLAN_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/run/manifest.h"
#include "compute/model/gpt.h"

typedef struct dp_plan_request {
    /* Borrowed for the call: model, batch, precision, optimizer, weights, codec. Of a run of any
     * model only the vectors are counted; rows of its plan is 1 if they fit, and stands for
     * nothing. */
    const dp_manifest *manifest;
    size_t threads;  /* at least 1 */
    uint64_t budget; /* bytes */
    /* Of a card: percent of its memory that training may take, 1 to 100; 0: all that is free. Only
     * where budget is 0. The CPU's plan does not look at it. */
    uint32_t card_share;
    /* Bytes of shards in memory without a file behind them: memfds of the daemon; 0 for mapped
     * files. */
    uint64_t data;
    bool loaded;        /* the shards are in memory already (only to compute a budget) */
    uint32_t rows;      /* of the micro-batch; 0: the largest that fits */
    uint32_t processes; /* of a process group (process_group.h); 0: no group */
    uint32_t lanes;     /* gradient lanes of the group */
    bool alone;         /* standalone: no anchors and no blobs */
} dp_plan_request;

/* The largest micro-batch of a step of the ladder. */
typedef struct dp_plan_step {
    uint32_t rows;        /* 0: not even one sequence fits */
    uint64_t activations; /* with these rows; with one if none fits */
    uint64_t total;
} dp_plan_step;

/* All sizes in bytes. */
typedef struct dp_plan {
    uint64_t budget;
    uint64_t parameters; /* numbers */
    uint64_t weights;    /* fp32, with the arena's padding */
    uint64_t gradients;  /* fp32 */
    uint64_t moments;    /* with master weights and scratch of the optimizer */
    uint64_t anchors;    /* theta, e, F, a, the anchor, and m */
    uint64_t packed;     /* weights in the layout of the matrix products (gpt.h) */
    uint64_t base;       /* weights below adapters, in memory as their object is */
    uint64_t data;       /* shards, as the request says */
    uint64_t buffers;    /* a state and two blobs in transit, batches, scratch of the threads */
    /* Beside the trainer: the newest state, and the next one, or a vector that is published. */
    uint64_t daemon;
    dp_plan_step steps[DP_RECOMPUTE_STEPS];
    dp_recompute recompute; /* chosen */
    dp_gpt_packs packs;     /* chosen; the steps above are with it */
    uint32_t rows;          /* sequences of the micro-batch; 0: nothing fits */
    uint64_t activations;
    uint64_t total;
} dp_plan;

/* With adapters, packs are always shared: the base must not stand in memory twice. Else packs are
 * shared if a sequence has 2,048 tokens, so that packing again costs little, and if kept
 * packs would leave room for fewer sequences or none. Chooses the first step of the ladder, from
 * norms on, whose micro-batch has enough tokens (2,048, or the whole batch); if none has, the step
 * with the largest micro-batch. If the request names rows: the first step at which they fit.
 * DP_BADARG: the model is invalid. DP_TOOBIG: nothing fits; *plan is filled for one sequence with
 * everything recomputed, rows is 0, and why says which setting would fit. DP_NOMEM. */
DP_MUST dp_status dp_plan_make(dp_plan *plan, const dp_plan_request *request, dp_why *why);
/* One line of JSON: the fields above, "fits" and, if it does not, "why". DP_NOMEM, DP_TOOBIG. */
DP_MUST dp_status dp_plan_json(const dp_plan *plan, const dp_why *why, dp_buf *out);

/* "nothing", "norms", "attention", "layer". */
const char *dp_recompute_name(dp_recompute recompute);

#endif
