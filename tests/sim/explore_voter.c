#include "tests/sim/explore_voter.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/commit.h"
#include "gossip/commit_row.h"
#include "gossip/msg.h"
#include "tests/sim/explore_table.h"

enum { RECORD_BYTES = 16, ROW_MAX = DP_COMMIT_ROW_HEAD + RECORD_BYTES };

/* ---- what of a machine is kept: all but its large buffers, which hold records of RECORD_BYTES, and what is never read again:
 * room, the row as it was written, the certificate, and the promises in a PROPOSE that was judged already. */

typedef struct range {
    size_t from;
    size_t to;
} range;

#define AT(member) offsetof(dp_commit, member)
static const range ranges[] = {
    {AT(key_lost), AT(accepted.data) + RECORD_BYTES},
    {AT(accepted.size), AT(waiting.just)},
    {AT(waiting_record.data), AT(waiting_record.data) + RECORD_BYTES},
    {AT(waiting_record.size), AT(value.data) + RECORD_BYTES},
    {AT(value.size), AT(outcome.data) + RECORD_BYTES},
    {AT(outcome.size), AT(cert)},
    {AT(row_size), AT(row)},
};
_Static_assert(AT(room) + DP_VOTE_MESSAGE_MAX + 8 >= sizeof(dp_commit),
               "what stands behind room is not kept");

typedef struct state {
    uint64_t mark;
    uint64_t decided;
    uint8_t voter;
    uint8_t boots;
    uint8_t bids;
    bool writes;
    uint16_t durable_size;
    uint16_t writing_size;
    uint8_t durable[ROW_MAX];
    uint8_t writing[ROW_MAX];
    uint8_t mind[]; /* of dp_explore_voters.mind_size */
} state;

