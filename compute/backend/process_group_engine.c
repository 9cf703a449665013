/* The first process of a group with a model: each call becomes a command to all processes
 * (dp_process_group_board). Opening begins in process_group_setup.c. */
#include "compute/backend/process_group.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/backend/process_group_inside.h"

struct dp_process_group_engine {
    dp_process_group *team; /* borrowed */
    dp_process_group_member member;
    const dp_model *model; /* borrowed */
    size_t n;
    bool moved;   /* the others have not seen the weights as they are */
    bool summed;  /* lane 0 holds the gradient of all, board->norm its length */
    bool dropped; /* lanes are to be cleaned before they are used */
    bool broken;
    float *whole[DP_OPTIM_VECTORS_MAX]; /* n floats each, once lent; owned */
    dp_why problem;
};

/* ---- Telling. */

static dp_status meet(dp_process_group_engine *e)
{
    uint32_t culprit = 0;
    const dp_status status =
        dp_process_barrier_wait(&e->member.board->gate, 0, DP_PROCESS_GROUP_WAIT_US, &culprit);
    if (status == DP_OK) {
        return DP_OK;
    }
    e->broken = true;
    return dp_why_set(&e->problem, DP_IO,
                      "process %u of the %u that compute %s; the trainer starts again", culprit,
                      e->team->processes, status == DP_TIMEOUT ? "does not answer" : "is gone");
}

/* All do it, each with its status on the board. */
static dp_status tell_all(dp_process_group_engine *e, dp_process_group_command command)
{
    if (e->broken) {
        return DP_IO;
    }
    e->member.board->command = command;
    DP_TRY(meet(e));
    dp_process_group_member_obey(&e->member);
    return meet(e);
}

/* Statuses after which the state of the other processes is unknown. */
static bool breaks(dp_status status)
{
    return status == DP_CLOSED || status == DP_TIMEOUT || status == DP_NOMEM || status == DP_IO;
}

/* The rank whose status breaks the group, preferably one that failed by itself; processes: none
 * does. */
static uint32_t breaker_of(const dp_process_group_engine *e)
{
    const dp_process_group_board *const b = e->member.board;
    uint32_t found = e->team->processes;
    for (uint32_t rank = e->team->processes; rank-- > 0;) {
        const bool first = found == e->team->processes || b->statuses[rank] != DP_CLOSED;
        found = breaks(b->statuses[rank]) && first ? rank : found;
    }
    return found;
}

/* The same; the first status that is not DP_OK, by rank. */
static dp_status tell(dp_process_group_engine *e, dp_process_group_command command)
{
    const dp_process_group_board *const b = e->member.board;
    DP_TRY(tell_all(e, command));
    const uint32_t breaker = breaker_of(e);
    if (breaker < e->team->processes) {
        e->broken = true;
        return dp_why_set(&e->problem, DP_IO, "%.400s",
                          b->whys[breaker].text[0] != '\0' ? b->whys[breaker].text
                                                           : dp_status_text(b->statuses[breaker]));
    }
    for (uint32_t rank = 0; rank < e->team->processes; rank++) {
        DP_TRY(b->statuses[rank]);
    }
    return DP_OK;
}

void dp_process_group_engine_close(dp_process_group_engine *e)
{
    if (e == NULL) {
        return;
    }
    if (e->member.entered && !e->broken) {
        e->member.board->command = DP_PROCESS_GROUP_QUIT;
        DP_IGNORE(meet(e)); /* A process that is gone need not quit. */
    }
    dp_process_group_member_close(&e->member);
    for (size_t i = 0; i < DP_OPTIM_VECTORS_MAX; i++) {
        dp_free(e->whole[i]);
    }
    dp_free(e);
}

/* ---- Opening. */

/* Opens NCCL between the cards; without it sums go through shared memory, and a line says so.
 * DP_IO: a process is gone. */
static dp_status link_cards(dp_process_group_engine *e, dp_why *why)
{
    dp_process_group_board *const b = e->member.board;
    const dp_process_group_cards *const cards = e->team->cards;
    char name[DP_DEVICE_NAME_MAX] = "";
    dp_why cause = {{0}};
    dp_status status = cards->inner->parts->library(name, &cause);
    if (status == DP_OK) {
        status = cards->inner->parts->link_id(&b->link_id, &cause);
    }
    if (status == DP_OK) {
        status = tell_all(e, DP_PROCESS_GROUP_LINK);
        atomic_store(&b->link_failed, false);
        for (uint32_t rank = e->team->processes; rank-- > 0 && !e->broken;) {
            /* Rather one that failed by itself than one that was told of it. */
            const bool here =
                b->statuses[rank] != DP_OK && (status == DP_OK || b->statuses[rank] != DP_IO);
            status = here ? b->statuses[rank] : status;
            cause = here ? b->whys[rank] : cause;
        }
    }
    if (e->broken) {
        return dp_why_set(why, DP_IO, "%.400s", e->problem.text);
    }
    b->linked = status == DP_OK;
    dp_why line;
    DP_IGNORE(dp_why_set(&line, DP_OK,
                         b->linked ? "%u cards train as one, by %.400s"
                                   : "%u cards train as one, by the host's memory: %.400s",
                         e->team->processes, b->linked ? name : cause.text));
    if (cards->tell != NULL) {
        cards->tell(line.text);
    }
    return DP_OK;
}

