/* dpchaos: real daemons that train under faults on a schedule, measured, checked and compared with
 * a run without faults. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/run/run_mode.h"
#include "cli/paths.h"
#include "tests/chaos/chaos.h"

enum { SHARE_ONE = 100 };

static bool read_kinds(const dp_cmd *cmd, dp_chaos_options *options, dp_control_error *error)
{
    const char *kinds = dp_cmd_option(cmd, "kinds");
    options->kinds =
        dp_chaos_kinds_parse(kinds != NULL ? kinds : "kill,stop,worker,owner,majority");
    if (options->kinds == 0) {
        dp_error_set(error, DP_EXIT_USAGE, "E0001",
                     "--kinds kill,stop,cut,disk,worker,owner,majority,rot,backup,clock",
                     "--kinds is a list of faults", kinds);
        return false;
    }
    options->disks = (options->kinds >> DP_CHAOS_DISK & 1) != 0;
    if ((options->kinds >> DP_CHAOS_CUT & 1) != 0 && options->proxy == NULL) {
        options->proxy = "delay=0ms"; /* Cuts need dpfault. */
    }
    return true;
}

/* Reads the settings of the rounds for the run's manifest. */
static bool read_rounds(const dp_cmd *cmd, dp_chaos_options *options, dp_control_error *error)
{
    const char *mode = dp_cmd_option(cmd, "mode");
    options->mode = mode != NULL ? mode : dp_run_modes(&(size_t){0})->name;
    const dp_run_mode *const found = dp_run_mode_find(options->mode);
    options->parts =
        dp_cmd_option(cmd, "parts") != NULL ||
        (found != NULL && (found->exchange == DP_EXCHANGE_GRADIENTS || found->pairs == DP_ON));
    if (found == NULL) {
        const char *const near = dp_run_mode_near(options->mode);
        char fix[64];
        snprintf(fix, sizeof fix, "--mode %s", near != NULL ? near : "");
        dp_error_set(error, DP_EXIT_USAGE, "E0001",
                     near != NULL ? fix : "dpnode run validate --keys   # lists all modes",
                     "there is no such mode", options->mode);
        return false;
    }
    return true;
}

static bool read_options(const dp_cmd *cmd, dp_chaos_options *options, uint64_t *share,
                         dp_control_error *error)
{
    uint64_t nodes = 8;
    uint64_t kill_s = 2;
    uint64_t duration_s = 60;
    uint64_t spare = 0;
    options->down_ms = 500;
    options->round_ms = 500;
    options->seed = 1;
    *share = SHARE_ONE;
    const bool good = dp_cmd_number(cmd, "nodes", 1, DP_CHAOS_NODES_MAX, &nodes, error) &&
                      dp_cmd_seconds(cmd, "kill-every", &kill_s, error) &&
                      dp_cmd_seconds(cmd, "duration", &duration_s, error) &&
                      dp_cmd_number(cmd, "down", 0, 60 * 1000ULL, &options->down_ms, error) &&
                      dp_cmd_number(cmd, "round", 50, 60 * 1000ULL, &options->round_ms, error) &&
                      dp_cmd_number(cmd, "spare", 0, DP_CHAOS_NODES_MAX, &spare, error) &&
                      dp_cmd_number(cmd, "seed", 0, INT64_MAX, &options->seed, error) &&
                      dp_cmd_number(cmd, "control-share", 0, SHARE_ONE, share, error);
    options->nodes = (unsigned)nodes;
    options->spare = (unsigned)spare;
    options->kill_every_ms = kill_s * 1000;
    options->duration_ms = duration_s * 1000;
    options->proxy = dp_cmd_option(cmd, "proxy");
    options->chatty = !cmd->json;
    if (good && options->proxy != NULL && strpbrk(options->proxy, "\r\n") != NULL) {
        dp_error_set(error, DP_EXIT_USAGE, "E0001", "dpchaos --help",
                     "--proxy is one line of settings", "it has a line break");
        return false;
    }
    return good && read_rounds(cmd, options, error) && read_kinds(cmd, options, error);
}

