/* Cost of training on any backend, through its table (compute/backend/backend.h): tokens per second
 * of whole steps, their share of the peak given by --tflops, and the time of a round. The anchor is
 * the CPU backend of the same run, unless --alone.
 * bench_backend [--json] [--backend NAME|PATH] [--seconds S] [--precision P] [--tflops PEAK]
 * [--only TEXT] [--large] [--alone]
 * --tflops: the peak of the device in this precision, for the share (H200: 989); --large adds 124M
 * and 1.5B. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bench/clock.h"
#include "compute/backend/backend_cpu.h"
#include "compute/backend/plugin.h"
#include "compute/cpu/precision.h"

enum { STEPS_MAX = 4096, WARM_UP = 3, ROUNDS = 5 };

static const struct shape {
    const char *name;
    size_t rows;
    bool large;
    dp_model_config config;
} shapes[] = {
    {"gpt2 L4 C256 T256 B8 V512",
     8,
     false,
     {.layers = 4, .width = 256, .heads = 4, .context = 256, .vocab = 512}},
    {"llama L4 C256 T256 B8 V512",
     8,
     false,
     {.layers = 4,
      .width = 256,
      .heads = 4,
      .context = 256,
      .vocab = 512,
      .arch = DP_ARCH_LLAMA,
      .kv_heads = 2,
      .hidden = 704}},
    {"gpt2-124m T1024 B32",
     32,
     true,
     {.layers = 12, .width = 768, .heads = 12, .context = 1024, .vocab = 50304}},
    {"gpt2-1558m T1024 B16",
     16,
     true,
     {.layers = 48, .width = 1600, .heads = 25, .context = 1024, .vocab = 50304}},
};

typedef struct settings {
    bool json;
    bool large;
    bool alone;
    double seconds;
    double tflops;
    dp_precision_kind precision;
    const char *backend;
    const char *only;
} settings;

/* Of one backend at one shape; negative: it did not run. */
typedef struct figures {
    double create_s;
    double first_step_s; /* includes the search for algorithms */
    double tokens_per_s;
    /* from the request until it is here, with the vector's transfer to the host */
    double encode_ms;
    double stolen_ms; /* of that: lost by steps that run meanwhile */
    double apply_ms;
} figures;

static dp_status one_step(const dp_backend *b, dp_engine *e, const dp_gpt_batch *batch)
{
    static const dp_optim_options options = {.lr = 1e-4F,
                                             .beta1 = 0.9F,
                                             .beta2 = 0.95F,
                                             .eps = 1e-8F,
                                             .decay = 0.1F,
                                             .clip = 1.0F,
                                             .loss_scale = 1.0F};
    double loss;
    double norm;
    DP_TRY(b->step(e, batch, 1.0F / (float)(batch->rows * batch->length), &loss));
    DP_TRY(b->norm(e, &norm));
    DP_TRY(b->update(e, &options, norm));
    return b->drop(e);
}

static dp_status time_steps(const dp_backend *b, dp_engine *e, const dp_gpt_batch *batch,
                            double seconds, figures *out)
{
    static double times[STEPS_MAX];
    const double begin = bench_seconds(CLOCK_MONOTONIC);
    size_t steps = 0;
    DP_TRY(one_step(b, e, batch));
    out->first_step_s = bench_seconds(CLOCK_MONOTONIC) - begin;
    for (int i = 0; i < WARM_UP; i++) {
        DP_TRY(one_step(b, e, batch));
    }
    const double start = bench_seconds(CLOCK_MONOTONIC);
    do {
        const double step = bench_seconds(CLOCK_MONOTONIC);
        DP_TRY(one_step(b, e, batch));
        times[steps++] = bench_seconds(CLOCK_MONOTONIC) - step;
    } while (steps < STEPS_MAX && bench_seconds(CLOCK_MONOTONIC) - start < seconds);
    out->tokens_per_s = (double)(batch->rows * batch->length) / bench_median(times, steps);
    return DP_OK;
}

