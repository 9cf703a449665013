#include "compute/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "base/run/adapt.h"
#include "compute/model/adapter.h"

/* Sizes in the table below. NONE as rows: the tensor is a vector. */
typedef enum extent {
    NONE,
    WIDTH,
    QUERY, /* heads * head width */
    KEYS,  /* kv heads * head width */
    FUSED, /* q, k and v */
    HEAD,  /* head width */
    HIDDEN,
    GATED, /* inputs of the activation */
    VOCAB,
    CONTEXT
} extent;

enum {
    BIAS = 1,
    QK_NORM = 2,
    UNTIED = 4,
    POSITIONS = 8,
    GATES = 16
}; /* which models have it; 0: all */

/* One row per kind of tensor. A name starts with HF's name for the part of the model; layers put
 * their number inside. */
static const struct slot_row {
    const char *gpt2;
    const char *llama;
    extent rows;
    extent columns; /* of a vector: its elements */
    dp_tensor_init init;
    uint8_t only;
} slot_rows[DP_SLOTS] = {
    [DP_LAYER_NORM1_W] = {"ln_1.weight", "input_layernorm.weight", NONE, WIDTH, DP_TENSOR_ONES, 0},
    [DP_LAYER_NORM1_B] = {"ln_1.bias", NULL, NONE, WIDTH, DP_TENSOR_ZEROS, BIAS},
    [DP_LAYER_QKV_W] = {"attn.c_attn.weight", "self_attn.qkv_proj.weight", WIDTH, FUSED,
                        DP_TENSOR_NORMAL, 0},
    [DP_LAYER_QKV_B] = {"attn.c_attn.bias", NULL, NONE, FUSED, DP_TENSOR_ZEROS, BIAS},
    [DP_LAYER_Q_NORM] = {NULL, "self_attn.q_norm.weight", NONE, HEAD, DP_TENSOR_ONES, QK_NORM},
    [DP_LAYER_K_NORM] = {NULL, "self_attn.k_norm.weight", NONE, HEAD, DP_TENSOR_ONES, QK_NORM},
    [DP_LAYER_OUT_W] = {"attn.c_proj.weight", "self_attn.o_proj.weight", QUERY, WIDTH,
                        DP_TENSOR_RESIDUAL, 0},
    [DP_LAYER_OUT_B] = {"attn.c_proj.bias", NULL, NONE, WIDTH, DP_TENSOR_ZEROS, BIAS},
    [DP_LAYER_NORM2_W] = {"ln_2.weight", "post_attention_layernorm.weight", NONE, WIDTH,
                          DP_TENSOR_ONES, 0},
    [DP_LAYER_NORM2_B] = {"ln_2.bias", NULL, NONE, WIDTH, DP_TENSOR_ZEROS, BIAS},
    [DP_LAYER_UP_W] = {"mlp.c_fc.weight", "mlp.gate_up_proj.weight", WIDTH, GATED, DP_TENSOR_NORMAL,
                       0},
    [DP_LAYER_UP_B] = {"mlp.c_fc.bias", NULL, NONE, GATED, DP_TENSOR_ZEROS, BIAS},
    [DP_LAYER_DOWN_W] = {"mlp.c_proj.weight", "mlp.down_proj.weight", HIDDEN, WIDTH,
                         DP_TENSOR_RESIDUAL, 0},
    [DP_LAYER_DOWN_B] = {"mlp.c_proj.bias", NULL, NONE, WIDTH, DP_TENSOR_ZEROS, BIAS},
    [DP_SLOT_EMBED] = {"transformer.wte.weight", "model.embed_tokens.weight", VOCAB, WIDTH,
                       DP_TENSOR_NORMAL, 0},
    [DP_SLOT_POSITIONS] = {"transformer.wpe.weight", NULL, CONTEXT, WIDTH, DP_TENSOR_NORMAL,
                           POSITIONS},
    [DP_SLOT_NORM_W] = {"transformer.ln_f.weight", "model.norm.weight", NONE, WIDTH, DP_TENSOR_ONES,
                        0},
    [DP_SLOT_NORM_B] = {"transformer.ln_f.bias", NULL, NONE, WIDTH, DP_TENSOR_ZEROS, BIAS},
    [DP_SLOT_HEAD] = {"lm_head.weight", "lm_head.weight", VOCAB, WIDTH, DP_TENSOR_NORMAL, UNTIED},
};

