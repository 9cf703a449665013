/* doctor: collects the answers of the worker, the daemon's program, a running daemon and the
 * kernel, and prints the findings of the checks (doctor.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timex.h>

#include "base/version.h"
#include "cli/dial.h"
#include "cli/doctor/doctor.h"
#include "cli/json.h"
#include "cli/plan.h"
#include "cli/print.h"
#include "cli/tool.h"
#include "cli/verbs/cmd_run.h"

enum {
    DIAL_MS = 1000,
    ROUNDS_LAST = 20,
    EVENTS_LAST = 400,
    KEY_MAX = 32,
    COUNTS = DP_FINDING_FAIL + 1
};

/* ---- gathering ---- */

/* Runs it; returns standard output, valid until the next call, or NULL and the reason. */
static const char *ask(const char *program, const dp_cli_words *words, char *why, size_t size)
{
    static dp_cli_tool tool; /* too large for a stack */
    const dp_status status = dp_cli_tool_run_program(&tool, program, words->list);
    if (status == DP_OK && tool.exit == 0) {
        return tool.answer;
    }
    snprintf(why, size, "%s",
             status == DP_NOTFOUND   ? "the program is not installed"
             : status != DP_OK       ? dp_status_text(status)
             : tool.words[0] != '\0' ? tool.words
                                     : "it ended without output");
    return NULL;
}

/* Lines "key value" as an object; a value of digits alone becomes a number. */
static json_t *object_of_lines(const char *lines)
{
    json_t *const object = json_object();
    while (*lines != '\0') {
        char key[KEY_MAX];
        const size_t size = strcspn(lines, "\n");
        const size_t key_size = strcspn(lines, " \n");
        if (key_size > 0 && key_size < size && key_size < sizeof key) {
            const char *const value = lines + key_size + 1;
            const size_t value_size = size - key_size - 1;
            snprintf(key, sizeof key, "%.*s", (int)key_size, lines);
            const bool number =
                value_size > 0 && value_size < 19 && strspn(value, "0123456789") == value_size;
            json_object_set_new(object, key,
                                number ? json_integer(strtoll(value, NULL, 10))
                                       : dp_json_of_text(dp_view_of(value, value_size)));
        }
        lines += size + (lines[size] == '\n');
    }
    return object;
}

static int collect(void *context, const json_t *notice)
{
    json_t *const list = context;
    const char *key = NULL;
    json_t *value = NULL;
    json_t *const whole = json_deep_copy(notice);
    json_object_foreach(whole, key, value)
    {
        json_array_append(list, value);
    }
    json_decref(whole);
    return 0;
}

/* The last rounds or events of the daemon; NULL without any. */
static json_t *ask_list(const dp_cmd *cmd, const char *method, uint64_t last)
{
    dp_client client;
    dp_control_error error;
    json_t *result = NULL;
    if (dp_client_open(&client, cmd->socket, &error) != DP_OK) {
        dp_client_close(&client);
        return NULL;
    }
    json_t *const list = json_array();
    dp_packer packer = dp_client_begin(&client, method);
    dp_pack_map(&packer, 1);
    dp_pack_text(&packer, "last");
    dp_pack_u64(&packer, last);
    /* Without a run there are none. */
    DP_IGNORE(dp_client_call(&client, &packer, collect, list, &result, &error) != 0);
    json_decref(result);
    dp_client_close(&client);
    return list;
}

static json_t *ask_daemon(const dp_cmd *cmd, const char *method)
{
    dp_control_error error;
    json_t *result = NULL;
    return dp_client_ask(cmd, method, &result, &error) == 0 ? result : NULL;
}

static bool clock_synchronised(void)
{
    struct timex clock = {.modes = 0};
    const int state = adjtimex(&clock);
    return state >= 0 && state != TIME_ERROR && (clock.status & STA_UNSYNC) == 0;
}

/* Everything that a dp_doctor borrows. */
typedef struct facts {
    json_t *worker;
    json_t *check;
    json_t *status;
    json_t *peers;
    json_t *dialed;
    json_t *rounds;
    json_t *events;
    json_t *plan;
    char worker_why[DP_CLI_TOOL_WORDS_MAX + 1];
    char check_why[DP_CLI_TOOL_WORDS_MAX + 1];
} facts;

