#include "cli/web/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"

enum {
    LINE_MAX = 768,
    LABELS_MAX = 512,
    ESCAPED_MAX = 2 * DP_METRICS_LABEL_MAX + 1,
    RUN_LABEL_MAX = ESCAPED_MAX + 8
};

typedef enum kind { GAUGE, COUNTER } kind;

/* A value of the reply: times factor, in a family with an optional label. Rows of one family follow
 * each other; the first of them has its help. */
typedef struct row {
    const char *family;
    const char *label; /* "direction=\"sent\"", or NULL */
    const char *key;
    const char *help;
    double factor;
    kind kind;
} row;

/* Of the reply itself. */
static const row node_rows[] = {
    {"uptime_seconds", NULL, "uptime_s", "Since the daemon was started.", 1, GAUGE},
    {"resident_memory_bytes", NULL, "rss_bytes", "Of the daemon, without its trainer.", 1, GAUGE},
    {"log_dropped_total", NULL, "log_dropped", "Lines of the log that were not written.", 1,
     COUNTER},
};

/* Of its run. */
static const row run_rows[] = {
    {"round", NULL, "round", "Newest round of the chain here.", 1, GAUGE},
    {"round_applied", NULL, "applied", "Newest round in the trainer's model.", 1, GAUGE},
    {"round_target_seconds", NULL, "round_ms", "How long a round is to take.", 1e-3, GAUGE},
    {"tokens_total", NULL, "tokens", "Tokens in the chain, of all nodes.", 1, COUNTER},
    {"loss_nats", NULL, "loss", "Mean loss of the newest round, per token.", 1, GAUGE},
    {"parameters", NULL, "elements", "Numbers in the model.", 1, GAUGE},
    {"members", NULL, "members", "Members of the run.", 1, GAUGE},
    {"members_alive", NULL, "alive", "Nodes that are alive as seen from here.", 1, GAUGE},
    {"voters", NULL, "voters", "Members that vote.", 1, GAUGE},
    {"listed", NULL, "listed", "Contributors of the newest round.", 1, GAUGE},
    {"voter", NULL, "is_voter", "1: this node votes.", 1, GAUGE},
    {"quorum", NULL, "quorum", "1: a majority of the voters is reachable.", 1, GAUGE},
    {"refused", NULL, "refused", "1: every address that is reached closes the connection.", 1,
     GAUGE},
    {"trains", NULL, "trains", "1: the trainer is told to train.", 1, GAUGE},
    {"trainer_restarts_total", NULL, "trainer_restarts", "Times the trainer was started again.", 1,
     COUNTER},
    {"tokens_per_second", NULL, "tokens_per_s", "Speed of this node.", 1, GAUGE},
    {"compute_ratio", NULL, "compute_utilisation", "Share of the time that the trainer computes.",
     1, GAUGE},
    {"rounds_counted_total", NULL, "counted", "Rounds of the chain that list this node.", 1,
     COUNTER},
    {"update_keep", NULL, "keep", "One element of so many is sent.", 1, GAUGE},
    {"update_error_ratio", NULL, "update_error",
     "Share of the last update that waits for a later one.", 1, GAUGE},
    {"exchanges_total", NULL, "exchanges", "Exchanges in pairs.", 1, COUNTER},
    {"messages_rejected_total", NULL, "rejected", "Messages of peers that were not valid.", 1,
     COUNTER},
    {"diverged_total", NULL, "diverged", "Times this node's model differed from the certified one.",
     1, COUNTER},
    {"rounds_decided_total", "members=\"all\"", "rounds_all",
     "Rounds since the daemon's start: with all members that were expected, or without some.", 1,
     COUNTER},
    {"rounds_decided_total", "members=\"some\"", "rounds_some", NULL, 1, COUNTER},
    {"checkpoint_round", NULL, "checkpoint_round", "Round of the newest checkpoint here.", 1,
     GAUGE},
    {"data_objects", NULL, "data_objects", "Tokenizer, shards and first weights of the run.", 1,
     GAUGE},
    {"data_objects_here", NULL, "data_here", "Those of them on this node.", 1, GAUGE},
    {"bytes_total", "direction=\"sent\"", "bytes_sent", "Bytes of links to peers.", 1, COUNTER},
    {"bytes_total", "direction=\"received\"", "bytes_received", NULL, 1, COUNTER},
    {"limit_bytes_per_second", "direction=\"sent\"", "upload_max",
     "The owner's limit, where one holds.", 1, GAUGE},
    {"limit_bytes_per_second", "direction=\"received\"", "download_max", NULL, 1, GAUGE},
    {"limited_seconds_total", "direction=\"sent\"", "upload_held_ms",
     "Time that objects waited for the limit.", 1e-3, COUNTER},
    {"limited_seconds_total", "direction=\"received\"", "download_held_ms", NULL, 1e-3, COUNTER},
    {"month_bytes", "direction=\"sent\"", "upload_month_used", "Of this month.", 1, GAUGE},
    {"month_bytes", "direction=\"received\"", "download_month_used", NULL, 1, GAUGE},
    {"month_limit_bytes", "direction=\"sent\"", "upload_month", "Allowed in a month.", 1, GAUGE},
    {"month_limit_bytes", "direction=\"received\"", "download_month", NULL, 1, GAUGE},
    {"links", NULL, "links", "Open links to peers.", 1, GAUGE},
    {"handshakes_failed_total", NULL, "handshakes_failed", "Links that were not opened.", 1,
     COUNTER},
    {"accepts_refused_total", NULL, "accepts_refused", "Connections that found no place.", 1,
     COUNTER},
    {"held_bytes", NULL, "held", "Memory for messages of peers.", 1, GAUGE},
    {"held_limit_bytes", NULL, "held_max", "Budget of it.", 1, GAUGE},
    {"chunks_total", NULL, "chunks", "Chunks of objects that came.", 1, COUNTER},
    {"chunks_hedged_total", NULL, "chunks_hedged",
     "Chunks that a second holder was asked for, since the first was late.", 1, COUNTER},
};

