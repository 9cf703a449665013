/* A script in the worker: the daemon is told of it, and commands say whether they moved weights. */
#include "compute/worker/worker_inside.h"

/* The engine of a built-in model stops and begins with it. */
static void on_present(void *context, uint32_t pid)
{
    dp_worker *const w = context;
    atomic_store(&w->script_celsius, 0); /* The last one may be old. */
    atomic_store(&w->script_watts, 0);
    atomic_store(&w->scripted, pid != 0);
    pthread_mutex_lock(&w->lock);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
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

/* Between enter and leave of the script, as all that comes from it. */
static void on_stepped(void *context, const dp_script_progress *progress)
{
    dp_worker *const w = context;
    dp_trainer_msg told = {.kind = DP_TRAINER_STEP,
                           .round = progress->done.round,
                           .steps = progress->done.steps,
                           .tokens = progress->done.tokens,
                           .loss = progress->done.loss,
                           .skipped = progress->done.skipped,
                           .spikes = progress->done.spikes,
                           .empty = progress->done.empty,
                           .again = progress->done.again,
                           .computed_us = progress->computed_us,
                           .trained_us = progress->trained_us,
                           .celsius = atomic_load(&w->script_celsius),
                           .watts = atomic_load(&w->script_watts)};
    w->scripted_us = progress->computed_us;
    if (!dp_manifest_external(dp_trainer_manifest(w->trainer))) { /* The engine's time counts on. */
        dp_laps_enter(&w->laps, w->laps.lap);
        told.computed_us += dp_trainer_computed_us(w->trainer);
        told.trained_us = dp_laps_total(&w->laps);
    }
    DP_IGNORE(dp_worker_answer(w, &told, NULL, 0)); /* As above. */
}

/* A script gives weights: a run that exchanges gradients has no use for them, and one of adapters
 * has other tensors than the script's model. */
static bool takes_scripts(const dp_worker *w)
{
    const dp_manifest *const m = dp_trainer_manifest(w->trainer);
    return w->options.script_path != NULL && m->exchange == DP_EXCHANGE_UPDATES &&
           !dp_manifest_adapts(m);
}

static void tell(const dp_worker *w, const char *sentence)
{
    if (w->options.tell != NULL) {
        w->options.tell(sentence);
    }
}

void dp_worker_keep_files(dp_worker *w, const dp_worker_command *c)
{
    const dp_manifest *const m = dp_trainer_manifest(w->trainer);
    if (takes_scripts(w) && !dp_manifest_external(m) &&
        dp_run_files_open(&w->files, m, c->fds + 1, w->shards) != DP_OK) {
        tell(w, "no memory or descriptors for files of the run: scripts cannot read its text here");
    }
}

void dp_worker_open_script(dp_worker *w)
{
    dp_why why = {{0}};
    if (w->script != NULL || !takes_scripts(w)) {
        return;
    }
    const dp_script_setup setup = {.path = w->options.script_path,
                                   .trainer = w->trainer,
                                   .files = &w->files,
                                   .context = w,
                                   .present = on_present,
                                   .copied = on_copied,
                                   .stepped = on_stepped};
    if (dp_script_open(&w->script, &setup, &why) != DP_OK) {
        tell(w, why.text);
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
