/* The newest checkpoint of a folder, measured on held-out data or on other data, or exported. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/run/prepared.h"
#include "compute/corpus/chat_files.h"
#include "compute/corpus/corpus.h"
#include "compute/corpus/foreign_data.h"
#include "compute/corpus/generation_config.h"
#include "compute/corpus/tokenize.h"
#include "compute/data/shard.h"
#include "compute/machine/files.h"
#include "compute/standalone/standalone.h"
#include "compute/standalone/standalone_file.h"
#include "compute/standalone/standalone_folder.h"
#include "compute/text/bpe.h"
#include "compute/trainer/sample_text.h"

enum { WHOLE = 1000 }; /* per mille that is looked at, of data from outside */

static dp_status path_in(const char *folder, const char *name, char path[PATH_MAX], dp_why *why)
{
    const int size = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return size > 0 && size < PATH_MAX
               ? DP_OK
               : dp_why_set(why, DP_BADARG, "the path %.300s is too long", folder);
}

/* Tokens of JSON lines, made as those of training were, in a folder that is removed again. */
static dp_status tokenize_lines(const dp_standalone_folder *folder, const char *lines,
                                const char *made_in, dp_buf *bytes, dp_why *why)
{
    char tokenizer[PATH_MAX];
    char shard[DP_PREPARED_NAME_MAX];
    char path[PATH_MAX];
    char name[PATH_MAX];
    char *paths[1] = {name};
    dp_tokenized made;
    dp_prepared_shard(0, shard);
    DP_TRY(path_in(folder->path, "data/" DP_PREPARED_TOKENIZER, tokenizer, why));
    DP_TRY(path_in(made_in, shard, path, why));
    if (snprintf(name, sizeof name, "%s", lines) >= (int)sizeof name) {
        return dp_why_set(why, DP_BADARG, "the path %.300s is too long", lines);
    }
    const dp_tokenize_job job = {.paths = paths,
                                 .n_paths = 1,
                                 .field = "text",
                                 .tokenizer = tokenizer,
                                 .folder = made_in,
                                 .window = folder->manifest.context,
                                 .shard_tokens = DP_CORPUS_SHARD_TOKENS_MAX};
    DP_TRY(dp_tokenize(&job, &made, why));
    if (made.sum.shards != 1) {
        return dp_why_set(why, DP_TOOBIG, "%.300s has more than %d tokens; measure a part of it",
                          lines, DP_CORPUS_SHARD_TOKENS_MAX);
    }
    return dp_file_read(path, bytes, why);
}

static void remove_folder(const char *folder)
{
    dp_file_list list;
    if (dp_file_list_open(&list, folder, DP_TOKENIZE_FILES_MAX, NULL) == DP_OK) {
        for (size_t i = 0; i < list.count; i++) {
            DP_IGNORE(unlink(list.paths[i]) != 0);
        }
        dp_file_list_close(&list);
    }
    DP_IGNORE(rmdir(folder) != 0);
}

static dp_status read_lines(const dp_standalone_folder *folder, const char *lines, dp_buf *bytes,
                            dp_why *why)
{
    const char *const temporary = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    char made_in[PATH_MAX];
    if (snprintf(made_in, sizeof made_in, "%s/dpnode-eval-XXXXXX",
                 temporary != NULL && temporary[0] != '\0' ? temporary : "/tmp") >= PATH_MAX ||
        mkdtemp(made_in) == NULL) {
        return dp_why_set(why, DP_IO,
                          "no folder can be made for the tokens; set TMPDIR to one "
                          "that can be written");
    }
    const dp_status status = tokenize_lines(folder, lines, made_in, bytes, why);
    remove_folder(made_in);
    return status;
}

/* Bytes that were given: a token shard as it is, or text as this model's tokenizer cuts it. */
static dp_status open_given(const dp_standalone_folder *folder, dp_buf *bytes, dp_data *data,
                            dp_why *why)
{
    dp_shard shard;
    dp_bpe *bpe = NULL;
    dp_tokens tokens = {0};
    DP_TRY(dp_bpe_load(&bpe, dp_buf_view(&folder->tokenizer), why));
    const uint32_t vocab = (uint32_t)dp_bpe_count(bpe);
    dp_status status = DP_OK;
    if (dp_shard_open(&shard, dp_buf_view(bytes), NULL) != DP_OK) {
        const uint64_t text_bytes = bytes->size;
        status = dp_bpe_encode(bpe, dp_buf_view(bytes), &tokens, why);
        if (status == DP_OK) {
            dp_buf_clear(bytes);
            status = dp_shard_write(tokens.ids, tokens.count, vocab, text_bytes, bytes);
        }
    }
    if (status == DP_OK) {
        status = dp_data_open(data, dp_buf_view(bytes), vocab, WHOLE, why);
    }
    dp_tokens_close(&tokens);
    dp_bpe_close(bpe);
    return status;
}