/* The advertised addresses of this node, each with the result of a test connection. */
static json_t *dial_own(const json_t *peers)
{
    json_t *const dialed = json_object();
    size_t at = 0;
    const json_t *peer = NULL;
    json_array_foreach(json_object_get(peers, "peers"), at, peer)
    {
        size_t index = 0;
        const json_t *address = NULL;
        const json_t *const own =
            dp_json_flag(peer, "self") == 1 ? json_object_get(peer, "addresses") : NULL;
        json_array_foreach(own, index, address)
        {
            const char *const text = json_string_value(address);
            if (text != NULL) {
                json_object_set_new(dialed, text, json_boolean(dp_dial_answers(text, DIAL_MS)));
            }
        }
    }
    return dialed;
}

static void gather_daemon(const dp_cmd *cmd, facts *all)
{
    all->status = ask_daemon(cmd, "status");
    if (json_object_get(all->status, "run") != NULL) {
        all->peers = ask_daemon(cmd, "peers");
        all->dialed = dial_own(all->peers);
        all->rounds = ask_list(cmd, "rounds", ROUNDS_LAST);
        all->events = ask_list(cmd, "events", EVENTS_LAST);
    }
}

static void gather_programs(const dp_cmd *cmd, facts *all)
{
    dp_cli_words words = {.count = 0};
    dp_cli_words_add(&words, "--check");
    dp_cli_words_option(&words, cmd, "--listen");
    dp_cli_words_option(&words, cmd, "--backend");
    dp_cli_words_option(&words, cmd, "--dir");
    if (dp_cmd_option(cmd, "dir") == NULL) { /* If a daemon runs, its own settings. */
        dp_cli_words_pair(&words, "--dir", dp_json_text(all->status, "dir", NULL));
    }
    const char *answer = ask("dpnoded", &words, all->check_why, sizeof all->check_why);
    all->check = answer != NULL ? object_of_lines(answer) : NULL;
    words = (dp_cli_words){.count = 0};
    dp_cli_words_add(&words, "--look");
    dp_cli_words_pair(&words, "--backend", dp_json_text(all->check, "backend", NULL));
    answer = ask("dpnode-worker", &words, all->worker_why, sizeof all->worker_why);
    all->worker = answer != NULL ? json_loads(answer, 0, NULL) : NULL;
    if (answer != NULL && all->worker == NULL) {
        snprintf(all->worker_why, sizeof all->worker_why, "its output cannot be parsed");
    }
}

static void forget(facts *all)
{
    json_decref(all->worker);
    json_decref(all->check);
    json_decref(all->status);
    json_decref(all->peers);
    json_decref(all->dialed);
    json_decref(all->rounds);
    json_decref(all->events);
    json_decref(all->plan);
}

/* ---- showing ---- */

static json_t *json_of(const char *name, const dp_finding *finding)
{
    return json_pack("{s:s,s:s,s:o,s:o*,s:o*}", "name", name, "level",
                     dp_finding_level_name(finding->level), "what", dp_json_string(finding->what),
                     "why", dp_json_string(finding->why[0] != '\0' ? finding->why : NULL), "fix",
                     dp_json_string(finding->fix[0] != '\0' ? finding->fix : NULL));
}

static void print_finding(const char *name, dp_finding *finding)
{
    dp_print_harmless(finding->what);
    dp_print_harmless(finding->why);
    dp_print_harmless(finding->fix);
    printf("%-4s  %-10s  %s\n", dp_finding_level_name(finding->level), name, finding->what);
    if (finding->why[0] != '\0') {
        printf("      why: %s\n", finding->why);
    }
    if (finding->fix[0] != '\0') {
        printf("      fix: %s\n", finding->fix);
    }
}

/* Counts findings by their level; rows: NULL, or gets each finding. */
static void go_through(const dp_doctor *doctor, json_t *rows, unsigned counts[COUNTS])
{
    const dp_doctor_check *tables[2];
    size_t sizes[2];
    tables[0] = dp_doctor_machine(&sizes[0]);
    tables[1] = dp_doctor_node(&sizes[1]);
    for (size_t i = 0; i < sizes[0] + sizes[1]; i++) {
        const dp_doctor_check *const check =
            i < sizes[0] ? &tables[0][i] : &tables[1][i - sizes[0]];
        dp_finding finding = {.level = DP_FINDING_NONE};
        check->look(doctor, &finding);
        counts[finding.level]++;
        if (rows != NULL && finding.level != DP_FINDING_NONE) {
            json_array_append_new(rows, json_of(check->name, &finding));
        } else if (finding.level != DP_FINDING_NONE) {
            print_finding(check->name, &finding);
        }
    }
}

