/* Tokens per second and core of training steps of the CPU engine, by process CPU time, and the time of AdamW.
 * bench_engine [--json] [--seconds S] [--threads N] [--ops NAME] [--large]; --ops takes another kernel table ("avx2"), --large
 * adds GPT-2 124M. bench_engine_torch.py gives the same numbers for PyTorch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "compute/gpt_inside.h"
#include "compute/optim.h"

static const struct shape {
    const char *name;
    dp_model_config config;
    size_t rows;
} shapes[] = {
    {"L4 C256 T256 B8 V512",
     {.layers = 4, .width = 256, .heads = 8, .context = 256, .vocab = 512},
     8},
    {"L4 C128 T128 B8 V1024 (demo)",
     {.layers = 4, .width = 128, .heads = 4, .context = 128, .vocab = 1024},
     8},
    {"L12 C768 T64 B4 V50257 (124M)",
     {.layers = 12, .width = 768, .heads = 12, .context = 64, .vocab = 50257},
     4}, /* with --large */
};

struct settings {
    double seconds;
    size_t threads;
    const dp_ops *ops;
    bool json;
    bool large;
};

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct result {
    size_t tokens;
    size_t steps;
    double cpu;      /* seconds of all threads, AdamW included */
    double cpu_best; /* of the fastest step */
    double cpu_adamw;
    double wall;
    double flops; /* per token */
};

struct bench {
    dp_model model;
    dp_pool *pool;
    dp_gpt *gpt;
    dp_optim optim;
    uint32_t *text;
    size_t tokens;
};

static dp_status open_bench(struct bench *b, const struct shape *shape,
                            const struct settings *settings)
{
    DP_TRY(dp_model_open(&b->model, &shape->config, NULL));
    DP_TRY(dp_pool_open(&b->pool, settings->threads));
    DP_TRY(dp_gpt_open_with(&b->gpt, &b->model, shape->rows, b->pool, settings->ops));
    DP_TRY(dp_optim_init(&b->optim, &(dp_optim_setup){.model = &b->model}));
    dp_model_init(&b->model, 1, dp_gpt_params(b->gpt));
    b->tokens = shape->rows * shape->config.context;
    b->text = dp_alloc(b->tokens + 1, sizeof *b->text);
    if (b->text == NULL) {
        return DP_NOMEM;
    }
    dp_rng rng;
    dp_rng_init(&rng, 2);
    for (size_t i = 0; i <= b->tokens; i++) {
        b->text[i] = (uint32_t)dp_rng_below(&rng, shape->config.vocab);
    }
    return DP_OK;
}

static void close_bench(struct bench *b)
{
    dp_free(b->text);
    dp_optim_close(&b->optim);
    dp_gpt_close(b->gpt);
    dp_pool_close(b->pool);
    dp_model_close(&b->model);
}

static dp_status measure(struct bench *b, const struct shape *shape, double seconds,
                         struct result *result)
{
    const dp_optim_options options = {
        .lr = 1e-3F, .beta1 = 0.9F, .beta2 = 0.95F, .eps = 1e-8F, .decay = 0.1F, .clip = 1.0F};
    const dp_gpt_batch batch = {b->text, b->text + 1, shape->rows, shape->config.context};
    *result = (struct result){.tokens = b->tokens,
                              .cpu_best = 1e30,
                              .flops = dp_model_flops(&b->model, shape->config.context)};
    for (size_t i = 0; result->cpu < seconds; i++) {
        double loss = 0.0;
        const double wall = seconds_of(CLOCK_MONOTONIC);
        const double start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        dp_gpt_zero_grads(b->gpt);
        DP_TRY(dp_gpt_step(b->gpt, &batch, 1.0F / (float)b->tokens, &loss));
        const double stepped = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        DP_TRY(dp_optim_step(&b->optim, dp_gpt_params(b->gpt), dp_gpt_grads(b->gpt), &options,
                             b->pool, NULL));
        const double end = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        if (i == 0) {
            continue; /* Page faults and cold caches. */
        }
        result->wall += seconds_of(CLOCK_MONOTONIC) - wall;
        result->cpu_best = end - start < result->cpu_best ? end - start : result->cpu_best;
        result->cpu += end - start;
        result->cpu_adamw += end - stepped;
        result->steps++;
    }
    return DP_OK;
}

