#include "compute/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"

/* One row per tensor of a layer; sizes in units of the width. */
static const struct layer_row {
    const char *name;
    uint8_t in; /* 0: a vector */
    uint8_t out;
    dp_tensor_init init;
} layer_rows[DP_LAYER_TENSORS] = {
    [DP_LAYER_LN1_W] = {"ln_1.weight", 0, 1, DP_TENSOR_ONES},
    [DP_LAYER_LN1_B] = {"ln_1.bias", 0, 1, DP_TENSOR_ZEROS},
    [DP_LAYER_QKV_W] = {"attn.c_attn.weight", 1, 3, DP_TENSOR_NORMAL},
    [DP_LAYER_QKV_B] = {"attn.c_attn.bias", 0, 3, DP_TENSOR_ZEROS},
    [DP_LAYER_OUT_W] = {"attn.c_proj.weight", 1, 1, DP_TENSOR_RESIDUAL},
    [DP_LAYER_OUT_B] = {"attn.c_proj.bias", 0, 1, DP_TENSOR_ZEROS},
    [DP_LAYER_LN2_W] = {"ln_2.weight", 0, 1, DP_TENSOR_ONES},
    [DP_LAYER_LN2_B] = {"ln_2.bias", 0, 1, DP_TENSOR_ZEROS},
    [DP_LAYER_FC_W] = {"mlp.c_fc.weight", 1, 4, DP_TENSOR_NORMAL},
    [DP_LAYER_FC_B] = {"mlp.c_fc.bias", 0, 4, DP_TENSOR_ZEROS},
    [DP_LAYER_PROJ_W] = {"mlp.c_proj.weight", 4, 1, DP_TENSOR_RESIDUAL},
    [DP_LAYER_PROJ_B] = {"mlp.c_proj.bias", 0, 1, DP_TENSOR_ZEROS},
};

static dp_status check_range(const char *name, uint32_t value, uint32_t least, uint32_t most,
                             dp_why *why)
{
    if (value < least || value > most) {
        return dp_why_set(why, DP_BADARG, "model.%s is %u; it must lie between %u and %u", name,
                          (unsigned)value, (unsigned)least, (unsigned)most);
    }
    return DP_OK;
}

dp_status dp_model_config_check(const dp_model_config *config, dp_why *why)
{
    DP_TRY(check_range("layers", config->layers, 1, DP_MODEL_LAYERS_MAX, why));
    DP_TRY(check_range("width", config->width, 1, DP_MODEL_WIDTH_MAX, why));
    DP_TRY(check_range("heads", config->heads, 1, DP_MODEL_HEADS_MAX, why));
    DP_TRY(check_range("context", config->context, 1, DP_MODEL_CONTEXT_MAX, why));
    DP_TRY(check_range("vocab", config->vocab, 2, DP_MODEL_VOCAB_MAX, why));
    if (config->width % config->heads != 0) {
        return dp_why_set(
            why, DP_BADARG,
            "model.width %u is not a multiple of model.heads %u; every head needs the "
            "same width",
            (unsigned)config->width, (unsigned)config->heads);
    }
    if (config->width / config->heads > DP_MODEL_HEAD_WIDTH_MAX) {
        return dp_why_set(why, DP_BADARG,
                          "each of %u heads would be %u wide; the most is %d, so use more heads",
                          (unsigned)config->heads, (unsigned)(config->width / config->heads),
                          (int)DP_MODEL_HEAD_WIDTH_MAX);
    }
    const size_t c = config->width;
    const size_t elements =
        config->layers * (12 * c * c + 13 * c) + (config->vocab + config->context + 2) * c;
    if (elements > DP_MODEL_ELEMENTS_MAX) {
        return dp_why_set(why, DP_BADARG, "the model would have %zu parameters; the most is %zu",
                          elements, DP_MODEL_ELEMENTS_MAX);
    }
    return DP_OK;
}

