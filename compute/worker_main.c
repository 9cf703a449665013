/* dpnode-worker: the built-in trainer as a process of its own, and the tools that prepare data and
 * export models.
 *
 *   dpnode-worker --fd N [--threads N] [--processes N] [--nice N] [--backend B]
 *                 [--celsius-max N] [--watts-max N] [--vram-share PERCENT] [--script PATH]
 *                   speak the trainer protocol on the inherited socket N; PATH: where scripts
 *                   connect, in a run of any model
 *   dpnode-worker --prepare TEXT FOLDER --manifest FILE [--from WEIGHTS] [--backend B] [--threads
 *                                                      N] [--processes N] make the objects of a run
 *                                                      (prepare.h); print a line of JSON; with a
 *                                                      backend only if the model fits there, else
 *                                                      exit 69
 *   dpnode-worker --export MANIFEST STATE TOKENIZER FOLDER [--umask NNN] [--gguf TYPE | --llmc
 *     TYPE | --merged] [--base FILE]   FILE: the object below adapters
 *   dpnode-worker --export FOLDER-OF-TRAIN FOLDER [--gguf TYPE | --llmc TYPE | --merged]   its
 *     newest checkpoint; print {"step", "files"}
 *   dpnode-worker --model WEIGHTS                      print the model section of a manifest that
 *     can start from them
 *   dpnode-worker --tensors FILE                       look at a safetensors file as a run of any
 *     model takes it; print {"tensors", "elements", "table_bytes"}
 *   dpnode-worker train FOLDER ...                     train without peers (standalone_tool.h)
 *   dpnode-worker eval FOLDER ...                      measure what that made
 *   dpnode-worker data tokenize|info|verify|encode ...  token shards (data_tool.h)
 *   dpnode-worker --look [--backend B] [--patience S]  machine information (machine_info.h) as a
 *                                                      line of JSON; S seconds for a part of the
 *                                                      self-test, under a tool that slows it down
 *   dpnode-worker --plan MANIFEST [--threads N] [--processes N] [--memory MIB] [--backend B] what
 *                                                      training takes here, on each card where B
 *                                                      names several, as a line of JSON; "-": stdin
 * A closed socket ends a trainer at once; SIGTERM, SIGINT and SIGHUP do not. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/run/manifest.h"
#include "base/run/prepared.h"
#include "base/run/samples.h"
#include "compute/backend/backend_cpu.h"
#include "compute/backend/plan.h"
#include "compute/backend/plugin.h"
#include "compute/backend/process_group_cards.h"
#include "compute/format/export.h"
#include "compute/format/first_weights.h"
#include "compute/format/hf_import.h"
#include "compute/format/prepare.h"
#include "compute/machine/files.h"
#include "compute/machine/pool.h"
#include "compute/machine/tool.h"
#include "compute/standalone/standalone.h"
#include "compute/standalone/standalone_tool.h"
#include "compute/worker/data_tool.h"
#include "compute/worker/machine_info.h"
#include "compute/worker/worker.h"

enum { LINE_BYTES_MAX = 1 << 16 };

enum mode {
    SERVE = 0,
    PLAN = 'l',
    LOOK = 'k',
    PREPARE = 'p',
    EXPORT = 'e',
    MODEL = 'd' + 256,
    TENSORS = 't' + 256
};                                                               /* its option */
enum { MERGED = 'm' + 256, BASE = 'b' + 256, SKIP = 's' + 256 }; /* other options */

typedef struct arguments {
    int mode;
    bool help;
    bool has_fd;
    uint64_t fd;
    uint64_t threads;
    uint64_t processes; /* 0: not told */
    uint64_t nice;
    uint64_t celsius_max; /* 0: none, as below */
    uint64_t watts_max;
    uint64_t vram_share; /* percent */
    uint64_t memory;     /* MiB; 0: all that is usable */
    uint64_t patience;   /* seconds; 0: the usual */
    uint64_t data;       /* bytes of shards, where the manifest does not list them yet */
    const char *backend; /* NULL: not told */
    const char *from;    /* NULL: none */
    const char *manifest;
    const char *gguf;
    const char *llmc;
    const char *base; /* NULL: none */
    bool merged;
    bool skip_bad_lines;
    const char *script; /* NULL: no socket for scripts */
    bool best;
} arguments;

