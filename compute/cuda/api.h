/* The calls of CUDA's runtime that the plugin makes, as a table, so that tests can put a card in
 * its place that fails on demand or is none at all. Launches of kernels do not go through it
 * (launch.h), products neither (gemm.h).
 *
 * Every call returns 0 or CUDA's error number, and means what the call of the same name means
 * there. */
#ifndef DP_COMPUTE_CUDA_API_H
#define DP_COMPUTE_CUDA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

/* CUDA's numbers of the errors that get a sentence of their own. */
enum {
    DP_CUDA_NO_MEMORY = 2,
    DP_CUDA_DRIVER_TOO_OLD = 35,
    DP_CUDA_CARD_TAKEN = 46, /* a card in exclusive mode, and another process has it */
    DP_CUDA_NO_DEVICE = 100,
    DP_CUDA_NO_KERNEL = 209, /* built for other architectures */
    DP_CUDA_ECC = 214,       /* memory lost a bit that could not be mended */
    DP_CUDA_NOT_READY = 600,
    DP_CUDA_BAD_ADDRESS = 700,
    DP_CUDA_LAUNCH_TIMEOUT = 702,
    DP_CUDA_LAUNCH_FAILED = 719
};

typedef enum dp_cuda_way { DP_CUDA_TO_DEVICE, DP_CUDA_TO_HOST, DP_CUDA_ON_DEVICE } dp_cuda_way;

typedef struct dp_cuda_properties {
    char name[64];    /* "NVIDIA H200" */
    char bus[16];     /* "0000:1b:00.0", by which NVML finds the same card */
    uint8_t uuid[16]; /* of the card, whatever its index */
    uint64_t memory;  /* bytes */
    int major;        /* of its architecture: 9 and 0 of sm_90 */
    int minor;
} dp_cuda_properties;

typedef struct dp_cuda_api {
    int (*driver_version)(int *version); /* 13000 for 13.0; 0: there is none */
    int (*runtime_version)(int *version);
    int (*device_count)(int *count);
    int (*device_properties)(int index, dp_cuda_properties *out);
    int (*set_device)(int index);
    int (*mem_info)(size_t *free_bytes, size_t *total_bytes);

    int (*device_alloc)(void **out, size_t bytes);
    int (*device_free)(void *memory);
    int (*host_alloc)(void **out, size_t bytes); /* page-locked */
    int (*host_free)(void *memory);
    int (*copy)(void *to, const void *from, size_t bytes, dp_cuda_way way, cudaStream_t stream);
    int (*fill)(void *to, int byte, size_t bytes, cudaStream_t stream);

    int (*stream_open)(cudaStream_t *out,
                       bool low); /* low: its kernels run where others leave room */
    /* Work that is put on the stream after this call begins once the event has occurred. The host
     * does not wait. */
    int (*stream_wait)(cudaStream_t stream, cudaEvent_t event);
    int (*stream_close)(cudaStream_t stream);
    int (*event_open)(cudaEvent_t *out);
    int (*event_close)(cudaEvent_t event);
    int (*event_record)(cudaEvent_t event, cudaStream_t stream);
    int (*event_query)(cudaEvent_t event); /* DP_CUDA_NOT_READY while it is to come */
    int (*event_elapsed)(float *ms, cudaEvent_t from, cudaEvent_t to);

    int (*capture_begin)(cudaStream_t stream);
    int (*capture_end)(cudaStream_t stream, cudaGraph_t *out);
    int (*graph_prepare)(cudaGraphExec_t *out, cudaGraph_t graph);
    int (*graph_close)(cudaGraph_t graph);
    int (*graph_run)(cudaGraphExec_t graph, cudaStream_t stream);
    int (*graph_exec_close)(cudaGraphExec_t graph);

    int (*last_error)(void); /* of a launch; forgets it unless it is one that stays */
    const char *(*error_name)(int error);
    const char *(*error_text)(int error);
} dp_cuda_api;

/* The one of this build: cudart's in the plugin, the fake one's in tests. */
const dp_cuda_api *dp_cuda_api_of(void);

#ifdef __cplusplus
}
#endif

#endif