/* Of machine; heat and power are null where no sensor was read in the last minute. */
static const row machine_rows[] = {
    {"device_temperature_celsius", NULL, "celsius", "Of the device that computes.", 1, GAUGE},
    {"device_power_watts", NULL, "watts", "Of the device that computes.", 1, GAUGE},
    {"machine_load", NULL, "load", "Load of the machine over the last minute.", 1, GAUGE},
};

/* Of run.held_out, once this node has measured it. */
static const row held_out_rows[] = {
    {"held_out_loss_nats", NULL, "loss", "Loss on held-out text, as this node measured it last.", 1,
     GAUGE},
    {"held_out_bits_per_byte", NULL, "bits_per_byte", "The same, of its text.", 1, GAUGE},
    {"held_out_round", NULL, "round", "Round of the model that was measured.", 1, GAUGE},
};

/* Of run.phases: of the newest round that is applied here. */
static const row phase_rows[] = {
    {"round_phase_seconds", "phase=\"compute\"", "compute_ms",
     "Last round: steps until this node published, then updates on their way, then the vote.", 1e-3,
     GAUGE},
    {"round_phase_seconds", "phase=\"transfer\"", "transfer_ms", NULL, 1e-3, GAUGE},
    {"round_phase_seconds", "phase=\"wait\"", "wait_ms", NULL, 1e-3, GAUGE},
};

/* Of run.trainer_ms: a family of its own. */
static const char *const phases[] = {"computed", "data", "publish", "apply", "state", "tell"};
static const char *const states[] = {"idle",   "joining", "starting", "training", "waiting",
                                     "gossip", "paused",  "halted",   "left"};
static const char *const trainers[] = {"up", "down", "starting", "failing"};

/* Words of daemon/owner/rest.h. */
static const char *const rests[] = {"idle",    "starting", "joining", "data",     "halted",
                                    "left",    "pause",    "limits",  "schedule", "battery",
                                    "use",     "card",     "quota",   "heat",     "observer",
                                    "crashes", "trainer",  "script",  "quorum",   "model"};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static dp_status put(dp_buf *out, const char *line)
{
    return dp_buf_append(out, dp_view_text(line));
}

static dp_status put_head(dp_buf *out, const char *family, kind is, const char *help)
{
    char line[LINE_MAX];
    snprintf(line, sizeof line, "# HELP dpnode_%s %s\n# TYPE dpnode_%s %s\n", family, help, family,
             is == COUNTER ? "counter" : "gauge");
    return put(out, line);
}

