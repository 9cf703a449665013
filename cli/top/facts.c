#include "cli/top/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"

enum { HALF_MINUTE_MS = 30 * 1000, HEX = 16, KEY_DIGITS = 16 };

/* ---- fields of replies ---- */

static uint64_t count_of(const json_t *object, const char *key)
{
    const long long value = dp_json_int(object, key, 0);
    return value > 0 ? (uint64_t)value : 0;
}

static uint32_t small_of(const json_t *object, const char *key)
{
    const uint64_t value = count_of(object, key);
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static double amount_of(const json_t *object, const char *key)
{
    const double value = dp_json_real(object, key, 0);
    return value > 0 && value < 1e18 ? value : 0;
}

static bool is_known(const json_t *object, const char *key)
{
    const json_t *const value = json_object_get(object, key);
    return value != NULL && !json_is_null(value);
}

/* A copy that may be cut. */
static void copy(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text);
}

static const char *name_of(const json_t *peer)
{
    return dp_json_text(peer, "name", dp_json_text(peer, "short", "?"));
}

/* ---- status ---- */

static void read_spent(dp_facts *facts, const json_t *run, uint64_t unix_ms)
{
    const json_t *const ms = json_object_get(run, "trainer_ms");
    const dp_facts_spent now = {.at_ms = ms != NULL ? unix_ms : 0,
                                .trained = amount_of(ms, "trained"),
                                .steps = amount_of(ms, "computed"),
                                .rounds = amount_of(ms, "publish") + amount_of(ms, "apply") +
                                          amount_of(ms, "state") + amount_of(ms, "tell")};
    dp_facts_spent *const spent = facts->spent;
    if (now.trained < spent[0].trained) { /* another trainer */
        memset(spent, 0, sizeof facts->spent);
    }
    spent[0] = now;
    if (unix_ms - spent[1].at_ms >= HALF_MINUTE_MS) {
        spent[2] = spent[1];
        spent[1] = now;
    }
}

/* The daemon's value is that of its last tenth of a second: the screen has a mean of some looks. */
static void read_speed(dp_facts *facts, double tokens_per_s)
{
    const double before = facts->tokens_per_s;
    const bool begins = before <= 0 || tokens_per_s <= 0;
    facts->tokens_per_s =
        begins ? tokens_per_s : before + (tokens_per_s - before) * DP_FACTS_SPEED_WEIGHT;
}

static void read_chain(dp_facts *facts, const json_t *run)
{
    facts->has_round = is_known(run, "round");
    facts->round = count_of(run, "round");
    facts->slot = count_of(run, "slot");
    facts->exchanges = count_of(run, "exchanges");
    facts->tokens = count_of(run, "tokens");
    facts->counted = count_of(run, "counted");
    facts->alive = count_of(run, "alive");
    facts->members = count_of(run, "members");
    facts->voter = dp_json_flag(run, "is_voter");
}

static void read_run(dp_facts *facts, const json_t *run, uint64_t unix_ms)
{
    const bool samples =
        dp_json_flag(run, "external") == 1 && dp_json_int(run, "sample_tokens", 0) == 1;
    const char *const id = dp_json_text(run, "id", "");
    if (strcmp(id, facts->run_id) != 0) {
        facts->n_rounds = 0;
        facts->n_peers = 0;
    }
    facts->in_run = true;
    copy(facts->run, sizeof facts->run, dp_json_text(run, "name", "?"));
    copy(facts->run_id, sizeof facts->run_id, id);
    copy(facts->unit, sizeof facts->unit, samples ? "samples" : "tokens");
    copy(facts->device, sizeof facts->device, dp_json_text(run, "device", ""));
    read_chain(facts, run);
    facts->loss = amount_of(run, "loss");
    facts->held_out = amount_of(json_object_get(run, "held_out"), "loss");
    read_speed(facts, amount_of(run, "tokens_per_s"));
    facts->round_ms = count_of(run, "round_ms");
    facts->upload_max = count_of(run, "upload_max");
    facts->download_max = count_of(run, "download_max");
    facts->bytes_sent = count_of(run, "bytes_sent");
    facts->bytes_received = count_of(run, "bytes_received");
    read_spent(facts, run, unix_ms);
}

/* It trains, and there is nothing that its owner should know. */
static bool is_healthy(const json_t *status, const json_t *run)
{
    return strcmp(dp_json_text(status, "state", ""), "training") == 0 &&
           json_object_get(status, "problem") == NULL &&
           json_object_get(status, "paused") == NULL && /* It may wait for the round's end. */
           dp_json_flag(run, "quorum") && !dp_json_flag(run, "refused") &&
           json_object_get(run, "clock") == NULL &&
           strcmp(dp_json_text(run, "trainer", ""), "up") == 0 && dp_json_flag(run, "trains");
}