static bool is_gpt2(const dp_model *model)
{
    return model->config.arch == DP_ARCH_GPT2;
}

static bool is_gated(const dp_model_config *config)
{
    return config->activation == DP_ACTIVATION_SWIGLU;
}

static size_t extent_of(const dp_model_config *config, extent which)
{
    const size_t head = config->head_width;
    switch (which) {
    case NONE:
        return 1;
    case WIDTH:
        return config->width;
    case QUERY:
        return config->heads * head;
    case KEYS:
        return config->kv_heads * head;
    case FUSED:
        return (config->heads + 2 * (size_t)config->kv_heads) * head;
    case HEAD:
        return head;
    case HIDDEN:
        return config->hidden;
    case GATED:
        return (is_gated(config) ? 2 : 1) * (size_t)config->hidden;
    case VOCAB:
        return config->vocab;
    case CONTEXT:
        return config->context;
    }
    return 0;
}

static bool has(const dp_model_config *config, unsigned only)
{
    const bool gpt2 = config->arch == DP_ARCH_GPT2;
    unsigned features = gpt2 ? BIAS | POSITIONS : 0;
    features |= config->qk_norm == DP_ON ? QK_NORM : 0;
    features |= config->head == DP_HEAD_UNTIED ? UNTIED : 0;
    features |= is_gated(config) ? GATES : 0;
    return (only & ~features) == 0;
}

static void name_tensor(const dp_model *model, char name[DP_TENSOR_NAME_MAX], size_t layer,
                        dp_slot slot, const char *text)
{
    const char *const layers = is_gpt2(model) ? "transformer.h" : "model.layers";
    const int length = slot < DP_LAYER_SLOTS
                           ? snprintf(name, DP_TENSOR_NAME_MAX, "%s.%zu.%s", layers, layer, text)
                           : snprintf(name, DP_TENSOR_NAME_MAX, "%s", text);
    dp_assert(length > 0 && length < DP_TENSOR_NAME_MAX);
}

/* Appends the tensor at the end of the arena, if this model has it. */
static void add_tensor(dp_model *model, size_t layer, dp_slot slot)
{
    const struct slot_row *const row = &slot_rows[slot];
    if (!has(&model->config, row->only)) {
        return;
    }
    if (model->at[slot] < 0) {
        model->at[slot] = (int32_t)model->n_tensors;
    }
    dp_tensor *const tensor = &model->tensors[model->n_tensors++];
    const size_t columns = extent_of(&model->config, row->columns);
    const bool vector = row->rows == NONE;
    tensor->n_dims = vector ? 1 : 2;
    tensor->shape[0] = vector ? columns : extent_of(&model->config, row->rows);
    tensor->shape[1] = vector ? 1 : columns;
    tensor->elements = tensor->shape[0] * tensor->shape[1];
    tensor->offset = model->n_elements;
    tensor->decay = !vector;
    tensor->init = row->init;
    tensor->slot = slot;
    name_tensor(model, tensor->name, layer, slot, is_gpt2(model) ? row->gpt2 : row->llama);
    const size_t padded = (tensor->elements + DP_ARENA_ALIGN - 1) / DP_ARENA_ALIGN * DP_ARENA_ALIGN;
    model->n_elements += padded;
    model->n_parameters += tensor->elements;
}

