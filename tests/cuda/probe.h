/* Kernels that use, one by one, what tests/cuda/host_gpu.h promises; some are wrong on purpose.
 * out: uint32_t per thread. */
#ifndef DP_TESTS_CUDA_PROBE_H
#define DP_TESTS_CUDA_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "compute/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum probe {
    PROBE_INDEX,        /* its number in the grid */
    PROBE_SHARED,       /* what the thread after it in the block wrote, by a barrier */
    PROBE_DYNAMIC,      /* the same by dynamic shared memory of 4 bytes a thread */
    PROBE_SHUFFLES,     /* sum of the lanes by xor, then up, down and plain shuffles checked */
    PROBE_HALVES,       /* sum of the lanes of its half warp, the halves taking different ways */
    PROBE_VOTES,        /* lanes with an odd number in the block, and the block's count of them */
    PROBE_ATOMICS,      /* out[0]: how many threads; out[1]: the largest number */
    PROBE_RETURN_EARLY, /* odd threads return, even ones shuffle with all that are left */
    PROBE_ARRIVES,      /* 1: waits at a barrier in shared memory at which one thread arrives */
    PROBE_PRODUCT,      /* 1: a warpgroup's sums are NaN until their product is waited for */
    PROBE_GIVES,        /* 1: of three warpgroups one gives back as many registers as two take */
    PROBE_SPOILED,      /* static shared memory before anybody wrote it */
    PROBE_NO_BARRIER,   /* PROBE_SHARED without the barrier */
    PROBE_ONE_MISSES,   /* one thread returns before the barrier */
    PROBE_TWO_BARRIERS, /* odd threads wait at another one */
    PROBE_LANE_MISSES,  /* one lane never comes to a shuffle of all */
    PROBE_MIXED_MASKS,  /* lanes disagree about the mask */
    PROBE_MIXED_CALLS,  /* lanes of one mask wait in two calls */
    PROBE_NOT_IN_MASK,  /* a lane calls outside of its mask */
    PROBE_ARRIVES_NOT,  /* PROBE_ARRIVES, where two should arrive */
    PROBE_PRODUCT_LOST, /* PROBE_PRODUCT, whose left factor changes under way */
    PROBE_GIVES_LESS,   /* PROBE_GIVES, where it keeps eight more */
    PROBE_READS_NOBODY, /* a shuffle reads a lane that is not in the mask */
    PROBE_PAST_SHARED,  /* writes behind static shared memory */
    PROBE_PAST_DYNAMIC, /* writes behind dynamic shared memory */
    PROBE_PAST_OUT,     /* writes behind out */
    PROBE_TOO_MANY      /* 2048 threads in a block */
} probe;

DP_MUST dp_status probe_run(probe which, uint32_t *out, unsigned blocks, unsigned threads,
                            cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
