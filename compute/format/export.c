#include "compute/format/export.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/run/manifest.h"
#include "compute/format/adapter_config.h"
#include "compute/format/gguf.h"
#include "compute/format/hf_config.h"
#include "compute/format/llmc.h"
#include "compute/format/safetensors.h"
#include "compute/format/tensor_file.h"
#include "compute/machine/files.h"
#include "compute/model/adapter.h"
#include "compute/model/base_weights.h"
#include "compute/model/state.h"
#include "compute/text/bpe.h"

enum { CONFIG_BYTES_MAX = 32768 }; /* a line for each layer */
#define FILE_BYTES_MAX (2 * DP_OBJECT_BYTES_MAX)

static dp_status write_text(const char *folder, const char *name, dp_status written, dp_buf *text,
                            dp_why *why)
{
    const dp_status status =
        written == DP_OK ? dp_file_write(folder, name, dp_buf_view(text), why) : written;
    dp_buf_close(text);
    return status;
}

static dp_status write_config(const dp_manifest *m, const char *folder, dp_why *why)
{
    const dp_model_config config = dp_manifest_model(m);
    dp_buf text;
    dp_buf_init(&text, CONFIG_BYTES_MAX);
    return write_text(folder, "config.json", dp_hf_config_write(&config, &text, why), &text, why);
}

/* How texts end, and begin where nothing is given: where the tokenizer has a token for it. */
static dp_status write_generation(const dp_bpe *bpe, const char *folder, dp_why *why)
{
    uint32_t id;
    size_t n_begin;
    dp_buf text;
    const uint32_t *const end = dp_bpe_end_of_text(bpe, &id) ? &id : NULL;
    const uint32_t *const begin = dp_bpe_begin_of_text(bpe, &n_begin);
    dp_buf_init(&text, CONFIG_BYTES_MAX);
    return write_text(folder, "generation_config.json",
                      dp_hf_generation_write(n_begin > 0 ? begin : end, end, &text), &text, why);
}

typedef enum target { TRANSFORMERS, LLAMA_CPP, LLM_C, PEFT } target;

/* The target of an export and its types. */
typedef struct form {
    target target;
    dp_gguf_type gguf;
    dp_llmc_type llmc;
} form;

/* *out: the standard, which job may change. */
static dp_status form_of(const dp_export_job *job, form *out, dp_why *why)
{
    form f = *out;
    if (job->gguf != NULL && job->llmc != NULL) {
        return dp_why_set(why, DP_BADARG, "give --gguf or --llmc, not both");
    }
    if (job->gguf != NULL) {
        f.target = LLAMA_CPP;
        if (!dp_gguf_type_of(job->gguf, &f.gguf)) {
            return dp_why_set(why, DP_BADARG, "a GGUF file may be f32, f16, bf16 or q8_0");
        }
    }
    if (job->llmc != NULL) {
        f.target = LLM_C;
        if (!dp_llmc_type_of(job->llmc, &f.llmc)) {
            return dp_why_set(why, DP_BADARG, "a file of llm.c may be f32 or bf16");
        }
    }
    *out = f;
    return DP_OK;
}

static dp_status encode(const form *f, const dp_model *model, const float *theta,
                        const dp_gguf_language *language, dp_buf *out, dp_why *why)
{
    switch (f->target) {
    case TRANSFORMERS:
        return dp_safetensors_write(model, theta, out);
    case LLAMA_CPP:
        return dp_gguf_write(model, theta, language, f->gguf, out, why);
    case LLM_C:
        return dp_llmc_write(model, theta, f->llmc, out, why);
    case PEFT: /* write_model does it. */
        break;
    }
    return DP_BADARG;
}

/* The weights of the base with adapters in them. theta: room for the arena of the base. */
static dp_status merge(const dp_manifest *m, dp_view bytes, const dp_model *model,
                       const float *params, float *theta, dp_why *why)
{
    dp_base_weights base = {.at = NULL};
    const dp_hash root = dp_object_hash(bytes, NULL);
    if (!dp_hash_equal(&root, &m->base)) {
        return dp_why_set(why, DP_BADHASH,
                          "the base is not the one that these adapters were trained on (by its "
                          "hash), and they fit no other: give the run's own");
    }
    DP_TRY(dp_base_weights_open(&base, model->base, m->base_kind, bytes, why));
    const dp_status read = dp_base_weights_read(&base, theta);
    dp_base_weights_close(&base);
    DP_TRY(read);
    dp_adapter_merge(model, params, theta);
    return DP_OK;
}

/* The file of a model whose parameters are params. theta: with adapters that are merged, room for
 * the arena of the base; else NULL. */
