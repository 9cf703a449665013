/* Executes each command to the trainer and answers it. OPEN is in worker_open.c, REDUCE and ADD in
 * worker_parts.c, JUDGE in worker_judge.c, EVAL and SAMPLE in worker_questions.c. */
#include <string.h>

#include "compute/codec/codec.h"
#include "compute/model/state.h"
#include "compute/worker/worker_inside.h"

static void set_training(dp_worker *w, bool training)
{
    w->training = training;
    dp_laps_set(&w->laps, training);
    if (!training) {
        dp_script_train(w->script, 0, 0);
    }
}

static dp_status answer_ready(dp_worker *w)
{
    dp_view state;
    dp_trainer_msg reply = {.kind = DP_TRAINER_READY_AT, .round = dp_trainer_round(w->trainer)};
    DP_TRY(dp_trainer_state_bytes(w->trainer, &state, &reply.root));
    w->ready = true;
    set_training(w, false); /* until TRAIN: RESTORE may come first */
    w->told_steps = 0;
    dp_worker_open_script(w); /* A script that comes now begins with these weights. */
    return dp_worker_answer(w, &reply, NULL, 0);
}

static dp_status do_init(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    (void)c;
    (void)why;
    DP_TRY(dp_trainer_init(w->trainer));
    return answer_ready(w);
}

static dp_status do_load(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    (void)why;
    dp_view state;
    DP_TRY(dp_memfd_map(
        c->fds[0], dp_state_bytes(dp_trainer_elements(w->trainer), DP_STATE_MOMENTS_MAX), &state));
    const dp_status status = dp_trainer_load(w->trainer, c->msg.round, state);
    dp_memfd_unmap(state);
    DP_TRY(status);
    return answer_ready(w);
}

static dp_status do_restore(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    (void)why;
    const size_t n = dp_trainer_elements(w->trainer);
    dp_view a;
    dp_view blob = {0};
    DP_TRY(dp_memfd_map(c->fds[0], 4 * (uint64_t)n, &a));
    dp_status status = DP_OK;
    if (c->n_fds > 1) {
        status = dp_memfd_map(c->fds[1], dp_codec_bytes_max_any(n), &blob);
    }
    if (status == DP_OK) {
        const dp_trainer_earlier earlier = {.kind = c->msg.restore,
                                            .settle = c->msg.settle,
                                            .clip = c->msg.clip,
                                            .lambda = c->msg.lambda,
                                            .steps = c->msg.steps,
                                            .tokens = c->msg.tokens,
                                            .carried = c->msg.carried,
                                            .cuts = c->msg.cuts,
                                            .taken = c->msg.taken,
                                            .a = a,
                                            .blob = blob};
        status = dp_trainer_restore(w->trainer, &earlier);
        dp_memfd_unmap(blob);
    }
    dp_memfd_unmap(a);
    return status;
}

static dp_status do_train(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    (void)why;
    set_training(w, c->msg.round != 0);
    if (w->training) {
        dp_script_train(w->script, c->msg.round, c->msg.tokens);
        dp_trainer_aim(w->trainer, c->msg.round, c->msg.tokens);
        return dp_trainer_lease(w->trainer, &c->msg.reach, c->msg.ranges, c->msg.n_ranges);
    }
    return DP_OK;
}

/* The publication under way, waited for where it is not there yet. */
static dp_status answer_published(dp_worker *w)
{
    dp_view views[2];
    dp_trainer_msg *const reply = &w->published;
    w->publishing = false;
    dp_laps_enter(&w->laps, DP_LAP_PUBLISH);
    DP_TRY(dp_trainer_publish_take(w->trainer, &views[0], &views[1]));
    DP_TRY(dp_trainer_codec_error(w->trainer, &reply->norm, &reply->error));
    if (reply->cuts.n > 0) {
        return dp_worker_answer_parts(w, reply, views);
    }
    DP_TRY(dp_codec_energy(views[0], dp_trainer_elements(w->trainer), &reply->energy));
    dp_laps_enter(&w->laps, DP_LAP_TELL);
    return dp_worker_answer(w, reply, views, 2);
}

