/* join: joins a run by a token. */
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/start/start.h"
#include "cli/token.h"
#include "cli/verbs/cmd_join.h"
#include "cli/verbs/cmd_token.h"

int dp_join(dp_client *client, const char *token, const char *name, dp_on_notice *on_notice,
            void *context, json_t **result, dp_control_error *error)
{
    dp_packer packer = dp_client_begin(client, "run.join");
    dp_pack_map(&packer, name != NULL ? 2 : 1);
    dp_pack_text(&packer, "token");
    dp_pack_text(&packer, token);
    if (name != NULL) {
        dp_pack_text(&packer, "name");
        dp_pack_text(&packer, name);
    }
    return dp_client_call(client, &packer, on_notice, context, result, error);
}

static int run_join(dp_cmd *cmd)
{
    static char token[DP_TOKEN_INPUT_MAX];
    dp_control_error error;
    dp_client client;
    json_t *result = NULL;
    bool started = false;
    char dir[DP_CLI_PATH_MAX];
    int status = dp_token_input(cmd, token, &error);
    if (status == 0 && dp_start_would(cmd, dir)) { /* Keys and a store for a token that is one. */
        status = dp_token_check(token, &error);
    }
    if (status == 0) {
        status = dp_start_if_none(cmd, &client, &started, &error);
    }
    if (status != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    status = dp_join(&client, token, dp_cmd_option(cmd, "name"), dp_progress, cmd, &result, &error);
    explicit_bzero(token, sizeof token);
    dp_client_close(&client);
    if (status != 0 && started) {
        dp_start_undo(cmd);
    }
    if (status != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    const char *const already = dp_json_text(result, "already", NULL);
    if (already != NULL) {
        printf("%s this node is a member of %s already (%s); to see it: dpnode status\n",
               dp_print_mark(true), dp_json_text(result, "run", "?"), already);
        json_decref(result);
        return 0;
    }
    printf("%s joined %s at round %lld; to watch it: dpnode rounds -f\n", dp_print_mark(true),
           dp_json_text(result, "run", "?"), dp_json_int(result, "round", 0));
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_join = {
    .name = "join",
    .run = run_join,
    .arguments = "TOKEN|FILE|-",
    .summary = "join a run by its invite token and train",
    .examples = "  dpnode join DPN1-AQOM3QKT...\n  dpnode join token.txt         # keeps the token "
                "out of the process list; - reads standard input\n"
                "  DPNODE_TOKEN=DPN1-... dpnode join\n",
    .n_args_max = 1,
    .options = {{"name", 0, "NAME", "name of this node [the host's name]"}, DP_START_OPTIONS},
};
