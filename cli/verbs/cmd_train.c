/* train: trains without peers and daemon, by dpnode-worker, which reports line by line; and eval
 * FOLDER, which measures the result. */
#include "cli/verbs/cmd_train.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/figures/train_figures.h"
#include "cli/json.h"
#include "cli/plan.h"
#include "cli/print.h"
#include "cli/tool.h"
#include "cli/verbs/cmd_run.h"

enum { NUMBER_MAX = 24, LINE_MS = 10 * 1000, TERMINAL_MS = 200 };

typedef struct training {
    const dp_cmd *cmd;
    const char *folder;
    bool terminal;
    bool line_open;   /* the cursor is after a line that will be overwritten */
    bool stopped;     /* reported by the worker */
    bool adapts;      /* adapters are trained */
    uint64_t told_ms; /* time of the last printed line about a step */
    dp_train_figures figures;
    dp_cli_tool tool; /* large */
} training;

/* ---- messages of the worker ---- */

static void close_line(training *t)
{
    if (t->line_open) {
        putchar('\n');
        t->line_open = false;
    }
}

static void print_step(training *t, const json_t *e)
{
    const long long step = dp_json_int(e, "step", 0);
    const long long target = dp_json_int(e, "target", 0);
    const bool good = strcmp(dp_json_text(e, "outcome", "done"), "done") == 0;
    const uint64_t now = dp_print_now_ms();
    if (step != target && good && t->told_ms != 0 &&
        now - t->told_ms < (t->terminal ? TERMINAL_MS : LINE_MS)) {
        return;
    }
    char rate[DP_PRINT_CELL_MAX];
    char left[DP_PRINT_CELL_MAX];
    dp_print_count(dp_json_real(e, "tokens_per_second", 0), rate);
    dp_print_span((uint64_t)dp_json_real(e, "eta_s", 0), left);
    /* JSON has no value for NaN and infinity. */
    printf("%sstep %lld/%lld  loss %.4f  lr %.3g  %s tokens/s  skipped %lld  %s left",
           t->line_open ? "\r\033[K" : "", step, target, dp_json_real(e, "loss", (double)NAN),
           dp_json_real(e, "lr", 0), rate, dp_json_int(e, "skipped", 0), left);
    if (!good) {
        printf("  (dropped: %s)", dp_json_text(e, "outcome", "?"));
    }
    t->line_open = true;
    if (!t->terminal || !good) {
        close_line(t);
    }
    fflush(stdout);
    t->told_ms = now;
}

static void print_validation(const json_t *e)
{
    const json_t *const best = json_object_get(e, "best");
    printf("%s held out at step %lld: loss %.4f, perplexity %.2f, %.4f bits per byte",
           dp_print_mark(true), dp_json_int(e, "step", 0), dp_json_real(e, "loss", (double)NAN),
           dp_json_real(e, "perplexity", (double)NAN),
           dp_json_real(e, "bits_per_byte", (double)NAN));
    if (dp_json_flag(e, "is_best") == 1) {
        printf("; the best so far");
    } else if (json_is_object(best)) {
        printf("; the best was %.4f at step %lld", dp_json_real(best, "loss", (double)NAN),
               dp_json_int(best, "step", 0));
    }
    putchar('\n');
}

/* The best checkpoint, if the last one is another. */
static void print_best(const training *t, const json_t *e)
{
    const json_t *const best = json_object_get(e, "best");
    if (json_is_object(best) && dp_json_int(best, "step", 0) != dp_json_int(e, "step", 0)) {
        printf("  lowest held-out loss: %.4f at step %lld; its checkpoint: dpnode ckpt export DIR "
               "--from %s --best\n",
               dp_json_real(best, "loss", (double)NAN), dp_json_int(best, "step", 0), t->folder);
    }
}

static void print_end(training *t, const json_t *e)
{
    char rate[DP_PRINT_CELL_MAX];
    dp_print_count(dp_json_real(e, "tokens_per_second", 0), rate);
    if (dp_json_flag(e, "early") == 1) {
        printf("%s ended early: the held-out loss has not fallen since step %lld (--patience); to "
               "train on: dpnode train --resume --patience 0 --out %s\n",
               dp_print_mark(true), dp_json_int(json_object_get(e, "best"), "step", 0), t->folder);
    }
    if (t->stopped) {
        printf("%s stopped and saved at step %lld; to continue: dpnode train --resume --out %s\n",
               dp_print_mark(true), dp_json_int(e, "step", 0), t->folder);
        return;
    }
    printf("%s %lld steps done, %lld of them skipped, %s tokens/s", dp_print_mark(true),
           dp_json_int(e, "step", 0), dp_json_int(e, "skipped", 0), rate);
    if (dp_json_flag(e, "model") == 1) {
        printf("; %s/model opens in %s", t->folder, t->adapts ? "peft" : "transformers");
    }
    putchar('\n');
    printf("  state %.16s; measure it: dpnode eval %s\n", dp_json_text(e, "hash", ""), t->folder);
    print_best(t, e);
}