/* labels: what stands between the braces; "" for none. */
static dp_status put_value(dp_buf *out, const char *family, const char *labels, double value)
{
    char line[LINE_MAX];
    const bool has = labels[0] != '\0';
    snprintf(line, sizeof line, "dpnode_%s%s%s%s %.15g\n", family, has ? "{" : "", labels,
             has ? "}" : "", value);
    return put(out, line);
}

/* A label's value: what is not printable or stands for itself is escaped, or is a question mark. */
static void escape(const char *text, char out[ESCAPED_MAX])
{
    size_t used = 0;
    for (size_t i = 0; text[i] != '\0' && i < DP_METRICS_LABEL_MAX; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '\\' || c == '"') {
            out[used++] = '\\';
        }
        out[used++] = (char)(c < ' ' || c >= 127 ? '?' : c); /* ASCII: half a character is none. */
    }
    out[used] = '\0';
}

static bool number_of(const json_t *object, const char *key, double *value)
{
    const json_t *const item = json_object_get(object, key);
    *value = json_is_boolean(item) ? (double)json_boolean_value(item) : json_number_value(item);
    return json_is_number(item) || json_is_boolean(item);
}

/* Rows of what is known. run: its label, or "". */
static dp_status put_rows(dp_buf *out, const json_t *object, const row *rows, size_t n,
                          const char *run)
{
    const char *said = "";
    for (size_t i = 0; i < n; i++) {
        const row *const r = &rows[i];
        char labels[LABELS_MAX];
        double value = 0;
        if (!number_of(object, r->key, &value)) {
            continue;
        }
        if (strcmp(said, r->family) != 0) {
            const row *first = r;
            while (first->help == NULL) {
                first--;
            }
            DP_TRY(put_head(out, r->family, r->kind, first->help));
            said = r->family;
        }
        snprintf(labels, sizeof labels, "%s%s%s", run,
                 run[0] != '\0' && r->label != NULL ? "," : "", r->label != NULL ? r->label : "");
        DP_TRY(put_value(out, r->family, labels, value * r->factor));
    }
    return DP_OK;
}

/* One line for each word that the state may be; 1 for the one that it is. */
static dp_status put_states(dp_buf *out, const char *family, const char *help,
                            const char *const *words, size_t n, const char *is)
{
    DP_TRY(put_head(out, family, GAUGE, help));
    for (size_t i = 0; i < n; i++) {
        char label[LABELS_MAX];
        snprintf(label, sizeof label, "state=\"%s\"", words[i]);
        DP_TRY(put_value(out, family, label, strcmp(words[i], is) == 0 ? 1 : 0));
    }
    return DP_OK;
}

/* A line for each reason not to train; 1 for those that hold. */
static dp_status put_rests(dp_buf *out, const json_t *list)
{
    if (!json_is_array(list)) {
        return DP_OK;
    }
    DP_TRY(put_head(out, "rest", GAUGE, "1: the node does not train for this reason."));
    for (size_t i = 0; i < COUNT(rests); i++) {
        size_t index = 0;
        const json_t *rest = NULL;
        char label[LABELS_MAX];
        bool holds = false;
        json_array_foreach(list, index, rest)
        {
            holds = holds || strcmp(dp_json_text(rest, "reason", ""), rests[i]) == 0;
        }
        snprintf(label, sizeof label, "reason=\"%s\"", rests[i]);
        DP_TRY(put_value(out, "rest", label, holds));
    }
    return DP_OK;
}

static dp_status put_phases(dp_buf *out, const json_t *run, const char run_label[RUN_LABEL_MAX])
{
    const json_t *const spent = json_object_get(run, "trainer_ms");
    if (!json_is_object(spent)) {
        return DP_OK;
    }
    DP_TRY(put_head(out, "trainer_seconds_total", COUNTER,
                    "Since the trainer's start: what its time went to."));
    for (size_t i = 0; i < COUNT(phases); i++) {
        char labels[LABELS_MAX];
        double ms = 0;
        if (number_of(spent, phases[i], &ms)) {
            snprintf(labels, sizeof labels, "%s,phase=\"%s\"", run_label, phases[i]);
            DP_TRY(put_value(out, "trainer_seconds_total", labels, ms / 1000));
        }
    }
    return DP_OK;
}

