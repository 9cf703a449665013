/* rounds, logs, why: the history of the run and its causes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/print.h"
#include "cli/verbs/cmd_rounds.h"
#include "cli/watch/question.h"

enum { LAST_MAX = 1000000, LAST_DEFAULT = 20, RETRY_MS = 500, PARAMETERS_MAX = 8, DAY_MAX = 16 };

/* The entries that the options name; 0: from the first, or to the newest. */
typedef struct span {
    uint64_t since_ms;
    uint64_t until_ms;
} span;

/* An end that is a time of the day is the first one after the begin, or without a begin the last
 * one that was. */
static bool read_span(const dp_cmd *cmd, uint64_t now_ms, span *wanted, dp_control_error *error)
{
    const char *const since = dp_cmd_option(cmd, "since");
    const char *const until = dp_cmd_option(cmd, "until");
    *wanted = (span){0};
    if (!dp_cmd_instant(cmd, "since", now_ms, DP_INSTANT_BEFORE, &wanted->since_ms, error)) {
        return false;
    }
    const bool follows =
        since != NULL && until != NULL &&
        dp_instant_read(until, wanted->since_ms, DP_INSTANT_AFTER, &wanted->until_ms);
    if (!follows &&
        !dp_cmd_instant(cmd, "until", now_ms, DP_INSTANT_BEFORE, &wanted->until_ms, error)) {
        return false;
    }
    if (until != NULL && wanted->until_ms <= wanted->since_ms) {
        dp_error_set(error, DP_EXIT_USAGE, "E0001", "--since 2d --until 1d",
                     "no time lies between these", "--until is not after --since");
        return false;
    }
    return true;
}

#define SPAN_OPTIONS                                                                               \
    {"since", 0, "WHEN", "from then on: 10m, 2h, 3d, 10:40 or 2026-11-28T10:40"},                  \
    {                                                                                              \
        "until", 0, "WHEN", "up to then, in the same forms"                                        \
    }

/* ---- streams ---- */

typedef struct stream {
    const dp_cmd *cmd;
    const char *method;
    dp_on_notice *on_notice;
    const char *only; /* beginnings of the names of events, with commas; NULL: all events */
    const char *none; /* the text for an empty list */
    bool follows;
    uint64_t lines;
    uint64_t last; /* UINT64_MAX: all that the daemon has */
    span span;
    uint64_t began_ms;
    /* The last entry that it has, to go on after it: id of an event or seq of a round; the slot of
     * a round of the chain, which may go back. */
    uint64_t seq;
    uint64_t slot;
    char day[DAY_MAX]; /* of the line before; "" at first: today */
} stream;

static bool is_narrow(const stream *self)
{
    return self->span.since_ms != 0 || self->span.until_ms != 0 ||
           dp_cmd_option(self->cmd, "peer") != NULL;
}

static bool read_stream(stream *self, dp_control_error *error)
{
    const dp_cmd *const cmd = self->cmd;
    self->follows = dp_cmd_option(cmd, "follow") != NULL;
    self->began_ms = dp_print_now_ms();
    if (!read_span(cmd, self->began_ms, &self->span, error)) {
        return false;
    }
    self->last = self->only != NULL ? LAST_MAX : is_narrow(self) ? UINT64_MAX : LAST_DEFAULT;
    if (!dp_cmd_number(cmd, "last", 0, LAST_MAX, &self->last, error)) {
        return false;
    }
    if (self->follows && self->span.until_ms != 0) {
        dp_error_set(error, DP_EXIT_USAGE, "E0001",
                     "dpnode logs -f   or   dpnode logs --until 11:00",
                     "only one of two options is valid", "--follow and --until are given");
        return false;
    }
    return true;
}

