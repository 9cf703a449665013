/* pause, resume, drain, leave: interrupt or end the work of this node. */
#include <stdio.h>

#include "cli/client.h"
#include "cli/json.h"
#include "cli/print.h"

static const char end_fix[] = "dpnode pause --for 2h   # or: dpnode pause --until 07:30";

/* The end that the options name: *seconds from now, or *until_ms; both 0 without one. */
static bool read_end(const dp_cmd *cmd, uint64_t *seconds, uint64_t *until_ms,
                     dp_control_error *error)
{
    if (!dp_cmd_seconds(cmd, "for", seconds, error)) {
        return false;
    }
    if (*seconds != 0 && dp_cmd_option(cmd, "until") != NULL) {
        dp_error_set(error, DP_EXIT_USAGE, "E0001", end_fix, "only one of two options is valid",
                     "--for and --until are given");
        return false;
    }
    return dp_cmd_instant(cmd, "until", dp_print_now_ms(), DP_INSTANT_AFTER, until_ms, error);
}

static int ask_pause(const dp_cmd *cmd, json_t **result, dp_control_error *error)
{
    const bool after_round = dp_cmd_option(cmd, "after-round") != NULL;
    uint64_t seconds = 0;
    uint64_t until_ms = 0;
    dp_client client;
    if (!read_end(cmd, &seconds, &until_ms, error)) {
        return error->exit;
    }
    if (dp_client_open(&client, cmd->socket, error) != DP_OK) {
        dp_client_close(&client);
        return error->exit;
    }
    dp_packer packer = dp_client_begin(&client, "pause");
    dp_pack_map(&packer,
                (seconds != 0 ? 1U : 0U) + (until_ms != 0 ? 1U : 0U) + (after_round ? 1U : 0U));
    if (seconds != 0) {
        dp_pack_text(&packer, "for_s");
        dp_pack_u64(&packer, seconds);
    }
    if (until_ms != 0) {
        dp_pack_text(&packer, "until_ms");
        dp_pack_u64(&packer, until_ms);
    }
    if (after_round) {
        dp_pack_text(&packer, "after_round");
        dp_pack_bool(&packer, true);
    }
    const int status = dp_client_call(&client, &packer, NULL, NULL, result, error);
    dp_client_close(&client);
    return status;
}

/* A daemon of an older version ignores unknown fields and pauses without an end. */
static bool is_known(const dp_cmd *cmd, const json_t *result, dp_control_error *error)
{
    if (json_object_get(result, "paused") != NULL ||
        (dp_cmd_option(cmd, "for") == NULL && dp_cmd_option(cmd, "until") == NULL &&
         dp_cmd_option(cmd, "after-round") == NULL)) {
        return true;
    }
    dp_error_set(error, DP_EXIT_PROTOCOL, "E0102",
                 "dpnode resume, then dpnode down and dpnode up   # with the installed version",
                 "the running daemon is an older version",
                 "it does not know --for, --until and --after-round; it has paused until resume");
    return false;
}