static int show(const dp_cmd *cmd, const dp_doctor *doctor)
{
    unsigned counts[COUNTS] = {0};
    json_t *const rows = cmd->json ? json_array() : NULL;
    go_through(doctor, rows, counts);
    const int answer = counts[DP_FINDING_FAIL] > 0 ? DP_EXIT_NEGATIVE : 0;
    if (cmd->json) {
        const int printed =
            dp_cmd_print(json_pack("{s:o,s:i,s:i,s:i,s:O*}", "checks", rows, "ok",
                                   (int)counts[DP_FINDING_OK], "warn", (int)counts[DP_FINDING_WARN],
                                   "fail", (int)counts[DP_FINDING_FAIL], "plan", doctor->plan));
        return printed != 0 ? printed : answer;
    }
    if (doctor->plan != NULL) {
        putchar('\n');
        dp_plan_print(doctor->plan, false);
    }
    printf("\n%u passed, %u warning%s, %u failed\n", counts[DP_FINDING_OK], counts[DP_FINDING_WARN],
           counts[DP_FINDING_WARN] == 1 ? "" : "s", counts[DP_FINDING_FAIL]);
    return fflush(stdout) == 0 ? answer : DP_EXIT_IO;
}

static int run_doctor(dp_cmd *cmd)
{
    static dp_manifest_file file;
    static facts all;
    char text_why[DP_PLAN_WHY_MAX] = "";
    dp_control_error error;
    struct rlimit files = {0, 0};
    const bool has_manifest = cmd->n_args > 0;
    if (has_manifest && dp_run_manifest_read(cmd->args[0], NULL, &file, &error) != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    gather_daemon(cmd, &all);
    gather_programs(cmd, &all);
    /* Without its file, nothing is known of the needs of a run of any model. */
    if (has_manifest && all.worker != NULL && !dp_manifest_external(&file.manifest)) {
        char text[DP_CLI_PATH_MAX];
        dp_run_text_path(cmd->args[0], &file, text);
        all.plan = dp_plan_ask(&file.manifest, dp_json_text(all.check, "backend", NULL),
                               dp_plan_data_bytes(text));
        if (text[0] == '\0' || file.from_path[0] != '\0' ||
            dp_plan_text_holds(&file.manifest, text, false, text_why)) {
            text_why[0] = '\0';
        }
    }
    /* Zero is printed, which is conspicuous enough. */
    DP_IGNORE(getrlimit(RLIMIT_NOFILE, &files) != 0);
    const dp_doctor doctor = {.version = DP_VERSION_TEXT,
                              .root = "",
                              .worker = all.worker,
                              .worker_why = all.worker_why,
                              .check = all.check,
                              .check_why = all.check_why,
                              .status = all.status,
                              .peers = all.peers,
                              .dialed = all.dialed,
                              .rounds = all.rounds,
                              .events = all.events,
                              .plan = all.plan,
                              .text_why = text_why,
                              .plan_name = has_manifest ? file.manifest.name : NULL,
                              .plan_external = has_manifest && dp_manifest_external(&file.manifest),
                              .files_max = files.rlim_max, /* to which the daemon raises its own */
                              .now_ms = dp_print_now_ms(),
                              .clock_synchronised = clock_synchronised()};
    const int exit = show(cmd, &doctor);
    forget(&all);
    return exit;
}

const dp_verb dp_verb_doctor = {
    .name = "doctor",
    .run = run_doctor,
    .arguments = "[FILE]",
    .summary = "check this machine and this node, and print a fix for each problem",
    .examples = "  dpnode doctor\n  dpnode doctor run.yaml     # and whether that run fits here\n",
    .n_args_max = 1,
    .options = {{"dir", 0, "PATH", "directory to check as the daemon's"},
                {"listen", 0, "ADDR:PORT", "address to check as the daemon's"},
                {"backend", 0, "NAME", "backend to check: auto, cpu, cuda, or a plugin's path"}},
};
