/* Deciding the record of one slot: single-decree Paxos (Lamport 1998) among the voters of the slot,
 * as acceptor and as owner of ballots, with every promise and accept durable before it is spoken
 * of. It knows no chain and no blob: the host decides whether a record may be accepted and gives
 * the record to propose; when to bid is the caller's decision (round.h).
 *
 * A ballot has one owner, a pure function of run, fork, slot and voters: owner(b) = order[b mod
 * |V|], order by highest random weight. PREPARE and PROPOSE of anyone else are dropped. Ballot 0
 * needs no PREPARE, and its owner uses it once.
 *
 * Deviations from the paper: ballots have fixed owners; a PROPOSE proves with signed promises that
 * its value is free or forced; ACCEPTED goes to all voters, so that anyone may close the slot.
 *
 * The durable state is the vote row: u8 version 1 | 32 fork | u64 slot | 32 prev | u32 promised + 1
 * | u32 accepted + 1 | u32 size | accepted record. Memory is never behind the row; nothing is sent
 * that is ahead of it. */
#ifndef DP_GOSSIP_VOTE_COMMIT_H
#define DP_GOSSIP_VOTE_COMMIT_H

#include "base/clock.h"
#include "gossip/ledger/ledger.h"
#include "gossip/vote/commit_msg.h"

enum { DP_COMMIT_ROW_MAX = 1 + 32 + 8 + 32 + 4 + 4 + 4 + DP_RECORD_BYTES_MAX };
#define DP_COMMIT_RESEND_US (250 * DP_MS)
/* Ballots that may be reached per second of a slot, as its time is measured here. Seven honest
 * voters that bid as fast as they may reach 245 in the first second, and then ever fewer; without a
 * bound one that lies could use up all ballots at once. */
enum { DP_BALLOTS_PER_SECOND = 1024 };

typedef enum dp_verdict {
    DP_VERDICT_NO = 0, /* never, by the chain */
    DP_VERDICT_LATER,  /* valid, but a blob is not here yet, or its time has not come: ask again */
    DP_VERDICT_YES
} dp_verdict;

typedef struct dp_commit_host {
    void *context;
    /* May this voter accept record now? Evidence by the chain and blobs durable here. */
    dp_verdict (*judge)(void *context, dp_view record);
    /* An own proposal for this slot into out (DP_RECORD_BYTES_MAX): its size, 0 if there is none
     * now. */
    size_t (*value)(void *context, uint8_t *out);
    /* message is copied. voter: index, never this node's own. */
    void (*send)(void *context, uint32_t voter, dp_view message);
    /* Write the vote row; gives a number, never 0, that dp_commit_stored hears of. row lives until
     * the next call. */
    uint32_t (*store)(void *context, uint64_t slot, dp_view row);
    /* One voter signed two records in one ballot. */
    void (*proof)(void *context, const dp_vote *a, const dp_vote *b);
    /* Every vote of another whose signature was checked. NULL: not needed. */
    void (*saw)(void *context, const dp_vote *vote);
} dp_commit_host;

typedef enum dp_commit_phase {
    DP_COMMIT_IDLE = 0,  /* no own ballot under way */
    DP_COMMIT_PROMISING, /* own promise is being written */
    DP_COMMIT_PREPARING, /* PREPARE sent */
    DP_COMMIT_CHOOSING,  /* majority promised; the value waits for the host */
    DP_COMMIT_ACCEPTING, /* own accept is being written */
    DP_COMMIT_PROPOSING  /* PROPOSE sent */
} dp_commit_phase;

typedef struct dp_commit_state {
    int64_t promised; /* -1: none */
    int64_t accepted;
    dp_hash hash; /* of the accepted record */
} dp_commit_state;

typedef struct dp_commit_bytes {
    uint8_t data[DP_RECORD_BYTES_MAX];
    size_t size;
    dp_hash hash;
} dp_commit_bytes;

/* Data, large (about 250 KiB); written by the commit files only. */
typedef struct dp_commit {
    dp_commit_host host;
    dp_crypto crypto;
    dp_run_id run;
    bool has_key;
    uint8_t key[DP_PUBLIC_KEY_BYTES];
    bool has_ended;
    dp_hash ended; /* a fork that is given up: a row of it holds nothing back */
    bool key_lost; /* own signature seen above the own row: never vote again with it */
    /* the slot */
    dp_hash fork;
    uint64_t slot;
    dp_hash prev;
    uint32_t n;
    dp_voter voters[DP_VOTERS_MAX];
    uint32_t order[DP_VOTERS_MAX];
    uint32_t self; /* index, or DP_NOBODY: does not vote in this slot */
    /* acceptor */
    dp_commit_state state; /* in memory */
    /* on disk; behind state only while op is under way or after a failed write */
    dp_commit_state durable;
    dp_commit_state writing;
    dp_commit_bytes accepted;
    uint32_t op;         /* of the write under way, 0: none */
    uint32_t promise_to; /* the voter that waits for PROMISE, or DP_NOBODY */
    bool tell_accepted;
    int64_t seen;        /* highest ballot met in this slot */
    dp_time began;       /* first message of this slot; zero: none yet */
    bool has_waiting;    /* a PROPOSE that cannot be accepted yet */
    dp_vote_msg waiting; /* its record is in waiting_record */
    dp_commit_bytes waiting_record;
    bool has_prepare; /* a PREPARE that came during a write */
    dp_vote prepare;
    /* owner */
    dp_commit_phase phase;
    uint32_t ballot;
    uint32_t promised_by; /* bit per voter */
    dp_vote promises[DP_VOTERS_MAX];
    int64_t best;          /* highest accepted ballot in the promises */
    dp_commit_bytes value; /* the proposed record */
    bool has_value;
    dp_time sent_at;
    /* votes of this slot */
    uint32_t voted; /* bit per voter: votes[] holds its latest ACCEPTED */
    dp_vote votes[DP_VOTERS_MAX];
    bool decided;
    dp_commit_bytes outcome;
    dp_cert_of_record cert;
    /* the durable row met at start, for the slot it names */
    size_t row_size;
    uint8_t row[DP_COMMIT_ROW_MAX];
    uint8_t room[DP_VOTE_MESSAGE_MAX];
} dp_commit;

