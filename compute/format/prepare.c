#include "compute/format/prepare.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/run/samples.h"
#include "compute/corpus/chat_files.h"
#include "compute/corpus/corpus.h"
#include "compute/corpus/foreign_data.h"
#include "compute/corpus/tokenize.h"
#include "compute/corpus/window_packer.h"
#include "compute/format/first_weights.h"
#include "compute/format/hf_config.h"
#include "compute/format/tensor_file.h"
#include "compute/machine/files.h"
#include "compute/model/model.h"
#include "compute/text/bpe.h"

static dp_status read_in(const char *folder, const char *name, dp_buf *out, dp_why *why)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path) {
        return dp_why_set(why, DP_BADARG, "the path %s is too long", folder);
    }
    return dp_file_read(path, out, why);
}

/* ---- the tokenizer ---- */

/* A tokenizer of vocab tokens from the text, or the one of this JSON. */
static dp_status make_tokenizer(dp_bpe **bpe, dp_view text, uint32_t vocab, dp_buf *json,
                                dp_why *why)
{
    if (json->size == 0) {
        DP_TRY(dp_bpe_train(bpe, text, vocab, why));
        return dp_bpe_save(*bpe, json);
    }
    DP_TRY(dp_bpe_load(bpe, dp_buf_view(json), why));
    if (dp_bpe_count(*bpe) > vocab) {
        return dp_why_set(why, DP_BADARG,
                          "the tokenizer has %zu tokens, the model a vocabulary of %" PRIu32,
                          (size_t)dp_bpe_count(*bpe), vocab);
    }
    return DP_OK;
}

static dp_status keep_tokenizer(const dp_prepare_job *job, dp_manifest *manifest, dp_view json,
                                dp_why *why)
{
    manifest->tokenizer = dp_object_hash(json, NULL);
    manifest->tokenizer_bytes = json.size;
    return dp_file_write(job->folder, DP_PREPARED_TOKENIZER, json, why);
}

/* ---- the shards ---- */

static void add_shard(dp_manifest *manifest, const dp_shard_row *row)
{
    manifest->shards[manifest->n_shards] =
        (dp_manifest_shard){.root = row->root, .bytes = row->bytes, .tokens = row->tokens};
    manifest->n_shards++;
}

static dp_status write_shards(dp_corpus *corpus, const dp_tokens *tokens, dp_manifest *manifest,
                              dp_why *why)
{
    dp_hash root;
    DP_TRY(dp_corpus_add(corpus, tokens->ids, tokens->count, why));
    DP_TRY(dp_corpus_finish(corpus, &root, why));
    dp_assert(corpus->n_rows <= DP_MANIFEST_SHARDS_MAX);
    for (uint32_t i = 0; i < corpus->n_rows; i++) {
        add_shard(manifest, &corpus->rows[i]);
    }
    return DP_OK;
}

/* Shards of the usual size, or so large that a run can have them all, up to the largest that there
 * are. */
static uint64_t shard_tokens_of(uint64_t tokens_most)
{
    const uint64_t least = (tokens_most + DP_MANIFEST_SHARDS_MAX - 1) / DP_MANIFEST_SHARDS_MAX;
    const uint64_t usual = least > DP_CORPUS_SHARD_TOKENS ? least : DP_CORPUS_SHARD_TOKENS;
    return usual < DP_CORPUS_SHARD_TOKENS_MAX ? usual : DP_CORPUS_SHARD_TOKENS_MAX;
}

static dp_status take_tokens(const dp_prepare_job *job, const dp_bpe *bpe, dp_view text,
                             dp_manifest *manifest, dp_why *why)
{
    dp_tokens tokens = {0};
    dp_corpus corpus = {0};
    dp_status status = dp_bpe_encode(bpe, text, &tokens, why);
    if (status == DP_OK) {
        status = dp_corpus_open(&corpus, bpe, job->folder, shard_tokens_of(tokens.count));
    }
    if (status == DP_OK) {
        status = write_shards(&corpus, &tokens, manifest, why);
    }
    dp_corpus_close(&corpus);
    dp_tokens_close(&tokens);
    return status;
}