static int usage(FILE *out)
{
    fputs("usage: dpnode-worker --fd N [--threads N] [--processes N] [--nice N]\n"
          "                     [--backend auto|cpu|NAME|PATH]\n"
          "                     [--celsius-max N] [--watts-max N] [--vram-share PERCENT]\n"
          "                     [--script PATH]\n"
          "       dpnode-worker --prepare TEXT FOLDER --manifest FILE [--from WEIGHTS]\n"
          "                     [--backend B] [--threads N] [--processes N] [--skip-bad-lines]\n"
          "       dpnode-worker --export MANIFEST STATE TOKENIZER FOLDER [--umask NNN]\n"
          "                     [--gguf TYPE | --llmc TYPE | --merged] [--base FILE]\n"
          "       dpnode-worker --export FOLDER-OF-TRAIN FOLDER [--best]\n"
          "                     [--gguf TYPE | --llmc TYPE | --merged]\n"
          "       dpnode-worker --model WEIGHTS\n"
          "       dpnode-worker --tensors FILE\n"
          "       dpnode-worker data tokenize|info|verify|encode ...\n"
          "       dpnode-worker train|eval|sample FOLDER ...\n"
          "       dpnode-worker --look [--backend auto|cpu|NAME|PATH] [--patience SECONDS]\n"
          "       dpnode-worker --plan MANIFEST [--threads N] [--processes N] [--memory MIB]\n"
          "                     [--data BYTES] [--backend B]\n",
          out);
    return out == stdout ? EX_OK : EX_USAGE;
}

/* Three octal digits, as umask(1) has them. */
static bool set_umask(const char *text)
{
    if (strlen(text) != 3 || strspn(text, "01234567") != 3) {
        return false;
    }
    umask((mode_t)(((text[0] - '0') << 6) | ((text[1] - '0') << 3) | (text[2] - '0')));
    return true;
}

static bool parse(int argc, char **argv, arguments *args)
{
    static const struct option options[] = {{"fd", required_argument, NULL, 'f'},
                                            {"threads", required_argument, NULL, 't'},
                                            {"processes", required_argument, NULL, 'o'},
                                            {"nice", required_argument, NULL, 'n'},
                                            {"celsius-max", required_argument, NULL, 'C'},
                                            {"watts-max", required_argument, NULL, 'W'},
                                            {"vram-share", required_argument, NULL, 'V'},
                                            {"backend", required_argument, NULL, 'b'},
                                            {"memory", required_argument, NULL, 'm'},
                                            {"plan", no_argument, NULL, PLAN},
                                            {"look", no_argument, NULL, LOOK},
                                            {"prepare", no_argument, NULL, PREPARE},
                                            {"export", no_argument, NULL, EXPORT},
                                            {"model", no_argument, NULL, MODEL},
                                            {"tensors", no_argument, NULL, TENSORS},
                                            {"from", required_argument, NULL, 'r'},
                                            {"manifest", required_argument, NULL, 'a'},
                                            {"gguf", required_argument, NULL, 'g'},
                                            {"llmc", required_argument, NULL, 'c'},
                                            {"base", required_argument, NULL, BASE},
                                            {"merged", no_argument, NULL, MERGED},
                                            {"data", required_argument, NULL, 'd'},
                                            {"patience", required_argument, NULL, 'i'},
                                            {"umask", required_argument, NULL, 'u'},
                                            {"script", required_argument, NULL, 's'},
                                            {"best", no_argument, NULL, 'B'},
                                            {"skip-bad-lines", no_argument, NULL, SKIP},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const struct {
        int option;
        uint64_t least;
        uint64_t most;
        uint64_t *value;
    } numbers[] = {{'f', 0, 1 << 20, &args->fd},
                   {'t', 0, DP_POOL_THREADS_MAX, &args->threads},
                   {'o', 1, DP_PROCESS_BARRIER_PROCESSES_MAX, &args->processes},
                   {'n', 0, 19, &args->nice},
                   {'C', 0, 150, &args->celsius_max},
                   {'W', 0, 100000, &args->watts_max},
                   {'V', 1, 100, &args->vram_share},
                   {'m', 1, 1 << 30, &args->memory},
                   {'i', 1, 3600, &args->patience},
                   {'d', 0, (uint64_t)1 << 50, &args->data}};
    int option;
    bool good = true;
    while (good && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        const bool is_mode = option == PLAN || option == LOOK || option == PREPARE ||
                             option == EXPORT || option == MODEL || option == TENSORS;
        good = option != '?' && (!is_mode || args->mode == SERVE);
        args->mode = is_mode ? option : args->mode;
        args->help = args->help || option == 'h';
        args->has_fd = args->has_fd || option == 'f';
        args->best = args->best || option == 'B';
        args->backend = option == 'b' ? optarg : args->backend;
        args->from = option == 'r' ? optarg : args->from;
        args->manifest = option == 'a' ? optarg : args->manifest;
        args->gguf = option == 'g' ? optarg : args->gguf;
        args->llmc = option == 'c' ? optarg : args->llmc;
        args->base = option == BASE ? optarg : args->base;
        args->merged = args->merged || option == MERGED;
        args->skip_bad_lines = args->skip_bad_lines || option == SKIP;
        args->script = option == 's' ? optarg : args->script;
        good = good && (option != 'u' || set_umask(optarg));
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && good; i++) {
            good = numbers[i].option != option ||
                   dp_tool_number(optarg, numbers[i].least, numbers[i].most, numbers[i].value);
        }
    }
    return good;
}