/* One run, from an empty folder to its removal. */
static int run_one(dp_chaos *chaos, const dp_chaos_options *options, dp_control_error *error)
{
    int status = dp_chaos_up(chaos, options, error);
    if (status == 0) {
        status = dp_chaos_run(chaos, error);
    }
    const bool whole = status == 0 && !dp_children_interrupted();
    dp_chaos_down(chaos, whole && !dp_chaos_sound(chaos));
    return dp_children_interrupted() ? DP_EXIT_INTERRUPTED : status;
}

static int run_bench(dp_cmd *cmd)
{
    static dp_chaos chaos;
    static dp_chaos control;
    dp_chaos_options options = {0};
    dp_control_error error = {.exit = 0};
    uint64_t share = 0;
    if (!read_options(cmd, &options, &share, &error)) {
        return dp_cmd_fail(cmd, &error);
    }
    dp_chaos_options quiet = options;
    /* Then the kinds make no faults; they only set up the same disks and the same proxy. */
    quiet.kill_every_ms = 0;
    quiet.duration_ms = options.duration_ms * share / SHARE_ONE;
    int status = run_one(&chaos, &options, &error);
    if (status == 0 && quiet.duration_ms > 0) {
        status = run_one(&control, &quiet, &error);
    }
    if (status == 0) {
        dp_chaos_result result = {.options = &options,
                                  .chaos = &chaos,
                                  .control = quiet.duration_ms > 0 ? &control : NULL,
                                  .control_share = (double)share / SHARE_ONE};
        status = dp_chaos_report(cmd, &result);
        error.code[0] = '\0';
    }
    dp_chaos_book_close(&chaos.book);
    dp_chaos_book_close(&control.book);
    return status != 0 && status != DP_EXIT_INTERRUPTED && error.code[0] != '\0'
               ? dp_cmd_fail(cmd, &error)
               : status;
}

static const dp_verb chaos_verb = {
    .program = "dpchaos",
    .name = "",
    .run = run_bench,
    .arguments = "",
    .summary = "real nodes on this machine, with faults on a schedule: measured and checked",
    .examples = "  dpchaos --nodes 8 --kill-every 2s --duration 600s --seed 42\n"
                "  dpchaos -n 4 --duration 1m --proxy delay=20ms,loss=2% --json\n"
                "  dpchaos --kinds kill,stop,cut,worker --duration 5m\n"
                "  dpchaos --mode diloco --parts --duration 60s\n",
    .options = {{"nodes", 'n', "N", "how many, 1 to 32 [8]"},
                {"kill-every", 0, "TIME", "a fault so often [2s]"},
                {"kinds", 0, "LIST",
                 "of kill, stop, cut, disk, worker, owner, majority, rot, backup, clock; one is "
                 "drawn each time [kill,stop,worker,owner,majority]"},
                {"spare", 0, "N", "the first N nodes meet no fault, and live to the end [0]"},
                {"down", 0, "MS", "milliseconds until it is started again [500]"},
                {"duration", 0, "TIME", "of the faults [60s]"},
                {"round", 0, "MS", "local work per round, milliseconds [500]"},
                {"mode", 0, "NAME", "of exchanging updates: round.mode of the run [sparse]"},
                {"parts", 0, NULL,
                 "members trust each other and add up parts, as always in ddp and gossip"},
                {"proxy", 0, "RULES", "dpfault between all nodes: delay=20ms,loss=2%"},
                {"seed", 0, "N", "of the schedule and of the proxy [1]"},
                {"control-share", 0, "PERCENT", "length of the run without faults; 0: none [100]"}},
};

int main(int argc, char **argv)
{
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C"); /* Numbers must be readable for programs too. */
    dp_path_be_private();
    signal(SIGPIPE, SIG_IGN);
    return dp_cmd_program(&chaos_verb, argc, argv);
}