/* Appends a tensor at the end of the arena. columns is 0 for a vector. Its name is set by the caller. */
static dp_tensor *add_tensor(dp_model *model, size_t rows, size_t columns, dp_tensor_init init)
{
    dp_tensor *tensor = &model->tensors[model->n_tensors++];
    tensor->n_dims = columns == 0 ? 1 : 2;
    tensor->shape[0] = rows;
    tensor->shape[1] = columns == 0 ? 1 : columns;
    tensor->elements = tensor->shape[0] * tensor->shape[1];
    tensor->offset = model->n_elements;
    tensor->decay = columns != 0;
    tensor->init = init;
    const size_t padded = (tensor->elements + DP_ARENA_ALIGN - 1) / DP_ARENA_ALIGN * DP_ARENA_ALIGN;
    model->n_elements += padded;
    model->n_parameters += tensor->elements;
    return tensor;
}

static void name_tensor(dp_tensor *tensor, const char *name)
{
    const int length = snprintf(tensor->name, sizeof tensor->name, "transformer.%s", name);
    dp_assert(length > 0 && (size_t)length < sizeof tensor->name);
}

static void name_layer_tensor(dp_tensor *tensor, uint32_t layer, const char *name)
{
    const int length =
        snprintf(tensor->name, sizeof tensor->name, "transformer.h.%u.%s", (unsigned)layer, name);
    dp_assert(length > 0 && (size_t)length < sizeof tensor->name);
}

dp_status dp_model_open(dp_model *model, const dp_model_config *config, dp_why *why)
{
    DP_TRY(dp_model_config_check(config, why));
    const size_t n_tensors = 4 + (size_t)DP_LAYER_TENSORS * config->layers;
    dp_tensor *tensors = dp_alloc(n_tensors, sizeof *tensors);
    if (tensors == NULL) {
        return dp_why_set(why, DP_NOMEM, "no memory for a table of %zu tensors", n_tensors);
    }
    *model = (dp_model){.config = *config, .tensors = tensors};
    const size_t c = config->width;
    name_tensor(add_tensor(model, config->vocab, c, DP_TENSOR_NORMAL), "wte.weight");
    name_tensor(add_tensor(model, config->context, c, DP_TENSOR_NORMAL), "wpe.weight");
    for (uint32_t layer = 0; layer < config->layers; layer++) {
        for (size_t slot = 0; slot < DP_LAYER_TENSORS; slot++) {
            const struct layer_row *row = &layer_rows[slot];
            const size_t rows = row->in == 0 ? row->out * c : row->in * c;
            const size_t columns = row->in == 0 ? 0 : row->out * c;
            name_layer_tensor(add_tensor(model, rows, columns, row->init), layer, row->name);
        }
    }
    name_tensor(add_tensor(model, c, 0, DP_TENSOR_ONES), "ln_f.weight");
    name_tensor(add_tensor(model, c, 0, DP_TENSOR_ZEROS), "ln_f.bias");
    dp_assert(model->n_tensors == n_tensors);
    return DP_OK;
}

void dp_model_close(dp_model *model)
{
    dp_free(model->tensors);
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

size_t dp_model_layer_offset(const dp_model *model, size_t layer, dp_layer_slot slot)
{
    dp_assert(layer < model->config.layers && slot < DP_LAYER_TENSORS);
    return model->tensors[DP_SLOT_LAYERS + layer * DP_LAYER_TENSORS + slot].offset;
}

size_t dp_model_final_norm_offset(const dp_model *model, bool bias)
{
    return model->tensors[model->n_tensors - (bias ? 1 : 2)].offset;
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

/* Mean 0, standard deviation sqrt(1 - 2^-20): twelve fields of variance (2^20 - 1)/12, over 1024. Exact in fp32. */
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
        const float deviation = tensor->init == DP_TENSOR_RESIDUAL ? residual : 0.02F;
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
            for (size_t i = tensor->offset; i < end; i++) {
                params[i] = normal_of(key, i) * deviation;
            }
            break;
        }
    }
}

double dp_model_flops(const dp_model *model, size_t length)
{
    const double c = model->config.width;
    const double layers = model->config.layers;
    return 6.0 * (layers * 12.0 * c * c + (double)model->config.vocab * c) +
           6.0 * layers * (double)length * c;
}
