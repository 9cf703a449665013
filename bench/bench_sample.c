/* Text of the CPU engine: tokens/s with keys and values kept, as `dpnode sample` decodes, beside
 * the whole window computed for each token. bench_sample [--threads N] [--tokens N]. Random
 * weights: the time does not depend on them. The window is computed at every 32nd length, and the
 * sum over all lengths follows from that. Process CPU time: of all threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/clock.h"
#include "compute/model/gpt.h"

enum { EVERY = 32, TOKENS = 512 };

static const struct model_row {
    const char *name;
    dp_model_config config;
} rows[] = {
    {"demo (kjv)", {.layers = 4, .width = 128, .heads = 4, .context = TOKENS, .vocab = 1024}},
    {"Llama, 135M",
     {.arch = DP_ARCH_LLAMA,
      .layers = 30,
      .width = 576,
      .heads = 9,
      .kv_heads = 3,
      .hidden = 1536,
      .context = TOKENS,
      .vocab = 49152,
      .head = DP_HEAD_TIED}},
};

static uint64_t number(int argc, char **argv, const char *name, uint64_t standard)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return strtoull(argv[i + 1], NULL, 10);
        }
    }
    return standard;
}

static void must(dp_status status)
{
    if (status != DP_OK) {
        fprintf(stderr, "bench_sample: %s\n", dp_status_text(status));
        exit(1);
    }
}

static double decode_s(dp_gpt *gpt, const uint32_t *tokens, size_t n, float *logits)
{
    dp_gpt_cache *cache = NULL;
    must(dp_gpt_cache_open(&cache, gpt));
    must(dp_gpt_decode(gpt, cache, tokens, 1, logits)); /* Packs the weights. */
    dp_gpt_cache_clear(cache);
    const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t i = 0; i < n; i++) {
        must(dp_gpt_decode(gpt, cache, tokens + i, 1, logits));
    }
    const double took = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    dp_gpt_cache_close(cache);
    return took;
}

static double windows_s(dp_gpt *gpt, const uint32_t *tokens, size_t n, float *logits)
{
    double took = 0;
    for (size_t length = EVERY; length <= n; length += EVERY) {
        const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        must(dp_gpt_logits(gpt, tokens, length, logits));
        took += EVERY * (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start);
    }
    return took;
}

static void measure(const struct model_row *row, size_t threads, size_t n)
{
    dp_model model;
    dp_pool *pool = NULL;
    dp_gpt *gpt = NULL;
    must(dp_model_open(&model, &row->config, NULL));
    must(dp_pool_open(&pool, threads));
    must(dp_gpt_open(&gpt, &model,
                     &(dp_gpt_options){.rows_max = 1,
                                       .pool = pool,
                                       .recompute = DP_RECOMPUTE_LAYER,
                                       .grads_elsewhere = true}));
    dp_model_init(&model, 1, dp_gpt_params_to_write(gpt));
    float *const logits = calloc(row->config.vocab, sizeof *logits);
    uint32_t *const tokens = calloc(n, sizeof *tokens);
    if (logits == NULL || tokens == NULL) {
        must(DP_NOMEM);
    }
    for (size_t i = 0; i < n; i++) {
        tokens[i] = (uint32_t)(7 * i % row->config.vocab);
    }
    const double kept = decode_s(gpt, tokens, n, logits);
    const double whole = windows_s(gpt, tokens, n, logits);
    printf("| %s | %zu | %.2f s | %.1f | %.0f s | %.0f x |\n", row->name, threads, kept,
           (double)n / kept, whole, whole / kept);
    fflush(stdout);
    free(tokens);
    free(logits);
    dp_gpt_close(gpt);
    dp_pool_close(pool);
    dp_model_close(&model);
}

int main(int argc, char **argv)
{
    const size_t threads = number(argc, argv, "--threads", 1);
    const size_t n = number(argc, argv, "--tokens", TOKENS);
    if (n < EVERY || n > TOKENS || threads == 0) {
        fprintf(stderr, "bench_sample [--threads N] [--tokens %d to %d]\n", EVERY, TOKENS);
        return 64;
    }
    printf("| model | threads | %zu tokens | tokens/s | whole windows | |\n"
           "| --- | --- | --- | --- | --- | --- |\n",
           n);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        measure(&rows[i], threads, n);
    }
    return 0;
}
