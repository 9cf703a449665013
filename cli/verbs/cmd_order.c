/* revoke, run fork, run merge: commands that need the root key or an admin, and cannot be
 * undone. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/print.h"
#include "cli/watch/question.h"

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

/* One call with one parameter, or none. */
static int ask(const dp_cmd *cmd, const char *method, const dp_parameter *parameter,
               json_t **result, dp_control_error *error)
{
    const dp_question question = {
        .method = method, .parameters = parameter, .n_parameters = parameter != NULL ? 1 : 0};
    return dp_question_ask(cmd->socket, 0, &question, result, error);
}

static int run_revoke(dp_cmd *cmd)
{
    const dp_parameter peer = {.key = "peer", .text = cmd->args[0]};
    char question[256];
    dp_control_error error;
    json_t *result = NULL;
    snprintf(question, sizeof question,
             "%s is removed from the run for good. Every member closes its links, and its identity "
             "cannot join again.",
             cmd->args[0]);
    /* No confirmation for an unknown peer. */
    if (ask(cmd, "why", &peer, &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    json_decref(result);
    if (!agreed(cmd, question, &error) || ask(cmd, "revoke", &peer, &result, &error) != 0) {
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
    const dp_parameter from = {.key = "round", .number = round != NULL ? *round : 0};
    if (!agreed(cmd, question, &error) ||
        ask(cmd, method, round != NULL ? &from : NULL, &result, &error) != 0) {
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
