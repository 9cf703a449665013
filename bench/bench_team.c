/* The cost or gain of several processes on one host: tokens per second of steps with their update,
 * in two alternating CPU engines. The anchor is one process with all threads; the group has the
 * given number of processes and divides the threads among them. Wall time, which processes are
 * meant to reduce; medians.
 * bench_team [--json] [--repeat N] [--processes N] [--threads N] [--preset NAME] [--rows N]
 * [--length N] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "bench/clock.h"
#include "compute/backend/backend_cpu.h"
#include "compute/backend/process_group.h"

enum { REPEAT_MAX = 1000 };

struct settings {
    dp_model_config config;
    unsigned long rows;
    unsigned long length;
    unsigned long repeat;
    unsigned long processes;
    unsigned long threads;
    const char *preset;
    bool json;
};

static dp_status open_engine(dp_engine **e, const dp_model *model, const struct settings *s,
                             dp_process_group *team)
{
    const unsigned long threads = team == NULL ? s->threads : s->threads / s->processes;
    const dp_engine_setup setup = {.model = model,
                                   .precision = DP_PRECISION_FP32,
                                   .optimizer = DP_OPTIM_ADAMW,
                                   .weights = DP_WEIGHTS_FP32,
                                   .rows_max = (uint32_t)s->rows,
                                   .recompute = DP_RECOMPUTE_NORMS,
                                   .threads = threads > 0 ? threads : 1,
                                   .team = team,
                                   .alone = true};
    DP_TRY(dp_backend_cpu()->create(e, &setup, NULL));
    DP_TRY(dp_backend_cpu()->init(*e, 1));
    return dp_backend_cpu()->drop(*e);
}

/* Seconds of one step and its update. */
static dp_status time_step(dp_engine *e, const dp_gpt_batch *batch, double *seconds)
{
    static const dp_optim_options options = {
        .lr = 1e-4F, .beta1 = 0.9F, .beta2 = 0.95F, .eps = 1e-8F, .decay = 0.1F, .clip = 1.0F};
    const dp_backend *const b = dp_backend_cpu();
    const double start = bench_seconds(CLOCK_MONOTONIC);
    double loss;
    double norm;
    DP_TRY(b->step(e, batch, 1.0F / (float)(batch->rows * batch->length), &loss));
    DP_TRY(b->norm(e, &norm));
    DP_TRY(b->update(e, &options, norm));
    DP_TRY(b->drop(e));
    *seconds = bench_seconds(CLOCK_MONOTONIC) - start;
    return DP_OK;
}

static dp_status measure(const struct settings *s, const dp_model *model, dp_process_group *team,
                         double seconds[2])
{
    static double times[2][REPEAT_MAX];
    const size_t tokens = s->rows * s->length;
    dp_engine *engines[2] = {NULL, NULL};
    uint32_t *const text = dp_alloc(tokens + 1, sizeof *text);
    dp_status status = text == NULL ? DP_NOMEM : DP_OK;
    dp_rng rng;
    dp_rng_init(&rng, 2);
    for (size_t i = 0; status == DP_OK && i <= tokens; i++) {
        text[i] = (uint32_t)dp_rng_below(&rng, s->config.vocab);
    }
    for (int who = 0; who < 2 && status == DP_OK; who++) {
        status = open_engine(&engines[who], model, s, who == 0 ? NULL : team);
    }
    const dp_gpt_batch batch = {text, text + 1, s->rows, s->length};
    for (unsigned long i = 0; i <= s->repeat && status == DP_OK; i++) {
        for (int who = 0; who < 2 && status == DP_OK; who++) {
            double took = 0;
            status = time_step(engines[who], &batch, &took);
            times[who][i > 0 ? i - 1 : 0] = took; /* The first step warms up. */
        }
    }
    for (int who = 0; who < 2; who++) {
        dp_backend_cpu()->close(engines[who]);
        seconds[who] = bench_median(times[who], s->repeat);
    }
    dp_free(text);
    return status;
}

static void print(const struct settings *s, const double seconds[2])
{
    const double tokens = (double)(s->rows * s->length);
    if (s->json) {
        printf("{\"preset\":\"%s\",\"rows\":%lu,\"length\":%lu,\"threads\":%lu,\"processes\":%lu,"
               "\"one_tokens_per_s\":%.1f,\"team_tokens_per_s\":%.1f,\"ratio\":%.3f}\n",
               s->preset, s->rows, s->length, s->threads, s->processes, tokens / seconds[0],
               tokens / seconds[1], seconds[0] / seconds[1]);
    } else {
        printf("%s, %lu x %lu tokens, %lu threads: one process %.1f tokens/s, %lu processes %.1f, "
               "ratio %.3f\n",
               s->preset, s->rows, s->length, s->threads, tokens / seconds[0], s->processes,
               tokens / seconds[1], seconds[0] / seconds[1]);
    }
}

static bool parse(int argc, char **argv, struct settings *s)
{
    const struct {
        const char *name;
        unsigned long *value;
        unsigned long most;
    } numbers[] = {{"--repeat", &s->repeat, REPEAT_MAX},
                   {"--processes", &s->processes, DP_PROCESS_BARRIER_PROCESSES_MAX},
                   {"--threads", &s->threads, DP_POOL_THREADS_MAX},
                   {"--rows", &s->rows, DP_GPT_ROWS_MAX},
                   {"--length", &s->length, 1 << 20}};
    for (int i = 1; i < argc; i++) {
        bool known = strcmp(argv[i], "--json") == 0;
        s->json = s->json || known;
        if (strcmp(argv[i], "--preset") == 0 && i + 1 < argc) {
            s->preset = argv[++i];
            known = true;
        }
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0] && !known; k++) {
            if (strcmp(argv[i], numbers[k].name) == 0 && i + 1 < argc) {
                *numbers[k].value = strtoul(argv[++i], NULL, 10);
                known = *numbers[k].value > 0 && *numbers[k].value <= numbers[k].most;
            }
        }
        if (!known) {
            return false;
        }
    }
    return dp_model_preset_find(s->preset) != NULL;
}

int main(int argc, char **argv)
{
    struct settings s = {.preset = "gpt2-124m",
                         .rows = 4,
                         .length = 64,
                         .repeat = 5,
                         .processes = 2,
                         .threads = dp_pool_threads_default()};
    dp_process_group *team = NULL;
    dp_model model = {0};
    double seconds[2];
    dp_why why = {{0}};
    if (!parse(argc, argv, &s)) {
        fputs("usage: bench_team [--json] [--repeat N] [--processes N] [--threads N] "
              "[--preset NAME] [--rows N] [--length N]\n",
              stderr);
        return 1;
    }
    s.config = dp_model_preset_find(s.preset)->config;
    s.config.context = (uint32_t)s.length;
    dp_status status = dp_process_group_start(&team, (uint32_t)s.processes, 0, &why);
    if (status == DP_OK) {
        status = dp_model_open(&model, &s.config, &why);
    }
    if (status == DP_OK) {
        status = measure(&s, &model, team, seconds);
    }
    dp_model_close(&model);
    dp_process_group_close(team);
    if (status != DP_OK) {
        fprintf(stderr, "bench_team: %s %s\n", dp_status_text(status), why.text);
        return 1;
    }
    print(&s, seconds);
    return 0;
}
