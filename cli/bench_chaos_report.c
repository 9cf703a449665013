/* What a chaos run came to: the table, the object of --json, and the verdict. */
#include <stdio.h>
#include <string.h>

#include "cli/bench_chaos.h"
#include "cli/print.h"

typedef struct figures {
    double gap[3]; /* p50, p99, max; seconds, as below */
    double detect[3];
    double rejoin[3];
    double goodput;         /* committed tokens per second */
    double goodput_control; /* 0: no control */
    double goodput_ratio;
    double loss;
    double loss_control; /* at equal tokens */
    double loss_ratio;
    bool good;
} figures;

static void quantiles(dp_chaos_samples *samples, double out[3])
{
    out[0] = dp_chaos_quantile(samples, 0.5);
    out[1] = dp_chaos_quantile(samples, 0.99);
    out[2] = dp_chaos_quantile(samples, 1);
}

static double per_second(const dp_chaos *chaos)
{
    return chaos->measured_ms > 0 ? (double)chaos->book.tokens * 1000.0 / (double)chaos->measured_ms
                                  : 0;
}

static bool sound(const dp_chaos *chaos)
{
    const dp_chaos_book *book = &chaos->book;
    return book->lost == 0 && book->duplicate == 0 && book->parity_breaks == 0 &&
           book->false_detections == 0 && book->committed > 0 && book->roots > 0 &&
           chaos->died == 0 && chaos->not_rejoined == 0 && chaos->agreed;
}

static figures figures_of(const dp_chaos_result *result)
{
    dp_chaos *chaos = result->chaos;
    figures is = {.goodput = per_second(chaos), .good = sound(chaos)};
    uint64_t tokens = dp_chaos_book_tokens(&chaos->book);
    quantiles(&chaos->book.gaps, is.gap);
    quantiles(&chaos->book.detects, is.detect);
    quantiles(&chaos->book.rejoins, is.rejoin);
    if (result->control != NULL) {
        const uint64_t tokens_control = dp_chaos_book_tokens(&result->control->book);
        tokens = tokens_control < tokens ? tokens_control : tokens;
        is.goodput_control = per_second(result->control);
        is.goodput_ratio = is.goodput_control > 0 ? is.goodput / is.goodput_control : 0;
        is.loss_control = dp_chaos_book_loss(&result->control->book, tokens);
        is.good = is.good && sound(result->control);
    }
    is.loss = dp_chaos_book_loss(&chaos->book, tokens);
    is.loss_ratio = is.loss_control > 0 ? is.loss / is.loss_control : 0;
    return is;
}

static const char *first_wrong(const dp_chaos_result *result)
{
    const dp_chaos *chaos = result->chaos;
    if (chaos->book.first_wrong[0] != '\0') {
        return chaos->book.first_wrong;
    }
    if (chaos->died > 0) {
        return "a daemon ended by itself";
    }
    if (chaos->not_rejoined > 0) {
        return "a node was not counted again";
    }
    if (!chaos->agreed) {
        return "the nodes did not come to one state";
    }
    return result->control != NULL && !sound(result->control) ? "the control went wrong"
                                                              : "nothing was committed";
}

/* Goals of the project that this run misses, as words; "" for none. They do not change the exit status. */
static void missed_goals(const dp_chaos_result *result, const figures *is, char *text, size_t size)
{
    const struct {
        bool missed;
        const char *name;
    } goals[] = {
        {is->gap[2] > 5, "gap_max<=5s"},
        {is->gap[1] > 2, "gap_p99<=2s"},
        {is->detect[0] > 1, "detect_p50<=1s"},
        {is->detect[1] > 3, "detect_p99<=3s"},
        {result->control != NULL && is->goodput_ratio < 0.7, "goodput>=0.7"},
        {result->control != NULL && (is->loss_ratio > 1.01 || is->loss_ratio <= 0), "loss<=1.01"},
    };
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof goals / sizeof goals[0]; i++) {
        if (goals[i].missed && used < size) {
            const int more =
                snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", goals[i].name);
            used += more > 0 ? (size_t)more : 0;
        }
    }
}

