/* status, peers, data: the current state. */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "cli/client.h"
#include "cli/doctor/check_state.h"
#include "cli/json.h"
#include "cli/print.h"
#include "cli/watch/question.h"
#include "cli/watch/source.h"

enum { HELD_TOLD = 64 << 20 };

/* ---- status ---- */

static void print_month(const json_t *run, const char *way, const char *cap, const char *used)
{
    char of[DP_SIZE_TEXT_MAX];
    char is[DP_SIZE_TEXT_MAX];
    if (json_object_get(run, cap) != NULL) {
        dp_size_text((uint64_t)dp_json_int(run, cap, 0), of);
        dp_size_text((uint64_t)dp_json_int(run, used, 0), is);
        printf(", %s of %s of this month's %s used", is, of, way);
    }
}

static void print_limits(const json_t *run)
{
    const long long up = dp_json_int(run, "upload_max", 0);
    const long long down = dp_json_int(run, "download_max", 0);
    char text[DP_PRINT_CELL_MAX];
    if (up > 0) {
        dp_print_rate((uint64_t)up, text);
        printf(", upload %s", text);
    }
    if (down > 0) {
        dp_print_rate((uint64_t)down, text);
        printf(", download %s", text);
    }
    print_month(run, "upload", "upload_month", "upload_month_used");
    print_month(run, "download", "download_month", "download_month_used");
    if (dp_json_flag(run, "month_used_up")) {
        printf(", training stopped by the quota (dpnode limits)");
    }
}

static bool is_known(const json_t *run, const char *key)
{
    const json_t *const value = json_object_get(run, key);
    return value != NULL && !json_is_null(value);
}

static void print_refused(const json_t *run)
{
    if (dp_json_flag(run, "refused")) {
        printf("no member answers this node: every address closes the connection; the node there "
               "is down behind a proxy, or refuses this node, which was removed, or was away while "
               "the join secret was rotated twice\nif the run is up, to join again: dpnode join "
               "TOKEN   # a token printed by dpnode invite on a member\n");
    }
}

static void print_pause(const json_t *status)
{
    const json_t *const paused = json_object_get(status, "paused");
    if (paused != NULL) {
        printf("%s by its owner%s; to train again: dpnode resume\n",
               dp_json_flag(paused, "waits") == 1 ? "will be paused" : "paused",
               dp_json_text(paused, "text", ""));
    }
}

static void print_suspended(const json_t *status)
{
    const json_t *const list = json_object_get(status, "suspended");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const one = json_array_get(list, i);
        printf("does not train (%s): %s\n", dp_json_text(one, "cause", "?"),
               dp_json_text(one, "text", ""));
    }
}

/* The things that a run counts. */
static const char *unit_name(const json_t *run)
{
    return dp_json_flag(run, "external") == 1 && dp_json_int(run, "sample_tokens", 0) == 1
               ? "samples"
               : "tokens";
}

/* The first start (DPNODE_TOKEN_FILE, DPNODE_CREATE_FROM) has failed so far, or its token is not
 * used. */
static void print_problem(const json_t *status)
{
    const json_t *const problem = json_object_get(status, "problem");
    if (problem != NULL) {
        printf("%s %s: %s\nto correct it: %s\n", dp_json_text(problem, "code", ""),
               dp_json_text(problem, "what", ""), dp_json_text(problem, "why", ""),
               dp_json_text(problem, "fix", ""));
    }
}

/* The first line: the run according to the chain. */
static void print_chain(const json_t *status, const json_t *run)
{
    char tokens[DP_PRINT_CELL_MAX];
    const char *const state = dp_json_text(status, "state", "?");
    printf("%s  %s", dp_json_text(run, "name", "?"), state);
    if (!is_known(run, "round")) {
        printf("  %s\n", strcmp(state, "starting") == 0
                             ? "the daemon reads its chain; round and members follow"
                             : "no peer has sent the run's manifest yet");
        return;
    }
    dp_print_count(dp_json_real(run, "tokens", 0), tokens);
    printf("  round %lld  %s %s", dp_json_int(run, "round", 0), tokens, unit_name(run));
    if (dp_json_real(run, "loss", 0) > 0) {
        printf("  loss %.3f", dp_json_real(run, "loss", 0));
    }
    const double held_out = dp_json_real(json_object_get(run, "held_out"), "loss", 0);
    if (held_out > 0) {
        printf("  held out %.3f", held_out);
    }
    const long long alive = dp_json_int(run, "alive", 0);
    const long long members = dp_json_int(run, "members", 0);
    if (alive <= members) {
        printf("  %lld/%lld members alive\n", alive, members);
    } else { /* Nodes that have joined but are in no record yet. */
        printf("  %lld nodes alive, %lld member%s\n", alive, members, members == 1 ? "" : "s");
    }
}