static dp_status score(const dp_standalone_look *look, const dp_standalone_folder *folder,
                       dp_trainer *trainer, dp_trainer_score *out, dp_why *why)
{
    dp_buf bytes;
    dp_data data = {0};
    dp_buf_init(&bytes, DP_OBJECT_BYTES_MAX);
    dp_status status = DP_OK;
    if (look->data != NULL) {
        status = dp_foreign_data_check(look->data, false, why);
        if (status == DP_OK) {
            status = dp_tokenize_is_jsonl(look->data) ? read_lines(folder, look->data, &bytes, why)
                                                      : dp_file_read(look->data, &bytes, why);
        }
        if (status == DP_OK) {
            status = open_given(folder, &bytes, &data, why);
        }
        status = status == DP_UNSUPPORTED ? DP_BADARG : status; /* It would mean the backend. */
    }
    if (status == DP_OK) {
        status = dp_trainer_eval(trainer, look->data != NULL ? &data : NULL, look->tokens, out);
        if (status == DP_NOTFOUND) {
            status = dp_why_set(
                why, DP_BADARG,
                look->data != NULL ? "the data has not even two tokens"
                                   : "the run holds nothing out (data.val is 0); give --data FILE");
        }
    }
    dp_data_close(&data);
    dp_buf_close(&bytes);
    return status;
}

static dp_status none(const dp_standalone_look *look, dp_why *why)
{
    return dp_why_set(why, DP_NOTFOUND, "%.300s holds no %s", look->folder,
                      look->which == DP_STANDALONE_LAST
                          ? "checkpoint"
                          : "best checkpoint; the first validation makes one");
}

/* A checkpoint may be replaced by a newer one meanwhile, or be damaged: then another one. */
static dp_status load_newest(const dp_standalone_look *look, const dp_standalone_folder *folder,
                             dp_trainer **trainer, uint64_t *steps, dp_why *why)
{
    uint64_t found[DP_STANDALONE_FILES_MAX];
    const size_t count = dp_standalone_list(look->folder, look->which, found);
    dp_status status = none(look, why);
    for (size_t i = 0; i < count; i++) {
        dp_standalone_head head;
        status = dp_standalone_peek(look->folder, look->which, found[i], &head, why);
        if (status == DP_OK && *trainer == NULL) {
            dp_trainer_setup setup = dp_standalone_folder_setup(folder);
            setup.threads = look->threads;
            setup.rows = head.rows;
            DP_TRY(dp_trainer_open(trainer, &setup, why));
        }
        if (status == DP_OK) {
            status = dp_standalone_load(look->folder, look->which, &head, *trainer, why);
        }
        if (status == DP_OK) {
            *steps = found[i];
            return DP_OK;
        }
    }
    return status;
}

/* Close both in every case. */
static dp_status open_newest(const dp_standalone_look *look, dp_standalone_folder *folder,
                             dp_trainer **trainer, uint64_t *steps, dp_why *why)
{
    if (snprintf(folder->path, sizeof folder->path, "%s", look->folder) >= PATH_MAX) {
        return dp_why_set(why, DP_BADARG, "the folder's path is too long");
    }
    DP_TRY(dp_standalone_folder_open(folder, why));
    return load_newest(look, folder, trainer, steps, why);
}

dp_status dp_standalone_eval(const dp_standalone_look *look, dp_trainer_score *out, uint64_t *steps,
                             dp_why *why)
{
    dp_standalone_folder folder = {.lock = -1};
    dp_trainer *trainer = NULL;
    dp_status status = open_newest(look, &folder, &trainer, steps, why);
    if (status == DP_OK) {
        status = score(look, &folder, trainer, out, why);
    }
    dp_trainer_close(trainer);
    dp_standalone_folder_close(&folder);
    return status;
}

/* ---- text ---- */

typedef struct weights_of {
    const dp_standalone_look *look;
    const dp_standalone_folder *opened;
    size_t elements;
    uint64_t steps;
} weights_of;

/* The first checkpoint that can be read, as load_newest. */
static dp_status load_weights(void *context, float *params, dp_why *why)
{
    weights_of *const w = context;
    uint64_t found[DP_STANDALONE_FILES_MAX];
    const size_t count = dp_standalone_list(w->look->folder, w->look->which, found);
    dp_status status = none(w->look, why);
    for (size_t i = 0; i < count; i++) {
        dp_standalone_head head;
        status = dp_standalone_peek(w->look->folder, w->look->which, found[i], &head, why);
        if (status == DP_OK &&
            (head.elements != w->elements || !dp_hash_equal(&head.manifest, &w->opened->hash))) {
            status = dp_why_set(why, DP_BADMSG, "a checkpoint of %.300s is of another run",
                                w->look->folder);
        }
        if (status == DP_OK) {
            status = dp_standalone_weights(w->look->folder, w->look->which, &head, params, why);
        }
        if (status == DP_OK) {
            w->steps = found[i];
            return DP_OK;
        }
    }
    return status;
}