/* json: of the weights, or empty. */
static dp_status take_text(const dp_prepare_job *job, dp_buf *json, dp_manifest *manifest,
                           dp_prepared *prepared, dp_why *why)
{
    dp_buf text;
    dp_buf_init(&text, DP_OBJECT_BYTES_MAX);
    dp_bpe *bpe = NULL;
    dp_status status = dp_file_read(job->text, &text, why);
    if (status == DP_OK) {
        status = make_tokenizer(&bpe, dp_buf_view(&text), manifest->vocab, json, why);
    }
    if (status == DP_OK) {
        status = keep_tokenizer(job, manifest, dp_buf_view(json), why);
    }
    if (status == DP_OK) {
        status = take_tokens(job, bpe, dp_buf_view(&text), manifest, why);
    }
    if (status == DP_OK) {
        prepared->text_bytes = text.size;
        prepared->vocab = dp_bpe_count(bpe);
    }
    dp_bpe_close(bpe);
    dp_buf_close(&text);
    return status;
}

static dp_status copy_shards(const dp_prepare_job *job, const dp_shard_table *table,
                             dp_manifest *manifest, dp_why *why)
{
    dp_buf bytes;
    dp_status status = DP_OK;
    dp_buf_init(&bytes, DP_OBJECT_BYTES_MAX);
    const bool there = strcmp(job->text, job->folder) == 0;
    for (uint32_t i = 0; i < table->n_shards && status == DP_OK; i++) {
        char name[DP_PREPARED_NAME_MAX];
        const dp_shard_row row = dp_shard_table_row(table, i);
        dp_prepared_shard(i, name);
        dp_buf_clear(&bytes);
        if (!there) {
            status = read_in(job->text, name, &bytes, why);
        }
        if (!there && status == DP_OK) {
            status = dp_file_write(job->folder, name, dp_buf_view(&bytes), why);
        }
        add_shard(manifest, &row);
    }
    dp_buf_close(&bytes);
    return status;
}

static dp_status take_table(const dp_prepare_job *job, const dp_corpus_sum *sum,
                            dp_manifest *manifest, dp_why *why)
{
    dp_buf bytes;
    dp_shard_table table;
    dp_buf_init(&bytes, DP_SHARD_TABLE_BYTES_MAX);
    dp_status status = read_in(job->text, DP_CORPUS_TABLE, &bytes, why);
    if (status == DP_OK) {
        status = dp_shard_table_open(&table, dp_buf_view(&bytes), why);
    }
    if (status == DP_OK && table.n_shards > DP_MANIFEST_SHARDS_MAX) {
        const uint64_t most = DP_MANIFEST_SHARDS_MAX;
        status = dp_why_set(why, DP_TOOBIG,
                            "a run's data has at most %d shards, %.200s has %" PRIu32
                            "; make fewer with --shard-tokens %" PRIu64,
                            DP_MANIFEST_SHARDS_MAX, job->text, table.n_shards,
                            (sum->tokens + most - 1) / most);
    }
    if (status == DP_OK) {
        status = copy_shards(job, &table, manifest, why);
    }
    dp_buf_close(&bytes);
    return status;
}

/* ---- documents that are kept apart ---- */

static dp_status add_packed(dp_corpus *corpus, const dp_window_packer *packer,
                            dp_manifest *manifest, dp_prepared *prepared, dp_why *why)
{
    dp_hash root;
    DP_TRY(dp_corpus_finish(corpus, &root, why));
    if (corpus->n_rows > DP_MANIFEST_SHARDS_MAX) {
        return dp_why_set(why, DP_TOOBIG, "the packed documents are %" PRIu32 " shards, %d at most",
                          corpus->n_rows, DP_MANIFEST_SHARDS_MAX);
    }
    for (uint32_t i = 0; i < corpus->n_rows; i++) {
        add_shard(manifest, &corpus->rows[i]);
    }
    prepared->counts = (dp_document_counts){.apart = true,
                                            .losses = corpus->losses_all,
                                            .padding = packer->padding,
                                            .cut = packer->cut,
                                            .left_out = packer->left_out};
    return DP_OK;
}

