/* dpsim: runs seeds of the simulator on all cores, and reports broken rules with the command that
 * replays them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/jobs.h"
#include "tests/sim/arguments.h"
#include "tests/sim/duel.h"
#include "tests/sim/evil.h"
#include "tests/sim/explore.h"
#include "tests/sim/script.h"
#include "tests/sim/sim.h"

enum { FAILURES_PRINTED = 20 };

/* Report of a worker to its parent about one seed. */
typedef struct report {
    uint64_t seed;
    bool failed;
    dp_sim_failure failure;
    dp_sim_totals totals;
    dp_measure measure;
    uint32_t nodes;
    uint32_t faults; /* mask of classes that were on */
} report;

static void run_seed(const dp_arguments *args, uint64_t seed, report *out)
{
    static dp_sim sim;
    dp_sim_options options = args->options;

    memset(out, 0, sizeof *out);
    options.seed = seed;
    out->seed = seed;
    if (dp_sim_open(&sim, &options) != DP_OK) {
        out->failed = true;
        snprintf(out->failure.invariant, sizeof out->failure.invariant, "OPEN");
        snprintf(out->failure.sentence, sizeof out->failure.sentence, "the world does not open");
    } else {
        const bool duel = options.profile == DP_PROFILE_DUEL || options.profile == DP_PROFILE_LIAR;
        out->failed = !(duel ? dp_duel_run(&sim) : dp_sim_run(&sim));
        out->failure = sim.failure;
        out->totals = sim.totals;
        out->measure = sim.measure;
        out->nodes = sim.plan.nodes;
        out->faults = sim.plan.on;
    }
    dp_sim_close(&sim);
}

static void print_replay(const dp_arguments *args, const report *r)
{
    if (r->totals.evil != 0) {
        printf("  liars: %s, trick %u\n", dp_evil_name((dp_evil_kind)r->totals.evil),
               r->totals.trick);
    }
    printf("  replay: %s --seed %" PRIu64, args->program, r->seed);
    if (args->options.nodes != 0) {
        printf(" --nodes %u", args->options.nodes);
    }
    if (args->faults != NULL) {
        printf(" --faults %s", args->faults);
    }
    if (args->options.all_on) {
        printf(" --every");
    }
    if (args->options.profile != DP_PROFILE_SWARM) {
        printf(" --profile %s", dp_profile_name(args->options.profile));
    }
    if (args->options.evil != 0) {
        printf(" --evil %s", dp_evil_name((dp_evil_kind)args->options.evil));
    }
    if (args->options.until_us != 0) {
        printf(" --until %.6f", (double)args->options.until_us / 1e6);
    }
    if (args->options.loss_milli != 0) {
        printf(" --loss %.1f", args->options.loss_milli / 10.0);
    }
    if (args->options.churn_milli != 0) {
        printf(" --churn %.1f", args->options.churn_milli / 10.0);
    }
    if (args->options.round_ms != 0) {
        printf(" --round %.3f", args->options.round_ms / 1000.0);
    }
    if (args->options.contributors != 0) {
        printf(" --contributors %u", args->options.contributors);
    }
    if (args->options.enrolled) {
        printf(" --enrolled");
    }
    if (args->options.lucky) {
        printf(" --lucky");
    }
    if (args->options.rotate) {
        printf(" --rotate");
    }
    if (args->options.parts) {
        printf(" --parts");
    }
    if (args->options.sums) {
        printf(" --sums");
    }
    if (args->options.span) {
        printf(" --span");
    }
    if (args->options.sites > 0) {
        printf(" --sites %u", args->options.sites);
    }
    if (args->options.keep_vote_key) {
        printf(" --keep-vote-key");
    }
    if (args->options.store != DP_SIM_STORE_DRAWN) {
        printf(" --store %s", dp_store_name(args->options.store));
    }
    printf(" --trace %u\n", r->failure.node);
}

