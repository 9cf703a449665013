#include "daemon/control/run_create.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/disk.h"
#include "base/run/prepared.h"
#include "base/run/samples.h"
#include "base/size.h"
#include "daemon/host/tool.h"
#include "daemon/net/transport.h"
#include "daemon/peer/driver.h"
#include "store/object.h"
#include "store/vote.h"

#define NO_ROOM_FIX "dpnode up --dir PATH   # on another disk, or free space on this one"
#define FULL_FIX                                                                                   \
    "dpnode limits --disk SIZE   # if the store is at its limit; else free space on the disk"

typedef struct founding {
    dp_store_thread_job job;
    dp_daemon *daemon;
    dp_run_create_request request;
    dp_manifest manifest;
    char folder[DP_CONFIG_PATH_MAX];
    char from[DP_CONFIG_PATH_MAX]; /* "": from the seed */
    char node_name[DP_NAME_MAX + 1];
    uint8_t root_seed[DP_ROOT_SEED_BYTES];
    dp_run_identity facts;
    const dp_vote_key_row *vote; /* on its way into the store */
    dp_status status;
    dp_why why; /* addition to the status; "": none */
} founding;

static void finish(founding *self, dp_status status, const char *code, const char *what,
                   const char *why, const char *fix)
{
    if (self->folder[0] != '\0') {
        dp_tool_folder_remove(self->folder);
    }
    self->request.done(self->request.context, status, code, what, why, fix);
    sodium_memzero(self->root_seed, sizeof self->root_seed);
    sodium_memzero(&self->facts, sizeof self->facts);
    dp_free(self);
}

/* Keeps data until the run has its id, which follows from the hashes of the data. */
static const dp_pin unnamed = {.kind = DP_PIN_DATA};

/* Stores a file of the tool, named in its manifest, as a permanent object. */
static dp_status keep_file(const founding *self, dp_store *store, const char *name,
                           const dp_hash *root)
{
    char path[DP_CONFIG_PATH_MAX + 64];
    struct stat info;
    dp_hash found;
    snprintf(path, sizeof path, "%s/%s", self->folder, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return DP_IO;
    }
    void *bytes = fstat(fd, &info) == 0 && info.st_size > 0
                      ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                      : MAP_FAILED;
    close(fd);
    if (bytes == MAP_FAILED) {
        return DP_IO;
    }
    dp_status status =
        dp_object_put(store, dp_view_of(bytes, (size_t)info.st_size), &unnamed, &found);
    munmap(bytes, (size_t)info.st_size);
    if (status == DP_OK && !dp_hash_equal(&found, root)) {
        status = DP_BADHASH;
    }
    return status;
}

/* Copies the data part of the manifest from the tool. */
static dp_status read_prepared(founding *self)
{
    char path[DP_CONFIG_PATH_MAX + 64];
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    dp_manifest prepared;
    snprintf(path, sizeof path, "%s/" DP_PREPARED_MANIFEST, self->folder);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    if (fd >= 0) {
        close(fd);
    }
    if (size < 0) {
        return DP_IO;
    }
    DP_TRY(dp_manifest_decode(&prepared, dp_view_of(bytes, (size_t)size)));
    self->manifest.tokenizer = prepared.tokenizer;
    self->manifest.tokenizer_bytes = prepared.tokenizer_bytes;
    self->manifest.init = prepared.init;
    self->manifest.init_bytes = prepared.init_bytes;
    self->manifest.n_shards = prepared.n_shards;
    memcpy(self->manifest.shards, prepared.shards, sizeof prepared.shards);
    self->manifest.elements = prepared.elements;
    self->manifest.base = prepared.base;
    self->manifest.base_bytes = prepared.base_bytes;
    return prepared.n_shards > 0 || prepared.elements > 0 ? DP_OK : DP_BADMSG;
}

