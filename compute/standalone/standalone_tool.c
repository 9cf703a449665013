#include "compute/standalone/standalone_tool.h"

#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/assert.h"
#include "compute/backend/plugin.h"
#include "compute/backend/process_group_cards.h"
#include "compute/machine/files.h"
#include "compute/machine/pool.h"
#include "compute/machine/tool.h"
#include "compute/standalone/standalone.h"

static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
    stopping = number;
}

static int usage(void)
{
    fputs(
        "usage: dpnode-worker train FOLDER --manifest FILE --text PATH [--steps N] [--threads N]\n"
        "           [--processes N] [--from FILE|FOLDER] [--backend auto|cpu|NAME|PATH]\n"
        "           [--skip-bad-lines]\n"
        "           [--rows N] [--save-steps N] [--save-seconds N]\n"
        "           [--val-steps N] [--val-tokens N] [--patience N]\n"
        "       dpnode-worker train FOLDER --resume [--manifest FILE] [--steps N] ...\n"
        "       dpnode-worker eval FOLDER [--best] [--data FILE] [--tokens N] [--threads N]\n",
        stderr);
    return EX_USAGE;
}

/* Like dp_tool_complain, with statuses of their own for a busy folder and missing memory. */
static int complain(dp_status status, const dp_why *why)
{
    const int exit = dp_tool_complain(status, why);
    switch ((int)status) {
    case DP_BUSY:
        return EX_TEMPFAIL;
    case DP_EXISTS:
        return EX_CANTCREAT;
    case DP_TOOBIG:
        return EX_UNAVAILABLE;
    case DP_UNSUPPORTED:
        return EX_CONFIG;
    default:
        return exit;
    }
}

/* ---- arguments ---- */

typedef struct arguments {
    const char *folder;
    const char *manifest;
    const char *text;
    const char *data;
    const char *from;
    const char *backend;
    uint64_t threads;
    uint64_t processes; /* 0: not told */
    uint64_t rows;
    uint64_t tokens;
    dp_standalone_options options;
    bool best;
    bool resume;
    bool skip_bad_lines;
} arguments;

static bool parse(int argc, char **argv, arguments *args)
{
    static const struct option options[] = {{"manifest", required_argument, NULL, 'm'},
                                            {"text", required_argument, NULL, 't'},
                                            {"data", required_argument, NULL, 'd'},
                                            {"steps", required_argument, NULL, 's'},
                                            {"threads", required_argument, NULL, 'p'},
                                            {"processes", required_argument, NULL, 'o'},
                                            {"rows", required_argument, NULL, 'r'},
                                            {"save-steps", required_argument, NULL, 'e'},
                                            {"save-seconds", required_argument, NULL, 'c'},
                                            {"tokens", required_argument, NULL, 'n'},
                                            {"from", required_argument, NULL, 'f'},
                                            {"backend", required_argument, NULL, 'b'},
                                            {"val-steps", required_argument, NULL, 'v'},
                                            {"val-tokens", required_argument, NULL, 'V'},
                                            {"patience", required_argument, NULL, 'P'},
                                            {"best", no_argument, NULL, 'B'},
                                            {"resume", no_argument, NULL, 'R'},
                                            {"skip-bad-lines", no_argument, NULL, 'S'},
                                            {NULL, 0, NULL, 0}};
    struct {
        int option;
        uint64_t most;
        uint64_t *value;
    } numbers[] = {{'s', UINT32_MAX, &args->options.steps},
                   {'p', DP_POOL_THREADS_MAX, &args->threads},
                   {'r', DP_GPT_ROWS_MAX, &args->rows},
                   {'e', UINT32_MAX, &args->options.save_steps},
                   {'o', DP_PROCESS_BARRIER_PROCESSES_MAX, &args->processes},
                   {'c', UINT32_MAX, &args->options.save_s},
                   {'v', UINT32_MAX, &args->options.val_steps},
                   {'V', UINT32_MAX, &args->options.val_tokens},
                   {'P', UINT32_MAX, &args->options.patience},
                   {'n', UINT64_MAX, &args->tokens}};
    int option;
    bool good = true;
    optind = 0; /* GNU: begin anew, at argv[1] */
    while (good && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        good = option != '?';
        args->manifest = option == 'm' ? optarg : args->manifest;
        args->text = option == 't' ? optarg : args->text;
        args->data = option == 'd' ? optarg : args->data;
        args->from = option == 'f' ? optarg : args->from;
        args->backend = option == 'b' ? optarg : args->backend;
        args->resume = args->resume || option == 'R';
        args->best = args->best || option == 'B';
        args->skip_bad_lines = args->skip_bad_lines || option == 'S';
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && good; i++) {
            good = numbers[i].option != option ||
                   dp_tool_number(optarg, 0, numbers[i].most, numbers[i].value);
        }
    }
    args->folder = good && optind == argc - 1 ? argv[optind] : NULL;
    return args->folder != NULL;
}

/* ---- lines ---- */