/* The same where there is something to wait for, only once it is there. */
static dp_status look_after_publication(dp_worker *w)
{
    bool ready = true;
    if (dp_worker_trains(w)) {
        DP_TRY(dp_trainer_publish_ready(w->trainer, &ready));
    }
    return ready ? answer_published(w) : DP_OK;
}

/* True: the command waits for the script's next look. */
static bool defer(dp_worker *w, const dp_worker_command *c)
{
    const uint64_t wait_us = dp_script_ask_copy(w->script);
    if (wait_us == 0) {
        return false;
    }
    w->deferred = true;
    w->waits_until_us = dp_now_us() + wait_us;
    w->waiting = c->msg;
    return true;
}

static dp_status publish(dp_worker *w, const dp_trainer_msg *msg)
{
    const dp_trainer_progress done = dp_trainer_offer(w->trainer);
    const dp_reach reach = dp_trainer_reach(w->trainer);
    dp_laps_enter(&w->laps, DP_LAP_PUBLISH);
    DP_TRY(dp_trainer_publish_start(w->trainer, msg->dense, msg->keep));
    w->publishing = true;
    w->told_steps = 0;
    w->published = (dp_trainer_msg){.kind = DP_TRAINER_PUBLISHED,
                                    .round = msg->round,
                                    .steps = done.steps,
                                    .tokens = done.tokens,
                                    .loss = done.loss,
                                    .carried = done.carried,
                                    .reach = reach,
                                    .cuts = msg->cuts};
    return look_after_publication(w);
}

static dp_status do_publish(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    (void)why;
    return defer(w, c) ? DP_OK : publish(w, &c->msg);
}

static dp_status apply_mapped(dp_worker *w, const dp_worker_command *c, const dp_view *blobs)
{
    const dp_trainer_record record = {.round = c->msg.round,
                                      .tokens = c->msg.tokens,
                                      .alpha = c->msg.alpha,
                                      .clip = c->msg.clip,
                                      .lambda = c->msg.lambda,
                                      .settle = c->msg.settle,
                                      .cuts = c->msg.cuts,
                                      .taken = c->msg.taken,
                                      .contributors = c->msg.contributors,
                                      .added = c->msg.at,
                                      .q = c->msg.q,
                                      .blobs = blobs,
                                      .ranges = c->msg.shares,
                                      .n_items = c->msg.n_items};
    dp_laps_enter(&w->laps, DP_LAP_APPLY);
    DP_TRY(dp_trainer_apply(w->trainer, &record));
    if (record.lambda == 0) { /* Steps are counted from nothing again, and the first is news. */
        w->told_steps = 0;
    }
    dp_laps_enter(&w->laps, DP_LAP_STATE);
    dp_trainer_msg reply = {.kind = DP_TRAINER_APPLIED,
                            .round = c->msg.round,
                            .outer_reach = dp_trainer_outer(w->trainer).reach};
    dp_view state;
    DP_TRY(dp_trainer_state_bytes(w->trainer, &state, &reply.root));
    dp_laps_enter(&w->laps, DP_LAP_TELL);
    return dp_worker_answer(w, &reply, &state, 1);
}

static dp_status do_apply(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    dp_view blobs[DP_TRAINER_ITEMS_MAX] = {0};
    DP_TRY(dp_worker_map_items(w, c, blobs, why));
    const dp_status status = apply_mapped(w, c, blobs);
    dp_worker_unmap_items(c, blobs);
    return status;
}

static dp_status freeze(dp_worker *w, const dp_trainer_msg *msg)
{
    const dp_trainer_progress done = dp_trainer_progress_of(w->trainer);
    dp_view views[2];
    unsigned __int128 energy = 0;
    DP_TRY(dp_trainer_freeze(w->trainer, &views[0], &views[1]));
    DP_TRY(dp_codec_energy(views[0], dp_trainer_elements(w->trainer), &energy));
    dp_trainer_msg reply = {.kind = DP_TRAINER_FROZEN,
                            .steps = done.steps,
                            .tokens = done.tokens,
                            .reach = dp_trainer_reach(w->trainer),
                            .energy = energy};
    memcpy(reply.exchange, msg->exchange, sizeof reply.exchange);
    return dp_worker_answer(w, &reply, views, 2);
}