static void read_outside(dp_facts *facts, const json_t *status)
{
    const json_t *const problem = json_object_get(status, "problem");
    facts->in_run = false;
    facts->has_round = false;
    if (problem != NULL) {
        snprintf(facts->reason, sizeof facts->reason, "%s %s: %s. To correct it: %s",
                 dp_json_text(problem, "code", ""), dp_json_text(problem, "what", ""),
                 dp_json_text(problem, "why", ""), dp_json_text(problem, "fix", ""));
    } else {
        copy(facts->reason, sizeof facts->reason, dp_json_text(status, "lost", ""));
    }
}

void dp_facts_status(dp_facts *facts, const json_t *status, uint64_t unix_ms)
{
    const json_t *const run = json_object_get(status, "run");
    facts->known = true;
    facts->old = false;
    facts->answered_ms = unix_ms;
    copy(facts->node, sizeof facts->node, dp_json_text(status, "name", "?"));
    copy(facts->id, sizeof facts->id, dp_json_text(status, "id", ""));
    copy(facts->state, sizeof facts->state, dp_json_text(status, "state", "?"));
    facts->paused = json_object_get(status, "paused") != NULL;
    facts->healthy = is_healthy(status, run);
    if (json_is_object(run)) {
        read_run(facts, run, unix_ms);
    } else {
        read_outside(facts, status);
    }
    if (facts->healthy) {
        facts->reason[0] = '\0';
    }
}

void dp_facts_why(dp_facts *facts, const json_t *why)
{
    copy(facts->reason, sizeof facts->reason, dp_json_text(why, "answer", ""));
}

/* ---- peers ---- */

static void read_peer(dp_facts_peer *peer, const json_t *from)
{
    char digits[KEY_DIGITS + 1];
    const json_t *const address = json_array_get(json_object_get(from, "addresses"), 0);
    *peer = (dp_facts_peer){.self = dp_json_flag(from, "self"),
                            .linked = dp_json_flag(from, "linked"),
                            .member = dp_json_flag(from, "roster"),
                            .voter = dp_json_flag(from, "voter"),
                            .has_round = is_known(from, "round"),
                            .round = count_of(from, "round"),
                            .counted = count_of(from, "included"),
                            .rtt_ms = amount_of(from, "rtt_ms"),
                            .step_ms = amount_of(from, "step_ms")};
    copy(peer->id, sizeof peer->id, dp_json_text(from, "id", ""));
    copy(peer->brief, sizeof peer->brief, dp_json_text(from, "short", ""));
    copy(peer->name, sizeof peer->name, dp_json_text(from, "name", ""));
    copy(peer->state, sizeof peer->state, dp_json_text(from, "state", "?"));
    copy(peer->address, sizeof peer->address,
         json_is_string(address) ? json_string_value(address) : "");
    copy(digits, sizeof digits, peer->id);
    peer->key = strtoull(digits, NULL, HEX);
}

void dp_facts_peers(dp_facts *facts, const json_t *peers)
{
    size_t index = 0;
    const json_t *item = NULL;
    facts->n_peers = 0;
    facts->more_peers = small_of(peers, "more");
    json_array_foreach(json_object_get(peers, "peers"), index, item)
    {
        if (facts->n_peers < DP_FACTS_PEERS_MAX) {
            read_peer(&facts->peers[facts->n_peers++], item);
        }
    }
}

/* ---- rounds ---- */

static void read_left_out(dp_facts_round *round, const json_t *from)
{
    size_t index = 0;
    const json_t *item = NULL;
    json_array_foreach(json_object_get(from, "left_out"), index, item)
    {
        if (index == 0) {
            snprintf(round->left_out, sizeof round->left_out, "%s: %s", name_of(item),
                     dp_json_text(item, "cause", "?"));
        }
        round->n_left_out++;
    }
}

static void read_contributors(dp_facts_round *round, const json_t *from, const char *own_id)
{
    size_t index = 0;
    const json_t *item = NULL;
    json_array_foreach(json_object_get(from, "peers"), index, item)
    {
        const uint64_t tokens = count_of(item, "tokens");
        const uint64_t steps = count_of(item, "steps");
        if (strcmp(dp_json_text(item, "id", "-"), own_id) == 0) {
            round->own_tokens = tokens;
        }
        if (steps > 0) {
            round->step_tokens = tokens / steps;
        }
    }
}

static void read_round(dp_facts_round *round, const json_t *from, const char *own_id)
{
    const json_t *const exchange = json_object_get(from, "exchange");
    *round = (dp_facts_round){.round = count_of(from, "round"),
                              .time_ms = count_of(from, "time_ms"),
                              .duration_ms = count_of(from, "duration_ms"),
                              .gossip = exchange != NULL,
                              .counted = dp_json_flag(from, "counted"),
                              .listed = small_of(from, "listed"),
                              .active = small_of(from, "active"),
                              .loss = amount_of(from, "loss"),
                              .bytes = count_of(from, "bytes"),
                              .tokens = count_of(from, "tokens"),
                              .has_times = is_known(from, "compute_ms"),
                              .compute_ms = count_of(from, "compute_ms"),
                              .transfer_ms = count_of(from, "transfer_ms"),
                              .wait_ms = count_of(from, "wait_ms")};
    /* Records have a slot each; exchanges have none of their own. */
    round->key = exchange != NULL ? round->time_ms | UINT64_C(1) << 63 : count_of(from, "slot");
    if (exchange != NULL) {
        copy(round->partner, sizeof round->partner, name_of(json_object_get(exchange, "peer")));
    }
    read_left_out(round, from);
    read_contributors(round, from, own_id);
}