/* Of `dpnode train`. */
static int export_solo(const arguments *args, char **words)
{
    dp_why why = {{0}};
    uint64_t steps = 0;
    const dp_standalone_look look = {.folder = words[0],
                                     .threads = (size_t)args->threads,
                                     .which = args->best ? DP_STANDALONE_BEST : DP_STANDALONE_LAST};
    const dp_export_job to = {
        .folder = words[1], .gguf = args->gguf, .llmc = args->llmc, .merged = args->merged};
    dp_standalone_files files;
    const dp_status status = dp_standalone_export(&look, &to, &steps, files, &why);
    if (status != DP_OK) {
        return dp_tool_complain(status, &why);
    }
    printf("{\"step\": %" PRIu64 ", \"files\": [", steps);
    for (size_t i = 0; files[i] != NULL; i++) {
        printf("%s\"%s\"", i == 0 ? "" : ", ", files[i]);
    }
    printf("]}\n");
    return fflush(stdout) == 0 ? EX_OK : EX_IOERR;
}

/* As the manifest that has it. */
static int tell_model(const char *weights)
{
    dp_why why = {{0}};
    dp_model_config config;
    char text[DP_HF_MODEL_TEXT_MAX];
    const dp_status status = dp_first_weights_model(weights, &config, &why);
    if (status != DP_OK) {
        return dp_tool_complain(status, &why);
    }
    dp_hf_import_describe(&config, text);
    printf("model: %s\n", text);
    return fflush(stdout) == 0 ? EX_OK : EX_IOERR;
}

static int print_tensors(const dp_prepared *made)
{
    printf("{\"tensors\": %" PRIu64 ", \"elements\": %" PRIu64 ", \"table_bytes\": %" PRIu64 "}\n",
           made->tensors, made->elements, made->tokenizer_bytes);
    return fflush(stdout) == 0 ? EX_OK : EX_IOERR;
}

static int tell_tensors(const char *path)
{
    dp_why why = {{0}};
    dp_prepared made;
    const dp_status status = dp_prepare_tensors(path, &made, &why);
    return status == DP_OK ? print_tensors(&made) : dp_tool_complain(status, &why);
}

static int export_model(const arguments *args, char **words)
{
    dp_why why = {{0}};
    const dp_export_job job = {.manifest = words[0],
                               .state = words[1],
                               .tokenizer = words[2],
                               .folder = words[3],
                               .gguf = args->gguf,
                               .llmc = args->llmc,
                               .base = args->base,
                               .merged = args->merged};
    const dp_status status = dp_export(&job, &why);
    return status == DP_OK ? EX_OK : dp_tool_complain(status, &why);
}