static void print_event(training *t, const char *event, const json_t *e)
{
    if (strcmp(event, "step") == 0) {
        print_step(t, e);
        return;
    }
    close_line(t);
    if (strcmp(event, "plan") == 0) {
        t->adapts = dp_json_real(json_object_get(e, "plan"), "base", 0) > 0;
        dp_plan_print(json_object_get(e, "plan"), false);
    } else if (strcmp(event, "data") == 0) {
        printf("%s text prepared: %lld tokens\n", dp_print_mark(true), dp_json_int(e, "tokens", 0));
        dp_cli_tool_print_documents(e);
    } else if (strcmp(event, "note") == 0) {
        fprintf(stderr, "note: %s\n", dp_json_text(e, "why", ""));
    } else if (strcmp(event, "start") == 0) {
        printf("%s %s: from step %lld to %lld (%.3g passes of the data), %lld threads, %lld "
               "sequences at a time\n",
               dp_print_mark(true), t->folder, dp_json_int(e, "step", 0),
               dp_json_int(e, "target", 0), dp_json_real(e, "passes", 0),
               dp_json_int(e, "threads", 0), dp_json_int(e, "rows", 0));
    } else if (strcmp(event, "validation") == 0) {
        print_validation(e);
    } else if (strcmp(event, "end") == 0) {
        print_end(t, e);
    }
    fflush(stdout);
}

/* Trouble with a file of figures. With --json as the worker's own notes are. */
static void on_warning(void *context, const char *sentence)
{
    training *const t = context;
    json_t *const note = json_pack("{s:s,s:o}", "event", "note", "why", dp_json_string(sentence));
    if (t->cmd->json) {
        DP_IGNORE(dp_cmd_print(json_incref(note)) != 0);
    } else {
        print_event(t, "note", note);
    }
    json_decref(note);
}

static void on_line(void *context, const char *line)
{
    training *const t = context;
    json_t *const e = json_loads(line, 0, NULL);
    if (e == NULL) {
        return;
    }
    const char *const event = dp_json_text(e, "event", "");
    dp_train_figures_take(&t->figures, e, dp_print_now_ms());
    t->stopped = t->stopped || (strcmp(event, "end") == 0 && dp_json_flag(e, "stopped") == 1);
    if (t->cmd->json) {
        DP_IGNORE(dp_cmd_print(json_incref(e)) != 0); /* The worker gets it by its own pipe. */
    } else {
        print_event(t, event, e);
    }
    json_decref(e);
}

/* ---- errors ---- */

static const dp_cli_failure failures[] = {
    {DP_EXIT_DATA, "E0513",
     "correct the cause named above; if the folder holds another run, give another --out",
     "training cannot start or continue"},
    {DP_EXIT_UNAVAILABLE, "E0510", "free memory, or change the setting named above",
     "this machine has too little memory"},
    {DP_EXIT_CANTCREATE, "E0511", "add --resume, or give another --out",
     "the folder holds a run already"},
    {DP_EXIT_TEMPORARY, "E0512", "wait for that process, or stop it",
     "another process trains in this folder"},
    {DP_EXIT_CONFIG, "E0514",
     "dpnode train ... --backend auto   # uses an available backend; dpnode doctor names it",
     "the backend cannot compute"},
    {0, NULL, NULL, NULL},
};

static int tool_failed(const dp_cmd *cmd, const dp_cli_tool *tool)
{
    return dp_cli_tool_failed(cmd, tool, failures,
                              "dmesg | tail   # shows whether memory ran out; --resume goes on "
                              "from the newest checkpoint");
}

/* ---- train ---- */