/* Time from one decided round to the next; 0: fewer than two rounds. */
static double round_s(const dp_sim_totals *totals)
{
    return totals->rounds < 2 ? 0
                              : (double)(totals->last_round_us - totals->first_round_us) / 1e6 /
                                    (double)(totals->rounds - 1);
}

static void print_report(const dp_arguments *args, const report *r)
{
    if (args->json) {
        printf("{\"seed\":%" PRIu64
               ",\"failed\":%s,\"invariant\":\"%s\",\"at_s\":%.6f,\"node\":%u,\"nodes\":%u,"
               "\"rounds\":%" PRIu64 ",\"slots\":%" PRIu64 ",\"crashes\":%" PRIu64
               ",\"listed\":%" PRIu64 ",\"tokens\":%" PRIu64
               ",\"listed_most\":%u,\"round_s\":%.3f,\"exchanges\":%" PRIu64 ",\"aged\":%" PRIu64
               ",\"ended_s\":%.3f,\"together_s\":%.3f,\"digest\":\"%016" PRIx64 "\"",
               r->seed, r->failed ? "true" : "false", r->failure.invariant,
               (double)r->failure.at_us / 1e6, r->failure.node, r->nodes, r->totals.rounds,
               r->totals.slots, r->totals.crashes, r->totals.listed, r->totals.tokens,
               r->totals.listed_most, round_s(&r->totals), r->totals.exchanges, r->totals.aged,
               (double)r->totals.ended_us / 1e6, (double)r->totals.together_us / 1e6,
               r->totals.digest);
        dp_measure_print(stdout, &r->measure, &r->totals);
        printf("}\n");
        return;
    }
    if (r->failed) {
        printf("FAIL %s seed=%" PRIu64 " t=%.6fs node=%u of %u: %s\n", r->failure.invariant,
               r->seed, (double)r->failure.at_us / 1e6, r->failure.node, r->nodes,
               r->failure.sentence);
        print_replay(args, r);
    } else if (args->first == args->last) {
        printf("ok seed=%" PRIu64 " nodes=%u rounds=%" PRIu64 " slots=%" PRIu64 " crashes=%" PRIu64
               " exchanges=%" PRIu64 " aged=%" PRIu64 " messages=%" PRIu64 " steps=%" PRIu64
               " simulated=%.3fs digest=%016" PRIx64 "\n",
               r->seed, r->nodes, r->totals.rounds, r->totals.slots, r->totals.crashes,
               r->totals.exchanges, r->totals.aged, r->totals.messages, r->totals.steps,
               (double)r->totals.ended_us / 1e6, r->totals.digest);
    }
}

/* True if the seed still breaks the same invariant under these options; then out is the new
 * report. */
static bool still_fails(const dp_arguments *args, report *out)
{
    report r;

    run_seed(args, args->first, &r);
    if (!r.failed || strcmp(r.failure.invariant, out->failure.invariant) != 0) {
        return false;
    }
    *out = r;
    return true;
}

/* Writes the failure as a script, which may become a test. */
static int write_script(const dp_arguments *args, const report *r)
{
    char name[64];
    dp_script script = {.options = args->options};
    const char *path = args->output;

    script.options.seed = r->seed;
    memcpy(script.invariant, r->failure.invariant, sizeof script.invariant);
    if (script.invariant[0] != 'L') {
        script.options.until_us = r->failure.at_us + 1000000; /* Liveness is judged at the end. */
    }
    if (path == NULL) {
        snprintf(name, sizeof name, "shrunk-%" PRIu64 ".dps", r->seed);
        path = name;
    }
    FILE *out = fopen(path, "w");
    const bool written = out != NULL && dp_script_write(&script, out) == DP_OK;
    if (out == NULL || fclose(out) != 0 || !written) {
        fprintf(stderr, "dpsim: %s: cannot be written\n", path);
        return 74;
    }
    printf("  script: %s --script %s\n", args->program, path);
    return 1;
}