/* A number that JSON can hold, or null. */
static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Takes and prints line. If the reader is gone, training stops. */
static void print(json_t *line)
{
    if (json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(10)) != 0 ||
        putchar('\n') == EOF || fflush(stdout) != 0) {
        stopping = SIGPIPE;
    }
    json_decref(line);
}

static void print_plan(const dp_standalone_event *event)
{
    dp_buf bytes;
    const dp_why why = {{0}};
    dp_why said = why;
    snprintf(said.text, sizeof said.text, "%s", event->why);
    dp_buf_init(&bytes, 1 << 16);
    json_t *plan = NULL;
    if (dp_plan_json(event->plan, &said, &bytes) == DP_OK) {
        plan = json_loadb((const char *)bytes.data, bytes.size, 0, NULL);
    }
    dp_buf_close(&bytes);
    print(json_pack("{s:s,s:o*}", "event", "plan", "plan", plan));
}

static void print_data(const dp_standalone_event *event)
{
    printf("{\"event\": \"data\", \"tokens\": %" PRIu64, event->tokens);
    if (!dp_document_counts_print(event->counts, stdout) || puts("}") == EOF ||
        fflush(stdout) != 0) {
        stopping = SIGPIPE;
    }
}

static json_t *step_line(const dp_standalone_event *event)
{
    static const char *const outcomes[] = {"done", "not finite", "spike", "no token to learn from"};
    const dp_trainer_last *const last = &event->last;
    return json_pack("{s:s,s:I,s:I,s:s,s:o,s:o,s:o,s:I,s:I,s:I,s:o,s:o}", "event", "step", "step",
                     (json_int_t)event->steps, "target", (json_int_t)event->target, "outcome",
                     outcomes[last->outcome], "loss", real(last->loss), "norm", real(last->norm),
                     "lr", real(last->rate), "tokens", (json_int_t)event->tokens, "skipped",
                     (json_int_t)event->skipped, "spikes", (json_int_t)event->spikes,
                     "tokens_per_second", real(event->tokens_per_second), "eta_s",
                     real(event->eta_s));
}

/* The best so far, taken by the caller. */
static json_t *best_of(const dp_standalone_event *event)
{
    return event->best.known ? json_pack("{s:I,s:o}", "step", (json_int_t)event->best.step, "loss",
                                         real(event->best.score.loss))
                             : json_null();
}

static json_t *validation_line(const dp_standalone_event *event)
{
    const dp_trainer_score *const score = &event->score;
    return json_pack("{s:s,s:I,s:I,s:o,s:o,s:o,s:I,s:b,s:o,s:o}", "event", "validation", "step",
                     (json_int_t)event->steps, "target", (json_int_t)event->target, "loss",
                     real(score->loss), "perplexity", real(exp(score->loss)), "bits_per_byte",
                     real(score->bits_per_byte), "tokens", (json_int_t)score->tokens, "is_best",
                     (int)event->is_best, "best", best_of(event), "took_s", real(event->took_s));
}

static json_t *end_line(const dp_standalone_event *event, const char *name)
{
    char hash[2 * DP_HASH_BYTES + 1];
    dp_hex(dp_view_of(event->hash.bytes, sizeof event->hash.bytes), hash);
    return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:s,s:b,s:b,s:o,s:o,s:o}", "event", name, "step",
                     (json_int_t)event->steps, "target", (json_int_t)event->target, "tokens",
                     (json_int_t)event->tokens, "skipped", (json_int_t)event->skipped, "spikes",
                     (json_int_t)event->spikes, "hash", hash, "stopped", (int)event->stopped,
                     "model", (int)event->exported, "train_s", real(event->train_s),
                     "tokens_per_second", real(event->tokens_per_second), "took_s",
                     real(event->took_s));
}

static void tell(void *context, const dp_standalone_event *event)
{
    (void)context;
    switch (event->kind) {
    case DP_STANDALONE_PREPARED:
        print_data(event);
        break;
    case DP_STANDALONE_PLAN:
        print_plan(event);
        break;
    case DP_STANDALONE_NOTE:
        print(json_pack("{s:s,s:s}", "event", "note", "why", event->why));
        break;
    case DP_STANDALONE_START:
        print(json_pack("{s:s,s:I,s:I,s:o,s:i,s:i,s:I}", "event", "start", "step",
                        (json_int_t)event->steps, "target", (json_int_t)event->target, "passes",
                        real(event->passes), "rows", (int)event->rows, "threads",
                        (int)event->threads, "parameters", (json_int_t)event->parameters));
        break;
    case DP_STANDALONE_STEP:
        print(step_line(event));
        break;
    case DP_STANDALONE_SAVED:
        print(end_line(event, "saved"));
        break;
    case DP_STANDALONE_VALIDATED:
        print(validation_line(event));
        break;
    case DP_STANDALONE_END: {
        json_t *const line = end_line(event, "end");
        const bool said = json_object_set_new(line, "early", json_boolean(event->early)) == 0 &&
                          json_object_set_new(line, "best", best_of(event)) == 0;
        dp_assert(said);
        print(line);
        break;
    }
    }
}