static void print_trainer(const json_t *run)
{
    char rate[DP_PRINT_CELL_MAX];
    const char *const trainer = dp_json_text(run, "trainer", "?");
    printf(", trainer %s", trainer);
    if (is_known(run, "trainer_next_ms")) {
        printf(", restarts in %lld s", (dp_json_int(run, "trainer_next_ms", 0) + 999) / 1000);
    } else if (is_known(run, "tokens_per_s")) {
        dp_print_count(dp_json_real(run, "tokens_per_s", 0), rate);
        printf(" at %s %s/s", rate, unit_name(run));
    } else if (is_known(run, "script_pid")) {
        printf(dp_json_flag(run, "trains") ? ", script %lld, speed not measured yet"
                                           : ", script %lld, not training",
               dp_json_int(run, "script_pid", 0));
    } else if (dp_json_flag(run, "external") == 1 && strcmp(trainer, "up") == 0) {
        printf(", waiting for a script (dpnode why)");
    } else if (strcmp(trainer, "up") == 0) {
        printf(dp_json_flag(run, "trains") ? ", speed not measured yet" : ", not training");
    }
}

/* Heat and power of the device, where a sensor tells them. */
static void print_machine(const json_t *machine)
{
    const double celsius = dp_json_real(machine, "celsius", 0);
    const double watts = dp_json_real(machine, "watts", 0);
    if (celsius > 0) {
        printf(", %.0f C", celsius);
    }
    if (watts > 0) {
        printf(", %.0f W", watts);
    }
}

/* Memory for messages of peers and answers to them; a small amount is not shown. */
static void print_held(const json_t *run)
{
    const uint64_t held = (uint64_t)dp_json_int(run, "held", 0);
    char bytes[DP_PRINT_CELL_MAX];
    char most[DP_PRINT_CELL_MAX];
    if (held >= HELD_TOLD) {
        dp_print_bytes(held, bytes);
        dp_print_bytes((uint64_t)dp_json_int(run, "held_max", 0), most);
        printf(", %s of memory for peers' messages (limit about %s)", bytes, most);
    }
}

static void print_run(const json_t *status, const json_t *run)
{
    char sent[DP_PRINT_CELL_MAX];
    char received[DP_PRINT_CELL_MAX];
    dp_print_bytes((uint64_t)dp_json_int(run, "bytes_sent", 0), sent);
    dp_print_bytes((uint64_t)dp_json_int(run, "bytes_received", 0), received);
    print_chain(status, run);
    printf("you: %s%s", dp_json_text(status, "name", "?"),
           dp_json_flag(run, "is_voter") ? " (voter)" : "");
    if (is_known(run, "counted")) {
        const long long counted = dp_json_int(run, "counted", 0);
        printf(", counted in %lld round%s", counted, counted == 1 ? "" : "s");
        print_trainer(run);
    }
    printf(", sent %s, received %s", sent, received);
    if (json_object_get(run, "device") != NULL) {
        printf(", on %s", dp_json_text(run, "device", ""));
    }
    print_machine(json_object_get(status, "machine"));
    if (dp_json_real(run, "compute_utilisation", 0) > 0) {
        printf(", computing %.1f %% of the time",
               100 * dp_json_real(run, "compute_utilisation", 0));
    }
    if (dp_json_int(run, "keep", 0) > 0) {
        printf(", sends 1 element of %lld", dp_json_int(run, "keep", 0));
    }
    if (dp_json_real(run, "update_error", 0) > 0) {
        printf(", %.0f %% of the last update deferred by compression",
               100 * dp_json_real(run, "update_error", 0));
    }
    print_limits(run);
    print_held(run);
    if (json_object_get(run, "checkpoint_round") != NULL) {
        printf(", checkpoint of round %lld", dp_json_int(run, "checkpoint_round", 0));
    }
    const long long objects = dp_json_int(run, "data_objects", 0);
    const long long here = dp_json_int(run, "data_here", 0);
    /* It reads its store: soon it will know the chain and the members that it hears. */
    const bool starting = !is_known(run, "round");
    if (here < objects && !starting) {
        printf("\n%lld of %lld parts of the data are on this node; the rest is on its way (dpnode "
               "data)",
               here, objects);
    }
    if (json_object_get(run, "voted_twice") != NULL) {
        printf("\nhalted: voter %s %s signed two records in one ballot (dpnode why)",
               dp_json_text(run, "voted_twice_name", ""), dp_json_text(run, "voted_twice", "?"));
    } else if (!dp_json_flag(run, "quorum") && !starting) {
        printf("\nno majority of the voters is reachable (dpnode why)");
    }
    if (is_known(run, "no_room")) {
        printf("\nits update waits for room and is not counted: %s",
               dp_json_text(run, "no_room", ""));
    }
    putchar('\n');
}

