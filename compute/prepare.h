/* The worker's tools: text to tokenizer and token shard, and state to a folder that Hugging Face's transformers open. They
 * print for a person or a script; no training here. */
#ifndef DP_COMPUTE_PREPARE_H
#define DP_COMPUTE_PREPARE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define DP_PREPARED_INIT "init.state"

typedef struct dp_prepared {
    uint64_t tokenizer_bytes;
    uint64_t tokens;
    uint64_t data_bytes;
    uint64_t text_bytes;
    uint64_t vocab; /* tokens that the tokenizer has: fewer than asked for if the text is poor */
} dp_prepared;

/* Read UTF-8 text, train a tokenizer of vocab tokens, write folder/tokenizer.json and folder/tokens.bin. Where text_path is
 * a folder of data (corpus.h), check it and take its tokenizer and its shard: DP_UNSUPPORTED if it has several, DP_BADARG
 * if it was made for more than vocab tokens. */
DP_MUST dp_status dp_prepare(const char *text_path, const char *folder, uint32_t vocab,
                             dp_prepared *prepared, dp_why *why);
/* The same for a run that starts from the weights of a Hugging Face folder (hf_import.h): folder/init.state, the state of
 * round 0, and, where text_path is a text, the tokenizer that came with the weights instead of a new one. The model must be the
 * manifest's. Where text_path is a folder of data, its tokenizer must be the one that came with the weights. */
DP_MUST dp_status dp_prepare_from(const char *text_path, const char *folder, const char *weights,
                                  const char *manifest_path, dp_prepared *prepared, dp_why *why);
/* Write folder/model.safetensors, config.json and tokenizer.json from a manifest, a state file and a tokenizer. */
DP_MUST dp_status dp_export(const char *manifest_path, const char *state_path,
                            const char *tokenizer_path, const char *folder, dp_why *why);
/* The same inputs as folder/model.gguf alone; type: a name of dp_gguf_type_of. NULL: as dp_export. */
DP_MUST dp_status dp_export_gguf(const char *manifest_path, const char *state_path,
                                 const char *tokenizer_path, const char *folder, const char *type,
                                 dp_why *why);

#endif
