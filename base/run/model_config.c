#include "base/run/model_config.h"

#include <stdio.h>
#include <string.h>

#include "base/run/adapt.h"
#include "base/run/model_family.h"

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
    {"gemma3-270m",
     "Gemma 3 270M (Gemma Team 2025)",
     {.arch = DP_ARCH_GEMMA3,
      .layers = 18,
      .width = 640,
      .heads = 4,
      .kv_heads = 1,
      .head_width = 256,
      .hidden = 2048,
      .context = 16384,
      .vocab = 262144,
      .norm_eps_nano = 1000,
      .rope_theta = 1000000,
      .head = DP_HEAD_TIED,
      .window = 512,
      .full_every = 6,
      .rope_local_theta = 10000,
      .query_scalar = 256}},
    {"pythia-160m",
     "Pythia 160M (Biderman et al. 2023)",
     {.arch = DP_ARCH_NEOX,
      .layers = 12,
      .width = 768,
      .heads = 12,
      .context = 2048,
      .vocab = 50304,
      .rope_width = 16}},
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
     "Llama 3.2 1B (Grattafiori et al. 2024) without its scaled angles, to begin anew with",
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
    {"llama3.2-1b",
     "Llama 3.2 1B",
     {.arch = DP_ARCH_LLAMA,
      .layers = 16,
      .width = 2048,
      .heads = 32,
      .kv_heads = 8,
      .hidden = 8192,
      .context = 16384,
      .vocab = 128256,
      .rope_theta = 500000,
      .head = DP_HEAD_TIED,
      .rope_scaling = DP_ROPE_LLAMA3,
      .rope_factor_milli = 32000,
      .rope_low_milli = 1000,
      .rope_high_milli = 4000,
      .rope_context = 8192}},
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
    {"qwen2.5-0.5b",
     "Qwen2.5 0.5B (Yang et al. 2024)",
     {.arch = DP_ARCH_QWEN2,
      .layers = 24,
      .width = 896,
      .heads = 14,
      .kv_heads = 2,
      .hidden = 4864,
      .context = 16384,
      .vocab = 151936,
      .norm_eps_nano = 1000,
      .rope_theta = 1000000,
      .head = DP_HEAD_TIED}},
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
    const dp_model_family *const family = dp_model_family_of(c.arch);
    if (family == NULL) {
        return c;
    }
    c.activation = c.activation == DP_ACTIVATION_OWN ? family->activation : c.activation;
    c.head = c.head == DP_HEAD_OWN ? family->head : c.head;
    const bool rotary = (family->features & DP_HAS_POSITIONS) == 0;
    c.kv_heads = or_else(c.kv_heads, c.heads);
    c.head_width = or_else(c.head_width, c.heads == 0 ? 0 : c.width / c.heads);
    c.hidden = or_else(c.hidden, dp_activation_gated(family->activation) ? gated_width(c.width)
                                                                         : 4 * c.width);
    c.norm_eps_nano = or_else(c.norm_eps_nano, 10000);
    if ((family->settings & DP_TAKES_QUERY_SCALAR) != 0) {
        c.query_scalar = or_else(c.query_scalar, c.head_width);
    }
    c.rope_theta = or_else(c.rope_theta, rotary ? 10000 : 0);
    if (dp_model_config_adapts(&c)) {
        c.adapt_alpha_milli = or_else(c.adapt_alpha_milli, 1000 * c.adapt_rank);
        c.adapt_targets = or_else(c.adapt_targets, dp_adapt_all(&c));
    }
    return c;
}

/* value where the model has the part. */
static uint64_t where(uint32_t features, dp_feature part, uint64_t value)
{
    return (features & (uint32_t)part) != 0 ? value : 0;
}

