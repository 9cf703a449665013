#include "cli/top/details.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/print.h"
#include "cli/top/panels.h"

static void add(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    const size_t used = strlen(text);
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

static const char *name_of(const json_t *peer)
{
    return dp_json_text(peer, "name", dp_json_text(peer, "short", "?"));
}

void dp_details_peer(const dp_facts *facts, const dp_facts_peer *peer, char *text, size_t size)
{
    char speed[DP_PRINT_CELL_MAX];
    text[0] = '\0';
    add(text, size, "name          %s%s\n", peer->name[0] != '\0' ? peer->name : "not told yet",
        peer->self ? " (this node)" : "");
    add(text, size, "id            %s (%s)\n", peer->brief, peer->id);
    add(text, size, "state         %s, %s\n", peer->state, dp_panel_role(peer));
    if (!peer->self) {
        add(text, size, "link          %s\n", dp_panel_link(peer));
    }
    if (peer->rtt_ms > 0) {
        add(text, size, "round trip    %.1f ms\n", peer->rtt_ms);
    }
    add(text, size, "address       %s\n", peer->address[0] != '\0' ? peer->address : "not known");
    if (peer->step_ms > 0) {
        add(text, size, "step          %.4g ms\n", peer->step_ms);
    }
    if (dp_facts_peer_speed(facts, peer) > 0) {
        dp_print_count(dp_facts_peer_speed(facts, peer), speed);
        add(text, size, "speed         %s %s/s\n", speed, facts->unit);
    }
    if (peer->has_round) {
        add(text, size, "at round      %llu\n", (unsigned long long)peer->round);
    }
    if (peer->counted > 0) {
        add(text, size, "last counted  round %llu\n", (unsigned long long)peer->counted);
    } else {
        add(text, size, "last counted  in no round yet\n");
    }
}

void dp_details_event(const dp_facts_event *event, char *text, size_t size)
{
    char clock[DP_PRINT_CELL_MAX];
    dp_print_clock(event->time_ms, clock);
    text[0] = '\0';
    add(text, size, "%s  %s\n\n%s\n", clock, event->name, event->text);
}

static void add_contributors(const json_t *round, char *text, size_t size)
{
    size_t index = 0;
    const json_t *peer = NULL;
    const double all = dp_json_real(round, "tokens", 0);
    json_array_foreach(json_object_get(round, "peers"), index, peer)
    {
        char tokens[DP_PRINT_CELL_MAX];
        const double own = dp_json_real(peer, "tokens", 0);
        dp_print_count(own, tokens);
        add(text, size, "  %.32s: %s, %.0f %%, %lld steps%s\n", name_of(peer), tokens,
            all > 0 ? 100 * own / all : 0, dp_json_int(peer, "steps", 0),
            dp_json_int(peer, "age", 0) > 0 ? ", late for the round before" : "");
    }
    json_array_foreach(json_object_get(round, "left_out"), index, peer)
    {
        add(text, size, "  %.32s was left out: %s\n", name_of(peer),
            dp_json_text(peer, "cause", "?"));
    }
}

/* How this node went through the round, where the daemon knows. */
static void add_phases(const json_t *round, char *text, size_t size)
{
    static const struct {
        const char *key;
        const char *word;
    } rows[] = {{"published_ms", "published"},
                {"ready_ms", "ready"},
                {"held_ms", "held"},
                {"decided_ms", "decided"},
                {"applied_ms", "applied"}};
    const json_t *const phases = json_object_get(round, "phases");
    const char *before = "phases        ";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const long long ms = dp_json_int(phases, rows[i].key, -1);
        if (ms >= 0) {
            add(text, size, "%s%s %.1f s", before, rows[i].word, (double)ms / 1000);
            before = ", ";
        }
    }
    add(text, size, "%s", before[0] == ',' ? "\n" : "");
    if (json_object_get(round, "compute_ms") != NULL) {
        add(text, size, "time          compute %.1f s, transfer %.1f s, wait %.1f s\n",
            dp_json_real(round, "compute_ms", 0) / 1000,
            dp_json_real(round, "transfer_ms", 0) / 1000, dp_json_real(round, "wait_ms", 0) / 1000);
    }
}

void dp_details_round(const json_t *round, char *text, size_t size)
{
    char clock[DP_PRINT_CELL_MAX];
    char bytes[DP_PRINT_CELL_MAX];
    const json_t *const exchange = json_object_get(round, "exchange");
    const long long ms = dp_json_int(round, "duration_ms", 0);
    dp_print_clock((uint64_t)dp_json_int(round, "time_ms", 0), clock);
    text[0] = '\0';
    if (exchange != NULL) {
        add(text, size, "at %s, after round %lld\naveraged with %.32s alone: %s\n", clock,
            dp_json_int(round, "round", 0), name_of(json_object_get(exchange, "peer")),
            dp_json_text(exchange, "cause", ""));
        return;
    }
    dp_print_bytes((uint64_t)dp_json_int(round, "bytes", 0), bytes);
    add(text, size, "decided at    %s", clock);
    if (ms > 0) {
        add(text, size, ", it took %.1f s", (double)ms / 1000);
    }
    add(text, size, "\nupdates       %lld of %lld counted, %s\n", dp_json_int(round, "listed", 0),
        dp_json_int(round, "active", 0), bytes);
    if (dp_json_real(round, "loss", 0) > 0) {
        add(text, size, "loss          %.4f\n", dp_json_real(round, "loss", 0));
    }
    add(text, size, "this node     %s\n",
        dp_json_flag(round, "counted") ? "counted" : "not counted");
    add_phases(round, text, size);
    add(text, size, "\ntokens of each:\n");
    add_contributors(round, text, size);
}

void dp_details_why(const json_t *why, char *text, size_t size)
{
    size_t index = 0;
    const json_t *cause = NULL;
    const char *const fix = dp_json_text(why, "fix", NULL);
    text[0] = '\0';
    add(text, size, "%s\n", dp_json_text(why, "answer", ""));
    json_array_foreach(json_object_get(why, "causes"), index, cause)
    {
        char clock[DP_PRINT_CELL_MAX];
        dp_print_clock((uint64_t)dp_json_int(cause, "time_ms", 0), clock);
        add(text, size, "%s%s  %s\n", index == 0 ? "\n" : "", clock,
            dp_json_text(cause, "text", ""));
    }
    if (fix != NULL) {
        add(text, size, "\nto correct it: %s\n", fix);
    }
}
