/* Writes a model with random weights as a Hugging Face folder and as GGUF files, and the engine's
 * logits of a fixed sentence as JSON, so that test_transformers.py and test_llama_cpp.py can
 * compare. engine_logits KIND FOLDER; KIND: a row of kinds below; or words: writes
 * FOLDER/words.gguf with the tokenizer FOLDER/tokenizer.json, and prints the tokens of each text in
 * FOLDER/texts.json; or import: reads the folder, which others wrote, instead; or the name of a
 * preset,
 * of which one layer is made, with few tokens but as wide as it is, and no GGUF; or presets: all
 * presets, their config.json as FOLDER/NAME.json and the names and shapes of their tensors as
 * JSON; or train: trains the model in the folder, writes it to FOLDER/trained, and prints the loss
 * of each step and its logits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/rng.h"
#include "compute/format/gguf.h"
#include "compute/format/hf_config.h"
#include "compute/format/hf_import.h"
#include "compute/format/safetensors.h"
#include "compute/machine/files.h"
#include "compute/model/gpt.h"
#include "compute/model/optim.h"
#include "compute/text/bpe.h"

enum { TOKENS = 23, VOCAB = 271, FILE_BYTES_MAX = 1 << 28 };

static const struct kind {
    const char *name;
    dp_model_config config;
} kinds[] = {
    {"gpt2", {.layers = 2, .width = 48, .heads = 3, .context = 32, .vocab = VOCAB}},
    {"gpt2-untied",
     {.layers = 2,
      .width = 48,
      .heads = 3,
      .context = 32,
      .vocab = VOCAB,
      .hidden = 100,
      .head = DP_HEAD_UNTIED}},
    {"llama",
     {.arch = DP_ARCH_LLAMA,
      .layers = 2,
      .width = 48,
      .heads = 3,
      .context = 32,
      .vocab = VOCAB,
      .hidden = 70}},
    {"llama-gqa",
     {.arch = DP_ARCH_LLAMA,
      .layers = 2,
      .width = 48,
      .heads = 6,
      .kv_heads = 2,
      .context = 32,
      .vocab = VOCAB,
      .norm_eps_nano = 1000,
      .rope_theta = 500}},
    {"llama-tied",
     {.arch = DP_ARCH_LLAMA,
      .layers = 1,
      .width = 32,
      .heads = 2,
      .context = 32,
      .vocab = VOCAB,
      .head = DP_HEAD_TIED}},
    {"qwen2",
     {.arch = DP_ARCH_QWEN2,
      .layers = 2,
      .width = 48,
      .heads = 4,
      .kv_heads = 2,
      .context = 32,
      .vocab = VOCAB,
      .hidden = 70,
      .norm_eps_nano = 1000,
      .rope_theta = 1000000,
      .head = DP_HEAD_TIED}},
    {"llama3",
     {.arch = DP_ARCH_LLAMA,
      .layers = 2,
      .width = 64,
      .heads = 4,
      .kv_heads = 2,
      .context = 32,
      .vocab = VOCAB,
      .rope_theta = 10000,
      .rope_scaling = DP_ROPE_LLAMA3,
      .rope_factor_milli = 8000,
      .rope_low_milli = 1000,
      .rope_high_milli = 4000,
      .rope_context = 64}},
    {"smollm3",
     {.arch = DP_ARCH_SMOLLM3,
      .layers = 4,
      .width = 48,
      .heads = 4,
      .kv_heads = 2,
      .context = 32,
      .vocab = VOCAB,
      .hidden = 70,
      .rope_off_every = 4}},
    {"mistral",
     {.arch = DP_ARCH_MISTRAL,
      .layers = 2,
      .width = 48,
      .heads = 4,
      .kv_heads = 2,
      .context = 32,
      .vocab = VOCAB,
      .hidden = 70,
      .window = 6}},
    {"phi3",
     {.arch = DP_ARCH_PHI3,
      .layers = 2,
      .width = 48,
      .heads = 4,
      .kv_heads = 2,
      .context = 32,
      .vocab = VOCAB,
      .hidden = 70,
      .window = 9}},
    {"phi3-plain",
     {.arch = DP_ARCH_PHI3,
      .layers = 2,
      .width = 48,
      .heads = 4,
      .kv_heads = 2,
      .context = 32,
      .vocab = VOCAB,
      .hidden = 70}},
    {"olmo2",
     {.arch = DP_ARCH_OLMO2,
      .layers = 2,
      .width = 48,
      .heads = 4,
      .kv_heads = 2,
      .context = 32,
      .vocab = VOCAB,
      .hidden = 70}},
    {"gemma2",
     {.arch = DP_ARCH_GEMMA2,
      .layers = 3,
      .width = 48,
      .heads = 4,
      .kv_heads = 2,
      .head_width = 16,
      .context = 32,
      .vocab = VOCAB,
      .hidden = 70,
      .softcap_milli = 30000,
      .window = 6,
      .full_every = 2,
      .scores_softcap_milli = 50000,
      .query_scalar = 24}},
    {"gemma2-plain",
     {.arch = DP_ARCH_GEMMA2,
      .layers = 3,
      .width = 48,
      .heads = 4,
      .kv_heads = 2,
      .head_width = 16,
      .context = 32,
      .vocab = VOCAB,
      .hidden = 70,
      .softcap_milli = 30000,
      .window = 6,
      .full_every = 2,
      .scores_softcap_milli = 50000}},
    {"gemma3",
     {.arch = DP_ARCH_GEMMA3,
      .layers = 3,
      .width = 48,
      .heads = 4,
      .kv_heads = 1,
      .head_width = 16,
      .context = 32,
      .vocab = VOCAB,
      .hidden = 70,
      .rope_theta = 1000000,
      .rope_scaling = DP_ROPE_LINEAR,
      .rope_factor_milli = 8000,
      .window = 6,
      .full_every = 3,
      .rope_local_theta = 10000,
      .query_scalar = 16}},
    {"neox",
     {.arch = DP_ARCH_NEOX,
      .layers = 2,
      .width = 48,
      .heads = 3,
      .context = 32,
      .vocab = VOCAB,
      .hidden = 70,
      .rope_width = 6}},
    {"phi4",
     {.arch = DP_ARCH_PHI3,
      .layers = 2,
      .width = 48,
      .heads = 4,
      .kv_heads = 2,
      .context = 32,
      .vocab = VOCAB,
      .hidden = 70,
      .rope_width = 8}},
    {"qwen3",
     {.arch = DP_ARCH_LLAMA,
      .layers = 2,
      .width = 48,
      .heads = 4,
      .kv_heads = 2,
      .head_width = 16,
      .context = 32,
      .vocab = VOCAB,
      .norm_eps_nano = 1000,
      .rope_theta = 1000000,
      .qk_norm = DP_ON,
      .head = DP_HEAD_TIED}},
    {"qwen3-untied",
     {.arch = DP_ARCH_LLAMA,
      .layers = 2,
      .width = 40,
      .heads = 4,
      .kv_heads = 1,
      .head_width = 8,
      .context = 32,
      .vocab = VOCAB,
      .hidden = 70,
      .norm_eps_nano = 1000,
      .rope_theta = 1000000,
      .qk_norm = DP_ON,
      .head = DP_HEAD_UNTIED}},
};

/* Weights far from a fresh model's, so that nothing hides, and in wide ones so small that sums stay
 * as large. */
