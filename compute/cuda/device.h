/* One card and the way to talk to it: whether it will do, its stream, waiting with an end, and the
 * sentence of whatever fails. Knows no model and owns no tensor (memory.h).
 *
 * Every call of CUDA goes through DP_CUDA, which names the call, the place and CUDA's own words.
 * Errors of a device stay: the context is spent, so after the first one every further call fails at
 * once with the same sentence, and only close may follow. On a card that hangs, calls that free
 * something would wait in the driver without an end: so nothing of CUDA's or cuBLASLt's is freed
 * then, and the end of the process does it. One thread at a time, whichever: CUDA
 * keeps the current card per thread, so each call first sees to it that it is this one. */
#ifndef DP_COMPUTE_CUDA_DEVICE_H
#define DP_COMPUTE_CUDA_DEVICE_H

#include "base/status.h"
#include "compute/backend/backend.h"
#include "compute/cuda/api.h"

enum {
    DP_CUDA_DEVICES_MAX = 64,
    /* The card hangs: longer than any micro-batch, of which one row in fp32 of a very long context
     * takes minutes on an old card. The processes of a group wait longer for each other. */
    DP_CUDA_WAIT_MS = 600 * 1000,
    DP_CUDA_ARCH_MIN = 75, /* Turing: the first whose tensor cores the kernels know */
    DP_CUDA_ARCH_BF16 = 80 /* Ampere: the first that computes bf16 */
};

typedef struct dp_cuda_device {
    const dp_cuda_api *api;
    int index;
    dp_cuda_properties properties;
    cudaStream_t compute; /* all but encodings */
    /* of low priority: an encoding, beside the steps that follow it; gradients on their way to the
     * host, beside the rest of backward */
    cudaStream_t side;
    cudaEvent_t done;               /* of dp_cuda_wait */
    cudaEvent_t before;             /* event on the compute stream that the side stream waits for */
    cudaEvent_t encoded;            /* the end of the encoding under way */
    uint32_t wait_ms;               /* DP_CUDA_WAIT_MS, unless a test says less */
    bool (*is_over)(void *context); /* polled while waiting; NULL: not polled (link.h) */
    void *is_over_context;
    bool lost;      /* a call failed in a way that stays */
    bool hangs;     /* lost because it did not answer in time */
    bool capturing; /* work on the compute stream becomes a graph (graph.h) */
    dp_why problem; /* of the last call that failed, also for a lack of memory */
} dp_cuda_device;

bool dp_cuda_has_bf16(const dp_cuda_properties *properties);
/* Cards that the driver shows; 0 with a sentence: no driver, one too old, no card. */
uint32_t dp_cuda_devices(const dp_cuda_api *api, dp_why *why);
/* Name, memory, heat and power of one. Opens no context, unless NVML does not tell the memory that
 * is free: a process that looks at cards of others must take none of theirs. */
DP_MUST dp_status dp_cuda_device_look(const dp_cuda_api *api, uint32_t index, dp_device *out,
                                      dp_why *why);
/* Bytes of the card that this process could take, and of all. Opens its context, so that they are
 * without it. Statuses of dp_cuda_device_open. */
DP_MUST dp_status dp_cuda_device_room(const dp_cuda_api *api, uint32_t index, uint64_t *room,
                                      uint64_t *total, dp_why *why);
/* DP_BADARG: no such card; DP_UNSUPPORTED: its architecture; DP_BUSY: another process has it for
 * itself; DP_IO. Each with a sentence. dp_cuda_device_close may follow in every case. */
DP_MUST dp_status dp_cuda_device_open(dp_cuda_device *device, const dp_cuda_api *api,
                                      uint32_t index, dp_why *why);
void dp_cuda_device_close(dp_cuda_device *device);
/* Memory of device_alloc, unless the card hangs. */
void dp_cuda_device_free(const dp_cuda_device *device, void *memory);

/* All that was put on the stream is done. DP_IO: something failed on the way, or it is not done in
 * time. */
DP_MUST dp_status dp_cuda_wait(dp_cuda_device *device, cudaStream_t stream);
/* The same for work before an event that was recorded. */
DP_MUST dp_status dp_cuda_wait_for(dp_cuda_device *device, cudaEvent_t event);
/* *came: the recorded event has come. Does not wait. DP_IO. */
DP_MUST dp_status dp_cuda_has_come(dp_cuda_device *device, cudaEvent_t event, bool *came);
/* After a launcher: DP_IO becomes the sentence of the launch that failed, others pass through. */
DP_MUST dp_status dp_cuda_launch_status(dp_cuda_device *device, dp_status status, const char *what);
/* Handles an error of DP_CUDA. DP_OK for 0; DP_NOMEM: no memory on the card, which does not last;
 * DP_IO. */
DP_MUST dp_status dp_cuda_check(dp_cuda_device *device, int error, const char *call,
                                const char *file, int line);

/* From here on CUDA's calls of this thread go to this card; costs a comparison where they do
 * already. Before calls past DP_CUDA. */
void dp_cuda_here(const dp_cuda_device *device);

/* DP_CUDA(device, copy, to, from, bytes, way, stream): the call of api.h, as a status. */
#define DP_CUDA(device, call, ...)                                                                 \
    ((device)->lost                                                                                \
         ? DP_IO                                                                                   \
         : (dp_cuda_here(device),                                                                  \
            dp_cuda_check((device), (device)->api->call(__VA_ARGS__), #call, __FILE__, __LINE__)))
/* DP_CUDA_RUN(device, dp_cuda_add(...)): a launcher's status, with the sentence of what failed. */
#define DP_CUDA_RUN(device, launcher)                                                              \
    ((device)->lost                                                                                \
         ? DP_IO                                                                                   \
         : (dp_cuda_here(device), dp_cuda_launch_status((device), (launcher), #launcher)))

#endif
