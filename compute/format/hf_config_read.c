#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compute/format/hf_config.h"

/* A number of the model under its key in config.json. */
typedef struct number_row {
    const char *key;
    size_t offset; /* in dp_model_config, of a uint32_t */
    bool needed;
    uint32_t default_value; /* of transformers, if the key is absent */
} number_row;

#define FIELD(name) offsetof(dp_model_config, name)

static const number_row gpt2_numbers[] = {
    {"n_layer", FIELD(layers), true, 0},   {"n_embd", FIELD(width), true, 0},
    {"n_head", FIELD(heads), true, 0},     {"n_positions", FIELD(context), true, 0},
    {"vocab_size", FIELD(vocab), true, 0}, {"n_inner", FIELD(hidden), false, 0},
};

static const number_row llama_numbers[] = {
    {"num_hidden_layers", FIELD(layers), true, 0},
    {"hidden_size", FIELD(width), true, 0},
    {"num_attention_heads", FIELD(heads), true, 0},
    {"num_key_value_heads", FIELD(kv_heads), false, 0},
    {"head_dim", FIELD(head_width), false, 0},
    {"intermediate_size", FIELD(hidden), true, 0},
    {"max_position_embeddings", FIELD(context), true, 0},
    {"vocab_size", FIELD(vocab), true, 0},
};

/* A key whose value must be the one that the engine computes with; absent or null: transformers'
 * own is this one. */
typedef struct fixed_row {
    const char *key;
    const char *value; /* as JSON has it, without quotes */
} fixed_row;

static const fixed_row gpt2_fixed[] = {
    {"scale_attn_weights", "true"},
    {"scale_attn_by_inverse_layer_idx", "false"},
    {"add_cross_attention", "false"},
    {"quantization_config", "null"},
};

static const fixed_row llama_fixed[] = {
    {"hidden_act", "silu"},          {"attention_bias", "false"},     {"mlp_bias", "false"},
    {"pretraining_tp", "1"},         {"use_sliding_window", "false"}, {"rope_scaling", "null"},
    {"quantization_config", "null"},
};

static const json_t *given(const json_t *root, const char *key)
{
    const json_t *const value = json_object_get(root, key);
    return json_is_null(value) ? NULL : value;
}

static dp_status read_numbers(const json_t *root, const number_row *rows, size_t n,
                              dp_model_config *config, dp_why *why)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *const value = given(root, rows[i].key);
        uint32_t number = rows[i].default_value;
        if (value == NULL && rows[i].needed) {
            return dp_why_set(why, DP_BADMSG, "config.json has no %s", rows[i].key);
        }
        if (value != NULL) {
            const json_int_t integer = json_integer_value(value);
            if (!json_is_integer(value) || integer < 1 || integer > UINT32_MAX) {
                return dp_why_set(why, DP_BADMSG, "config.json: %s is no number above 0",
                                  rows[i].key);
            }
            number = (uint32_t)integer;
        }
        memcpy((uint8_t *)config + rows[i].offset, &number, sizeof number);
    }
    return DP_OK;
}

static const char *text_of(const json_t *value, char *room, size_t size)
{
    if (json_is_string(value)) {
        return json_string_value(value);
    }
    if (json_is_integer(value)) {
        snprintf(room, size, "%lld", (long long)json_integer_value(value));
        return room;
    }
    return json_is_true(value) ? "true" : json_is_false(value) ? "false" : "another kind of value";
}

static dp_status check_fixed(const json_t *root, const fixed_row *rows, size_t n, dp_why *why)
{
    for (size_t i = 0; i < n; i++) {
        char room[32];
        const json_t *const value = given(root, rows[i].key);
        const char *const text = value == NULL ? "" : text_of(value, room, sizeof room);
        if (value != NULL && strcmp(text, rows[i].value) != 0) {
            return dp_why_set(why, DP_UNSUPPORTED,
                              "config.json: %s is %.60s; only %s is computed here", rows[i].key,
                              text, rows[i].value);
        }
    }
    return DP_OK;
}

/* value * scale as an integer that stands for it exactly enough to be written back. */
static dp_status read_real(const json_t *value, const char *key, double standard, double scale,
                           uint32_t *out, dp_why *why)
{
    if (value != NULL && !json_is_number(value)) {
        return dp_why_set(why, DP_BADMSG, "config.json: %s is no number", key);
    }
    const double number = value == NULL ? standard : json_number_value(value);
    const double scaled = nearbyint(number * scale);
    if (!(scaled >= 1) || scaled > UINT32_MAX || fabs(scaled / scale - number) > 1e-6 * number) {
        return dp_why_set(why, DP_UNSUPPORTED, "config.json: %s %g has no place in a manifest", key,
                          number);
    }
    *out = (uint32_t)scaled;
    return DP_OK;
}

