#include "compute/standalone/standalone.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "base/run/samples.h"
#include "compute/backend/backend_cpu.h"
#include "compute/backend/process_group_cards.h"
#include "compute/format/hf_config.h"
#include "compute/format/prepare.h"
#include "compute/machine/files.h"
#include "compute/machine/memory.h"
#include "compute/machine/pool.h"
#include "compute/standalone/standalone_file.h"
#include "compute/standalone/standalone_folder.h"
#include "compute/trainer/trainer_keep.h"

/* Of a micro-batch: packing the weights for it is then a small part (plan.c), and caches hold
 * it. */
enum {
    /* Above it, fine-tuning forgets more than it learns: published recipes have 1e-5 to 1e-3 (the
     * highest with adapters), a training from nothing 3e-3, the default. */
    FINE_TUNING_LR_NANO = 1000000,
    TOKENS_ENOUGH = 2048,
    CARD_TOKENS_ENOUGH = 8192 /* as the CUDA engine's plan has it */
};

typedef struct solo {
    const dp_standalone_job *job;
    dp_standalone_options options; /* complete from start on */
    dp_standalone_folder folder;
    dp_trainer *trainer;
    dp_standalone_head head; /* of the newest checkpoint */
    dp_hash hash;            /* of it */
    uint64_t target;
    size_t threads;
    double saved_at; /* seconds of the clock */
    double train_s;
    double step_s; /* smoothed */
    uint64_t done_here;
    uint64_t val_every; /* steps; 0: never */
    dp_standalone_best best;
} solo;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t batch_tokens(const solo *s)
{
    return (uint64_t)s->folder.manifest.batch_rows * s->folder.manifest.context;
}

static dp_standalone_event event_of(const solo *s, dp_standalone_event_kind kind)
{
    dp_standalone_event event = {
        .kind = kind, .target = s->target, .hash = s->hash, .threads = (uint32_t)s->threads};
    if (s->trainer != NULL && dp_trainer_between_steps(s->trainer)) {
        const dp_trainer_place place = dp_trainer_place_of(s->trainer);
        event.steps = place.steps;
        event.tokens = place.tokens;
        event.skipped = place.skipped;
        event.spikes = place.spikes;
        event.last = dp_trainer_last_of(s->trainer);
    }
    return event;
}

static void tell(const solo *s, const dp_standalone_event *event)
{
    s->job->tell(s->job->context, event);
}

/* ---- before the first step ---- */

static bool is_on_cpu(const solo *s)
{
    return s->job->backend == NULL || s->job->backend == dp_backend_cpu();
}

static uint32_t rows_of(const solo *s, const dp_manifest *m)
{
    const uint32_t tokens = is_on_cpu(s) ? TOKENS_ENOUGH : CARD_TOKENS_ENOUGH;
    const uint32_t rows = (tokens + m->context - 1) / m->context;
    return rows < m->batch_rows ? rows : m->batch_rows;
}

/* Before a card plans what it cannot have. */
static dp_status check_adapters(const solo *s, const dp_manifest *manifest, dp_why *why)
{
    if (!dp_manifest_adapts(manifest)) {
        return DP_OK;
    }
    if (!is_on_cpu(s) && (s->job->backend->capabilities & DP_CAN_ADAPTERS) == 0) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "the CPU trains adapters, the backend '%s' does not yet; --backend cpu "
                          "asks for the CPU",
                          s->job->backend->name);
    }
    if (s->job->team != NULL) {
        return dp_why_set(why, DP_BADARG,
                          "adapters are trained by one process on the CPU: leave out --processes, "
                          "and its threads do the work");
    }
    return DP_OK;
}