/* Drops fault classes and nodes one by one while the same invariant breaks. */
static int shrink(const dp_arguments *args)
{
    static char list[256];
    dp_arguments tried = *args;
    report r;

    run_seed(&tried, args->first, &r);
    if (!r.failed) {
        printf("seed %" PRIu64 " does not fail\n", args->first);
        return 0;
    }
    for (uint32_t nodes = 1; nodes < r.nodes; nodes++) {
        tried.options.nodes = nodes;
        if (still_fails(&tried, &r)) {
            break;
        }
        tried.options.nodes = args->options.nodes;
    }
    tried.options.lucky = true;
    if (!still_fails(&tried, &r)) {
        tried.options.lucky = args->options.lucky;
    }
    tried.options.all_on = true;
    tried.options.faults = r.faults;
    for (uint32_t i = 0; i < DP_FAULT_COUNT; i++) {
        const uint32_t before = tried.options.faults;
        tried.options.faults &= ~(1U << i);
        if (before != tried.options.faults && !still_fails(&tried, &r)) {
            tried.options.faults = before;
        }
    }
    for (uint32_t i = 0; i < DP_FAULT_COUNT; i++) {
        if ((tried.options.faults >> i & 1) != 0) {
            const size_t used = strlen(list);
            snprintf(list + used, sizeof list - used, "%s%s", used == 0 ? "" : ",",
                     dp_fault_name((dp_fault)i));
        }
    }
    tried.faults = list[0] == '\0' ? "none" : list;
    print_report(&tried, &r);
    return write_script(&tried, &r);
}

/* The options of a script; the trace stays the caller's. */
static int read_script(dp_arguments *args)
{
    dp_script script;
    dp_why why = {0};
    FILE *in = fopen(args->script, "r");

    if (in == NULL) {
        fprintf(stderr, "dpsim: %s: cannot be opened: %s\n", args->script, strerror(errno));
        return 66;
    }
    const dp_status status = dp_script_read(&script, in, args->script, &why);
    fclose(in);
    if (status != DP_OK) {
        fprintf(stderr, "dpsim: %s\n", why.text);
        return 65;
    }
    script.options.trace = args->options.trace;
    args->options = script.options;
    args->first = script.options.seed;
    args->last = args->first;
    return 0;
}

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

typedef struct sums {
    uint64_t seeds;
    uint64_t failures;
    uint64_t rounds;
    uint64_t crashes;
    uint64_t exchanges;
    uint64_t node_us;
    uint64_t occasions;
    uint64_t together_us_max;
    uint64_t live_max[5]; /* first_us, gap_us, level_us, count_rounds, slow_rounds */
    uint64_t digest;
    dp_sim_totals totals; /* node_us, messages, steps, ended_us of all runs */
    dp_measure measure;
} sums;

static void add_up(sums *all, const report *r)
{
    all->seeds++;
    all->failures += r->failed ? 1 : 0;
    all->rounds += r->totals.rounds;
    all->crashes += r->totals.crashes;
    all->exchanges += r->totals.exchanges;
    all->node_us += r->totals.node_us;
    all->occasions += r->totals.occasions;
    if (r->totals.together_us > all->together_us_max) {
        all->together_us_max = r->totals.together_us;
    }
    const uint64_t live[5] = {r->totals.first_us, r->totals.gap_us, r->totals.level_us,
                              r->totals.count_rounds, r->totals.slow_rounds};
    for (int i = 0; i < 5; i++) {
        all->live_max[i] = live[i] > all->live_max[i] ? live[i] : all->live_max[i];
    }
    for (int i = 0; i < DP_FAULT_COUNT; i++) {
        all->totals.faults[i] += r->totals.faults[i];
    }
    all->totals.node_us += r->totals.node_us;
    all->totals.messages += r->totals.messages;
    all->totals.steps += r->totals.steps;
    all->totals.ended_us += r->totals.ended_us;
    all->totals.lies += r->totals.lies;
    all->totals.parts += r->totals.parts;
    all->totals.thinner += r->totals.thinner;
    all->totals.thicker += r->totals.thicker;
    all->totals.site_sums += r->totals.site_sums;
    all->totals.parts_missing += r->totals.parts_missing;
    all->totals.forks += r->totals.forks;
    all->totals.halts += r->totals.halts;
    all->totals.unbounded += r->totals.unbounded;
    all->totals.copied += r->totals.copied;
    all->totals.evictions += r->totals.evictions;
    all->totals.harmful += r->totals.harmful;
    all->totals.epochs += r->totals.epochs;
    dp_measure_add(&all->measure, &r->measure);
    all->digest += r->totals.digest * (2 * r->seed + 1); /* the order of arrival does not matter */
}