dp_status dp_process_group_open_with(dp_process_group_engine **out, dp_process_group *team,
                                     const dp_engine_setup *setup,
                                     const dp_process_group_body *body, dp_why *why)
{
    dp_process_group_engine *const e = dp_alloc(1, sizeof *e);
    if (e == NULL) {
        return DP_NOMEM;
    }
    e->team = team;
    e->model = setup->model;
    e->n = setup->model->n_elements;
    e->moved = true;
    e->dropped = true;
    e->member.gpt = body->gpt;
    e->member.pool = body->pool;
    e->member.backend = body->backend;
    e->member.engine = body->engine;
    dp_status status = dp_process_group_set_up(team, &e->member, setup, why);
    e->broken = status != DP_OK; /* Not all are there to be told to quit. */
    if (status == DP_OK && body->engine != NULL) {
        status = link_cards(e, why);
    }
    if (status != DP_OK) {
        dp_process_group_engine_close(e);
        return status;
    }
    *out = e;
    return DP_OK;
}

dp_status dp_process_group_open(dp_process_group_engine **out, dp_process_group *team,
                                const dp_engine_setup *setup, dp_gpt *gpt, dp_pool *pool,
                                dp_why *why)
{
    const dp_process_group_body body = {.gpt = gpt, .pool = pool};
    return dp_process_group_open_with(out, team, setup, &body, why);
}

const char *dp_process_group_problem(const dp_process_group_engine *e)
{
    return e->problem.text;
}

/* ---- The calls. */

void dp_process_group_moved(dp_process_group_engine *e)
{
    e->moved = true;
}

void dp_process_group_drop(dp_process_group_engine *e)
{
    e->dropped = true;
    e->summed = false;
}

/* Checked before any process begins, so that a batch is added whole or not at all. */
static bool are_tokens(const dp_process_group_engine *e, const dp_gpt_batch *batch)
{
    const uint32_t vocab = e->model->config.vocab;
    const size_t n = batch->rows * batch->length;
    const bool marks =
        e->member.engine == NULL || (e->member.backend->capabilities & DP_CAN_DOCUMENTS) != 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t x = marks ? dp_token_of(batch->x[i]) : batch->x[i];
        const uint32_t y = batch->y[i];
        if (x >= vocab || (y >= vocab && !(marks && y == DP_TOKEN_NO_LOSS))) {
            return false;
        }
    }
    return true;
}

/* The first one's weights, where the others find them. */
static dp_status show_weights(dp_process_group_engine *e)
{
    const dp_process_group_member *const m = &e->member;
    const float *const x =
        m->engine != NULL ? m->backend->values(m->engine, DP_VECTOR_X) : dp_gpt_params(m->gpt);
    if (x == NULL) {
        return dp_why_set(&e->problem, DP_IO, "%s", m->backend->problem(m->engine));
    }
    memcpy(dp_zero_shared(m->zero), x, e->n * sizeof *x);
    return DP_OK;
}

dp_status dp_process_group_step(dp_process_group_engine *e, const dp_gpt_batch *batch, float scale,
                                double *loss_sum)
{
    dp_process_group_board *const b = e->member.board;
    const size_t most = (size_t)e->member.rows_max * e->member.context;
    const size_t n = batch->rows * batch->length;
    if (batch->rows == 0 || batch->rows > e->member.rows_max || batch->length == 0 ||
        batch->length > e->member.context || !are_tokens(e, batch)) {
        return DP_BADARG;
    }
    memcpy(b->tokens, batch->x, n * sizeof *b->tokens);
    memcpy(b->tokens + most, batch->y, n * sizeof *b->tokens);
    b->rows = (uint32_t)batch->rows;
    b->length = (uint32_t)batch->length;
    b->scale = scale;
    /* After a sum lane 0 holds it and the others parts of it. */
    b->clean = e->dropped  ? DP_PROCESS_GROUP_CLEAN_ALL
               : e->summed ? DP_PROCESS_GROUP_CLEAN_OTHERS
                           : DP_PROCESS_GROUP_CLEAN_NONE;
    b->moved = e->moved;
    if (e->moved) {
        DP_TRY(show_weights(e));
    }
    DP_TRY(tell(e, DP_PROCESS_GROUP_STEP));
    e->moved = false;
    e->dropped = false;
    e->summed = false;
    double sum = 0;
    for (uint32_t lane = 0; lane < e->team->lanes; lane++) {
        sum += b->losses[lane];
    }
    *loss_sum = sum;
    return isfinite(sum) ? DP_OK : DP_DIVERGED;
}

