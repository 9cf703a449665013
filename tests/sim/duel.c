#include "tests/sim/duel.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/vote/commit.h"
#include "tests/sim/duel_lies.h"
#include "tests/sim/oracle_internal.h"

enum { DUEL_ACTS = 500, MESSAGES_MAX = 8192, RECORD_BYTES = DP_DUEL_RECORD_BYTES };

typedef struct duel_message {
    uint32_t from;
    uint32_t to;
    dp_packet *packet;
} duel_message;

typedef struct duel duel;

typedef struct duel_voter {
    duel *world;
    uint32_t index;
    bool up;
    dp_commit commit;
    dp_vote heard[DP_VOTERS_MAX]; /* highest ACCEPTED of each voter given to it in this life */
    uint32_t heard_from;          /* bit per voter */
    uint32_t proofs;
    uint32_t op; /* of the write under way, 0: none */
    dp_packet *writing;
    dp_packet *durable; /* the vote row; NULL: none */
    bool crash_now;
} duel_voter;

struct duel {
    dp_sim *sim;
    dp_rng rng;
    dp_time now;
    dp_ledger ledger;
    uint32_t n;
    uint32_t ops;
    uint32_t values;
    uint32_t n_messages;
    bool forgot;
    bool liar; /* voters lie (duel_lies.h) */
    dp_duel_lies lies;
    duel_message messages[MESSAGES_MAX];
    uint32_t accepted_in[DP_VOTERS_MAX]; /* ballot + 1 of the last ACCEPTED sent */
    dp_hash accepted_hash[DP_VOTERS_MAX];
    duel_voter voters[DP_VOTERS_MAX];
};

static uint64_t below(duel *d, uint64_t limit)
{
    return dp_rng_below(&d->rng, limit);
}

/* ---- what the machine asks of its host ---- */

static dp_verdict judge(void *context, dp_view record)
{
    duel_voter *voter = context;

    (void)record;
    return below(voter->world, 8) == 0 ? DP_VERDICT_LATER : DP_VERDICT_YES;
}

static size_t value(void *context, uint8_t *out)
{
    duel_voter *voter = context;
    const uint64_t words[2] = {voter->index, ++voter->world->values};

    memcpy(out, words, RECORD_BYTES);
    return RECORD_BYTES;
}

/* No voter may accept two records in one ballot, even when the owner of the ballot lies. */
static void note_accepted(duel_voter *voter, dp_view message)
{
    static dp_vote_msg msg;
    duel *d = voter->world;

    if (dp_msg_type_of(message) != DP_MSG_ACCEPTED || dp_vote_msg_read(message, &msg) != DP_OK) {
        return;
    }
    if (d->accepted_in[voter->index] == msg.vote.ballot + 1 &&
        !dp_hash_equal(&d->accepted_hash[voter->index], &msg.vote.hash)) {
        dp_sim_fail(d->sim, "V2", voter->index, "accepts two records in ballot %u",
                    msg.vote.ballot);
    }
    if (dp_duel_is_refused(&d->lies, &msg.vote.hash)) {
        dp_sim_fail(d->sim, "V4", voter->index,
                    "accepts what no owner of ballot %u has proposed with a proof",
                    msg.vote.ballot);
    }
    d->accepted_in[voter->index] = msg.vote.ballot + 1;
    d->accepted_hash[voter->index] = msg.vote.hash;
}

static void post(duel *d, uint32_t from, uint32_t to, dp_view message)
{
    if (d->n_messages < MESSAGES_MAX) {
        dp_packet *packet = dp_packet_of(message.data, (uint32_t)message.size);
        dp_assert(packet != NULL);
        d->messages[d->n_messages++] = (duel_message){.from = from, .to = to, .packet = packet};
    }
}

static void send(void *context, uint32_t to, dp_view message)
{
    duel_voter *voter = context;
    duel *d = voter->world;

    if (voter->crash_now) {
        return; /* dead between two sends */
    }
    dp_sim_mark(d->sim, voter->index, dp_sim_hash(to, message));
    note_accepted(voter, message);
    if (!d->liar) {
        dp_oracle_sent(&d->sim->hosts[voter->index], message);
    }
    post(d, voter->index, to, message);
    if (dp_msg_type_of(message) != DP_MSG_NACK && below(d, 24) == 0) {
        voter->crash_now = true;
    }
}

static uint32_t store(void *context, uint64_t slot, dp_view row)
{
    duel_voter *voter = context;

    (void)slot;
    dp_packet_drop(voter->writing);
    voter->writing = dp_packet_of(row.data, (uint32_t)row.size);
    dp_assert(voter->writing != NULL);
    voter->op = ++voter->world->ops;
    return voter->op;
}

static void proof(void *context, const dp_vote *a, const dp_vote *b)
{
    duel_voter *voter = context;

    (void)b;
    voter->proofs++;
    if (!voter->world->liar) {
        dp_sim_fail(voter->world->sim, "S1", voter->index, "proof of a double vote of voter %u",
                    a->voter);
    }
}

/* ---- the schedule ---- */

