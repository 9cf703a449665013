#include "compute/standalone/standalone_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "compute/corpus/chat_files.h"
#include "compute/corpus/generation_config.h"
#include "compute/format/export.h"
#include "compute/format/hf_import.h"
#include "compute/machine/files.h"
#include "compute/text/bpe.h"

static dp_status failed(dp_why *why, const char *what, const char *path)
{
    const int error = errno;
    char text[128];
    return dp_why_set(why, error == ENOENT ? DP_NOTFOUND : DP_IO, "cannot %s %.300s: %s", what,
                      path, strerror_r(error, text, sizeof text));
}

static dp_status path_of(const dp_standalone_folder *f, const char *name, char path[PATH_MAX],
                         dp_why *why)
{
    const int size = snprintf(path, PATH_MAX, "%s/%s", f->path, name);
    return size > 0 && size < PATH_MAX
               ? DP_OK
               : dp_why_set(why, DP_BADARG, "the path %.300s is too long", f->path);
}

void dp_standalone_folder_close(dp_standalone_folder *f)
{
    dp_buf_close(&f->tokenizer);
    for (uint32_t i = 0; i < DP_MANIFEST_SHARDS_MAX; i++) {
        dp_file_unmap(f->shards[i]);
        f->shards[i] = dp_view_of(NULL, 0);
    }
    dp_file_unmap(f->base);
    f->base = dp_view_of(NULL, 0);
    if (f->lock >= 0) {
        close(f->lock);
    }
    f->lock = -1;
}

dp_status dp_standalone_folder_lock(dp_standalone_folder *f, const char *given, bool make,
                                    dp_why *why)
{
    char path[PATH_MAX];
    const int size = snprintf(f->path, sizeof f->path, "%s", given);
    if (size <= 0 || size >= PATH_MAX) {
        return dp_why_set(why, DP_BADARG, "the folder's path is empty or too long");
    }
    if (make) {
        DP_TRY(dp_folder_make(f->path, why));
    }
    DP_TRY(path_of(f, "lock", path, why));
    f->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (f->lock < 0 && errno == ENOENT) {
        return dp_why_set(why, DP_NOTFOUND, "there is no folder %.300s", f->path);
    }
    if (f->lock < 0) {
        return failed(why, "open", path);
    }
    if (flock(f->lock, LOCK_EX | LOCK_NB) != 0) {
        return dp_why_set(why, DP_BUSY, "another process trains in %.300s; wait for it or stop it",
                          f->path);
    }
    return DP_OK;
}

static dp_status open_tokenizer(dp_standalone_folder *f, dp_why *why)
{
    char path[PATH_MAX];
    DP_TRY(path_of(f, "data/" DP_PREPARED_TOKENIZER, path, why));
    dp_buf_init(&f->tokenizer, DP_BPE_JSON_BYTES_MAX);
    return dp_file_read(path, &f->tokenizer, why);
}

/* All shards of f->manifest. */
static dp_status open_data(dp_standalone_folder *f, dp_why *why)
{
    char path[PATH_MAX];
    DP_TRY(path_of(f, "data", path, why));
    for (uint32_t i = 0; i < f->manifest.n_shards; i++) {
        char name[DP_PREPARED_NAME_MAX];
        dp_prepared_shard(i, name);
        DP_TRY(dp_file_map(path, name, &f->shards[i], why));
    }
    return dp_manifest_adapts(&f->manifest) ? dp_file_map(path, DP_PREPARED_BASE, &f->base, why)
                                            : DP_OK;
}

static dp_status check_file(const dp_standalone_folder *f, const char *name, dp_view bytes,
                            const dp_hash *root, dp_why *why)
{
    const dp_hash found = dp_object_hash(bytes, NULL);
    if (!dp_hash_equal(&found, root)) {
        return dp_why_set(why, DP_BADHASH, "%.300s/data/%s is not the one that training began with",
                          f->path, name);
    }
    return DP_OK;
}

