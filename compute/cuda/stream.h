/* Shared by the headers of compute/cuda/: CUDA's stream without CUDA's headers, and the rules of
 * every launcher. C11 and C++ alike, so that the engine is C and needs no compiler of NVIDIA's.
 *
 * A launcher is a function `dp_status dp_cuda_<op>(arguments, cudaStream_t stream)` with C linkage,
 * in the .cu of its family. It puts kernels on the stream and returns: it waits for nothing,
 * allocates nothing and never reads device memory, so that the engine can capture whole steps as
 * graphs. DP_BADARG: shapes it cannot do; DP_IO: CUDA refused the launch (the engine asks for the
 * words). A result that depends on values found by a kernel (for example, one that is not finite)
 * is left in device memory that the caller names. Grids follow from shapes alone, never from the
 * device, and no float is added atomically: same shapes, same bits.
 *
 * Unless a header says otherwise: pointers are device memory at 256 bytes; tensors are row-major
 * and dense; a "typed" pointer is `void *` with the elements of a dp_precision (fp32, bf16, fp16),
 * the run's. Typed are: activations, the residual stream, the gradients of both, logits, and the
 * copy of the weights that products read. fp32 are: vectors of the arena, gains and biases of
 * norms, mean, rstd and lse, losses, and gradients of parameters, which are added to. */
#ifndef DP_COMPUTE_CUDA_STREAM_H
#define DP_COMPUTE_CUDA_STREAM_H

typedef struct CUstream_st *cudaStream_t; /* As in CUDA's headers: said twice is the same type. */

#endif
