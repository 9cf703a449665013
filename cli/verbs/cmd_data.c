/* data tokenize, info, verify: token shards before a run, by the tools of dpnode-worker. (data
 * alone asks the daemon: cmd_status.c.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/json.h"
#include "cli/paths.h"
#include "cli/print.h"
#include "cli/tool.h"

static void add_files(dp_cli_words *words, const dp_cmd *cmd)
{
    dp_cli_words_add(words, "--");
    for (unsigned i = 0; i < cmd->n_args; i++) {
        dp_cli_words_add(words, cmd->args[i]);
    }
}

/* what: the text for an input that is not valid. */
static int tool_failed(const dp_cmd *cmd, const dp_cli_tool *tool, const char *what)
{
    char help[96];
    snprintf(help, sizeof help, "dpnode %s --help", cmd->verb->name);
    const dp_cli_failure rows[] = {{DP_EXIT_DATA, "E0501", help, what}, {0, NULL, NULL, NULL}};
    return dp_cli_tool_failed(cmd, tool, rows, "give fewer files at once");
}

/* Runs it and returns its answer, which the caller frees. NULL: it failed with *exit. */
static dp_cli_tool *run_tool(const dp_cmd *cmd, const dp_cli_words *words, const char *what,
                             int *exit)
{
    dp_cli_tool *const tool = malloc(sizeof *tool);
    if (tool == NULL) {
        *exit = dp_cli_tool_missing(cmd, DP_NOMEM);
        return NULL;
    }
    const dp_status status = dp_cli_tool_run(tool, words->list);
    if (status == DP_OK && tool->exit == 0) {
        *exit = 0;
        return tool;
    }
    *exit = status == DP_OK ? tool_failed(cmd, tool, what) : dp_cli_tool_missing(cmd, status);
    free(tool);
    return NULL;
}

/* tokenize and verify have the same answer. */
static int print_sum(const dp_cmd *cmd, const dp_cli_tool *tool, const char *folder)
{
    char bytes[DP_PRINT_CELL_MAX];
    json_t *const sum = json_loads(tool->answer, 0, NULL);
    if (sum == NULL) {
        return tool_failed(cmd, tool, "its output cannot be parsed");
    }
    if (cmd->json) {
        return json_object_set_new(sum, "folder", dp_json_string(folder)) == 0 ? dp_cmd_print(sum)
                                                                               : DP_EXIT_SOFTWARE;
    }
    const double tokens = dp_json_real(sum, "tokens", 0);
    const double text_bytes = dp_json_real(sum, "text_bytes", 0);
    dp_print_bytes((uint64_t)text_bytes, bytes);
    printf("%s %s: %.0f tokens for %s of text (%.2f bytes each), vocabulary %lld, shards %lld\n",
           dp_print_mark(true), folder, tokens, bytes, tokens > 0 ? text_bytes / tokens : 0,
           dp_json_int(sum, "vocab", 0), dp_json_int(sum, "shards", 0));
    dp_cli_tool_print_documents(sum);
    printf("  root %s\n", dp_json_text(sum, "root", ""));
    json_decref(sum);
    return 0;
}

static int run_tokenize(dp_cmd *cmd)
{
    dp_control_error error;
    dp_cli_words words = {.count = 0};
    const char *const folder = dp_cmd_option(cmd, "out");
    if (folder == NULL) {
        dp_error_set(&error, DP_EXIT_USAGE, "E0001", "dpnode data tokenize FILE... --out FOLDER",
                     "the output folder is not given", "--out is missing");
        return dp_cmd_fail(cmd, &error);
    }
    dp_cli_words_add(&words, "data");
    dp_cli_words_add(&words, "tokenize");
    dp_cli_words_option(&words, cmd, "--out");
    dp_cli_words_option(&words, cmd, "--tokenizer");
    dp_cli_words_option(&words, cmd, "--vocab");
    dp_cli_words_option(&words, cmd, "--format");
    dp_cli_words_option(&words, cmd, "--field");
    dp_cli_words_option(&words, cmd, "--separator");
    dp_cli_words_option(&words, cmd, "--shard-tokens");
    if (dp_cmd_option(cmd, "skip-bad-lines") != NULL) {
        dp_cli_words_add(&words, "--skip-bad-lines");
    }
    add_files(&words, cmd);
    int exit = 0;
    dp_cli_tool *const tool = run_tool(cmd, &words, "the input cannot be used", &exit);
    if (tool == NULL) {
        return exit;
    }
    const int printed = print_sum(cmd, tool, folder);
    free(tool);
    return printed;
}

static int run_verify(dp_cmd *cmd)
{
    dp_cli_words words = {.count = 0};
    dp_cli_words_add(&words, "data");
    dp_cli_words_add(&words, "verify");
    add_files(&words, cmd);
    int exit = 0;
    dp_cli_tool *const tool = run_tool(cmd, &words, "the folder does not match its table", &exit);
    if (tool == NULL) {
        return exit;
    }
    const int printed = print_sum(cmd, tool, cmd->args[0]);
    free(tool);
    return printed;
}