/* Takes line, which status says is whole. */
static int print_line(dp_status status, const dp_why *why, dp_buf *line)
{
    const dp_view text = dp_buf_view(line);
    const bool written = status == DP_OK && fwrite(text.data, 1, text.size, stdout) == text.size &&
                         fflush(stdout) == 0;
    dp_buf_close(line);
    if (status != DP_OK) {
        return dp_tool_complain(status, why);
    }
    return written ? EX_OK : EX_IOERR;
}

static void tell(const char *sentence)
{
    fprintf(stderr, "dpnode-worker: %s\n", sentence);
}

/* Of each process, where there are several: those of the machine, or as many as were told, are
 * shared out. */
static size_t threads_of(const arguments *args, size_t processes)
{
    const size_t all = args->threads > 0 ? (size_t)args->threads : dp_pool_threads_default();
    const size_t each = processes > 1 ? all / processes : all;
    return each > 0 ? each : 1;
}

static dp_status read_manifest(const char *path, dp_manifest *manifest, dp_why *why)
{
    dp_buf bytes;
    dp_buf_init(&bytes, DP_MANIFEST_BYTES_MAX);
    dp_status status = strcmp(path, "-") == 0
                           ? dp_file_read_fd(STDIN_FILENO, "what comes to stdin", &bytes, why)
                           : dp_file_read(path, &bytes, why);
    if (status == DP_OK && dp_manifest_decode(manifest, dp_buf_view(&bytes)) != DP_OK) {
        status = dp_why_set(why, DP_BADMSG, "this is no manifest in its canonical form");
    }
    dp_buf_close(&bytes);
    return status;
}

/* As dp_plan_make, for the devices of choice. */
static dp_status make_plan(const arguments *args, const dp_plugin_choice *choice,
                           const dp_manifest *manifest, dp_plan *plan, dp_why *why)
{
    const uint64_t given = args->memory << 20;
    const uint64_t data = manifest->n_shards > 0 ? dp_manifest_data_bytes(manifest) : args->data;
    /* The data stays in the machine's memory, which is not part of a card's plan. */
    const bool adapts = dp_manifest_adapts(manifest);
    const bool on_cpu = choice->backend == dp_backend_cpu() || adapts;
    const bool several = on_cpu && args->processes > 1 && !adapts;
    const uint32_t processes = several ? (uint32_t)args->processes : 0;
    dp_group_devices devices = {.backend = dp_backend_cpu(), .n = 1};
    if (!on_cpu) {
        devices = dp_group_devices_of(choice);
    }
    dp_manifest own = *manifest;
    own.precision = dp_group_devices_precision(&devices, own.precision);
    const dp_plan_request request = {.manifest = &own,
                                     .threads = threads_of(args, processes),
                                     .budget = given,
                                     .data = on_cpu ? data : 0,
                                     .processes = processes,
                                     .lanes = processes};
    return dp_manifest_external(manifest) || adapts
               ? dp_backend_cpu()->plan(0, &request, plan, why) /* It alone has such a model. */
               : dp_process_group_plan_choice(choice, &request, plan, why);
}

static dp_status tell_plan(const arguments *args, const char *path, dp_buf *line, dp_why *why)
{
    dp_manifest manifest;
    dp_plugin_choice choice;
    dp_plan plan;
    DP_TRY(read_manifest(path, &manifest, why));
    dp_plugin_choose_own(&choice, args->backend != NULL ? args->backend : "cpu",
                         DP_PLUGIN_CHECK_MS);
    const dp_status status = make_plan(args, &choice, &manifest, &plan, why);
    return status == DP_OK || status == DP_TOOBIG ? dp_plan_json(&plan, why, line) : status;
}

static int plan(const arguments *args, const char *path)
{
    dp_buf line;
    dp_why why = {{0}};
    dp_buf_init(&line, LINE_BYTES_MAX);
    const dp_status status = tell_plan(args, path, &line, &why);
    return print_line(status, &why, &line);
}

