/* Reads a folder of Hugging Face's transformers: its model, and its weights into the arena. One
 * file model.safetensors, or several with model.safetensors.index.json. The folder is untrusted; no
 * file outside it is opened. */
#ifndef DP_COMPUTE_FORMAT_HF_IMPORT_H
#define DP_COMPUTE_FORMAT_HF_IMPORT_H

#include "compute/model/model.h"

enum { DP_HF_FILES_MAX = 256, DP_HF_INDEX_BYTES_MAX = 16 << 20 };

/* Reads config.json of a folder. The statuses of dp_hf_config_read and dp_file_read. */
DP_MUST dp_status dp_hf_import_config(const char *folder, dp_model_config *config, dp_why *why);

/* Fills theta (the model's arena, zeroed by the caller: padding is not written) from F32, F16 or
 * BF16, under the names of dp_model_parts, or these without "transformer." or "model." in front.
 * The files must hold each tensor of the model in its shape, once, and no others, except masks,
 * rotary tables and a tied head, which is checked before theta is written. DP_BADMSG, DP_TOOBIG,
 * DP_NOTFOUND, DP_IO, DP_UNSUPPORTED, DP_DIVERGED (a weight is not finite), with a sentence,
 * DP_NOMEM; theta is then undefined. */
DP_MUST dp_status dp_hf_import_weights(const char *folder, const dp_model *model, float *theta,
                                       dp_why *why);

enum { DP_HF_MODEL_TEXT_MAX = 448 };
/* The model section of a manifest for this model, for people and for dpnode: "{arch: gpt2, layers:
 * 12, ...}". */
void dp_hf_import_describe(const dp_model_config *config, char text[DP_HF_MODEL_TEXT_MAX]);

/* DP_OK if theta of the found model can be trained as the wanted one: both are equal, except that
 * with rotary positions the wanted context may be another. Else DP_BADARG with a sentence that
 * holds the model section to write. */
DP_MUST dp_status dp_hf_import_match(const dp_model_config *found, const dp_model_config *wanted,
                                     dp_why *why);

#endif