void dp_commit_init(dp_commit *commit, const dp_commit_host *host, const dp_crypto *crypto,
                    const dp_run_id *run, const uint8_t *vote_key);
/* The row found on disk. DP_BADMSG, DP_VERSION: then this node must not vote (key_lost is set). */
DP_MUST dp_status dp_commit_restore(dp_commit *commit, dp_view row);
/* This fork is given up for good: votes in it bind nobody. Before dp_commit_begin. */
void dp_commit_end_fork(dp_commit *commit, const dp_hash *fork);
/* The slot after the ledger's head begins. self: this node. */
void dp_commit_begin(dp_commit *commit, const dp_ledger *ledger, const dp_peer *self);

/* PREPARE, PROMISE, PROPOSE, ACCEPTED, NACK of this slot (the caller has looked at fork, slot and
 * prev). DP_BADSIG, DP_DENIED. */
DP_MUST dp_status dp_commit_message(dp_commit *commit, dp_time now, const dp_vote_msg *msg);
/* True if op was this machine's. */
bool dp_commit_stored(dp_commit *commit, dp_time now, uint32_t op, dp_status status);
/* An input of the judge or of the value may have changed. Also resends unanswered messages. */
void dp_commit_poke(dp_commit *commit, dp_time now);

/* This node owns ballot 0, has promised nothing, and has a value: propose it. False: not
 * possible. */
bool dp_commit_propose(dp_commit *commit, dp_time now);
/* Bid with the least own ballot above all seen. False: does not vote, or a write is under way. */
bool dp_commit_bid(dp_commit *commit, dp_time now);
/* The voter's own last vote, to show it to itself (a restored backup must notice); false if none
 * was seen. */
bool dp_commit_echo(const dp_commit *commit, uint32_t voter, dp_vote *vote);

uint32_t dp_commit_owner(const dp_commit *commit, uint32_t ballot);
/* The owner of the highest ballot met in this slot, or of ballot 0. There are voters. */
dp_peer dp_commit_owner_next(const dp_commit *commit);
/* How many places after the owner of the highest ballot seen this node comes; 0 for that owner
 * itself. */
uint32_t dp_commit_distance(const dp_commit *commit);
/* Does anything go on in this slot? Then a decision is due. */
bool dp_commit_active(const dp_commit *commit);

DP_MUST dp_status dp_commit_check(const dp_commit *commit, dp_why *why);

/* Between commit.c, commit_acceptor.c and commit_owner.c. */
bool dp_commit_may_vote(const dp_commit *commit);
void dp_commit_send_promise(dp_commit *commit, uint32_t to);
/* To one voter, or to all with DP_NOBODY; then the own vote counts here too. */
void dp_commit_send_accepted(dp_commit *commit, uint32_t to);
void dp_commit_on_prepare(dp_commit *commit, const dp_vote *vote);
void dp_commit_on_propose(dp_commit *commit, const dp_vote_msg *msg);
bool dp_commit_is_justified(const dp_commit *commit, const dp_vote_msg *msg);
void dp_commit_notice_own(dp_commit *commit, const dp_vote *vote);
/* Do these votes decide? */
void dp_commit_look(dp_commit *commit, uint32_t ballot, const dp_hash *hash);
void dp_commit_write_row(dp_commit *commit);
void dp_commit_tally(dp_commit *commit, const dp_vote *vote);
void dp_commit_sign(dp_commit *commit, dp_vote *vote, uint8_t type);
void dp_commit_send(dp_commit *commit, uint32_t voter, const dp_vote_msg *msg);
void dp_commit_saw(const dp_commit *commit, const dp_vote *vote);
void dp_commit_owner_stored(dp_commit *commit, dp_time now, bool ok);
void dp_commit_owner_promise(dp_commit *commit, dp_time now, const dp_vote_msg *msg);
void dp_commit_owner_poke(dp_commit *commit, dp_time now);
void dp_commit_copy(dp_commit_bytes *to, dp_view record, const dp_hash *hash);
bool dp_commit_owns(const dp_commit *commit, uint32_t ballot, uint32_t voter);

#endif
