/* A process group: one engine that trains on several processes of one host, for machines with
 * several sockets. Every process computes with its own threads on its own copy of the weights; ZeRO
 * (zero.h) sums the gradients and moves the weights. Only the first process knows rounds, work
 * buffers and data. The engine is the CPU's (backend_cpu.h), or one of cards
 * (process_group_cards.h).
 *
 * A micro-batch of R rows is cut into L gradient lanes; lane l has the rows [l R / L, (l+1) R / L),
 * and a process has whole lanes. Results depend on L, not on the number of processes: one process
 * with L lanes gives the same bits as L processes with one each.
 *
 * A process that dies or is late breaks the group: the call gives DP_IO, dp_process_group_problem
 * has the sentence, and only close may follow. All calls come from the thread that opened the
 * group. */
#ifndef DP_COMPUTE_BACKEND_PROCESS_GROUP_H
#define DP_COMPUTE_BACKEND_PROCESS_GROUP_H

#include "compute/backend/backend.h"
#include "compute/model/gpt.h"
#include "compute/model/optim.h"
#include "compute/model/zero.h"

/* Processes that wait for a model. */
typedef struct dp_process_group dp_process_group;

/* Forks all processes but the first. Call it before there is another thread; the children close all
 * inherited descriptors and end with the calling thread. lanes 0: as many as processes. DP_BADARG:
 * no processes, more processes than lanes, or more lanes than DP_ZERO_LANES_MAX; DP_NOMEM, DP_IO
 * with a sentence. */
DP_MUST dp_status dp_process_group_start(dp_process_group **out, uint32_t processes, uint32_t lanes,
                                         dp_why *why);
void dp_process_group_close(dp_process_group *team); /* Accepts NULL. Close the engine first. */
uint32_t dp_process_group_processes(const dp_process_group *team);
uint32_t dp_process_group_lanes(const dp_process_group *team);
/* Rows of a micro-batch that one lane has at most: rows_max of its process's dp_gpt. */
static inline uint32_t dp_process_group_rows(uint32_t rows, uint32_t lanes)
{
    return (rows + lanes - 1) / lanes;
}

/* Binds the calling thread, and threads that it starts, to the first process's share of the
 * sockets, if there are as many as processes (numa.h); the other processes bind themselves. Call
 * before the memory of the engine is allocated. */
void dp_process_group_bind(const dp_process_group *team);

/* A model on the group, in the first process. */
typedef struct dp_process_group_engine dp_process_group_engine;

/* Opens a model on all processes. gpt: the first process's own, opened with dp_process_group_rows
 * of setup->rows_max and without gradients; borrowed until close, as pool is, which may be NULL.
 * setup->threads: of each process. Moments are 0. One engine at a time. DP_NOMEM, DP_IO, DP_BADARG
 * with a sentence. */
DP_MUST dp_status dp_process_group_open(dp_process_group_engine **out, dp_process_group *team,
                                        const dp_engine_setup *setup, dp_gpt *gpt, dp_pool *pool,
                                        dp_why *why);
void dp_process_group_engine_close(dp_process_group_engine *engine); /* Accepts NULL. */
const char *dp_process_group_problem(const dp_process_group_engine *engine);

/* Tells that the weights of gpt have changed: the other processes take them before the next
 * step. */
void dp_process_group_moved(dp_process_group_engine *engine);
/* As the calls of backend.h; also DP_IO. */
DP_MUST dp_status dp_process_group_step(dp_process_group_engine *engine, const dp_gpt_batch *batch,
                                        float scale, double *loss_sum);
void dp_process_group_drop(dp_process_group_engine *engine);
DP_MUST dp_status dp_process_group_norm(dp_process_group_engine *engine, double *norm);
const float *
dp_process_group_gradients(dp_process_group_engine *engine); /* NULL: dp_process_group_problem */
DP_MUST dp_status dp_process_group_update(dp_process_group_engine *engine,
                                          const dp_optim_options *options, double norm);
DP_MUST dp_status dp_process_group_reset(dp_process_group_engine *engine);
/* The vectors of the optimizer, whole, to read and to fill for take. */
DP_MUST dp_status dp_process_group_lend(dp_process_group_engine *engine,
                                        dp_optim_vector out[DP_OPTIM_VECTORS_MAX], size_t *count);
DP_MUST dp_status dp_process_group_take(dp_process_group_engine *engine, uint64_t updates);
uint64_t dp_process_group_updates(const dp_process_group_engine *engine);

#endif
