/* A script in the worker: the daemon is told of it, and commands say whether they moved weights. */
#include "compute/worker/worker_inside.h"

static void on_present(void *context, uint32_t pid)
{
    const dp_worker *const w = context;
    const dp_trainer_msg told = {.kind = DP_TRAINER_SCRIPT, .pid = pid};
    DP_IGNORE(dp_worker_answer(w, &told, NULL, 0)); /* If the daemon is gone, all ends. */
}

static void on_copied(void *context)
{
    dp_worker *const w = context;
    pthread_mutex_lock(&w->lock);
    w->copied = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void on_stepped(void *context, const dp_script_progress *progress)
{
    const dp_worker *const w = context;
    const dp_trainer_msg told = {.kind = DP_TRAINER_STEP,
                                 .round = progress->done.round,
                                 .steps = progress->done.steps,
                                 .tokens = progress->done.tokens,
                                 .loss = progress->done.loss,
                                 .computed_us = progress->computed_us,
                                 .trained_us = progress->trained_us};
    DP_IGNORE(dp_worker_answer(w, &told, NULL, 0)); /* As above. */
}

void dp_worker_open_script(dp_worker *w)
{
    dp_why why = {{0}};
    if (w->script != NULL || w->options.script_path == NULL ||
        !dp_manifest_external(dp_trainer_manifest(w->trainer))) {
        return;
    }
    const dp_script_setup setup = {.path = w->options.script_path,
                                   .trainer = w->trainer,
                                   .context = w,
                                   .present = on_present,
                                   .copied = on_copied,
                                   .stepped = on_stepped};
    if (dp_script_open(&w->script, &setup, &why) != DP_OK && w->options.tell != NULL) {
        w->options.tell(why.text);
    }
}

dp_script_change dp_worker_changes(dp_trainer_kind kind, dp_status status)
{
    switch ((int)kind) {
    case DP_TRAINER_INIT:
    case DP_TRAINER_LOAD:
    case DP_TRAINER_RESTORE:
        return DP_SCRIPT_SET;
    case DP_TRAINER_APPLY:
    case DP_TRAINER_MIX:
        return DP_SCRIPT_MOVED;
    case DP_TRAINER_PUBLISH:
    case DP_TRAINER_FREEZE: /* Work that is not finite is dropped. */
        return status == DP_OK ? DP_SCRIPT_SAME : DP_SCRIPT_MOVED;
    default:
        return DP_SCRIPT_SAME;
    }
}
