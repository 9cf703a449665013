/* dpnode-worker sample. */
#include "compute/standalone/standalone_tool.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>

#include "base/run/manifest.h"
#include "compute/machine/files.h"
#include "compute/machine/pool.h"
#include "compute/machine/stopwatch.h"
#include "compute/machine/tool.h"
#include "compute/model/state.h"
#include "compute/standalone/standalone.h"
#include "compute/trainer/sample_text.h"
#include "compute/unicode/utf8.h"

enum {
    TOKENS = 120,
    TEXT_BYTES_MAX = 8 << 20,
    PLAIN_BYTES_MAX = 60 * 1024, /* the daemon keeps 64 KiB of a tool's output */
    NICEST = 19,
    FILES = 3
};

#define TEMPERATURE_MOST 1000.0

static int usage(void)
{
    fputs("usage: dpnode-worker sample FOLDER [--best] [--prompt TEXT] [OPTIONS]\n"
          "       dpnode-worker sample MANIFEST STATE TOKENIZER [--prompt-file FILE] [OPTIONS]\n"
          "options: [--tokens N] [--seed N] [--temperature X] [--top-k N] [--top-p X]\n"
          "         [--threads N] [--nice N]\n",
          stderr);
    return EX_USAGE;
}

typedef struct arguments {
    const char *files[FILES]; /* FOLDER; or MANIFEST, STATE, TOKENIZER */
    int n_files;
    const char *prompt;
    const char *prompt_file;
    uint64_t tokens;
    uint64_t seed;
    uint64_t top_k;
    uint64_t threads; /* 0: the default of the machine */
    uint64_t nice;
    double temperature;
    double top_p;
    bool best;
} arguments;

static bool take(arguments *args, int option, const char *value)
{
    const struct {
        int option;
        uint64_t least;
        uint64_t most;
        uint64_t *value;
    } numbers[] = {{'n', 1, DP_SAMPLE_TOKENS_MAX, &args->tokens},
                   {'s', 0, UINT64_MAX, &args->seed},
                   {'k', 1, UINT32_MAX, &args->top_k},
                   {'j', 0, DP_POOL_THREADS_MAX, &args->threads},
                   {'N', 0, NICEST, &args->nice}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].option == option) {
            return dp_tool_number(value, numbers[i].least, numbers[i].most, numbers[i].value);
        }
    }
    args->best = args->best || option == 'B';
    args->prompt = option == 'p' ? value : args->prompt;
    args->prompt_file = option == 'f' ? value : args->prompt_file;
    switch (option) {
    case 't':
        return dp_tool_real(value, 0, TEMPERATURE_MOST, &args->temperature);
    case 'P':
        return dp_tool_real(value, 0, 1, &args->top_p) && args->top_p > 0;
    default:
        return option != '?';
    }
}

static bool parse(int argc, char **argv, arguments *args)
{
    static const struct option options[] = {{"prompt", required_argument, NULL, 'p'},
                                            {"prompt-file", required_argument, NULL, 'f'},
                                            {"tokens", required_argument, NULL, 'n'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"temperature", required_argument, NULL, 't'},
                                            {"top-k", required_argument, NULL, 'k'},
                                            {"top-p", required_argument, NULL, 'P'},
                                            {"threads", required_argument, NULL, 'j'},
                                            {"nice", required_argument, NULL, 'N'},
                                            {"best", no_argument, NULL, 'B'},
                                            {NULL, 0, NULL, 0}};
    int option;
    optind = 0; /* GNU: begin anew, at argv[1] */
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (!take(args, option, optarg)) {
            return false;
        }
    }
    args->n_files = argc - optind;
    for (int i = 0; i < args->n_files && i < FILES; i++) {
        args->files[i] = argv[optind + i];
    }
    return args->n_files == 1 || args->n_files == FILES;
}

/* ---- the weights of a run's state ---- */

typedef struct state_of {
    const char *path;
    size_t elements;
} state_of;

static dp_status load_state(void *context, float *params, dp_why *why)
{
    const state_of *const s = context;
    dp_view bytes;
    uint64_t round = 0;
    DP_TRY(dp_file_map_path(s->path, &bytes, why));
    const dp_status status = dp_state_read(bytes, &round, params, s->elements);
    dp_file_unmap(bytes);
    return status == DP_OK
               ? DP_OK
               : dp_why_set(why, status, "the state does not belong to the manifest's model: %s",
                            dp_status_text(status));
}