static dp_status keep_files(const founding *self, dp_store *store)
{
    const dp_manifest *const manifest = &self->manifest;
    DP_TRY(keep_file(self, store, dp_prepared_first(manifest), &manifest->tokenizer));
    for (uint32_t i = 0; i < manifest->n_shards; i++) {
        char name[DP_PREPARED_NAME_MAX];
        dp_prepared_shard(i, name);
        DP_TRY(keep_file(self, store, name, &manifest->shards[i].root));
    }
    if (dp_manifest_adapts(manifest)) {
        DP_TRY(keep_file(self, store, DP_PREPARED_BASE, &manifest->base));
    }
    return dp_hash_is_zero(&manifest->init)
               ? DP_OK
               : keep_file(self, store, DP_PREPARED_INIT, &manifest->init);
}

static dp_status name_object(dp_store *store, const dp_run_id *run, const dp_hash *root)
{
    const dp_pin named = {.run = *run, .kind = DP_PIN_DATA};
    if (dp_hash_is_zero(root)) {
        return DP_OK;
    }
    DP_TRY(dp_object_pin(store, root, &named));
    return dp_object_unpin(store, root, &unnamed);
}

/* From now on the run itself keeps its data: leaving it deletes them. Until its facts are stored it
 * stays marked as unfinished, now with its id. */
static dp_status store_run(dp_store *store, void *context)
{
    const founding *const self = context;
    const dp_run_id *const run = &self->facts.run;
    const dp_manifest *const manifest = &self->manifest;
    DP_TRY(dp_vote_create_key(store, run, self->vote));
    DP_TRY(dp_run_identity_founding(store, run, self->facts.root));
    DP_TRY(name_object(store, run, &manifest->tokenizer));
    for (uint32_t i = 0; i < manifest->n_shards; i++) {
        DP_TRY(name_object(store, run, &manifest->shards[i].root));
    }
    if (dp_manifest_adapts(manifest)) {
        DP_TRY(name_object(store, run, &manifest->base));
    }
    return name_object(store, run, &manifest->init);
}

/* Called before anything is stored: otherwise a run would remain that no node can hold. data_bytes:
 * bytes to be written. */
static dp_status check_room(const dp_daemon *daemon, const dp_manifest *manifest,
                            uint64_t data_bytes, dp_why *why)
{
    char takes[DP_SIZE_TEXT_MAX];
    char free_text[DP_SIZE_TEXT_MAX];
    uint64_t free_bytes = 0;
    if (!dp_disk_free(daemon->config->dir, &free_bytes)) {
        return DP_OK; /* The store will report it. */
    }
    const uint64_t needs = dp_prepared_disk_bytes(manifest, data_bytes) + daemon->config->margin;
    if (free_bytes >= needs) {
        return DP_OK;
    }
    dp_size_text(needs, takes);
    dp_size_text(free_bytes, free_text);
    return dp_why_set(why, DP_NOSPACE,
                      "data, two states and the margin need %s, %s are free in %.200s", takes,
                      free_text, daemon->config->dir);
}

static dp_status make_vote_key(founding *self, dp_sign_key *key)
{
    uint8_t seed[32];
    randombytes_buf(seed, sizeof seed);
    dp_sign_key_of_seed(seed, key);
    sodium_memzero(seed, sizeof seed);
    memcpy(self->manifest.founder_vote_key, key->public_key,
           sizeof self->manifest.founder_vote_key);
    return DP_OK;
}

static dp_status sign_manifest(founding *self, const dp_sign_key *root)
{
    dp_run_identity *facts = &self->facts;
    DP_TRY(dp_manifest_encode(&self->manifest, facts->manifest, &facts->manifest_bytes));
    dp_sign(root, "dpnode/manifest/1",
            dp_view_of(facts->manifest, facts->manifest_bytes - DP_MANIFEST_SIGNATURE_BYTES),
            self->manifest.signature);
    return dp_manifest_encode(&self->manifest, facts->manifest, &facts->manifest_bytes);
}