static bool passes(const char *check, const json_t *status)
{
    return dp_check_state(status, strcmp(check, "live") == 0 ? DP_CHECK_LIVE : DP_CHECK_READY);
}

static int run_status(dp_cmd *cmd)
{
    dp_control_error error;
    json_t *result = NULL;
    const char *check = dp_cmd_option(cmd, "check");
    if (check != NULL && strcmp(check, "ready") != 0 && strcmp(check, "live") != 0) {
        dp_error_set(&error, DP_EXIT_USAGE, "E0001", "--check ready, or --check live",
                     "unknown check", check);
        return dp_cmd_fail(cmd, &error);
    }
    /* A watchdog must see a daemon that hangs. */
    if (dp_question_ask(cmd->socket, check != NULL ? DP_SOURCE_WAIT_MS : 0,
                        &(dp_question){.method = "status"}, &result, &error) != 0) {
        if (check != NULL && error.exit == DP_EXIT_UNAVAILABLE) {
            error.exit = DP_EXIT_NEGATIVE;
        }
        return dp_cmd_fail(cmd, &error);
    }
    const int answer = check == NULL || passes(check, result) ? 0 : DP_EXIT_NEGATIVE;
    if (cmd->json) {
        const int printed = dp_cmd_print(result);
        return printed != 0 ? printed : answer;
    }
    const json_t *run = json_object_get(result, "run");
    if (run != NULL) {
        print_run(result, run);
        print_pause(result);
        print_suspended(result);
        print_refused(run);
        print_problem(result);
    } else {
        char up[DP_PRINT_CELL_MAX];
        dp_print_span((uint64_t)dp_json_int(result, "uptime_s", 0), up);
        printf("%s: dpnoded %s, pid %lld, up %s. ", dp_json_text(result, "state", "?"),
               dp_json_text(result, "version", "?"), dp_json_int(result, "pid", 0), up);
        if (json_object_get(result, "lost") != NULL) {
            printf("No run: %s. To join again: dpnode join TOKEN\n",
                   dp_json_text(result, "lost", ""));
            print_problem(result);
        } else if (json_object_get(result, "problem") != NULL) {
            puts("No run yet; it tries again");
            print_problem(result);
        } else if (dp_json_flag(result, "trying") == 1) {
            puts("No run yet; it makes its first try to join or to create one");
        } else {
            puts("No run yet.\nto join one: dpnode join TOKEN   # a member prints a token: dpnode "
                 "invite\nto create one: dpnode run create --demo kjv");
        }
    }
    json_decref(result);
    return answer;
}

const dp_verb dp_verb_status = {
    .name = "status",
    .run = run_status,
    .arguments = "",
    .summary = "show this node and its run",
    .examples = "  dpnode status\n  dpnode status --check ready && echo trains\n",
    .options =
        {{"check", 0, "WHAT",
          "exit status 0 or 1: ready tests that it trains, live that it answers and has its run"}},
};

/* ---- peers ---- */

