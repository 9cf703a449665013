/* config.json as Hugging Face's transformers read it: GPT2LMHeadModel, LlamaForCausalLM,
 * Qwen3ForCausalLM. */
#ifndef DP_COMPUTE_FORMAT_HF_CONFIG_H
#define DP_COMPUTE_FORMAT_HF_CONFIG_H

#include "base/bytes.h"
#include "base/run/model_config.h"

/* DP_UNSUPPORTED with a sentence when no class of theirs computes this model: a soft cap, or a
 * Llama without gates. */
DP_MUST dp_status dp_hf_config_check(const dp_model_config *config, dp_why *why);

/* Append the file. What dp_hf_config_check says; DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_hf_config_write(const dp_model_config *config, dp_buf *out, dp_why *why);

/* Append generation_config.json: sampling that ends at token *end, with which a text without a
 * beginning begins; NULL: the tokenizer has none. DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_hf_generation_write(const uint32_t *end, dp_buf *out);

enum { DP_HF_CONFIG_BYTES_MAX = 1 << 20 };

/* The model that config.json describes, resolved and checked. Keys that change nothing (dropout,
 * token ids) are not looked at; what would change the arithmetic to something the engine does not
 * compute is refused. DP_BADMSG, DP_TOOBIG, DP_UNSUPPORTED, DP_BADARG (dp_model_config_check) with
 * a sentence; then *config is untouched. */
DP_MUST dp_status dp_hf_config_read(dp_view json, dp_model_config *config, dp_why *why);

#endif
