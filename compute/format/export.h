/* Exports a state for other programs: Hugging Face's transformers, llama.cpp, llm.c. */
#ifndef DP_COMPUTE_FORMAT_EXPORT_H
#define DP_COMPUTE_FORMAT_EXPORT_H

#include <stdbool.h>

#include "base/bytes.h"

/* Paths of the inputs, and of the folder, which is made if absent. At most one of gguf and llmc. */
typedef struct dp_export_job {
    const char *manifest;
    const char *state;
    const char *tokenizer;
    const char *base; /* of a run with adapters: the object below them; else NULL */
    const char *folder;
    const char *gguf; /* a name of dp_gguf_type_of: folder/model.gguf alone */
    const char *llmc; /* a name of dp_llmc_type_of: folder/model.bin alone */
    bool merged;      /* of a run with adapters: the whole model; always so with gguf or llmc */
    /* Of the weights that training began with: what a model with rotary positions says of itself,
     * if it is more than the manifest's, which is that of training; 0: unknown */
    uint32_t context;
} dp_export_job;

/* Names of the files of an export, NULL after the last. external, adapts: of the run. */
const char *const *dp_export_files(const dp_export_job *job, bool external, bool adapts);

/* Writes the export; without gguf and llmc: model.safetensors, config.json, generation_config.json
 * and tokenizer.json. Of a run of any model: model.safetensors alone, with the tensors of its
 * table. Of a run with adapters, unless merged: adapter_model.safetensors, adapter_config.json
 * (Hugging Face's peft) and tokenizer.json. DP_BADHASH: the base is not the run's. DP_BADARG,
 * DP_BADMSG, DP_UNSUPPORTED (the other program has no such model), DP_IO, DP_NOSPACE,
 * DP_NOTFOUND, DP_NOMEM, with a sentence. */
DP_MUST dp_status dp_export(const dp_export_job *job, dp_why *why);

/* The contents of the three files. */
typedef struct dp_export_inputs {
    dp_view manifest;
    dp_view state;
    dp_view tokenizer; /* or the table of tensors */
    dp_view base;      /* with adapters, if merged: the object */
    dp_view chat;      /* the chat template, for gguf; empty: none */
} dp_export_inputs;
/* The same from memory; the paths of inputs in job are ignored. */
DP_MUST dp_status dp_export_views(const dp_export_job *job, const dp_export_inputs *in,
                                  dp_why *why);

#endif
