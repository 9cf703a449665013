#include "daemon/model/export.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/control/reply.h"
#include "daemon/host/tool.h"
#include "daemon/model/model_files.h"
#include "daemon/peer/driver.h"

typedef struct export_job {
    dp_store_thread_job job;
    dp_daemon *daemon;
    dp_call call;
    dp_model_files files; /* the tool's inputs */
    bool external;
    bool adapts;
    char path[DP_CONFIG_PATH_MAX];
    dp_export_form form;
    dp_status status;
} export_job;

static void run_export(dp_store_thread_job *job, dp_store *store)
{
    export_job *self = (export_job *)job;
    self->status = dp_model_files_write(&self->files, store);
    job->again = self->status == DP_OK && self->files.more;
}

static void finish(export_job *self)
{
    dp_model_files_close(&self->files);
    dp_free(self);
}

static void on_tool(void *context, int exit, const char *output)
{
    static const char *const folder[] = {"model.safetensors", "config.json",
                                         "generation_config.json", "tokenizer.json"};
    static const char *const adapter[] = {"adapter_model.safetensors", "adapter_config.json",
                                          "tokenizer.json"};
    static const char *const gguf[] = {"model.gguf"};
    static const char *const llmc[] = {"model.bin"};
    export_job *self = context;
    const char *const *files = folder;
    size_t n_files = sizeof folder / sizeof folder[0];
    if (self->external) {
        n_files = 1; /* The first of the folder's. */
    } else if (self->form.option[0] != '\0') {
        files = strcmp(self->form.option, "--gguf") == 0 ? gguf : llmc;
        n_files = 1;
    } else if (self->adapts && !self->form.merged) {
        files = adapter;
        n_files = sizeof adapter / sizeof adapter[0];
    }
    dp_packer packer;
    if (exit == 0) {
        dp_event_log_add(self->call.daemon->event_log, DP_LOG_INFO, DP_EXPORT_DONE,
                         self->files.round, NULL, "exported round %llu to %.200s",
                         (unsigned long long)self->files.round, self->path);
    }
    if (exit != 0) {
        char fix[256];
        snprintf(fix, sizeof fix,
                 "choose a new folder where the daemon's user may write, such as %.100s/model; its "
                 "parent must exist",
                 self->daemon->config->dir);
        dp_call_fail(&self->call, 74, "E0405", fix, "the export failed", output);
    } else if (dp_call_begin(&self->call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_text(&map, "path", self->path);
        dp_pair_u64(&map, "round", self->files.round);
        dp_group list = dp_array_begin(dp_pair(&map, "files"));
        for (size_t i = 0; i < n_files; i++) {
            dp_pack_text(dp_item(&list), files[i]);
        }
        dp_group_end(&list);
        dp_group_end(&map);
        dp_call_end(&self->call, &packer);
    }
    finish(self);
}

static void done_export(dp_store_thread_job *job)
{
    export_job *self = (export_job *)job;
    char manifest[DP_MODEL_FILES_PATH_MAX];
    char state[DP_MODEL_FILES_PATH_MAX];
    char tokenizer[DP_MODEL_FILES_PATH_MAX];
    char base[DP_MODEL_FILES_PATH_MAX];
    char mask[16];
    if (self->status != DP_OK) {
        const bool none = self->status == DP_NOTFOUND;
        dp_call_fail(&self->call, none ? 75 : 74, "E0404",
                     none ? "dpnode rounds -f   # wait for the first round" : "dpnode ckpt verify",
                     none ? "there is no checkpoint yet" : "the checkpoint could not be read",
                     dp_status_text(self->status));
        finish(self);
        return;
    }
    dp_model_files_path(&self->files, DP_MODEL_FILES_MANIFEST, manifest);
    dp_model_files_path(&self->files, DP_MODEL_FILES_STATE, state);
    dp_model_files_path(&self->files, DP_MODEL_FILES_TOKENIZER, tokenizer);
    dp_model_files_path(&self->files, DP_MODEL_FILES_BASE, base);
    const bool one = self->form.option[0] != '\0';
    const bool below = !dp_hash_is_zero(&self->files.base);
    snprintf(mask, sizeof mask, "%03o", self->form.umask);
    const char *arguments[16] = {"--export", manifest,  state, tokenizer,
                                 self->path, "--umask", mask};
    size_t n = 7;
    if (one) {
        arguments[n++] = self->form.option;
        arguments[n++] = self->form.type;
    }
    if (self->form.merged) {
        arguments[n++] = "--merged";
    }
    if (below) {
        arguments[n++] = "--base";
        arguments[n++] = base;
    }
    const dp_status status =
        dp_tool_run(self->daemon, self->daemon->config->worker, arguments, on_tool, self);
    if (status != DP_OK) {
        dp_call_fail(&self->call, 70, "E0405", "give a shorter path", "the export cannot start",
                     dp_status_text(status));
        finish(self);
    }
}

void dp_export_start(dp_daemon *daemon, const dp_call *call, const char *path,
                     const dp_export_form *form)
{
    const dp_manifest *manifest = dp_driver_manifest(daemon->driver);
    export_job *job = dp_alloc(1, sizeof *job);
    if (manifest == NULL || job == NULL || dp_model_files_open(&job->files, daemon) != DP_OK) {
        dp_call_fail(call, 75, "E0404", "dpnode rounds -f   # wait for the first round",
                     "there is no checkpoint to export yet",
                     "the manifest has not arrived, or the disk is full");
        dp_free(job);
        return;
    }
    job->job.run = run_export;
    job->job.done = done_export;
    job->daemon = daemon;
    job->call = *call;
    job->external = dp_manifest_external(manifest);
    job->adapts = dp_manifest_adapts(manifest);
    if (form->merged || form->option[0] != '\0') {
        job->files.base = manifest->base;
    }
    snprintf(job->path, sizeof job->path, "%s", path);
    job->form = *form;
    if (dp_store_thread_post(daemon->store_thread, &job->job, DP_STORE_THREAD_BULK) != DP_OK) {
        dp_call_fail(call, 75, "E0402", "try again", "the store is busy",
                     "too many writes are waiting");
        finish(job);
    }
}
