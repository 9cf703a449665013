/* adapter_config.json of Hugging Face's peft, for adapters of this model. Writing only. */
#ifndef DP_COMPUTE_FORMAT_ADAPTER_CONFIG_H
#define DP_COMPUTE_FORMAT_ADAPTER_CONFIG_H

#include "base/bytes.h"
#include "base/run/model_config.h"

/* Appends the file; config has adapters. It names no folder of a base, which is another one on each
 * machine: give PeftModel.from_pretrained the base model. DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_adapter_config_write(const dp_model_config *config, dp_buf *out);

#endif