static dp_status time_round(const dp_backend *b, dp_engine *e, figures *out)
{
    const dp_codec codec = dp_codec_default(DP_CODEC_SPARSE);
    const dp_outer outer = {.alpha = 65536};
    const uint32_t q = 1U << 31;
    double encode[ROUNDS];
    double apply[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        dp_view blob;
        dp_outer_seen seen;
        DP_TRY(b->snapshot(e, DP_VECTOR_A, DP_VECTOR_E, DP_VECTOR_THETA));
        const double start = bench_seconds(CLOCK_MONOTONIC);
        DP_TRY(b->encode(e, DP_VECTOR_A, &codec, &blob));
        encode[i] = 1e3 * (bench_seconds(CLOCK_MONOTONIC) - start);
        const double encoded = bench_seconds(CLOCK_MONOTONIC);
        DP_TRY(b->apply(e, &(dp_consensus_items){.blobs = &blob, .q = &q, .n = 1}, &outer, &seen));
        DP_TRY(b->settle(e, blob, 65536, 0.95F));
        apply[i] = 1e3 * (bench_seconds(CLOCK_MONOTONIC) - encoded);
    }
    out->encode_ms = bench_median(encode, ROUNDS);
    out->apply_ms = bench_median(apply, ROUNDS);
    return DP_OK;
}

/* Time that an encoding adds to the steps that run beside it. */
static dp_status time_stolen(const dp_backend *b, dp_engine *e, const dp_gpt_batch *batch,
                             figures *out)
{
    const dp_codec codec = dp_codec_default(DP_CODEC_SPARSE);
    const double step_s = (double)(batch->rows * batch->length) / out->tokens_per_s;
    double stolen[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        bool ready = false;
        int steps = 0;
        dp_view blob;
        const float *values;
        DP_TRY(b->snapshot(e, DP_VECTOR_A, DP_VECTOR_E, DP_VECTOR_THETA));
        const double start = bench_seconds(CLOCK_MONOTONIC);
        DP_TRY(b->encode_start(e, DP_VECTOR_A, &codec));
        while (!ready && steps < STEPS_MAX) {
            DP_TRY(one_step(b, e, batch));
            steps++;
            DP_TRY(b->encode_ready(e, &ready));
        }
        stolen[i] = 1e3 * (bench_seconds(CLOCK_MONOTONIC) - start - steps * step_s);
        DP_TRY(b->encode_take(e, &blob, &values));
    }
    out->stolen_ms = bench_median(stolen, ROUNDS);
    return DP_OK;
}

static dp_status measure(const dp_backend *b, uint32_t device, const struct shape *shape,
                         const dp_model *model, const settings *s, figures *out)
{
    const size_t n = shape->rows * shape->config.context;
    const dp_engine_setup setup = {.model = model,
                                   .precision = s->precision,
                                   .optimizer = DP_OPTIM_ADAMW,
                                   .weights = DP_WEIGHTS_FP32,
                                   .device = device,
                                   .rows_max = (uint32_t)shape->rows,
                                   .recompute = DP_RECOMPUTE_NORMS};
    dp_engine *e = NULL;
    dp_why why = {{0}};
    dp_rng rng;
    const double start = bench_seconds(CLOCK_MONOTONIC);
    dp_status status = b->create(&e, &setup, &why);
    if (status != DP_OK) {
        fprintf(stderr, "bench_backend: %s: %s\n", shape->name, why.text);
        return status;
    }
    out->create_s = bench_seconds(CLOCK_MONOTONIC) - start;
    uint32_t *const tokens = dp_alloc(n + 1, sizeof *tokens);
    status = tokens == NULL ? DP_NOMEM : b->init(e, 7);
    dp_rng_init(&rng, 11);
    for (size_t i = 0; status == DP_OK && i <= n; i++) {
        tokens[i] = (uint32_t)dp_rng_below(&rng, shape->config.vocab);
    }
    if (status == DP_OK) {
        status = b->copy(e, DP_VECTOR_X, DP_VECTOR_THETA);
    }
    const dp_gpt_batch batch = {
        .x = tokens, .y = tokens + 1, .rows = shape->rows, .length = shape->config.context};
    if (status == DP_OK) {
        status = time_steps(b, e, &batch, s->seconds, out);
    }
    if (status == DP_OK) {
        status = time_round(b, e, out);
    }
    if (status == DP_OK) {
        status = time_stolen(b, e, &batch, out);
    }
    if (status != DP_OK) {
        fprintf(stderr, "bench_backend: %s: %s %s\n", shape->name, dp_status_text(status),
                b->problem(e));
    }
    dp_free(tokens);
    b->close(e);
    return status;
}

