#include "compute/format/gguf_arch.h"

#include <stdio.h>

#include "base/assert.h"

enum {
    KEY_MAX = 64,
    ROPE_OFF_EVERY = 4, /* of SmolLM3, in llama.cpp's source */
    /* Models of so many layers are those of 27 billion parameters there, and have other scores. */
    GEMMA2_27B_LAYERS = 46,
    GEMMA3_27B_LAYERS = 62
};

static const dp_gguf_arch rows[] = {
    {DP_ARCH_GPT2, DP_OFF, "gpt2", false},      {DP_ARCH_LLAMA, DP_OFF, "llama", true},
    {DP_ARCH_LLAMA, DP_ON, "qwen3", false},     {DP_ARCH_QWEN2, DP_OFF, "qwen2", false},
    {DP_ARCH_SMOLLM3, DP_OFF, "smollm3", true}, {DP_ARCH_MISTRAL, DP_OFF, "llama", true},
    {DP_ARCH_PHI3, DP_OFF, "phi3", false},      {DP_ARCH_OLMO2, DP_OFF, "olmo2", false},
    {DP_ARCH_GEMMA2, DP_OFF, "gemma2", false},  {DP_ARCH_GEMMA3, DP_OFF, "gemma3", false},
    {DP_ARCH_NEOX, DP_OFF, "gptneox", false},
};

/* NULL: llama.cpp has no such model. */
static const dp_gguf_arch *find(const dp_model_config *config)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].arch == config->arch && rows[i].qk_norm == config->qk_norm) {
            return &rows[i];
        }
    }
    return NULL;
}

const dp_gguf_arch *dp_gguf_arch_of(const dp_model_config *config)
{
    const dp_gguf_arch *const row = find(config);
    dp_assert(row != NULL);
    return row;
}

/* ---- what is computed ---- */

static bool is_gemma(const dp_model_config *m)
{
    return m->arch == DP_ARCH_GEMMA2 || m->arch == DP_ARCH_GEMMA3;
}

/* llama.cpp divides the scores of a Gemma by the root of this. */
static uint32_t query_scalar_of(const dp_model_config *m)
{
    const uint32_t largest = m->arch == DP_ARCH_GEMMA2 ? GEMMA2_27B_LAYERS : GEMMA3_27B_LAYERS;
    return m->layers == largest ? m->width / m->heads : m->head_width;
}

static dp_status check_gemma(const dp_model_config *m, dp_why *why)
{
    const bool second = m->arch == DP_ARCH_GEMMA2;
    if (m->query_scalar != query_scalar_of(m)) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "llama.cpp computes this model with model.query_scalar %u alone",
                          query_scalar_of(m));
    }
    if (second && (m->softcap_milli == 0 || m->scores_softcap_milli == 0)) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "llama.cpp computes Gemma 2 with soft caps alone: set model.%s to export",
                          m->softcap_milli == 0 ? "softcap" : "scores_softcap");
    }
    if (!second && m->scores_softcap_milli != 0) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "llama.cpp computes Gemma 3 without soft caps of scores; train with "
                          "model.scores_softcap 0 to export");
    }
    if (!second && m->window != 0 && m->rope_local_theta == 0 && m->rope_scaling != DP_ROPE_PLAIN) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "llama.cpp scales no angles of layers with a window; set "
                          "model.rope_local_theta to export");
    }
    return DP_OK;
}

static dp_status check_units(const dp_model_config *m, dp_why *why)
{
    static const struct {
        dp_arch arch;
        dp_activation_choice activation;
        const char *model;
        const char *word;
    } other[] = {{DP_ARCH_GPT2, DP_ACTIVATION_GELU, "GPT-2 with GELU", "gelu"},
                 {DP_ARCH_LLAMA, DP_ACTIVATION_SWIGLU, "Llama with gated units", "swiglu"}};
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        if (m->arch == other[i].arch && m->activation != other[i].activation) {
            return dp_why_set(why, DP_UNSUPPORTED,
                              "llama.cpp computes %s; train with model.activation %s to export",
                              other[i].model, other[i].word);
        }
    }
    return DP_OK;
}

