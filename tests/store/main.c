/* dpcuts: cut the power under the store, many times, and say what was lost and how to see it
 * again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/jobs.h"
#include "tests/store/world.h"

enum { LOSSES_PRINTED = 10 };

typedef struct arguments {
    uint64_t cuts;
    uint64_t seed;
    uint64_t world; /* 0: all; else only this one */
    uint32_t jobs;
    dp_platter_sync sync;
    bool json;
    bool calls; /* calls that fail, and no cuts */
} arguments;

/* The report of a worker to the parent about one world. */
typedef struct report {
    uint64_t world;
    uint64_t cuts;
    uint64_t opening;
    uint64_t acts;
    uint64_t dropping;
    char act[24];
    char sentence[DP_BOOK_SENTENCE_MAX]; /* empty: nothing was lost */
} report;

static void usage(FILE *out)
{
    fputs("usage: dpcuts [--cuts N] [--seed S] [--world W] [--jobs N] [--calls] [--json]\n"
          "              [--disk honest|lies] [--synchronous full|normal|off]\n"
          "N power cuts in worlds of 64; --world plays one of them again; --calls: calls of the "
          "disk and\n"
          "allocations that fail, in place of cuts. Status 1: something was "
          "lost.\n",
          out);
}

static bool read_mistake(arguments *args, const char *name, const char *value)
{
    static const struct {
        const char *name;
        const char *value;
        dp_platter_sync sync;
    } known[] = {{"--disk", "honest", DP_PLATTER_HONEST},
                 {"--disk", "lies", DP_PLATTER_LIES},
                 {"--synchronous", "full", DP_PLATTER_HONEST},
                 {"--synchronous", "normal", DP_PLATTER_NORMAL},
                 {"--synchronous", "off", DP_PLATTER_OFF}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, known[i].name) == 0 && strcmp(value, known[i].value) == 0) {
            args->sync = known[i].sync;
            return true;
        }
    }
    return false;
}

static bool read_number(const char *text, uint64_t *value)
{
    char *end = NULL;

    *value = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static bool read_arguments(arguments *args, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        uint64_t number = 0;
        if (strcmp(argv[i], "--json") == 0) {
            args->json = true;
            continue;
        }
        if (strcmp(argv[i], "--calls") == 0) {
            args->calls = true;
            continue;
        }
        if (i + 1 >= argc) {
            return false;
        }
        const char *name = argv[i];
        const char *value = argv[++i];
        if (read_mistake(args, name, value)) {
            continue;
        }
        if (!read_number(value, &number)) {
            return false;
        }
        if (strcmp(name, "--cuts") == 0 && number > 0) {
            args->cuts = number;
        } else if (strcmp(name, "--seed") == 0) {
            args->seed = number;
        } else if (strcmp(name, "--world") == 0) {
            args->world = number;
        } else if (strcmp(name, "--jobs") == 0 && number > 0 && number <= JOBS_MAX) {
            args->jobs = (uint32_t)number;
        } else {
            return false;
        }
    }
    return true;
}

/* Up to cuts of them. */
static void run_world(const arguments *args, uint64_t number, uint64_t cuts, const char *folder,
                      report *out)
{
    static dp_world world;

    memset(out, 0, sizeof *out);
    out->world = number;
    if (!dp_world_open(&world, dp_mix64(number), folder, args->sync)) {
        snprintf(out->sentence, sizeof out->sentence, "the world does not open");
        return;
    }
    while (world.n_cuts + world.n_failures < cuts && out->sentence[0] == '\0') {
        if (!(args->calls ? dp_world_fail(&world) : dp_world_cut(&world))) {
            memcpy(out->sentence, world.sentence, sizeof out->sentence);
        }
    }
    out->cuts = world.n_cuts + world.n_failures;
    out->opening = world.n_opening;
    out->acts = world.n_acts;
    out->dropping = world.n_dropping;
    snprintf(out->act, sizeof out->act, "%s", world.act);
    dp_world_close(&world);
}

typedef struct sums {
    uint64_t worlds;
    uint64_t cuts;
    uint64_t opening;
    uint64_t acts;
    uint64_t dropping;
    uint64_t losses;
} sums;

typedef struct cuts {
    const arguments *args;
    const char *folder;
    sums all;
} cuts;

