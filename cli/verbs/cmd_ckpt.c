/* ckpt ls, verify, export: the checkpoints of this node. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/json.h"
#include "cli/paths.h"
#include "cli/print.h"
#include "cli/tool.h"

static int run_ls(dp_cmd *cmd)
{
    static const char *const columns[] = {"ROUND", "SIZE", "AGE", "STATE", "STATE ROOT"};
    dp_control_error error;
    json_t *result = NULL;
    if (dp_client_ask(cmd, "ckpt.list", &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    if (json_array_size(json_object_get(result, "checkpoints")) == 0) {
        printf("no checkpoint yet; the first is saved after a round\n");
        json_decref(result);
        return 0;
    }
    dp_table *table = dp_table_open(columns, sizeof columns / sizeof columns[0], 0x7);
    const uint64_t now = dp_print_now_ms();
    size_t index = 0;
    const json_t *item = NULL;
    json_array_foreach(json_object_get(result, "checkpoints"), index, item)
    {
        char text[DP_PRINT_CELL_MAX];
        const uint64_t time = (uint64_t)dp_json_int(item, "time_ms", 0); /* 0: not known */
        dp_table_row(table);
        snprintf(text, sizeof text, "%lld", dp_json_int(item, "round", 0));
        dp_table_cell(table, text);
        dp_print_bytes((uint64_t)dp_json_int(item, "bytes", 0), text);
        dp_table_cell(table, text);
        dp_print_span(now > time ? (now - time) / 1000 : 0, text);
        dp_table_cell(table, time != 0 ? text : "?");
        dp_table_cell(table, dp_json_text(item, "state", "?"));
        dp_table_cell(table, time != 0 ? dp_json_text(item, "state_root", "") : "?");
    }
    dp_table_close(table, true);
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_ckpt_ls = {
    .name = "ckpt ls",
    .run = run_ls,
    .arguments = "",
    .summary = "list the checkpoints of this node",
    .examples = "  dpnode ckpt ls\n",
};

