/* generation_config.json of a model that training began with: kept beside the data, and written
 * beside the trained model with the tokens that end what it says now. */
#ifndef DP_COMPUTE_CORPUS_GENERATION_CONFIG_H
#define DP_COMPUTE_CORPUS_GENERATION_CONFIG_H

#include "base/bytes.h"

/* Writes the kept file of folder data, else the exported one of folder model, to folder model, with
 * the tokens of dp_end_tokens_find in its eos_token_id. A kept file that is no object of JSON is
 * left out. tokenizer: tokenizer.json. The statuses of dp_end_tokens_find and dp_bpe_load, and
 * DP_NOSPACE. */
DP_MUST dp_status dp_generation_config_export(const char *data, const char *model,
                                              dp_view tokenizer, dp_why *why);

#endif
