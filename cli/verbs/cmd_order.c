/* revoke, run fork, run merge: commands that need the root key or an admin, and cannot be
 * undone. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/json.h"
#include "cli/print.h"

/* Has the user confirmed, by option or now? False: *error gives the fix. */
static bool agreed(const dp_cmd *cmd, const char *question, dp_control_error *error)
{
    char answer[16] = "";

    if (dp_cmd_option(cmd, "yes") != NULL) {
        return true;
    }
    if (!cmd->json && isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) {
        fprintf(stderr, "%s\nType yes to go on: ", question);
        if (fgets(answer, sizeof answer, stdin) != NULL && strcmp(answer, "yes\n") == 0) {
            return true;
        }
        dp_error_set(error, DP_EXIT_NEGATIVE, "E0122", "", "nothing was changed", "");
        return false;
    }
    dp_error_set(error, DP_EXIT_USAGE, "E0122", "dpnode status   # names the run that this changes",
                 "this cannot be undone and needs --yes", question);
    return false;
}

/* One call with one parameter of text, or a number, or none. */
static int ask(const dp_cmd *cmd, const char *method, const char *key, const char *value,
               uint64_t number, json_t **result, dp_control_error *error)
{
    dp_client client;
    if (dp_client_open(&client, cmd->socket, error) != DP_OK) {
        dp_client_close(&client);
        return error->exit;
    }
    dp_packer packer = dp_client_begin(&client, method);
    dp_pack_map(&packer, key != NULL ? 1 : 0);
    if (key != NULL) {
        dp_pack_text(&packer, key);
    }
    if (key != NULL && value != NULL) {
        dp_pack_text(&packer, value);
    } else if (key != NULL) {
        dp_pack_u64(&packer, number);
    }
    const int status = dp_client_call(&client, &packer, NULL, NULL, result, error);
    dp_client_close(&client);
    return status;
}

static int run_revoke(dp_cmd *cmd)
{
    char question[256];
    dp_control_error error;
    json_t *result = NULL;
    snprintf(question, sizeof question,
             "%s is removed from the run for good. Every member closes its links, and its identity "
             "cannot join again.",
             cmd->args[0]);
    /* No confirmation for an unknown peer. */
    if (ask(cmd, "why", "peer", cmd->args[0], 0, &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    json_decref(result);
    if (!agreed(cmd, question, &error) ||
        ask(cmd, "revoke", "peer", cmd->args[0], 0, &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    const char *text = dp_json_text(result, "text", "");
    printf("%s %s is removed: its links close now, %s\n", dp_print_mark(true),
           dp_json_text(result, "peer", "?"),
           text[0] != '\0' ? text : "the next record tells all members");
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_revoke = {
    .name = "revoke",
    .run = run_revoke,
    .arguments = "PEER",
    .summary = "remove a member from the run for good; for the run's creator and admins",
    .examples = "  dpnode revoke bob\n  dpnode revoke q3x7aap2mfd4 --yes\n",
    .n_args_min = 1,
    .n_args_max = 1,
    .options = {{"yes", 0, NULL, "do not ask for confirmation"}},
};

/* ---- run fork ---- */

/* Asks the user, then the daemon; prints the reply. round: NULL, or the parameter of that name. */
static int order_chain(dp_cmd *cmd, const char *method, const uint64_t *round, const char *question,
                       const char *sequel)
{
    dp_control_error error;
    json_t *result = NULL;
    if (!agreed(cmd, question, &error) || ask(cmd, method, round != NULL ? "round" : NULL, NULL,
                                              round != NULL ? *round : 0, &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    printf("%s %s; %s\n", dp_print_mark(true), dp_json_text(result, "text", ""), sequel);
    json_decref(result);
    return 0;
}

static int run_fork(dp_cmd *cmd)
{
    static const char question[] =
        "This replaces the voters with the run's root key: the chain restarts after the last round "
        "that this node knows, and the\nnodes that it reaches now become the voters. Use it when a "
        "majority of the voters is lost for good, or to end a halt\n(a voter that voted twice is "
        "removed). Nodes with later rounds drop those rounds and join this chain.\nDo it on one "
        "node only: two restarts at one place halt the run.";
    static const char back[] =
        "The chain restarts with the run's root key after that round, from a checkpoint of this "
        "node. Every later decision is\nundone at all nodes: rounds and new members; removed "
        "members stay removed. This node is the only voter until the next\nrecords add others. Do "
        "it on one node only: two restarts at one place halt the run.";
    dp_control_error error;
    uint64_t round = 0;
    if (!dp_cmd_number(cmd, "to", 1, UINT64_MAX, &round, &error)) {
        return dp_cmd_fail(cmd, &error);
    }
    return order_chain(cmd, "run.fork", round != 0 ? &round : NULL, round != 0 ? back : question,
                       "this node restarts; the others follow when they learn of it");
}

const dp_verb dp_verb_run_fork = {
    .name = "run fork",
    .run = run_fork,
    .arguments = "",
    .summary =
        "restart the chain after its voters are lost, or from an earlier round; needs the root key",
    .examples = "  dpnode run fork\n  dpnode run fork --to 1200   # a round of dpnode ckpt ls\n",
    .options = {{"to", 0, "ROUND",
                 "restart after this round, of `dpnode ckpt ls`; later rounds are undone"},
                {"yes", 0, NULL, "do not ask for confirmation"}},
};

/* ---- run merge ---- */

static int run_merge(dp_cmd *cmd)
{
    static const char question[] =
        "The chain was restarted twice with the root key, and the two parts of the run continued "
        "apart or halted. This command\ncontinues the chain of this node and ends the other one: "
        "the nodes of the other chain drop their rounds since then, keep\ntheir work, and join "
        "this chain.";
    return order_chain(cmd, "run.merge", NULL, question,
                       "the other nodes join when they learn of it");
}

const dp_verb dp_verb_run_merge = {
    .name = "run merge",
    .run = run_merge,
    .arguments = "",
    .summary = "resolve a fork in favour of this node; needs the root key",
    .examples = "  dpnode run merge\n",
    .options = {{"yes", 0, NULL, "do not ask for confirmation"}},
};
