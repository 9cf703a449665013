/* Memory of a card for the tests of kernels: of the emulator (card_host.cpp, plain memory, so that
 * AddressSanitizer sees every access past it) or of a GPU (card_cudart.c). A test says the same for
 * both. Ends the test on failure. */
#ifndef DP_TESTS_CUDA_CARD_H
#define DP_TESTS_CUDA_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compute/cuda/stream.h"

/* Ends the program with 77 where a GPU is wanted and none is there; else the stream of all
 * launches. */
cudaStream_t card_open(void);
/* Whether it has the warpgroups' products of sm_90a, and this build code for them. */
bool card_has_warpgroups(void);
/* size bytes at 256, copied from bytes, or 0xff each where it is NULL. Free with card_free. */
void *card_put(const void *bytes, size_t size);
/* After all that was launched. */
void card_get(const void *card, void *bytes, size_t size);
void card_free(void *card);
/* How the emulator orders threads from now on: 0 ascending, 1 descending, else shuffled. Nothing on
 * a GPU. */
void card_order(uint64_t seed);

#endif