static dp_status plan_for(const solo *s, const dp_manifest *manifest, uint32_t rows, dp_plan *plan,
                          dp_why *why)
{
    DP_TRY(check_adapters(s, manifest, why));
    const uint64_t usable = dp_memory_usable();
    const uint64_t budget = usable != 0 ? usable : UINT64_MAX;
    const dp_backend *const backend = s->job->backend != NULL ? s->job->backend : dp_backend_cpu();
    const dp_process_group *const team =
        dp_process_group_serves(s->job->team, backend) ? s->job->team : NULL;
    const dp_group_devices devices =
        dp_process_group_devices(s->job->team, backend, s->job->device);
    dp_manifest own = *manifest;
    own.precision = dp_group_devices_precision(&devices, own.precision);
    const dp_plan_request request = {.manifest = &own,
                                     .threads = s->threads,
                                     /* The card's own. */
                                     .budget = is_on_cpu(s) ? budget : 0,
                                     .rows = rows,
                                     .processes =
                                         team != NULL ? dp_process_group_processes(team) : 0,
                                     .lanes = team != NULL ? dp_process_group_lanes(team) : 0,
                                     .alone = true};
    return s->job->backend == NULL ? dp_plan_make(plan, &request, why)
                                   : s->job->backend->plan(s->job->device, &request, plan, why);
}

/* Reports the plan before anything is read or made. *rows: 0 becomes the number that fits. */
static dp_status show_plan(const solo *s, const dp_manifest *manifest, uint32_t *rows, dp_why *why)
{
    dp_plan plan;
    const dp_status status = plan_for(s, manifest, *rows, &plan, why);
    if (status == DP_OK && *rows == 0) {
        *rows = plan.rows;
    }
    if (status == DP_OK || status == DP_TOOBIG) {
        dp_standalone_event event = event_of(s, DP_STANDALONE_PLAN);
        event.plan = &plan;
        event.why = status == DP_OK ? "" : why->text;
        tell(s, &event);
    }
    return status;
}

/* A card that does not hold so many rows takes fewer, which a processor's memory would tell of. */
static bool fits(const solo *s, const dp_manifest *manifest, uint32_t rows)
{
    dp_plan plan;
    dp_why why = {{0}};
    return is_on_cpu(s) || plan_for(s, manifest, rows, &plan, &why) != DP_TOOBIG;
}

static dp_status open_trainer(solo *s, dp_why *why)
{
    dp_trainer_setup setup = dp_standalone_folder_setup(&s->folder);
    setup.threads = s->threads;
    setup.rows = s->head.rows;
    setup.backend = s->job->backend;
    setup.device = s->job->device;
    setup.team = s->job->team;
    return dp_trainer_open(&s->trainer, &setup, why);
}

/* On a full disk the older checkpoint makes room for the new one. */
static dp_status save(solo *s, dp_why *why)
{
    const double start = now_s();
    const char *const folder = s->folder.path;
    dp_standalone_head head = s->head;
    dp_status status =
        dp_standalone_save(folder, DP_STANDALONE_LAST, s->trainer, &head, &s->hash, why);
    if (status == DP_NOSPACE && dp_standalone_keep_one(folder, s->head.place.steps)) {
        status = dp_standalone_save(folder, DP_STANDALONE_LAST, s->trainer, &head, &s->hash, why);
    }
    s->saved_at = now_s();
    DP_TRY(status);
    s->head = head;
    dp_standalone_event event = event_of(s, DP_STANDALONE_SAVED);
    event.took_s = s->saved_at - start;
    tell(s, &event);
    return DP_OK;
}

static dp_status first_weights(solo *s, dp_why *why)
{
    dp_buf state;
    dp_status status = dp_standalone_folder_init(&s->folder, &state, why);
    if (status == DP_OK) {
        status = state.size > 0 ? dp_trainer_load(s->trainer, 0, dp_buf_view(&state))
                                : dp_trainer_init(s->trainer);
    }
    dp_buf_close(&state);
    return status;
}

static void note_rate(const solo *s, const dp_manifest *m)
{
    char text[160];
    if (s->job->weights == NULL || m->lr_nano <= FINE_TUNING_LR_NANO) {
        return;
    }
    snprintf(text, sizeof text,
             "train.lr is %g, a rate for training from nothing; given weights are usually trained "
             "on with 1e-5 to 2e-4",
             (double)m->lr_nano * 1e-9);
    dp_standalone_event event = event_of(s, DP_STANDALONE_NOTE);
    event.why = text;
    tell(s, &event);
}