static dp_status do_freeze(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    (void)why;
    return defer(w, c) ? DP_OK : freeze(w, &c->msg);
}

static dp_status do_mix(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    (void)why;
    const uint64_t most = dp_codec_bytes_max_any(dp_trainer_elements(w->trainer));
    const uint64_t weights[2] = {c->msg.weight_own, c->msg.weight_other};
    dp_view blobs[2];
    DP_TRY(dp_memfd_map(c->fds[0], most, &blobs[0]));
    dp_trainer_msg reply = {.kind = DP_TRAINER_MIXED};
    dp_status status = dp_memfd_map(c->fds[1], most, &blobs[1]);
    if (status == DP_OK) {
        status = dp_trainer_mix(w->trainer, weights, blobs, c->msg.lambda, &reply.moved);
        dp_memfd_unmap(blobs[1]);
    }
    dp_memfd_unmap(blobs[0]);
    DP_TRY(status);
    memcpy(reply.exchange, c->msg.exchange, sizeof reply.exchange);
    return dp_worker_answer(w, &reply, NULL, 0);
}

static dp_status do_limits(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    (void)why;
    dp_worker_limit(w, c->msg.celsius, c->msg.watts);
    return DP_OK;
}

static dp_status do_stop(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    (void)c;
    (void)why;
    w->stopped = true;
    return DP_OK;
}

typedef enum need { NEED_NOTHING, NEED_TRAINER, NEED_THETA } need;

static const struct {
    dp_status (*run)(dp_worker *w, const dp_worker_command *c, dp_why *why);
    need need;
    uint32_t least_fds;
} handlers[DP_TRAINER_KIND_COUNT] = {
    [DP_TRAINER_OPEN] = {dp_worker_open_trainer, NEED_NOTHING, DP_WORKER_OPEN_FDS},
    [DP_TRAINER_INIT] = {do_init, NEED_TRAINER, 0},
    [DP_TRAINER_LOAD] = {do_load, NEED_TRAINER, 1},
    [DP_TRAINER_RESTORE] = {do_restore, NEED_THETA, 1},
    [DP_TRAINER_TRAIN] = {do_train, NEED_THETA, 0},
    [DP_TRAINER_PUBLISH] = {do_publish, NEED_THETA, 0},
    [DP_TRAINER_APPLY] = {do_apply, NEED_THETA, 0},
    [DP_TRAINER_FREEZE] = {do_freeze, NEED_THETA, 0},
    [DP_TRAINER_MIX] = {do_mix, NEED_THETA, 2},
    [DP_TRAINER_EVAL] = {dp_worker_eval, NEED_THETA, 0},
    [DP_TRAINER_SAMPLE] = {dp_worker_sample, NEED_THETA, 0},
    [DP_TRAINER_STOP] = {do_stop, NEED_NOTHING, 0},
    [DP_TRAINER_LIMITS] = {do_limits, NEED_NOTHING, 0},
    [DP_TRAINER_REDUCE] = {dp_worker_reduce, NEED_TRAINER, 1},
    [DP_TRAINER_ADD] = {dp_worker_add, NEED_THETA, 1},
    [DP_TRAINER_JUDGE] = {dp_worker_judge, NEED_THETA, 1},
};

static dp_status dispatch(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    const dp_trainer_kind kind = c->msg.kind;
    if (handlers[kind].run == NULL) {
        return dp_why_set(why, DP_BADMSG, "not a command for a trainer");
    }
    if (handlers[kind].need >= NEED_TRAINER && w->trainer == NULL) {
        return dp_why_set(why, DP_BADARG, "OPEN comes first");
    }
    if (handlers[kind].need == NEED_THETA && !w->ready) {
        return dp_why_set(why, DP_BADARG, "INIT or LOAD comes first");
    }
    if (c->n_fds < handlers[kind].least_fds) {
        return dp_why_set(why, DP_BADMSG, "%u files are missing",
                          handlers[kind].least_fds - c->n_fds);
    }
    return handlers[kind].run(w, c, why);
}

