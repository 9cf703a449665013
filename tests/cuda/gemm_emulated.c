/* Products of the emulated build: the plain kernel for all. */
#include "tests/cuda/gemm_emulated.h"

#include "base/alloc.h"
#include "compute/cuda/gemm.h"

struct dp_cuda_gemm {
    dp_cuda_device *device;
    void *workspace; /* that nothing uses; NULL: none */
};

static size_t workspace_bytes;

void gemm_emulated_takes(size_t bytes)
{
    workspace_bytes = bytes;
}

size_t dp_cuda_gemm_bytes(void)
{
    return workspace_bytes;
}

size_t dp_cuda_gemm_room(void)
{
    return workspace_bytes;
}

dp_status dp_cuda_gemm_open(dp_cuda_gemm **out, dp_cuda_device *device, const char *cache,
                            dp_why *why)
{
    (void)cache;
    (void)why;
    dp_cuda_gemm *const gemm = dp_alloc(1, sizeof *gemm);
    if (gemm == NULL) {
        return DP_NOMEM;
    }
    gemm->device = device;
    if (workspace_bytes > 0) {
        const dp_status status = DP_CUDA(device, device_alloc, &gemm->workspace, workspace_bytes);
        if (status != DP_OK) {
            dp_free(gemm);
            return status;
        }
    }
    *out = gemm;
    return DP_OK;
}

void dp_cuda_gemm_close(dp_cuda_gemm *gemm)
{
    if (gemm != NULL && gemm->workspace != NULL) {
        dp_cuda_device_free(gemm->device, gemm->workspace);
    }
    dp_free(gemm);
}

dp_status dp_cuda_gemm_run(dp_cuda_gemm *gemm, const dp_cuda_product *product, cudaStream_t stream)
{
    return DP_CUDA_RUN(gemm->device, dp_cuda_gemm_plain(product, stream));
}
