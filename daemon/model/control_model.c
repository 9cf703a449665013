/* The methods of the model: checkpoints, samples, evaluation. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "daemon/control/control.h"
#include "daemon/control/reply.h"
#include "daemon/model/export.h"
#include "daemon/model/sampling.h"
#include "daemon/peer/driver.h"
#include "store/object.h"

/* ---- checkpoints ---- */

typedef struct ckpt_job {
    dp_store_thread_job job;
    dp_call call;
    dp_run_id run;
    bool verify;
    dp_status status;
    dp_ckpt_reading reading; /* of verify */
    uint32_t count;
    dp_ckpt list[DP_CKPTS_MAX];
    uint64_t bytes[DP_CKPTS_MAX];
} ckpt_job;

/* The next piece of them: votes are written in between. */
static void verify_some(ckpt_job *self, dp_store *store)
{
    const dp_status status = dp_ckpt_read(store, &self->reading);
    self->job.again = status == DP_OK || status == DP_AGAIN;
    self->status = self->job.again || status == DP_NOTFOUND ? DP_OK : status;
}

static void run_ckpt(dp_store_thread_job *job, dp_store *store)
{
    ckpt_job *self = (ckpt_job *)job;
    if (self->verify) {
        verify_some(self, store);
        return;
    }
    self->status = dp_ckpt_list(store, &self->run, self->list, DP_CKPTS_MAX, &self->count);
    for (uint32_t i = 0; i < self->count && self->status == DP_OK; i++) {
        dp_object_info info = {0};
        if (dp_object_stat(store, &self->list[i].object, &info) == DP_OK) {
            self->bytes[i] = info.size;
        }
    }
}

static void pack_ckpts(dp_group *map, const ckpt_job *self)
{
    static const char *const states[] = {"writing", "complete", "kept", "bad"};
    dp_group list = dp_array_begin(dp_pair(map, "checkpoints"));
    for (uint32_t i = 0; i < self->count; i++) {
        const dp_ckpt *ckpt = &self->list[i];
        dp_group item = dp_map_begin(dp_item(&list));
        dp_pair_u64(&item, "round", ckpt->round);
        dp_pair_u64(&item, "slot", ckpt->slot);
        dp_pair_u64(&item, "time_ms", ckpt->created_ms);
        dp_pair_u64(&item, "bytes", self->bytes[i]);
        dp_pair_hex(&item, "state_root", dp_view_of(ckpt->state_root.bytes, DP_HASH_BYTES));
        dp_pair_text(&item, "state",
                     ckpt->state == DP_CKPT_COMPLETE && dp_ckpt_is_recovered(ckpt)
                         ? "recovered"
                         : states[ckpt->state]);
        dp_group_end(&item);
    }
    dp_group_end(&list);
}