static dp_status read_head(const json_t *root, bool standard, dp_model_config *config, dp_why *why)
{
    const json_t *const tied = given(root, "tie_word_embeddings");
    if (tied != NULL && !json_is_boolean(tied)) {
        return dp_why_set(why, DP_BADMSG, "config.json: tie_word_embeddings is not true or false");
    }
    config->head = (tied == NULL ? standard : json_is_true(tied)) ? DP_HEAD_TIED : DP_HEAD_UNTIED;
    return DP_OK;
}

static dp_status read_gpt2(const json_t *root, dp_model_config *config, dp_why *why)
{
    config->arch = DP_ARCH_GPT2;
    DP_TRY(read_numbers(root, gpt2_numbers, sizeof gpt2_numbers / sizeof gpt2_numbers[0], config,
                        why));
    DP_TRY(check_fixed(root, gpt2_fixed, sizeof gpt2_fixed / sizeof gpt2_fixed[0], why));
    const json_t *const named = given(root, "activation_function");
    const char *const activation = named == NULL ? "gelu_new" : json_string_value(named);
    if (activation != NULL && strcmp(activation, "relu2") == 0) {
        config->activation = DP_ACTIVATION_RELU2;
    } else if (activation == NULL || (strcmp(activation, "gelu_new") != 0 &&
                                      strcmp(activation, "gelu_pytorch_tanh") != 0)) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "config.json: activation_function is %.60s; gelu_new and relu2 are "
                          "computed here",
                          activation == NULL ? "no text" : activation);
    }
    DP_TRY(read_real(given(root, "layer_norm_epsilon"), "layer_norm_epsilon", 1e-5, 1e9,
                     &config->norm_eps_nano, why));
    return read_head(root, true, config, why);
}

/* transformers 5 has rope_parameters: {rope_type, rope_theta} in place of rope_theta and
 * rope_scaling. */
static dp_status read_rope(const json_t *root, dp_model_config *config, dp_why *why)
{
    const json_t *const parameters = given(root, "rope_parameters");
    const json_t *theta = given(root, "rope_theta");
    if (parameters != NULL) {
        static const fixed_row fixed[] = {{"rope_type", "default"}};
        DP_TRY(check_fixed(parameters, fixed, 1, why));
        theta = theta == NULL ? given(parameters, "rope_theta") : theta;
    }
    return read_real(theta, "rope_theta", 10000, 1, &config->rope_theta, why);
}

static dp_status read_llama(const json_t *root, bool qwen, dp_model_config *config, dp_why *why)
{
    config->arch = DP_ARCH_LLAMA;
    config->qk_norm = qwen ? DP_ON : DP_OFF;
    DP_TRY(read_numbers(root, llama_numbers, sizeof llama_numbers / sizeof llama_numbers[0], config,
                        why));
    if (qwen && (config->head_width == 0 || config->kv_heads == 0)) {
        return dp_why_set(why, DP_BADMSG, "config.json has no %s",
                          config->head_width == 0 ? "head_dim" : "num_key_value_heads");
    }
    DP_TRY(check_fixed(root, llama_fixed, sizeof llama_fixed / sizeof llama_fixed[0], why));
    DP_TRY(read_rope(root, config, why));
    DP_TRY(read_real(given(root, "rms_norm_eps"), "rms_norm_eps", 1e-6, 1e9, &config->norm_eps_nano,
                     why));
    return read_head(root, false, config, why);
}

static dp_status read_root(const json_t *root, dp_model_config *config, dp_why *why)
{
    const char *const type = json_string_value(json_object_get(root, "model_type"));
    if (type == NULL) {
        return dp_why_set(why, DP_BADMSG, "config.json has no model_type");
    }
    if (strcmp(type, "gpt2") == 0) {
        return read_gpt2(root, config, why);
    }
    const bool qwen = strcmp(type, "qwen3") == 0;
    if (!qwen && strcmp(type, "llama") != 0) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "config.json: model_type is %.60s; gpt2, llama and qwen3 are read", type);
    }
    return read_llama(root, qwen, config, why);
}

dp_status dp_hf_config_read(dp_view json, dp_model_config *config, dp_why *why)
{
    if (json.size > DP_HF_CONFIG_BYTES_MAX) {
        return dp_why_set(why, DP_TOOBIG, "config.json is larger than 1 MiB");
    }
    json_error_t error;
    json_t *const root =
        json_loadb((const char *)json.data, json.size, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        return dp_why_set(why, DP_BADMSG, "config.json: %.100s at line %d", error.text, error.line);
    }
    dp_model_config read = {0};
    dp_status status = read_root(root, &read, why);
    json_decref(root);
    if (status == DP_OK) {
        read = dp_model_config_resolve(&read);
        status = dp_model_config_check(&read, why);
    }
    if (status == DP_OK) {
        *config = read;
    }
    return status;
}
