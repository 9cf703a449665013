#include "compute/prepare.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/digest.h"
#include "base/manifest.h"
#include "compute/bpe.h"
#include "compute/corpus.h"
#include "compute/data.h"
#include "compute/files.h"
#include "compute/gguf.h"
#include "compute/hf_config.h"
#include "compute/hf_import.h"
#include "compute/safetensors.h"
#include "compute/state.h"

enum { CONFIG_BYTES_MAX = 1024 };

/* json: of bpe. */
static dp_status write_shard(const dp_bpe *bpe, dp_view json, dp_view text, const char *folder,
                             dp_prepared *prepared, dp_why *why)
{
    dp_tokens tokens = {0};
    dp_buf shard;
    dp_buf_init(&shard, DP_OBJECT_BYTES_MAX);
    dp_status status = dp_bpe_encode(bpe, text, &tokens, why);
    if (status == DP_OK) {
        status = dp_shard_write(tokens.ids, tokens.count, (uint32_t)dp_bpe_count(bpe), text.size,
                                &shard);
    }
    if (status == DP_OK) {
        status = dp_file_write(folder, "tokenizer.json", json, why);
    }
    if (status == DP_OK) {
        status = dp_file_write(folder, "tokens.bin", dp_buf_view(&shard), why);
    }
    *prepared = (dp_prepared){.tokenizer_bytes = json.size,
                              .tokens = tokens.count,
                              .data_bytes = shard.size,
                              .text_bytes = text.size,
                              .vocab = dp_bpe_count(bpe)};
    dp_buf_close(&shard);
    dp_tokens_close(&tokens);
    return status;
}

static dp_status copy_file(const char *from, const char *from_name, const char *to,
                           const char *to_name, uint64_t *size, dp_why *why)
{
    char path[PATH_MAX];
    dp_buf bytes;
    const int length = snprintf(path, sizeof path, "%s/%s", from, from_name);
    if (length < 0 || (size_t)length >= sizeof path) {
        return dp_why_set(why, DP_BADARG, "the path %s is too long", from);
    }
    dp_buf_init(&bytes, DP_OBJECT_BYTES_MAX);
    dp_status status = dp_file_read(path, &bytes, why);
    if (status == DP_OK) {
        status = dp_file_write(to, to_name, dp_buf_view(&bytes), why);
    }
    *size = bytes.size;
    dp_buf_close(&bytes);
    return status;
}

static dp_status take_folder(const char *source, const char *folder, uint32_t vocab,
                             dp_prepared *prepared, dp_why *why)
{
    dp_corpus_sum sum;
    dp_prepared made = {0};
    DP_TRY(dp_corpus_verify(source, &sum, why));
    if (sum.shards != 1) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "a run learns from one shard; %s has %" PRIu32
                          ", make it one with --shard-tokens %" PRIu64,
                          source, sum.shards, sum.tokens);
    }
    if (sum.vocab > vocab) {
        return dp_why_set(why, DP_BADARG,
                          "the data was made for a vocabulary of %" PRIu32
                          " tokens, the model has %" PRIu32,
                          sum.vocab, vocab);
    }
    DP_TRY(dp_folder_make(folder, why));
    DP_TRY(copy_file(source, DP_CORPUS_TOKENIZER, folder, "tokenizer.json", &made.tokenizer_bytes,
                     why));
    DP_TRY(copy_file(source, DP_CORPUS_SHARD_FIRST, folder, "tokens.bin", &made.data_bytes, why));
    made.tokens = sum.tokens;
    made.text_bytes = sum.text_bytes;
    made.vocab = sum.vocab;
    *prepared = made;
    return DP_OK;
}

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

static dp_status take_text(const char *text_path, const char *folder, uint32_t vocab, dp_buf *json,
                           dp_prepared *prepared, dp_why *why)
{
    dp_buf text;
    dp_buf_init(&text, DP_OBJECT_BYTES_MAX);
    dp_bpe *bpe = NULL;
    dp_status status = dp_file_read(text_path, &text, why);
    if (status == DP_OK) {
        status = dp_folder_make(folder, why);
    }
    if (status == DP_OK) {
        status = make_tokenizer(&bpe, dp_buf_view(&text), vocab, json, why);
    }
    if (status == DP_OK) {
        status = write_shard(bpe, dp_buf_view(json), dp_buf_view(&text), folder, prepared, why);
    }
    dp_bpe_close(bpe);
    dp_buf_close(&text);
    return status;
}