static void print(const struct shape *shape, const struct settings *settings,
                  const struct result *r)
{
    const double steps = (double)r->steps;
    const double tokens = (double)r->tokens;
    const double rate = steps * tokens / r->cpu;
    const double wall_rate = steps * tokens / r->wall;
    if (settings->json) {
        printf("{\"shape\":\"%s\",\"ops\":\"%s\",\"threads\":%zu,\"tokens_per_second_core\":%.0f,"
               "\"tokens_per_second_core_best\":%.0f,\"tokens_per_second_wall\":%.0f,"
               "\"gflops_core\":%.1f,\"adamw_ms\":%.3f}\n",
               shape->name, settings->ops->name, settings->threads, rate, tokens / r->cpu_best,
               wall_rate, 1e-9 * rate * r->flops, 1e3 * r->cpu_adamw / steps);
        return;
    }
    printf("%-30s %-9s %zu thread(s) %6.0f tokens/s/core (best %6.0f)  %5.1f GFLOP/s/core  "
           "%6.0f tokens/s wall  AdamW %.3f ms\n",
           shape->name, settings->ops->name, settings->threads, rate, tokens / r->cpu_best,
           1e-9 * rate * r->flops, wall_rate, 1e3 * r->cpu_adamw / steps);
}

static const dp_ops *ops_named(const char *name)
{
    for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
        for (size_t i = 0; dp_ops_at_in(precision, i) != NULL; i++) {
            if (strcmp(dp_ops_at_in(precision, i)->name, name) == 0) {
                return dp_ops_at_in(precision, i);
            }
        }
    }
    return NULL;
}

/* False when the arguments make no sense. */
static bool parse(int argc, char **argv, struct settings *settings)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--json") == 0) {
            settings->json = true;
        } else if (strcmp(argv[i], "--large") == 0) {
            settings->large = true;
        } else if (value != NULL && strcmp(argv[i], "--seconds") == 0) {
            settings->seconds = strtod(argv[++i], NULL);
        } else if (value != NULL && strcmp(argv[i], "--threads") == 0) {
            settings->threads = strtoul(argv[++i], NULL, 10);
        } else if (value != NULL && strcmp(argv[i], "--ops") == 0) {
            settings->ops = ops_named(argv[++i]);
        } else {
            return false;
        }
    }
    return settings->ops != NULL && settings->threads > 0;
}

static dp_status run(const struct shape *shape, const struct settings *settings)
{
    struct bench bench = {0};
    struct result result;
    dp_status status = open_bench(&bench, shape, settings);
    if (status == DP_OK) {
        status = measure(&bench, shape, settings->seconds, &result);
    }
    if (status == DP_OK) {
        print(shape, settings, &result);
    }
    close_bench(&bench);
    return status;
}

int main(int argc, char **argv)
{
    struct settings settings = {.seconds = 3.0, .threads = 1, .ops = dp_ops_best()};
    if (!parse(argc, argv, &settings)) {
        puts("usage: bench_engine [--json] [--seconds S] [--threads N] [--ops NAME] [--large]");
        return 64;
    }
    const size_t n = sizeof shapes / sizeof shapes[0] - (settings.large ? 0 : 1);
    for (size_t i = 0; i < n; i++) {
        const dp_status status = run(&shapes[i], &settings);
        if (status != DP_OK) {
            printf("bench_engine: %s: %s\n", shapes[i].name, dp_status_text(status));
            return 1;
        }
    }
    return 0;
}
