/* wait: returns when the run has come so far, for scripts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/client.h"
#include "cli/json.h"
#include "cli/print.h"
#include "cli/watch/question.h"

enum { ASK_EVERY_MS = 250 };

/* The conditions; all that are given must hold at once. */
typedef struct goals {
    uint64_t round; /* 0: any */
    uint64_t peers; /* 0: any */
    double loss;    /* 0: any */
    uint64_t seconds;
} goals;

static uint64_t now_ms(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool refuse(dp_control_error *error, const char *what, const char *why)
{
    dp_error_set(error, DP_EXIT_USAGE, "E0001", "dpnode wait --help", what, why);
    return false;
}

static bool read_loss(const dp_cmd *cmd, double *loss, dp_control_error *error)
{
    const char *const text = dp_cmd_option(cmd, "loss");
    char *end = NULL;
    if (text == NULL) {
        return true;
    }
    *loss = strtod(text, &end);
    return (end != text && *end == '\0' && isfinite(*loss) && *loss > 0) ||
           refuse(error, "--loss must be a number above 0", text);
}

static bool read_goals(const dp_cmd *cmd, goals *out, dp_control_error *error)
{
    if (!dp_cmd_number(cmd, "round", 1, UINT32_MAX, &out->round, error) ||
        !dp_cmd_number(cmd, "peers", 1, UINT16_MAX, &out->peers, error) ||
        !dp_cmd_seconds(cmd, "timeout", &out->seconds, error) ||
        !read_loss(cmd, &out->loss, error)) {
        return false;
    }
    return out->round > 0 || out->peers > 0 || out->loss > 0 ||
           refuse(error, "nothing to wait for is given", "give --round, --loss or --peers");
}

/* A value that is not known yet is 0. */
static bool is_reached(const goals *wanted, const json_t *run)
{
    const double loss = dp_json_real(run, "loss", 0);
    return (uint64_t)dp_json_int(run, "round", 0) >= wanted->round &&
           (uint64_t)dp_json_int(run, "alive", 0) >= wanted->peers &&
           (wanted->loss <= 0 || (loss > 0 && loss <= wanted->loss));
}

static void describe(const json_t *run, char *text, size_t size)
{
    char loss[DP_PRINT_CELL_MAX] = "unknown";
    if (dp_json_real(run, "loss", 0) > 0) {
        snprintf(loss, sizeof loss, "%.3f", dp_json_real(run, "loss", 0));
    }
    const long long alive = dp_json_int(run, "alive", 0);
    snprintf(text, size, "round %lld, %lld node%s alive, loss %s", dp_json_int(run, "round", 0),
             alive, alive == 1 ? "" : "s", loss);
}

static int tell_reached(const dp_cmd *cmd, const json_t *run, uint64_t waited_ms)
{
    char text[2 * DP_PRINT_CELL_MAX];
    if (cmd->json) {
        return dp_cmd_print(
            json_pack("{s:s,s:I,s:I,s:O*,s:I}", "run", dp_json_text(run, "name", "?"), "round",
                      (json_int_t)dp_json_int(run, "round", 0), "alive",
                      (json_int_t)dp_json_int(run, "alive", 0), "loss",
                      json_object_get(run, "loss"), "waited_ms", (json_int_t)waited_ms));
    }
    describe(run, text, sizeof text);
    printf("%s %s: %s\n", dp_print_mark(true), dp_json_text(run, "name", "?"), text);
    return 0;
}

static int tell_late(const dp_cmd *cmd, const char *why)
{
    dp_control_error error;
    dp_error_set(&error, DP_EXIT_TEMPORARY, "E0129", "dpnode why   # explains its state",
                 "the run has not come so far in time", why);
    return dp_cmd_fail(cmd, &error);
}

static int fail_late(const dp_cmd *cmd, const json_t *status, uint64_t seconds)
{
    char text[2 * DP_PRINT_CELL_MAX];
    char why[512];
    const json_t *const problem = json_object_get(status, "problem");
    describe(json_object_get(status, "run"), text, sizeof text);
    snprintf(why, sizeof why, "after %llu s: %s; this node is %s%s%s%s%s",
             (unsigned long long)seconds, text, dp_json_text(status, "state", "?"),
             problem != NULL ? "; " : "", dp_json_text(problem, "code", ""),
             problem != NULL ? " " : "", dp_json_text(problem, "what", ""));
    return tell_late(cmd, why);
}

/* No run, and no token or manifest by which the daemon tries to get into one. */
static int fail_idle(const dp_cmd *cmd)
{
    dp_control_error error;
    dp_error_set(&error, DP_EXIT_UNAVAILABLE, "E0110",
                 "dpnode join TOKEN   # or create a run: dpnode run create --demo kjv",
                 "this node has no run", "the daemon is idle");
    return dp_cmd_fail(cmd, &error);
}

/* Milliseconds that an answer may take: the rest of the time and one more, so that the clock shows
 * its end. 0: no bound. */
static uint32_t rest_ms(const goals *wanted, uint64_t waited_ms)
{
    const uint64_t most = wanted->seconds * 1000 + 1;
    const uint64_t rest = most > waited_ms ? most - waited_ms : 1;
    return wanted->seconds == 0 ? 0 : rest < UINT32_MAX ? (uint32_t)rest : UINT32_MAX;
}

static bool is_late(const goals *wanted, uint64_t waited_ms)
{
    return wanted->seconds > 0 && waited_ms >= wanted->seconds * 1000;
}

static int run_wait(dp_cmd *cmd)
{
    const struct timespec pause = {.tv_nsec = ASK_EVERY_MS * 1000000L};
    const uint64_t began_ms = now_ms();
    goals wanted = {0};
    dp_control_error error;
    if (!read_goals(cmd, &wanted, &error)) {
        return dp_cmd_fail(cmd, &error);
    }
    for (;;) {
        json_t *status = NULL;
        const uint32_t most_ms = rest_ms(&wanted, now_ms() - began_ms);
        if (dp_question_ask(cmd->socket, most_ms, &(dp_question){.method = "status"}, &status,
                            &error) != 0) {
            return strcmp(error.code, "E0103") == 0 && is_late(&wanted, now_ms() - began_ms)
                       ? tell_late(cmd, "the daemon gives no answer: it is busy, or it hangs")
                       : dp_cmd_fail(cmd, &error);
        }
        const json_t *const run = json_object_get(status, "run");
        const uint64_t waited_ms = now_ms() - began_ms;
        const bool idle = run == NULL && json_object_get(status, "problem") == NULL &&
                          dp_json_flag(status, "trying") == 0;
        const bool reached = run != NULL && is_reached(&wanted, run);
        const bool late = is_late(&wanted, waited_ms);
        const int result = reached ? tell_reached(cmd, run, waited_ms)
                           : idle  ? fail_idle(cmd)
                           : late  ? fail_late(cmd, status, wanted.seconds)
                                   : -1;
        json_decref(status);
        if (result >= 0) {
            return result;
        }
        nanosleep(&pause, NULL);
    }
}

const dp_verb dp_verb_wait = {
    .name = "wait",
    .run = run_wait,
    .arguments = "",
    .summary = "wait until the run has come so far",
    .examples = "  dpnode wait --peers 3 --timeout 5m && echo all are here\n"
                "  dpnode wait --round 100\n  dpnode wait --loss 3.2 --timeout 12h\n",
    .options = {{"round", 0, "N", "until round N is decided"},
                {"loss", 0, "X", "until the loss that dpnode status shows is at most X"},
                {"peers", 0, "N", "until N nodes are alive, this one included"},
                {"timeout", 0, "TIME", "give up after so long: 90s, 15m, 24h [never]"}},
};