static void start(duel *d, duel_voter *voter)
{
    const dp_commit_host host = {.context = voter,
                                 .judge = judge,
                                 .value = value,
                                 .send = send,
                                 .store = store,
                                 .proof = proof};
    const dp_crypto crypto = dp_sim_crypto(&d->sim->hosts[voter->index]);
    uint8_t key[DP_PUBLIC_KEY_BYTES];

    dp_sim_vote_key(&d->sim->hosts[voter->index], key);
    dp_commit_init(&voter->commit, &host, &crypto, &d->sim->run, key);
    if (voter->durable != NULL &&
        dp_commit_restore(&voter->commit, dp_view_of(voter->durable->data, voter->durable->size)) !=
            DP_OK) {
        dp_sim_fail(d->sim, "D2", voter->index, "the vote row does not restore");
    }
    dp_commit_begin(&voter->commit, &d->ledger, &d->sim->hosts[voter->index].peer);
    voter->up = true;
    voter->op = 0;
    voter->crash_now = false;
    voter->heard_from = 0;
}

static void end_write(duel_voter *voter)
{
    dp_packet_drop(voter->durable);
    voter->durable = voter->writing;
    voter->writing = NULL;
}

static void crash(duel *d, duel_voter *voter)
{
    voter->up = false;
    voter->crash_now = false;
    d->sim->totals.crashes++;
    if (voter->writing != NULL && below(d, 2) == 0) {
        end_write(voter);
    }
    dp_packet_drop(voter->writing);
    voter->writing = NULL;
    voter->op = 0;
    if (!d->forgot && below(d, 12) == 0) {
        /* The disk is lost, and with it the vote key, unless that was kept elsewhere. */
        d->forgot = true;
        dp_packet_drop(voter->durable);
        voter->durable = NULL;
        if (!d->sim->options.keep_vote_key) {
            d->sim->hosts[voter->index].disk.vote_key++;
        }
    }
}

/* Called before a voter gets an ACCEPTED: will it hold two that contradict each other? Then it must
 * report a proof. */
static bool contradicts(duel *d, duel_voter *voter, const dp_vote *vote)
{
    if (!d->liar || vote->type != DP_MSG_ACCEPTED || voter->commit.decided ||
        vote->voter == voter->index || vote->voter >= d->n ||
        !dp_vote_verify(vote, &voter->commit.crypto, &d->sim->run,
                        /* For example signed by a key that the voter has lost. */
                        d->ledger.voters[vote->voter].key)) {
        return false;
    }
    dp_vote *last = &voter->heard[vote->voter];
    const uint32_t bit = 1U << vote->voter;
    if ((voter->heard_from & bit) != 0 && vote->ballot <= last->ballot) {
        return vote->ballot == last->ballot && !dp_hash_equal(&vote->hash, &last->hash);
    }
    voter->heard_from |= bit;
    *last = *vote;
    return false;
}

static void give(duel *d, duel_voter *voter, const dp_vote_msg *msg)
{
    const bool twice = contradicts(d, voter, &msg->vote);
    const uint32_t proofs = voter->proofs;

    DP_IGNORE(dp_commit_message(&voter->commit, d->now, msg)); /* it may refuse the message */
    if (twice && voter->proofs == proofs) {
        dp_sim_fail(d->sim, "P1", voter->index,
                    "voter %u accepted two records in ballot %u and nobody is told",
                    msg->vote.voter, msg->vote.ballot);
    }
}

static void deliver(duel *d)
{
    static dp_vote_msg msg;

    if (d->n_messages == 0) {
        return;
    }
    const uint32_t at = (uint32_t)below(d, d->n_messages);
    const duel_message message = d->messages[at];
    duel_voter *voter = &d->voters[message.to];
    dp_packet *packet = dp_packet_share(message.packet);

    if (below(d, 6) != 0) { /* else a copy stays for later */
        dp_packet_drop(message.packet);
        d->messages[at] = d->messages[--d->n_messages];
    }
    if (voter->up && dp_vote_msg_read(dp_view_of(packet->data, packet->size), &msg) == DP_OK) {
        give(d, voter, &msg);
    }
    dp_packet_drop(packet);
}

static void tell_lie(void *context, uint32_t from, uint32_t to, dp_view message)
{
    post(context, from, to, message);
}

static void lie(duel *d)
{
    switch (below(d, 3)) {
    case 0:
        dp_duel_lie_twice(&d->lies, (d->sim->options.seed & 3) == 0);
        break;
    case 1:
        dp_duel_lie_proposal(&d->lies);
        break;
    default:
        dp_duel_lie_vote(&d->lies);
        break;
    }
}

/* A write ends; one in twelve fails, and half of those are on the disk nevertheless. */
static void end_store(duel *d, duel_voter *voter)
{
    const uint32_t op = voter->op;
    const bool fails = below(d, 12) == 0;

    if (!fails || below(d, 2) == 0) {
        end_write(voter);
    }
    dp_packet_drop(voter->writing);
    voter->writing = NULL;
    voter->op = 0;
    DP_IGNORE(dp_commit_stored(&voter->commit, d->now, op, fails ? DP_IO : DP_OK));
}