static void print_row(dp_table *table, const char *file, const json_t *row)
{
    char text[DP_PRINT_CELL_MAX];
    dp_table_row(table);
    dp_table_cell(table, file);
    dp_table_cell(table, dp_json_text(row, "format", "?"));
    snprintf(text, sizeof text, "%lld", dp_json_int(row, "tokens", 0));
    dp_table_cell(table, text);
    dp_table_cell(table, dp_json_int(row, "token_bytes", 2) == 4 ? "u32" : "u16");
    snprintf(text, sizeof text, dp_json_int(row, "vocab", 0) > 0 ? "%lld" : "-",
             dp_json_int(row, "vocab", 0));
    dp_table_cell(table, text);
    snprintf(text, sizeof text, "%lld", dp_json_int(row, "needs", 0));
    dp_table_cell(table, text);
}

/* One line of JSON for each file, in their order. */
static int print_info(const dp_cmd *cmd, const char *answer)
{
    static const char *const columns[] = {"FILE", "FORMAT",     "TOKENS",
                                          "EACH", "VOCABULARY", "NEEDS"};
    dp_table *const table = dp_table_open(columns, sizeof columns / sizeof columns[0], 0x34);
    int exit = 0;
    for (unsigned i = 0; i < cmd->n_args && answer[0] != '\0' && exit == 0; i++) {
        json_t *const row = json_loads(answer, JSON_DISABLE_EOF_CHECK, NULL);
        if (row == NULL) {
            break;
        }
        if (cmd->json) {
            json_object_set_new(row, "file", dp_json_string(cmd->args[i]));
            exit = dp_cmd_print(row);
        } else {
            print_row(table, cmd->args[i], row);
            json_decref(row);
        }
        answer = strchrnul(answer, '\n');
        answer += answer[0] == '\n';
    }
    dp_table_close(table, !cmd->json);
    return exit;
}

static int run_info(dp_cmd *cmd)
{
    dp_cli_words words = {.count = 0};
    dp_cli_words_add(&words, "data");
    dp_cli_words_add(&words, "info");
    dp_cli_words_option(&words, cmd, "--format");
    add_files(&words, cmd);
    int exit = 0;
    dp_cli_tool *const tool = run_tool(cmd, &words, "this is not a token shard", &exit);
    if (tool == NULL) {
        return exit;
    }
    const int printed = print_info(cmd, tool->answer);
    free(tool);
    return printed;
}

const dp_verb dp_verb_data_tokenize = {
    .name = "data tokenize",
    .run = run_tokenize,
    .arguments = "FILE...",
    .summary = "make token shards from text, JSON lines, or token files of llm.c and nanoGPT",
    .examples =
        "  dpnode data tokenize book.txt --out book --vocab 4096\n"
        "  dpnode data tokenize web.jsonl --tokenizer tokenizer.json --out web\n"
        "  dpnode data tokenize answers.jsonl --tokenizer tokenizer.json --out answers "
        "--skip-bad-lines\n"
        "  dpnode data tokenize <(zcat book.gz) --tokenizer tokenizer.json --out book\n"
        "  dpnode data tokenize train.bin --format nanogpt --tokenizer t.json --out train\n",
    .n_args_min = 1,
    .n_args_max = DP_ARGUMENTS_MAX,
    .options = {{"out", 'o', "FOLDER", "folder for tokenizer.json, the shards and their table"},
                {"tokenizer", 0, "FILE", "a tokenizer.json (BPE or Unigram) of Hugging Face"},
                {"vocab", 0, "N", "train a tokenizer with N entries on the input [1024]"},
                {"format", 0, "FORMAT",
                 "auto (by the file's name and first line), text, jsonl, documents (JSON lines "
                 "that are kept apart), tokens or nanogpt [auto]"},
                {"field", 0, "NAME", "field of each JSON line that holds the text [text]"},
                {"separator", 0, "TOKEN",
                 "text after each document; \"\": none [the tokenizer's end of text]"},
                {"shard-tokens", 0, "N", "tokens per shard [100000000]"},
                DP_SKIP_OPTION},
};

const dp_verb dp_verb_data_info = {
    .name = "data info",
    .run = run_info,
    .arguments = "FILE...",
    .summary = "show format, tokens and vocabulary of token shards",
    .examples = "  dpnode data info book/tokens-00000.bin\n",
    .n_args_min = 1,
    .n_args_max = DP_ARGUMENTS_MAX,
    .options = {{"format", 0, "FORMAT", "nanogpt, whose files have no header"}},
};

const dp_verb dp_verb_data_verify = {
    .name = "data verify",
    .run = run_verify,
    .arguments = "FOLDER",
    .summary = "check the hashes of the tokenizer and of all shards",
    .examples = "  dpnode data verify book\n",
    .n_args_min = 1,
    .n_args_max = 1,
};
