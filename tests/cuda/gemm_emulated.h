/* Products of the emulated build: how much of the card they take. */
#ifndef DP_TESTS_CUDA_GEMM_EMULATED_H
#define DP_TESTS_CUDA_GEMM_EMULATED_H

#include <stddef.h>

/* Bytes of the card that products take from the next open on; 0, the initial value: none. */
void gemm_emulated_takes(size_t bytes);

#endif
