/* token ls, token revoke, token rotate: lists and revokes invites, and replaces the join secret. */
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/json.h"
#include "cli/print.h"

enum { NAMES_MAX = 512 };

/* "ann, bob (left), carl": those that joined by a token; all of them, or only the members. */
static void name_all(const json_t *token, bool all, char text[NAMES_MAX])
{
    size_t index = 0;
    size_t at = 0;
    const json_t *item = NULL;
    text[0] = '\0';
    json_array_foreach(json_object_get(token, "admitted"), index, item)
    {
        const char *gone = dp_json_text(item, "gone", "");
        const char *name = dp_json_text(item, "name", "");
        if (!all && gone[0] != '\0') {
            continue;
        }
        const int size = snprintf(text + at, NAMES_MAX - at, "%s%s%s%s%s", at > 0 ? ", " : "",
                                  name[0] != '\0' ? name : dp_json_text(item, "short", "?"),
                                  gone[0] != '\0' ? " (" : "", gone, gone[0] != '\0' ? ")" : "");
        if (size < 0 || (size_t)size >= NAMES_MAX - at - 8) {
            snprintf(text + at, NAMES_MAX - at, "%s...", at > 0 ? ", " : "");
            break;
        }
        at += (size_t)size;
    }
    dp_print_harmless(text);
}

/* ---- token ls ---- */

static int on_token(void *context, const json_t *notice)
{
    json_t *list = context;
    json_t *token = json_object_get(notice, "token");
    if (token != NULL) {
        json_array_append(list, token);
    }
    return 0;
}

static int ask_list(const dp_cmd *cmd, json_t *list, dp_control_error *error)
{
    dp_client client;
    json_t *result = NULL;
    if (dp_client_open(&client, cmd->socket, error) != DP_OK) {
        dp_client_close(&client);
        return error->exit;
    }
    dp_packer packer = dp_client_begin(&client, "token.list");
    dp_pack_map(&packer, 0);
    const int status = dp_client_call(&client, &packer, on_token, list, &result, error);
    dp_client_close(&client);
    json_decref(result);
    return status;
}

static void print_row(dp_table *table, const json_t *token)
{
    char text[NAMES_MAX];
    char span[DP_PRINT_CELL_MAX];
    const bool issued = json_is_true(json_object_get(token, "issued"));
    const long long uses = dp_json_int(token, "uses", 0);
    const uint64_t until = (uint64_t)dp_json_int(token, "expires_ms", 0);
    const uint64_t now = dp_print_now_ms();
    size_t index = 0;
    size_t at = 0;
    const json_t *role = NULL;
    dp_table_row(table);
    dp_table_cell(table, dp_json_text(token, "token", "?"));
    dp_table_cell(table, dp_json_text(token, "state", "?"));
    snprintf(text, sizeof text, "%lld", uses);
    dp_table_cell(table, !issued ? "" : uses == 0 ? "any" : text);
    dp_print_span(until > now ? (until - now) / 1000 : (now - until) / 1000, span);
    snprintf(text, sizeof text, "%s%s%s", until > now ? "in " : "", span,
             until > now ? "" : " ago");
    dp_table_cell(table, issued ? text : "");
    text[0] = '\0';
    json_array_foreach(json_object_get(token, "roles"), index, role)
    {
        const char *const name = json_string_value(role);
        const int size = snprintf(text + at, sizeof text - at, "%s%s", at > 0 ? " " : "",
                                  name != NULL ? name : "?");
        at += size > 0 ? (size_t)size : 0;
        if (at >= sizeof text) {
            break; /* Our daemons have seven short ones. */
        }
    }
    dp_table_cell(table, text);
    name_all(token, true, text);
    dp_table_cell(table, text);
}