static bool stop(void *context)
{
    (void)context;
    return stopping != 0;
}

static void note(const char *sentence)
{
    tell(NULL, &(dp_standalone_event){.kind = DP_STANDALONE_NOTE, .why = sentence});
}

/* ---- the two words ---- */

/* Where the program chose the backend, adapters go to the CPU. */
static void leave_to_cpu(const arguments *args, dp_view manifest, dp_plugin_choice *choice)
{
    dp_manifest m;
    if (choice->backend != NULL && (choice->backend->capabilities & DP_CAN_ADAPTERS) == 0 &&
        strcmp(args->backend, "auto") == 0 && dp_manifest_decode(&m, manifest) == DP_OK &&
        dp_manifest_adapts(&m)) {
        note("the CPU trains adapters; a graphics card does not yet");
        choice->backend = NULL;
    }
}

static dp_status train(const arguments *args, dp_process_group *team, dp_why *why)
{
    dp_buf manifest;
    dp_buf_init(&manifest, DP_MANIFEST_BYTES_MAX);
    dp_status status =
        args->manifest != NULL ? dp_file_read(args->manifest, &manifest, why) : DP_OK;
    dp_plugin_choice choice = {.backend = NULL};
    if (args->backend != NULL) {
        dp_plugin_choose_own(&choice, args->backend, DP_PLUGIN_CHECK_MS);
    }
    if (choice.missed) {
        /* Unlike in a run with other members, training cannot go on without this backend. */
        dp_buf_close(&manifest);
        char *const instead = strrchr(choice.line.text, ';');
        return dp_why_set(why, DP_UNSUPPORTED, "%.*s",
                          instead != NULL ? (int)(instead - choice.line.text) : 0,
                          choice.line.text);
    }
    if (choice.line.text[0] != '\0') {
        note(choice.line.text);
    }
    leave_to_cpu(args, dp_buf_view(&manifest), &choice);
    dp_process_group_take_choice(team, &choice, note);
    const dp_standalone_job job = {.manifest = dp_buf_view(&manifest),
                                   .text = args->text,
                                   .weights = args->from,
                                   .skip_bad_lines = args->skip_bad_lines,
                                   .backend = choice.backend,
                                   .device = choice.device,
                                   .folder = args->folder,
                                   .options = args->options,
                                   .threads = (size_t)args->threads,
                                   .team = team,
                                   .rows = (uint32_t)args->rows,
                                   .resume = args->resume,
                                   .tell = tell,
                                   .stop = stop};
    if (status == DP_OK) {
        status = dp_standalone_train(&job, why);
    }
    dp_buf_close(&manifest);
    return status;
}

int dp_standalone_tool_train(int argc, char **argv)
{
    arguments args = {.options = dp_standalone_options_none()};
    dp_why why = {{0}};
    if (!parse(argc, argv, &args) || args.data != NULL || args.best ||
        (!args.resume && (args.manifest == NULL || args.text == NULL))) {
        return usage();
    }
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    signal(SIGPIPE, SIG_IGN);
    if (sigaction(SIGINT, &action, NULL) != 0 || sigaction(SIGTERM, &action, NULL) != 0) {
        return EX_OSERR;
    }
    dp_process_group *team = NULL; /* Before there is a thread, or a card in use. */
    dp_status status = DP_OK;
    const uint32_t cards = args.backend != NULL ? dp_plugin_count(args.backend) : 1;
    if (cards > 1 || args.processes > 1) {
        status =
            dp_process_group_start(&team, cards > 1 ? cards : (uint32_t)args.processes, 0, &why);
    }
    if (status == DP_OK) {
        status = train(&args, team, &why);
    }
    dp_process_group_close(team);
    return status == DP_OK ? EX_OK : complain(status, &why);
}

int dp_standalone_tool_eval(int argc, char **argv)
{
    arguments args = {.folder = NULL};
    dp_trainer_score score;
    uint64_t steps = 0;
    dp_why why = {{0}};
    if (!parse(argc, argv, &args)) {
        return usage();
    }
    const dp_standalone_look look = {.folder = args.folder,
                                     .data = args.data,
                                     .tokens = args.tokens,
                                     .which = args.best ? DP_STANDALONE_BEST : DP_STANDALONE_LAST,
                                     .threads = (size_t)args.threads};
    const dp_status status = dp_standalone_eval(&look, &score, &steps, &why);
    if (status != DP_OK) {
        return complain(status, &why);
    }
    print(json_pack("{s:I,s:o,s:o,s:o,s:I}", "step", (json_int_t)steps, "loss", real(score.loss),
                    "perplexity", real(exp(score.loss)), "bits_per_byte", real(score.bits_per_byte),
                    "tokens", (json_int_t)score.tokens));
    return stopping == 0 ? EX_OK : EX_IOERR;
}