static void print(const settings *s, const struct shape *shape, const dp_backend *b,
                  const dp_model *model, const figures *f, double anchor)
{
    const char *const precision = dp_precision_name(dp_precision_of_kind(s->precision));
    const double tflops = 1e-12 * dp_model_flops(model, shape->config.context) * f->tokens_per_s;
    const double share = s->tflops > 0 ? tflops / s->tflops : 0.0;
    const double ratio = anchor > 0 ? f->tokens_per_s / anchor : 0.0;
    if (s->json) {
        printf("{\"shape\":\"%s\",\"backend\":\"%s\",\"precision\":\"%s\","
               "\"tokens_per_s\":%.0f,\"tflops\":%.3f,\"share\":%.4f,\"ratio\":%.3f,"
               "\"create_s\":%.3f,\"first_step_s\":%.3f,\"encode_ms\":%.3f,"
               "\"stolen_ms\":%.3f,\"apply_ms\":%.3f}\n",
               shape->name, b->name, precision, f->tokens_per_s, tflops, share, ratio, f->create_s,
               f->first_step_s, f->encode_ms, f->stolen_ms, f->apply_ms);
    } else {
        printf("%-28s %-6s %s %10.0f tokens/s %8.3f TFLOP/s share %.4f  x%.2f  create %.3f s, "
               "first step %.3f s, encode %.3f ms (%.3f ms of them from steps), apply and settle "
               "%.3f ms\n",
               shape->name, b->name, precision, f->tokens_per_s, tflops, share, ratio, f->create_s,
               f->first_step_s, f->encode_ms, f->stolen_ms, f->apply_ms);
    }
    fflush(stdout);
}

static bool run_shape(const settings *s, const dp_plugin_choice *choice, const struct shape *shape)
{
    dp_model model = {0};
    dp_why why = {{0}};
    figures anchor = {0};
    figures found = {0};
    if (dp_model_open(&model, &shape->config, &why) != DP_OK) {
        fprintf(stderr, "bench_backend: %s\n", why.text);
        return false;
    }
    bool good = true;
    if (!s->alone) {
        good = measure(dp_backend_cpu(), 0, shape, &model, s, &anchor) == DP_OK;
        if (good) {
            print(s, shape, dp_backend_cpu(), &model, &anchor, anchor.tokens_per_s);
        }
    }
    if (good && choice->backend != dp_backend_cpu()) {
        good = measure(choice->backend, choice->device, shape, &model, s, &found) == DP_OK;
        if (good) {
            print(s, shape, choice->backend, &model, &found, anchor.tokens_per_s);
        }
    }
    dp_model_close(&model);
    return good;
}

static bool take(settings *s, const char *name, const char *value)
{
    dp_precision precision;
    if (strcmp(name, "--seconds") == 0) {
        s->seconds = strtod(value, NULL);
        return s->seconds > 0;
    }
    if (strcmp(name, "--tflops") == 0) {
        s->tflops = strtod(value, NULL);
        return s->tflops > 0;
    }
    if (strcmp(name, "--backend") == 0) {
        s->backend = value;
        return true;
    }
    if (strcmp(name, "--only") == 0) {
        s->only = value;
        return true;
    }
    if (strcmp(name, "--precision") == 0 && dp_precision_of(value, &precision)) {
        static const dp_precision_kind kinds[DP_PRECISIONS] = {[DP_FP32] = DP_PRECISION_FP32,
                                                               [DP_BF16] = DP_PRECISION_BF16,
                                                               [DP_FP16] = DP_PRECISION_FP16};
        s->precision = kinds[precision];
        return true;
    }
    return false;
}

static bool parse(int argc, char **argv, settings *s)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            s->json = true;
        } else if (strcmp(argv[i], "--large") == 0) {
            s->large = true;
        } else if (strcmp(argv[i], "--alone") == 0) {
            s->alone = true;
        } else if (i + 1 == argc || !take(s, argv[i], argv[i + 1])) {
            return false;
        } else {
            i++;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    settings s = {.seconds = 3.0, .precision = DP_PRECISION_BF16, .backend = "cpu"};
    dp_plugin_choice choice;
    if (!parse(argc, argv, &s)) {
        fputs("usage: bench_backend [--json] [--backend NAME|PATH] [--seconds S] [--precision P] "
              "[--tflops PEAK] [--only TEXT] [--large] [--alone]\n",
              stderr);
        return 64;
    }
    dp_plugin_choose_own(&choice, s.backend, DP_PLUGIN_CHECK_MS);
    if (choice.line.text[0] != '\0') {
        fprintf(stderr, "bench_backend: %s\n", choice.line.text);
    }
    if (strcmp(s.backend, "cpu") != 0 && choice.backend == dp_backend_cpu()) {
        return 69; /* Another backend than the requested one answered. */
    }
    bool good = true;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if ((!shapes[i].large || s.large) &&
            (s.only == NULL || strstr(shapes[i].name, s.only) != NULL)) {
            good = run_shape(&s, &choice, &shapes[i]) && good;
        }
    }
    return good ? 0 : 1;
}
