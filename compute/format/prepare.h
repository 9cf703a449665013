/* Prepares a run: text or tokens, and perhaps weights, become the objects that its manifest names;
 * for a run of any model, a safetensors file alone. No training here. */
#ifndef DP_COMPUTE_FORMAT_PREPARE_H
#define DP_COMPUTE_FORMAT_PREPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/run/manifest.h"
#include "base/run/prepared.h"
#include "compute/corpus/document_counts.h"

typedef struct dp_prepared {
    uint64_t tokenizer_bytes; /* or of the table of tensors */
    uint64_t tensors;         /* of a run of any model, as elements; else 0 */
    uint64_t elements;
    uint64_t tokens;
    uint64_t shards;
    uint64_t data_bytes; /* of all shards */
    uint64_t text_bytes;
    uint64_t vocab; /* tokens of the tokenizer: fewer than asked for if the text is poor */
    /* documents that are kept apart are packed into windows of model.context */
    dp_document_counts counts;
} dp_prepared;

typedef struct dp_prepare_job {
    /* UTF-8 text, or JSON lines by its name; a folder of data (corpus.h); or one of files
     * (tokenize.h) */
    const char *text;
    const char *folder; /* target of the files (base/run/prepared.h); made if absent */
    /* First weights: a Hugging Face folder (hf_import.h), or a file of llm.c (llmc.h), whose data
     * must be a folder with its tokenizer; NULL: from the seed. Of a run of any model: a
     * safetensors file, which must be given; text is not read. */
    const char *weights;
    bool skip_bad_lines; /* of JSON lines: count them and go on */
} dp_prepare_job;

/* Makes the objects of a run: tokenizer.json, the shards, and with weights init.state, or with
 * adapters, which need weights, base.weights; and names them in manifest, whose model they must
 * fit. A text gets a tokenizer of manifest->vocab tokens, or that of the weights; a folder of data
 * is checked and taken with its own, which must be that of the weights; the files of another
 * folder, in the order of their names, or a file of JSON lines, are tokenized into shards, by a
 * tokenizer as for a text. Documents that are kept apart, of JSON lines or of a folder of data, are
 * packed into windows of model.context.
 * Data in which no shard's training part holds one sequence is refused. A run of any model gets
 * tensors.table and init.state. DP_BADARG, DP_BADMSG, DP_TOOBIG (more than DP_MANIFEST_SHARDS_MAX
 * shards) ... with a sentence; then *manifest is as it was. */
DP_MUST dp_status dp_prepare(const dp_prepare_job *job, dp_manifest *manifest,
                             dp_prepared *prepared, dp_why *why);
/* The same from and to files: a canonical manifest, and folder/manifest.bin, which has its data
 * part filled in. */
DP_MUST dp_status dp_prepare_files(const dp_prepare_job *job, const char *manifest_path,
                                   dp_prepared *prepared, dp_why *why);

/* Reads a safetensors file as a run of any model would, and writes nothing: tensors, elements and
 * tokenizer_bytes. Values are not looked at. With a sentence as above, which names file and
 * tensor. */
DP_MUST dp_status dp_prepare_tensors(const char *path, dp_prepared *prepared, dp_why *why);

#endif