static dp_status begin(solo *s, dp_why *why)
{
    dp_manifest manifest;
    const dp_standalone_job *const job = s->job;
    if (dp_manifest_decode(&manifest, job->manifest) != DP_OK) {
        return dp_why_set(why, DP_BADMSG, "this is no manifest in its canonical form");
    }
    if (job->rows > manifest.batch_rows) {
        return dp_why_set(why, DP_BADARG, "--rows %" PRIu32 " is more than train.batch, %" PRIu32,
                          job->rows, manifest.batch_rows);
    }
    uint32_t rows = job->rows != 0 ? job->rows : rows_of(s, &manifest);
    rows = job->rows != 0 || fits(s, &manifest, rows) ? rows : 0;
    DP_TRY(show_plan(s, &manifest, &rows, why));
    note_rate(s, &manifest);
    dp_prepared made;
    const dp_prepare_job from = {
        .text = job->text, .weights = job->weights, .skip_bad_lines = job->skip_bad_lines};
    const dp_status prepared = dp_standalone_folder_begin(&s->folder, &manifest, &from, &made, why);
    if (prepared != DP_OK) { /* DP_UNSUPPORTED would mean the backend. */
        return prepared == DP_UNSUPPORTED ? DP_BADARG : prepared;
    }
    dp_standalone_event event = event_of(s, DP_STANDALONE_PREPARED);
    event.tokens = made.tokens;
    event.counts = &made.counts;
    tell(s, &event);
    s->head = (dp_standalone_head){.manifest = s->folder.hash, .rows = rows};
    DP_TRY(open_trainer(s, why));
    DP_TRY(first_weights(s, why));
    DP_TRY(dp_standalone_options_keep(&s->options, s->folder.path, why));
    /* From here on there is something to resume, and room for it on the disk. */
    return save(s, why);
}

/* The newest checkpoint that is whole; of the others it is told why not. */
static dp_status take_up(solo *s, dp_why *why)
{
    uint64_t steps[DP_STANDALONE_FILES_MAX];
    const size_t count = dp_standalone_list(s->folder.path, DP_STANDALONE_LAST, steps);
    dp_status status =
        dp_why_set(why, DP_NOTFOUND, "%.300s holds no checkpoint to resume from", s->folder.path);
    for (size_t i = 0; i < count; i++) {
        status = dp_standalone_peek(s->folder.path, DP_STANDALONE_LAST, steps[i], &s->head, why);
        if (status == DP_OK && (!dp_hash_equal(&s->head.manifest, &s->folder.hash) ||
                                s->head.rows > s->folder.manifest.batch_rows)) {
            status =
                dp_why_set(why, DP_BADMSG,
                           "the checkpoint of step %" PRIu64 " is of another manifest", steps[i]);
        }
        if (status == DP_OK && s->trainer == NULL) {
            DP_TRY(show_plan(s, &s->folder.manifest, &s->head.rows, why));
            DP_TRY(open_trainer(s, why));
            DP_TRY(dp_trainer_init(s->trainer));
        }
        if (status == DP_OK) {
            status =
                dp_standalone_load(s->folder.path, DP_STANDALONE_LAST, &s->head, s->trainer, why);
        }
        if (status == DP_OK) {
            return DP_OK;
        }
        dp_standalone_event event = event_of(s, DP_STANDALONE_NOTE);
        event.why = why->text;
        tell(s, &event);
    }
    return status;
}

