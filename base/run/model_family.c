#include "base/run/model_family.h"

static const dp_model_family families[] = {
    {DP_ARCH_GPT2, "gpt2",
     DP_HAS_POSITIONS | DP_HAS_LAYER_NORM | DP_HAS_BIASES | DP_HAS_QKV_BIAS | DP_HAS_NORMS_BEFORE,
     DP_TAKES_ACTIVATION | DP_TAKES_SOFTCAP, DP_ACTIVATION_GELU, DP_HEAD_TIED},
    {DP_ARCH_LLAMA, "llama", DP_HAS_NORMS_BEFORE,
     DP_TAKES_ACTIVATION | DP_TAKES_SOFTCAP | DP_TAKES_KV_HEADS | DP_TAKES_QK_NORM |
         DP_TAKES_ROPE_SCALING,
     DP_ACTIVATION_SWIGLU, DP_HEAD_UNTIED},
    {DP_ARCH_QWEN2, "qwen2", DP_HAS_QKV_BIAS | DP_HAS_NORMS_BEFORE, DP_TAKES_KV_HEADS,
     DP_ACTIVATION_SWIGLU, DP_HEAD_UNTIED},
    {DP_ARCH_SMOLLM3, "smollm3", DP_HAS_NORMS_BEFORE, DP_TAKES_KV_HEADS | DP_TAKES_ROPE_OFF,
     DP_ACTIVATION_SWIGLU, DP_HEAD_TIED},
    {DP_ARCH_MISTRAL, "mistral", DP_HAS_NORMS_BEFORE, DP_TAKES_KV_HEADS | DP_TAKES_WINDOW,
     DP_ACTIVATION_SWIGLU, DP_HEAD_UNTIED},
    {DP_ARCH_PHI3, "phi3", DP_HAS_NORMS_BEFORE,
     DP_TAKES_KV_HEADS | DP_TAKES_WINDOW | DP_TAKES_ROPE_WIDTH, DP_ACTIVATION_SWIGLU,
     DP_HEAD_UNTIED},
    {DP_ARCH_OLMO2, "olmo2", DP_HAS_NORMS_AFTER | DP_HAS_QK_NORMS | DP_HAS_WHOLE_NORMS,
     DP_TAKES_KV_HEADS, DP_ACTIVATION_SWIGLU, DP_HEAD_UNTIED},
    {DP_ARCH_GEMMA2, "gemma2",
     DP_HAS_NORMS_BEFORE | DP_HAS_NORMS_AFTER | DP_HAS_SCALED_EMBEDDING | DP_HAS_GAINS_ABOVE_ONE,
     DP_TAKES_KV_HEADS | DP_TAKES_WINDOW | DP_TAKES_FULL_LAYERS | DP_TAKES_SOFTCAP |
         DP_TAKES_SCORES_SOFTCAP | DP_TAKES_QUERY_SCALAR,
     DP_ACTIVATION_GEGLU, DP_HEAD_TIED},
    {DP_ARCH_GEMMA3, "gemma3",
     DP_HAS_NORMS_BEFORE | DP_HAS_NORMS_AFTER | DP_HAS_QK_NORMS | DP_HAS_SCALED_EMBEDDING |
         DP_HAS_GAINS_ABOVE_ONE,
     DP_TAKES_KV_HEADS | DP_TAKES_WINDOW | DP_TAKES_FULL_LAYERS | DP_TAKES_LOCAL_THETA |
         DP_TAKES_ROPE_SCALING | DP_TAKES_SOFTCAP | DP_TAKES_SCORES_SOFTCAP | DP_TAKES_QUERY_SCALAR,
     DP_ACTIVATION_GEGLU, DP_HEAD_TIED},
    {DP_ARCH_NEOX, "gpt_neox",
     DP_HAS_LAYER_NORM | DP_HAS_BIASES | DP_HAS_QKV_BIAS | DP_HAS_NORMS_BEFORE |
         DP_HAS_PARALLEL_PARTS,
     DP_TAKES_ROPE_WIDTH, DP_ACTIVATION_GELU_ERF, DP_HEAD_UNTIED},
};

const dp_model_family *dp_model_families(size_t *count)
{
    *count = sizeof families / sizeof families[0];
    return families;
}

const dp_model_family *dp_model_family_of(dp_arch arch)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (families[i].arch == arch) {
            return &families[i];
        }
    }
    return NULL;
}

uint32_t dp_model_features(const dp_model_config *config)
{
    const dp_model_family *const family = dp_model_family_of(config->arch);
    if (family == NULL) {
        return 0;
    }
    const dp_model_config m = dp_model_config_resolve(config);
    uint32_t features = family->features;
    features |= m.qk_norm == DP_ON ? DP_HAS_QK_NORMS : 0;
    features |= dp_activation_gated(m.activation) ? DP_HAS_GATES : 0;
    features |= m.head == DP_HEAD_UNTIED ? DP_HAS_HEAD : 0;
    return features;
}

/* True for each n-th layer; n 0: for none. */
static bool is_nth(size_t layer, uint32_t n)
{
    return n != 0 && (layer + 1) % n == 0;
}

dp_layer_traits dp_model_layer_traits(const dp_model_config *resolved, size_t layer)
{
    const bool turns = resolved->rope_theta != 0 && !is_nth(layer, resolved->rope_off_every);
    const bool local = resolved->window != 0 && !is_nth(layer, resolved->full_every);
    const dp_rope_kind rope =
        local && resolved->rope_local_theta != 0 ? DP_ROPE_LOCAL : DP_ROPE_USUAL;
    return (dp_layer_traits){
        .rope = turns ? rope : DP_ROPE_NONE,
        .window = local && resolved->window < resolved->context ? resolved->window : 0};
}
