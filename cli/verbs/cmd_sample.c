/* sample, eval: queries of the current model. */
#include <math.h>
#include <stdio.h>

#include "cli/client.h"
#include "cli/json.h"
#include "cli/print.h"
#include "cli/verbs/cmd_train.h"

enum { SAMPLE_TOKENS_MAX = 2000 };

static int run_sample(dp_cmd *cmd)
{
    dp_control_error error;
    dp_client client;
    json_t *result = NULL;
    uint64_t tokens = 120;
    uint64_t seed = 0;
    const char *prompt = dp_cmd_option(cmd, "prompt");
    const bool seeded = dp_cmd_option(cmd, "seed") != NULL;
    if (!dp_cmd_number(cmd, "tokens", 1, SAMPLE_TOKENS_MAX, &tokens, &error) ||
        !dp_cmd_number(cmd, "seed", 0, UINT64_MAX, &seed, &error)) {
        return dp_cmd_fail(cmd, &error);
    }
    if (dp_client_open(&client, cmd->socket, &error) != DP_OK) {
        dp_client_close(&client);
        return dp_cmd_fail(cmd, &error);
    }
    dp_packer packer = dp_client_begin(&client, "sample");
    dp_pack_map(&packer, 1U + (prompt != NULL) + seeded);
    dp_pack_text(&packer, "tokens");
    dp_pack_u64(&packer, tokens);
    if (prompt != NULL) {
        dp_pack_text(&packer, "prompt");
        dp_pack_text(&packer, prompt);
    }
    if (seeded) {
        dp_pack_text(&packer, "seed");
        dp_pack_u64(&packer, seed);
    }
    const int status = dp_client_call(&client, &packer, NULL, NULL, &result, &error);
    dp_client_close(&client);
    if (status != 0) {
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

const dp_verb dp_verb_sample = {
    .name = "sample",
    .run = run_sample,
    .arguments = "",
    .summary = "generate text with the current weights",
    .examples = "  dpnode sample\n  dpnode sample -p \"In the beginning\" -n 80\n",
    .options = {{"prompt", 'p', "TEXT", "start of the text"},
                {"tokens", 'n', "N", "number of tokens [120]"},
                {"seed", 0, "N", "seed of the random choice of tokens"}},
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
    if (dp_cmd_option(cmd, "data") != NULL) {
        dp_error_set(&error, DP_EXIT_USAGE, "E0001", "dpnode eval FOLDER --data FILE",
                     "--data needs a folder of `dpnode train`",
                     "the daemon measures on the run's held-out text");
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
                {"data", 0, "FILE", "with FOLDER: text or token shard to measure on"}},
};