/* *fits: this machine can train the model. Checked before the text is read, which may take long,
 * and again with the shards. */
static dp_status prepare_what_fits(const arguments *args, const dp_prepare_job *job,
                                   dp_prepared *made, bool *fits, dp_why *why)
{
    char path[PATH_MAX];
    dp_manifest manifest;
    dp_plugin_choice choice;
    dp_plan plan;
    *fits = true;
    if (args->backend == NULL) {
        return dp_prepare_files(job, args->manifest, made, why);
    }
    dp_plugin_choose_own(&choice, args->backend, DP_PLUGIN_CHECK_MS);
    DP_TRY(read_manifest(args->manifest, &manifest, why));
    dp_status status = make_plan(args, &choice, &manifest, &plan, why);
    if (status == DP_OK) {
        DP_TRY(dp_prepare_files(job, args->manifest, made, why));
        snprintf(path, sizeof path, "%s/" DP_PREPARED_MANIFEST, job->folder);
        DP_TRY(read_manifest(path, &manifest, why));
        status = make_plan(args, &choice, &manifest, &plan, why);
    }
    *fits = status != DP_TOOBIG;
    return status;
}

static int prepare(const arguments *args, char **words)
{
    dp_why why = {{0}};
    dp_prepared made;
    bool fits;
    const dp_prepare_job job = {.text = words[0],
                                .folder = words[1],
                                .weights = args->from,
                                .skip_bad_lines = args->skip_bad_lines};
    const dp_status status = prepare_what_fits(args, &job, &made, &fits, &why);
    if (status != DP_OK) {
        const int exit = dp_tool_complain(status, &why);
        return fits ? exit : DP_PREPARED_NO_MEMORY;
    }
    if (made.tensors > 0) {
        return print_tensors(&made);
    }
    printf("{\"tokenizer_bytes\": %" PRIu64 ", \"tokens\": %" PRIu64 ", \"shards\": %" PRIu64
           ", \"data_bytes\": %" PRIu64 ", \"text_bytes\": %" PRIu64 ", \"vocab\": %" PRIu64,
           made.tokenizer_bytes, made.tokens, made.shards, made.data_bytes, made.text_bytes,
           made.vocab);
    if (!dp_document_counts_print(&made.counts, stdout)) {
        return dp_tool_complain(DP_NOMEM, &why);
    }
    puts("}");
    return fflush(stdout) == 0 ? EX_OK : EX_IOERR;
}

static int look(const arguments *args)
{
    dp_buf line;
    dp_plugin_choice choice;
    const dp_why why = {{0}};
    dp_plugin_choose_own(&choice, args->backend != NULL ? args->backend : "auto",
                         args->patience == 0 ? DP_PLUGIN_CHECK_MS
                                             : (uint32_t)args->patience * 1000);
    dp_buf_init(&line, LINE_BYTES_MAX);
    return print_line(dp_machine_info_json(&choice, &line), &why, &line);
}

static const char *backend_of(const arguments *args)
{
    return args->backend != NULL ? args->backend : "auto";
}

/* NULL: this process alone. */
static dp_process_group *start_team(const arguments *args)
{
    dp_process_group *team = NULL;
    dp_why why = {{0}};
    const uint32_t cards = dp_plugin_count(backend_of(args)); /* A process each. */
    const uint32_t processes = cards > 1 ? cards : (uint32_t)args->processes;
    if (processes < 2) {
        return NULL;
    }
    if (dp_process_group_start(&team, processes, 0, &why) != DP_OK) {
        dp_why sentence;
        DP_IGNORE(dp_why_set(&sentence, DP_NOMEM, "%.400s; one computes", why.text));
        tell(sentence.text);
        return NULL;
    }
    return team;
}

/* Lowers the priority of this process. Linux with autogroups (sched(7), on by default) shares
 * processors between sessions first, and a niceness counts inside its session only: so this process
 * gets a session of its own, and that gets the same niceness. */
