#include "base/run/model_config.h"

#include <string.h>

#include "base/run/adapt.h"

static const dp_model_preset presets[] = {
    {"gpt2-tiny",
     "for laptops and tests",
     {.layers = 4, .width = 128, .heads = 4, .context = 128, .vocab = 1024}},
    {"gpt2-124m",
     "GPT-2 small (Radford et al. 2019)",
     {.layers = 12, .width = 768, .heads = 12, .context = 1024, .vocab = 50257}},
    {"gpt2-355m",
     "GPT-2 medium",
     {.layers = 24, .width = 1024, .heads = 16, .context = 1024, .vocab = 50257}},
    {"gpt2-774m",
     "GPT-2 large",
     {.layers = 36, .width = 1280, .heads = 20, .context = 1024, .vocab = 50257}},
    {"gpt2-1.5b",
     "GPT-2 XL",
     {.layers = 48, .width = 1600, .heads = 25, .context = 1024, .vocab = 50257}},
    {"llama-tiny",
     "for laptops and tests",
     {.arch = DP_ARCH_LLAMA,
      .layers = 4,
      .width = 128,
      .heads = 4,
      .kv_heads = 2,
      .context = 128,
      .vocab = 1024,
      .head = DP_HEAD_TIED}},
    {"llama-135m",
     "SmolLM2 135M (Allal et al. 2025)",
     {.arch = DP_ARCH_LLAMA,
      .layers = 30,
      .width = 576,
      .heads = 9,
      .kv_heads = 3,
      .hidden = 1536,
      .context = 8192,
      .vocab = 49152,
      .rope_theta = 100000,
      .head = DP_HEAD_TIED}},
    {"llama-160m",
     "Llama 160M (Miao et al. 2023)",
     {.arch = DP_ARCH_LLAMA,
      .layers = 12,
      .width = 768,
      .heads = 12,
      .hidden = 3072,
      .context = 2048,
      .vocab = 32000,
      .norm_eps_nano = 1000}},
    {"llama-360m",
     "SmolLM2 360M",
     {.arch = DP_ARCH_LLAMA,
      .layers = 32,
      .width = 960,
      .heads = 15,
      .kv_heads = 5,
      .hidden = 2560,
      .context = 8192,
      .vocab = 49152,
      .rope_theta = 100000,
      .head = DP_HEAD_TIED}},
    {"llama-1b",
     "Llama 3.2 1B (Grattafiori et al. 2024), with a context that needs no scaled angles",
     {.arch = DP_ARCH_LLAMA,
      .layers = 16,
      .width = 2048,
      .heads = 32,
      .kv_heads = 8,
      .hidden = 8192,
      .context = 8192,
      .vocab = 128256,
      .rope_theta = 500000,
      .head = DP_HEAD_TIED}},
    {"llama-1.1b",
     "TinyLlama 1.1B (Zhang et al. 2024)",
     {.arch = DP_ARCH_LLAMA,
      .layers = 22,
      .width = 2048,
      .heads = 32,
      .kv_heads = 4,
      .hidden = 5632,
      .context = 2048,
      .vocab = 32000}},
    {"qwen3-tiny",
     "for laptops and tests",
     {.arch = DP_ARCH_LLAMA,
      .layers = 4,
      .width = 128,
      .heads = 4,
      .kv_heads = 2,
      .head_width = 32,
      .context = 128,
      .vocab = 1024,
      .norm_eps_nano = 1000,
      .rope_theta = 1000000,
      .qk_norm = DP_ON,
      .head = DP_HEAD_TIED}},
    {"qwen3-0.6b",
     "Qwen3 0.6B (Yang et al. 2025)",
     {.arch = DP_ARCH_LLAMA,
      .layers = 28,
      .width = 1024,
      .heads = 16,
      .kv_heads = 8,
      .head_width = 128,
      .hidden = 3072,
      .context = 16384,
      .vocab = 151936,
      .norm_eps_nano = 1000,
      .rope_theta = 1000000,
      .qk_norm = DP_ON,
      .head = DP_HEAD_TIED}},
    {"qwen3-1.7b",
     "Qwen3 1.7B",
     {.arch = DP_ARCH_LLAMA,
      .layers = 28,
      .width = 2048,
      .heads = 16,
      .kv_heads = 8,
      .head_width = 128,
      .hidden = 6144,
      .context = 16384,
      .vocab = 151936,
      .norm_eps_nano = 1000,
      .rope_theta = 1000000,
      .qk_norm = DP_ON,
      .head = DP_HEAD_TIED}},
};

const dp_model_preset *dp_model_presets(size_t *count)
{
    *count = sizeof presets / sizeof presets[0];
    return presets;
}

