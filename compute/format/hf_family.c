#include "compute/format/hf_family.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

#define FIELD(name) offsetof(dp_model_config, name)

/* Keys of Llama's configuration, which most families have taken over. */
#define LLAMA_NUMBERS                                                                              \
    {"num_hidden_layers", FIELD(layers), true}, {"hidden_size", FIELD(width), true},               \
        {"num_attention_heads", FIELD(heads), true}, {"intermediate_size", FIELD(hidden), true},   \
        {"max_position_embeddings", FIELD(context), true},                                         \
    {                                                                                              \
        "vocab_size", FIELD(vocab), true                                                           \
    }

static const dp_hf_family families[] = {
    {.type = "gpt2",
     .class_name = "GPT2LMHeadModel",
     .arch = DP_ARCH_GPT2,
     .numbers = {{"n_layer", FIELD(layers), true},
                 {"n_embd", FIELD(width), true},
                 {"n_head", FIELD(heads), true},
                 {"n_positions", FIELD(context), true},
                 {"vocab_size", FIELD(vocab), true},
                 {"n_inner", FIELD(hidden), false}},
     .fixed = {{"scale_attn_weights", "true", false},
               {"scale_attn_by_inverse_layer_idx", "false", false},
               {"add_cross_attention", "false", false},
               {"quantization_config", "null", false}},
     .eps_key = "layer_norm_epsilon",
     .eps_nano = 10000,
     .tied = true},
    {.type = "llama",
     .class_name = "LlamaForCausalLM",
     .arch = DP_ARCH_LLAMA,
     .numbers = {LLAMA_NUMBERS,
                 {"num_key_value_heads", FIELD(kv_heads), false},
                 {"head_dim", FIELD(head_width), false}},
     .fixed = {{"hidden_act", "silu", true},
               {"attention_bias", "false", true},
               {"mlp_bias", "false", false},
               {"pretraining_tp", "1", false},
               {"quantization_config", "null", false}},
     .eps_key = "rms_norm_eps",
     .eps_nano = 1000,
     .rope_theta = 10000},
    {.type = "qwen3",
     .class_name = "Qwen3ForCausalLM",
     .arch = DP_ARCH_LLAMA,
     .qk_norm = DP_ON,
     .numbers = {LLAMA_NUMBERS,
                 {"num_key_value_heads", FIELD(kv_heads), true},
                 {"head_dim", FIELD(head_width), true}},
     .fixed = {{"hidden_act", "silu", true},
               {"attention_bias", "false", true},
               {"use_sliding_window", "false", false},
               {"quantization_config", "null", false}},
     .eps_key = "rms_norm_eps",
     .eps_nano = 1000,
     .rope_theta = 10000},
    {.type = "qwen2",
     .class_name = "Qwen2ForCausalLM",
     .arch = DP_ARCH_QWEN2,
     .numbers = {LLAMA_NUMBERS,
                 {"num_key_value_heads", FIELD(kv_heads), true},
                 {"head_dim", FIELD(head_width), false}},
     .fixed = {{"hidden_act", "silu", true},
               {"use_sliding_window", "false", true},
               {"quantization_config", "null", false}},
     .eps_key = "rms_norm_eps",
     .eps_nano = 1000,
     .rope_theta = 10000},
    {.type = "smollm3",
     .class_name = "SmolLM3ForCausalLM",
     .arch = DP_ARCH_SMOLLM3,
     .numbers = {LLAMA_NUMBERS,
                 {"num_key_value_heads", FIELD(kv_heads), true},
                 {"head_dim", FIELD(head_width), false}},
     .fixed = {{"hidden_act", "silu", true},
               {"attention_bias", "false", true},
               {"mlp_bias", "false", true},
               {"use_sliding_window", "false", true},
               {"quantization_config", "null", false}},
     .eps_key = "rms_norm_eps",
     .eps_nano = 1000,
     .rope_theta = 2000000,
     .tied = true},
    {.type = "mistral",
     .class_name = "MistralForCausalLM",
     .window = 4096,
     .arch = DP_ARCH_MISTRAL,
     .numbers = {LLAMA_NUMBERS,
                 {"num_key_value_heads", FIELD(kv_heads), true},
                 {"head_dim", FIELD(head_width), false}},
     .fixed = {{"hidden_act", "silu", true}, {"quantization_config", "null", false}},
     .eps_key = "rms_norm_eps",
     .eps_nano = 1000,
     .rope_theta = 10000},
    {.type = "phi3",
     .class_name = "Phi3ForCausalLM",
     .arch = DP_ARCH_PHI3,
     .numbers = {LLAMA_NUMBERS,
                 {"num_key_value_heads", FIELD(kv_heads), false},
                 {"head_dim", FIELD(head_width), false}},
     .fixed = {{"hidden_act", "silu", true}, {"quantization_config", "null", false}},
     .eps_key = "rms_norm_eps",
     .eps_nano = 10000,
     .rope_theta = 10000},
    {.type = "olmo2",
     .class_name = "Olmo2ForCausalLM",
     .arch = DP_ARCH_OLMO2,
     .numbers = {LLAMA_NUMBERS,
                 {"num_key_value_heads", FIELD(kv_heads), false},
                 {"head_dim", FIELD(head_width), false}},
     .fixed = {{"hidden_act", "silu", true},
               {"attention_bias", "false", true},
               {"quantization_config", "null", false}},
     .eps_key = "rms_norm_eps",
     .eps_nano = 10000,
     .rope_theta = 10000},
    {.type = "gemma2",
     .class_name = "Gemma2ForCausalLM",
     .arch = DP_ARCH_GEMMA2,
     .numbers = {LLAMA_NUMBERS,
                 {"num_key_value_heads", FIELD(kv_heads), true},
                 {"head_dim", FIELD(head_width), true},
                 {"query_pre_attn_scalar", FIELD(query_scalar), false}},
     .fixed = {{"hidden_activation", "gelu_pytorch_tanh", true},
               {"attention_bias", "false", true},
               {"use_bidirectional_attention", "false", false},
               {"quantization_config", "null", false}},
     .eps_key = "rms_norm_eps",
     .eps_nano = 1000,
     .rope_theta = 10000,
     .tied = true,
     .window = 4096,
     .full_every = 2,
     .scores_softcap_milli = 50000,
     .softcap_milli = 30000},
    {.type = "gemma3_text",
     .class_name = "Gemma3ForCausalLM",
     .arch = DP_ARCH_GEMMA3,
     .numbers = {LLAMA_NUMBERS,
                 {"num_key_value_heads", FIELD(kv_heads), true},
                 {"head_dim", FIELD(head_width), true},
                 {"query_pre_attn_scalar", FIELD(query_scalar), false}},
     .fixed = {{"hidden_activation", "gelu_pytorch_tanh", true},
               {"attention_bias", "false", true},
               {"use_bidirectional_attention", "false", false},
               {"quantization_config", "null", false}},
     .eps_key = "rms_norm_eps",
     .eps_nano = 1000,
     .rope_theta = 1000000,
     .tied = true,
     .window = 4096,
     .full_every = 6,
     .local_theta = 10000},
    {.type = "gpt_neox",
     .class_name = "GPTNeoXForCausalLM",
     .arch = DP_ARCH_NEOX,
     .numbers = {LLAMA_NUMBERS},
     .fixed = {{"hidden_act", "gelu", true},
               {"attention_bias", "true", true},
               {"use_parallel_residual", "true", true},
               {"quantization_config", "null", false}},
     .eps_key = "layer_norm_eps",
     .eps_nano = 10000,
     .rope_theta = 10000,
     .theta_key = "rotary_emb_base",
     .share_key = "rotary_pct",
     .share_milli = 250},
};

