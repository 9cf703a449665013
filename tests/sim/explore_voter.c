#include "tests/sim/explore_voter.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/core/msg.h"
#include "gossip/vote/commit_row.h"
#include "tests/sim/explore_mind.h"
#include "tests/sim/explore_table.h"

struct dp_explore_voters {
    dp_sim *sim;
    dp_explore_chain *chain;
    dp_explore_bounds bounds;
    dp_commit commits[DP_EXPLORE_HOSTS]; /* the machine that is set to a state */
    dp_explore_state *now;               /* the state under work */
    dp_explore_effect effect;            /* of the step under work */
    dp_explore_state **states;
    uint32_t n_states;
    uint32_t states_capacity;
    dp_explore_table by_mark;
    dp_explore_message messages[DP_EXPLORE_MESSAGES_MAX];
    dp_vote_msg *bodies[DP_EXPLORE_MESSAGES_MAX]; /* a record follows it */
    uint32_t n_messages;
    dp_explore_table message_by_mark;
    dp_explore_effect *effects;
    uint32_t n_effects;
    uint32_t effects_capacity;
    dp_explore_table effect_of; /* (state, event) */
};

static uint64_t shortened(const dp_hash *hash)
{
    uint64_t word = 0;

    memcpy(&word, hash->bytes, sizeof word);
    return word;
}

/* ---- claims that one voter can break alone ---- */

static void claim(dp_explore_voters *v, bool holds, const char *sentence)
{
    if (!holds && v->effect.claim == NULL) {
        v->effect.claim = sentence;
    }
}

/* The vote row on disk for the slot after the last record on it. */
static dp_commit_row durable_row(dp_explore_voters *v)
{
    dp_commit_row found = {.promised = -1, .accepted = -1};
    uint8_t bytes[DP_EXPLORE_ROW_MAX];

    if (v->now->durable.is) {
        dp_commit_row r;
        const dp_status status =
            dp_commit_row_read(dp_explore_row_bytes(v->chain, &v->now->durable, bytes), &r);
        dp_assert(status == DP_OK);
        if (r.slot == dp_explore_ledger(v->chain, v->now->kept)->slot + 1) {
            found = r;
            found.record = (dp_view){0};
        }
    }
    return found;
}

/* Checks a sent vote: it and the chain before it are on this voter's disk, and the ballot is its
 * own. */
static void judge_send(dp_explore_voters *v, const dp_vote *vote)
{
    const dp_ledger *ledger = dp_explore_ledger(v->chain, v->now->kept);
    const dp_commit_row row = durable_row(v);
    const int64_t ballot = vote->ballot;

    claim(v, vote->slot == ledger->slot + 1 && dp_hash_equal(&vote->prev, &ledger->head),
          "S6: a vote in a slot before the record before it is on disk");
    claim(v, dp_ledger_voter(ledger, &v->sim->hosts[v->now->host].peer) == vote->voter,
          "V0: a vote of somebody who has none in the slot");
    if (vote->type == DP_MSG_PROMISE || vote->type == DP_MSG_PREPARE) {
        claim(v, row.promised >= ballot, "V1: a promise is told before it is on disk");
        claim(v, row.accepted + 1 >= (int64_t)vote->accepted,
              "V1: a promise names an accept that is not on disk");
    } else if (vote->type == DP_MSG_ACCEPTED || vote->type == DP_MSG_PROPOSE) {
        claim(v, row.accepted >= ballot, "V1: an accept is told before it is on disk");
    }
    if (vote->type == DP_MSG_PREPARE || vote->type == DP_MSG_PROPOSE) {
        claim(v, dp_commit_owner(&v->commits[v->now->host], vote->ballot) == vote->voter,
              "V3: a ballot of another voter is used");
    }
}

/* ---- what the machine asks of its host ---- */

static dp_verdict judge(void *voters, dp_view record)
{
    dp_explore_voters *v = voters;

    return dp_explore_valid(v->chain, v->now->head, record) ? DP_VERDICT_YES : DP_VERDICT_NO;
}