static dp_status start(solo *s, dp_why *why)
{
    uint64_t steps[DP_STANDALONE_FILES_MAX];
    const dp_standalone_job *const job = s->job;
    DP_TRY(dp_standalone_folder_lock(&s->folder, job->folder, !job->resume, why));
    if (job->resume) {
        dp_standalone_options_inherit(&s->options, s->folder.path);
    }
    dp_standalone_options_complete(&s->options);
    if (s->options.val_steps == 0 && s->options.patience != 0) {
        return dp_why_set(why, DP_BADARG,
                          "--patience ends training by measurements, and --val-steps 0 makes none; "
                          "leave out one of them, or give --patience 0");
    }
    if (job->resume) {
        DP_TRY(dp_standalone_folder_open(&s->folder, why));
        if (job->manifest.size > 0) {
            DP_TRY(dp_standalone_folder_same(&s->folder, job->manifest, why));
        }
        DP_TRY(take_up(s, why));
    } else if (dp_standalone_list(s->folder.path, DP_STANDALONE_LAST, steps) > 0) {
        return dp_why_set(why, DP_EXISTS,
                          "%.300s holds a run already, at step %" PRIu64
                          "; go on with it by --resume, or give another --out",
                          s->folder.path, steps[0]);
    } else {
        DP_TRY(begin(s, why));
    }
    const uint64_t each = dp_trainer_batch_losses(s->trainer);
    s->target = s->options.steps != 0 ? s->options.steps
                                      : (s->folder.manifest.total_tokens + each - 1) / each;
    return DP_OK;
}

/* ---- validation ---- */

/* The best of an earlier process, if its checkpoint is there. */
static void take_up_best(solo *s)
{
    dp_standalone_head head;
    dp_why why;
    dp_standalone_best_read(s->folder.path, &s->best);
    s->best.known = s->best.known &&
                    dp_standalone_peek(s->folder.path, DP_STANDALONE_BEST, s->best.step, &head,
                                       &why) == DP_OK &&
                    dp_hash_equal(&head.manifest, &s->folder.hash);
}

/* Nothing with a loss is held out: no fault unless the user wants it measured. */
static dp_status nothing_held_out(const solo *s, dp_why *why)
{
    const dp_manifest *const m = &s->folder.manifest;
    dp_standalone_event event = event_of(s, DP_STANDALONE_NOTE);
    const dp_status status = dp_why_set(
        why, DP_BADARG,
        "nothing is held out, so nothing is validated: the data has %" PRIu64
        " sequences of model.context %" PRIu32 ", and in the last %g%% of it (data.val) no whole "
        "one has a loss; give more data, a smaller model.context or a larger data.val",
        dp_manifest_tokens(m) / m->context, m->context, m->val_per_mille / 10.0);
    if (s->options.val_steps != DP_STANDALONE_UNSET || s->options.patience != 0) {
        return status;
    }
    event.why = why->text;
    tell(s, &event);
    return DP_OK;
}

static dp_status plan_validation(solo *s, dp_why *why)
{
    const dp_standalone_options *const o = &s->options;
    const dp_manifest *const m = &s->folder.manifest;
    if (o->val_steps == 0) {
        return DP_OK;
    }
    if (m->val_per_mille == 0) {
        return o->val_steps == DP_STANDALONE_UNSET && o->patience == 0
                   ? DP_OK
                   : dp_why_set(why, DP_BADARG,
                                "the run holds nothing out (data.val is 0), so nothing can be "
                                "validated");
    }
    if (dp_trainer_held_out_losses(s->trainer) == 0) {
        return nothing_held_out(s, why);
    }
    const uint64_t tokens = dp_manifest_tokens(m);
    s->val_every = dp_standalone_val_steps(o, s->target, batch_tokens(s),
                                           tokens - dp_samples_training(tokens, m->val_per_mille));
    take_up_best(s);
    return DP_OK;
}

/* Keeps the checkpoint beside the last ones. A full disk does not end training. */
static void keep_best(solo *s)
{
    dp_standalone_head head = s->head;
    dp_hash hash;
    dp_why why = {{0}};
    dp_status status =
        dp_standalone_save(s->folder.path, DP_STANDALONE_BEST, s->trainer, &head, &hash, &why);
    if (status == DP_OK) {
        status = dp_standalone_best_write(s->folder.path, &s->best, &why);
    }
    if (status != DP_OK) {
        dp_standalone_event event = event_of(s, DP_STANDALONE_NOTE);
        event.why = why.text[0] != '\0' ? why.text : dp_status_text(status);
        tell(s, &event);
    }
}