const dp_model_preset *dp_model_preset_find(const char *name)
{
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        if (strcmp(presets[i].name, name) == 0) {
            return &presets[i];
        }
    }
    return NULL;
}

static uint32_t or_else(uint32_t value, uint32_t standard)
{
    return value != 0 ? value : standard;
}

/* Two thirds of 4 C keep the parameters of a gated unit at those of a plain one (Shazeer 2020). */
static uint32_t gated_width(uint32_t width)
{
    return (uint32_t)(((uint64_t)width * 8 / 3 + 63) / 64 * 64);
}

dp_model_config dp_model_config_resolve(const dp_model_config *config)
{
    dp_model_config c = *config;
    if (c.arch == DP_ARCH_EXTERNAL) {
        return c;
    }
    const bool llama = c.arch == DP_ARCH_LLAMA;
    c.kv_heads = or_else(c.kv_heads, c.heads);
    c.head_width = or_else(c.head_width, c.heads == 0 ? 0 : c.width / c.heads);
    c.hidden = or_else(c.hidden, llama ? gated_width(c.width) : 4 * c.width);
    c.norm_eps_nano = or_else(c.norm_eps_nano, 10000);
    c.rope_theta = or_else(c.rope_theta, llama ? 10000 : 0);
    if (c.activation == DP_ACTIVATION_OWN) {
        c.activation = llama ? DP_ACTIVATION_SWIGLU : DP_ACTIVATION_GELU;
    }
    if (c.head == DP_HEAD_OWN) {
        c.head = llama ? DP_HEAD_UNTIED : DP_HEAD_TIED;
    }
    if (dp_model_config_adapts(&c)) {
        c.adapt_alpha_milli = or_else(c.adapt_alpha_milli, 1000 * c.adapt_rank);
        c.adapt_targets = or_else(c.adapt_targets, dp_adapt_all(&c));
    }
    return c;
}

uint64_t dp_model_config_parameters(const dp_model_config *config)
{
    const dp_model_config m = dp_model_config_resolve(config);
    const bool gpt2 = m.arch == DP_ARCH_GPT2;
    if (m.arch == DP_ARCH_EXTERNAL) {
        return 0;
    }
    if (dp_model_config_adapts(&m)) {
        return dp_adapt_parameters(&m);
    }
    const uint64_t c = m.width;
    const uint64_t q = (uint64_t)m.heads * m.head_width;
    const uint64_t kv = (uint64_t)m.kv_heads * m.head_width;
    const uint64_t hidden = m.hidden;
    const uint64_t up = m.activation == DP_ACTIVATION_SWIGLU ? 2 * hidden : hidden;
    const uint64_t matrices = c * (q + 2 * kv) + q * c + c * up + hidden * c;
    const uint64_t biases = gpt2 ? q + 2 * kv + c + up + c : 0;
    const uint64_t norm = gpt2 ? 2 * c : c;
    const uint64_t heads = m.qk_norm == DP_ON ? 2 * (uint64_t)m.head_width : 0;
    const uint64_t tables =
        m.vocab + (gpt2 ? (uint64_t)m.context : 0) + (m.head == DP_HEAD_UNTIED ? m.vocab : 0);
    return m.layers * (matrices + biases + 2 * norm + heads) + tables * c + norm;
}

static dp_status check_range(const char *name, uint32_t value, uint32_t least, uint32_t most,
                             dp_why *why)
{
    if (value < least || value > most) {
        return dp_why_set(why, DP_BADARG, "model.%s is %u; it must be from %u to %u", name,
                          (unsigned)value, (unsigned)least, (unsigned)most);
    }
    return DP_OK;
}

static dp_status check_ranges(const dp_model_config *given, dp_why *why)
{
    DP_TRY(check_range("layers", given->layers, 1, DP_MODEL_LAYERS_MAX, why));
    DP_TRY(check_range("width", given->width, 1, DP_MODEL_WIDTH_MAX, why));
    DP_TRY(check_range("heads", given->heads, 1, DP_MODEL_HEADS_MAX, why));
    DP_TRY(check_range("context", given->context, 1, DP_MODEL_CONTEXT_MAX, why));
    DP_TRY(check_range("vocab", given->vocab, 2, DP_MODEL_VOCAB_MAX, why));
    DP_TRY(check_range("kv_heads", given->kv_heads, 0, DP_MODEL_HEADS_MAX, why));
    DP_TRY(check_range("hidden", given->hidden, 0, DP_MODEL_HIDDEN_MAX, why));
    DP_TRY(check_range("norm_eps (in 1e-9)", given->norm_eps_nano, 0, 1000000, why));
    DP_TRY(check_range("softcap (in 1e-3)", given->softcap_milli, 0, 1000000, why));
    if ((unsigned)given->arch > DP_ARCH_LLAMA ||
        (unsigned)given->activation > DP_ACTIVATION_SWIGLU ||
        (unsigned)given->head > DP_HEAD_UNTIED || (unsigned)given->qk_norm > DP_ON) {
        return dp_why_set(why, DP_BADARG,
                          "model.arch, model.activation, model.qk_norm or model.head is unknown");
    }
    return DP_OK;
}