/* One call. One that was cut goes on after what it has. */
static int ask_stream(const stream *self, json_t **result, dp_control_error *error)
{
    dp_parameter list[PARAMETERS_MAX];
    const char *const peer = dp_cmd_option(self->cmd, "peer");
    uint32_t n = 0;
    if (self->seq != 0 || self->slot != 0) {
        list[n++] = (dp_parameter){.key = "after", .number = self->seq};
        list[n++] = (dp_parameter){.key = "after_slot", .number = self->slot};
    } else if (self->last != UINT64_MAX) {
        list[n++] = (dp_parameter){.key = "last", .number = self->last};
    }
    list[n++] = (dp_parameter){.key = "follow", .number = self->follows, .is_flag = true};
    if (self->span.since_ms != 0) {
        list[n++] = (dp_parameter){.key = "since_ms", .number = self->span.since_ms};
    }
    if (self->span.until_ms != 0) {
        list[n++] = (dp_parameter){.key = "until_ms", .number = self->span.until_ms};
    }
    if (peer != NULL) {
        list[n++] = (dp_parameter){.key = "peer", .text = peer};
    }
    const dp_question question = {.method = self->method,
                                  .parameters = list,
                                  .n_parameters = n,
                                  .on_notice = self->on_notice,
                                  .context = (void *)(uintptr_t)self};
    return dp_question_ask(self->cmd->socket, 0, &question, result, error);
}

static bool is_away(const dp_control_error *error)
{
    return strcmp(error->code, "E0101") == 0 || strcmp(error->code, "E0103") == 0;
}

/* Asks, and while the daemon of a list that follows is away, again. */
static int read_all(stream *self, json_t **result, dp_control_error *error)
{
    const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
    int status = ask_stream(self, result, error);
    bool told = false;
    if (!self->follows || strcmp(error->code, "E0101") == 0) {
        return status; /* There was no daemon from the first. */
    }
    while (status != 0 && is_away(error)) {
        const uint64_t lines = self->lines;
        if (!told) {
            fprintf(stderr, "the daemon is away; the list goes on when it is back\n");
        }
        if (self->seq == 0 && self->slot == 0 && self->span.since_ms == 0) {
            self->span.since_ms = self->began_ms; /* It has nothing to go on after. */
            self->last = UINT64_MAX;
        }
        nanosleep(&pause, NULL);
        status = ask_stream(self, result, error);
        told = self->lines == lines;
    }
    return status;
}

/* An older daemon ignores the parameters that it does not know, and tells of other entries. */
static bool is_answered(const stream *self, const json_t *result, dp_control_error *error)
{
    if (!is_narrow(self) || dp_json_flag(result, "filtered") == 1) {
        return true;
    }
    dp_error_set(error, DP_EXIT_PROTOCOL, "E0102",
                 "dpnode down, then dpnode up   # with the installed version",
                 "the running daemon is an older version",
                 "it does not know --since, --until and --peer, and has listed other entries");
    return false;
}

static int run_stream(stream *self)
{
    dp_control_error error;
    json_t *result = NULL;
    if (!read_stream(self, &error)) {
        return dp_cmd_fail(self->cmd, &error);
    }
    int status = read_all(self, &result, &error);
    if (status == 0 && !is_answered(self, result, &error)) {
        status = error.exit;
    }
    json_decref(result);
    if (status == 0 && self->lines == 0 && self->last > 0 && !self->cmd->json) {
        printf("%s\n", is_narrow(self) ? "nothing is kept that fits" : self->none);
    }
    return status != 0 && error.code[0] != '\0' ? dp_cmd_fail(self->cmd, &error) : status;
}

static void remember(stream *self, const json_t *entry, const char *key)
{
    const uint64_t seq = (uint64_t)dp_json_int(entry, key, 0);
    const uint64_t slot = (uint64_t)dp_json_int(entry, "slot", 0);
    self->seq = seq > self->seq ? seq : self->seq;
    if (slot > 0 && json_object_get(entry, "exchange") == NULL) {
        self->slot = slot;
    }
}