static int run_ls(dp_cmd *cmd)
{
    static const char *const columns[] = {"TOKEN",   "STATE", "USES",
                                          "EXPIRES", "ROLES", "JOINED BY IT"};
    dp_control_error error;
    json_t *list = json_array();
    const int status = ask_list(cmd, list, &error);
    if (status != 0) {
        json_decref(list);
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(json_pack("{s:o}", "tokens", list));
    }
    if (json_array_size(list) == 0) {
        printf("no tokens: this node has made none, and no member has joined by one\n");
        json_decref(list);
        return 0;
    }
    dp_table *table = dp_table_open(columns, sizeof columns / sizeof columns[0], 0x4);
    size_t index = 0;
    const json_t *item = NULL;
    json_array_foreach(list, index, item)
    {
        print_row(table, item);
    }
    dp_table_close(table, true);
    json_decref(list);
    return 0;
}

const dp_verb dp_verb_token_ls = {
    .name = "token ls",
    .run = run_ls,
    .arguments = "",
    .summary = "list the tokens of this node and the members that joined by each token",
    .examples = "  dpnode token ls\n",
};

/* ---- token revoke ---- */

static int ask_revoke(const dp_cmd *cmd, json_t **result, dp_control_error *error)
{
    dp_client client;
    if (dp_client_open(&client, cmd->socket, error) != DP_OK) {
        dp_client_close(&client);
        return error->exit;
    }
    dp_packer packer = dp_client_begin(&client, "token.revoke");
    dp_pack_map(&packer, 2);
    dp_pack_text(&packer, "id");
    dp_pack_text(&packer, cmd->args[0]);
    dp_pack_text(&packer, "members");
    dp_pack_bool(&packer, dp_cmd_option(cmd, "members") != NULL);
    const int status = dp_client_call(&client, &packer, NULL, NULL, result, error);
    dp_client_close(&client);
    return status;
}

static int run_revoke(dp_cmd *cmd)
{
    char names[NAMES_MAX];
    dp_control_error error;
    json_t *result = NULL;
    if (ask_revoke(cmd, &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    const json_t *token = json_object_get(result, "token");
    const char *id = dp_json_text(token, "token", "?");
    const char *text = dp_json_text(result, "text", "");
    const long long members = dp_json_int(token, "members_count", 0);
    printf("%s %s is revoked%s%s\n", dp_print_mark(true), id,
           text[0] != '\0' ? "; " : "; the next record tells all members", text);
    name_all(token, false, names);
    if (members > 0 && dp_cmd_option(cmd, "members") != NULL) {
        printf("removed with the next records: %s\n", names);
    } else if (members > 0) {
        printf("joined by it, and stay members: %s\nto remove them: dpnode token revoke %s "
               "--members\n",
               names, id);
    }
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_token_revoke = {
    .name = "token revoke",
    .run = run_revoke,
    .arguments = "ID",
    .summary = "revoke a token: no further node joins by it; for the run's creator and admins",
    .examples =
        "  dpnode token revoke 9f31               # an id of dpnode token ls, or how it begins\n"
        "  dpnode token revoke 9f31 --members     # and put out who came by it\n",
    .n_args_min = 1,
    .n_args_max = 1,
    .options = {{"members", 0, NULL,
                 "also remove the members that joined by it, and those that such members invited"}},
};

/* ---- token rotate ---- */

static int run_rotate(dp_cmd *cmd)
{
    dp_control_error error;
    dp_client client;
    json_t *result = NULL;
    if (dp_client_open(&client, cmd->socket, &error) != DP_OK) {
        dp_client_close(&client);
        return dp_cmd_fail(cmd, &error);
    }
    dp_packer packer = dp_client_begin(&client, "token.rotate");
    dp_pack_map(&packer, 0);
    const int status = dp_client_call(&client, &packer, NULL, NULL, &result, &error);
    dp_client_close(&client);
    if (status != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    printf("%s the next record gives the run a new join secret\nOlder tokens stay valid until the "
           "next rotation; then members refuse them.\n",
           dp_print_mark(true));
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_token_rotate = {
    .name = "token rotate",
    .run = run_rotate,
    .arguments = "",
    .summary = "give the run a new join secret; for the run's creator and admins",
    .examples =
        "  dpnode token rotate   # twice, with a day between: then no old token gets an answer\n",
};