static void fill_facts(founding *self, const dp_sign_key *root)
{
    uint8_t serial[DP_CERT_SERIAL_BYTES];
    dp_run_identity *facts = &self->facts;
    facts->run = dp_manifest_run_id(dp_view_of(facts->manifest, facts->manifest_bytes));
    memcpy(facts->root, root->public_key, sizeof facts->root);
    randombytes_buf(facts->join_secret, sizeof facts->join_secret);
    randombytes_buf(serial, sizeof serial);
    dp_founder_credential(root, &facts->run, &self->daemon->identity, serial, dp_unix_ms(),
                          facts->credential);
    facts->credential_bytes = DP_CERT_BYTES;
    snprintf(facts->name, sizeof facts->name, "%s", self->manifest.name);
    snprintf(facts->node_name, sizeof facts->node_name, "%s", self->node_name);
}

/* Before anything is stored: what a start finds with this mark, of a run without an id too, it
 * deletes. */
static dp_status mark_founding(founding *self, dp_store *store)
{
    dp_sign_key root;
    randombytes_buf(self->root_seed, sizeof self->root_seed);
    dp_sign_key_of_seed(self->root_seed, &root);
    memcpy(self->facts.root, root.public_key, sizeof self->facts.root);
    sodium_memzero(&root, sizeof root);
    return dp_run_identity_founding(store, &self->facts.run, self->facts.root);
}

static dp_status found(founding *self, dp_store *store)
{
    dp_sign_key root;
    dp_sign_key vote;
    dp_vote_key_row row;
    dp_manifest *manifest = &self->manifest;
    const dp_peer self_peer = dp_identity_peer(&self->daemon->identity);
    DP_TRY(read_prepared(self));
    DP_TRY(check_room(self->daemon, manifest,
                      dp_manifest_data_bytes(manifest) + manifest->tokenizer_bytes +
                          manifest->init_bytes + manifest->base_bytes,
                      &self->why));
    DP_TRY(mark_founding(self, store));
    DP_TRY(keep_files(self, store));
    dp_sign_key_of_seed(self->root_seed, &root);
    DP_TRY(make_vote_key(self, &vote));
    manifest->created_ms = dp_unix_ms();
    randombytes_buf(&manifest->nonce, sizeof manifest->nonce);
    memcpy(manifest->root_key, root.public_key, sizeof manifest->root_key);
    memcpy(manifest->founder, self_peer.bytes, sizeof manifest->founder);
    DP_TRY(sign_manifest(self, &root));
    fill_facts(self, &root);
    memcpy(row.public_key, vote.public_key, sizeof row.public_key);
    memcpy(row.secret, vote.secret_key, sizeof row.secret);
    self->vote = &row;
    const dp_status status = dp_store_atomically(store, store_run, self);
    self->vote = NULL;
    sodium_memzero(&row, sizeof row);
    sodium_memzero(&vote, sizeof vote);
    sodium_memzero(&root, sizeof root);
    return status;
}

static void run_abandon(dp_store_thread_job *job, dp_store *store)
{
    const founding *self = (founding *)job;
    /* If it fails, the next start does it. */
    DP_IGNORE(dp_run_identity_abandon(store, &self->facts.run));
}

static void run_found(dp_store_thread_job *job, dp_store *store)
{
    founding *self = (founding *)job;
    self->status = found(self, store);
    if (self->status == DP_NOSPACE && self->why.text[0] == '\0') {
        char full[DP_DISK_TEXT_MAX];
        dp_store_full_text(store, full);
        self->status = dp_why_set(&self->why, DP_NOSPACE, "%s", full);
    }
    if (self->status != DP_OK) {
        run_abandon(job, store);
    }
}

static void done_abandon(dp_store_thread_job *job)
{
    founding *self = (founding *)job;
    finish(self, self->status, "E0303", "the run could not be started", self->why.text,
           "dpnode down; dpnode up --listen ADDR:PORT   # another port");
}