static dp_status encode(dp_standalone_folder *f)
{
    DP_TRY(dp_manifest_encode(&f->manifest, f->canonical, &f->canonical_size));
    f->hash = dp_hash_of("dpnode/solo-manifest/1", dp_view_of(f->canonical, f->canonical_size));
    return DP_OK;
}

/* Clears names and signatures of a run of peers, which have no meaning here and would differ at
 * each start. */
static void forget_keys(dp_manifest *m)
{
    m->created_ms = 0;
    m->nonce = 0;
    memset(m->root_key, 0, sizeof m->root_key);
    memset(m->founder, 0, sizeof m->founder);
    memset(m->founder_vote_key, 0, sizeof m->founder_vote_key);
    memset(m->signature, 0, sizeof m->signature);
}

dp_status dp_standalone_folder_begin(dp_standalone_folder *f, const dp_manifest *manifest,
                                     const dp_prepare_job *from, dp_prepared *made, dp_why *why)
{
    char data[PATH_MAX];
    if (from->text == NULL) {
        return dp_why_set(why, DP_BADARG, "there is no text to learn from");
    }
    DP_TRY(path_of(f, "data", data, why));
    const dp_prepare_job job = {.text = from->text,
                                .folder = data,
                                .weights = from->weights,
                                .skip_bad_lines = from->skip_bad_lines};
    f->manifest = *manifest;
    forget_keys(&f->manifest);
    DP_TRY(dp_prepare(&job, &f->manifest, made, why));
    DP_TRY(open_tokenizer(f, why));
    DP_TRY(open_data(f, why));
    DP_TRY(encode(f));
    return dp_file_write(f->path, "manifest.bin", dp_view_of(f->canonical, f->canonical_size), why);
}

dp_status dp_standalone_folder_open_model(dp_standalone_folder *f, dp_why *why)
{
    char path[PATH_MAX];
    dp_buf bytes;
    DP_TRY(path_of(f, "manifest.bin", path, why));
    dp_buf_init(&bytes, DP_MANIFEST_BYTES_MAX);
    dp_status status = dp_file_read(path, &bytes, why);
    if (status == DP_NOTFOUND) {
        status =
            dp_why_set(why, status,
                       "%.300s holds no run of `dpnode train`: no manifest.bin is in it", f->path);
    }
    if (status == DP_OK) {
        status = dp_manifest_decode(&f->manifest, dp_buf_view(&bytes));
        if (status != DP_OK) {
            status = dp_why_set(why, status, "%.400s is no manifest", path);
        }
    }
    dp_buf_close(&bytes);
    DP_TRY(status);
    DP_TRY(encode(f));
    DP_TRY(open_tokenizer(f, why));
    return check_file(f, DP_PREPARED_TOKENIZER, dp_buf_view(&f->tokenizer), &f->manifest.tokenizer,
                      why);
}

dp_status dp_standalone_folder_open(dp_standalone_folder *f, dp_why *why)
{
    DP_TRY(dp_standalone_folder_open_model(f, why));
    DP_TRY(open_data(f, why));
    for (uint32_t i = 0; i < f->manifest.n_shards; i++) {
        char name[DP_PREPARED_NAME_MAX];
        dp_prepared_shard(i, name);
        DP_TRY(check_file(f, name, f->shards[i], &f->manifest.shards[i].root, why));
    }
    if (dp_manifest_adapts(&f->manifest) &&
        check_file(f, DP_PREPARED_BASE, f->base, &f->manifest.base, why) != DP_OK) {
        return dp_why_set(why, DP_BADHASH,
                          "%.250s/data/" DP_PREPARED_BASE " has changed since training began, and "
                          "adapters fit only the base that they were trained on: put the file "
                          "back, or begin anew with another --out",
                          f->path);
    }
    return DP_OK;
}

dp_status dp_standalone_folder_init(const dp_standalone_folder *f, dp_buf *out, dp_why *why)
{
    char path[PATH_MAX];
    dp_buf_init(out, DP_OBJECT_BYTES_MAX);
    if (dp_hash_is_zero(&f->manifest.init)) {
        return DP_OK;
    }
    DP_TRY(path_of(f, "data/" DP_PREPARED_INIT, path, why));
    DP_TRY(dp_file_read(path, out, why));
    return check_file(f, DP_PREPARED_INIT, dp_buf_view(out), &f->manifest.init, why);
}

