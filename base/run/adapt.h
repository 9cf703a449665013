/* Adapters of a model as plain numbers (Hu et al. 2021, LoRA): which matrices have one, and how
 * many parameters that makes. Tensors are in compute/model/adapter.h.
 *
 * A model with adapters trains them alone; its other weights, the base, never change. */
#ifndef DP_BASE_RUN_ADAPT_H
#define DP_BASE_RUN_ADAPT_H

#include "base/run/model_config.h"

enum { DP_ADAPT_RANK_MAX = 256, DP_ADAPT_TEXT_MAX = 128 };

/* Number format of the matrices of the layers of a base, as every node holds it; tables (embedding,
 * positions, head) are bf16, or fp32 with the first, and vectors fp32
 * (compute/model/base_weights.h). */
typedef enum dp_base_kind {
    DP_BASE_BF16 = 0,
    DP_BASE_FP32 = 1,
    DP_BASE_INT8 = 2, /* blocks of 64 with a scale */
    DP_BASE_NF4 = 3,  /* the same with 4-bit codes (Dettmers et al. 2023, QLoRA) */
    DP_BASE_KINDS
} dp_base_kind;

/* Bits of dp_model_config.adapt_targets: linear layers of a block. */
enum {
    DP_ADAPT_Q = 1 << 0,
    DP_ADAPT_K = 1 << 1,
    DP_ADAPT_V = 1 << 2,
    DP_ADAPT_OUT = 1 << 3,
    DP_ADAPT_GATE = 1 << 4,
    DP_ADAPT_UP = 1 << 5,
    DP_ADAPT_DOWN = 1 << 6,
    DP_ADAPT_ALL = (1 << 7) - 1
};

/* A linear layer under the name that Hugging Face's classes give it. */
typedef struct dp_adapt_word {
    const char *word; /* "q_proj"; of GPT-2 "attn.c_proj" */
    uint32_t bits;    /* GPT-2's "c_attn" is q, k and v as one */
} dp_adapt_word;

const dp_adapt_word *dp_adapt_words(size_t *count);
/* Bits of a word, or of "all" and "attention"; 0: unknown. */
uint32_t dp_adapt_bits(const char *word);
/* The targets of a resolved config as words with a comma between them, in the table's order. */
void dp_adapt_text(const dp_model_config *config, char text[DP_ADAPT_TEXT_MAX]);

static inline bool dp_model_config_adapts(const dp_model_config *config)
{
    return config->adapt_rank > 0;
}

/* The same model without its adapters. */
dp_model_config dp_model_config_base(const dp_model_config *config);
/* Linear layers that a family has. config: resolved. */
uint32_t dp_adapt_all(const dp_model_config *config);
/* DP_BADARG with a sentence that names the key: adapters that this model cannot have. config:
 * resolved; its base has passed dp_model_config_check. */
DP_MUST dp_status dp_adapt_check(const dp_model_config *config, dp_why *why);
/* Parameters of all adapters of a resolved and checked config. */
uint64_t dp_adapt_parameters(const dp_model_config *config);

#endif