/* After the answer: a device that is gone stays gone for this process. Its failures are DP_IO
 * (backend.h); every other status has a reason of its own. */
static dp_status answer_and_judge(const dp_worker *w, dp_trainer_kind of, dp_status status,
                                  const dp_why *why)
{
    const bool by_device = status == DP_IO && w->trainer != NULL;
    const char *const problem = by_device ? dp_trainer_problem(w->trainer) : "";
    dp_why told = *why;
    if (problem[0] != '\0') {
        DP_IGNORE(dp_why_set(&told, status, "%.400s", problem)); /* Known already. */
    }
    DP_TRY(dp_worker_answer_failed(w, of, status, &told));
    return problem[0] != '\0' ? DP_IO : DP_OK;
}

/* Of a publication that steps went on beside. */
static dp_status judge_publication(const dp_worker *w, dp_status status)
{
    const dp_why why = {{0}};
    return status == DP_OK || status == DP_CLOSED
               ? status
               : answer_and_judge(w, DP_TRAINER_PUBLISH, status, &why);
}

/* All that looks at work buffers comes after a publication under way; more work and others' sums do
 * not. */
static bool goes_beside(const dp_worker_command *c)
{
    return c->msg.kind == DP_TRAINER_REDUCE || c->msg.kind == DP_TRAINER_LIMITS ||
           (c->msg.kind == DP_TRAINER_TRAIN && c->msg.round != 0);
}

bool dp_worker_has_copy(dp_worker *w)
{
    pthread_mutex_lock(&w->lock);
    const bool has = w->deferred && w->copied;
    pthread_mutex_unlock(&w->lock);
    return has;
}

/* Between enter and leave of the script. */
static dp_status end_deferred(dp_worker *w, dp_script_change *change)
{
    const dp_trainer_msg *const msg = &w->waiting;
    const dp_why why = {{0}};
    pthread_mutex_lock(&w->lock);
    w->deferred = false;
    w->copied = false;
    pthread_mutex_unlock(&w->lock);
    dp_script_ask_no_more(w->script);
    const dp_status status = msg->kind == DP_TRAINER_PUBLISH ? publish(w, msg) : freeze(w, msg);
    dp_laps_enter(&w->laps, DP_LAP_REST);
    *change = dp_worker_changes(msg->kind, status);
    return status == DP_OK || status == DP_CLOSED ? status
                                                  : answer_and_judge(w, msg->kind, status, &why);
}

dp_status dp_worker_obey_deferred(dp_worker *w)
{
    dp_script_change change;
    dp_script_enter(w->script, true);
    const dp_status status = end_deferred(w, &change);
    dp_script_leave(w->script, change);
    return status;
}

/* Between enter and leave of the script. */
static dp_status obey(dp_worker *w, const dp_worker_command *c, dp_script_change *change)
{
    dp_why why = {{0}};
    dp_script_change before = DP_SCRIPT_SAME;
    if (w->deferred && !goes_beside(c)) { /* It is made of the last copy. */
        const dp_status ended = end_deferred(w, &before);
        if (ended != DP_OK) {
            dp_worker_close_fds(c->fds, c->n_fds);
            return ended;
        }
    }
    if (w->publishing && !goes_beside(c)) {
        const dp_status published = judge_publication(w, answer_published(w));
        dp_laps_enter(&w->laps, DP_LAP_REST);
        if (published != DP_OK) {
            dp_worker_close_fds(c->fds, c->n_fds);
            return published;
        }
    }
    const dp_status status = dispatch(w, c, &why);
    dp_laps_enter(&w->laps, DP_LAP_REST);
    dp_worker_close_fds(c->fds, c->n_fds);
    *change = dp_worker_changes(c->msg.kind, status);
    *change = *change == DP_SCRIPT_SAME ? before : *change;
    if (status == DP_OK || status == DP_CLOSED) {
        return status;
    }
    return answer_and_judge(w, c->msg.kind, status, &why);
}