uint64_t dp_model_config_parameters(const dp_model_config *config)
{
    const dp_model_config m = dp_model_config_resolve(config);
    const uint32_t has = dp_model_features(&m);
    if (dp_model_family_of(m.arch) == NULL) {
        return 0;
    }
    if (dp_model_config_adapts(&m)) {
        return dp_adapt_parameters(&m);
    }
    const uint64_t c = m.width;
    const uint64_t q = (uint64_t)m.heads * m.head_width;
    const uint64_t qkv = q + 2 * (uint64_t)m.kv_heads * m.head_width;
    const uint64_t up = m.hidden + where(has, DP_HAS_GATES, m.hidden);
    const uint64_t matrices = c * qkv + q * c + c * up + m.hidden * c;
    const uint64_t biases =
        where(has, DP_HAS_QKV_BIAS, qkv) + where(has, DP_HAS_BIASES, c + up + c);
    const uint64_t norm = c + where(has, DP_HAS_LAYER_NORM, c);
    const uint64_t norms = ((has & DP_HAS_NORMS_BEFORE) != 0 ? 2 : 0) +
                           where(has, DP_HAS_NORMS_AFTER, 2); /* of a layer */
    const uint64_t of_heads = (has & DP_HAS_WHOLE_NORMS) != 0
                                  ? q + (uint64_t)m.kv_heads * m.head_width
                                  : 2 * (uint64_t)m.head_width;
    const uint64_t heads = where(has, DP_HAS_QK_NORMS, of_heads);
    const uint64_t tables =
        m.vocab + where(has, DP_HAS_POSITIONS, m.context) + where(has, DP_HAS_HEAD, m.vocab);
    return m.layers * (matrices + biases + norms * norm + heads) + tables * c + norm;
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
    if (dp_model_family_of(given->arch) == NULL ||
        (unsigned)given->activation > DP_ACTIVATION_GELU_ERF ||
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
    if ((dp_model_features(m) & DP_HAS_POSITIONS) == 0 && m->head_width % 2 != 0) {
        return dp_why_set(why, DP_BADARG,
                          "heads are %u wide; model.head_width must be even, as rotary positions "
                          "turn pairs",
                          (unsigned)m->head_width);
    }
    return DP_OK;
}

/* Settings that families without grouped heads, LayerNorm, or learned positions do not have. */
static dp_status check_plain(const dp_model_config *m, dp_why *why)
{
    const dp_model_family *const family = dp_model_family_of(m->arch);
    const bool grouped = (family->settings & DP_TAKES_KV_HEADS) != 0;
    const bool rms = (family->features & DP_HAS_LAYER_NORM) == 0;
    const bool rotary = (family->features & DP_HAS_POSITIONS) == 0;
    const bool gelu = m->activation == DP_ACTIVATION_GELU || m->activation == DP_ACTIVATION_RELU2;
    const struct {
        bool wrong;
        const char *key;
        const char *must;
    } rules[] = {
        {!grouped && m->kv_heads != m->heads, "kv_heads", "equal to model.heads"},
        {!grouped && m->head_width * m->heads != m->width, "head_width", "width / heads"},
        {!rms && m->norm_eps_nano != 10000, "norm_eps", "1e-5"},
        {!rotary && m->rope_theta != 0, "rope_theta", "absent, as positions are learned"},
        {!rotary && !gelu, "activation", "gelu or relu2"},
        {!rotary && m->qk_norm == DP_ON, "qk_norm", "off"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].wrong) {
            return dp_why_set(why, DP_BADARG,
                              "with model.arch %s, model.%s must be %s; model.arch llama has more",
                              family->name, rules[i].key, rules[i].must);
        }
    }
    return DP_OK;
}

/* The names of the families that take a setting, for a sentence. */
static void families_that_take(uint32_t setting, char *out, size_t size)
{
    size_t count = 0;
    size_t used = 0;
    const dp_model_family *const rows = dp_model_families(&count);
    out[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++) {
        if ((rows[i].settings & setting) != 0) {
            const int written =
                snprintf(out + used, size - used, "%s%s", used == 0 ? "" : ", ", rows[i].name);
            used += written > 0 ? (size_t)written : 0;
        }
    }
}

/* Settings that the family does not take. */
static dp_status check_settings(const dp_model_config *m, dp_why *why)
{
    const dp_model_family *const family = dp_model_family_of(m->arch);
    const struct {
        dp_setting setting;
        bool given;
        const char *key;
    } rows[] = {
        {DP_TAKES_ACTIVATION, m->activation != family->activation, "activation"},
        {DP_TAKES_SOFTCAP, m->softcap_milli != 0, "softcap"},
        {DP_TAKES_QK_NORM, m->qk_norm == DP_ON, "qk_norm"},
        {DP_TAKES_ROPE_SCALING, m->rope_scaling != DP_ROPE_PLAIN, "rope_scaling"},
        {DP_TAKES_ROPE_OFF, m->rope_off_every != 0, "rope_off_every"},
        {DP_TAKES_WINDOW, m->window != 0, "window"},
        {DP_TAKES_FULL_LAYERS, m->full_every != 0, "full_every"},
        {DP_TAKES_LOCAL_THETA, m->rope_local_theta != 0, "rope_local_theta"},
        {DP_TAKES_SCORES_SOFTCAP, m->scores_softcap_milli != 0, "scores_softcap"},
        {DP_TAKES_QUERY_SCALAR, m->query_scalar != 0, "query_scalar"},
        {DP_TAKES_ROPE_WIDTH, m->rope_width != 0, "rope_width"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].given && (family->settings & (uint32_t)rows[i].setting) == 0) {
            char names[128];
            families_that_take(rows[i].setting, names, sizeof names);
            return dp_why_set(
                why, DP_BADARG,
                "model.arch %s has no other model.%s than its own: delete the key, or "
                "take model.arch %s",
                family->name, rows[i].key, names);
        }
    }
    return DP_OK;
}

