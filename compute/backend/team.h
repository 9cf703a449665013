/* One engine's training on several processes of one host, as on machines with several sockets:
 * every process computes with its own threads on its own copy of the weights, and ZeRO (zero.h)
 * adds the gradients and moves the weights. The first process is the one that asks; it alone knows
 * rounds, drawers and data. Steps of the CPU's engine (backend_cpu.h); between hosts there are
 * rounds.
 *
 * The rows of a micro-batch of R are cut into L lanes, lane l has the rows [l R / L, (l+1) R / L),
 * and a process has whole lanes: what is computed depends on L, never on the number of processes.
 * So one process with L lanes gives the bits of L with one each.
 *
 * A process that dies, or does not come in time, breaks the team: the call gives DP_IO,
 * dp_team_problem has the sentence, and only close may follow. One thread calls, the one that
 * opened. */
#ifndef DP_COMPUTE_BACKEND_TEAM_H
#define DP_COMPUTE_BACKEND_TEAM_H

#include "compute/backend/backend.h"
#include "compute/model/gpt.h"
#include "compute/model/optim.h"
#include "compute/model/zero.h"

/* Processes that wait for a model. */
typedef struct dp_team dp_team;

/* Forks all but the first, so it must come before there is another thread; descriptors that are
 * open then are closed in them. lanes 0: as many as processes. They end with the thread that
 * called, whatever happens to it. DP_BADARG: no processes, or more than lanes, or lanes than
 * DP_ZERO_LANES_MAX; DP_NOMEM, DP_IO with a sentence. */
DP_MUST dp_status dp_team_start(dp_team **out, uint32_t processes, uint32_t lanes, dp_why *why);
void dp_team_close(dp_team *team); /* Accepts NULL. After what computes on it is closed. */
uint32_t dp_team_processes(const dp_team *team);
uint32_t dp_team_lanes(const dp_team *team);
/* Rows of the largest micro-batch of rows that one process has at a time: rows_max of its
 * dp_gpt. */
static inline uint32_t dp_team_rows(uint32_t rows, uint32_t lanes)
{
    return (rows + lanes - 1) / lanes;
}

/* The calling thread and what it starts stay on the first process's share of the sockets, where
 * there are as many as processes (numa.h); the others do so by themselves. Before the memory of the
 * engine is taken. */
void dp_team_bind(const dp_team *team);

/* A model on it, in the first process. */
typedef struct dp_team_engine dp_team_engine;

/* gpt: the first process's own, opened with dp_team_rows of setup->rows_max and no gradients of its
 * own; borrowed until close, as pool is, which may be NULL. setup->threads: of each process.
 * Moments are 0. One at a time. DP_NOMEM, DP_IO, DP_BADARG with a sentence. */
DP_MUST dp_status dp_team_open(dp_team_engine **out, dp_team *team, const dp_engine_setup *setup,
                               dp_gpt *gpt, dp_pool *pool, dp_why *why);
void dp_team_engine_close(dp_team_engine *engine); /* Accepts NULL. */
const char *dp_team_problem(const dp_team_engine *engine);

/* The weights of gpt have been written to: the others take them before the next step. */
void dp_team_moved(dp_team_engine *engine);
/* As in the table of backend.h, DP_IO where it may fail. */
DP_MUST dp_status dp_team_step(dp_team_engine *engine, const dp_gpt_batch *batch, float scale,
                               double *loss_sum);
void dp_team_drop(dp_team_engine *engine);
DP_MUST dp_status dp_team_norm(dp_team_engine *engine, double *norm);
const float *dp_team_gradients(dp_team_engine *engine); /* NULL: dp_team_problem */
DP_MUST dp_status dp_team_update(dp_team_engine *engine, const dp_optim_options *options,
                                 double norm);
DP_MUST dp_status dp_team_reset(dp_team_engine *engine);
/* The optimizer's vectors, whole; to read and to fill for take. */
DP_MUST dp_status dp_team_lend(dp_team_engine *engine, dp_optim_vector out[DP_OPTIM_VECTORS_MAX],
                               size_t *count);
DP_MUST dp_status dp_team_take(dp_team_engine *engine, uint64_t updates);
uint64_t dp_team_updates(const dp_team_engine *engine);

#endif