dp_status dp_prepare(const char *text_path, const char *folder, uint32_t vocab,
                     dp_prepared *prepared, dp_why *why)
{
    if (dp_folder_is(text_path)) {
        return take_folder(text_path, folder, vocab, prepared, why);
    }
    dp_buf json;
    dp_buf_init(&json, DP_BPE_JSON_BYTES_MAX);
    const dp_status status = take_text(text_path, folder, vocab, &json, prepared, why);
    dp_buf_close(&json);
    return status;
}

static dp_status read_in(const char *folder, const char *name, dp_buf *out, dp_why *why)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path) {
        return dp_why_set(why, DP_BADARG, "the path %s is too long", folder);
    }
    return dp_file_read(path, out, why);
}

static dp_status write_init(const dp_manifest *manifest, const char *weights, const char *folder,
                            dp_why *why)
{
    const dp_model_config wanted = dp_manifest_model(manifest);
    dp_model_config found;
    dp_model model;
    DP_TRY(dp_hf_import_config(weights, &found, why));
    DP_TRY(dp_hf_import_match(&found, &wanted, why));
    DP_TRY(dp_model_open(&model, &wanted, why));
    dp_buf state;
    dp_buf_init(&state, DP_OBJECT_BYTES_MAX);
    float *const theta = dp_alloc(model.n_elements, sizeof *theta);
    /* Zeros, where the run's states have one. */
    const bool has_momentum = manifest->outer_mu_milli > 0;
    float *const momentum = has_momentum ? dp_alloc(model.n_elements, sizeof *momentum) : NULL;
    dp_status status = theta == NULL || (has_momentum && momentum == NULL)
                           ? dp_why_set(why, DP_NOMEM, "no memory for the weights")
                           : dp_hf_import_weights(weights, &model, theta, why);
    if (status == DP_OK) {
        status = dp_state_write(0, theta, momentum, model.n_elements, &state);
    }
    if (status == DP_OK) {
        status = dp_file_write(folder, DP_PREPARED_INIT, dp_buf_view(&state), why);
    }
    dp_free(momentum);
    dp_free(theta);
    dp_buf_close(&state);
    dp_model_close(&model);
    return status;
}

