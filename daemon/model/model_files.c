#include "daemon/model/model_files.h"

#include <stdio.h>
#include <string.h>

#include "base/disk.h"
#include "daemon/host/tool.h"
#include "daemon/peer/driver.h"
#include "store/ckpt.h"
#include "store/object.h"

dp_status dp_model_files_open(dp_model_files *files, const dp_daemon *daemon)
{
    const dp_manifest *const manifest = dp_driver_manifest(daemon->driver);
    dp_driver_view view;
    DP_TRY(dp_tool_folder(daemon, files->folder));
    files->margin_bytes = daemon->config->margin;
    files->facts = *dp_driver_run_identity(daemon->driver);
    files->tokenizer = manifest->tokenizer;
    files->init = manifest->init;
    dp_driver_look(daemon->driver, &view);
    files->first = view.running && view.node.round == 0;
    return DP_OK;
}

void dp_model_files_close(const dp_model_files *files)
{
    dp_tool_folder_remove(files->folder);
}

void dp_model_files_path(const dp_model_files *files, const char *name,
                         char path[DP_MODEL_FILES_PATH_MAX])
{
    snprintf(path, DP_MODEL_FILES_PATH_MAX, "%s/%s", files->folder, name);
}

/* It may be as large as the model, and must not take the last bytes of the store's disk. */
static dp_status write_file(const dp_model_files *files, const char *name, dp_view bytes)
{
    uint64_t free_bytes = 0;
    if (dp_disk_free(files->folder, &free_bytes) &&
        (free_bytes < files->margin_bytes || free_bytes - files->margin_bytes < bytes.size)) {
        return DP_NOSPACE;
    }
    return dp_tool_file(files->folder, name, bytes);
}

static dp_status write_object(const dp_model_files *files, dp_store *store, const dp_hash *root,
                              const char *name)
{
    dp_object_info info;
    dp_buf buf;
    uint8_t *room = NULL;
    DP_TRY(dp_object_stat(store, root, &info));
    dp_buf_init(&buf, DP_OBJECT_BYTES_MAX);
    dp_status status = dp_buf_reserve(&buf, info.size, &room);
    if (status == DP_OK) {
        status = dp_object_read(store, root, room, info.size);
    }
    if (status == DP_OK) {
        status = write_file(files, name, dp_view_of(room, info.size));
    }
    dp_buf_close(&buf);
    return status;
}

/* The newest checkpoint. Before the first one the weights are those that the run began from, if it
 * has them as an object. */
static dp_status write_state(dp_model_files *files, dp_store *store)
{
    dp_buf buf;
    dp_ckpt ckpt;
    uint32_t n_bad = 0;
    dp_buf_init(&buf, DP_OBJECT_BYTES_MAX);
    dp_status status = dp_ckpt_load(store, &files->facts.run, &ckpt, &buf, &n_bad);
    if (status == DP_OK) {
        files->round = ckpt.round;
        status = write_file(files, DP_MODEL_FILES_STATE, dp_buf_view(&buf));
    }
    dp_buf_close(&buf);
    if (status == DP_NOTFOUND && files->first && n_bad == 0 && !dp_hash_is_zero(&files->init)) {
        files->round = 0;
        status = write_object(files, store, &files->init, DP_MODEL_FILES_STATE);
    }
    return status;
}

dp_status dp_model_files_write(dp_model_files *files, dp_store *store)
{
    DP_TRY(dp_tool_file(files->folder, DP_MODEL_FILES_MANIFEST,
                        dp_view_of(files->facts.manifest, files->facts.manifest_bytes)));
    DP_TRY(write_state(files, store));
    if (!dp_hash_is_zero(&files->base)) {
        DP_TRY(write_object(files, store, &files->base, DP_MODEL_FILES_BASE));
    }
    return write_object(files, store, &files->tokenizer, DP_MODEL_FILES_TOKENIZER);
}
