/* A run manifest as a person writes it: YAML in, dp_manifest out, and for every mistake the line,
 * the column and the fix. Total: any bytes give a manifest or a sentence. Nodes never exchange
 * YAML; base/run/manifest.h has the form that they exchange.
 *
 *   name: kjv                    # and text: PATH, from: PATH, relative to the file
 *   model: {preset: gpt2-124m}   # or {layers: 4, width: 128, ...}; keys given besides a preset
 *     override it
 *   model: {from: PATH, adapt: {rank: 8, targets: [q_proj, v_proj]}}   # the same as from: PATH
 *   round: {mode: diloco}        # the same with base/run/run_mode.h
 *   train: ...  round: ...       # the keys of dp_manifest_rows, cut at the dot, or whole
 *     (train.lr: 3e-3)
 * Refused: anchors, aliases and tags, a key twice, more than one document, nesting deeper than
 * model.adapt, more than DP_YAML_BYTES_MAX bytes. */
#ifndef DP_CLI_MANIFEST_YAML_H
#define DP_CLI_MANIFEST_YAML_H

#include "base/run/manifest.h"

enum { DP_YAML_BYTES_MAX = 64 * 1024, DP_YAML_TEXT_MAX = 400 };

typedef struct dp_manifest_file {
    dp_manifest manifest;             /* checked; keys and hashes are zero */
    char text_path[DP_YAML_TEXT_MAX]; /* as written; "" if absent */
    char from_path[DP_YAML_TEXT_MAX]; /* of the weights, likewise */
} dp_manifest_file;

/* file_name stands before line and column in *what. model: values of the model keys that the file
 * does not give, as of a preset; NULL: their defaults. DP_BADMSG: *what and *fix (may stay "") are
 * filled; of *file only from_path is to be used, "" if the mistake stands before it. */
DP_MUST dp_status dp_manifest_yaml_read(dp_view bytes, const char *file_name,
                                        const dp_model_config *model, dp_manifest_file *file,
                                        dp_why *what, dp_why *fix);

#endif