/* Packs the shards of job->text, another folder than job->folder. json: their tokenizer. */
static dp_status pack_folder(const dp_prepare_job *job, dp_view json, const dp_corpus_sum *sum,
                             dp_manifest *manifest, dp_prepared *prepared, dp_why *why)
{
    dp_bpe *bpe;
    dp_corpus corpus = {0};
    dp_window_packer packer = {0};
    uint32_t pad = 0;
    const uint64_t tokens = dp_window_packer_tokens_max(sum->tokens, manifest->context);
    DP_TRY(dp_bpe_load(&bpe, json, why));
    if (!dp_bpe_end_of_text(bpe, &pad)) {
        pad = 0;
    }
    dp_status status = dp_corpus_open(&corpus, bpe, job->folder, shard_tokens_of(tokens));
    if (status == DP_OK) {
        status = dp_window_packer_open(&packer, &corpus, manifest->context, pad);
    }
    if (status == DP_OK) {
        status = dp_window_packer_add_folder(&packer, job->text, sum->shards, why);
    }
    if (status == DP_OK) {
        status = dp_window_packer_finish(&packer, why);
    }
    if (status == DP_OK) {
        status = add_packed(&corpus, &packer, manifest, prepared, why);
    }
    dp_window_packer_close(&packer);
    dp_corpus_close(&corpus);
    dp_bpe_close(bpe);
    return status;
}

/* json: of the weights, or empty. Tokens of another tokenizer would be noise to these. */
static dp_status take_folder(const dp_prepare_job *job, const dp_buf *json, dp_manifest *manifest,
                             dp_prepared *prepared, dp_why *why)
{
    dp_corpus_sum sum;
    dp_buf own;
    DP_TRY(dp_corpus_verify(job->text, &sum, why));
    if (sum.vocab > manifest->vocab) {
        return dp_why_set(why, DP_BADARG,
                          "the data was made for a vocabulary of %" PRIu32
                          " tokens, the model has %" PRIu32,
                          sum.vocab, manifest->vocab);
    }
    dp_buf_init(&own, DP_BPE_JSON_BYTES_MAX);
    dp_status status = read_in(job->text, DP_CORPUS_TOKENIZER, &own, why);
    if (status == DP_OK && json->size > 0 && !dp_view_equal(dp_buf_view(&own), dp_buf_view(json))) {
        status = dp_why_set(why, DP_BADARG,
                            "%.200s was not made with the tokenizer.json of the weights; make it "
                            "with dpnode data tokenize --tokenizer",
                            job->text);
    }
    if (status == DP_OK) {
        status = keep_tokenizer(job, manifest, dp_buf_view(&own), why);
    }
    if (status == DP_OK) {
        const bool packs = sum.documents && strcmp(job->text, job->folder) != 0;
        status = packs ? pack_folder(job, dp_buf_view(&own), &sum, manifest, prepared, why)
                       : take_table(job, &sum, manifest, why);
    }
    dp_buf_close(&own);
    DP_TRY(status);
    prepared->text_bytes = sum.text_bytes;
    prepared->vocab = sum.vocab;
    return DP_OK;
}

static bool is_data(const char *path)
{
    char table[PATH_MAX];
    const int size = snprintf(table, sizeof table, "%s/" DP_CORPUS_TABLE, path);
    return size > 0 && (size_t)size < sizeof table && access(table, F_OK) == 0;
}

/* Files are those of a folder, or one. */
static dp_status tokenize_files(const dp_prepare_job *job, const dp_file_list *files, bool given,
                                const dp_manifest *manifest, dp_tokenized *made, dp_why *why)
{
    char tokenizer[PATH_MAX];
    if (files->count == 0) {
        return dp_why_set(why, DP_NOTFOUND, "%.300s has no files to learn from", job->text);
    }
    if (given && snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.json", job->weights) >=
                     (int)sizeof tokenizer) {
        return dp_why_set(why, DP_BADARG, "the path %.300s is too long", job->weights);
    }
    dp_tokenize_job tokenize = {.paths = files->paths,
                                .n_paths = files->count,
                                .field = "text",
                                .tokenizer = given ? tokenizer : NULL,
                                .vocab = manifest->vocab,
                                .folder = job->folder,
                                .window = manifest->context,
                                .skip_bad_lines = job->skip_bad_lines,
                                .skip_option = "--skip-bad-lines",
                                /* No token has less than a byte, but the end of a file. */
                                .shard_tokens = shard_tokens_of(files->bytes + files->count)};
    if (dp_tokenize_keeps_apart(&tokenize)) {
        tokenize.shard_tokens =
            shard_tokens_of(dp_window_packer_tokens_max(files->bytes, manifest->context));
    }
    return dp_tokenize(&tokenize, made, why);
}

