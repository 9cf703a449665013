/* token inspect: decodes a token, without a daemon and without using it. */
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/print.h"
#include "cli/token.h"
#include "cli/verbs/cmd_token.h"
#include "gossip/identity/invite.h"

static json_t *roles_of(uint32_t caps)
{
    static const struct {
        uint32_t cap;
        const char *name;
    } rows[] = {{DP_CAP_TRAIN, "train"},    {DP_CAP_VOTE, "vote"},     {DP_CAP_RELAY, "relay"},
                {DP_CAP_SERVE, "serve"},    {DP_CAP_INVITE, "invite"}, {DP_CAP_ADMIN, "admin"},
                {DP_CAP_OBSERVE, "observe"}};
    json_t *roles = json_array();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if ((caps & rows[i].cap) != 0) {
            json_array_append_new(roles, json_string(rows[i].name));
        }
    }
    return roles;
}

/* Nothing secret is shown: no join secret, no invite key. */
static json_t *describe(const dp_invite *invite, const dp_credential *credential, bool valid,
                        const char *why)
{
    char run[2 * sizeof invite->run.bytes + 1];
    char issuer[2 * DP_PUBLIC_KEY_BYTES + 1];
    char token[2 * DP_INVITE_ID_BYTES + 1];
    json_t *addresses = json_array();
    dp_hex(dp_view_of(invite->run.bytes, sizeof invite->run.bytes), run);
    dp_hex(dp_view_of(invite->root, sizeof invite->root), issuer);
    dp_hex(dp_view_of(credential->invite.bytes, sizeof credential->invite.bytes), token);
    for (uint8_t i = 0; i < invite->n_addresses; i++) {
        char text[DP_ADDRESS_TEXT_MAX];
        dp_address_text(&invite->addresses[i], text);
        json_array_append_new(addresses, json_string(text));
    }
    char name[sizeof invite->name];
    memcpy(name, invite->name, sizeof name);
    dp_print_harmless(name);
    json_t *out =
        json_pack("{s:s,s:s,s:s,s:s,s:b,s:i,s:i,s:I,s:I,s:o,s:o}", "run", name, "id", run, "token",
                  token, "root_key", issuer, "valid", (int)valid, "epoch", (int)invite->psk_epoch,
                  "uses", (int)credential->uses, "from_ms", (json_int_t)credential->join_from_ms,
                  "expires_ms", (json_int_t)credential->join_until_ms, "roles",
                  roles_of(credential->caps), "addresses", addresses);
    if (out != NULL && !valid) {
        json_object_set_new(out, "why", json_string(why));
    }
    return out;
}

static int print_token(const dp_cmd *cmd, json_t *out, bool valid)
{
    if (cmd->json) {
        const int status = dp_cmd_print(out);
        return status != 0 ? status : valid ? 0 : DP_EXIT_NEGATIVE;
    }
    const uint64_t until = (uint64_t)dp_json_int(out, "expires_ms", 0);
    const uint64_t now = dp_print_now_ms();
    const long long uses = dp_json_int(out, "uses", 0);
    char span[DP_PRINT_CELL_MAX];
    dp_print_span(until > now ? (until - now) / 1000 : (now - until) / 1000, span);
    printf("run       %s  (%s)\n", dp_json_text(out, "run", ""), dp_json_text(out, "id", ""));
    printf("root key  %s\n", dp_json_text(out, "root_key", ""));
    printf("token     %s\n", dp_json_text(out, "token", ""));
    printf("expires   %s%s%s\n", until > now ? "in " : "", span, until > now ? "" : " ago");
    if (uses == 0) {
        printf("uses      any number\n");
    } else {
        printf("uses      %lld\n", uses);
    }
    size_t index = 0;
    const json_t *item = NULL;
    printf("roles    ");
    json_array_foreach(json_object_get(out, "roles"), index, item)
    {
        printf(" %s", json_string_value(item));
    }
    printf("\naddresses");
    json_array_foreach(json_object_get(out, "addresses"), index, item)
    {
        printf(" %s", json_string_value(item));
    }
    printf("\n%s %s\n", dp_print_mark(valid),
           valid ? "valid: a node can join by it now" : dp_json_text(out, "why", ""));
    json_decref(out);
    return valid ? 0 : DP_EXIT_NEGATIVE;
}

static int fail_parse(dp_status status, const dp_why *why, dp_control_error *error)
{
    const bool forged = status == DP_BADSIG || status == DP_DENIED;
    dp_error_set(error, DP_EXIT_DATA, forged ? "E0204" : "E0203",
                 forged ? "ask the inviter for a new token"
                        : "copy the whole token again, from DPN1- on",
                 forged ? "this token was not made by its run" : "this is not a whole invite token",
                 why->text[0] != '\0' ? why->text : dp_status_text(status));
    return error->exit;
}

int dp_token_check(const char *token, dp_control_error *error)
{
    static dp_invite invite;
    dp_why why = {""};
    const dp_status parsed = dp_invite_parse(dp_view_text(token), &invite, NULL, &why);
    if (parsed != DP_OK) {
        return fail_parse(parsed, &why, error);
    }
    const dp_status checked = dp_invite_check(&invite, dp_print_now_ms(), NULL, &why);
    dp_invite_close(&invite);
    if (checked != DP_EXPIRED) {
        return 0; /* Of the clock the daemon knows more. */
    }
    dp_error_set(error, DP_EXIT_DATA, "E0201",
                 "dpnode invite   # on a member; then join by that token",
                 "this invite has expired", why.text);
    return error->exit;
}

static int run_inspect(dp_cmd *cmd)
{
    static char token[DP_TOKEN_INPUT_MAX];
    static dp_invite invite;
    dp_credential credential = {.n_certs = 0};
    dp_control_error error;
    dp_why why = {""};
    int status = dp_token_input(cmd, token, &error);
    if (status != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    const dp_status parsed = dp_invite_parse(dp_view_text(token), &invite, NULL, &why);
    explicit_bzero(token, sizeof token);
    if (parsed != DP_OK) {
        DP_IGNORE(fail_parse(parsed, &why, &error) != 0); /* It is in the error. */
        return dp_cmd_fail(cmd, &error);
    }
    const bool valid = dp_invite_check(&invite, dp_print_now_ms(), &credential, &why) == DP_OK;
    if (!valid) { /* Outside its time: the window is shown nevertheless. */
        DP_IGNORE(dp_invite_chain_check(
            dp_view_of(invite.chain, (size_t)invite.n_certs * DP_CERT_BYTES), &invite.run,
            invite.root, 0, &credential, NULL)); /* It was valid when it was parsed. */
    }
    json_t *out = describe(&invite, &credential, valid, why.text);
    dp_invite_close(&invite);
    return print_token(cmd, out, valid);
}

const dp_verb dp_verb_token_inspect = {
    .name = "token inspect",
    .run = run_inspect,
    .arguments = "TOKEN|-",
    .summary = "show the contents of a token, offline",
    .examples = "  dpnode token inspect DPN1-AQOM3QKT...\n  dpnode token inspect - < token.txt\n",
    .n_args_max = 1,
};