static dp_status sample_folder(const dp_standalone_look *look, const dp_standalone_folder *folder,
                               const dp_sampler *sampler, const char *prompt, size_t n,
                               dp_buf *text, uint64_t *steps, dp_why *why)
{
    const dp_model_config config = dp_manifest_model(&folder->manifest);
    dp_model model;
    dp_bpe *bpe = NULL;
    DP_TRY(dp_model_open(&model, &config, why));
    weights_of w = {look, folder, model.n_elements, 0};
    dp_status status = dp_bpe_load(&bpe, dp_buf_view(&folder->tokenizer), why);
    if (status == DP_OK) {
        const dp_sample_weights weights = {.model = &model,
                                           .bpe = bpe,
                                           .threads = look->threads,
                                           .load = load_weights,
                                           .context = &w};
        status = dp_sample_from(&weights, sampler, prompt, n, text, why);
        *steps = w.steps;
    }
    dp_bpe_close(bpe);
    dp_model_close(&model);
    return status;
}

dp_status dp_standalone_sample(const dp_standalone_look *look, const dp_sampler *sampler,
                               const char *prompt, size_t n, dp_buf *text, uint64_t *steps,
                               dp_why *why)
{
    dp_standalone_folder folder = {.lock = -1};
    dp_status status = DP_OK;
    if (snprintf(folder.path, sizeof folder.path, "%s", look->folder) >= PATH_MAX) {
        return dp_why_set(why, DP_BADARG, "the folder's path is too long");
    }
    status = dp_standalone_folder_open_model(&folder, why);
    if (status == DP_OK && dp_manifest_adapts(&folder.manifest)) {
        status = dp_why_set(why, DP_UNSUPPORTED,
                            "%.300s trains adapters, and text is drawn from whole models; `dpnode "
                            "ckpt export DIR --from FOLDER --merged` writes one",
                            look->folder);
    }
    if (status == DP_OK) {
        status = sample_folder(look, &folder, sampler, prompt, n, text, steps, why);
    }
    dp_standalone_folder_close(&folder);
    return status;
}

/* ---- files for other programs ---- */

/* The files of the export, and after them those of the chat template, which stand beside a
 * tokenizer alone. */
static dp_status export_chat(const dp_standalone_folder *folder, const dp_export_job *to,
                             dp_standalone_files files, dp_why *why)
{
    const char *const *const made =
        dp_export_files(to, false, dp_manifest_adapts(&folder->manifest));
    const bool whole = to->gguf == NULL && to->llmc == NULL;
    char data[PATH_MAX];
    char path[PATH_MAX];
    size_t n = 0;
    for (; made[n] != NULL; n++) {
        files[n] = made[n];
    }
    files[n] = NULL;
    DP_TRY(path_in(folder->path, "data", data, why));
    for (size_t i = 0; whole && i < DP_CHAT_FILES; i++) {
        DP_TRY(path_in(data, dp_chat_file_names[i], path, why));
        if (access(path, F_OK) == 0) {
            files[n++] = dp_chat_file_names[i];
            files[n] = NULL;
        }
    }
    if (!whole) {
        return DP_OK;
    }
    DP_TRY(dp_chat_files_copy(data, to->folder, why));
    return dp_manifest_adapts(&folder->manifest) && !to->merged
               ? DP_OK
               : dp_generation_config_export(data, to->folder, dp_buf_view(&folder->tokenizer),
                                             why);
}

/* The chat template for a GGUF file; chat stays empty where there is none. */
static dp_status read_chat(const dp_standalone_folder *folder, dp_buf *chat, dp_why *why)
{
    char data[PATH_MAX];
    dp_why none;
    DP_TRY(path_in(folder->path, "data", data, why));
    const dp_status status = dp_chat_files_source(data, chat, &none);
    return status == DP_NOTFOUND || status == DP_OK ? DP_OK
                                                    : dp_why_set(why, status, "%s", none.text);
}

static dp_status export_state(const dp_standalone_folder *folder, dp_view state,
                              const dp_export_job *to, dp_why *why)
{
    dp_buf chat;
    dp_buf_init(&chat, DP_CHAT_SOURCE_MAX);
    dp_status status = to->gguf != NULL ? read_chat(folder, &chat, why) : DP_OK;
    if (status == DP_OK) {
        const dp_export_inputs in = {.manifest =
                                         dp_view_of(folder->canonical, folder->canonical_size),
                                     .state = state,
                                     .tokenizer = dp_buf_view(&folder->tokenizer),
                                     .base = folder->base,
                                     .chat = dp_buf_view(&chat)};
        status = dp_export_views(to, &in, why);
    }
    dp_buf_close(&chat);
    return status;
}

dp_status dp_standalone_export(const dp_standalone_look *look, const dp_export_job *to,
                               uint64_t *steps, dp_standalone_files files, dp_why *why)
{
    dp_standalone_folder folder = {.lock = -1};
    dp_trainer *trainer = NULL;
    dp_view state = {0};
    dp_hash root;
    dp_export_job job = *to;
    dp_status status = open_newest(look, &folder, &trainer, steps, why);
    if (status == DP_OK) {
        job.context = dp_standalone_folder_context(&folder);
        status = dp_trainer_state_bytes(trainer, &state, &root);
    }
    if (status == DP_OK) {
        status = export_state(&folder, state, &job, why);
    }
    if (status == DP_OK) {
        status = export_chat(&folder, to, files, why);
    }
    dp_trainer_close(trainer);
    dp_standalone_folder_close(&folder);
    return status;
}
