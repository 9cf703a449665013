#include "compute/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "base/run/adapt.h"
#include "base/run/model_family.h"
#include "compute/model/adapter.h"

/* Sizes in the table below. NONE as rows: the tensor is a vector. */
typedef enum extent {
    NONE,
    WIDTH,
    QUERY,  /* heads * head width */
    KEYS,   /* kv heads * head width */
    FUSED,  /* q, k and v */
    Q_GAIN, /* of the norm of q: head width, or all heads */
    K_GAIN,
    HIDDEN,
    GATED, /* inputs of the activation */
    VOCAB,
    CONTEXT
} extent;

/* One row per kind of tensor. A name starts with HF's name for the part of the model; layers put
 * their number inside. */
static const struct slot_row {
    const char *gpt2;
    const char *llama; /* and all other families */
    extent rows;
    extent columns; /* of a vector: its elements */
    dp_tensor_init init;
    uint32_t only; /* models with all these parts (dp_feature) have it */
} slot_rows[DP_SLOTS] = {
    [DP_LAYER_NORM1_W] = {"ln_1.weight", "input_layernorm.weight", NONE, WIDTH, DP_TENSOR_ONES,
                          DP_HAS_NORMS_BEFORE},
    [DP_LAYER_NORM1_B] = {"ln_1.bias", "input_layernorm.bias", NONE, WIDTH, DP_TENSOR_ZEROS,
                          DP_HAS_LAYER_NORM},
    [DP_LAYER_QKV_W] = {"attn.c_attn.weight", "self_attn.qkv_proj.weight", WIDTH, FUSED,
                        DP_TENSOR_NORMAL, 0},
    [DP_LAYER_QKV_B] = {"attn.c_attn.bias", "self_attn.qkv_proj.bias", NONE, FUSED, DP_TENSOR_ZEROS,
                        DP_HAS_QKV_BIAS},
    [DP_LAYER_Q_NORM] = {NULL, "self_attn.q_norm.weight", NONE, Q_GAIN, DP_TENSOR_ONES,
                         DP_HAS_QK_NORMS},
    [DP_LAYER_K_NORM] = {NULL, "self_attn.k_norm.weight", NONE, K_GAIN, DP_TENSOR_ONES,
                         DP_HAS_QK_NORMS},
    [DP_LAYER_OUT_W] = {"attn.c_proj.weight", "self_attn.o_proj.weight", QUERY, WIDTH,
                        DP_TENSOR_RESIDUAL, 0},
    [DP_LAYER_OUT_B] = {"attn.c_proj.bias", "self_attn.o_proj.bias", NONE, WIDTH, DP_TENSOR_ZEROS,
                        DP_HAS_BIASES},
    [DP_LAYER_OUT_NORM] = {NULL, "self_attn.o_norm.weight", NONE, WIDTH, DP_TENSOR_ONES,
                           DP_HAS_NORMS_AFTER},
    [DP_LAYER_NORM2_W] = {"ln_2.weight", "post_attention_layernorm.weight", NONE, WIDTH,
                          DP_TENSOR_ONES, DP_HAS_NORMS_BEFORE},
    [DP_LAYER_NORM2_B] = {"ln_2.bias", "post_attention_layernorm.bias", NONE, WIDTH,
                          DP_TENSOR_ZEROS, DP_HAS_LAYER_NORM},
    [DP_LAYER_UP_W] = {"mlp.c_fc.weight", "mlp.gate_up_proj.weight", WIDTH, GATED, DP_TENSOR_NORMAL,
                       0},
    [DP_LAYER_UP_B] = {"mlp.c_fc.bias", "mlp.gate_up_proj.bias", NONE, GATED, DP_TENSOR_ZEROS,
                       DP_HAS_BIASES},
    [DP_LAYER_DOWN_W] = {"mlp.c_proj.weight", "mlp.down_proj.weight", HIDDEN, WIDTH,
                         DP_TENSOR_RESIDUAL, 0},
    [DP_LAYER_DOWN_B] = {"mlp.c_proj.bias", "mlp.down_proj.bias", NONE, WIDTH, DP_TENSOR_ZEROS,
                         DP_HAS_BIASES},
    [DP_LAYER_DOWN_NORM] = {NULL, "mlp.down_norm.weight", NONE, WIDTH, DP_TENSOR_ONES,
                            DP_HAS_NORMS_AFTER},
    [DP_SLOT_EMBED] = {"transformer.wte.weight", "model.embed_tokens.weight", VOCAB, WIDTH,
                       DP_TENSOR_NORMAL, 0},
    [DP_SLOT_POSITIONS] = {"transformer.wpe.weight", NULL, CONTEXT, WIDTH, DP_TENSOR_NORMAL,
                           DP_HAS_POSITIONS},
    [DP_SLOT_NORM_W] = {"transformer.ln_f.weight", "model.norm.weight", NONE, WIDTH, DP_TENSOR_ONES,
                        0},
    [DP_SLOT_NORM_B] = {"transformer.ln_f.bias", "model.norm.bias", NONE, WIDTH, DP_TENSOR_ZEROS,
                        DP_HAS_LAYER_NORM},
    [DP_SLOT_HEAD] = {"lm_head.weight", "lm_head.weight", VOCAB, WIDTH, DP_TENSOR_NORMAL,
                      DP_HAS_HEAD},
};