/* A different record in each life: after a crash the voter does not know its proposal. */
static size_t value(void *voters, uint8_t *out)
{
    dp_explore_voters *v = voters;
    const dp_commit *c = &v->commits[v->now->host];
    uint32_t goes = DP_NOBODY;

    if (v->bounds.hand_over && v->now->head == 0 && dp_commit_owner(c, 0) == c->self) {
        goes = dp_sim_index(v->sim, &c->voters[dp_commit_owner(c, 1)].peer);
    }
    const size_t size =
        dp_explore_value(v->chain, v->now->head, v->now->host, v->now->boots, goes, out);
    dp_explore_number(v->chain, dp_view_of(out, size));
    return size;
}

static dp_vote_msg *body_of(dp_view bytes)
{
    dp_vote_msg *body = malloc(sizeof *body + bytes.size);
    uint8_t *copy = (uint8_t *)(body + 1);

    dp_assert(body != NULL);
    memcpy(copy, bytes.data, bytes.size);
    const dp_status status = dp_vote_msg_read(dp_view_of(copy, bytes.size), body);
    dp_assert(status == DP_OK); /* Our own message. */
    return body;
}

static void send(void *voters, uint32_t to, dp_view bytes)
{
    dp_explore_voters *v = voters;
    const dp_peer *peer = &v->commits[v->now->host].voters[to].peer;
    const uint32_t host = dp_sim_index(v->sim, peer);
    const uint64_t mark = dp_sim_hash(1 + host + 16 * (uint64_t)v->now->host, bytes);
    uint32_t number = 0;

    if (!dp_explore_table_get(&v->message_by_mark, mark, &number)) {
        dp_assert(v->n_messages < DP_EXPLORE_MESSAGES_MAX);
        number = v->n_messages++;
        v->bodies[number] = body_of(bytes);
        const dp_vote *vote = &v->bodies[number]->vote;
        v->messages[number] = (dp_explore_message){.from = v->now->host,
                                                   .to = (uint8_t)host,
                                                   .type = vote->type,
                                                   .after = v->now->head,
                                                   .ballot = vote->ballot,
                                                   .hash = shortened(&vote->hash),
                                                   .mark = mark};
        dp_explore_table_add(&v->message_by_mark, mark, number);
    }
    judge_send(v, &v->bodies[number]->vote);
    for (uint32_t i = 0; i < v->effect.n_sends; i++) {
        if (v->effect.sends[i] == number) {
            return;
        }
    }
    dp_assert(v->effect.n_sends < DP_EXPLORE_SENDS_MAX);
    v->effect.sends[v->effect.n_sends++] = (uint16_t)number;
}

static uint32_t store(void *voters, uint64_t slot, dp_view bytes)
{
    dp_explore_voters *v = voters;
    dp_commit_row r;

    dp_assert(!v->now->writes);
    const dp_status status = dp_commit_row_read(bytes, &r);
    dp_assert(status == DP_OK);
    claim(v, slot == dp_explore_ledger(v->chain, v->now->kept)->slot + 1,
          "S6: a vote row of a slot before the record before it is on disk");
    v->now->writing = (dp_explore_row){
        .is = true,
        .record = (uint8_t)(r.record.size > 0 ? dp_explore_number(v->chain, r.record) : 0)};
    memcpy(v->now->writing.head, bytes.data, sizeof v->now->writing.head);
    v->now->writes = true;
    return 1;
}

static void proof(void *voters, const dp_vote *a, const dp_vote *b)
{
    (void)a;
    (void)b;
    claim(voters, false, "S1: a voter has voted twice in one ballot");
}

/* ---- numbered states ---- */

static void load(dp_explore_voters *v, const dp_explore_state *from)
{
    dp_explore_mind_load(v->chain, from, &v->commits[from->host]);
    memcpy(v->now, from, sizeof *from);
}

