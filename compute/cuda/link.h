/* Between the cards of one host: pieces of memory go from card to card by NCCL, which is opened
 * with dlopen. Adds nothing: engine_parts.c decides which card adds which pieces in which order, so
 * the sums do not depend on which way NCCL goes or on its release. Knows no model.
 *
 * A link does not block: NCCL is asked again and again, and between two times the link's opener is
 * asked whether another process is gone. Its communicator is ended by ncclCommAbort, which waits
 * for nobody. */
#ifndef DP_COMPUTE_CUDA_LINK_H
#define DP_COMPUTE_CUDA_LINK_H

#include "compute/backend/backend.h"
#include "compute/cuda/device.h"

enum {
    DP_CUDA_NCCL_MIN = 21400,   /* 2.14: the first that does not block */
    DP_CUDA_LINK_MS = 60 * 1000 /* until all have come; an eight-card host takes seconds */
};

typedef struct dp_cuda_link dp_cuda_link;

/* One piece, of this card's memory. */
typedef struct dp_cuda_move {
    uint32_t peer;
    bool sends; /* else it is filled */
    float *at;  /* not written where it is sent */
    size_t n;   /* floats; 0: nothing */
} dp_cuda_move;

/* "NCCL 2.21.5". file: "libnccl.so.2", or a test's file; so below. DP_UNSUPPORTED with a sentence:
 * it is not there, lacks a call or is too old. */
DP_MUST dp_status dp_cuda_link_library(const char *file, char name[DP_DEVICE_NAME_MAX],
                                       dp_why *why);
/* For one link, by the first of those that will open it. DP_UNSUPPORTED with a sentence. */
DP_MUST dp_status dp_cuda_link_id(const char *file, dp_card_link_id *out, dp_why *why);

/* Opens a link as rank of count; all must call it. device and link's context are borrowed until
 * close. DP_UNSUPPORTED: NCCL cannot, or a card did not come in wait_ms; DP_IO: another process is
 * gone; DP_NOMEM; all but that with a sentence. */
DP_MUST dp_status dp_cuda_link_open(dp_cuda_link **out, const char *file, dp_cuda_device *device,
                                    const dp_card_link *link, uint32_t rank, uint32_t count,
                                    uint32_t wait_ms, dp_why *why);
void dp_cuda_link_close(dp_cuda_link *link); /* Accepts NULL. Aborts moves in progress. */

/* Puts all moves on the stream at once: every send must have its receive on the other card, in the
 * order of the list for each two cards. Returns when they are on the stream. DP_IO:
 * device->problem, and the device counts as lost. */
DP_MUST dp_status dp_cuda_link_run(dp_cuda_link *link, const dp_cuda_move *moves, size_t n,
                                   cudaStream_t stream);

#endif