static void done_ckpt(dp_store_thread_job *job)
{
    ckpt_job *self = (ckpt_job *)job;
    dp_packer packer;
    if (!dp_call_alive(&self->call)) {
        dp_free(self);
        return;
    }
    if (self->status != DP_OK) {
        dp_call_fail(&self->call, 74, "E0401", "dpnode logs   # shows the cause",
                     "the store could not be read", dp_status_text(self->status));
    } else if (dp_call_begin(&self->call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        if (self->verify) {
            dp_pair_u64(&map, "good", self->reading.n_good);
            dp_pair_u64(&map, "bad", self->reading.n_bad);
        } else {
            pack_ckpts(&map, self);
        }
        dp_group_end(&map);
        dp_call_end(&self->call, &packer);
    }
    dp_free(self);
}

static void start_ckpt(dp_daemon *daemon, const dp_call *call, bool verify)
{
    const dp_driver *driver = dp_call_driver(daemon, call);
    if (driver == NULL) {
        return;
    }
    ckpt_job *job = dp_alloc(1, sizeof *job);
    if (job == NULL) {
        dp_call_fail(call, 70, "E0199", "", "out of memory", "");
        return;
    }
    job->job.run = run_ckpt;
    job->job.done = done_ckpt;
    job->call = *call;
    job->run = dp_driver_run_identity(driver)->run;
    job->verify = verify;
    job->reading.run = job->run;
    if (dp_store_thread_post(daemon->store_thread, &job->job, DP_STORE_THREAD_BULK) != DP_OK) {
        dp_free(job);
        dp_call_fail(call, 75, "E0402", "try again", "the store is busy",
                     "too many writes are waiting");
    }
}

void dp_method_ckpt_list(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    (void)parameters;
    start_ckpt(daemon, call, false);
}

void dp_method_ckpt_verify(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    (void)parameters;
    start_ckpt(daemon, call, true);
}

void dp_method_ckpt_export(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    char path[DP_CONFIG_PATH_MAX];
    dp_export_form form = {.option = "", .type = "", .umask = 077};
    if (dp_call_driver(daemon, call) == NULL) {
        return;
    }
    if (!dp_pack_copy_text(dp_pack_key(parameters, "path"), path, sizeof path) || path[0] != '/') {
        dp_call_fail(call, 64, "E0403", "dpnode ckpt export DIR", "the export folder is not given",
                     "the path must be absolute");
        return;
    }
    uint64_t mask = 0;
    if (dp_pack_get_u64(dp_pack_key(parameters, "umask"), &mask)) {
        form.umask = (unsigned)(mask & 0777);
    }
    const dp_pack_value *const gguf = dp_pack_key(parameters, "gguf");
    const dp_pack_value *const llmc = dp_pack_key(parameters, "llmc");
    const dp_pack_value *const type = gguf != NULL ? gguf : llmc;
    if ((gguf != NULL && llmc != NULL) ||
        (type != NULL && !dp_pack_copy_text(type, form.type, sizeof form.type))) {
        dp_call_fail(call, 64, "E0403", "--gguf f32, f16, bf16 or q8_0; or --llmc f32 or bf16",
                     "unknown file type", "--gguf and --llmc exclude each other");
        return;
    }
    const dp_manifest *const manifest = dp_driver_manifest(daemon->driver);
    if (type != NULL && manifest != NULL && dp_manifest_external(manifest)) {
        dp_call_fail(call, 64, "E0403", "dpnode ckpt export DIR   # writes model.safetensors",
                     "this model has no such file",
                     "model.arch is external: its tensors are written as safetensors alone");
        return;
    }
    if (!dp_pack_get_bool(dp_pack_key(parameters, "merged"), &form.merged)) {
        form.merged = false;
    }
    if (form.merged && manifest != NULL && !dp_manifest_adapts(manifest)) {
        dp_call_fail(call, 64, "E0403", "dpnode ckpt export DIR   # writes the whole model",
                     "there is nothing to merge", "this run trains a whole model, no adapters");
        return;
    }
    if (type != NULL) {
        snprintf(form.option, sizeof form.option, "%s", gguf != NULL ? "--gguf" : "--llmc");
    }
    dp_export_start(daemon, call, path, &form);
}

/* ---- questions to the trainer ---- */

typedef struct ask_call {
    dp_call call;
    dp_daemon *daemon;
    dp_trainer_msg question;
} ask_call;

static void on_answer(void *context, const dp_trainer_msg *reply, const char *why)
{
    ask_call *self = context;
    dp_packer packer;
    if (!dp_call_alive(&self->call)) {
        dp_free(self);
        return;
    }
    if (reply == NULL) {
        dp_call_fail(&self->call, 75, "E0411", "dpnode why   # shows the state of the node",
                     "the trainer did not answer", why);
        dp_free(self);
        return;
    }
    dp_driver_view view;
    dp_driver_look(self->daemon->driver, &view);
    if (reply->kind == DP_TRAINER_SAMPLED) {
        dp_sampling_reply(&self->call, &self->question, reply->text, view.node.applied, "trainer");
    } else if (dp_call_begin(&self->call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_f64(&map, "loss", reply->loss);
        dp_pair_f64(&map, "bits_per_byte", reply->bits_per_byte);
        dp_pair_u64(&map, "tokens", reply->tokens);
        dp_pair_u64(&map, "round", view.node.applied);
        dp_group_end(&map);
        dp_call_end(&self->call, &packer);
    }
    dp_free(self);
}

/* The driver of a model that dpnode computes; NULL after an error reply. */
static dp_driver *computing_driver(dp_daemon *daemon, const dp_call *call)
{
    dp_driver *const driver = dp_call_driver(daemon, call);
    const dp_manifest *const manifest = driver != NULL ? dp_driver_manifest(driver) : NULL;
    if (manifest != NULL && dp_manifest_external(manifest)) {
        dp_call_fail(call, 69, "E0412",
                     "dpnode ckpt export DIR   # writes model.safetensors for the script",
                     "dpnode cannot run the model of this run",
                     "model.arch is external: only the script that trains the model can answer");
        return NULL;
    }
    return driver;
}

static void ask(dp_daemon *daemon, const dp_call *call, const dp_trainer_msg *question)
{
    dp_driver *const driver = computing_driver(daemon, call);
    if (driver == NULL) {
        return;
    }
    ask_call *self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        dp_call_fail(call, 70, "E0199", "", "out of memory", "");
        return;
    }
    self->call = *call;
    self->daemon = daemon;
    self->question = *question;
    dp_driver_view view;
    dp_driver_look(driver, &view);
    if (strcmp(view.trainer, "up") != 0) {
        dp_call_fail(call, 75, "E0410", "dpnode why   # shows the missing part",
                     "there is no model yet", "the trainer has not loaded it");
        dp_free(self);
        return;
    }
    DP_IGNORE(dp_driver_ask(driver, question, on_answer,
                            self)); /* A failure reaches on_answer as well. */
}

/* How tokens are chosen, where the request says it. False after an error reply. */
static bool take_sampler(const dp_call *call, const dp_pack_value *parameters, dp_trainer_msg *out)
{
    uint64_t top_k = out->top_k;
    DP_IGNORE(!dp_pack_get_f64(dp_pack_key(parameters, "temperature"), &out->temperature));
    DP_IGNORE(!dp_pack_get_f64(dp_pack_key(parameters, "top_p"), &out->top_p));
    DP_IGNORE(!dp_pack_get_u64(dp_pack_key(parameters, "top_k"), &top_k));
    out->top_k = top_k < UINT32_MAX ? (uint32_t)top_k : UINT32_MAX;
    if (out->temperature >= 0 && out->temperature <= DP_SAMPLING_TEMPERATURE_MAX &&
        out->top_p > 0 && out->top_p <= 1 && out->top_k > 0) {
        return true;
    }
    dp_call_fail(call, 64, "E0001", "dpnode sample --help",
                 "temperature is 0 to 1000, top_k at least 1, top_p above 0 and at most 1", "");
    return false;
}

/* Copies the prompt, if there is one. False after an error reply. */
static bool take_prompt(const dp_call *call, const dp_pack_value *parameters, dp_trainer_msg *out)
{
    const dp_pack_value *const prompt = dp_pack_key(parameters, "prompt");
    if (prompt == NULL || dp_pack_copy_text(prompt, out->text, sizeof out->text)) {
        return true;
    }
    char why[80];
    snprintf(why, sizeof why, "it must be text of at most %d bytes, without a zero byte",
             DP_TRAINER_TEXT_MAX);
    dp_call_fail(call, 64, "E0001", "dpnode sample FOLDER --prompt TEXT   # takes any length",
                 "the prompt cannot be used", why);
    return false;
}

void dp_method_sample(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    enum { TOKENS_STANDARD = 120, TOKENS_MAX = 2000, TOP_K = 40 };
    static dp_trainer_msg question; /* Loop thread only; large for a stack. */
    question = (dp_trainer_msg){.kind = DP_TRAINER_SAMPLE,
                                .tokens = TOKENS_STANDARD,
                                .seed = uv_hrtime(),
                                .temperature = 0.8,
                                .top_k = TOP_K,
                                .top_p = 1};
    uint64_t tokens = 0;
    if (dp_pack_get_u64(dp_pack_key(parameters, "tokens"), &tokens)) {
        question.tokens = tokens < TOKENS_MAX ? tokens : TOKENS_MAX;
    }
    DP_IGNORE(
        /* Otherwise from the clock. */
        !dp_pack_get_u64(dp_pack_key(parameters, "seed"), &question.seed));
    const dp_driver *const driver = computing_driver(daemon, call);
    if (driver == NULL || !take_prompt(call, parameters, &question) ||
        !take_sampler(call, parameters, &question)) {
        return;
    }
    const dp_manifest *const manifest = dp_driver_manifest(driver);
    if (manifest == NULL || dp_manifest_adapts(manifest)) {
        /* There is no model yet; or a state has adapters alone, and the trainer has their base. */
        ask(daemon, call, &question);
        return;
    }
    dp_sampling_start(daemon, call, &question, ask);
}

void dp_method_eval(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    static dp_trainer_msg question;
    question = (dp_trainer_msg){.kind = DP_TRAINER_EVAL};
    DP_IGNORE(!dp_pack_get_u64(dp_pack_key(parameters, "tokens"),
                               &question.tokens)); /* Else all of them. */
    ask(daemon, call, &question);
}