static dp_status open_run(const arguments *args, dp_model *model, dp_bpe **bpe, dp_why *why)
{
    dp_buf bytes;
    dp_manifest manifest;
    dp_buf_init(&bytes, DP_BPE_JSON_BYTES_MAX);
    dp_status status = dp_file_read(args->files[0], &bytes, why);
    if (status == DP_OK && dp_manifest_decode(&manifest, dp_buf_view(&bytes)) != DP_OK) {
        status = dp_why_set(why, DP_BADMSG, "%.300s is no manifest", args->files[0]);
    }
    if (status == DP_OK) {
        dp_buf_clear(&bytes);
        status = dp_file_read(args->files[2], &bytes, why);
    }
    if (status == DP_OK) {
        status = dp_bpe_load(bpe, dp_buf_view(&bytes), why);
    }
    dp_buf_close(&bytes);
    if (status == DP_OK) {
        const dp_model_config config = dp_manifest_model(&manifest);
        status = dp_model_open(model, &config, why);
    }
    return status;
}

static dp_status sample_run(const arguments *args, const dp_sampler *sampler, const char *prompt,
                            dp_buf *text, dp_why *why)
{
    dp_model model = {.tensors = NULL};
    dp_bpe *bpe = NULL;
    dp_status status = open_run(args, &model, &bpe, why);
    if (status == DP_OK) {
        state_of state = {args->files[1], model.n_elements};
        const dp_sample_weights weights = {.model = &model,
                                           .bpe = bpe,
                                           .threads = (size_t)args->threads,
                                           .load = load_state,
                                           .context = &state};
        status = dp_sample_from(&weights, sampler, prompt, (size_t)args->tokens, text, why);
    }
    dp_model_close(&model);
    dp_bpe_close(bpe);
    return status;
}

/* ---- the tool ---- */

/* Of a run: the text alone, for the daemon. Of a folder: a line of JSON, for dpnode. */
static bool print_text(const dp_buf *text)
{
    const size_t size = dp_utf8_fit(dp_buf_view(text), PLAIN_BYTES_MAX);
    return fwrite(text->data, 1, size, stdout) == size && fflush(stdout) == 0;
}

static bool print_line(const dp_buf *text, const arguments *args, uint64_t steps, uint64_t took_us)
{
    json_t *const line = json_pack("{s:I,s:I,s:f,s:s%}", "step", (json_int_t)steps, "tokens",
                                   (json_int_t)args->tokens, "seconds", (double)took_us * 1e-6,
                                   "text", (const char *)text->data, text->size);
    const bool printed = line != NULL &&
                         json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6)) == 0 &&
                         putchar('\n') != EOF && fflush(stdout) == 0;
    json_decref(line);
    return printed;
}

static dp_status sample(const arguments *args, const char *prompt, dp_buf *text, dp_why *why)
{
    const dp_sampler sampler = {.temperature = (float)args->temperature,
                                .top_k = (uint32_t)args->top_k,
                                .top_p = (float)args->top_p,
                                .seed = args->seed};
    bool printed = false;
    if (args->n_files == FILES) {
        DP_TRY(sample_run(args, &sampler, prompt, text, why));
        printed = print_text(text);
    } else {
        const dp_standalone_look look = {.folder = args->files[0],
                                         .which =
                                             args->best ? DP_STANDALONE_BEST : DP_STANDALONE_LAST,
                                         .threads = (size_t)args->threads};
        const uint64_t start = dp_now_us();
        uint64_t steps = 0;
        DP_TRY(
            dp_standalone_sample(&look, &sampler, prompt, (size_t)args->tokens, text, &steps, why));
        printed = print_line(text, args, steps, dp_now_us() - start);
    }
    return printed ? DP_OK : dp_why_set(why, DP_IO, "the text cannot be written");
}

int dp_sample_tool(int argc, char **argv)
{
    arguments args = {.tokens = TOKENS,
                      .top_k = DP_SAMPLE_TOP_K,
                      .temperature = (double)DP_SAMPLE_TEMPERATURE,
                      .top_p = 1};
    dp_buf prompt;
    dp_buf text;
    dp_why why = {{0}};
    if (!parse(argc, argv, &args)) {
        return usage();
    }
    if (args.nice > 0 && setpriority(PRIO_PROCESS, 0, (int)args.nice) != 0) {
        return EX_OSERR;
    }
    dp_buf_init(&prompt, TEXT_BYTES_MAX);
    dp_buf_init(&text, TEXT_BYTES_MAX);
    dp_status status = DP_OK;
    if (args.prompt_file != NULL) {
        status = dp_file_read(args.prompt_file, &prompt, &why);
    } else {
        status = dp_buf_append(&prompt, dp_view_text(args.prompt != NULL ? args.prompt : ""));
    }
    if (status == DP_OK) {
        status = dp_buf_append(&prompt, dp_view_of("", 1)); /* NUL */
    }
    if (status == DP_OK) {
        status = sample(&args, (const char *)prompt.data, &text, &why);
    }
    dp_buf_close(&text);
    dp_buf_close(&prompt);
    if (status == DP_OK) {
        return EX_OK;
    }
    const int exit = dp_tool_complain(status, &why);
    return status == DP_TOOBIG ? EX_UNAVAILABLE : exit;
}
