/* The memory plan of a training node: what a model takes there, which step of the recompute ladder
 * and which micro-batch fit into a budget, and if none does, which setting would. Only counts;
 * gpt.h and optim.h take what is counted here. */
#ifndef DP_COMPUTE_BACKEND_PLAN_H
#define DP_COMPUTE_BACKEND_PLAN_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/run/manifest.h"
#include "compute/model/gpt.h"

typedef struct dp_plan_request {
    /* Borrowed for the call: model, batch, precision, optimizer, weights, codec. */
    const dp_manifest *manifest;
    size_t threads;  /* at least 1 */
    uint64_t budget; /* bytes */
    /* bytes of shards in memory that no disk stands behind: memfds of the daemon; 0 where files are
     * mapped */
    uint64_t data;
    bool loaded;        /* they are there already: for who finds out the budget */
    uint32_t rows;      /* of the micro-batch; 0: the most that fit */
    uint32_t processes; /* of a team (team.h); 0: this one, without */
    uint32_t lanes;     /* of it */
    bool alone;         /* no anchors and no blobs: the trainer has no peers */
} dp_plan_request;

/* The largest micro-batch of a step of the ladder. */
typedef struct dp_plan_step {
    uint32_t rows;        /* 0: not even one sequence fits */
    uint64_t activations; /* with these rows (one, where none fits) */
    uint64_t total;
} dp_plan_step;

/* All sizes in bytes. */
typedef struct dp_plan {
    uint64_t budget;
    uint64_t parameters; /* numbers */
    uint64_t weights;    /* fp32, with the arena's padding */
    uint64_t gradients;  /* fp32 */
    uint64_t moments;    /* and masters and scratch of the optimizer */
    uint64_t anchors;    /* theta, e, F, a, what was published, and m */
    uint64_t packed;     /* the weights as the matrix products want them (gpt.h) */
    uint64_t data;       /* shards, as the request says */
    uint64_t buffers;    /* a state and two blobs on their way, batches, scratch of the threads */
    dp_plan_step steps[DP_RECOMPUTE_STEPS];
    dp_recompute recompute; /* chosen */
    dp_gpt_packs packs;     /* chosen; the steps above are with it */
    uint32_t rows;          /* sequences of the micro-batch; 0: nothing fits */
    uint64_t activations;
    uint64_t total;
} dp_plan;

/* Packs are shared where one sequence has 2,048 tokens, so that making them anew for it is a small
 * part, and where kept ones leave room for fewer sequences or for none. Chooses the first step of
 * the ladder, from norms on, whose micro-batch has tokens enough (2,048, or the whole batch); if
 * none has, the one with the largest micro-batch. Where the request names rows, the first with
 * which they fit. DP_BADARG: the model cannot exist. DP_TOOBIG: nothing fits: *plan is filled for
 * one sequence with everything recomputed, rows is 0, and why says what would fit. DP_NOMEM. */
DP_MUST dp_status dp_plan_make(dp_plan *plan, const dp_plan_request *request, dp_why *why);
/* One line of JSON: the fields above, "fits" and, if it does not, "why". DP_NOMEM, DP_TOOBIG. */
DP_MUST dp_status dp_plan_json(const dp_plan *plan, const dp_why *why, dp_buf *out);

/* "nothing", "norms", "attention", "layer". */
const char *dp_recompute_name(dp_recompute recompute);

#endif
