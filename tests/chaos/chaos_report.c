/* The results of a chaos run: the table, the object of --json, and the verdict. */
#include <stdio.h>
#include <string.h>

#include "cli/print.h"
#include "tests/chaos/chaos.h"

typedef struct figures {
    double gap[3]; /* p50, p99, max; seconds, as below */
    double detect[3];
    double detect_stop[3];
    double rejoin[3];
    double rejoin_other[3];
    double round; /* a normal one: p50 of the control, or of gaps without a fault */
    double kill_round[3];
    double kill_ratio; /* 0: no such round */
    double stop_round[3];
    double goodput;         /* committed tokens per second */
    double goodput_control; /* 0: no control */
    double goodput_ratio;
    double loss;
    double loss_control; /* at equal tokens */
    double loss_ratio;
    bool has_slope;
    double rss_slope; /* MiB per hour */
    double fds_slope; /* per hour */
    bool good;
} figures;

static void quantiles(dp_chaos_samples *samples, double out[3])
{
    out[0] = dp_chaos_quantile(samples, 0.5);
    out[1] = dp_chaos_quantile(samples, 0.99);
    out[2] = dp_chaos_quantile(samples, 1);
}

/* During the time with a majority of the nodes. */
static double per_second(const dp_chaos *chaos)
{
    const uint64_t away_ms = chaos->book.outage_ms;
    return chaos->measured_ms > away_ms
               ? (double)chaos->book.tokens * 1000.0 / (double)(chaos->measured_ms - away_ms)
               : 0;
}

static bool stood_still(const dp_chaos *chaos)
{
    const dp_chaos_samples *gaps = &chaos->book.gaps;
    for (uint32_t i = 0; i < gaps->count; i++) {
        if (gaps->values[i] * 1000 > DP_CHAOS_GAP_MS_MAX) {
            return true;
        }
    }
    return false;
}

bool dp_chaos_sound(const dp_chaos *chaos)
{
    const dp_chaos_book *book = &chaos->book;
    return book->lost == 0 && book->duplicate == 0 && book->parity_breaks == 0 &&
           book->false_detections == 0 && book->committed > 0 && book->roots > 0 &&
           chaos->died == 0 && book->trainers_died == 0 && chaos->not_rejoined == 0 &&
           chaos->agreed && chaos->findings == 0 && chaos->audited == chaos->options->nodes &&
           chaos->store_max <= DP_CHAOS_STORE_BYTES && !stood_still(chaos);
}