/* tokens of another tokenizer would be noise to these weights. */
static dp_status check_tokenizer(const char *data, dp_view json, dp_why *why)
{
    dp_buf other;
    dp_buf_init(&other, DP_BPE_JSON_BYTES_MAX);
    dp_status status = read_in(data, DP_CORPUS_TOKENIZER, &other, why);
    if (status == DP_OK && !dp_view_equal(dp_buf_view(&other), json)) {
        status = dp_why_set(why, DP_BADARG,
                            "%.200s was not made with the tokenizer.json of the weights; make it "
                            "with dpnode data tokenize --tokenizer",
                            data);
    }
    dp_buf_close(&other);
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

dp_status dp_prepare_from(const char *text_path, const char *folder, const char *weights,
                          const char *manifest_path, dp_prepared *prepared, dp_why *why)
{
    dp_manifest manifest;
    dp_buf json;
    DP_TRY(read_manifest(manifest_path, &manifest, why));
    DP_TRY(dp_folder_make(folder, why));
    dp_buf_init(&json, DP_BPE_JSON_BYTES_MAX);
    dp_status status = read_in(weights, "tokenizer.json", &json, why);
    if (status == DP_OK) {
        status = write_init(&manifest, weights, folder, why);
    }
    if (status == DP_OK && dp_folder_is(text_path)) {
        status = check_tokenizer(text_path, dp_buf_view(&json), why);
        status = status == DP_OK ? take_folder(text_path, folder, manifest.vocab, prepared, why)
                                 : status;
    } else if (status == DP_OK) {
        status = take_text(text_path, folder, manifest.vocab, &json, prepared, why);
    }
    dp_buf_close(&json);
    return status;
}

static dp_status write_config(const dp_manifest *m, const char *folder, dp_why *why)
{
    const dp_model_config config = dp_manifest_model(m);
    dp_buf text;
    dp_buf_init(&text, CONFIG_BYTES_MAX);
    dp_status status = dp_hf_config_write(&config, &text, why);
    if (status == DP_OK) {
        status = dp_file_write(folder, "config.json", dp_buf_view(&text), why);
    }
    dp_buf_close(&text);
    return status;
}

/* As safetensors, or with bpe as GGUF. */
static dp_status write_model(const dp_manifest *m, dp_view state, const char *folder,
                             const dp_bpe *bpe, dp_gguf_type type, dp_why *why)
{
    const dp_model_config config = dp_manifest_model(m);
    dp_model model;
    DP_TRY(dp_model_open(&model, &config, why));
    dp_buf out;
    dp_buf_init(&out, 2 * DP_OBJECT_BYTES_MAX);
    uint64_t round;
    float *const theta = dp_alloc(model.n_elements, sizeof *theta);
    dp_status status =
        theta == NULL ? DP_NOMEM : dp_state_read(state, &round, theta, model.n_elements);
    if (status != DP_OK) {
        status = dp_why_set(why, status, "the state does not belong to the manifest's model: %s",
                            dp_status_text(status));
    } else {
        status = bpe == NULL ? dp_safetensors_write(&model, theta, &out)
                             : dp_gguf_write(&model, theta, bpe, type, &out, why);
    }
    if (status == DP_OK) {
        status = dp_file_write(folder, bpe == NULL ? "model.safetensors" : "model.gguf",
                               dp_buf_view(&out), why);
    }
    dp_free(theta);
    dp_buf_close(&out);
    dp_model_close(&model);
    return status;
}

typedef struct inputs {
    dp_buf manifest;
    dp_buf state;
    dp_buf tokenizer;
} inputs;

static dp_status export_folder(const inputs *in, const dp_manifest *manifest, const char *folder,
                               dp_why *why)
{
    DP_TRY(write_config(manifest, folder, why));
    DP_TRY(dp_file_write(folder, "tokenizer.json", dp_buf_view(&in->tokenizer), why));
    return write_model(manifest, dp_buf_view(&in->state), folder, NULL, DP_GGUF_F32, why);
}

static dp_status export_inputs(const inputs *in, const char *folder, const char *gguf, dp_why *why)
{
    dp_manifest manifest;
    dp_gguf_type type = DP_GGUF_F32;
    if (gguf != NULL && !dp_gguf_type_of(gguf, &type)) {
        return dp_why_set(why, DP_BADARG, "a GGUF file may be f32, f16, bf16 or q8_0");
    }
    dp_status status = dp_manifest_decode(&manifest, dp_buf_view(&in->manifest));
    if (status != DP_OK) {
        return dp_why_set(why, status, "the manifest does not parse");
    }
    dp_bpe *bpe;
    DP_TRY(dp_bpe_load(&bpe, dp_buf_view(&in->tokenizer), why));
    status = dp_folder_make(folder, why);
    if (status == DP_OK) {
        status = gguf == NULL
                     ? export_folder(in, &manifest, folder, why)
                     : write_model(&manifest, dp_buf_view(&in->state), folder, bpe, type, why);
    }
    dp_bpe_close(bpe);
    return status;
}

dp_status dp_export_gguf(const char *manifest_path, const char *state_path,
                         const char *tokenizer_path, const char *folder, const char *type,
                         dp_why *why)
{
    inputs in;
    dp_buf_init(&in.manifest, DP_MANIFEST_BYTES_MAX);
    dp_buf_init(&in.state, DP_OBJECT_BYTES_MAX);
    dp_buf_init(&in.tokenizer, DP_BPE_JSON_BYTES_MAX);
    dp_status status = dp_file_read(manifest_path, &in.manifest, why);
    if (status == DP_OK) {
        status = dp_file_read(state_path, &in.state, why);
    }
    if (status == DP_OK) {
        status = dp_file_read(tokenizer_path, &in.tokenizer, why);
    }
    if (status == DP_OK) {
        status = export_inputs(&in, folder, type, why);
    }
    dp_buf_close(&in.tokenizer);
    dp_buf_close(&in.state);
    dp_buf_close(&in.manifest);
    return status;
}

dp_status dp_export(const char *manifest_path, const char *state_path, const char *tokenizer_path,
                    const char *folder, dp_why *why)
{
    return dp_export_gguf(manifest_path, state_path, tokenizer_path, folder, NULL, why);
}
