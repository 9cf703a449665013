#include "compute/cuda/graph.h"

static void forget(dp_cuda_graphs *graphs, dp_cuda_graph *graph)
{
    if (graph->exec != NULL && !graphs->device->hangs) {
        DP_IGNORE(graphs->device->api->graph_exec_close(graph->exec) != 0);
    }
    *graph = (dp_cuda_graph){0};
}

void dp_cuda_graphs_close(dp_cuda_graphs *graphs)
{
    for (size_t i = 0; i < DP_CUDA_GRAPHS_MAX; i++) {
        forget(graphs, &graphs->graphs[i]);
    }
}

/* That of the key; else a free one, or the one that was used least recently, and *is_new. */
static dp_cuda_graph *graph_of(dp_cuda_graphs *graphs, uint64_t key, bool *is_new)
{
    dp_cuda_graph *oldest = &graphs->graphs[0];
    for (size_t i = 0; i < DP_CUDA_GRAPHS_MAX; i++) {
        dp_cuda_graph *const graph = &graphs->graphs[i];
        if (graph->key == key) {
            *is_new = false;
            return graph;
        }
        oldest = graph->used < oldest->used ? graph : oldest;
    }
    forget(graphs, oldest);
    oldest->key = key;
    *is_new = true;
    return oldest;
}

static dp_status capture(dp_cuda_graphs *graphs, dp_cuda_graph *graph, dp_cuda_work work,
                         void *context)
{
    dp_cuda_device *const device = graphs->device;
    cudaGraph_t captured = NULL;
    DP_TRY(DP_CUDA(device, capture_begin, device->compute));
    device->capturing = true;
    dp_status status = work(context);
    device->capturing = false;
    /* Also where the work failed, so that the stream is itself again. */
    const int ended = device->api->capture_end(device->compute, &captured);
    if (status == DP_OK) {
        status = dp_cuda_check(device, ended, "capture_end", __FILE__, __LINE__);
    }
    if (status == DP_OK) {
        status = DP_CUDA(device, graph_prepare, &graph->exec, captured);
    }
    if (captured != NULL) {
        DP_IGNORE(device->api->graph_close(captured) != 0);
    }
    return status;
}

dp_status dp_cuda_graphs_run(dp_cuda_graphs *graphs, uint64_t key, dp_cuda_work work, void *context)
{
    bool is_new;
    dp_cuda_graph *const graph = graph_of(graphs, key, &is_new);
    graph->used = ++graphs->runs;
    if (is_new) {
        const dp_status status = work(context);
        if (status != DP_OK) {
            forget(graphs, graph);
        }
        return status;
    }
    if (graph->exec == NULL) {
        const dp_status status = capture(graphs, graph, work, context);
        if (status == DP_BUSY) {
            return work(context);
        }
        DP_TRY(status);
    }
    graphs->replays++;
    return DP_CUDA(graphs->device, graph_run, graph->exec, graphs->device->compute);
}