static dp_status encode_state(const form *f, const dp_manifest *m, const dp_export_inputs *in,
                              const dp_model *model, const dp_bpe *bpe, float *params, float *theta,
                              dp_buf *out, dp_why *why)
{
    uint64_t round;
    const dp_status status = dp_state_read(in->state, &round, params, model->n_elements);
    if (status != DP_OK) {
        return dp_why_set(why, status, "the state does not belong to the manifest's model: %s",
                          dp_status_text(status));
    }
    if (f->target == PEFT) {
        return dp_safetensors_write_adapters(model, params, &m->base, out);
    }
    const dp_gguf_language language = {.bpe = bpe, .chat_template = in->chat};
    if (theta == NULL) {
        return encode(f, model, params, &language, out, why);
    }
    DP_TRY(merge(m, in->base, model, params, theta, why));
    return encode(f, model->base, theta, &language, out, why);
}

static dp_status write_model(const form *f, const dp_manifest *m, const dp_export_inputs *in,
                             const char *folder, const dp_bpe *bpe, dp_why *why)
{
    static const char *const names[] = {[TRANSFORMERS] = "model.safetensors",
                                        [LLAMA_CPP] = "model.gguf",
                                        [LLM_C] = "model.bin",
                                        [PEFT] = "adapter_model.safetensors"};
    const dp_model_config config = dp_manifest_model(m);
    dp_model model;
    DP_TRY(dp_model_open(&model, &config, why));
    dp_buf out;
    dp_buf_init(&out, FILE_BYTES_MAX);
    const bool merged = model.base != NULL && f->target != PEFT;
    float *const params = dp_alloc(model.n_elements, sizeof *params);
    float *const theta = merged ? dp_alloc(model.base->n_elements, sizeof *theta) : NULL;
    dp_status status = params == NULL || (merged && theta == NULL)
                           ? dp_why_set(why, DP_NOMEM, "no memory for the weights")
                           : encode_state(f, m, in, &model, bpe, params, theta, &out, why);
    if (status == DP_OK) {
        status = dp_file_write(folder, names[f->target], dp_buf_view(&out), why);
    }
    dp_free(theta);
    dp_free(params);
    dp_buf_close(&out);
    dp_model_close(&model);
    return status;
}

/* Thousandths of a byte that a parameter takes in the file. */
static uint64_t milli_bytes_of(const form *f)
{
    if (f->target == LLM_C) {
        return f->llmc == DP_LLMC_BF16 ? 2000 : 4000;
    }
    if (f->target != LLAMA_CPP || f->gguf == DP_GGUF_F32) {
        return 4000;
    }
    return f->gguf == DP_GGUF_Q8_0 ? 1063 : 2000; /* 34 bytes for 32 */
}

/* Before hours of reading: the file is put together in one buffer. */
static dp_status check_size(const form *f, const dp_model_config *config, dp_why *why)
{
    const double gib = 1024.0 * 1024.0 * 1024.0;
    const dp_model_config whole = dp_model_config_base(config);
    const uint64_t n = dp_model_config_parameters(f->target == PEFT ? config : &whole);
    const double bytes = (double)n * (double)milli_bytes_of(f) / 1000;
    if (bytes <= (double)FILE_BYTES_MAX) {
        return DP_OK;
    }
    return dp_why_set(why, DP_UNSUPPORTED,
                      "the file would have %.1f GiB, and an export writes at most %.0f: take "
                      "--gguf f16 or q8_0, or the adapters alone, without --merged",
                      bytes / gib, (double)FILE_BYTES_MAX / gib);
}

static dp_status write_adapter_config(const dp_model_config *config, const char *folder,
                                      dp_why *why)
{
    dp_buf text;
    dp_buf_init(&text, CONFIG_BYTES_MAX);
    return write_text(folder, "adapter_config.json", dp_adapter_config_write(config, &text), &text,
                      why);
}

static dp_status write_all(const form *f, const dp_export_inputs *in, const dp_manifest *manifest,
                           const dp_bpe *bpe, const char *folder, dp_why *why)
{
    const dp_model_config config = dp_manifest_model(manifest);
    if (f->target ==
        /* Checked before the folder is made: a folder without a model is useless. */
        TRANSFORMERS) {
        DP_TRY(dp_hf_config_check(&config, why));
    }
    DP_TRY(check_size(f, &config, why));
    DP_TRY(dp_folder_make_own(folder, why));
    /* The configuration last: without it the folder is no model, whatever ends the work. */
    DP_TRY(write_model(f, manifest, in, folder, bpe, why));
    if (f->target == TRANSFORMERS || f->target == PEFT) {
        DP_TRY(dp_file_write(folder, "tokenizer.json", in->tokenizer, why));
    }
    if (f->target == PEFT) {
        DP_TRY(write_adapter_config(&config, folder, why));
    }
    if (f->target == TRANSFORMERS) {
        DP_TRY(write_generation(bpe, folder, why));
        DP_TRY(write_config(manifest, folder, why));
    }
    return DP_OK;
}

const char *const *dp_export_files(const dp_export_job *job, bool external, bool adapts)
{
    static const char *const whole[] = {"model.safetensors", "config.json",
                                        "generation_config.json", "tokenizer.json", NULL};
    static const char *const any[] = {"model.safetensors", NULL};
    static const char *const peft[] = {"adapter_model.safetensors", "adapter_config.json",
                                       "tokenizer.json", NULL};
    static const char *const gguf[] = {"model.gguf", NULL};
    static const char *const llmc[] = {"model.bin", NULL};
    if (external) {
        return any;
    }
    if (job->gguf != NULL || job->llmc != NULL) {
        return job->gguf != NULL ? gguf : llmc;
    }
    return adapts && !job->merged ? peft : whole;
}

