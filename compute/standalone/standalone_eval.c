/* The newest checkpoint of a folder, measured on held-out data or on other data, or exported. */
#include <stdio.h>

#include "compute/data/shard.h"
#include "compute/machine/files.h"
#include "compute/standalone/standalone.h"
#include "compute/standalone/standalone_file.h"
#include "compute/standalone/standalone_folder.h"
#include "compute/text/bpe.h"
#include "compute/trainer/sample_text.h"

enum { WHOLE = 1000 }; /* per mille that is looked at, of data from outside */

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
        status = dp_file_read(look->data, &bytes, why);
        if (status == DP_OK) {
            status = open_given(folder, &bytes, &data, why);
        }
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

dp_status dp_standalone_export(const dp_standalone_look *look, const dp_export_job *to,
                               uint64_t *steps, const char *const **files, dp_why *why)
{
    dp_standalone_folder folder = {.lock = -1};
    dp_trainer *trainer = NULL;
    dp_view state = {0};
    dp_hash root;
    dp_status status = open_newest(look, &folder, &trainer, steps, why);
    if (status == DP_OK) {
        status = dp_trainer_state_bytes(trainer, &state, &root);
    }
    if (status == DP_OK) {
        const dp_export_inputs in = {.manifest =
                                         dp_view_of(folder.canonical, folder.canonical_size),
                                     .state = state,
                                     .tokenizer = dp_buf_view(&folder.tokenizer),
                                     .base = folder.base};
        status = dp_export_views(to, &in, why);
        *files = dp_export_files(to, false, dp_manifest_adapts(&folder.manifest));
    }
    dp_trainer_close(trainer);
    dp_standalone_folder_close(&folder);
    return status;
}