dp_status dp_model_open_whole(dp_model *model, const dp_model_config *config, dp_why *why)
{
    const size_t tensors_max = DP_SLOTS - DP_LAYER_SLOTS + (size_t)DP_LAYER_SLOTS * config->layers;
    dp_tensor *tensors = dp_alloc(tensors_max, sizeof *tensors);
    if (tensors == NULL) {
        return dp_why_set(why, DP_NOMEM, "no memory for a table of %zu tensors", tensors_max);
    }
    *model = (dp_model){.config = dp_model_config_resolve(config), .tensors = tensors};
    memset(model->at, 0xff, sizeof model->at);
    add_tensor(model, 0, DP_SLOT_EMBED);
    add_tensor(model, 0, DP_SLOT_POSITIONS);
    const size_t before = model->n_tensors;
    dp_assert(config->layers > 0);
    for (size_t layer = 0; layer < config->layers; layer++) {
        for (int slot = 0; slot < DP_LAYER_SLOTS; slot++) {
            add_tensor(model, layer, (dp_slot)slot);
        }
    }
    model->tensors_per_layer = (int32_t)((model->n_tensors - before) / config->layers);
    add_tensor(model, 0, DP_SLOT_NORM_W);
    add_tensor(model, 0, DP_SLOT_NORM_B);
    add_tensor(model, 0, DP_SLOT_HEAD);
    dp_assert(model->n_parameters == dp_model_config_parameters(config));
    return DP_OK;
}

dp_status dp_model_open(dp_model *model, const dp_model_config *config, dp_why *why)
{
    if (config->arch == DP_ARCH_EXTERNAL) {
        return dp_why_set(why, DP_BADARG,
                          "a model of model.arch external has no tensors of its own here");
    }
    DP_TRY(dp_model_config_check(config, why));
    return dp_model_config_adapts(config) ? dp_model_open_adapters(model, config, why)
                                          : dp_model_open_whole(model, config, why);
}

void dp_model_open_vector(dp_model *model, uint64_t elements)
{
    dp_assert(elements <= DP_MODEL_ELEMENTS_MAX);
    *model = (dp_model){.config = {.arch = DP_ARCH_EXTERNAL}, .n_parameters = (size_t)elements};
    memset(model->at, 0xff, sizeof model->at);
    model->n_elements = ((size_t)elements + DP_ARENA_ALIGN - 1) / DP_ARENA_ALIGN * DP_ARENA_ALIGN;
}

void dp_model_close(dp_model *model)
{
    dp_free(model->tensors);
    if (model->base != NULL) {
        dp_free(model->base->tensors);
        dp_free(model->base);
    }
    *model = (dp_model){0};
}

const dp_tensor *dp_model_find(const dp_model *model, const char *name)
{
    for (size_t i = 0; i < model->n_tensors; i++) {
        if (strcmp(model->tensors[i].name, name) == 0) {
            return &model->tensors[i];
        }
    }
    return NULL;
}

const dp_tensor *dp_model_tensor(const dp_model *model, size_t layer, dp_slot slot)
{
    dp_assert(slot < DP_SLOTS && (layer == 0 || slot < DP_LAYER_SLOTS));
    dp_assert(layer < model->config.layers && model->base == NULL);
    if (model->at[slot] < 0) {
        return NULL;
    }
    return &model->tensors[(size_t)model->at[slot] + layer * (size_t)model->tensors_per_layer];
}

const dp_tensor *dp_model_head(const dp_model *model)
{
    const dp_tensor *const head = dp_model_tensor(model, 0, DP_SLOT_HEAD);
    return head != NULL ? head : dp_model_tensor(model, 0, DP_SLOT_EMBED);
}

/* Linear weights of Llama that the arena has turned, and some of them side by side. */
static const struct part_row {
    dp_slot slot;
    const char *name;
    extent columns;
    uint8_t only;
} part_rows[] = {
    {DP_LAYER_QKV_W, "self_attn.q_proj.weight", QUERY, 0},
    {DP_LAYER_QKV_W, "self_attn.k_proj.weight", KEYS, 0},
    {DP_LAYER_QKV_W, "self_attn.v_proj.weight", KEYS, 0},
    {DP_LAYER_OUT_W, "self_attn.o_proj.weight", WIDTH, 0},
    {DP_LAYER_UP_W, "mlp.gate_proj.weight", HIDDEN, GATES},
    {DP_LAYER_UP_W, "mlp.up_proj.weight", HIDDEN, 0},
    {DP_LAYER_DOWN_W, "mlp.down_proj.weight", WIDTH, 0},
};