static bool is_gpt2(const dp_model *model)
{
    return model->config.arch == DP_ARCH_GPT2;
}

static size_t extent_of(const dp_model_config *config, extent which)
{
    const size_t head = config->head_width;
    const bool whole = (dp_model_features(config) & DP_HAS_WHOLE_NORMS) != 0;
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
    case Q_GAIN:
        return whole ? config->heads * head : head;
    case K_GAIN:
        return whole ? config->kv_heads * head : head;
    case HIDDEN:
        return config->hidden;
    case GATED:
        return ((dp_model_features(config) & DP_HAS_GATES) != 0 ? 2 : 1) * (size_t)config->hidden;
    case VOCAB:
        return config->vocab;
    case CONTEXT:
        return config->context;
    }
    return 0;
}

static bool has(const dp_model_config *config, uint32_t only)
{
    return (only & ~dp_model_features(config)) == 0;
}

/* layers: the front of names of layers. */
static void name_tensor(char name[DP_TENSOR_NAME_MAX], const char *layers, size_t layer,
                        dp_slot slot, const char *text)
{
    const int length = slot < DP_LAYER_SLOTS
                           ? snprintf(name, DP_TENSOR_NAME_MAX, "%s.%zu.%s", layers, layer, text)
                           : snprintf(name, DP_TENSOR_NAME_MAX, "%s", text);
    dp_assert(length > 0 && length < DP_TENSOR_NAME_MAX);
}

