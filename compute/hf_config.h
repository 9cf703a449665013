/* config.json as Hugging Face's transformers read it: GPT2LMHeadModel, LlamaForCausalLM, Qwen3ForCausalLM. Writing only. */
#ifndef DP_COMPUTE_HF_CONFIG_H
#define DP_COMPUTE_HF_CONFIG_H

#include "base/bytes.h"
#include "base/model_config.h"

/* Append the file. DP_BADARG with a sentence when no class of theirs computes this model: a soft cap, or a Llama without
 * gates. DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_hf_config_write(const dp_model_config *config, dp_buf *out, dp_why *why);

#endif