/* A folder of data is made of files where the run's files go, and taken as it is. */
static dp_status take_list(const dp_prepare_job *job, const dp_file_list *files, const dp_buf *json,
                           dp_manifest *manifest, dp_prepared *prepared, dp_why *why)
{
    dp_tokenized made;
    dp_prepare_job inside = *job;
    inside.text = job->folder;
    DP_TRY(tokenize_files(job, files, json->size > 0, manifest, &made, why));
    DP_TRY(take_folder(&inside, json, manifest, prepared, why));
    prepared->counts = made.counts;
    return DP_OK;
}

static dp_status take_files(const dp_prepare_job *job, const dp_buf *json, dp_manifest *manifest,
                            dp_prepared *prepared, dp_why *why)
{
    dp_file_list files;
    DP_TRY(dp_file_list_open(&files, job->text, DP_TOKENIZE_FILES_MAX, why));
    const dp_status status = take_list(job, &files, json, manifest, prepared, why);
    dp_file_list_close(&files);
    return status;
}

/* A single file of JSON lines. */
static dp_status take_lines(const dp_prepare_job *job, const dp_buf *json, dp_manifest *manifest,
                            dp_prepared *prepared, dp_why *why)
{
    char path[PATH_MAX];
    char *paths[1] = {path};
    struct stat about;
    if (snprintf(path, sizeof path, "%s", job->text) >= (int)sizeof path) {
        return dp_why_set(why, DP_BADARG, "the path %.300s is too long", job->text);
    }
    if (stat(path, &about) != 0) {
        return dp_why_set(why, DP_NOTFOUND, "there is no file %.300s", path);
    }
    const dp_file_list files = {.paths = paths, .count = 1, .bytes = (uint64_t)about.st_size};
    return take_list(job, &files, json, manifest, prepared, why);
}

/* ---- the weights ---- */

static dp_status take_weights(const dp_prepare_job *job, dp_buf *json, dp_manifest *manifest,
                              dp_why *why)
{
    dp_model_config found;
    DP_TRY(dp_first_weights_model(job->weights, &found, why)); /* Names what is not there. */
    if (dp_folder_is(job->weights)) {
        DP_TRY(read_in(job->weights, "tokenizer.json", json, why));
    } else if (!is_data(job->text)) {
        return dp_why_set(why, DP_BADARG,
                          "a file of llm.c has no tokenizer; give --text a folder of dpnode data "
                          "tokenize, made with the tokenizer of these weights");
    }
    return dp_first_weights_write(job->weights, job->folder, manifest, why);
}

/* ---- any model ---- */

_Static_assert((int)DP_TENSOR_TABLE_BYTES_MAX == (int)DP_MANIFEST_TABLE_MAX,
               "a manifest may name every table");

static dp_status keep_table(const dp_prepare_job *job, dp_manifest *manifest, dp_view bytes,
                            dp_why *why)
{
    manifest->tokenizer = dp_object_hash(bytes, NULL);
    manifest->tokenizer_bytes = bytes.size;
    return dp_file_write(job->folder, DP_PREPARED_TABLE, bytes, why);
}

/* The first state of these tensors. manifest has the number of elements, and no objects yet. */
static dp_status keep_tensors(const dp_prepare_job *job, const dp_safetensors *file,
                              const dp_tensor_table *table, dp_manifest *manifest, dp_why *why)
{
    dp_model model;
    DP_TRY(dp_manifest_check(manifest, why)); /* That a state holds so many. */
    dp_model_open_vector(&model, table->elements);
    float *const theta = dp_alloc(model.n_elements, sizeof *theta);
    dp_status status = theta == NULL ? dp_why_set(why, DP_NOMEM, "no memory for the weights")
                                     : dp_tensor_file_read(file, table, theta, why);
    if (status == DP_OK) {
        status = dp_first_state_write(job->folder, theta, model.n_elements, manifest, why);
    }
    dp_free(theta);
    dp_model_close(&model);
    return status;
}

