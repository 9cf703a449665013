#include "daemon/model/sampling.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/control/reply.h"
#include "daemon/host/tool.h"
#include "daemon/model/model_files.h"

enum { NUMBER_MAX = 32 };
static const char prompt_file[] = "prompt";

typedef struct sampling_job {
    dp_store_thread_job job;
    dp_daemon *daemon;
    dp_call call;
    dp_sampling_without *without;
    dp_model_files files;
    dp_trainer_msg question;
    dp_status status;
} sampling_job;

void dp_sampling_reply(const dp_call *call, const dp_trainer_msg *question, const char *text,
                       uint64_t round, const char *source)
{
    dp_packer packer;
    if (!dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        return;
    }
    dp_group map = dp_map_begin(&packer);
    dp_pair_text(&map, "text", text);
    dp_pair_u64(&map, "round", round);
    dp_pair_text(&map, "source", source);
    dp_pair_f64(&map, "temperature", question->temperature);
    dp_pair_u64(&map, "top_k", question->top_k);
    dp_pair_f64(&map, "top_p", question->top_p);
    dp_group_end(&map);
    dp_call_end(call, &packer);
}

static void finish(sampling_job *self)
{
    self->daemon->n_samplings--;
    dp_model_files_close(&self->files);
    dp_free(self);
}

static void run_sampling(dp_store_thread_job *job, dp_store *store)
{
    sampling_job *const self = (sampling_job *)job;
    self->status = dp_model_files_write(&self->files, store);
    job->again = self->status == DP_OK && self->files.more;
    if (self->status == DP_OK && !job->again) {
        self->status =
            dp_tool_file(self->files.folder, prompt_file, dp_view_text(self->question.text));
    }
}

static void on_tool(void *context, int exit, const char *output)
{
    sampling_job *const self = context;
    if (exit == 0) {
        dp_sampling_reply(&self->call, &self->question, output, self->files.round, "checkpoint");
    } else {
        dp_call_fail(&self->call, 69, "E0413", "free memory, or ask for fewer tokens (-n)",
                     "no text could be generated", output);
    }
    finish(self);
}

static dp_status run_tool(sampling_job *self)
{
    char manifest[DP_MODEL_FILES_PATH_MAX];
    char state[DP_MODEL_FILES_PATH_MAX];
    char tokenizer[DP_MODEL_FILES_PATH_MAX];
    char prompt[DP_MODEL_FILES_PATH_MAX];
    char tokens[NUMBER_MAX];
    char seed[NUMBER_MAX];
    char temperature[NUMBER_MAX];
    char top_k[NUMBER_MAX];
    char top_p[NUMBER_MAX];
    const dp_trainer_msg *const question = &self->question;
    dp_model_files_path(&self->files, DP_MODEL_FILES_MANIFEST, manifest);
    dp_model_files_path(&self->files, DP_MODEL_FILES_STATE, state);
    dp_model_files_path(&self->files, DP_MODEL_FILES_TOKENIZER, tokenizer);
    dp_model_files_path(&self->files, prompt_file, prompt);
    snprintf(tokens, sizeof tokens, "--tokens=%" PRIu64, question->tokens);
    snprintf(seed, sizeof seed, "--seed=%" PRIu64, question->seed);
    snprintf(temperature, sizeof temperature, "--temperature=%.9g", question->temperature);
    snprintf(top_k, sizeof top_k, "--top-k=%" PRIu32, question->top_k);
    snprintf(top_p, sizeof top_p, "--top-p=%.9g", question->top_p);
    const char *const arguments[] = {"sample",    manifest,        state,  tokenizer, tokens,
                                     seed,        temperature,     top_k,  top_p,     "--threads=1",
                                     "--nice=19", "--prompt-file", prompt, NULL};
    return dp_tool_run(self->daemon, self->daemon->config->worker, arguments, on_tool, self);
}

static void done_sampling(dp_store_thread_job *job)
{
    sampling_job *const self = (sampling_job *)job;
    dp_status status = self->status;
    if (status == DP_NOTFOUND) {
        self->without(self->daemon, &self->call, &self->question);
        finish(self);
        return;
    }
    status = status == DP_OK ? run_tool(self) : status;
    if (status != DP_OK) {
        dp_call_fail(&self->call, 74, "E0413", "dpnode ckpt verify; df -h",
                     "no text could be generated", dp_status_text(status));
        finish(self);
    }
}

void dp_sampling_start(dp_daemon *daemon, const dp_call *call, const dp_trainer_msg *question,
                       dp_sampling_without *without)
{
    if (daemon->n_samplings == DP_SAMPLINGS_MAX) {
        dp_call_fail(call, 75, "E0414", "try again in a minute", "other texts are being generated",
                     "");
        return;
    }
    sampling_job *const job = dp_alloc(1, sizeof *job);
    if (job == NULL || dp_model_files_open(&job->files, daemon) != DP_OK) {
        dp_call_fail(call, 74, "E0413", "df -h   # shows the free space",
                     "no text could be generated", "no folder for it can be made");
        dp_free(job);
        return;
    }
    job->job.run = run_sampling;
    job->job.done = done_sampling;
    job->daemon = daemon;
    job->call = *call;
    job->without = without;
    job->question = *question;
    daemon->n_samplings++;
    if (dp_store_thread_post(daemon->store_thread, &job->job, DP_STORE_THREAD_BULK) != DP_OK) {
        dp_call_fail(call, 75, "E0402", "try again", "the store is busy",
                     "too many writes are waiting");
        finish(job);
    }
}
