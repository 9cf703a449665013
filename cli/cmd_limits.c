/* limits: what of its line this node may take. */
#include <stdio.h>

#include "cli/client.h"
#include "cli/json.h"
#include "cli/print.h"

enum { MBIT_MAX = 100000 };

static int ask(const dp_cmd *cmd, uint64_t upload, uint64_t download, json_t **result,
               dp_control_error *error)
{
    const bool up = dp_cmd_option(cmd, "upload") != NULL;
    const bool down = dp_cmd_option(cmd, "download") != NULL;
    dp_client client;
    if (dp_client_open(&client, cmd->socket, error) != DP_OK) {
        dp_client_close(&client);
        return error->exit;
    }
    dp_packer packer = dp_client_begin(&client, "limits");
    dp_pack_map(&packer, (up ? 1U : 0U) + (down ? 1U : 0U));
    if (up) {
        dp_pack_text(&packer, "upload_mbit");
        dp_pack_u64(&packer, upload);
    }
    if (down) {
        dp_pack_text(&packer, "download_mbit");
        dp_pack_u64(&packer, download);
    }
    const int status = dp_client_call(&client, &packer, NULL, NULL, result, error);
    dp_client_close(&client);
    return status;
}

static int run_limits(dp_cmd *cmd)
{
    char up[DP_PRINT_CELL_MAX];
    char down[DP_PRINT_CELL_MAX];
    dp_control_error error;
    json_t *result = NULL;
    uint64_t upload = 0;
    uint64_t download = 0;
    if (!dp_cmd_number(cmd, "upload", 0, MBIT_MAX, &upload, &error) ||
        !dp_cmd_number(cmd, "download", 0, MBIT_MAX, &download, &error) ||
        ask(cmd, upload, download, &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    dp_print_mbit(dp_json_int(result, "upload_mbit", 0), up);
    dp_print_mbit(dp_json_int(result, "download_mbit", 0), down);
    printf("%s upload %s, download %s, until the daemon ends; --upload-max and --download-max of "
           "its service stay\n",
           dp_print_mark(true), up, down);
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_limits = {
    .name = "limits",
    .run = run_limits,
    .arguments = "",
    .summary = "show or set how much of its line this node takes; rounds, votes and signs of life "
               "do not wait for it",
    .examples = "  dpnode limits\n  dpnode limits --upload 5 --download 50\n  dpnode limits "
                "--upload 0   # none\n",
    .options = {{"upload", 0, "MBIT", "Mbit/s that leave at most; 0: any"},
                {"download", 0, "MBIT", "Mbit/s that come at most; 0: any"}},
};
