/* The adversary: chooses the liars, puts their messages on the wire, and judges the reaction of the
 * honest hosts. */
#include "tests/sim/evil.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/round/round_msg.h"

static const uint64_t spoiled_us = 40 * DP_SECOND; /* after the healing, all must know of a fork */

static const char *const names[DP_EVIL_COUNT] = {"none",   "voter",   "trainer", "holder",
                                                 "member", "inviter", "mixed"};

const char *dp_evil_name(dp_evil_kind kind)
{
    return (unsigned)kind < DP_EVIL_COUNT ? names[kind] : "?";
}

uint32_t dp_evil_named(const char *name)
{
    for (uint32_t i = 1; i < DP_EVIL_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            return i;
        }
    }
    return 0;
}

/* ---- who ---- */

bool dp_evil_does(const dp_sim *sim, uint32_t index, dp_evil_kind kind)
{
    if (!dp_evil_is(sim, index)) {
        return false;
    }
    for (uint32_t i = 0; sim->evil->kind == DP_EVIL_MIXED && i < sim->evil->n_liars; i++) {
        if (sim->evil->mixed[i] == index) {
            return sim->evil->kinds[i] == kind;
        }
    }
    return sim->evil->kind == kind;
}

/* Does the seed include liars of this kind? */
static bool includes(const dp_evil *e, dp_evil_kind kind)
{
    return e->kind == kind || e->kind == DP_EVIL_MIXED;
}

static uint64_t seed_of(const dp_sim_options *options)
{
    return dp_mix64(options->seed) ^ 0x6576696cULL;
}

static dp_evil_kind kind_of(const dp_sim_options *options, dp_rng *rng)
{
    const uint64_t drawn = 1 + dp_rng_below(rng, DP_EVIL_COUNT - 1);

    return (dp_evil_kind)(options->evil != 0 ? options->evil : drawn);
}

void dp_evil_plan(dp_plan *plan, const dp_sim_options *options)
{
    static const uint32_t counts[] = {3, 3, 5, 7};
    dp_rng rng;

    dp_rng_init(&rng, seed_of(options));
    const dp_evil_kind kind = kind_of(options, &rng);
    const uint32_t small =
        1U << DP_FAULT_LOSS | 1U << DP_FAULT_DELAY | 1U << DP_FAULT_COPY | 1U << DP_FAULT_REORDER;
    plan->faults_end_us = 30000000;
    plan->rounds_after = 8;
    plan->save_us = 1000000;
    plan->nodes = 5 + (uint32_t)dp_rng_below(&rng, 8);
    plan->gossip_round_ms = 500;
    if (kind == DP_EVIL_VOTER) {
        plan->voters_max = counts[dp_rng_below(&rng, 4)];
        plan->nodes = plan->voters_max + (uint32_t)dp_rng_below(&rng, 3);
        plan->nodes += plan->nodes < 4 ? 1 : 0;
        plan->on &= small | 1U << DP_FAULT_PARTITION | 1U << DP_FAULT_CRASH | 1U << DP_FAULT_ONEWAY;
        plan->fault_us[DP_FAULT_PARTITION] = 4000000;
        plan->fault_us[DP_FAULT_CRASH] = 5000000;
        plan->crash_after_send = dp_rng_below(&rng, 2) == 0 ? 300 : 0;
        plan->round_ms = 500;
    } else if (kind == DP_EVIL_MIXED) {
        plan->voters_max = counts[2 + dp_rng_below(&rng, 2)];
        plan->nodes = 10 + (uint32_t)dp_rng_below(&rng, 3);
        plan->on &= small | 1U << DP_FAULT_PARTITION | 1U << DP_FAULT_CRASH | 1U << DP_FAULT_CHUNKS;
        plan->fault_us[DP_FAULT_PARTITION] = 4000000;
        plan->fault_us[DP_FAULT_CRASH] = 5000000;
        plan->round_ms = 500;
    } else if (kind == DP_EVIL_MEMBER) {
        /* No crashes, so that every host taken for dead is alive. A host that joins late has only
         * the claims of others. */
        plan->on &= 1U << DP_FAULT_COPY | 1U << DP_FAULT_REORDER;
        plan->on |= 1U << DP_FAULT_LATE;
        plan->faults_end_us = 60000000;
    } else {
        plan->on &= small | 1U << DP_FAULT_PARTITION | 1U << DP_FAULT_CRASH | 1U << DP_FAULT_SLOW |
                    1U << DP_FAULT_CHUNKS;
    }
}

/* A voter with one body, and so few liars of the other kinds that honest hosts are a majority in
 * every group. */