static void lower_priority(int niceness)
{
    errno = 0;
    const int inherited = getpriority(PRIO_PROCESS, 0); /* That of a unit with Nice=. */
    const int wanted = errno == 0 && inherited > niceness ? inherited : niceness;
    if (setpriority(PRIO_PROCESS, 0, wanted) != 0) {
        perror("dpnode-worker: setpriority");
        return;
    }
    if (setsid() == -1) {
        return; /* It leads a group already: started by hand. */
    }
    FILE *const group = fopen("/proc/self/autogroup", "w");
    if (group != NULL) { /* Without the file there are no autogroups. */
        fprintf(group, "%d\n", wanted);
        fclose(group);
    }
}

static const int of_daemon[] = {SIGTERM, SIGINT, SIGHUP};

static int serve(const arguments *args)
{
    /* A batch system and a terminal signal all processes. The daemon decides: it drains, for which
     * it needs its trainer, and then closes the socket. */
    for (size_t i = 0; i < sizeof of_daemon / sizeof of_daemon[0]; i++) {
        signal(of_daemon[i], SIG_IGN);
    }
    if (args->nice > 0) {
        lower_priority((int)args->nice);
    }
    dp_process_group *team = start_team(args); /* Before there is a thread, or a card in use. */
    dp_plugin_choice choice;
    dp_plugin_choose_own(&choice, backend_of(args), DP_PLUGIN_CHECK_MS);
    dp_plugin_yield(&choice, backend_of(args));
    if (choice.line.text[0] != '\0') {
        tell(choice.line.text);
    }
    dp_process_group_take_choice(team, &choice, tell);
    if (choice.backend == dp_backend_cpu() && args->processes < 2) {
        dp_process_group_close(team); /* Of cards that there are not. */
        team = NULL;
    }
    const dp_worker_options options = {
        .threads = team == NULL ? (size_t)args->threads
                                : threads_of(args, dp_process_group_processes(team)),
        .backend = choice.backend,
        .device = choice.device,
        .team = team,
        .tell = tell,
        .celsius_max = (uint32_t)args->celsius_max,
        .watts_max = (uint32_t)args->watts_max,
        .vram_share = (uint32_t)args->vram_share,
        .script_path = args->script,
        .exit_when_closed = true};
    const dp_status status = dp_worker_serve((int)args->fd, &options);
    dp_process_group_close(team);
    if (status == DP_OK || status == DP_CLOSED) {
        return EX_OK;
    }
    dp_why why;
    return dp_tool_complain(dp_why_set(&why, status, "dpnode-worker: %s", dp_status_text(status)),
                            &why);
}

int main(int argc, char **argv)
{
    arguments args = {0};
    if (argc > 1 && strcmp(argv[1], "data") == 0) {
        return dp_data_tool(argc - 2, argv + 2);
    }
    if (argc > 1 && strcmp(argv[1], "train") == 0) {
        return dp_standalone_tool_train(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "eval") == 0) {
        return dp_standalone_tool_eval(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "sample") == 0) {
        return dp_sample_tool(argc - 1, argv + 1);
    }
    if (!parse(argc, argv, &args)) {
        return usage(stderr);
    }
    if (args.help) {
        return usage(stdout);
    }
    char **const words = argv + optind;
    const int n_words = argc - optind;
    if (args.mode == PREPARE && n_words == 2 && args.manifest != NULL) {
        return prepare(&args, words);
    }
    if (args.mode == EXPORT && n_words == 2) {
        return export_solo(&args, words);
    }
    if (args.mode == EXPORT && n_words == 4) {
        return export_model(&args, words);
    }
    if (args.mode == MODEL && n_words == 1) {
        return tell_model(words[0]);
    }
    if (args.mode == TENSORS && n_words == 1) {
        return tell_tensors(words[0]);
    }
    if (args.mode == PLAN && n_words == 1) {
        return plan(&args, words[0]);
    }
    if (args.mode == LOOK && n_words == 0) {
        return look(&args);
    }
    if (args.mode == SERVE && args.has_fd && n_words == 0) {
        return serve(&args);
    }
    if (args.mode == SERVE && n_words > 0) {
        fprintf(stderr, "dpnode-worker: there is no tool \"%.60s\"\n", words[0]);
    }
    return usage(stderr);
}
