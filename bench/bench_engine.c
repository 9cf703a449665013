/* Tokens per second and core of training steps of the CPU engine, by process CPU time, as a share
 * of the core's peak (peak.h, measured in the same run), and the time of the optimizer.
 * bench_engine [--json] [--seconds S] [--threads N] [--precision P] [--ops NAME] [--only TEXT]
 * [--large] [--micro N] [--packs kept|shared] [--optimizer adamw|muon|both]
 * Without --precision fp32 and bf16; --ops takes a table by name ("avx2"); --only selects the
 * shapes whose name contains TEXT; --large adds those that take minutes; --micro N: an optimizer
 * step has N micro-batches of the shape's rows. With --threads N > 1 steps on one thread and on N
 * alternate, and the ratio of their wall times is printed too, beside that of loops that touch no
 * memory, which is the most that the processors can give in that minute. --optimizer both
 * alternates steps with AdamW and steps with Muon, and prints the ratio of their median CPU times,
 * of the best ones, which other work disturbs least, and of the best wall times.
 * bench_engine_torch.py runs it beside PyTorch. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bench/clock.h"
#include "bench/peak.h"
#include "compute/cpu/ops.h"
#include "compute/model/gpt.h"
#include "compute/model/optim.h"

static const struct shape {
    const char *name;
    size_t rows;
    bool large;
    dp_model_config config;
} shapes[] = {
    {"gpt2 L4 C256 T256 B8 V512",
     8,
     false,
     {.layers = 4, .width = 256, .heads = 8, .context = 256, .vocab = 512}},
    {"gpt2 L4 C128 T128 B8 V1024", /* the demo */
     8,
     false,
     {.layers = 4, .width = 128, .heads = 4, .context = 128, .vocab = 1024}},
    {"llama L4 C256 T256 B8 V512", /* two query heads share one of k and v */
     8,
     false,
     {.layers = 4,
      .width = 256,
      .heads = 8,
      .context = 256,
      .vocab = 512,
      .arch = DP_ARCH_LLAMA,
      .kv_heads = 4,
      .hidden = 704}},
    {"gpt2 L6 C384 T256 B8 V4096",
     8,
     true,
     {.layers = 6, .width = 384, .heads = 6, .context = 256, .vocab = 4096}},
    {"gpt2 L4 C384 T1024 B2 V4096",
     2,
     true,
     {.layers = 4, .width = 384, .heads = 6, .context = 1024, .vocab = 4096}},
    {"llama L8 C512 T512 B4 V4096",
     4,
     true,
     {.layers = 8,
      .width = 512,
      .heads = 8,
      .context = 512,
      .vocab = 4096,
      .arch = DP_ARCH_LLAMA,
      .kv_heads = 2,
      .hidden = 1408}},
    {"llama L6 C384 T256 B8 V4096",
     8,
     true,
     {.layers = 6,
      .width = 384,
      .heads = 6,
      .context = 256,
      .vocab = 4096,
      .arch = DP_ARCH_LLAMA,
      .kv_heads = 2,
      .hidden = 1024}},
    {"gpt2-124m T64 B4",
     4,
     true,
     {.layers = 12, .width = 768, .heads = 12, .context = 64, .vocab = 50257}},
    {"llama L12 C768 T64 B4 V32000",
     4,
     true,
     {.layers = 12,
      .width = 768,
      .heads = 12,
      .context = 64,
      .vocab = 32000,
      .arch = DP_ARCH_LLAMA,
      .kv_heads = 4,
      .hidden = 2048}},
};

enum { PEAK_THREADS_MAX = 63, STEPS_MAX = 4096, MICRO_MAX = 1024, PRECISIONS_SHOWN = DP_BF16 + 1 };
enum { OPTIMIZERS = 2, THREADINGS = 2, BENCHES = OPTIMIZERS * THREADINGS };

