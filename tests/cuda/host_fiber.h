/* Fibers: stacks that are changed by a call. For host_gpu.cpp; knows no GPU. AddressSanitizer is
 * told of every change. */
#ifndef DP_TESTS_CUDA_HOST_FIBER_H
#define DP_TESTS_CUDA_HOST_FIBER_H

#include <cstddef>

enum { HOST_FIBER_STACK = 256 * 1024 };

struct host_fiber;

/* A fiber of its own stack, kept for ever once made; ends the program when there is no memory. */
host_fiber *host_fiber_open(void);
/* Run work(argument) on a fiber that does not run, until it yields or returns. True: it has
 * returned. */
bool host_fiber_start(host_fiber *fiber, void (*work)(void *), void *argument);
/* Go on with one that has yielded. */
bool host_fiber_resume(host_fiber *fiber);
/* From inside the fiber: back to who started or resumed it. */
void host_fiber_yield(host_fiber *fiber);

#endif
