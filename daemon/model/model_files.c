#include "daemon/model/model_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/fd.h"
#include "daemon/host/tool.h"
#include "daemon/peer/driver.h"

static dp_status add_chunk(void *context, dp_view chunk);

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
    files->fd = -1;
    files->reading =
        (dp_ckpt_reading){.run = files->facts.run, .pieces = {.take = add_chunk, .context = files}};
    return DP_OK;
}

void dp_model_files_close(dp_model_files *files)
{
    if (files->fd >= 0) {
        close(files->fd);
    }
    files->fd = -1;
    dp_tool_folder_remove(files->folder);
}

void dp_model_files_path(const dp_model_files *files, const char *name,
                         char path[DP_MODEL_FILES_PATH_MAX])
{
    snprintf(path, DP_MODEL_FILES_PATH_MAX, "%s/%s", files->folder, name);
}

/* It may be as large as the model, and must not take the last bytes of the store's disk. */
static dp_status begin_file(dp_model_files *files, uint64_t size)
{
    char path[DP_MODEL_FILES_PATH_MAX];
    uint64_t free_bytes = 0;
    if (dp_disk_free(files->folder, &free_bytes) &&
        (free_bytes < files->margin_bytes || free_bytes - files->margin_bytes < size)) {
        return DP_NOSPACE;
    }
    if (files->fd >= 0) { /* A damaged checkpoint is in it. */
        close(files->fd);
    }
    dp_model_files_path(files, files->name, path);
    files->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return files->fd >= 0 ? DP_OK : DP_IO;
}

static dp_status add_chunk(void *context, dp_view chunk)
{
    dp_model_files *const files = context;
    if (files->reading.pieces.next == 0) {
        DP_TRY(begin_file(files, files->reading.pieces.size));
    }
    return dp_fd_write(files->fd, chunk) == DP_OK ? DP_OK : DP_NOSPACE;
}

static dp_status end_file(dp_model_files *files)
{
    const bool closed = files->fd < 0 || close(files->fd) == 0;
    files->fd = -1;
    return closed ? DP_OK : DP_IO;
}

static dp_status write_manifest(dp_model_files *files, dp_store *store)
{
    (void)store;
    return dp_tool_file(files->folder, DP_MODEL_FILES_MANIFEST,
                        dp_view_of(files->facts.manifest, files->facts.manifest_bytes));
}

static dp_status write_object(dp_model_files *files, dp_store *store, const dp_hash *root,
                              const char *name)
{
    dp_pieces_reading *const pieces = &files->reading.pieces;
    if (!files->goes_on) {
        pieces->root = *root;
        pieces->next = 0;
        files->name = name;
    }
    DP_TRY(dp_pieces_read(pieces, store));
    files->goes_on = pieces->more;
    return DP_OK;
}

/* The newest one that is whole. */
static dp_status write_checkpoint(dp_model_files *files, dp_store *store)
{
    files->name = DP_MODEL_FILES_STATE;
    const dp_status status = dp_ckpt_read(store, &files->reading);
    files->goes_on = status == DP_AGAIN;
    files->has_state = status == DP_OK;
    files->round = files->has_state ? files->reading.ckpt.round : 0;
    return status == DP_AGAIN || status == DP_NOTFOUND ? DP_OK : status;
}

/* Before the first checkpoint the weights are those that the run began from, if it has them as an
 * object. */
static dp_status write_first(dp_model_files *files, dp_store *store)
{
    if (files->has_state) {
        return DP_OK;
    }
    if (!files->first || files->reading.n_bad > 0 || dp_hash_is_zero(&files->init)) {
        return DP_NOTFOUND;
    }
    return write_object(files, store, &files->init, DP_MODEL_FILES_STATE);
}

static dp_status write_base(dp_model_files *files, dp_store *store)
{
    return dp_hash_is_zero(&files->base)
               ? DP_OK
               : write_object(files, store, &files->base, DP_MODEL_FILES_BASE);
}

static dp_status write_tokenizer(dp_model_files *files, dp_store *store)
{
    return write_object(files, store, &files->tokenizer, DP_MODEL_FILES_TOKENIZER);
}

dp_status dp_model_files_write(dp_model_files *files, dp_store *store)
{
    static dp_status (*const steps[])(dp_model_files *, dp_store *) = {
        write_manifest, write_checkpoint, write_first, write_base, write_tokenizer};
    files->more = false;
    DP_TRY(steps[files->step](files, store));
    if (!files->goes_on) {
        files->step++;
        DP_TRY(end_file(files));
    }
    files->more = files->step < sizeof steps / sizeof steps[0];
    return DP_OK;
}
