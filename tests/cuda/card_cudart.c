/* card.h on a GPU. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "compute/cuda/attention.h"
#include "tests/cuda/card.h"

enum { SKIPPED = 77 };

static void must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        abort();
    }
}

static cudaStream_t stream;

cudaStream_t card_open(void)
{
    int count;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        fprintf(stderr, "there is no GPU: skipped\n");
        exit(SKIPPED);
    }
    if (stream == NULL) {
        must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    }
    return stream;
}

bool card_has_warpgroups(void)
{
    int major;
    int minor;
    (void)card_open();
    must(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "an attribute");
    must(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), "an attribute");
    return dp_cuda_attention_path_for(major, minor) == DP_ATTENTION_WGMMA;
}

void *card_put(const void *bytes, size_t size)
{
    void *at;
    (void)card_open(); /* Skips where there is no card. */
    must(cudaMalloc(&at, size > 0 ? size : 1), "cudaMalloc");
    if (bytes != NULL) {
        must(cudaMemcpy(at, bytes, size, cudaMemcpyHostToDevice), "cudaMemcpy");
    } else {
        must(cudaMemset(at, 0xff, size), "cudaMemset");
    }
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); /* Launches are on another stream. */
    return at;
}

void card_get(const void *card, void *bytes, size_t size)
{
    must(cudaDeviceSynchronize(), "a kernel");
    must(cudaMemcpy(bytes, card, size, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

void card_free(void *card)
{
    must(cudaFree(card), "cudaFree");
}

void card_order(uint64_t seed)
{
    (void)seed;
}