enum { FAMILIES = sizeof families / sizeof families[0] };

const dp_hf_family *dp_hf_family_of_type(const char *type)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        if (strcmp(families[i].type, type) == 0) {
            return &families[i];
        }
    }
    return NULL;
}

const dp_hf_family *dp_hf_family_of(const dp_model_config *config)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        if (families[i].arch == config->arch && families[i].qk_norm == config->qk_norm) {
            return &families[i];
        }
    }
    return NULL;
}

void dp_hf_family_types(char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < FAMILIES && used < size; i++) {
        const char *const between = i == 0 ? "" : i + 1 < FAMILIES ? ", " : " and ";
        const int written = snprintf(out + used, size - used, "%s%s", between, families[i].type);
        used += written > 0 ? (size_t)written : 0;
    }
}

/* Types by another name: those of the same makers, whose parts are nearest. */
static const struct {
    const char *type;
    const char *near;
} relatives[] = {
    {"mixtral", "mistral"}, {"falcon", "llama"},   {"gptj", "gpt_neox"}, {"gpt_neo", "gpt2"},
    {"opt", "gpt2"},        {"deepseek", "llama"}, {"phi", "phi3"},
};

const char *dp_hf_family_near(const char *type)
{
    dp_nearest nearest = {.word = type};
    const char *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < sizeof relatives / sizeof relatives[0]; i++) {
        if (strncmp(relatives[i].type, type, strlen(relatives[i].type)) == 0) {
            return relatives[i].near;
        }
    }
    for (size_t i = 0; i < FAMILIES; i++) {
        size_t same = 0;
        while (families[i].type[same] != '\0' && families[i].type[same] == type[same]) {
            same++;
        }
        best = same > most ? families[i].type : best;
        most = same > most ? same : most;
        dp_nearest_offer(&nearest, families[i].type);
    }
    return nearest.best != NULL ? nearest.best : most >= 4 ? best : NULL;
}
