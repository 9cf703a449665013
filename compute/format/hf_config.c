#include "compute/format/hf_config.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/run/model_family.h"
#include "compute/format/hf_family.h"

/* Takes value. */
static dp_status put(json_t *json, const char *key, json_t *value)
{
    return json_object_set_new(json, key, value) == 0 ? DP_OK : DP_NOMEM;
}

static json_t *fixed_value(const char *value)
{
    const bool is_true = strcmp(value, "true") == 0;
    return is_true || strcmp(value, "false") == 0 ? json_boolean(is_true) : json_string(value);
}

static dp_status put_table(json_t *json, const dp_hf_family *family, const dp_model_config *m)
{
    DP_TRY(put(json, "architectures", json_pack("[s]", family->class_name)));
    DP_TRY(put(json, "model_type", json_string(family->type)));
    for (size_t i = 0; i < DP_HF_FIXED_MAX && family->fixed[i].key != NULL; i++) {
        if (family->fixed[i].written) {
            DP_TRY(put(json, family->fixed[i].key, fixed_value(family->fixed[i].value)));
        }
    }
    for (size_t i = 0; i < DP_HF_NUMBERS_MAX && family->numbers[i].key != NULL; i++) {
        uint32_t value;
        memcpy(&value, (const char *)m + family->numbers[i].offset, sizeof value);
        DP_TRY(put(json, family->numbers[i].key, json_integer(value)));
    }
    return put(json, family->eps_key, json_real((double)m->norm_eps_nano / 1e9));
}

/* GPT-2 alone has more than one activation, and a dropout that is not 0 by itself. */
static dp_status put_gpt2(json_t *json, const dp_model_config *m)
{
    static const char *const dropouts[] = {"attn_pdrop", "embd_pdrop", "resid_pdrop"};
    const bool relu2 = m->activation == DP_ACTIVATION_RELU2;
    for (size_t i = 0; i < sizeof dropouts / sizeof dropouts[0]; i++) {
        DP_TRY(put(json, dropouts[i], json_real(0.0)));
    }
    DP_TRY(put(json, "n_ctx", json_integer(m->context)));
    return put(json, "activation_function", json_string(relu2 ? "relu2" : "gelu_new"));
}

/* As transformers 4 has it, which 5 reads too. */
static dp_status put_scaling(json_t *json, const dp_model_config *m)
{
    const double factor = (double)m->rope_factor_milli * 1e-3;
    switch (m->rope_scaling) {
    case DP_ROPE_PLAIN:
        return DP_OK;
    case DP_ROPE_LINEAR:
        return put(json, "rope_scaling",
                   json_pack("{s:s, s:f}", "rope_type", "linear", "factor", factor));
    case DP_ROPE_LLAMA3:
        break;
    }
    return put(json, "rope_scaling",
               json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor", factor,
                         "low_freq_factor", (double)m->rope_low_milli * 1e-3, "high_freq_factor",
                         (double)m->rope_high_milli * 1e-3, "original_max_position_embeddings",
                         (json_int_t)m->rope_context));
}

/* One entry for each layer: 1 if it turns q and k. */
static dp_status put_rope_layers(json_t *json, const dp_model_config *m)
{
    json_t *const list = json_array();
    dp_status status = list == NULL ? DP_NOMEM : DP_OK;
    for (size_t i = 0; i < m->layers && status == DP_OK; i++) {
        const bool turns = dp_model_layer_traits(m, i).rope != DP_ROPE_NONE;
        status = json_array_append_new(list, json_integer(turns)) == 0 ? DP_OK : DP_NOMEM;
    }
    if (status != DP_OK) {
        json_decref(list);
        return status;
    }
    return put(json, "no_rope_layers", list);
}

static dp_status put_full_layers(json_t *json, const dp_model_config *m)
{
    json_t *const list = json_array();
    dp_status status = list == NULL ? DP_NOMEM : DP_OK;
    for (size_t i = 0; i < m->layers && status == DP_OK; i++) {
        const bool full = m->window == 0 || (m->full_every != 0 && (i + 1) % m->full_every == 0);
        const char *const type = full ? "full_attention" : "sliding_attention";
        status = json_array_append_new(list, json_string(type)) == 0 ? DP_OK : DP_NOMEM;
    }
    if (status != DP_OK) {
        json_decref(list);
        return status;
    }
    return put(json, "layer_types", list);
}

static dp_status put_cap(json_t *json, const char *key, uint32_t milli)
{
    return put(json, key, milli == 0 ? json_null() : json_real((double)milli * 1e-3));
}

/* The share of a head's channels that turn, which transformers multiply and round down: what has no
 * short decimal form is a little more. */