/* A line with the date before the first line of another day; the lines have times of the clock. */
static void print_day(stream *self, const json_t *entry)
{
    const time_t at = (time_t)(dp_json_int(entry, "time_ms", 0) / 1000);
    const time_t now = (time_t)(self->began_ms / 1000);
    struct tm parts;
    char day[DAY_MAX] = "";
    if (self->day[0] == '\0' && localtime_r(&now, &parts) != NULL) {
        DP_IGNORE(strftime(self->day, sizeof self->day, "%Y-%m-%d", &parts) == 0); /* It fits. */
    }
    if (at <= 0 || localtime_r(&at, &parts) == NULL ||
        strftime(day, sizeof day, "%Y-%m-%d", &parts) == 0 || strcmp(day, self->day) == 0) {
        return;
    }
    memcpy(self->day, day, sizeof day);
    printf("%s\n", day);
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

/* Columns of --wide: times in a round, as the daemon's reply has them. */
static const struct {
    const char *head;
    const char *group; /* NULL: of the round itself */
    const char *key;
} wide_columns[] = {{"COMPUTE", NULL, "compute_ms"},     {"TRANSFER", NULL, "transfer_ms"},
                    {"WAIT", NULL, "wait_ms"},           {"PUBLISHED", "phases", "published_ms"},
                    {"READY", "phases", "ready_ms"},     {"HELD", "phases", "held_ms"},
                    {"DECIDED", "phases", "decided_ms"}, {"APPLIED", "phases", "applied_ms"}};
enum { WIDE_COLUMNS = sizeof wide_columns / sizeof wide_columns[0] };

void dp_rounds_print_head(bool wide)
{
    printf("%-8s %6s  %-6s %7s %8s  %9s  %6s", "TIME", "ROUND", "KIND", "COUNTED", "TOOK",
           "UPDATES", "LOSS");
    for (int i = 0; wide && i < WIDE_COLUMNS; i++) {
        printf(" %9s", wide_columns[i].head);
    }
    putchar('\n');
}

static void print_wide(const json_t *round)
{
    for (int i = 0; i < WIDE_COLUMNS; i++) {
        const json_t *const of =
            wide_columns[i].group == NULL ? round : json_object_get(round, wide_columns[i].group);
        const long long ms = dp_json_int(of, wide_columns[i].key, -1);
        if (ms >= 0) {
            printf(" %7.2f s", (double)ms / 1000);
        } else {
            printf(" %9s", "-");
        }
    }
}

void dp_rounds_print(const json_t *round, bool wide)
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
    if (wide) {
        print_wide(round);
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
    remember(self, round, "seq");
    if (self->cmd->json) {
        return dp_cmd_print(json_deep_copy(round));
    }
    const bool wide = dp_cmd_option(self->cmd, "wide") != NULL;
    if (self->lines++ == 0) {
        dp_rounds_print_head(wide);
    }
    print_day(self, round);
    dp_rounds_print(round, wide);
    return fflush(stdout) == 0 ? 0 : DP_EXIT_IO;
}

static int run_rounds(dp_cmd *cmd)
{
    stream self = {
        .cmd = cmd, .method = "rounds", .on_notice = on_round, .none = "no round is decided yet"};
    return run_stream(&self);
}

const dp_verb dp_verb_rounds = {
    .name = "rounds",
    .run = run_rounds,
    .arguments = "",
    .summary = "list the last rounds: updates counted, duration, loss",
    .examples = "  dpnode rounds -n 50\n  dpnode rounds -f --json | jq .loss\n"
                "  dpnode rounds --since 2d --peer bob\n",
    .options = {{"last", 'n', "N", "number of lines [20; with --since, --until or --peer all]"},
                {"follow", 'f', NULL, "print new ones until Ctrl-C, over restarts of the daemon"},
                {"wide", 'w', NULL, "also when each phase of a round was, from its opening here"},
                SPAN_OPTIONS,
                {"peer", 0, "P", "only rounds that list this member, or list it as late"}},
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
    remember(self, event, "id");
    if (self->only != NULL && !begins_with(dp_json_text(event, "name", ""), self->only)) {
        return 0;
    }
    self->lines++;
    if (self->cmd->json) {
        return dp_cmd_print(json_deep_copy(event));
    }
    print_day(self, event);
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
    stream self = {.cmd = cmd,
                   .method = "events",
                   .on_notice = on_event,
                   .only = only,
                   .none = only == NULL
                               ? "no events yet"
                               : "no event with such a name is kept; dpnode logs shows names"};
    return run_stream(&self);
}

const dp_verb dp_verb_logs = {
    .name = "logs",
    .run = run_logs,
    .arguments = "",
    .summary = "list the last events of this node",
    .examples = "  dpnode logs -n 100\n  dpnode logs -f --only join,trainer\n"
                "  dpnode logs --since 10:40 --until 11:00 --peer bob\n",
    .options = {{"last", 'n', "N",
                 "number of events [20; with --only, --since, --until or --peer all]"},
                {"follow", 'f', NULL, "print new ones until Ctrl-C, over restarts of the daemon"},
                SPAN_OPTIONS,
                {"peer", 0, "P", "only events about this member: its name or id"},
                {"only", 0, "NAMES",
                 "only events whose name begins with one of these words: join,trainer"}},
};

/* ---- why ---- */

static int refuse_words(const dp_cmd *cmd, dp_control_error *error)
{
    char why[160];
    snprintf(why, sizeof why, "%.60s%s%.60s", cmd->args[0], cmd->n_args > 1 ? " " : "",
             cmd->n_args > 1 ? cmd->args[1] : "");
    dp_error_set(error, DP_EXIT_USAGE, "E0001",
                 "dpnode why   or   dpnode why round 12   or   dpnode why peer NAME",
                 "the arguments are not understood", why);
    return error->exit;
}

static int ask_why(const dp_cmd *cmd, json_t **result, dp_control_error *error)
{
    const bool named = cmd->n_args == 2 && strcmp(cmd->args[0], "peer") == 0;
    const char *const peer = named ? cmd->args[1] : dp_cmd_option(cmd, "peer");
    const bool about_round =
        cmd->n_args == 1 || (cmd->n_args == 2 && strcmp(cmd->args[0], "round") == 0);
    const char *const number = about_round ? cmd->args[cmd->n_args - 1] : "";
    char *end = NULL;
    const unsigned long long round = strtoull(number, &end, 10);
    dp_parameter list[PARAMETERS_MAX];
    span wanted;
    uint32_t n = 0;
    if (cmd->n_args != 0 && !named && (!about_round || *end != '\0' || end == number)) {
        return refuse_words(cmd, error);
    }
    if (peer != NULL && (about_round || (named && dp_cmd_option(cmd, "peer") != NULL))) {
        dp_error_set(error, DP_EXIT_USAGE, "E0001", "dpnode why 12   or   dpnode why --peer NAME",
                     "a question is about one round or one peer", "two are given");
        return error->exit;
    }
    if (!read_span(cmd, dp_print_now_ms(), &wanted, error)) {
        return error->exit;
    }
    if (about_round) {
        list[n++] = (dp_parameter){.key = "round", .number = round};
    }
    if (peer != NULL) {
        list[n++] = (dp_parameter){.key = "peer", .text = peer};
    }
    if (wanted.since_ms != 0) {
        list[n++] = (dp_parameter){.key = "since_ms", .number = wanted.since_ms};
    }
    if (wanted.until_ms != 0) {
        list[n++] = (dp_parameter){.key = "until_ms", .number = wanted.until_ms};
    }
    const dp_question question = {.method = "why", .parameters = list, .n_parameters = n};
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
    .examples = "  dpnode why\n  dpnode why 413\n  dpnode why peer bob\n"
                "  dpnode why --since 10:40 --until 11:00\n",
    .n_args_max = 2,
    .options = {SPAN_OPTIONS, {"peer", 0, "P", "as the words peer P"}},
};