/* Bytes of a key that may be absent. */
static void put_bytes(dp_table *table, const json_t *peer, const char *key)
{
    char text[DP_PRINT_CELL_MAX] = "-";
    if (is_known(peer, key)) {
        dp_print_bytes((uint64_t)dp_json_int(peer, key, 0), text);
    }
    dp_table_cell(table, text);
}

/* The time of a local step: milliseconds, of a second or more seconds; "-" if it is not known. */
static void put_step(dp_table *table, const json_t *peer)
{
    char text[DP_PRINT_CELL_MAX];
    const double ms = dp_json_real(peer, "step_ms", 0);
    const bool seconds = ms >= 999.5; /* that %.3g would round to 1e+03 */
    const bool whole = ms >= 999.5e3;
    snprintf(text, sizeof text, whole ? "%.0f %s" : "%.3g %s", seconds ? ms / 1000 : ms,
             seconds ? "s" : "ms");
    dp_table_cell(table, json_object_get(peer, "step_ms") != NULL ? text : "-");
}

static void print_peer(dp_table *table, const json_t *peer, bool wide)
{
    char text[DP_PRINT_CELL_MAX];
    dp_table_row(table);
    snprintf(text, sizeof text, "%s%s", dp_json_text(peer, "name", "(not linked yet)"),
             dp_json_flag(peer, "self") ? " *" : "");
    dp_table_cell(table, text);
    dp_table_cell(table, dp_json_text(peer, "short", ""));
    dp_table_cell(table, dp_json_text(peer, "state", "?"));
    dp_table_cell(table, dp_json_flag(peer, "voter")                             ? "voter"
                         : dp_json_flag(peer, "roster")                          ? "trainer"
                         : strcmp(dp_json_text(peer, "state", ""), "alive") == 0 ? "newcomer"
                                                                                 : "-");
    snprintf(text, sizeof text, is_known(peer, "round") ? "%lld" : "-",
             dp_json_int(peer, "round", 0));
    dp_table_cell(table, text);
    snprintf(text, sizeof text, dp_json_int(peer, "included", 0) > 0 ? "%lld" : "-",
             dp_json_int(peer, "included", 0));
    dp_table_cell(table, text);
    snprintf(text, sizeof text, json_object_get(peer, "rtt_ms") != NULL ? "%.1f ms" : "-",
             dp_json_real(peer, "rtt_ms", 0));
    dp_table_cell(table, text);
    put_step(table, peer);
    dp_table_cell(table, dp_json_flag(peer, "self") || dp_json_flag(peer, "linked") ? "yes" : "no");
    if (wide) {
        put_bytes(table, peer, "bytes_sent");
        put_bytes(table, peer, "bytes_received");
    }
    const char *address = json_string_value(json_array_get(json_object_get(peer, "addresses"), 0));
    dp_table_cell(table, address != NULL ? address : "");
}

/* The order of --sort: the least value of the reply's key comes first. A step has as many tokens at
 * each member (train.batch of the manifest), so the shortest step is the highest rate. */
static const struct order {
    const char *name;
    const char *key;
} orders[] = {{"rate", "step_ms"}, {"rtt", "rtt_ms"}, {"name", "name"}};
enum { ORDERS = sizeof orders / sizeof orders[0] };

/* NULL in *order: as the daemon lists them. */
static bool read_order(const dp_cmd *cmd, const struct order **order, dp_control_error *error)
{
    const char *const name = dp_cmd_option(cmd, "sort");
    *order = NULL;
    for (int i = 0; name != NULL && *order == NULL; i++) {
        if (i == ORDERS) {
            dp_error_set(error, DP_EXIT_USAGE, "E0001", "--sort rate, rtt or name",
                         "unknown sort key", name);
            return false;
        }
        if (strcmp(name, orders[i].name) == 0) {
            *order = &orders[i];
        }
    }
    return true;
}

static bool comes_before(const json_t *peer, const json_t *other, const char *key)
{
    if (!is_known(peer, key) || !is_known(other, key)) {
        return is_known(peer, key) && !is_known(other, key);
    }
    if (json_is_string(json_object_get(peer, key))) {
        return strcmp(dp_json_text(peer, key, ""), dp_json_text(other, key, "")) < 0;
    }
    return dp_json_real(peer, key, 0) < dp_json_real(other, key, 0);
}