/* *ends: nothing gets better. */
static dp_status validate(solo *s, uint64_t step, bool *ends, dp_why *why)
{
    const double start = now_s();
    dp_trainer_score score = {.loss = (double)NAN};
    const dp_status status = dp_trainer_eval(s->trainer, NULL, s->options.val_tokens, &score);
    if (status != DP_OK && status != DP_DIVERGED) {
        return dp_why_set(why, status,
                          "the held-out loss of step %" PRIu64 " cannot be measured: %s", step,
                          dp_status_text(status));
    }
    dp_standalone_event event = event_of(s, DP_STANDALONE_VALIDATED);
    event.score = score;
    event.is_best = dp_standalone_best_take(&s->best, step, &score);
    event.best = s->best;
    if (event.is_best) {
        keep_best(s);
    }
    event.took_s = now_s() - start;
    tell(s, &event);
    *ends = dp_standalone_val_ends(&s->options, &s->best, step, s->val_every);
    return DP_OK;
}

/* ---- the steps ---- */

static void told_step(solo *s, double took_s)
{
    static const double share = 0.1; /* of the newest step in the mean */
    s->train_s += took_s;
    s->done_here++;
    s->step_s = s->done_here == 1 ? took_s : (1 - share) * s->step_s + share * took_s;
    dp_standalone_event event = event_of(s, DP_STANDALONE_STEP);
    event.tokens_per_second = s->step_s > 0 ? (double)batch_tokens(s) / s->step_s : 0;
    event.eta_s = event.steps < s->target ? (double)(s->target - event.steps) * s->step_s : 0;
    tell(s, &event);
}

static bool save_is_due(const solo *s, uint64_t steps)
{
    const dp_standalone_options *const o = &s->options;
    return (o->save_steps != 0 && steps % o->save_steps == 0) ||
           (o->save_s != 0 && now_s() - s->saved_at >= (double)o->save_s);
}

/* Behind a step: figures and checkpoints. */
static dp_status after_step(solo *s, uint64_t steps, bool *ends, dp_why *why)
{
    if (s->val_every != 0 && (steps % s->val_every == 0 || steps >= s->target)) {
        DP_TRY(validate(s, steps, ends, why));
    }
    const dp_status status =
        steps < s->target && !*ends && save_is_due(s, steps) ? save(s, why) : DP_OK;
    if (status != DP_NOSPACE) {
        return status;
    }
    dp_standalone_event event = event_of(s, DP_STANDALONE_NOTE);
    event.why = why->text;
    tell(s, &event);
    return DP_OK; /* The next save tries again. */
}

static dp_status run(solo *s, bool *stopped, bool *early, dp_why *why)
{
    uint64_t steps = dp_trainer_place_of(s->trainer).steps;
    double start = now_s();
    s->saved_at = start;
    while (steps < s->target && !*early) {
        *stopped = s->job->stop(s->job->context);
        if (*stopped) {
            break;
        }
        const dp_status status = dp_trainer_work(s->trainer);
        if (status != DP_OK) {
            return dp_why_set(why, status, "step %" PRIu64 " cannot be done: %s", steps + 1,
                              dp_status_text(status));
        }
        if (!dp_trainer_between_steps(s->trainer)) {
            continue;
        }
        steps = dp_trainer_last_of(s->trainer).step;
        told_step(s, now_s() - start);
        DP_TRY(after_step(s, steps, early, why));
        start = now_s();
    }
    return DP_OK;
}

static dp_status save_or_say(solo *s, dp_why *why)
{
    dp_why cause = {{0}};
    const dp_status status = save(s, &cause);
    if (status == DP_NOSPACE) {
        return dp_why_set(why, status,
                          "%.300s; once there is room, --resume goes on from step %" PRIu64,
                          cause.text, s->head.place.steps);
    }
    return status == DP_OK ? DP_OK : dp_why_set(why, status, "%s", cause.text);
}

