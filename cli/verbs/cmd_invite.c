/* invite: makes a token for other nodes. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/json.h"
#include "cli/print.h"
#include "cli/qr.h"
#include "cli/verbs/cmd_run.h"

typedef struct terms {
    uint64_t uses;
    uint64_t expires_s; /* 0: the daemon's default */
    const char *role;
} terms;

/* Roles build on each other: a node that may vote also trains, a node that may invite does both. */
static const struct {
    const char *name;
    unsigned count;
    const char *roles[3];
} roles[] = {
    {"train", 1, {"train"}},
    {"vote", 2, {"train", "vote"}},
    {"invite", 3, {"train", "vote", "invite"}},
    {"observe", 1, {"observe"}},
};
enum { EXPIRES_S_MAX = 365 * 86400 };
enum { ROLES = sizeof roles / sizeof roles[0], STANDARD_ROLE = 0, STANDARD_USES = 1, VOTE = 1 };

static bool read_terms(const dp_cmd *cmd, terms *out, unsigned *role, dp_control_error *error)
{
    const char *name = dp_cmd_option(cmd, "role");
    *role = STANDARD_ROLE;
    if (!dp_cmd_number(cmd, "uses", 0, UINT16_MAX - 1, &out->uses, error) ||
        !dp_cmd_seconds(cmd, "expires", &out->expires_s, error)) {
        return false;
    }
    if (out->expires_s > EXPIRES_S_MAX) {
        dp_error_set(error, DP_EXIT_USAGE, "E0001", "dpnode invite --expires 365d   # the longest",
                     "an invite cannot be valid that long", dp_cmd_option(cmd, "expires"));
        return false;
    }
    for (unsigned i = 0; name != NULL && i <= ROLES; i++) {
        if (i == ROLES) {
            dp_error_set(error, DP_EXIT_USAGE, "E0001", "--role train, vote, invite or observe",
                         "unknown role", name);
            return false;
        }
        if (strcmp(name, roles[i].name) == 0) {
            *role = i;
            break;
        }
    }
    return true;
}

static int call_invite(dp_client *client, const terms *wanted, unsigned role, json_t **result,
                       dp_control_error *error)
{
    dp_packer packer = dp_client_begin(client, "invite");
    dp_pack_map(&packer, wanted->expires_s > 0 ? 3 : 2);
    dp_pack_text(&packer, "uses");
    dp_pack_u64(&packer, wanted->uses);
    dp_pack_text(&packer, "roles");
    dp_pack_array(&packer, roles[role].count);
    for (unsigned i = 0; i < roles[role].count; i++) {
        dp_pack_text(&packer, roles[role].roles[i]);
    }
    if (wanted->expires_s > 0) {
        dp_pack_text(&packer, "expires_s");
        dp_pack_u64(&packer, wanted->expires_s);
    }
    return dp_client_call(client, &packer, NULL, NULL, result, error);
}

int dp_invite_own(dp_client *client, char **token, dp_control_error *error)
{
    const terms wanted = {.uses = 0};
    json_t *result = NULL;
    const int status = call_invite(client, &wanted, VOTE, &result, error);
    *token = status == 0 ? strdup(dp_json_text(result, "token", "")) : NULL;
    json_decref(result);
    return status;
}

static int ask_invite(const dp_cmd *cmd, json_t **result, dp_control_error *error)
{
    terms wanted = {.uses = STANDARD_USES};
    unsigned role = STANDARD_ROLE;
    dp_client client;
    if (!read_terms(cmd, &wanted, &role, error)) {
        return error->exit;
    }
    if (dp_client_open(&client, cmd->socket, error) != DP_OK) {
        dp_client_close(&client);
        return error->exit;
    }
    const int status = call_invite(&client, &wanted, role, result, error);
    dp_client_close(&client);
    return status;
}

static int run_invite(dp_cmd *cmd)
{
    dp_control_error error;
    json_t *result = NULL;
    if (ask_invite(cmd, &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    const char *token = dp_json_text(result, "token", "");
    const long long uses = dp_json_int(result, "uses", 0);
    const uint64_t until = (uint64_t)dp_json_int(result, "expires_ms", 0);
    const uint64_t now = dp_print_now_ms();
    char span[DP_PRINT_CELL_MAX];
    dp_print_span(until > now ? (until - now) / 1000 : 0, span);
    printf("%s\n", token);
    if (isatty(STDOUT_FILENO)) {
        fprintf(stderr, "expires in %s, admits %lld node%s%s\n", span, uses, uses == 1 ? "" : "s",
                uses == 0 ? " (no limit)" : "");
    }
    if (dp_cmd_option(cmd, "qr") != NULL || isatty(STDOUT_FILENO)) {
        dp_qr_print(token);
    }
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_invite = {
    .name = "invite",
    .run = run_invite,
    .arguments = "",
    .summary = "print an invite token for other nodes",
    .examples =
        "  dpnode invite                              # for one node that trains, for a day\n"
        "  dpnode invite --role vote --uses 2         # for nodes of people you trust\n"
        "  dpnode invite --uses 0 --expires 7d\n",
    .options = {{"uses", 0, "N", "number of nodes that may join by it; 0: any number [1]"},
                {"expires", 0, "TIME", "time until it expires: 90s, 15m, 24h, 7d [24h]"},
                {"role", 0, "ROLE",
                 "train; vote: also votes; invite: also invites; observe: only watches [train]"},
                {"qr", 0, NULL, "print a QR code even if the output is not a terminal"}},
};
