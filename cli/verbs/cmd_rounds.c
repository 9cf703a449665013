/* rounds, logs, why: the history of the run and its causes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/print.h"
#include "cli/verbs/cmd_rounds.h"
#include "cli/watch/question.h"

enum { LAST_MAX = 1000000 };

typedef struct stream {
    const dp_cmd *cmd;
    const char *only; /* beginnings of the names of events, with commas; NULL: all events */
    uint64_t lines;
} stream;

/* ---- streams ---- */

/* One call of rounds or events with their options; none: the text for an empty list. */
static int run_stream(const dp_cmd *cmd, const char *method, const char *only,
                      dp_on_notice *on_notice, const char *none)
{
    dp_control_error error;
    dp_client client;
    uint64_t last = only != NULL ? LAST_MAX : 20;
    json_t *result = NULL;
    if (!dp_cmd_number(cmd, "last", 0, LAST_MAX, &last, &error) ||
        dp_client_open(&client, cmd->socket, &error) != DP_OK) {
        return dp_cmd_fail(cmd, &error);
    }
    dp_packer packer = dp_client_begin(&client, method);
    dp_pack_map(&packer, 2);
    dp_pack_text(&packer, "last");
    dp_pack_u64(&packer, last);
    dp_pack_text(&packer, "follow");
    dp_pack_bool(&packer, dp_cmd_option(cmd, "follow") != NULL);
    stream lines = {.cmd = cmd, .only = only};
    const int status = dp_client_call(&client, &packer, on_notice, &lines, &result, &error);
    json_decref(result);
    dp_client_close(&client);
    if (status == 0 && lines.lines == 0 && last > 0 && !cmd->json) {
        printf("%s\n", none);
    }
    return status != 0 && error.code[0] != '\0' ? dp_cmd_fail(cmd, &error) : status;
}

static void print_left_out(const json_t *round)
{
    size_t index = 0;
    const json_t *item = NULL;
    json_array_foreach(json_object_get(round, "left_out"), index, item)
    {
        const char *name = dp_json_text(item, "name", dp_json_text(item, "short", "?"));
        printf("  left out: ");
        dp_print_text(name);
        printf(" (");
        dp_print_text(dp_json_text(item, "cause", "?"));
        putchar(')');
    }
}

/* Of a run whose manifest has a span. */
static void print_density(const json_t *round)
{
    const long long keep = dp_json_int(round, "keep", 0);
    const double lost = dp_json_real(round, "update_error", 0);
    const char *lines = dp_json_text(round, "lines", "fit");
    if (keep == 0) {
        return;
    }
    printf("  1 of %lld", keep);
    if (lost > 0) {
        printf(", %.0f %% deferred", 100 * lost);
    }
    if (strcmp(lines, "fit") != 0) {
        printf("  lines ");
        dp_print_text(lines);
    }
}

void dp_rounds_print_head(void)
{
    printf("%-8s %6s  %-6s %7s %8s  %9s  %6s\n", "TIME", "ROUND", "KIND", "COUNTED", "TOOK",
           "UPDATES", "LOSS");
}

void dp_rounds_print(const json_t *round)
{
    char clock[DP_PRINT_CELL_MAX];
    char bytes[DP_PRINT_CELL_MAX];
    char counted[DP_PRINT_CELL_MAX];
    char took[DP_PRINT_CELL_MAX] = "-";
    const long long duration = dp_json_int(round, "duration_ms", -1);
    dp_print_clock((uint64_t)dp_json_int(round, "time_ms", 0), clock);
    printf("%s %6lld  ", clock, dp_json_int(round, "round", 0));
    const json_t *exchange = json_object_get(round, "exchange");
    if (exchange != NULL) {
        const json_t *peer = json_object_get(exchange, "peer");
        printf("GOSSIP with ");
        dp_print_text(dp_json_text(peer, "name", dp_json_text(peer, "short", "?")));
        printf("  weights %lld + %lld  moved %.4g  ", dp_json_int(exchange, "weight_own", 0),
               dp_json_int(exchange, "weight_other", 0), dp_json_real(exchange, "moved", 0));
        dp_print_text(dp_json_text(exchange, "cause", ""));
        putchar('\n');
        return;
    }
    dp_print_bytes((uint64_t)dp_json_int(round, "bytes", 0), bytes);
    snprintf(counted, sizeof counted, "%lld/%lld", dp_json_int(round, "listed", 0),
             dp_json_int(round, "active", 0));
    if (duration >= 0) {
        snprintf(took, sizeof took, "%.1f s", (double)duration / 1000);
    }
    printf("%-6s %7s %8s  %9s", dp_json_text(round, "kind", "?"), counted, took, bytes);
    if (dp_json_real(round, "loss", 0) > 0) {
        printf("  %6.3f", dp_json_real(round, "loss", 0));
    } else {
        printf("  %6s", "-");
    }
    const long long parts = dp_json_int(round, "parts", 0);
    if (parts > 0) {
        printf("  parts %lld/%lld", parts - dp_json_int(round, "parts_empty", 0), parts);
    }
    print_density(round);
    if (!dp_json_flag(round, "counted")) {
        printf("  not by this node");
    }
    print_left_out(round);
    putchar('\n');
}

static int on_round(void *context, const json_t *notice)
{
    stream *self = context;
    const json_t *round = json_object_get(notice, "round");
    if (self->cmd->json) {
        return dp_cmd_print(json_deep_copy(round));
    }
    if (self->lines++ == 0) {
        dp_rounds_print_head();
    }
    dp_rounds_print(round);
    return fflush(stdout) == 0 ? 0 : DP_EXIT_IO;
}