static dp_status check_heads(const dp_model_config *given, const dp_model_config *m, dp_why *why)
{
    if (given->head_width == 0 && m->width % m->heads != 0) {
        return dp_why_set(
            why, DP_BADARG,
            "model.width %u is not a multiple of model.heads %u; every head needs the same width",
            (unsigned)m->width, (unsigned)m->heads);
    }
    if (m->head_width > DP_MODEL_HEAD_WIDTH_MAX) {
        return dp_why_set(why, DP_BADARG,
                          "each of %u heads would be %u wide; the most is %d, so raise model.heads "
                          "or give model.head_width",
                          (unsigned)m->heads, (unsigned)m->head_width,
                          (int)DP_MODEL_HEAD_WIDTH_MAX);
    }
    if (m->heads % m->kv_heads != 0) {
        return dp_why_set(why, DP_BADARG,
                          "model.kv_heads %u does not divide model.heads %u; each head of k and v "
                          "serves as many query heads",
                          (unsigned)m->kv_heads, (unsigned)m->heads);
    }
    if (m->arch == DP_ARCH_LLAMA && m->head_width % 2 != 0) {
        return dp_why_set(why, DP_BADARG,
                          "heads are %u wide; model.head_width must be even, as rotary positions "
                          "turn pairs",
                          (unsigned)m->head_width);
    }
    return DP_OK;
}

/* Settings that GPT2LMHeadModel does not have. */
static dp_status check_gpt2(const dp_model_config *m, dp_why *why)
{
    const struct {
        bool wrong;
        const char *key;
        const char *must;
    } rules[] = {
        {m->kv_heads != m->heads, "kv_heads", "equal to model.heads"},
        {m->head_width * m->heads != m->width, "head_width", "width / heads"},
        {m->norm_eps_nano != 10000, "norm_eps", "1e-5"},
        {m->rope_theta != 0, "rope_theta", "absent, as positions are learned"},
        {m->activation == DP_ACTIVATION_SWIGLU, "activation", "gelu or relu2"},
        {m->qk_norm == DP_ON, "qk_norm", "off"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].wrong) {
            return dp_why_set(
                why, DP_BADARG,
                "with model.arch gpt2, model.%s must be %s; model.arch llama has more",
                rules[i].key, rules[i].must);
        }
    }
    return DP_OK;
}

/* The tensors of such a model come from a file; a shape beside them would say nothing. */
static dp_status check_external(const dp_model_config *given, dp_why *why)
{
    const struct {
        const char *key;
        uint32_t value;
    } keys[] = {{"layers", given->layers},
                {"width", given->width},
                {"heads", given->heads},
                {"context", given->context},
                {"vocab", given->vocab},
                {"kv_heads", given->kv_heads},
                {"head_width", given->head_width},
                {"hidden", given->hidden},
                {"norm_eps", given->norm_eps_nano},
                {"rope_theta", given->rope_theta},
                {"activation", (uint32_t)given->activation},
                {"qk_norm", (uint32_t)given->qk_norm},
                {"head", (uint32_t)given->head},
                {"softcap", given->softcap_milli},
                {"adapt.rank", given->adapt_rank},
                {"adapt.alpha", given->adapt_alpha_milli},
                {"adapt.targets", given->adapt_targets}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i].value != 0) {
            return dp_why_set(why, DP_BADARG,
                              "with model.arch external, the file of --from alone says what the "
                              "model is: delete model.%s",
                              keys[i].key);
        }
    }
    return DP_OK;
}

dp_status dp_model_config_check(const dp_model_config *config, dp_why *why)
{
    if (config->arch == DP_ARCH_EXTERNAL) {
        return check_external(config, why);
    }
    DP_TRY(check_ranges(config, why));
    const dp_model_config m = dp_model_config_resolve(config);
    DP_TRY(check_heads(config, &m, why));
    if (m.arch == DP_ARCH_GPT2) {
        DP_TRY(check_gpt2(&m, why));
    }
    const dp_model_config base = dp_model_config_base(&m);
    const uint64_t parameters = dp_model_config_parameters(&base);
    if (parameters > DP_MODEL_ELEMENTS_MAX) {
        return dp_why_set(why, DP_BADARG,
                          "the model would have %llu parameters; the most is %llu, so lower "
                          "model.width or model.layers",
                          (unsigned long long)parameters,
                          (unsigned long long)DP_MODEL_ELEMENTS_MAX);
    }
    return dp_adapt_check(&m, why);
}