/* The numbers of a kind of scaling are there with it and not without. */
static dp_status check_rope(const dp_model_config *m, dp_why *why)
{
    const bool scaled = m->rope_scaling != DP_ROPE_PLAIN;
    const bool llama3 = m->rope_scaling == DP_ROPE_LLAMA3;
    const struct {
        const char *key;
        uint32_t value;
        bool wanted;
    } rows[] = {{"rope_factor", m->rope_factor_milli, scaled},
                {"rope_low", m->rope_low_milli, llama3},
                {"rope_high", m->rope_high_milli, llama3},
                {"rope_context", m->rope_context, llama3}};
    if (m->rope_width % 2 != 0 || (m->rope_width != 0 && m->rope_width >= m->head_width)) {
        return dp_why_set(why, DP_BADARG,
                          "model.rope_width %u must be even and less than the width of a head, %u; "
                          "0: all channels",
                          (unsigned)m->rope_width, (unsigned)m->head_width);
    }
    if ((unsigned)m->rope_scaling > DP_ROPE_LLAMA3) {
        return dp_why_set(why, DP_BADARG, "model.rope_scaling is unknown");
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if ((rows[i].value != 0) != rows[i].wanted) {
            return dp_why_set(why, DP_BADARG, "model.%s must be %s with model.rope_scaling %s",
                              rows[i].key, rows[i].wanted ? "given" : "absent",
                              llama3   ? "llama3"
                              : scaled ? "linear"
                                       : "none");
        }
    }
    if (scaled && m->rope_factor_milli < 1000) {
        return dp_why_set(why, DP_BADARG, "model.rope_factor must be 1 or more");
    }
    if (llama3 && m->rope_high_milli <= m->rope_low_milli) {
        return dp_why_set(why, DP_BADARG, "model.rope_high must be above model.rope_low");
    }
    return DP_OK;
}

/* A period that no layer ends says nothing. */
static dp_status check_periods(const dp_model_config *m, dp_why *why)
{
    const struct {
        const char *key;
        uint32_t value;
    } rows[] = {{"rope_off_every", m->rope_off_every}, {"full_every", m->full_every}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].value > m->layers) {
            return dp_why_set(why, DP_BADARG,
                              "model.%s %u is more than model.layers %u, so it has no effect: "
                              "delete it",
                              rows[i].key, (unsigned)rows[i].value, (unsigned)m->layers);
        }
    }
    if (m->window == 0 && (m->full_every != 0 || m->rope_local_theta != 0)) {
        return dp_why_set(why, DP_BADARG, "model.%s is only for layers with model.window",
                          m->full_every != 0 ? "full_every" : "rope_local_theta");
    }
    return m->full_every != 1
               ? DP_OK
               : dp_why_set(why, DP_BADARG,
                            "with model.full_every 1 no layer has model.window: delete both");
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
                {"adapt.targets", given->adapt_targets},
                {"rope_scaling", (uint32_t)given->rope_scaling},
                {"rope_factor", given->rope_factor_milli},
                {"rope_low", given->rope_low_milli},
                {"rope_high", given->rope_high_milli},
                {"rope_context", given->rope_context},
                {"rope_off_every", given->rope_off_every},
                {"window", given->window},
                {"full_every", given->full_every},
                {"rope_local_theta", given->rope_local_theta},
                {"scores_softcap", given->scores_softcap_milli},
                {"query_scalar", given->query_scalar},
                {"rope_width", given->rope_width}};
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
    DP_TRY(check_plain(&m, why));
    DP_TRY(check_settings(&m, why));
    DP_TRY(check_rope(&m, why));
    DP_TRY(check_periods(&m, why));
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