/* The first setting in which they differ, "" for none that a person sets. */
static const char *difference(const dp_manifest *a, const dp_manifest *b)
{
    size_t count = 0;
    const dp_manifest_row *const rows = dp_manifest_rows(&count);
    for (size_t i = 0; i < count; i++) {
        const size_t at = rows[i].offset;
        if (memcmp((const char *)a + at, (const char *)b + at, rows[i].size) != 0) {
            return rows[i].key;
        }
    }
    const dp_manifest_choice *const choices = dp_manifest_choices(&count);
    for (size_t i = 0; i < count; i++) {
        const size_t at = choices[i].offset;
        if (memcmp((const char *)a + at, (const char *)b + at, sizeof(int)) != 0) {
            return choices[i].key;
        }
    }
    return strcmp(a->name, b->name) != 0 ? "name" : "";
}

dp_status dp_standalone_folder_same(const dp_standalone_folder *f, dp_view canonical, dp_why *why)
{
    dp_manifest given;
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    DP_TRY(dp_manifest_decode(&given, canonical));
    forget_keys(&given);
    given.tokenizer = f->manifest.tokenizer;
    given.tokenizer_bytes = f->manifest.tokenizer_bytes;
    given.init = f->manifest.init;
    given.init_bytes = f->manifest.init_bytes;
    given.base = f->manifest.base;
    given.base_bytes = f->manifest.base_bytes;
    given.n_shards = f->manifest.n_shards;
    memcpy(given.shards, f->manifest.shards, sizeof given.shards);
    DP_TRY(dp_manifest_encode(&given, bytes, &size));
    if (dp_view_equal(dp_view_of(bytes, size), dp_view_of(f->canonical, f->canonical_size))) {
        return DP_OK;
    }
    return dp_why_set(
        why, DP_BADARG,
        "%.300s began with another manifest (%s differs); put that back, or begin anew "
        "with another --out",
        f->path, difference(&given, &f->manifest));
}

dp_trainer_setup dp_standalone_folder_setup(const dp_standalone_folder *f)
{
    return (dp_trainer_setup){.manifest = dp_view_of(f->canonical, f->canonical_size),
                              .tokenizer = dp_buf_view(&f->tokenizer),
                              .shards = f->shards,
                              .n_shards = f->manifest.n_shards,
                              .base = f->base,
                              .alone = true};
}

uint32_t dp_standalone_folder_context(const dp_standalone_folder *f)
{
    char data[PATH_MAX];
    dp_model_config config;
    dp_why why;
    return path_of(f, "data", data, &why) == DP_OK &&
                   dp_hf_import_config(data, &config, &why) == DP_OK
               ? config.context
               : 0;
}

dp_status dp_standalone_folder_export(const dp_standalone_folder *f, dp_why *why)
{
    char manifest[PATH_MAX];
    char weights[PATH_MAX];
    char tokenizer[PATH_MAX];
    char model[PATH_MAX];
    char data[PATH_MAX];
    DP_TRY(path_of(f, "manifest.bin", manifest, why));
    DP_TRY(path_of(f, DP_STANDALONE_STATE, weights, why));
    DP_TRY(path_of(f, "data/tokenizer.json", tokenizer, why));
    DP_TRY(path_of(f, "model", model, why));
    const dp_export_job job = {.manifest = manifest,
                               .state = weights,
                               .tokenizer = tokenizer,
                               .folder = model,
                               .context = dp_standalone_folder_context(f)};
    const dp_status status = dp_export(&job, why);
    unlink(weights);
    DP_TRY(status);
    DP_TRY(path_of(f, "data", data, why));
    DP_TRY(dp_chat_files_copy(data, model, why));
    return dp_manifest_adapts(&f->manifest)
               ? DP_OK
               : dp_generation_config_export(data, model, dp_buf_view(&f->tokenizer), why);
}
