#include "compute/model/adapter.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/run/adapt.h"

enum { TENSORS_PER_WEIGHT = 2 };

/* "model.layers.0.self_attn.q_proj.weight" is of the word "q_proj". */
static bool is_named(const char *name, const char *word)
{
    static const char tail[] = ".weight";
    const size_t size = strlen(name);
    const size_t end = strlen(word) + sizeof tail - 1;
    return size > end && name[size - end - 1] == '.' &&
           strncmp(name + size - end, word, strlen(word)) == 0 &&
           strcmp(name + size - (sizeof tail - 1), tail) == 0;
}

static bool is_target(uint32_t targets, const char *name)
{
    size_t count = 0;
    const dp_adapt_word *const words = dp_adapt_words(&count);
    for (size_t i = 0; i < count; i++) {
        if ((targets & words[i].bits) == words[i].bits && is_named(name, words[i].word)) {
            return true;
        }
    }
    return false;
}

/* The adapted parts of a weight of the base, with their names; returns how many. */
static size_t adapted(const dp_model *model, const dp_tensor *weight,
                      dp_tensor_part out[DP_MODEL_PARTS_MAX])
{
    dp_tensor_part parts[DP_MODEL_PARTS_MAX];
    size_t n = 0;
    if (weight->n_dims != 2 || weight->slot >= DP_LAYER_SLOTS) {
        return 0;
    }
    const size_t count = dp_model_parts(model->base, weight, parts);
    for (size_t i = 0; i < count; i++) {
        if (is_target(model->config.adapt_targets, parts[i].name)) {
            out[n++] = parts[i];
        }
    }
    return n;
}

static void add(dp_model *model, const dp_tensor *weight, const char *end, size_t rows,
                size_t columns)
{
    dp_tensor *const tensor = &model->tensors[model->n_tensors++];
    const int size =
        snprintf(tensor->name, sizeof tensor->name, "%.*s%s", (int)strlen(weight->name) - 6,
                 weight->name, end); /* without "weight" */
    dp_assert(size > 0 && (size_t)size < sizeof tensor->name);
    tensor->n_dims = 2;
    tensor->shape[0] = rows;
    tensor->shape[1] = columns;
    tensor->elements = rows * columns;
    tensor->offset = model->n_elements;
    tensor->decay = true;
    tensor->slot = weight->slot;
    tensor->init = end[5] == 'A' ? DP_TENSOR_ADAPTER : DP_TENSOR_ZEROS;
    const size_t padded = (tensor->elements + DP_ARENA_ALIGN - 1) / DP_ARENA_ALIGN * DP_ARENA_ALIGN;
    model->n_elements += padded;
    model->n_parameters += tensor->elements;
}

static void add_adapter(dp_model *model, const dp_tensor *weight)
{
    const size_t rank = model->config.adapt_rank;
    dp_tensor_part parts[DP_MODEL_PARTS_MAX];
    const size_t n = adapted(model, weight, parts);
    size_t columns = 0;
    for (size_t i = 0; i < n; i++) {
        columns += parts[i].columns;
    }
    if (n == 0) {
        return;
    }
    if (model->at[weight->slot] < 0) {
        model->at[weight->slot] = (int32_t)model->n_tensors;
    }
    add(model, weight, "lora_A.weight", weight->shape[0], n * rank);
    add(model, weight, "lora_B.weight", rank, columns);
}

dp_status dp_model_open_adapters(dp_model *model, const dp_model_config *config, dp_why *why)
{
    const dp_model_config base = dp_model_config_base(config);
    dp_model made = {.config = dp_model_config_resolve(config)};
    const size_t tensors_max = (size_t)TENSORS_PER_WEIGHT * DP_LAYER_SLOTS * config->layers;
    made.base = dp_alloc(1, sizeof *made.base);
    made.tensors = dp_alloc(tensors_max, sizeof *made.tensors);
    const dp_status status =
        made.base == NULL || made.tensors == NULL
            ? dp_why_set(why, DP_NOMEM, "no memory for a table of %zu tensors", tensors_max)
            : dp_model_open_whole(made.base, &base, why);
    if (status != DP_OK) {
        dp_free(made.tensors);
        dp_free(made.base);
        return status;
    }
    memset(made.at, 0xff, sizeof made.at);
    dp_assert(config->layers > 0);
    for (size_t layer = 0; layer < config->layers; layer++) {
        for (int slot = 0; slot < DP_LAYER_SLOTS; slot++) {
            const dp_tensor *const weight = dp_model_tensor(made.base, layer, (dp_slot)slot);
            if (weight != NULL) {
                add_adapter(&made, weight);
            }
        }
    }
    made.tensors_per_layer = (int32_t)(made.n_tensors / config->layers);
    dp_assert(made.n_parameters == dp_model_config_parameters(config));
    *model = made;
    return DP_OK;
}