dp_status dp_gguf_arch_check(const dp_model_config *m, dp_why *why)
{
    if (find(m) == NULL) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "a GGUF file of model.arch %s is not written here; export for "
                          "transformers, and let llama.cpp's convert_hf_to_gguf.py convert that",
                          dp_model_family_of(m->arch)->name);
    }
    if (is_gemma(m)) {
        return check_gemma(m, why);
    }
    if (m->arch == DP_ARCH_SMOLLM3 && m->rope_off_every != ROPE_OFF_EVERY) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "llama.cpp computes SmolLM3 with model.rope_off_every %d alone",
                          (int)ROPE_OFF_EVERY);
    }
    if (m->window != 0 && m->window < m->context) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "llama.cpp computes %s without a window; train with model.window 0 or "
                          "model.context %u to export",
                          dp_model_family_of(m->arch)->name, m->window);
    }
    if (m->softcap_milli != 0) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "llama.cpp has no soft cap of the logits on this model; train with "
                          "model.softcap 0 to export");
    }
    return check_units(m, why);
}

/* ---- pairs ---- */

typedef struct keys {
    dp_gguf_pairs *pairs;
    const char *arch;
} keys;

static const char *key_of(const keys *k, const char *key, char out[KEY_MAX])
{
    snprintf(out, KEY_MAX, "%s.%s", k->arch, key);
    return out;
}

static void number(const keys *k, const char *key, uint32_t value)
{
    char text[KEY_MAX];
    dp_gguf_pair_u32(k->pairs, key_of(k, key, text), value);
}

static void real(const keys *k, const char *key, float value)
{
    char text[KEY_MAX];
    dp_gguf_pair_real(k->pairs, key_of(k, key, text), value);
}

static void write_rope(const keys *k, const dp_model_config *m)
{
    char text[KEY_MAX];
    number(k, "rope.dimension_count", m->rope_width != 0 ? m->rope_width : m->head_width);
    real(k, "rope.freq_base", (float)m->rope_theta);
    if (m->rope_scaling == DP_ROPE_LINEAR) {
        dp_gguf_pair_text(k->pairs, key_of(k, "rope.scaling.type", text), "linear");
        real(k, "rope.scaling.factor", (float)m->rope_factor_milli * 1e-3F);
    }
}

static void write_window(const keys *k, const dp_model_config *m)
{
    if (m->window == 0) {
        return;
    }
    number(k, "attention.sliding_window", m->window);
    if (is_gemma(m)) {
        number(k, "attention.sliding_window_pattern", m->full_every); /* 0: each layer has it */
        real(k, "rope.freq_base_swa",
             (float)(m->rope_local_theta != 0 ? m->rope_local_theta : m->rope_theta));
    }
}

static void write_soft_caps(const keys *k, const dp_model_config *m)
{
    if (m->softcap_milli != 0) {
        real(k, "final_logit_softcapping", (float)m->softcap_milli / 1e3F);
    }
    if (m->scores_softcap_milli != 0) {
        real(k, "attn_logit_softcapping", (float)m->scores_softcap_milli / 1e3F);
    }
}

void dp_gguf_arch_pairs(dp_gguf_pairs *pairs, const dp_model_config *m)
{
    const uint32_t features = dp_model_features(m);
    const keys k = {pairs, dp_gguf_arch_of(m)->name};
    char text[KEY_MAX];
    dp_gguf_pair_text(pairs, "general.architecture", k.arch);
    number(&k, "vocab_size", m->vocab);
    number(&k, "context_length", m->context);
    number(&k, "embedding_length", m->width);
    number(&k, "block_count", m->layers);
    number(&k, "feed_forward_length", m->hidden);
    number(&k, "attention.head_count", m->heads);
    if ((features & DP_HAS_LAYER_NORM) != 0) {
        real(&k, "attention.layer_norm_epsilon", 1e-5F);
    } else {
        real(&k, "attention.layer_norm_rms_epsilon", (float)((double)m->norm_eps_nano / 1e9));
    }
    if ((features & DP_HAS_POSITIONS) == 0) {
        number(&k, "attention.head_count_kv", m->kv_heads);
        number(&k, "attention.key_length", m->head_width);
        number(&k, "attention.value_length", m->head_width);
        write_rope(&k, m);
        write_window(&k, m);
    }
    if (m->arch == DP_ARCH_NEOX) {
        dp_gguf_key(pairs, key_of(&k, "use_parallel_residual", text), DP_GGUF_BOOL);
        dp_gguf_raw(pairs, (features & DP_HAS_PARALLEL_PARTS) != 0 ? "\1" : "\0", 1);
    }
    write_soft_caps(&k, m);
}
