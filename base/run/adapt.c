#include "base/run/adapt.h"

#include <stdio.h>
#include <string.h>

#define QKV (DP_ADAPT_Q | DP_ADAPT_K | DP_ADAPT_V)

/* Llama's, then GPT-2's. */
static const dp_adapt_word words[] = {
    {"q_proj", DP_ADAPT_Q},        {"k_proj", DP_ADAPT_K},
    {"v_proj", DP_ADAPT_V},        {"o_proj", DP_ADAPT_OUT},
    {"gate_proj", DP_ADAPT_GATE},  {"up_proj", DP_ADAPT_UP},
    {"down_proj", DP_ADAPT_DOWN},  {"c_attn", QKV},
    {"attn.c_proj", DP_ADAPT_OUT}, {"c_fc", DP_ADAPT_UP},
    {"mlp.c_proj", DP_ADAPT_DOWN},
};

enum { WORDS = sizeof words / sizeof words[0], WORDS_LLAMA = 7 };

const dp_adapt_word *dp_adapt_words(size_t *count)
{
    *count = WORDS;
    return words;
}

uint32_t dp_adapt_bits(const char *word)
{
    if (strcmp(word, "all") == 0) {
        return DP_ADAPT_ALL;
    }
    if (strcmp(word, "attention") == 0) {
        return QKV | DP_ADAPT_OUT;
    }
    for (size_t i = 0; i < WORDS; i++) {
        if (strcmp(word, words[i].word) == 0) {
            return words[i].bits;
        }
    }
    return 0;
}

static bool is_gpt2(const dp_model_config *config)
{
    return config->arch == DP_ARCH_GPT2;
}

void dp_adapt_text(const dp_model_config *config, char text[DP_ADAPT_TEXT_MAX])
{
    const size_t first = is_gpt2(config) ? WORDS_LLAMA : 0;
    const size_t last = is_gpt2(config) ? WORDS : WORDS_LLAMA;
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = first; i < last; i++) {
        if ((config->adapt_targets & words[i].bits) == words[i].bits) {
            const int size = snprintf(text + used, DP_ADAPT_TEXT_MAX - used, "%s%s",
                                      used == 0 ? "" : ",", words[i].word);
            used += size > 0 ? (size_t)size : 0;
        }
    }
}

dp_model_config dp_model_config_base(const dp_model_config *config)
{
    dp_model_config base = *config;
    base.adapt_rank = 0;
    base.adapt_alpha_milli = 0;
    base.adapt_targets = 0;
    return base;
}

uint32_t dp_adapt_all(const dp_model_config *config)
{
    return config->activation == DP_ACTIVATION_SWIGLU ? DP_ADAPT_ALL
                                                      : DP_ADAPT_ALL & ~(uint32_t)DP_ADAPT_GATE;
}

/* Inputs and outputs of the linear layer of one bit. */
static void extents_of(const dp_model_config *m, uint32_t bit, uint64_t *inputs, uint64_t *outputs)
{
    const uint64_t query = (uint64_t)m->heads * m->head_width;
    const uint64_t keys = (uint64_t)m->kv_heads * m->head_width;
    *inputs = bit == DP_ADAPT_OUT ? query : bit == DP_ADAPT_DOWN ? m->hidden : m->width;
    switch (bit) {
    case DP_ADAPT_Q:
        *outputs = query;
        break;
    case DP_ADAPT_K:
    case DP_ADAPT_V:
        *outputs = keys;
        break;
    case DP_ADAPT_GATE:
    case DP_ADAPT_UP:
        *outputs = m->hidden;
        break;
    default:
        *outputs = m->width;
        break;
    }
}

static const char *word_of(const dp_model_config *m, uint32_t bit)
{
    const size_t first = is_gpt2(m) ? WORDS_LLAMA : 0;
    for (size_t i = first; i < WORDS; i++) {
        if ((words[i].bits & bit) != 0) {
            return words[i].word;
        }
    }
    return "?";
}

static dp_status check_rank(const dp_model_config *m, dp_why *why)
{
    for (uint32_t bit = 1; bit < DP_ADAPT_ALL; bit <<= 1) {
        uint64_t inputs;
        uint64_t outputs;
        extents_of(m, bit, &inputs, &outputs);
        if (is_gpt2(m) && (bit & QKV) != 0) {
            outputs = 3 * outputs;
        }
        const uint64_t most = inputs < outputs ? inputs : outputs;
        if ((m->adapt_targets & bit) != 0 && m->adapt_rank > most) {
            return dp_why_set(why, DP_BADARG,
                              "model.adapt.rank is %u, but %s of this model has %llu inputs and "
                              "%llu outputs: write a rank of at most %llu, or leave %s out of "
                              "model.adapt.targets",
                              (unsigned)m->adapt_rank, word_of(m, bit), (unsigned long long)inputs,
                              (unsigned long long)outputs, (unsigned long long)most,
                              word_of(m, bit));
        }
    }
    return DP_OK;
}

dp_status dp_adapt_check(const dp_model_config *m, dp_why *why)
{
    if (!dp_model_config_adapts(m)) {
        return m->adapt_alpha_milli == 0 && m->adapt_targets == 0
                   ? DP_OK
                   : dp_why_set(why, DP_BADARG,
                                "%s is given and model.adapt.rank is not: write a rank, such as "
                                "8, or delete model.adapt",
                                m->adapt_targets != 0 ? "model.adapt.targets"
                                                      : "model.adapt.alpha");
    }
    if (m->arch != DP_ARCH_GPT2 && m->arch != DP_ARCH_LLAMA) {
        return dp_why_set(why, DP_BADARG,
                          "adapters are for model.arch gpt2 and llama as yet: delete model.adapt");
    }
    if (m->adapt_rank > DP_ADAPT_RANK_MAX) {
        return dp_why_set(why, DP_BADARG, "model.adapt.rank is %u; it may be 1 to %d",
                          (unsigned)m->adapt_rank, (int)DP_ADAPT_RANK_MAX);
    }
    if (m->adapt_targets == 0 || (m->adapt_targets & ~dp_adapt_all(m)) != 0) {
        return dp_why_set(why, DP_BADARG,
                          "model.adapt.targets names %s, which this model has not: its linear "
                          "layers are %s",
                          (m->adapt_targets & DP_ADAPT_GATE) != 0 ? "gate_proj" : "a layer",
                          is_gpt2(m) ? "c_attn, attn.c_proj, c_fc and mlp.c_proj"
                                     : "q_proj, k_proj, v_proj, o_proj, up_proj and down_proj");
    }
    if (is_gpt2(m) && (m->adapt_targets & QKV) != 0 && (m->adapt_targets & QKV) != QKV) {
        return dp_why_set(why, DP_BADARG,
                          "model.adapt.targets names q, k or v alone, which are one layer in "
                          "gpt2: write c_attn");
    }
    return check_rank(m, why);
}

uint64_t dp_adapt_parameters(const dp_model_config *m)
{
    uint64_t each = 0; /* extents that are times the rank, in a layer */
    for (uint32_t bit = 1; bit < DP_ADAPT_ALL; bit <<= 1) {
        uint64_t inputs;
        uint64_t outputs;
        extents_of(m, bit, &inputs, &outputs);
        if ((m->adapt_targets & bit) != 0) {
            /* GPT-2's q, k and v share one A. */
            const bool counted = is_gpt2(m) && (bit & (DP_ADAPT_K | DP_ADAPT_V)) != 0;
            each += (counted ? 0 : inputs) + outputs;
        }
    }
    return (uint64_t)m->layers * m->adapt_rank * each;
}
