/* The member that each process of a group is: joins, executes commands, and has those of the
 * CPU. */
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/backend/process_group_inside.h"

/* ---- Life. */

dp_status dp_process_group_member_open(dp_process_group_member *m,
                                       const dp_process_group_order *order,
                                       const int fds[DP_PROCESS_GROUP_FDS], dp_why *why)
{
    m->rank = order->zero.rank;
    m->rows_max = order->setup.rows_max;
    m->context = order->model.context;
    void *const memory =
        mmap(NULL, order->board_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    if (memory == MAP_FAILED) {
        return DP_NOMEM;
    }
    m->board = memory;
    m->board_bytes = order->board_bytes;
    dp_zero_setup zero = order->zero;
    if (m->engine != NULL) {
        m->card = dp_process_group_card_of(m);
        zero.card = &m->card;
    }
    DP_TRY(dp_zero_join(&m->zero, fds[1], &zero, m->pool, why));
    DP_TRY(dp_process_barrier_enter(&m->board->gate, m->rank));
    m->entered = true;
    return DP_OK;
}

void dp_process_group_member_close(dp_process_group_member *m)
{
    if (m->entered) {
        dp_process_barrier_leave(&m->board->gate, m->rank);
    }
    dp_zero_close(m->zero);
    if (m->board != NULL) {
        munmap(m->board, m->board_bytes);
    }
    *m = (dp_process_group_member){0};
}

/* ---- Commands. */

static size_t elements(const dp_process_group_member *m)
{
    return dp_gpt_model(m->gpt)->n_elements;
}

static void clean(dp_process_group_member *m, dp_process_group_clean which)
{
    uint32_t first;
    const uint32_t count = dp_zero_lanes(m->zero, &first);
    for (uint32_t lane = first; lane < first + count; lane++) {
        if (which == DP_PROCESS_GROUP_CLEAN_NONE ||
            (which == DP_PROCESS_GROUP_CLEAN_OTHERS && lane == 0)) {
            continue;
        }
        const dp_zero_lane own = dp_zero_lane_of(m->zero, lane);
        dp_gpt_grads_at(m->gpt, own.grads);
        dp_gpt_zero_grads(m->gpt);
        DP_IGNORE(dp_gpt_grads(m->gpt) == NULL); /* All of it now: the next lane is another. */
        *own.loss = 0;
    }
}

dp_gpt_batch dp_process_group_rows_of(const dp_process_group_member *m, uint32_t lane)
{
    const dp_process_group_board *const b = m->board;
    const uint32_t lanes = dp_zero_lanes_all(m->zero);
    const size_t from = (size_t)b->rows * lane / lanes;
    const size_t to = (size_t)b->rows * (lane + 1) / lanes;
    return (dp_gpt_batch){.x = b->tokens + from * b->length,
                          .y = b->tokens + (m->rows_max * m->context) + from * b->length,
                          .rows = to - from,
                          .length = b->length};
}

static dp_status step_lane(dp_process_group_member *m, uint32_t lane)
{
    dp_process_group_board *const b = m->board;
    const dp_gpt_batch batch = dp_process_group_rows_of(m, lane);
    b->losses[lane] = 0;
    if (batch.rows == 0) {
        return DP_OK;
    }
    dp_gpt_grads_at(m->gpt, dp_zero_lane_of(m->zero, lane).grads);
    return dp_gpt_step(m->gpt, &batch, b->scale, &b->losses[lane]);
}

static dp_status do_step(dp_process_group_member *m, dp_why *why)
{
    uint32_t first;
    const uint32_t count = dp_zero_lanes(m->zero, &first);
    (void)why;
    if (m->board->moved && m->rank > 0) {
        memcpy(dp_gpt_params_to_write(m->gpt), dp_zero_shared(m->zero),
               elements(m) * sizeof(float));
    }
    clean(m, m->board->clean);
    for (uint32_t lane = first; lane < first + count; lane++) {
        DP_TRY(step_lane(m, lane));
    }
    return DP_OK;
}

static dp_status do_drop(dp_process_group_member *m, dp_why *why)
{
    (void)why;
    clean(m, DP_PROCESS_GROUP_CLEAN_ALL);
    return DP_OK;
}

static dp_status do_reduce(dp_process_group_member *m, dp_why *why)
{
    double norm;
    double loss;
    DP_TRY(dp_zero_reduce(m->zero, &norm, &loss, why));
    if (m->rank == 0) {
        m->board->norm = norm;
    }
    return DP_OK;
}

static dp_status do_update(dp_process_group_member *m, dp_why *why)
{
    return dp_zero_update(m->zero, dp_gpt_params_to_write(m->gpt), &m->board->options,
                          m->board->norm, why);
}

static dp_status do_reset(dp_process_group_member *m, dp_why *why)
{
    (void)why;
    dp_optim_reset(dp_zero_optim(m->zero));
    return DP_OK;
}

/* The own part of the vector that the board names; *size in bytes. */
static float *part_of(dp_process_group_member *m, size_t *size)
{
    const dp_optim *const optim = dp_zero_optim(m->zero);
    m->n_vectors = dp_optim_vectors(optim, m->vectors);
    dp_assert(m->board->vector < m->n_vectors);
    *size = (optim->last - optim->first) * sizeof(float);
    return m->vectors[m->board->vector].values;
}

static dp_status do_gather(dp_process_group_member *m, dp_why *why)
{
    size_t size;
    (void)why;
    const float *const part = part_of(m, &size);
    memcpy(dp_zero_shared(m->zero) + dp_zero_optim(m->zero)->first, part, size);
    return DP_OK;
}

static dp_status do_scatter(dp_process_group_member *m, dp_why *why)
{
    size_t size;
    (void)why;
    float *const part = part_of(m, &size);
    memcpy(part, dp_zero_shared(m->zero) + dp_zero_optim(m->zero)->first, size);
    dp_zero_optim(m->zero)->steps = m->board->updates;
    return DP_OK;
}

static dp_status of_cards(dp_process_group_member *m, dp_why *why)
{
    (void)m;
    return dp_why_set(why, DP_BADARG, "a command for cards, and the CPU computes");
}

void dp_process_group_member_obey(dp_process_group_member *m)
{
    static const dp_process_group_do commands[DP_PROCESS_GROUP_COMMANDS] = {
        [DP_PROCESS_GROUP_STEP] = do_step,       [DP_PROCESS_GROUP_DROP] = do_drop,
        [DP_PROCESS_GROUP_REDUCE] = do_reduce,   [DP_PROCESS_GROUP_UPDATE] = do_update,
        [DP_PROCESS_GROUP_RESET] = do_reset,     [DP_PROCESS_GROUP_GATHER] = do_gather,
        [DP_PROCESS_GROUP_SCATTER] = do_scatter, [DP_PROCESS_GROUP_SUMS] = of_cards,
        [DP_PROCESS_GROUP_LINK] = of_cards};
    const dp_process_group_command command = m->board->command;
    dp_why why = {{0}};
    dp_assert(command < DP_PROCESS_GROUP_QUIT);
    m->board->statuses[m->rank] =
        (m->engine != NULL ? dp_process_group_card_commands[command] : commands[command])(m, &why);
    m->board->whys[m->rank] = why;
}