struct settings {
    double seconds;
    size_t threads;
    dp_precision precision;              /* requested; DP_PRECISIONS: none */
    const char *ops_name;                /* requested, or NULL */
    const dp_ops *ops[PRECISIONS_SHOWN]; /* NULL beyond the last */
    const char *only;
    size_t micro; /* batches of a step */
    dp_gpt_packs packs;
    dp_optim_kind optimizers[OPTIMIZERS]; /* 0 beyond the last */
    bool json;
    bool large;
};

/* One engine and the times of its steps, in seconds. */
struct bench {
    dp_model model;
    dp_pool *pool;
    dp_gpt *gpt;
    dp_optim optim;
    uint32_t *text;
    size_t micro;
    size_t tokens; /* of all micro-batches */
    size_t steps;
    double total; /* CPU time of all threads */
    double cpu[STEPS_MAX];
    double update[STEPS_MAX]; /* the optimizer's part of it */
    double wall[STEPS_MAX];
};

static const char *optimizer_name(dp_optim_kind kind)
{
    return kind == DP_OPTIM_MUON ? "muon" : "adamw";
}

/* One of several threads that measure the peak. */
static void *peak_thread(void *ops)
{
    peak_loop_call *const loop = peak_loop(ops);
    for (int i = 0; i < PEAK_TRIES; i++) {
        (void)loop();
    }
    return NULL;
}

static double peak_wall_of(const dp_ops *ops, size_t threads)
{
    pthread_t others[PEAK_THREADS_MAX];
    const double start = bench_seconds(CLOCK_MONOTONIC);
    size_t n = 0;
    while (n + 1 < threads && n < PEAK_THREADS_MAX &&
           pthread_create(&others[n], NULL, peak_thread, (void *)(uintptr_t)ops) == 0) {
        n++;
    }
    peak_thread((void *)(uintptr_t)ops);
    for (size_t i = 0; i < n; i++) {
        pthread_join(others[i], NULL);
    }
    return bench_seconds(CLOCK_MONOTONIC) - start;
}

/* Speed of such loops, which touch no memory, on so many threads, as a multiple of the speed on
 * one: the most that these processors can give now. Two threads give less than two if they share a
 * core or if other processes run. The best of a few alternating tries. */
static double peak_speedup(const dp_ops *ops, size_t threads)
{
    double best[2] = {1e9, 1e9};
    for (int i = 0; i < PEAK_TRIES; i++) {
        for (int many = 0; many < 2; many++) {
            const double wall = peak_wall_of(ops, many == 0 ? 1 : threads);
            best[many] = wall < best[many] ? wall : best[many];
        }
    }
    return (double)threads * best[0] / best[1];
}

static dp_status open_bench(struct bench *b, const struct shape *shape, const dp_ops *ops,
                            const struct settings *settings, size_t index)
{
    const size_t threads = index / OPTIMIZERS == 0 ? 1 : settings->threads;
    const dp_optim_kind optimizer = settings->optimizers[index % OPTIMIZERS];
    DP_TRY(dp_model_open(&b->model, &shape->config, NULL));
    DP_TRY(dp_pool_open(&b->pool, threads));
    const dp_gpt_options options = {.rows_max = shape->rows,
                                    .pool = b->pool,
                                    .precision = ops->precision,
                                    .packs = settings->packs,
                                    .ops = ops};
    DP_TRY(dp_gpt_open(&b->gpt, &b->model, &options));
    const dp_optim_setup optim = {.model = &b->model, .kind = optimizer, .threads = threads};
    DP_TRY(dp_optim_init(&b->optim, &optim));
    dp_model_init(&b->model, 1, dp_gpt_params_to_write(b->gpt));
    b->micro = settings->micro;
    b->tokens = b->micro * shape->rows * shape->config.context;
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
    dp_free(b);
}

