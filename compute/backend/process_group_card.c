/* The commands of a process with a card. Steps run on the card; ZeRO (zero.h) divides sums and
 * moves by part and calls the functions here. With a link cards add and spread directly, else
 * through host memory. */
#include <string.h>

#include "base/assert.h"
#include "compute/backend/process_group_inside.h"

/* With the card's own words, where it has them. */
static dp_status said(const dp_process_group_member *m, dp_status status, dp_why *why)
{
    const char *const problem = m->backend->problem(m->engine);
    return status == DP_OK || status == DP_DIVERGED || problem[0] == '\0'
               ? status
               : dp_why_set(why, status, "%s", problem);
}

static const dp_optim *part_of(const dp_process_group_member *m)
{
    return dp_zero_optim(m->zero);
}

static size_t vector_bytes(const dp_process_group_member *m)
{
    return part_of(m)->setup.model->n_elements * sizeof(float);
}

/* ---- Functions for ZeRO. */

static dp_status give(void *context, float *lane, dp_why *why)
{
    dp_process_group_member *const m = context;
    const float *const gradients = m->backend->gradients(m->engine);
    if (gradients == NULL) {
        return said(m, DP_IO, why);
    }
    memcpy(lane, gradients, vector_bytes(m));
    return DP_OK;
}

static dp_status sum(void *context, const float *part, double *squares, dp_why *why)
{
    dp_process_group_member *const m = context;
    const dp_backend_parts *const parts = m->backend->parts;
    return said(
        m, part == NULL ? parts->sum(m->engine, squares) : parts->put_sum(m->engine, part, squares),
        why);
}

static dp_status move(void *context, const dp_optim_options *options, double norm, float *shared,
                      dp_why *why)
{
    dp_process_group_member *const m = context;
    const dp_optim *const o = part_of(m);
    DP_TRY(said(m, m->backend->update(m->engine, options, norm), why));
    if (shared == NULL) {
        return DP_OK;
    }
    const float *const x = m->backend->values(m->engine, DP_VECTOR_X);
    if (x == NULL) {
        return said(m, DP_IO, why);
    }
    memcpy(shared + o->first, x + o->first, (o->last - o->first) * sizeof *x);
    return DP_OK;
}

static dp_status take(void *context, const float *shared, dp_why *why)
{
    dp_process_group_member *const m = context;
    const dp_backend_parts *const parts = m->backend->parts;
    return said(m, shared == NULL ? parts->spread(m->engine) : parts->put_x(m->engine, shared),
                why);
}

dp_zero_card dp_process_group_card_of(dp_process_group_member *m)
{
    return (dp_zero_card){.context = m, .give = give, .sum = sum, .move = move, .take = take};
}

/* ---- Commands. */

static dp_status clean(dp_process_group_member *m, dp_process_group_clean which)
{
    return which == DP_PROCESS_GROUP_CLEAN_ALL      ? m->backend->drop(m->engine)
           : which == DP_PROCESS_GROUP_CLEAN_OTHERS ? m->backend->parts->keep_part(m->engine)
                                                    : DP_OK;
}

static dp_status do_step(dp_process_group_member *m, dp_why *why)
{
    dp_process_group_board *const b = m->board;
    const dp_gpt_batch batch = dp_process_group_rows_of(m, m->rank);
    b->losses[m->rank] = 0;
    if (b->moved && m->rank > 0) {
        DP_TRY(said(m, m->backend->parts->put_x(m->engine, dp_zero_shared(m->zero)), why));
    }
    DP_TRY(said(m, clean(m, b->clean), why));
    return batch.rows == 0
               ? DP_OK
               : said(m, m->backend->step(m->engine, &batch, b->scale, &b->losses[m->rank]), why);
}

static dp_status do_drop(dp_process_group_member *m, dp_why *why)
{
    return said(m, clean(m, DP_PROCESS_GROUP_CLEAN_ALL), why);
}

static dp_status do_reduce(dp_process_group_member *m, dp_why *why)
{
    double norm;
    double loss;
    m->card.linked = m->board->linked;
    DP_TRY(dp_zero_reduce(m->zero, &norm, &loss, why));
    if (m->rank == 0) {
        m->board->norm = norm;
    }
    return DP_OK;
}

static dp_status do_update(dp_process_group_member *m, dp_why *why)
{
    return dp_zero_update(m->zero, NULL, &m->board->options, m->board->norm, why);
}

static dp_status do_reset(dp_process_group_member *m, dp_why *why)
{
    return said(m, m->backend->reset(m->engine), why);
}

/* The own part of n floats to its place in the shared ones. */
static void share_part(const dp_process_group_member *m, const float *values)
{
    const dp_optim *const o = part_of(m);
    memcpy(dp_zero_shared(m->zero) + o->first, values + o->first,
           (o->last - o->first) * sizeof *values);
}

static dp_status do_sums(dp_process_group_member *m, dp_why *why)
{
    const float *const gradients = m->backend->gradients(m->engine);
    if (gradients == NULL) {
        return said(m, DP_IO, why);
    }
    share_part(m, gradients);
    return DP_OK;
}

static dp_status do_gather(dp_process_group_member *m, dp_why *why)
{
    const uint32_t vector = m->board->vector;
    if (vector == 0) { /* All come at once. */
        const size_t count = m->backend->lend_state(m->engine, m->vectors);
        if (count < 2) {
            return said(m, DP_IO, why);
        }
        m->n_vectors = count - 1;
    }
    dp_assert(vector < m->n_vectors);
    share_part(m, m->vectors[1 + vector].values);
    return DP_OK;
}

static dp_status do_scatter(dp_process_group_member *m, dp_why *why)
{
    const dp_optim *const o = part_of(m);
    dp_assert(m->board->vector < m->n_vectors);
    memcpy(m->vectors[1 + m->board->vector].values + o->first, dp_zero_shared(m->zero) + o->first,
           (o->last - o->first) * sizeof(float));
    return m->board->last ? said(m, m->backend->take_state(m->engine, m->board->updates), why)
                          : DP_OK;
}

static bool is_over(void *context)
{
    dp_process_group_member *const m = context;
    return atomic_load(&m->board->link_failed) || dp_zero_is_over(m->zero);
}

static dp_status do_link(dp_process_group_member *m, dp_why *why)
{
    const dp_card_link link = {.id = m->board->link_id, .is_over = is_over, .context = m};
    const dp_status status = m->backend->parts->link(m->engine, &link, why);
    if (status != DP_OK) {
        atomic_store(&m->board->link_failed, true);
    }
    return status;
}

const dp_process_group_do dp_process_group_card_commands[DP_PROCESS_GROUP_COMMANDS] = {
    [DP_PROCESS_GROUP_STEP] = do_step,       [DP_PROCESS_GROUP_DROP] = do_drop,
    [DP_PROCESS_GROUP_REDUCE] = do_reduce,   [DP_PROCESS_GROUP_UPDATE] = do_update,
    [DP_PROCESS_GROUP_RESET] = do_reset,     [DP_PROCESS_GROUP_GATHER] = do_gather,
    [DP_PROCESS_GROUP_SCATTER] = do_scatter, [DP_PROCESS_GROUP_SUMS] = do_sums,
    [DP_PROCESS_GROUP_LINK] = do_link};