static void fill(const dp_model *model, float *params)
{
    const float most = 0.15F * fminf(1.0F, sqrtf(48.0F / (float)model->config.width));
    dp_rng rng;
    dp_rng_init(&rng, 11);
    dp_model_init(model, 5, params);
    for (size_t t = 0; t < model->n_tensors; t++) {
        for (size_t i = 0; i < model->tensors[t].elements; i++) {
            const float noise = (float)dp_rng_below(&rng, 2001) / 1000.0F - 1.0F;
            params[model->tensors[t].offset + i] += most * noise;
        }
    }
}

static dp_status write_folder(const dp_model *model, const float *params, const char *folder,
                              dp_why *why)
{
    dp_buf text;
    dp_buf weights;
    dp_buf_init(&text, 4096);
    dp_buf_init(&weights, FILE_BYTES_MAX);
    dp_status status = dp_hf_config_write(&model->config, &text, why);
    if (status == DP_OK) {
        status = dp_safetensors_write(model, params, &weights);
    }
    if (status == DP_OK) {
        status = dp_folder_make(folder, why);
    }
    if (status == DP_OK) {
        status = dp_file_write(folder, "config.json", dp_buf_view(&text), why);
    }
    if (status == DP_OK) {
        status = dp_file_write(folder, "model.safetensors", dp_buf_view(&weights), why);
    }
    dp_buf_close(&weights);
    dp_buf_close(&text);
    return status;
}

