/* Steps captured once and replayed: the work that a shape puts on the stream, as one launch. A
 * small model's step is hundreds of launches, each longer to make than to run. Knows no model: the
 * caller runs its work under a key, and this decides how.
 *
 * The first time the work runs as it is, because products look for their algorithm then; the second
 * time it is captured; from then on it is replayed, so it must read changing values from memory and
 * do the same for the same key. Work that finds, while it is captured (device->capturing), that it
 * must look for something once more says DP_BUSY: then it runs as it is, and is captured another
 * time. */
#ifndef DP_COMPUTE_CUDA_GRAPH_H
#define DP_COMPUTE_CUDA_GRAPH_H

#include <stdint.h>

#include "compute/cuda/device.h"

/* Shapes of one run: the numbers of rows of a micro-batch (trainer_steps.c has 13 at most), the
 * update, evaluations. Beyond that the oldest goes. */
enum { DP_CUDA_GRAPHS_MAX = 16 };

typedef struct dp_cuda_graph {
    uint64_t key;         /* 0: free */
    cudaGraphExec_t exec; /* NULL: run once, not captured yet */
    uint64_t used;        /* when, counted in runs */
} dp_cuda_graph;

typedef struct dp_cuda_graphs {
    dp_cuda_device *device; /* borrowed */
    uint64_t runs;
    uint64_t replays; /* of these; for tests */
    dp_cuda_graph graphs[DP_CUDA_GRAPHS_MAX];
} dp_cuda_graphs;

/* Puts something on the device's stream. */
typedef dp_status (*dp_cuda_work)(void *context);

/* key is not 0. Statuses of the work, DP_IO. */
DP_MUST dp_status dp_cuda_graphs_run(dp_cuda_graphs *graphs, uint64_t key, dp_cuda_work work,
                                     void *context);
/* Forgets all graphs, whose memory is no longer there. */
void dp_cuda_graphs_close(dp_cuda_graphs *graphs);

#endif