/* One family with a line for each other member of which the value is known. */
static dp_status put_peer_values(dp_buf *out, const json_t *peers, const row *r)
{
    size_t index = 0;
    bool said = false;
    const json_t *peer = NULL;
    json_array_foreach(json_object_get(peers, "peers"), index, peer)
    {
        char name[ESCAPED_MAX];
        char id[ESCAPED_MAX];
        char labels[LABELS_MAX];
        double value = 0;
        if (dp_json_flag(peer, "self") || !number_of(peer, r->key, &value)) {
            continue;
        }
        if (!said) {
            DP_TRY(put_head(out, r->family, r->kind, r->help));
            said = true;
        }
        escape(dp_json_text(peer, "name", ""), name);
        escape(dp_json_text(peer, "short", ""), id);
        snprintf(labels, sizeof labels, "peer=\"%s\",name=\"%s\"", id, name);
        DP_TRY(put_value(out, r->family, labels, value * r->factor));
    }
    return DP_OK;
}

static dp_status put_peers(dp_buf *out, const json_t *peers)
{
    static const row rows[] = {
        {"peer_linked", NULL, "linked", "1: there is a link to it.", 1, GAUGE},
        {"peer_rtt_seconds", NULL, "rtt_ms", "Round trip of a small message.", 1e-3, GAUGE},
        {"peer_step_seconds", NULL, "step_ms", "Of its training, as it says.", 1e-3, GAUGE},
        {"peer_counted_round", NULL, "included", "Newest round that lists it; 0: none.", 1, GAUGE},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        DP_TRY(put_peer_values(out, peers, &rows[i]));
    }
    return DP_OK;
}

static dp_status put_run(dp_buf *out, const json_t *run)
{
    char name[ESCAPED_MAX];
    char label[RUN_LABEL_MAX];
    escape(dp_json_text(run, "name", ""), name);
    snprintf(label, sizeof label, "run=\"%s\"", name);
    DP_TRY(put_rows(out, run, run_rows, COUNT(run_rows), label));
    DP_TRY(put_rows(out, json_object_get(run, "held_out"), held_out_rows, COUNT(held_out_rows),
                    label));
    DP_TRY(put_rows(out, json_object_get(run, "phases"), phase_rows, COUNT(phase_rows), label));
    DP_TRY(put_phases(out, run, label));
    return put_states(out, "trainer_state", "1: the trainer is in this state.", trainers,
                      COUNT(trainers), dp_json_text(run, "trainer", ""));
}

dp_status dp_metrics_write(dp_buf *out, const json_t *status, const json_t *peers)
{
    char version[ESCAPED_MAX];
    char label[LABELS_MAX];
    double behind = 0;

    DP_TRY(put_head(out, "up", GAUGE, "1: the daemon answers."));
    DP_TRY(put_value(out, "up", "", status != NULL ? 1 : 0));
    if (status == NULL) {
        return DP_OK;
    }
    escape(dp_json_text(status, "version", ""), version);
    snprintf(label, sizeof label, "version=\"%s\"", version);
    DP_TRY(put_head(out, "build_info", GAUGE, "Version of the daemon."));
    DP_TRY(put_value(out, "build_info", label, 1));
    DP_TRY(put_states(out, "state", "1: the node is in this state.", states, COUNT(states),
                      dp_json_text(status, "state", "")));
    DP_TRY(put_rests(out, json_object_get(status, "rests")));
    DP_TRY(put_head(out, "paused_by_owner", GAUGE, "1: its owner has paused it."));
    DP_TRY(put_value(out, "paused_by_owner", "", json_object_get(status, "paused") != NULL));
    DP_TRY(put_rows(out, status, node_rows, COUNT(node_rows), ""));
    DP_TRY(
        put_rows(out, json_object_get(status, "machine"), machine_rows, COUNT(machine_rows), ""));
    const json_t *const run = json_object_get(status, "run");
    if (!json_is_object(run)) {
        return DP_OK;
    }
    DP_TRY(put_run(out, run));
    if (number_of(json_object_get(run, "clock"), "behind_ms", &behind)) {
        DP_TRY(put_head(out, "clock_behind_seconds", GAUGE,
                        "By which this machine's clock is behind those of the others."));
        DP_TRY(put_value(out, "clock_behind_seconds", "", behind / 1000));
    }
    return put_peers(out, peers);
}