static int follow(const dp_cmd *cmd, const dp_cli_words *words, const char *folder)
{
    training *const t = calloc(1, sizeof *t);
    if (t == NULL) {
        return dp_cli_tool_missing(cmd, DP_NOMEM);
    }
    t->cmd = cmd;
    t->folder = folder;
    t->terminal = isatty(STDOUT_FILENO) == 1;
    t->figures.warn = on_warning;
    t->figures.context = t;
    if (!dp_train_figures_open(&t->figures, dp_cmd_option(cmd, "metrics"),
                               dp_cmd_option(cmd, "tensorboard"))) {
        dp_control_error error;
        free(t);
        dp_error_set(&error, DP_EXIT_USAGE, "E0001", "dpnode train ... --metrics FILE",
                     "--metrics is empty or too long", "");
        return dp_cmd_fail(cmd, &error);
    }
    const dp_status status = dp_cli_tool_follow(&t->tool, words->list, on_line, t);
    close_line(t);
    dp_train_figures_close(&t->figures);
    int exit = t->stopped ? DP_EXIT_INTERRUPTED : 0;
    if (status != DP_OK) {
        exit = dp_cli_tool_missing(cmd, status);
    } else if (t->tool.exit != 0) {
        exit = tool_failed(cmd, &t->tool);
    }
    free(t);
    return exit;
}

static int train_with(const dp_cmd *cmd, const dp_run_input *input, const char *folder)
{
    static const char *const passed[] = {
        "--steps",   "--threads",   "--rows",      "--save-steps", "--save-seconds",
        "--backend", "--processes", "--val-steps", "--val-tokens", "--patience"};
    char path[DP_CLI_TOOL_PATH_MAX];
    int fd = -1;
    dp_cli_words words = {.count = 0};
    dp_cli_words_pair(&words, "train", folder);
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++) {
        dp_cli_words_option(&words, cmd, passed[i]);
    }
    if (input != NULL) {
        fd = dp_cli_tool_manifest(&input->file.manifest, path);
        if (fd < 0) {
            return dp_cli_tool_missing(cmd, DP_NOMEM);
        }
        dp_cli_words_pair(&words, "--manifest", path);
        dp_cli_words_pair(&words, "--text", input->text_path);
        dp_cli_words_pair(&words, "--from", input->from_path[0] != '\0' ? input->from_path : NULL);
        if (input->skip_bad_lines) {
            dp_cli_words_add(&words, "--skip-bad-lines");
        }
    }
    if (dp_cmd_option(cmd, "resume") != NULL) {
        dp_cli_words_add(&words, "--resume");
    }
    const int exit = follow(cmd, &words, folder);
    if (fd >= 0) {
        close(fd);
    }
    return exit;
}

/* --out, or a folder of the run's name in this one. NULL: *error has the reason. */
static const char *folder_of(const dp_cmd *cmd, const dp_run_input *input, dp_control_error *error)
{
    const char *const given = dp_cmd_option(cmd, "out");
    const char *const name = input != NULL ? input->file.manifest.name : "";
    if (given != NULL && given[0] != '\0' && given[0] != '-') {
        return given;
    }
    if (given == NULL && name[0] != '\0' && name[0] != '.' && name[0] != '-' &&
        strchr(name, '/') == NULL) {
        return name;
    }
    dp_error_set(error, DP_EXIT_USAGE, "E0001", "dpnode train FILE --out FOLDER",
                 "the output folder is not given", "--out is missing or cannot be used");
    return NULL;
}

static int run_train(dp_cmd *cmd)
{
    static dp_run_input input;
    const dp_run_source source = {.path = cmd->n_args > 0 ? cmd->args[0] : NULL,
                                  .demo = dp_cmd_option(cmd, "demo"),
                                  .text = dp_cmd_option(cmd, "text"),
                                  .from = dp_cmd_option(cmd, "from"),
                                  .skip_bad_lines = dp_cmd_option(cmd, "skip-bad-lines") != NULL};
    const bool resume = dp_cmd_option(cmd, "resume") != NULL;
    const bool none = source.path == NULL && source.demo == NULL && source.from == NULL;
    dp_control_error error;
    if ((source.path != NULL && source.demo != NULL) || (none && !resume)) {
        dp_error_set(&error, DP_EXIT_USAGE, "E0001", "dpnode train --help",
                     "give a manifest file, --demo kjv, or --from WEIGHTS with --text", "");
        return dp_cmd_fail(cmd, &error);
    }
    if (!none && dp_run_input_open(&source, &input, &error) != 0) {
        dp_run_input_close(&input);
        return dp_cmd_fail(cmd, &error);
    }
    if (!none && dp_manifest_external(&input.file.manifest)) {
        dp_error_set(
            &error, DP_EXIT_USAGE, "E0515",
            "dpnode run create FILE --from model.safetensors   # a run, on this node alone",
            "dpnode train cannot train this model",
            "model.arch is external: only a script trains it, as a member of a run");
        dp_run_input_close(&input);
        return dp_cmd_fail(cmd, &error);
    }
    const char *const folder = folder_of(cmd, none ? NULL : &input, &error);
    const int exit =
        folder != NULL ? train_with(cmd, none ? NULL : &input, folder) : dp_cmd_fail(cmd, &error);
    if (!none) {
        dp_run_input_close(&input);
    }
    return exit;
}