static void choose_mixed(dp_evil *e)
{
    static const dp_evil_kind others[] = {DP_EVIL_TRAINER, DP_EVIL_HOLDER, DP_EVIL_MEMBER};
    const uint32_t salt = (uint32_t)dp_rng_below(&e->rng, 3);

    e->tricks[DP_EVIL_VOTER] = 1 + (uint32_t)dp_rng_below(&e->rng, DP_VOTES_COUNT - 1);
    e->tricks[DP_EVIL_TRAINER] = (uint32_t)dp_rng_below(&e->rng, DP_WORK_COUNT);
    e->tricks[DP_EVIL_HOLDER] = (uint32_t)dp_rng_below(&e->rng, DP_HOLDS_COUNT);
    e->n_liars = 1;
    e->mixed[0] = (uint32_t)dp_rng_below(&e->rng, 3);
    e->kinds[0] = DP_EVIL_VOTER;
    const uint32_t more = 2 + (uint32_t)dp_rng_below(&e->rng, 2);
    for (uint32_t i = 1; i <= more; i++) {
        e->mixed[i] = 2 + 2 * i; /* 4, 6, 8: hosts that start early, and are not the lying voter */
        e->kinds[i] = others[(salt + i) % 3];
        e->n_liars++;
    }
    for (uint32_t i = 0; i < e->n_liars; i++) {
        e->liars[e->mixed[i]] = true;
    }
}

static void choose(dp_sim *sim, dp_evil *e)
{
    const uint32_t n = sim->plan.nodes;
    uint32_t count = 1;

    if (e->kind == DP_EVIL_VOTER) {
        e->tricks[e->kind] = (uint32_t)dp_rng_below(&e->rng, DP_VOTES_COUNT);
        /* An early number, so that it is among the first to be enrolled. */
        e->original = (uint32_t)dp_rng_below(&e->rng, 3);
        e->liars[e->original] = true;
        if (e->tricks[e->kind] == DP_VOTES_TWIN) {
            e->original = 1;
            memset(e->liars, 0, n * sizeof *e->liars);
            e->liars[1] = true;
            e->twin = n - 1;
            e->liars[e->twin] = true;
            sim->hosts[e->twin].peer = sim->hosts[1].peer;
            sim->hosts[e->twin].name = 1;
        }
        e->n_liars = 1;
        return;
    }
    if (e->kind == DP_EVIL_MIXED) {
        choose_mixed(e);
        return;
    }
    e->tricks[e->kind] = (uint32_t)dp_rng_below(
        &e->rng, e->kind == DP_EVIL_TRAINER ? DP_WORK_COUNT : DP_HOLDS_COUNT);
    count = (n - 1) / 4 > 1 ? 1 + (uint32_t)dp_rng_below(&e->rng, (n - 1) / 4) : 1;
    while (e->n_liars < count) {
        const uint32_t index = 1 + (uint32_t)dp_rng_below(&e->rng, n - 1);
        e->n_liars += e->liars[index] ? 0 : 1;
        e->liars[index] = true;
    }
}

dp_status dp_evil_open(dp_sim *sim)
{
    dp_evil *e = NULL;

    if (sim->options.profile != DP_PROFILE_BYZ) {
        return DP_OK;
    }
    e = calloc(1, sizeof *e);
    if (e == NULL) {
        return DP_NOMEM;
    }
    sim->evil = e;
    e->liars = calloc(sim->plan.nodes, sizeof *e->liars);
    e->halted = calloc(sim->plan.nodes, sizeof *e->halted);
    e->counted_ms = calloc(sim->plan.nodes, sizeof *e->counted_ms);
    if (e->liars == NULL || e->halted == NULL || e->counted_ms == NULL) {
        return DP_NOMEM;
    }
    dp_rng_init(&e->rng, seed_of(&sim->options));
    e->kind = kind_of(&sim->options, &e->rng);
    dp_rng_init(&e->rng, seed_of(&sim->options) + 1);
    e->side_salt = dp_rng_next(&e->rng);
    e->twin = sim->plan.nodes;
    choose(sim, e);
    sim->totals.evil = (uint32_t)e->kind;
    sim->totals.trick = e->tricks[e->kind];
    return DP_OK;
}

void dp_evil_close(dp_sim *sim)
{
    dp_evil *e = sim->evil;

    if (e == NULL) {
        return;
    }
    for (uint32_t i = 0; i < DP_EVIL_HEARD_MAX; i++) {
        dp_packet_drop(e->heard[i]);
    }
    free(e->liars);
    free(e->halted);
    free(e->counted_ms);
    free(e);
    sim->evil = NULL;
}

