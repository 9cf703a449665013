/* Creates a run, for the verbs run create and swarm: finds manifest and text, then makes one
 * call. */
#ifndef DP_CLI_VERBS_CMD_RUN_H
#define DP_CLI_VERBS_CMD_RUN_H

#include "cli/client.h"
#include "cli/manifest_yaml.h"
#include "cli/paths.h"
#include "cli/tool.h"

/* Exactly one of path and demo; or neither, with from and text, and defaults for the rest. */
typedef struct dp_run_source {
    const char *path; /* manifest file */
    const char *demo; /* built-in manifest */
    const char *text; /* overrides the manifest's; may be NULL */
    const char *from; /* a folder of weights to start from; may be NULL */
    bool skip_bad_lines;
} dp_run_source;

typedef struct dp_run_input {
    dp_manifest_file file;
    char text_path[DP_CLI_PATH_MAX]; /* absolute, readable; "": none, of a run of any model */
    bool text_is_ours;               /* a temporary file */
    char from_path[DP_CLI_PATH_MAX]; /* absolute; "": weights are initialized from the seed */
    bool skip_bad_lines;             /* of JSON lines: count them and go on */
} dp_run_input;

/* A manifest file. from: the weights that the run starts from; NULL: those that the file names, if
 * it names any. 0 or the exit status of *error. */
DP_MUST int dp_run_manifest_read(const char *path, const char *from, dp_manifest_file *file,
                                 dp_control_error *error);

/* The path of the data named by the manifest at this path, absolute or relative to it; "" if it
 * names none, or too long a path. */
void dp_run_text_path(const char *manifest_path, const dp_manifest_file *file,
                      char path[DP_CLI_PATH_MAX]);

/* 0 or the exit status of *error. Call close in both cases. */
DP_MUST int dp_run_input_open(const dp_run_source *source, dp_run_input *input,
                              dp_control_error *error);
void dp_run_input_close(dp_run_input *input);

/* cmd_invite.c: a token for nodes of one owner: any number of them, which vote. *token is freed by
 * the caller; NULL on failure. */
DP_MUST int dp_invite_own(dp_client *client, char **token, dp_control_error *error);
/* run.create; name of the node may be NULL. As dp_client_call. */
DP_MUST int dp_run_create(dp_client *client, const dp_run_input *input, const char *name,
                          dp_on_notice *on_notice, void *context, json_t **result,
                          dp_control_error *error);
/* cmd_run_keys.c: the keys of a manifest, as a table or as JSON; an exit status. */
int dp_run_print_keys(const dp_cmd *cmd);

/* The options for dp_run_input, for run create and train. */
#define DP_RUN_INPUT_OPTIONS                                                                       \
    {"demo", 0, "NAME", "a built-in manifest: kjv, the King James Bible"},                         \
        {"text", 0, "FILE",                                                                        \
         "UTF-8 text or JSON lines, a folder of such files, or a folder of `data tokenize`; "      \
         "replaces the manifest's text"},                                                          \
        DP_SKIP_OPTION,                                                                            \
    {                                                                                              \
        "from", 0, "WEIGHTS",                                                                      \
            "weights to start from: a Hugging Face folder (its model and tokenizer are used) or "  \
            "an llm.c file; model keys of the manifest win; with model.arch external a "           \
            "safetensors file, which is the model"                                                 \
    }

#endif