/* The number of the present state of machine and disk. */
static uint32_t save(dp_explore_voters *v)
{
    dp_explore_state *now = v->now;
    const size_t size = sizeof *now + dp_explore_mind_size();
    uint32_t number = 0;

    dp_explore_mind_save(v->chain, &v->commits[now->host], now->bids < v->bounds.bids, now);
    now->mark = 0;
    now->mark = dp_sim_hash(7, dp_view_of(now, size));
    if (dp_explore_table_get(&v->by_mark, now->mark, &number)) {
        return number;
    }
    if (v->n_states == v->states_capacity) {
        v->states_capacity = v->states_capacity == 0 ? 1024 : v->states_capacity * 2;
        v->states = realloc(v->states, v->states_capacity * sizeof(dp_explore_state *));
        dp_assert(v->states != NULL);
    }
    dp_explore_state *kept = malloc(size);
    dp_assert(kept != NULL);
    memcpy(kept, now, size);
    v->states[v->n_states] = kept;
    dp_explore_table_add(&v->by_mark, now->mark, v->n_states);
    return v->n_states++;
}

/* ---- steps ---- */

static void begin_slot(dp_explore_voters *v)
{
    const dp_ledger *ledger = dp_explore_ledger(v->chain, v->now->head);

    dp_commit_begin(&v->commits[v->now->host], ledger, &v->sim->hosts[v->now->host].peer);
    v->now->writes = false; /* A row of the slot before is no longer used, written or not. */
}

static void start(dp_explore_voters *v)
{
    const dp_commit_host host = {
        .context = v, .judge = judge, .value = value, .send = send, .store = store, .proof = proof};
    dp_host *sim_host = &v->sim->hosts[v->now->host];
    dp_commit *c = &v->commits[v->now->host];
    const dp_crypto crypto = dp_sim_crypto(sim_host);
    uint8_t key[DP_PUBLIC_KEY_BYTES];
    uint8_t bytes[DP_EXPLORE_ROW_MAX];

    dp_sim_vote_key(sim_host, key);
    dp_commit_init(c, &host, &crypto, &v->sim->run, key);
    if (v->now->durable.is) {
        const dp_status status =
            dp_commit_restore(c, dp_explore_row_bytes(v->chain, &v->now->durable, bytes));
        claim(v, status == DP_OK, "D2: the vote row does not restore");
    }
    begin_slot(v);
}

static void keep_row(dp_explore_state *now)
{
    if (now->writes) {
        now->durable = now->writing;
        now->writes = false;
    }
}

static void keep_record(dp_explore_state *now)
{
    now->kept = now->keeping;
    now->keeping = 0;
}

static void crash(dp_explore_voters *v, bool row_kept, bool record_kept)
{
    if (row_kept) {
        keep_row(v->now);
    }
    if (record_kept) {
        keep_record(v->now);
    }
    v->now->writes = false;
    v->now->keeping = 0;
    v->now->head = v->now->kept;
    v->now->boots++;
    start(v);
}

/* Does the work of dp_chain_offer() after the votes have decided, or when another voter gives the
 * record; the last slot ends with the decision. */
static void take_record(dp_explore_voters *v, uint32_t number)
{
    v->now->keeping = (uint8_t)number;
    if (dp_broken(13)) {
        v->now->head = (uint8_t)number;
        begin_slot(v);
    }
}

static void record_is_durable(dp_explore_voters *v)
{
    keep_record(v->now);
    if (!dp_broken(13)) {
        v->now->head = v->now->kept;
        begin_slot(v);
    }
}

static void look_for_decision(dp_explore_voters *v)
{
    const dp_commit *c = &v->commits[v->now->host];

    if (!c->decided || v->now->decided != 0 || v->now->keeping != 0) {
        return;
    }
    const uint32_t number =
        dp_explore_number(v->chain, dp_view_of(c->outcome.data, c->outcome.size));
    claim(v, dp_explore_certify(v->chain, v->now->head, number, &c->cert),
          "S1: what is decided has no certificate of the voters of its slot");
    if (dp_explore_slot(v->chain, number) < v->bounds.slots) {
        take_record(v, number);
    }
}

