/* sample, eval: queries of the current model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/client.h"
#include "cli/json.h"
#include "cli/print.h"
#include "cli/tool.h"
#include "cli/verbs/cmd_train.h"

enum { SAMPLE_TOKENS_MAX = 2000, TOP_K = 40 };
#define TEMPERATURE 0.8
#define TEMPERATURE_MAX 1000.0
#define TOP_P_MIN 1e-6

/* How the text is drawn. */
typedef struct wish {
    const char *prompt; /* NULL: none */
    bool seeded;
    uint64_t tokens;
    uint64_t seed;
    uint64_t top_k;
    double temperature;
    double top_p;
} wish;

static bool read_wish(const dp_cmd *cmd, wish *out, dp_control_error *error)
{
    *out = (wish){.prompt = dp_cmd_option(cmd, "prompt"),
                  .seeded = dp_cmd_option(cmd, "seed") != NULL,
                  .tokens = 120,
                  .top_k = TOP_K,
                  .temperature = TEMPERATURE,
                  .top_p = 1};
    return dp_cmd_number(cmd, "tokens", 1, SAMPLE_TOKENS_MAX, &out->tokens, error) &&
           dp_cmd_number(cmd, "seed", 0, UINT64_MAX, &out->seed, error) &&
           dp_cmd_number(cmd, "top-k", 1, UINT32_MAX, &out->top_k, error) &&
           dp_cmd_real(cmd, "temperature", 0, TEMPERATURE_MAX, &out->temperature, error) &&
           dp_cmd_real(cmd, "top-p", TOP_P_MIN, 1, &out->top_p, error);
}

/* ---- of a folder of `dpnode train` ---- */

static const dp_cli_failure failures[] = {
    {DP_EXIT_DATA, "E0520",
     "dpnode train --resume --out FOLDER   # names what is damaged; of adapters: dpnode ckpt "
     "export DIR --from FOLDER --merged",
     "no text can be generated from this folder"},
    {DP_EXIT_UNAVAILABLE, "E0510", "free memory", "this machine has too little memory"},
    {0, NULL, NULL, NULL},
};

static int print_folder(const dp_cmd *cmd, const dp_cli_tool *tool)
{
    json_t *const answer = json_loads(tool->answer, 0, NULL);
    if (answer == NULL) {
        return dp_cli_tool_failed(cmd, tool, failures, "try again");
    }
    if (cmd->json) {
        return dp_cmd_print(answer);
    }
    dp_print_text(dp_json_text(answer, "text", ""));
    putchar('\n');
    json_decref(answer);
    return 0;
}

static int sample_folder(const dp_cmd *cmd, uint64_t seed)
{
    static const char *const passed[] = {"--prompt", "--tokens", "--temperature",
                                         "--top-k",  "--top-p",  "--threads"};
    char number[24];
    dp_cli_words words = {.count = 0};
    dp_cli_tool *const tool = malloc(sizeof *tool);
    if (tool == NULL) {
        return dp_cli_tool_missing(cmd, DP_NOMEM);
    }
    dp_cli_words_pair(&words, "sample", cmd->args[0]);
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++) {
        dp_cli_words_option(&words, cmd, passed[i]);
    }
    snprintf(number, sizeof number, "%llu", (unsigned long long)seed);
    dp_cli_words_pair(&words, "--seed", number);
    if (dp_cmd_option(cmd, "best") != NULL) {
        dp_cli_words_add(&words, "--best");
    }
    const dp_status status = dp_cli_tool_run(tool, words.list);
    int exit = 0;
    if (status != DP_OK) {
        exit = dp_cli_tool_missing(cmd, status);
    } else {
        exit = tool->exit != 0 ? dp_cli_tool_failed(cmd, tool, failures, "try again")
                               : print_folder(cmd, tool);
    }
    free(tool);
    return exit;
}

/* ---- of the daemon's run ---- */

/* Only what was given, so that the daemon's defaults hold. */
static void pack_wish(dp_packer *packer, const dp_cmd *cmd, const wish *w)
{
    const bool warm = dp_cmd_option(cmd, "temperature") != NULL;
    const bool most = dp_cmd_option(cmd, "top-k") != NULL;
    const bool part = dp_cmd_option(cmd, "top-p") != NULL;
    dp_pack_map(packer, 1U + (w->prompt != NULL) + w->seeded + warm + most + part);
    dp_pack_text(packer, "tokens");
    dp_pack_u64(packer, w->tokens);
    if (w->prompt != NULL) {
        dp_pack_text(packer, "prompt");
        dp_pack_text(packer, w->prompt);
    }
    if (w->seeded) {
        dp_pack_text(packer, "seed");
        dp_pack_u64(packer, w->seed);
    }
    if (warm) {
        dp_pack_text(packer, "temperature");
        dp_pack_f64(packer, w->temperature);
    }
    if (most) {
        dp_pack_text(packer, "top_k");
        dp_pack_u64(packer, w->top_k);
    }
    if (part) {
        dp_pack_text(packer, "top_p");
        dp_pack_f64(packer, w->top_p);
    }
}