static int run_rounds(dp_cmd *cmd)
{
    return run_stream(cmd, "rounds", NULL, on_round, "no round is decided yet");
}

const dp_verb dp_verb_rounds = {
    .name = "rounds",
    .run = run_rounds,
    .arguments = "",
    .summary = "list the last rounds: updates counted, duration, loss",
    .examples = "  dpnode rounds -n 50\n  dpnode rounds -f --json | jq .loss\n",
    .options = {{"last", 'n', "N", "number of lines [20]"},
                {"follow", 'f', NULL, "print new ones until Ctrl-C"}},
};

/* ---- logs ---- */

/* Does the name begin with one of these words, which commas separate? */
static bool begins_with(const char *name, const char *words)
{
    for (const char *at = words; *at != '\0'; at += *at == ',') {
        const size_t size = strcspn(at, ",");
        if (size > 0 && strncmp(name, at, size) == 0) {
            return true;
        }
        at += size;
    }
    return false;
}

static int on_event(void *context, const json_t *notice)
{
    stream *self = context;
    const json_t *event = json_object_get(notice, "event");
    if (self->only != NULL && !begins_with(dp_json_text(event, "name", ""), self->only)) {
        return 0;
    }
    self->lines++;
    if (self->cmd->json) {
        return dp_cmd_print(json_deep_copy(event));
    }
    char clock[DP_PRINT_CELL_MAX];
    dp_print_clock((uint64_t)dp_json_int(event, "time_ms", 0), clock);
    printf("%s %-20s ", clock, dp_json_text(event, "name", "?"));
    if (json_object_get(event, "round") != NULL) {
        printf("%6lld  ", dp_json_int(event, "round", 0));
    } else {
        printf("%6s  ", "-");
    }
    dp_print_text(dp_json_text(event, "text", ""));
    putchar('\n');
    return fflush(stdout) == 0 ? 0 : DP_EXIT_IO;
}

static int run_logs(dp_cmd *cmd)
{
    const char *const only = dp_cmd_option(cmd, "only");
    return run_stream(cmd, "events", only, on_event,
                      only == NULL ? "no events yet"
                                   : "no event with such a name is kept; dpnode logs shows names");
}

const dp_verb dp_verb_logs = {
    .name = "logs",
    .run = run_logs,
    .arguments = "",
    .summary = "list the last events of this node",
    .examples = "  dpnode logs -n 100\n  dpnode logs -f --only join,trainer\n",
    .options = {{"last", 'n', "N", "number of events [20, with --only all that are kept]"},
                {"follow", 'f', NULL, "print new ones until Ctrl-C"},
                {"only", 0, "NAMES",
                 "only events whose name begins with one of these words: join,trainer"}},
};

/* ---- why ---- */

static int ask_why(const dp_cmd *cmd, json_t **result, dp_control_error *error)
{
    const bool about_peer = cmd->n_args == 2 && strcmp(cmd->args[0], "peer") == 0;
    const bool about_round =
        cmd->n_args == 1 || (cmd->n_args == 2 && strcmp(cmd->args[0], "round") == 0);
    const char *const number = about_round ? cmd->args[cmd->n_args - 1] : "";
    char *end = NULL;
    const unsigned long long round = strtoull(number, &end, 10);
    if (cmd->n_args != 0 && !about_peer && (!about_round || *end != '\0' || end == number)) {
        char why[160];
        snprintf(why, sizeof why, "%.60s%s%.60s", cmd->args[0], cmd->n_args > 1 ? " " : "",
                 cmd->n_args > 1 ? cmd->args[1] : "");
        dp_error_set(error, DP_EXIT_USAGE, "E0001",
                     "dpnode why   or   dpnode why round 12   or   dpnode why peer NAME",
                     "the arguments are not understood", why);
        return error->exit;
    }
    const dp_parameter about = {.key = about_round ? "round" : "peer",
                                .text = about_peer ? cmd->args[1] : NULL,
                                .number = round};
    const dp_question question = {
        .method = "why", .parameters = &about, .n_parameters = about_round || about_peer ? 1 : 0};
    return dp_question_ask(cmd->socket, 0, &question, result, error);
}

static int run_why(dp_cmd *cmd)
{
    dp_control_error error;
    json_t *result = NULL;
    if (ask_why(cmd, &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    const int answer = json_is_false(json_object_get(result, "known")) ? DP_EXIT_NEGATIVE : 0;
    if (cmd->json) {
        const int printed = dp_cmd_print(result);
        return printed != 0 ? printed : answer;
    }
    size_t index = 0;
    const json_t *cause = NULL;
    dp_print_text(dp_json_text(result, "answer", ""));
    putchar('\n');
    json_array_foreach(json_object_get(result, "causes"), index, cause)
    {
        char clock[DP_PRINT_CELL_MAX];
        dp_print_clock((uint64_t)dp_json_int(cause, "time_ms", 0), clock);
        printf("  %s  ", clock);
        dp_print_text(dp_json_text(cause, "text", ""));
        putchar('\n');
    }
    const char *fix = dp_json_text(result, "fix", NULL);
    if (fix != NULL) {
        printf("fix: ");
        dp_print_text(fix);
        putchar('\n');
    }
    json_decref(result);
    return answer;
}

const dp_verb dp_verb_why = {
    .name = "why",
    .run = run_why,
    .arguments = "[[round] N | peer P]",
    .summary = "explain the state of this node, of a round or of a peer",
    .examples = "  dpnode why\n  dpnode why 413\n  dpnode why peer bob\n",
    .n_args_max = 2,
};
