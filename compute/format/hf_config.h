/* config.json of Hugging Face's transformers, written and read: the families of hf_family.h. */
#ifndef DP_COMPUTE_FORMAT_HF_CONFIG_H
#define DP_COMPUTE_FORMAT_HF_CONFIG_H

#include "base/bytes.h"
#include "base/run/model_config.h"

/* DP_UNSUPPORTED with a sentence: no class of transformers computes this model (a soft cap, or a
 * Llama without gates). */
DP_MUST dp_status dp_hf_config_check(const dp_model_config *config, dp_why *why);

/* Appends config.json. The statuses of dp_hf_config_check; DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_hf_config_write(const dp_model_config *config, dp_buf *out, dp_why *why);

/* Appends generation_config.json: an empty text begins with token *begin, and sampling ends at
 * *end; NULL: the tokenizer has no such token. DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_hf_generation_write(const uint32_t *begin, const uint32_t *end, dp_buf *out);

enum { DP_HF_CONFIG_BYTES_MAX = 1 << 20 };

/* Reads the model of config.json, resolved and checked. Ignores keys without effect (dropout, token
 * ids); refuses values that the engine cannot compute. DP_BADMSG, DP_TOOBIG, DP_UNSUPPORTED,
 * DP_BADARG (dp_model_config_check) with a sentence; *config is untouched. */
DP_MUST dp_status dp_hf_config_read(dp_view json, dp_model_config *config, dp_why *why);

#endif