/* Deletes what was stored of the run, then answers. */
static void give_up(founding *self, dp_status status, const dp_why *why)
{
    self->status = status;
    self->why = *why;
    self->job.run = run_abandon;
    self->job.done = done_abandon;
    if (dp_store_thread_post(self->daemon->store_thread, &self->job, DP_STORE_THREAD_BULK) !=
        DP_OK) {
        done_abandon(&self->job);
    }
}

static dp_status open_driver(const founding *self, const char *moved, dp_why *why)
{
    dp_daemon *const daemon = self->daemon;
    const dp_status status = dp_driver_open(&daemon->driver, daemon, &self->facts, why);
    if (status != DP_OK && dp_daemon_drop_root(daemon, moved) != DP_OK) {
        dp_event_log_add(daemon->event_log, DP_LOG_ERROR, "root.key", 0, NULL,
                         "%s/root.key is of a run that was not created, and cannot be deleted",
                         daemon->config->dir);
    } else if (status == DP_OK && moved[0] != '\0') {
        dp_event_log_add(daemon->event_log, DP_LOG_WARN, "root.moved", 0, NULL,
                         "the root key of the earlier run is kept as %s/%s", daemon->config->dir,
                         moved);
    }
    return status;
}

static void done_found(dp_store_thread_job *job)
{
    founding *self = (founding *)job;
    dp_why why = {""};
    char moved[DP_ROOT_NAME_MAX] = "";
    dp_daemon *daemon = self->daemon;
    if (self->status != DP_OK) {
        const bool full = self->status == DP_NOSPACE;
        finish(self, DP_IO, full ? "E0312" : "E0302",
               full ? "there is no room for this run" : "the run could not be stored",
               self->why.text[0] != '\0' ? self->why.text : dp_status_text(self->status),
               full ? FULL_FIX : NO_ROOM_FIX);
        return;
    }
    dp_status status = daemon->driver != NULL || daemon->ending
                           ? DP_BUSY
                           : dp_daemon_keep_root(daemon, self->root_seed, moved, &why);
    if (status == DP_OK) {
        status = open_driver(self, moved, &why);
    }
    if (status != DP_OK) {
        give_up(self, status, &why);
        return;
    }
    finish(self, DP_OK, "", "", moved, "");
}

/* output: what the tool said. root may name a file that the daemon's own user may not read. */
static const char *fix_of(const founding *self, const char *output)
{
    if (strstr(output, "Permission denied") != NULL) {
        return "put it where the daemon's user may read it: chmod -R a+rX PATH. With the Debian "
               "package the daemon sees nothing below /home: take a folder in /tmp";
    }
    if (dp_manifest_external(&self->manifest)) {
        return "dpnode run create FILE --from model.safetensors   # a file of F32, F16 and BF16 "
               "tensors";
    }
    return self->from[0] != '\0'
               ? "dpnode run create --from PATH   # a folder with config.json, model.safetensors "
                 "and tokenizer.json, or a model file of llm.c"
               : "dpnode run create FILE --text TEXT   # a file of UTF-8 text, or a folder";
}

/* The tool failed: output has the reason. */
static void refuse(founding *self, int exit, const char *output)
{
    const bool from = self->from[0] != '\0';
    if (exit == DP_PREPARED_NO_MEMORY) {
        finish(self, DP_UNSUPPORTED, "E0311", "this model does not fit this machine", output,
               "free memory, or change the setting named above");
        return;
    }
    if (dp_manifest_external(&self->manifest)) {
        finish(self, DP_BADMSG, "E0313", "no run can begin from this file", output,
               fix_of(self, output));
        return;
    }
    finish(self, DP_BADMSG, from ? "E0310" : "E0304",
           from ? "a run cannot begin from these weights and this text" : "the text cannot be used",
           output, fix_of(self, output));
}

