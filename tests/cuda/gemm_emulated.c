/* Products of the emulated build: the plain kernel for all. */
#include "base/alloc.h"
#include "compute/cuda/gemm.h"

struct dp_cuda_gemm {
    dp_cuda_device *device;
};

size_t dp_cuda_gemm_bytes(void)
{
    return 0;
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
    *out = gemm;
    return DP_OK;
}

void dp_cuda_gemm_close(dp_cuda_gemm *gemm)
{
    dp_free(gemm);
}

dp_status dp_cuda_gemm_run(dp_cuda_gemm *gemm, const dp_cuda_product *product, cudaStream_t stream)
{
    return DP_CUDA_RUN(gemm->device, dp_cuda_gemm_plain(product, stream));
}