void dp_evil_start(dp_sim *sim)
{
    for (uint32_t i = 0; sim->evil != NULL && i < sim->plan.nodes; i++) {
        if (sim->evil->liars[i]) {
            dp_sim_push(sim, &(dp_occasion){.at_us = 3 * DP_SECOND + dp_evil_below(sim, DP_SECOND),
                                            .kind = DP_ON_EVIL,
                                            .node = i});
        }
    }
}

/* All liars of this kind joined by one invite, which has a single use. */
void dp_evil_credential(const dp_sim *sim, uint32_t index,
                        uint8_t credential[DP_SIM_CREDENTIAL_BYTES])
{
    enum { INVITE_AT = 36, USES_AT = 52, TAG_AT = 56 };

    if (!dp_evil_does(sim, index, DP_EVIL_INVITER)) {
        return;
    }
    credential[INVITE_AT] = 9;
    credential[USES_AT] = 1;
    const uint64_t tag = dp_sim_hash(0x63726564, dp_view_of(credential, TAG_AT));
    memcpy(credential + TAG_AT, &tag, sizeof tag);
}

/* ---- words ---- */

uint64_t dp_evil_below(dp_sim *sim, uint64_t limit)
{
    return dp_rng_below(&sim->evil->rng, limit);
}

bool dp_evil_side(const dp_sim *sim, uint32_t to)
{
    return (dp_mix64(sim->evil->side_salt + to) & 1) != 0;
}

uint32_t dp_evil_body(const dp_sim *sim, uint32_t from, uint32_t to)
{
    const dp_evil *e = sim->evil;

    if (e == NULL || e->twin >= sim->plan.nodes) {
        return to;
    }
    if (from == e->original || from == e->twin) {
        if (to == e->original || to == e->twin) {
            return sim->plan.nodes;
        }
        return dp_evil_side(sim, to) == (from == e->twin) ? to : sim->plan.nodes;
    }
    if (to == e->original || to == e->twin) {
        return dp_evil_side(sim, from) ? e->twin : e->original;
    }
    return to;
}

void dp_evil_say(dp_host *host, uint32_t to, dp_view message)
{
    dp_sim *sim = host->sim;
    dp_packet *packet = dp_packet_of(message.data, (uint32_t)message.size);

    dp_assert(packet != NULL);
    dp_sim_mark(sim, dp_sim_hash(host->index, message), to);
    if (dp_msg_type_of(message) == DP_MSG_STATEMENT) {
        dp_oracle_sent(host, message); /* The accused member is counted. */
    }
    if (to >= sim->plan.nodes || to == host->index) {
        dp_packet_drop(packet);
        return;
    }
    DP_IGNORE(dp_net_send(&sim->net, &sim->queue, sim->now_us, host->index, to, packet,
                          DP_NET_CONTROL)); /* the loop notices a full queue */
}

static size_t rewrite(dp_host *host, uint32_t to, uint8_t *message, size_t size, size_t room)
{
    const uint8_t type = dp_msg_type_of(dp_view_of(message, size));

    if (dp_evil_does(host->sim, host->index, DP_EVIL_VOTER)) {
        return dp_evil_rewrite_vote(host, to, message, size, room);
    }
    if (dp_evil_does(host->sim, host->index, DP_EVIL_MEMBER)) {
        dp_evil_brag(host, message, size);
        dp_evil_cheat(host, message, size);
    }
    if (!dp_evil_does(host->sim, host->index, DP_EVIL_TRAINER)) {
        return size;
    }
    if (type == DP_MSG_READY) {
        return dp_evil_rewrite_ready(host, to, message, size, room);
    }
    if (type == DP_MSG_PART) {
        return dp_evil_rewrite_part(host, message, size, room);
    }
    if (type == DP_MSG_MIX_OFFER || type == DP_MSG_MIX_ACK) {
        return dp_evil_rewrite_terms(host, message, size, room);
    }
    if (type == DP_MSG_SUBTOTAL) {
        return dp_evil_rewrite_sum(host, message, size, room);
    }
    return size;
}

