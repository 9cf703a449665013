/* One voter of a slot, whose disk and network the test controls: counts its messages and writes,
 * which the test answers. */
#ifndef DP_TESTS_LONE_VOTER_H
#define DP_TESTS_LONE_VOTER_H

#include "gossip/core/msg.h"
#include "gossip/vote/commit.h"
#include "gossip/vote/commit_row.h"
#include "tests/unit/gossip/kit/chain_kit.h"

typedef struct lone_voter {
    dp_commit commit;
    dp_ledger ledger;
    uint32_t self;
    uint32_t ops;
    uint32_t sent[8]; /* messages by type, from DP_MSG_PREPARE on */
    uint32_t judged;
} lone_voter;

static const dp_time lone_now = {.us = 1000000};

static inline dp_verdict lone_judge(void *context, dp_view record)
{
    lone_voter *voter = context;

    (void)record;
    voter->judged++;
    return DP_VERDICT_YES;
}

static inline size_t lone_value(void *context, uint8_t *out)
{
    (void)context;
    memset(out, 'v', 20);
    return 20;
}

static inline void lone_send(void *context, uint32_t to, dp_view message)
{
    lone_voter *voter = context;

    (void)to;
    voter->sent[dp_msg_type_of(message) - DP_MSG_PREPARE]++;
}

static inline uint32_t lone_store(void *context, uint64_t slot, dp_view row)
{
    lone_voter *voter = context;

    (void)slot;
    (void)row;
    return ++voter->ops;
}

static inline void lone_proof(void *context, const dp_vote *a, const dp_vote *b)
{
    (void)context;
    (void)a;
    (void)b;
}

static inline uint32_t lone_sent(const lone_voter *voter, uint8_t type)
{
    return voter->sent[type - DP_MSG_PREPARE];
}

/* A life of voter self, before its slot begins. */
static inline void lone_boot(lone_voter *voter, uint32_t self)
{
    const dp_commit_host host = {.context = voter,
                                 .judge = lone_judge,
                                 .value = lone_value,
                                 .send = lone_send,
                                 .store = lone_store,
                                 .proof = lone_proof};
    const dp_crypto crypto = kit_crypto(self);
    uint8_t key[DP_PUBLIC_KEY_BYTES];

    kit_vote_key(self, key);
    voter->self = self;
    memset(voter->sent, 0, sizeof voter->sent);
    dp_commit_init(&voter->commit, &host, &crypto, &voter->ledger.run, key);
}

static inline void lone_begin(lone_voter *voter)
{
    const dp_peer peer = kit_peer(voter->self);

    dp_commit_begin(&voter->commit, &voter->ledger, &peer);
}

/* Voter 0 of n. */
static inline lone_voter *lone_open(uint32_t n)
{
    lone_voter *voter = test_calloc(1, sizeof *voter);

    assert_non_null(voter);
    kit_ledger(&voter->ledger);
    kit_voters(&voter->ledger, n);
    lone_boot(voter, 0);
    lone_begin(voter);
    return voter;
}

static inline void lone_close(lone_voter *voter)
{
    dp_ledger_close(&voter->ledger);
    test_free(voter);
}

/* The least ballot from `from` on that this voter owns. */
static inline uint32_t lone_ballot_of(const lone_voter *voter, uint32_t owner, uint32_t from)
{
    while (dp_commit_owner(&voter->commit, from) != owner) {
        from++;
    }
    return from;
}

/* Signs the vote of voter `by` for this slot. */
static inline void lone_sign(const lone_voter *voter, dp_vote *vote, uint8_t type, uint32_t by)
{
    const dp_crypto crypto = kit_crypto(by);

    vote->type = type;
    vote->voter = (uint8_t)by;
    vote->fork = voter->ledger.fork;
    vote->slot = voter->ledger.slot + 1;
    vote->prev = voter->ledger.head;
    assert_true(dp_vote_sign(vote, &crypto, &voter->ledger.run));
}

/* PROPOSE of text by voter `by`; with the signed promises of voters 1 .. n_just for it. */
static inline dp_vote_msg lone_proposal(const lone_voter *voter, const char *text, uint32_t by,
                                        uint32_t ballot, uint32_t n_just)
{
    dp_vote_msg msg = {.vote = {.ballot = ballot}, .record = dp_view_text(text)};

    msg.vote.hash = dp_record_hash(msg.record);
    for (uint32_t i = 0; i < n_just; i++) {
        msg.just[msg.n_just] = (dp_vote){.ballot = ballot};
        lone_sign(voter, &msg.just[msg.n_just++], DP_MSG_PROMISE, 1 + i);
    }
    lone_sign(voter, &msg.vote, DP_MSG_PROPOSE, by);
    return msg;
}

static inline dp_status lone_tell(lone_voter *voter, const dp_vote_msg *msg)
{
    return dp_commit_message(&voter->commit, lone_now, msg);
}

static inline void lone_wrote(lone_voter *voter, dp_status status)
{
    assert_true(dp_commit_stored(&voter->commit, lone_now, voter->commit.op, status));
}

#endif