static dp_status sum_up(dp_process_group_engine *e)
{
    if (e->dropped) {
        DP_TRY(tell(e, DP_PROCESS_GROUP_DROP));
        e->dropped = false;
    }
    if (!e->summed) {
        DP_TRY(tell(e, DP_PROCESS_GROUP_REDUCE));
        e->summed = true;
    }
    return DP_OK;
}

dp_status dp_process_group_norm(dp_process_group_engine *e, double *norm)
{
    DP_TRY(sum_up(e));
    *norm = e->member.board->norm;
    return DP_OK;
}

/* n floats of the host for the i-th that is gathered. */
static float *whole_of(dp_process_group_engine *e, size_t i)
{
    if (e->whole[i] == NULL) {
        e->whole[i] = dp_alloc(e->n, sizeof(float));
    }
    if (e->whole[i] == NULL) {
        DP_IGNORE(dp_why_set(&e->problem, DP_IO, "no memory for a checkpoint's vectors"));
    }
    return e->whole[i];
}

const float *dp_process_group_gradients(dp_process_group_engine *e)
{
    if (sum_up(e) != DP_OK) {
        return NULL;
    }
    if (e->member.engine == NULL) {
        return dp_zero_lane_of(e->member.zero, 0).grads;
    }
    /* Each card has its part of them. */
    return tell(e, DP_PROCESS_GROUP_SUMS) == DP_OK ? dp_zero_shared(e->member.zero) : NULL;
}

dp_status dp_process_group_update(dp_process_group_engine *e, const dp_optim_options *options,
                                  double norm)
{
    dp_process_group_board *const b = e->member.board;
    DP_TRY(sum_up(e));
    if (e->moved) { /* The others' copies of the weights are old, and each moves its own part. */
        b->rows = 0;
        b->clean = DP_PROCESS_GROUP_CLEAN_NONE;
        b->moved = true;
        DP_TRY(show_weights(e));
        DP_TRY(tell(e, DP_PROCESS_GROUP_STEP));
        e->moved = false;
    }
    b->options = *options;
    b->norm = norm;
    return tell(e, DP_PROCESS_GROUP_UPDATE);
}

dp_status dp_process_group_reset(dp_process_group_engine *e)
{
    return tell(e, DP_PROCESS_GROUP_RESET);
}

dp_status dp_process_group_lend(dp_process_group_engine *e,
                                dp_optim_vector out[DP_OPTIM_VECTORS_MAX], size_t *count)
{
    const size_t skipped = e->member.engine != NULL ? 1 : 0; /* x */
    uint32_t i = 0;
    do { /* The first answer says how many there are. */
        float *const whole = whole_of(e, i);
        if (whole == NULL) {
            return DP_IO;
        }
        e->member.board->vector = i;
        DP_TRY(tell(e, DP_PROCESS_GROUP_GATHER));
        memcpy(whole, dp_zero_shared(e->member.zero), e->n * sizeof(float));
        out[i] = (dp_optim_vector){.name = e->member.vectors[skipped + i].name, .values = whole};
        i++;
    } while (i < e->member.n_vectors);
    *count = i;
    return DP_OK;
}

const dp_optim_vector *dp_process_group_card_x(const dp_process_group_engine *e)
{
    return &e->member.vectors[0];
}

dp_status dp_process_group_take(dp_process_group_engine *e, uint64_t updates)
{
    const size_t count = e->member.n_vectors;
    if (count == 0) {
        return DP_BADARG; /* Nothing was lent. */
    }
    e->member.board->updates = updates;
    for (uint32_t i = 0; i < count; i++) {
        e->member.board->vector = i;
        e->member.board->last = i + 1 == count;
        memcpy(dp_zero_shared(e->member.zero), e->whole[i], e->n * sizeof(float));
        DP_TRY(tell(e, DP_PROCESS_GROUP_SCATTER));
    }
    return DP_OK;
}

uint64_t dp_process_group_updates(const dp_process_group_engine *e)
{
    return e->member.engine != NULL ? e->member.backend->updates(e->member.engine)
                                    : dp_zero_optim(e->member.zero)->steps;
}