static dp_facts_round *place_for(dp_facts *facts, uint64_t key)
{
    for (uint32_t i = facts->n_rounds; i-- > 0;) {
        if (facts->rounds[i].key == key) {
            return &facts->rounds[i];
        }
    }
    if (facts->n_rounds == DP_FACTS_ROUNDS_MAX) {
        memmove(&facts->rounds[0], &facts->rounds[1],
                (DP_FACTS_ROUNDS_MAX - 1) * sizeof facts->rounds[0]);
        facts->n_rounds--;
    }
    return &facts->rounds[facts->n_rounds++];
}

void dp_facts_add_rounds(dp_facts *facts, const json_t *rounds)
{
    size_t index = 0;
    const json_t *item = NULL;
    json_array_foreach(rounds, index, item)
    {
        dp_facts_round round;
        read_round(&round, item, facts->id);
        *place_for(facts, round.key) = round;
    }
}

/* ---- events ---- */

void dp_facts_events(dp_facts *facts, const json_t *events)
{
    size_t index = 0;
    const json_t *item = NULL;
    facts->n_events = 0;
    json_array_foreach(events, index, item)
    {
        if (facts->n_events < DP_FACTS_EVENTS_MAX) {
            dp_facts_event *const event = &facts->events[facts->n_events++];
            *event =
                (dp_facts_event){.key = count_of(item, "id"), .time_ms = count_of(item, "time_ms")};
            copy(event->name, sizeof event->name, dp_json_text(item, "name", ""));
            copy(event->text, sizeof event->text, dp_json_text(item, "text", ""));
        }
    }
}

/* ---- what follows from them ---- */

bool dp_facts_times_of(const dp_facts *facts, dp_facts_times *times)
{
    const dp_facts_spent *const now = &facts->spent[0];
    const dp_facts_spent *const from = &facts->spent[2]; /* zero: since the trainer's start */
    const double trained = now->trained - from->trained;
    if (trained <= 0) {
        return false;
    }
    const double steps = (now->steps - from->steps) / trained;
    const double rounds = (now->rounds - from->rounds) / trained;
    times->steps = steps < 1 ? steps : 1;
    times->rounds = steps + rounds < 1 ? rounds : 1 - times->steps;
    times->waiting = 1 - times->steps - times->rounds;
    return true;
}

/* The newest rounds, without exchanges. */
static uint32_t newest(const dp_facts *facts, const dp_facts_round *list[DP_FACTS_SHARE_ROUNDS])
{
    uint32_t n = 0;
    for (uint32_t i = facts->n_rounds; i-- > 0 && n < DP_FACTS_SHARE_ROUNDS;) {
        if (!facts->rounds[i].gossip) {
            list[n++] = &facts->rounds[i];
        }
    }
    return n;
}

bool dp_facts_own_of(const dp_facts *facts, dp_facts_own *own)
{
    const dp_facts_round *list[DP_FACTS_SHARE_ROUNDS];
    double all = 0;
    double mine = 0;
    *own = (dp_facts_own){.rounds = newest(facts, list)};
    for (uint32_t i = 0; i < own->rounds; i++) {
        all += (double)list[i]->tokens;
        mine += (double)list[i]->own_tokens;
        own->counted += list[i]->counted;
    }
    own->share = all > 0 ? mine / all : 0;
    return own->rounds > 0;
}

double dp_facts_speed(const dp_facts *facts)
{
    const dp_facts_round *list[DP_FACTS_SHARE_ROUNDS];
    const uint32_t n = newest(facts, list);
    double tokens = 0;
    double ms = 0;
    for (uint32_t i = 0; i < n; i++) {
        tokens += list[i]->duration_ms > 0 ? (double)list[i]->tokens : 0;
        ms += (double)list[i]->duration_ms;
    }
    return ms > 0 ? 1000 * tokens / ms : 0;
}

double dp_facts_peer_speed(const dp_facts *facts, const dp_facts_peer *peer)
{
    if (peer->self && facts->tokens_per_s <= 0) {
        return 0; /* Its last step was some time ago. */
    }
    for (uint32_t i = facts->n_rounds; i-- > 0;) {
        const uint64_t tokens = facts->rounds[i].step_tokens;
        if (tokens > 0) {
            return peer->step_ms > 0 ? 1000 * (double)tokens / peer->step_ms : 0;
        }
    }
    return 0;
}