/* Writes the model as a file of each type, for llama.cpp. */
static dp_status write_gguf(const dp_model *model, const float *params, const char *folder,
                            dp_why *why)
{
    static const char *const types[] = {"f32", "f16", "bf16", "q8_0"};
    static const char text[] = "the cat sat on the mat, the hat on the cat. the end of the tale";
    dp_bpe *bpe = NULL;
    uint32_t id = 0;
    DP_TRY(dp_bpe_train(&bpe, dp_view_text(text), VOCAB - 11, why));
    dp_status status = dp_bpe_add_special(bpe, dp_view_text("<|endoftext|>"), &id);
    const dp_gguf_language language = {.bpe = bpe};
    for (size_t i = 0; i < sizeof types / sizeof types[0] && status == DP_OK; i++) {
        char name[32];
        dp_buf file;
        dp_gguf_type type = DP_GGUF_F32;
        snprintf(name, sizeof name, "%s.gguf", types[i]);
        dp_buf_init(&file, FILE_BYTES_MAX);
        status = dp_gguf_type_of(types[i], &type)
                     ? dp_gguf_write(model, params, &language, type, &file, why)
                     : DP_BADARG;
        if (status == DP_OK) {
            status = dp_file_write(folder, name, dp_buf_view(&file), why);
        }
        dp_buf_close(&file);
    }
    dp_bpe_close(bpe);
    return status;
}

static dp_status print_logits(dp_gpt *gpt)
{
    uint32_t tokens[TOKENS];
    float logits[VOCAB];
    printf("{\"tokens\":[");
    for (uint32_t i = 0; i < TOKENS; i++) {
        tokens[i] = i * 7 % VOCAB;
        printf("%s%u", i == 0 ? "" : ",", tokens[i]);
    }
    printf("],\"logits\":[");
    for (size_t length = 1; length <= TOKENS; length++) {
        DP_TRY(dp_gpt_logits(gpt, tokens, length, logits));
        for (size_t i = 0; i < VOCAB; i++) {
            printf("%s%s%.9g", i == 0 ? (length == 1 ? "" : ",") : ",", i == 0 ? "[" : "",
                   (double)logits[i]);
        }
        printf("]");
    }
    puts("]}");
    return DP_OK;
}

static dp_status write_all(dp_gpt *gpt, const dp_model *model, bool gguf, const char *folder,
                           dp_why *why)
{
    fill(model, dp_gpt_params_to_write(gpt));
    DP_TRY(write_folder(model, dp_gpt_params(gpt), folder, why));
    const dp_status status = !gguf ? DP_OK : write_gguf(model, dp_gpt_params(gpt), folder, why);
    return status == DP_UNSUPPORTED ? DP_OK : status; /* Not every family has such a file. */
}

/* kind NULL: what is in the folder. */
static dp_status run(const struct kind *kind, bool gguf, const char *folder, dp_why *why)
{
    dp_model_config found;
    dp_model model;
    dp_gpt *gpt = NULL;
    if (kind == NULL) {
        DP_TRY(dp_hf_import_config(folder, &found, why));
        if (found.vocab != VOCAB) {
            return dp_why_set(why, DP_BADARG, "the vocabulary is of %u tokens, not %d", found.vocab,
                              VOCAB);
        }
    }
    DP_TRY(dp_model_open(&model, kind != NULL ? &kind->config : &found, why));
    dp_status status = dp_gpt_open(&gpt, &model, &(dp_gpt_options){.rows_max = 1});
    if (status == DP_OK && kind != NULL) {
        status = write_all(gpt, &model, gguf, folder, why);
    } else if (status == DP_OK) {
        status = dp_hf_import_weights(folder, &model, dp_gpt_params_to_write(gpt), why);
    }
    if (status == DP_OK) {
        status = print_logits(gpt);
    }
    dp_gpt_close(gpt);
    dp_model_close(&model);
    return status;
}

/* ---- training */

enum { STEPS = 20, ROWS = 2, LENGTH = 24 };

/* Some order, so that there is something to learn; test_training.py has the same. */
static void fill_tokens(uint32_t tokens[ROWS * LENGTH + 1])
{
    for (uint32_t i = 0; i <= ROWS * LENGTH; i++) {
        tokens[i] = (i * i * 3 + i * 7) % VOCAB;
    }
}