/* Worlds seed + 1, seed + 2, ...; every jobs-th is this worker's. */
static void work(void *context, uint32_t job, int out)
{
    const cuts *const self = context;
    const arguments *const args = self->args;
    char own[DP_WORLD_PATH_MAX - 16];
    report r;
    const uint64_t worlds = (args->cuts + DP_WORLD_CUTS_MAX - 1) / DP_WORLD_CUTS_MAX;

    snprintf(own, sizeof own, "%s/%u-XXXXXX", self->folder, job);
    if (mkdtemp(own) == NULL) {
        _exit(1);
    }
    for (uint64_t i = job; i < worlds; i += args->jobs) {
        const uint64_t number = args->world != 0 ? args->world : args->seed + i + 1;
        run_world(args, number, DP_WORLD_CUTS_MAX, own, &r);
        if (write(out, &r, sizeof r) != (ssize_t)sizeof r) {
            break;
        }
    }
    rmdir(own);
}

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const char *const mistakes[] = {[DP_PLATTER_HONEST] = "",
                                       [DP_PLATTER_LIES] = " --disk lies",
                                       [DP_PLATTER_NORMAL] = " --synchronous normal",
                                       [DP_PLATTER_OFF] = " --synchronous off"};

static void collect(void *context, int in)
{
    cuts *const self = context;
    const arguments *const args = self->args;
    sums *const all = &self->all;
    report r;

    while (read(in, &r, sizeof r) == (ssize_t)sizeof r) {
        all->worlds++;
        all->cuts += r.cuts;
        all->opening += r.opening;
        all->acts += r.acts;
        all->dropping += r.dropping;
        if (r.sentence[0] != '\0' && ++all->losses <= LOSSES_PRINTED) {
            fprintf(args->json ? stderr : stdout,
                    "LOST: world %" PRIu64 ", cut %" PRIu64 " in '%s': %s\n"
                    "  replay: dpcuts --world %" PRIu64 "%s%s\n",
                    r.world, r.cuts, r.act, r.sentence, r.world, mistakes[args->sync],
                    args->calls ? " --calls" : "");
        }
    }
}

static void print_sums(const arguments *args, const sums *all, double took)
{
    if (args->json) {
        printf("{\"%s\":%" PRIu64 ",\"while_opening\":%" PRIu64 ",\"while_dropping\":%" PRIu64
               ",\"worlds\":%" PRIu64 ",\"acts\":%" PRIu64 ",\"lost\":%" PRIu64
               ",\"seconds\":%.1f}\n",
               args->calls ? "failures" : "cuts", all->cuts, all->opening, all->dropping,
               all->worlds, all->acts, all->losses, took);
        return;
    }
    printf("%" PRIu64 " %s in %" PRIu64 " worlds, %" PRIu64 " acts", all->cuts,
           args->calls ? "failing acts and starts" : "power cuts", all->worlds, all->acts);
    if (!args->calls) {
        printf(" (%" PRIu64 " while the store was opened, %" PRIu64 " while objects were dropped)",
               all->opening, all->dropping);
    }
    printf("; %" PRIu64 " worlds lost something; %.1f s\n", all->losses, took);
}

static int run(const arguments *args, const char *folder)
{
    cuts self = {.args = args, .folder = folder};
    const double start = seconds_now();
    const jobs all = {.count = args->jobs, .work = work, .collect = collect, .context = &self};
    const bool good = jobs_run(&all);

    print_sums(args, &self.all, seconds_now() - start);
    if (!good) {
        fputs("dpcuts: a worker died\n", stderr);
        return 2;
    }
    return self.all.losses == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    arguments args = {.cuts = 1000, .seed = 0, .jobs = 1};
    char folder[256];
    const char *tmp = getenv("TMPDIR");

    if (!read_arguments(&args, argc, argv)) {
        usage(stderr);
        return 64;
    }
    if (args.world != 0) {
        args.cuts = 1;
        args.jobs = 1;
    }
    snprintf(folder, sizeof folder, "%s/dpcuts-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL) {
        perror("dpcuts: no folder for lock files");
        return 1;
    }
    const int status = run(&args, folder);
    rmdir(folder);
    return status;
}
