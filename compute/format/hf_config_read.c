#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/run/model_family.h"
#include "compute/format/hf_config.h"
#include "compute/format/hf_family.h"

static const json_t *given(const json_t *root, const char *key)
{
    const json_t *const value = json_object_get(root, key);
    return json_is_null(value) ? NULL : value;
}

static dp_status read_numbers(const json_t *root, const dp_hf_number *rows, size_t n,
                              dp_model_config *config, dp_why *why)
{
    for (size_t i = 0; i < n && rows[i].key != NULL; i++) {
        const json_t *const value = given(root, rows[i].key);
        uint32_t number = 0;
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

static dp_status check_fixed(const json_t *root, const dp_hf_fixed *rows, size_t n, dp_why *why)
{
    for (size_t i = 0; i < n && rows[i].key != NULL; i++) {
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

/* GPT-2 alone has more than one. */
static dp_status read_activation(const json_t *root, dp_model_config *config, dp_why *why)
{
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
    return DP_OK;
}

/* A number of an object that must be there, in 1e-3. */
static dp_status read_milli(const json_t *object, const char *key, uint32_t *out, dp_why *why)
{
    const json_t *const value = given(object, key);
    return value == NULL ? dp_why_set(why, DP_BADMSG, "config.json has no %s of rope_type", key)
                         : read_real(value, key, 0.0, 1e3, out, why);
}

static dp_status read_scaling(const json_t *object, dp_model_config *config, dp_why *why)
{
    const json_t *const named = given(object, "rope_type");
    const json_t *const type = named != NULL ? named : given(object, "type");
    const char *const text = type == NULL ? "default" : json_string_value(type);
    const uint32_t settings = dp_model_family_of(config->arch)->settings;
    const bool scales = (settings & DP_TAKES_ROPE_SCALING) != 0;
    if (text != NULL && strcmp(text, "default") == 0) {
        return DP_OK;
    }
    if (text != NULL && scales && strcmp(text, "linear") == 0) {
        config->rope_scaling = DP_ROPE_LINEAR;
        return read_milli(object, "factor", &config->rope_factor_milli, why);
    }
    if (text == NULL || !scales || strcmp(text, "llama3") != 0) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "config.json: rope_type is %.60s; only default%s is computed here",
                          text == NULL ? "no text" : text, scales ? ", linear or llama3" : "");
    }
    config->rope_scaling = DP_ROPE_LLAMA3;
    DP_TRY(read_milli(object, "factor", &config->rope_factor_milli, why));
    DP_TRY(read_milli(object, "low_freq_factor", &config->rope_low_milli, why));
    DP_TRY(read_milli(object, "high_freq_factor", &config->rope_high_milli, why));
    static const dp_hf_number context[] = {
        {"original_max_position_embeddings", offsetof(dp_model_config, rope_context), true}};
    return read_numbers(object, context, 1, config, why);
}

/* The share of a head's channels that turn, rounded down as transformers do. */
static dp_status read_share(const json_t *root, const json_t *parameters,
                            const dp_hf_family *family, dp_model_config *config, dp_why *why)
{
    const char *const key = family->share_key != NULL ? family->share_key : "partial_rotary_factor";
    const bool takes = (dp_model_family_of(config->arch)->settings & DP_TAKES_ROPE_WIDTH) != 0;
    const json_t *const there = given(root, key);
    const json_t *const value = there != NULL ? there : given(parameters, "partial_rotary_factor");
    const uint32_t head = dp_model_config_resolve(config).head_width;
    const double own = family->share_milli != 0 ? (double)family->share_milli * 1e-3 : 1.0;
    const double share = value == NULL ? own : json_number_value(value);
    const double turned = floor(share * (double)head);
    if (!(share > 0.0 && share <= 1.0) || turned < 2.0 || (!takes && share != 1.0)) {
        return dp_why_set(why, DP_UNSUPPORTED, "config.json: %s %g is not computed here: %s", key,
                          share, takes ? "it must be above 0, up to 1" : "only 1 is");
    }
    config->rope_width = turned < (double)head ? (uint32_t)turned : 0;
    return DP_OK;
}

/* transformers 5 has rope_parameters: {rope_type, rope_theta, ...} in place of rope_theta and
 * rope_scaling. */
static dp_status read_rope(const json_t *root, const dp_hf_family *family, dp_model_config *config,
                           dp_why *why)
{
    const json_t *parameters = given(root, "rope_parameters");
    const json_t *const scaling = given(root, "rope_scaling");
    const json_t *theta = given(root, family->theta_key != NULL ? family->theta_key : "rope_theta");
    if (family->local_theta != 0) { /* Two kinds of layers, each with its own parameters. */
        const json_t *const there = given(given(parameters, "sliding_attention"), "rope_theta");
        const json_t *const local = given(root, "rope_local_base_freq");
        DP_TRY(read_real(local != NULL ? local : there, "rope_local_base_freq", family->local_theta,
                         1, &config->rope_local_theta, why));
        parameters = given(parameters, "full_attention");
    }
    theta = theta == NULL ? given(parameters, "rope_theta") : theta;
    DP_TRY(read_real(theta, "rope_theta", family->rope_theta, 1, &config->rope_theta, why));
    DP_TRY(read_share(root, parameters, family, config, why));
    return read_scaling(scaling != NULL ? scaling : parameters, config, why);
}

/* The period of a list of layers: each n-th is a `special` one, the others not; 0: none is. */
static dp_status period_of(const bool *special, uint32_t layers, const char *key, uint32_t *out,
                           dp_why *why)
{
    uint32_t first = 0;
    while (first < layers && !special[first]) {
        first++;
    }
    const uint32_t period = first < layers ? first + 1 : 0;
    for (uint32_t i = 0; i < layers; i++) {
        if (special[i] != (period != 0 && (i + 1) % period == 0)) {
            return dp_why_set(why, DP_UNSUPPORTED,
                              "config.json: %s has no period; only each n-th layer may differ here",
                              key);
        }
    }
    *out = period;
    return DP_OK;
}

/* A list with an entry for each layer. */
static dp_status check_layers(const json_t *list, const dp_model_config *config, const char *key,
                              dp_why *why)
{
    if (!json_is_array(list) || json_array_size(list) != config->layers ||
        config->layers > DP_MODEL_LAYERS_MAX) {
        return dp_why_set(why, DP_BADMSG, "config.json: %s is no list of all layers", key);
    }
    return DP_OK;
}

/* Layers without rotary positions; without a list each fourth. */
static dp_status read_rope_layers(const json_t *root, dp_model_config *config, dp_why *why)
{
    const json_t *const list = given(root, "no_rope_layers");
    bool off[DP_MODEL_LAYERS_MAX];
    if (list == NULL) {
        static const dp_hf_number interval[] = {
            {"no_rope_layer_interval", offsetof(dp_model_config, rope_off_every), false}};
        DP_TRY(read_numbers(root, interval, 1, config, why));
        config->rope_off_every = config->rope_off_every == 0 ? 4 : config->rope_off_every;
        config->rope_off_every =
            config->rope_off_every > config->layers ? 0 : config->rope_off_every;
        return DP_OK;
    }
    DP_TRY(check_layers(list, config, "no_rope_layers", why));
    for (size_t i = 0; i < config->layers; i++) {
        off[i] = json_integer_value(json_array_get(list, i)) == 0;
    }
    return period_of(off, config->layers, "no_rope_layers", &config->rope_off_every, why);
}

/* A soft cap; null is none, and absent the standard. */
static dp_status read_cap(const json_t *root, const char *key, uint32_t standard, uint32_t *out,
                          dp_why *why)
{
    const json_t *const value = json_object_get(root, key);
    if (value == NULL || json_is_null(value)) {
        *out = value == NULL ? standard : 0;
        return DP_OK;
    }
    return read_real(value, key, 0.0, 1e3, out, why);
}

/* Layers without a window, from their list or by the family's period. */
static dp_status read_full_layers(const json_t *root, const dp_hf_family *family,
                                  dp_model_config *config, dp_why *why)
{
    static const dp_hf_number pattern[] = {
        {"sliding_window_pattern", offsetof(dp_model_config, full_every), false}};
    const json_t *const list = given(root, "layer_types");
    bool full[DP_MODEL_LAYERS_MAX];
    if (list == NULL) {
        DP_TRY(read_numbers(root, pattern, 1, config, why));
        config->full_every = config->full_every == 0 ? family->full_every : config->full_every;
        config->full_every = config->full_every > config->layers ? 0 : config->full_every;
        return DP_OK;
    }
    DP_TRY(check_layers(list, config, "layer_types", why));
    for (size_t i = 0; i < config->layers; i++) {
        const char *const type = json_string_value(json_array_get(list, i));
        full[i] = type != NULL && strcmp(type, "full_attention") == 0;
        if (!full[i] && (type == NULL || strcmp(type, "sliding_attention") != 0)) {
            return dp_why_set(why, DP_UNSUPPORTED,
                              "config.json: layer_types has %.60s; full_attention and "
                              "sliding_attention are computed here",
                              type == NULL ? "no text" : type);
        }
    }
    return period_of(full, config->layers, "layer_types", &config->full_every, why);
}

static dp_status read_windows(const json_t *root, const dp_hf_family *family,
                              dp_model_config *config, dp_why *why)
{
    static const dp_hf_number window[] = {
        {"sliding_window", offsetof(dp_model_config, window), false}};
    const bool absent = json_object_get(root, "sliding_window") == NULL;
    DP_TRY(read_numbers(root, window, 1, config, why));
    config->window = absent ? family->window : config->window;
    if (family->full_every != 0) {
        DP_TRY(read_full_layers(root, family, config, why));
    }
    if (config->window == 0 || config->full_every == 1) {
        config->window = 0;
        config->full_every = 0;
        config->rope_local_theta = 0;
    }
    return DP_OK;
}

static dp_status read_rotary(const json_t *root, const dp_hf_family *family,
                             dp_model_config *config, dp_why *why)
{
    const uint32_t settings = dp_model_family_of(config->arch)->settings;
    DP_TRY(read_rope(root, family, config, why));
    if ((settings & DP_TAKES_WINDOW) != 0) {
        DP_TRY(read_windows(root, family, config, why));
    }
    if ((settings & DP_TAKES_SCORES_SOFTCAP) != 0) {
        DP_TRY(read_cap(root, "attn_logit_softcapping", family->scores_softcap_milli,
                        &config->scores_softcap_milli, why));
        DP_TRY(read_cap(root, "final_logit_softcapping", family->softcap_milli,
                        &config->softcap_milli, why));
    }
    return (settings & DP_TAKES_ROPE_OFF) != 0 ? read_rope_layers(root, config, why) : DP_OK;
}

static dp_status read_family(const json_t *root, const dp_hf_family *family,
                             dp_model_config *config, dp_why *why)
{
    config->arch = family->arch;
    config->qk_norm = family->qk_norm;
    DP_TRY(read_numbers(root, family->numbers, DP_HF_NUMBERS_MAX, config, why));
    DP_TRY(check_fixed(root, family->fixed, DP_HF_FIXED_MAX, why));
    DP_TRY(family->rope_theta == 0 ? read_activation(root, config, why)
                                   : read_rotary(root, family, config, why));
    DP_TRY(read_real(given(root, family->eps_key), family->eps_key, (double)family->eps_nano / 1e9,
                     1e9, &config->norm_eps_nano, why));
    if (config->rope_theta != 0 && config->context > DP_MODEL_CONTEXT_MAX) {
        config->context = DP_MODEL_CONTEXT_MAX; /* Angles need no table. */
    }
    return read_head(root, family->tied, config, why);
}

static dp_status unknown_type(const char *type, dp_why *why)
{
    char types[256];
    const char *const near = dp_hf_family_near(type);
    dp_hf_family_types(types, sizeof types);
    return near == NULL
               ? dp_why_set(why, DP_UNSUPPORTED, "config.json: model_type is %.60s; %s are read",
                            type, types)
               : dp_why_set(why, DP_UNSUPPORTED,
                            "config.json: model_type is %.60s, which is not computed here; the "
                            "nearest that is: %s",
                            type, near);
}

static dp_status read_root(const json_t *root, dp_model_config *config, dp_why *why)
{
    const char *const type = json_string_value(json_object_get(root, "model_type"));
    if (type == NULL) {
        return dp_why_set(why, DP_BADMSG, "config.json has no model_type");
    }
    const dp_hf_family *const family = dp_hf_family_of_type(type);
    return family == NULL ? unknown_type(type, why) : read_family(root, family, config, why);
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
