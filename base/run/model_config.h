/* The shape of a model as plain numbers: families, limits and published presets. Tensors are in
 * compute/model/model.h, arithmetic in compute/model/gpt.h. */
#ifndef DP_BASE_RUN_MODEL_CONFIG_H
#define DP_BASE_RUN_MODEL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
    DP_MODEL_LAYERS_MAX = 256,
    DP_MODEL_WIDTH_MAX = 16384,
    DP_MODEL_HEADS_MAX = 256,
    DP_MODEL_HEAD_WIDTH_MAX = 256,
    DP_MODEL_HIDDEN_MAX = 65536,
    DP_MODEL_CONTEXT_MAX = 65536,
    DP_MODEL_VOCAB_MAX = 262144
};
#define DP_MODEL_ELEMENTS_MAX ((uint64_t)1 << 36)

typedef enum dp_arch {
    DP_ARCH_GPT2,  /* Radford et al. 2019: LayerNorm, learned positions, biases, tied head */
    DP_ARCH_LLAMA, /* Touvron et al. 2023: RMSNorm, rotary positions, gated units, no biases */
    /* Any model: a table of tensors and no arithmetic (compute/model/tensor_table.h). Every other
     * field of dp_model_config is 0. */
    DP_ARCH_EXTERNAL,
    DP_ARCH_QWEN2,   /* Yang et al. 2024: as Llama, with a bias of q, k and v */
    DP_ARCH_SMOLLM3, /* Bakouch et al. 2025: as Llama, some layers without rotary positions */
    DP_ARCH_MISTRAL, /* Jiang et al. 2023: as Llama, with a window */
    DP_ARCH_PHI3,    /* Abdin et al. 2024: the same, with products side by side in files */
    DP_ARCH_OLMO2,   /* OLMo et al. 2024: norms behind each part and of the whole q and k */
    DP_ARCH_GEMMA2,  /* Gemma Team 2024: norms before and behind, soft caps, every other window */
    DP_ARCH_GEMMA3,  /* Gemma Team 2025: the same with norms of q and k in place of caps */
    /* Black et al. 2022: LayerNorm, biases, both parts of a layer beside each other, part of each
     * head rotary */
    DP_ARCH_NEOX
} dp_arch;

typedef enum dp_activation_choice {
    DP_ACTIVATION_OWN, /* of the family: GELU, SwiGLU */
    DP_ACTIVATION_GELU,
    DP_ACTIVATION_RELU2,
    DP_ACTIVATION_SWIGLU, /* not GPT-2, as all that have gates */
    DP_ACTIVATION_GEGLU,
    DP_ACTIVATION_GELU_ERF /* GELU as it is defined; DP_ACTIVATION_GELU is its usual estimate */
} dp_activation_choice;

/* True for one that multiplies two products. */
static inline bool dp_activation_gated(dp_activation_choice activation)
{
    return activation == DP_ACTIVATION_SWIGLU || activation == DP_ACTIVATION_GEGLU;
}

typedef enum dp_switch { DP_OFF, DP_ON } dp_switch;

typedef enum dp_head_choice {
    DP_HEAD_OWN, /* of the family: GPT-2 tied, Llama untied */
    DP_HEAD_TIED,
    DP_HEAD_UNTIED
} dp_head_choice;

/* How rotary angles are stretched for longer sequences than a model was first trained with. */
typedef enum dp_rope_scaling {
    DP_ROPE_PLAIN,
    DP_ROPE_LINEAR, /* all by rope_factor (Chen et al. 2023) */
    /* Only slow turns: those whose waves are longer than rope_context / rope_low by rope_factor,
     * those shorter than rope_context / rope_high not, between them by both (Grattafiori et al.
     * 2024) */
    DP_ROPE_LLAMA3
} dp_rope_scaling;

/* 0 means the default of the family; dp_model_config_resolve fills it in. Real numbers are stored
 * as integers. */
typedef struct dp_model_config {
    uint32_t layers;
    uint32_t width; /* C */
    uint32_t heads;
    uint32_t context; /* T: longest sequence */
    uint32_t vocab;   /* V */
    dp_arch arch;
    uint32_t kv_heads;   /* 0: heads. Divides heads (Ainslie et al. 2023); GPT-2: heads */
    uint32_t head_width; /* 0: width / heads; GPT-2 has no other */
    uint32_t hidden; /* inner width of the feed-forward part; 0: GPT-2 4 C, Llama 8/3 C up to 64s */
    uint32_t norm_eps_nano; /* 0: 1e-5 = 10000; GPT-2 has no other */
    uint32_t rope_theta;    /* 0: 10000; GPT-2 has no rotary positions: 0 */
    dp_activation_choice activation;
    dp_switch qk_norm; /* RMSNorm of each head of q and k (Dehghani et al. 2023); Llama only */
    dp_head_choice head;
    uint32_t softcap_milli; /* logits become s tanh(logits / s) (Gemma Team 2024); 0: unchanged */
    /* Adapters (base/run/adapt.h), which are then all that is trained. 0: none. */
    uint32_t adapt_rank;
    uint32_t adapt_alpha_milli; /* x A B counts alpha / rank times; 0: alpha is the rank */
    uint32_t adapt_targets;     /* bits; 0: every linear layer of the blocks */
    dp_rope_scaling rope_scaling;
    uint32_t rope_factor_milli; /* 0 without scaling, as the next three without DP_ROPE_LLAMA3 */
    uint32_t rope_low_milli;
    uint32_t rope_high_milli;
    uint32_t rope_context;     /* tokens */
    uint32_t rope_off_every;   /* each n-th layer has no rotary positions; 0: all have them */
    uint32_t window;           /* tokens that attention sees, with the own one; 0: all */
    uint32_t full_every;       /* each n-th layer has no window; 0: all have it */
    uint32_t rope_local_theta; /* base of the angles of layers with a window; 0: as the others */
    uint32_t scores_softcap_milli; /* of attention's scores, as softcap_milli */
    uint32_t query_scalar; /* scores are scaled by 1/sqrt of this; 0: of the width of a head */
    uint32_t rope_width;   /* channels of a head that turn, even; 0: all */
} dp_model_config;

/* Replaces zeros by the defaults of the family; works for invalid configs too. */
dp_model_config dp_model_config_resolve(const dp_model_config *config);
/* DP_BADARG with a sentence that names the key of the manifest: no such model can exist, it exceeds
 * a limit, or an external one has a shape. */
DP_MUST dp_status dp_model_config_check(const dp_model_config *config, dp_why *why);
/* Number of parameters that are trained, of a config that passes the check; 0 for DP_ARCH_EXTERNAL,
 * whose config does not say (dp_manifest_parameters). */
uint64_t dp_model_config_parameters(const dp_model_config *config);

typedef struct dp_model_preset {
    const char *name; /* "gpt2-124m" */
    const char *text; /* source of the shape */
    dp_model_config config;
} dp_model_preset;

/* Published shapes, and tiny ones for tests. */
const dp_model_preset *dp_model_presets(size_t *count);
/* NULL: no preset has this name. */
const dp_model_preset *dp_model_preset_find(const char *name);

#endif