static figures figures_of(const dp_chaos_result *result)
{
    dp_chaos *chaos = result->chaos;
    figures is = {.goodput = per_second(chaos), .good = dp_chaos_sound(chaos)};
    uint64_t tokens = dp_chaos_book_tokens(&chaos->book);
    quantiles(&chaos->book.gaps, is.gap);
    quantiles(&chaos->book.detects, is.detect);
    quantiles(&chaos->book.detects_stop, is.detect_stop);
    quantiles(&chaos->book.rejoins, is.rejoin);
    quantiles(&chaos->book.rejoins_other, is.rejoin_other);
    quantiles(&chaos->book.gaps_by[DP_CHAOS_GAP_KILL], is.kill_round);
    quantiles(&chaos->book.gaps_by[DP_CHAOS_GAP_STOP], is.stop_round);
    is.round = dp_chaos_quantile(result->control != NULL ? &result->control->book.gaps
                                                         : &chaos->book.gaps_by[DP_CHAOS_GAP_CLEAN],
                                 0.5);
    is.kill_ratio = is.round > 0 ? is.kill_round[0] / is.round : 0;
    is.has_slope = dp_chaos_slope_tell(&chaos->slope, &is.rss_slope, &is.fds_slope);
    if (result->control != NULL) {
        const uint64_t tokens_control = dp_chaos_book_tokens(&result->control->book);
        tokens = tokens_control < tokens ? tokens_control : tokens;
        is.goodput_control = per_second(result->control);
        is.goodput_ratio = is.goodput_control > 0 ? is.goodput / is.goodput_control : 0;
        is.loss_control = dp_chaos_book_loss(&result->control->book, tokens);
        is.good = is.good && dp_chaos_sound(result->control);
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
    if (chaos->finding[0] != '\0') {
        return chaos->finding;
    }
    if (stood_still(chaos)) {
        return "no round came for a minute";
    }
    if (chaos->store_max > DP_CHAOS_STORE_BYTES) {
        return "a store is larger than its quota";
    }
    if (!chaos->agreed) {
        return "the nodes did not come to one state";
    }
    return result->control != NULL && !dp_chaos_sound(result->control) ? "the control went wrong"
                                                                       : "nothing was committed";
}

/* Goals of the project that this run misses, as text; "" for none. */
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
        {is->detect_stop[0] > 1, "detect_stop_p50<=1s"},
        {is->detect_stop[1] > 3, "detect_stop_p99<=3s"},
        {result->chaos->book.unnoticed > 0, "stops_unnoticed=0"},
        {is->kill_ratio > 1.3, "kill_round_ratio<=1.3"},
        {is->stop_round[1] > 1.5 * is->round + 2, "stop_round<=1.5x+2s"},
        {is->has_slope && is->rss_slope > 1, "rss_slope<1MiB/h"},
        {is->has_slope && is->fds_slope > 1, "fds_slope=0"},
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

static void put_int(json_t *out, const char *key, uint64_t value)
{
    DP_IGNORE(json_object_set_new(out, key, json_integer((json_int_t)value)) != 0);
}

/* A key that could not be set is missing, because memory is exhausted. */
static void put_real(json_t *out, const char *key, double value)
{
    DP_IGNORE(json_object_set_new(out, key, json_real(value)) != 0);
}

static void put_text(json_t *out, const char *key, const char *value)
{
    DP_IGNORE(json_object_set_new(out, key, json_string(value)) != 0);
}

/* KEY_p50_s, KEY_p99_s, KEY_max_s */
static void put_times(json_t *out, const char *key, const double times[3])
{
    static const char *const ends[3] = {"p50_s", "p99_s", "max_s"};
    for (size_t i = 0; i < 3; i++) {
        char name[48];
        snprintf(name, sizeof name, "%s_%s", key, ends[i]);
        put_real(out, name, times[i]);
    }
}

static void put_faults(json_t *out, const dp_chaos_book *book)
{
    static const char *const keys[DP_CHAOS_KINDS] = {"kills",   "stops",  "cuts",       "disks",
                                                     "workers", "owners", "majorities", "rots",
                                                     "backups", "clocks"};
    for (size_t i = 0; i < DP_CHAOS_KINDS; i++) {
        put_int(out, keys[i], book->faults[i]);
    }
    put_int(out, "committed", book->committed);
    put_int(out, "gossip", book->gossip);
    put_int(out, "lost", book->lost);
    put_int(out, "duplicate", book->duplicate);
    DP_IGNORE(json_object_set_new(out, "parity_ok",
                                  json_boolean(book->parity_breaks == 0 && book->roots > 0)) != 0);
    put_int(out, "states_compared", book->roots);
    put_int(out, "detections", book->detects.count);
    put_int(out, "detections_stop", book->detects_stop.count);
    put_int(out, "stops_unnoticed", book->unnoticed);
    put_int(out, "false_detections", book->false_detections);
    put_int(out, "false_suspicions", book->false_suspicions);
    put_int(out, "rejoined", book->rejoined);
    put_int(out, "killed_before", book->killed_before);
    put_text(out, "slowest_rejoin_after", dp_chaos_kind_name(book->slowest));
}

static void put_figures(json_t *out, const figures *is)
{
    put_times(out, "gap", is->gap);
    put_times(out, "detect", is->detect);
    put_times(out, "detect_stop", is->detect_stop);
    put_times(out, "rejoin", is->rejoin);
    put_times(out, "rejoin_other", is->rejoin_other);
    put_real(out, "round_s", is->round);
    put_times(out, "kill_round", is->kill_round);
    put_real(out, "kill_round_ratio", is->kill_ratio);
    put_times(out, "stop_round", is->stop_round);
    put_real(out, "tokens_per_s", is->goodput);
    put_real(out, "tokens_per_s_control", is->goodput_control);
    put_real(out, "goodput_ratio", is->goodput_ratio);
    put_real(out, "loss", is->loss);
    put_real(out, "loss_control", is->loss_control);
    put_real(out, "loss_ratio", is->loss_ratio);
    if (is->has_slope) {
        put_real(out, "rss_slope_mib_h", is->rss_slope);
        put_real(out, "fds_slope", is->fds_slope);
    } else {
        DP_IGNORE(json_object_set_new(out, "rss_slope_mib_h", json_null()) != 0);
        DP_IGNORE(json_object_set_new(out, "fds_slope", json_null()) != 0);
    }
}

/* FAIL: a round was lost or wrong, or the run stopped. MISSED: all is correct, but slower or larger
 * than a goal of the project. */
static const char *verdict(const figures *is, const char *missed)
{
    return !is->good ? "FAIL" : missed[0] != '\0' ? "MISSED" : "PASS";
}

static int print_json(const dp_chaos_result *result, const figures *is, const char *missed)
{
    const dp_chaos *chaos = result->chaos;
    const dp_chaos_options *options = result->options;
    json_t *out = json_object();
    put_int(out, "seed", options->seed);
    put_int(out, "nodes", options->nodes);
    put_text(out, "mode", options->mode);
    DP_IGNORE(json_object_set_new(out, "parts", json_boolean(options->parts)) != 0);
    put_real(out, "kill_every_s", (double)options->kill_every_ms / 1000.0);
    put_real(out, "duration_s", (double)chaos->measured_ms / 1000.0);
    put_real(out, "control_share", result->control_share);
    put_faults(out, &chaos->book);
    put_figures(out, is);
    put_int(out, "not_rejoined", chaos->not_rejoined);
    put_int(out, "died", chaos->died);
    put_int(out, "trainers_died", chaos->book.trainers_died);
    put_int(out, "audited", chaos->audited);
    put_int(out, "audit_findings", chaos->findings);
    put_real(out, "outage_s", (double)chaos->book.outage_ms / 1000.0);
    put_int(out, "rss_max_bytes", chaos->rss_max);
    put_int(out, "fds_max", chaos->fds_max);
    put_int(out, "store_max_bytes", chaos->store_max);
    put_int(out, "store_quota_bytes", DP_CHAOS_STORE_BYTES);
    if (options->proxy != NULL) {
        put_text(out, "proxy", options->proxy);
    }
    put_text(out, "goals_missed", missed);
    put_text(out, "first_wrong", is->good ? "" : first_wrong(result));
    if (chaos->kept[0] != '\0') {
        put_text(out, "kept", chaos->kept);
    }
    put_text(out, "verdict", verdict(is, missed));
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

static void print_detection(const dp_chaos_book *book, const figures *is)
{
    printf(
        "detect     killed p50 %.2fs p99 %.2fs max %.2fs (%u by survivors); frozen p50 %.2fs p99 "
        "%.2fs max %.2fs (%u; %llu not)  false=%llu false-suspicions=%llu\n",
        is->detect[0], is->detect[1], is->detect[2], book->detects.count, is->detect_stop[0],
        is->detect_stop[1], is->detect_stop[2], book->detects_stop.count,
        (unsigned long long)book->unnoticed, (unsigned long long)book->false_detections,
        (unsigned long long)book->false_suspicions);
}

static void print_resources(const dp_chaos *chaos, const figures *is)
{
    char rss[DP_PRINT_CELL_MAX];
    char store[DP_PRINT_CELL_MAX];
    char quota[DP_PRINT_CELL_MAX];
    char slope[64] = "too short a life to tell";
    dp_print_bytes(chaos->rss_max, rss);
    dp_print_bytes(chaos->store_max, store);
    dp_print_bytes(DP_CHAOS_STORE_BYTES, quota);
    if (is->has_slope) {
        snprintf(slope, sizeof slope, "rss %+.2f MiB/h, fds %+.2f/h", is->rss_slope, is->fds_slope);
    }
    printf("resources  rss max %s  fds max %llu (daemons)  slopes: %s  store %s of %s  died by "
           "themselves: %u\n",
           rss, (unsigned long long)chaos->fds_max, slope, store, quota, chaos->died);
}

static int print_table(const dp_chaos_result *result, const figures *is, const char *missed)
{
    const dp_chaos *chaos = result->chaos;
    const dp_chaos_book *book = &chaos->book;
    const dp_chaos_options *options = result->options;
    printf("chaos      seed=%llu nodes=%u mode=%s%s round=%.2fs proxy=%s dur=%.1fs down=%.2fs\n",
           (unsigned long long)options->seed, options->nodes, options->mode,
           options->parts ? ", parts" : "", (double)options->round_ms / 1000.0,
           options->proxy != NULL ? options->proxy : "none", (double)chaos->measured_ms / 1000.0,
           (double)options->down_ms / 1000.0);
    printf("faults    ");
    for (unsigned i = 0; i < DP_CHAOS_KINDS; i++) {
        printf(" %s=%llu", dp_chaos_kind_name((dp_chaos_kind)i),
               (unsigned long long)book->faults[i]);
    }
    printf("   every %.2f s\n", (double)options->kill_every_ms / 1000.0);
    printf("rounds     committed=%llu gossip-exchanges=%llu LOST=%llu duplicate=%llu\n",
           (unsigned long long)book->committed, (unsigned long long)book->gossip,
           (unsigned long long)book->lost, (unsigned long long)book->duplicate);
    printf("gap        p50 %.2fs p99 %.2fs max %.2fs\n", is->gap[0], is->gap[1], is->gap[2]);
    printf("round      %.2fs; with a kill p50 %.2fs (%.2fx) p99 %.2fs; with a stop p50 %.2fs p99 "
           "%.2fs\n",
           is->round, is->kill_round[0], is->kill_ratio, is->kill_round[1], is->stop_round[0],
           is->stop_round[1]);
    print_detection(book, is);
    printf(
        "rejoin     p50 %.2fs p99 %.2fs max %.2fs; other than killed p50 %.2fs p99 %.2fs; slowest "
        "%.2fs after %s (%llu in all; %llu met another fault before, %u never)\n",
        is->rejoin[0], is->rejoin[1], is->rejoin[2], is->rejoin_other[0], is->rejoin_other[1],
        (double)book->slowest_ms / 1000.0, dp_chaos_kind_name(book->slowest),
        (unsigned long long)book->rejoined, (unsigned long long)book->killed_before,
        chaos->not_rejoined);
    print_control(result, is);
    printf("parity     %s, %llu states of %llu rounds compared; one state at the end: %s\n",
           book->parity_breaks == 0 ? "ok" : "BROKEN", (unsigned long long)book->roots,
           (unsigned long long)book->last_round, chaos->agreed ? "yes" : "NO");
    print_resources(chaos, is);
    printf("goals      %s%s\n", missed[0] == '\0' ? "all met" : "missed: ", missed);
    printf(
        "audit      %u of %u chains judged, %u findings%s%s; trainers that died unprovoked: %llu\n",
        chaos->audited, options->nodes, chaos->findings, chaos->findings > 0 ? ": " : "",
        chaos->finding, (unsigned long long)book->trainers_died);
    printf("VERDICT    %s%s%s\n", verdict(is, missed), is->good ? "" : ": ",
           is->good ? "" : first_wrong(result));
    if (chaos->kept[0] != '\0') {
        printf("kept       logs and stores of the nodes: %s\n", chaos->kept);
    }
    return fflush(stdout) == 0 ? 0 : DP_EXIT_IO;
}

int dp_chaos_report(const dp_cmd *cmd, dp_chaos_result *result)
{
    char missed[400];
    const figures is = figures_of(result);
    missed_goals(result, &is, missed, sizeof missed);
    const int status =
        cmd->json ? print_json(result, &is, missed) : print_table(result, &is, missed);
    return status != 0 ? status : is.good && missed[0] == '\0' ? 0 : DP_EXIT_NEGATIVE;
}