static void act(dp_explore_voters *v, uint32_t event)
{
    const dp_time now = {.us = 1000000};
    dp_commit *c = &v->commits[v->now->host];
    const dp_commit_state before = c->state;
    const uint32_t head = v->now->head;

    if (event >= DP_EXPLORE_CRASH && event <= DP_EXPLORE_CRASH_BOTH) {
        crash(v, event == DP_EXPLORE_CRASH_KEPT || event == DP_EXPLORE_CRASH_BOTH,
              event == DP_EXPLORE_CRASH_RECORD || event == DP_EXPLORE_CRASH_BOTH);
        return;
    }
    if (event >= DP_EXPLORE_TAKE) {
        claim(v, dp_explore_offer(v->chain, head, event - DP_EXPLORE_TAKE),
              "L2: a record that is on the disk of another is not taken");
        take_record(v, event - DP_EXPLORE_TAKE);
    } else if (event == DP_EXPLORE_RECORD_STORED) {
        record_is_durable(v);
    } else if (event == DP_EXPLORE_STORED) {
        keep_row(v->now);
        dp_assert(dp_commit_stored(c, now, 1, DP_OK));
    } else if (event == DP_EXPLORE_FAILED || event == DP_EXPLORE_FAILED_KEPT) {
        if (event == DP_EXPLORE_FAILED_KEPT) {
            keep_row(v->now);
        }
        v->now->writes = false;
        dp_assert(dp_commit_stored(c, now, 1, DP_IO));
    } else if (event == DP_EXPLORE_PROPOSE) {
        DP_IGNORE(dp_commit_propose(c, now)); /* The event is not possible: nothing has changed. */
    } else if (event == DP_EXPLORE_BID) {
        v->now->bids = (uint8_t)(v->now->bids + (dp_commit_bid(c, now) ? 1 : 0));
    } else {
        DP_IGNORE(dp_commit_message(c, now, v->bodies[event])); /* It may refuse the message. */
    }
    look_for_decision(v);
    if (v->now->head == head) {
        claim(v, c->state.promised >= before.promised, "V1: a promise is taken back");
        claim(v, c->state.accepted == before.accepted || c->state.accepted >= before.promised,
              "V2: accepts below its promise");
    }
    claim(v, dp_commit_check(c, NULL) == DP_OK, "V1: memory is behind the disk");
}

bool dp_explore_may(const dp_explore_voters *v, uint32_t number, uint32_t event)
{
    const dp_explore_state *s = v->states[number];

    switch (event) {
    case DP_EXPLORE_STORED:
    case DP_EXPLORE_FAILED:
    case DP_EXPLORE_FAILED_KEPT:
    case DP_EXPLORE_CRASH_KEPT:
        return s->writes;
    case DP_EXPLORE_RECORD_STORED:
    case DP_EXPLORE_CRASH_RECORD:
        return s->keeping != 0;
    case DP_EXPLORE_CRASH_BOTH:
        return s->keeping != 0 && s->writes;
    case DP_EXPLORE_BID:
        return s->bids < v->bounds.bids;
    default: /* DP_EXPLORE_TAKE and a record, or an event that is always possible. */
        return event < DP_EXPLORE_TAKE ||
               (s->keeping == 0 && event > DP_EXPLORE_TAKE &&
                dp_explore_before(v->chain, event - DP_EXPLORE_TAKE) == s->head);
    }
}

const dp_explore_effect *dp_explore_step(dp_explore_voters *v, uint32_t number, uint32_t event)
{
    const uint64_t key = dp_mix64((uint64_t)number * DP_EXPLORE_EVENTS + event + 1);
    uint32_t known = 0;

    if (dp_explore_table_get(&v->effect_of, key, &known)) {
        return &v->effects[known];
    }
    load(v, v->states[number]);
    v->effect = (dp_explore_effect){0};
    act(v, event);
    v->effect.state = save(v);
    if (v->n_effects == v->effects_capacity) {
        v->effects_capacity = v->effects_capacity == 0 ? 4096 : v->effects_capacity * 2;
        v->effects = realloc(v->effects, v->effects_capacity * sizeof *v->effects);
        dp_assert(v->effects != NULL);
    }
    v->effects[v->n_effects] = v->effect;
    dp_explore_table_add(&v->effect_of, key, v->n_effects);
    return &v->effects[v->n_effects++];
}