static int run_verify(dp_cmd *cmd)
{
    dp_control_error error;
    json_t *result = NULL;
    if (dp_client_ask(cmd, "ckpt.verify", &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    const long long good = dp_json_int(result, "good", 0);
    const long long bad = dp_json_int(result, "bad", 0);
    const int answer = bad == 0 ? 0 : DP_EXIT_NEGATIVE;
    if (cmd->json) {
        const int printed = dp_cmd_print(result);
        return printed != 0 ? printed : answer;
    }
    printf("%s %lld checkpoints intact, %lld damaged\n", dp_print_mark(bad == 0), good, bad);
    json_decref(result);
    return answer;
}

const dp_verb dp_verb_ckpt_verify = {
    .name = "ckpt verify",
    .run = run_verify,
    .arguments = "",
    .summary = "read every checkpoint and check its hashes",
    .examples = "  dpnode ckpt verify\n",
};

/* The type is checked here, so that the user gets the error before anything is read. */
static bool form_is_known(const dp_cmd *cmd, dp_control_error *error)
{
    static const char *const types[] = {"f32", "bf16", "f16", "q8_0"}; /* llm.c: the first two */
    const char *const gguf = dp_cmd_option(cmd, "gguf");
    const char *const type = gguf != NULL ? gguf : dp_cmd_option(cmd, "llmc");
    const size_t count = gguf != NULL ? 4 : 2;
    bool known = type == NULL;
    for (size_t i = 0; !known && i < count; i++) {
        known = strcmp(type, types[i]) == 0;
    }
    if (known && (gguf == NULL || dp_cmd_option(cmd, "llmc") == NULL)) {
        return true;
    }
    dp_error_set(error, DP_EXIT_USAGE, "E0403",
                 "--gguf f32, f16, bf16 or q8_0; or --llmc f32 or bf16", "unknown file type",
                 known ? "--gguf and --llmc exclude each other" : type);
    return false;
}

/* Files of the user in that folder may be another model: only --force overwrites them. */
static bool would_replace(const dp_cmd *cmd, const char *folder, dp_control_error *error)
{
    static const char *const files[] = {"model.safetensors",
                                        "model.safetensors.index.json",
                                        "adapter_model.safetensors",
                                        "adapter_config.json",
                                        "config.json",
                                        "generation_config.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "chat_template.jinja"};
    const bool gguf = dp_cmd_option(cmd, "gguf") != NULL;
    const char *const one = gguf                                 ? "model.gguf"
                            : dp_cmd_option(cmd, "llmc") != NULL ? "model.bin"
                                                                 : NULL;
    if (dp_cmd_option(cmd, "force") != NULL) {
        return false;
    }
    for (size_t i = 0; i < (one != NULL ? 1 : sizeof files / sizeof files[0]); i++) {
        char path[DP_CLI_PATH_MAX + 40];
        snprintf(path, sizeof path, "%s/%s", folder, one != NULL ? one : files[i]);
        if (access(path, F_OK) != 0) {
            continue;
        }
        dp_error_set(error, DP_EXIT_CANTCREATE, "E0407", "dpnode ckpt export OTHER_FOLDER",
                     "the folder holds a model already, and --force was not given", path);
        return true;
    }
    return false;
}

/* The files of one export, as the daemon lists them. */
static int print_exported(const dp_cmd *cmd, json_t *result, const char *of)
{
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    size_t index = 0;
    const json_t *file = NULL;
    printf("%s the model of %s %lld:\n", dp_print_mark(true), of, dp_json_int(result, of, 0));
    json_array_foreach(json_object_get(result, "files"), index, file)
    {
        printf("  %s/%s\n", dp_json_text(result, "path", ""), json_string_value(file));
    }
    json_decref(result);
    return 0;
}

/* Export of a folder of `dpnode train`, which needs no daemon. */
static int export_trained(const dp_cmd *cmd, const char *folder, const char *path)
{
    static const dp_cli_failure failures[] = {
        {DP_EXIT_DATA, "E0513", "dpnode eval FOLDER   # checks its checkpoints",
         "the model cannot be exported"},
        {0, NULL, NULL, NULL},
    };
    static dp_cli_tool tool; /* too large for a stack */
    dp_cli_words words = {.count = 0};
    dp_cli_words_pair(&words, "--export", folder);
    dp_cli_words_add(&words, path);
    dp_cli_words_option(&words, cmd, "--gguf");
    dp_cli_words_option(&words, cmd, "--llmc");
    if (dp_cmd_option(cmd, "merged") != NULL) {
        dp_cli_words_add(&words, "--merged");
    }
    if (dp_cmd_option(cmd, "best") != NULL) {
        dp_cli_words_add(&words, "--best");
    }
    const dp_status status = dp_cli_tool_run(&tool, words.list);
    if (status != DP_OK) {
        return dp_cli_tool_missing(cmd, status);
    }
    json_t *const told = tool.exit == 0 ? json_loads(tool.answer, 0, NULL) : NULL;
    if (told == NULL) {
        return dp_cli_tool_failed(cmd, &tool, failures,
                                  "dmesg | tail   # shows whether memory ran out");
    }
    json_object_set_new(told, "path", dp_json_string(path));
    return print_exported(cmd, told, "step");
}

static int run_export(dp_cmd *cmd)
{
    char path[DP_CLI_PATH_MAX];
    char from[DP_CLI_PATH_MAX];
    dp_control_error error;
    dp_client client;
    json_t *result = NULL;
    const char *const folder = dp_cmd_option(cmd, "from");
    if (!form_is_known(cmd, &error)) {
        return dp_cmd_fail(cmd, &error);
    }
    if (dp_path_absolute(cmd->args[0], path) != DP_OK ||
        (folder != NULL && dp_path_absolute(folder, from) != DP_OK)) {
        dp_error_set(&error, DP_EXIT_USAGE, "E0403", "give a shorter path", "the path is too long",
                     cmd->args[0]);
        return dp_cmd_fail(cmd, &error);
    }
    if (folder == NULL && dp_cmd_option(cmd, "best") != NULL) {
        dp_error_set(&error, DP_EXIT_USAGE, "E0001", "dpnode ckpt export DIR --from FOLDER --best",
                     "--best needs a folder of `dpnode train`",
                     "a run of peers has one state for each round");
        return dp_cmd_fail(cmd, &error);
    }
    if (would_replace(cmd, path, &error)) {
        return dp_cmd_fail(cmd, &error);
    }
    if (folder != NULL) {
        return export_trained(cmd, from, path);
    }
    if (dp_client_open(&client, cmd->socket, &error) != DP_OK) {
        dp_client_close(&client);
        return dp_cmd_fail(cmd, &error);
    }
    dp_packer packer = dp_client_begin(&client, "ckpt.export");
    const char *const gguf = dp_cmd_option(cmd, "gguf");
    const char *const llmc = dp_cmd_option(cmd, "llmc");
    const bool merged = dp_cmd_option(cmd, "merged") != NULL;
    dp_pack_map(&packer, 2U + (gguf != NULL) + (llmc != NULL) + merged);
    dp_pack_text(&packer, "umask");
    dp_pack_u64(&packer, dp_path_user_umask());
    dp_pack_text(&packer, "path");
    dp_pack_text(&packer, path);
    if (gguf != NULL) {
        dp_pack_text(&packer, "gguf");
        dp_pack_text(&packer, gguf);
    }
    if (llmc != NULL) {
        dp_pack_text(&packer, "llmc");
        dp_pack_text(&packer, llmc);
    }
    if (merged) {
        dp_pack_text(&packer, "merged");
        dp_pack_bool(&packer, true);
    }
    const int status = dp_client_call(&client, &packer, NULL, NULL, &result, &error);
    dp_client_close(&client);
    if (status != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    return print_exported(cmd, result, "round");
}

const dp_verb dp_verb_ckpt_export = {
    .name = "ckpt export",
    .run = run_export,
    .arguments = "DIR",
    .summary = "write the model to a folder, in a format that other programs read",
    .examples =
        "  dpnode ckpt export ./model\n  dpnode ckpt export ./model --gguf q8_0\n"
        "  dpnode ckpt export ./model --gguf q8_0 --from run   # of dpnode train --out run\n",
    .n_args_min = 1,
    .n_args_max = 1,
    .options = {{"gguf", 0, "TYPE", "write model.gguf for llama.cpp: f32, f16, bf16 or q8_0"},
                {"llmc", 0, "TYPE", "write model.bin for llm.c: f32 or bf16"},
                {"merged", 0, NULL, "of a run with adapters: write the whole model, base included"},
                {"from", 0, "FOLDER",
                 "folder of `dpnode train`: export its newest checkpoint, without a daemon"},
                {"best", 0, NULL, "with --from: the checkpoint of the lowest held-out loss"},
                {"force", 0, NULL, "overwrite an existing model"}},
};
