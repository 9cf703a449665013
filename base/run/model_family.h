/* The families of models as rows of a table: the parts that a model of each has, and the settings
 * that it takes. Code asks for a part, never for a family; how to add one is in docs/HOWTO.md. */
#ifndef DP_BASE_RUN_MODEL_FAMILY_H
#define DP_BASE_RUN_MODEL_FAMILY_H

#include "base/run/model_config.h"

/* Parts of a model, as bits. */
typedef enum dp_feature {
    DP_HAS_POSITIONS = 1 << 0,  /* a learned table of positions; else rotary positions */
    DP_HAS_LAYER_NORM = 1 << 1, /* LayerNorm with biases; else RMSNorm */
    DP_HAS_BIASES = 1 << 2,     /* a bias of each product of a layer but that of q, k and v */
    DP_HAS_QKV_BIAS = 1 << 3,   /* a bias of the product of q, k and v */
    DP_HAS_QK_NORMS = 1 << 4,   /* RMSNorm of q and k, head by head */
    DP_HAS_GATES = 1 << 5,      /* the feed-forward part multiplies two products */
    DP_HAS_HEAD = 1 << 6,       /* logits have a matrix of their own */
    DP_HAS_NORMS_BEFORE =
        1 << 7,                  /* a norm before attention, and one before the feed-forward part */
    DP_HAS_NORMS_AFTER = 1 << 8, /* a norm of what each of them adds to the residual stream */
    DP_HAS_WHOLE_NORMS = 1 << 9, /* norms of q and k are of all heads together */
    DP_HAS_SCALED_EMBEDDING = 1 << 10, /* embeddings are multiplied by sqrt(width) */
    DP_HAS_GAINS_ABOVE_ONE = 1 << 11,  /* files have the gains of norms less 1 */
    DP_HAS_PARALLEL_PARTS = 1 << 12    /* the feed-forward part reads what attention reads */
} dp_feature;

/* Settings that not every family takes, as bits. */
typedef enum dp_setting {
    DP_TAKES_KV_HEADS = 1 << 0, /* and head_width, norm_eps, rope_theta */
    DP_TAKES_ACTIVATION = 1 << 1,
    DP_TAKES_QK_NORM = 1 << 2,
    DP_TAKES_ROPE_SCALING = 1 << 3, /* with its four numbers */
    DP_TAKES_ROPE_OFF = 1 << 4,
    DP_TAKES_WINDOW = 1 << 5,
    DP_TAKES_FULL_LAYERS = 1 << 6, /* between windows */
    DP_TAKES_LOCAL_THETA = 1 << 7,
    DP_TAKES_SOFTCAP = 1 << 8,        /* of the logits */
    DP_TAKES_SCORES_SOFTCAP = 1 << 9, /* of attention */
    DP_TAKES_QUERY_SCALAR = 1 << 10,
    DP_TAKES_ROPE_WIDTH = 1 << 11
} dp_setting;

typedef struct dp_model_family {
    dp_arch arch;
    const char *name;                /* the word of model.arch */
    uint32_t features;               /* dp_feature, of every model of the family */
    uint32_t settings;               /* dp_setting */
    dp_activation_choice activation; /* if the config says DP_ACTIVATION_OWN */
    dp_head_choice head;             /* if it says DP_HEAD_OWN */
} dp_model_family;

/* All rows. */
const dp_model_family *dp_model_families(size_t *count);
/* NULL: of DP_ARCH_EXTERNAL, or no family has this number. */
const dp_model_family *dp_model_family_of(dp_arch arch);
/* The parts (dp_feature) of a model that is resolved or not; 0 where there is no family. */
uint32_t dp_model_features(const dp_model_config *config);

/* The angles by which a layer turns q and k. */
typedef enum dp_rope_kind {
    DP_ROPE_NONE, /* by none */
    DP_ROPE_USUAL,
    DP_ROPE_LOCAL, /* those of rope_local_theta */
    DP_ROPE_KINDS
} dp_rope_kind;

/* Where a layer of a resolved model may differ from its neighbours. */
typedef struct dp_layer_traits {
    dp_rope_kind rope;
    uint32_t window; /* tokens that a token sees, the own one too; 0: all in its context */
} dp_layer_traits;

dp_layer_traits dp_model_layer_traits(const dp_model_config *resolved, size_t layer);

#endif