const dp_verb dp_verb_train = {
    .name = "train",
    .run = run_train,
    .arguments = "FILE | --demo kjv | --from WEIGHTS --text TEXT | --resume --out FOLDER",
    .summary = "train on this machine alone, without daemon and peers",
    .examples = "  dpnode train run.yaml --out run --steps 2000\n"
                "  dpnode train --resume --out run\n  dpnode eval run\n"
                "  dpnode train --from ./SmolLM2-135M --text book.txt --out mine\n",
    .n_args_max = 1,
    .options = {{"out", 'o', "FOLDER", "folder for data, checkpoints and model [the run's name]"},
                {"steps", 'n', "N", "optimizer steps in all [until train.total_tokens]"},
                {"threads", 0, "N",
                 "number of threads; does not affect the result [all processors]"},
                {"processes", 0, "N",
                 "processes that train as one, best one per CPU socket; affects the last bits of "
                 "the result [1]"},
                {"resume", 0, NULL, "continue from the newest complete checkpoint"},
                DP_RUN_INPUT_OPTIONS,
                {"backend", 0, "NAME",
                 "backend: cpu, auto, cuda, cuda:0,1 (two cards as one), or a plugin's path [cpu]"},
                {"rows", 0, "N",
                 "sequences at a time, set at the first start [2,048 tokens; on a GPU 8,192]"},
                {"save-steps", 0, "N", "save a checkpoint every N steps"},
                {"save-seconds", 0, "N", "save a checkpoint every N seconds; 0: never [300]"},
                {"val-steps", 0, "N",
                 "measure the loss of held-out text every N steps; 0: never [20 times in all]"},
                {"val-tokens", 0, "N", "on at most N tokens of it [65536]"},
                {"patience", 0, "N", "end after N measurements without a lower one; 0: never [0]"},
                {"metrics", 0, "FILE", "append the figures of each step, as lines of JSON"},
                {"tensorboard", 0, "DIR", "write them as an event file for TensorBoard"}},
};

/* ---- eval FOLDER ---- */

static int print_score(const dp_cmd *cmd, const dp_cli_tool *tool)
{
    json_t *const score = json_loads(tool->answer, 0, NULL);
    if (score == NULL) {
        return tool_failed(cmd, tool);
    }
    if (cmd->json) {
        return dp_cmd_print(score);
    }
    printf("step %lld: loss %.4f per token, perplexity %.2f, %.4f bits per byte, on %lld tokens\n",
           dp_json_int(score, "step", 0), dp_json_real(score, "loss", 0),
           dp_json_real(score, "perplexity", 0), dp_json_real(score, "bits_per_byte", 0),
           dp_json_int(score, "tokens", 0));
    json_decref(score);
    return 0;
}

int dp_train_eval(const dp_cmd *cmd)
{
    dp_cli_words words = {.count = 0};
    dp_cli_tool *const tool = malloc(sizeof *tool);
    if (tool == NULL) {
        return dp_cli_tool_missing(cmd, DP_NOMEM);
    }
    dp_cli_words_pair(&words, "eval", cmd->args[0]);
    dp_cli_words_option(&words, cmd, "--data");
    dp_cli_words_option(&words, cmd, "--tokens");
    if (dp_cmd_option(cmd, "best") != NULL) {
        dp_cli_words_add(&words, "--best");
    }
    const dp_status status = dp_cli_tool_run(tool, words.list);
    int exit = 0;
    if (status != DP_OK) {
        exit = dp_cli_tool_missing(cmd, status);
    } else {
        exit = tool->exit != 0 ? tool_failed(cmd, tool) : print_score(cmd, tool);
    }
    free(tool);
    return exit;
}
