/* Tokens per second and core of training steps of the CPU engine, by process CPU time, and the time of AdamW.
 * bench_engine [--json] [--seconds S]; bench_engine_torch.py gives the same numbers for PyTorch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "compute/gpt.h"
#include "compute/ops.h"
#include "compute/optim.h"

static const struct shape {
    const char *name;
    dp_model_config config;
    size_t rows;
} shapes[] = {
    {"L4 C256 T256 B8 V512", {4, 256, 8, 256, 512}, 8},
    {"L4 C128 T128 B8 V1024 (demo)", {4, 128, 4, 128, 1024}, 8},
};

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct result {
    double tokens_per_second;      /* mean, with AdamW */
    double tokens_per_second_best; /* of the fastest step */
    double adamw_ms;
    double loss;
};

static dp_status measure(const struct shape *shape, double seconds, struct result *result)
{
    dp_model model;
    dp_gpt *gpt = NULL;
    dp_adamw adamw;
    DP_TRY(dp_model_open(&model, &shape->config, NULL));
    DP_TRY(dp_gpt_open(&gpt, &model, shape->rows, NULL));
    DP_TRY(dp_adamw_init(&adamw, &model));
    dp_model_init(&model, 1, dp_gpt_params(gpt));
    const size_t tokens = shape->rows * shape->config.context;
    uint16_t *text = dp_alloc(tokens + 1, sizeof *text);
    if (text == NULL) {
        return DP_NOMEM;
    }
    dp_rng rng;
    dp_rng_init(&rng, 2);
    for (size_t i = 0; i <= tokens; i++) {
        text[i] = (uint16_t)dp_rng_below(&rng, shape->config.vocab);
    }
    const dp_adamw_options options = {1e-3F, 0.9F, 0.95F, 1e-8F, 0.1F, 1.0F};
    const dp_gpt_batch batch = {text, text + 1, shape->rows, shape->config.context};
    double best = 1e30;
    double total = 0.0;
    double adamw_total = 0.0;
    double loss = 0.0;
    size_t steps = 0;
    for (size_t i = 0; total < seconds; i++) {
        const double start = cpu_seconds();
        dp_gpt_zero_grads(gpt);
        DP_TRY(dp_gpt_step(gpt, &batch, 1.0F / (float)tokens, &loss));
        const double stepped = cpu_seconds();
        DP_TRY(dp_adamw_step(&adamw, dp_gpt_params(gpt), dp_gpt_grads(gpt), &options, NULL, NULL));
        const double end = cpu_seconds();
        if (i == 0) {
            continue; /* Page faults and cold caches. */
        }
        best = end - start < best ? end - start : best;
        total += end - start;
        adamw_total += end - stepped;
        steps++;
    }
    *result = (struct result){(double)(steps * tokens) / total, (double)tokens / best,
                              1e3 * adamw_total / (double)steps, loss / (double)tokens};
    dp_free(text);
    dp_adamw_close(&adamw);
    dp_gpt_close(gpt);
    dp_model_close(&model);
    return DP_OK;
}

int main(int argc, char **argv)
{
    bool json = false;
    double seconds = 3.0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = strtod(argv[++i], NULL);
        } else {
            fprintf(stderr, "usage: bench_engine [--json] [--seconds S]\n");
            return 64;
        }
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct result r;
        const dp_status status = measure(&shapes[i], seconds, &r);
        if (status != DP_OK) {
            fprintf(stderr, "bench_engine: %s\n", dp_status_text(status));
            return 1;
        }
        dp_model model;
        if (dp_model_open(&model, &shapes[i].config, NULL) != DP_OK) {
            return 1;
        }
        const double gflops =
            1e-9 * r.tokens_per_second * dp_model_flops(&model, shapes[i].config.context);
        dp_model_close(&model);
        printf(json ? "{\"shape\":\"%s\",\"ops\":\"%s\",\"tokens_per_second_core\":%.0f,"
                      "\"tokens_per_second_core_best\":%.0f,\"gflops\":%.1f,\"adamw_ms\":%.3f}\n"
                    : "%-30s %-9s %6.0f tokens/s/core (best %6.0f)  %5.1f GFLOP/s  AdamW %.3f ms\n",
               shapes[i].name, dp_ops_best()->name, r.tokens_per_second, r.tokens_per_second_best,
               gflops, r.adamw_ms);
    }
    return 0;
}