static dp_status train_steps(dp_gpt *gpt, dp_optim *optim)
{
    uint32_t tokens[ROWS * LENGTH + 1];
    const dp_gpt_batch batch = {tokens, tokens + 1, ROWS, LENGTH};
    const dp_optim_options options = {
        .lr = 1e-3F, .beta1 = 0.9F, .beta2 = 0.95F, .eps = 1e-8F, .decay = 0.1F};
    fill_tokens(tokens);
    printf("{\"losses\":[");
    for (size_t step = 0; step < STEPS; step++) {
        double loss = 0.0;
        dp_gpt_zero_grads(gpt);
        DP_TRY(dp_gpt_step(gpt, &batch, 1.0F / (ROWS * LENGTH), &loss));
        DP_TRY(dp_optim_step(optim, dp_gpt_params_to_write(gpt), dp_gpt_grads(gpt), &options, NULL,
                             NULL));
        printf("%s%.9g", step == 0 ? "" : ",", loss / (ROWS * LENGTH));
    }
    printf("],\"trained\":");
    return DP_OK;
}

static dp_status train(const char *folder, dp_why *why)
{
    dp_model_config found;
    dp_model model;
    dp_gpt *gpt = NULL;
    dp_optim optim = {0};
    char trained[4096];
    DP_TRY(dp_hf_import_config(folder, &found, why));
    DP_TRY(dp_model_open(&model, &found, why));
    snprintf(trained, sizeof trained, "%s/trained", folder);
    dp_status status = dp_gpt_open(&gpt, &model, &(dp_gpt_options){.rows_max = ROWS});
    if (status == DP_OK) {
        status = dp_hf_import_weights(folder, &model, dp_gpt_params_to_write(gpt), why);
    }
    if (status == DP_OK) {
        status = dp_optim_init(&optim, &(dp_optim_setup){.model = &model});
    }
    if (status == DP_OK) {
        status = train_steps(gpt, &optim);
    }
    if (status == DP_OK) {
        status = write_folder(&model, dp_gpt_params(gpt), trained, why);
    }
    if (status == DP_OK) {
        status = print_logits(gpt);
        puts("}");
    }
    dp_optim_close(&optim);
    dp_gpt_close(gpt);
    dp_model_close(&model);
    return status;
}

/* ---- tokens */

static dp_status print_tokens(const dp_bpe *bpe, dp_view json, dp_why *why)
{
    json_error_t error;
    json_t *const texts = json_loadb((const char *)json.data, json.size, JSON_ALLOW_NUL, &error);
    size_t index;
    json_t *text;
    dp_tokens tokens = {0};
    dp_status status = json_is_array(texts) ? DP_OK : dp_why_set(why, DP_BADMSG, "texts.json");
    printf("[");
    json_array_foreach(texts, index, text)
    {
        tokens.count = 0;
        if (status == DP_OK) {
            status = dp_bpe_encode(
                bpe, dp_view_of(json_string_value(text), json_string_length(text)), &tokens, why);
        }
        printf("%s[", index == 0 ? "" : ",");
        for (size_t i = 0; i < tokens.count; i++) {
            printf("%s%u", i == 0 ? "" : ",", tokens.ids[i]);
        }
        printf("]");
    }
    puts("]");
    dp_tokens_close(&tokens);
    json_decref(texts);
    return status;
}

static dp_status write_words(const dp_bpe *bpe, const char *folder, dp_why *why)
{
    const dp_model_config config = {.arch = DP_ARCH_LLAMA,
                                    .layers = 1,
                                    .width = 32,
                                    .heads = 2,
                                    .context = 32,
                                    .vocab = (uint32_t)dp_bpe_count(bpe)};
    const dp_gguf_language language = {.bpe = bpe,
                                       .chat_template = dp_view_text("{{ bos_token }}")};
    dp_model model;
    dp_buf file;
    DP_TRY(dp_model_open(&model, &config, why));
    dp_buf_init(&file, FILE_BYTES_MAX);
    float *const params = calloc(model.n_elements, sizeof *params);
    dp_status status = params == NULL
                           ? DP_NOMEM
                           : dp_gguf_write(&model, params, &language, DP_GGUF_F32, &file, why);
    if (status == DP_OK) {
        status = dp_file_write(folder, "words.gguf", dp_buf_view(&file), why);
    }
    free(params);
    dp_buf_close(&file);
    dp_model_close(&model);
    return status;
}

static dp_status read_in(const char *folder, const char *name, dp_buf *out, dp_why *why)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return dp_file_read(path, out, why);
}