struct dp_explore_voters {
    dp_sim *sim;
    dp_ledger ledger;
    uint32_t bids_max;
    size_t mind_size;
    dp_commit commits[DP_EXPLORE_VOTERS]; /* the machine that is made to stand in a state */
    state *now;                           /* the state under work */
    dp_explore_effect effect;             /* of the step under work */
    state **states;
    uint32_t n_states;
    uint32_t states_capacity;
    dp_explore_table by_mark;
    dp_explore_message messages[DP_EXPLORE_MESSAGES_MAX];
    dp_vote_msg *bodies[DP_EXPLORE_MESSAGES_MAX]; /* record behind it */
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

/* What leaves is on this voter's disk, and the ballot is its own. */
static void judge_send(dp_explore_voters *v, const dp_vote *vote)
{
    dp_commit_row row = {.promised = -1, .accepted = -1};
    const int64_t ballot = vote->ballot;

    if (v->now->durable_size != 0) {
        const dp_status status =
            dp_commit_row_read(dp_view_of(v->now->durable, v->now->durable_size), &row);
        dp_assert(status == DP_OK);
    }
    if (vote->type == DP_MSG_PROMISE || vote->type == DP_MSG_PREPARE) {
        claim(v, row.promised >= ballot, "V1: a promise is told before it is on disk");
        claim(v, row.accepted + 1 >= (int64_t)vote->accepted,
              "V1: a promise names an accept that is not on disk");
    } else if (vote->type == DP_MSG_ACCEPTED || vote->type == DP_MSG_PROPOSE) {
        claim(v, row.accepted >= ballot, "V1: an accept is told before it is on disk");
    }
    if (vote->type == DP_MSG_PREPARE || vote->type == DP_MSG_PROPOSE) {
        claim(v, dp_commit_owner(&v->commits[v->now->voter], vote->ballot) == v->now->voter,
              "V3: a ballot of another voter is used");
    }
}

/* ---- what the machine asks of its host ---- */

static dp_verdict judge(void *voters, dp_view record)
{
    (void)voters;
    (void)record;
    return DP_VERDICT_YES;
}

/* Another record in each life: what was proposed before a crash is not remembered. */
static size_t value(void *voters, uint8_t *out)
{
    const dp_explore_voters *v = voters;
    const uint64_t words[2] = {v->now->voter, v->now->boots};

    memcpy(out, words, RECORD_BYTES);
    return RECORD_BYTES;
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
    const uint64_t mark = dp_sim_hash(1 + to + 16 * (uint64_t)v->now->voter, bytes);
    uint32_t number = 0;

    if (!dp_explore_table_get(&v->message_by_mark, mark, &number)) {
        dp_assert(v->n_messages < DP_EXPLORE_MESSAGES_MAX);
        number = v->n_messages++;
        v->bodies[number] = body_of(bytes);
        const dp_vote *vote = &v->bodies[number]->vote;
        v->messages[number] = (dp_explore_message){.from = v->now->voter,
                                                   .to = (uint8_t)to,
                                                   .type = vote->type,
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

static uint32_t store(void *voters, uint64_t slot, dp_view row)
{
    dp_explore_voters *v = voters;

    (void)slot;
    dp_assert(!v->now->writes && row.size <= ROW_MAX);
    memcpy(v->now->writing, row.data, row.size);
    v->now->writing_size = (uint16_t)row.size;
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

/* Bytes between the members of a vote differ by accident. */
static void tidy_vote(dp_vote *vote, bool used)
{
    const dp_vote old = *vote;

    memset(vote, 0, sizeof *vote);
    if (used) {
        vote->type = old.type;
        vote->voter = old.voter;
        vote->fork = old.fork;
        vote->slot = old.slot;
        vote->prev = old.prev;
        vote->ballot = old.ballot;
        vote->accepted = old.accepted;
        vote->hash = old.hash;
        memcpy(vote->signature, old.signature, sizeof vote->signature);
    }
}

static void tidy_bytes(dp_commit_bytes *bytes, bool used)
{
    if (!used) {
        memset(bytes->data, 0, RECORD_BYTES);
        bytes->size = 0;
        memset(&bytes->hash, 0, sizeof bytes->hash);
    }
}

/* What the machine will not read again is made the same, so that states are found equal. */
static void tidy(dp_commit *c, bool bids)
{
    const bool owns = c->phase != DP_COMMIT_IDLE && c->phase != DP_COMMIT_PROPOSING;

    if (c->decided) { /* It votes no more. */
        c->has_waiting = false;
        c->has_prepare = false;
        c->has_value = false;
        c->voted = 0;
    }
    if (!bids || c->decided) { /* It is only asked for when the voter bids. */
        c->seen = c->state.promised;
    }
    tidy_bytes(&c->accepted, c->state.accepted >= 0);
    tidy_bytes(&c->waiting_record, c->has_waiting);
    tidy_bytes(&c->value, c->has_value);
    tidy_bytes(&c->outcome, c->decided);
    tidy_vote(&c->prepare, c->has_prepare);
    tidy_vote(&c->waiting.vote, c->has_waiting);
    c->waiting.n_just = 0;
    if (!c->has_waiting) {
        c->waiting.record = (dp_view){0};
    }
    for (uint32_t i = 0; i < DP_VOTERS_MAX; i++) {
        tidy_vote(&c->promises[i], owns && (c->promised_by >> i & 1) != 0);
        tidy_vote(&c->votes[i], (c->voted >> i & 1) != 0);
    }
    if (!owns) {
        c->promised_by = 0;
        c->best = -1;
        c->ballot = 0;
        c->sent_at = (dp_time){0};
    }
    if (c->op == 0) {
        memset(&c->writing, 0, sizeof c->writing);
    }
}

static void load(dp_explore_voters *v, const state *from)
{
    uint8_t *commit = (uint8_t *)&v->commits[from->voter];
    size_t at = 0;

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        memcpy(commit + ranges[i].from, from->mind + at, ranges[i].to - ranges[i].from);
        at += ranges[i].to - ranges[i].from;
    }
    memcpy(v->now, from, sizeof *from);
}

/* The number of the state in which machine and disk are now. */
static uint32_t save(dp_explore_voters *v)
{
    state *now = v->now;
    dp_commit *c = &v->commits[now->voter];
    size_t at = 0;
    uint32_t number = 0;

    tidy(c, now->bids < v->bids_max);
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        memcpy(now->mind + at, (const uint8_t *)c + ranges[i].from, ranges[i].to - ranges[i].from);
        at += ranges[i].to - ranges[i].from;
    }
    if (!now->writes) {
        memset(now->writing, 0, sizeof now->writing);
        now->writing_size = 0;
    }
    now->decided = c->decided ? shortened(&c->outcome.hash) : 0;
    now->mark = 0;
    now->mark = dp_sim_hash(7, dp_view_of(now, sizeof *now + v->mind_size));
    if (dp_explore_table_get(&v->by_mark, now->mark, &number)) {
        return number;
    }
    if (v->n_states == v->states_capacity) {
        v->states_capacity = v->states_capacity == 0 ? 1024 : v->states_capacity * 2;
        v->states = realloc(v->states, v->states_capacity * sizeof(state *));
        dp_assert(v->states != NULL);
    }
    state *kept = malloc(sizeof *kept + v->mind_size);
    dp_assert(kept != NULL);
    memcpy(kept, now, sizeof *kept + v->mind_size);
    v->states[v->n_states] = kept;
    dp_explore_table_add(&v->by_mark, now->mark, v->n_states);
    return v->n_states++;
}

/* ---- steps ---- */

static void start(dp_explore_voters *v)
{
    const dp_commit_host host = {
        .context = v, .judge = judge, .value = value, .send = send, .store = store, .proof = proof};
    dp_host *sim_host = &v->sim->hosts[v->now->voter];
    dp_commit *c = &v->commits[v->now->voter];
    const dp_crypto crypto = dp_sim_crypto(sim_host);
    uint8_t key[DP_PUBLIC_KEY_BYTES];

    dp_sim_vote_key(sim_host, key);
    dp_commit_init(c, &host, &crypto, &v->sim->run, key);
    if (v->now->durable_size != 0) {
        const dp_status status =
            dp_commit_restore(c, dp_view_of(v->now->durable, v->now->durable_size));
        claim(v, status == DP_OK, "D2: the vote row does not restore");
    }
    dp_commit_begin(c, &v->ledger, &sim_host->peer);
}

static void keep_write(state *now)
{
    memcpy(now->durable, now->writing, sizeof now->durable);
    now->durable_size = now->writing_size;
}

static void crash(dp_explore_voters *v, bool kept)
{
    if (kept) {
        keep_write(v->now);
    }
    v->now->writes = false;
    v->now->boots++;
    start(v);
}

static void act(dp_explore_voters *v, uint32_t event)
{
    const dp_time now = {.us = 1000000};
    dp_commit *c = &v->commits[v->now->voter];
    const dp_commit_state before = c->state;

    if (event == DP_EXPLORE_CRASH || event == DP_EXPLORE_CRASH_KEPT) {
        crash(v, event == DP_EXPLORE_CRASH_KEPT);
        return;
    }
    if (event == DP_EXPLORE_STORED) {
        keep_write(v->now);
        v->now->writes = false;
        dp_assert(dp_commit_stored(c, now, 1, DP_OK));
    } else if (event == DP_EXPLORE_PROPOSE) {
        DP_IGNORE(dp_commit_propose(c, now)); /* Not possible: then nothing has changed. */
    } else if (event == DP_EXPLORE_BID) {
        v->now->bids = (uint8_t)(v->now->bids + (dp_commit_bid(c, now) ? 1 : 0));
    } else {
        DP_IGNORE(dp_commit_message(c, now, v->bodies[event])); /* A refusal is an answer. */
    }
    claim(v, c->state.promised >= before.promised, "V1: a promise is taken back");
    claim(v, c->state.accepted == before.accepted || c->state.accepted >= before.promised,
          "V2: accepts below its promise");
    claim(v, dp_commit_check(c, NULL) == DP_OK, "V1: memory is behind the disk");
}

bool dp_explore_may(const dp_explore_voters *v, uint32_t number, uint32_t event)
{
    const state *s = v->states[number];

    if (event == DP_EXPLORE_STORED || event == DP_EXPLORE_CRASH_KEPT) {
        return s->writes;
    }
    return event != DP_EXPLORE_BID || s->bids < v->bids_max;
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

uint32_t dp_explore_start(dp_explore_voters *v, uint32_t voter)
{
    memset(v->now, 0, sizeof *v->now + v->mind_size);
    v->now->voter = (uint8_t)voter;
    v->effect = (dp_explore_effect){0};
    start(v);
    return save(v);
}

/* ---- outside ---- */

dp_explore_voters *dp_explore_voters_open(dp_sim *sim, uint32_t bids)
{
    dp_explore_voters *v = calloc(1, sizeof *v);

    dp_assert(v != NULL && sim->plan.nodes >= DP_EXPLORE_VOTERS);
    v->sim = sim;
    v->bids_max = bids;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        v->mind_size += ranges[i].to - ranges[i].from;
    }
    v->now = calloc(1, sizeof *v->now + v->mind_size);
    dp_assert(v->now != NULL);
    v->ledger.run = sim->run;
    v->ledger.head = sim->run;
    v->ledger.n_voters = DP_EXPLORE_VOTERS;
    for (uint32_t i = 0; i < DP_EXPLORE_VOTERS; i++) {
        v->ledger.voters[i].peer = sim->hosts[i].peer;
        dp_sim_vote_key(&sim->hosts[i], v->ledger.voters[i].key);
    }
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

uint64_t dp_explore_decided(const dp_explore_voters *v, uint32_t number)
{
    return v->states[number]->decided;
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