static dp_status take_tensors(const dp_prepare_job *job, const dp_safetensors *file,
                              dp_manifest *manifest, dp_prepared *prepared, dp_why *why)
{
    dp_buf bytes;
    dp_tensor_table table;
    dp_buf_init(&bytes, DP_TENSOR_TABLE_BYTES_MAX);
    dp_status status = dp_tensor_file_table(file, &bytes, why);
    if (status == DP_OK) {
        status = dp_tensor_table_open(&table, dp_buf_view(&bytes), why);
    }
    if (status == DP_OK) {
        manifest->elements = table.elements;
        prepared->tensors = table.n_tensors;
        prepared->elements = table.elements;
        prepared->tokenizer_bytes = bytes.size;
        status = job->folder == NULL ? DP_OK : keep_tensors(job, file, &table, manifest, why);
    }
    if (status == DP_OK && job->folder != NULL) {
        status = keep_table(job, manifest, dp_buf_view(&bytes), why);
    }
    dp_buf_close(&bytes);
    return status;
}

/* Opens the file of a run of any model. */
static dp_status take_file(const dp_prepare_job *job, dp_manifest *manifest, dp_prepared *prepared,
                           dp_why *why)
{
    dp_view bytes;
    dp_safetensors *file = NULL;
    dp_why cause = {{0}};
    if (dp_folder_is(job->weights)) {
        return dp_why_set(why, DP_BADARG,
                          "%.300s is a folder; name the safetensors file in it, such as "
                          "%.300s/model.safetensors",
                          job->weights, job->weights);
    }
    DP_TRY(dp_file_map_path(job->weights, &bytes, why));
    dp_status status = dp_safetensors_open(&file, bytes, &cause);
    if (status == DP_OK) {
        status = take_tensors(job, file, manifest, prepared, &cause);
    }
    if (status != DP_OK) {
        status = dp_why_set(why, status, "%.200s: %.300s", job->weights,
                            cause.text[0] != '\0' ? cause.text : dp_status_text(status));
    }
    dp_safetensors_close(file);
    dp_file_unmap(bytes);
    return status;
}

dp_status dp_prepare_tensors(const char *path, dp_prepared *prepared, dp_why *why)
{
    dp_manifest manifest;
    dp_prepared made = {0};
    const dp_prepare_job job = {.weights = path};
    dp_manifest_default(&manifest);
    DP_TRY(take_file(&job, &manifest, &made, why));
    *prepared = made;
    return DP_OK;
}

/* ---- all of it ---- */

static dp_status take_data(const dp_prepare_job *job, dp_buf *json, dp_manifest *manifest,
                           dp_prepared *prepared, dp_why *why)
{
    DP_TRY(dp_foreign_data_check(job->text, false, why));
    if (is_data(job->text)) {
        return take_folder(job, json, manifest, prepared, why);
    }
    if (dp_folder_is(job->text)) {
        return take_files(job, json, manifest, prepared, why);
    }
    return dp_tokenize_is_jsonl(job->text) ? take_lines(job, json, manifest, prepared, why)
                                           : take_text(job, json, manifest, prepared, why);
}

/* The same file in another folder, if there is one. */
static dp_status keep_file(const char *from, const char *to, const char *name, dp_why *why)
{
    dp_buf bytes;
    dp_buf_init(&bytes, DP_HF_CONFIG_BYTES_MAX);
    dp_status status = read_in(from, name, &bytes, why);
    if (status == DP_OK) {
        status = dp_file_write(to, name, dp_buf_view(&bytes), why);
    }
    dp_buf_close(&bytes);
    return status == DP_NOTFOUND ? DP_OK : status;
}

/* The chat template of the weights, or of the data where those are none or one file, and what the
 * weights' folder says of the model, for what is measured and exported later. */
static dp_status keep_chat(const dp_prepare_job *job, dp_why *why)
{
    const bool given = job->weights != NULL && dp_folder_is(job->weights);
    const char *const from = given ? job->weights : job->text;
    if (given && strcmp(from, job->folder) != 0) {
        DP_TRY(keep_file(from, job->folder, "config.json", why));
        DP_TRY(keep_file(from, job->folder, "generation_config.json", why));
    }
    return dp_folder_is(from) && strcmp(from, job->folder) != 0
               ? dp_chat_files_copy(from, job->folder, why)
               : DP_OK;
}