bool dp_model_adapter(const dp_model *model, size_t layer, dp_slot slot, dp_adapter *out)
{
    dp_tensor_part parts[DP_MODEL_PARTS_MAX];
    if (model->base == NULL || model->at[slot] < 0) {
        return false;
    }
    const dp_tensor *const weight = dp_model_tensor(model->base, layer, slot);
    const size_t n = adapted(model, weight, parts);
    *out = (dp_adapter){.n_parts = n};
    out->a = &model->tensors[(size_t)model->at[slot] + layer * (size_t)model->tensors_per_layer];
    out->b = out->a + 1;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        out->parts[i] = (dp_adapter_part){parts[i].first, parts[i].columns, at};
        at += parts[i].columns;
    }
    dp_assert(at == out->b->shape[1] && n * model->config.adapt_rank == out->a->shape[1]);
    return true;
}

size_t dp_adapter_parts(const dp_model *model, const dp_tensor *tensor,
                        dp_tensor_part parts[DP_MODEL_PARTS_MAX])
{
    const size_t index = (size_t)(tensor - model->tensors);
    const size_t layer = index / (size_t)model->tensors_per_layer;
    const size_t rank = model->config.adapt_rank;
    const bool is_a = tensor->init == DP_TENSOR_ADAPTER;
    const size_t n = adapted(model, dp_model_tensor(model->base, layer, tensor->slot), parts);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        char name[DP_TENSOR_NAME_MAX];
        const int size = snprintf(name, sizeof name, "%.*slora_%c.weight",
                                  (int)strlen(parts[i].name) - 6, parts[i].name, is_a ? 'A' : 'B');
        dp_assert(size > 0 && (size_t)size < sizeof name);
        memcpy(parts[i].name, name, sizeof name);
        parts[i].first = at;
        parts[i].columns = is_a ? rank : parts[i].columns;
        parts[i].transposed = true;
        at += parts[i].columns;
    }
    return n;
}

float dp_adapter_scale(const dp_model *model)
{
    return (float)model->config.adapt_alpha_milli / (1000.0F * (float)model->config.adapt_rank);
}

static void merge_part(const dp_model *model, const dp_adapter *adapter, size_t index,
                       const float *params, float *weight, size_t ld)
{
    const size_t rank = model->config.adapt_rank;
    const double scale = (double)dp_adapter_scale(model);
    const size_t inputs = adapter->a->shape[0];
    const dp_adapter_part *const part = &adapter->parts[index];
    const float *const a = params + adapter->a->offset + index * rank;
    const float *const b = params + adapter->b->offset + part->at;
    for (size_t i = 0; i < inputs; i++) {
        float *const row = weight + i * ld + part->first;
        for (size_t j = 0; j < part->columns; j++) {
            double sum = 0.0;
            for (size_t k = 0; k < rank; k++) {
                sum += (double)a[i * adapter->a->shape[1] + k] *
                       (double)b[k * adapter->b->shape[1] + j];
            }
            row[j] = (float)((double)row[j] + scale * sum);
        }
    }
}

void dp_adapter_merge(const dp_model *model, const float *params, float *theta)
{
    for (size_t layer = 0; layer < model->config.layers; layer++) {
        for (int slot = 0; slot < DP_LAYER_SLOTS; slot++) {
            dp_adapter adapter;
            if (!dp_model_adapter(model, layer, (dp_slot)slot, &adapter)) {
                continue;
            }
            const dp_tensor *const weight = dp_model_tensor(model->base, layer, (dp_slot)slot);
            for (size_t i = 0; i < adapter.n_parts; i++) {
                merge_part(model, &adapter, i, params, theta + weight->offset, weight->shape[1]);
            }
        }
    }
}
