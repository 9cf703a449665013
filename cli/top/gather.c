#include "cli/top/gather.h"

#include <stdio.h>
#include <string.h>

#include "cli/watch/question.h"

void dp_gather_open(dp_gather *gather, const char *socket)
{
    *gather = (dp_gather){.has_rounds = false};
    dp_source_open(&gather->source, socket);
}

void dp_gather_close(dp_gather *gather)
{
    dp_source_close(&gather->source);
}

/* A fix without its remark. */
static void copy_fix(const char *fix, char *out, size_t size)
{
    const char *const remark = strstr(fix, "   #");
    const size_t whole = remark != NULL ? (size_t)(remark - fix) : strlen(fix);
    snprintf(out, size, "%.*s", (int)whole, fix);
}

static void miss(dp_gather *gather, dp_facts *facts)
{
    const dp_control_error *const error = &gather->source.error;
    facts->old = true;
    snprintf(facts->problem, sizeof facts->problem, "%s", error->what);
    copy_fix(error->fix, facts->remedy, sizeof facts->remedy);
    gather->has_rounds = false; /* Another daemon may answer next. */
    gather->why_ms = 0;
}

/* Rounds that are new; all that there is room for at first, and after the chain went back. */
static void look_rounds(dp_gather *gather, dp_facts *facts)
{
    dp_control_error ignored;
    const bool goes_on = gather->has_rounds && facts->slot >= gather->slot &&
                         facts->exchanges >= gather->exchanges && facts->n_rounds > 0;
    const uint64_t more = facts->slot - gather->slot + facts->exchanges - gather->exchanges;
    if (!facts->has_round || (goes_on && more == 0)) {
        return;
    }
    const bool few = goes_on && more < DP_FACTS_ROUNDS_MAX;
    /* One more: the last one may have been told before all of it was known. */
    json_t *const list = dp_source_list(&gather->source, "rounds",
                                        few ? (uint32_t)more + 1 : DP_FACTS_ROUNDS_MAX, &ignored);
    if (list == NULL) {
        return; /* The next look asks again. */
    }
    facts->n_rounds = few ? facts->n_rounds : 0;
    dp_facts_add_rounds(facts, list);
    json_decref(list);
    gather->has_rounds = true;
    gather->slot = facts->slot;
    gather->exchanges = facts->exchanges;
}

static void look_events(dp_gather *gather, dp_facts *facts)
{
    dp_control_error ignored;
    json_t *const list = dp_source_list(&gather->source, "events", DP_FACTS_EVENTS_MAX, &ignored);
    if (list != NULL) {
        dp_facts_events(facts, list);
        json_decref(list);
    }
}

/* A node that trains needs no reason. */
static void look_why(dp_gather *gather, dp_facts *facts, uint64_t now_ms)
{
    dp_control_error ignored;
    json_t *why = NULL;
    const bool same = strcmp(gather->why_state, facts->state) == 0;
    const bool fresh = gather->why_ms != 0 && now_ms - gather->why_ms < DP_GATHER_WHY_MS;
    if (facts->healthy || !facts->in_run || (same && fresh)) {
        return;
    }
    gather->why_ms = now_ms;
    snprintf(gather->why_state, sizeof gather->why_state, "%s", facts->state);
    if (dp_question_ask(gather->source.socket, DP_SOURCE_WAIT_MS, &(dp_question){.method = "why"},
                        &why, &ignored) == 0) {
        dp_facts_why(facts, why);
        json_decref(why);
    }
}

void dp_gather_look(dp_gather *gather, dp_facts *facts, uint64_t now_ms, uint64_t unix_ms)
{
    const uint64_t version = gather->source.version;
    dp_source_look(&gather->source, now_ms);
    if (gather->source.version == version) {
        return;
    }
    if (gather->source.status == NULL) {
        miss(gather, facts);
        return;
    }
    dp_facts_status(facts, gather->source.status, unix_ms);
    dp_facts_peers(facts, gather->source.peers);
    if (facts->in_run) {
        look_rounds(gather, facts);
    }
    look_events(gather, facts);
    look_why(gather, facts, now_ms);
}