/* One step, counted if it is not the first: page faults and cold caches. */
static dp_status step(struct bench *b, const struct shape *shape, bool counts)
{
    const dp_optim_options options = {.lr = 1e-3F,
                                      .beta1 = 0.9F,
                                      .beta2 = 0.95F,
                                      .eps = 1e-8F,
                                      .decay = 0.1F,
                                      .clip = 1.0F,
                                      .momentum = 0.95F};
    double loss = 0.0;
    const double wall = bench_seconds(CLOCK_MONOTONIC);
    const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    dp_gpt_zero_grads(b->gpt);
    for (size_t i = 0; i < b->micro; i++) {
        const uint32_t *const text = b->text + i * (b->tokens / b->micro);
        const dp_gpt_batch batch = {text, text + 1, shape->rows, shape->config.context};
        DP_TRY(dp_gpt_step(b->gpt, &batch, 1.0F / (float)b->tokens, &loss));
    }
    const double stepped = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    DP_TRY(dp_optim_step(&b->optim, dp_gpt_params_to_write(b->gpt), dp_gpt_grads(b->gpt), &options,
                         b->pool, NULL));
    const double end = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (counts && b->steps < STEPS_MAX) {
        b->cpu[b->steps] = end - start;
        b->update[b->steps] = end - stepped;
        b->wall[b->steps++] = bench_seconds(CLOCK_MONOTONIC) - wall;
        b->total += end - start;
    }
    return DP_OK;
}

/* Sorts the times. */
static void print(struct bench *b, const struct shape *shape, const dp_ops *ops, double peak,
                  bool json)
{
    const double tokens = (double)b->tokens;
    const double rate = tokens / bench_median(b->cpu, b->steps);
    const double best = tokens / b->cpu[0];
    const double flops = dp_model_flops(&b->model, shape->config.context) * rate;
    const double update = 1e3 * bench_median(b->update, b->steps);
    const double wall = bench_median(b->wall, b->steps);
    const size_t threads = dp_pool_threads(b->pool);
    const char *const optimizer = optimizer_name(b->optim.setup.kind);
    if (json) {
        printf("{\"shape\":\"%s\",\"precision\":\"%s\",\"ops\":\"%s\",\"threads\":%zu,"
               "\"tokens_per_second_core\":%.1f,\"tokens_per_second_core_best\":%.1f,"
               "\"tokens_per_second_wall\":%.1f,\"gflops_core\":%.1f,\"gflops_peak\":%.1f,"
               "\"share\":%.3f,\"optimizer\":\"%s\",\"optimizer_ms\":%.3f}\n",
               shape->name, dp_precision_name(ops->precision), ops->name, threads, rate, best,
               tokens / wall, 1e-9 * flops, 1e-9 * peak, flops / peak, optimizer, update);
    } else {
        printf("%-29s %s %-10s %zu thread(s) %8.0f tokens/s/core (best %8.0f), %5.1f GFLOP/s/core: "
               "%2.0f %% of %.0f; %8.0f tokens/s wall; %s %.2f ms\n",
               shape->name, dp_precision_name(ops->precision), ops->name, threads, rate, best,
               1e-9 * flops, 100.0 * flops / peak, 1e-9 * peak, tokens / wall, optimizer, update);
    }
    fflush(stdout);
}

/* Steps on one thread and on many, times sorted. */
static void print_speedup(const struct bench *one, const struct bench *many,
                          const struct shape *shape, const dp_ops *ops, bool json)
{
    const size_t threads = dp_pool_threads(many->pool);
    const double ratio = one->wall[one->steps / 2] / many->wall[many->steps / 2];
    const double most = peak_speedup(ops, threads);
    printf(json ? "{\"shape\":\"%s\",\"ops\":\"%s\",\"threads\":%zu,\"speedup\":%.3f,"
                  "\"speedup_peak\":%.3f,\"share\":%.3f}\n"
                : "%-29s %s %zu threads are %.2f times as fast as one; loops without "
                  "memory %.2f times: %.2f of it\n",
           shape->name, ops->name, threads, ratio, most, ratio / most);
}