/* The tensors of a run of any model, as its table has them. vector: room for n. */
static dp_status encode_tensors(const dp_export_inputs *in, const dp_tensor_table *table,
                                float *vector, size_t n, dp_buf *out, dp_why *why)
{
    uint64_t round;
    const dp_status status = dp_state_read(in->state, &round, vector, n);
    return status == DP_OK
               ? dp_tensor_file_write(table, vector, out, why)
               : dp_why_set(why, status, "the state does not belong to the table of tensors: %s",
                            dp_status_text(status));
}

static dp_status write_tensors(const dp_export_inputs *in, const char *folder, dp_why *why)
{
    dp_tensor_table table;
    dp_model model;
    dp_buf out;
    DP_TRY(dp_tensor_table_open(&table, in->tokenizer, why));
    dp_model_open_vector(&model, table.elements);
    dp_buf_init(&out, FILE_BYTES_MAX);
    float *const vector = dp_alloc(model.n_elements, sizeof *vector);
    dp_status status = vector == NULL
                           ? dp_why_set(why, DP_NOMEM, "no memory for the weights")
                           : encode_tensors(in, &table, vector, model.n_elements, &out, why);
    if (status == DP_OK) {
        status = dp_folder_make_own(folder, why);
    }
    if (status == DP_OK) {
        status = dp_file_write(folder, "model.safetensors", dp_buf_view(&out), why);
    }
    dp_free(vector);
    dp_buf_close(&out);
    dp_model_close(&model);
    return status;
}

/* The longest text that the file says of itself; given: that of the first weights, or 0. */
static uint32_t context_of(const form *f, const dp_manifest *manifest, uint32_t given)
{
    const dp_model_config given_config = dp_manifest_model(manifest);
    const dp_model_config m = dp_model_config_resolve(&given_config);
    if (f->target == LLAMA_CPP && m.window != 0 && m.full_every == 0 && given > m.window) {
        given = m.window; /* llama.cpp has no windows in all layers (gguf_arch.h). */
    }
    return m.rope_theta != 0 && given > m.context ? given : m.context; /* Angles need no table. */
}

dp_status dp_export_views(const dp_export_job *job, const dp_export_inputs *in, dp_why *why)
{
    form f = {.target = TRANSFORMERS, .gguf = DP_GGUF_F32, .llmc = DP_LLMC_FP32};
    dp_manifest manifest;
    dp_bpe *bpe;
    DP_TRY(form_of(job, &f, why));
    dp_status status = dp_manifest_decode(&manifest, in->manifest);
    if (status != DP_OK) {
        return dp_why_set(why, status, "the manifest does not parse");
    }
    if (dp_manifest_external(&manifest)) {
        return f.target == TRANSFORMERS
                   ? write_tensors(in, job->folder, why)
                   : dp_why_set(why, DP_UNSUPPORTED,
                                "a model of model.arch external is exported as safetensors alone: "
                                "leave out --gguf and --llmc");
    }
    if (job->merged && !dp_manifest_adapts(&manifest)) {
        return dp_why_set(why, DP_BADARG,
                          "this run trains a whole model, so there is nothing to merge: leave out "
                          "--merged");
    }
    if (dp_manifest_adapts(&manifest) && f.target == TRANSFORMERS && !job->merged) {
        f.target = PEFT;
    }
    manifest.context = context_of(&f, &manifest, job->context);
    DP_TRY(dp_bpe_load(&bpe, in->tokenizer, why));
    status = write_all(&f, in, &manifest, bpe, job->folder, why);
    dp_bpe_close(bpe);
    return status;
}

dp_status dp_export(const dp_export_job *job, dp_why *why)
{
    dp_buf manifest;
    dp_buf state;
    dp_buf tokenizer;
    dp_view base = {0};
    dp_buf_init(&manifest, DP_MANIFEST_BYTES_MAX);
    dp_buf_init(&state, DP_OBJECT_BYTES_MAX);
    dp_buf_init(&tokenizer, DP_BPE_JSON_BYTES_MAX);
    dp_status status = dp_file_read(job->manifest, &manifest, why);
    if (status == DP_OK) {
        status = dp_file_read(job->state, &state, why);
    }
    if (status == DP_OK) {
        status = dp_file_read(job->tokenizer, &tokenizer, why);
    }
    if (status == DP_OK && job->base != NULL) {
        status = dp_file_map_path(job->base, &base, why);
    }
    if (status == DP_OK) {
        const dp_export_inputs in = {
            dp_buf_view(&manifest), dp_buf_view(&state), dp_buf_view(&tokenizer), base, {0}};
        status = dp_export_views(job, &in, why);
    }
    dp_file_unmap(base);
    dp_buf_close(&tokenizer);
    dp_buf_close(&state);
    dp_buf_close(&manifest);
    return status;
}