static void act(duel *d)
{
    duel_voter *voter = &d->voters[below(d, d->n)];
    const uint64_t what = below(d, 100);

    if (what < 55) {
        deliver(d);
    } else if (what < 75) {
        if (voter->up && voter->op != 0) {
            end_store(d, voter);
        }
    } else if (what < 77) {
        if (voter->up) {
            crash(d, voter);
        }
    } else if (what < 83) {
        if (!voter->up) {
            start(d, voter);
        }
    } else if (what < 88) {
        if (voter->up) {
            DP_IGNORE(dp_commit_propose(&voter->commit, d->now));
        }
    } else if (what < 93) {
        if (voter->up) {
            DP_IGNORE(dp_commit_bid(&voter->commit, d->now));
        }
    } else if (voter->up) {
        d->now.us += 300000;
        dp_commit_poke(&voter->commit, d->now);
    }
    if (d->liar && below(d, 20) == 0) {
        lie(d);
    }
}

static void set_up(duel *d, dp_sim *sim)
{
    memset(d, 0, sizeof *d);
    d->sim = sim;
    d->n = sim->plan.nodes > DP_VOTERS_MAX ? DP_VOTERS_MAX : sim->plan.nodes;
    d->now.us = 1000000;
    d->liar = sim->options.profile == DP_PROFILE_LIAR;
    dp_rng_init(&d->rng, dp_mix64(sim->options.seed) ^ 0x6475656c);
    d->ledger.run = sim->run;
    d->ledger.head = sim->run;
    d->ledger.n_voters = d->n;
    dp_slot_book *slot = dp_oracle_slot(sim, 1);
    slot->n_voters = d->n;
    for (uint32_t i = 0; i < d->n; i++) {
        d->ledger.voters[i].peer = sim->hosts[i].peer;
        dp_sim_vote_key(&sim->hosts[i], d->ledger.voters[i].key);
        slot->voters[i] = sim->hosts[i].peer;
        memcpy(slot->keys[i], d->ledger.voters[i].key, sizeof slot->keys[i]);
        d->voters[i].world = d;
        d->voters[i].index = i;
    }
    d->lies = (dp_duel_lies){.context = d,
                             .rng = &d->rng,
                             .run = sim->run,
                             .n = d->n,
                             .slot = &d->voters[0].commit,
                             .post = tell_lie};
    for (uint32_t i = 0; i < d->n; i++) {
        d->lies.crypto[i] = dp_sim_crypto(&sim->hosts[i]);
        start(d, &d->voters[i]);
    }
}

/* Checks that each proof of a decision is valid, whatever messages were sent. */
static void check_proofs(duel *d)
{
    for (uint32_t i = 0; i < d->n; i++) {
        const dp_commit *commit = &d->voters[i].commit;
        if (d->voters[i].up && commit->decided &&
            (dp_duel_is_refused(&d->lies, &commit->outcome.hash) ||
             !dp_cert_verify(&commit->cert, &commit->crypto, &d->sim->run, &d->ledger.fork, 1,
                             &d->ledger.head, &commit->outcome.hash, d->ledger.voters, d->n))) {
            dp_sim_fail(d->sim, "V4", i, "takes for decided what a majority has not signed");
        }
    }
}

/* All machines that hold the slot for decided have the same record. */
static void compare(duel *d)
{
    const dp_hash *first = NULL;

    if (d->liar) {
        check_proofs(d);
    }

    for (uint32_t i = 0; i < d->n && !d->liar; i++) {
        const dp_commit *commit = &d->voters[i].commit;
        if (!d->voters[i].up || !commit->decided) {
            continue;
        }
        d->sim->totals.rounds++;
        const dp_vote decided = {.slot = 1,
                                 .prev = d->sim->run,
                                 .ballot = commit->cert.ballot,
                                 .hash = commit->outcome.hash};
        if (!dp_oracle_certificate(&d->sim->hosts[i], &decided, commit->cert.seals,
                                   commit->cert.n)) {
            return;
        }
        if (first != NULL && !dp_hash_equal(first, &commit->outcome.hash)) {
            dp_sim_fail(d->sim, "S1", i, "two records are decided");
        }
        first = &commit->outcome.hash;
    }
}

bool dp_duel_run(dp_sim *sim)
{
    duel *d = malloc(sizeof *d);

    dp_assert(d != NULL);
    set_up(d, sim);
    for (uint32_t i = 0; i < DUEL_ACTS && sim->failure.invariant[0] == '\0'; i++) {
        act(d);
        sim->totals.occasions++;
        for (uint32_t v = 0; v < d->n; v++) {
            if (d->voters[v].crash_now) {
                crash(d, &d->voters[v]);
            }
        }
    }
    compare(d);
    for (uint32_t i = 0; i < d->n_messages; i++) {
        dp_packet_drop(d->messages[i].packet);
    }
    for (uint32_t i = 0; i < d->n; i++) {
        dp_packet_drop(d->voters[i].writing);
        dp_packet_drop(d->voters[i].durable);
    }
    free(d);
    return sim->failure.invariant[0] == '\0';
}
