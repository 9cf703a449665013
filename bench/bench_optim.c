/* Time of one step of each optimizer and each number format of weights, by process CPU time, as
 * ratios to AdamW in fp32 of the same run.
 * bench_optim [--json] [--rounds N] [--threads N] [--large]; --large takes GPT-2 124M (2.5 GB)
 * instead of L4 C256. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bench/clock.h"
#include "compute/model/optim.h"

enum { ROUNDS_MAX = 1000 };

static const struct way {
    const char *name;
    dp_optim_kind kind;
    dp_weights_kind weights;
} ways[] = {
    {"adamw", DP_OPTIM_ADAMW, DP_WEIGHTS_FP32},
    {"adamw bf16", DP_OPTIM_ADAMW, DP_WEIGHTS_BF16},
    {"adamw bf16_sr", DP_OPTIM_ADAMW, DP_WEIGHTS_BF16_SR},
    {"lamb", DP_OPTIM_LAMB, DP_WEIGHTS_FP32},
    {"lars", DP_OPTIM_LARS, DP_WEIGHTS_FP32},
    {"muon", DP_OPTIM_MUON, DP_WEIGHTS_FP32},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

struct settings {
    size_t rounds;
    size_t threads;
    bool json;
    bool large;
};

/* Median seconds of a step; below 0 without memory. */
static double time_way(const struct way *way, const dp_model *model, float *params,
                       const float *grads, const struct settings *settings, dp_pool *pool)
{
    dp_optim optim;
    double times[ROUNDS_MAX];
    const dp_optim_options options = {.lr = 1e-3F,
                                      .beta1 = 0.9F,
                                      .beta2 = 0.95F,
                                      .eps = 1e-8F,
                                      .decay = 0.1F,
                                      .clip = 1.0F,
                                      .momentum = 0.95F};
    const dp_optim_setup setup = {
        .model = model, .kind = way->kind, .weights = way->weights, .threads = settings->threads};
    if (dp_optim_init(&optim, &setup) != DP_OK) {
        return -1.0;
    }
    for (size_t i = 0; i <= settings->rounds; i++) {
        const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        if (dp_optim_step(&optim, params, grads, &options, pool, NULL) != DP_OK) {
            dp_optim_close(&optim);
            return -1.0;
        }
        if (i > 0) { /* The first step includes the page faults. */
            times[i - 1] = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
        }
    }
    dp_optim_close(&optim);
    return bench_median(times, settings->rounds);
}

static int run(const struct settings *settings)
{
    const dp_model_config small = {
        .layers = 4, .width = 256, .heads = 8, .context = 256, .vocab = 512};
    const dp_model_config large = {
        .layers = 12, .width = 768, .heads = 12, .context = 1024, .vocab = 50257};
    dp_model model = {0};
    dp_pool *pool = NULL;
    float *params = NULL;
    float *grads = NULL;
    int result = 1;
    if (dp_model_open(&model, settings->large ? &large : &small, NULL) != DP_OK ||
        dp_pool_open(&pool, settings->threads) != DP_OK) {
        goto close;
    }
    params = dp_alloc(model.n_elements, sizeof *params);
    grads = dp_alloc(model.n_elements, sizeof *grads);
    if (params == NULL || grads == NULL) {
        goto close;
    }
    dp_model_init(&model, 1, params);
    dp_model_init(&model, 2, grads);
    double anchor = 0.0;
    result = 0;
    for (size_t i = 0; i < WAYS && result == 0; i++) {
        const double seconds = time_way(&ways[i], &model, params, grads, settings, pool);
        anchor = i == 0 ? seconds : anchor;
        if (seconds < 0.0) {
            result = 1;
        } else if (settings->json) {
            printf("{\"optimizer\":\"%s\",\"parameters\":%zu,\"threads\":%zu,\"cpu_ms\":%.3f,"
                   "\"ratio_to_adamw\":%.3f}\n",
                   ways[i].name, model.n_parameters, settings->threads, 1e3 * seconds,
                   seconds / anchor);
        } else {
            printf("%-14s %9.3f ms CPU, %6.2f of AdamW, %5.2f ns a parameter\n", ways[i].name,
                   1e3 * seconds, seconds / anchor, 1e9 * seconds / (double)model.n_parameters);
        }
    }
close:
    dp_free(grads);
    dp_free(params);
    dp_pool_close(pool);
    dp_model_close(&model);
    return result;
}

int main(int argc, char **argv)
{
    struct settings settings = {.rounds = 21, .threads = 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            settings.json = true;
        } else if (strcmp(argv[i], "--large") == 0) {
            settings.large = true;
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            settings.rounds = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            settings.threads = strtoul(argv[++i], NULL, 10);
        } else {
            fprintf(stderr, "bench_optim [--json] [--rounds N] [--threads N] [--large]\n");
            return 64;
        }
    }
    if (settings.rounds == 0 || settings.rounds > ROUNDS_MAX) {
        fprintf(stderr, "--rounds takes 1 to %d\n", (int)ROUNDS_MAX);
        return 64;
    }
    return run(&settings);
}