/* An older daemon ignores how the tokens shall be chosen. */
static bool is_known(const dp_cmd *cmd, const json_t *result, dp_control_error *error)
{
    if (json_object_get(result, "top_k") != NULL ||
        (dp_cmd_option(cmd, "temperature") == NULL && dp_cmd_option(cmd, "top-k") == NULL &&
         dp_cmd_option(cmd, "top-p") == NULL)) {
        return true;
    }
    dp_error_set(error, DP_EXIT_PROTOCOL, "E0102",
                 "dpnode down, then dpnode up   # with the installed version",
                 "the running daemon is an older version",
                 "it does not know --temperature, --top-k and --top-p");
    return false;
}

static int sample_run(const dp_cmd *cmd, const wish *w)
{
    dp_control_error error;
    dp_client client;
    json_t *result = NULL;
    if (dp_cmd_option(cmd, "threads") != NULL || dp_cmd_option(cmd, "best") != NULL) {
        dp_error_set(&error, DP_EXIT_USAGE, "E0001", "dpnode sample FOLDER --threads N --best",
                     "--threads and --best need a folder of `dpnode train`",
                     "a daemon's text is of its newest checkpoint, and takes one thread beside the "
                     "trainer");
        return dp_cmd_fail(cmd, &error);
    }
    if (dp_client_open(&client, cmd->socket, &error) != DP_OK) {
        dp_client_close(&client);
        return dp_cmd_fail(cmd, &error);
    }
    dp_packer packer = dp_client_begin(&client, "sample");
    pack_wish(&packer, cmd, w);
    const int status = dp_client_call(&client, &packer, NULL, NULL, &result, &error);
    dp_client_close(&client);
    if (status != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (!is_known(cmd, result, &error)) {
        json_decref(result);
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    dp_print_text(dp_json_text(result, "text", ""));
    putchar('\n');
    json_decref(result);
    return 0;
}

static int run_sample(dp_cmd *cmd)
{
    dp_control_error error;
    wish w;
    if (!read_wish(cmd, &w, &error)) {
        return dp_cmd_fail(cmd, &error);
    }
    return cmd->n_args > 0 ? sample_folder(cmd, w.seeded ? w.seed : dp_print_now_ms())
                           : sample_run(cmd, &w);
}

const dp_verb dp_verb_sample = {
    .name = "sample",
    .run = run_sample,
    .arguments = "[FOLDER]",
    .summary = "generate text with the newest checkpoint, of the daemon's run or of a `dpnode "
               "train` folder",
    .examples = "  dpnode sample\n  dpnode sample -p \"In the beginning\" -n 80 --seed 7\n"
                "  dpnode sample run --temperature 0.6 --top-p 0.9\n",
    .n_args_max = 1,
    .options = {{"prompt", 'p', "TEXT", "start of the text"},
                {"tokens", 'n', "N", "number of tokens, at most 2000 [120]"},
                {"seed", 0, "N", "seed of the random choice of tokens [from the clock]"},
                {"temperature", 't', "X",
                 "0: always the most likely token; 1: as the model has it [0.8]"},
                {"top-k", 'k', "N", "only the N most likely tokens [40]"},
                {"top-p", 0, "X", "only the most likely tokens whose probabilities sum to X [1]"},
                {"best", 0, NULL, "with FOLDER: the checkpoint of the lowest held-out loss"},
                {"threads", 0, "N",
                 "with FOLDER: number of threads; does not affect the text [all processors]"}},
};

static int run_eval(dp_cmd *cmd)
{
    dp_control_error error;
    dp_client client;
    json_t *result = NULL;
    uint64_t tokens = 0;
    if (!dp_cmd_number(cmd, "tokens", 0, UINT64_MAX, &tokens, &error)) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->n_args > 0) {
        return dp_train_eval(cmd);
    }
    if (dp_cmd_option(cmd, "data") != NULL || dp_cmd_option(cmd, "best") != NULL) {
        dp_error_set(&error, DP_EXIT_USAGE, "E0001", "dpnode eval FOLDER --data FILE --best",
                     "--data and --best need a folder of `dpnode train`",
                     "the daemon measures its model on the run's held-out text");
        return dp_cmd_fail(cmd, &error);
    }
    if (dp_client_open(&client, cmd->socket, &error) != DP_OK) {
        dp_client_close(&client);
        return dp_cmd_fail(cmd, &error);
    }
    dp_packer packer = dp_client_begin(&client, "eval");
    dp_pack_map(&packer, 1);
    dp_pack_text(&packer, "tokens");
    dp_pack_u64(&packer, tokens);
    const int status = dp_client_call(&client, &packer, NULL, NULL, &result, &error);
    dp_client_close(&client);
    if (status != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    const double loss = dp_json_real(result, "loss", (double)NAN);
    printf("round %lld: loss %.4f per token, perplexity %.2f, %.4f bits per byte, on %lld held-out "
           "tokens\n",
           dp_json_int(result, "round", 0), loss, exp(loss),
           dp_json_real(result, "bits_per_byte", NAN), dp_json_int(result, "tokens", 0));
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_eval = {
    .name = "eval",
    .run = run_eval,
    .arguments = "[FOLDER]",
    .summary =
        "measure the loss on held-out text, of the daemon's model or of a `dpnode train` folder",
    .examples =
        "  dpnode eval\n  dpnode eval -n 20000 --json\n  dpnode eval run --data other.txt\n",
    .n_args_max = 1,
    .options = {{"tokens", 'n', "N", "number of tokens; 0: all [0]"},
                {"best", 0, NULL, "with FOLDER: the checkpoint of the lowest held-out loss"},
                {"data", 0, "FILE", "with FOLDER: text, JSON lines or token shard to measure on"}},
};
