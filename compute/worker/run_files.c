#include "compute/worker/run_files.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/run/samples.h"
#include "base/trainer/trainer_msg.h"
#include "compute/data/shard.h"
#include "compute/format/hf_config.h"

enum { ABOUT_BYTES_MAX = 1 << 16 };

static dp_status add_bytes(dp_run_files *f, dp_view bytes)
{
    int fd = -1;
    if (bytes.size > 0) {
        DP_TRY(dp_memfd_make("dpnode-run", bytes, &fd));
    }
    f->files[f->n++] = (dp_run_file){.fd = fd, .bytes = bytes.size};
    return DP_OK;
}

static dp_status add_given(dp_run_files *f, int given)
{
    struct stat about;
    const int fd = fcntl(given, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return DP_NOMEM;
    }
    f->files[f->n++] = (dp_run_file){.fd = fd};
    if (fstat(fd, &about) != 0) {
        return DP_IO;
    }
    f->files[f->n - 1].bytes = (uint64_t)about.st_size;
    return DP_OK;
}

static json_t *shard_of(const dp_shard *shard, dp_view bytes, uint64_t training)
{
    json_t *const told =
        json_pack("{s:I, s:I, s:I, s:I}", "offset", (json_int_t)(shard->tokens - bytes.data),
                  "token_bytes", (json_int_t)shard->token_bytes, "tokens",
                  (json_int_t)shard->n_tokens, "training", (json_int_t)training);
    const bool documents = shard->begins != NULL;
    if (documents &&
        (json_object_set_new(told, "begins", json_integer(shard->begins - bytes.data)) != 0 ||
         json_object_set_new(told, "losses", json_integer(shard->losses - bytes.data)) != 0)) {
        json_decref(told);
        return NULL;
    }
    return told;
}

static dp_status list_shards(const dp_manifest *m, const dp_view *shards, json_t *list)
{
    const uint64_t n_train = dp_samples_training(dp_manifest_tokens(m), m->val_per_mille);
    uint64_t begin = 0;
    for (uint32_t i = 0; i < m->n_shards; i++) {
        dp_shard shard;
        DP_TRY(dp_shard_open(&shard, shards[i], NULL));
        const uint64_t training = dp_samples_training_here(n_train, begin, shard.n_tokens);
        if (json_array_append_new(list, shard_of(&shard, shards[i], training)) != 0) {
            return DP_NOMEM;
        }
        begin += shard.n_tokens;
    }
    return DP_OK;
}

static json_t *numbers_of(const dp_manifest *m)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "context",
                     (json_int_t)m->context, "vocab", (json_int_t)m->vocab, "samples",
                     (json_int_t)dp_manifest_samples(m), "batch", (json_int_t)m->batch_rows,
                     "total_tokens", (json_int_t)m->total_tokens, "lr", (double)m->lr_nano * 1e-9,
                     "beta1", (double)m->beta1_micro * 1e-6, "beta2", (double)m->beta2_micro * 1e-6,
                     "weight_decay", (double)m->decay_micro * 1e-6, "clip",
                     (double)m->clip_milli * 1e-3);
}

static dp_status add_about(dp_run_files *f, const dp_manifest *m, const dp_view *shards)
{
    enum { DIGITS = 9 };
    json_t *const json = numbers_of(m);
    json_t *const list = json_array();
    dp_status status = json != NULL && list != NULL ? list_shards(m, shards, list) : DP_NOMEM;
    if (json_object_set_new(json, "shards", list) != 0 && status == DP_OK) {
        status = DP_NOMEM;
    }
    char *const text =
        status == DP_OK ? json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS)) : NULL;
    json_decref(json);
    if (text != NULL) {
        status = add_bytes(f, dp_view_text(text));
    } else if (status == DP_OK) {
        status = DP_NOMEM;
    }
    free(text);
    return status;
}

static dp_status add_config(dp_run_files *f, const dp_manifest *m)
{
    const dp_model_config config = dp_manifest_model(m);
    dp_why why;
    dp_buf text;
    dp_buf_init(&text, DP_HF_CONFIG_BYTES_MAX);
    dp_status status = dp_hf_config_write(&config, &text, &why);
    if (status == DP_OK || status == DP_UNSUPPORTED) {
        status = add_bytes(f, dp_buf_view(&text));
    }
    dp_buf_close(&text);
    return status;
}

static dp_status add_all(dp_run_files *f, const dp_manifest *m, const int *given,
                         const dp_view *shards)
{
    DP_TRY(add_about(f, m, shards));
    DP_TRY(add_config(f, m));
    for (uint32_t i = 0; i <= m->n_shards; i++) {
        DP_TRY(add_given(f, given[i]));
    }
    return DP_OK;
}

dp_status dp_run_files_open(dp_run_files *f, const dp_manifest *m, const int *given,
                            const dp_view *shards)
{
    dp_assert(m->n_shards <= DP_MANIFEST_SHARDS_MAX);
    *f = (dp_run_files){0};
    const dp_status status = add_all(f, m, given, shards);
    if (status != DP_OK) {
        dp_run_files_close(f);
    }
    return status;
}

void dp_run_files_close(dp_run_files *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        if (f->files[i].fd >= 0) {
            close(f->files[i].fd);
        }
    }
    *f = (dp_run_files){0};
}

dp_run_file dp_run_files_at(const dp_run_files *f, uint32_t number)
{
    return number < f->n ? f->files[number] : (dp_run_file){.fd = -1};
}