bool dp_evil_sends(dp_host *host, const dp_action *action)
{
    static uint8_t room[2 * DP_MESSAGE_MAX];
    dp_sim *sim = host->sim;
    const uint32_t n = sim->plan.nodes;
    uint32_t first = 0;
    uint32_t last = n;

    if (!dp_evil_is(sim, host->index)) {
        return false;
    }
    const uint8_t type = dp_msg_type_of(action->u.send.bytes);
    if (type < DP_MSG_READY || type > DP_MSG_VOTER_OK) {
        dp_oracle_sent(host, action->u.send.bytes); /* It sends these messages unchanged. */
    }
    if (action->u.send.to == DP_TO_PEER) {
        first = dp_evil_body(sim, host->index, dp_sim_index(sim, &action->u.send.peer));
        last = first < n ? first + 1 : n;
    }
    for (uint32_t to = first; to < last; to++) {
        if (to == host->index || sim->net.ends[(size_t)host->index * n + to].connection == 0) {
            continue;
        }
        memcpy(room, action->u.send.bytes.data, action->u.send.bytes.size);
        const size_t size = rewrite(host, to, room, action->u.send.bytes.size, sizeof room);
        if (size != 0) {
            dp_evil_say(host, to, dp_view_of(room, size));
        }
    }
    return true;
}

void dp_evil_hears(dp_host *host, uint32_t from, dp_view message)
{
    dp_evil *e = host->sim->evil;

    if (!dp_evil_is(host->sim, host->index) || dp_evil_is(host->sim, from)) {
        return;
    }
    dp_packet **slot = &e->heard[e->n_heard++ % DP_EVIL_HEARD_MAX];
    dp_packet_drop(*slot);
    *slot = dp_packet_of(message.data, (uint32_t)message.size);
    dp_assert(*slot != NULL);
    if (dp_msg_type_of(message) == DP_MSG_READY) {
        dp_ready ready;
        const bool read = dp_ready_msg_read(message, &ready) == DP_OK;
        const uint32_t author = read ? dp_sim_index(host->sim, &ready.peer) : host->sim->plan.nodes;
        if (author < host->sim->plan.nodes && !dp_evil_is(host->sim, author)) {
            e->ready = ready;
            e->has_ready = true;
        }
    }
    if (dp_evil_does(host->sim, host->index, DP_EVIL_VOTER)) {
        dp_evil_hears_vote(host, from, message);
    } else if (dp_evil_does(host->sim, host->index, DP_EVIL_MEMBER) &&
               dp_msg_type_of(message) == DP_MSG_PROPOSE && dp_evil_below(host->sim, 4) == 0) {
        dp_evil_forge(host); /* At the decisive moment. */
    }
}

void dp_evil_acts(dp_host *host)
{
    dp_sim *sim = host->sim;

    if (dp_host_up(host)) {
        if (dp_evil_does(sim, host->index, DP_EVIL_MEMBER)) {
            dp_evil_acts_member(host);
        } else if (dp_evil_does(sim, host->index, DP_EVIL_VOTER)) {
            dp_evil_acts_voter(host);
        }
    }
    dp_sim_push(sim, &(dp_occasion){.at_us = sim->now_us + 20000 + dp_evil_below(sim, 200000),
                                    .kind = DP_ON_EVIL,
                                    .node = host->index});
}

/* ---- the judge ---- */

void dp_evil_decided(dp_sim *sim, const dp_record *record)
{
    dp_evil *e = sim->evil;

    if (e == NULL) {
        return;
    }
    if (includes(e, DP_EVIL_TRAINER) && record->kind == DP_RECORD_ROUND) {
        dp_evil_schedule(sim, record);
        dp_evil_influence(sim, record);
    }
    for (uint32_t i = 0; record->has_config && i < record->config.n_admits; i++) {
        e->admitted += dp_evil_is(sim, dp_sim_index(sim, &record->config.admits[i].peer)) ? 1 : 0;
    }
    if (e->kind == DP_EVIL_INVITER && e->admitted > 1) {
        dp_sim_fail(sim, "S10", 0, "%u members have come in by an invite of one use", e->admitted);
    }
}

static void accuse(dp_sim *sim, const char *invariant, uint32_t node, const char *sentence)
{
    sim->evil->judging = true;
    dp_sim_fail(sim, invariant, node, "%s", sentence);
    sim->evil->judging = false;
}