static int run_pause(dp_cmd *cmd)
{
    dp_control_error error;
    json_t *result = NULL;
    if (ask_pause(cmd, &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (!is_known(cmd, result, &error)) {
        json_decref(result);
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    const json_t *const paused = json_object_get(result, "paused");
    printf("%s %s%s; training continues on the other nodes. To train again: dpnode resume\n",
           dp_print_mark(true), dp_json_flag(paused, "waits") == 1 ? "will pause" : "paused",
           dp_json_text(paused, "text", ""));
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_pause = {
    .name = "pause",
    .run = run_pause,
    .arguments = "",
    .summary = "stop training and stay a member, until resume or for a time",
    .examples = "  dpnode pause\n  dpnode pause --for 2h\n  dpnode pause --until 07:30\n  dpnode "
                "pause --after-round\n",
    .options = {{"for", 0, "TIME", "length of the pause, such as 90m or 2h"},
                {"until", 0, "WHEN",
                 "end of the pause: 07:30, the next such time of the local clock, or "
                 "2026-11-28T07:30"},
                {"after-round", 0, NULL, "first wait until a round has counted this node's work"}},
};

static int run_resume(dp_cmd *cmd)
{
    dp_control_error error;
    json_t *result = NULL;
    if (dp_client_ask(cmd, "resume", &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    printf("%s resumed training\n", dp_print_mark(true));
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_resume = {
    .name = "resume",
    .run = run_resume,
    .arguments = "",
    .summary = "train again after pause",
    .examples = "  dpnode resume\n",
};

static int ask_drain(const dp_cmd *cmd, bool end, json_t **result, dp_control_error *error)
{
    uint64_t seconds = 0;
    dp_client client;
    if (!dp_cmd_seconds(cmd, "time", &seconds, error)) {
        return error->exit;
    }
    if (dp_client_open(&client, cmd->socket, error) != DP_OK) {
        dp_client_close(&client);
        return error->exit;
    }
    const bool timed = dp_cmd_option(cmd, "time") != NULL;
    dp_packer packer = dp_client_begin(&client, "drain");
    dp_pack_map(&packer, timed ? 2 : 1);
    dp_pack_text(&packer, "end");
    dp_pack_bool(&packer, end);
    if (timed) {
        dp_pack_text(&packer, "seconds");
        dp_pack_u64(&packer, seconds);
    }
    const int status = dp_client_call(&client, &packer, NULL, NULL, result, error);
    dp_client_close(&client);
    return status;
}

static int run_leave(dp_cmd *cmd);

static int run_drain(dp_cmd *cmd)
{
    const bool leave = dp_cmd_option(cmd, "leave") != NULL;
    dp_control_error error;
    json_t *result = NULL;
    for (const char *const *word = (const char *const[]){"keep-data", "delete-run", NULL};
         !leave && *word != NULL; word++) {
        if (dp_cmd_option(cmd, *word) != NULL) {
            dp_error_set(&error, DP_EXIT_USAGE, "E0001", "dpnode drain --help",
                         "this option needs --leave", *word);
            return dp_cmd_fail(cmd, &error);
        }
    }
    if (ask_drain(cmd, !leave, &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        const int status = dp_cmd_print(result);
        return status == 0 && leave ? run_leave(cmd) : status;
    }
    printf("%s %s%s\n", dp_print_mark(dp_json_flag(result, "counted") == 1),
           dp_json_text(result, "text", "?"), leave ? "" : "; the daemon stops");
    json_decref(result);
    return leave ? run_leave(cmd) : 0;
}

const dp_verb dp_verb_drain = {
    .name = "drain",
    .run = run_drain,
    .arguments = "",
    .summary = "wait until a round has counted this node's work, then stop the daemon",
    .examples = "  dpnode drain\n  dpnode drain --leave\n  dpnode drain --time 2m\n",
    .options = {{"time", 0, "TIME", "longest wait [the daemon's drain-time, 25s]"},
                {"leave", 0, NULL, "leave the run for good, then keep the daemon running, idle"},
                {"keep-data", 0, NULL, "with --leave: keep model and votes in the directory"},
                {"delete-run", 0, "NAME", "with --leave: allow it if the run ends with this node"}},
};

static int run_leave(dp_cmd *cmd)
{
    dp_control_error error;
    dp_client client;
    json_t *result = NULL;
    if (dp_client_open(&client, cmd->socket, &error) != DP_OK) {
        dp_client_close(&client);
        return dp_cmd_fail(cmd, &error);
    }
    dp_packer packer = dp_client_begin(&client, "run.leave");
    const char *const delete_run = dp_cmd_option(cmd, "delete-run");
    dp_pack_map(&packer, delete_run != NULL ? 2 : 1);
    if (delete_run != NULL) {
        dp_pack_text(&packer, "delete_run");
        dp_pack_text(&packer, delete_run);
    }
    dp_pack_text(&packer, "keep_data");
    dp_pack_bool(&packer, dp_cmd_option(cmd, "keep-data") != NULL);
    const int status = dp_client_call(&client, &packer, NULL, NULL, &result, &error);
    dp_client_close(&client);
    if (status != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    const char *const run = dp_json_text(result, "run", NULL);
    if (run == NULL) {
        printf("%s this node no longer tries to join by its token; to join: dpnode join TOKEN\n",
               dp_print_mark(true));
    } else {
        printf("%s left %s; %s\n", dp_print_mark(true), run,
               dp_json_flag(result, "ended") == 1
                   ? "no member is left that votes, so the run has ended"
                   : "training continues on its other members");
    }
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_leave = {
    .name = "leave",
    .run = run_leave,
    .arguments = "",
    .summary = "leave the run for good; the daemon keeps running, idle",
    .examples = "  dpnode leave\n  dpnode leave --keep-data\n",
    .options = {{"keep-data", 0, NULL, "keep model and votes in the directory"},
                {"delete-run", 0, "NAME", "allow it if the run ends with this node"}},
};