/* Prints the faults of all seeds. Faults of single messages are counted apart: there are millions
 * of them. */
static void print_harm(const sums *all)
{
    static const uint32_t of_messages =
        1U << DP_FAULT_LOSS | 1U << DP_FAULT_DELAY | 1U << DP_FAULT_COPY | 1U << DP_FAULT_REORDER;
    uint64_t strikes = 0;
    uint64_t messages = 0;

    for (uint32_t i = 0; i < DP_FAULT_COUNT; i++) {
        *((of_messages >> i & 1) != 0 ? &messages : &strikes) += all->totals.faults[i];
    }
    printf("%" PRIu64 " faults (", strikes);
    for (uint32_t i = 0; i < DP_FAULT_COUNT; i++) {
        if ((of_messages >> i & 1) == 0) {
            printf("%s%s %" PRIu64, i == DP_FAULT_PARTITION ? "" : ", ", dp_fault_name((dp_fault)i),
                   all->totals.faults[i]);
        }
    }
    printf(") and %" PRIu64 " of single messages (loss %" PRIu64 ", delay %" PRIu64
           ", copy %" PRIu64 ", reorder %" PRIu64 ")\n",
           messages, all->totals.faults[DP_FAULT_LOSS], all->totals.faults[DP_FAULT_DELAY],
           all->totals.faults[DP_FAULT_COPY], all->totals.faults[DP_FAULT_REORDER]);
    printf("after the healing, at most: first round %.1f s, between two %.1f s, level %.1f s; "
           "listed after %" PRIu64 " rounds, who had been slow after %" PRIu64 "\n",
           (double)all->live_max[0] / 1e6, (double)all->live_max[1] / 1e6,
           (double)all->live_max[2] / 1e6, all->live_max[3], all->live_max[4]);
}

static void print_sums(const dp_arguments *args, const sums *all, double took)
{
    if (args->json) {
        printf("{\"seeds\":%" PRIu64 ",\"failures\":%" PRIu64 ",\"rounds\":%" PRIu64
               ",\"seconds\":%.3f,\"digest\":\"%016" PRIx64 "\"",
               all->seeds, all->failures, all->rounds, took, all->digest);
        dp_measure_print(stdout, &all->measure, &all->totals);
        printf("}\n");
        return;
    }
    printf("%" PRIu64 " seeds, %" PRIu64 " failed; %" PRIu64 " rounds, %" PRIu64
           " crashes, %" PRIu64 " exchanges; together after %.1f s at most; "
           "%.1f seeds/s, %.0f node-seconds/s, %.2f M events/s; digest %016" PRIx64 "\n",
           all->seeds, all->failures, all->rounds, all->crashes, all->exchanges,
           (double)all->together_us_max / 1e6, (double)all->seeds / took,
           (double)all->node_us / 1e6 / took, (double)all->occasions / 1e6 / took, all->digest);
    if (all->totals.thinner > 0) {
        printf("density: updates became thinner %" PRIu64 " times, denser again %" PRIu64
               " times\n",
               all->totals.thinner, all->totals.thicker);
    }
    if (all->totals.parts > 0) {
        printf("parts: %" PRIu64 " of decided rounds, %" PRIu64 " of them without a result\n",
               all->totals.parts, all->totals.parts_missing);
    }
    if (args->options.sums) {
        printf("sums of sites: %" PRIu64 " in parts of decided rounds\n", all->totals.site_sums);
    }
    if (args->options.rotate) {
        printf("epochs of the join secret: %" PRIu64 "\n", all->totals.epochs);
    }
    if (args->options.profile == DP_PROFILE_BYZ) {
        printf("liars: %" PRIu64 " runs forked, %" PRIu64
               " ended with a proof known to all; %" PRIu64 " lies, %" PRIu64
               " rounds beyond the bound, %" PRIu64 " evictions of the living, %" PRIu64
               " publications of others' parts, %" PRIu64 " put out for harm\n",
               all->totals.forks, all->totals.halts, all->totals.lies, all->totals.unbounded,
               all->totals.evictions, all->totals.copied, all->totals.harmful);
    }
    print_harm(all);
}