/* Equal ones stay in the daemon's order. A reply has 116 peers at most (dp_method_peers). */
static void sort_peers(json_t *result, const struct order *order)
{
    json_t *const sorted = json_array();
    size_t index = 0;
    json_t *peer = NULL;
    json_array_foreach(json_object_get(result, "peers"), index, peer)
    {
        size_t at = json_array_size(sorted);
        while (at > 0 && comes_before(peer, json_array_get(sorted, at - 1), order->key)) {
            at--;
        }
        json_array_insert(sorted, at, peer);
    }
    json_object_set_new(result, "peers", sorted);
}

static int run_peers(dp_cmd *cmd)
{
    static const char *const columns[] = {"NAME",         "ID",  "STATE", "ROLE", "ROUND",
                                          "LAST COUNTED", "RTT", "STEP",  "LINK", "ADDRESS"};
    static const char *const wide_columns[] = {"NAME",  "ID",           "STATE",    "ROLE",
                                               "ROUND", "LAST COUNTED", "RTT",      "STEP",
                                               "LINK",  "SENT",         "RECEIVED", "ADDRESS"};
    const bool wide = dp_cmd_option(cmd, "wide") != NULL;
    dp_control_error error;
    const struct order *order = NULL;
    json_t *result = NULL;
    if (!read_order(cmd, &order, &error) || dp_client_ask(cmd, "peers", &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (order != NULL) {
        sort_peers(result, order);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    dp_table *table =
        wide ? dp_table_open(wide_columns, sizeof wide_columns / sizeof wide_columns[0], 0x6f0)
             : dp_table_open(columns, sizeof columns / sizeof columns[0], 0xf0);
    size_t index = 0;
    const json_t *peer = NULL;
    json_array_foreach(json_object_get(result, "peers"), index, peer)
    {
        print_peer(table, peer, wide);
    }
    dp_table_close(table, true);
    const long long more = dp_json_int(result, "more", 0);
    if (more > 0) {
        printf("and %lld more members: this node lists the first %zu\n", more, index);
    }
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_peers = {
    .name = "peers",
    .run = run_peers,
    .arguments = "",
    .summary = "list the members of the run and their state as seen from this node",
    .examples = "  dpnode peers\n  dpnode peers --sort rate\n",
    .options = {{"wide", 'w', NULL, "also the bytes sent to each and received from it"},
                {"sort", 0, "KEY",
                 "order: rate (tokens per second, fastest first), rtt (nearest first) or name"}},
};

/* ---- data ---- */

static int run_data(dp_cmd *cmd)
{
    static const char *const columns[] = {"KIND", "SIZE", "TOKENS", "ROOT", "HERE"};
    dp_control_error error;
    json_t *result = NULL;
    if (dp_client_ask(cmd, "data", &result, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        return dp_cmd_print(result);
    }
    dp_table *table = dp_table_open(columns, sizeof columns / sizeof columns[0], 0x6);
    size_t index = 0;
    size_t here = 0;
    const json_t *item = NULL;
    json_array_foreach(json_object_get(result, "data"), index, item)
    {
        char bytes[DP_PRINT_CELL_MAX];
        char tokens[DP_PRINT_CELL_MAX] = "-";
        if (dp_json_int(item, "tokens", 0) > 0) {
            dp_print_count(dp_json_real(item, "tokens", 0), tokens);
        }
        here += dp_json_flag(item, "local") == 1;
        dp_print_bytes((uint64_t)dp_json_int(item, "bytes", 0), bytes);
        dp_table_row(table);
        dp_table_cell(table, dp_json_text(item, "kind", "?"));
        dp_table_cell(table, bytes);
        dp_table_cell(table, tokens);
        dp_table_cell(table, dp_json_text(item, "root", ""));
        dp_table_cell(table, dp_json_flag(item, "local") ? "yes" : "not yet");
    }
    dp_table_close(table, true);
    printf("%zu of %zu are on this node; one pass has %lld samples\n", here, index,
           dp_json_int(result, "samples", 0));
    json_decref(result);
    return 0;
}

const dp_verb dp_verb_data = {
    .name = "data",
    .run = run_data,
    .arguments = "",
    .summary = "list the data of the run by hash, and which parts are on this node",
    .examples = "  dpnode data\n",
};