uint32_t dp_explore_start(dp_explore_voters *v, uint32_t host)
{
    memset(v->now, 0, sizeof *v->now + dp_explore_mind_size());
    v->now->host = (uint8_t)host;
    v->effect = (dp_explore_effect){0};
    start(v);
    return save(v);
}

/* ---- outside ---- */

dp_explore_voters *dp_explore_voters_open(dp_sim *sim, const dp_explore_bounds *bounds)
{
    dp_explore_voters *v = calloc(1, sizeof *v);

    dp_assert(v != NULL && sim->plan.nodes >= DP_EXPLORE_HOSTS &&
              bounds->slots <= DP_EXPLORE_SLOTS_MAX);
    v->sim = sim;
    v->bounds = *bounds;
    v->chain = dp_explore_chain_open(sim);
    v->now = calloc(1, sizeof *v->now + dp_explore_mind_size());
    dp_assert(v->now != NULL);
    return v;
}

void dp_explore_voters_close(dp_explore_voters *v)
{
    if (v == NULL) {
        return;
    }
    for (uint32_t i = 0; i < v->n_states; i++) {
        free(v->states[i]);
    }
    for (uint32_t i = 0; i < v->n_messages; i++) {
        free(v->bodies[i]);
    }
    dp_explore_chain_close(v->chain);
    dp_explore_table_close(&v->by_mark);
    dp_explore_table_close(&v->message_by_mark);
    dp_explore_table_close(&v->effect_of);
    free(v->states);
    free(v->effects);
    free(v->now);
    free(v);
}

const dp_explore_message *dp_explore_message_of(const dp_explore_voters *v, uint32_t number)
{
    return &v->messages[number];
}

uint32_t dp_explore_messages(const dp_explore_voters *v)
{
    return v->n_messages;
}

bool dp_explore_has_decided(const dp_explore_voters *v, uint32_t number)
{
    return v->states[number]->decided != 0;
}

uint32_t dp_explore_next(const dp_explore_voters *v, uint32_t head, uint32_t last)
{
    while (last != 0 && dp_explore_before(v->chain, last) != head) {
        last = dp_explore_before(v->chain, last);
    }
    return last;
}

bool dp_explore_votes(const dp_explore_voters *v, uint32_t after, uint32_t host)
{
    const dp_ledger *ledger = dp_explore_ledger(v->chain, after);

    return dp_ledger_voter(ledger, &v->sim->hosts[host].peer) != DP_NOBODY;
}

uint32_t dp_explore_decided(const dp_explore_voters *v, uint32_t number, uint32_t slot)
{
    const dp_explore_state *s = v->states[number];
    uint32_t last = s->decided != 0 ? s->decided : s->head;

    while (dp_explore_slot(v->chain, last) > slot) {
        last = dp_explore_before(v->chain, last);
    }
    return dp_explore_slot(v->chain, last) == slot ? last : 0;
}

uint32_t dp_explore_head(const dp_explore_voters *v, uint32_t number)
{
    return v->states[number]->head;
}

uint32_t dp_explore_durable(const dp_explore_voters *v, uint32_t number)
{
    return v->states[number]->kept;
}

const dp_explore_chain *dp_explore_chain_of(const dp_explore_voters *v)
{
    return v->chain;
}

uint32_t dp_explore_bids(const dp_explore_voters *v, uint32_t number)
{
    return v->states[number]->bids;
}

uint64_t dp_explore_mark(const dp_explore_voters *v, uint32_t number)
{
    return v->states[number]->mark;
}

uint32_t dp_explore_states(const dp_explore_voters *v)
{
    return v->n_states;
}