size_t dp_model_parts(const dp_model *model, const dp_tensor *tensor,
                      dp_tensor_part parts[DP_MODEL_PARTS_MAX])
{
    const size_t columns = tensor->n_dims == 1 ? tensor->elements : tensor->shape[1];
    dp_assert(model->base == NULL);
    if (is_gpt2(model) || tensor->n_dims == 1 || tensor->slot >= DP_LAYER_SLOTS) {
        parts[0] = (dp_tensor_part){.columns = columns};
        memcpy(parts[0].name, tensor->name, sizeof parts[0].name);
        return 1;
    }
    const size_t index = (size_t)(tensor - model->tensors);
    const size_t layer =
        (index - (size_t)model->at[tensor->slot]) / (size_t)model->tensors_per_layer;
    size_t n = 0;
    size_t first = 0;
    for (size_t i = 0; i < sizeof part_rows / sizeof part_rows[0]; i++) {
        const struct part_row *const row = &part_rows[i];
        if (row->slot == tensor->slot && has(&model->config, row->only)) {
            const size_t size = extent_of(&model->config, row->columns);
            dp_assert(n < DP_MODEL_PARTS_MAX);
            parts[n] = (dp_tensor_part){.first = first, .columns = size, .transposed = true};
            name_tensor(model, parts[n].name, layer, tensor->slot, row->name);
            first += size;
            n++;
        }
    }
    dp_assert(first == columns);
    return n;
}

/* Sum of the six 10-bit fields in the low 60 bits. */
static int32_t sum_of_fields(uint64_t bits)
{
    int32_t sum = 0;
    for (int i = 0; i < 6; i++) {
        sum += (int32_t)(bits & 1023U);
        bits >>= 10;
    }
    return sum;
}

/* Mean 0, standard deviation sqrt(1 - 2^-20): twelve fields of variance (2^20 - 1)/12, over 1024.
 * Exact in fp32. */
static float normal_of(uint64_t key, uint64_t index)
{
    const int32_t sum =
        sum_of_fields(dp_mix64(key + 2 * index)) + sum_of_fields(dp_mix64(key + 2 * index + 1));
    return (float)(sum - 6138) * (1.0F / 1024.0F);
}

void dp_model_init(const dp_model *model, uint64_t seed, float *params)
{
    const uint64_t key = dp_mix64(seed);
    const float residual = 0.02F / sqrtf((float)(2 * model->config.layers));
    memset(params, 0, model->n_elements * sizeof *params);
    for (size_t t = 0; t < model->n_tensors; t++) {
        const dp_tensor *tensor = &model->tensors[t];
        const float deviation = tensor->init == DP_TENSOR_RESIDUAL ? residual
                                : tensor->init == DP_TENSOR_ADAPTER
                                    ? 1.0F / sqrtf((float)(3 * tensor->shape[0]))
                                    : 0.02F;
        const size_t end = tensor->offset + tensor->elements;
        switch (tensor->init) {
        case DP_TENSOR_ZEROS:
            break;
        case DP_TENSOR_ONES:
            for (size_t i = tensor->offset; i < end; i++) {
                params[i] = 1.0F;
            }
            break;
        case DP_TENSOR_NORMAL:
        case DP_TENSOR_RESIDUAL:
        case DP_TENSOR_ADAPTER:
            for (size_t i = tensor->offset; i < end; i++) {
                params[i] = normal_of(key, i) * deviation;
            }
            break;
        }
    }
}

static double flops_of(const dp_model *model, size_t length)
{
    double weights = (double)dp_model_head(model)->elements;
    for (size_t t = 0; t < model->n_tensors; t++) {
        const dp_tensor *tensor = &model->tensors[t];
        if (tensor->n_dims == 2 && tensor->slot < DP_LAYER_SLOTS) {
            weights += (double)tensor->elements;
        }
    }
    const double columns = (double)extent_of(&model->config, QUERY);
    return 6.0 * weights + 6.0 * (double)model->config.layers * (double)length * columns;
}

double dp_model_flops(const dp_model *model, size_t length)
{
    /* A base has a pass forward and one back, and no gradients. */
    return model->base == NULL
               ? flops_of(model, length)
               : flops_of(model->base, length) * 2.0 / 3.0 + 6.0 * (double)model->n_parameters;
}