static int print_json(const dp_chaos_result *result, const figures *is, const char *missed)
{
    const dp_chaos *chaos = result->chaos;
    const dp_chaos_book *book = &chaos->book;
    const dp_chaos_options *options = result->options;
    json_t *out = json_pack(
        "{s:I,s:i,s:f,s:f,s:f,s:I,s:I,s:I,s:I,s:I,s:b}", "seed", (json_int_t)options->seed, "nodes",
        (int)options->nodes, "kill_every_s", (double)options->kill_every_ms / 1000.0, "duration_s",
        (double)chaos->measured_ms / 1000.0, "control_share", result->control_share, "kills",
        (json_int_t)book->kills, "committed", (json_int_t)book->committed, "gossip",
        (json_int_t)book->gossip, "lost", (json_int_t)book->lost, "duplicate",
        (json_int_t)book->duplicate, "parity_ok", book->parity_breaks == 0 && book->roots > 0);
    json_t *times = json_pack(
        "{s:I,s:f,s:f,s:f,s:f,s:f,s:I,s:I,s:I,s:f,s:f,s:I,s:I,s:i}", "states_compared",
        (json_int_t)book->roots, "gap_p50_s", is->gap[0], "gap_p99_s", is->gap[1], "gap_max_s",
        is->gap[2], "detect_p50_s", is->detect[0], "detect_p99_s", is->detect[1], "detections",
        (json_int_t)book->detects.count, "false_detections", (json_int_t)book->false_detections,
        "false_suspicions", (json_int_t)book->false_suspicions, "rejoin_p50_s", is->rejoin[0],
        "rejoin_p99_s", is->rejoin[1], "rejoined", (json_int_t)book->rejoined, "killed_before",
        (json_int_t)book->killed_before, "not_rejoined", (int)chaos->not_rejoined);
    json_t *sums = json_pack(
        "{s:f,s:f,s:f,s:f,s:f,s:f,s:I,s:I,s:i,s:s*,s:s,s:s,s:s}", "tokens_per_s", is->goodput,
        "tokens_per_s_control", is->goodput_control, "goodput_ratio", is->goodput_ratio, "loss",
        is->loss, "loss_control", is->loss_control, "loss_ratio", is->loss_ratio, "rss_max_bytes",
        (json_int_t)chaos->rss_max, "fds_max", (json_int_t)chaos->fds_max, "died", (int)chaos->died,
        "proxy", options->proxy, "goals_missed", missed, "first_wrong",
        is->good ? "" : first_wrong(result), "verdict", is->good ? "PASS" : "FAIL");
    if (out == NULL || times == NULL || sums == NULL || json_object_update(out, times) != 0 ||
        json_object_update(out, sums) != 0) {
        json_decref(out);
        out = NULL;
    }
    json_decref(times);
    json_decref(sums);
    return dp_cmd_print(out);
}

static void print_control(const dp_chaos_result *result, const figures *is)
{
    if (result->control == NULL) {
        printf("goodput    tokens/s %.0f; no control was run\n", is->goodput);
        return;
    }
    printf(
        "goodput    tokens/s %.0f vs %.0f fault-free = %.1f%%   loss %.4f vs %.4f at equal tokens "
        "(%+.2f%%)\n",
        is->goodput, is->goodput_control, 100 * is->goodput_ratio, is->loss, is->loss_control,
        100 * (is->loss_ratio - 1));
    printf("control    %.1f s without faults, %.2f of the length; %llu rounds\n",
           (double)result->control->measured_ms / 1000.0, result->control_share,
           (unsigned long long)result->control->book.committed);
}

static int print_table(const dp_chaos_result *result, const figures *is, const char *missed)
{
    const dp_chaos *chaos = result->chaos;
    const dp_chaos_book *book = &chaos->book;
    const dp_chaos_options *options = result->options;
    char rss[DP_PRINT_CELL_MAX];
    dp_print_bytes(chaos->rss_max, rss);
    printf("chaos      seed=%llu nodes=%u round=%.2fs proxy=%s dur=%.1fs down=%.2fs\n",
           (unsigned long long)options->seed, options->nodes, (double)options->round_ms / 1000.0,
           options->proxy != NULL ? options->proxy : "none", (double)chaos->measured_ms / 1000.0,
           (double)options->down_ms / 1000.0);
    printf("faults     kill9=%llu   every %.2f s\n", (unsigned long long)book->kills,
           (double)options->kill_every_ms / 1000.0);
    printf("rounds     committed=%llu gossip-exchanges=%llu LOST=%llu duplicate=%llu\n",
           (unsigned long long)book->committed, (unsigned long long)book->gossip,
           (unsigned long long)book->lost, (unsigned long long)book->duplicate);
    printf("gap        p50 %.2fs p99 %.2fs max %.2fs\n", is->gap[0], is->gap[1], is->gap[2]);
    printf("detect     p50 %.2fs p99 %.2fs max %.2fs (%u by survivors)  false=%llu "
           "false-suspicions=%llu\n",
           is->detect[0], is->detect[1], is->detect[2], book->detects.count,
           (unsigned long long)book->false_detections, (unsigned long long)book->false_suspicions);
    printf("rejoin     p50 %.2fs p99 %.2fs max %.2fs (%llu/%llu; %llu killed again before, %u "
           "never)\n",
           is->rejoin[0], is->rejoin[1], is->rejoin[2], (unsigned long long)book->rejoined,
           (unsigned long long)book->kills, (unsigned long long)book->killed_before,
           chaos->not_rejoined);
    print_control(result, is);
    printf("parity     %s, %llu states of %llu rounds compared; one state at the end: %s\n",
           book->parity_breaks == 0 ? "ok" : "BROKEN", (unsigned long long)book->roots,
           (unsigned long long)book->last_round, chaos->agreed ? "yes" : "NO");
    printf("resources  rss max %s  fds max %llu (daemons)  died by themselves: %u\n", rss,
           (unsigned long long)chaos->fds_max, chaos->died);
    printf("goals      %s%s\n", missed[0] == '\0' ? "all met" : "missed: ", missed);
    printf("VERDICT    %s%s%s\n", is->good ? "PASS" : "FAIL", is->good ? "" : ": ",
           is->good ? "" : first_wrong(result));
    return fflush(stdout) == 0 ? 0 : DP_EXIT_IO;
}

int dp_chaos_report(const dp_cmd *cmd, dp_chaos_result *result)
{
    char missed[200];
    const figures is = figures_of(result);
    missed_goals(result, &is, missed, sizeof missed);
    const int status =
        cmd->json ? print_json(result, &is, missed) : print_table(result, &is, missed);
    return status != 0 ? status : is.good ? 0 : DP_EXIT_NEGATIVE;
}
