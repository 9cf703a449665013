#include "compute/format/hf_config.h"

#include <jansson.h>
#include <stdlib.h>

static json_t *gpt2_of(const dp_model_config *m)
{
    const char *const activation = m->activation == DP_ACTIVATION_RELU2 ? "relu2" : "gelu_new";
    return json_pack("{s:[s], s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f}",
                     "architectures", "GPT2LMHeadModel", "model_type", "gpt2",
                     "activation_function", activation, "n_layer", (int)m->layers, "n_embd",
                     (int)m->width, "n_head", (int)m->heads, "n_inner", (int)m->hidden,
                     "n_positions", (int)m->context, "n_ctx", (int)m->context, "layer_norm_epsilon",
                     1e-5, "attn_pdrop", 0.0, "embd_pdrop", 0.0, "resid_pdrop", 0.0);
}

static json_t *llama_of(const dp_model_config *m)
{
    const bool qwen = m->qk_norm == DP_ON;
    return json_pack(
        "{s:[s], s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:b, s:f}", "architectures",
        qwen ? "Qwen3ForCausalLM" : "LlamaForCausalLM", "model_type", qwen ? "qwen3" : "llama",
        "hidden_act", "silu", "num_hidden_layers", (int)m->layers, "hidden_size", (int)m->width,
        "num_attention_heads", (int)m->heads, "num_key_value_heads", (int)m->kv_heads, "head_dim",
        (int)m->head_width, "intermediate_size", (int)m->hidden, "max_position_embeddings",
        (int)m->context, "rms_norm_eps", (double)m->norm_eps_nano / 1e9, "rope_theta",
        (double)m->rope_theta, "attention_bias", 0, "attention_dropout", 0.0);
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
    if (m.softcap_milli != 0) {
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
    json_t *const json = m.arch == DP_ARCH_GPT2 ? gpt2_of(&m) : llama_of(&m);
    json_t *const both =
        json_pack("{s:i, s:b, s:n, s:n, s:s}", "vocab_size", (int)m.vocab, "tie_word_embeddings",
                  m.head == DP_HEAD_TIED, "bos_token_id", "eos_token_id", "torch_dtype", "float32");
    const bool whole = json_object_update(json, both) == 0;
    json_decref(both);
    if (!whole) {
        json_decref(json);
        return DP_NOMEM;
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