static double share_of(const dp_model_config *m)
{
    const uint32_t turned = m->rope_width != 0 ? m->rope_width : m->head_width;
    const double head = (double)m->head_width;
    const double share = (double)turned / head;
    const bool is_short = turned * (uint64_t)1000 % m->head_width == 0;
    return is_short && floor(share * head) == (double)turned ? share
                                                             : ((double)turned + 0.25) / head;
}

static dp_status put_rotary(json_t *json, const dp_model_config *m)
{
    const uint32_t settings = dp_model_family_of(m->arch)->settings;
    const dp_hf_family *const family = dp_hf_family_of(m);
    const char *const theta = family->theta_key != NULL ? family->theta_key : "rope_theta";
    DP_TRY(put(json, theta, json_real((double)m->rope_theta)));
    DP_TRY(put_scaling(json, m));
    if ((settings & DP_TAKES_ROPE_WIDTH) != 0) {
        const char *const key =
            family->share_key != NULL ? family->share_key : "partial_rotary_factor";
        DP_TRY(put(json, key, json_real(share_of(m))));
    }
    if ((settings & DP_TAKES_ROPE_OFF) != 0) {
        DP_TRY(put_rope_layers(json, m));
    }
    if ((settings & DP_TAKES_WINDOW) != 0) {
        DP_TRY(put(json, "sliding_window", m->window > 0 ? json_integer(m->window) : json_null()));
    }
    if ((settings & DP_TAKES_FULL_LAYERS) != 0) {
        DP_TRY(put_full_layers(json, m));
        DP_TRY(put_cap(json, "attn_logit_softcapping", m->scores_softcap_milli));
        DP_TRY(put_cap(json, "final_logit_softcapping", m->softcap_milli));
    }
    if (m->rope_local_theta != 0) {
        DP_TRY(put(json, "rope_local_base_freq", json_real((double)m->rope_local_theta)));
    }
    return put(json, "attention_dropout", json_real(0.0));
}

static dp_status put_rest(json_t *json, const dp_model_config *m)
{
    DP_TRY(put(json, "tie_word_embeddings", json_boolean(m->head == DP_HEAD_TIED)));
    DP_TRY(put(json, "pad_token_id", json_null()));
    DP_TRY(put(json, "bos_token_id", json_null()));
    DP_TRY(put(json, "eos_token_id", json_null()));
    return put(json, "torch_dtype", json_string("float32"));
}

static dp_status put_all(json_t *json, const dp_model_config *m)
{
    if (json == NULL) {
        return DP_NOMEM;
    }
    DP_TRY(put_table(json, dp_hf_family_of(m), m));
    const bool positions = (dp_model_features(m) & DP_HAS_POSITIONS) != 0;
    DP_TRY(positions ? put_gpt2(json, m) : put_rotary(json, m));
    return put_rest(json, m);
}

/* Takes json. */
static dp_status append_json(json_t *json, dp_buf *out)
{
    enum { DIGITS = 10 /* of the largest rope_theta, 2^32 - 1 */ };
    char *const text = json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS));
    json_decref(json);
    dp_status status = text == NULL ? DP_NOMEM : dp_buf_append(out, dp_view_text(text));
    if (status == DP_OK) {
        status = dp_buf_append(out, dp_view_text("\n"));
    }
    free(text);
    return status;
}

dp_status dp_hf_config_check(const dp_model_config *config, dp_why *why)
{
    const dp_model_config m = dp_model_config_resolve(config);
    const uint32_t settings = dp_model_family_of(m.arch)->settings;
    if (m.softcap_milli != 0 && (settings & DP_TAKES_SCORES_SOFTCAP) == 0) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "transformers have no class with a soft cap of the logits on this model; "
                          "train with model.softcap 0 to export");
    }
    if (m.arch == DP_ARCH_LLAMA && m.activation != DP_ACTIVATION_SWIGLU) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "transformers have no Llama without gated units; train with "
                          "model.activation swiglu to export");
    }
    return DP_OK;
}

dp_status dp_hf_config_write(const dp_model_config *config, dp_buf *out, dp_why *why)
{
    DP_TRY(dp_hf_config_check(config, why));
    const dp_model_config m = dp_model_config_resolve(config);
    json_t *const json = json_object();
    const dp_status status = put_all(json, &m);
    if (status != DP_OK) {
        json_decref(json);
        return status;
    }
    return append_json(json, out);
}

dp_status dp_hf_generation_write(const uint32_t *begin, const uint32_t *end, dp_buf *out)
{
    json_t *const json = json_pack("{s:b, s:f}", "do_sample", 1, "temperature", 1.0);
    const char *const keys[] = {"bos_token_id", "eos_token_id"};
    const uint32_t *const ids[] = {begin, end};
    bool whole = json != NULL;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && whole; i++) {
        whole = ids[i] == NULL || json_object_set_new(json, keys[i], json_integer(*ids[i])) == 0;
    }
    if (!whole) {
        json_decref(json);
        return DP_NOMEM;
    }
    return append_json(json, out);
}