static void on_prepared(void *context, int exit, const char *output)
{
    founding *self = context;
    if (exit != 0) {
        refuse(self, exit, output);
        return;
    }
    char sentence[256];
    dp_tool_sentence(output, sentence, sizeof sentence);
    self->request.progress(self->request.context, "data", sentence);
    self->job.run = run_found;
    self->job.done = done_found;
    if (dp_store_thread_post(self->daemon->store_thread, &self->job, DP_STORE_THREAD_BULK) !=
        DP_OK) {
        finish(self, DP_AGAIN, "E0402", "the store is busy", "too many writes are waiting",
               "try again");
    }
}

/* Only the text, or the text and the weights of a folder, which must fit the manifest; or only the
 * file of a run of any model. */
static dp_status start_tool(founding *self, const char *text_path)
{
    char manifest[DP_CONFIG_PATH_MAX + 64];
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    DP_TRY(dp_manifest_encode(&self->manifest, bytes, &size));
    DP_TRY(dp_tool_file(self->folder, "manifest", dp_view_of(bytes, size)));
    snprintf(manifest, sizeof manifest, "%s/manifest", self->folder);
    const dp_config *const config = self->daemon->config;
    char threads[24];
    char processes[24];
    snprintf(threads, sizeof threads, "%llu", (unsigned long long)config->threads);
    snprintf(processes, sizeof processes, "%llu", (unsigned long long)config->processes);
    const bool from = self->from[0] != '\0';
    const char *const trains[] = {"--backend",   config->backend, "--threads", threads,
                                  "--processes", processes,       NULL};
    const char *arguments[DP_TOOL_ARGUMENTS_MAX + 1] = {"--prepare", text_path, self->folder,
                                                        "--manifest", manifest};
    size_t count = 5;
    if (from) {
        arguments[count++] = "--from";
        arguments[count++] = self->from;
    }
    if (self->request.skip_bad_lines) {
        arguments[count++] = "--skip-bad-lines";
    }
    for (size_t i = 0; !config->observer && trains[i] != NULL; i++) {
        arguments[count++] = trains[i]; /* An observer never trains: any model fits. */
    }
    return dp_tool_run(self->daemon, config->worker, arguments, on_prepared, self);
}

void dp_run_create_start(dp_daemon *daemon, const dp_run_create_request *request)
{
    founding *self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        request->done(request->context, DP_NOMEM, "E0199", "out of memory", "", "");
        return;
    }
    self->daemon = daemon;
    self->request = *request;
    self->manifest = *request->manifest;
    snprintf(self->node_name, sizeof self->node_name, "%s", request->node_name);
    snprintf(self->from, sizeof self->from, "%s",
             request->from_path != NULL ? request->from_path : "");
    if (dp_transport_try(daemon->config->listen, &self->why) == DP_BUSY) {
        finish(self, DP_BUSY, "E0303", "the run could not be started", self->why.text,
               "dpnode down; dpnode up --listen ADDR:PORT   # another port");
        return;
    }
    if (check_room(daemon, &self->manifest, 0, &self->why) != DP_OK) {
        finish(self, DP_IO, "E0312", "the disk has no room for this run", self->why.text,
               NO_ROOM_FIX);
        return;
    }
    if (dp_tool_folder(daemon, self->folder) != DP_OK) {
        self->folder[0] = '\0';
        finish(self, DP_IO, "E0302", "no space to prepare the text", daemon->config->dir,
               NO_ROOM_FIX);
        return;
    }
    request->progress(request->context, "prepare",
                      dp_manifest_external(&self->manifest) ? self->from : request->text_path);
    const dp_status status = start_tool(self, request->text_path);
    if (status == DP_TOOBIG) {
        finish(self, DP_TOOBIG, "E0304", "the text cannot be prepared", dp_status_text(status),
               "give a shorter path");
    } else if (status != DP_OK) {
        finish(self, DP_IO, "E0302", "the text cannot be prepared", dp_status_text(status),
               NO_ROOM_FIX);
    }
}