static const char *layers_of(const dp_model *model)
{
    return is_gpt2(model) ? "transformer.h" : "model.layers";
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
    name_tensor(tensor->name, layers_of(model), layer, slot,
                is_gpt2(model) ? row->gpt2 : row->llama);
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

dp_rope_turns dp_model_turns(const dp_model *model, dp_rope_kind kind)
{
    const dp_model_config *const m = &model->config;
    dp_assert(kind != DP_ROPE_NONE);
    if (kind == DP_ROPE_LOCAL) { /* Scaling is of the layers without a window. */
        return (dp_rope_turns){.theta = (double)m->rope_local_theta, .width = m->head_width};
    }
    return (dp_rope_turns){.theta = (double)m->rope_theta,
                           .width = m->head_width,
                           .turned = m->rope_width,
                           .scaling = m->rope_scaling,
                           .factor = (double)m->rope_factor_milli * 1e-3,
                           .low = (double)m->rope_low_milli * 1e-3,
                           .high = (double)m->rope_high_milli * 1e-3,
                           .context = (double)m->rope_context};
}

/* Tensors that stand apart in files, or under another name than in the arena. */
typedef struct part_row {
    dp_slot slot;
    const char *name;
    extent columns;
    uint32_t only;
} part_row;

static const part_row llama_parts[] = {
    {DP_LAYER_QKV_W, "self_attn.q_proj.weight", QUERY, 0},
    {DP_LAYER_QKV_W, "self_attn.k_proj.weight", KEYS, 0},
    {DP_LAYER_QKV_W, "self_attn.v_proj.weight", KEYS, 0},
    {DP_LAYER_QKV_B, "self_attn.q_proj.bias", QUERY, 0},
    {DP_LAYER_QKV_B, "self_attn.k_proj.bias", KEYS, 0},
    {DP_LAYER_QKV_B, "self_attn.v_proj.bias", KEYS, 0},
    {DP_LAYER_UP_W, "mlp.gate_proj.weight", HIDDEN, DP_HAS_GATES},
    {DP_LAYER_UP_W, "mlp.up_proj.weight", HIDDEN, 0},
};

static const part_row phi3_parts[] = {
    {DP_LAYER_QKV_W, "self_attn.qkv_proj.weight", FUSED, 0},
    {DP_LAYER_UP_W, "mlp.gate_up_proj.weight", GATED, 0},
};

static const part_row gemma_parts[] = {
    {DP_LAYER_OUT_NORM, "post_attention_layernorm.weight", WIDTH, 0},
    {DP_LAYER_NORM2_W, "pre_feedforward_layernorm.weight", WIDTH, 0},
    {DP_LAYER_DOWN_NORM, "post_feedforward_layernorm.weight", WIDTH, 0},
};

static const part_row neox_parts[] = {
    {DP_LAYER_NORM1_W, "input_layernorm.weight", WIDTH, 0},
    {DP_LAYER_NORM1_B, "input_layernorm.bias", WIDTH, 0},
    {DP_LAYER_QKV_W, "attention.query_key_value.weight", FUSED, 0},
    {DP_LAYER_QKV_B, "attention.query_key_value.bias", FUSED, 0},
    {DP_LAYER_OUT_W, "attention.dense.weight", WIDTH, 0},
    {DP_LAYER_OUT_B, "attention.dense.bias", WIDTH, 0},
    {DP_LAYER_NORM2_W, "post_attention_layernorm.weight", WIDTH, 0},
    {DP_LAYER_NORM2_B, "post_attention_layernorm.bias", WIDTH, 0},
    {DP_LAYER_UP_W, "mlp.dense_h_to_4h.weight", GATED, 0},
    {DP_LAYER_UP_B, "mlp.dense_h_to_4h.bias", GATED, 0},
    {DP_LAYER_DOWN_W, "mlp.dense_4h_to_h.weight", WIDTH, 0},
    {DP_LAYER_DOWN_B, "mlp.dense_4h_to_h.bias", WIDTH, 0},
    {DP_SLOT_EMBED, "gpt_neox.embed_in.weight", WIDTH, 0},
    {DP_SLOT_NORM_W, "gpt_neox.final_layer_norm.weight", WIDTH, 0},
    {DP_SLOT_NORM_B, "gpt_neox.final_layer_norm.bias", WIDTH, 0},
    {DP_SLOT_HEAD, "embed_out.weight", WIDTH, 0},
};

/* Rows of a family for the slots that it has otherwise than Llama. */
static const struct names_row {
    dp_arch arch;
    const char *layers; /* the front of names of layers */
    bool by_head;       /* q, k and v of each head stand together */
    const part_row *rows;
    size_t n;
} names_rows[] = {
    {DP_ARCH_PHI3, "model.layers", false, phi3_parts, sizeof phi3_parts / sizeof phi3_parts[0]},
    {DP_ARCH_OLMO2, "model.layers", false, gemma_parts, sizeof gemma_parts / sizeof gemma_parts[0]},
    {DP_ARCH_GEMMA2, "model.layers", false, gemma_parts,
     sizeof gemma_parts / sizeof gemma_parts[0]},
    {DP_ARCH_GEMMA3, "model.layers", false, gemma_parts,
     sizeof gemma_parts / sizeof gemma_parts[0]},
    {DP_ARCH_NEOX, "gpt_neox.layers", true, neox_parts, sizeof neox_parts / sizeof neox_parts[0]},
};

/* The layer of a tensor; 0 outside the layers. */
static size_t layer_of(const dp_model *model, const dp_tensor *tensor)
{
    if (tensor->slot >= DP_LAYER_SLOTS) {
        return 0;
    }
    const size_t index = (size_t)(tensor - model->tensors);
    return (index - (size_t)model->at[tensor->slot]) / (size_t)model->tensors_per_layer;
}

/* Appends the parts of a tensor that the rows have; returns how many there are. */
static size_t add_parts(const dp_model *model, const dp_tensor *tensor,
                        const struct names_row *from, dp_tensor_part parts[DP_MODEL_PARTS_MAX])
{
    const bool qkv = tensor->slot == DP_LAYER_QKV_W || tensor->slot == DP_LAYER_QKV_B;
    size_t n = 0;
    size_t first = 0;
    for (size_t i = 0; i < from->n; i++) {
        const part_row *const row = &from->rows[i];
        if (row->slot != tensor->slot || !has(&model->config, row->only)) {
            continue;
        }
        const size_t size = extent_of(&model->config, row->columns);
        dp_assert(n < DP_MODEL_PARTS_MAX);
        parts[n] =
            (dp_tensor_part){.first = first, .columns = size, .by_head = from->by_head && qkv};
        name_tensor(parts[n].name, from->layers, layer_of(model, tensor), tensor->slot, row->name);
        first += size;
        n++;
    }
    dp_assert(n == 0 || first == (tensor->n_dims == 1 ? tensor->elements : tensor->shape[1]));
    return n;
}

size_t dp_model_parts(const dp_model *model, const dp_tensor *tensor,
                      dp_tensor_part parts[DP_MODEL_PARTS_MAX])
{
    static const struct names_row llama = {DP_ARCH_LLAMA, "model.layers", false, llama_parts,
                                           sizeof llama_parts / sizeof llama_parts[0]};
    const bool linear = tensor->n_dims == 2 && tensor->slot < DP_LAYER_SLOTS;
    dp_assert(model->base == NULL);
    size_t n = 0;
    for (size_t i = 0; i < sizeof names_rows / sizeof names_rows[0] && n == 0; i++) {
        if (names_rows[i].arch == model->config.arch) {
            n = add_parts(model, tensor, &names_rows[i], parts);
        }
    }
    if (n == 0 && !is_gpt2(model)) {
        n = add_parts(model, tensor, &llama, parts);
    }
    if (n == 0) {
        n = 1;
        parts[0] =
            (dp_tensor_part){.columns = tensor->n_dims == 1 ? tensor->elements : tensor->shape[1]};
        memcpy(parts[0].name, tensor->name, sizeof parts[0].name);
    }
    for (size_t i = 0; i < n; i++) {
        const bool gain = tensor->init == DP_TENSOR_ONES;
        parts[i].transposed = linear && !is_gpt2(model);
        parts[i].above = gain && has(&model->config, DP_HAS_GAINS_ABOVE_ONE) ? 1.0F : 0.0F;
    }
    return n;
}

/* The channel of a head of q or k that a file has as channel i. A file turns channel i of the first
 * rope_width ones with i + rope_width / 2, the engine any with the one half a head on: those that
 * turn stand first in both halves here. */
static size_t channel_of(const dp_model_config *m, size_t i)
{
    const size_t head = m->head_width;
    const size_t turned = m->rope_width != 0 ? m->rope_width : head;
    const size_t half = turned / 2;
    const size_t still = (head - turned) / 2; /* in each half */
    if (i < half) {
        return i;
    }
    if (i < turned) {
        return head / 2 + i - half;
    }
    i -= turned;
    return i < still ? half + i : head / 2 + half + i - still;
}

size_t dp_model_part_column(const dp_model *model, const dp_tensor *tensor,
                            const dp_tensor_part *part, size_t index)
{
    const dp_model_config *const m = &model->config;
    const size_t head = m->head_width;
    const size_t turned = (m->heads + (size_t)m->kv_heads) * head; /* columns of q and k */
    const bool qkv = tensor->slot == DP_LAYER_QKV_W || tensor->slot == DP_LAYER_QKV_B;
    size_t column = part->first + index;
    if (part->by_head) { /* [head][q, k, v][channel] becomes [q, k, v][head][channel]. */
        const size_t which = index / head % 3;
        column = (which * m->heads + index / head / 3) * head + index % head;
    }
    return qkv && column < turned ? column / head * head + channel_of(m, column % head) : column;
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
