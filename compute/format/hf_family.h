/* How Hugging Face's transformers describe the families in config.json: one row for each model_type
 * that is read and written. */
#ifndef DP_COMPUTE_FORMAT_HF_FAMILY_H
#define DP_COMPUTE_FORMAT_HF_FAMILY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/run/model_config.h"

/* A number of the model under its key. */
typedef struct dp_hf_number {
    const char *key;
    size_t offset; /* in dp_model_config, of a uint32_t */
    bool needed;   /* else absent means 0, the default of the family */
} dp_hf_number;

/* A key whose value must be the one that the engine computes with; absent or null: transformers'
 * own is this one. */
typedef struct dp_hf_fixed {
    const char *key;
    const char *value; /* as JSON has it, without quotes */
    bool written;
} dp_hf_fixed;

enum { DP_HF_NUMBERS_MAX = 9, DP_HF_FIXED_MAX = 8 };

typedef struct dp_hf_family {
    const char *type;       /* model_type */
    const char *class_name; /* of architectures */
    dp_arch arch;
    dp_switch qk_norm;
    dp_hf_number numbers[DP_HF_NUMBERS_MAX]; /* up to a key of NULL */
    dp_hf_fixed fixed[DP_HF_FIXED_MAX];      /* the same */
    const char *eps_key;
    uint32_t eps_nano;             /* transformers' own, if the key is absent */
    uint32_t rope_theta;           /* the same; 0: no rotary positions */
    const char *theta_key;         /* NULL: rope_theta */
    const char *share_key;         /* of the channels that turn; NULL: partial_rotary_factor */
    uint32_t share_milli;          /* transformers' own share; 0: all */
    bool tied;                     /* the same, of tie_word_embeddings */
    uint32_t window;               /* the same, of sliding_window */
    uint32_t full_every;           /* the same, where the layers are not listed */
    uint32_t local_theta;          /* the same, of rope_local_base_freq */
    uint32_t scores_softcap_milli; /* the same, of attn_logit_softcapping */
    uint32_t softcap_milli;        /* the same, of final_logit_softcapping */
} dp_hf_family;

/* NULL: model_type is none of these. */
const dp_hf_family *dp_hf_family_of_type(const char *type);
/* The row of a resolved model that has a class. */
const dp_hf_family *dp_hf_family_of(const dp_model_config *config);
/* All types, "gpt2, llama and qwen3", for a sentence. */
void dp_hf_family_types(char *out, size_t size);
/* The type nearest to one that is none; NULL: none is near. */
const char *dp_hf_family_near(const char *type);

#endif