/* Undoes a step in progress, which a resumed run repeats, and saves. */
static dp_status save_last(solo *s, dp_why *why)
{
    if (!dp_trainer_between_steps(s->trainer)) {
        DP_TRY(dp_trainer_undo_step(s->trainer));
    }
    if (dp_trainer_place_of(s->trainer).steps != s->head.place.steps || s->done_here == 0) {
        return save_or_say(s, why);
    }
    return DP_OK;
}

/* The trainer's memory is given back before the model is put together. */
static dp_status write_model(solo *s, dp_why *why)
{
    dp_view state;
    dp_hash root;
    DP_TRY(dp_trainer_state_bytes(s->trainer, &state, &root));
    DP_TRY(dp_file_write(s->folder.path, DP_STANDALONE_STATE, state, why));
    dp_trainer_close(s->trainer);
    s->trainer = NULL;
    return dp_standalone_folder_export(&s->folder, why);
}

/* Told before hours of training: such a model is trained and measured all the same. */
static bool can_export(const solo *s, const dp_model_config *config)
{
    dp_why why = {{0}};
    if (dp_hf_config_check(config, &why) == DP_OK) {
        return true;
    }
    dp_standalone_event event = event_of(s, DP_STANDALONE_NOTE);
    event.why = why.text;
    tell(s, &event);
    return false;
}

static dp_status train(solo *s, dp_why *why)
{
    bool stopped = false;
    bool early = false;
    DP_TRY(start(s, why));
    DP_TRY(plan_validation(s, why));
    DP_TRY(dp_standalone_options_keep(&s->options, s->folder.path, why));
    const dp_model_config config = dp_manifest_model(&s->folder.manifest);
    const bool exports = can_export(s, &config);
    dp_standalone_event event = event_of(s, DP_STANDALONE_START);
    event.rows = s->head.rows;
    event.passes = (double)s->target * s->folder.manifest.batch_rows /
                   (double)dp_manifest_samples(&s->folder.manifest);
    event.parameters = dp_model_config_parameters(&config);
    tell(s, &event);
    DP_TRY(run(s, &stopped, &early, why));
    DP_TRY(save_last(s, why));
    event = event_of(s, DP_STANDALONE_END);
    event.stopped = stopped;
    event.early = early && event.steps < s->target;
    event.best = s->best;
    event.exported = exports && !stopped;
    if (event.exported) {
        DP_TRY(write_model(s, why));
    }
    event.train_s = s->train_s;
    event.tokens_per_second =
        s->train_s > 0 ? (double)(s->done_here * batch_tokens(s)) / s->train_s : 0;
    tell(s, &event);
    return DP_OK;
}

/* Of each process. */
static size_t threads_of(const dp_standalone_job *job)
{
    const size_t all = job->threads != 0 ? job->threads : dp_pool_threads_default();
    const size_t each = job->team != NULL ? all / dp_process_group_processes(job->team) : all;
    return each > 0 ? each : 1;
}

/* DP_IO of a device is no file's; its own sentence names the fault. */
static dp_status blame(const solo *s, dp_status status, dp_why *why)
{
    const char *const problem = s->trainer != NULL ? dp_trainer_problem(s->trainer) : "";
    return status != DP_IO || problem[0] == '\0'
               ? status
               : dp_why_set(
                     why, DP_UNSUPPORTED,
                     "the device failed: %.400s; --resume goes on from the newest checkpoint",
                     problem);
}

dp_status dp_standalone_train(const dp_standalone_job *job, dp_why *why)
{
    solo s = {
        .job = job, .options = job->options, .folder = {.lock = -1}, .threads = threads_of(job)};
    const dp_status status = blame(&s, train(&s, why), why);
    dp_trainer_close(s.trainer);
    dp_standalone_folder_close(&s.folder);
    return status;
}