typedef struct many {
    const dp_arguments *args;
    sums all;
} many;

/* Every jobs-th seed, beginning with its own first one. */
static void work(void *context, uint32_t job, int out)
{
    const dp_arguments *const args = ((const many *)context)->args;
    report r;

    for (uint64_t seed = args->first + job; seed <= args->last; seed += args->jobs) {
        run_seed(args, seed, &r);
        if (write(out, &r, sizeof r) != (ssize_t)sizeof r) {
            return;
        }
    }
}

static void collect(void *context, int in)
{
    many *const self = context;
    const dp_arguments *const args = self->args;
    sums *const all = &self->all;
    report r;
    const double start = seconds_now();
    double said = start;

    while (read(in, &r, sizeof r) == (ssize_t)sizeof r) {
        add_up(all, &r);
        if (r.failed && all->failures <= FAILURES_PRINTED) {
            print_report(args, &r);
            fflush(stdout);
        }
        if (all->failures >= args->failures_max) {
            break;
        }
        if (!args->quiet && !args->json && seconds_now() - said > 10) {
            said = seconds_now();
            fprintf(stderr, "%" PRIu64 " of %" PRIu64 " seeds, %" PRIu64 " failed, %.1f/s\n",
                    all->seeds, args->last - args->first + 1, all->failures,
                    (double)all->seeds / (said - start));
        }
    }
}

static int run_many(const dp_arguments *args)
{
    many self = {.args = args};
    const double start = seconds_now();
    const jobs all = {.count = args->jobs, .work = work, .collect = collect, .context = &self};
    const bool good = jobs_run(&all);
    const uint64_t wanted = args->last - args->first + 1;

    print_sums(args, &self.all, seconds_now() - start);
    if (!good || (self.all.seeds < wanted && self.all.failures < args->failures_max)) {
        printf("FAIL: a worker died\n");
        return 1;
    }
    return self.all.failures == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    dp_why why = {0};
    dp_arguments args = {.jobs = cores > 0 && cores < JOBS_MAX ? (uint32_t)cores : 1,
                         .failures_max = UINT32_MAX,
                         .program = argv[0]};

    args.options.faults = DP_FAULTS_ALL;
    args.options.trace = -1;
    if (argc > 1 && strcmp(argv[1], "--explore") == 0) {
        return dp_explore_main(argc, argv);
    }
    if (dp_arguments_read(&args, argc, argv, &why) != DP_OK) {
        fprintf(stderr, "dpsim: %s\n", why.text);
        return 64;
    }
    if (args.help) {
        dp_arguments_usage(stdout);
        return 0;
    }
    if (args.script != NULL) {
        const int status = read_script(&args);
        if (status != 0) {
            return status;
        }
    }
    if (args.options.trace >= 0) {
        printf("dpsim trace %d\n", DP_SCRIPT_VERSION);
    }
    if (args.shrink) {
        return shrink(&args);
    }
    if (args.first == args.last) {
        report r;
        run_seed(&args, args.first, &r);
        print_report(&args, &r);
        if (args.options.trace >= (int32_t)r.nodes) {
            fprintf(stderr, "dpsim: --trace %d: this world has nodes 0 to %u\n", args.options.trace,
                    r.nodes - 1);
            return 64;
        }
        return r.failed ? 1 : 0;
    }
    return run_many(&args);
}