/* Steps of two optimizers on as many threads, times sorted. */
static void print_ratio(const struct bench *adamw, const struct bench *muon,
                        const struct shape *shape, const dp_ops *ops, bool json)
{
    const double a[] = {1e3 * adamw->cpu[adamw->steps / 2], 1e3 * adamw->cpu[0],
                        1e3 * adamw->wall[0]};
    const double m[] = {1e3 * muon->cpu[muon->steps / 2], 1e3 * muon->cpu[0], 1e3 * muon->wall[0]};
    printf(json ? "{\"shape\":\"%s\",\"ops\":\"%s\",\"threads\":%zu,\"adamw_step_ms\":%.3f,"
                  "\"muon_step_ms\":%.3f,\"ratio\":%.3f,\"ratio_best\":%.3f,\"ratio_wall_best\":"
                  "%.3f}\n"
                : "%-29s %s %zu thread(s): a step with adamw takes %.1f ms of CPU time, with muon "
                  "%.1f ms, ratio %.3f; of the best %.3f, by wall %.3f\n",
           shape->name, ops->name, dp_pool_threads(adamw->pool), a[0], m[0], m[0] / a[0],
           m[1] / a[1], m[2] / a[2]);
}

static dp_status measure(struct bench *const benches[BENCHES], const struct shape *shape,
                         const dp_ops *ops, const struct settings *settings)
{
    const double peak = peak_of(ops);
    bool warm = false;
    while (benches[0]->total < settings->seconds && benches[0]->steps < STEPS_MAX) {
        for (size_t i = 0; i < BENCHES; i++) {
            DP_TRY(benches[i] == NULL ? DP_OK : step(benches[i], shape, warm));
        }
        warm = true;
    }
    const double again = peak_of(ops);
    for (size_t i = 0; i < BENCHES; i++) {
        if (benches[i] != NULL) {
            print(benches[i], shape, ops, again > peak ? again : peak, settings->json);
        }
    }
    if (benches[OPTIMIZERS] != NULL) {
        print_speedup(benches[0], benches[OPTIMIZERS], shape, ops, settings->json);
    }
    for (size_t i = 0; i < BENCHES; i += OPTIMIZERS) {
        if (benches[i] != NULL && benches[i + 1] != NULL) {
            print_ratio(benches[i], benches[i + 1], shape, ops, settings->json);
        }
    }
    return DP_OK;
}

/* benches [threading][optimizer], NULL where that was not asked for. */
static dp_status run(const struct shape *shape, const dp_ops *ops, const struct settings *settings)
{
    struct bench *benches[BENCHES] = {NULL};
    dp_status status = DP_OK;
    for (size_t i = 0; i < BENCHES && status == DP_OK; i++) {
        if (settings->optimizers[i % OPTIMIZERS] == 0 ||
            (i / OPTIMIZERS > 0 && settings->threads == 1)) {
            continue;
        }
        benches[i] = dp_alloc(1, sizeof *benches[i]);
        status = benches[i] == NULL ? DP_NOMEM : open_bench(benches[i], shape, ops, settings, i);
    }
    if (status == DP_OK) {
        status = measure(benches, shape, ops, settings);
    }
    for (size_t i = 0; i < BENCHES; i++) {
        if (benches[i] != NULL) {
            close_bench(benches[i]);
        }
    }
    return status;
}

/* The table called name, of this precision (DP_PRECISIONS: of any); NULL: this processor has
 * none. */
static const dp_ops *ops_named(const char *name, dp_precision wanted)
{
    for (dp_precision precision = 0; precision < DP_PRECISIONS; precision++) {
        for (size_t i = 0; dp_ops_at_in(precision, i) != NULL; i++) {
            if ((wanted == DP_PRECISIONS || wanted == precision) &&
                strcmp(dp_ops_at_in(precision, i)->name, name) == 0) {
                return dp_ops_at_in(precision, i);
            }
        }
    }
    return NULL;
}

/* Otherwise another table would be measured, and its figures taken for those of the requested
 * one. */