dp_status dp_worker_obey(dp_worker *w, const dp_worker_command *c)
{
    dp_script_change change = DP_SCRIPT_SAME;
    dp_script *const script = w->script; /* OPEN makes it, and comes before any script. */
    dp_script_enter(script, !goes_beside(c));
    const dp_status status = obey(w, c, &change);
    dp_script_leave(script, change);
    return status;
}

enum { STEP_US = 100 * 1000 }; /* STEP goes out at most this often */

/* Work that was not steps was waiting for their samples. */
static dp_trainer_spent spent_of(const dp_worker *w)
{
    const uint64_t *const us = w->laps.total_us;
    const uint64_t computed = dp_trainer_computed_us(w->trainer);
    const uint64_t work = us[DP_LAP_WORK];
    return (dp_trainer_spent){.data_us = work > computed ? work - computed : 0,
                              .publish_us = us[DP_LAP_PUBLISH],
                              .apply_us = us[DP_LAP_APPLY],
                              .state_us = us[DP_LAP_STATE],
                              .tell_us = us[DP_LAP_TELL]};
}

bool dp_worker_trains(const dp_worker *w)
{
    return w->training && !atomic_load(&w->scripted) && !dp_trainer_waits(w->trainer);
}

dp_status dp_worker_end_publication(dp_worker *w, dp_script_change *change)
{
    const dp_status published = look_after_publication(w);
    dp_laps_enter(&w->laps, DP_LAP_REST);
    *change = dp_worker_changes(DP_TRAINER_PUBLISH, published);
    return judge_publication(w, published);
}

dp_status dp_worker_train_on(dp_worker *w)
{
    dp_laps_enter(&w->laps, DP_LAP_WORK);
    const dp_status status = dp_trainer_work(w->trainer);
    dp_laps_enter(&w->laps, DP_LAP_REST);
    if (status != DP_OK) {
        set_training(w, false);
        const dp_why why = {{0}};
        DP_TRY(answer_and_judge(w, DP_TRAINER_TRAIN, status, &why));
    }
    if (w->publishing) {
        const dp_status published = judge_publication(w, look_after_publication(w));
        dp_laps_enter(&w->laps, DP_LAP_REST);
        return published;
    }
    if (status != DP_OK) {
        return DP_OK;
    }
    const dp_trainer_progress done = dp_trainer_progress_of(w->trainer);
    const uint64_t tried = (uint64_t)done.steps + done.skipped;
    const bool soon = !dp_worker_step_is_due(w) && !dp_trainer_waits(w->trainer);
    return tried == w->told_steps || soon ? DP_OK : dp_worker_tell_step(w);
}

bool dp_worker_step_is_due(const dp_worker *w)
{
    return dp_now_us() - w->told_us >= STEP_US;
}

dp_status dp_worker_tell_step(dp_worker *w)
{
    const dp_trainer_progress done = dp_trainer_progress_of(w->trainer);
    w->told_steps = (uint64_t)done.steps + done.skipped;
    w->told_us = dp_now_us();
    dp_laps_enter(&w->laps, DP_LAP_TELL);
    const dp_sensor_reading felt = dp_worker_feel(w);
    const dp_trainer_msg reply = {.kind = DP_TRAINER_STEP,
                                  .round = done.round,
                                  .steps = done.steps,
                                  .tokens = done.tokens,
                                  .loss = done.loss,
                                  .skipped = done.skipped,
                                  .spikes = done.spikes,
                                  .empty = done.empty,
                                  .computed_us =
                                      dp_trainer_computed_us(w->trainer) + w->scripted_us,
                                  .trained_us = dp_laps_total(&w->laps),
                                  .spent = spent_of(w),
                                  .celsius = felt.celsius > 0 ? (uint32_t)felt.celsius : 0,
                                  .watts = felt.watts};
    const dp_status told = dp_worker_answer(w, &reply, NULL, 0);
    dp_laps_enter(&w->laps, DP_LAP_REST);
    return told;
}