static dp_status run_words(const char *folder, dp_why *why)
{
    dp_bpe *bpe = NULL;
    dp_buf json;
    dp_buf texts;
    dp_buf_init(&json, FILE_BYTES_MAX);
    dp_buf_init(&texts, FILE_BYTES_MAX);
    dp_status status = read_in(folder, "tokenizer.json", &json, why);
    if (status == DP_OK) {
        status = read_in(folder, "texts.json", &texts, why);
    }
    if (status == DP_OK) {
        status = dp_bpe_load(&bpe, dp_buf_view(&json), why);
    }
    if (status == DP_OK) {
        status = write_words(bpe, folder, why);
    }
    if (status == DP_OK) {
        status = print_tokens(bpe, dp_buf_view(&texts), why);
    }
    dp_bpe_close(bpe);
    dp_buf_close(&texts);
    dp_buf_close(&json);
    return status;
}

static const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(name, kinds[i].name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* The names and shapes in a file of its weights. */
static void print_shapes(const dp_model *model)
{
    const char *comma = "";
    for (size_t i = 0; i < model->n_tensors; i++) {
        const dp_tensor *const tensor = &model->tensors[i];
        dp_tensor_part parts[DP_MODEL_PARTS_MAX];
        const size_t n = dp_model_parts(model, tensor, parts);
        for (size_t k = 0; k < n; k++) {
            const size_t rows = tensor->shape[0];
            if (tensor->n_dims == 1) {
                printf("%s\"%s\":[%zu]", comma, parts[k].name, parts[k].columns);
            } else {
                printf("%s\"%s\":[%zu,%zu]", comma, parts[k].name,
                       parts[k].transposed ? parts[k].columns : rows,
                       parts[k].transposed ? rows : parts[k].columns);
            }
            comma = ",";
        }
    }
}

static dp_status print_preset(const dp_model_preset *preset, const char *folder, dp_why *why)
{
    char name[DP_TENSOR_NAME_MAX];
    dp_model model;
    dp_buf text;
    DP_TRY(dp_model_open(&model, &preset->config, why));
    dp_buf_init(&text, 4096);
    snprintf(name, sizeof name, "%s.json", preset->name);
    dp_status status = dp_hf_config_write(&model.config, &text, why);
    if (status == DP_OK) {
        status = dp_file_write(folder, name, dp_buf_view(&text), why);
    }
    if (status == DP_OK) {
        printf("\"%s\":{\"parameters\":%zu,\"tensors\":{", preset->name, model.n_parameters);
        print_shapes(&model);
        printf("}}");
    }
    dp_buf_close(&text);
    dp_model_close(&model);
    return status;
}

static dp_status print_presets(const char *folder, dp_why *why)
{
    size_t count = 0;
    const dp_model_preset *const presets = dp_model_presets(&count);
    DP_TRY(dp_folder_make(folder, why));
    printf("{");
    for (size_t i = 0; i < count; i++) {
        printf("%s", i == 0 ? "" : ",");
        DP_TRY(print_preset(&presets[i], folder, why));
    }
    puts("}");
    return DP_OK;
}

/* One layer of a preset. */
static dp_status run_preset(const dp_model_preset *preset, const char *folder, dp_why *why)
{
    struct kind kind = {.name = preset->name, .config = preset->config};
    kind.config.layers = 1;
    kind.config.vocab = VOCAB;
    kind.config.context = 32;
    return run(&kind, false, folder, why);
}

int main(int argc, char **argv)
{
    dp_why why = {""};
    const struct kind *const kind = argc == 3 ? kind_of(argv[1]) : NULL;
    const dp_model_preset *const preset = argc == 3 ? dp_model_preset_find(argv[1]) : NULL;
    dp_status status = DP_OK;
    if (kind != NULL || (argc == 3 && strcmp(argv[1], "import") == 0)) {
        status = run(kind, true, argv[2], &why);
    } else if (argc == 3 && strcmp(argv[1], "words") == 0) {
        status = run_words(argv[2], &why);
    } else if (argc == 3 && strcmp(argv[1], "train") == 0) {
        status = train(argv[2], &why);
    } else if (preset != NULL) {
        status = run_preset(preset, argv[2], &why);
    } else if (argc == 3 && strcmp(argv[1], "presets") == 0) {
        status = print_presets(argv[2], &why);
    } else {
        fputs("usage: engine_logits KIND|PRESET|presets|import|train|words FOLDER\n", stderr);
        return 64;
    }
    if (status != DP_OK) {
        fprintf(stderr, "engine_logits: %s %s\n", dp_status_text(status), why.text);
    }
    return status == DP_OK ? 0 : 1;
}