bool dp_evil_excuses(dp_sim *sim, const char *invariant, uint32_t node)
{
    static const char *const of_all[] = {"S3",  "S4",  "S6",  "S10", "S12",
                                         "S15", "S20", "S21", "T1",  "D2"};
    dp_evil *e = sim->evil;

    if (e == NULL || e->judging) {
        return false;
    }
    if (includes(e, DP_EVIL_VOTER) && e->n_liars > 0 && strcmp(invariant, "S1") == 0) {
        /* If honest hosts hold the second record, there is no single chain to judge by from here
         * on. */
        e->forked = e->forked || !dp_evil_is(sim, node);
        return true;
    }
    if (includes(e, DP_EVIL_VOTER) &&
        (strcmp(invariant, "V3") == 0 || strcmp(invariant, "V2") == 0)) {
        return true; /* Its ballots contain two records, and other voters accept either. */
    }
    if (e->twin < sim->plan.nodes &&
        (strcmp(invariant, "S14") == 0 || strcmp(invariant, "C5") == 0 ||
         strcmp(invariant, "L2") == 0)) {
        return true; /* An exchange of three bodies, or a blob that only the other body has. */
    }
    if (e->forked) {
        return strcmp(invariant, "T1") != 0 && strcmp(invariant, "S12") != 0;
    }
    if (e->kind == DP_EVIL_MIXED &&
        (strcmp(invariant, "S14") == 0 || strcmp(invariant, "C5") == 0)) {
        return true; /* The liar can give any value for its half of an exchange. */
    }
    if (includes(e, DP_EVIL_MEMBER) &&
        (strcmp(invariant, "W1") == 0 || strcmp(invariant, "V0") == 0)) {
        return true; /* An honest node forwards messages without reading them. */
    }
    if (!dp_evil_is(sim, node) && !(node < sim->plan.nodes && e->halted[node])) {
        return false; /* A halted node no longer votes, but serves its objects. */
    }
    for (size_t i = 0; i < sizeof of_all / sizeof of_all[0]; i++) {
        if (strcmp(invariant, of_all[i]) == 0) {
            return false;
        }
    }
    return true;
}

/* Counts live and connected nodes that are taken for dead. */
void dp_evil_notes(dp_host *host, const dp_note *note)
{
    dp_sim *sim = host->sim;

    if (sim->evil == NULL || sim->evil->kind != DP_EVIL_MEMBER || dp_evil_is(sim, host->index) ||
        note->code != DP_NOTE_MEMBER || note->b != DP_MEMBER_DEAD) {
        return;
    }
    const uint32_t about = dp_sim_index(sim, &note->peer);
    if (about < sim->plan.nodes && !dp_evil_is(sim, about) && dp_host_up(&sim->hosts[about])) {
        sim->totals.evictions++;
        dp_sim_fail(sim, "S11", host->index, "takes node %u for dead, which lives (%s)", about,
                    note->cause);
    }
}

bool dp_evil_halts(dp_host *host, const dp_note *note)
{
    dp_sim *sim = host->sim;
    dp_evil *e = sim->evil;

    if (e == NULL || !includes(e, DP_EVIL_VOTER)) {
        return false;
    }
    if (!dp_evil_does(sim, dp_sim_index(sim, &note->peer), DP_EVIL_VOTER)) {
        accuse(sim, "S1", host->index, "halts, and names a voter that did not lie");
    }
    e->halted[host->index] = true;
    return true;
}

static bool is_judged(const dp_sim *sim, uint32_t index)
{
    return !sim->evil->liars[index] && !sim->hosts[index].left;
}

bool dp_evil_spoiled(const dp_sim *sim)
{
    const dp_evil *e = sim->evil;
    bool spoiled = e != NULL && e->forked;

    for (uint32_t i = 0; e != NULL && i < sim->plan.nodes; i++) {
        spoiled = spoiled || (is_judged(sim, i) && e->halted[i]);
    }
    return spoiled;
}

bool dp_evil_over(dp_sim *sim)
{
    dp_evil *e = sim->evil;
    dp_node_view view;

    if (!dp_evil_spoiled(sim)) {
        return false;
    }
    if (sim->now_us > sim->healed_us + spoiled_us) {
        dp_evil_stuck(sim);
        return true;
    }
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        if (!is_judged(sim, i)) {
            continue;
        }
        if (!dp_host_up(&sim->hosts[i])) {
            return false;
        }
        dp_node_look(sim->hosts[i].node, &view);
        if (view.mode != DP_MODE_HALTED) {
            return false;
        }
    }
    sim->totals.halts++;
    sim->totals.forks += e->forked ? 1 : 0;
    return true;
}

void dp_evil_stuck(dp_sim *sim)
{
    dp_node_view view;

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        if (!is_judged(sim, i) || !dp_host_up(&sim->hosts[i])) {
            continue;
        }
        dp_node_look(sim->hosts[i].node, &view);
        if (view.mode != DP_MODE_HALTED) {
            accuse(sim, "S1", i,
                   sim->evil->forked ? "two chains, and no proof has reached this node"
                                     : "others have halted, and no proof has reached this node");
            return;
        }
    }
}
