/* Training on several processes of one host as if they were one: gradients are summed, each process
 * moves its part of the parameters and holds the moments of that part only (ZeRO stage 1,
 * Rajbhandari et al. 2020), all get the parameters back. Over shared memory; between hosts there
 * are rounds.
 *
 * Gradients come in lanes. A lane is one sum of micro-batches in order, begun at zero; process p of
 * P has the lanes [p L / P, (p+1) L / P). Lanes are added as a fixed binary tree: with steps s = 1,
 * 2, 4, ..: lane l += lane l+s, l a multiple of 2s. So the result depends on the lanes and their
 * values, not on the number of processes that share them: one process with L lanes gives the same
 * bits as L with one each.
 *
 * Shared memory, fresh from dp_zero_make (native byte order, one machine, never stored):
 *     header page(s) | lanes [L][n] fp32 | parameters [n] fp32 | sums of squares of blocks, double
 * Blocks are those of the arena, or with cards those of each part, counted from where it begins,
 * part after part: for AdamW the same. All processes call dp_zero_reduce and dp_zero_update in the
 * same order, each from one thread, the one that joined. A process that dies or stays away gives
 * the others an error within 20 ms or wait_us; then nobody's parameters have changed in this step,
 * or everybody's, the moments are to be thrown away, and the group is at its end: load a
 * checkpoint. */
#ifndef DP_COMPUTE_MODEL_ZERO_H
#define DP_COMPUTE_MODEL_ZERO_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "compute/machine/process_barrier.h"
#include "compute/model/optim.h"

enum { DP_ZERO_LANES_MAX = 64 };

typedef struct dp_zero dp_zero;

/* Gradients, moments and weights on a card of this process (process_group_card.c). The process then
 * has one lane, which the card fills, and the part of dp_optim_cut. Any status but DP_OK and
 * DP_DIVERGED ends the group; each comes with a sentence. */
typedef struct dp_zero_card {
    void *context;
    bool linked; /* cards have a direct link: the pointers to shared memory below are NULL */
    /* Copies the gradients, n floats, to lane. Only without a link. */
    dp_status (*give)(void *context, float *lane, dp_why *why);
    /* The own part of the gradients = part, or with a link the sum over all cards. squares: of its
     * blocks, as in backend.h. */
    dp_status (*sum)(void *context, const float *part, double *squares, dp_why *why);
    /* The optimizer's step on the own part of the weights; copies that part to its place in shared,
     * n floats. */
    dp_status (*move)(void *context, const dp_optim_options *options, double norm, float *shared,
                      dp_why *why);
    /* Takes all weights from shared, or with a link from the cards that have them. */
    dp_status (*take)(void *context, const float *shared, dp_why *why);
} dp_zero_card;

/* Equal in all processes but for rank and card. */
typedef struct dp_zero_setup {
    dp_optim_setup optim; /* part and parts are set from rank and processes */
    uint32_t processes;   /* 1 .. DP_PROCESS_BARRIER_PROCESSES_MAX */
    uint32_t lanes;       /* processes .. DP_ZERO_LANES_MAX */
    uint32_t rank;
    uint64_t wait_us;   /* limit for the slowest process, at each of three barriers per step */
    dp_zero_card *card; /* borrowed until close; NULL: the CPU computes */
} dp_zero_setup;

/* Makes a memfd of the right size that cannot shrink, to be inherited or sent. The caller closes
 * it. DP_BADARG, DP_NOMEM, DP_IO. */
DP_MUST dp_status dp_zero_make(int *fd, const dp_zero_setup *setup);
/* Maps fd, which may be closed afterwards, and takes the place of rank. pool is borrowed, may be
 * NULL. DP_BADARG: made for another setup, or no such memory; DP_BUSY: the rank is taken;
 * DP_CLOSED: its process has died; DP_NOMEM, DP_IO. */
DP_MUST dp_status dp_zero_join(dp_zero **out, int fd, const dp_zero_setup *setup, dp_pool *pool,
                               dp_why *why);
void dp_zero_close(
    dp_zero *zero); /* Accepts NULL. For the others it is as if this process had died. */

/* The own lanes are [first, first + count). */
uint32_t dp_zero_lanes(const dp_zero *zero, uint32_t *first);
/* A lane: gradients [n_elements] to fill, and the sum of its losses. Lent; write to it only between
 * update (or a reduce whose step is skipped) and reduce. It holds old values: set it to zero
 * first. */
typedef struct dp_zero_lane {
    float *grads;
    double *loss;
} dp_zero_lane;
dp_zero_lane dp_zero_lane_of(dp_zero *zero, uint32_t lane);

/* True if another process has died, left, or was late. zero: a dp_zero, of the calling thread. */
bool dp_zero_is_over(void *zero);

/* Sums all lanes. *norm: length of the gradient; *loss: sum of all losses; the same bits in every
 * process, so that all decide alike whether to take the step. DP_CLOSED, DP_TIMEOUT with a
 * sentence. */
DP_MUST dp_status dp_zero_reduce(dp_zero *zero, double *norm, double *loss, dp_why *why);
/* One step with the summed gradient: moves the own part of params (NULL with a card) and takes the
 * other parts. options: equal in all processes, else DP_BADARG. DP_DIVERGED in all processes: the
 * norm is too large, and nothing has changed. DP_CLOSED, DP_TIMEOUT with a sentence. */
DP_MUST dp_status dp_zero_update(dp_zero *zero, float *params, const dp_optim_options *options,
                                 double norm, dp_why *why);
/* Lanes of all processes. */
uint32_t dp_zero_lanes_all(const dp_zero *zero);
/* The shared weights, [n_elements], as the last update wrote them. Between updates any process may
 * use this memory. */
float *dp_zero_shared(dp_zero *zero);
/* The optimizer of the own part, for checkpoints; with a card it has no vectors, only its
 * bounds. */
dp_optim *dp_zero_optim(dp_zero *zero);

#endif
