/* Families of models as llama.cpp names them, the models of each that it computes, and their
 * numbers as pairs of a GGUF file. Private to compute/format/gguf*.c. */
#ifndef DP_COMPUTE_FORMAT_GGUF_ARCH_H
#define DP_COMPUTE_FORMAT_GGUF_ARCH_H

#include "compute/format/gguf_words.h"
#include "compute/model/model.h"

typedef struct dp_gguf_arch {
    dp_arch arch;
    dp_switch qk_norm;
    const char *name;
    bool pairs; /* it turns neighbouring channels: rows of q and k are interleaved */
} dp_gguf_arch;

/* The row of a model that dp_gguf_arch_check has passed. */
const dp_gguf_arch *dp_gguf_arch_of(const dp_model_config *config);

/* DP_UNSUPPORTED with a sentence that names the key: llama.cpp computes such a model otherwise. */
DP_MUST dp_status dp_gguf_arch_check(const dp_model_config *m, dp_why *why);

/* general.architecture and the architecture's own pairs. */
void dp_gguf_arch_pairs(dp_gguf_pairs *pairs, const dp_model_config *m);

#endif