/* The trainer would refuse it, on every machine, for ever. */
static dp_status check_samples(const dp_prepare_job *job, const dp_manifest *manifest, dp_why *why)
{
    const uint64_t tokens = dp_manifest_tokens(manifest);
    const uint64_t training = dp_samples_training(tokens, manifest->val_per_mille);
    const char *const shards = manifest->n_shards > 1 ? " of one shard" : "";
    if (dp_manifest_samples(manifest) > 0) {
        return DP_OK;
    }
    return dp_why_set(why, DP_BADARG,
                      "%.200s has %" PRIu64 " tokens, of which %" PRIu64 " train and %" PRIu64
                      " are held out (data.val); one sequence of model.context %" PRIu32
                      " needs %" PRIu64 "%s: give more text, or a smaller model.context",
                      job->text, tokens, training, tokens - training, manifest->context,
                      (uint64_t)manifest->context + 1, shards);
}

static dp_status prepare(const dp_prepare_job *job, dp_buf *json, dp_manifest *manifest,
                         dp_prepared *prepared, dp_why *why)
{
    DP_TRY(dp_folder_make(job->folder, why));
    if (dp_manifest_external(manifest)) {
        if (job->weights == NULL) {
            return dp_why_set(why, DP_BADARG,
                              "a run of model.arch external begins from a safetensors file, and "
                              "none is given");
        }
        DP_TRY(take_file(job, manifest, prepared, why));
        return dp_manifest_check(manifest, why);
    }
    if (dp_manifest_adapts(manifest) && job->weights == NULL) {
        return dp_why_set(why, DP_BADARG,
                          "model.adapt trains adapters of given weights, and none are given: write "
                          "model: {from: FOLDER, adapt: ...}, or give --from FOLDER");
    }
    if (job->weights != NULL) {
        DP_TRY(take_weights(job, json, manifest, why));
    }
    DP_TRY(take_data(job, json, manifest, prepared, why));
    DP_TRY(keep_chat(job, why));
    for (uint32_t i = 0; i < manifest->n_shards; i++) {
        prepared->tokens += manifest->shards[i].tokens;
        prepared->data_bytes += manifest->shards[i].bytes;
    }
    prepared->shards = manifest->n_shards;
    prepared->tokenizer_bytes = manifest->tokenizer_bytes;
    DP_TRY(check_samples(job, manifest, why));
    return dp_manifest_check(manifest, why);
}

dp_status dp_prepare(const dp_prepare_job *job, dp_manifest *manifest, dp_prepared *prepared,
                     dp_why *why)
{
    dp_buf json;
    dp_prepared made = {0};
    dp_manifest filled = *manifest;
    filled.init = (dp_hash){{0}};
    filled.init_bytes = 0;
    filled.base = (dp_hash){{0}};
    filled.base_bytes = 0;
    filled.n_shards = 0;
    filled.elements = 0;
    filled.tokenizer = (dp_hash){{0}};
    filled.tokenizer_bytes = 0;
    memset(filled.shards, 0, sizeof filled.shards);
    dp_buf_init(&json, DP_BPE_JSON_BYTES_MAX);
    const dp_status status = prepare(job, &json, &filled, &made, why);
    dp_buf_close(&json);
    if (status == DP_OK) {
        *manifest = filled;
        *prepared = made;
    }
    return status;
}

static dp_status read_manifest(const char *path, dp_manifest *manifest, dp_why *why)
{
    dp_buf bytes;
    dp_buf_init(&bytes, DP_MANIFEST_BYTES_MAX);
    dp_status status = dp_file_read(path, &bytes, why);
    if (status == DP_OK && dp_manifest_decode(manifest, dp_buf_view(&bytes)) != DP_OK) {
        status = dp_why_set(why, DP_BADMSG, "the manifest does not parse");
    }
    dp_buf_close(&bytes);
    return status;
}

dp_status dp_prepare_files(const dp_prepare_job *job, const char *manifest_path,
                           dp_prepared *prepared, dp_why *why)
{
    dp_manifest manifest;
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    DP_TRY(read_manifest(manifest_path, &manifest, why));
    DP_TRY(dp_prepare(job, &manifest, prepared, why));
    DP_TRY(dp_manifest_encode(&manifest, bytes, &size));
    return dp_file_write(job->folder, DP_PREPARED_MANIFEST, dp_view_of(bytes, size), why);
}
