#include <cuda_runtime_api.h>
#include <string.h>

#include "base/status.h"
#include "compute/cuda/api.h"

_Static_assert(DP_CUDA_NO_MEMORY == (int)cudaErrorMemoryAllocation, "CUDA's number");
_Static_assert(DP_CUDA_DRIVER_TOO_OLD == (int)cudaErrorInsufficientDriver, "CUDA's number");
_Static_assert(DP_CUDA_CARD_TAKEN == (int)cudaErrorDevicesUnavailable, "CUDA's number");
_Static_assert(DP_CUDA_NO_DEVICE == (int)cudaErrorNoDevice, "CUDA's number");
_Static_assert(DP_CUDA_NO_KERNEL == (int)cudaErrorNoKernelImageForDevice, "CUDA's number");
_Static_assert(DP_CUDA_ECC == (int)cudaErrorECCUncorrectable, "CUDA's number");
_Static_assert(DP_CUDA_NOT_READY == (int)cudaErrorNotReady, "CUDA's number");
_Static_assert(DP_CUDA_BAD_ADDRESS == (int)cudaErrorIllegalAddress, "CUDA's number");
_Static_assert(DP_CUDA_LAUNCH_TIMEOUT == (int)cudaErrorLaunchTimeout, "CUDA's number");
_Static_assert(DP_CUDA_LAUNCH_FAILED == (int)cudaErrorLaunchFailure, "CUDA's number");

static int driver_version(int *version)
{
    return (int)cudaDriverGetVersion(version);
}

static int runtime_version(int *version)
{
    return (int)cudaRuntimeGetVersion(version);
}

static int device_count(int *count)
{
    return (int)cudaGetDeviceCount(count);
}

static int device_properties(int index, dp_cuda_properties *out)
{
    struct cudaDeviceProp found;
    const cudaError_t error = cudaGetDeviceProperties(&found, index);
    if (error != cudaSuccess) {
        return (int)error;
    }
    *out = (dp_cuda_properties){
        .memory = found.totalGlobalMem, .major = found.major, .minor = found.minor};
    memcpy(out->name, found.name, sizeof out->name - 1);
    memcpy(out->uuid, &found.uuid, sizeof out->uuid);
    return (int)cudaDeviceGetPCIBusId(out->bus, (int)sizeof out->bus, index);
}

static int set_device(int index)
{
    return (int)cudaSetDevice(index);
}

static int mem_info(size_t *free_bytes, size_t *total_bytes)
{
    return (int)cudaMemGetInfo(free_bytes, total_bytes);
}

static int device_alloc(void **out, size_t bytes)
{
    return (int)cudaMalloc(out, bytes);
}

static int device_free(void *memory)
{
    return (int)cudaFree(memory);
}

static int host_alloc(void **out, size_t bytes)
{
    return (int)cudaMallocHost(out, bytes);
}

static int host_free(void *memory)
{
    return (int)cudaFreeHost(memory);
}

static int copy(void *to, const void *from, size_t bytes, dp_cuda_way way, cudaStream_t stream)
{
    static const enum cudaMemcpyKind kinds[] = {[DP_CUDA_TO_DEVICE] = cudaMemcpyHostToDevice,
                                                [DP_CUDA_TO_HOST] = cudaMemcpyDeviceToHost,
                                                [DP_CUDA_ON_DEVICE] = cudaMemcpyDeviceToDevice};
    return (int)cudaMemcpyAsync(to, from, bytes, kinds[way], stream);
}

static int fill(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    return (int)cudaMemsetAsync(to, byte, bytes, stream);
}

static int stream_open(cudaStream_t *out, bool low)
{
    int least = 0;
    int greatest = 0; /* in meaning; as a number it is the smaller */
    const cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (error != cudaSuccess) {
        return (int)error;
    }
    return (int)cudaStreamCreateWithPriority(out, cudaStreamNonBlocking, low ? least : greatest);
}

static int stream_wait(cudaStream_t stream, cudaEvent_t event)
{
    return (int)cudaStreamWaitEvent(stream, event, 0);
}

static int stream_close(cudaStream_t stream)
{
    return (int)cudaStreamDestroy(stream);
}

static int event_open(cudaEvent_t *out)
{
    return (int)cudaEventCreateWithFlags(out, cudaEventDefault);
}

static int event_close(cudaEvent_t event)
{
    return (int)cudaEventDestroy(event);
}

static int event_record(cudaEvent_t event, cudaStream_t stream)
{
    return (int)cudaEventRecord(event, stream);
}

static int event_query(cudaEvent_t event)
{
    const cudaError_t error = cudaEventQuery(event);
    if (error == cudaErrorNotReady) {
        /* CUDA keeps it as the last error, where the next launch would find it. */
        DP_IGNORE(cudaGetLastError() != cudaSuccess);
    }
    return (int)error;
}

static int event_elapsed(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    return (int)cudaEventElapsedTime(ms, from, to);
}

static int capture_begin(cudaStream_t stream)
{
    return (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
}

static int capture_end(cudaStream_t stream, cudaGraph_t *out)
{
    return (int)cudaStreamEndCapture(stream, out);
}

static int graph_prepare(cudaGraphExec_t *out, cudaGraph_t graph)
{
    return (int)cudaGraphInstantiateWithFlags(out, graph, 0);
}

static int graph_close(cudaGraph_t graph)
{
    return (int)cudaGraphDestroy(graph);
}

static int graph_run(cudaGraphExec_t graph, cudaStream_t stream)
{
    return (int)cudaGraphLaunch(graph, stream);
}

static int graph_exec_close(cudaGraphExec_t graph)
{
    return (int)cudaGraphExecDestroy(graph);
}

static int last_error(void)
{
    return (int)cudaGetLastError();
}

static const char *error_name(int error)
{
    return cudaGetErrorName((cudaError_t)error);
}

static const char *error_text(int error)
{
    return cudaGetErrorString((cudaError_t)error);
}

const dp_cuda_api *dp_cuda_api_of(void)
{
    static const dp_cuda_api cudart = {
        .driver_version = driver_version,
        .runtime_version = runtime_version,
        .device_count = device_count,
        .device_properties = device_properties,
        .set_device = set_device,
        .mem_info = mem_info,
        .device_alloc = device_alloc,
        .device_free = device_free,
        .host_alloc = host_alloc,
        .host_free = host_free,
        .copy = copy,
        .fill = fill,
        .stream_open = stream_open,
        .stream_wait = stream_wait,
        .stream_close = stream_close,
        .event_open = event_open,
        .event_close = event_close,
        .event_record = event_record,
        .event_query = event_query,
        .event_elapsed = event_elapsed,
        .capture_begin = capture_begin,
        .capture_end = capture_end,
        .graph_prepare = graph_prepare,
        .graph_close = graph_close,
        .graph_run = graph_run,
        .graph_exec_close = graph_exec_close,
        .last_error = last_error,
        .error_name = error_name,
        .error_text = error_text,
    };
    return &cudart;
}