static bool choose_ops(struct settings *settings)
{
    const dp_precision precision = settings->precision;
    if (settings->ops_name == NULL && precision == DP_PRECISIONS) {
        return true;
    }
    settings->ops[0] = settings->ops_name != NULL ? ops_named(settings->ops_name, precision)
                                                  : dp_ops_best_in(precision);
    settings->ops[1] = NULL;
    if (settings->ops[0] != NULL) {
        return true;
    }
    fprintf(stderr, "bench_engine: this processor has no table %s%s%s; there are",
            settings->ops_name, precision == DP_PRECISIONS ? "" : " of ",
            precision == DP_PRECISIONS ? "" : dp_precision_name(precision));
    for (dp_precision p = 0; p < DP_PRECISIONS; p++) {
        for (size_t i = 0; dp_ops_at_in(p, i) != NULL; i++) {
            if (precision == DP_PRECISIONS || precision == p) {
                fprintf(stderr, " %s", dp_ops_at_in(p, i)->name);
            }
        }
    }
    fputc('\n', stderr);
    return false;
}

static bool take_optimizer(struct settings *settings, const char *value)
{
    const bool both = strcmp(value, "both") == 0;
    const bool muon = strcmp(value, "muon") == 0;
    settings->optimizers[0] = muon ? DP_OPTIM_MUON : DP_OPTIM_ADAMW;
    settings->optimizers[1] = both ? DP_OPTIM_MUON : 0;
    return both || muon || strcmp(value, "adamw") == 0;
}

/* False when the option or its value makes no sense. */
static bool take(struct settings *settings, const char *name, const char *value)
{
    if (strcmp(name, "--seconds") == 0) {
        settings->seconds = strtod(value, NULL);
    } else if (strcmp(name, "--threads") == 0) {
        settings->threads = strtoul(value, NULL, 10);
    } else if (strcmp(name, "--micro") == 0) {
        settings->micro = strtoul(value, NULL, 10);
    } else if (strcmp(name, "--packs") == 0 && strcmp(value, "kept") == 0) {
        settings->packs = DP_GPT_PACKS_KEPT;
    } else if (strcmp(name, "--packs") == 0 && strcmp(value, "shared") == 0) {
        settings->packs = DP_GPT_PACKS_SHARED;
    } else if (strcmp(name, "--only") == 0) {
        settings->only = value;
    } else if (strcmp(name, "--ops") == 0) {
        settings->ops_name = value;
    } else if (strcmp(name, "--optimizer") == 0) {
        return take_optimizer(settings, value);
    } else if (strcmp(name, "--precision") != 0 || !dp_precision_of(value, &settings->precision)) {
        return false;
    }
    return settings->threads > 0 && settings->micro > 0 && settings->micro <= MICRO_MAX;
}

static bool parse(int argc, char **argv, struct settings *settings)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            settings->json = true;
        } else if (strcmp(argv[i], "--large") == 0) {
            settings->large = true;
        } else if (i + 1 == argc || !take(settings, argv[i], argv[i + 1])) {
            return false;
        } else {
            i++;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct settings settings = {.seconds = 3.0,
                                .threads = 1,
                                .micro = 1,
                                .precision = DP_PRECISIONS,
                                .optimizers = {DP_OPTIM_ADAMW},
                                .ops = {dp_ops_best_in(DP_FP32), dp_ops_best_in(DP_BF16)},
                                .only = ""};
    if (!parse(argc, argv, &settings)) {
        puts(
            "usage: bench_engine [--json] [--seconds S] [--threads N] [--precision P] [--ops NAME] "
            "[--only TEXT] [--large] [--micro N] [--packs kept|shared] [--optimizer "
            "adamw|muon|both]");
        return 64;
    }
    if (!choose_ops(&settings)) {
        return 64;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const struct shape *shape = &shapes[i];
        if ((shape->large && !settings.large) || strstr(shape->name, settings.only) == NULL) {
            continue;
        }
        for (size_t p = 0; p < PRECISIONS_SHOWN && settings.ops[p] != NULL; p++) {
            const dp_status status = run(shape, settings.ops[p], &settings);
            if (status != DP_OK) {
                printf("bench_engine: %s: %s\n", shape->name, dp_status_text(status));
                return 1;
            }
        }
    }
    return 0;
}
