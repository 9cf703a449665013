/* The work buffers of a round on the card, to the bit. */
#include "compute/cuda/engine.h"

#include "base/assert.h"
#include "compute/cuda/vectors.h"
#include "compute/model/state.h"

dp_status dp_cuda_e_init(dp_engine *e, uint64_t seed)
{
    DP_TRY(dp_cuda_mirror(e, &e->mirror));
    dp_model_init(e->shape.model, seed, e->mirror);
    return dp_cuda_put(e, dp_cuda_writing(e, DP_VECTOR_THETA), e->mirror);
}

dp_status dp_cuda_e_load(dp_engine *e, dp_vector to, dp_view bytes)
{
    DP_TRY(dp_cuda_mirror(e, &e->mirror));
    DP_TRY(dp_floats_read(bytes, e->mirror, e->n));
    return dp_cuda_put(e, dp_cuda_writing(e, to), e->mirror);
}

const float *dp_cuda_e_values(dp_engine *e, dp_vector from)
{
    if (!dp_cuda_has_mirror(e, &e->mirror) ||
        dp_cuda_fetch(e, e->mirror, dp_cuda_vector(e, from)) != DP_OK) {
        return NULL;
    }
    return e->mirror;
}

dp_status dp_cuda_e_zero(dp_engine *e, dp_vector to)
{
    return DP_CUDA(&e->device, fill, dp_cuda_writing(e, to), 0, e->n * sizeof(float),
                   e->device.compute);
}

dp_status dp_cuda_e_copy(dp_engine *e, dp_vector to, dp_vector from)
{
    dp_assert(to != from);
    return DP_CUDA(&e->device, copy, dp_cuda_writing(e, to), dp_cuda_vector(e, from),
                   e->n * sizeof(float), DP_CUDA_ON_DEVICE, e->device.compute);
}

dp_status dp_cuda_e_add(dp_engine *e, dp_vector to, dp_vector from)
{
    return DP_CUDA_RUN(&e->device, dp_cuda_add(dp_cuda_writing(e, to), dp_cuda_vector(e, from),
                                               e->n, e->device.compute));
}

dp_status dp_cuda_e_subtract(dp_engine *e, dp_vector to, dp_vector from)
{
    return DP_CUDA_RUN(&e->device, dp_cuda_subtract(dp_cuda_writing(e, to), dp_cuda_vector(e, from),
                                                    e->n, e->device.compute));
}

dp_status dp_cuda_e_scale(dp_engine *e, dp_vector to, uint32_t lambda)
{
    return DP_CUDA_RUN(&e->device,
                       dp_cuda_scale(dp_cuda_writing(e, to), lambda, e->n, e->device.compute));
}

dp_status dp_cuda_e_snapshot(dp_engine *e, dp_vector to, dp_vector feedback, dp_vector from)
{
    const float *const residual = feedback == DP_VECTOR_NONE ? NULL : dp_cuda_vector(e, feedback);
    DP_TRY(dp_cuda_news_clear(e));
    DP_TRY(DP_CUDA_RUN(&e->device,
                       dp_cuda_snapshot(dp_cuda_writing(e, to), residual, dp_cuda_vector(e, from),
                                        dp_cuda_vector(e, DP_VECTOR_X), e->n, &e->news->bad,
                                        e->device.compute)));
    DP_TRY(dp_cuda_news_read(e));
    return e->host_news->bad != 0 ? DP_DIVERGED : DP_OK;
}
