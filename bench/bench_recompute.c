/* The cost and saving of each step of the recompute ladder: tokens per second of process CPU time
 * and bytes of the engine, as ratios to the step that is chosen if memory suffices (norms). Steps
 * alternate; the best of each counts. bench_recompute [--json] [--repeat N] [--preset NAME] [--rows
 * N] [--length N] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bench/clock.h"
#include "compute/backend/plan.h"

enum { ANCHOR = DP_RECOMPUTE_NORMS };

struct settings {
    dp_model_config config;
    size_t rows;
    unsigned long repeat;
    bool json;
};

struct bench {
    dp_model model;
    dp_gpt *gpt[DP_RECOMPUTE_STEPS];
    double best[DP_RECOMPUTE_STEPS]; /* seconds of CPU */
    size_t bytes[DP_RECOMPUTE_STEPS];
    uint32_t *text;
    dp_gpt_batch batch;
};

static dp_status open_bench(struct bench *b, const struct settings *settings)
{
    const size_t tokens = settings->rows * settings->config.context;
    DP_TRY(dp_model_open(&b->model, &settings->config, NULL));
    b->text = dp_alloc(tokens + 1, sizeof *b->text);
    if (b->text == NULL) {
        return DP_NOMEM;
    }
    dp_rng rng;
    dp_rng_init(&rng, 2);
    for (size_t i = 0; i <= tokens; i++) {
        b->text[i] = (uint32_t)dp_rng_below(&rng, settings->config.vocab);
    }
    b->batch = (dp_gpt_batch){b->text, b->text + 1, settings->rows, settings->config.context};
    for (int at = 0; at < DP_RECOMPUTE_STEPS; at++) {
        const dp_gpt_options options = {.rows_max = settings->rows, .recompute = (dp_recompute)at};
        DP_TRY(dp_gpt_open(&b->gpt[at], &b->model, &options));
        dp_model_init(&b->model, 1, dp_gpt_params_to_write(b->gpt[at]));
        b->bytes[at] = dp_gpt_bytes(&b->model, &options);
        b->best[at] = 1e30;
    }
    return DP_OK;
}

static void close_bench(struct bench *b)
{
    for (int at = 0; at < DP_RECOMPUTE_STEPS; at++) {
        dp_gpt_close(b->gpt[at]);
    }
    dp_free(b->text);
    dp_model_close(&b->model);
}

static dp_status measure(struct bench *b, unsigned long repeat)
{
    for (unsigned long i = 0; i <= repeat; i++) {
        for (int at = 0; at < DP_RECOMPUTE_STEPS; at++) {
            double loss = 0.0;
            const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
            DP_TRY(dp_gpt_step(b->gpt[at], &b->batch, 1e-3F, &loss));
            const double took = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
            if (i > 0 && took < b->best[at]) { /* The first step includes page faults. */
                b->best[at] = took;
            }
        }
    }
    return DP_OK;
}

static void print(const struct bench *b, const struct settings *settings)
{
    const double tokens = (double)(b->batch.rows * b->batch.length);
    for (int at = 0; at < DP_RECOMPUTE_STEPS; at++) {
        const char *const name = dp_recompute_name((dp_recompute)at);
        const double rate = tokens / b->best[at];
        const double speed = b->best[ANCHOR] / b->best[at];
        const double memory = (double)b->bytes[at] / (double)b->bytes[ANCHOR];
        if (settings->json) {
            printf("{\"recompute\":\"%s\",\"tokens_per_second_core\":%.0f,\"speed_ratio\":%.3f,"
                   "\"bytes\":%zu,\"bytes_ratio\":%.3f}\n",
                   name, rate, speed, b->bytes[at], memory);
        } else {
            printf("%-10s %8.0f tokens/s/core  %.3f of norms  %12zu bytes  %.3f of norms\n", name,
                   rate, speed, b->bytes[at], memory);
        }
    }
}

static bool parse(int argc, char **argv, struct settings *settings)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        const dp_model_preset *preset = value != NULL ? dp_model_preset_find(value) : NULL;
        if (strcmp(argv[i], "--json") == 0) {
            settings->json = true;
            continue;
        }
        i++;
        if (value != NULL && strcmp(argv[i - 1], "--repeat") == 0) {
            settings->repeat = strtoul(value, NULL, 10);
        } else if (value != NULL && strcmp(argv[i - 1], "--rows") == 0) {
            settings->rows = strtoul(value, NULL, 10);
        } else if (value != NULL && strcmp(argv[i - 1], "--length") == 0) {
            settings->config.context = (uint32_t)strtoul(value, NULL, 10);
        } else if (preset != NULL && strcmp(argv[i - 1], "--preset") == 0) {
            const uint32_t context = settings->config.context;
            settings->config = preset->config;
            settings->config.context = context;
        } else {
            return false;
        }
    }
    return settings->repeat > 0 && settings->rows > 0;
}

int main(int argc, char **argv)
{
    struct settings settings = {.config = {.arch = DP_ARCH_LLAMA,
                                           .layers = 6,
                                           .width = 512,
                                           .heads = 8,
                                           .kv_heads = 4,
                                           .context = 256,
                                           .vocab = 2048,
                                           .qk_norm = DP_ON},
                                .rows = 8,
                                .repeat = 6};
    if (!parse(argc, argv, &settings)) {
        puts(
            "usage: bench_recompute [--json] [--repeat N] [--preset NAME] [--rows N] [--length N]");
        return 64;
    }
    struct bench bench = {0};
    dp_status status = open_bench(&bench, &settings);
    if (status == DP_OK) {
        status = measure(&bench, settings.repeat);
    }
    if (status == DP_OK) {
        print(&bench, &settings);
    }
    close_bench(&bench);
    if (status != DP_OK) {
        printf("bench_recompute: %s\n", dp_status_text(status));
    }
    return status == DP_OK ? 0 : 1;
}
